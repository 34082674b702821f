package shm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// way is one in which registered memory is reached.
type way struct {
	form
	ask   bool // ranks may not reach into each other's processes
	blind bool // nor see each other's tables
	maps  bool // the memory is MapMemory's
}

func ways() []way {
	var l []way
	for _, fm := range forms {
		for _, maps := range []bool{false, true} {
			w := way{form: fm, maps: maps}
			w.name += "/private"
			if maps {
				w.name = fm.name + "/mapped"
			}
			l = append(l, w)
			if fm.mapped && !maps {
				w.ask, w.name = true, w.name+"/asked"
				l = append(l, w)
			}
			if fm.mapped {
				w.ask, w.blind, w.name = true, true, w.name+"/blind"
				l = append(l, w)
			}
		}
	}
	return l
}

func eachWay(t *testing.T, f func(t *testing.T, w way)) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) { f(t, w) })
	}
}

// completion has the arguments of a call of Complete.
type completion struct {
	ev    conduits.Event
	value uint64
	err   error
}

// node is a rank of a test: its endpoint and what arrives there.
type node struct {
	*Endpoint
	got  func(m *conduits.Message)
	done map[uint64]completion
	next uint64
}

func (n *node) Receive(m *conduits.Message) {
	if n.got != nil {
		n.got(m)
	}
}

func (n *node) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	c, again := n.done[cookie]
	if again && c.ev&ev != 0 {
		panic(fmt.Sprintf("%v is reported twice", ev))
	}
	n.done[cookie] = completion{c.ev | ev, value, errors.Join(c.err, err)}
}

// nodes opens and attaches n ranks.
func (w way) nodes(t tb, n int) []*node {
	eps := w.open(t, n, conduits.Config{})
	l := make([]*node, n)
	for r, e := range eps {
		e.noVM = w.ask
		l[r] = &node{Endpoint: e, done: map[uint64]completion{}}
	}
	inParallel(t, n, func(r int) error {
		return eps[r].Attach(conduits.AttachConfig{Size: page, Receiver: l[r]})
	})
	for _, e := range eps {
		for r := range n {
			if w.blind && r != e.rank {
				p := e.peer(r)
				p.reader.Directory = new(segment.Directory)
				p.blind.Store(true)
			}
		}
	}
	watch(t, eps)
	return l
}

// memory is n bytes of the kind that w is about.
func (w way) memory(t tb, e *Endpoint, n int) []byte {
	if !w.maps {
		return make([]byte, n)
	}
	m, err := e.MapMemory(uint64(n))
	if err != nil {
		t.Fatal(err)
	}
	return m[:n]
}

// register makes mem accessible and says where.
func register(t tb, e *Endpoint, mem []byte, rights segment.Rights, peer int) (segment.NLA, segment.Registration) {
	u, err := e.ATU()
	if err != nil {
		t.Fatal(err)
	}
	r, err := u.Register(mem, rights, peer)
	if err != nil {
		t.Fatal(err)
	}
	a, n := r.At(0)
	if n != uint64(len(mem)) {
		t.Fatalf("%d of %d bytes have consecutive addresses", n, len(mem))
	}
	return a, r
}

func deregister(t tb, e *Endpoint, r segment.Registration) {
	u, err := e.ATU()
	if err == nil {
		err = u.Deregister(r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// await polls all ranks until what cookie of n stands for has completed as wanted.
func (n *node) await(all []*node, cookie uint64, ev, want conduits.Event, err error) completion {
	if err != nil {
		return completion{ev, 0, err}
	}
	for (n.done[cookie].ev|ev)&want != want {
		for _, o := range all {
			o.Poll()
		}
	}
	c := n.done[cookie]
	c.ev |= ev
	return c
}

func (n *node) put(all []*node, dst int, to segment.NLA, b []byte) error {
	n.next++
	ev, err := post.Put(n, dst, to, b, done, n.next)
	return n.await(all, n.next, ev, done, err).err
}

func (n *node) get(all []*node, b []byte, src int, from segment.NLA) error {
	n.next++
	ev, err := post.Get(n, b, src, from, conduits.RemoteDone, n.next)
	return n.await(all, n.next, ev, conduits.RemoteDone, err).err
}

func (n *node) word(all []*node, dst int, to segment.NLA, v uint64, size int) error {
	n.next++
	ev, err := post.PutWord(n, dst, to, v, size, done, n.next)
	return n.await(all, n.next, ev, done, err).err
}

func (n *node) atomic(all []*node, dst int, to segment.NLA, op conduits.AtomicOp, typ conduits.AtomicType, a, b uint64) (uint64, error) {
	n.next++
	v, ev, err := post.Atomic(n, dst, to, op, typ, a, b, n.next)
	c := n.await(all, n.next, ev, conduits.RemoteDone, err)
	if n.done[n.next].ev != 0 {
		v = c.value
	}
	return v, c.err
}

// long sends a long message and reports whether it was delivered.
func (n *node) long(t tb, all []*node, dst int, to segment.NLA, b []byte) (delivered bool) {
	n.next++
	all[dst].got = func(m *conduits.Message) {
		if delivered || m.Src != n.Rank() || m.To != to || !bytes.Equal(m.Payload, b) || m.Words[0] != 77 {
			t.Errorf("a long message of %d bytes to %v has become %d bytes at %v from rank %d, words %v", len(b), to, len(m.Payload), m.To, m.Src, m.Words)
		}
		delivered = true
	}
	defer func() { all[dst].got = nil }()
	s, ev, st := n.ReservePut(dst, conduits.Request, 1, to, b, n.next)
	for ; st == conduits.NoCredit; s, ev, st = n.ReservePut(dst, conduits.Request, 1, to, b, n.next) {
		all[dst].Poll()
	}
	s.Words[0] = 77
	n.Commit(dst, conduits.Request, s, 1, 0)
	n.await(all, n.next, ev, conduits.SourceDone, nil)
	// What has been sent after it comes after it.
	n.Send(dst, conduits.Request, 2, nil)
	flag := false
	before := all[dst].got
	all[dst].got = func(m *conduits.Message) {
		if m.Tag == 2 {
			flag = true
			return
		}
		before(m)
	}
	for !flag {
		for _, o := range all {
			o.Poll()
		}
	}
	return delivered
}

// TestLongOverOthers: a long message waits at its receiver, while the memory that it
// was put to is withdrawn and the addresses become other memory's: it is not
// delivered. One to memory that stays is, whatever else has been registered since.
func TestLongOverOthers(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		all := w.nodes(t, 2)
		a, b := all[0], all[1]
		const n = 2 * page // single pages have other addresses, which take longer to come round
		old, stays, others := w.memory(t, b.Endpoint, n), w.memory(t, b.Endpoint, n), w.memory(t, b.Endpoint, n)
		at, region := register(t, b.Endpoint, old, segment.RightsAll, segment.AnyPeer)
		kept, _ := register(t, b.Endpoint, stays, segment.RightsAll, segment.AnyPeer)
		got := map[conduits.Tag][]byte{}
		b.got = func(m *conduits.Message) {
			got[m.Tag] = slices.Clone(m.Payload)
			clear(m.Payload) // it may
		}
		send := func(tags ...conduits.Tag) {
			for _, tag := range tags {
				to := at
				if tag == 2 {
					to = kept
				}
				s, _, st := a.ReservePut(1, conduits.Request, 1, to, bytes.Repeat([]byte{byte(tag)}, n), uint64(tag))
				if st != conduits.Ready {
					t.Fatal(st)
				}
				a.Commit(1, conduits.Request, s, tag, 0)
			}
			for a.desk.open.Load() > 0 {
				b.Poll() // answers; a tells of it
				a.Poll()
			}
		}
		send(1, 2)
		if len(got) > 0 {
			t.Fatalf("delivered already: %d", len(got))
		}
		again := segment.NLA(0)
		for i := 0; again != at; i++ {
			if i > 10_000 {
				t.Fatal("the addresses are not given out again")
			}
			deregister(t, b.Endpoint, region)
			again, region = register(t, b.Endpoint, others, segment.RightsAll, segment.AnyPeer)
		}
		for i := range others {
			others[i] = 55
		}
		b.Poll()
		if p, ok := got[1]; ok {
			t.Errorf("delivered with %d bytes of other memory: %d ...", len(p), p[0])
		}
		if others[0] != 55 {
			t.Error("the handler had other memory")
		}
		if !bytes.Equal(got[2], bytes.Repeat([]byte{2}, n)) {
			t.Error("what went to memory that stays was not delivered")
		}
		var s conduits.Stats
		if b.Stats(&s); s.Faults != 1 {
			t.Errorf("%d faults, want 1", s.Faults)
		}
		send(3)
		b.Poll()
		if !bytes.Equal(got[3], bytes.Repeat([]byte{3}, n)) {
			t.Error("what was sent to the addresses' new memory was not delivered")
		}
	})
}

// TestRegistered: what ranks do to memory that one of them has registered is what
// they would do to a plain array, and what is not permitted is refused.
func TestRegistered(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		rapid.Check(t, func(t *rapid.T) { w.model(t) })
	})
}

// area is registered memory and what it should hold.
type area struct {
	owner, peer int
	rights      segment.Rights
	at          segment.NLA
	mem, want   []byte
	region      segment.Registration
	gone        bool
}

func (w way) model(t *rapid.T) {
	all := w.nodes(t, 3)
	var areas []*area
	fill := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	draw := func(name string, max int) int { return rapid.IntRange(0, max).Draw(t, name) }
	add := func() {
		sizes := []int{1, 8, 100, page, page + 1, 3*page - 5, 20 * page}
		n := sizes[draw("size", len(sizes)-1)]
		x := &area{
			owner: draw("owner", 2), peer: draw("peer", 3) - 1,
			rights: segment.Rights(1 + draw("rights", int(segment.RightsAll)-1)),
		}
		off := draw("offset", 70)
		x.mem = w.memory(t, all[x.owner].Endpoint, n+off)[off:]
		for i := range x.mem {
			x.mem[i] = byte(fill.Uint32())
		}
		x.want = slices.Clone(x.mem)
		x.at, x.region = register(t, all[x.owner].Endpoint, x.mem, x.rights, x.peer)
		areas = append(areas, x)
	}
	add()
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		x := areas[draw("area", len(areas)-1)]
		who := all[draw("who", 2)]
		from := draw("from", len(x.mem))
		n := draw("bytes", len(x.mem)-from+1) // one too many now and then
		at := x.at + segment.NLA(from)
		allowed := func(need segment.Rights, n int) bool {
			return !x.gone && from+n <= len(x.mem) && x.rights&need == need && (x.peer < 0 || x.peer == who.Rank())
		}
		check := func(err error, allowed bool) {
			switch {
			case allowed && err != nil:
				t.Fatalf("%d bytes at %v (%d of %+v) by rank %d: %v", n, at, from, x, who.Rank(), err)
			case !allowed && conduits.CheckRemote(who, "", x.owner, at, uint64(n)) != nil:
				if !isBadArg(err) {
					t.Fatalf("%d bytes at %v: %v", n, at, err)
				}
			case !allowed && !errors.Is(err, segment.ErrFault):
				t.Fatalf("%d bytes at %v (%d of %d, %v for %d) by rank %d: no fault, but %v", n, at, from, len(x.mem), x.rights, x.peer, who.Rank(), err)
			}
		}
		// What is refused has been done in part, perhaps, if it took several questions.
		settle := func(ok bool, b []byte) {
			if !ok && (!w.blind || from > len(x.mem)) {
				return
			}
			for i := from; i < min(from+len(b), len(x.mem)); i++ {
				if ok || x.mem[i] == b[i-from] {
					x.want[i] = b[i-from]
				}
			}
		}
		word := func(size int) int {
			n = size
			from = int((uint64(at)+uint64(size)-1)&^uint64(size-1) - uint64(x.at))
			at = x.at + segment.NLA(from)
			return size
		}
		switch do := rapid.SampledFrom([]string{"add", "remove", "put", "get", "put", "get", "word", "atomic", "long"}).Draw(t, "do"); do {
		case "add":
			if len(areas) < 6 {
				add()
			}
		case "remove":
			if !x.gone {
				deregister(t, all[x.owner].Endpoint, x.region)
				x.gone = true
			}
		case "put":
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(fill.Uint32())
			}
			if n == 0 {
				continue
			}
			ok := allowed(segment.RightWrite, n)
			check(who.put(all, x.owner, at, b), ok)
			settle(ok, b)
		case "get":
			b := make([]byte, n)
			if n == 0 {
				continue
			}
			ok := allowed(segment.RightRead, n)
			check(who.get(all, b, x.owner, at), ok)
			if ok && !bytes.Equal(b, x.want[from:from+n]) {
				t.Fatalf("got %d bytes at %d of %d: not what was put", n, from, len(x.mem))
			}
		case "word":
			size := word(1 << draw("log", 3))
			v := fill.Uint64()
			ok := allowed(segment.RightWrite, size)
			check(who.word(all, x.owner, at, v, size), ok)
			if ok {
				for i := range size {
					x.want[from+i] = byte(v >> (8 * i))
				}
			}
		case "atomic":
			size := word(8)
			ok := allowed(segment.RightAtomic, size)
			old, err := who.atomic(all, x.owner, at, conduits.AtomicAdd, conduits.Uint64, 3, 0)
			check(err, ok)
			if ok {
				var v uint64
				for i := range 8 {
					v |= uint64(x.want[from+i]) << (8 * i)
				}
				if old != v {
					t.Fatalf("the old value is %#x, want %#x", old, v)
				}
				for i := range 8 {
					x.want[from+i] = byte((v + 3) >> (8 * i))
				}
			}
		case "long":
			if n = max(n, 1); conduits.CheckRemote(who, "", x.owner, at, uint64(n)) != nil {
				break
			}
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(fill.Uint32())
			}
			ok := allowed(segment.RightWrite, n)
			if delivered := who.long(t, all, x.owner, at, b); delivered != ok {
				t.Fatalf("a long message of %d bytes to %d of %d: delivered %v, want %v", n, from, len(x.mem), delivered, ok)
			}
			settle(ok, b)
		}
	}
	for _, x := range areas {
		if !bytes.Equal(x.mem, x.want) {
			t.Fatalf("memory of rank %d is not what was put", x.owner)
		}
	}
	for _, n := range all {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
