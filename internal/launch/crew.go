package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// A crew is the processes of some ranks of a job as the job's loop sees them:
// those of this machine, or of a host that a deputy looks after. Its methods are
// called by that loop's goroutine alone; ranks that have ended are left out.
type crew interface {
	// signal sends sig to ranks, or with group to their process groups.
	signal(ranks []int, sig syscall.Signal, group bool)
	// suspend stops all ranks that run, on behalf of the terminal; resume lets
	// those go on.
	suspend()
	resume()
	// look says what the processes of ranks do. Those that it knows nothing of
	// are missing.
	look(ranks []int) map[int]process
}

// An ending is how the process of one rank ended.
type ending struct {
	rank         int
	status       int            // exit status, or 128 plus the signal's number
	signal       syscall.Signal // or 0
	cause        string         // why it counts as failed whatever the rank has said, or ""
	user, system time.Duration
	maxRSS       int64 // bytes
}

// member is one process of a localCrew.
type member struct {
	rank    int
	pid     int // 0 if it could not be started
	live    bool
	stopped bool // by suspend
}

// localCrew is processes of this machine, children of this process. Only one
// goroutine uses it, so that a process id which it signals is never one that has
// been given away.
type localCrew struct {
	identity  string // of the job as these processes have it, see identityOf
	exclusive bool   // this process has no other children
	guard     *guard
	members   []member
	live      int
	ctl       *os.File // write end of the control pipe
	oom       *sys.OOMWatch
	claims    *claims
}

// orders is what a localCrew is to run.
type orders struct {
	path        string   // the executable
	argv        []string // argv[0] included
	dir         string   // "" means that of this process
	first, size int      // numbers of the ranks: size of them from first on
	total       int      // ranks of the job
	name        func(rank int) string
	bind        Bind
	stdin       *os.File                         // of rank 0; nil means none
	logf        func(format string, args ...any) // for what only -v shows; nil for nothing
	inherited   inheritance
	control     bool // ranks get the control pipe
	env         func(rank int, inherited []string) []string
	// pipes gets the read ends of what rank writes, before it is started.
	pipes func(rank int, stdout, stderr *os.File) error
	// started is told of each rank's process; cpu is the processor that it is
	// bound to, or -1.
	started func(rank, pid, cpu int)
}

// start starts all processes. If it fails some may run.
func (c *localCrew) start(o *orders, spawn *spawner) (err error) {
	if err := checkLimits(o.size); err != nil {
		return err
	}
	c.oom = sys.WatchOOM()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return errs.Resource("launch: %v", err)
	}
	defer null.Close()
	in := o.inherited
	c.claims = newClaims(o.first, o.size, o.logf)
	if o.control {
		r, w, err := os.Pipe()
		if err != nil {
			return errs.Resource("launch: %v", err)
		}
		if c.ctl = w; c.claims == nil {
			defer r.Close()
		} else {
			c.claims.ctl = r
		}
		in.file(r, jobenv.CtlFD, "")
	}
	if c.claims != nil {
		in.vars = append(in.vars, c.claims.address())
		c.claims.serve(in.keys, in.files)
		defer close(c.claims.started)
	}
	var cpus []int
	if o.bind == BindCore {
		spawn.do(func() { cpus, err = sys.Affinity() })
		if err != nil || len(cpus) == 0 {
			return errs.Resource("launch: cannot learn which processors may be used: %v (-bind)", err)
		}
	}
	c.members = make([]member, o.size)
	for i := range c.members {
		m := &c.members[i]
		m.rank = o.first + i
		files := append([]*os.File{null, nil, nil}, in.files...)
		if m.rank == 0 && o.stdin != nil {
			files[0] = o.stdin
		}
		failed := func(err error) error {
			return errs.Resource("launch: cannot start %s of %d: %v", o.name(m.rank), o.total, err)
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
		if err := o.pipes(m.rank, readers[0], readers[1]); err != nil {
			files[1].Close()
			files[2].Close()
			return err
		}
		sp := spec{path: o.path, argv: o.argv, env: o.env(m.rank, in.vars), dir: o.dir, files: files}
		var pid int
		var errStart, errBind error
		spawn.do(func() {
			if cpus == nil {
				pid, errStart = sp.start()
				return
			}
			errBind = onCore(i, cpus, func() { pid, errStart = sp.start() })
		})
		files[1].Close()
		files[2].Close()
		if errStart != nil {
			return failed(errStart)
		}
		c.claims.start(m.rank, pid)
		c.guard.say("+ %d", pid)
		m.pid, m.live = pid, true
		c.live++
		cpu := -1
		if cpus != nil {
			cpu = cpus[i%len(cpus)]
		}
		o.started(m.rank, pid, cpu)
		if errBind != nil {
			return errs.Resource("launch: cannot bind rank %d: %v (-bind)", m.rank, errBind)
		}
	}
	return nil
}

// reap returns the ranks that have ended since it was called last.
func (c *localCrew) reap() []ending {
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
func (c *localCrew) member(rank int) *member {
	if len(c.members) == 0 {
		return nil
	}
	i := rank - c.members[0].rank
	if i < 0 || i >= len(c.members) || !c.members[i].live {
		return nil
	}
	return &c.members[i]
}

func (c *localCrew) signal(ranks []int, sig syscall.Signal, group bool) {
	for _, r := range ranks {
		if m := c.member(r); m != nil && group {
			_ = syscall.Kill(-m.pid, sig)
		} else if m != nil {
			_ = syscall.Kill(m.pid, sig)
		}
	}
}

func (c *localCrew) suspend() {
	for i := range c.members {
		m := &c.members[i]
		if p, ok := readProcess(m.pid); m.live && ok && !p.stopped() {
			_ = syscall.Kill(-m.pid, syscall.SIGSTOP)
			m.stopped = true
		}
	}
}

func (c *localCrew) resume() {
	for i := range c.members {
		if m := &c.members[i]; m.live && m.stopped {
			_ = syscall.Kill(-m.pid, syscall.SIGCONT)
			m.stopped = false
		}
	}
}

func (c *localCrew) look(ranks []int) map[int]process {
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
func (c *localCrew) kill() {
	for i := range c.members {
		if m := &c.members[i]; m.live {
			_ = syscall.Kill(-m.pid, syscall.SIGKILL)
		}
	}
}

// drain waits for the end of all processes; children tells that some have ended.
func (c *localCrew) drain(children <-chan os.Signal) {
	for c.reap(); c.live > 0; c.reap() {
		<-children
	}
}

// clean kills what the processes have left behind. All have been reaped.
func (c *localCrew) clean() (killed int, stuck []int) {
	groups := make(map[int]bool, len(c.members))
	for i := range c.members {
		if pid := c.members[i].pid; pid != 0 {
			groups[pid] = true
		}
	}
	return sweep(c.identity, groups, c.exclusive, c.guard)
}

// close lets the processes know that this one does not look after them any more.
func (c *localCrew) close() {
	c.claims.close()
	if c.ctl != nil {
		c.ctl.Close()
	}
}
