package launch

import (
	"fmt"
	"os"
	"sync"

	"github.com/argon-go/argon/internal/job/claim"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// claims are which processes have claimed the ranks of a crew, and the server that
// they ask. nil is a crew whose processes have no more than they inherit.
type claims struct {
	server  *claim.Server
	logf    func(format string, args ...any) // for what only -v shows; nil for nothing
	ctl     *os.File                         // read end of the control pipe, nil if there is none
	first   int
	started chan struct{} // closed when all processes have been started, or not

	mu   sync.Mutex
	pids []int // that gasrun has started for the ranks
	held []int // that have claimed them; 0: none has, -1: one without a number here
}

// newClaims begins to answer for size ranks from first on. Where the system has no such
// sockets the crew does without.
func newClaims(first, size int, logf func(format string, args ...any)) *claims {
	s, err := claim.Listen()
	if err != nil {
		return nil
	}
	return &claims{server: s, logf: logf, first: first, started: make(chan struct{}), pids: make([]int, size), held: make([]int, size)}
}

// serve gives claimants files, of which keys are the variables that tell of them.
func (c *claims) serve(keys []string, files []*os.File) {
	if c != nil {
		go c.server.Serve(keys, files, c.judge)
	}
}

// start notes the process of a rank.
func (c *claims) start(rank, pid int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids[rank-c.first] = pid
}

// judge decides about a process that holds the token.
func (c *claims) judge(who claim.Claimant) claim.Verdict {
	v := c.decide(who)
	if v.Nested != "" && c.logf != nil {
		c.logf("process %d is a job of its own: %s", who.Pid, v.Nested)
	}
	return v
}

func (c *claims) decide(who claim.Claimant) claim.Verdict {
	i := who.Rank - c.first
	if i < 0 || i >= len(c.held) {
		return claim.Verdict{Refuse: fmt.Sprintf("rank %d is not one of this host", who.Rank)}
	}
	if who.UID != os.Geteuid() && who.UID != 0 {
		<-c.started
		if !c.family(who.Pid) {
			return claim.Verdict{Refuse: fmt.Sprintf("process %d of user %d is neither gasrun's user's (%d) nor started by gasrun", who.Pid, who.UID, os.Geteuid())}
		}
	}
	if who.Own {
		return claim.Verdict{Nested: fmt.Sprintf("rank %d has started it", who.Rank)}
	}
	pid := who.Pid
	if pid == 0 {
		pid = -1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch held := c.held[i]; {
	case held == 0:
		c.held[i] = pid
	case held == pid && pid > 0: // what it has become by execve, or a job that it could not join
	case held > 0 && pid > 0 && descends(pid, func(p int) bool { return p == held }):
		return claim.Verdict{Nested: fmt.Sprintf("rank %d, process %d, has started it", who.Rank, held)}
	case held > 0:
		return claim.Verdict{Refuse: fmt.Sprintf("rank %d has been process %d: a rank is one process that joins the job once, so that a script which runs several programs of argon has to start gasrun for each", who.Rank, held)}
	default:
		return claim.Verdict{Refuse: fmt.Sprintf("rank %d has been another process: a rank is one process that joins the job once", who.Rank)}
	}
	return claim.Verdict{}
}

// family reports whether process pid is one of those that were started, or comes of one.
func (c *claims) family(pid int) bool {
	c.mu.Lock()
	started := map[int]bool{}
	for _, p := range c.pids {
		started[p] = p > 0
	}
	c.mu.Unlock()
	return pid > 0 && descends(pid, func(p int) bool { return started[p] })
}

// holder is the process that has claimed the rank; 0 or less if none has, or it is not known.
func (c *claims) holder(rank int) int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[rank-c.first]
}

// close ends the service.
func (c *claims) close() {
	if c == nil {
		return
	}
	_ = c.server.Close()
	if c.ctl != nil {
		c.ctl.Close()
	}
}

// descends reports whether is holds for the process or one that it descends from.
func descends(pid int, is func(pid int) bool) bool {
	for range 1 << 12 { // a process could become another's parent meanwhile
		if is(pid) {
			return true
		}
		p, ok := readProcess(pid)
		if !ok || p.ppid <= 1 {
			return false
		}
		pid = p.ppid
	}
	return false
}

// address is the variable with the server's address for the environment of ranks, or "".
func (c *claims) address() (kv string) {
	if c == nil {
		return ""
	}
	return jobenv.JobSocket + "=" + c.server.Address()
}
