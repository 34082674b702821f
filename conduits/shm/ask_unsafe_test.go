package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// asking is ranks that reach each other's private memory by asking only.
func asking(blind bool) way { return way{form: forms[3], ask: true, blind: blind} }

// TestManyQuestions: more operations than places are under way at once, some of
// more data than a place has room for.
func TestManyQuestions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := asking(false).nodes(t, 3)
		const size = 300_000
		mem := make([]byte, size)
		at, _ := register(t, all[2].Endpoint, mem, segment.RightsAll, segment.AnyPeer)
		type op struct {
			want []byte
			ev   conduits.Event
		}
		var ops [2][]op
		model := make([]byte, size)
		half := size / 2 // each of two ranks has its own
		for i := range rapid.IntRange(1, 60).Draw(t, "puts") {
			who := i % 2
			from := who*half + i*100
			n := 8 + rapid.IntRange(0, 90).Draw(t, "bytes")
			if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
				// Not to where others put at the same time.
				from, n = who*half+100_000, 16_000+rapid.IntRange(0, 10_000).Draw(t, "more")
				if slices.ContainsFunc(ops[who], func(o op) bool { return len(o.want) >= 16_000 }) {
					continue
				}
			}
			b := bytes.Repeat([]byte{byte(i + 1)}, n)
			copy(model[from:], b)
			ev, err := post.Put(all[who], 2, at+segment.NLA(from), b, done, uint64(len(ops[who])))
			if err != nil {
				t.Fatal(err)
			}
			if ev&conduits.SourceDone != 0 {
				clear(b)
			}
			ops[who] = append(ops[who], op{want: b, ev: ev})
		}
		quiet := func() bool {
			for who := range ops {
				for i, o := range ops[who] {
					if all[who].done[uint64(i)].ev|o.ev != done {
						return false
					}
				}
			}
			return true
		}
		for !quiet() {
			all[rapid.IntRange(0, 2).Draw(t, "poll")].Poll()
			for _, n := range all {
				n.Poll()
			}
		}
		if !bytes.Equal(mem, model) {
			t.Fatal("memory is not what was put")
		}
		for who := range ops {
			n := all[who]
			if n.desk.base != nil && n.desk.free != 1<<deskPlaces-1 || n.desk.open.Load() != 0 || n.desk.used != 0 || n.desk.waiting > 0 {
				t.Fatalf("rank %d has questions left: %+v", who, &n.desk)
			}
		}
	})
}

// TestDeafOwners: owners that do not poll hold up no questions to others, large and
// small, before theirs and after, and get their own when they poll.
func TestDeafOwners(t *testing.T) {
	for deaf := 1; deaf < deskKept; deaf++ {
		all := asking(false).nodes(t, deaf+2)
		a, b := all[0], all[deaf+1]
		const size = 3 * deskPlaces * deskRoom
		mem, at := make([][]byte, len(all)), make([]segment.NLA, len(all))
		for i, n := range all[1:] {
			mem[i+1] = make([]byte, size+8)
			at[i+1], _ = register(t, n.Endpoint, mem[i+1], segment.RightsAll, segment.AnyPeer)
			at[i+1] = (at[i+1] + 7) &^ 7
		}
		data := bytes.Repeat([]byte{1}, size)
		var issued []uint64
		put := func(dst int, b []byte) uint64 {
			a.next++
			if _, err := post.Put(a, dst, at[dst], b, done, a.next); err != nil {
				t.Fatal(err)
			}
			issued = append(issued, a.next)
			return a.next
		}
		hears := func(c uint64) {
			for range 10 * size / deskRoom {
				b.Poll()
				if a.Poll(); a.done[c].ev&conduits.RemoteDone != 0 {
					return
				}
			}
			t.Fatalf("%d deaf: an operation on a rank that polls does not end", deaf)
		}
		hears(put(deaf+1, data[:8])) // b is known
		early := put(deaf+1, data)
		for i := 1; i <= deaf; i++ {
			put(i, data)
			for range 2 * deskPlaces {
				put(i, data[:8])
			}
		}
		hears(early)
		hears(put(deaf+1, data[:8]))
		hears(put(deaf+1, data))
		for a.desk.open.Load() > 0 {
			for _, n := range all {
				n.Poll()
			}
		}
		for _, c := range issued {
			if a.done[c].ev&conduits.RemoteDone == 0 || a.done[c].err != nil {
				t.Fatalf("%d deaf: put %d: %+v", deaf, c, a.done[c])
			}
		}
		for i := range mem[1:] {
			if n := bytes.Count(mem[i+1], []byte{1}); n != size {
				t.Fatalf("%d deaf: rank %d has %d bytes of %d", deaf, i+1, n, size)
			}
		}
	}
}

// TestRefusedInLine: a question that is refused while the rest of it waits, and whose
// place goes to another owner at once, can be used again at once.
func TestRefusedInLine(t *testing.T) {
	all := asking(true).nodes(t, deskKept+4)
	a := all[0]
	at := make([]segment.NLA, len(all))
	for i, n := range all[1:] {
		at[i+1], _ = register(t, n.Endpoint, make([]byte, 8), segment.RightsAll, segment.AnyPeer)
	}
	data := make([]byte, 2*deskPlaces*deskRoom)
	put := func(dst, n int) uint64 {
		a.next++
		if _, err := post.Put(a, dst, at[dst], data[:n], done, a.next); err != nil {
			t.Fatal(err)
		}
		return a.next
	}
	check := func(c uint64, refused bool) {
		if have := a.done[c]; have.ev&conduits.RemoteDone == 0 || errors.Is(have.err, segment.ErrFault) != refused {
			t.Fatalf("put %d (refused %v): %+v", c, refused, have)
		}
	}
	// All places are taken, and the lines of ranks before the last three wait.
	put(1, len(data))
	first := put(2, 8)
	for i := 3; i <= deskKept+1; i++ {
		put(i, len(data))
	}
	last := deskKept + 1
	next, after := put(last+1, 8), put(last+2, 8)
	if a.desk.free != 0 {
		t.Fatalf("free: %#x", a.desk.free)
	}
	all[2].Poll()
	a.Poll() // next has a place, after is the first in the ring
	check(first, false)
	refused := a.next - 2
	all[last].Poll()
	a.Poll() // after has its place
	check(refused, true)
	other, again := put(3, 8), put(last, 8)
	if a.desk.free != 0 {
		t.Fatalf("free: %#x", a.desk.free)
	}
	for range 4 * len(all) {
		for _, n := range all {
			n.Poll()
		}
	}
	if n := a.desk.open.Load(); n > 0 {
		t.Fatalf("%d questions are left", n)
	}
	for i := range a.desk.lines {
		if l := &a.desk.lines[i]; l.first != nil || l.flying != 0 || l.waits {
			t.Errorf("line %d is left: %+v", i, l)
		}
	}
	for _, c := range []uint64{next, after, other, again} {
		check(c, false)
	}
}

// TestQuestionsEndOnce: whichever rank polls when, each of many questions to several owners,
// some refused while they wait for places, and some to ranks that leave or fail meanwhile,
// ends once, and nothing is left.
func TestQuestionsEndOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := asking(rapid.Bool().Draw(t, "blind")).nodes(t, 4)
		a := all[0]
		const size = 40 * deskRoom
		var at [4]segment.NLA
		for i := 1; i < 4; i++ {
			at[i], _ = register(t, all[i].Endpoint, make([]byte, size), segment.RightsAll, segment.AnyPeer)
		}
		data := make([]byte, 2*size)
		issued := map[uint64]bool{} // whether it is refused
		left := 0
		failed := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			dst := rapid.IntRange(1, 3).Draw(t, "owner")
			switch rapid.IntRange(0, 9).Draw(t, "do") {
			case 0, 1, 2:
				all[dst].Poll()
			case 3, 4:
				a.Poll()
			case 5:
				if left == 0 && rapid.IntRange(0, 3).Draw(t, "leave") == 0 {
					left = dst
					if failed = rapid.Bool().Draw(t, "fail"); failed {
						all[dst].Fail(errors.New("out of paper"))
					} else if err := all[dst].Close(); err != nil {
						t.Fatal(err)
					}
				}
			default:
				n := rapid.SampledFrom([]int{1, 8, 100, 3 * deskRoom, size, size + page, 2 * size}).Draw(t, "bytes")
				a.next++
				ev, err := post.Put(a, dst, at[dst], data[:n], done, a.next)
				if err == nil && ev&conduits.RemoteDone == 0 {
					issued[a.next] = n > size
				} else if n <= size && left == 0 {
					t.Fatalf("%d bytes: %v, %v", n, ev, err)
				}
			}
		}
		for a.desk.open.Load() > 0 {
			for i, n := range all {
				if i != left || i == 0 {
					n.Poll()
				}
			}
		}
		for c, refused := range issued {
			have := a.done[c]
			if have.ev&conduits.RemoteDone == 0 || left == 0 && refused != (have.err != nil) {
				t.Fatalf("put %d (refused %v): %+v", c, refused, have)
			}
		}
		d := &a.desk
		for i := range d.lines {
			if l := &d.lines[i]; l.first != nil || l.flying != 0 || l.waits {
				t.Fatalf("line %d is left: %+v", i, l)
			}
		}
		if d.used != 0 || d.waiting != 0 || !failed && d.base != nil && d.free != 1<<deskPlaces-1 {
			t.Fatalf("left: %+v", d)
		}
	})
}

// TestLongAsked: long messages whose data the receiver puts are delivered when it
// has, in the order of their places, or not at all.
func TestLongAsked(t *testing.T) {
	for _, blind := range []bool{false, true} {
		for _, class := range []conduits.Class{conduits.Request, conduits.Reply} {
			t.Run(fmt.Sprintf("blind %v/%v", blind, class), func(t *testing.T) {
				all := asking(blind).nodes(t, 2)
				a, b := all[0], all[1]
				mem := make([]byte, 2<<20)
				at, region := register(t, b.Endpoint, mem, segment.RightsAll, segment.AnyPeer)
				var got []string
				b.got = func(m *conduits.Message) {
					got = append(got, fmt.Sprint(m.Tag, " ", m.Words, " ", len(m.Payload), " ", m.Payload[0]))
				}
				reserve := func(i byte, n int) conduits.Slot {
					s, ev, st := a.ReservePut(1, class, 1, at+segment.NLA(i)*100_000, bytes.Repeat([]byte{i}, n), uint64(i))
					if st != conduits.Ready {
						t.Fatal("no room")
					}
					if want := n <= (deskPlaces-deskKept)*deskRoom; i == 1 && (ev&conduits.SourceDone != 0) != want {
						t.Fatalf("%d bytes: completed %v", n, ev)
					}
					s.Words[0] = uint32(i)
					return s
				}
				settle := func() {
					for a.desk.open.Load() > 0 {
						b.Poll()
						a.Poll()
					}
					b.Poll()
				}
				// Committed before and after the data is there; the second is cancelled, before
				// and after.
				s1, s2, s3 := reserve(1, 600_000), reserve(2, 10), reserve(3, 20_000)
				a.Commit(1, class, s3, 3, 0)
				a.Cancel(1, class, s2)
				if b.Poll(); len(got) > 0 {
					t.Fatalf("delivered before the first is committed: %q", got)
				}
				settle()
				a.Commit(1, class, s1, 1, 0)
				s4 := reserve(4, 30)
				settle()
				a.Cancel(1, class, s4)
				s5 := reserve(5, 50)
				a.Commit(1, class, s5, 5, 0)
				settle()
				want := []string{"1 [1] 600000 1", "3 [3] 20000 3", "5 [5] 50 5"}
				if !slices.Equal(got, want) {
					t.Fatalf("delivered: %q, want %q", got, want)
				}
				// Withdrawn: between the reservation and the answer, before it, and when it
				// has been put already.
				s6 := reserve(6, 60)
				deregister(t, b.Endpoint, region)
				a.Commit(1, class, s6, 6, 0)
				settle()
				s7 := reserve(7, 70)
				a.Commit(1, class, s7, 7, 0)
				settle()
				at, region = register(t, b.Endpoint, mem, segment.RightsAll, segment.AnyPeer)
				s8 := reserve(8, 80)
				settleNot := a.desk.open.Load() // the answer comes, the message does not
				for a.desk.open.Load() == settleNot && settleNot > 0 {
					b.Poll()
					a.Poll()
				}
				a.Commit(1, class, s8, 8, 0)
				deregister(t, b.Endpoint, region)
				b.Poll()
				if len(got) != len(want) {
					t.Fatalf("delivered though withdrawn: %q", got[len(want):])
				}
				var sa, sb conduits.Stats
				a.Stats(&sa)
				b.Stats(&sb)
				if sa.Faults != 2 || sb.Faults != 1 {
					t.Fatalf("%d and %d faults are counted, want 2 by who asks, 1 by who is asked", sa.Faults, sb.Faults)
				}
				if n := slices.IndexFunc(a.desk.long, func(q *question) bool { return q != nil }); n >= 0 {
					t.Fatal("a long message is still known")
				}
				// All room has been given back.
				for range 3 * a.Limits().Credits {
					if a.Send(1, class, 9, []uint32{0}) != conduits.Ready {
						t.Fatal("no credit")
					}
					b.got = func(*conduits.Message) {}
					b.Poll()
				}
			})
		}
	}
}

// TestLongCrowd: a long message that no number is left for finds no credit, until one
// of those that have one has ended.
func TestLongCrowd(t *testing.T) {
	all := asking(false).nodes(t, 2)
	a, b := all[0], all[1]
	at, _ := register(t, b.Endpoint, make([]byte, page), segment.RightsAll, segment.AnyPeer)
	got := 0
	b.got = func(*conduits.Message) { got++ }
	a.desk.long = make([]*question, refLineMask+1)
	for i := range a.desk.long {
		a.desk.long[i] = new(question)
	}
	reserve := func() (conduits.Slot, conduits.Status) {
		s, _, st := a.ReservePut(1, conduits.Request, 1, at, make([]byte, 100), 0)
		return s, st
	}
	for range 3 * a.Limits().Credits { // what it has taken comes back
		if _, st := reserve(); st != conduits.NoCredit {
			t.Fatal(st)
		}
		b.Poll()
	}
	a.desk.long[refLineMask] = nil
	s, st := reserve()
	if st != conduits.Ready {
		t.Fatal(st)
	}
	a.Commit(1, conduits.Request, s, 1, 0)
	for got == 0 {
		b.Poll()
		a.Poll()
	}
	if a.desk.long[refLineMask] != nil || got != 1 {
		t.Errorf("%d delivered, number free: %v", got, a.desk.long[refLineMask] == nil)
	}
}

// TestAskAlive: the owner answers while it is in a handler that polls for
// replies, and while it waits for something else, and is woken for it.
func TestAskAlive(t *testing.T) {
	all := asking(false).nodes(t, 2)
	a, b := all[0], all[1]
	mem := make([]byte, page)
	at, _ := register(t, b.Endpoint, mem, segment.RightsAll, segment.AnyPeer)
	var stop atomic.Bool
	ended := make(chan error)
	go func() {
		ended <- conduits.Wait(b, why("for the end"), func() bool { return stop.Load() })
	}()
	for i := range 200 {
		a.next++
		v, ev, err := post.Atomic(a, 1, (at+7)&^7, conduits.AtomicAdd, conduits.Uint64, 1, 0, a.next)
		if err == nil && ev == 0 {
			err = conduits.Wait(a, why("for an answer"), func() bool { return a.done[a.next].ev != 0 })
			v = a.done[a.next].value
		}
		if err != nil || v != uint64(i) {
			t.Fatalf("atomic %d: %d, %v", i, v, err)
		}
	}
	stop.Store(true)
	b.Wake(1)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	answered := false
	b.got = func(*conduits.Message) {
		for !answered {
			b.PollReplies()
			a.Poll()
			answered = a.done[a.next].ev != 0
		}
	}
	a.next++
	if _, err := post.Put(a, 1, at, []byte{1}, conduits.RemoteDone, a.next); err != nil {
		t.Fatal(err)
	}
	a.Send(1, conduits.Request, 1, nil)
	b.hot = nil // finds the message, or the question, first
	for !answered {
		b.Poll()
	}
}

// TestAskTheGone: an owner that has left the job, in good order or not, answers
// nothing, and the initiator learns it.
func TestAskTheGone(t *testing.T) {
	for _, how := range []string{"closed before", "closed after", "failed before", "failed after"} {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/blind %v", how, blind), func(t *testing.T) {
				all := asking(blind).nodes(t, 2)
				a, b := all[0], all[1]
				mem := make([]byte, 1<<20)
				at, _ := register(t, b.Endpoint, mem, segment.RightsAll, segment.AnyPeer)
				leave := func() {
					if strings.HasPrefix(how, "failed") {
						b.Fail(errors.New("out of paper"))
					} else if err := b.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if strings.HasSuffix(how, "before") {
					leave()
				}
				var issued []uint64
				var refused error
				note := func(err error) {
					if err != nil {
						refused = err
					} else {
						issued = append(issued, a.next)
					}
				}
				buf := make([]byte, len(mem))
				a.next++
				_, err := post.Put(a, 1, at, mem, done, a.next)
				note(err)
				a.next++
				_, err = post.Get(a, buf, 1, at, done, a.next)
				note(err)
				a.next++
				_, _, err = post.Atomic(a, 1, (at+7)&^7, conduits.AtomicAdd, conduits.Uint32, 1, 1, a.next)
				note(err)
				if strings.HasSuffix(how, "after") {
					leave()
				}
				err = conduits.Wait(a, nil, func() bool {
					for _, c := range issued {
						if a.done[c].ev&conduits.RemoteDone == 0 {
							return false
						}
					}
					return true
				})
				check := func(err error) {
					if strings.HasPrefix(how, "failed") {
						if p, ok := errors.AsType[*conduits.PeerError](err); !ok || p.Rank != 1 {
							t.Errorf("%v", err)
						}
					} else if !errors.Is(err, segment.ErrFault) {
						t.Errorf("%v", err)
					}
				}
				if err != nil {
					check(err) // Wait looks for a failure, too
					return
				}
				if refused != nil {
					check(refused)
				}
				for _, c := range issued {
					check(a.done[c].err)
				}
			})
		}
	}
}

// TestRegisteredAllocates: nothing, as soon as there is a desk.
func TestRegisteredAllocates(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		all := w.nodes(t, 2)
		mem := w.memory(t, all[1].Endpoint, page)
		at, _ := register(t, all[1].Endpoint, mem, segment.RightsAll, segment.AnyPeer)
		a, b := all[0], all[1]
		at = (at + 7) &^ 7
		buf := make([]byte, 200)
		await := func(ev conduits.Event, err error) {
			if err != nil {
				t.Fatal(err)
			}
			if ev == 0 {
				for a.done[0].ev == 0 {
					b.Poll()
					a.Poll()
				}
			}
			a.done[0] = completion{}
		}
		all[0].done = map[uint64]completion{}
		n := testing.AllocsPerRun(200, func() {
			clear(a.done)
			await(post.Put(a, 1, at, buf, conduits.RemoteDone, 0))
			clear(a.done)
			await(post.Get(a, buf, 1, at, conduits.RemoteDone, 0))
			clear(a.done)
			await(post.PutWord(a, 1, at, 1, 4, conduits.RemoteDone, 0))
			clear(a.done)
			_, ev, err := post.Atomic(a, 1, at, conduits.AtomicAdd, conduits.Uint64, 1, 0, 0)
			await(ev, err)
		})
		if n > 0 {
			t.Errorf("%v allocations", n)
		}
		runtime.KeepAlive(mem)
	})
}

// TestAskLies: whatever stands on a desk, the owner of memory answers or refuses, and
// touches nothing that it has not registered for the initiator.
func TestAskLies(t *testing.T) {
	all := asking(false).nodes(t, 2)
	a, b := all[0], all[1]
	mem := make([]byte, 4*page)
	at, _ := register(t, b.Endpoint, mem[page:3*page], segment.RightsAll, segment.AnyPeer)
	secret, _ := register(t, b.Endpoint, mem[3*page:], segment.RightsAll, 1)
	if err := a.put(all, 1, at, []byte{0}); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, deskPlaces-1).Draw(t, "place")
		p := unsafe.Slice((*byte)(unsafe.Add(a.desk.base, i*deskLine)), deskLine)
		u32 := func(off int, v uint32) { binary.NativeEndian.PutUint32(p[off:], v) }
		u64 := func(off int, v uint64) { binary.NativeEndian.PutUint64(p[off:], v) }
		u32(askDst, uint32(rapid.IntRange(0, 2).Draw(t, "dst")))
		u32(askKind, uint32(rapid.IntRange(0, 6).Draw(t, "kind")))
		u32(askOp, rapid.Uint32Range(0, 0x0a0f).Draw(t, "op"))
		base := rapid.SampledFrom([]segment.NLA{at, at + page, at + 2*page, secret, segment.AttachBase, 0}).Draw(t, "base")
		u64(askTo, uint64(base)+rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64()).Draw(t, "off"))
		u64(askLen, rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64Range(page-2, deskRoom+1), rapid.Uint64()).Draw(t, "len"))
		u64(askA, rapid.Uint64().Draw(t, "a"))
		state := rapid.SampledFrom([]uint32{askPosted, askPosted, askPosted, askBusy, askDone, 4, 1 << 31}).Draw(t, "state")
		u32(askState, state)
		clear(mem)
		room := unsafe.Slice((*byte)(unsafe.Add(a.desk.base, deskRooms+i*deskRoom)), deskRoom)
		for i := range room {
			room[i] = 0xaa
		}
		a.desk.tell(1)
		b.Poll()
		for i, x := range mem {
			if x != 0 && (i < page || i >= 3*page) {
				t.Fatalf("byte %d has become %d", i, x)
			}
		}
		if s := binary.NativeEndian.Uint32(p[askState:]); state == askPosted && binary.NativeEndian.Uint32(p[askDst:]) == 1 && s != askDone {
			t.Fatalf("not answered: state %d", s)
		}
		u32(askState, askFree)
	})
	// A desk that lies nowhere.
	for _, off := range []uint64{1, uint64(a.j.total()), 1 << 62, 1<<64 - page, uint64(a.j.total()) - page} {
		all := asking(false).nodes(t, 2)
		all[0].desk.tell(1)
		*(*uint64)(unsafe.Add(all[0].j.registry(0), regDesk)) = off
		if all[1].Poll(); off != uint64(a.j.total()) && all[1].Err() == nil {
			t.Errorf("a desk at %#x is no failure", off)
		}
	}
}

// TestAskTooMuch: a question for more bytes than a place has room for is refused, though
// all of them are registered, and touches no other place's room.
func TestAskTooMuch(t *testing.T) {
	all := asking(false).nodes(t, 2)
	a, b := all[0], all[1]
	mem := make([]byte, 4*deskRoom)
	at, _ := register(t, b.Endpoint, mem, segment.RightsAll, segment.AnyPeer)
	if err := a.put(all, 1, at, []byte{0}); err != nil {
		t.Fatal(err)
	}
	const i = 3
	p := a.desk.base
	for _, kind := range []uint32{askPut, askGet} {
		for _, n := range []uint64{deskRoom, deskRoom + 1, 2 * deskRoom, 4 * deskRoom} {
			beside := unsafe.Slice((*byte)(unsafe.Add(p, deskRooms+(i+1)*deskRoom)), deskRoom)
			for k := range mem {
				mem[k] = 1
			}
			clear(beside)
			q := unsafe.Add(p, i*deskLine)
			*(*uint32)(unsafe.Add(q, askDst)) = 1
			*(*uint32)(unsafe.Add(q, askKind)) = kind
			*(*uint64)(unsafe.Add(q, askTo)) = uint64(at)
			*(*uint64)(unsafe.Add(q, askLen)) = n
			atomic.StoreUint32((*uint32)(unsafe.Add(q, askState)), askPosted)
			func() {
				defer func() {
					if v := recover(); v != nil {
						t.Fatalf("a question of kind %d for %d bytes, in a room of %d: %v", kind, n, deskRoom, v)
					}
				}()
				a.desk.tell(1)
				b.Poll()
			}()
			refused := *(*uint64)(unsafe.Add(q, askPage)) != 0
			if want := n > deskRoom; refused != want {
				t.Errorf("a question of kind %d for %d bytes, in a room of %d, is refused: %v", kind, n, deskRoom, refused)
			}
			if k := bytes.IndexByte(beside, 1); k >= 0 {
				t.Errorf("a question of kind %d for %d bytes reaches byte %d of the next room", kind, n, k)
			}
			if kind == askPut && bytes.Count(mem[deskRoom:], []byte{0}) > 0 {
				t.Errorf("a question of kind %d for %d bytes has put beyond %d", kind, n, deskRoom)
			}
			atomic.StoreUint32((*uint32)(unsafe.Add(q, askState)), askFree)
		}
	}
}

// TestManyDesks: more ranks than a word of those that ask has bits for ask each other, those
// beyond too.
func TestManyDesks(t *testing.T) {
	const n = 37
	all := asking(false).nodes(t, n)
	mem := [n][]byte{}
	at := [n]segment.NLA{}
	for r, e := range all {
		mem[r] = make([]byte, n)
		at[r], _ = register(t, e.Endpoint, mem[r], segment.RightsAll, segment.AnyPeer)
	}
	pairs := [][2]int{{33, 0}, {0, 33}, {36, 35}, {1, 33}, {32, 31}, {31, 32}}
	for i, p := range pairs {
		from, to := all[p[0]], all[p[1]]
		from.next++
		ev, err := post.Put(from, p[1], at[p[1]]+segment.NLA(p[0]), []byte{byte(i + 1)}, done, from.next)
		for looks := 0; err == nil && (from.done[from.next].ev|ev)&conduits.RemoteDone == 0; looks++ {
			to.Poll()
			from.Poll()
			for _, e := range []*node{from, to} {
				if err := e.Err(); err != nil {
					t.Fatalf("rank %d asks rank %d: %v", p[0], p[1], err)
				}
			}
			if looks == 100 {
				t.Fatalf("rank %d asks rank %d, which does not answer", p[0], p[1])
			}
		}
		if err != nil || mem[p[1]][p[0]] != byte(i+1) {
			t.Fatalf("rank %d has put %d at rank %d, and there is %d: %v", p[0], i+1, p[1], mem[p[1]][p[0]], err)
		}
	}
}

// TestTableLies: whatever an owner's tables hold, their reader neither crashes nor
// gets what is not of the job's file beyond its first part.
func TestTableLies(t *testing.T) {
	w := mappedWay(true)
	all := w.nodes(t, 2)
	a, b := all[0], all[1]
	mem := w.memory(t, b.Endpoint, 4*page)
	at, _ := register(t, b.Endpoint, mem, segment.RightsAll, segment.AnyPeer)
	if err := a.put(all, 1, at, []byte{1}); err != nil {
		t.Fatal(err)
	}
	u, _ := b.ATU()
	rapid.Check(t, func(t *rapid.T) {
		base := uint64(b.j.total()) >> segment.PageBits
		frame := rapid.OneOf(
			rapid.Uint64Range(0, base+10),
			rapid.Uint64Range(base, base+4<<(chunkShift-segment.PageBits)),
			rapid.Uint64Range(0, segment.FramePrivate-1),
		).Draw(t, "frame")
		if err := u.Tables().Fill(at, 4, segment.MakeEntry(segment.AnyVPID, frame, segment.RightsAll)); err != nil {
			t.Fatal(err)
		}
		n := rapid.SampledFrom([]int{1, 8, 100, page, 3 * page}).Draw(t, "bytes")
		err := a.get(all, make([]byte, n), 1, at)
		if inside := frame >= base && (frame+4)<<segment.PageBits <= a.j.growth.known.Load(); inside && err != nil {
			t.Fatalf("frame %#x: %v", frame, err)
		}
		_, _ = a.atomic(all, 1, at&^7+8, conduits.AtomicLoad, conduits.Uint64, 0, 0)
	})
	// And its directory.
	for _, word := range []uint64{1, 1 << 38, 1 << 39, 1 << 63, uint64(b.j.total()) >> segment.PageBits} {
		all := w.nodes(t, 2)
		d := segment.DirectoryAt(unsafe.Slice((*byte)(all[1].j.registry(1)), segment.DirectoryBytes))
		d[5].Store(word)
		if err := all[0].get(all, make([]byte, 8), 1, segment.MakeNLA(5, 1, 0)); !errors.Is(err, segment.ErrFault) {
			t.Errorf("directory word %#x: %v", word, err)
		}
	}
}
