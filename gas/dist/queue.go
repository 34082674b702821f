package dist

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
)

// Queue is a bag of work on the ranks of a group: each pushes items at its own end and pops the newest of its
// own, and a rank that has none steals half of what another one offers, the oldest first. Pop
// ends on all ranks when there is no item left anywhere and none is under way. Each item
// is popped once, on one rank. Items are plain values of T, which holds no Go pointers.
//
// A rank keeps its items in Go memory, of which it offers some, from the old end, in a ring
// of fixed size in its segment, whenever thieves have emptied that. Thieves take them without the
// owner, by an atomic on its ring and a get: where ranks share memory the owner may compute as
// long as it likes. Elsewhere it answers when it calls Push or Pop, which poll often
// enough, or by Config.Progress. A rank that finds nothing with some others, those of its own
// host first, sleeps until one of log2 Size others, its lifelines, has work for it.
//
// The queue is used by one goroutine of each rank at a time, and not by called functions or tasks. Work may do everything that does not
// need all ranks: no barriers, and no collective calls, between the first and the last Pop
// of a phase.
//
// The split of the deque is that of Dinan et al. 2009, the ring's one word that of Cartier, Dinan
// and Larkins 2021, lifelines are those of Saraswat et al. 2011, and the end is found by
// counting in two waves as in Mattern 1987.
type Queue[T any] struct {
	ranks
	name string
	own  []T // items of this rank alone, the newest last
	rnd  *rand.Rand
	near []int // other ranks with memory in reach, as far as their numbers are close
	gate gate  // the phase's first barrier

	rings *gas.TeamSlice[T]
	items []T    // the memory of this rank's ring
	safe  uint32 // thieves are done with all positions below it

	ctls  *gas.TeamSlice[uint64] // control words, nil after Delete
	ctl   gas.Ptr[uint64]        // this rank's
	words []uint64               // their memory, read by atomic loads only

	created, done uint64 // items that this rank has pushed; that it has finished
	working       bool   // the item popped last is not finished

	left, every int // calls until the next look at thieves; calls between two
	looked      time.Duration
	searched    time.Duration // the last time that this rank looked for a sleeper by chance

	wave   uint64    // that this rank is in, from 1; see waves
	told   uint64    // what its children know: as in downWord
	sent   bool      // its part of the wave is with its parent
	sums   [2]uint64 // items pushed and finished, of this rank and all below it
	before uint64    // those finished of all ranks by the wave before; rank 0's
	gated  int       // how far this rank is in the phase's first barrier
	awake  func() bool
	stats  QueueStats

	between func() // unless nil: what thieves do between two looks of release, in tests
}

// QueueStats are counts of a rank's queue since it was made.
type QueueStats struct {
	Popped uint64 // items that Pop has returned
	Tries  uint64 // looks into rings of other ranks
	Steals uint64 // of these, looks that have brought items
	Stolen uint64 // items stolen
	Sleeps uint64 // times the rank has slept because there was nothing to steal
	Waves  uint64 // waves that it was in to find out whether there is work left
}

// The control words of a rank.
const (
	// ringWord is the ring: in its low half the position of the oldest item, in its high
	// half that behind the newest; both count up without end, modulo 2^32.
	ringWord = 0
	// copiedWord counts the items that thieves have got out of the ring: if it is the
	// position of the oldest, no thief is copying.
	copiedWord = 1
	// linesWord has bit d set when rank^(1<<d) sleeps.
	linesWord = 8
	// hintWord is a rank that has work, plus 1. It wakes.
	hintWord = 16
	// asleepWord is 1 while this rank sleeps.
	asleepWord = 9
	// downWord is the wave that this rank's parent is in, times 2; plus 1 if all is done.
	downWord = 17
	// From upWord on each child has three words: created, done, and the wave they are of.
	upWord = 24

	children  = 4
	ctlLength = upWord + 3*children
)

// States of Queue.gated.
const (
	gateClosed  = iota // this rank has had work all the time
	gateEntered        // it has not: BarrierNotify
	gatePassed         // no rank has: BarrierWait
)

const (
	// defaultRing is the size of rings of capacity 0, bytes.
	defaultRing = 64 << 10
	// mostShared is the largest capacity: positions have 32 bits.
	mostShared = 1 << 30
	// nearby is how far the numbers of ranks of a host are looked for.
	nearby = 64
	// Looks at thieves are so many calls apart that there are lookTime between them.
	lookTime  = 20 * time.Microsecond
	mostCalls = 64
	// Looks for sleepers by chance are so far apart, and so many at once.
	searchTime = 250 * time.Microsecond
	mostSearch = 4
)

// NewQueue is collective: it makes a queue on the ranks of g, of that name, which is for messages to people. Each
// rank offers up to capacity items to thieves, rounded up to a power of two, for which the
// segment has room: 0 means what 64 KiB take, and at least 16. It bounds what a thief takes
// at once, not how many items there are.
func NewQueue[T any](g gas.Group, name string, capacity int) (*Queue[T], error) {
	on, err := ranksOf(g, fmt.Sprintf("NewQueue %q", name))
	if err != nil {
		return nil, err
	}
	if err := gas.CheckType[T](); err != nil {
		return nil, err
	}
	if capacity < 0 || capacity > mostShared {
		return nil, errs.BadArg("dist: NewQueue %q that offers %d items: capacity must be 0 to %d", name, capacity, mostShared)
	}
	if capacity == 0 {
		capacity = max(16, defaultRing/int(reflect.TypeFor[T]().Size()))
	}
	capacity = 1 << bits.Len(uint(capacity-1))
	q := &Queue[T]{ranks: on, name: name, gate: gateOf(on), left: 1, every: 1, sent: true, before: ^uint64(0)}
	q.rnd = rand.New(rand.NewPCG(uint64(q.rank), 0))
	for r := max(0, q.rank-nearby); r <= min(q.size-1, q.rank+nearby); r++ {
		if r != q.rank && q.n.Neighbour(q.job(r)) {
			q.near = append(q.near, r)
		}
	}
	if q.rings, err = gas.NewTeamSlice[T](g, capacity); err != nil {
		return nil, fmt.Errorf("dist: NewQueue %q that offers %d items: %w", name, capacity, err)
	}
	if q.ctls, err = gas.NewTeamSlice[uint64](g, ctlLength); err != nil {
		return nil, errors.Join(fmt.Errorf("dist: NewQueue %q: %w", name, err), q.rings.Delete())
	}
	q.ctl = q.ctls.On(q.rank)
	if q.items, q.words, err = ownMemory(q.n, q.rings.On(q.rank), capacity, q.ctl); err != nil {
		return nil, err
	}
	q.awake = q.due
	return q, nil
}

// gate is a barrier of a group in pieces.
type gate struct {
	notify, wait func() error
	ready        func() bool // wait would not wait; does not poll
}

func gateOf(r ranks) gate {
	if r.team == nil {
		return gate{r.n.BarrierNotify, r.n.BarrierWait, func() bool { return r.n.Layers().Barriers.Ready() }}
	}
	var f gas.Future[struct{}]
	return gate{
		func() (err error) {
			f, err = gas.BarrierNB(r.g)
			return err
		},
		func() error {
			_, err := f.Wait()
			return err
		},
		func() bool {
			select {
			case <-f.Done():
				return true
			default:
				return false
			}
		},
	}
}

// ownMemory is the rank's own memory behind its pointers.
func ownMemory[T any](n *gas.Node, ring gas.Ptr[T], capacity int, ctl gas.Ptr[uint64]) ([]T, []uint64, error) {
	items, ok := ring.LocalSlice(n, capacity)
	words, also := ctl.LocalSlice(n, ctlLength)
	if !ok || !also {
		return nil, nil, errs.NotSupported("dist: rank %d cannot reach its own memory", n.Rank())
	}
	return items, words, nil
}

// Delete is collective: it ends the queue, whose memory it gives back. Items that are left are gone.
func (q *Queue[T]) Delete() error {
	if q.ctls == nil {
		return q.over()
	}
	ctls := q.ctls
	q.ctls, q.own, q.left = nil, nil, 0
	// Within a phase hints, and counts of what was stolen, may be under way.
	if err := q.n.SyncImplicit(); err != nil {
		return err
	}
	if err := q.g.Barrier(); err != nil {
		return err
	}
	if err := q.rings.Delete(); err != nil {
		return err
	}
	return ctls.Delete()
}

// over is the error of a queue that is used after Delete.
func (q *Queue[T]) over() error {
	return errs.NotReady("dist: queue %q on rank %d is deleted (Queue.Delete)", q.name, q.rank)
}

// Stats returns the counts of this rank's queue.
func (q *Queue[T]) Stats() QueueStats { return q.stats }

// Push adds an item. It may be called before the first Pop, between two, and when Pop has
// found the phase over, for the next one. An error is the job's.
func (q *Queue[T]) Push(item T) error {
	q.own = append(q.own, item)
	q.created++
	if q.left--; q.left <= 0 {
		return q.look()
	}
	return nil
}

// PushAll is Push for all of items.
func (q *Queue[T]) PushAll(items []T) error {
	q.own = append(q.own, items...)
	q.created += uint64(len(items))
	if q.left -= len(items); q.left <= 0 {
		return q.look()
	}
	return nil
}

// Run is collective: it has fn work on items until there are none left on any rank, as
// calls of Pop do. fn may push. Its error ends Run, and is to end the rank: the others would
// wait for it.
func (q *Queue[T]) Run(fn func(n *gas.Node, item T) error) error {
	for {
		item, ok, err := q.Pop()
		if err != nil || !ok {
			return err
		}
		if err := fn(q.n, item); err != nil {
			return err
		}
	}
}

// Pop is collective in that all ranks call it until it says false: it returns an item, and
// takes the one that it has returned before as finished. It waits while there is none to be
// had but work under way that may push some. It says false on all ranks when there is none,
// and what ranks push then is a new phase, which ends in the same way. A rank that
// returns from its function instead is an error of the others.
func (q *Queue[T]) Pop() (item T, ok bool, err error) {
	if q.working {
		q.working = false
		q.done++
	} else { // pushes, of which many are no time, do not say how long items take
		q.every, q.left = 2, 1
	}
	if q.left--; q.left <= 0 {
		if err := q.look(); err != nil {
			return item, false, err
		}
	}
	if len(q.own) == 0 {
		if more, err := q.find(); !more || err != nil {
			return item, false, err
		}
	}
	last := len(q.own) - 1
	item = q.own[last]
	q.own = q.own[:last]
	q.working = true
	q.stats.Popped++
	return item, true, nil
}

// look answers peers, offers items, and sets when to do so again.
func (q *Queue[T]) look() error {
	if q.ctls == nil { // looks have no end then, so that each use is seen
		return q.over()
	}
	q.n.Poll()
	switch now := q.n.Now(); {
	case now-q.looked < lookTime/2:
		q.every = min(2*q.every, mostCalls)
	case now-q.looked > 2*lookTime:
		q.every = max(q.every/2, 1)
	}
	err := q.offer()
	// Not when the look began: a look that takes long is to come less often.
	q.looked = q.n.Now()
	q.left = q.every
	return err
}

// positions are those of the oldest item of the ring and behind the newest.
func positions(word uint64) (oldest, end uint32) { return uint32(word), uint32(word >> 32) }

// at is the ring's places of count items from position p on: one run, and where it wraps a second.
func (q *Queue[T]) at(p uint32, count int) (first, run int) {
	first = int(p) & (len(q.items) - 1)
	return first, min(count, len(q.items)-first)
}

// offer moves items into the ring if little is left there, and wakes sleepers.
func (q *Queue[T]) offer() error {
	if q.size == 1 {
		return nil
	}
	word, err := gas.Load(q.n, q.ctl.Add(ringWord))
	if err != nil {
		return err
	}
	oldest, end := positions(word)
	there := int(end - oldest)
	if there < len(q.own)/4 || there == 0 && len(q.own) > 1 {
		moved, err := q.release()
		if err != nil {
			return err
		}
		there += moved
	}
	if there == 0 {
		return nil
	}
	if atomic.LoadUint64(&q.words[linesWord]) != 0 {
		return q.rouse(there)
	}
	return q.search()
}

// search wakes a sleeper if one is found by chance: those at whose lifelines all ranks are busy,
// but have no work to give, would not hear of this one's.
func (q *Queue[T]) search() error {
	since := q.n.Now() - q.searched
	if since < searchTime {
		return nil
	}
	q.searched += since
	for range min(since/searchTime, mostSearch) {
		r := q.another()
		asleep, err := gas.Load(q.n, q.ctls.On(r).Add(asleepWord))
		if err != nil {
			return err
		}
		if asleep != 0 {
			return gas.StoreNBI(q.n, q.ctls.On(r).Add(hintWord), uint64(q.rank+1))
		}
	}
	return nil
}

// another is any rank but this one.
func (q *Queue[T]) another() int {
	r := q.rnd.IntN(q.size - 1)
	if r >= q.rank {
		r++
	}
	return r
}

// release moves half of the own items into the ring, as far as there is room, and returns how
// many; where items take long it moves all but one, for it may be long until the next look.
func (q *Queue[T]) release() (int, error) {
	copied, err := gas.Load(q.n, q.ctl.Add(copiedWord))
	if err != nil {
		return 0, err
	}
	if q.between != nil {
		q.between()
	}
	word, err := gas.Load(q.n, q.ctl.Add(ringWord))
	if err != nil {
		return 0, err
	}
	oldest, end := positions(word)
	// Items that thieves have claimed and not copied yet must not be overwritten. The words
	// are read in this order: in the other one a thief that claims and copies between the two
	// would hide an earlier one that still copies.
	if uint32(copied) == oldest {
		q.safe = oldest
	}
	count := len(q.own) / 2
	if q.every == 1 {
		count = len(q.own) - 1
	}
	count = min(count, len(q.items)-int(end-q.safe))
	if count <= 0 {
		return 0, nil
	}
	first, run := q.at(end, count)
	bulk.CopySlice(q.items[first:first+run], q.own)
	bulk.CopySlice(q.items, q.own[run:count])
	q.own = q.own[count:]
	// Thieves change the low half meanwhile, which an addition to the high half leaves alone.
	_, err = gas.FetchAdd(q.n, q.ctl.Add(ringWord), uint64(count)<<32)
	return count, err
}

// rouse wakes ranks for there items in the ring.
func (q *Queue[T]) rouse(there int) error {
	lines := atomic.LoadUint64(&q.words[linesWord])
	var wake uint64
	for range bits.Len(uint(there)) {
		b := lines & -lines
		wake |= b
		lines &^= b
	}
	if _, err := gas.FetchAnd(q.n, q.ctl.Add(linesWord), ^wake); err != nil {
		return err
	}
	for ; wake != 0; wake &= wake - 1 {
		r := q.rank ^ int(wake&-wake)
		if err := gas.StoreNBI(q.n, q.ctls.On(r).Add(hintWord), uint64(q.rank+1)); err != nil {
			return err
		}
	}
	return nil
}

// find gets items for a rank that has none; false if none are left anywhere.
func (q *Queue[T]) find() (bool, error) {
	for {
		found, err := q.regain()
		if !found && err == nil && q.size > 1 {
			if found, err = q.hunt(); found && err == nil {
				// Of what was stolen others may steal at once.
				err = q.offer()
			}
		}
		if err != nil {
			return false, err
		}
		if len(q.own) > 0 {
			return true, nil
		}
		if found {
			continue
		}
		if ended, err := q.sleep(); ended || err != nil {
			return false, err
		}
	}
}

// regain takes back the newer half of what the own ring holds.
func (q *Queue[T]) regain() (bool, error) {
	p := q.ctl.Add(ringWord)
	word, err := gas.Load(q.n, p)
	for err == nil {
		oldest, end := positions(word)
		count := int(end-oldest+1) / 2
		if count == 0 {
			return false, nil
		}
		from := end - uint32(count)
		var swapped bool
		if word, swapped, err = gas.CompareAndSwap(q.n, p, word, uint64(from)<<32|uint64(oldest)); swapped {
			first, run := q.at(from, count)
			q.own = append(append(q.own, q.items[first:first+run]...), q.items[:count-run]...)
			return true, nil
		}
	}
	return false, err
}

// hunt looks for items on other ranks: those that a hint names, some of the own host, some of all,
// and the lifelines, where it announces that this rank is about to sleep.
func (q *Queue[T]) hunt() (bool, error) {
	if hint := atomic.LoadUint64(&q.words[hintWord]); hint != 0 {
		hint, err := gas.Swap(q.n, q.ctl.Add(hintWord), 0)
		if err != nil {
			return false, err
		}
		if r := int(hint) - 1; r >= 0 && r < q.size && r != q.rank {
			if found, err := q.steal(r); found || err != nil {
				return found, err
			}
		}
	}
	for range min(2, len(q.near)) {
		if found, err := q.steal(q.near[q.rnd.IntN(len(q.near))]); found || err != nil {
			return found, err
		}
	}
	for range 2 {
		if found, err := q.steal(q.another()); found || err != nil {
			return found, err
		}
	}
	for b := 1; b < q.size; b <<= 1 {
		r := q.rank ^ b
		if r >= q.size {
			continue
		}
		// The rank offers items and then looks for sleepers: one of the two sees the other.
		if _, err := gas.FetchOr(q.n, q.ctls.On(r).Add(linesWord), uint64(b)); err != nil {
			return false, err
		}
		if found, err := q.steal(r); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// steal takes the older half of what rank offers.
func (q *Queue[T]) steal(rank int) (bool, error) {
	q.stats.Tries++
	p := q.ctls.On(rank).Add(ringWord)
	word, err := gas.Load(q.n, p)
	for err == nil {
		oldest, end := positions(word)
		count := int(end-oldest+1) / 2
		if count == 0 {
			return false, nil
		}
		if int(end-oldest) > len(q.items) {
			return false, errs.NotReady("dist: queue %q: the ring of rank %d holds %d items of at most %d: its memory was overwritten", q.name, rank, end-oldest, len(q.items))
		}
		// The items are those of the word that is there when the swap succeeds, whatever
		// has happened since it was loaded.
		var swapped bool
		if word, swapped, err = gas.CompareAndSwap(q.n, p, word, word&^uint64(1<<32-1)|uint64(oldest+uint32(count))); !swapped {
			continue
		}
		had := len(q.own)
		q.own = slices.Grow(q.own, count)[:had+count]
		first, run := q.at(oldest, count)
		from := q.rings.On(rank)
		err = from.Add(first).GetSlice(q.n, q.own[had:had+run])
		if err == nil && run < count {
			err = from.GetSlice(q.n, q.own[had+run:])
		}
		if err == nil {
			err = gas.AddNBI(q.n, q.ctls.On(rank).Add(copiedWord), uint64(count))
		}
		q.stats.Steals++
		q.stats.Stolen += uint64(count)
		return true, err
	}
	return false, err
}

// sleep takes part in waves until there is something to look for, or all is done.
func (q *Queue[T]) sleep() (ended bool, err error) {
	q.stats.Sleeps++
	// In this barrier ranks would find each other if one returned from its function.
	if q.gated == gateClosed {
		if err := q.gate.notify(); err != nil {
			return false, err
		}
		q.gated = gateEntered
	}
	if err := gas.Store(q.n, q.ctl.Add(asleepWord), 1); err != nil {
		return false, err
	}
	ended, err = q.rest()
	if err == nil {
		err = gas.Store(q.n, q.ctl.Add(asleepWord), 0)
	}
	if ended && err == nil {
		err = q.finish()
	}
	return ended, err
}

// rest is sleep while it is seen to sleep.
func (q *Queue[T]) rest() (ended bool, err error) {
	for {
		if err := q.pass(false); err != nil {
			return false, err
		}
		ended, err := q.waves()
		if ended || err != nil || atomic.LoadUint64(&q.words[hintWord]) != 0 {
			return ended, err
		}
		if err := q.n.Wait(q.awake); err != nil {
			return false, err
		}
	}
}

// due reports whether a sleeping rank has something to do.
func (q *Queue[T]) due() bool {
	return atomic.LoadUint64(&q.words[hintWord]) != 0 || q.waveDue() ||
		q.gated == gateEntered && q.gate.ready()
}

// pass ends the phase's first barrier, when it can.
func (q *Queue[T]) pass(now bool) error {
	if q.gated != gateEntered || !now && !q.gate.ready() {
		return nil
	}
	q.gated = gatePassed
	if err := q.gate.wait(); err != nil {
		return fmt.Errorf("dist: queue %q: rank %d waits for work: %w", q.name, q.rank, err)
	}
	// Until the end of the phase there is one open, at which a rank is found that returns.
	return q.gate.notify()
}

// finish ends the phase: no rank goes on while others still look for items, which would be
// those of the next phase.
func (q *Queue[T]) finish() error {
	if err := q.pass(true); err != nil {
		return err
	}
	q.gated = gateClosed
	if err := q.n.SyncImplicit(); err != nil {
		return err
	}
	if err := q.gate.wait(); err != nil {
		return err
	}
	return q.g.Barrier()
}

// waves has this rank do its part in counting, and reports whether there is nothing left to do on
// any rank. A wave goes down the tree of ranks, each of which passes it on when it has no work, and
// comes back up with the sums of items pushed and finished. Both only grow; so if as many were pushed
// by the end of a wave as were finished by the end of the one before it, there was none in
// between that was pushed and not finished, and only such an item could push others.
func (q *Queue[T]) waves() (ended bool, err error) {
	for {
		if q.rank == 0 {
			if q.sent {
				q.wave++
				q.sent = false
				err = q.tell(q.wave << 1)
			}
		} else if word := atomic.LoadUint64(&q.words[downWord]); word != q.told {
			q.wave = word >> 1
			q.sent = word&1 != 0
			if err := q.tell(word); err != nil || q.sent {
				return q.sent, err
			}
		}
		if err != nil || q.sent || !q.gathered() {
			return false, err
		}
		q.sent = true
		q.stats.Waves++
		q.sums[0], q.sums[1] = q.created, q.done
		for c := range q.children() {
			q.sums[0] += atomic.LoadUint64(&q.words[upWord+3*c])
			q.sums[1] += atomic.LoadUint64(&q.words[upWord+3*c+1])
		}
		if q.rank > 0 {
			up := q.ctls.On((q.rank - 1) / children).Add(upWord + 3*((q.rank-1)%children))
			return false, up.PutSignal(q.n, q.sums[:], up.Add(2), gas.SignalSet, q.wave)
		}
		if q.sums[0] == q.before {
			return true, q.tell(q.wave<<1 | 1)
		}
		q.before = q.sums[1]
	}
}

// tell passes word on to the children.
func (q *Queue[T]) tell(word uint64) error {
	q.told = word
	for c := range q.children() {
		if err := gas.StoreNBI(q.n, q.ctls.On(children*q.rank+1+c).Add(downWord), word); err != nil {
			return err
		}
	}
	return nil
}

// waveDue reports whether waves would do something.
func (q *Queue[T]) waveDue() bool {
	return q.rank > 0 && atomic.LoadUint64(&q.words[downWord]) != q.told || !q.sent && q.gathered()
}

// gathered reports whether all children have sent their parts of the wave.
func (q *Queue[T]) gathered() bool {
	for c := range q.children() {
		if atomic.LoadUint64(&q.words[upWord+3*c+2]) != q.wave {
			return false
		}
	}
	return true
}

// children is how many ranks have this one as their parent: children*rank+1 and on.
func (q *Queue[T]) children() int { return max(0, min(children, q.size-1-children*q.rank)) }
