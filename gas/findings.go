package gas

import (
	"fmt"
	"io"
	"sync"

	"github.com/argon-go/argon/internal/sys/origin"
)

// findings writes the reports of the ranks of a Run with Config.Debug about things that are
// no errors, but seldom meant.
type findings struct {
	out  io.Writer
	mu   sync.Mutex
	said map[string]bool
}

// say prints a finding, each once.
func (f *findings) say(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said == nil {
		f.said = map[string]bool{}
	}
	if !f.said[s] {
		f.said[s] = true
		fmt.Fprintf(f.out, "argon: %s (found by Config.Debug, ARGON_DEBUG)\n", s)
	}
}

// entering is told, with Config.Debug, that the program enters a barrier.
//
//go:noinline
func (n *Node) entering() {
	if n.ep.Polling() {
		return // a broken rule, which the barrier refuses
	}
	// Answers that have come, though not without end where requests keep coming.
	at := origin.Caller()
	for n := range n.each() {
		n.unanswered(at)
	}
}

// unanswered reports the calls of lane n that are not answered at line at, which enters a barrier.
func (n *Node) unanswered(at string) {
	for i := 0; i < maxEntering && n.calls.some() && n.e.Poll() > 0; i++ {
	}
	for _, s := range n.calls.underWay() {
		n.run.findings.say("rank %d enters a barrier (%s) while %s is not answered: barriers do not wait for calls, which may run after it, but Node.Quiesce does", n.rank, at, s)
	}
}

// maxEntering is how often a rank polls before it says that its calls are not answered.
const maxEntering = 64

// some reports whether there are calls that are not answered.
func (c *calls) some() bool { return len(c.underWay()) > 0 }

// underWay lists the calls that are not answered.
func (c *calls) underWay() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var l []string
	for _, s := range c.slots {
		if s.origin != "" && !s.ready() {
			l = append(l, fmt.Sprintf("its call of %s on rank %d (%s)", s.f.name, s.dst, s.origin))
		}
	}
	return l
}
