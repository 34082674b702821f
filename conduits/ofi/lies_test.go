//go:build ofi && cgo

package ofi

import (
	"bytes"
	"slices"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// asked is an Owner that notes what is asked of it.
type asked struct {
	ear
	needs []segment.Rights
	of    []int
	no    error // its answer
}

// Access notes which rank asks for which right.
func (a *asked) Access(src int, _ segment.NLA, n uint64, need segment.Rights, f func([]byte)) error {
	a.of, a.needs = append(a.of, src), append(a.needs, need)
	if a.no == nil {
		f(make([]byte, n))
	}
	return a.no
}

// alone is rank 0 of a job of 4 without a provider, which does not fail: it takes in what it is given, and sends
// nothing.
func alone() (*transport, *asked) {
	o := &asked{ear: ear{}}
	seats, err := adapt.Seats(Name, 4, conduits.Config{})
	if err != nil {
		panic(err)
	}
	t := &transport{
		Seat: seats[0], fail: func(int, error) {}, size: 4, id: 7, medium: 100, owner: o, peers: make([]*peer, 4),
		slots: make([]slot, 1), timed: true, watching: true, ep: &fabric.Endpoint{Info: &fabric.Info{}},
	}
	return t, o
}

// bytesOf is a record with its data, as it travels.
func bytesOf(r record, data []byte) []byte {
	b := make([]byte, recordBytes+round(len(data)))
	r.encode(b)
	copy(b[recordBytes:], data)
	return b
}

// TestAnswerLies: answers that the peer cannot give, since the operation is another one's, or over,
// or asked for less, or for something else, are refused, and move nothing; those that it can
// give end the operation.
func TestAnswerLies(t *testing.T) {
	const at = segment.AttachBase
	data := bytes.Repeat([]byte{0xee}, 64)
	got := func(off, n int) []byte {
		return bytesOf(record{kind: kindGot, length: uint32(n), addr: uint64(at) + uint64(off)}, data[:n])
	}
	ended := func(op, high uint32) []byte { return bytesOf(record{kind: kindDone, op: op, high: high}, nil) }
	get := operation{get: true, sent: 64, parts: 1}
	put := operation{sent: 64, parts: 1}
	part := func(o operation) operation { o.sent = 32; return o }
	for _, c := range []struct {
		what    string
		op      operation // of rank 1, 64 bytes
		by      int
		answers [][]byte
		ok      bool // all of them but the last are right
		over    bool
	}{
		{"the data of a get", get, 1, [][]byte{got(0, 64)}, true, true},
		{"the data of a get in parts, in any order", get, 1, [][]byte{got(32, 32), got(0, 32)}, true, true},
		{"the end of a put", put, 1, [][]byte{ended(0, 0)}, true, true},
		{"the end of a part of a put, of which another one is to be sent", part(put), 1, [][]byte{ended(0, 0)}, true, false},
		{"the refusal of a get", get, 1, [][]byte{ended(0, 64)}, true, true},
		{"data by another rank", get, 2, [][]byte{got(0, 64)}, false, false},
		{"an end by another rank", put, 2, [][]byte{ended(0, 0)}, false, false},
		{"data of a put", put, 1, [][]byte{got(0, 64)}, false, false},
		{"data before it", get, 1, [][]byte{got(-8, 64)}, false, false},
		{"data behind it", get, 1, [][]byte{got(64, 8)}, false, false},
		{"data that ends behind it", get, 1, [][]byte{got(32, 40)}, false, false},
		{"data that was not asked for yet", part(get), 1, [][]byte{got(0, 32), got(32, 32)}, false, false},
		{"data of a get that is over", get, 1, [][]byte{got(0, 64), got(0, 64)}, false, true},
		{"more refused than is asked for", get, 1, [][]byte{ended(0, 65)}, false, false},
		{"a second end of a part", part(put), 1, [][]byte{ended(0, 0), ended(0, 0)}, false, false},
		{"the end of a put that is over", put, 1, [][]byte{ended(0, 0), ended(0, 0)}, false, true},
		{"the end of operation 1, which there is not", put, 1, [][]byte{ended(1, 0)}, false, false},
		{"an answer to a message that was not sent", put, 1, [][]byte{bytesOf(record{kind: kindFlushed, op: 3}, nil)}, false, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, _ := alone()
			p := r.peer(1)
			p.asked, p.writes.marks = 1, 3
			c.op.peer, c.op.used, c.op.mem, c.op.addr = p, true, make([]byte, 64), at
			r.ops = []operation{c.op}
			for i, a := range c.answers {
				_, ok := r.answered(r.peer(c.by), a)
				if last := i == len(c.answers)-1; ok != (c.ok || !last) {
					t.Fatalf("answer %d is taken for right: %v", i, ok)
				}
			}
			if over := !r.finished.Empty(); over != c.over {
				t.Errorf("the operation is over: %v", over)
			}
			if len(c.answers) == 1 && !c.ok && bytes.IndexByte(c.op.mem, 0xee) >= 0 {
				t.Error("bytes of an answer that is wrong are in place")
			}
		})
	}
}

// TestProofs: an answer proves the writes before the message that it answers, and none behind it.
func TestProofs(t *testing.T) {
	r, _ := alone()
	p := r.peer(1)
	p.writes.marks = 2
	for i, mark := range []uint32{0, 1} {
		r.ops = append(r.ops, operation{peer: p, used: true, mark: mark, unproven: true, moved: true, cookie: uint64(i)})
		p.writes.sent.Add(uint32(i))
	}
	for mark := range uint32(2) {
		if !r.proven(p, mark) {
			t.Fatalf("the answer to message %d is refused", mark)
		}
		if n := len(r.finished.All()); n != int(mark)+1 {
			t.Errorf("the answer to message %d proves %d writes, not %d", mark, n, mark+1)
		}
	}
}

// TestServes: a rank asks its owner for what an access does: the right to write for a put and for
// the check before it, the right to read for a get and for the check before that; and what an
// owner refuses is told without where its memory lies.
func TestServes(t *testing.T) {
	for _, c := range []struct {
		what string
		rec  record
		data []byte
		need segment.Rights
	}{
		{"put", record{kind: kindPut, length: 8}, make([]byte, 8), segment.RightWrite},
		{"get", record{kind: kindGet, length: 8}, nil, segment.RightRead},
		{"check of a put", record{kind: kindCheck, length: 8}, nil, segment.RightWrite},
		{"check of a get", record{kind: kindCheck, code: codeGet, length: 8}, nil, segment.RightRead},
	} {
		r, o := alone()
		page := segment.NLA(5 * segment.PageSize)
		have := segment.MakeEntry(3, 0x1234, segment.RightsAll)
		c.rec.addr = uint64(page)
		r.own.live = []*ownKey{{run: segment.Run{At: page, Mem: make([]byte, 64), Rights: segment.RightsAll, Peer: segment.AnyPeer}, holders: map[*peer]uint32{}}}
		for _, o.no = range []error{nil, &segment.FaultError{Addr: page, Len: 8, Need: c.need, Page: page, Have: have}} {
			o.needs, o.of = nil, nil
			if _, ok := r.serve(r.peer(2), bytesOf(c.rec, c.data)); !ok {
				t.Fatalf("%s is refused", c.what)
			}
			if c.rec.kind == kindGet && o.no == nil { // its data are asked for when they are sent
				a := r.peer(2).replies.First()
				r.answerGet(r.peer(2), &a, make([]byte, recordBytes+8), 8)
			}
			for i, need := range o.needs {
				if need != c.need || o.of[i] != 2 {
					t.Errorf("a %s of rank 2 asks for rights %v of rank %d, not for %v", c.what, need, o.of[i], c.need)
				}
			}
			if len(o.needs) == 0 {
				t.Errorf("a %s asks for no right", c.what)
			}
			a, _ := r.peer(2).replies.Take()
			if o.no == nil && (a.code == codeKey) != (c.rec.kind == kindCheck) {
				t.Errorf("the answer to a %s has code %d; a check that is granted is told a key, and nothing else is", c.what, a.code)
			}
			if o.no != nil && (a.code != codeFault || segment.Entry(a.entry) != have.Disclosed()) {
				t.Errorf("the refusal of a %s tells code %d and entry %#x, not %d and %#x", c.what, a.code, a.entry, codeFault, uint64(have.Disclosed()))
			}
		}
	}
}

// TestFrameLies: frames of other jobs, of ranks that there are not, of this rank, of ranks that have left,
// and a second time are dropped, as are those that say that more was taken than sent.
func TestFrameLies(t *testing.T) {
	frame := func(h header) []byte {
		b := make([]byte, headerBytes+messageBytes(1, 0))
		h.encode(b)
		putMessage(b[headerBytes:], []uint32{77}, nil)
		return b
	}
	for _, c := range []struct {
		what  string
		h     header
		taken bool
	}{
		{"a frame", header{job: 7, src: 1}, true},
		{"a frame of another job", header{job: 8, src: 1}, false},
		{"a frame of rank 4 of 4", header{job: 7, src: 4}, false},
		{"a frame of rank 2^31", header{job: 7, src: 1 << 31}, false},
		{"a frame of this rank", header{job: 7}, false},
		{"a frame of a rank that has left", header{job: 7, src: 2}, false},
		{"a frame that came before", header{job: 7, src: 1, seq: 1<<32 - 1}, false},
		{"a frame beyond the window", header{job: 7, src: 1, seq: window}, false},
		{"word of 1 message taken where none was sent", header{job: 7, src: 1, taken: [numClasses]uint32{1}}, false},
		{"word of 3 answers taken where 2 were sent", header{job: 7, src: 3, taken: [numClasses]uint32{0, 0, 3}}, false},
		{"word of 2 answers taken where 2 were sent", header{job: 7, src: 3, taken: [numClasses]uint32{0, 0, 2}}, true},
		{"word of a message here where none was sent", header{job: 7, src: 1, here: 1}, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, o := alone()
			r.peer(2).left = true
			r.peer(3).out[answers].sent = 2
			r.take(frame(c.h), true)
			if (o.ear[77] == 1) != c.taken || !c.taken && len(o.ear) > 0 {
				t.Errorf("its message was handed over %d times; it is right: %v", o.ear[77], c.taken)
			}
		})
	}
}

// TestCreditBack: what a peer has taken is not believed to have become less.
func TestCreditBack(t *testing.T) {
	r, _ := alone()
	p := r.peer(1)
	p.out[messages].sent, p.out[answers].sent = 5, 5
	for _, n := range []uint32{3, 2, 3, 0, 5, 4, 1<<32 - 1} {
		was, here := p.out[answers].acked, p.here
		if !r.credit(p, &header{taken: [numClasses]uint32{n, 0, n}, here: n}) {
			t.Errorf("word of %d after %d is a lie, and is late", int32(n), was)
		}
		if want := uint32(max(int32(was), int32(n))); p.out[answers].acked != want || p.here != max(here, want) || p.out[messages].acked != want {
			t.Errorf("after word of %d, %d answers and %d messages are taken and %d here, not %d", int32(n), p.out[answers].acked, p.out[messages].acked, p.here, want)
		}
	}
}

// TestRecordLies: records are refused whose length or code is not one that their kind has.
func TestRecordLies(t *testing.T) {
	for _, c := range []struct {
		what string
		class
		rec    record
		data   int
		length bool // of the data is the record's
		ok     bool
	}{
		{"a put of nothing", accesses, record{kind: kindPut}, 0, true, false},
		{"a get of nothing", accesses, record{kind: kindGet}, 0, false, false},
		{"a get", accesses, record{kind: kindGet, length: 1 << 30}, 0, false, true},
		{"a check", accesses, record{kind: kindCheck, code: codeGet}, 0, false, true},
		{"a check of neither", accesses, record{kind: kindCheck, code: codeGet + 1}, 0, false, false},
		{"a recall with data", accesses, record{kind: kindRecall}, 8, true, false},
		{"a flush with data", accesses, record{kind: kindFlush}, 8, true, false},
		{"a put that is cut", accesses, record{kind: kindPut, length: 9}, 8, false, false},
		{"a put without what rounds it up", accesses, record{kind: kindPut, length: 4}, 0, false, false},
		{"nothing got", answers, record{kind: kindGot}, 0, true, false},
		{"an end with data", answers, record{kind: kindDone}, 8, true, false},
		{"a fault", answers, record{kind: kindDone, code: codeFault}, 8, true, true},
		{"a fault without an entry", answers, record{kind: kindDone, code: codeFault}, 0, true, false},
		{"a fault with two", answers, record{kind: kindDone, code: codeFault}, 16, true, false},
		{"a rank that has left, with data", answers, record{kind: kindDone, code: codeClosed}, 8, true, false},
		{"a key", answers, record{kind: kindDone, code: codeKey}, grantBytes + 8, true, true},
		{"a key of no bytes", answers, record{kind: kindDone, code: codeKey}, grantBytes, true, false},
		{"a key that is too long", answers, record{kind: kindDone, code: codeKey}, grantBytes + fabric.MostRaw + 1, true, false},
		{"an unknown end", answers, record{kind: kindDone, code: codeKey + 1}, 0, true, false},
		{"an answer among accesses", accesses, record{kind: kindDone}, 0, true, false},
		{"an access among answers", answers, record{kind: kindRecall}, 0, true, false},
		{"an unknown kind", accesses, record{kind: kindFlushed + 1}, 0, true, false},
	} {
		if c.length {
			c.rec.length = uint32(c.data)
		}
		b := bytesOf(c.rec, make([]byte, c.data))
		if _, _, _, ok := decodeRecord(b, c.class); ok != c.ok {
			t.Errorf("%s is taken for a record: %v", c.what, ok)
		}
	}
	if _, _, _, ok := decodeRecord(bytesOf(record{kind: kindPut, length: 4}, make([]byte, 4))[:recordBytes+4], accesses); ok {
		t.Error("a put whose end is not there is taken for a record")
	}
	h := make([]byte, headerBytes)
	(&header{class: acks + 1}).encode(h)
	if _, ok := decodeHeader(h); ok {
		t.Errorf("a frame of class %d is taken for one", acks+1)
	}
	var room [conduits.TransportWords]uint32
	for what, b := range map[string][]byte{
		"no words":            {0, 0, 0, 0, 0, 0, 0, 0},
		"more words than any": append([]byte{0, conduits.TransportWords + 1, 0, 0, 0, 0, 0, 0}, make([]byte, 256)...),
		"too long a payload":  append([]byte{0, 1, 0, 0, 101, 0, 0, 0}, make([]byte, 256)...),
		"a payload cut off":   append([]byte{0, 1, 0, 0, 100, 0, 0, 0}, make([]byte, 96)...),
	} {
		if _, _, _, ok := message(b, &room, 100); ok {
			t.Errorf("%s: taken for a message", what)
		}
	}
	card := (&card{raw: make([]byte, 8), addr: []byte("here")}).encode()
	for what, change := range map[string]func(b []byte) []byte{
		"flags that there are not":  func(b []byte) []byte { b[8] = 4; return b },
		"a key longer than a key":   func(b []byte) []byte { b[9] = fabric.MostRaw + 1; return append(b, make([]byte, fabric.MostRaw)...) },
		"a key longer than all":     func(b []byte) []byte { return b[:cardBytes+7] },
		"less than its fixed parts": func(b []byte) []byte { return b[:cardBytes-1] },
	} {
		if _, ok := decodeCard(change(bytes.Clone(card))); ok {
			t.Errorf("a card with %s is taken for one", what)
		}
	}
	if c, ok := decodeCard(card); !ok || string(c.addr) != "here" {
		t.Errorf("a card is %+v (%v)", c, ok)
	}
}

// TestGrants: a key is told to the ranks that its memory is registered for, for accesses that lie in
// that memory and need no other rights than it has, and each telling is counted; a peer that gives
// it up, or leaves, gives it up for itself alone.
func TestGrants(t *testing.T) {
	const size = 1 << 16
	at := segment.NLA(9 * segment.PageSize)
	r, _ := alone()
	key := func(at segment.NLA, rights segment.Rights, to int) *ownKey {
		r.own.last++
		k := &ownKey{
			number: r.own.last, run: segment.Run{At: at, Mem: make([]byte, size), Rights: rights, Peer: to},
			region: fabric.Region{Key: 5}, holders: map[*peer]uint32{}, done: make(chan struct{}),
		}
		r.own.live = append(r.own.live, k)
		return k
	}
	mine := key(at, segment.RightRead, 1)
	all := key(at+4*size, segment.RightsAll, segment.AnyPeer)
	r.peer(3).left = true
	for _, c := range []struct {
		what string
		peer int
		a    segment.NLA
		n    uint64
		need segment.Rights
		told bool
	}{
		{"memory for rank 1, to it", 1, at, size, segment.RightRead, true},
		{"a part of it", 1, at + 8, size - 8, segment.RightRead, true},
		{"memory for rank 1, to rank 2", 2, at, size, segment.RightRead, false},
		{"memory to read, to write", 1, at, size, segment.RightWrite, false},
		{"more than there is", 1, at, size + 1, segment.RightRead, false},
		{"what begins in it and ends behind it", 1, at + size - 8, 16, segment.RightRead, false},
		{"what lies behind it", 1, at + size, 8, segment.RightRead, false},
		{"what lies before it", 1, at - 8, 8, segment.RightRead, false},
		{"memory for all, to rank 2", 2, at + 4*size, size, segment.RightWrite, true},
		{"memory for all, to a rank that has left", 3, at + 4*size, size, segment.RightWrite, false},
	} {
		var o reply
		r.grant(r.peer(c.peer), &o, c.a, c.n, c.need)
		if told := o.code == codeKey; told != c.told || told != (len(o.data) > 0) {
			t.Errorf("the key of %s is told: %v, with %d bytes", c.what, told, len(o.data))
		}
	}
	if n := mine.holders[r.peer(1)]; n != 2 || len(mine.holders) != 1 || all.holders[r.peer(2)] != 1 || len(all.holders) != 1 {
		t.Errorf("rank 1 was told a key twice, and %d times are counted of %d holders; the other has %v", n, len(mine.holders), all.holders)
	}
	// The memory is its owner's when all holders have given up the key, or left.
	over := func(k *ownKey) bool {
		select {
		case <-k.done:
			return true
		default:
			return false
		}
	}
	for what, up := range map[string]func(p *peer, number uint64){
		"gives up the key": r.givenUp, "has left": func(p *peer, _ uint64) { r.forgo(p, false) },
	} {
		k := key(at+8*size, segment.RightsAll, segment.AnyPeer)
		k.holders[r.peer(1)], k.holders[r.peer(2)] = 1, 1
		r.own.live, r.own.going = nil, map[uint64]*ownKey{k.number: k}
		up(r.peer(2), k.number+1000)
		if what != "has left" && len(k.holders) != 2 {
			t.Errorf("rank 2 %s, of another number, and %d hold this one", what, len(k.holders))
		}
		if up(r.peer(2), k.number); over(k) {
			t.Errorf("rank 2 %s, and rank 1 may access memory that was deregistered", what)
			continue
		}
		if up(r.peer(1), k.number); !over(k) {
			t.Errorf("rank 1 %s, the last one, and the memory is waited for", what)
		}
	}
}

// TestKeyLies: an access goes by a key that it was told, within its bounds and rights alone, and a key
// that is none is not used; one that its owner has recalled is given back when the last access by it
// is over.
func TestKeyLies(t *testing.T) {
	const size = 1 << 16
	at := segment.NLA(9 * segment.PageSize)
	k := remoteKeys{live: []*remoteKey{{number: 1, at: at, n: size, rights: segment.RightRead}}}
	for _, c := range []struct {
		a    segment.NLA
		n    uint64
		need segment.Rights
		ok   bool
	}{
		{at, size, segment.RightRead, true},
		{at + 8, size - 8, segment.RightRead, true},
		{at, size, segment.RightWrite, false},
		{at, size + 1, segment.RightRead, false},
		{at + size - 8, 16, segment.RightRead, false},
		{at + size, 1, segment.RightRead, false},
		{at + size + 1, 0, segment.RightRead, false},
		{at - 1, 1, segment.RightRead, false},
		{at + 8, 1<<64 - 8, segment.RightRead, false},
	} {
		if ok := k.find(c.a, c.n, c.need) != nil; ok != c.ok {
			t.Errorf("%d bytes from %d, rights %v, go by the key of %d bytes to read: %v", c.n, int64(c.a-at), c.need, size, ok)
		}
	}
	r, _ := alone()
	for n := range 16 {
		if _, _, ok := r.keyOf(0, make([]byte, n)); ok != (n == 8) {
			t.Errorf("a key of %d bytes is used: %v", n, ok)
		}
	}
	p := r.peer(1)
	x := &remoteKey{number: 4, told: 1, uses: 2}
	p.keys.live = []*remoteKey{x}
	r.yieldKey(p, 4, 1)
	for uses := range 2 {
		if !p.replies.Empty() {
			t.Fatalf("a key was given back with %d accesses by it under way", 2-uses)
		}
		r.unuse(p, x)
	}
	if a, ok := p.replies.Take(); !ok || a.kind != kindRecalled || a.addr != 4 {
		t.Errorf("the answer to the recall of key 4 is %+v (%v)", a.record, ok)
	}
}

// TestRegistered: memory is known to the provider for what its rights allow, from Register to Deregister, and for
// no longer than one access if it was lent to that.
func TestRegistered(t *testing.T) {
	ts, err := demanding(2, conduits.Config{}, modes["all"])
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 17
	eps, rs := attach(t, ts, size)
	defer leave(t, eps, ts)
	own, other := ts[0].(*transport), ts[1].(*transport)
	held := func(r *transport) (n, mapped int, uses []uint64) {
		r.rx.Lock()
		defer r.rx.Unlock()
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.ep.Held()
	}
	before, _, _ := held(own)
	lent, _, _ := held(other)
	unit, err := eps[0].ATU()
	if err != nil {
		t.Fatal(err)
	}
	end := func(what string, begin func() (conduits.Event, error)) {
		n := rs[1].n
		if ev, err := begin(); ev != 0 || err != nil {
			t.Fatalf("%s: %v, %v", what, ev, err)
		}
		for rs[1].n == n {
			eps[1].Poll()
		}
	}
	for rights, uses := range map[segment.Rights]uint64{
		segment.RightRead: fabric.RemoteRead, segment.RightWrite: fabric.RemoteWrite, segment.RightRead | segment.RightWrite: fabric.RemoteRead | fabric.RemoteWrite,
	} {
		region, err := unit.Register(make([]byte, size), rights, segment.AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		if n, _, all := held(own); n != before+1 || !slices.Contains(all, uses|fabric.Local) {
			t.Errorf("memory with rights %v: %d registrations of the provider's in place of %d, and none of their uses %#x is %#x", rights, n, before+1, all, uses|fabric.Local)
		}
		at, _ := region.At(0)
		mem := make([]byte, size)
		if rights&segment.RightWrite != 0 {
			end("put", func() (conduits.Event, error) { return post.Put(eps[1], 0, at, mem, conduits.RemoteDone, 1) })
		}
		if rights&segment.RightRead != 0 {
			end("get", func() (conduits.Event, error) { return post.Get(eps[1], mem, 0, at, conduits.RemoteDone, 1) })
		}
		if rs[1].err != nil {
			t.Fatal(rs[1].err)
		}
		if _, mapped, _ := held(other); mapped == 0 {
			t.Errorf("accesses with rights %v went by no key", rights)
		}
		gone := make(chan error, 1)
		go func() { gone <- unit.Deregister(region) }()
		for len(gone) == 0 { // the key is recalled, and given back by a poll
			eps[1].Poll()
		}
		if err := <-gone; err != nil {
			t.Error(err)
		}
		n, _, _ := held(own)
		theirs, mapped, _ := held(other)
		if n != before || theirs != lent || mapped != 0 {
			t.Errorf("after Deregister the provider has %d registrations more; the other rank %d, and %d keys", n-before, theirs-lent, mapped)
		}
	}
}
