package gas

import (
	"os"
	"runtime/trace"
	"strconv"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/perfetto"
	"github.com/argon-go/argon/internal/job/profile"
	"github.com/argon-go/argon/internal/sys"
)

// Span begins a span of the program: a slice with that name in the rank's part of the trace (gasrun -trace), and a region of
// runtime/trace while that is on. What it returns ends it, once, on the goroutine that has begun it:
//
//	defer n.Span("exchange")()
//
// Spans of a goroutine nest: the end of one is that of those in it which have not ended. Those of goroutines that have some at once
// are in rows of their own. A Span that nothing records takes less than 10 ns.
func (n *Node) Span(name string) (end func()) {
	p, seen := n.ep.(*profiled)
	if (!seen || p.trace == nil) && !trace.IsEnabled() {
		return notRecorded
	}
	return beginSpan(n, name, p)
}

func notRecorded() {}

// beginSpan is Span that something records: the trace of p, if it has one, or runtime/trace.
//
//go:noinline
func beginSpan(n *Node, name string, p *profiled) (end func()) {
	var region *trace.Region
	if trace.IsEnabled() {
		region = trace.StartRegion(n.run.ctx, name)
	}
	var over func(at time.Duration)
	if p != nil && p.trace != nil {
		s := perfetto.Slice{Name: name, Peer: perfetto.None, Began: p.Now()}
		s.Line, _ = profile.Here()
		over = p.trace.Span(&s, sys.Goroutine())
	}
	return func() {
		if over != nil {
			over(p.Now())
		}
		if region != nil {
			region.End()
			region = nil
		}
	}
}

// openTrace opens the file of Config.Trace, if there is one to be.
func (c *Config) openTrace() (*perfetto.File, error) {
	last, _ := time.ParseDuration(c.TraceLast) // Validate has
	if c.Trace == "" {
		if last == 0 {
			return nil, nil
		}
		c.Trace = perfetto.LastName()
	}
	_, launched, err := conduits.Launched(os.Getenv)
	if err != nil {
		return nil, nil // which the job's start will tell
	}
	if launched && (os.Getenv(jobenv.CtlFD) == "" || os.Getenv(jobenv.Trace) == "") {
		return nil, errs.NotSupported("gas: ARGON_TRACE=%q (ARGON_TRACE_LAST=%q): ranks of several processes write to a file that gasrun begins: start them by gasrun -trace or -trace-last, not by Config.Trace and TraceLast", c.Trace, c.TraceLast)
	}
	if launched {
		last, _ = time.ParseDuration(os.Getenv(jobenv.TraceLast))
	}
	return perfetto.Open(c.Trace, launched || os.Getenv(jobenv.SimStatus) != "", last, c.Output) // gasrun begins and tells of those
}

// sending is a message on its way into the trace.
type sending struct {
	name string
	to   []uint64 // arrows
}

// sending adds the arrow of a message to s. Nothing is done without a trace.
func (p *profiled) sending(s sending, dst int, c conduits.Class, tag conduits.Tag, words []uint32) sending {
	if p.trace == nil {
		return s
	}
	if s.name == "" {
		s.name = p.nameOf(c, tag, words)
	}
	s.to = append(s.to, p.trace.Flow(false, dst, uint8(c), uint32(tag), words))
	return s
}

// nameOf is what the trace has for a message: the called function, or else the handler.
func (s *profiling) nameOf(c conduits.Class, tag conduits.Tag, words []uint32) string {
	h := am.HandlerID(tag)
	name := "handler " + strconv.Itoa(int(h))
	for _, l := range s.entries {
		for i := range l {
			if l[i].Index == h {
				name = l[i].Name
			}
		}
	}
	if h == handlerCall && len(words) > 0 {
		functions.mu.Lock()
		if i := int(words[0] &^ noResult); i < len(functions.list) {
			name = functions.list[i].name
		}
		functions.mu.Unlock()
	}
	if c == conduits.Reply {
		return "reply " + name
	}
	return name
}

// traceSent writes a message: a reply in the row of the handler that sends it.
func (p *profiled) traceSent(dst int, c conduits.Class, n int, began time.Duration, s sending) {
	l := &perfetto.Slice{Name: "send " + s.name, Peer: dst, Bytes: uint64(n), Began: began, From: s.to}
	if len(s.to) != 1 {
		l.Peer = perfetto.Others
	}
	if c == conduits.Reply {
		p.trace.Reply(l, p.Now())
		return
	}
	if line, _ := profile.Here(); line != profile.RuntimeLine {
		l.Line = line
	}
	p.trace.Done(perfetto.Messages, l, p.Now())
}

// traceAccess writes an access, with an arrow to its completion if flow is not 0.
func (p *profiled) traceAccess(kind string, rank int, n uint64, began time.Duration, flow uint64) {
	l := &perfetto.Slice{Name: kind, Peer: rank, Bytes: n, Began: began}
	if flow != 0 {
		l.From = []uint64{flow}
	}
	ended := p.Now()
	if line, call := profile.Here(); line != profile.RuntimeLine {
		l.Line = line
		if call != "" {
			l.Name = kind + " by " + call
		}
	}
	p.trace.Done(perfetto.Accesses, l, ended)
}

// traceMet writes a call of several ranks, of the program.
func (p *profiled) traceMet(began time.Duration, bytes uint64) {
	ended := p.Now()
	if line, call := profile.Here(); line != profile.RuntimeLine {
		p.trace.Done(perfetto.Collectives, &perfetto.Slice{Name: call, Line: line, Peer: perfetto.None, Bytes: bytes, Began: began}, ended)
	}
}

// hears is what gets the messages and completions of r, which go to the trace, too.
func (p *profiled) hears(r conduits.Receiver) conduits.Receiver {
	if p.trace == nil || r == nil {
		return r
	}
	return &hearing{r, p}
}

// hearing writes handlers to the trace.
type hearing struct {
	conduits.Receiver
	p *profiled
}

// Receive writes what the Receiver does.
func (h *hearing) Receive(m *conduits.Message) {
	p := h.p
	flow := p.trace.Flow(true, m.Src, uint8(m.Class), uint32(m.Tag), m.Words)
	p.trace.Handles(&perfetto.Slice{Name: p.nameOf(m.Class, m.Tag, m.Words), Peer: m.Src, Bytes: uint64(len(m.Payload)), Began: p.Now(), To: flow})
	h.Receiver.Receive(m)
	p.trace.Handled(p.Now())
}

// Complete writes the end of an access.
func (h *hearing) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	h.p.trace.Completed(cookie, uint8(ev), h.p.Now())
	h.Receiver.Complete(cookie, ev, value, err)
}
