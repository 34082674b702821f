package contract

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

var attachChecks = []Check{
	{Name: "identity", Run: checkIdentity},
	{Name: "config", Run: checkConfig},
	{Name: "attach errors", Run: checkAttachErrors},
	{Name: "attach without one", Run: checkAttachWithout},
	{Name: "segments", Run: checkSegments},
	{Name: "system area", Run: checkSystem},
	{Name: "clock", Run: checkClock},
}

// checkIdentity: rank, size and limits are known before Attach and stay so.
func checkIdentity(c *Case) {
	for _, n := range append([]int{17}, sizesOfJobs...) {
		limits := make([]conduits.Limits, n)
		c.Job(n, conduits.Config{}, func(p *Peer) {
			ep := p.EP
			look := func(when string) {
				if ep.Rank() != p.Rank || ep.Size() != n {
					p.Fatalf("%s: rank %d of %d, want %d of %d", when, ep.Rank(), ep.Size(), p.Rank, n)
				}
				if ep.Conduit() != c.Offer.conduit || ep.Conduit() == "" {
					p.Fatalf("%s: conduit %q, want %q", when, ep.Conduit(), c.Offer.conduit)
				}
				if err := ep.Err(); err != nil {
					p.Fatalf("%s: %v", when, err)
				}
				if ep.Polling() {
					p.Fatalf("%s: polling", when)
				}
			}
			look("before attach")
			l := ep.Limits()
			switch {
			case l.MaxMedium < 512:
				p.Fatalf("medium payloads of %d bytes, less than 512", l.MaxMedium)
			case l.MaxSegment < segment.PageSize || l.MaxSegment > uint64(segment.MaxAttach):
				p.Fatalf("segments of up to %d bytes", l.MaxSegment)
			case l.MaxLong < segment.PageSize:
				p.Fatalf("long payloads of %d bytes", l.MaxLong)
			case l.Credits < 1:
				p.Fatalf("%d credits", l.Credits)
			}
			limits[p.Rank] = l
			var s conduits.Stats
			if ep.Stats(&s); s.Sent != [2]uint64{} || s.Received != [2]uint64{} || s.NoCredit+s.Puts+s.Gets+s.Atomics != 0 {
				p.Fatalf("before anything happened: %+v", s)
			}
			if p.Rank == n/2 { // long enough for the others to be asleep in Attach
				for range 2000 {
					p.yieldOnce()
				}
			}
			p.attach(0, &sink{})
			look("after attach")
			if ep.Limits() != l || limits[0] != l {
				p.Fatalf("limits %+v, after attach %+v, of rank 0 %+v", l, ep.Limits(), limits[0])
			}
			if w := ep.Waiting(); len(w) != 0 && n == 1 {
				p.Fatalf("waiting for %q while no goroutine does", w[0].Blocked())
			}
			p.Meet()
		})
	}
}

// checkConfig: what the opener asks for is the least that there is.
func checkConfig(c *Case) {
	for _, cfg := range []conduits.Config{
		{Credits: 1},
		{Credits: 5, MaxMedium: 513},
		{Credits: 100, MaxMedium: 512},
		{Credits: 4, MaxMedium: 5000},
		{MaxSegment: segment.PageSize},
		{MaxSegment: 8 * segment.PageSize, Credits: 64, MaxMedium: 4096},
	} {
		x := &exchange{most: 20, shape: randomShape}
		x.noPuts = cfg.MaxSegment != 0 && Pages(2*x.most*conduits.NumClasses*putStride) > cfg.MaxSegment
		c.exchange(2, cfg, x, func(m *mail) {
			l := m.EP.Limits()
			if l.Credits < cfg.Credits || l.MaxMedium < cfg.MaxMedium || l.MaxMedium < 512 || l.MaxSegment < cfg.MaxSegment {
				m.Fatalf("asked for %+v, have %+v", cfg, l)
			}
			for range 20 {
				m.post(m.RNG.IntN(2))
			}
		})
	}
}

// checkAttachErrors: an Attach that cannot be is an error that says why, and
// leaves the one that can.
func checkAttachErrors(c *Case) {
	c.Job(3, conduits.Config{MaxSegment: 4 * segment.PageSize}, func(p *Peer) {
		s := &sink{p: p}
		refused := func(what string, a conduits.AttachConfig, kinds ...error) {
			err := p.EP.Attach(a)
			for _, k := range kinds {
				if errors.Is(err, k) {
					return
				}
			}
			p.Fatalf("%s: error %v, want %v", what, err, kinds)
		}
		refused("no Receiver", conduits.AttachConfig{Size: segment.PageSize}, conduits.ErrBadArg)
		refused("half a page", conduits.AttachConfig{Size: segment.PageSize / 2, Receiver: s}, conduits.ErrBadArg)
		refused("a byte more than a page", conduits.AttachConfig{Size: segment.PageSize + 1, Receiver: s}, conduits.ErrBadArg)
		refused("more than the limit", conduits.AttachConfig{Size: p.EP.Limits().MaxSegment + segment.PageSize, Receiver: s},
			conduits.ErrResource, conduits.ErrBadArg)
		refused("nearly all addresses", conduits.AttachConfig{Size: 1<<64 - segment.PageSize, Receiver: s},
			conduits.ErrResource, conduits.ErrBadArg)
		p.attach(2*segment.PageSize, s)
		refused("a second time", conduits.AttachConfig{Size: segment.PageSize, Receiver: s}, conduits.ErrNotReady, conduits.ErrBadArg)
		for r := range 3 {
			if n := p.EP.SegmentSize(r); n != 2*segment.PageSize {
				p.Fatalf("the segment of rank %d has %d bytes", r, n)
			}
		}
		p.Meet()
	})
}

// checkAttachWithout: ranks that wait in Attach for one that fails, or leaves,
// are told.
func checkAttachWithout(c *Case) {
	for _, n := range []int{2, 3, 5} {
		for _, fails := range []bool{true, false} {
			for _, late := range []bool{true, false} {
				var here atomic.Int32
				c.Job(n, conduits.Config{}, func(p *Peer) {
					end := func() {
						if fails {
							p.EP.Fail(errors.New("the disk is full"))
						} else {
							p.Must(p.EP.Close())
						}
					}
					if p.Rank == n-1 {
						if late { // the others are in Attach, or near it
							p.yield(func() bool { return int(here.Load()) == n-1 })
						}
						p.pause(false)
						end()
						return
					}
					here.Add(1)
					err := p.EP.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &sink{p: p}})
					if err == nil {
						p.Fatalf("attached without rank %d", n-1)
					}
					p.Names(err, n-1, "attach without rank %d", n-1)
				})
			}
		}
	}
}

// checkSegments: sizes differ, one is none; every rank knows all sizes, and ranks
// in reach see the same memory, which is zero although earlier jobs have used theirs.
func checkSegments(c *Case) {
	for _, n := range append([]int{17}, sizesOfJobs...) {
		size := func(r int) int { return (r + 2) % 4 * segment.PageSize } // rank 2 has none
		c.Job(n, conduits.Config{}, func(p *Peer) {
			p.attach(size(p.Rank), &sink{})
			first, views := p.EP.Views()
			if first < 0 || first > p.Rank || first+len(views) <= p.Rank || first+len(views) > n {
				p.Fatalf("views of ranks %d to %d", first, first+len(views)-1)
			}
			for r := range n {
				if got := p.EP.SegmentSize(r); got != uint64(size(r)) {
					p.Fatalf("the segment of rank %d has %d bytes, want %d", r, got, size(r))
				}
			}
			for i, v := range views {
				if r := first + i; (v.Base != nil || r == p.Rank) && v.Size() != uint64(size(r)) {
					p.Fatalf("the view of rank %d has %d bytes, want %d", r, v.Size(), size(r))
				}
			}
			own := views[p.Rank-first]
			if n := uint64(size(p.Rank)); own.Read != n || own.Write != n || own.Atomic != n && own.Atomic != 0 {
				p.Fatalf("view of the own segment: %+v", own)
			}
			if b := memory(p.EP, p.Rank, At(0), size(p.Rank)); len(b) > 0 {
				if !aligned(b, 64) {
					p.Fatalf("the segment is not aligned")
				}
				if i := slices.IndexFunc(b, func(x byte) bool { return x != 0 }); i >= 0 {
					p.Fatalf("byte %d of the segment is %#x after attach, not zero", i, b[i])
				}
				Fill(b, uint64(p.Rank)+1, 0)
			}
			p.Meet()
			for i := range views {
				r := first + i
				if b := memory(p.EP, r, At(0), size(r)); Wrong(b, uint64(r)+1, 0) >= 0 {
					p.Fatalf("rank %d's segment differs from what it wrote at byte %d", r, Wrong(b, uint64(r)+1, 0))
				}
			}
			p.Meet()
			for i := range views {
				r := first + i
				if b := memory(p.EP, r, At(0), size(r)); len(b) > 0 {
					b[p.Rank] = byte(p.Rank + 100) // each has a byte of its own
				}
			}
			p.Meet()
			b := memory(p.EP, p.Rank, At(0), size(p.Rank))
			for i, v := range views {
				if r := first + i; (v.Base != nil || r == p.Rank) && len(b) > 0 && b[r] != byte(r+100) {
					p.Fatalf("byte %d is %d after rank %d wrote %d", r, b[r], r, r+100)
				}
			}
			p.Meet()
		})
	}
}

// checkSystem: the area is there, zero, and shared with the ranks that views and
// neighbourhoods say are in reach.
func checkSystem(c *Case) {
	for _, n := range append([]int{17}, sizesOfJobs...) {
		c.Job(n, conduits.Config{}, func(p *Peer) {
			p.attach(0, &sink{})
			first, views := p.EP.Views()
			hoods := conduits.NeighbourhoodsOf(p.EP)
			for r := range n {
				b := p.EP.System(r, conduits.SystemWords)
				if i := r - first; r != p.Rank && (b != nil) != (i >= 0 && i < len(views) && views[i].Base != nil) {
					p.Fatalf("the system area of rank %d is there: %v; its view is not as much", r, b != nil)
				}
				if hoods != nil && (hoods.Of(r) == hoods.Of(p.Rank)) != (b != nil) {
					p.Fatalf("the system area of rank %d is there: %v; neighbourhoods %d and %d", r, b != nil, hoods.Of(r), hoods.Of(p.Rank))
				}
				if b == nil {
					if r == p.Rank {
						p.Fatalf("no system area of the own rank")
					}
					continue
				}
				if len(b) != conduits.SystemBytes || !aligned(b, 64) {
					p.Fatalf("the system area of rank %d: %d bytes, aligned %v", r, len(b), aligned(b, 64))
				}
				if i := Differ(b, make([]byte, len(b))); i >= 0 {
					p.Fatalf("the system area of rank %d has %#x at byte %d", r, b[i], i)
				}
			}
			checkStaging(p, n)
			p.Meet()
			Fill(p.EP.System(p.Rank, conduits.SystemWords), uint64(p.Rank)+1, 0)
			p.Meet()
			for r := range n {
				if b := p.EP.System(r, conduits.SystemWords); b != nil && Wrong(b, uint64(r)+1, 0) >= 0 {
					p.Fatalf("the system area of rank %d differs from what it wrote", r)
				}
			}
			p.Meet()
			if b := memory(p.EP, p.Rank, At(0), 0); len(b) != 0 {
				p.Fatalf("a segment of no bytes has %d", len(b))
			}
		})
	}
}

// checkStaging: all ranks that have SystemWords have as much of it, zero, or none has any.
func checkStaging(p *Peer, n int) {
	own := p.EP.System(p.Rank, conduits.SystemStaging)
	for r := range n {
		b := p.EP.System(r, conduits.SystemStaging)
		if shared := p.EP.System(r, conduits.SystemWords) != nil; shared && len(b) != len(own) || !shared && b != nil || !aligned(b, 64) {
			p.Fatalf("the staging of rank %d: %d bytes, %d of the own rank, aligned %v", r, len(b), len(own), aligned(b, 64))
		}
	}
	p.Meet()
	Fill(own, uint64(p.Rank)+1, 1)
	p.Meet()
	for r := range n {
		if b := p.EP.System(r, conduits.SystemStaging); b != nil && Wrong(b, uint64(r)+1, 1) >= 0 {
			p.Fatalf("the staging of rank %d differs from what it wrote", r)
		}
	}
}

// checkClock: it does not go back, for any goroutine of the rank.
func checkClock(c *Case) {
	c.Job(2, conduits.Config{}, func(p *Peer) {
		p.attach(0, &sink{})
		p.Threads(2, func(int) {
			for last, i := p.EP.Now(), 0; i < 500; i++ {
				p.EP.Poll()
				now := p.EP.Now()
				if now < last {
					p.Errorf("the clock went back from %v to %v", last, now)
					return
				}
				last = now
			}
		})
		p.Meet()
	})
}
