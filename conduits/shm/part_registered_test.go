package shm

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// numbers are the ranks of a part of 4.
func numbers(p conduits.Part) []int {
	if p.Ranks != nil {
		return slices.Clone(p.Ranks)
	}
	return []int{p.First, p.First + 1, p.First + 2, p.First + 3}
}

// TestRegisteredPart: ranks that are a part of a large job, some of which have
// numbers that no entry can name, reach each other's registered memory by their
// numbers in the job.
func TestRegisteredPart(t *testing.T) {
	const n, first, size = 4, segment.AnyVPID - 2, 70_000
	consecutive := conduits.Part{First: first, Size: size, Conduit: "hybrid"} // 65533..65536
	scattered := conduits.Part{Ranks: []int{first - 40, first - 3, first, first + n - 1}, Size: size, Conduit: "hybrid"}
	open := func(part conduits.Part, mapped bool) []*Endpoint {
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
			if eps[i], err = JoinPart(int(m.File().Fd()), numbers(part)[i], n, part); err != nil {
				t.Fatal(err)
			}
			endWith(t, eps[i])
		}
		return eps
	}
	for _, c := range []struct{ mapped, ask, maps, scattered bool }{
		{},
		{mapped: true},
		{mapped: true, maps: true},
		{mapped: true, ask: true},
		{scattered: true},
		{scattered: true, mapped: true},
		{scattered: true, mapped: true, maps: true},
		{scattered: true, mapped: true, ask: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			part := consecutive
			if c.scattered {
				part = scattered
			}
			ranks := append(numbers(part), first+n)
			eps := open(part, c.mapped)
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
				for k, who := range ranks {
					mem := w.memory(t, o, page)
					if k == n {
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
						may := who == segment.AnyPeer || who == ranks[i]
						err := x.put(all, ranks[owner], at, slices.Repeat([]byte{byte(i)}, 100))
						if may != (err == nil) || err != nil && !errors.Is(err, segment.ErrFault) {
							t.Errorf("rank %d puts to what rank %d registered for %d: %v", ranks[i], ranks[owner], who, err)
						} else if may && mem[99] != byte(i) {
							t.Errorf("rank %d's put to rank %d is not there", ranks[i], ranks[owner])
						}
						if _, err = x.atomic(all, ranks[owner], (at+7)&^7, conduits.AtomicAdd, conduits.Uint64, 1, 0); may != (err == nil) {
							t.Errorf("rank %d adds to what rank %d registered for %d: %v", ranks[i], ranks[owner], who, err)
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

// TestReleased: what a closed endpoint does when the memory of all is gone ends as it
// does after Close.
func TestReleased(t *testing.T) {
	part := whole(2)
	part.Outside = true
	eps, err := LocalPart(2, part, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	attach(t, eps, page, func(int, *conduits.Message) {})
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	eps[0].Release()
	b := make([]byte, 8)
	for dst := range eps {
		if _, _, st := eps[1].ReservePut(dst, conduits.Request, 1, segment.AttachBase, b, 1); st != conduits.Dead {
			t.Errorf("ReservePut to rank %d: status %d", dst, st)
		}
		_, put := post.Put(eps[1], dst, segment.AttachBase, b, done, 1)
		_, get := post.Get(eps[1], b, dst, segment.AttachBase, done, 1)
		_, word := post.PutWord(eps[1], dst, segment.AttachBase, 1, 8, done, 1)
		_, _, atomic := post.Atomic(eps[1], dst, segment.AttachBase, conduits.AtomicAdd, conduits.Uint64, 1, 0, 1)
		for i, err := range []error{put, get, word, atomic} {
			if !errors.Is(err, conduits.ErrClosed) {
				t.Errorf("operation %d on rank %d: %v", i, dst, err)
			}
		}
	}
}
