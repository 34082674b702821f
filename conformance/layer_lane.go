package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/gas"
)

// laneChecks are those of lanes, which every conduit has for package gas: where it is no
// conduits.Laned they share its one way.
var laneChecks = []check{
	{name: "lanes/traffic", seeded: true, run: laneTraffic},
	{name: "lanes/unattended", run: laneUnattended},
	{name: "lanes/alone", seeded: true, run: laneAlone},
	{name: "lanes/given", run: laneGiven},
	{name: "lanes/failure", run: laneFailure},
}

// callMix is a call whose result depends on the called rank.
var callMix = gas.RegisterCall("conformance.mix", func(n *gas.Node, a [3]uint64) uint64 {
	return contract.Mix(a[0], a[1], a[2], uint64(n.Rank()))
})

const (
	laneRanks = 3
	lanesEach = 4
	hLane     = 200
)

// laneBook has a rank's records of the messages to hLane, by the Node that ran them.
type laneBook struct {
	mu    sync.Mutex
	nodes map[*gas.Node]*lanePage
	got   atomic.Int64
	wrong atomic.Pointer[string]
}

// lanePage is that of one lane. Its handlers run one at a time.
type lanePage struct {
	busy atomic.Int32
	seen [laneRanks][lanesEach]map[uint32]bool
}

func (b *laneBook) fail(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	b.wrong.CompareAndSwap(nil, &s)
}

// page is that of n.
func (b *laneBook) page(n *gas.Node) *lanePage {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.nodes[n]
	if p == nil {
		p = new(lanePage)
		if b.nodes == nil {
			b.nodes = map[*gas.Node]*lanePage{}
		}
		b.nodes[n] = p
	}
	return p
}

var laneBooks gas.PerRank[laneBook]

// onLane takes message args[1] of sender args[0], a goroutine of t's rank that has a lane
// to itself.
func onLane(t *am.Token, args []uint32, payload []byte) {
	n := gas.NodeOf(t)
	b := laneBooks.Of(n)
	p := b.page(n)
	if p.busy.Add(1) != 1 {
		b.fail("two handlers of a lane run at once")
	}
	seen := &p.seen[t.Src()][args[0]%lanesEach]
	if *seen == nil {
		*seen = map[uint32]bool{}
	}
	if (*seen)[args[1]] {
		b.fail("message %d of goroutine %d of rank %d came twice", args[1], args[0], t.Src())
	}
	(*seen)[args[1]] = true
	for i, x := range payload {
		if x != byte(args[1]+uint32(i)) {
			b.fail("message %d: byte %d is %#x", args[1], i, x)
			break
		}
	}
	p.busy.Add(-1)
	b.got.Add(1)
}

// laneTraffic has goroutines with lanes, and one without, do everything at once: messages
// arrive once, calls are answered where they were made, puts, gets and atomics
// do what they do elsewhere, and handlers of a lane run one at a time.
func laneTraffic(c *ctx) {
	const rounds = 120
	cfg := gas.Config{
		Ranks: laneRanks, SegmentSize: gasSegment, Lanes: lanesEach,
		Handlers: []am.Entry{{Index: hLane, Name: "lane", Fn: onLane, Args: 2, Kinds: am.Short | am.Medium | am.Request}},
	}
	err := c.gas(cfg, func(n *gas.Node) error {
		sums, err := gas.NewSlice[uint64](n, laneRanks*lanesEach)
		if err != nil {
			return err
		}
		var sent [laneRanks][lanesEach]atomic.Int64 // messages, by destination
		var added [lanesEach]uint64
		n.Must(goroutines(n, lanesEach, func(i int) error {
			l := n
			if i > 0 {
				var err error
				if l, err = n.Lane(); err != nil {
					return err
				}
				defer l.Free()
			}
			w := &laneWorker{n: l, me: uint32(i), rng: c.Random(uint64(n.Rank()), uint64(i), 61), sums: sums}
			for range rounds {
				if err := w.round(); err != nil {
					return fmt.Errorf("goroutine %d: %w", i, err)
				}
			}
			for dst, k := range w.next {
				sent[dst][i].Store(int64(k))
			}
			added[i] = w.added
			return nil
		}))
		want := int64(0)
		for dst := range laneRanks {
			mine := int64(0)
			for i := range lanesEach {
				mine += sent[dst][i].Load()
			}
			k := gas.Must(gas.AllReduce(n, mine, gas.Sum[int64]))
			if dst == n.Rank() {
				want = k
			}
		}
		b := laneBooks.Of(n)
		n.Must(n.Wait(func() bool { return b.got.Load() >= want }))
		n.Must(n.Barrier())
		if got := b.got.Load(); got != want {
			return fmt.Errorf("%d messages have come, of %d", got, want)
		}
		if s := b.wrong.Load(); s != nil {
			return errors.New(*s)
		}
		for i, a := range added {
			got, err := sums.On(0).Add(n.Rank()*lanesEach + i).Get(n)
			if err != nil || got != a {
				return off(err, "goroutine %d has added %d, and the sum is %d", i, a, got)
			}
		}
		return n.Barrier()
	})
	if err != nil {
		c.Errorf("%v", err)
	}
}

// laneWorker is one goroutine of laneTraffic.
type laneWorker struct {
	n     *gas.Node
	me    uint32
	rng   *rand.Rand
	sums  gas.Ptr[uint64] // of rank 0, one for each goroutine of each rank
	next  [laneRanks]uint32
	added uint64
	buf   [300]byte
}

// round is a burst of one kind of operation.
func (w *laneWorker) round() error {
	n, dst := w.n, w.rng.IntN(laneRanks)
	mine := w.sums.On(0).Add(n.Rank()*lanesEach + int(w.me))
	switch w.rng.IntN(5) {
	case 0:
		for range w.rng.IntN(20) {
			if err := n.Layers().AM.RequestShort(dst, hLane, w.me, w.next[dst]); err != nil {
				return err
			}
			w.next[dst]++
		}
	case 1:
		b := w.buf[:w.rng.IntN(len(w.buf))]
		for i := range b {
			b[i] = byte(w.next[dst] + uint32(i))
		}
		if err := n.Layers().AM.RequestMedium(dst, hLane, b, w.me, w.next[dst]); err != nil {
			return err
		}
		w.next[dst]++
	case 2:
		a := [3]uint64{w.rng.Uint64(), uint64(w.me), 7}
		got, err := callMix.Call(n, dst, a)
		if want := contract.Mix(a[0], a[1], a[2], uint64(dst)); err != nil || got != want {
			return off(err, "call of rank %d: %#x, not %#x", dst, got, want)
		}
	case 3:
		d := w.rng.Uint64() >> 40
		old, err := gas.FetchAdd(n, mine, d)
		if err != nil || old != w.added {
			return off(err, "the sum was %d, not %d", old, w.added)
		}
		w.added += d
	default:
		got, err := mine.Get(n)
		if err != nil || got != w.added {
			return off(err, "the sum is %d, not %d", got, w.added)
		}
		v := w.rng.Uint64() >> 40
		h, err := mine.PutNB(n, v)
		if err != nil {
			return err
		}
		w.added = v
		return n.Sync(h)
	}
	return nil
}

// laneUnattended has a rank answer in lanes by which none of its goroutines waits.
func laneUnattended(c *ctx) {
	cfg := gas.Config{Ranks: 2, SegmentSize: gasSegment, Lanes: 3}
	err := c.gas(cfg, func(n *gas.Node) error {
		for asker := range 2 {
			if n.Rank() == asker {
				for range 2 {
					l := gas.Must(n.Lane())
					for i := range uint64(5) {
						got, err := callMix.Call(l, 1-asker, [3]uint64{i, 1, 2})
						if want := contract.Mix(i, 1, 2, uint64(1-asker)); err != nil || got != want {
							return off(err, "call by lane: %#x, not %#x", got, want)
						}
					}
				}
			}
			n.Must(n.Barrier())
		}
		return nil
	})
	if err != nil {
		c.Errorf("%v", err)
	}
}

// laneAlone has one goroutine of each rank use all lanes, with more calls under way in each
// than there is credit for, so that handlers wait to answer while nothing else polls.
func laneAlone(c *ctx) {
	const ranks = 2
	each := min(2*c.Offer.Limits.Credits+10, 200)
	err := c.gas(gas.Config{Ranks: ranks, SegmentSize: gasSegment, Lanes: 3}, func(n *gas.Node) error {
		lanes := []*gas.Node{n}
		for range 2 {
			l := gas.Must(n.Lane())
			lanes = append(lanes, l)
		}
		rng := c.Random(uint64(n.Rank()), 62)
		type asked struct {
			f    gas.Future[uint64]
			want uint64
		}
		var all []asked
		for i := range uint64(each) {
			for _, k := range rng.Perm(len(lanes)) {
				f := gas.Must(callMix.Go(lanes[k], 1-n.Rank(), [3]uint64{i, uint64(k), 3}))
				all = append(all, asked{f, contract.Mix(i, uint64(k), 3, uint64(1-n.Rank()))})
			}
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, a := range all {
			if got, err := a.f.Wait(); err != nil || got != a.want {
				return off(err, "call: %#x, not %#x", got, a.want)
			}
		}
		return n.Barrier()
	})
	if err != nil {
		c.Errorf("%v", err)
	}
}

// laneGiven: lanes are given out as far as there are some, and taken back once.
func laneGiven(c *ctx) {
	c.job(2, func(n *gas.Node) error {
		// One for each processor, where the conduit has lanes.
		if most := runtime.GOMAXPROCS(0); n.Lanes() < 1 || n.Lanes() > most {
			return fmt.Errorf("%d lanes by default, on %d processors", n.Lanes(), most)
		}
		for range n.Lanes() - 1 {
			gas.Must(n.Lane())
		}
		_, err := n.Lane()
		return isErr(err, gas.ErrResource, "one lane more than there are")
	})
	err := c.gas(gas.Config{Ranks: 2, SegmentSize: gasSegment, Lanes: 3}, func(n *gas.Node) error {
		n.Must(isErr(n.Free(), gas.ErrBadArg, "release of the first lane"))
		a := gas.Must(n.Lane())
		b := gas.Must(a.Lane())
		if a == b || a == n || b == n || a.Rank() != n.Rank() || a.Lanes() != 3 {
			return fmt.Errorf("lanes %p and %p of %p", a, b, n)
		}
		if _, err := n.Lane(); !errors.Is(err, gas.ErrResource) {
			return isErr(err, gas.ErrResource, "a fourth lane")
		}
		n.Must(a.Free())
		n.Must(isErr(a.Free(), gas.ErrBadArg, "second release"))
		if again, err := n.Lane(); err != nil || again != a {
			return off(err, "lane %p, not %p, which was free", again, a)
		}
		if _, err := n.Layers().AM.Lane(99); !errors.Is(err, gas.ErrBadArg) {
			return isErr(err, gas.ErrBadArg, "lane 99")
		}
		return n.Barrier()
	})
	if err != nil {
		c.Errorf("%v", err)
	}
}

// laneFailure: what a goroutine waits for by a lane ends when another rank fails.
func laneFailure(c *ctx) {
	boom := errors.New("boom")
	err := c.gas(gas.Config{Ranks: 2, SegmentSize: gasSegment, Lanes: 2}, func(n *gas.Node) error {
		l, err := n.Lane()
		if err != nil {
			return err
		}
		gas.Must(callMix.Call(l, 1-n.Rank(), [3]uint64{}))
		n.Must(n.Barrier())
		if n.Rank() == 1 {
			return boom
		}
		err = l.Wait(func() bool { return false })
		var p *conduits.PeerError
		if !errors.As(err, &p) || p.Rank != 1 {
			return off(err, "the wait by a lane did not end by rank 1's failure")
		}
		return err
	})
	if !errors.Is(err, boom) {
		c.Errorf("error %v, want one that wraps %q", err, boom)
	}
}
