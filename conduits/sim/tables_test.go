package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQueue compares the heap with a sorted list.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var model []event
		for k := range uint64(rapid.IntRange(1, 200).Draw(t, "steps")) {
			if len(model) > 0 && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				if e := q.pop(); e != model[0] {
					t.Fatalf("popped %+v, not %+v", e, model[0])
				}
				model = model[1:]
				continue
			}
			// Many of the same time; keys are unique.
			e := event{at: rapid.Int64Range(0, 20).Draw(t, "at"), key: mix(k), a: k}
			q.push(e)
			i, _ := slices.BinarySearchFunc(model, e, func(a, b event) int {
				if a.before(&b) {
					return -1
				}
				return 1
			})
			model = slices.Insert(model, i, e)
		}
		for _, want := range model {
			if e := q.pop(); e != want {
				t.Fatalf("popped %+v, not %+v", e, want)
			}
		}
	})
}

// TestPairs compares the table with a map, and sees that it stays small.
func TestPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pairs
		model := map[int]uint16{}
		// Neighbours, powers of two and anything.
		rank := rapid.OneOf(rapid.IntRange(0, 9), rapid.Map(rapid.IntRange(0, 23), func(i int) int { return 1 << i }), rapid.IntRange(0, MaxRanks-1))
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			r := rank.Draw(t, "rank")
			e := p.of(r)
			if int(e.rank()) != r || e.out[1] != model[r] {
				t.Fatalf("rank %d has %+v, not %d", r, *e, model[r])
			}
			e.out[1]++
			model[r]++
		}
		for r, n := range model {
			if e := p.of(r); e.out[1] != n {
				t.Fatalf("rank %d has %+v, not %d", r, *e, n)
			}
		}
		if int(p.n) != len(model) || len(p.t) > max(4, 3*len(model)) {
			t.Fatalf("%d of %d entries for %d ranks", p.n, len(p.t), len(model))
		}
	})
}

// TestArena keeps messages in lists: each has what was put in, in order, none is
// handed out twice, and numbers and buffers are used again.
func TestArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a arena
		var lists [3]list
		var model [3][]uint64
		most, k := 0, uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "list")
			if rapid.Bool().Draw(t, "take") {
				id := lists[i].take(&a)
				if len(model[i]) == 0 {
					if id != 0 {
						t.Fatalf("took %d from an empty list", id)
					}
					continue
				}
				m := a.at(id)
				if m.cookie != model[i][0] || len(m.data) != int(m.cookie%5000) || len(m.data) > 0 && m.data[len(m.data)-1] != byte(m.cookie) {
					t.Fatalf("took %d with %d bytes, not %d", m.cookie, len(m.data), model[i][0])
				}
				model[i] = model[i][1:]
				a.put(id)
				continue
			}
			id, m := a.get()
			if m.kind != kindFree || m.next != 0 || m.data != nil || m.want != 0 || m.err != nil {
				t.Fatalf("a new message is %+v", *m)
			}
			k++
			n := int(k * 1237 % 5000)
			if m.cookie != 0 {
				t.Fatalf("a message that accesses no memory has cookie %d", m.cookie)
			}
			a.access(m)
			m.kind, m.cookie = kindPut, uint64(n)
			m.data, m.own = a.buffer(n), true
			if n > 0 {
				m.data[n-1] = byte(n)
			}
			lists[i].add(&a, id)
			model[i] = append(model[i], m.cookie)
			most = max(most, a.inUse)
		}
		if all := len(model[0]) + len(model[1]) + len(model[2]); a.inUse != all || int(a.n) != most {
			t.Fatalf("%d in use of %d; %d in lists, %d at most", a.inUse, a.n, all, most)
		}
	})
}
