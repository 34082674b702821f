package adapt

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// unit is a Transport with atomics of any kind.
type unit struct {
	*recorder
	ops [conduits.NumAtomicOps][conduits.NumAtomicTypes]conduits.Coherence
}

func (u *unit) AtomicOps(op conduits.AtomicOp, t conduits.AtomicType) conduits.Coherence {
	return u.ops[op][t]
}

func (u *unit) Atomic(int, segment.NLA, conduits.AtomicOp, conduits.AtomicType, uint64, uint64, *uint64, uint64) (bool, error) {
	return true, nil
}

// TestMixedAtomics: however the atomics of two ranks on a word are done, by the card
// or by the owner's processor, no two are done in ways that are not atomic with each
// other.
func TestMixedAtomics(t *testing.T) {
	type way struct {
		card bool
		with conduits.Coherence
	}
	rapid.Check(t, func(t *rapid.T) {
		u := &unit{recorder: &recorder{}}
		usual := conduits.Coherence(rapid.IntRange(0, 2).Draw(t, "usual"))
		seldom := rapid.IntRange(0, 1).Draw(t, "seldom") // exceptions
		for op := range conduits.NumAtomicOps {
			for typ := range conduits.NumAtomicTypes {
				u.ops[op][typ] = usual
				if rapid.IntRange(0, 30).Draw(t, "exception")*seldom == 1 {
					u.ops[op][typ] = conduits.Coherence(rapid.IntRange(0, 2).Draw(t, "coherence"))
				}
			}
		}
		e := New("united", u)
		if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &counter{}}); err != nil {
			t.Fatal(err)
		}
		_, views := e.Views()
		for _, in := range []bool{true, false} {
			var ways [2][]way // by width: those of the peers and of the owner
			for op := range conduits.NumAtomicOps {
				for typ := range conduits.NumAtomicTypes {
					if conduits.CheckAtomic("", op, typ, 0) != nil {
						continue
					}
					w := width(typ)
					for _, dst := range []int{0, 1} {
						native := e.native(dst, in, op, typ)
						if native && u.ops[op][typ] == conduits.CoherentNever {
							t.Fatalf("operation %d on type %d is done by a card that has none", op, typ)
						}
						if dst == 1 && !native && u.ops[op][typ] == conduits.CoherentOwner {
							t.Errorf("operation %d on type %d is coherent and not used", op, typ)
						}
						ways[w] = append(ways[w], way{native, u.ops[op][typ]})
					}
					if !in || views[0].Atomic > 0 { // layers have the owner's processor do them
						ways[w] = append(ways[w], way{card: false})
					}
				}
			}
			for w, l := range ways {
				processor := false
				for _, x := range l {
					processor = processor || !x.card
				}
				for _, x := range l {
					if processor && x.card && x.with != conduits.CoherentOwner {
						t.Fatalf("words of %d bytes, in a segment %v: the card does some without the processor, which does others", 4+4*w, in)
					}
				}
			}
		}
	})
}

// TestCardAlone: a card that has all atomics of a width, and none of them the
// processors', is used for segments.
func TestCardAlone(t *testing.T) {
	u := &unit{recorder: &recorder{}}
	for op := range conduits.NumAtomicOps {
		for typ := range conduits.NumAtomicTypes {
			if typ.Size() == 8 {
				u.ops[op][typ] = conduits.CoherentCard
			}
		}
	}
	e := New("united", u)
	if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &counter{}}); err != nil {
		t.Fatal(err)
	}
	for _, dst := range []int{0, 1} {
		if !e.native(dst, true, conduits.AtomicAdd, conduits.Int64) || e.native(dst, false, conduits.AtomicAdd, conduits.Int64) || e.native(dst, true, conduits.AtomicAdd, conduits.Int32) {
			t.Errorf("rank %d: the card is not used for words of 8 bytes in segments, and for nothing else", dst)
		}
	}
}

// halves is a Transport whose notes name messages.
type halves struct {
	*recorder
	noted  [][]uint32
	refuse bool
}

func (*halves) NotifyWords() int { return 1 }

func (h *halves) PutNotify(_ int, to segment.NLA, src []byte, words []uint32, _ uint64) (bool, error) {
	h.noted = append(h.noted, append([]uint32(nil), words...))
	if h.refuse {
		return false, &segment.FaultError{Addr: to, Len: uint64(len(src))}
	}
	return true, nil
}

// TestHalves: a message and its note are run once, when both have come, whichever came
// first; neither is if the data was refused, and credit comes back.
func TestHalves(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		for _, noteFirst := range []bool{false, true} {
			h := &halves{recorder: &recorder{}, refuse: refuse}
			a := New("halved", h)
			r, c := &recorder{}, &counter{}
			b := New("halved", r)
			for e, to := range map[*Endpoint]conduits.Receiver{a: &counter{}, b: c} {
				if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: to}); err != nil {
					t.Fatal(err)
				}
			}
			const times = 10
			for i := range times {
				s, _, st := a.ReservePut(1, conduits.Request, 2, segment.AttachBase, make([]byte, 64), 7)
				if st != conduits.Ready {
					t.Fatalf("status %d after %d messages", st, i)
				}
				a.Commit(1, conduits.Request, s, 5, 0)
				sent := append(append([][]uint32(nil), h.sent...), h.noted...)
				if refuse { // what goes with the data does not arrive
					sent = h.sent
				}
				if len(sent) != 2 {
					t.Fatalf("%d messages and notes: %x", len(sent), sent)
				}
				h.sent, h.noted = nil, nil
				first := 0
				if noteFirst {
					first = 1
				}
				owner{b}.Deliver(1, sent[first], nil)
				if b.Poll(); c.messages != 0 && (refuse || c.messages != i) {
					t.Fatalf("%d messages have run before the second half of number %d", c.messages, i)
				}
				owner{b}.Deliver(1, sent[1-first], nil)
				b.Poll()
				for _, w := range r.sent { // credit
					owner{a}.Deliver(1, w, nil)
				}
				r.sent = nil
			}
			want := times
			if refuse {
				want = 0
			}
			if c.messages != want || len(b.notes) != 0 || b.peers[1].early != 0 || b.peers[1].queued[0] != 0 {
				t.Errorf("refused %v, note first %v: %d messages have run, want %d; %d halves are left", refuse, noteFirst, c.messages, want, len(b.notes))
			}
			if err := errorOf(a, b); err != nil {
				t.Error(err)
			}
		}
	}
}

// unhurried is a Transport that says later that data is in place.
type unhurried struct{ *halves }

func (*unhurried) NotifyWords() int { return 16 }

func (u *unhurried) PutNotify(dst int, to segment.NLA, src []byte, words []uint32, cookie uint64) (bool, error) {
	u.halves.PutNotify(dst, to, src, words, cookie)
	return false, nil
}

// TestCountedWhenCommitted: a message counts as sent as soon as its rank can have it,
// which may be before its data is known to be in place.
func TestCountedWhenCommitted(t *testing.T) {
	u, c := &unhurried{&halves{recorder: &recorder{}}}, &counter{}
	a, b := New("unhurried", u), New("unhurried", &recorder{})
	for e, to := range map[*Endpoint]conduits.Receiver{a: &counter{}, b: c} {
		if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: to}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(when string) {
		t.Helper()
		var sent, received conduits.Stats
		a.Stats(&sent)
		b.Stats(&received)
		if n, m := sent.Sent[conduits.Reply], received.Received[conduits.Reply]; n != 1 || m != 1 {
			t.Errorf("%s: %d messages sent and %d received", when, n, m)
		}
	}
	s, _, st := a.ReservePut(1, conduits.Reply, 2, segment.AttachBase, make([]byte, 64), 7)
	if st != conduits.Ready {
		t.Fatalf("status %d", st)
	}
	a.Commit(1, conduits.Reply, s, 5, 0)
	owner{b}.Deliver(1, u.noted[0], nil)
	b.Poll()
	count("before the data is known to be in place")
	owner{a}.Complete(0, nil)
	a.Poll()
	count("afterwards")
	if err := errorOf(a, b); err != nil {
		t.Error(err)
	}
}

func errorOf(eps ...*Endpoint) error {
	for _, e := range eps {
		if err := e.Err(); err != nil {
			return err
		}
	}
	return nil
}

// laned is a Transport with a lane of replies. Lanes may be full, and polls are
// counted.
type laned struct {
	*recorder
	full    [lanes]bool
	replies [][]uint32
	polls   [lanes]int
}

func (l *laned) Send(dst int, words []uint32, payload []byte) conduits.Status {
	if l.full[usual] {
		return conduits.NoCredit
	}
	return l.recorder.Send(dst, words, payload)
}

func (l *laned) SendReply(_ int, words []uint32, _ []byte) conduits.Status {
	if l.full[replies] {
		return conduits.NoCredit
	}
	l.replies = append(l.replies, append([]uint32(nil), words...))
	return conduits.Ready
}

func (l *laned) Poll() int        { l.polls[usual]++; return 0 }
func (l *laned) PollReplies() int { l.polls[replies]++; return 0 }

// TestLanes: requests and replies, with credit, go by lanes of their own, and none
// waits for room of the other.
func TestLanes(t *testing.T) {
	l := &laned{recorder: &recorder{}}
	e := New("laned", l)
	if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &counter{}}); err != nil {
		t.Fatal(err)
	}
	send := func(c conduits.Class) {
		t.Helper()
		if st := e.Send(1, c, 1, []uint32{1}); st != conduits.Ready {
			t.Fatal(st)
		}
	}
	check := func(when string, requests, answers int) {
		t.Helper()
		if len(l.sent) != requests || len(l.replies) != answers {
			t.Errorf("%s: %d requests and %d replies are sent, want %d and %d", when, len(l.sent), len(l.replies), requests, answers)
		}
	}
	e.mu.Lock()
	e.carrying = true // polls of the test alone send what waits
	e.mu.Unlock()
	l.full[usual] = true
	send(conduits.Request)
	send(conduits.Reply)
	check("no room for requests", 0, 1)
	for range e.limits.Credits { // credit is returned
		owner{e}.Deliver(1, []uint32{header(kindMessage, conduits.Request, 5)}, nil)
	}
	e.Poll()
	check("credit", 0, 3)
	l.full[replies] = true
	send(conduits.Reply)
	check("no room", 0, 3)
	l.full[replies] = false
	e.Poll()
	check("room for replies", 0, 4)
	l.full[usual] = false
	e.Poll()
	check("room for both", 1, 4)
}

// TestAllBeforeSleep: a handler that waits for credit has replies polled alone, and
// everything before it sleeps.
func TestAllBeforeSleep(t *testing.T) {
	l := &laned{recorder: &recorder{}}
	e := New("laned", l)
	if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &counter{}}); err != nil {
		t.Fatal(err)
	}
	e.PollReplies()
	if l.polls != [lanes]int{replies: 1} {
		t.Errorf("polls %v; want one of replies alone", l.polls)
	}
	ticket := e.Arm(nil)
	e.PollReplies()
	e.Disarm(ticket)
	if l.polls != [lanes]int{usual: 1, replies: 2} {
		t.Errorf("polls %v; want one of everything before a sleep", l.polls)
	}
}
