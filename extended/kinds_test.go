package extended_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// Random programs over all kinds of addresses, beside a model of the bytes. Every
// rank has a target of each kind. Every goroutine of every rank has a stripe of
// every target, which no other touches, so it knows what is there.

const (
	stripe = 16 << 10
	gangs  = 2 // goroutines of a rank
)

// Targets of a rank.
const (
	inSegment = iota
	inRegistered
	inExposed
	inMapped  // exposed memory that Go's collector does not know
	inCrooked // exposed memory that is not aligned
	numTargets
)

type target struct {
	at  segment.NLA
	mem []byte
}

// board has the values that ranks share beside the job.
type board struct {
	size    int
	targets [][numTargets]target
	mail    []target   // what replies go to
	models  [][][]byte // by rank*gangs+goroutine, then rank*numTargets+target
	doomed  []*doomed  // by rank
	counts  []segment.NLA
	added   []atomic.Uint64
}

// doomed is a rank's memory that is concealed again and again.
type doomed struct {
	mu    sync.Mutex
	at    segment.NLA
	mem   []byte
	gen   int  // odd while it is being concealed, and until there is other memory
	whole bool // it has been concealed
}

func (d *doomed) look() (segment.NLA, int, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at, d.gen, d.whole
}

const doomedPart = 10 << 10 // of a goroutine

// Handlers of the programs.
const (
	hDeposit am.HandlerID = am.FirstClient + iota
	hReceipt
)

// gang is one goroutine of a rank.
type gang struct {
	*node
	b      *board
	me     int // rank*gangs + goroutine
	rnd    *rand.Rand
	model  [][]byte
	region *extended.Region
	hs     []extended.Handle
	checks []func() error // when hs and region are synchronized
	busy   []busy         // what they touch
}

type busy struct{ rank, target, from, to int }

// where is the address of byte off of the goroutine's stripe.
func (g *gang) where(rank, target, off int) segment.NLA {
	return g.b.targets[rank][target].at + segment.NLA(g.me*stripe+off)
}

func (g *gang) at(rank, target int) []byte { return g.model[rank*numTargets+target] }

// pick chooses bytes, and synchronizes if something under way touches them.
func (g *gang) pick(most, align int) (rank, target, off, n int, err error) {
	rank, target = g.rnd.IntN(g.b.size), g.rnd.IntN(numTargets)
	n = 1 + g.rnd.IntN(1<<g.rnd.IntN(15))
	if n = min(n, most); align > 1 {
		n = align
	}
	off = g.rnd.IntN(stripe-n+1) &^ (align - 1)
	return rank, target, off, n, g.claim(rank, target, off, n)
}

func (g *gang) claim(rank, target, off, n int) error {
	for _, b := range g.busy {
		if b.rank == rank && b.target == target && b.from < off+n && off < b.to {
			return g.sync()
		}
	}
	return nil
}

func (g *gang) under(rank, target, off, n int) {
	g.busy = append(g.busy, busy{rank, target, off, off + n})
}

// sync synchronizes everything.
func (g *gang) sync() error {
	if err := g.x.WaitAll(g.hs); err != nil {
		return fmt.Errorf("wait for all: %w", err)
	}
	if err := g.region.Sync(extended.All); err != nil {
		return fmt.Errorf("sync region: %w", err)
	}
	for _, f := range g.checks {
		if err := f(); err != nil {
			return err
		}
	}
	g.hs, g.checks, g.busy = g.hs[:0], g.checks[:0], g.busy[:0]
	return nil
}

func (g *gang) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.rnd.Uint32())
	}
	return b
}

// step does one operation.
func (g *gang) step() error {
	x := g.x
	switch op := g.rnd.IntN(14); op {
	case 0, 1, 2: // puts
		rank, target, off, n, err := g.pick(stripe, 1)
		if err != nil {
			return err
		}
		src, to := g.bytes(n), g.where(rank, target, off)
		copy(g.at(rank, target)[off:], src)
		var h extended.Handle
		switch g.rnd.IntN(5) {
		case 0:
			return x.Put(rank, to, src)
		case 1:
			h, err = x.PutNB(rank, to, src)
			clear(src) // it may be reused
		case 2:
			h, err = x.PutBulkNB(rank, to, src)
		case 3:
			err = g.region.PutNBI(rank, to, src)
			clear(src)
		case 4:
			err = g.region.PutBulkNBI(rank, to, src)
		}
		g.hs = append(g.hs, h)
		g.under(rank, target, off, n)
		return err
	case 3, 4: // gets
		rank, target, off, n, err := g.pick(stripe, 1)
		if err != nil {
			return err
		}
		dst, from := make([]byte, n), g.where(rank, target, off)
		want := bytes.Clone(g.at(rank, target)[off : off+n])
		check := func() error {
			if !bytes.Equal(dst, want) {
				return fmt.Errorf("%d bytes at %v of rank %d are others than were put", n, from, rank)
			}
			return nil
		}
		var h extended.Handle
		switch g.rnd.IntN(3) {
		case 0:
			if err := x.Get(rank, from, dst); err != nil {
				return err
			}
			return check()
		case 1:
			h, err = x.GetNB(rank, from, dst)
		case 2:
			err = g.region.GetNBI(rank, from, dst)
		}
		g.hs, g.checks = append(g.hs, h), append(g.checks, check)
		g.under(rank, target, off, n)
		return err
	case 5: // values
		rank, target, off, n, err := g.pick(8, 1)
		if err != nil {
			return err
		}
		var b [8]byte
		copy(b[:], g.bytes(n))
		v, a := binary.LittleEndian.Uint64(b[:]), g.where(rank, target, off)
		copy(g.at(rank, target)[off:], b[:n])
		if g.rnd.IntN(2) == 0 {
			err = x.PutValue(rank, a, v, n)
		} else {
			var h extended.Handle
			if h, err = x.PutValueNB(rank, a, v, n); err == nil {
				err = x.Wait(h)
			}
		}
		if err != nil {
			return err
		}
		if g.rnd.IntN(2) == 0 {
			got, err := x.GetValue(rank, a, n)
			if err != nil || got != v {
				return fmt.Errorf("value of %d bytes at %v of rank %d is %#x, not %#x (%w)", n, a, rank, got, v, err)
			}
			return nil
		}
		got := new(uint64)
		h, err := x.GetValueNB(rank, a, got, n)
		g.hs = append(g.hs, h)
		g.checks = append(g.checks, func() error {
			if *got != v {
				return fmt.Errorf("value of %d bytes at %v of rank %d is %#x, not %#x", n, a, rank, *got, v)
			}
			return nil
		})
		g.under(rank, target, off, n)
		return err
	case 6: // memset
		rank, target, off, n, err := g.pick(stripe, 1)
		if err != nil {
			return err
		}
		v := byte(g.rnd.IntN(3))
		for i := range n {
			g.at(rank, target)[off+i] = v
		}
		if g.rnd.IntN(2) == 0 {
			return x.Memset(rank, g.where(rank, target, off), v, n)
		}
		h, err := x.MemsetNB(rank, g.where(rank, target, off), v, n)
		g.hs = append(g.hs, h)
		g.under(rank, target, off, n)
		return err
	case 7, 8:
		return g.atomic()
	case 9:
		return g.strided()
	case 10:
		return g.vector()
	case 11:
		return g.long()
	case 12: // counters of all
		rank := g.rnd.IntN(g.b.size)
		g.b.added[rank].Add(1)
		switch g.rnd.IntN(3) {
		case 0:
			return x.Signal(rank, g.b.counts[rank], extended.SignalAdd, 1)
		case 1:
			return extended.Add[uint64](x, rank, g.b.counts[rank], 1)
		}
		to, target, off, n, err := g.pick(2000, 1)
		if err != nil {
			return err
		}
		if to != rank {
			g.b.added[rank].Add(^uint64(0))
			g.b.added[to].Add(1)
		}
		src := g.bytes(n)
		copy(g.at(to, target)[off:], src)
		h, err := x.PutSignalNB(to, g.where(to, target, off), src, g.b.counts[to], extended.SignalAdd, 1)
		g.hs = append(g.hs, h)
		return err
	}
	return g.doom()
}

func (g *gang) atomic() error {
	rank, target, off, _, err := g.pick(8, 8)
	if err != nil {
		return err
	}
	a, m := g.where(rank, target, off), g.at(rank, target)[off:]
	old := binary.LittleEndian.Uint64(m)
	if target == inCrooked {
		if _, err := extended.Load[uint64](g.x, rank, a); !errors.Is(err, extended.ErrBadArg) {
			return fmt.Errorf("atomic on memory that is not aligned: %w", err)
		}
		return nil
	}
	v := g.rnd.Uint64()
	var got, after uint64
	switch g.rnd.IntN(6) {
	case 0:
		got, err = extended.FetchAdd[uint64](g.x, rank, a, v)
		after = old + v
	case 1:
		got, err = extended.Swap[uint64](g.x, rank, a, v)
		after = v
	case 2:
		got, _, err = extended.CompareAndSwap[uint64](g.x, rank, a, old, v)
		after = v
	case 3:
		var h extended.Handle
		if h, err = extended.AtomicNB[uint64](g.x, rank, a, &got, extended.AtomicXor, v, 0); err == nil {
			err = g.x.Wait(h)
		}
		after = old ^ v
	case 4:
		if err = extended.AtomicNBI[uint64](g.region, rank, a, &got, extended.AtomicMax, v, 0); err == nil {
			err = g.region.Sync(extended.Gets)
		}
		after = max(old, v)
	case 5:
		var got32 uint32
		got32, err = extended.FetchAdd[uint32](g.x, rank, a, uint32(v))
		got = old&^(1<<32-1) | uint64(got32)
		after = old&^(1<<32-1) | uint64(uint32(old)+uint32(v))
	}
	if err != nil || got != old {
		return fmt.Errorf("atomic at %v of rank %d found %#x, not %#x (%w)", a, rank, got, old, err)
	}
	binary.LittleEndian.PutUint64(m, after)
	return nil
}

// strided puts a box and gets it back.
func (g *gang) strided() error {
	rank, target := g.rnd.IntN(g.b.size), g.rnd.IntN(numTargets)
	elem := 1 + g.rnd.IntN(300)
	counts := []int{1 + g.rnd.IntN(4), 1 + g.rnd.IntN(6)}
	strides := []int{elem*counts[1] + g.rnd.IntN(1000), elem}
	if g.rnd.IntN(2) == 0 {
		strides[1] += g.rnd.IntN(100)
		strides[0] += strides[1] * counts[1]
	}
	span := strides[0]*(counts[0]-1) + strides[1]*(counts[1]-1) + elem
	if span > stripe {
		return nil
	}
	off := g.rnd.IntN(stripe - span + 1)
	if err := g.claim(rank, target, off, span); err != nil {
		return err
	}
	n := elem * counts[0] * counts[1]
	src, dst := g.bytes(n), make([]byte, n)
	local := []int{elem * counts[1], elem}
	for i := range counts[0] {
		for k := range counts[1] {
			copy(g.at(rank, target)[off+i*strides[0]+k*strides[1]:], src[i*local[0]+k*elem:][:elem])
		}
	}
	a := g.where(rank, target, off)
	remote := extended.RemoteBox{Addr: a, Strides: strides}
	put, err := extended.Strided(elem, counts, remote, extended.LocalBox{Mem: src, Strides: local})
	if err != nil {
		return err
	}
	get, err := extended.Strided(elem, counts, remote, extended.LocalBox{Mem: dst, Strides: local})
	if err != nil {
		return err
	}
	if err := g.x.PutShape(rank, put); err != nil {
		return err
	}
	h, err := g.x.GetShapeNB(rank, get)
	if err == nil {
		err = g.x.Wait(h)
	}
	if err == nil && !bytes.Equal(src, dst) {
		err = fmt.Errorf("box at %v of rank %d is another than was put", a, rank)
	}
	return err
}

// vector puts runs to several targets of a rank at once, whatever their kinds.
func (g *gang) vector() error {
	rank := g.rnd.IntN(g.b.size)
	var runs []extended.Extent
	var srcs [][]byte
	for target := range numTargets {
		n := g.rnd.IntN(700)
		off := g.rnd.IntN(stripe - n)
		if err := g.claim(rank, target, off, n); err != nil {
			return err
		}
		src := g.bytes(n)
		copy(g.at(rank, target)[off:], src)
		runs = append(runs, extended.Extent{Addr: g.where(rank, target, off), Len: n})
		srcs = append(srcs, src[:n/2], src[n/2:])
	}
	put, err := extended.Vector(runs, srcs)
	if err != nil {
		return err
	}
	if err := g.x.PutShape(rank, put); err != nil {
		return err
	}
	var dsts [][]byte
	for _, b := range srcs {
		dsts = append(dsts, make([]byte, len(b)))
	}
	get, err := extended.Vector(runs, dsts)
	if err != nil {
		return err
	}
	if err := g.region.GetShapeNBI(rank, get); err != nil {
		return err
	}
	if err := g.region.Sync(extended.Gets); err != nil {
		return err
	}
	if !bytes.Equal(bytes.Join(srcs, nil), bytes.Join(dsts, nil)) {
		return fmt.Errorf("runs of rank %d are others than were put", rank)
	}
	return nil
}

// long sends a long message and waits for the reply, which is long too.
func (g *gang) long() error {
	rank, target, off, n, err := g.pick(stripe, 1)
	if err != nil {
		return err
	}
	src := g.bytes(n)
	copy(g.at(rank, target)[off:], src)
	k := g.me % gangs
	box := g.b.mail[g.x.Rank()]
	lo, hi := am.PackNLA(box.at + segment.NLA(k*1024))
	clear(box.mem[k*1024:][:1024])
	g.got[k].Store(0)
	h := fnv.New32a()
	h.Write(src)
	if err := g.e.RequestLong(rank, hDeposit, g.where(rank, target, off), src, uint32(k), h.Sum32(), lo, hi); err != nil {
		return err
	}
	if err := g.e.Wait(nil, func() bool { return g.got[k].Load() != 0 }); err != nil {
		return err
	}
	if g.got[k].Load() != 1 {
		return fmt.Errorf("rank %d's handler got other bytes than %d at %v", rank, n, g.where(rank, target, off))
	}
	m := min(n, 500)
	if !bytes.Equal(box.mem[k*1024:][:m], src[:m]) {
		return errors.New("the reply brought other bytes")
	}
	return nil
}

// doom uses memory that may be taken back at any moment, or takes back its own.
func (g *gang) doom() error {
	mine := g.b.doomed[g.x.Rank()]
	if g.me%gangs == 0 && g.rnd.IntN(3) == 0 {
		return mine.replace(g)
	}
	rank := g.rnd.IntN(g.b.size)
	if rank == g.x.Rank() {
		return nil
	}
	d := g.b.doomed[rank]
	a, gen, whole := d.look()
	a += segment.NLA(g.me * doomedPart)
	n := 1 + g.rnd.IntN(doomedPart)
	b := g.bytes(n)
	to := a + segment.NLA(g.rnd.IntN(doomedPart-n+1))
	var err error
	switch g.rnd.IntN(5) {
	case 0:
		err = g.x.Put(rank, to, b)
	case 1:
		err = g.x.Get(rank, to, b)
	case 2:
		_, err = extended.FetchAdd[uint64](g.x, rank, a+8*segment.NLA(g.rnd.IntN(doomedPart/8)), 1)
	case 3:
		var h extended.Handle
		if h, err = g.x.PutBulkNB(rank, to, b); err == nil {
			err = g.x.Wait(h)
		}
	case 4:
		r := g.x.NewRegion()
		if err = g.x.BeginRegion(r); err != nil {
			return err
		}
		for k := range 3 {
			err = errors.Join(err, r.GetNBI(rank, to, b[k*n/3:(k+1)*n/3]))
		}
		h, err2 := r.End()
		if err = errors.Join(err, err2); err2 == nil {
			err = errors.Join(err, g.x.Wait(h))
		}
	}
	_, now, _ := d.look()
	switch {
	case err == nil && whole:
		return fmt.Errorf("%d bytes at %v of rank %d were reached after they had been concealed", n, to, rank)
	case err == nil:
		return nil
	case (now != gen || gen%2 == 1) && (errors.Is(err, segment.ErrFault) || errors.Is(err, firehose.ErrNotExposed)):
		return nil
	}
	return fmt.Errorf("memory that is there: %w", err)
}

// replace conceals the memory, looks whether it stays what it is, and exposes
// other memory.
func (d *doomed) replace(g *gang) error {
	d.mu.Lock()
	d.gen++
	a, old := d.at, d.mem
	d.mu.Unlock()
	if err := g.x.Conceal(a); err != nil {
		return err
	}
	snap := bytes.Clone(old)
	d.mu.Lock()
	d.whole = true
	d.mu.Unlock()
	for range 20 { // others go on
		g.e.Poll()
	}
	if !bytes.Equal(old, snap) {
		return fmt.Errorf("memory at %v has changed after it was concealed", a)
	}
	mem := make([]byte, len(old))
	at, err := g.x.Expose(mem, segment.RightsAll, segment.AnyPeer)
	d.mu.Lock()
	d.at, d.mem, d.whole = at, mem, false
	d.gen++
	d.mu.Unlock()
	return err
}

// kinds runs a random program on one rank.
func kinds(n *node, b *board, seed uint64, steps int) error {
	me := n.x.Rank()
	size := b.size * gangs * stripe
	var ts [numTargets]target
	ts[inSegment].at = segment.AttachBase + segment.PageSize
	ts[inSegment].mem = n.x.Direct(me, ts[inSegment].at, uint64(size))
	atu, err := n.end.ATU()
	if err != nil {
		return err
	}
	reg := make([]byte, size)
	r, err := atu.Register(reg, segment.RightsAll, segment.AnyPeer)
	if err != nil {
		return err
	}
	at, _ := r.At(0)
	ts[inRegistered] = target{at, reg}
	mapped, err := n.end.MapMemory(uint64(size))
	if err != nil {
		return err
	}
	for i, mem := range [][]byte{make([]byte, size), mapped[:size], make([]byte, size+3)[3:]} {
		a, err := n.x.Expose(mem, segment.RightsAll, segment.AnyPeer)
		if err != nil {
			return err
		}
		ts[inExposed+i] = target{a, mem}
	}
	b.targets[me] = ts
	box := target{mem: make([]byte, gangs*1024)}
	if box.at, err = n.x.Expose(box.mem, segment.RightsAll, segment.AnyPeer); err != nil {
		return err
	}
	b.mail[me] = box
	d := &doomed{mem: make([]byte, b.size*gangs*doomedPart)}
	if d.at, err = n.x.Expose(d.mem, segment.RightsAll, segment.AnyPeer); err != nil {
		return err
	}
	b.doomed[me] = d
	count := make([]byte, 4096)
	if b.counts[me], err = n.x.Expose(count, segment.RightsAll, segment.AnyPeer); err != nil {
		return err
	}
	if err := n.meet(); err != nil {
		return err
	}
	left := atomic.Int32{}
	left.Store(gangs)
	var failed [gangs]error
	for k := range gangs {
		g := &gang{
			node: n, b: b, me: me*gangs + k, rnd: rand.New(rand.NewPCG(seed, uint64(me*gangs+k))),
			region: n.x.NewRegion(),
		}
		for range b.size * numTargets {
			g.model = append(g.model, make([]byte, stripe))
		}
		b.models[g.me] = g.model
		conduits.Go(n.end, func() {
			for i := 0; i < steps && failed[k] == nil; i++ {
				if err := g.step(); err != nil {
					failed[k] = fmt.Errorf("goroutine %d, step %d: %w", k, i, err)
				}
			}
			if failed[k] == nil {
				failed[k] = g.sync()
			}
			if failed[k] != nil {
				n.end.Fail(failed[k])
			}
			left.Add(-1)
			n.end.Wake(me)
		})
	}
	err = n.e.Wait(nil, func() bool { return left.Load() == 0 })
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if err := n.meet(); err != nil {
		return err
	}
	for who := range b.size * gangs {
		for k, ts := range b.targets[me] {
			if !bytes.Equal(ts.mem[who*stripe:][:stripe], b.models[who][me*numTargets+k]) {
				return fmt.Errorf("target %d: stripe of goroutine %d of rank %d is not what it put", k, who%gangs, who/gangs)
			}
		}
	}
	if v, _, err := n.x.TestUntil(b.counts[me], extended.Eq, 0); err != nil || v != b.added[me].Load() {
		return fmt.Errorf("the counter is %d, not %d (%w)", v, b.added[me].Load(), err)
	}
	if v, err := n.x.WaitUntil(b.counts[me], extended.Ge, b.added[me].Load()); err != nil {
		return fmt.Errorf("counter %d: %w", v, err)
	}
	var s firehose.Stats
	n.cache.Stats(&s)
	if s.Violations != 0 {
		return fmt.Errorf("%d violations", s.Violations)
	}
	if n.x.Outstanding() != 0 {
		return fmt.Errorf("%d handles are outstanding", n.x.Outstanding())
	}
	if err := n.meet(); err != nil {
		return err
	}
	if err := n.x.Conceal(ts[inMapped].at); err != nil {
		return err
	}
	if err := atu.Deregister(r); err != nil {
		return err
	}
	return n.end.UnmapMemory(mapped)
}

// handlers answer long messages by long messages.
func (n *node) handlers() []am.Entry {
	return []am.Entry{
		{Index: hDeposit, Name: "deposit", Args: 4, Kinds: am.Long | am.Request, Fn: func(t *am.Token, args []uint32, payload []byte) {
			h := fnv.New32a()
			h.Write(payload)
			ok := uint32(1)
			if h.Sum32() != args[1] || t.Kind() != am.Long|am.Request || t.To() == 0 {
				ok = 2
			}
			_ = t.ReplyLong(hReceipt, am.UnpackNLA(args[2], args[3]), payload[:min(len(payload), 500)], args[0], ok)
		}},
		{Index: hReceipt, Name: "receipt", Args: 2, Kinds: am.Long | am.Reply, Fn: func(t *am.Token, args []uint32, _ []byte) {
			n.got[args[0]].Store(args[1])
			n.end.Wake(n.end.Rank())
		}},
	}
}

func runKinds(t *testing.T, w world, size int, seed uint64, steps int, c extended.Config) {
	t.Helper()
	b := &board{
		size: size, targets: make([][numTargets]target, size), mail: make([]target, size), models: make([][][]byte, size*gangs),
		doomed: make([]*doomed, size), counts: make([]segment.NLA, size), added: make([]atomic.Uint64, size),
	}
	s := tiny(size)
	s.segment = uint64(segment.PageSize + size*gangs*stripe)
	s.config = c
	s.handlers = (*node).handlers
	job(t, w.open(t, size, seed), s, func(n *node) error { return kinds(n, b, seed, steps) })
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

// TestKinds runs random programs on every conduit by every strategy.
func TestKinds(t *testing.T) {
	for _, w := range worlds {
		for s := firehose.Adaptive; s <= firehose.AlwaysRegister; s++ {
			t.Run(fmt.Sprintf("%s/%v", w.name, s), func(t *testing.T) {
				seeds, steps := uint64(2), 150
				switch {
				case testing.Short() || conc.Race:
					seeds, steps = 1, 60
				case w.name == "sim":
					seeds = 4
				}
				for seed := range seeds {
					c := extended.Config{Strategy: s, BounceMax: 1500, OnceMin: 9000, AlwaysHandle: seed%2 == 1}
					runKinds(t, w, 3, seed, steps, c)
				}
			})
		}
	}
}
