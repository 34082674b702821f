package adapt_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/chaos"
	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/loop"
	"github.com/argon-go/argon/segment"
)

// rough is a Transport with all the freedom that conduits.Transport leaves: messages
// and completions overtake each other, puts and gets are done later, room is refused
// without a reason, and waits end early. What it keeps is the order of a put and what
// is sent when it is done, and that a rank is the last to be heard of that has left.
type rough struct {
	conduits.Transport
	owner conduits.Owner

	mu    sync.Mutex
	rng   *rand.Rand
	moves []move // puts and gets that are not done yet
	mail  []mail // what has arrived and waits for others to overtake it
}

type move struct {
	cookie uint64
	peer   int
	do     func() (bool, error)
}

type mail struct {
	src     int
	left    bool
	reply   bool // of the lane of replies, see gifted_test.go
	words   []uint32
	payload []byte
}

func openRough(n int, c conduits.Config) ([]conduits.Transport, error) {
	ts, err := loop.Open(n, c)
	for i, t := range ts {
		ts[i] = &rough{Transport: t, rng: rand.New(rand.NewPCG(c.Seed, uint64(i)))}
	}
	return ts, err
}

func (r *rough) chance(percent int) bool { return r.rng.IntN(100) < percent }

func (r *rough) Attach(o conduits.Owner, size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	r.owner = o
	return r.Transport.Attach(keeper{r}, size, rights)
}

// Send refuses one message in five; the event for it is due at once.
func (r *rough) Send(dst int, words []uint32, payload []byte) conduits.Status {
	r.mu.Lock()
	refuse := r.chance(20)
	r.mu.Unlock()
	if refuse && r.Err() == nil {
		r.Kick()
		return conduits.NoCredit
	}
	return r.Transport.Send(dst, words, payload)
}

func (r *rough) Put(dst int, to segment.NLA, src []byte, cookie uint64) (bool, error) {
	return r.later(move{cookie, dst, func() (bool, error) { return r.Transport.Put(dst, to, src, cookie) }})
}

func (r *rough) Get(dst []byte, src int, from segment.NLA, cookie uint64) (bool, error) {
	return r.later(move{cookie, src, func() (bool, error) { return r.Transport.Get(dst, src, from, cookie) }})
}

func (r *rough) later(m move) (bool, error) {
	r.mu.Lock()
	if r.chance(70) {
		r.moves = append(r.moves, m)
		r.mu.Unlock()
		r.Kick()
		return false, nil
	}
	r.mu.Unlock()
	return m.do()
}

// Poll does some of the puts and gets, and delivers some of what has arrived.
func (r *rough) Poll() int {
	r.Transport.Poll()
	return r.run(false)
}

// run does so; with replies, of what has arrived those alone.
func (r *rough) run(replies bool) int {
	n := 0
	for {
		r.mu.Lock()
		if len(r.moves) == 0 || r.chance(30) {
			break
		}
		// The last one fills the gap: 65,536 may be under way, and to move half of them
		// each time takes minutes under the race detector.
		i, last := r.rng.IntN(len(r.moves)), len(r.moves)-1
		m := r.moves[i]
		r.moves[i], r.moves[last] = r.moves[last], move{}
		r.moves = r.moves[:last]
		r.mu.Unlock()
		_, err := m.do()
		r.owner.Complete(m.cookie, err)
		n++
	}
	for m, ok := r.pick(replies); ok; m, ok = r.pick(replies) {
		r.mu.Unlock()
		if m.left {
			r.owner.Left(m.src)
		} else {
			r.owner.Deliver(m.src, m.words, m.payload)
		}
		n++
		r.mu.Lock()
	}
	if len(r.mail)+len(r.moves) > 0 && !replies || len(r.moves) > 0 || slices.ContainsFunc(r.mail, func(m mail) bool { return m.reply }) {
		r.Kick()
	}
	r.mu.Unlock()
	return n
}

// pick takes one of those that have arrived, or none, with mu held.
func (r *rough) pick(replies bool) (mail, bool) {
	for len(r.mail) > 0 && !r.chance(30) {
		i := r.rng.IntN(len(r.mail))
		m := r.mail[i]
		if m.left && r.earlier(m.src, i) || replies && !m.reply {
			continue
		}
		r.mail = append(r.mail[:i], r.mail[i+1:]...)
		return m, true
	}
	return mail{}, false
}

// earlier says whether something else of src waits, with mu held.
func (r *rough) earlier(src, i int) bool {
	for k, m := range r.mail {
		if m.src == src && k != i {
			return true
		}
	}
	return false
}

// Wait returns early once in a while.
func (r *rough) Wait(until time.Duration) {
	r.mu.Lock()
	early := r.chance(10)
	r.mu.Unlock()
	if !early {
		r.Transport.Wait(until)
	}
}

// keeper is rough as the Transport below sees it.
type keeper struct{ r *rough }

func (k keeper) Deliver(src int, words []uint32, payload []byte) {
	k.r.keep(mail{src: src, words: slices.Clone(words), payload: slices.Clone(payload)})
}

// keep has m arrive.
func (r *rough) keep(m mail) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mail = append(r.mail, m)
}

func (k keeper) Complete(cookie uint64, err error) { k.r.owner.Complete(cookie, err) }

func (k keeper) Left(rank int) {
	k.r.keep(mail{src: rank, left: true})
}

func (k keeper) Access(src int, a segment.NLA, n uint64, need segment.Rights, f func(mem []byte)) error {
	return k.r.owner.Access(src, a, n, need, f)
}

// TestRough: the layers keep their promises on a Transport that keeps no more than
// its own.
func TestRough(t *testing.T) { conduittest.Run(t, adapt.Local("rough", openRough)) }

// TestRoughChaos adds what chaos does to Endpoints.
func TestRoughChaos(t *testing.T) {
	conduittest.Run(t, chaos.Local(adapt.Local("rough", openRough), chaos.Config{}))
}
