package shm

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// TestRegisteredPart: ranks that are a part of a large job, some of which have
// numbers that no entry can name, reach each other's registered memory by their
// numbers in the job.
func TestRegisteredPart(t *testing.T) {
	const n, first, size = 4, segment.AnyVPID - 2, 70_000 // 65533..65536
	part := Part{First: first, Size: size, Conduit: "hybrid"}
	open := func(mapped bool) []*Endpoint {
		if !mapped {
			eps, err := LocalPart(n, part, conduits.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return eps
		}
		m, err := CreateJob(n, conduits.Config{MaxSegment: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		eps := make([]*Endpoint, n)
		for i := range eps {
			if eps[i], err = JoinPart(int(m.File().Fd()), first+i, n, part); err != nil {
				t.Fatal(err)
			}
		}
		return eps
	}
	for _, c := range []struct{ mapped, ask, maps bool }{{}, {mapped: true}, {mapped: true, maps: true}, {mapped: true, ask: true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			eps := open(c.mapped)
			all := make([]*node, n)
			for i, e := range eps {
				e.noVM = c.ask
				all[i] = &node{Endpoint: e, done: map[uint64]completion{}}
			}
			inParallel(t, n, func(i int) error {
				return eps[i].Attach(conduits.AttachConfig{Size: page, Receiver: all[i]})
			})
			w := way{maps: c.maps}
			for owner, o := range eps {
				u, err := o.ATU()
				if err != nil {
					t.Fatal(err)
				}
				for peer := first; peer <= first+n; peer++ {
					mem := w.memory(t, o, page)
					who := peer
					if peer == first+n {
						who = segment.AnyPeer
					}
					r, err := u.Register(mem, segment.RightsAll, who)
					if who >= segment.AnyVPID {
						if !errors.Is(err, errs.ErrNotSupported) {
							t.Errorf("registration for rank %d: %v", who, err)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					at, _ := r.At(0)
					for i, x := range all {
						may := who == segment.AnyPeer || who == first+i
						err := x.put(all, first+owner, at, slices.Repeat([]byte{byte(i)}, 100))
						if may != (err == nil) || err != nil && !errors.Is(err, segment.ErrFault) {
							t.Errorf("rank %d puts to what rank %d registered for %d: %v", first+i, first+owner, who, err)
						} else if may && mem[99] != byte(i) {
							t.Errorf("rank %d's put to rank %d is not there", first+i, first+owner)
						}
						if _, err = x.atomic(all, first+owner, (at+7)&^7, conduits.AtomicAdd, conduits.Uint64, 1, 0); may != (err == nil) {
							t.Errorf("rank %d adds to what rank %d registered for %d: %v", first+i, first+owner, who, err)
						}
					}
				}
			}
			for _, e := range eps {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
