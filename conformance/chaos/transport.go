package chaos

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// TransportConfig says how much of the freedom that conduits.Transport leaves is taken.
// Probabilities are as those of Config: from 0 to 1, 0 means the default, negative means
// never. The zero value does a moderate amount of everything.
type TransportConfig struct {
	// Seed decides everything; 0 means conduits.Config.Seed of the job, if there
	// is one.
	Seed uint64

	Delay    float64 // that a poll leaves what is still to be delivered, or to be begun, to later ones, asked before each; never: messages keep their order, too; default 0.3
	Defer    float64 // that a put, get or atomic is begun by a later poll, or said to be done by a later one; default 0.7
	NoCredit float64 // that there is no room for a message although there is; default 0.2
	Wake     float64 // that Wait returns at once; default 0.1
}

// EnsureDefaults fills in what is 0.
func (c *TransportConfig) EnsureDefaults() {
	for _, p := range []struct {
		p *float64
		d float64
	}{{&c.Delay, 0.3}, {&c.Defer, 0.7}, {&c.NoCredit, 0.2}, {&c.Wake, 0.1}} {
		if *p.p == 0 {
			*p.p = p.d
		}
	}
}

// Validate returns all that is wrong with c, or nil.
func (c *TransportConfig) Validate() error {
	var l []error
	for _, p := range []struct {
		name string
		p    float64
	}{{"Delay", c.Delay}, {"Defer", c.Defer}, {"NoCredit", c.NoCredit}, {"Wake", c.Wake}} {
		if !(p.p <= 1) { // or not a number
			l = append(l, errs.BadArg("chaos: TransportConfig.%s is %v; a probability is at most 1", p.name, p.p))
		}
	}
	return errors.Join(l...)
}

// streak is how often in a row Delay, NoCredit and Wake may go wrong.
const streak = 3

// Open makes of a function that opens the Transports of a job, as adapt.Local takes it,
// one with chaos on top of each.
//
//	open := adapt.Local("mine", chaos.Open(mine.Open, chaos.TransportConfig{}))
func Open(inner func(n int, c conduits.Config) ([]conduits.Transport, error), cfg TransportConfig) func(n int, c conduits.Config) ([]conduits.Transport, error) {
	return func(n int, c conduits.Config) ([]conduits.Transport, error) {
		own := cfg
		ts, err := opened(inner, n, c, cfg.Validate(), &own.Seed)
		if err != nil {
			return nil, err
		}
		l := make([]conduits.Transport, len(ts))
		for i, t := range ts {
			l[i] = Transport(t, own)
		}
		return l, nil
	}
}

// Transport puts chaos on top of t, which no other code may use any more, before it is
// attached: messages overtake each other, puts, gets and atomics are done later and in
// another order, room is refused without a reason, and waits end early. It keeps what
// is sent after a put has been reported done behind the put's data, and a rank's Left
// behind all that the rank has sent. It panics if cfg is not valid.
//
// The result is a [conduits.Wrapper]: it has the capabilities that t has, and their
// operations go wrong alike. If t is a [conduits.ReplyLane], requests are reordered in
// the poll that takes them in, and not kept for later ones, so that no reply, which
// may come by that poll too, is kept from PollReplies.
func Transport(t conduits.Transport, cfg TransportConfig) conduits.Transport {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	cfg.EnsureDefaults()
	w := &transport{Transport: t, cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, uint64(t.Rank())))}
	w.notify, _ = conduits.CapabilityOf[conduits.NotifyPutter](t)
	w.putWord, _ = conduits.CapabilityOf[conduits.WordPutter](t)
	w.card, _ = conduits.CapabilityOf[conduits.AtomicUnit](t)
	w.rooms, _ = conduits.CapabilityOf[conduits.Reserver](t)
	w.lane, _ = conduits.CapabilityOf[conduits.ReplyLane](t)
	w.Direct, _ = conduits.CapabilityOf[conduits.Direct](t)
	w.Adopter, _ = conduits.CapabilityOf[conduits.Adopter](t)
	w.Registering, _ = conduits.CapabilityOf[conduits.Registering](t)
	w.Kicker, _ = conduits.CapabilityOf[conduits.Kicker](t)
	w.Neighbourly, _ = conduits.CapabilityOf[conduits.Neighbourly](t)
	w.Diagnoser, _ = conduits.CapabilityOf[conduits.Diagnoser](t)
	return w
}

// transport is one rank.
type transport struct {
	conduits.Transport // the one below
	cfg                TransportConfig
	owner              conduits.Owner // set by Attach
	closed             atomic.Bool

	// Capabilities of the one below, or nil.
	notify  conduits.NotifyPutter
	putWord conduits.WordPutter
	card    conduits.AtomicUnit
	rooms   conduits.Reserver
	lane    conduits.ReplyLane

	// Those that nothing is done to.
	conduits.Direct
	conduits.Adopter
	conduits.Registering
	conduits.Kicker
	conduits.Neighbourly
	conduits.Diagnoser

	// The poller's alone: is it the lane of replies that is polled, and how many calls
	// of the Owner have there been?
	replies bool
	calls   int

	mu      sync.Mutex // guards what follows; never held during a call of the Owner or of the Transport below
	rng     *rand.Rand
	moves   []func() // puts, gets and atomics that have not begun, or are done and not told
	mail    []mail   // what has arrived and waits for others to overtake it
	now     []mail   // what has arrived and waits for the end of this poll
	delays  int      // in a row
	refused int      // in a row
	wakes   int      // in a row
}

// mail is a message that has arrived, or tells that src has left.
type mail struct {
	src     int
	left    bool
	words   []uint32
	payload []byte
}

var _ conduits.Wrapper = (*transport)(nil)

// Below is the Transport that this one is on top of.
func (t *transport) Below() conduits.Transport { return t.Transport }

// chance decides with probability p, but not more than streak times in a row that count
// counts. mu is held.
func (t *transport) chance(p float64, count *int) bool {
	if p > 0 && *count < streak && t.rng.Float64() < p {
		*count++
		return true
	}
	*count = 0
	return false
}

// Attach puts this one between the Transport below and its Owner.
func (t *transport) Attach(o conduits.Owner, size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	t.owner = o
	return t.Transport.Attach(keeper{t}, size, rights)
}

// refuse decides whether there is to be no room; that there is some is an event then.
func (t *transport) refuse() bool {
	t.mu.Lock()
	no := t.chance(t.cfg.NoCredit, &t.refused)
	t.mu.Unlock()
	if !no || t.Err() != nil || t.closed.Load() {
		return false
	}
	t.Kick()
	return true
}

// Send is that of the Transport below.
func (t *transport) Send(dst int, words []uint32, payload []byte) conduits.Status {
	if t.refuse() {
		return conduits.NoCredit
	}
	return t.Transport.Send(dst, words, payload)
}

// SendReply is that of the Transport below.
func (t *transport) SendReply(dst int, words []uint32, payload []byte) conduits.Status {
	if t.refuse() {
		return conduits.NoCredit
	}
	return t.lane.SendReply(dst, words, payload)
}

// Reserve is that of the Transport below.
func (t *transport) Reserve(dst int, words, payload int) (conduits.Slot, conduits.Status) {
	if t.refuse() {
		return conduits.Slot{}, conduits.NoCredit
	}
	return t.rooms.Reserve(dst, words, payload)
}

// Commit is that of the Transport below.
func (t *transport) Commit(dst int, s conduits.Slot, payload int, send bool) {
	t.rooms.Commit(dst, s, payload, send)
}

// Put is that of the Transport below, now or later.
func (t *transport) Put(dst int, to segment.NLA, src []byte, cookie uint64) (bool, error) {
	return t.move(cookie, func() (bool, error) { return t.Transport.Put(dst, to, src, cookie) })
}

// Get is that of the Transport below, now or later.
func (t *transport) Get(dst []byte, src int, from segment.NLA, cookie uint64) (bool, error) {
	return t.move(cookie, func() (bool, error) { return t.Transport.Get(dst, src, from, cookie) })
}

// NotifyWords is that of the Transport below.
func (t *transport) NotifyWords() int { return t.notify.NotifyWords() }

// PutNotify is that of the Transport below, now or later.
func (t *transport) PutNotify(dst int, to segment.NLA, src []byte, words []uint32, cookie uint64) (bool, error) {
	words = slices.Clone(words)
	return t.move(cookie, func() (bool, error) { return t.notify.PutNotify(dst, to, src, words, cookie) })
}

// PutWord is that of the Transport below, now or later.
func (t *transport) PutWord(dst int, to segment.NLA, v uint64, n int, cookie uint64) (bool, error) {
	return t.move(cookie, func() (bool, error) { return t.putWord.PutWord(dst, to, v, n, cookie) })
}

// AtomicOps is that of the Transport below.
func (t *transport) AtomicOps(op conduits.AtomicOp, typ conduits.AtomicType) conduits.Coherence {
	return t.card.AtomicOps(op, typ)
}

// Atomic is that of the Transport below, now or later.
func (t *transport) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, typ conduits.AtomicType, a, b uint64, old *uint64, cookie uint64) (bool, error) {
	return t.move(cookie, func() (bool, error) { return t.card.Atomic(dst, to, op, typ, a, b, old, cookie) })
}

// move begins an operation, or leaves it to a later poll, unless there is none any more.
func (t *transport) move(cookie uint64, begin func() (bool, error)) (bool, error) {
	if t.closed.Load() {
		return begin()
	}
	if t.later(func() {
		if done, err := begin(); done || err != nil {
			t.complete(cookie, err)
		}
	}) {
		t.Kick()
		return false, nil
	}
	return begin()
}

// later decides whether f is left to a later poll.
func (t *transport) later(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.cfg.Defer; p <= 0 || t.rng.Float64() >= p {
		return false
	}
	t.moves = append(t.moves, f)
	return true
}

// complete tells the Owner; the caller polls.
func (t *transport) complete(cookie uint64, err error) {
	t.calls++
	t.owner.Complete(cookie, err)
}

// Poll takes in what has arrived, and runs some of what is kept.
func (t *transport) Poll() int {
	if t.closed.Load() {
		return 0
	}
	t.calls = 0
	if t.lane != nil {
		t.pollLane()
	}
	t.Transport.Poll()
	t.run(false)
	return t.calls
}

// PollReplies is Poll for replies and completions.
func (t *transport) PollReplies() int {
	if t.closed.Load() {
		return 0
	}
	t.calls = 0
	t.pollLane()
	t.run(true)
	return t.calls
}

func (t *transport) pollLane() {
	t.replies = true
	t.lane.PollReplies()
	t.replies = false
}

// run does some of the moves, and delivers some of what has arrived, in any order; with
// replies, no more than PollReplies may. What is left is an event.
func (t *transport) run(replies bool) {
	t.mu.Lock()
	for len(t.moves) > 0 && !t.chance(t.cfg.Delay, &t.delays) {
		i, last := t.rng.IntN(len(t.moves)), len(t.moves)-1
		do := t.moves[i]
		t.moves[i], t.moves[last] = t.moves[last], nil
		t.moves = t.moves[:last]
		t.mu.Unlock()
		do()
		t.mu.Lock()
	}
	for m, ok := t.pick(replies); ok; m, ok = t.pick(replies) {
		t.mu.Unlock()
		t.calls++
		if m.left {
			t.owner.Left(m.src)
		} else {
			t.owner.Deliver(m.src, m.words, m.payload)
		}
		t.mu.Lock()
	}
	more := len(t.moves) > 0 || slices.ContainsFunc(t.mail, func(m mail) bool { return !m.left || !replies })
	t.mu.Unlock()
	if more {
		t.Kick()
	}
}

// pick takes one of those that have arrived, or none, with mu held.
func (t *transport) pick(replies bool) (mail, bool) {
	if len(t.now) > 0 && !replies {
		return t.take(&t.now, t.which(len(t.now))), true
	}
	n := len(t.mail)
	if n == 0 || t.chance(t.cfg.Delay, &t.delays) {
		return mail{}, false
	}
	for k, first := 0, t.which(n); k < n; k++ {
		i := (first + k) % n
		if m := t.mail[i]; !m.left || !replies && !t.waits(m.src) {
			return t.take(&t.mail, i), true
		}
	}
	return mail{}, false
}

// which of n comes next, with mu held.
func (t *transport) which(n int) int {
	if t.cfg.Delay <= 0 {
		return 0
	}
	return t.rng.IntN(n)
}

// take removes the i-th of l, with mu held. The last one fills the gap, unless messages
// keep their order: 65,536 may be under way, and to move half of them each time takes
// minutes under the race detector.
func (t *transport) take(l *[]mail, i int) mail {
	m := (*l)[i]
	if t.cfg.Delay > 0 {
		last := len(*l) - 1
		(*l)[i], (*l)[last] = (*l)[last], mail{}
		*l = (*l)[:last]
	} else {
		*l = slices.Delete(*l, i, i+1)
	}
	return m
}

// waits reports whether a message of src is kept, with mu held.
func (t *transport) waits(src int) bool {
	return slices.ContainsFunc(t.mail, func(m mail) bool { return m.src == src && !m.left })
}

// Wait is that of the Transport below, or returns at once.
func (t *transport) Wait(until time.Duration) {
	t.mu.Lock()
	early := t.chance(t.cfg.Wake, &t.wakes)
	t.mu.Unlock()
	if !early {
		t.Transport.Wait(until)
	}
}

// Close is that of the Transport below; what is kept is not delivered any more.
func (t *transport) Close() error {
	t.closed.Store(true)
	t.mu.Lock()
	t.moves, t.mail, t.now = nil, nil, nil
	t.mu.Unlock()
	return t.Transport.Close()
}

// keeper is the Owner that the Transport below has.
type keeper struct{ t *transport }

// Deliver keeps a message for run.
func (k keeper) Deliver(src int, words []uint32, payload []byte) {
	k.t.keep(mail{src: src, words: slices.Clone(words), payload: slices.Clone(payload)})
}

// Left keeps the news for run.
func (k keeper) Left(rank int) { k.t.keep(mail{src: rank, left: true}) }

func (t *transport) keep(m mail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lane != nil && !t.replies && !m.left {
		t.now = append(t.now, m)
		return
	}
	t.mail = append(t.mail, m)
}

// Complete tells of what the Transport below has done, now or later.
func (k keeper) Complete(cookie uint64, err error) {
	if !k.t.later(func() { k.t.complete(cookie, err) }) {
		k.t.complete(cookie, err)
	}
}

// Access is the Owner's.
func (k keeper) Access(src int, a segment.NLA, n uint64, need segment.Rights, f func(mem []byte)) error {
	return k.t.owner.Access(src, a, n, need, f)
}
