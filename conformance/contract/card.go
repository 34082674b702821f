package contract

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
)

// CardChecks are of conduits.Card, where there are such.
var CardChecks = []Check{
	{Name: "card barrier", Seeded: true, Run: checkCardBarrier, skip: noBarrier},
	{Name: "card barrier alone", Seeded: true, Run: checkCardBarrierLeft, skip: noBarrier},
	{Name: "card multicast", Seeded: true, Run: checkMulticast, skip: func(o *Offer) string {
		if !o.multicast {
			return "no Multicaster"
		}
		return ""
	}},
}

func noBarrier(o *Offer) string {
	if !o.barriers {
		return "no BarrierUnit"
	}
	return ""
}

// gates are the barriers of p.
func (p *Peer) gates() conduits.Card {
	u, ok := conduits.BarriersOf(p.EP, conduits.BarrierRegisters)
	if !ok {
		p.Fatalf("rank %d has no barriers, or fewer than %d", p.Rank, conduits.BarrierRegisters)
	}
	return u
}

// checkCardBarrier: a phase of a register is over when all ranks have come to it, and not
// before, with the least and the greatest of their words, whatever goes on in other
// registers and in whatever order ranks come.
func checkCardBarrier(c *Case) {
	const phases = 40
	for _, n := range sizesOfJobs {
		words := func(rank, reg int, phase uint64) (low, high uint64) {
			r := c.Random(uint64(n), uint64(rank), uint64(reg), phase)
			return r.Uint64(), r.Uint64()
		}
		// Ranks that have come to a phase, by register: written before a rank enters.
		var come [conduits.BarrierRegisters][phases + 1]atomic.Int32
		c.Job(n, conduits.Config{}, func(p *Peer) {
			p.attach(0, &sink{})
			u := p.gates()
			if err := u.EnterBarrier(u.Barriers(), 0, 0); !errors.Is(err, conduits.ErrBadArg) {
				p.Errorf("a barrier that is not there: %v", err)
			}
			var next [conduits.BarrierRegisters]uint64
			for next != [conduits.BarrierRegisters]uint64{phases, phases} {
				reg := p.RNG.IntN(conduits.BarrierRegisters)
				done, low, high := u.BarrierResult(reg)
				if done == next[reg] && done < phases {
					next[reg]++
					come[reg][next[reg]].Add(1)
					low, high := words(p.Rank, reg, next[reg])
					p.Must(u.EnterBarrier(reg, low, high))
				} else if done < next[reg] {
					// Others may wait for this rank elsewhere.
					p.Wait("the phase of a barrier", func() bool {
						for reg := range next {
							if n, _, _ := u.BarrierResult(reg); n == next[reg] {
								return true
							}
						}
						return false
					})
				}
				p.pause(true)
				if done == 0 || done < next[reg] {
					continue
				}
				least, most := words(0, reg, done)
				for r := 1; r < n; r++ {
					l, m := words(r, reg, done)
					least, most = min(least, l), max(most, m)
				}
				if got := come[reg][done].Load(); int(got) != n {
					p.Errorf("phase %d of barrier %d is over when %d of %d ranks have come", done, reg, got, n)
				}
				if low != least || high != most {
					p.Fatalf("phase %d of barrier %d: words %#x and %#x; they are %#x and %#x", done, reg, low, high, least, most)
				}
			}
			for reg, phase := range next {
				p.Wait("the last phase of a barrier", func() bool {
					done, _, _ := u.BarrierResult(reg)
					return done == phase
				})
			}
			if l := u.BarrierMissing(0); l != nil {
				p.Errorf("a rank that waits for none misses %v", l)
			}
			p.Meet()
		})
	}
}

// checkCardBarrierLeft: a rank that leaves before it comes to a phase is named to those that
// wait for it; one that comes and leaves is not.
func checkCardBarrierLeft(c *Case) {
	for _, come := range []bool{true, false} {
		c.Job(3, conduits.Config{}, func(p *Peer) {
			p.attach(0, &sink{})
			u := p.gates()
			if p.Rank == 1 {
				p.pause(true)
				if come {
					p.Must(u.EnterBarrier(1, 1, 1))
				}
				p.Must(p.EP.Close())
				return
			}
			p.Must(u.EnterBarrier(1, 0, 0))
			if !come { // so the phase does not end
				if err := u.EnterBarrier(1, 0, 0); !errors.Is(err, conduits.ErrNotReady) {
					p.Errorf("a second time in a phase: %v", err)
				}
			}
			if missing := u.BarrierMissing(1); slices.Contains(missing, p.Rank) {
				p.Errorf("rank %d waits for itself, among %v", p.Rank, missing)
			}
			over := func() bool { n, _, _ := u.BarrierResult(1); return n == 1 }
			err := conduits.WaitFor(p.EP, Waiting("a phase"), conduits.Cond{Ready: over, Lacking: func() int { return u.BarrierLeft(1) }})
			if come {
				p.Must(err)
			} else {
				p.Names(err, 1, "a wait for a phase that rank 1 has not come to")
			}
		})
	}
}

// checkMulticast: what a rank multicasts all others receive once, as it was sent, whatever
// others do meanwhile to what they received; there is credit again when all have taken it.
func checkMulticast(c *Case) {
	const each = 30
	for _, n := range sizesOfJobs {
		c.Job(n, conduits.Config{}, func(p *Peer) {
			content := func(src int, k uint32) (words []uint32, payload []byte) {
				r := c.Random(uint64(n), uint64(src), uint64(k))
				words = make([]uint32, 1+r.IntN(conduits.MaxWords))
				for i := range words {
					words[i] = r.Uint32()
				}
				words[0] = k
				m, _ := conduits.MulticastOf(p.EP)
				payload = make([]byte, []int{0, 1, 7, 512, m.MaxMulticast()}[r.IntN(5)])
				for i := range payload {
					payload[i] = byte(r.Uint32())
				}
				return words, payload
			}
			seen := map[[2]int]bool{}
			s := &sink{receive: func(m *conduits.Message) {
				words, payload := content(m.Src, m.Words[0])
				if key := [2]int{m.Src, int(m.Words[0])}; m.Src == p.Rank || seen[key] {
					p.Errorf("multicast %v came again, or to its source", key)
				} else {
					seen[key] = true
				}
				if m.Class != conduits.Request || m.Tag != 77 || !slices.Equal(m.Words, words) || !slices.Equal(m.Payload, payload) {
					p.Errorf("multicast %d of rank %d: tag %d, %d words, %d bytes, not as sent", m.Words[0], m.Src, m.Tag, len(m.Words), len(m.Payload))
				}
				clear(m.Payload)
			}}
			p.attach(0, s)
			m, ok := conduits.MulticastOf(p.EP)
			if !ok || m.MaxMulticast() > p.EP.Limits().MaxMedium {
				p.Fatalf("rank %d has no multicasts, or larger ones than messages", p.Rank)
			}
			for k := range uint32(each) {
				words, payload := content(p.Rank, k)
				p.reserve(func() conduits.Status { return m.Multicast(77, words, payload) })
				clear(payload)
				p.pause(true)
			}
			p.Wait("all multicasts", func() bool { return len(seen) == (n-1)*each })
			p.Meet()
			p.linger()
			p.Meet()
		})
	}
}
