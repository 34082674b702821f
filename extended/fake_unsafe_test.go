package extended

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// fakeJob is a conduit for tests: ranks of one process, of which each pair is
// direct, or has its operations delayed and delivered by Poll in random order,
// with sources read and destinations written only then.
type fakeJob struct {
	size  int
	segs  [][]byte
	views []segment.View
	eps   []*fakeEP
}

type fakeOptions struct {
	bytes   uint64 // of a segment
	rights  segment.Rights
	direct  bool   // views of all ranks
	maxLong uint64 // 0 for no limit
	seed    uint64
	// eager lets operations complete, or their sources be read, at once, at random.
	eager bool
	// bare keeps the conduit from reading sources early, which allocates.
	bare bool
	// hold keeps everything until the test calls release.
	hold   bool
	config Config
}

type pending struct {
	verb   conduits.Verb
	dst    int
	a      segment.NLA
	b      []byte
	v, w   uint64
	op     conduits.AtomicOp
	t      conduits.AtomicType
	want   conduits.Event
	cookie uint64
}

type fakeEP struct {
	conduits.Endpoint // nil: what the package must not call panics
	own               conduits.OwnMemory
	job               *fakeJob
	rank              int
	o                 fakeOptions
	x                 *Initiator
	views             []segment.View

	mu      sync.Mutex
	rnd     *rand.Rand
	queue   []pending
	hold    bool
	fail    error // operations begun or delivered from now on fail
	err     error
	calls   int
	polling bool
	// wakeTarget wakes the rank where something arrived, as a network does.
	wakeTarget bool
	// before, if not nil, is called with what is about to be performed for this rank.
	before func(op AtomicOp, a segment.NLA)

	parkMu sync.Mutex
	park   *sync.Cond
	seq    uint32
	parked chan struct{} // holds one if a goroutine has parked since it was looked at
}

func newFake(size int, o fakeOptions) *fakeJob {
	if o.bytes == 0 {
		o.bytes = 4 * segment.PageSize
	}
	if o.rights == 0 {
		o.rights = segment.RightsAll
	}
	j := &fakeJob{size: size}
	for range size {
		words := make([]uint64, o.bytes/8+1) // see segment.View
		b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), o.bytes)
		j.segs = append(j.segs, b)
		j.views = append(j.views, segment.NewView(unsafe.Pointer(unsafe.SliceData(b)), o.bytes, o.rights))
	}
	for r := range size {
		e := &fakeEP{job: j, rank: r, o: o, hold: o.hold, rnd: rand.New(rand.NewPCG(o.seed, uint64(r)))}
		e.own.Ready(func() segment.ATUConfig { return segment.ATUConfig{} })
		e.park = sync.NewCond(&e.parkMu)
		e.parked = make(chan struct{}, 1)
		e.queue = make([]pending, 0, 1024)
		e.views = j.views
		if !o.direct {
			e.views = make([]segment.View, size)
			e.views[r] = j.views[r]
		}
		e.x = New(o.config)
		e.x.bind(e, e)
		if !o.direct {
			// The own rank is direct on every conduit; take it away so that one
			// rank is enough to test the way through the conduit.
			e.x.views = reach{}
		}
		j.eps = append(j.eps, e)
	}
	return j
}

func (e *fakeEP) Rank() int                        { return e.rank }
func (e *fakeEP) Size() int                        { return e.job.size }
func (e *fakeEP) Views() (int, []segment.View)     { return 0, e.views }
func (e *fakeEP) SegmentSize(rank int) uint64      { return uint64(len(e.job.segs[rank])) }
func (e *fakeEP) SegmentRights(int) segment.Rights { return e.o.rights }
func (e *fakeEP) Now() time.Duration               { return 0 }
func (e *fakeEP) Err() error                       { e.mu.Lock(); defer e.mu.Unlock(); return e.err }

func (e *fakeEP) Limits() conduits.Limits {
	m := e.o.maxLong
	if m == 0 {
		m = 1 << 39
	}
	return conduits.Limits{MaxLong: m}
}

func (e *fakeEP) ATU() (*segment.ATU, error)         { return e.own.ATU() }
func (e *fakeEP) MapMemory(n uint64) ([]byte, error) { return e.own.MapMemory(n) }
func (e *fakeEP) UnmapMemory(mem []byte) error       { return e.own.UnmapMemory(mem) }

// perform does p on the target's memory, if it may.
func (e *fakeEP) perform(p *pending) (value uint64, err error) {
	if e.before != nil {
		e.before(p.op, p.a)
	}
	n, need := p.extent()
	v := &e.job.views[p.dst]
	b, ok := v.Bytes(p.a, n, v.Size())
	if !ok {
		var u *segment.Unit
		if b, u, err = e.job.eps[p.dst].own.Admit(e.rank, p.a, n, need); err != nil {
			return 0, conduits.Fault("fake", p.dst, err)
		}
		defer u.Exit()
	}
	if e.wakeTarget && p.dst != e.rank {
		defer e.Wake(p.dst)
	}
	switch p.verb {
	case conduits.Put, conduits.PutWord:
		copy(b, p.b)
	case conduits.Get:
		copy(p.b, b)
	case conduits.Atomic:
		return conduits.ApplyAtomic(unsafe.Pointer(unsafe.SliceData(b)), p.op, p.t, p.v, p.w), nil
	}
	return 0, nil
}

// extent is how many bytes p needs, and which right.
func (p *pending) extent() (n uint64, need segment.Rights) {
	switch p.verb {
	case conduits.Get:
		return uint64(len(p.b)), segment.RightRead
	case conduits.Atomic:
		return uint64(p.t.Size()), segment.RightAtomic
	}
	return uint64(len(p.b)), segment.RightWrite
}

func (e *fakeEP) begin(p pending) (uint64, conduits.Event, error) {
	n, need := p.extent()
	if err := conduits.CheckRemote(e, "fake", p.dst, p.a, n); err != nil {
		panic(err) // the layer above checks
	}
	if e.o.rights&need == 0 && conduits.InSegment(e, p.dst, p.a, n) {
		return 0, 0, errs.BadArg("fake: no right %v", need)
	}
	if n > e.Limits().MaxLong {
		panic("fake: piece too long")
	}
	if p.cookie>>63 != 0 {
		panic("fake: bit 63 of a cookie is not ours")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	if e.fail != nil {
		return 0, 0, e.fail
	}
	if e.o.eager && e.rnd.IntN(3) == 0 {
		value, err := e.perform(&p)
		if err != nil {
			return 0, 0, err
		}
		return value, p.want, nil
	}
	if e.o.eager && p.verb == conduits.Put && p.want&conduits.SourceDone != 0 && e.rnd.IntN(2) == 0 {
		p.b = append([]byte(nil), p.b...)
		p.want &^= conduits.SourceDone
		e.queue = append(e.queue, p)
		return 0, conduits.SourceDone, nil
	}
	e.queue = append(e.queue, p)
	return 0, 0, nil
}

// Post begins an access; none is done at once.
func (e *fakeEP) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return 0, nil
	}
	if !a.Sound() {
		panic("fake: no such access, or an unaligned one")
	}
	p := pending{verb: a.Verb, dst: a.Rank, a: a.At, b: a.Mem, op: a.Op, t: a.Type, v: a.A, w: a.B, want: a.Wanted(), cookie: a.Cookie}
	if a.Verb == conduits.PutWord {
		p.b = binary.LittleEndian.AppendUint64(nil, a.A)[:a.Size]
	}
	var ev conduits.Event
	var err error
	a.Value, ev, err = e.begin(p)
	return ev, err
}

// Poll delivers some of what is under way, in random order.
func (e *fakeEP) Poll() int {
	e.mu.Lock()
	hold := e.hold
	e.mu.Unlock()
	if hold {
		return 0
	}
	return e.deliver()
}

// deliver is Poll whether operations are held or not.
func (e *fakeEP) deliver() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.polling || len(e.queue) == 0 {
		return 0
	}
	e.polling = true
	n := 1 + e.rnd.IntN(min(len(e.queue), 8))
	for k := 0; k < n && len(e.queue) > 0; k++ {
		i := e.rnd.IntN(len(e.queue))
		p := e.queue[i]
		ev, fail := p.want, e.fail
		var value uint64
		if ev == wantCopy && p.verb == conduits.Put && fail == nil && !e.o.bare && e.rnd.IntN(2) == 0 {
			// The source is read before the data arrives.
			ev = conduits.SourceDone
			e.queue[i].b = append([]byte(nil), p.b...)
			e.queue[i].want = conduits.RemoteDone
		} else {
			last := len(e.queue) - 1
			e.queue[i] = e.queue[last]
			e.queue[last] = pending{}
			e.queue = e.queue[:last]
			if fail == nil {
				value, fail = e.perform(&p)
			}
		}
		e.mu.Unlock()
		e.x.Complete(p.cookie, ev, value, fail)
		e.mu.Lock()
	}
	e.polling = false
	return n
}

func (e *fakeEP) Spin() int          { return e.Poll() }
func (e *fakeEP) Idle(idle int) bool { return idle < 2 }
func (e *fakeEP) Polling() bool      { return false }
func (e *fakeEP) Disarm(conduits.Ticket) {
}

func (e *fakeEP) Arm(b conduits.Blocked) conduits.Ticket {
	if b != nil && b.Blocked() == "" {
		panic("fake: nothing to say")
	}
	e.parkMu.Lock()
	defer e.parkMu.Unlock()
	return conduits.Ticket{Seq: e.seq}
}

func (e *fakeEP) Park(t conduits.Ticket) {
	select {
	case e.parked <- struct{}{}:
	default:
	}
	e.parkMu.Lock()
	for e.seq == t.Seq {
		e.park.Wait()
	}
	e.parkMu.Unlock()
}

func (e *fakeEP) Wake(rank int) {
	d := e.job.eps[rank]
	d.parkMu.Lock()
	d.seq++
	d.park.Broadcast()
	d.parkMu.Unlock()
}

func (e *fakeEP) Wait(b conduits.Blocked, cond func() bool) error { return conduits.Wait(e, b, cond) }

func (e *fakeEP) WaitFor(b conduits.Blocked, c conduits.Cond) error { return conduits.WaitFor(e, b, c) }

func (e *fakeEP) Blocking(string) error { return nil }

// release lets held operations go on.
func (e *fakeEP) release() {
	e.mu.Lock()
	e.hold = false
	e.mu.Unlock()
	e.Wake(e.rank)
}

// die makes the operations under way, and all later ones, fail.
func (e *fakeEP) die(err error, job bool) {
	e.mu.Lock()
	e.fail = err
	if job {
		e.err = err
	}
	e.mu.Unlock()
	e.Wake(e.rank)
}

func at(off int) segment.NLA { return segment.AttachBase + segment.NLA(off) }

// addOwn adds 1 to a word of a rank's own memory without this package.
func addOwn(seg []byte, off int) {
	atomic.AddUint64((*uint64)(unsafe.Pointer(&seg[off])), 1)
}

var errDied error = &conduits.PeerError{Rank: 1, Op: "test"}

// wordIn is the word at off of a segment.
func wordIn(seg []byte, off int) *uint64 { return (*uint64)(unsafe.Pointer(&seg[off])) }
