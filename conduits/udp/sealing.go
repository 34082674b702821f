package udp

import (
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
)

// sealing is a rank's seal.Sealer as its engine wants it. Incarnations come from
// the job's table and from nowhere else: a datagram of any other incarnation of a
// rank is refused, even if it is a later one and authentic, since a rank does not
// come back.
type sealing struct {
	s           *seal.Sealer
	incarnation func(rank int) uint64
	size        int
	recent      int // one more than the rank that was sealed for last; the engine's caller's
	heard       int // one more than the rank that was heard last, and its incarnation; as recent
	heardAs     uint64
	like        []byte        // header of the last datagram that was accepted, in mode None
	likeSrc     int           // and its source
	most        int           // bytes of a sealed datagram that any rank sends; 0: as this rank's
	strangers   atomic.Uint64 // refused since of another incarnation than the table's
	long        atomic.Uint64 // refused since longer than any rank sends
	exhausted   func(err error)
	once        sync.Once
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

func (a *sealing) Seal(dst int, b []byte) bool {
	if dst != a.recent-1 {
		// Before the first datagram to it, so that no later incarnation opens that.
		// Not at the first from it: strangers could have memory taken that way.
		if a.s.Known(dst) == 0 && a.s.Learn(dst, a.incarnation(dst)) != nil {
			return false
		}
		a.recent = dst + 1
	}
	_, err := a.s.Seal(b[:0], dst, b[seal.HeaderSize:len(b)-a.Trailer()])
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
		a.long.Add(1)
		return 0, nil, false
	}
	if seal.Alike(b, a.like) {
		return a.likeSrc, b[seal.HeaderSize:len(b):len(b)], true
	}
	if src, inc, ok := seal.Claims(b); ok && src < a.size && (src != a.heard-1 || inc != a.heardAs) {
		if inc != a.incarnation(src) {
			a.strangers.Add(1)
			return 0, nil, false
		}
		a.heard, a.heardAs = src+1, inc // the table does not change
	}
	src, plain, why := a.s.Open(b)
	if why != seal.Accepted {
		return src, plain, false
	}
	if a.Plain() {
		a.like, a.likeSrc = append(a.like[:0], b[:seal.HeaderSize]...), src
	}
	return src, plain, true
}

// refused counts what was refused, by reason.
func (a *sealing) refused() seal.Counts {
	c := a.s.Refused()
	c.OldIncarnation += a.strangers.Load()
	c.Malformed += a.long.Load()
	return c
}

// epoch folds an incarnation to what the engine tells incarnations apart by.
func epoch(incarnation uint64) uint32 { return max(1, uint32(incarnation)^uint32(incarnation>>32)) }
