package launch

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// process is one line of /proc/PID/stat (proc_pid_stat(5)).
type process struct {
	pid, ppid, pgid int
	state           byte         // R, S, D, T, t, Z, ...
	did             sys.Activity // as far as that was asked for
}

func readProcess(pid int) (process, bool) {
	f := sys.ProcStat(pid)
	if len(f) < 3 || len(f[0]) != 1 {
		return process{}, false
	}
	p := process{pid: pid, state: f[0][0]}
	p.ppid, _ = strconv.Atoi(f[1])
	p.pgid, _ = strconv.Atoi(f[2])
	return p, true
}

// activity sums the counters of all processes of the rank's group, with the state of the
// rank's own: a wrapper may stand between gasrun and the program.
func (p process) activity() (sys.Activity, bool) {
	all, ok := sys.ReadActivity(p.pid)
	if !ok {
		return all, false
	}
	for _, q := range processes() {
		if q.pgid != p.pgid || q.pid == p.pid {
			continue
		}
		if a, ok := sys.ReadActivity(q.pid); ok {
			all.Ran += a.Ran
			all.Delayed += a.Delayed
			all.Faults += a.Faults
		}
	}
	return all, true
}

// stopped reports whether the process cannot react to anything but SIGKILL and SIGCONT.
func (p process) stopped() bool { return p.state == 'T' || p.state == 't' }

// describe names the state of the process.
func (p process) describe() string {
	switch p.state {
	case 'R':
		return "running"
	case 'S':
		return "sleeping"
	case 'D':
		return "in an uninterruptible system call"
	case 'T':
		return "stopped"
	case 't':
		return "stopped by a debugger"
	case 'Z':
		return "ended"
	}
	return fmt.Sprintf("in state %q", p.state)
}

func processes() []process {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	all := make([]process, 0, len(names))
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			if p, ok := readProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// identityOf is how the processes of a job that were started with an environment
// like env know theirs: the job's identity, and if there is one the host's, for
// several of a job's hosts may be one machine. "" outside of jobs.
func identityOf(env []string) string {
	id, host := "", ""
	for _, e := range env {
		switch k, v, _ := strings.Cut(e, "="); k {
		case jobenv.JobID:
			id = v
		case jobenv.Host:
			host = "@" + v
		}
	}
	if id == "" {
		return ""
	}
	return id + host
}

// jobOf is the identity of the job that the process belongs to by the
// environment that it was started with, or "".
func jobOf(pid int) string {
	for range 1000 {
		b, err := environ(pid)
		if err != nil || len(b) != 0 {
			return identityOf(strings.Split(string(b), "\x00"))
		}
		if !amidExec(pid) {
			return ""
		}
		time.Sleep(time.Millisecond)
	}
	return ""
}

// environ reads the environment by one call, since the second may come when execve(2) has taken
// the memory away, and return nothing.
func environ(pid int) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for b := make([]byte, 32<<10); ; b = make([]byte, 2*len(b)) {
		n, err := f.ReadAt(b, 0)
		if err == io.EOF {
			err = nil
		}
		if n < len(b) || err != nil {
			return b[:n], err
		}
	}
}

// amidExec reports whether a process without environment may have one when its execve(2) is
// over, or has one now (proc(5), stat): addresses of its environment are 0 or differ.
func amidExec(pid int) bool {
	const kernel, exiting = 0x200000, 0x4 // flags PF_KTHREAD and PF_EXITING: never again
	f := sys.ProcStat(pid)
	if len(f) < 49 {
		return false
	}
	flags, _ := strconv.ParseUint(f[6], 10, 64)
	from, to := f[47], f[48]
	return flags&(kernel|exiting) == 0 && (from == "0" || from != to)
}

// belongs reports whether the process has that identity. No process belongs to a
// job without identity.
func belongs(pid int, identity string) bool { return identity != "" && jobOf(pid) == identity }

// JobProcesses lists the processes that belong to some job, this one and
// zombies excepted, with the identities of their jobs.
func JobProcesses() map[int]string {
	all := map[int]string{}
	self := os.Getpid()
	for _, p := range processes() {
		if p.pid == self || p.state == 'Z' {
			continue
		}
		if id := jobOf(p.pid); id != "" {
			all[p.pid] = id
		}
	}
	return all
}

// Leftovers lists the processes of one job.
func Leftovers(jobID string) []int {
	var pids []int
	for pid, id := range JobProcesses() {
		if id, _, _ = strings.Cut(id, "@"); id == jobID {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// sweep kills everything that a job has left behind, and what that leaves behind
// in turn, until nothing is left, and reaps what has come to this process: processes
// with the job's identity, and those that ours tells. It returns how many processes it
// killed and which would not die.
func sweep(identity string, ours func(process) bool) (killed int, stuck []int) {
	hopeless := map[int]bool{os.Getpid(): true}
	reap := func(pid int) { _, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) }
	for {
		var left []int
		for _, p := range processes() {
			switch mine := ours(p); {
			case hopeless[p.pid]:
			case p.state == 'Z' && mine: // its environment is gone; only children can be reaped
				reap(p.pid)
			case p.state != 'Z' && (mine || belongs(p.pid, identity)):
				left = append(left, p.pid)
			}
		}
		if len(left) == 0 {
			return killed, stuck
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for _, pid := range left {
			if !sys.AwaitExit(pid, 5*time.Second) {
				hopeless[pid] = true
				stuck = append(stuck, pid)
				continue
			}
			killed++
			reap(pid)
		}
	}
}
