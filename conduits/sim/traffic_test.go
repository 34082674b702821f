package sim

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

var seeds = flag.Int("sim.seeds", 60, "seeds of TestTraffic, of which TestPlans runs a quarter")

// randomPlan is a job of n ranks with what may go wrong with it. victim crashes,
// unless it is -1.
func randomPlan(rnd *rand.Rand, n int) (c Config, victim int) {
	p := Extoll()
	if rnd.IntN(3) == 0 {
		p = Ideal()
	}
	p.Net.Topology = []fabric.Topology{fabric.Crossbar, fabric.Torus, fabric.FatTree}[rnd.IntN(3)]
	p.Net.Contention = rnd.IntN(2) == 0
	p.Net.Queue = fabric.Queue(rnd.IntN(2))
	c = Config{Seed: rnd.Uint64(), Profile: &p, Credits: 1 + rnd.IntN(4)}
	if rnd.IntN(4) == 0 {
		c.Seed = 0
	}
	f := &c.Faults
	at := func() Time { return rnd.Int64N(100 * Microsecond) }
	if rnd.IntN(2) == 0 {
		f.Jitter = rnd.Int64N(5 * Microsecond)
	}
	for range rnd.IntN(3) {
		f.Slow = append(f.Slow, Slow{rnd.IntN(n), 1 + rnd.IntN(30)})
	}
	for range rnd.IntN(4) {
		f.Stalls = append(f.Stalls, Stall{rnd.IntN(n), at(), at()})
	}
	for range rnd.IntN(3) {
		first := rnd.IntN(n)
		f.Partitions = append(f.Partitions, Partition{first, first + rnd.IntN(n-first), at(), at()})
	}
	victim = -1
	if rnd.IntN(2) == 0 {
		victim = rnd.IntN(n)
		x := Crash{Rank: victim, At: at()}
		if rnd.IntN(2) == 0 {
			x.Event = 1 + rnd.Uint64N(400*uint64(n))
		}
		f.Crashes = append(f.Crashes, x)
		f.Detect = rnd.Int64N(50 * Microsecond)
	}
	return c, victim
}

// parcel is a message of the test, by its first word.
type parcel struct {
	at       time.Duration // when it was sent
	src, dst int
	c        conduits.Class
	tag      conduits.Tag
	words    int
	payload  []byte
	got      int
}

// load is a job of ranks that do anything their endpoints can do.
type load struct {
	t        *testing.T
	j        *Job
	victim   int
	parcels  []*parcel
	received int
	finished int
}

// porter is one rank of it.
type porter struct {
	*load
	e       *Endpoint
	rnd     *rand.Rand
	pending map[uint64]conduits.Event // completions that are still to come
	cookies uint64
	last    time.Duration
}

func (p *porter) errorf(format string, args ...any) {
	p.t.Helper()
	p.t.Errorf("rank %d at %v: %s", p.e.rank, p.e.Now(), fmt.Sprintf(format, args...))
}

// now is the clock, which never goes back.
func (p *porter) now() time.Duration {
	now := p.e.Now()
	if now < p.last {
		p.errorf("the clock was at %v", p.last)
	}
	p.last = now
	return now
}

func (p *porter) Receive(m *conduits.Message) {
	p.now()
	if len(m.Words) == 0 || int(m.Words[0]) >= len(p.parcels) {
		p.errorf("message of words %v from %d", m.Words, m.Src)
		return
	}
	x := p.parcels[m.Words[0]]
	x.got++
	if x.got != 1 || x.src != m.Src || x.dst != p.e.rank || x.c != m.Class || x.tag != m.Tag || x.words != len(m.Words) || !bytes.Equal(x.payload, m.Payload) {
		p.errorf("message %d from %d, class %v, tag %d, %d words, %d bytes is %+v", m.Words[0], m.Src, m.Class, m.Tag, len(m.Words), len(m.Payload), x)
	}
	if d := duration(p.j.p.Net.Latency); m.Src != p.e.rank && p.now() < x.at+d {
		p.errorf("message %d was sent at %v", m.Words[0], x.at)
	}
	if m.Class == conduits.Request && p.rnd.IntN(2) == 0 {
		for p.message(m.Src, conduits.Reply) == conduits.NoCredit {
			p.e.PollReplies()
		}
	}
	// Not before its reply counts.
	if p.received++; p.received == len(p.parcels) {
		p.wakeAll()
	}
}

func (p *porter) Complete(cookie uint64, ev conduits.Event, _ uint64, err error) {
	p.now()
	if have := p.pending[cookie]; ev == 0 || have&ev != ev {
		p.errorf("completion %b of operation %d, which waits for %b", ev, cookie, have)
	}
	if p.pending[cookie] &^= ev; p.pending[cookie] == 0 {
		delete(p.pending, cookie)
	}
	var pe *conduits.PeerError
	if err != nil && (p.victim < 0 || !errors.As(err, &pe) || pe.Rank != p.victim) {
		p.errorf("completion with %v", err)
	}
}

// wakeAll makes all ranks see whether all is done.
func (p *porter) wakeAll() {
	for r := range p.j.n {
		p.e.Wake(r)
	}
}

// message sends a message by any way there is, or cancels it.
func (p *porter) message(dst int, c conduits.Class) conduits.Status {
	x := &parcel{at: p.now(), src: p.e.rank, dst: dst, c: c, tag: conduits.Tag(p.rnd.IntN(1 << conduits.TagBits)), words: 1 + p.rnd.IntN(conduits.MaxWords)}
	words := make([]uint32, x.words)
	words[0] = uint32(len(p.parcels))
	var st conduits.Status
	how := p.rnd.IntN(6)
	if how != 0 && how != 2 {
		x.payload = make([]byte, 1+p.rnd.IntN(1200))
		for i := range x.payload {
			x.payload[i] = byte(p.rnd.Uint32())
		}
	}
	fill := func(s conduits.Slot, cancel bool) {
		copy(s.Words, words)
		copy(s.Payload, x.payload)
		if cancel {
			p.e.Cancel(dst, c, s)
			x = nil
			return
		}
		p.e.Commit(dst, c, s, x.tag, min(len(x.payload), len(s.Payload)))
	}
	var s conduits.Slot
	switch how {
	case 0:
		st = p.e.Send(dst, c, x.tag, words)
	case 1:
		st = p.e.SendPayload(dst, c, x.tag, words, x.payload, 0)
	case 2:
		if s, st = p.e.Reserve(dst, c, x.words, 100); st == conduits.Ready {
			fill(s, p.rnd.IntN(2) == 0)
		}
	case 3:
		if s, st = p.e.Reserve(dst, c, x.words, len(x.payload)); st == conduits.Ready {
			fill(s, p.rnd.IntN(2) == 0)
		}
	default:
		// Every message has a place of its own in the segment.
		x.payload = x.payload[:1+p.rnd.IntN(min(64, len(x.payload)))]
		to := segment.AttachBase + segment.NLA(64*(len(p.parcels)%(1<<10)))
		var ev conduits.Event
		p.cookies++
		if s, ev, st = p.e.ReservePut(dst, c, x.words, to, x.payload, p.cookies); st == conduits.Ready {
			if ev == 0 {
				p.pending[p.cookies] = conduits.SourceDone
			}
			fill(s, p.rnd.IntN(3) == 0)
		}
	}
	if st == conduits.Ready && x != nil {
		p.parcels = append(p.parcels, x)
	}
	return st
}

// operation does anything but a message.
func (p *porter) operation() error {
	dst := p.rnd.IntN(p.j.n)
	want := conduits.Event(p.rnd.IntN(4))
	// Beyond what messages are put to.
	at := segment.AttachBase + 1<<16 + segment.NLA(8*p.rnd.IntN(512))
	buf := make([]byte, p.rnd.IntN(100))
	p.cookies++
	var ev conduits.Event
	var err error
	switch p.rnd.IntN(4) {
	case 0:
		ev, err = post.Put(p.e, dst, at, buf, want, p.cookies)
	case 1:
		ev, err = post.Get(p.e, buf, dst, at, want, p.cookies)
	case 2:
		ev, err = post.PutWord(p.e, dst, at, 7, 8, want, p.cookies)
	case 3:
		want = conduits.RemoteDone
		_, ev, err = post.Atomic(p.e, dst, at, conduits.AtomicAdd, conduits.Uint64, 1, 0, p.cookies)
	}
	if ev&^want != 0 {
		p.errorf("completions %b of %b", ev, want)
	}
	if err == nil && want&^ev != 0 {
		p.pending[p.cookies] = want &^ ev
	}
	return err
}

// run does things, then waits until all that it was promised has come and the
// others are as far.
func (p *porter) run(count int) error {
	if err := p.e.Attach(conduits.AttachConfig{Size: 1 << 17, Receiver: p}); err != nil {
		return err
	}
	var bad error
	for range count {
		dst := p.rnd.IntN(p.j.n)
		switch p.rnd.IntN(4) {
		case 0:
			p.e.Poll()
		case 1:
			if err := p.operation(); err != nil && p.e.Err() == nil {
				p.errorf("%v", err)
			}
		default:
			if err := conduits.Wait(p.e, nil, func() bool { return p.message(dst, conduits.Request) != conduits.NoCredit }); err != nil {
				bad = err
			}
		}
		p.now()
	}
	// What has begun is reported, whatever has happened meanwhile.
	for deadline := p.now() + 3*time.Millisecond; len(p.pending) > 0 && p.now() < deadline; {
		p.e.Poll()
	}
	if len(p.pending) > 0 {
		p.errorf("never reported: %v", p.pending)
	}
	p.finished++
	p.wakeAll()
	err := conduits.Wait(p.e, nil, func() bool { return p.finished == p.j.n && p.received == len(p.parcels) })
	return errors.Join(bad, err)
}

// runLoad runs a job of random ranks under a random plan.
func runLoad(t *testing.T, seed uint64) uint64 {
	rnd := rand.New(rand.NewPCG(seed, 7))
	n := 1 + rnd.IntN(6)
	c, victim := randomPlan(rnd, n)
	j, err := New(n, c)
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t, j: j, victim: victim}
	ended := make([]error, n)
	conduits.Run(j.Endpoints(), func(i int) {
		p := &porter{load: l, e: &j.eps[i], rnd: rand.New(rand.NewPCG(seed, uint64(i))), pending: map[uint64]conduits.Event{}}
		ended[i] = p.run(60)
	})
	crashed := victim >= 0 && j.eps[victim].crashed
	for r, err := range ended {
		var p *conduits.PeerError
		switch {
		case !crashed && err != nil:
			t.Errorf("rank %d: %v", r, err)
		case crashed && r != victim && (!errors.As(err, &p) || p.Rank != victim) && (err != nil || l.finished < n):
			t.Errorf("rank %d ended with %v; rank %d crashed", r, err, victim)
		}
	}
	if victim >= 0 || t.Failed() {
		return j.Digest()
	}
	// Nothing is left when what is under way has come.
	conduits.Run(j.Endpoints(), func(i int) {
		s := j.eps[i].Socket()
		for until := s.Now() + time.Second; s.Now() < until; {
			s.Wait(until)
		}
		j.eps[i].Poll()
	})
	if j.m.inUse != 0 || len(j.q.h) > 0 {
		t.Errorf("%d messages and %d events are left", j.m.inUse, len(j.q.h))
		for id := uint32(1); id <= j.m.n; id++ {
			if m := j.m.at(id); m.kind != kindFree {
				t.Logf("%v from %d to %d, want %b", m.kind, m.src, m.dst, m.want)
			}
		}
	}
	for r := range j.eps {
		for _, p := range j.eps[r].pairs.t {
			if p.out != [conduits.NumClasses]uint16{} || p.refused(conduits.Request) || p.refused(conduits.Reply) {
				t.Errorf("rank %d to %d: %d and %d under way, refused %v and %v", r, p.rank(), p.out[0], p.out[1], p.refused(conduits.Request), p.refused(conduits.Reply))
			}
		}
	}
	return j.Digest()
}

// TestTraffic lets ranks do everything at random under random faults. Every
// message arrives once and as it was sent, not before it could; every completion
// comes once, also of what was begun towards a rank that crashed; no credit and
// no memory is lost; and all of it is the same again.
func TestTraffic(t *testing.T) {
	testjob.Simulated(t)
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := runLoad(t, seed)
			if t.Failed() {
				t.FailNow()
			}
			if again := runLoad(t, seed); again != d {
				t.Errorf("the second time it is another run: %x, %x", d, again)
			}
		})
	}
}
