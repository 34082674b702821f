package conduits

import "sync"

// A Sleepers has what goroutines that have armed wait for: see Endpoint.Arm. A slot is used again once it is
// free. Its lock is held while a Blocked is asked, so that the wait goes on meanwhile: Add and
// Remove are called with no lock held that a Blocked or a wake-up takes.
type Sleepers struct {
	mu sync.Mutex
	b  []sleeper
	n  uint64
}

type sleeper struct {
	b Blocked // nil: the slot is free
	n uint64  // of the wait
}

// Add puts b, or Idling in place of nil, into a free slot and returns its number.
func (l *Sleepers) Add(b Blocked) (slot int32) {
	if b == nil {
		b = Idling{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	slot = -1
	for i := range l.b {
		if l.b[i].b == nil {
			slot = int32(i)
		}
	}
	if slot < 0 {
		slot = int32(len(l.b))
		l.b = append(l.b, sleeper{})
	}
	l.n++
	l.b[slot] = sleeper{b, l.n}
	return slot
}

// Remove frees slot.
func (l *Sleepers) Remove(slot int32) {
	l.mu.Lock()
	l.b[slot].b = nil
	l.mu.Unlock()
}

// All lists the present waits, for Endpoint.Waiting.
func (l *Sleepers) All() []Blocked {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Blocked
	for i, s := range l.b {
		if s.b != nil {
			all = append(all, asleep{l, i, s})
		}
	}
	return all
}

// asleep is a wait as others see it.
type asleep struct {
	l    *Sleepers
	slot int
	sleeper
}

func (a asleep) Awaited() Blocked { return a.b }

// Blocked asks what is awaited, unless that wait is over: then it is "".
func (a asleep) Blocked() string {
	a.l.mu.Lock()
	defer a.l.mu.Unlock()
	if s := &a.l.b[a.slot]; s.b == nil || s.n != a.n {
		return ""
	}
	return a.b.Blocked()
}

// Awaited is the Blocked that a goroutine armed with, of one that Endpoint.Waiting lists.
func Awaited(b Blocked) Blocked {
	if w, ok := b.(interface{ Awaited() Blocked }); ok {
		return w.Awaited()
	}
	return b
}
