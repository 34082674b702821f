// Package replay runs recorded traffic (package conduits/traffic) on simulated machines: what
// would this program do on that machine? Each rank makes the calls of the recording, in their
// order, computes in between as long as it did, and waits for what it waited for then; how
// long that takes is the simulated machine's matter.
package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/traffic"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Options say how traffic is run.
type Options struct {
	// Sim is the machine. Its segments and payloads are as large as the traffic asks for.
	Sim sim.Config
	// Compute multiplies the time that ranks compute: 1 is as recorded, 0 the communication alone.
	Compute float64
}

// MaxCompute bounds Options.Compute.
const MaxCompute = 1e6

// maxAccess bounds what an access, or a long message, of a recording may move: a replay has memory of that length.
const maxAccess = 1 << 30

// player runs the ranks of one job.
type player struct {
	t      *traffic.Traffic
	o      Options
	eps    []conduits.Endpoint
	ranks  []rank
	zero   []byte // what is sent, and where it is got to
	sent   []time.Duration
	report *Report
}

// rank is one rank that runs.
type rank struct {
	p  *player
	k  *traffic.Rank
	ep *sim.Endpoint
	me int

	got       []bool // of the arrivals
	low       int    // all that are needed before have come
	all       int    // all before have come
	landed    []bool
	lowLanded int
	begun     []time.Duration // accesses
	work      time.Duration   // of handlers, that is not computed yet
	last      row             // kind and size of what came last
	err       error
}

// Run runs t on a simulated machine.
func Run(t *traffic.Traffic, o Options) (*Report, error) {
	if !(o.Compute >= 0 && o.Compute <= MaxCompute) {
		return nil, errs.BadArg("replay: computation takes %g times as long; at most %g times (-compute)", o.Compute, float64(MaxCompute))
	}
	n := len(t.Ranks)
	p := &player{t: t, o: o, ranks: make([]rank, n), sent: make([]time.Duration, len(t.Messages))}
	c := o.Sim
	most := uint64(segment.PageSize)
	longest := 0
	for r := range t.Ranks {
		k := &t.Ranks[r]
		most = max(most, k.Segment)
		for i := range k.Accesses {
			longest = max(longest, int(k.Accesses[i].Size))
		}
	}
	medium := 0
	for i := range t.Messages {
		if m := &t.Messages[i]; !m.Long {
			medium = max(medium, int(m.Size))
		}
	}
	if longest > maxAccess {
		return nil, errs.Resource("replay: %s: an access of %d bytes; the most is %d", t.Name, longest, maxAccess)
	}
	c.MaxSegment = max(c.MaxSegment, pages(most))
	if c.MaxMedium == 0 {
		c.MaxMedium = 4096
	}
	c.MaxMedium = max(c.MaxMedium, medium)
	c.Landed = p.land
	j, err := sim.New(n, c)
	if err != nil {
		return nil, err
	}
	p.zero = make([]byte, max(longest, medium))
	p.eps = j.Endpoints()
	p.report = newReport(p)
	for r := range p.ranks {
		k := &t.Ranks[r]
		p.ranks[r] = rank{p: p, k: k, ep: j.Endpoint(r), me: r, got: make([]bool, k.Arrivals), landed: make([]bool, k.Landings), begun: make([]time.Duration, len(k.Accesses))}
	}
	conduits.Run(p.eps, func(i int) {
		r := &p.ranks[i]
		if r.err = r.run(); r.err != nil {
			r.ep.Fail(r.err)
		}
		_ = r.ep.Close() // a job that has failed has the reason in err
	})
	var first error
	for r := range p.ranks {
		err := p.ranks[r].err
		var peer *conduits.PeerError
		if err != nil && (first == nil || errors.As(first, &peer) && !errors.As(err, &peer)) {
			first = fmt.Errorf("replay: rank %d: %w", r, err)
		}
	}
	p.report.finish()
	return p.report, first
}

func pages(n uint64) uint64 { return (n + segment.PageSize - 1) &^ (segment.PageSize - 1) }

// run does what the rank did.
func (r *rank) run() error {
	if err := r.ep.Attach(conduits.AttachConfig{Size: pages(r.k.Segment), Receiver: r}); err != nil {
		return err
	}
	s := &r.p.report.Ranks[r.me]
	start := r.ep.Now()
	for i := range r.k.Items {
		it := &r.k.Items[i]
		if gap := it.Gap + r.work; gap > 0 {
			r.work = 0
			s.Computing += r.compute(gap)
		}
		from := r.ep.Now()
		var err error
		switch it.Verb {
		case traffic.Send:
			err = r.request(it.N)
		case traffic.Post:
			err = r.post(it.N)
		case traffic.Wait:
			err = r.wait(it)
			r.p.report.wait(&r.last, r.ep.Now()-from)
			s.Waiting += r.ep.Now() - from
			from = r.ep.Now()
		case traffic.Poll:
			for range it.N {
				r.ep.Poll()
			}
		}
		if err != nil {
			return err
		}
		s.Sending += r.ep.Now() - from
	}
	// What a rank had by its end it has here, too: others wait for what its handlers send.
	from := r.ep.Now()
	err := conduits.Wait(r.ep, waiting{r}, func() bool {
		for r.all < len(r.got) && r.got[r.all] {
			r.all++
		}
		return r.all == len(r.got)
	})
	s.Waiting += r.ep.Now() - from
	s.Computing += r.compute(r.work)
	s.Took = r.ep.Now() - start
	return err
}

// compute lets time pass.
func (r *rank) compute(gap time.Duration) time.Duration {
	if f := r.p.o.Compute; f != 1 {
		gap = time.Duration(float64(gap) * f)
	}
	if gap > 0 {
		sim.Compute(r.ep, gap)
	}
	return gap
}

// wait is that of an item.
func (r *rank) wait(it *traffic.Item) error {
	r.last = row{}
	if it.N > 0 { // for something inside the rank
		for range it.N {
			r.ep.Spin()
		}
		return nil
	}
	return conduits.Wait(r.ep, waiting{r}, func() bool { return r.ready(it) })
}

// ready reports whether a wait is over.
func (r *rank) ready(it *traffic.Item) bool {
	for r.low < int(it.Upto) && (r.got[r.low] || !r.k.Needed[r.low]) {
		r.low++
	}
	for r.lowLanded < int(it.Landed) && r.landed[r.lowLanded] {
		r.lowLanded++
	}
	return r.low >= int(it.Upto) && (it.Last < 0 || r.got[it.Last]) && r.lowLanded >= int(it.Landed)
}

// waiting describes a rank's waits.
type waiting struct{ r *rank }

// Blocked is what the recording says of it.
func (w waiting) Blocked() string {
	return fmt.Sprintf("what the recording says came: %d of %d arrivals, %d of %d accesses to its memory are there", w.r.low, len(w.r.got), w.r.lowLanded, len(w.r.landed))
}

// words are those of all messages, which no handler reads.
var words [conduits.MaxWords]uint32

// begin begins message m, as recorded, and reports what came of it.
func (r *rank) begin(id int32) conduits.Status {
	m := &r.p.t.Messages[id]
	dst, tag := int(m.Dst), conduits.Tag(m.Seq)
	var st conduits.Status
	switch {
	case m.Long:
		var s conduits.Slot
		var ev conduits.Event
		s, ev, st = r.ep.ReservePut(dst, m.Class, int(m.Words), at(m.At), r.p.zero[:m.Size], uint64(m.Access))
		if st == conduits.Ready {
			r.begun[m.Access] = r.ep.Now()
			r.ep.Commit(dst, m.Class, s, tag, 0)
			r.arrive(&r.k.Accesses[m.Access], ev)
		}
	case m.Size > 0:
		st = r.ep.SendPayload(dst, m.Class, tag, words[:m.Words], r.p.zero[:m.Size], 0)
	default:
		st = r.ep.Send(dst, m.Class, tag, words[:m.Words])
	}
	if st == conduits.Ready {
		r.p.sent[id] = r.ep.Now()
	}
	return st
}

func at(a uint64) segment.NLA { return segment.AttachBase + segment.NLA(max(a, 1)-1) }

// request sends one, when there is credit.
func (r *rank) request(id int32) error {
	st := r.begin(id)
	if st != conduits.NoCredit {
		return r.dead(st)
	}
	err := conduits.Wait(r.ep, credit{r, int(r.p.t.Messages[id].Dst)}, func() bool {
		st = r.begin(id)
		return st != conduits.NoCredit
	})
	if err != nil {
		return err
	}
	return r.dead(st)
}

// dead is the error of a message to a rank that has left. One that has left before it got the message did not
// get it then, either.
func (r *rank) dead(st conduits.Status) error {
	if st == conduits.Dead {
		return r.ep.Err()
	}
	return nil
}

// credit describes a wait for it.
type credit struct {
	r   *rank
	dst int
}

// Blocked names the rank.
func (c credit) Blocked() string { return fmt.Sprintf("credit of rank %d", c.dst) }

// reply sends one out of a handler.
func (r *rank) reply(id int32) {
	for {
		if r.begin(id) != conduits.NoCredit {
			return
		}
		if r.ep.PollReplies() > 0 {
			continue
		}
		t := r.ep.Arm(credit{r, int(r.p.t.Messages[id].Dst)})
		if r.begin(id) != conduits.NoCredit {
			r.ep.Disarm(t)
			return
		}
		if r.ep.PollReplies() > 0 {
			r.ep.Disarm(t)
			continue
		}
		if r.ep.Err() != nil {
			r.ep.Disarm(t)
			return
		}
		r.ep.Park(t)
	}
}

// post begins an access.
func (r *rank) post(i int32) error {
	a := &r.k.Accesses[i]
	acc := conduits.Access{Verb: a.Verb, Rank: int(a.Rank), At: at(a.At), Want: a.Want, Cookie: uint64(i)}
	switch a.Verb {
	case conduits.Put, conduits.Get:
		acc.Mem = r.p.zero[:a.Size]
	case conduits.PutWord:
		acc.Size = uint8(a.Size)
	case conduits.Atomic:
		acc.Op, acc.Type = conduits.AtomicAdd, conduits.Uint64
		if a.Size == 4 {
			acc.Type = conduits.Uint32
		}
	}
	r.begun[i] = r.ep.Now()
	ev, err := r.ep.Post(&acc)
	r.arrive(a, ev)
	return err
}

// arrive notes completions of a.
func (r *rank) arrive(a *traffic.Access, ev conduits.Event) {
	for b, k := range a.Arrival {
		if ev>>b&1 != 0 && k >= 0 {
			r.got[k] = true
		}
	}
}

// land notes that an access has changed dst's memory: sim.Config.Landed.
func (p *player) land(src, dst int, cookie uint64) {
	if a := p.t.Ranks[src].Accesses; cookie < uint64(len(a)) && a[cookie].Landing >= 0 && int(a[cookie].Rank) == dst {
		p.ranks[dst].landed[a[cookie].Landing] = true
	}
}

// Receive does what the handler did.
func (r *rank) Receive(m *conduits.Message) {
	id := r.k.In[int32(m.Src)][m.Tag]
	msg := &r.p.t.Messages[id]
	if msg.Arrival >= 0 {
		r.got[msg.Arrival] = true
	}
	r.last = rowOf(msg)
	r.p.report.took(r.last, r.ep.Now()-r.p.sent[id])
	r.work += msg.Work
	for _, reply := range r.k.Replies[msg.First:][:msg.Replies] {
		r.reply(reply)
	}
}

// Complete notes a completion.
func (r *rank) Complete(cookie uint64, ev conduits.Event, _ uint64, err error) {
	a := &r.k.Accesses[cookie]
	r.arrive(a, ev)
	if err != nil {
		r.ep.Fail(err)
		return
	}
	if r.last = rowOfAccess(a); a.Message >= 0 {
		r.last = rowOf(&r.p.t.Messages[a.Message])
	}
	if ev&conduits.RemoteDone != 0 {
		r.p.report.took(r.last, r.ep.Now()-r.begun[cookie])
	}
	r.work += a.Work
}
