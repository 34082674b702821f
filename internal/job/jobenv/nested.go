package jobenv

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// places are the variables that tell one process its place in a job, which the processes
// that it starts do not have.
var places = []string{
	Rank, Size, LocalRank, LocalSize, JobID, SegFD, CtlFD, Freeze, JobSocket, TakenBy, Sharers, Viewed,
	Rendezvous, RendezvousServe, Host, JobKey, JobKeyFile, PMIFD, PMIxDir,
}

// settings are those that gasrun sets for its ranks whatever the environment has, and that
// need not suit another job: of their conduits one cannot span hosts, another is one process.
var settings = []string{Conduit, Segment, Large, Record, Trace, TraceLast}

// simulated are those of a process that simulates all ranks, whose reports are not to be
// overwritten and whose options no other conduit takes.
var simulated = []string{Ranks, SimStatus, "ARGON_SIM", "ARGON_SIM_TRACE", "ARGON_SIM_KEEP", "ARGON_SIM_AGAIN"}

// self names this process among all that the host has had: its number, and when it was
// started, which execve leaves as it is (proc_pid_stat(5), field 22).
func self() string {
	const startTime = 22 - 3 // after the name, which may hold anything
	start := "0"
	if b, err := os.ReadFile("/proc/self/stat"); err == nil {
		if f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]); len(f) > startTime {
			start = string(f[startTime])
		}
	}
	return fmt.Sprintf("%d.%s", os.Getpid(), start)
}

// IsProcess reports whether a value of TakenBy names a process.
func IsProcess(s string) bool {
	pid, start, _ := strings.Cut(s, ".")
	_, err := strconv.ParseUint(start, 10, 64)
	n, bad := strconv.Atoi(pid)
	return err == nil && bad == nil && n > 0
}

// Take notes in this process's environment that it is the rank that the variables tell of.
// Processes that it starts are not.
func Take() { _ = os.Setenv(TakenBy, self()) }

// Nested reports whether a rank has started this process, or one that it comes of, so that
// the place in the environment is that rank's. by is the rank as messages name it.
func Nested() (by string, nested bool) {
	taken := os.Getenv(TakenBy)
	if !IsProcess(taken) || taken == self() {
		return "", false
	}
	pid, _, _ := strings.Cut(taken, ".")
	if r := os.Getenv(Rank); r != "" {
		return fmt.Sprintf("rank %s of job %s (process %s)", r, os.Getenv(JobID), pid), true
	}
	return fmt.Sprintf("process %s of job %s", pid, os.Getenv(JobID)), true
}

// launched reports whether gasrun has set the place in the environment.
func launched() bool {
	return os.Getenv(JobID) != "" && (os.Getenv(CtlFD) != "" || os.Getenv(SimStatus) != "")
}

// LeaveOuter is Leave for a launcher, which is never a rank, if another one or a rank has
// started it. by is that one as messages name it.
func LeaveOuter() (by string, left bool) {
	by, left = Nested()
	if !left && launched() {
		by, left = "rank "+os.Getenv(Rank)+" of job "+os.Getenv(JobID), true
		if os.Getenv(SimStatus) != "" {
			by = "the simulated job " + os.Getenv(JobID)
		}
	}
	if left {
		Leave()
	}
	return by, left
}

// Leave removes from this process's environment the place that a rank has left there, which
// makes it a job of its own. Settings of users stay.
func Leave() {
	if launched() {
		for _, key := range settings {
			_ = os.Unsetenv(key)
		}
	}
	if os.Getenv(SimStatus) != "" {
		for _, key := range simulated {
			_ = os.Unsetenv(key)
		}
	}
	for _, key := range places {
		_ = os.Unsetenv(key)
	}
}
