package barrier

import (
	"slices"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
)

// passing is an endpoint whose peers come and leave when they are looked at.
type passing struct {
	conduits.Endpoint
	last  func(rank int) // what a rank does before it leaves
	woken []int
}

// Left reports whether rank has left, which it does now.
func (p *passing) Left(rank int) bool {
	if p.last == nil {
		return p.Endpoint.Left(rank)
	}
	p.last(rank)
	return true
}

func (p *passing) Wake(rank int) {
	p.woken = append(p.woken, rank)
	p.Endpoint.Wake(rank)
}

// passingJob is two ranks, the first of them on a passing endpoint.
func passingJob(t *testing.T, how Algorithm, extra ...am.Entry) (*job, *passing) {
	c, err := conduits.Lookup("shm")
	if err != nil {
		t.Fatal(err)
	}
	eps, err := c.Local(2, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	p := &passing{Endpoint: eps[0]}
	eps[0] = p
	return joinJob(t, eps, how, 0, extra...), p
}

// TestArrivesAndLeaves: a rank that arrives and leaves between the look whether it has arrived and the look
// whether it has left does not lack, with each algorithm; one that leaves without arriving does.
func TestArrivesAndLeaves(t *testing.T) {
	for _, how := range []Algorithm{Flat, Tree, Dissemination} {
		j, p := passingJob(t, how)
		for phase := uint32(1); phase <= 2; phase++ {
			b := j.bars[0]
			if err := b.Notify(phase, 0); err != nil {
				t.Fatal(err)
			}
			p.last = func(int) {}
			if r := b.Lacking(); r != 1 {
				t.Errorf("%v: rank 1 has left without arriving in phase %d, and rank %d lacks", how, phase, r)
			}
			p.last = func(int) {
				p.last = func(int) {}
				if err := j.bars[1].Notify(phase, 0); err != nil {
					t.Error(err)
				}
				j.ends[0].Poll()
			}
			if r := b.Lacking(); r != -1 {
				t.Errorf("%v: rank 1 arrived in phase %d before it left, and rank %d lacks", how, phase, r)
			}
			p.last = nil
			j.each(func(r int) {
				if err := j.bars[r].Wait(phase, 0); err != nil {
					t.Errorf("%v, rank %d: %v", how, r, err)
				}
			})
		}
		j.close()
	}
	// Of a rank that waits for the first one of its neighbourhood.
	j, p := passingJob(t, Flat)
	defer j.close()
	l := &levels{ep: p, in: newTree(p, members{n: 2}, 0), out: lineAt(p.System(0, conduits.SystemWords), verdictOff)}
	const phase = 5
	l.in.release.w[phase&1].Store(phase << wordPhase)
	p.last = func(int) {}
	if r := l.lacking(phase); r != 0 {
		t.Errorf("levels: the first rank has left without a verdict, and rank %d lacks", r)
	}
	p.last = func(int) { l.out.w[phase&1].Store(phase << wordPhase) }
	if r := l.lacking(phase); r != -1 {
		t.Errorf("levels: the first rank told the verdict before it left, and rank %d lacks", r)
	}
	p.last = nil
}

// TestTellsOwnGoroutines: what ends a phase wakes each rank that may wait for it, the own one, too, where another
// goroutine of it may be the one that waits.
func TestTellsOwnGoroutines(t *testing.T) {
	j, p := passingJob(t, Flat)
	l := &levels{ep: p, in: newTree(p, members{n: 2}, 0)}
	p.woken = nil
	if l.tell(true); !slices.Equal(p.woken, []int{0, 1}) {
		t.Errorf("the first rank of a neighbourhood of two has the verdict and wakes ranks %v; another of its goroutines may wait", p.woken)
	}
	p.woken = nil
	if l.tell(false); len(p.woken) > 0 {
		t.Errorf("the first rank wakes ranks %v without a verdict", p.woken)
	}
	j.close()
	// A message of the last round may be handled by a goroutine that does not wait.
	j, p = passingJob(t, Dissemination)
	defer j.close()
	for r := range 2 {
		if err := j.bars[r].Notify(1, 0); err != nil {
			t.Fatal(err)
		}
	}
	for p.woken = nil; !j.bars[0].Ready(); {
		j.ends[0].Poll()
	}
	if !slices.Contains(p.woken, 0) {
		t.Error("the goroutine that polls takes the last message and does not wake the one that waits for the verdict")
	}
	j.each(func(r int) {
		if err := j.bars[r].Wait(1, 0); err != nil {
			t.Error(err)
		}
	})
}
