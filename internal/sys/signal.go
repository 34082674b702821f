package sys

import (
	"os"
	"os/signal"
)

// Catch is signal.Notify without the signals that are ignored: those that were when
// the process started, as under nohup(1) or in the background of a script, stay so.
func Catch(ch chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(ch, s)
		}
	}
}
