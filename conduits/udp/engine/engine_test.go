package engine_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

var flagSeeds = flag.Int("engine.seeds", 50, "how many seeds the randomized tests run with")

// memory is a segment that is granted to all.
type memory struct {
	b      []byte
	rights segment.Rights
	atu    *segment.ATU // nil: nothing is registered
	alias  func(a segment.NLA) segment.NLA
}

func (m *memory) Access(src int, a segment.NLA, n uint64, need segment.Rights) ([]byte, *segment.Unit, error) {
	if m.alias != nil {
		a = m.alias(a)
	}
	return conduits.Admit(m.atu, src, a, n, need)
}

func (m *memory) Registrations() uint64 {
	if m.atu == nil {
		return 0
	}
	return m.atu.Registrations()
}

func (m *memory) Since(a segment.NLA, n, count uint64) bool {
	if m.alias != nil {
		a = m.alias(a)
	}
	return m.atu.Since(a, n, count)
}

func (m *memory) Target(_ int, a segment.NLA, n uint64, need segment.Rights) ([]byte, bool) {
	off := uint64(a - segment.AttachBase)
	if off > uint64(len(m.b)) || uint64(len(m.b))-off < n || m.rights&need != need {
		return nil, false
	}
	return m.b[off : off+n : off+n], true
}

func (m *memory) Atomic(src int, a segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, x, y uint64) (uint64, error) {
	b, ok := m.Target(src, a, uint64(t.Size()), segment.RightAtomic)
	if !ok || t.Size() != 8 {
		var u *segment.Unit
		var err error
		if b, u, err = m.Access(src, a, 8, segment.RightAtomic); err != nil {
			return 0, err
		}
		defer u.Exit()
	}
	old := binary.NativeEndian.Uint64(b)
	if v, write := conduits.Combine(op, t, old, x, y); write {
		binary.NativeEndian.PutUint64(b, v)
	}
	return old, nil
}

func at(off int) segment.NLA { return segment.AttachBase + segment.NLA(off) }

// job is some engines on a simulated network.
type job struct {
	t     *testing.T
	nodes []*node
	ended int
	adds  map[int]uint64 // to the counter of each rank
	check []func() error // when all is over
}

// node is a rank of a job.
type node struct {
	*engine.Engine
	j     *job
	rank  int
	s     *sim.Socket
	mem   memory
	rnd   *rand.Rand
	buf   []byte
	ended bool

	hold    bool // no requests are consumed
	message func(m *engine.Message)
	done    func(c engine.Completion)
	more    func() // called in every step
	dead    []int
}

// config is for round trips of some microseconds.
func config(rank, size int) engine.Config {
	return engine.Config{
		Rank: rank, Size: size, Epoch: uint32(rank) + 7,
		InitialRTT: 50 * time.Microsecond, Granularity: 10 * time.Microsecond,
		AckDelay: 5 * time.Microsecond, DeadTime: time.Second,
	}
}

// beforeWrap, seed by seed, is the first of the numbers of a job: 0, or so far
// below 2^32 that the low halves which datagrams carry wrap early or later.
func beforeWrap(seed uint64) uint64 {
	return []uint64{0, 1<<32 - 1, 1<<32 - 20, 3<<32 - 150}[seed%4]
}

// run runs body as each of n ranks; they serve each other until all have
// returned and nothing is left to be sent.
func run(t *testing.T, n int, seed uint64, f sim.Faults, adjust func(c *engine.Config), body func(n *node)) *job {
	t.Helper()
	sj, err := sim.New(n, sim.Config{Seed: seed, Faults: f, Limit: 200 * sim.Second})
	if err != nil {
		t.Fatal(err)
	}
	j := &job{t: t, adds: map[int]uint64{}}
	for r := range n {
		c := config(r, n)
		if adjust != nil {
			adjust(&c)
		}
		nd := &node{j: j, rank: r, s: sj.Endpoint(r).Socket(), rnd: rand.New(rand.NewPCG(seed, uint64(r))), buf: make([]byte, sim.MaxDatagram)}
		nd.mem.rights = segment.RightsAll
		nd.mem.b = make([]byte, partBase+n*partSize)
		fill(nd.mem.b[constant:partBase], r)
		c.Memory = &nd.mem
		if nd.Engine, err = engine.New(c); err != nil {
			t.Fatal(err)
		}
		nd.StartAt(beforeWrap(seed))
		j.nodes = append(j.nodes, nd)
	}
	conduits.Run(sj.Endpoints(), func(i int) {
		nd := j.nodes[i]
		defer func() {
			if !nd.ended {
				nd.end()
			}
		}()
		body(nd)
		nd.end()
		nd.wait("the others", func() bool { return j.ended == n && j.quiet() })
		for _, o := range j.nodes {
			o.s.Wake()
		}
	})
	if j.ended != n {
		t.Fatalf("seed %d: %d of %d ranks came to an end", seed, j.ended, n)
	}
	for _, f := range j.check {
		if err := f(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	return j
}

func (j *job) quiet() bool {
	for _, n := range j.nodes {
		if !n.Quiet() {
			return false
		}
	}
	return true
}

func (n *node) end() {
	n.ended = true
	n.j.ended++
	for _, o := range n.j.nodes {
		o.s.Wake()
	}
}

// step does what there is to do and reports whether there was anything.
func (n *node) step() bool {
	busy := false
	for {
		l, src, ok := n.s.Recv(n.buf)
		if !ok {
			break
		}
		n.Receive(n.s.Now(), src, n.buf[:l])
		busy = true
	}
	n.Advance(n.s.Now())
	for c := conduits.Class(conduits.NumClasses); c > 0; c-- {
		for c-1 == conduits.Reply || !n.hold {
			m := n.NextMessage(c - 1)
			if m == nil {
				break
			}
			if n.message != nil {
				n.message(m)
			}
			n.Release(m)
			busy = true
		}
	}
	if n.more != nil {
		n.more()
	}
	for c, ok := n.NextCompletion(); ok; c, ok = n.NextCompletion() {
		if n.done != nil {
			n.done(c)
		}
		busy = true
	}
	for r, ok := n.NextDead(); ok; r, ok = n.NextDead() {
		n.dead = append(n.dead, r)
		busy = true
	}
	for {
		dst, l, ok := n.Next(n.s.Now(), n.buf)
		if !ok {
			return busy
		}
		if err := n.s.Send(dst, n.buf[:l]); err != nil {
			n.j.t.Error(err)
		}
		busy = true
	}
}

// wait serves until cond holds.
func (n *node) wait(what string, cond func() bool) {
	for !cond() {
		if n.step() {
			continue
		}
		if cond() {
			return
		}
		if n.s.Endpoint().Err() != nil {
			n.j.t.Errorf("rank %d at %v: waiting for %s: %v; %+v", n.rank, n.s.Now(), what, n.s.Endpoint().Err(), n.Stats())
			return
		}
		until, ok := n.Deadline()
		if !ok {
			until = 0
		}
		n.s.Wait(until)
	}
}

// send waits for credit.
func (n *node) send(dst int, c conduits.Class, tag int, words []uint32, payload []byte) {
	n.wait("credit", func() bool { return n.Reserve(dst, c) == conduits.Ready })
	n.Send(dst, c, conduits.Tag(tag), words, payload)
}

func fill(b []byte, key int) []byte {
	r := rand.New(rand.NewPCG(uint64(key), 99))
	for i := 0; i < len(b); i += 8 {
		var w [8]byte
		binary.NativeEndian.PutUint64(w[:], r.Uint64())
		copy(b[i:], w[:])
	}
	return b
}

// weather is everything at once.
func weather() sim.Faults {
	return sim.Faults{
		Drop: 0.2, Duplicate: 0.1, Delay: 0.5, Corrupt: 0.05, Truncate: 0.02, DelayBy: 30 * sim.Microsecond, Buffer: 1 << 18,
		Jitter: sim.Microsecond,
	}
}

// TestModel has all ranks do everything at random over a bad network, and
// compares with what must come of it.
func TestModel(t *testing.T) {
	var sum engine.Stats
	for seed := range uint64(*flagSeeds) {
		n := 2 + int(seed%4)
		f := weather()
		if seed%5 == 4 {
			f = sim.Faults{}
		}
		j := run(t, n, seed+1, f, func(c *engine.Config) {
			c.Credits = []int{1, 3, 64}[seed%3]
			c.Datagram = []int{256, 1400, 9000}[seed/3%3]
			c.Window = []int{64, 512}[seed%2]
		}, func(nd *node) { exercise(nd, 60) })
		for _, nd := range j.nodes {
			s := nd.Stats()
			sum.Again += s.Again
			nd.Again(func(rank int, n uint64) {
				if rank >= len(j.nodes) {
					t.Errorf("seed %d: rank %d has sent to rank %d again", seed, nd.rank, rank)
				}
				s.Again -= n
			})
			if s.Again != 0 {
				t.Errorf("seed %d: rank %d has sent %d datagrams again, and to no peer", seed, nd.rank, s.Again)
			}
			sum.Twice += s.Twice
			sum.Malformed += s.Malformed
			sum.Timeouts += s.Timeouts
			sum.Sent += s.Sent
			if s.Refused+s.Faults+s.Stale != 0 || s.Deaths != 0 {
				t.Fatalf("seed %d: rank %d: %+v", seed, nd.rank, s)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%+v", sum)
	if sum.Again == 0 || sum.Twice == 0 || sum.Malformed == 0 || sum.Timeouts == 0 {
		t.Errorf("some misfortune never happened: %+v", sum)
	}
}

// Layout of a segment: a counter, then a part that no operation changes, then for each
// rank a part that it puts to, piece after piece.
const (
	constant     = 64
	constantSize = 10000
	partBase     = constant + constantSize
	partSize     = 200000
)

func exercise(n *node, count int) {
	size := len(n.j.nodes)
	want := make([][]byte, size) // of this rank's part at each
	used := make([]int, size)
	requests, replies := 0, 0
	seen := map[[2]int]int{} // times that a request (source, tag) came
	shape := func(src, tag int) (words, payload int) {
		r := rand.New(rand.NewPCG(uint64(src), uint64(tag)))
		words, payload = r.IntN(conduits.MaxWords+1), 0
		switch r.IntN(3) {
		case 1:
			payload = 1 + r.IntN(200)
		case 2:
			payload = 1 + r.IntN(4096)
		}
		return words, payload
	}
	type answer struct{ dst, tag int }
	var answers []answer
	n.message = func(m *engine.Message) {
		tag := int(m.Tag)
		if m.Class == conduits.Reply {
			replies++
			return
		}
		if seen[[2]int{m.Src, tag}]++; seen[[2]int{m.Src, tag}] > 1 {
			n.j.t.Errorf("rank %d: request %d of rank %d came again", n.rank, tag, m.Src)
		}
		words, payload := shape(m.Src, tag)
		if m.To != 0 {
			payload = len(m.Payload)
		}
		if len(m.Words) != words || len(m.Payload) != payload || m.Payload != nil && string(m.Payload) != string(fill(make([]byte, payload), tag)) {
			n.j.t.Errorf("rank %d: request %d of rank %d: %d words, %d bytes; want %d, %d", n.rank, tag, m.Src, len(m.Words), len(m.Payload), words, payload)
		}
		for i, w := range m.Words {
			if w != uint32(tag*100+i) {
				n.j.t.Errorf("rank %d: request %d: word %d is %d", n.rank, tag, i, w)
			}
		}
		answers = append(answers, answer{m.Src, tag})
	}
	type pending struct{ end func(c engine.Completion) }
	open := map[uint64]pending{}
	cookie := uint64(0)
	begin := func(end func(c engine.Completion)) uint64 {
		cookie++
		open[cookie] = pending{end}
		return cookie
	}
	n.done = func(c engine.Completion) {
		o, ok := open[c.Cookie]
		if !ok || c.Err != nil {
			n.j.t.Errorf("rank %d: completion %+v, known %v", n.rank, c, ok)
			return
		}
		delete(open, c.Cookie)
		if o.end != nil {
			o.end(c)
		}
	}
	const both = conduits.SourceDone | conduits.RemoteDone
	place := func(dst, l int) (int, []byte, bool) {
		if used[dst]+l > partSize {
			return 0, nil, false
		}
		off := used[dst]
		used[dst] += l
		if want[dst] == nil {
			want[dst] = make([]byte, partSize)
		}
		return partBase + n.rank*partSize + off, want[dst][off : off+l], true
	}
	reply := func() {
		for len(answers) > 0 && n.Reserve(answers[0].dst, conduits.Reply) == conduits.Ready {
			a := answers[0]
			answers = answers[1:]
			n.Send(a.dst, conduits.Reply, conduits.Tag(a.tag), nil, nil)
		}
	}
	n.more = reply
	for i := range count {
		dst := n.rnd.IntN(size)
		switch n.rnd.IntN(6) {
		case 0, 1:
			words, payload := shape(n.rank, i)
			w := make([]uint32, words)
			for k := range w {
				w[k] = uint32(i*100 + k)
			}
			n.wait("credit", func() bool { return n.Reserve(dst, conduits.Request) == conduits.Ready })
			n.Send(dst, conduits.Request, conduits.Tag(i), w, fill(make([]byte, payload), i))
			requests++
		case 2:
			words, _ := shape(n.rank, i)
			w := make([]uint32, words)
			for k := range w {
				w[k] = uint32(i*100 + k)
			}
			off, b, ok := place(dst, n.rnd.IntN(9000)/(1+2*n.rnd.IntN(2)))
			if !ok {
				continue
			}
			n.wait("credit", func() bool { return n.Reserve(dst, conduits.Request) == conduits.Ready })
			src := bytes.Clone(fill(b, i))
			if lent := n.Copy(src); lent != nil && i%2 == 0 {
				clear(src)
				n.SendCopy(dst, conduits.Request, conduits.Tag(i), w, at(off), lent)
				requests++
				continue
			} else if lent != nil {
				n.Uncopy(lent)
			}
			c := begin(func(engine.Completion) { clear(src) })
			if n.SendLong(dst, conduits.Request, conduits.Tag(i), w, at(off), src, c) != 0 {
				clear(src)
				delete(open, c)
			}
			requests++
		case 3:
			off, b, ok := place(dst, n.rnd.IntN(20000)/(1+99*n.rnd.IntN(2)))
			if !ok {
				continue
			}
			src := append([]byte(nil), fill(b, i)...)
			c := begin(func(engine.Completion) { clear(src) })
			ev, err := n.Put(dst, at(off), src, both, c)
			if err != nil {
				n.j.t.Error(err)
			}
			if ev == both {
				delete(open, c)
			}
			if ev&conduits.SourceDone != 0 {
				clear(src)
			}
		case 4:
			l := 1 + n.rnd.IntN(constantSize/(1+99*n.rnd.IntN(2)))
			off := n.rnd.IntN(constantSize - l + 1)
			b := make([]byte, l)
			c := begin(func(engine.Completion) {
				if string(b) != string(fill(make([]byte, constantSize), dst)[off:off+l]) {
					n.j.t.Errorf("rank %d: get of %d bytes at %d from rank %d: wrong contents", n.rank, l, off, dst)
				}
			})
			if _, err := n.Get(b, dst, at(constant+off), conduits.RemoteDone, c); err != nil {
				n.j.t.Error(err)
			}
		case 5:
			n.j.adds[dst]++
			c := begin(nil)
			if err := n.Atomic(dst, at(8), conduits.AtomicAdd, conduits.Uint64, 1, 0, c); err != nil {
				n.j.t.Error(err)
			}
		}
		if n.rnd.IntN(3) == 0 {
			n.step()
		}
	}
	n.wait("replies and completions", func() bool { return replies == requests && len(open) == 0 })
	for dst, w := range want {
		if w != nil {
			n.j.check = append(n.j.check, func() error {
				if have := n.j.nodes[dst].mem.b[partBase+n.rank*partSize:][:partSize]; string(have) != string(w) {
					return fmt.Errorf("what rank %d put to rank %d is not there", n.rank, dst)
				}
				return nil
			})
		}
	}
	n.j.check = append(n.j.check, func() error {
		b := n.mem.b
		if string(b[constant:partBase]) != string(fill(make([]byte, constantSize), n.rank)) {
			return fmt.Errorf("rank %d: what nobody writes has changed", n.rank)
		}
		if have := binary.NativeEndian.Uint64(b[8:]); have != n.j.adds[n.rank] {
			return fmt.Errorf("rank %d: counter is %d, want %d", n.rank, have, n.j.adds[n.rank])
		}
		return nil
	})
}
