package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/place"
)

// An ending is how the process of one rank ended.
type ending struct {
	rank         int
	status       int            // exit status, or 128 plus the signal's number
	signal       syscall.Signal // or 0
	cause        string         // why it counts as failed whatever the rank has said, or ""
	user, system time.Duration
	maxRSS       int64 // bytes
}

// member is one process of a crew.
type member struct {
	rank    int
	pid     int // 0 if it could not be started
	live    bool
	stopped bool // by suspend
}

// A crew is the processes of a job on this machine, children of this process. Only one
// goroutine at a time uses it, so that a process id which it signals is never one that has
// been given away. Ranks that have ended are left out.
type crew struct {
	identity  string // of the job as these processes have it, see identityOf
	exclusive bool   // this process has no other children
	guard     *guard
	members   []member
	live      int
	swept     bool     // clean has been called
	ctl       *os.File // write end of the control pipe
	oom       *sys.OOMWatch
	claims    *claims
}

// muster starts the processes of d's ranks, which inherit in; rank 0 reads stdin if that is
// not nil. If it fails some may run.
func (d *deputy) muster(in inheritance, stdin *os.File) (err error) {
	t, c, crew := &d.task, d.config, d.crew
	if err := checkLimits(t.Count); err != nil {
		return err
	}
	crew.oom = sys.WatchOOM()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return errs.Resource("launch: %v", err)
	}
	defer null.Close()
	crew.claims = newClaims(t.First, t.Count, c.logf)
	if !c.single() { // one process has the parent death signal
		r, w, err := os.Pipe()
		if err != nil {
			return errs.Resource("launch: %v", err)
		}
		if crew.ctl = w; crew.claims == nil {
			defer r.Close()
		} else {
			crew.claims.ctl = r
		}
		in.file(r, jobenv.CtlFD, "")
	}
	if crew.claims != nil {
		in.vars = append(in.vars, crew.claims.address())
		crew.claims.serve(in.keys, in.files)
		defer close(crew.claims.started)
	}
	if t.Bind != "" {
		t.Seats = takeSeats(t.Bind, t.Count, d.spawn)
	}
	argv := append([]string{c.Program}, c.Args...)
	crew.members = make([]member, t.Count)
	for i := range crew.members {
		m := &crew.members[i]
		m.rank = t.First + i
		files := append([]*os.File{null, nil, nil}, in.files...)
		if m.rank == 0 && stdin != nil {
			files[0] = stdin
		}
		failed := func(err error) error {
			return errs.Resource("launch: cannot start %s of %d: %v", c.name(m.rank), c.Size, err)
		}
		var readers [2]*os.File
		for k := range 2 {
			if readers[k], files[1+k], err = os.Pipe(); err != nil {
				if k == 1 {
					readers[0].Close()
					files[1].Close()
				}
				return failed(err)
			}
		}
		if err := d.pipes(m.rank, readers); err != nil {
			for _, f := range append(readers[:], files[1:3]...) {
				f.Close()
			}
			return err
		}
		var pid int
		var errStart error
		var where string
		d.spawn.do(func() {
			where = t.Seats.seat(i, func(set place.Set) {
				vars := slices.Concat(in.vars, t.Seats.variables(set, c))
				sp := spec{path: d.path, argv: argv, env: c.environ(t.ID, m.rank, t.First, t.Count, vars), dir: c.Dir, files: files}
				pid, errStart = sp.start()
			})
		})
		files[1].Close()
		files[2].Close()
		if errStart != nil {
			return failed(errStart)
		}
		crew.claims.start(m.rank, pid)
		crew.guard.say("+ %d", pid)
		m.pid, m.live = pid, true
		crew.live++
		d.link.send(frameStarted, []int64{int64(m.rank), int64(pid)}, []byte(where))
	}
	return nil
}

// reap returns the ranks that have ended since it was called last.
func (c *crew) reap() []ending {
	if c.live == 0 {
		return nil
	}
	var ended []ending
	for i := range c.members {
		m := &c.members[i]
		if !m.live {
			continue
		}
		var ws syscall.WaitStatus
		var ru syscall.Rusage
		pid, err := syscall.Wait4(m.pid, &ws, syscall.WNOHANG, &ru)
		for errors.Is(err, syscall.EINTR) {
			pid, err = syscall.Wait4(m.pid, &ws, syscall.WNOHANG, &ru)
		}
		e := ending{rank: m.rank}
		switch {
		case err != nil: // it has been reaped elsewhere
			e.status, e.cause = jobenv.StatusFailed, fmt.Sprintf("was reaped by another part of this process: %v", err)
		case pid != m.pid:
			continue
		case ws.Signaled():
			e.signal = ws.Signal()
			e.status = 128 + int(e.signal)
			e.cause = "killed by " + sys.SignalName(e.signal)
			if e.signal == syscall.SIGKILL {
				if why := c.oom.Killed(); why != "" {
					e.cause += ": " + why
				}
			}
		default:
			e.status = ws.ExitStatus()
			if e.status != 0 {
				e.cause = fmt.Sprintf("exited with status %d", e.status)
			}
		}
		e.user, e.system, e.maxRSS = time.Duration(ru.Utime.Nano()), time.Duration(ru.Stime.Nano()), ru.Maxrss<<10
		c.guard.say("- %d", m.pid)
		m.live = false
		c.live--
		ended = append(ended, e)
	}
	return ended
}

// member is rank's process if it lives.
func (c *crew) member(rank int) *member {
	if len(c.members) == 0 {
		return nil
	}
	i := rank - c.members[0].rank
	if i < 0 || i >= len(c.members) || !c.members[i].live {
		return nil
	}
	return &c.members[i]
}

func (c *crew) signal(ranks []int, sig syscall.Signal, group bool) {
	for _, r := range ranks {
		if m := c.member(r); m != nil && group {
			_ = syscall.Kill(-m.pid, sig)
		} else if m != nil {
			_ = syscall.Kill(m.pid, sig)
		}
	}
}

func (c *crew) suspend() {
	for i := range c.members {
		m := &c.members[i]
		if p, ok := readProcess(m.pid); m.live && ok && !p.stopped() {
			_ = syscall.Kill(-m.pid, syscall.SIGSTOP)
			m.stopped = true
		}
	}
}

func (c *crew) resume() {
	for i := range c.members {
		if m := &c.members[i]; m.live && m.stopped {
			_ = syscall.Kill(-m.pid, syscall.SIGCONT)
			m.stopped = false
		}
	}
}

func (c *crew) look(ranks []int) map[int]process {
	seen := make(map[int]process, len(ranks))
	for _, r := range ranks {
		if m := c.member(r); m != nil {
			p, ok := readProcess(m.pid)
			if !ok {
				continue
			}
			seen[r] = p
			// A process between this one and the program sleeps until the program ends.
			if pid := c.claims.holder(r); pid > 0 && pid != m.pid {
				if q, ok := readProcess(pid); ok && q.stopped() && descends(pid, func(p int) bool { return p == m.pid }) {
					seen[r] = q
				}
			}
		}
	}
	return seen
}

// kill ends all processes now.
func (c *crew) kill() {
	for i := range c.members {
		if m := &c.members[i]; m.live {
			_ = syscall.Kill(-m.pid, syscall.SIGKILL)
		}
	}
}

// drain waits for the end of all processes; children tells that some have ended.
func (c *crew) drain(children <-chan os.Signal) {
	for c.reap(); c.live > 0; c.reap() {
		<-children
	}
}

// clean kills what the processes have left behind. All have been reaped.
func (c *crew) clean() (killed int, stuck []int) {
	c.swept = true
	groups := make(map[int]bool, len(c.members))
	for i := range c.members {
		if pid := c.members[i].pid; pid != 0 {
			groups[pid] = true
		}
	}
	self := os.Getpid()
	return sweep(c.identity, func(p process) bool {
		return p.ppid == self && (c.exclusive || groups[p.pgid]) && (c.guard == nil || p.pid != c.guard.pid)
	})
}

// close lets the processes know that this one does not look after them any more.
func (c *crew) close() {
	c.claims.close()
	if c.ctl != nil {
		c.ctl.Close()
	}
}
