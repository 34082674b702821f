package gas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/internal/job/perfetto"
	"github.com/argon-go/argon/internal/job/profile"
	"github.com/argon-go/argon/segment"
)

// profiled is the endpoint of a lane with ARGON_PROFILE or ARGON_TRACE: it counts what the layers do, or writes it to the
// trace. Views refuse direct accesses, which come here as all others do then, but where time is virtual.
type profiled struct {
	conduits.Endpoint
	*profiling
	trace     *perfetto.Lane // nil: none
	abilities conduits.Abilities
	once      sync.Once
	first     int
	views     []segment.View
}

// profiling is what the lanes of a rank have together.
type profiling struct {
	rec     *profile.Recorder
	options profile.Options
	virtual bool
	lanes   [MaxLanes]atomic.Pointer[profiled]
	trace   *perfetto.Rank  // nil: none
	entries [][]am.Entry    // whose names the trace has
	labels  context.Context // of the rank's goroutines
}

// watched is ep, with a profile if options ask for one, and a part of the trace if to is not nil.
func watched(ep conduits.Endpoint, o profile.Options, to *perfetto.File) conduits.Endpoint {
	if !o.On && to == nil {
		return ep
	}
	conduits.Watch()
	s := &profiling{rec: profile.NewRecorder(o.Peers), options: o}
	s.labels = pprof.WithLabels(context.Background(), pprof.Labels("rank", strconv.Itoa(ep.Rank())))
	_, s.virtual = conduits.As[conduits.Runner](ep)
	if to != nil {
		s.trace = to.Rank(ep.Rank(), ep.Now, s.virtual)
	}
	return s.lane(0, ep)
}

// lane is the endpoint on top of that of lane i.
func (s *profiling) lane(i int, ep conduits.Endpoint) *profiled {
	p := &profiled{Endpoint: ep, profiling: s}
	if s.trace != nil {
		p.trace = s.trace.Lane(i)
	}
	l, _ := conduits.As[conduits.Laned](ep)
	if l != nil {
		l = lanesOf{l, s}
	}
	d, _ := conduits.As[conduits.Deliverer](ep)
	g, _ := conduits.As[conduits.Diagnoser](ep)
	n, _ := conduits.As[conduits.Neighbourly](ep)
	r, _ := conduits.As[conduits.Runner](ep)
	c, _ := conduits.As[conduits.Card](ep)
	if c != nil {
		c = cardOf{c, p}
	}
	p.abilities = conduits.Offer(l, d, g, n, r, c)
	return p
}

// Abilities are those of the endpoint below.
func (p *profiled) Abilities() conduits.Abilities { return p.abilities }

// lanesOf has profiles of lanes.
type lanesOf struct {
	conduits.Laned
	s *profiling
}

// Lane is on top of lane i, which Attach made when that was made.
func (l lanesOf) Lane(i int) (conduits.Endpoint, error) {
	ep, err := l.Laned.Lane(i)
	if err != nil || i == 0 {
		return ep, err
	}
	return l.s.lanes[i].Load(), nil
}

// cardOf counts multicasts.
type cardOf struct {
	conduits.Card
	p *profiled
}

func (c cardOf) Multicast(tag conduits.Tag, words []uint32, payload []byte) conduits.Status {
	began := c.p.Now()
	st := c.Card.Multicast(tag, words, payload)
	if st == conduits.Ready {
		var s sending
		to := c.p.Rank()
		for r := range c.p.Size() {
			if r != c.p.Rank() {
				s = c.p.sending(s, r, conduits.Request, tag, words)
				to = r
			}
		}
		if c.p.Size() > 2 {
			to = c.p.Rank() // for there are several
		}
		c.p.sent(to, conduits.Request, tag, len(payload), began, s)
	}
	return st
}

func (p *profiled) Attach(c conduits.AttachConfig) error {
	if open := c.Lane; open != nil {
		c.Lane = func(i int, ep conduits.Endpoint) conduits.Receiver {
			l := p.lane(i, ep)
			r := open(i, l)
			p.lanes[i].Store(l)
			return l.hears(r)
		}
	}
	c.Receiver = p.hears(c.Receiver)
	return p.Endpoint.Attach(c)
}

// Views have sizes of 0, so that layers call Post. Bases are there: what is asked for as memory is.
func (p *profiled) Views() (first int, views []segment.View) {
	if p.virtual { // where an access by Post takes time that one by load and store does not
		return p.Endpoint.Views()
	}
	p.once.Do(func() {
		var below []segment.View
		p.first, below = p.Endpoint.Views()
		p.views = make([]segment.View, len(below))
		for i := range below {
			p.views[i].Base = below[i].Base
		}
	})
	return p.first, p.views
}

// sent counts a message of n bytes of payload, and writes it to the trace with its arrows.
func (p *profiled) sent(dst int, c conduits.Class, tag conduits.Tag, n int, began time.Duration, s sending) {
	if p.trace != nil {
		p.traceSent(dst, c, n, began, s)
	}
	if am.HandlerID(tag) < am.FirstBarrier && !p.rec.On() {
		return // to a rank that attaches
	}
	kind := profile.Request
	if c == conduits.Reply {
		kind = profile.Reply
	}
	p.rec.Add(kind, dst, uint64(n), p.Now()-began)
}

func (p *profiled) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	began := p.Now()
	st := p.Endpoint.Send(dst, c, tag, words)
	if st == conduits.Ready {
		p.sent(dst, c, tag, 0, began, p.sending(sending{}, dst, c, tag, words))
	}
	return st
}

func (p *profiled) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	began := p.Now()
	st := p.Endpoint.SendPayload(dst, c, tag, words, payload, to)
	if st == conduits.Ready {
		p.sent(dst, c, tag, len(payload), began, p.sending(sending{}, dst, c, tag, words))
	}
	return st
}

func (p *profiled) Commit(dst int, c conduits.Class, s conduits.Slot, tag conduits.Tag, payload int) {
	began := p.Now()
	m := p.sending(sending{}, dst, c, tag, s.Words) // which are the conduit's then
	p.Endpoint.Commit(dst, c, s, tag, payload)
	p.sent(dst, c, tag, payload, began, m)
}

func (p *profiled) Post(a *conduits.Access) (conduits.Event, error) {
	began := p.Now()
	kind := profile.Atomic
	switch a.Verb {
	case conduits.Put, conduits.PutWord:
		kind = profile.Put
	case conduits.Get, conduits.GetWord:
		kind = profile.Get
	}
	flow := uint64(0)
	if p.trace != nil && a.Wanted() != 0 && !a.Now {
		flow = p.trace.Posting(kind, a.Cookie, uint8(a.Wanted()))
	}
	ev, err := p.Endpoint.Post(a)
	if flow != 0 {
		had := ev
		if err != nil {
			had = a.Wanted()
		}
		if !p.trace.Posted(flow, a.Cookie, uint8(had), p.Now()) {
			flow = 0
		}
	}
	if err != nil || a.Now && ev == 0 {
		return ev, err
	}
	n := a.Len()
	if a.Pieces != nil {
		n = 0
		for _, q := range a.Pieces[:min(a.Value, uint64(len(a.Pieces)))] {
			n += uint64(len(q.Mem))
		}
	}
	if p.trace != nil {
		p.traceAccess(kind, a.Rank, n, began, flow)
	}
	p.rec.Add(kind, a.Rank, n, p.Now()-began)
	return ev, err
}

// Waits is part of conduits.Watcher.
func (p *profiled) Waits(conduits.Blocked) (below conduits.Endpoint, over func()) {
	if !p.rec.On() && p.trace == nil {
		return p.Endpoint, func() {}
	}
	began := p.Now()
	var region *trace.Region
	row := -1
	if trace.IsEnabled() || p.options.Labels || p.trace != nil {
		line, call := profile.Here()
		if p.trace != nil && line != profile.RuntimeLine {
			row = p.trace.Begin(perfetto.Waits, &perfetto.Slice{Name: call, Line: line, Peer: perfetto.None, Began: began})
		}
		if p.options.Labels {
			pprof.SetGoroutineLabels(pprof.WithLabels(p.profiling.labels, pprof.Labels("call", call, "line", line)))
		}
		if trace.IsEnabled() {
			region = trace.StartRegion(p.profiling.labels, call+" at "+line)
		}
	}
	return p.Endpoint, func() { p.waited(began, region, row) }
}

// waited ends what Waits has begun, in a row of the trace if that is not -1.
func (p *profiled) waited(began time.Duration, region *trace.Region, row int) {
	if row >= 0 {
		p.trace.End(perfetto.Waits, row, p.Now())
	}
	if region != nil {
		region.End()
	}
	if p.options.Labels {
		pprof.SetGoroutineLabels(p.profiling.labels)
	}
	p.rec.Waited(p.Now() - began)
}

// Met is part of conduits.Watcher.
func (p *profiled) Met(began time.Duration, bytes uint64, all, split bool) {
	if p.trace != nil {
		p.traceMet(began, bytes)
	}
	p.rec.Met(bytes, p.Now()-began, all, split)
}

// profileOf begins n's profile with the program's function, if there is one, and else is nil.
func profileOf(n *Node) *profiling {
	q, ok := n.ep.(*profiled)
	if !ok {
		return nil
	}
	p := q.profiling
	if !p.options.On {
		return nil
	}
	if p.options.Labels {
		pprof.SetGoroutineLabels(p.labels)
	}
	p.rec.Start(n.ep.Now())
	return p
}

// stop ends p, unless it is nil, when the program's function has ended.
func (p *profiling) stop(n *Node) {
	if p != nil {
		p.rec.Stop(n.ep.Now())
	}
}

// finish tells of p, when all ranks have left, or the job has failed. That it cannot is no
// failure of the program.
//
//go:noinline
func (p *profiling) finish(n *Node, failed bool) {
	p.rec.Close()
	if failed && n.rank != 0 {
		return
	}
	err := p.tell(n, failed)
	if !failed { // whatever err is, which others do not know
		err = errors.Join(err, n.b.Barrier(leaveID, 0)) // nor does a rank close while others look at its words
	}
	if err != nil && n.rank == 0 {
		fmt.Fprintf(n.run.cfg.Output, "argon: profile: %v\n", err)
	}
}

// tell prints the profiles of all ranks, or that of rank 0 alone if the job has failed.
func (p *profiling) tell(n *Node, failed bool) error {
	own, err := p.rec.Encode()
	if err != nil {
		return err
	}
	texts := [][]byte{own}
	if !failed {
		collective.Return(n.all.coll, true)
		all, err := p.collect(n, own)
		collective.Return(n.all.coll, false)
		if err == nil {
			texts = all
		} else {
			failed = true // collective calls of the program did not match
		}
	}
	if n.rank != 0 {
		return nil
	}
	job, err := profile.Merge(texts)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if failed {
		b.WriteString("argon: the job, or a collective call of it, has failed: this is the profile of rank 0 alone\n")
	}
	if err := job.Table(&b, "argon: ", p.options); err != nil {
		return err
	}
	if _, err := n.run.cfg.Output.Write(b.Bytes()); err != nil || p.options.JSON == "" {
		return err
	}
	text, err := json.MarshalIndent(job, "", " ")
	if err == nil {
		err = os.WriteFile(p.options.JSON, append(text, '\n'), 0o666)
	}
	if err != nil {
		return fmt.Errorf("gas: profile (ARGON_PROFILE=json=FILE): %w", err)
	}
	return nil
}

// collect is what all ranks have counted, at rank 0.
func (p *profiling) collect(n *Node, own []byte) ([][]byte, error) {
	times := p.rec.Times()
	least, err := AllReduce(n, len(times), Min)
	if err != nil {
		return nil, err
	}
	// The shortest time of each call, with its rank below; 0 if it is unknown when a rank came.
	const rankMask = 1<<rankBits - 1
	words := make([]uint64, least)
	for i := range words {
		if times[i] >= 0 {
			words[i] = uint64(min(max(times[i], 1), 1<<nlaBits-1))<<rankBits | uint64(n.rank)
		}
	}
	if err := ReduceSlice(n, 0, words, Min); err != nil {
		return nil, err
	}
	if n.rank == 0 {
		ranks := make([]int, least)
		for i, w := range words {
			if ranks[i] = int(w & rankMask); w == 0 {
				ranks[i] = -1
			}
		}
		p.rec.CameLast(ranks)
		if own, err = p.rec.Encode(); err != nil {
			return nil, err
		}
	}
	return GatherV(n, 0, own)
}
