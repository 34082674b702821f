package sys

import (
	"errors"
	"os"
	"runtime"
	"slices"
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

// mostProcessors is how many the largest set has: Linux has at most 8192 (NR_CPUS).
const mostProcessors = 1 << 14

// AffinityOf is Affinity for the thread with that number, as a process's first is the process's.
func AffinityOf(tid int) ([]int, error) {
	// A set smaller than that of the kernel is EINVAL (sched_setaffinity(2), "C library/kernel differences").
	for n := 1024; ; n *= 4 {
		set := unix.NewCPUSet(n)
		err := unix.SchedGetaffinityDynamic(tid, set)
		if errors.Is(err, unix.EINVAL) && n < mostProcessors {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("sched_getaffinity", err)
		}
		var cpus []int
		for c := range n {
			if set.IsSet(c) {
				cpus = append(cpus, c)
			}
		}
		return cpus, nil
	}
}

// SetAffinity lets the calling thread run on cpus only; processes that it
// starts inherit this. The caller has locked its goroutine to the thread.
func SetAffinity(cpus []int) error { return setAffinity(0, cpus) }

func setAffinity(tid int, cpus []int) error {
	set := unix.NewCPUSet(slices.Max(cpus) + 1)
	for _, c := range cpus {
		set.Set(c)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinityDynamic(tid, set))
}

// BindProcess lets all threads of this process run on cpus only, and those that they start.
func BindProcess(cpus []int) error {
	bound := map[string]bool{}
	for more := true; more; { // a thread may start one while others are bound
		more = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || bound[t.Name()] {
				continue
			}
			if err := setAffinity(tid, cpus); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			bound[t.Name()], more = true, true
		}
	}
	return nil
}

// IsTerminal reports whether fd is a terminal.
func IsTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
	runtime.KeepAlive(fd)
	return err == nil
}

// TerminalSize is how many columns and rows the terminal has; 80 and 24 if it does not say.
func TerminalSize(fd uintptr) (width, height int) {
	s, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
	runtime.KeepAlive(fd)
	if err != nil || s.Col == 0 || s.Row == 0 {
		return 80, 24
	}
	return int(s.Col), int(s.Row)
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
