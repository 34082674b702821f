package conformance

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/segment"
)

// traffic is active messages between all ranks of a job whose arrival is
// accounted for: each request runs once at its destination with the arguments
// and bytes it was sent with, and is answered once, or not, as it asks.
//
// A request carries its id (a number of its own among all requests of its
// source), what answer it wants, and its length; everything else about it
// follows from these, the seed and the source.
type traffic struct {
	c     *ctx
	n     int
	ids   int // requests of one source
	slots int // of them whose data may be under way at the same time
	room  int // bytes of a slot
	ranks []*trafficRank
}

// trafficRank is one rank's account.
type trafficRank struct {
	s       *stack
	to      []int32        // by id: destination + 1, of the rank's own requests; 0: not sent
	answer  []answer       // by id
	runs    []atomic.Int32 // by source*ids + id
	answers []atomic.Int32 // by id
	ran     atomic.Int64
	came    atomic.Int64 // answers
	rng     *rand.Rand   // of handlers
	retry   atomic.Int64 // answers that had no credit at first
}

// answer is how a request wants to be replied to.
type answer uint8

const (
	answerNone answer = iota
	answerShort
	answerTryShort
	answerMedium
	answerLong
	answerPrepared
	answerCancelled // prepared, cancelled, then short
	numAnswers
)

// manner is how a request is sent.
type manner uint8

const (
	plainly manner = iota
	immediately
	prepared     // medium only, as the next two
	preparedNow  // TryPrepareMedium
	cancelled    // prepared and cancelled, then plainly
	withEvent    // long only
	numManners   // of them those for a kind are mannersOf
	handlerTraff = 200
	handlerBack  = 201
)

func mannersOf(k am.Kind) []manner {
	switch k {
	case am.Medium:
		return []manner{plainly, immediately, prepared, preparedNow, cancelled}
	case am.Long:
		return []manner{plainly, immediately, withEvent}
	}
	return []manner{plainly, immediately}
}

// letter is one request.
type letter struct {
	dst, id int
	kind    am.Kind
	size    int
	how     manner
	answer  answer
	inside  bool // the source lies in the own segment
	ev      am.Event
}

// newTraffic plans traffic among n ranks; its layers are what stack needs.
func newTraffic(c *ctx, n, ids, slots, room int) *traffic {
	f := &traffic{c: c, n: n, ids: ids, slots: slots, room: room, ranks: make([]*trafficRank, n)}
	for r := range f.ranks {
		f.ranks[r] = &trafficRank{
			to: make([]int32, ids), answer: make([]answer, ids),
			runs: make([]atomic.Int32, n*ids), answers: make([]atomic.Int32, ids),
			rng: c.Random(uint64(r), 77),
		}
	}
	return f
}

// A segment has places for the requests of each rank, then for the answers to
// the own ones, then for their sources.
func (f *traffic) layers() layers {
	return layers{segment: contract.Pages((f.n + 2) * f.slots * f.room), handlers: f.handlers}
}

func (f *traffic) place(src, id int) segment.NLA {
	return contract.At((src*f.slots + id%f.slots) * f.room)
}

func (f *traffic) answerPlace(id int) segment.NLA {
	return contract.At((f.n*f.slots + id%f.slots) * f.room)
}

func (f *traffic) sourcePlace(id int) segment.NLA {
	return contract.At(((f.n+1)*f.slots + id%f.slots) * f.room)
}

func (f *traffic) handlers(s *stack) []am.Entry {
	f.ranks[s.Rank].s = s
	return []am.Entry{
		{Index: handlerTraff, Name: "traffic", Fn: f.onRequest, Args: am.AnyArgs, Kinds: am.Request},
		{Index: handlerBack, Name: "traffic.back", Fn: f.onReply, Args: am.AnyArgs, Kinds: am.Reply},
	}
}

// keys of a message's bytes and further arguments.
func (f *traffic) key(src, dst, id int, reply bool) uint64 {
	k := contract.Mix(f.c.Seed, uint64(src), uint64(dst), uint64(id))
	if reply {
		k = ^k
	}
	return k
}

const trafficWords = 2 // id; answer, size

func (f *traffic) args(w []uint32, key uint64, id, size int, a answer) []uint32 {
	w = append(w, uint32(id), uint32(a)<<24|uint32(size))
	for i := range key % (am.MaxArgs - trafficWords + 1) {
		w = append(w, uint32(contract.Mix(key, i)))
	}
	return w
}

// checkArgs reports whether args are those that args makes.
func (f *traffic) checkArgs(args []uint32, key uint64) bool {
	if len(args) != trafficWords+int(key%(am.MaxArgs-trafficWords+1)) {
		return false
	}
	for i, v := range args[trafficWords:] {
		if v != uint32(contract.Mix(key, uint64(i))) {
			return false
		}
	}
	return true
}

// send sends l, or answers false if that is not possible now. It may be called
// by many goroutines with letters of different ids.
func (f *traffic) send(r *trafficRank, l *letter) bool {
	s := r.s
	key := f.key(s.Rank, l.dst, l.id, false)
	var buf [am.MaxArgs]uint32
	args := f.args(buf[:0], key, l.id, l.size, l.answer)
	var src []byte
	if l.kind != am.Short && l.size > 0 {
		if l.inside {
			src = s.ext.Direct(s.Rank, f.sourcePlace(l.id), uint64(l.size))
		} else {
			// An odd address now and then.
			src = make([]byte, l.size+1)[l.id&1:][:l.size]
		}
		contract.Fill(src, key, 0)
	}
	r.to[l.id], r.answer[l.id] = int32(l.dst+1), l.answer
	sent, err := true, error(nil)
	switch l.kind {
	case am.Short:
		if l.how == immediately {
			sent, err = s.am.TryRequestShort(l.dst, handlerTraff, args...)
		} else {
			err = s.am.RequestShort(l.dst, handlerTraff, args...)
		}
	case am.Medium:
		sent, err = f.sendMedium(s, l, src, args)
	default:
		to := f.place(s.Rank, l.id)
		switch l.how {
		case immediately:
			sent, err = s.am.TryRequestLong(l.dst, handlerTraff, to, src, &l.ev, args...)
		case withEvent:
			err = s.am.RequestLongNB(l.dst, handlerTraff, to, src, &l.ev, args...)
		default:
			err = s.am.RequestLong(l.dst, handlerTraff, to, src, args...)
		}
		if err == nil && !sent && !l.ev.Done() {
			s.Fatalf("long request %d was not sent, and its event is pending", l.id)
		}
		if err == nil {
			err = s.am.WaitEvent(&l.ev)
		}
	}
	s.Must(err)
	contract.Spoil(src) // it is the caller's again
	return sent
}

func (f *traffic) sendMedium(s *stack, l *letter, src []byte, args []uint32) (sent bool, err error) {
	var p am.Prepared
	switch l.how {
	case immediately:
		return s.am.TryRequestMedium(l.dst, handlerTraff, src, args...)
	case prepared, cancelled:
		p, err = s.am.PrepareMedium(l.dst, handlerTraff, l.size, l.size+l.id%3*1000, len(args))
	case preparedNow:
		p, sent, err = s.am.TryPrepareMedium(l.dst, handlerTraff, l.size, l.size, len(args))
		if !sent {
			return false, err
		}
	default:
		return true, s.am.RequestMedium(l.dst, handlerTraff, src, args...)
	}
	if err != nil {
		return false, err
	}
	if b := p.Payload(); len(b) < l.size || len(b) > s.am.MaxMedium() {
		s.Errorf("prepared %d bytes, got %d of at most %d", l.size, len(b), s.am.MaxMedium())
	}
	copy(p.Payload(), src)
	if l.how == cancelled {
		contract.Spoil(p.Payload())
		if err := p.Cancel(); err != nil {
			return false, err
		}
		return true, s.am.RequestMedium(l.dst, handlerTraff, src, args...)
	}
	return true, p.Commit(l.size, args...)
}

// onRequest checks one request and answers it.
func (f *traffic) onRequest(t *am.Token, args []uint32, payload []byte) {
	me := t.Messenger().Rank()
	r, src := f.ranks[me], t.Src()
	s := r.s
	if len(args) < trafficWords || int(args[0]) >= f.ids || src < 0 || src >= f.n {
		s.Errorf("request from %d with arguments %#x", src, args)
		return
	}
	id, a, size := int(args[0]), answer(args[1]>>24), int(args[1]&(1<<24-1))
	key := f.key(src, me, id, false)
	if !f.checkArgs(args, key) {
		s.Errorf("request %d of rank %d: arguments %#x", id, src, args)
	}
	f.check(s, t, "request", src, id, size, key, payload, f.place(src, id))
	if n := r.runs[src*f.ids+id].Add(1); n != 1 {
		s.Errorf("request %d of rank %d ran %d times", id, src, n)
	}
	f.reply(r, t, id, a, size)
	// A reply may run other handlers, of replies, but what came stays until this
	// one returns; in the segment only if the source does not use the place again
	// once it has been answered.
	if f.slots == f.ids || t.Kind()&am.Medium != 0 {
		if i := contract.Wrong(payload, key, 0); i >= 0 {
			s.Errorf("request %d of rank %d: byte %d of %d changed while it was replied to", id, src, i, len(payload))
		}
	}
	if t.Kind()&am.Medium != 0 {
		contract.Spoil(payload) // allowed
	}
	r.ran.Add(1)
	s.EP.Wake(me)
}

// check checks what came with a message but for its arguments.
func (f *traffic) check(s *stack, t *am.Token, what string, src, id, size int, key uint64, payload []byte, to segment.NLA) {
	if t.Kind()&am.Short != 0 {
		if payload != nil || t.To() != 0 {
			s.Errorf("short %s %d of rank %d has %d bytes and address %v", what, id, src, len(payload), t.To())
		}
		return
	}
	if len(payload) != size {
		s.Errorf("%v %d of rank %d has %d bytes, not %d", t.Kind(), id, src, len(payload), size)
	}
	if i := contract.Wrong(payload, key, 0); i >= 0 {
		s.Errorf("%v %d of rank %d: byte %d of %d is %#x, not %#x", t.Kind(), id, src, i, size, payload[i], contract.ByteOf(key, i))
	}
	if t.Kind()&am.Long == 0 {
		to = 0
	}
	if t.To() != to {
		s.Errorf("%v %d of rank %d went to %v, not %v", t.Kind(), id, src, t.To(), to)
	}
}

// reply answers request id of the token's source.
func (f *traffic) reply(r *trafficRank, t *am.Token, id int, a answer, size int) {
	s, src := r.s, t.Src()
	key := f.key(src, s.Rank, id, true)
	var buf [am.MaxArgs]uint32
	args := f.args(buf[:0], key, id, size, a)
	var err error
	switch a {
	case answerNone:
	case answerTryShort:
		var ok bool
		if ok, err = t.TryReplyShort(handlerBack, args...); !ok && err == nil {
			r.retry.Add(1)
			err = t.ReplyShort(handlerBack, args...)
		}
	case answerMedium:
		err = t.ReplyMedium(handlerBack, contract.Fill(make([]byte, size), key, 0), args...)
	case answerLong:
		b := contract.Fill(make([]byte, size), key, 0)
		err = t.ReplyLong(handlerBack, f.answerPlace(id), b, args...)
		contract.Spoil(b)
	case answerPrepared, answerCancelled:
		var p am.Prepared
		if p, err = t.PrepareMedium(handlerBack, size, size+10, len(args)); err == nil {
			contract.Fill(p.Payload(), key, 0)
			if a == answerPrepared {
				err = p.Commit(size, args...)
				break
			}
			contract.Spoil(p.Payload())
			if err = p.Cancel(); err == nil {
				err = t.ReplyShort(handlerBack, args...)
			}
		}
	default:
		err = t.ReplyShort(handlerBack, args...)
	}
	if err != nil && !s.C.Failed() {
		s.Errorf("answer %d to request %d of rank %d: %v", a, id, src, err)
	}
}

// onReply checks one answer.
func (f *traffic) onReply(t *am.Token, args []uint32, payload []byte) {
	me := t.Messenger().Rank()
	r, src := f.ranks[me], t.Src()
	s := r.s
	if len(args) < trafficWords || int(args[0]) >= f.ids {
		s.Errorf("reply of %d with arguments %#x", src, args)
		return
	}
	id, size := int(args[0]), int(args[1]&(1<<24-1))
	key := f.key(me, src, id, true)
	if !f.checkArgs(args, key) {
		s.Errorf("answer to request %d by rank %d: arguments %#x", id, src, args)
	}
	f.check(s, t, "answer", src, id, size, key, payload, f.answerPlace(id))
	if want := int(r.to[id]) - 1; want != src {
		s.Errorf("rank %d answered request %d, which went to %d", src, id, want)
	}
	if n := r.answers[id].Add(1); n != 1 {
		s.Errorf("request %d was answered %d times", id, n)
	}
	r.came.Add(1)
	s.EP.Wake(me)
}

// flush waits until requests ids from low to high-1 of r have been answered.
func (f *traffic) flush(r *trafficRank, low, high int) {
	r.s.Wait("answers", func() bool {
		for id := low; id < high; id++ {
			if r.answer[id] != answerNone && r.to[id] != 0 && r.answers[id].Load() == 0 {
				return false
			}
		}
		return true
	})
}

// verify waits until all that was sent to this rank has run and all it asked for has
// been answered, and checks the account. Collective.
func (f *traffic) verify(r *trafficRank) {
	s := r.s
	s.barrier() // now the account of all that was sent is complete
	var runs, answers int64
	for src, o := range f.ranks {
		for id := range f.ids {
			if int(o.to[id]) == s.Rank+1 {
				runs++
			}
			if src == s.Rank && o.to[id] != 0 && o.answer[id] != answerNone {
				answers++
			}
		}
	}
	s.Must(s.am.Wait(contract.Waiting("traffic"), func() bool { return r.ran.Load() >= runs && r.came.Load() >= answers }))
	s.barrier()
	s.am.Poll() // whatever should not be there
	s.barrier()
	for src, o := range f.ranks {
		for id := range f.ids {
			want := int32(0)
			if int(o.to[id]) == s.Rank+1 {
				want = 1
			}
			if n := r.runs[src*f.ids+id].Load(); n != want {
				s.Errorf("request %d of rank %d ran %d times here, not %d", id, src, n, want)
			}
		}
	}
	for id := range f.ids {
		want := int32(0)
		if r.to[id] != 0 && r.answer[id] != answerNone {
			want = 1
		}
		if n := r.answers[id].Load(); n != want {
			s.Errorf("request %d was answered %d times, not %d", id, n, want)
		}
	}
}

// run runs body as each rank of a job with this traffic, then verify.
func (f *traffic) run(body func(s *stack, r *trafficRank)) {
	f.c.Helper()
	f.c.stack(f.n, conduits.Config{}, f.layers(), func(s *stack) {
		r := f.ranks[s.Rank]
		body(s, r)
		f.verify(r)
	})
}

// draw makes up a letter.
func (f *traffic) draw(rng *rand.Rand, dst, id int) *letter {
	l := &letter{dst: dst, id: id, kind: am.Short << rng.IntN(3), answer: answer(rng.IntN(int(numAnswers))), inside: rng.IntN(4) == 0}
	m := mannersOf(l.kind)
	l.how = m[rng.IntN(len(m))]
	l.size = rng.IntN(min(f.room, 512) + 1)
	if rng.IntN(8) == 0 {
		l.size = 0
	}
	return l
}

// post sends l, polling until it has been sent.
func (f *traffic) post(r *trafficRank, l *letter) {
	for !f.send(r, l) {
		r.s.poll()
		r.s.Must(r.s.EP.Err())
	}
}
