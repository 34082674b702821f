package sys

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Activity has the system's counts of a process's work so far.
type Activity struct {
	// State is R, S, D, T (stopped), t (traced), Z and so on (proc_pid_stat(5)).
	State byte
	// Ran is how long its threads have run, and Delayed how long they were ready and waited
	// for a processor; the latter is 0 if the kernel does not tell (CONFIG_SCHED_INFO).
	Ran, Delayed time.Duration
	// Faults counts pages that had to be read from a disk.
	Faults uint64
}

// Stopped reports whether the process cannot react to anything but SIGKILL and SIGCONT.
func (a Activity) Stopped() bool { return a.State == 'T' || a.State == 't' }

// ReadActivity is the activity of a process; ok is false if there is none.
func ReadActivity(pid int) (a Activity, ok bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	// The name, in parentheses, may hold anything, parentheses too.
	i := bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 {
		return a, false
	}
	const (
		state, faults, user, system = 0, 9, 11, 12      // fields 3, 12, 14 and 15
		tick                        = time.Second / 100 // USER_HZ, which all architectures have at 100
	)
	f := bytes.Fields(b[i+1:])
	if len(f) <= system || len(f[state]) != 1 {
		return a, false
	}
	number := func(b []byte) uint64 {
		n, _ := strconv.ParseUint(string(b), 10, 64)
		return n
	}
	a.State, a.Faults = f[state][0], number(f[faults])
	a.Ran = time.Duration(number(f[user])+number(f[system])) * tick
	// Finer, and with the delay, but without the threads that have ended.
	tasks, _ := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	var ran time.Duration
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		if f := bytes.Fields(b); len(f) >= 2 {
			ran += time.Duration(number(f[0]))
			a.Delayed += time.Duration(number(f[1]))
		}
	}
	a.Ran = max(a.Ran, ran)
	return a, true
}
