package sys

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// ProcStat lists the fields of /proc/PID/stat (proc_pid_stat(5)) from the state on; none if there is no such process.
func ProcStat(pid int) []string { return statFields(fmt.Sprintf("/proc/%d", pid)) }

// statFields is ProcStat of the process or thread of a directory of /proc.
func statFields(dir string) []string {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return nil
	}
	// The name, in parentheses, may hold anything, parentheses too.
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// ReadActivity is the activity of a process; ok is false if there is none.
func ReadActivity(pid int) (a Activity, ok bool) {
	const (
		state, faults, user, system = 0, 9, 11, 12      // fields 3, 12, 14 and 15
		tick                        = time.Second / 100 // USER_HZ, which all architectures have at 100
	)
	f := ProcStat(pid)
	if len(f) <= system || len(f[state]) != 1 {
		return a, false
	}
	number := func(s string) uint64 {
		n, _ := strconv.ParseUint(s, 10, 64)
		return n
	}
	a.State, a.Faults = f[state][0], number(f[faults])
	a.Ran = time.Duration(number(f[user])+number(f[system])) * tick
	// Finer, and with the delay, but without the threads that have ended.
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var ran time.Duration
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		if f := strings.Fields(string(b)); len(f) >= 2 {
			ran += time.Duration(number(f[0]))
			a.Delayed += time.Duration(number(f[1]))
		}
	}
	a.Ran = max(a.Ran, ran)
	return a, true
}
