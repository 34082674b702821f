package firehose

import (
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// Held is exposed memory of another rank that stays pinned, for accesses that are made again and again.
// Its firehoses are not moved until Release: an access needs no look for them.
type Held struct {
	// Pieces are the memory, in order: where each lies for the conduit, and its length, bytes.
	Pieces []HeldPiece

	x       *Route
	rank    int
	buckets int
	pins    []*pin
}

// HeldPiece is a part of Held.
type HeldPiece struct {
	At  segment.NLA
	Len int
}

// Hold pins n bytes at a of rank until Release, and waits for that. It is nil, without an error, if rank is this one, or if too few
// firehoses would be left for the largest other access.
func (x *Route) Hold(rank int, a segment.NLA, n uint64) (*Held, error) {
	l, bucket := x.cache.Limits(), x.policy.bucket
	from := addrOf(a)
	buckets := (uint64(from)&(bucket-1) + n + bucket - 1) / bucket
	if rank == x.ep.Rank() || buckets > uint64(l.Share) {
		return nil, nil
	}
	h := &Held{x: x, rank: rank, buckets: int(buckets)}
	x.advances()
	x.mu.Lock()
	ok := x.held[rank]+h.buckets+l.maxBuckets <= l.Share
	if ok {
		if x.held == nil {
			x.held = map[int]int{}
		}
		x.held[rank] += h.buckets
	}
	x.mu.Unlock()
	if !ok {
		return nil, nil
	}
	for done := uint64(0); done < n; {
		p := x.sparePin()
		h.pins = append(h.pins, p)
		at := from + Addr(done)
		chunk := min(n-done, x.policy.reach(at))
		if err := x.holdOne(p, rank, at, chunk); err != nil {
			h.pins = h.pins[:len(h.pins)-1]
			x.spare(p)
			_ = h.Release() // the first error is the cause
			return nil, err
		}
		for end := at + Addr(chunk); at < end; {
			g, k := x.cache.at(p, at)
			k = min(k, uint64(end-at), x.maxLong)
			if k == 0 {
				_ = h.Release()
				return nil, &conduits.PeerError{Rank: rank, Op: "hold", Err: errGone}
			}
			h.Pieces = append(h.Pieces, HeldPiece{g.NLA, int(k)})
			at += Addr(k)
		}
		done += chunk
	}
	return h, nil
}

// holdOne waits until p has a piece of memory that one pin covers.
func (x *Route) holdOne(p *pin, rank int, a Addr, n uint64) error {
	var came atomic.Bool
	p.then = func() { came.Store(true) }
	got, err := x.cache.ask(p, rank, a, n, byFirehose)
	if err != nil || got == there {
		return err
	}
	if err := x.e.Wait(holding{rank, a}, came.Load); err != nil {
		return err
	}
	return p.err
}

// holding is what Hold waits for.
type holding struct {
	rank int
	a    Addr
}

// Blocked is for reports of jobs that hang.
func (h holding) Blocked() string {
	return "firehose: for memory at " + nlaOf(h.a).String() + " to be pinned"
}

// Release gives the firehoses back, when no access by them is under way. Once only.
func (h *Held) Release() error {
	x := h.x
	var failed error
	for _, p := range h.pins {
		if err := x.cache.done(p); failed == nil {
			failed = err
		}
		x.spare(p)
	}
	x.mu.Lock()
	x.held[h.rank] -= h.buckets
	x.mu.Unlock()
	h.pins, h.Pieces, h.buckets = nil, nil, 0
	return failed
}

// sparePin is a pin that is not in use.
func (x *Route) sparePin() *pin {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k := len(x.pins); k > 0 {
		p := x.pins[k-1]
		x.pins = x.pins[:k-1]
		return p
	}
	return new(pin)
}

// spare keeps p for the next.
func (x *Route) spare(p *pin) {
	x.mu.Lock()
	x.pins = append(x.pins, p)
	x.mu.Unlock()
}
