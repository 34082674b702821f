package sys

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// OnSignal has handle called on a goroutine of its own whenever the signal arrives, from now on for as long as the process lives.
func OnSignal(s syscall.Signal, handle func()) {
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, s)
	go func() {
		for range arrived {
			handle()
		}
	}()
}

// Alarm has SIGALRM arrive after so many seconds, never if it is 0, and returns how many were left of those before.
func Alarm(seconds uint32) uint32 {
	old, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Value: unix.Timeval{Sec: int64(seconds)}})
	if err != nil {
		return 0
	}
	left := uint32(old.Value.Sec)
	if old.Value.Usec > 0 {
		left++
	}
	return left
}
