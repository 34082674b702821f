// Program gasprog does what its first argument says; see the tests of gasrun.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/argon-go/argon/gas"
)

func main() {
	if os.Args[1] == "early" && os.Getenv("ARGON_RANK") == "1" {
		return
	}
	gas.Exit(func() error {
		err := run()
		if err != nil && os.Args[1] == "linger" && os.Getenv("ARGON_RANK") == "1" {
			time.Sleep(time.Hour)
		}
		return err
	}())
}

func run() error {
	return gas.Run(gas.Config{}, func(n *gas.Node) error {
		mine := n.Rank() == 1
		if mine && (os.Args[1] == "error" || os.Args[1] == "linger") {
			return errors.New("out of luck")
		}
		if os.Args[1] == "polite" { // learns of the failure before it is told to end
			signal.Ignore(syscall.SIGTERM)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if mine && os.Args[1] == "deaf" {
			deaf()
		}
		fmt.Println("ready")
		switch {
		case os.Args[1] == "files": // that a program run by the rank has open
			cmd := exec.Command("ls", "-l", "/proc/self/fd")
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				return err
			}
		case os.Args[1] == "wait": // for ever, for somebody who does not come
			if n.Rank() == 0 {
				time.Sleep(time.Hour)
			}
		case !mine || os.Args[1] == "good":
		case os.Args[1] == "exit":
			os.Exit(0)
		case os.Args[1] == "panic":
			panic("boom")
		case os.Args[1] == "kill", os.Args[1] == "polite":
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return n.Barrier()
	})
}

// deaf stops polling. It is ready for the question where it is as soon as somebody
// may ask.
//
//go:noinline
func deaf() {
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
