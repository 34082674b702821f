package extended_test

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/extended"
)

// alone runs f on the one rank of a job in shared memory, whose segment has two pages.
func alone(t testing.TB, f func(n *node) error) {
	ends, err := shm.Local(1, conduits.Config{})
	job(t, must(t, ends, err), tiny(1), f)
}

// BenchmarkLocal measures what a compiled program pays where nothing has to be waited
// for: one rank, its own segment, buffers that are local variables.
//
//	sync         Implicit().Sync with nothing under way
//	fence, poll  what their names say
//	get, put     16 bytes
//	lock         Lock and Unlock of a lock that is free
//	strict       a strict access of 8 bytes as docs/compilers.md makes it, without a poll
func BenchmarkLocal(b *testing.B) {
	const word = arrived + 64
	alone(b, func(n *node) error {
		x := n.x
		r := x.NewRegion()
		for _, c := range []struct {
			name string
			f    func() error
		}{
			{"sync", func() error { return x.Implicit().Sync(extended.All) }},
			{"sync/puts", func() error { return x.Implicit().Sync(extended.Puts) }},
			{"sync/region", func() error { return r.Sync(extended.All) }},
			{"try", func() error { _, err := x.Implicit().Try(extended.All); return err }},
			{"fence", func() error { x.Fence(); return nil }},
			{"poll", func() error { n.e.Poll(); return nil }},
			{"get", func() error {
				var v [16]byte
				return x.Get(0, word, v[:])
			}},
			{"put", func() error {
				var v [16]byte
				return x.Put(0, word, v[:])
			}},
			{"lock", func() error {
				if err := x.LockAt(0, lockAt).Lock(); err != nil {
					return err
				}
				return x.LockAt(0, lockAt).Unlock()
			}},
			{"strict/put", func() error {
				if err := x.Implicit().Sync(extended.All); err != nil {
					return err
				}
				x.Fence()
				err := x.PutValue(0, word, 1, 8)
				x.Fence()
				return err
			}},
			{"strict/get", func() error {
				if err := x.Implicit().Sync(extended.All); err != nil {
					return err
				}
				x.Fence()
				_, err := x.GetValue(0, word, 8)
				x.Fence()
				return err
			}},
		} {
			b.Run(c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := c.f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		return nil
	})
}
