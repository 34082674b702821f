//go:build ofi && cgo

package ofi

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// ear is an Owner that counts messages by their first word.
type ear map[uint32]int

func (e ear) Deliver(_ int, words []uint32, _ []byte) { e[words[0]]++ }
func (ear) Complete(uint64, error)                    {}
func (ear) Left(int)                                  {}

func (ear) Access(int, segment.NLA, uint64, segment.Rights, func([]byte)) error { return nil }

// pair is two attached ranks.
func pair(t *testing.T) (ts []conduits.Transport, heard ear) {
	t.Helper()
	ts, err := Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	heard = ear{}
	attached := make(chan error)
	for _, e := range ts {
		go func() {
			_, err := e.Attach(heard, 0, segment.RightsAll)
			attached <- err
		}()
	}
	for range ts {
		if err := <-attached; err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { leave(t, ts, ts) })
	return ts, heard
}

// TestBounded: a rank that does not poll takes no more of another one's messages than the
// window, whatever the provider would accept, and they all arrive when it does.
func TestBounded(t *testing.T) {
	ts, heard := pair(t)
	payload := make([]byte, 4000)
	n, refused := uint32(0), 0
	for refused < 1000 {
		switch st := ts[0].Send(1, []uint32{n}, payload); st {
		case conduits.Ready:
			n++
		case conduits.NoCredit:
			refused++
			ts[0].Poll()
		default:
			t.Fatal(st)
		}
	}
	// Two messages fill a frame; beside the window one is ready and one open.
	if most := uint32(2 * (window + 2)); n > most {
		t.Errorf("%d messages were accepted; the most is %d", n, most)
	}
	for len(heard) < int(n) {
		ts[0].Poll()
		if ts[1].Poll() == 0 {
			ts[1].Wait(ts[1].Now() + time.Millisecond)
		}
	}
	ts[0].Wait(ts[0].Now() + time.Hour) // room is an event
	if st := ts[0].Send(1, []uint32{n}, payload); st != conduits.Ready {
		t.Errorf("status %d when there is room", st)
	}
	for i := range n {
		if heard[i] != 1 {
			t.Errorf("message %d was delivered %d times", i, heard[i])
		}
	}
}

// TestRepost: a poll leaves the posting of the buffers that it has taken to the next one, so that
// answers leave first, unless many have been taken; and credit that nothing has waited for has
// nothing looked at again.
func TestRepost(t *testing.T) {
	ts, heard := pair(t)
	a, b := ts[0].(*transport), ts[1].(*transport)
	look := func(x *transport) (unposted, due int, events uint64) {
		x.rx.Lock()
		defer x.rx.Unlock()
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.unposted), len(x.due), x.events
	}
	// The standby poller, which posts at once, may take a frame when this goroutine has to wait
	// for a processor: what is seen once in so many rounds is how it is.
	const rounds = 1000
	left := false
	for n := uint32(1); n <= rounds && (n < 50 || !left); n++ {
		from, to := a, b
		if n%2 == 0 {
			from, to = b, a
		}
		if st := from.Send(to.rank, []uint32{n}, nil); st != conduits.Ready {
			t.Fatal(st)
		}
		for heard[n] == 0 {
			to.Poll()
		}
		unposted, due, _ := look(to)
		if due > 0 && n > 2 { // before that connections are made
			t.Fatalf("message %d: %d peers are due, and nothing waits", n, due)
		}
		left = left || unposted > 0
		to.Poll()
		if unposted, _, _ = look(to); unposted > 0 {
			t.Fatalf("message %d: %d buffers are not posted by the poll after it", n, unposted)
		}
	}
	if !left {
		t.Error("every poll has posted before it returned")
	}
	// All of a's windows open by what b has taken, which a message of b's says.
	n := uint32(rounds + 1)
	if st := b.Send(0, []uint32{n}, nil); st != conduits.Ready {
		t.Fatal(st)
	}
	for heard[n] == 0 {
		a.Poll()
	}
	b.rx.Lock() // the standby poller takes nothing
	defer b.rx.Unlock()
	for word := make([]byte, 8); len(b.arrived) < mostUnposted; {
		if a.Send(1, []uint32{n + 1}, nil) == conduits.NoCredit {
			a.Wait(a.Now() + time.Millisecond)
		}
		if _, err := a.Put(1, segment.AttachBase, word, 0); err != nil {
			t.Fatal(err)
		}
		a.Poll() // what is sent next leaves at once, in a frame of its own
		b.mu.Lock()
		b.collect()
		b.mu.Unlock()
	}
	arrived := len(b.arrived)
	b.progress(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.unposted) > 0 {
		t.Errorf("a poll that has taken %d buffers leaves %d to the next one", arrived, len(b.unposted))
	}
}

// TestRemote: a long put of a segment is one operation of the provider's, which the target
// hears of, and its data is in place when it is over; a short one is a message.
func TestRemote(t *testing.T) {
	ts, err := Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps := make([]*adapt.Endpoint, len(ts))
	attached := make(chan error)
	for i := range ts {
		eps[i] = adapt.New(Name, ts[i])
		go func() {
			attached <- eps[i].Attach(conduits.AttachConfig{Size: 1 << 20, Rights: segment.RightsAll, Receiver: done{}})
		}()
	}
	for range ts {
		if err := <-attached; err != nil {
			t.Fatal(err)
		}
	}
	defer leave(t, eps, ts)
	frames := func() uint64 {
		r := ts[0].(*transport)
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.frames
	}
	data := bytes.Repeat([]byte("argon is noble; "), 1<<15)
	for _, n := range []int{leastRemote - 1, leastRemote, len(data)} {
		before := frames()
		ev, err := post.Put(eps[0], 1, segment.AttachBase+8, data[:n], conduits.RemoteDone, 1)
		if err != nil || ev != 0 {
			t.Fatalf("put: %v, %v", ev, err)
		}
		for over := 0; over == 0; over = eps[0].Poll() {
		}
		_, views := eps[1].Views()
		b, _ := views[0].Bytes(segment.AttachBase+8, uint64(n), views[0].Size())
		if !conc.Race && !bytes.Equal(b, data[:n]) {
			t.Errorf("put of %d bytes: other bytes are there", n)
		}
		// The target is told of it, and of the one before it.
		if sent := frames() - before; n == len(data) && sent > 20 { // questions of the watch on a slow machine included
			t.Errorf("put of %d bytes: %d frames", n, sent)
		}
	}
}

// TestComputes: long puts and gets of a rank that does not poll end, however many they are: its standby
// poller has the provider move all that peers write and read, of which no completion tells it. It
// does so of a provider, too, whose connections it cannot look into.
func TestComputes(t *testing.T) {
	t.Run("connections", func(t *testing.T) { computes(t, 0) })
	t.Run("none", func(t *testing.T) { computes(t, fabric.Called) })
}

func computes(t *testing.T, mode uint64) {
	ts, err := demanding(2, conduits.Config{}, mode)
	if err != nil {
		t.Fatal(err)
	}
	eps, rs := attach(t, ts, 1<<20)
	defer leave(t, eps, ts)
	const count = 400 // more than what lies in sockets
	data := make([]byte, 64<<10)
	for _, get := range []bool{false, true} {
		rs[1].n = 0
		for k := range uint64(count) {
			var err error
			if get {
				_, err = post.Get(eps[1], data, 0, segment.AttachBase, conduits.RemoteDone, k)
			} else {
				_, err = post.Put(eps[1], 0, segment.AttachBase, data, conduits.RemoteDone, k)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for rs[1].n < count {
			eps[1].Poll()
			runtime.Gosched()
		}
		if rs[1].err != nil {
			t.Error(rs[1].err)
		}
	}
}

// TestWoken: a standby poller that its descriptor wakes looks again at once, although what a
// peer reads is nothing that a look finds.
func TestWoken(t *testing.T) {
	ts, err := Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps, rs := attach(t, ts, 1<<20)
	defer leave(t, eps, ts)
	r := ts[1].(*transport)
	r.standby.quit()
	r.another(t)
	defer r.stand()
	r.standby.began.Store(true) // so that poke ends a sleep
	data := make([]byte, leastRemote)
	looked := make(chan bool)
	seen := func() uint64 {
		r.rx.Lock()
		defer r.rx.Unlock()
		return r.events
	}
	const most = 200 // looks
	for k := range uint64(most) {
		before := seen()
		go func() { looked <- r.look(2 * longest) }()
		runtime.Gosched()
		if _, err := post.Get(eps[0], data, 1, segment.AttachBase, conduits.RemoteDone, k); err != nil {
			t.Fatal(err)
		}
		again, events := false, uint64(0)
		select {
		case again = <-looked:
			events = seen()
		case <-time.After(50 * time.Millisecond): // it has taken the request before it slept
			r.standby.poke()
			<-looked
		}
		for rs[0].n <= int(k) {
			eps[0].Poll()
			r.step()
			runtime.Gosched()
		}
		if again && events == before {
			return
		}
	}
	t.Error("no look says that it was woken")
}

// done is a Receiver that does nothing.
type done struct{}

func (done) Receive(*conduits.Message)                      {}
func (done) Complete(uint64, conduits.Event, uint64, error) {}

// leave closes the ranks of a job and waits until nothing of it is left.
func leave[E io.Closer](t *testing.T, eps []E, ts []conduits.Transport) {
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, e := range ts {
		<-e.(*transport).drained
	}
}

// TestMessages: what is put into a frame comes out of it.
func TestMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var frame []byte
		var want [][]uint32
		var loads [][]byte
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			words := rapid.SliceOfN(rapid.Uint32(), 1, conduits.TransportWords).Draw(t, "words")
			payload := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload")
			b := make([]byte, messageBytes(len(words), len(payload)))
			putMessage(b, words, payload)
			frame = append(frame, b...)
			want, loads = append(want, words), append(loads, payload)
		}
		var room [conduits.TransportWords]uint32
		for i := range want {
			words, payload, rest, ok := message(frame, &room, 100)
			if !ok || !slices.Equal(words, want[i]) || !bytes.Equal(payload, loads[i]) {
				t.Fatalf("message %d is %v %x (%v), not %v %x", i, words, payload, ok, want[i], loads[i])
			}
			frame = rest
		}
		if len(frame) > 0 {
			t.Fatalf("%d bytes are left", len(frame))
		}
	})
}

// TestRecords: so do headers and records.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := header{
			job: rapid.Uint32().Draw(t, "job"), src: rapid.Uint32().Draw(t, "src"), class: class(rapid.IntRange(0, int(acks)).Draw(t, "class")),
			flags: uint8(rapid.IntRange(0, wantAck).Draw(t, "flags")), here: rapid.Uint32().Draw(t, "here"),
			busy: rapid.Uint16().Draw(t, "busy"), seq: rapid.Uint32().Draw(t, "seq"),
		}
		for c := range h.taken {
			h.taken[c] = rapid.Uint32().Draw(t, "taken")
		}
		var b [headerBytes]byte
		h.encode(b[:])
		if got, ok := decodeHeader(b[:]); !ok || got != h {
			t.Fatalf("%+v (%v), not %+v", got, ok, h)
		}
		data := rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "data")
		r := record{kind: kindPut, length: uint32(len(data)), addr: rapid.Uint64().Draw(t, "addr"), op: rapid.Uint32().Draw(t, "op")}
		f := make([]byte, recordBytes+round(len(data)))
		r.encode(f)
		copy(f[recordBytes:], data)
		got, d, rest, ok := decodeRecord(f, accesses)
		if !ok || got != r || !bytes.Equal(d, data) || len(rest) > 0 {
			t.Fatalf("%+v %x (%v), not %+v %x; %d bytes are left", got, d, ok, r, data, len(rest))
		}
		if _, _, _, ok := decodeRecord(f, answers); ok {
			t.Fatal("a put among answers")
		}
		if _, _, _, ok := decodeRecord(f[:len(f)-8], accesses); ok {
			t.Fatal("a put that is cut off")
		}
	})
}

// FuzzFrame: whatever arrives, the decoders take some of it or refuse it.
func FuzzFrame(f *testing.F) {
	b := make([]byte, headerBytes+messageBytes(2, 5))
	putMessage(b[headerBytes:], []uint32{1, 2}, []byte("hello"))
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, ok := decodeHeader(b); !ok {
			return
		}
		var w [conduits.TransportWords]uint32
		for rest, ok := b[headerBytes:], true; ok && len(rest) > 0; {
			var more []byte
			if _, _, more, ok = message(rest, &w, 1<<12); ok && len(more) >= len(rest) {
				t.Fatal("nothing was taken")
			}
			rest = more
		}
		for _, c := range []class{accesses, answers} {
			for rest, ok := b[headerBytes:], true; ok && len(rest) > 0; {
				var more []byte
				if _, _, more, ok = decodeRecord(rest, c); ok && len(more) >= len(rest) {
					t.Fatal("nothing was taken")
				}
				rest = more
			}
		}
	})
}

// TestUnreachable: frames for a peer that the provider refuses are free once, however many
// were ready.
func TestUnreachable(t *testing.T) {
	for ready := range 3 {
		ts, _ := pair(t)
		r := ts[0].(*transport)
		r.mu.Lock()
		p := r.peer(1)
		for range ready {
			c, err := r.context()
			if err != nil {
				t.Fatal(err)
			}
			p.out[messages].ready.Add(readyFrame{c, headerBytes})
		}
		room := func() []byte { return r.room(p, messages, r.frame-headerBytes) }
		p.known, r.cards[1].addr = false, make([]byte, 64) // of no family
		if ready < 2 && room() == nil {
			t.Fatal("no room in an empty frame")
		}
		if ready < 2 && room() != nil || p.lost == nil && r.ack(p, wantAck) && p.lost == nil {
			t.Errorf("%d frames ready: rank 1 is not lost: %v", ready, p.lost)
		}
		r.flush()
		seen := map[uint32]bool{}
		for _, c := range r.spare {
			if seen[c] {
				t.Errorf("%d frames ready: frame %d is free twice", ready, c)
			}
			seen[c] = true
		}
		r.mu.Unlock()
		ts[0].Fail(1, errors.New("the test is over"))
	}
}
