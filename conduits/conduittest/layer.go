package conduittest

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// layerChecks are GASNet's tests (release 2025.8.0, tests/) as properties of
// the layers on any conduit; each check names its model. Since no order between
// messages is promised, none is assumed. Of what is marked for porting, these
// have no counterpart here:
//
//   - testsegment: a rank has one segment, attached once; there is nothing to
//     create, bind or publish later. Its bad arguments are in am/attach.
//   - testsplit, testteam, testteambarrier, testteambcast, testtmpair: a job has
//     no teams and no pairs; every operation names a rank of the job.
//   - testenv, and the exit codes, signals and orphans of testexit: processes
//     are the launcher's; cmd/gasrun tests them. What a rank's end means to the
//     others is in gas/exit.
//   - testprogthr: progress in the background is one switch (gas.Config), no
//     threads that a program may adopt.
//   - testlegacy: there is no older interface. Its memset is in extended/memset.
//   - testgasnet's neighbourhood queries: Endpoint.Views, a contract check.
//   - testhsl: of its illegal uses the lock, recursion and release order are
//     gas/lock's; no lock is ever held by a handler, so interrupt-safety has no
//     meaning. testalign, testinternal, testtools and the like test no layer.
var layerChecks = slices.Concat(amChecks, barrierChecks, extendedChecks, gasChecks, moreLayerChecks)

// at is the address of byte off of a segment.
func at(off int) segment.NLA { return segment.AttachBase + segment.NLA(off) }

// pages rounds bytes up to what a segment may have.
func pages(n int) uint64 { return uint64(n+segment.PageSize-1) &^ (segment.PageSize - 1) }

// mix makes a key of numbers.
func mix(parts ...uint64) uint64 {
	k := uint64(0x243f6a8885a308d3)
	for _, p := range parts {
		k = (k ^ p) * 0x9e3779b97f4a7c15
		k ^= k >> 29
	}
	return k
}

func byteOf(key uint64, i int) byte {
	z := (key + uint64(i)) * 0xbf58476d1ce4e5b9
	return byte(z >> 56)
}

// fill writes to b what key determines, as if b began at byte from of it.
func fill(b []byte, key uint64, from int) []byte {
	for i := range b {
		b[i] = byteOf(key, from+i)
	}
	return b
}

// wrong is the index of the first byte of b that fill(b, key, from) would
// change, or -1.
func wrong(b []byte, key uint64, from int) int {
	for i := range b {
		if b[i] != byteOf(key, from+i) {
			return i
		}
	}
	return -1
}

// differ is the first index where a and b, equally long, differ, or -1.
func differ(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// spoil changes every byte of b.
func spoil(b []byte) {
	for i := range b {
		b[i] ^= 0xa5
	}
}

// sizes are the lengths that are worth a try, up to most: all small ones, and
// the powers of two with their neighbours.
func sizes(small, most int) []int {
	var s []int
	for n := range min(small, most) + 1 {
		s = append(s, n)
	}
	for p := 8; p > 0 && p-1 <= most; p *= 2 {
		for n := p - 1; n <= p+1; n++ {
			if n > small && n <= most {
				s = append(s, n)
			}
		}
	}
	if last := s[len(s)-1]; last < most {
		s = append(s, most)
	}
	return s
}

// random is a generator for what the seed and parts determine, so that all
// ranks that ask for the same draw the same.
func (c *ctx) random(parts ...uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.seed, mix(parts...)))
}

// poll is for loops that ask again and again: it polls and lets others run, who
// may share this processor.
func (s *stack) poll() {
	s.am.Poll()
	runtime.Gosched()
}

// try is bar.Try in such a loop: it returns what Try does when the phase is over.
func (s *stack) try(id uint32, flags barrier.Flags) error {
	for {
		done, err := s.bar.Try(id, flags)
		if done || err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// wants reports an error that is not, or does not wrap, want.
func (p *peer) wants(err, want error, format string, args ...any) {
	p.c.Helper()
	if !errors.Is(err, want) {
		p.Fatalf(format+": error %v, want one that wraps %q", append(args, err, want)...)
	}
}

// doomed is one rank of a job that is to fail.
type doomed struct {
	*stack
	attach error // of am.Attach; the stack has no layers if it is not nil
}

// fails runs body on n ranks with the layers attached, in a job that is to
// fail: neither it nor its end expects the other ranks to be well.
func (c *ctx) fails(n int, l layers, body func(s *doomed)) {
	c.Helper()
	c.run(n, conduits.Config{}, func(p *peer) {
		s := &doomed{stack: &stack{peer: p, bar: barrier.NewWith(l.bar), ext: extended.New(l.ext)}}
		a := am.Config{SegmentSize: l.segment, Completer: s.ext, Debug: l.debug}
		if l.handlers != nil {
			a.Handlers = l.handlers(s.stack)
		}
		a.Runtime = append(s.bar.Handlers(), s.ext.Handlers()...)
		if s.am, s.attach = am.Attach(p.ep, a); s.attach == nil {
			p.up()
			p.must(s.bar.Bind(s.am))
			s.ext.Bind(s.am)
			s.barrier()
			// Who has left the barrier might make another fail that has not.
			s.meet()
		}
		body(s)
	})
}

// settle waits until the job has failed and returns how this rank knows it.
func (s *doomed) settle() error {
	s.c.Helper()
	err := conduits.Wait(s.ep, waiting("the job's failure"), func() bool { return false })
	if err == nil {
		s.Fatalf("Wait has returned without a reason")
	}
	return err
}

// names checks that err says that rank failed.
func (p *peer) names(err error, rank int, format string, args ...any) {
	p.c.Helper()
	var pe *conduits.PeerError
	if !errors.As(err, &pe) || pe.Rank != rank {
		p.Fatalf(format+": error %v, want a PeerError of rank %d", append(args, err, rank)...)
	}
}
