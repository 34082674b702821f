package dist_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
	"github.com/argon-go/argon/gas/gastest"
	"github.com/argon-go/argon/internal/conc"
)

// access is one step of a rank in the model.
type access struct {
	op   int
	keys []int
	v    []int
}

// script has the accesses of all ranks, phase by phase. In a phase a key is that of one rank, which is the
// one that changes it.
type script struct {
	conduit string
	groups  string
	ranks   int
	steps   [][][]access // by phase and rank
}

const (
	opGet = iota
	opPut
	opDelete
	opUpdate
	opPutAll
	opGetAll
	opDeleteAll
	opUpdateAll
	opPush
	ops
)

func drawScript(t *rapid.T) script {
	s := script{conduit: rapid.SampledFrom(names).Draw(t, "conduit"), groups: rapid.SampledFrom(dist.Groupings).Draw(t, "groups"), ranks: rapid.IntRange(1, 5).Draw(t, "ranks")}
	keys := rapid.SampledFrom([]int{3, 20, 400}).Draw(t, "keys")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for phase := range rapid.IntRange(1, 3).Draw(t, "phases") {
		s.steps = append(s.steps, make([][]access, s.ranks))
		for rank := range s.ranks {
			for range rng.IntN(12) {
				a := access{op: rng.IntN(ops)}
				count := 1
				if a.op >= opPutAll {
					count = rng.IntN(2 * keys)
				}
				for range count {
					// Those that are this rank's in this phase.
					a.keys = append(a.keys, rng.IntN(keys)*s.ranks+(rank+phase)%s.ranks)
					a.v = append(a.v, rng.IntN(1000))
				}
				if a.op == opPutAll || a.op == opUpdateAll || a.op == opPush { // whose order is not said
					slices.Sort(a.keys)
					a.keys = slices.Compact(a.keys)
					a.v = a.v[:len(a.keys)]
				}
				s.steps[phase][rank] = append(s.steps[phase][rank], a)
			}
		}
	}
	return s
}

// kind says how numbers are keys and values of a map.
type kind[K comparable, V any] struct {
	key   func(int) K
	value func(int) V
	add   func(v *V, by V) // what updates do
}

// pick are the keys and values of an access.
func (k kind[K, V]) pick(a access) (keys []K, values []V) {
	for i := range a.keys {
		keys = append(keys, k.key(a.keys[i]))
		values = append(values, k.value(a.v[i]))
	}
	return keys, values
}

// run has the ranks of g follow the script, where they stand for more if they are fewer, and compares with a plain map.
func (k kind[K, V]) run(g gas.Group, s script) error {
	m, err := dist.NewMap[K, V](g, "model")
	if err != nil {
		return err
	}
	add, err := dist.NewUpdate(m, "add", func(e *dist.Entry[K, V], by V) got[V] {
		before := got[V]{*e.Value, e.Found}
		k.add(e.Value, by)
		return before
	})
	if err != nil {
		return err
	}
	model := map[K]V{} // of all ranks, of which this rank's phases are exact
	for phase, steps := range s.steps {
		for rank, accesses := range steps {
			for i, a := range accesses {
				keys, values := k.pick(a)
				where := fmt.Sprintf("%s, %d ranks, %s: phase %d, rank %d, access %d (%d of %d keys)", s.conduit, s.ranks, s.groups, phase, rank, i, a.op, len(keys))
				if rank%g.Size() == g.Rank() {
					if err := k.do(m, add, a.op, keys, values, model); err != nil {
						return fmt.Errorf("%s: %w", where, err)
					}
				}
				k.model(model, a.op, keys, values)
			}
		}
		if err := g.Barrier(); err != nil {
			return err
		}
	}
	return k.compare(g, m, model)
}

type got[V any] struct {
	V     V
	Found bool
}

// model does the access to the plain map.
func (k kind[K, V]) model(model map[K]V, op int, keys []K, values []V) {
	for i, key := range keys {
		switch op {
		case opPut, opPutAll:
			model[key] = values[i]
		case opDelete, opDeleteAll:
			delete(model, key)
		case opUpdate, opUpdateAll, opPush:
			v := copied(model[key])
			k.add(&v, values[i])
			model[key] = v
		}
	}
}

// copied is v with slices of its own.
func copied[V any](v V) V {
	if s, ok := any(v).([]int32); ok {
		return any(slices.Clone(s)).(V)
	}
	return v
}

// do does an access, whose results are compared with the model before it.
func (k kind[K, V]) do(m *dist.Map[K, V], add *dist.Update[K, V, V, got[V]], op int, keys []K, values []V, model map[K]V) error {
	var have, want []got[V]
	for _, key := range keys {
		v, found := model[key]
		want = append(want, got[V]{v, found})
	}
	var err error
	switch op {
	case opGet:
		have = make([]got[V], 1)
		have[0].V, have[0].Found, err = m.Get(keys[0])
	case opPut:
		err = m.Put(keys[0], values[0])
	case opDelete:
		var found bool
		if found, err = m.Remove(keys[0]); err == nil && found != want[0].Found {
			err = fmt.Errorf("Delete says %v of %v", found, keys[0])
		}
	case opUpdate:
		have = make([]got[V], 1)
		have[0], err = add.Call(keys[0], values[0])
	case opPutAll:
		err = m.PutAll(keys, values)
	case opGetAll:
		have = make([]got[V], len(keys))
		all, found, failed := m.GetAll(keys)
		err = failed
		for i := range all {
			have[i] = got[V]{all[i], found[i]}
		}
	case opDeleteAll:
		err = m.RemoveAll(keys)
	case opUpdateAll:
		have, err = add.All(keys, values)
	case opPush:
		for i, key := range keys {
			if err := add.Push(key, values[i]); err != nil {
				return err
			}
		}
		err = add.Flush()
	}
	if err != nil {
		return err
	}
	for i := range have {
		if !same(have[i].V, want[i].V) || have[i].Found != want[i].Found {
			return fmt.Errorf("key %v: got %v, want %v", keys[i], have[i], want[i])
		}
	}
	return nil
}

// same reports whether values are equal; an empty slice is no other than none.
func same[V any](a, b V) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Slice && x.Len() == 0 && y.Len() == 0 || reflect.DeepEqual(a, b)
}

// compare looks whether m is the model, wherever its entries are.
func (k kind[K, V]) compare(g gas.Group, m *dist.Map[K, V], model map[K]V) error {
	count := 0
	for key, v := range m.All() {
		want, ok := model[key]
		if !ok || !same(v, want) || m.Owner(key) != g.Rank() {
			return fmt.Errorf("rank %d has %v of %v, which is rank %d's: want %v, %v", g.Rank(), v, key, m.Owner(key), want, ok)
		}
		count++
	}
	total, err := m.Total()
	if err != nil {
		return err
	}
	if count != m.Len() || total != len(model) {
		return fmt.Errorf("rank %d shows %d entries of %d; all have %d, want %d", g.Rank(), count, m.Len(), total, len(model))
	}
	if err := m.Delete(); err != nil {
		return err
	}
	if _, _, err := m.Get(k.key(0)); !errors.Is(err, gas.ErrNotReady) || !strings.Contains(err.Error(), `map "model"`) {
		return fmt.Errorf("Get after Delete: %v", err)
	}
	return nil
}

type mixed struct {
	A int8
	_ int16
	F float64
	S string
	B [2]uint16
}

type word string

// TestMapModel does random accesses, of which each rank's are of keys of its own in a phase, so that a
// plain map has the same results.
func TestMapModel(t *testing.T) {
	number := func(i int) int { return i }
	sum := func(v *int, by int) { *v += by }
	kinds := map[string]func(g gas.Group, s script) error{
		"numbers": kind[int, int]{number, number, sum}.run,
		"texts":   kind[string, int]{func(i int) string { return strings.Repeat("k", i%70) + fmt.Sprint(i) }, number, sum}.run,
		"slices": kind[word, []int32]{
			func(i int) word { return word(fmt.Sprint(i)) },
			func(i int) []int32 { return make([]int32, i%5*(i%300)) },
			func(v *[]int32, by []int32) { *v = append(*v, int32(len(by))) },
		}.run,
		"structs": kind[mixed, string]{
			func(i int) mixed { return mixed{A: int8(i), F: float64(i) / 3, S: fmt.Sprint(i / 2)} },
			func(i int) string { return strings.Repeat("v", i) },
			func(v *string, by string) { *v += by[:min(len(by), 2)] },
		}.run,
	}
	rapid.Check(t, func(t *rapid.T) {
		run := kinds[rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "kind")]
		s := drawScript(t)
		if err := gas.Run(small(s.conduit, s.ranks), func(n *gas.Node) error {
			return dist.InGroups(n, s.groups, func(g gas.Group) error { return run(g, s) })
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestMapContended has all ranks update the same few entries at once: the results of each are
// different, and the last of all comes.
func TestMapContended(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "gastest", "dist-chaos"} {
		for _, progress := range []bool{false, true} {
			if progress && conduit == "gastest" {
				continue // it runs ranks one at a time
			}
			t.Run(fmt.Sprint(conduit, progress), func(t *testing.T) {
				const ranks, each, words = 4, 60, 5
				cfg := small(conduit, ranks)
				cfg.Progress = progress
				gastest.RunConfig(t, cfg, func(n *gas.Node) error {
					m := gas.Must(dist.NewMap[string, int](n, "counts"))
					add := gas.Must(dist.NewUpdate(m, "add", func(e *dist.Entry[string, int], by int) int { *e.Value += by; return *e.Value }))
					last := map[string]int{}
					for i := range each {
						w := fmt.Sprint("word", (i+n.Rank())%words)
						v := gas.Must(add.Call(w, 1))
						if v <= last[w] {
							return fmt.Errorf("rank %d: %s is %d after %d", n.Rank(), w, v, last[w])
						}
						last[w] = v
						n.Must(add.Push(w, 2))
					}
					n.Must(m.Flush())
					n.Must(n.Barrier())
					for i := range words {
						v, found, err := m.Get(fmt.Sprint("word", i))
						if want := 3 * ranks * each / words; err != nil || !found || v != want {
							return fmt.Errorf("word%d is %d (%v, %v), want %d", i, v, found, err, want)
						}
					}
					return m.Delete()
				})
			})
		}
	}
}

// TestEntry: an update makes an entry, does not, or drops it, as it says.
func TestEntry(t *testing.T) {
	gastest.RunConfig(t, small("shm", 3), func(n *gas.Node) error {
		m := gas.Must(dist.NewMap[int, string](n, "entries"))
		// Keeps an entry while its text is not empty.
		set := gas.Must(dist.NewUpdate(m, "set", func(e *dist.Entry[int, string], text string) string {
			before := *e.Value
			if e.Found != (before != "") {
				return "wrong"
			}
			*e.Value = text
			e.Drop = text == ""
			return fmt.Sprint(e.Key, before)
		}))
		for i := n.Rank(); i < 300; i += n.Size() {
			before := ""
			for _, text := range []string{"", "a", "bb", "", "", "c", ""} {
				got := gas.Must(set.Call(i, text))
				if want := fmt.Sprint(i, before); got != want {
					return fmt.Errorf("entry %d was %q, want %q", i, got, want)
				}
				if v, found, err := m.Get(i); err != nil || v != text || found != (text != "") {
					return fmt.Errorf("entry %d is %q, %v (%v), want %q", i, v, found, err, text)
				}
				before = text
			}
		}
		if total, err := m.Total(); err != nil || total != 0 {
			return fmt.Errorf("%d entries are left (%v)", total, err)
		}
		return m.Delete()
	})
}

// padded has bytes between its fields that equal values may differ in.
type padded struct {
	A uint8
	B uint32
	_ uint16
	C float32
}

// TestEqualKeys: keys that are equal have one entry, whatever lies between their fields.
func TestEqualKeys(t *testing.T) {
	gastest.RunConfig(t, small("shm", 4), func(n *gas.Node) error {
		m := gas.Must(dist.NewMap[padded, int](n, "padded"))
		raw := gas.Must(gas.Alloc[[16]byte](n, 1))
		memory, _ := raw.Local(n)
		at := gas.Must(gas.Cast[padded](raw))
		key, _ := at.Local(n)
		for i := range 200 {
			for k := range memory {
				memory[k] = byte(i + n.Rank()) // which stays between the fields
			}
			key.A, key.B, key.C = uint8(i%7), uint32(i%7), float32(math.Copysign(0, float64(i%2)-1))
			if v, found, err := m.Get(*key); err != nil || found != (v != 0) || found && v != 1+i%7 {
				return fmt.Errorf("%v is %d, %v (%v)", *key, v, found, err)
			}
			n.Must(m.Put(*key, 1+i%7))
		}
		if total, err := m.Total(); err != nil || total != 7 {
			return fmt.Errorf("%d entries, want 7 (%v)", total, err)
		}
		return m.Delete()
	})
}

// TestOwnership: slices that go in and come out are the caller's, also of entries of the own rank.
func TestOwnership(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		gastest.RunConfig(t, small("shm", ranks), func(n *gas.Node) error {
			m := gas.Must(dist.NewMap[int, []int](n, "owned"))
			for i := n.Rank(); i < 50; i += n.Size() {
				v := []int{i}
				n.Must(m.Put(i, v))
				n.Must(m.PutAll([]int{i + 1000}, [][]int{v}))
				v[0] = -1
				for _, k := range []int{i, i + 1000, i} {
					got, _, err := m.Get(k)
					if err != nil || len(got) != 1 || got[0] != i {
						return fmt.Errorf("entry %d is %v (%v), want %d", k, got, err, i)
					}
					got[0] = -2
				}
			}
			return m.Delete()
		})
	}
}

// TestSpread: keys that differ little are spread over ranks as random ones are.
func TestSpread(t *testing.T) {
	const ranks, count = 16, 16000
	gastest.RunConfig(t, small("shm", 1), func(n *gas.Node) error {
		numbers := gas.Must(dist.NewMap[uint64, int](n, "numbers"))
		texts := gas.Must(dist.NewMap[string, int](n, "texts"))
		for name, owner := range map[string]func(i int) int{
			"consecutive": func(i int) int { return dist.OwnerAmong(numbers, uint64(i), ranks) },
			"multiples":   func(i int) int { return dist.OwnerAmong(numbers, uint64(i)<<40, ranks) },
			"texts":       func(i int) int { return dist.OwnerAmong(texts, fmt.Sprint(i), ranks) },
			"long texts":  func(i int) int { return dist.OwnerAmong(texts, fmt.Sprintf("%030d", i), ranks) },
			"zeros":       func(i int) int { return dist.OwnerAmong(texts, strings.Repeat("\x00", i), ranks) },
		} {
			var have [ranks]float64
			k := count
			if name == "zeros" {
				k = count / 10
			}
			for i := range k {
				have[owner(i)]++
			}
			chi := 0.0
			for _, h := range have {
				d := h - float64(k)/ranks
				chi += d * d / (float64(k) / ranks)
			}
			// 15 degrees of freedom: beyond 50 once in 10^5 random functions.
			if chi > 50 {
				t.Errorf("%s: ranks have %v, chi square %.0f", name, have, chi)
			}
		}
		return errors.Join(numbers.Delete(), texts.Delete())
	})
}

// TestMapMisuse has each mistake end with an error that names it.
func TestMapMisuse(t *testing.T) {
	one := func(n *gas.Node) (*dist.Map[int, int], error) { return dist.NewMap[int, int](n, "one") }
	broken := func(fn func(m *dist.Map[int, int], u *dist.Update[int, int, int, int]) error) func(n *gas.Node) error {
		return func(n *gas.Node) error {
			m := gas.Must(one(n))
			u := gas.Must(dist.NewUpdate(m, "breaks", func(e *dist.Entry[int, int], a int) int {
				if a == 1 {
					panic("out of luck")
				}
				v, _, _ := m.Get(e.Key)
				return v
			}))
			if n.Rank() == 0 {
				n.Must(fn(m, u))
			}
			return m.Delete()
		}
	}
	far := func(m *dist.Map[int, int]) int {
		for k := 0; ; k++ {
			if m.Owner(k) == 1 {
				return k
			}
		}
	}
	for name, c := range map[string]struct {
		want string
		kind error
		fn   func(n *gas.Node) error
	}{
		"pointers": {`field Value has type *int, which means nothing to another rank`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewMap[int, *int](n, "bad")
			return err
		}},
		"keys": {`NewMap "bad": gas: type interface {} cannot travel`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewMap[any, int](n, "bad")
			return err
		}},
		"names": {`gave different arguments`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewMap[int, int](n, fmt.Sprint("map", n.Rank()/2))
			return err
		}},
		"types": {`gave different arguments`, gas.ErrBadArg, func(n *gas.Node) error {
			var err error
			if n.Rank() == 2 {
				_, err = dist.NewMap[int, int32](n, "map")
			} else {
				_, err = dist.NewMap[int, int](n, "map")
			}
			return err
		}},
		"update types": {`NewUpdate "u" of map "one": ranks `, gas.ErrBadArg, func(n *gas.Node) error {
			m, err := one(n)
			if err != nil {
				return err
			}
			if n.Rank() == 0 {
				_, err = dist.NewUpdate(m, "u", func(*dist.Entry[int, int], int) int { return 0 })
			} else {
				_, err = dist.NewUpdate(m, "u", func(*dist.Entry[int, int], int) string { return "" })
			}
			return err
		}},
		"no function": {`NewUpdate "u" of map "one": it has no function`, gas.ErrBadArg, func(n *gas.Node) error {
			m, err := one(n)
			if err == nil {
				_, err = dist.NewUpdate[int, int, int, int](m, "u", nil)
			}
			return err
		}},
		"lengths": {`Put of map "one": 2 keys for 1 arguments or values`, gas.ErrBadArg, func(n *gas.Node) error {
			m, err := one(n)
			if err == nil {
				err = m.PutAll([]int{1, 2}, []int{1})
			}
			return err
		}},
		"done": {`Delete of map "one" on rank`, gas.ErrNotReady, func(n *gas.Node) error {
			m, err := one(n)
			if err == nil {
				err = errors.Join(m.Delete())
			}
			if err == nil {
				err = m.Delete()
			}
			return err
		}},
		"panics": {`panicked: out of luck`, nil, broken(func(m *dist.Map[int, int], u *dist.Update[int, int, int, int]) error {
			_, err := u.Call(far(m), 1)
			var call *gas.CallError
			if !errors.As(err, &call) || !call.Panic || call.Rank != 1 {
				return fmt.Errorf("not the error of a panic: %w", err)
			}
			return err
		})},
		"panics among many": {`breaks of map "one": gas: dist.many on rank 1 panicked: out of luck`, nil, broken(func(m *dist.Map[int, int], u *dist.Update[int, int, int, int]) error {
			if err := u.Push(far(m), 1); err != nil {
				return err
			}
			return m.Flush()
		})},
		"uses the map": {`the function of an update uses its map`, nil, broken(func(m *dist.Map[int, int], u *dist.Update[int, int, int, int]) error {
			_, err := u.Call(far(m), 0)
			return err
		})},
		"left": {"rank 1", gas.ErrPeer, func(n *gas.Node) error {
			m, err := one(n)
			if err != nil || n.Rank() == 1 {
				return errors.Join(err, errors.New("enough"))
			}
			for {
				if err := m.Put(far(m), 1); err != nil {
					return err
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			errs := make([]error, 3)
			err := gas.Run(small("shm", 3), func(n *gas.Node) error {
				errs[n.Rank()] = c.fn(n)
				return errs[n.Rank()]
			})
			if name == "left" {
				err = errs[0]
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestRankDies: calls, aggregated ones and the end of a map of which a rank dies end with an
// error.
func TestRankDies(t *testing.T) {
	for name, fn := range map[string]func(m *dist.Map[int, int], i int) error{
		"get":     func(m *dist.Map[int, int], i int) error { _, _, err := m.Get(i); return err },
		"put all": func(m *dist.Map[int, int], i int) error { return m.PutAll([]int{i, i + 1, i + 2}, []int{1, 2, 3}) },
		"get all": func(m *dist.Map[int, int], i int) error {
			_, _, err := m.GetAll([]int{i, i + 1, i + 2})
			return err
		},
		"total": func(m *dist.Map[int, int], i int) error { _, err := m.Total(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := gas.Run(small("dist-killed", 3), func(n *gas.Node) error {
				m, err := dist.NewMap[int, int](n, "mortal")
				for i := 0; err == nil; i++ {
					err = fn(m, i)
				}
				return err
			})
			if !errors.Is(err, gas.ErrPeer) && (err == nil || !strings.Contains(err.Error(), "rank 1")) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestAllWhileChanging: the entries that stay are shown once, whatever comes and goes.
func TestAllWhileChanging(t *testing.T) {
	gastest.RunConfig(t, small("shm", 2), func(n *gas.Node) error {
		m := gas.Must(dist.NewMap[int, int](n, "busy"))
		if n.Rank() == 0 {
			for i := range 1000 {
				n.Must(m.Put(i, i))
			}
		}
		n.Must(n.Barrier())
		seen := map[int]int{}
		for k := range m.All() {
			seen[k]++
			// This rank deletes odd ones and puts others, also its own, from inside of the loop.
			if k < 1000 && k%2 == 1 {
				gas.Must(m.Remove(k))
				n.Must(m.Put(k+10000, 0))
			}
		}
		for k := 0; k < 1000; k += 2 {
			if m.Owner(k) == n.Rank() && seen[k] != 1 {
				return fmt.Errorf("rank %d was shown key %d %d times", n.Rank(), k, seen[k])
			}
		}
		return m.Delete()
	})
}

// TestCallsAllocate: a call takes no memory, on either side, if the argument and the result have fixed
// sizes, and the key has or is a short text.
func TestCallsAllocate(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector allocates")
	}
	gastest.RunConfig(t, gas.Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *gas.Node) error {
		m, err := dist.NewMap[string, int](n, "frugal")
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			keys := make([]string, 2)
			for i := 0; keys[0] == "" || keys[1] == ""; i++ {
				k := fmt.Sprint("word", i)
				keys[m.Owner(k)] = k
			}
			for owner, key := range keys {
				n.Must(m.Put(key, 1))
				if k := testing.AllocsPerRun(200, func() {
					v, _, failed := m.Get(key)
					err = errors.Join(err, failed)
					failed = m.Put(key, v+1)
					err = errors.Join(err, failed)
				}); k >= 1 {
					t.Errorf("Get and Put of an entry of rank %d allocate %v times", owner, k)
				}
			}
		}
		return errors.Join(err, m.Delete())
	})
}

// TestNumbersDiffer: containers that ranks have made after a mismatch, which they have ignored, are
// not taken for each other.
func TestNumbersDiffer(t *testing.T) {
	gastest.RunConfig(t, small("shm", 2), func(n *gas.Node) error {
		m, err := dist.NewMap[int, int](n, "first")
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			_, err = dist.NewMap[int, int](n, "second")
		} else {
			_, err = dist.NewUpdate(m, "second", func(*dist.Entry[int, int], int) int { return 0 })
		}
		if err == nil {
			return errors.New("different calls agree")
		}
		third := gas.Must(dist.NewMap[int, int](n, "third"))
		for key := range 20 {
			n.Must(third.Put(key, n.Rank()))
		}
		total, err := third.Total()
		if none, failed := m.Total(); total != 20 || none != 0 || err != nil || failed != nil {
			return fmt.Errorf("%d entries, and %d of the first map: %w", total, none, errors.Join(err, failed))
		}
		return nil
	})
}

// TestKeyWithNoStrings: what holds no string for want of elements takes its memory as it is, though
// the key holds others.
func TestKeyWithNoStrings(t *testing.T) {
	type inner struct {
		A [0]string
		B int8
		C int64
	}
	type key struct {
		In inner
		S  string
	}
	gastest.RunConfig(t, small("shm", 2), func(n *gas.Node) error {
		m := gas.Must(dist.NewMap[key, int](n, "keys"))
		for i := range 100 {
			k := key{inner{B: int8(i), C: -1}, fmt.Sprint(i)}
			if n.Rank() == 0 {
				n.Must(m.Put(k, i))
			}
		}
		n.Must(n.Barrier())
		for i := range 100 {
			if v, ok, err := m.Get(key{inner{B: int8(i), C: -1}, fmt.Sprint(i)}); v != i || !ok || err != nil {
				return fmt.Errorf("key %d: %d, %v, %w", i, v, ok, err)
			}
		}
		return m.Delete()
	})
}
