package am

import (
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// lanes are a rank's Messengers, which share handlers, tables and what Config says.
type lanes struct {
	first *Messenger
	below conduits.Laned
	given func(i int, l *Messenger) Lane
	all   []atomic.Pointer[Messenger]

	mu   sync.Mutex // guards what follows, and advance of the lanes
	step *func()
}

// newLanes makes e the first lane of its rank.
func newLanes(e *Messenger, below conduits.Laned, layer func(i int, l *Messenger) Lane) {
	l := &lanes{first: e, below: below, given: layer, all: make([]atomic.Pointer[Messenger], below.Lanes())}
	l.all[0].Store(e)
	if e.given == nil {
		e.given = new(given)
	}
	e.given.lanes = l
}

// shared returns the state that all lanes of the rank share, nil if e is the only one.
func (e *Messenger) shared() *lanes {
	if e.given == nil {
		return nil
	}
	return e.given.lanes
}

// Lanes is how many lanes the rank has, 1 where the conduit has none: see Lane.
func (e *Messenger) Lanes() int {
	if s := e.shared(); s != nil {
		return len(s.all)
	}
	return 1
}

// Lane is lane i of the rank, 0 to Lanes()-1: a Messenger that sends and polls without a
// lock, and without a line of memory, that other lanes write. The Messenger that Attach
// returned is lane 0. A message of a lane runs at the same lane of its target, where
// handlers run one at a time; those of different lanes may run at once. Handlers, tables
// and limits are the rank's. A lane takes its memory at the first call, or when the first
// message arrives there, and stays.
//
// A goroutine that polls a lane, or waits by it, and finds nothing there also runs what is
// in lanes that no other goroutine polls for a while.
func (e *Messenger) Lane(i int) (*Messenger, error) {
	if i < 0 || i >= e.Lanes() {
		return nil, errs.BadArg("am: lane %d of %d (-lanes, ARGON_LANES)", i, e.Lanes())
	}
	s := e.shared()
	if s == nil {
		return e, nil
	}
	// This calls open once, and returns when the conduit's lane is complete: open has
	// published the Messenger earlier.
	if _, err := s.below.Lane(i); err != nil {
		return nil, err
	}
	return s.all[i].Load(), nil
}

// open makes lane i when the conduit has it.
func (s *lanes) open(i int, ep conduits.Endpoint) conduits.Receiver {
	first := s.first
	e := &Messenger{
		ep: ep, size: first.size, max: first.max, maxLong: first.maxLong,
		checks: atomic.LoadUint32(&first.checks) & checkAlways,
		table:  first.table, fns: first.fns, completer: first.completer,
	}
	if t := first.table.attached; t != nil { // this rank is not done with Attach, others are
		e.table, e.fns = t, first.fns[:len(first.fns)-int(ownHandlers)]
	}
	var l Lane
	if g := first.given; g != nil {
		l.User, l.Describe = g.user, g.describe
	}
	if x := first.exposed; x != nil {
		l.Exposer = x.Exposer
	}
	if s.given != nil {
		l = s.given(i, e)
		e.completer = l.Completer
	}
	e.equip(l)
	if e.given == nil {
		e.given = new(given)
	}
	e.given.lanes = s
	if first.given != nil {
		e.given.work = first.given.work
	}
	s.mu.Lock()
	e.advance.Store(s.step)
	s.all[i].Store(e)
	s.mu.Unlock()
	return e
}

// advance is Messenger.Advance for all lanes.
func (s *lanes) advance(f *func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step = f
	for i := range s.all {
		if e := s.all[i].Load(); e != nil {
			e.advance.Store(f)
		}
	}
}

// inHandler is the error of a call by but, which does not run a handler, if the calling
// goroutine runs one of another lane. Calls look only with Config.Debug, or while a handler
// of their own lane runs.
func (s *lanes) inHandler(op string, but *Messenger) error {
	for i := range s.all {
		if e := s.all[i].Load(); e != nil && e != but && e.ep.Polling() {
			return e.inHandler(op)
		}
	}
	return nil
}

// faults is Messenger.Faults of all lanes.
func (s *lanes) faults() uint64 {
	n := uint64(0)
	for i := range s.all {
		if e := s.all[i].Load(); e != nil && e.exposed != nil {
			n += e.exposed.faults.Load()
		}
	}
	return n
}
