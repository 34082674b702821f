package shm

import (
	"fmt"
	"iter"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// lanes are those of a rank. Each is an Endpoint with a mailbox and a waiter of its own:
// lane i sends to lane i of the others, by conversations of that lane, and goroutines that
// use different lanes write no line that both use, as long as they find something to do.
//
// Those that find nothing look after the lanes whose own goroutines compute, or wait
// elsewhere: a lane is unattended if it has not been polled for some time, as its count of
// polls tells (tend). A goroutine that goes to sleep announces itself in the blocks of
// the unattended lanes, too (announce), and what was attended then, and is not any more,
// the watcher finds (remind).
type lanes struct {
	// armed counts the goroutines of the rank that sleep, or are about to. What is awaited
	// in one lane a handler of another one may have done, so bell.ran looks at this.
	armed uint32
	_     [60]byte

	all     []atomic.Pointer[Endpoint] // nil as long as it has not been used
	open    func(lane int, ep conduits.Endpoint) conduits.Receiver
	lookers []looker // by lane

	making sync.Mutex // guards the making of all

	mu       sync.Mutex // guards what follows, and the announcements of this rank
	sleeping []int      // goroutines by lane, but for
	nested   []int      // those in handlers, which run replies alone
	polled   []uint64   // of the watcher: the turns of lanes when it last looked
}

// looker has the last look of a lane's goroutines at each of the other lanes.
type looker struct {
	mu sync.Mutex
	at []regard
}

// regard is the state of a lane at the last look.
type regard struct {
	turn    uint64        // its count of polls
	since   time.Duration // when that was first seen
	adopted bool          // it is unattended, and polled by the looker
}

// neglect is for how long a lane is not polled before another one's goroutines do: longer
// than what is usually computed between two polls, because a goroutine that takes the
// lock of a lane takes the bias from the one that owns it.
const neglect = 100 * time.Microsecond

// newLanes has e be the first of its rank's lanes.
func newLanes(e *Endpoint) {
	n := e.j.lanes
	l := &lanes{all: make([]atomic.Pointer[Endpoint], n), lookers: make([]looker, n), sleeping: make([]int, n), nested: make([]int, n), polled: make([]uint64, n)}
	for i := range l.lookers {
		l.lookers[i].at = make([]regard, n)
	}
	l.adopt(e)
}

// adopt makes e one of l.
func (l *lanes) adopt(e *Endpoint) {
	e.mailbox.bell.lanes, e.asleep = l, &l.armed
	l.all[e.lane].Store(e)
}

// Lanes is how many lanes this rank has.
func (e *Endpoint) Lanes() int { return e.j.lanes }

// Lane is lane i, made at the first call. The endpoint itself is lane 0.
func (e *Endpoint) Lane(i int) (conduits.Endpoint, error) {
	switch {
	case i < 0 || i >= e.j.lanes:
		return nil, errs.BadArg("shm: lane %d of %d (-lanes, ARGON_LANES)", i, e.j.lanes)
	case !e.attached.Load() || e.receiver == nil:
		return nil, errs.NotReady("shm: no lane before Attach")
	case e.lanes == nil:
		return e, nil
	}
	return e.lanes.lane(i)
}

// lane is the lane of that number, made at the first call.
func (l *lanes) lane(i int) (*Endpoint, error) {
	if e := l.all[i].Load(); e != nil {
		return e, nil
	}
	l.making.Lock()
	defer l.making.Unlock()
	if e := l.all[i].Load(); e != nil {
		return e, nil
	}
	first := l.all[0].Load()
	if l.open == nil {
		return nil, errs.NotReady("shm: rank %d was attached without AttachConfig.Lane, and has no lane %d", first.rank, i)
	}
	at := first.seat
	at.lane = i
	e := newLane(at, first.common)
	e.receiver = l.open(i, e)
	l.adopt(e)
	return e, nil
}

// each is the rank's lanes that have been used.
func (e *Endpoint) each() iter.Seq[*Endpoint] {
	return func(yield func(*Endpoint) bool) {
		if e.lanes == nil {
			yield(e)
			return
		}
		for i := range e.lanes.all {
			if e := e.lanes.all[i].Load(); e != nil && !yield(e) {
				return
			}
		}
	}
}

// lanesWord has the bits of the lanes that other ranks have sent to at rank.
func (j *job) lanesWord(rank int) *uint64 { return (*uint64)(unsafe.Add(j.ctl(rank), ctlLanes)) }

// knock makes a lane known to dst that has it, perhaps, not yet. What polls any lane there
// finds that out by the news of the first.
func (box *mailbox) knock(dst int) {
	atomic.OrUint64(box.j.lanesWord(dst), 1<<box.lane)
	atomic.AddUint32(box.j.c32(dst, ctlOpenSeq), 1)
	box.wakeLane(dst, 0)
}

// admit makes the lanes that other ranks have sent to.
func (l *lanes) admit() {
	for i := range l.all {
		if l.knocked(i) {
			if _, err := l.lane(i); err != nil {
				l.all[0].Load().Fail(fmt.Errorf("a rank has sent to lane %d of this one: %w", i, err))
			}
		}
	}
}

// knocked reports whether another rank has sent to lane i, which this one has not used yet.
func (l *lanes) knocked(i int) bool {
	first := l.all[0].Load()
	return i > 0 && l.all[i].Load() == nil && atomic.LoadUint64(first.j.lanesWord(first.rank))>>i&1 != 0
}

// unknown reports whether there are messages in lanes that this rank has not used yet.
func (l *lanes) unknown() bool {
	for i := range l.all {
		if l.knocked(i) {
			return true
		}
	}
	return false
}

// tend polls the lanes that are unattended. The caller has found nothing in its own, whose
// lock it does not hold.
func (e *Endpoint) tend() int {
	if atomic.LoadUint64(&e.turn)&7 != 0 && atomic.LoadUint32(e.parked) == 0 {
		return 0
	}
	l := e.lanes
	k := &l.lookers[e.lane]
	if !k.mu.TryLock() {
		return 0
	}
	due, now := uint64(0), e.Now()
	for i := range l.all {
		s := l.all[i].Load()
		if s == nil || s == e {
			continue
		}
		r := &k.at[i]
		if t := atomic.LoadUint64(&s.turn); t != r.turn {
			*r = regard{turn: t, since: now}
			continue
		}
		if atomic.LoadUint32(s.parked) == uint32(i)+1 { // its own sleeper is woken for it
			continue
		}
		r.adopted = r.adopted || now-r.since >= neglect
		if r.adopted {
			due |= 1 << i
		}
	}
	k.mu.Unlock()
	n := 0
	for ; due != 0; due &= due - 1 {
		i := bits.TrailingZeros64(due)
		s := l.all[i].Load()
		if conc.TryEnter(&s.lock) || s.lock.TryLock() {
			n += s.look()
			s.lock.Unlock()
		}
		k.mu.Lock()
		k.at[i].turn = atomic.LoadUint64(&s.turn) // that was no sign of attention
		k.mu.Unlock()
	}
	return n
}

// tendReplies runs replies in the other lanes. The caller is in a handler that waits for
// credit, which other ranks may give it only when their replies have been taken here.
func (e *Endpoint) tendReplies() int {
	n := 0
	for s := range e.each() {
		if s != e && (conc.TryEnter(&s.lock) || s.lock.TryLock()) {
			n += s.lookReplies()
			s.lock.Unlock()
		}
	}
	return n
}

// announce says that a goroutine of lane i is about to sleep: in the block of that lane,
// and of those that are unattended. One in a handler, nested, cannot run requests, and
// leaves the announcements of others, which can.
func (l *lanes) announce(i int, nested bool) {
	e := l.all[i].Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	atomic.AddUint32(&l.armed, 1)
	if nested {
		l.nested[i]++
		atomic.StoreUint32(e.parked, uint32(i)+1)
		for j := range l.all {
			if s := l.all[j].Load(); s != nil {
				atomic.CompareAndSwapUint32(s.parked, 0, uint32(i)+1)
			}
		}
		return
	}
	l.sleeping[i]++
	k := &l.lookers[i]
	mine := k.mu.TryLock()
	for j := range l.all {
		s := l.all[j].Load()
		if s == nil || j != i && l.sleeping[j]+l.nested[j] != 0 {
			continue
		}
		if j != i && mine {
			r := &k.at[j]
			if t := atomic.LoadUint64(&s.turn); t != r.turn {
				*r = regard{turn: t, since: e.Now()}
				continue
			}
			r.adopted = true
		}
		atomic.StoreUint32(s.parked, uint32(i)+1)
	}
	if mine {
		k.mu.Unlock()
	}
}

// withdraw takes that back when it is the last goroutine of the lane. In the other lanes
// no sleeper takes its place, because one that is not woken would not look at what has come
// there since: the watcher finds them.
func (l *lanes) withdraw(i int, nested bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	atomic.AddUint32(&l.armed, ^uint32(0))
	if nested {
		l.nested[i]--
	} else {
		l.sleeping[i]--
	}
	if l.sleeping[i]+l.nested[i] != 0 {
		return
	}
	for j := range l.all {
		if s := l.all[j].Load(); s != nil {
			atomic.CompareAndSwapUint32(s.parked, uint32(i)+1, 0)
		}
	}
}

// sleeper is a lane by which a goroutine sleeps that is in no handler, or -1.
func (l *lanes) sleeper() int {
	for i, n := range l.sleeping {
		if n > 0 {
			return i
		}
	}
	return -1
}

// quiet reports whether the lanes that a goroutine of lane i is to be woken for have nothing.
func (l *lanes) quiet(i int) bool {
	for j := range l.all {
		s := l.all[j].Load()
		if s == nil || j == i || atomic.LoadUint32(s.parked) != uint32(i)+1 {
			continue
		}
		if !s.lock.TryLock() { // as in mayPark
			if s.nested.Load() > 0 {
				continue
			}
			s.j.yield()
			return false
		}
		quiet := s.quiet()
		s.lock.Unlock()
		if !quiet {
			return false
		}
	}
	return true
}

// rouse wakes all of the rank's goroutines that sleep.
func (l *lanes) rouse() {
	for i := range l.all {
		if s := l.all[i].Load(); s != nil && atomic.LoadUint32(s.parked) != 0 {
			s.wakeLane(s.rank, i)
		}
	}
}

// remind wakes a sleeper for a lane that was attended when it went to sleep, and is not any
// more. For the watcher.
func (l *lanes) remind() {
	l.mu.Lock()
	defer l.mu.Unlock()
	sleeper := l.sleeper()
	for i := range l.all {
		s := l.all[i].Load()
		if s == nil {
			continue
		}
		t := atomic.LoadUint64(&s.turn)
		v := atomic.LoadUint32(s.parked)
		unserved := v == 0 || v <= uint32(len(l.sleeping)) && l.sleeping[v-1] == 0 // nested ones run no requests
		neglected := t == l.polled[i] && l.sleeping[i]+l.nested[i] == 0 && unserved
		if l.polled[i] = t; neglected && sleeper >= 0 {
			atomic.StoreUint32(s.parked, uint32(sleeper)+1)
			s.j.rouse(s.rank, sleeper)
		}
	}
}
