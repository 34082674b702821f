package udp

import (
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
)

// sealing is a rank's seal.Sealer as its engine wants it.
type sealing struct {
	s         *seal.Sealer
	more      []*seal.Sealer // of this rank's further numbers, each size apart; see networks
	size      int
	paths     func(rank int) int // how many there are to the host of a rank: numbers of the others mean nothing
	like      []byte             // header of the last datagram that was accepted, in mode None
	likeSrc   int                // and its source
	most      int                // bytes of a sealed datagram that any rank sends; 0: as this rank's
	malformed atomic.Uint64      // longer than any rank sends, or of a path that there is not
	exhausted func(err error)
	once      sync.Once
}

var _ engine.Sealer = (*sealing)(nil)

// name is Limits.Authentication: the cipher, if there is one, and the mode.
func (a *sealing) name() string {
	switch {
	case a == nil:
		return "none"
	case a.Plain():
		return a.s.Mode().String()
	}
	return "AES-128-GCM, " + a.s.Mode().String()
}

func (a *sealing) Header() int { return seal.HeaderSize }

func (a *sealing) Trailer() int { return seal.Overhead(a.s.Mode()) - seal.HeaderSize }

func (a *sealing) Plain() bool { return a.s.Mode() == seal.None }

// by is the sealer of the datagrams to and from a number of a peer.
func (a *sealing) by(number int) *seal.Sealer {
	if len(a.more) == 0 || number < a.size {
		return a.s
	}
	return a.more[number/a.size-1]
}

func (a *sealing) Seal(dst int, b []byte) bool {
	_, err := a.by(dst).Seal(b[:0], dst, b[seal.HeaderSize:len(b)-a.Trailer()])
	if err != nil {
		a.once.Do(func() {
			if a.exhausted != nil {
				go a.exhausted(err)
			}
		})
	}
	return err == nil
}

func (a *sealing) Open(b []byte) (int, []byte, bool) {
	if len(b) > a.most {
		// No rank sends that: it is not worth the cipher's time (BenchmarkRefuseLong).
		a.malformed.Add(1)
		return 0, nil, false
	}
	if seal.Alike(b, a.like) {
		return a.likeSrc, b[seal.HeaderSize:len(b):len(b)], true
	}
	s, path := a.s, 0
	if len(a.more) > 0 {
		if _, _, to, ok := seal.Ends(b); ok && to/a.size <= len(a.more) {
			s, path = a.by(to), to/a.size
		}
	}
	src, plain, why := s.Open(b)
	if why != seal.Accepted {
		return src, plain, false
	}
	if len(a.more) > 0 && (src/a.size != path || path > 0 && path >= a.paths(src%a.size)) {
		// The rank is one of the job, and no answer to that number could be sent.
		a.malformed.Add(1)
		return 0, nil, false
	}
	if a.Plain() {
		a.like, a.likeSrc = append(a.like[:0], b[:seal.HeaderSize]...), src
	}
	return src, plain, true
}

// refused counts what was refused, by reason.
func (a *sealing) refused() seal.Counts {
	c := a.s.Refused()
	for _, s := range a.more {
		c.Add(s.Refused())
	}
	c.Malformed += a.malformed.Load()
	return c
}

// epoch folds an incarnation to what the engine tells incarnations apart by.
func epoch(incarnation uint64) uint32 { return max(1, uint32(incarnation)^uint32(incarnation>>32)) }
