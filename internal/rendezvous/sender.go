package rendezvous

import (
	"io"
	"sync"
)

// A sender writes to a connection what next returns, on a goroutine that there
// is only while there is something to write: so that no goroutine waits for a slow
// peer, and news that come while one is slow are put together.
type sender struct {
	w io.Writer
	// next returns what is to be written, nil for nothing. Called by one goroutine
	// at a time, without sender's lock.
	next func() []byte

	mu    sync.Mutex
	busy  bool          // the goroutine runs
	again bool          // kick was called since next was
	err   error         // of a write; sticky
	idle  chan struct{} // closed when the goroutine ends; nil if no goroutine waits
}

// kick has the sender call next again. It does not block, and may be called with
// a lock held that next takes.
func (s *sender) kick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
	case s.busy:
		s.again = true
	default:
		s.busy = true
		go s.run()
	}
}

func (s *sender) run() {
	for {
		if b := s.next(); b != nil {
			if _, err := s.w.Write(b); err != nil {
				s.mu.Lock()
				s.err = err
				s.rest()
				s.mu.Unlock()
				return
			}
			continue
		}
		s.mu.Lock()
		if !s.again {
			s.rest()
			s.mu.Unlock()
			return
		}
		s.again = false
		s.mu.Unlock()
	}
}

// rest is called at the end of the goroutine, with the lock held.
func (s *sender) rest() {
	s.busy, s.again = false, false
	if s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// flushed is closed when all that next has now is written, or cannot be.
func (s *sender) flushed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == nil {
		s.idle = make(chan struct{})
		if !s.busy {
			c := s.idle
			s.idle = nil
			close(c)
			return c
		}
	}
	return s.idle
}
