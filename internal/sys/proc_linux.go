package sys

import (
	"errors"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SetSubreaper makes this process the parent of every descendant whose own
// parent dies (PR_SET_CHILD_SUBREAPER, prctl(2)), or takes that back. It holds
// for the process as a whole and is not inherited.
func SetSubreaper(on bool) error {
	var v uintptr
	if on {
		v = 1
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, v, 0, 0, 0)
}

// Affinity lists the processors that the calling thread may run on, ascending.
// The caller has locked its goroutine to the thread.
func Affinity() ([]int, error) { return AffinityOf(0) }

// AffinityOf lists the processors that the first thread of process pid may run on,
// ascending; 0 is the calling thread.
func AffinityOf(pid int) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return nil, err
	}
	cpus := make([]int, 0, set.Count())
	for c := 0; len(cpus) < cap(cpus); c++ {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// SetAffinity lets the calling thread run on cpus only; processes that it
// starts inherit this. The caller has locked its goroutine to the thread.
func SetAffinity(cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinity(0, &set)
}

// IsTerminal reports whether fd is a terminal.
func IsTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
	runtime.KeepAlive(fd)
	return err == nil
}

// AwaitExit waits until the process pid has ended (it may still be a zombie) or
// the time is over, and reports whether it has ended. pid need not be a child.
func AwaitExit(pid int, limit time.Duration) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	end := time.Now().Add(limit)
	for {
		left := max(time.Until(end), 0)
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, int((left+time.Millisecond-1)/time.Millisecond))
		if n > 0 {
			return true
		}
		if err != nil && !errors.Is(err, unix.EINTR) || left == 0 {
			return false
		}
	}
}

// SignalName is the name of a signal, such as SIGKILL.
func SignalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return "signal " + strconv.Itoa(int(s))
}
