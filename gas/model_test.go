package gas

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/segment"
)

// TestArrayAgainstModel drives an array over several ranks from rank 0 by all
// kinds of access, and a plain slice beside it, directly and through the layers
// below.
func TestArrayAgainstModel(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		if n.Rank() != 0 {
			return nil
		}
		views := n.views
		own := segment.Views{All: []segment.View{views.All[0], {}, {}}}
		rapid.Check(t, func(t *rapid.T) {
			n.views = views
			if rapid.Bool().Draw(t, "without direct access") {
				n.views = own
			}
			length := rapid.IntRange(1, 40).Draw(t, "length")
			// As NewArray does, but by one rank.
			a := Array[uint64]{length: length, layout: Layout{Threads: 3, Block: rapid.IntRange(1, 45).Draw(t, "block")}}
			p, err := Alloc[uint64](n, a.layout.Affinity(length, 0))
			if err != nil {
				t.Fatal(err)
			}
			defer Free(n, p)
			a.base = p.NLA()
			model := make([]uint64, length)
			if err := a.PutRange(n, 0, model); err != nil {
				t.Fatal(err)
			}
			check := func(what string, err error) {
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			same := func(what string, got, want uint64) {
				if got != want {
					t.Fatalf("%s: %d, want %d", what, got, want)
				}
			}
			index := func() int { return rapid.IntRange(0, length-1).Draw(t, "index") }
			value := func() uint64 { return rapid.Uint64().Draw(t, "value") }
			span := func() (from, to int) {
				from = rapid.IntRange(0, length).Draw(t, "from")
				return from, rapid.IntRange(from, length).Draw(t, "to")
			}
			t.Repeat(map[string]func(*rapid.T){
				"put": func(*rapid.T) {
					i, v := index(), value()
					check("put", a.Put(n, i, v))
					model[i] = v
				},
				"get": func(*rapid.T) {
					i := index()
					v, err := a.Get(n, i)
					check("get", err)
					same("get", v, model[i])
				},
				"put range": func(*rapid.T) {
					from, to := span()
					for i := from; i < to; i++ {
						model[i] = value()
					}
					check("put range", a.PutRange(n, from, model[from:to]))
				},
				"get range": func(*rapid.T) {
					from, to := span()
					got := make([]uint64, to-from)
					check("get range", a.GetRange(n, from, got))
					if !slices.Equal(got, model[from:to]) {
						t.Fatalf("get range: %v, want %v", got, model[from:to])
					}
				},
				"put nb": func(*rapid.T) {
					i, v := index(), value()
					h, err := a.At(i).PutNB(n, v)
					check("put nb", err)
					check("sync", n.Sync(h))
					model[i] = v
				},
				"get nb": func(*rapid.T) {
					i, v := index(), uint64(0)
					h, err := a.At(i).GetNB(n, &v)
					check("get nb", err)
					check("sync", n.Sync(h))
					same("get nb", v, model[i])
				},
				"fetch add": func(*rapid.T) {
					i, v := index(), value()
					old, err := FetchAdd(n, a.At(i), v)
					check("fetch add", err)
					same("fetch add", old, model[i])
					model[i] += v
				},
				"compare and swap": func(*rapid.T) {
					i, v := index(), value()
					old := model[i]
					if rapid.Bool().Draw(t, "differs") {
						old++
					}
					_, ok, err := CompareAndSwap(n, a.At(i), old, v)
					check("compare and swap", err)
					if ok != (old == model[i]) {
						t.Fatalf("compare and swap: %v", ok)
					}
					if ok {
						model[i] = v
					}
				},
				"store and load": func(*rapid.T) {
					i, j, v := index(), index(), value()
					s := a.Shared(i)
					check("store", Store(n, Must(MakePtr[uint64](s.Thread, s.Addr)), v))
					model[i] = v
					s = a.Shared(0).Add(a.Layout(), j, 8)
					v, err := Load(n, Must(MakePtr[uint64](s.Thread, s.Addr)))
					check("load", err)
					same("load", v, model[j])
				},
				"": func(*rapid.T) {
					got := make([]uint64, length)
					check("get all", a.GetRange(n, 0, got))
					if !slices.Equal(got, model) {
						t.Fatalf("the array is %v, want %v", got, model)
					}
				},
			})
		})
		n.views = views
		return nil
	})
}
