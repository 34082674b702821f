package conformance

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// Views gives the own rank's entry only.
func (h hiding) Views() (first int, views []segment.View) {
	first, views = h.Endpoint.Views()
	i := h.Rank() - first
	return h.Rank(), views[i : i+1]
}

// System is nil for other ranks.
func (h hiding) System(rank int, area conduits.SystemArea) []byte {
	if rank != h.Rank() {
		return nil
	}
	return h.Endpoint.System(rank, area)
}

// performance is a program under way.
type performance struct {
	p     *Program
	moves []*move
	msgs  []*message
	bare  []*bareMessage
	eps   []conduits.Endpoint
	turn  atomic.Int64 // the move whose turn it is
	left  atomic.Int32 // ranks that have not finished it
	watch contract.Watch

	mu      sync.Mutex
	failure string
}

// execute runs p on a new job and says how it differs from the model, if it
// does.
func execute(open contract.Open, p Program, pt contract.Patience) string {
	n := min(max(p.Ranks, 1), 16)
	raw, err := open(n, conduits.Config{Seed: p.Seed})
	if err != nil {
		return fmt.Sprintf("open %d ranks: %v", n, err)
	}
	m := newModel(&p, raw[0].Limits())
	if err := m.plan(&p); err != nil {
		return err.Error()
	}
	j := &performance{p: &p, moves: m.moves, msgs: m.msgs, bare: m.bare, eps: slices.Clone(raw)}
	j.left.Store(int32(len(m.moves[0].ranks)))
	for i, ep := range raw {
		if p.Hidden {
			j.eps[i] = hiding{ep}
		}
	}
	j.watch.Job(j.eps)
	if _, ok := conduits.As[conduits.Runner](raw[0]); ok {
		conduits.Run(raw, j.rank)
	} else if stuck := j.watch.Guard(pt, func(text string) { j.blame("%s", text) }, func() { conduits.Run(raw, j.rank) }); stuck != "" {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.failure + "\n" + stuck
	}
	for i, ep := range raw {
		if err := ep.Close(); err != nil {
			j.blame("rank %d: close: %v", i, err)
		}
	}
	return j.failure
}

// fail records what went wrong first and ends the job.
func (j *performance) fail(ep conduits.Endpoint, format string, args ...any) {
	ep.Fail(errors.New("conformance: " + j.blame(format, args...)))
}

// blame records what went wrong first.
func (j *performance) blame(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := int(j.turn.Load()); j.failure == "" {
		j.failure = text
		if i < len(j.moves) && j.moves[i].step >= 0 {
			k := j.moves[i].step
			j.failure = fmt.Sprintf("at step %d, {%s}: %s", k, strings.TrimSuffix(fields(j.p.Steps[k]), ","), text)
		}
	}
	return text
}

// stopped is the panic of an actor that cannot go on.
type stopped struct{}

// rank is the life of one rank.
func (j *performance) rank(i int) {
	a := &actor{performance: j, rank: i, ep: j.eps[i]}
	defer func() {
		j.watch.Over(i)
		switch r := recover(); r {
		case nil, stopped{}:
		default:
			j.fail(a.ep, "rank %d panics: %v\n%s", i, r, debug.Stack())
		}
	}()
	a.attach()
	j.watch.Up(i)
	for k, mv := range j.moves {
		if !slices.Contains(mv.ranks, i) {
			continue
		}
		a.until(myTurn, func() bool { return j.turn.Load() == int64(k) })
		mv.run(a)
		j.watch.Step()
		if j.left.Add(-1) > 0 {
			continue
		}
		if mv.end != nil {
			if text := mv.end(); text != "" {
				a.fatalf("%s", text)
			}
		}
		if k+1 == len(j.moves) {
			j.turn.Store(int64(k + 1))
			for r := range j.eps {
				a.ep.Wake(r)
			}
			continue
		}
		next := j.moves[k+1].ranks
		j.left.Store(int32(len(next)))
		j.turn.Store(int64(k + 1))
		for _, r := range next {
			a.ep.Wake(r)
		}
	}
	a.until("all have finished", func() bool { return j.turn.Load() == int64(len(j.moves)) })
}

const myTurn = contract.Waiting("its turn")

// actor is one rank as it acts.
type actor struct {
	*performance
	rank int
	ep   conduits.Endpoint
	am   *am.Messenger
	x    *extended.Initiator
	bar  *barrier.Barrier

	live   []*flight // handles that have to be synchronized
	last   extended.Handle
	set    *extended.Region
	region extended.Region
	begun  bool // region belongs to the endpoint
	parts  []*flight
	ops    []*bareOp // of a bare program, by cookie
	// arenas are the memory beyond the segment, the last of which is of mapping.
	arenas  [arenas][]byte
	mapping []byte
	// counted has the operations of the implicit and the own set, by category.
	counted map[string][]*flight
}

// flight is one operation as it runs. Its owner alone touches it.
type flight struct {
	h     extended.Handle
	cat   extended.Category
	parts []*flight     // of an access region
	check func() string // what is wrong with the result; may be nil
	src   []byte        // may be reused when the flight is over
}

// The handlers.
const (
	onRequest am.HandlerID = 200 + iota
	onBare                 // requests without arguments
	onReply
	onShort // accepts only short requests of one argument
)

func (a *actor) attach() {
	size := uint64(segmentSizes[a.rank%len(segmentSizes)])
	if a.p.Bare {
		a.want(a.ep.Attach(conduits.AttachConfig{Size: size, Receiver: bareReceiver{a}}))
		a.makeArenas(len(a.eps))
		return
	}
	a.bar = barrier.New()
	if a.p.Disseminate {
		a.bar = barrier.NewWith(barrier.Config{Force: barrier.Dissemination})
	}
	a.x = extended.New(extended.Config{AlwaysHandle: a.p.Always})
	e, err := am.Attach(a.ep, am.Config{
		Handlers: []am.Entry{
			{Index: onRequest, Name: "request", Fn: a.request, Args: am.AnyArgs, Kinds: am.Request},
			{Index: onBare, Name: "bare request", Fn: a.bareRequest, Args: 0, Kinds: am.Request},
			{Index: onReply, Name: "reply", Fn: a.reply, Args: am.AnyArgs, Kinds: am.Reply},
			{Index: onShort, Name: "short", Fn: a.request, Args: 1, Kinds: am.Request | am.Short},
		},
		Runtime:     append(a.bar.Handlers(), a.x.Handlers()...),
		SegmentSize: size,
		Completer:   a.x,
		Exposer:     a.x,
		Debug:       a.p.Debug,
	})
	a.want(err)
	a.am = e
	a.want(a.bar.Bind(e))
	a.x.Bind(e)
	a.set = a.x.NewRegion()
	a.counted = map[string][]*flight{}
}

// fatalf fails the program and ends the rank. Not in handlers.
func (a *actor) fatalf(format string, args ...any) {
	a.errorf(format, args...)
	panic(stopped{})
}

// errorf fails the program.
func (a *actor) errorf(format string, args ...any) {
	a.fail(a.ep, "rank %d: %s", a.rank, fmt.Sprintf(format, args...))
}

// want checks that err is one of kinds, or nil if there are none.
func (a *actor) want(err error, kinds ...error) {
	if len(kinds) == 0 {
		if err != nil {
			a.fatalf("%v", err)
		}
		return
	}
	for _, k := range kinds {
		if errors.Is(err, k) {
			return
		}
	}
	if err == nil {
		a.fatalf("no error, though it is wrong: %v", kinds)
	}
	a.fatalf("the error is %q, which is no %q", err, kinds)
}

// until waits.
func (a *actor) until(what contract.Waiting, cond func() bool) {
	a.want(conduits.Wait(a.ep, what, cond))
}

// forms are the ways to do one operation.
type forms struct {
	block func() error
	nb    func() (extended.Handle, error)
	nbi   func(r *extended.Region) error // may be nil
	src   []byte                         // what is read
	late  bool                           // src is read until the operation is synchronized
}

// begin starts an operation in a form; a blocking form completes it as well.
func (a *actor) begin(form string, f *flight, fm forms, wants []error) {
	var err error
	var into string
	switch form {
	case "nb":
		f.h, err = fm.nb()
	case "implicit":
		into, err = form, fm.nbi(a.x.Implicit())
	case "set":
		into, err = form, fm.nbi(a.set)
	case "region":
		into, err = form, fm.nbi(&a.region)
	default:
		err = fm.block()
	}
	a.want(err, wants...)
	if fm.late && (f.h != 0 || into != "") {
		f.src = fm.src
	} else {
		scramble(fm.src, 99)
	}
	switch {
	case wants != nil:
		if f.h != 0 {
			a.fatalf("handle %#x for an operation that failed", f.h)
		}
	case into == "region":
		a.parts = append(a.parts, f)
	case into != "":
		a.counted[into] = append(a.counted[into], f)
	case f.h != 0:
		a.live = append(a.live, f)
	default:
		a.checkResult(f)
	}
}

// checkResult looks at what a synchronized operation brought.
func (a *actor) checkResult(f *flight) {
	for _, p := range f.parts {
		a.checkResult(p)
	}
	if f.check != nil {
		if text := f.check(); text != "" {
			a.fatalf("%s", text)
		}
	}
	scramble(f.src, 98)
	if f.h != 0 {
		a.last, f.h = f.h, 0
		a.live = slices.DeleteFunc(a.live, func(g *flight) bool { return g == f })
	}
}

func (a *actor) wait(f *flight) {
	a.want(a.x.Wait(f.h))
	if f.h != 0 {
		a.checkResult(f)
	}
}

func (a *actor) try(f *flight) {
	done, err := a.x.Try(f.h)
	a.want(err)
	switch {
	case f.h == 0 && !done:
		a.fatalf("the zero handle is not done")
	case f.h != 0 && done:
		a.checkResult(f)
	}
}

// list is the handles that are outstanding, and a zero.
func (a *actor) list() (fs []*flight, hs []extended.Handle) {
	fs = slices.Clone(a.live)
	hs = []extended.Handle{0}
	for _, f := range fs {
		hs = append(hs, f.h)
	}
	return fs, hs
}

// checkCompleted checks those of fs whose handle in hs has become zero.
func (a *actor) checkCompleted(fs []*flight, hs []extended.Handle) (n int) {
	for i, f := range fs {
		if hs[i+1] == 0 {
			a.checkResult(f)
			n++
		} else if hs[i+1] != f.h {
			a.fatalf("handle %#x has become %#x in the list", f.h, hs[i+1])
		}
	}
	return n
}

func (a *actor) waitAll() {
	fs, hs := a.list()
	a.want(a.x.WaitAll(hs))
	if n := a.checkCompleted(fs, hs); n != len(fs) {
		a.fatalf("WaitAll has left %d of %d handles", len(fs)-n, len(fs))
	}
}

func (a *actor) waitSome() { a.some((*extended.Initiator).WaitSome, true) }
func (a *actor) trySome()  { a.some((*extended.Initiator).TrySome, false) }

func (a *actor) some(call func(*extended.Initiator, []extended.Handle) (int, error), must bool) {
	fs, hs := a.list()
	n, err := call(a.x, hs)
	a.want(err)
	if m := a.checkCompleted(fs, hs); m != n || must && n == 0 && len(fs) > 0 {
		a.fatalf("of %d handles %d are synchronized, it says %d", len(fs), m, n)
	}
}

func (a *actor) tryAll() {
	fs, hs := a.list()
	done, err := a.x.TryAll(hs)
	a.want(err)
	if n := a.checkCompleted(fs, hs); done != (n == len(fs)) {
		a.fatalf("of %d handles %d are synchronized, TryAll says %v", len(fs), n, done)
	}
}

// again synchronizes a handle that has been.
func (a *actor) again() {
	if a.last != 0 {
		a.noHandle(a.last)
	}
}

// bogus synchronizes what never was a handle.
func (a *actor) bogus(v uint64) {
	h := extended.Handle(v | 1)
	for _, f := range a.live {
		if f.h == h {
			return
		}
	}
	a.noHandle(h)
}

func (a *actor) noHandle(h extended.Handle) {
	before := a.x.Outstanding()
	a.want(a.x.Wait(h), am.ErrBadArg)
	_, err := a.x.Try(h)
	a.want(err, am.ErrBadArg)
	fs, hs := a.list()
	a.want(a.x.WaitAll(append(hs, h)), am.ErrBadArg)
	if a.checkCompleted(fs, hs) != 0 || a.x.Outstanding() != before {
		a.fatalf("a handle that is not outstanding has changed something")
	}
}

func (a *actor) setNamed(how string) *extended.Region {
	if how == "set" {
		return a.set
	}
	return a.x.Implicit()
}

// syncSet synchronizes, or with try asks for, one category of a set.
func (a *actor) syncSet(how string, c extended.Category, try bool) {
	r, done := a.setNamed(how), true
	var err error
	if try {
		done, err = r.Try(c)
	} else {
		err = r.Sync(c)
	}
	a.want(err)
	if !done {
		return
	}
	var left []*flight
	for _, f := range a.counted[how] {
		if f.cat&c != 0 {
			a.checkResult(f)
		} else {
			left = append(left, f)
		}
	}
	a.counted[how] = left
}

// syncWrong synchronizes what cannot be.
func (a *actor) syncWrong(how string, c extended.Category) {
	r := a.setNamed(how)
	if how == "region" {
		r = &a.region
	}
	kinds := []error{am.ErrBadArg}
	if how == "region" && !a.begun {
		kinds = append(kinds, am.ErrNotInit)
	}
	a.want(r.Sync(c), kinds...)
	done, err := r.Try(c)
	if a.want(err, kinds...); done {
		a.fatalf("a wrong Try says that all is done")
	}
}

// endRegion ends the access region, whose handle is f from now on.
func (a *actor) endRegion(f *flight) {
	h, err := a.region.End()
	a.want(err)
	f.h, f.parts, a.parts = h, a.parts, nil
	if h == 0 {
		a.checkResult(f)
		return
	}
	a.live = append(a.live, f)
}

// meet waits for the barrier in one of two ways.
func (a *actor) meet(o offered, try bool) error {
	if !try {
		return a.bar.Wait(o.id, o.flags)
	}
	for idle := 0; ; idle++ {
		done, err := a.bar.Try(o.id, o.flags)
		if done || err != nil {
			return err
		}
		if err := a.ep.Err(); err != nil {
			return err
		}
		a.ep.Spin()
		a.ep.Idle(idle)
	}
}

// await waits for a word, or several, that another rank signals.
func (a *actor) await(w *waitFor) {
	at := 0
	var err error
	word := w.now
	switch w.form {
	case "all":
		err = a.x.WaitUntilAll(w.sigs, w.c, w.v)
	case "any":
		at, err = a.x.WaitUntilAny(w.sigs, -1, w.c, w.v)
	case "some":
		var found []int
		if found, err = a.x.WaitUntilSome(nil, w.sigs, w.c, w.v); len(found) == 0 && err == nil {
			a.fatalf("WaitUntilSome found none")
		}
		for _, at = range found {
			if at < 0 || at >= len(w.sigs) {
				break
			}
		}
	default:
		word, err = a.x.WaitUntil(w.sigs[0], w.c, w.v)
	}
	if a.want(err); at < 0 || at >= len(w.sigs) {
		a.fatalf("word %d of %d compares", at, len(w.sigs))
	}
	if word != w.now && (word != w.old || !holds(w.c, w.old, w.v)) {
		a.fatalf("waited until a word that goes from %d to %d is %v %d; it is %d", w.old, w.now, w.c, w.v, word)
	}
	if len(w.data) == 0 || holds(w.c, w.old, w.v) {
		return
	}
	got := make([]byte, len(w.data))
	if a.want(a.x.Get(a.rank, w.after, got)); string(got) != string(w.data) {
		a.fatalf("what was put before the signal: %s", difference(got, w.data))
	}
}

// send sends q in a form.
func (a *actor) send(q *message, form string, wants []error) {
	h := onRequest
	switch {
	case len(q.args) == 0:
		h = onBare
	case len(q.args) == 1 && q.kind == am.Short:
		h = onShort
	}
	payload := slices.Clone(q.payload)
	var try func() (bool, error)
	var err error
	switch {
	case q.kind == am.Short && form == "try":
		try = func() (bool, error) { return a.am.TryRequestShort(q.dst, h, q.args...) }
	case q.kind == am.Medium && form == "try":
		try = func() (bool, error) { return a.am.TryRequestMedium(q.dst, h, payload, q.args...) }
	case q.kind == am.Long && form == "try":
		try = func() (bool, error) {
			return a.am.TryRequestLong(q.dst, h, q.to, q.payload, &q.ev, q.args...)
		}
	case q.kind == am.Short:
		err = a.am.RequestShort(q.dst, h, q.args...)
	case q.kind == am.Medium && form == "prepare":
		err = a.prepare(q, h)
	case q.kind == am.Medium:
		err = a.am.RequestMedium(q.dst, h, payload, q.args...)
	case form == "nb":
		err = a.am.RequestLongNB(q.dst, h, q.to, q.payload, &q.ev, q.args...)
	default:
		err = a.am.RequestLong(q.dst, h, q.to, payload, q.args...)
	}
	if try != nil {
		failed := conduits.Wait(a.ep, contract.Waiting("credit"), func() bool {
			var sent bool
			sent, err = try()
			return sent || err != nil
		})
		a.want(failed)
	}
	scramble(payload, 97) // it may be reused
	a.want(err, wants...)
	if wants != nil && !q.ev.Done() {
		a.fatalf("the event of a message that failed is pending")
	}
}

// prepare sends q's payload, or as much of it as there is room for.
func (a *actor) prepare(q *message, h am.HandlerID) error {
	n := len(q.payload)
	p, err := a.am.PrepareMedium(q.dst, h, n/2, n+9, len(q.args))
	if err != nil {
		return err
	}
	if k := len(p.Payload()); k < n/2 || k > n+9 {
		a.fatalf("room for %d bytes; between %d and %d were asked for", k, n/2, n+9)
	}
	q.payload = q.payload[:min(n, len(p.Payload()))]
	copy(p.Payload(), q.payload)
	if err := p.Commit(len(q.payload), q.args...); err != nil {
		return err
	}
	a.want(p.Commit(0, q.args...), am.ErrBadArg)
	a.want(p.Cancel(), am.ErrBadArg)
	return nil
}

// cancel prepares q and thinks better of it.
func (a *actor) cancel(q *message) {
	var p am.Prepared
	var err error
	a.want(conduits.Wait(a.ep, contract.Waiting("credit"), func() bool {
		var have bool
		p, have, err = a.am.TryPrepareMedium(q.dst, onRequest, 0, len(q.payload), len(q.args))
		return have || err != nil
	}))
	a.want(err)
	scramble(p.Payload(), 96)
	a.want(p.Cancel())
	a.want(p.Commit(0, q.args...), am.ErrBadArg)
}

// awaitMessage waits until q has been handled and answered, and its payload may
// be reused.
func (a *actor) awaitMessage(q *message) {
	replies := int32(1)
	if q.reply == noReply {
		replies = 0
	}
	a.until(contract.Waiting(fmt.Sprintf("message %d to rank %d and its reply", q.id, q.dst)), func() bool {
		return q.delivered.Load() > 0 && q.replied.Load() >= replies
	})
	a.want(a.am.WaitEvent(&q.ev))
	if d, r := q.delivered.Load(), q.replied.Load(); d != 1 || r != replies {
		a.fatalf("a message was delivered %d times and replied to %d times", d, r)
	}
}

// bareRequest handles a request without arguments, which has to be recognized.
func (a *actor) bareRequest(t *am.Token, args []uint32, payload []byte) {
	for _, q := range a.msgs {
		if len(q.args) == 0 && q.dst == a.rank && q.delivered.Load() == 0 && misreceived(q, t, args, payload) == "" {
			a.answer(q, t)
			return
		}
	}
	a.errorf("the request from rank %d of kind %v without arguments, with %d bytes, was not sent, or came before", t.Src(), t.Kind(), len(payload))
}

// request handles a request.
func (a *actor) request(t *am.Token, args []uint32, payload []byte) {
	if len(args) == 0 || args[0] >= uint32(len(a.msgs)) {
		a.errorf("a request with arguments %d, which was not sent", args)
		return
	}
	q := a.msgs[args[0]]
	if text := misreceived(q, t, args, payload); text != "" {
		a.errorf("request: %s", text)
		return
	}
	if t.Kind()&am.Medium != 0 {
		scramble(payload, 95) // the handler's own
	}
	a.answer(q, t)
}

// misreceived says how a request that has arrived differs from q.
func misreceived(q *message, t *am.Token, args []uint32, payload []byte) string {
	switch e := t.Messenger(); {
	case t.Src() != q.src || e.Rank() != q.dst:
		return fmt.Sprintf("message from %d to %d arrived as one from %d at %d", q.src, q.dst, t.Src(), e.Rank())
	case t.Kind() != q.kind|am.Request:
		return fmt.Sprintf("kind %v, not %v", t.Kind(), q.kind)
	case !slices.Equal(args, q.args):
		return fmt.Sprintf("arguments %#x, not %#x", args, q.args)
	case t.To() != q.to:
		return fmt.Sprintf("put to %v, not %v", t.To(), q.to)
	}
	return difference(payload, q.payload)
}

// answer counts and replies.
func (a *actor) answer(q *message, t *am.Token) {
	a.watch.Step()
	var err error
	switch q.reply {
	case replyShort:
		err = t.ReplyShort(onReply, q.rargs...)
	case replyMedium:
		err = t.ReplyMedium(onReply, q.rpayload, q.rargs...)
	case replyLong:
		err = t.ReplyLong(onReply, q.rto, q.rpayload, q.rargs...)
	case replyPrepared, replyCancelled:
		var p am.Prepared
		n := len(q.rpayload)
		if p, err = t.PrepareMedium(onReply, n, n, len(q.rargs)); err != nil {
			break
		}
		if q.reply == replyCancelled {
			if err = p.Cancel(); err == nil {
				err = t.ReplyShort(onReply, q.rargs...)
			}
			break
		}
		copy(p.Payload(), q.rpayload)
		err = p.Commit(n, q.rargs...)
	case replyTry:
		var sent bool
		if sent, err = t.TryReplyShort(onReply, q.rargs...); !sent && err == nil {
			err = t.ReplyShort(onReply, q.rargs...)
		}
	}
	if err != nil {
		a.errorf("reply: %v", err)
		return
	}
	q.delivered.Add(1)
	a.ep.Wake(q.src)
}

// reply handles a reply.
func (a *actor) reply(t *am.Token, args []uint32, payload []byte) {
	a.watch.Step()
	if len(args) == 0 || args[0] >= uint32(len(a.msgs)) {
		a.errorf("a reply with arguments %d, which was not sent", args)
		return
	}
	q := a.msgs[args[0]]
	kind, want, to := am.Short, []byte(nil), segment.NLA(0)
	switch q.reply {
	case replyMedium, replyPrepared:
		kind, want = am.Medium, q.rpayload
	case replyLong:
		kind, want, to = am.Long, q.rpayload, q.rto
	}
	switch {
	case t.Src() != q.dst || a.rank != q.src:
		a.errorf("the reply from %d to %d arrived as one from %d", q.dst, q.src, t.Src())
	case t.Kind() != kind|am.Reply || t.To() != to:
		a.errorf("reply of kind %v to %v, not %v to %v", t.Kind(), t.To(), kind, to)
	case !slices.Equal(args, q.rargs):
		a.errorf("reply with arguments %#x, not %#x", args, q.rargs)
	case difference(payload, want) != "":
		a.errorf("reply: %s", difference(payload, want))
	default:
		q.replied.Add(1)
	}
}
