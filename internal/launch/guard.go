package launch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// EnvGuard is set for the guard process of a job, see Config.Guard.
const EnvGuard = "ARGON_GUARD"

// Helper is the main function of a process that a launcher started for itself: a guard or
// a deputy. ok is false if this process is neither. If the variable was set by hand, Helper
// prints that and returns jobenv.StatusUsage: a launcher gives no arguments, and a pipe or
// a socket as standard input.
func Helper() (status int, ok bool) {
	for _, key := range []string{EnvGuard, EnvDeputy} {
		if os.Getenv(key) == "" {
			continue
		}
		var st syscall.Stat_t
		err := syscall.Fstat(0, &st)
		kind := st.Mode & syscall.S_IFMT
		switch {
		case len(os.Args) != 1 || err != nil || kind != syscall.S_IFIFO && kind != syscall.S_IFSOCK:
		case key == EnvDeputy:
			return Deputy(os.Stdin, os.Stdout), true
		default:
			signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
			if watch(os.Stdin) {
				return 0, true
			}
		}
		fmt.Fprintf(os.Stderr, "gasrun: %s=%s is set by hand; gasrun sets it for processes of its own, and no job starts with it: unset it\n",
			key, errs.Line(os.Getenv(key), textMost))
		return jobenv.StatusUsage, true
	}
	return 0, false
}

// watch is the guard of a job, a process that cleans up after a launcher
// which was killed before it could do so itself: its ranks are dead then (the
// parent death signal), but not what those had started. Config.Guard names an
// executable that calls Helper. watch reads from r what the launcher has made, until the
// end of file, and returns false if r holds something else:
//
//	job ID      the job's identity
//	dir PATH    a directory to remove
//	+ PID       a rank was started
//	- PID       a rank has been reaped
//	end         the launcher has cleaned up: there is nothing to do
//
// The guard knows processes by the job's identity in their environment and by
// the process groups of ranks that were running.
func watch(r io.Reader) bool {
	var job string
	var dirs []string
	groups := map[int]bool{}
	for sc := bufio.NewScanner(r); sc.Scan(); {
		word, arg, _ := strings.Cut(sc.Text(), " ")
		pid, _ := strconv.Atoi(arg)
		switch word {
		case "job":
			job = arg
		case "dir":
			dirs = append(dirs, arg)
		case "+":
			groups[pid] = true
		case "-":
			delete(groups, pid)
		case "end":
			return true
		default:
			return false
		}
	}
	if job == "" { // the launcher had not even begun
		return true
	}
	sweep(job, func(p process) bool { return groups[p.pgid] })
	for _, d := range dirs {
		_ = os.RemoveAll(d)
	}
	return true
}

// guard is the launcher's side of its guard process. nil does nothing.
type guard struct {
	pid int
	w   *os.File
}

// startGuard starts the guard process of a job.
func startGuard(path, job string, dirs []string, spawn *spawner) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errs.Resource("launch: %v", err)
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return nil, errs.Resource("launch: %v", err)
	}
	defer null.Close()
	g := &guard{w: w}
	spawn.do(func() {
		g.pid, err = syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{
			Dir:   "/",
			Env:   []string{EnvGuard + "=1"},
			Files: []uintptr{r.Fd(), null.Fd(), null.Fd()},
			Sys:   &syscall.SysProcAttr{Setpgid: true},
		})
	})
	if err != nil {
		w.Close()
		return nil, errs.Resource("launch: cannot start the guard process %s: %v", path, err)
	}
	g.say("job %s", job)
	for _, d := range dirs {
		g.say("dir %s", d)
	}
	return g, nil
}

// say tells the guard something. If the guard is gone no process listens, and the
// job goes on without one.
func (g *guard) say(format string, args ...any) {
	if g != nil {
		_, _ = fmt.Fprintf(g.w, format+"\n", args...)
	}
}

// dismiss lets the guard go.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	g.say("end")
	g.w.Close()
	for {
		if _, err := syscall.Wait4(g.pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}
