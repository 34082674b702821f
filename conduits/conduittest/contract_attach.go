package conduittest

import (
	"errors"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

var attachChecks = []check{
	{name: "identity", run: checkIdentity},
	{name: "config", run: checkConfig},
	{name: "attach errors", run: checkAttachErrors},
	{name: "attach without one", run: checkAttachWithout},
	{name: "segments", run: checkSegments},
	{name: "system area", run: checkSystem},
	{name: "clock", run: checkClock},
}

// checkIdentity: who one is and what the limits are is known before Attach and
// stays so.
func checkIdentity(c *ctx) {
	for _, n := range append([]int{17}, sizesOfJobs...) {
		limits := make([]conduits.Limits, n)
		c.run(n, conduits.Config{}, func(p *peer) {
			ep := p.ep
			look := func(when string) {
				if ep.Rank() != p.rank || ep.Size() != n {
					p.Fatalf("%s: rank %d of %d, want %d of %d", when, ep.Rank(), ep.Size(), p.rank, n)
				}
				if ep.Conduit() != c.offer.conduit || ep.Conduit() == "" {
					p.Fatalf("%s: conduit %q, want %q", when, ep.Conduit(), c.offer.conduit)
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
			limits[p.rank] = l
			var s conduits.Stats
			if ep.Stats(&s); s.Sent != [2]uint64{} || s.Received != [2]uint64{} || s.NoCredit+s.Puts+s.Gets+s.Atomics != 0 {
				p.Fatalf("before anything happened: %+v", s)
			}
			if p.rank == n/2 { // long enough for the others to be asleep in Attach
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
				p.Fatalf("waiting for %q while nobody does", w[0].Blocked())
			}
			p.meet()
		})
	}
}

// checkConfig: what the opener asks for is the least that there is.
func checkConfig(c *ctx) {
	for _, cfg := range []conduits.Config{
		{Credits: 1},
		{Credits: 5, MaxMedium: 513},
		{Credits: 100, MaxMedium: 512},
		{Credits: 4, MaxMedium: 5000},
		{MaxSegment: segment.PageSize},
		{MaxSegment: 8 * segment.PageSize, Credits: 64, MaxMedium: 4096},
	} {
		x := &exchange{most: 20, shape: randomShape}
		x.noPuts = cfg.MaxSegment != 0 && pages(2*x.most*conduits.NumClasses*putStride) > cfg.MaxSegment
		c.exchange(2, cfg, x, func(m *mail) {
			l := m.ep.Limits()
			if l.Credits < cfg.Credits || l.MaxMedium < cfg.MaxMedium || l.MaxMedium < 512 || l.MaxSegment < cfg.MaxSegment {
				m.Fatalf("asked for %+v, have %+v", cfg, l)
			}
			for range 20 {
				m.post(m.rng.IntN(2))
			}
		})
	}
}

// checkAttachErrors: an Attach that cannot be is an error that says why, and
// leaves the one that can.
func checkAttachErrors(c *ctx) {
	c.run(3, conduits.Config{MaxSegment: 4 * segment.PageSize}, func(p *peer) {
		s := &sink{p: p}
		refused := func(what string, a conduits.AttachConfig, kinds ...error) {
			err := p.ep.Attach(a)
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
		refused("more than the limit", conduits.AttachConfig{Size: p.ep.Limits().MaxSegment + segment.PageSize, Receiver: s},
			conduits.ErrResource, conduits.ErrBadArg)
		refused("nearly all addresses", conduits.AttachConfig{Size: 1<<64 - segment.PageSize, Receiver: s},
			conduits.ErrResource, conduits.ErrBadArg)
		p.attach(2*segment.PageSize, s)
		refused("a second time", conduits.AttachConfig{Size: segment.PageSize, Receiver: s}, conduits.ErrNotReady, conduits.ErrBadArg)
		for r := range 3 {
			if n := p.ep.SegmentSize(r); n != 2*segment.PageSize {
				p.Fatalf("the segment of rank %d has %d bytes", r, n)
			}
		}
		p.meet()
	})
}

// checkAttachWithout: ranks that wait in Attach for one that fails, or leaves,
// are told.
func checkAttachWithout(c *ctx) {
	for _, n := range []int{2, 3, 5} {
		for _, fails := range []bool{true, false} {
			for _, late := range []bool{true, false} {
				var here atomic.Int32
				c.run(n, conduits.Config{}, func(p *peer) {
					end := func() {
						if fails {
							p.ep.Fail(errors.New("the disk is full"))
						} else {
							p.must(p.ep.Close())
						}
					}
					if p.rank == n-1 {
						if late { // the others are in Attach, or near it
							p.yield(func() bool { return int(here.Load()) == n-1 })
						}
						p.pause(false)
						end()
						return
					}
					here.Add(1)
					err := p.ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &sink{p: p}})
					if err == nil {
						p.Fatalf("attached without rank %d", n-1)
					}
					p.names(err, n-1, "attach without rank %d", n-1)
				})
			}
		}
	}
}

// checkSegments: sizes differ, one is none; everybody knows all sizes, and who
// is in reach sees the same memory.
func checkSegments(c *ctx) {
	for _, n := range append([]int{17}, sizesOfJobs...) {
		size := func(r int) int { return (r + 2) % 4 * segment.PageSize } // rank 2 has none
		c.run(n, conduits.Config{}, func(p *peer) {
			p.attach(size(p.rank), &sink{})
			first, views := p.ep.Views()
			if first < 0 || first > p.rank || first+len(views) <= p.rank || first+len(views) > n {
				p.Fatalf("views of ranks %d to %d", first, first+len(views)-1)
			}
			for r := range n {
				if got := p.ep.SegmentSize(r); got != uint64(size(r)) {
					p.Fatalf("the segment of rank %d has %d bytes, want %d", r, got, size(r))
				}
			}
			for i, v := range views {
				if r := first + i; (v.Base != nil || r == p.rank) && v.Size() != uint64(size(r)) {
					p.Fatalf("the view of rank %d has %d bytes, want %d", r, v.Size(), size(r))
				}
			}
			own := views[p.rank-first]
			if n := uint64(size(p.rank)); own.Read != n || own.Write != n || own.Atomic != n {
				p.Fatalf("view of the own segment: %+v", own)
			}
			if b := memory(p.ep, p.rank, at(0), size(p.rank)); len(b) > 0 {
				if !aligned(b, 64) {
					p.Fatalf("the segment is not aligned")
				}
				fill(b, uint64(p.rank)+1, 0)
			}
			p.meet()
			for i := range views {
				r := first + i
				if b := memory(p.ep, r, at(0), size(r)); wrong(b, uint64(r)+1, 0) >= 0 {
					p.Fatalf("rank %d's segment differs from what it wrote at byte %d", r, wrong(b, uint64(r)+1, 0))
				}
			}
			p.meet()
			for i := range views {
				r := first + i
				if b := memory(p.ep, r, at(0), size(r)); len(b) > 0 {
					b[p.rank] = byte(p.rank + 100) // each has a byte of its own
				}
			}
			p.meet()
			b := memory(p.ep, p.rank, at(0), size(p.rank))
			for i := range views {
				if r := first + i; len(b) > 0 && b[r] != byte(r+100) {
					p.Fatalf("byte %d is %d after rank %d wrote %d", r, b[r], r, r+100)
				}
			}
			p.meet()
		})
	}
}

// checkSystem: the area is there, zero, and shared with whoever is in reach.
func checkSystem(c *ctx) {
	for _, n := range append([]int{17}, sizesOfJobs...) {
		c.run(n, conduits.Config{}, func(p *peer) {
			p.attach(0, &sink{})
			for r := range n {
				b := p.ep.System(r)
				if b == nil {
					if r == p.rank {
						p.Fatalf("no system area of the own rank")
					}
					continue
				}
				if len(b) != conduits.SystemBytes || !aligned(b, 64) {
					p.Fatalf("the system area of rank %d: %d bytes, aligned %v", r, len(b), aligned(b, 64))
				}
				for i, v := range b {
					if v != 0 {
						p.Fatalf("the system area of rank %d has %#x at byte %d", r, v, i)
					}
				}
			}
			p.meet()
			fill(p.ep.System(p.rank), uint64(p.rank)+1, 0)
			p.meet()
			for r := range n {
				if b := p.ep.System(r); b != nil && wrong(b, uint64(r)+1, 0) >= 0 {
					p.Fatalf("the system area of rank %d differs from what it wrote", r)
				}
			}
			p.meet()
			if b := memory(p.ep, p.rank, at(0), 0); len(b) != 0 {
				p.Fatalf("a segment of no bytes has %d", len(b))
			}
		})
	}
}

// checkClock: it does not go back, for any goroutine of the rank.
func checkClock(c *ctx) {
	c.run(2, conduits.Config{}, func(p *peer) {
		p.attach(0, &sink{})
		p.threads(2, func(int) {
			for last, i := p.ep.Now(), 0; i < 500; i++ {
				p.ep.Poll()
				now := p.ep.Now()
				if now < last {
					p.Errorf("the clock went back from %v to %v", last, now)
					return
				}
				last = now
			}
		})
		p.meet()
	})
}
