package sys

import (
	"time"

	"golang.org/x/sys/unix"
)

// Processors is how many processors the ranks of a host have to themselves: those
// that this process may run on, or fewer, see QuotaCPU.
func Processors() int { return min(NumCPU(), QuotaCPU()) }

// NumCPU is how many processors this process may run on.
func NumCPU() int { return NumCPUOf(0) }

// NumCPUOf is how many processors the process pid may run on, 1 if there is none.
func NumCPUOf(pid int) int {
	cpus, _ := AffinityOf(pid)
	return max(len(cpus), 1)
}

// QuotaCPU is how many processors this process's control group has time for, at
// least 1; very many if it has no limit. A limit of 1.5 processors counts as one,
// for two threads that spin would be throttled.
func QuotaCPU() int { return int(min(max(cpuLimit("/"), 1), 1<<30)) }

// ProcessorTime is how long threads of this process have run.
func ProcessorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Monotonic is CLOCK_MONOTONIC, clock_gettime(2), which all processes of a host have in common.
func Monotonic() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
