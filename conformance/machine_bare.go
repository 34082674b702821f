package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// bareActions are those of programs on bare endpoints.
//
//	send        a message of Arg words and Len bytes, and a reply; forms below
//	bput bget   transfers of Len bytes
//	bword       the low 1, 2, 4 or 8 bytes (Len mod 4) of Value
//	batomic     as atomic
//	park        arm, and park until Peer wakes the rank
//	disarm      arm, and disarm
//	register    At, Len: what of the arena of kind Arg mod 2; Value: the rights, and whether for Peer alone
//	deregister  a window, which Arg chooses
//	rput rget rword ratomic    as on the segment, in a window
//	rlong       a message with data for a window
//	drain poll check    as for the layers
var bareActions = []action{
	{"send", 14, []string{"", "reserve", "reserve", "cancel", "put", "put", "cancelput"}},
	{"bput", 5, nil},
	{"bget", 5, nil},
	{"bword", 4, nil},
	{"batomic", 5, nil},
	{"register", 5, nil},
	{"deregister", 2, nil},
	{"rput", 4, nil},
	{"rget", 4, nil},
	{"rword", 3, nil},
	{"ratomic", 4, nil},
	{"rlong", 4, nil},
	{"park", 2, nil},
	{"disarm", 1, nil},
	{"drain", 2, nil},
	{"poll", 2, nil},
	{"check", 1, nil},
}

// bareOp is one RMA operation on a bare endpoint. Its owner alone touches it.
type bareOp struct {
	want, have conduits.Event
	value      uint64
	src        []byte // may be reused at SourceDone
	check      func() string

	mayFail bool  // the target refuses it
	err     error // with which it has done so
}

// bareMessage is one message on bare endpoints; its tag is its index.
type bareMessage struct {
	id, src, dst int
	words        []uint32
	payload      []byte
	to           segment.NLA
	long         bool
	window       *window // where the data goes, at off, or nil: to the segment
	off          int

	reply              int
	rpayload           []byte
	rto                segment.NLA
	delivered, replied atomic.Int32
}

// Replies to bare messages: Step.Value modulo numBareReplies.
const (
	bareNone = iota
	bareSmall
	barePayload
	bareReserved
	bareLong
	numBareReplies
)

// startBare fills the segments by each rank's own puts.
func (m *model) startBare() {
	begin := m.snapshot()
	m.together(func(a *actor) {
		if b := begin[a.rank]; len(b) > 0 {
			a.finishOp(a.startOp(conduits.RemoteDone, b, func(c uint64) (uint64, conduits.Event, error) {
				ev, err := post.Put(a.ep, a.rank, segment.AttachBase, b, conduits.RemoteDone, c)
				return 0, ev, err
			}))
		}
	}, nil)
}

// read gets n bytes of rank's segment and waits for them.
func (a *actor) read(rank int, from segment.NLA, n int) []byte {
	got := make([]byte, n)
	if n > 0 {
		a.finishOp(a.startOp(conduits.RemoteDone, nil, func(c uint64) (uint64, conduits.Event, error) {
			ev, err := post.Get(a.ep, got, rank, from, conduits.RemoteDone, c)
			return 0, ev, err
		}))
	}
	return got
}

// startOp begins an operation.
func (a *actor) startOp(want conduits.Event, src []byte, call func(cookie uint64) (uint64, conduits.Event, error)) *bareOp {
	o := &bareOp{want: want, src: src}
	a.begin0(o, call)
	return o
}

func (a *actor) begin0(o *bareOp, call func(cookie uint64) (uint64, conduits.Event, error)) {
	a.ops = append(a.ops, o)
	v, ev, err := call(uint64(len(a.ops) - 1))
	a.want(err)
	if ev &= o.want; ev&conduits.RemoteDone != 0 {
		o.value = v
	}
	o.happened(ev)
}

func (o *bareOp) happened(ev conduits.Event) {
	if o.have |= ev; ev&conduits.SourceDone != 0 {
		scramble(o.src, 94)
	}
}

// finishOp waits for all completions and looks at the result.
func (a *actor) finishOp(o *bareOp) {
	a.until("completions", func() bool { return o.have == o.want })
	if o.check != nil {
		if text := o.check(); text != "" {
			a.fatalf("%s", text)
		}
	}
}

// Complete takes a completion.
func (r bareReceiver) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	a := r.a
	a.watch.Step()
	if cookie >= replyCookie {
		if ev != conduits.SourceDone || err != nil {
			a.errorf("completion %v of the put of a reply: %v", ev, err)
		}
		return
	}
	if cookie >= uint64(len(a.ops)) {
		a.errorf("completion of %#x, which was not begun", cookie)
		return
	}
	o := a.ops[cookie]
	if ev == 0 || ev&^o.want != 0 || ev&o.have != 0 || !o.fault(err) {
		a.errorf("completion %v with error %v, of an operation that wants %v and has had %v", ev, err, o.want, o.have)
		return
	}
	if ev&conduits.RemoteDone != 0 {
		o.value = value
	}
	o.happened(ev)
}

// replyCookie and above are the puts of replies, whose data is never reused.
const replyCookie = 1 << 40

// bareAccess writes down an operation that stays under way.
func (m *model) bareAccess(s Step, write bool, r run, wants []error, begin func(a *actor, cookie uint64, o *bareOp) (uint64, conduits.Event, error), src []byte, check func(o *bareOp) string) bool {
	if err := m.reach(s.Peer, []run{r}); err != nil {
		return false // bare endpoints check addresses, and their callers ranks
	}
	if len(wants) > 0 {
		m.by(s.Rank, func(a *actor) {
			_, _, err := begin(a, replyCookie-1, &bareOp{want: conduits.RemoteDone})
			a.want(err, wants...)
		})
		return false
	}
	spans := spansOf(s.Peer, write, r)
	m.claim(spans)
	want := conduits.RemoteDone
	if src != nil && s.Arg&1 != 0 {
		want |= conduits.SourceDone
	}
	o := &bareOp{want: want, src: src}
	o.check = func() string { return check(o) }
	m.under = append(m.under, &pending{owner: s.Rank, how: "bare", spans: spans, o: o})
	m.by(s.Rank, func(a *actor) {
		a.begin0(o, func(c uint64) (uint64, conduits.Event, error) { return begin(a, c, o) })
	})
	return true
}

func fine(*bareOp) string { return "" }

// outside says that the operation must be refused: its rank exists, and its
// bytes do not.
func (m *model) outside(s Step, r run) []error {
	if m.reach(s.Peer, nil) == nil && m.reach(s.Peer, []run{r}) != nil {
		return []error{am.ErrBadArg}
	}
	return nil
}

// refused has the rank try what must be refused.
func (m *model) refused(s Step, call func(a *actor, cookie uint64) error) {
	m.by(s.Rank, func(a *actor) { a.want(call(a, replyCookie-1), am.ErrBadArg) })
}

func (m *model) barePut(s Step) {
	n := max(1, m.length(s.Len))
	if uint64(n) > m.maxLong {
		return
	}
	r, data := run{s.At, n}, scrambled(n, s.Value)
	if m.vague(s.Peer, []run{r}) {
		return
	}
	if m.outside(s, r) != nil {
		m.refused(s, func(a *actor, c uint64) error {
			_, err := post.Put(a.ep, s.Peer, addr(s.At), data, conduits.RemoteDone, c)
			return err
		})
		return
	}
	src := slices.Clone(data)
	if m.bareAccess(s, true, r, nil, func(a *actor, c uint64, o *bareOp) (uint64, conduits.Event, error) {
		ev, err := post.Put(a.ep, s.Peer, addr(s.At), src, o.want, c)
		return 0, ev, err
	}, src, fine) {
		copy(m.mem[s.Peer][s.At:], data)
	}
}

func (m *model) bareGet(s Step) {
	n := max(1, m.length(s.Len))
	if uint64(n) > m.maxLong {
		return
	}
	r := run{s.At, n}
	if m.vague(s.Peer, []run{r}) {
		return
	}
	if m.outside(s, r) != nil {
		m.refused(s, func(a *actor, c uint64) error {
			_, err := post.Get(a.ep, make([]byte, n), s.Peer, addr(s.At), conduits.RemoteDone, c)
			return err
		})
		return
	}
	b := newGuarded(n)
	var want []byte
	if m.reach(s.Peer, []run{r}) == nil {
		want = slices.Clone(m.mem[s.Peer][s.At : s.At+n])
	}
	m.bareAccess(s, false, r, nil, func(a *actor, c uint64, o *bareOp) (uint64, conduits.Event, error) {
		ev, err := post.Get(a.ep, b.bytes(), s.Peer, addr(s.At), o.want, c)
		return 0, ev, err
	}, nil, func(*bareOp) string { return b.differs(want) })
}

func (m *model) bareWord(s Step) {
	n := 1 << mod(s.Len, 4)
	s.At -= mod(s.At, n)
	call := func(a *actor, c uint64, o *bareOp) (uint64, conduits.Event, error) {
		ev, err := post.PutWord(a.ep, s.Peer, addr(s.At), s.Value, n, o.want, c)
		return 0, ev, err
	}
	r := run{s.At, n}
	if m.vague(s.Peer, []run{r}) {
		return
	}
	if m.outside(s, r) != nil {
		m.refused(s, func(a *actor, c uint64) error {
			_, _, err := call(a, c, &bareOp{want: conduits.RemoteDone})
			return err
		})
		return
	}
	if m.bareAccess(s, true, r, nil, call, nil, fine) {
		m.setWord(s.Peer, s.At, n, s.Value)
	}
}

func (m *model) bareAtomic(s Step) {
	t := conduits.AtomicType(mod(s.Arg, int(conduits.NumAtomicTypes)))
	op := conduits.AtomicOp(mod(s.Arg/int(conduits.NumAtomicTypes), int(conduits.NumAtomicOps)))
	n := t.Size()
	s.At -= mod(s.At, n)
	var wants []error
	if conduits.CheckAtomic("", op, t, 0) != nil {
		wants = []error{extended.ErrNotSupported}
	}
	r := run{s.At, n}
	a, b := operand(t, s.Value), operand(t, s.Value>>3)
	var old, now uint64
	if m.reach(s.Peer, []run{r}) == nil && wants == nil {
		old = m.word(s.Peer, s.At, n)
		if t.Float() && math.IsNaN(float(t, old)) {
			op = conduits.AtomicStore
		}
		if s.Value&1 == 0 && (op == conduits.AtomicCAS || op == conduits.AtomicFCAA) {
			a = old
		}
		now = applied(op, t, old, a, b)
	}
	call := func(r *actor, c uint64, _ *bareOp) (uint64, conduits.Event, error) {
		return post.Atomic(r.ep, s.Peer, addr(s.At), op, t, a, b, c)
	}
	if m.vague(s.Peer, []run{r}) {
		return
	}
	if m.outside(s, r) != nil {
		if wants == nil {
			m.refused(s, func(r *actor, c uint64) error {
				_, _, err := call(r, c, nil)
				return err
			})
		}
		return
	}
	s.Arg = 0
	if m.bareAccess(s, true, r, wants, call, nil, func(o *bareOp) string {
		if o.value != old {
			return fmt.Sprintf("atomic %d of type %d with %#x and %#x on %#x gives %#x", op, t, a, b, old, o.value)
		}
		return ""
	}) {
		m.setWord(s.Peer, s.At, n, now)
	}
}

func (m *model) disarm(s Step) {
	m.by(s.Rank, func(a *actor) { a.ep.Disarm(a.ep.Arm(contract.Waiting("nothing"))) })
}

// park has the rank park, and Peer wake it once it has armed.
func (m *model) park(s Step) {
	if m.reach(s.Peer, nil) != nil {
		return
	}
	var armed, woken atomic.Bool
	ranks := []int{s.Rank}
	if s.Peer != s.Rank {
		ranks = append(ranks, s.Peer)
	}
	m.moves = append(m.moves, &move{step: m.step, ranks: ranks, run: func(a *actor) {
		if a.rank == s.Rank {
			for !woken.Load() {
				t := a.ep.Arm(contract.Waiting("a wake-up"))
				armed.Store(true)
				a.ep.Wake(s.Peer)
				if s.Peer == s.Rank {
					woken.Store(true)
				} else if a.want(a.ep.Err()); woken.Load() {
					a.ep.Disarm(t)
					break
				}
				a.ep.Park(t)
				a.ep.Poll()
			}
			return
		}
		a.until("a rank to arm", armed.Load)
		woken.Store(true)
		a.ep.Wake(s.Rank)
	}})
}

func (m *model) bareSend(s Step) {
	if m.reach(s.Peer, nil) != nil {
		return // its callers check ranks
	}
	q := &bareMessage{id: len(m.bare), src: s.Rank, dst: s.Peer, words: make([]uint32, mod(s.Arg, conduits.MaxWords+1))}
	for i := range q.words {
		q.words[i] = uint32(q.id+i) * 0x9e3779b1
	}
	n := min(m.length(s.Len), m.maxMedium)
	var spans []span
	if q.long = s.Form == "put" || s.Form == "cancelput"; q.long {
		if m.reach(s.Peer, []run{{s.At, n}}) != nil {
			return
		}
		q.to = addr(s.At)
		spans = spansOf(s.Peer, true, run{s.At, n})
	}
	q.payload = scrambled(n, uint64(q.id)+5000)
	g := rand.New(rand.NewPCG(s.Value, 3))
	q.reply = int(s.Value % numBareReplies)
	q.rpayload = scrambled(1+g.IntN(400), uint64(q.id)+9000)
	room := len(m.mem[s.Rank])
	if q.reply == bareLong {
		q.rpayload = q.rpayload[:min(len(q.rpayload), room)]
		off := g.IntN(room - len(q.rpayload) + 1)
		q.rto = addr(off)
		if back := spansOf(s.Rank, true, run{off, len(q.rpayload)}); clash(spans, back) || len(back) == 0 {
			q.reply = bareSmall
		} else {
			spans = append(spans, back...)
		}
	}
	m.claim(spans)
	if s.Form == "cancel" || s.Form == "cancelput" {
		if q.long {
			return // whether the data is put then is not promised
		}
		m.by(s.Rank, func(a *actor) {
			a.ep.Cancel(q.dst, conduits.Request, a.room("reserve", func() (conduits.Slot, conduits.Status) {
				return a.ep.Reserve(q.dst, conduits.Request, len(q.words), n)
			}))
		})
		return
	}
	if q.long {
		copy(m.mem[s.Peer][min(max(s.At, 0), len(m.mem[s.Peer])):], q.payload)
	}
	if q.reply == bareLong {
		copy(m.mem[s.Rank][int(q.rto-segment.AttachBase):], q.rpayload)
	}
	m.bare = append(m.bare, q)
	m.under = append(m.under, &pending{owner: s.Rank, how: "message", spans: spans, b: q})
	m.by(s.Rank, func(a *actor) { a.sendBare(q, s.Form) })
}

// room waits for credit.
func (a *actor) room(what contract.Waiting, reserve func() (conduits.Slot, conduits.Status)) (s conduits.Slot) {
	var st conduits.Status
	a.until(what, func() bool { s, st = reserve(); return st != conduits.NoCredit })
	if st != conduits.Ready {
		a.fatalf("%v: the job is dead: %v", what, a.ep.Err())
	}
	return s
}

// sendBare sends q, and waits for its data to have been read.
func (a *actor) sendBare(q *bareMessage, form string) {
	tag := conduits.Tag(q.id)
	switch {
	case q.long:
		o := &bareOp{want: conduits.SourceDone, mayFail: q.window != nil}
		a.ops = append(a.ops, o)
		if q.window != nil {
			q.to = q.window.to + segment.NLA(q.off)
		}
		s := a.room("put with a message", func() (conduits.Slot, conduits.Status) {
			s, ev, st := a.ep.ReservePut(q.dst, conduits.Request, len(q.words), q.to, q.payload, uint64(len(a.ops)-1))
			if st == conduits.Ready {
				o.have = ev & conduits.SourceDone
			}
			return s, st
		})
		copy(s.Words, q.words)
		a.ep.Commit(q.dst, conduits.Request, s, tag, len(q.payload))
		a.finishOp(o)
	case form == "reserve":
		more := min(len(q.payload)+5, a.ep.Limits().MaxMedium)
		s := a.room("reserve", func() (conduits.Slot, conduits.Status) {
			return a.ep.Reserve(q.dst, conduits.Request, len(q.words), more)
		})
		if len(s.Words) != len(q.words) || len(s.Payload) != more {
			a.fatalf("room of %d words and %d bytes for %d and %d", len(s.Words), len(s.Payload), len(q.words), more)
		}
		copy(s.Words, q.words)
		copy(s.Payload, q.payload)
		a.ep.Commit(q.dst, conduits.Request, s, tag, len(q.payload))
	default:
		words, payload := slices.Clone(q.words), slices.Clone(q.payload)
		a.room("send", func() (conduits.Slot, conduits.Status) {
			if len(payload) == 0 {
				return conduits.Slot{}, a.ep.Send(q.dst, conduits.Request, tag, words)
			}
			return conduits.Slot{}, a.ep.SendPayload(q.dst, conduits.Request, tag, words, payload, 0)
		})
		clear(words)
		scramble(payload, 93)
	}
}

// awaitBare waits until q has been received and answered.
func (a *actor) awaitBare(q *bareMessage) {
	replies := int32(min(q.reply, 1))
	a.until("a message and its reply", func() bool { return q.delivered.Load() > 0 && q.replied.Load() >= replies })
	if d, r := q.delivered.Load(), q.replied.Load(); d != 1 || r != replies {
		a.fatalf("a message was delivered %d times and replied to %d times", d, r)
	}
}

// bareReceiver is the layer above a bare endpoint.
type bareReceiver struct{ a *actor }

// Receive checks a message and replies.
func (r bareReceiver) Receive(got *conduits.Message) {
	a := r.a
	a.watch.Step()
	if int(got.Tag) >= len(a.bare) {
		a.errorf("a %v with tag %d, which was not sent", got.Class, got.Tag)
		return
	}
	q := a.bare[got.Tag]
	src, dst, payload, to, words := q.src, q.dst, q.payload, q.to, q.words
	if got.Class == conduits.Reply {
		src, dst, payload, to = dst, src, nil, 0
		if q.reply >= barePayload {
			payload = q.rpayload
		}
		if q.reply == bareLong {
			to = q.rto
		}
	}
	switch d := difference(got.Payload, payload); {
	case got.Src != src || a.rank != dst:
		a.errorf("%v from %d to %d arrived as one from %d", got.Class, src, dst, got.Src)
	case got.To != to || !slices.Equal(got.Words, words):
		a.errorf("%v with words %#x and data at %v, not %#x and %v", got.Class, got.Words, got.To, words, to)
	case d != "":
		a.errorf("%v: %s", got.Class, d)
	case got.Class == conduits.Reply:
		q.replied.Add(1)
	default:
		if to == 0 {
			scramble(got.Payload, 92) // the receiver's own
		}
		a.replyBare(q)
		q.delivered.Add(1)
		a.ep.Wake(q.src)
	}
}

func (a *actor) replyBare(q *bareMessage) {
	tag := conduits.Tag(q.id)
	for idle := 0; ; idle++ {
		st := conduits.Ready
		var s conduits.Slot
		switch q.reply {
		case bareSmall:
			st = a.ep.Send(q.src, conduits.Reply, tag, q.words)
		case barePayload:
			st = a.ep.SendPayload(q.src, conduits.Reply, tag, q.words, q.rpayload, 0)
		case bareReserved:
			if s, st = a.ep.Reserve(q.src, conduits.Reply, len(q.words), len(q.rpayload)); st == conduits.Ready {
				copy(s.Words, q.words)
				copy(s.Payload, q.rpayload)
				a.ep.Commit(q.src, conduits.Reply, s, tag, len(q.rpayload))
			}
		case bareLong:
			if s, _, st = a.ep.ReservePut(q.src, conduits.Reply, len(q.words), q.rto, q.rpayload, replyCookie+uint64(q.id)); st == conduits.Ready {
				copy(s.Words, q.words)
				a.ep.Commit(q.src, conduits.Reply, s, tag, len(q.rpayload))
			}
		}
		if st == conduits.Ready || a.ep.Err() != nil {
			return
		}
		if a.ep.PollReplies() > 0 {
			idle = 0
		}
		a.ep.Idle(idle)
	}
}
