package dist

import (
	"fmt"
	"iter"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// Map is a hash map spread over the ranks of a group: the key's hash gives the rank of an entry. Entries lie
// in ordinary memory of that rank, in no order, and are reached by calls, which it
// answers when it polls or waits; see package gas, Progress. An entry takes about twice the
// memory of its key, that of its value, and 24 bytes.
//
// K and V may be any types of arguments of calls, strings and slices among them;
// see [gas.RegisterCall]. Keys are equal as those of Go's maps are.
//
// A Map may be used by many goroutines of a rank. Each access of an entry is atomic: it happens
// before or after each other access of that entry, not meanwhile. Later accesses see the effects of
// those that have returned. A call for one key of another rank costs a message there and
// one back; PutAll, GetAll and [Update.All] send many keys in one, and so do what [Update.Push]
// puts off. Entries of the own rank cost a lock.
type Map[K comparable, V any] struct {
	ranks
	name   string
	number uint32 // the same on all ranks
	keys   keys[K]
	part   part[K, V]
	done   atomic.Bool

	get    *Update[K, V, struct{}, got[V]]
	put    *Update[K, V, V, struct{}]
	remove *Update[K, V, struct{}, bool]

	mu      sync.Mutex               // of additions to updates
	updates atomic.Pointer[[]update] // by their numbers, the map's own three first
}

// part is the part of a map on one rank.
type part[K comparable, V any] struct {
	mu   sync.Mutex
	runs atomic.Uintptr // the goroutine on which a function of the program runs, with mu held
	// at has the place in cells of each key; texts is at if K is string, so that bytes can be
	// looked up as they are.
	at    map[K]int
	texts map[string]int
	cells []cell[K, V]
	free  []int // cells without an entry
}

type cell[K comparable, V any] struct {
	key   K
	value V
	used  bool
}

// got is a value, if there is one.
type got[V any] struct {
	Value V
	Found bool
}

// NewMap is collective: it makes an empty map on the ranks of g, of that name, which is for messages to people.
// Types that cannot travel are an error that names the field.
func NewMap[K comparable, V any](g gas.Group, name string) (*Map[K, V], error) {
	what := fmt.Sprintf("NewMap %q", name)
	r, err := ranksOf(g, what)
	if err != nil {
		return nil, err
	}
	m := &Map[K, V]{ranks: r, name: name}
	m.part.at = make(map[K]int)
	m.part.texts, _ = any(m.part.at).(map[string]int)
	k, failed := newKeys[K]()
	m.keys = k
	// Of these an error, too, names types of values.
	for _, err := range []error{
		prepare(&m.get, m, "Get", lookUp[K, V]),
		prepare(&m.put, m, "Put", store[K, V]),
		prepare(&m.remove, m, "Remove", discard[K, V]),
	} {
		if failed == nil {
			failed = err
		}
	}
	if failed != nil {
		failed = fmt.Errorf("dist: %s: %w", what, failed)
	}
	if m.number, err = m.enter(m, what, sayOf(what, typeName[K](), typeName[V]()), failed); err != nil {
		return nil, err
	}
	return m, nil
}

func lookUp[K comparable, V any](e *Entry[K, V], _ struct{}) got[V] {
	e.Drop = !e.Found
	return got[V]{*e.Value, e.Found}
}

func store[K comparable, V any](e *Entry[K, V], v V) struct{} {
	*e.Value = v
	return struct{}{}
}

func discard[K comparable, V any](e *Entry[K, V], _ struct{}) bool {
	e.Drop = true
	return e.Found
}

// Get returns the value of key, and whether there is one. Slices in it are the caller's.
func (m *Map[K, V]) Get(key K) (v V, found bool, err error) {
	g, err := m.get.Call(key, struct{}{})
	return g.Value, g.Found, err
}

// Put makes v the value of key. Slices in it stay the caller's.
func (m *Map[K, V]) Put(key K, v V) error {
	_, err := m.put.Call(key, v)
	return err
}

// Remove removes the entry of key, and reports whether there was one.
func (m *Map[K, V]) Remove(key K) (found bool, err error) { return m.remove.Call(key, struct{}{}) }

// PutAll is Put for many keys, many in a message: when it returns all are done. Where a key is
// there twice, one of its values stays.
func (m *Map[K, V]) PutAll(keys []K, values []V) error { return m.put.each(keys, values, nil) }

// GetAll is Get for many keys, many in a message: values[i] is that of keys[i], if found[i].
func (m *Map[K, V]) GetAll(keys []K) (values []V, found []bool, err error) {
	all := make([]got[V], len(keys))
	if err := m.get.each(keys, make([]struct{}, len(keys)), all); err != nil {
		return nil, nil, err
	}
	values, found = make([]V, len(keys)), make([]bool, len(keys))
	for i, g := range all {
		values[i], found[i] = g.Value, g.Found
	}
	return values, found, nil
}

// RemoveAll is Delete for many keys, many in a message.
func (m *Map[K, V]) RemoveAll(keys []K) error {
	return m.remove.each(keys, make([]struct{}, len(keys)), nil)
}

// Owner is the rank that has the entry of key, or would have it.
func (m *Map[K, V]) Owner(key K) int { return ownerOf(m.keys.hash(&key), m.size) }

// All is each entry of this rank, in any order. It may be used while entries come and go, which
// it shows or does not, and its loop may use the map. Slices in values are the map's:
// they are not to be changed, and other ranks' updates may change them.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := 0; ; i++ {
			m.part.lock()
			if i >= len(m.part.cells) {
				m.part.unlock()
				return
			}
			c := m.part.cells[i]
			m.part.unlock()
			if c.used && !yield(c.key, c.value) {
				return
			}
		}
	}
}

// Len is how many entries this rank has.
func (m *Map[K, V]) Len() int {
	m.part.lock()
	defer m.part.unlock()
	return len(m.part.at)
}

// Total is collective: it is how many entries all ranks have together. What other ranks do before
// they call it is counted, and what they do meanwhile may be.
func (m *Map[K, V]) Total() (int, error) {
	if err := m.check("Total"); err != nil {
		return 0, err
	}
	// Every update begun before the call is counted.
	if err := m.g.Barrier(); err != nil {
		return 0, err
	}
	return gas.AllReduce(m.g, m.Len(), gas.Sum)
}

// Flush returns when all that this rank has put off by [Update.Push] is done, of all updates of
// the map.
func (m *Map[K, V]) Flush() error {
	if err := m.check("Flush"); err != nil {
		return err
	}
	return m.flush()
}

func (m *Map[K, V]) flush() error {
	var failed error
	for _, u := range *m.updates.Load() {
		if err := u.Flush(); failed == nil {
			failed = err
		}
	}
	return failed
}

// Delete is collective: it is Flush, and the end of the map, whose memory is free then. No goroutine
// of the rank uses it any more when it is called.
func (m *Map[K, V]) Delete() error {
	if err := m.check("Delete"); err != nil {
		return err
	}
	err := m.flush()
	if failed := m.g.Barrier(); err == nil {
		err = failed
	}
	m.done.Store(true)
	tables.Of(m.n).remove(m.number)
	m.part.lock()
	m.part.at, m.part.texts, m.part.cells, m.part.free = nil, nil, nil, nil
	m.part.unlock()
	return err
}

// check is the error of op on a map that is deleted.
func (m *Map[K, V]) check(op string) error {
	if m.done.Load() {
		return errs.NotReady("dist: %s of map %q on rank %d, which is deleted", op, m.name, m.n.Rank())
	}
	return nil
}

// serveOne carries out a call of another rank.
func (m *Map[K, V]) serveOne(q question) (reply, error) {
	u, err := m.update(uint32(q.Op))
	if err != nil {
		return reply{}, err
	}
	return u.serveOne(q)
}

// serveMany carries out calls of another rank.
func (m *Map[K, V]) serveMany(q *request) ([]byte, error) {
	u, err := m.update(q.Op)
	if err != nil {
		return nil, err
	}
	return u.serveMany(q)
}

// update is that of a number, which another rank gave.
func (m *Map[K, V]) update(number uint32) (update, error) {
	all := m.updates.Load()
	if uint64(number) >= uint64(len(*all)) {
		return nil, errs.NotReady("dist: map %q has no update number %d on rank %d", m.name, number, m.n.Rank())
	}
	return (*all)[number], nil
}

// lock takes the lock. A function that would wait for itself panics, which its caller learns.
func (p *part[K, V]) lock() {
	if p.mu.TryLock() {
		return
	}
	if sys.HasGoroutine && p.runs.Load() == sys.Goroutine() {
		panic("dist: the function of an update uses its map, which is locked meanwhile")
	}
	p.mu.Lock()
}

func (p *part[K, V]) unlock() {
	if p.runs.Load() != 0 {
		p.runs.Store(0)
	}
	p.mu.Unlock()
}

// put makes an entry of key and v. The lock is held.
func (p *part[K, V]) put(key K, v V) {
	c := cell[K, V]{key, v, true}
	if k := len(p.free); k > 0 {
		i := p.free[k-1]
		p.free = p.free[:k-1]
		p.cells[i] = c
		p.at[key] = i
		return
	}
	p.at[key] = len(p.cells)
	p.cells = append(p.cells, c)
}

// delete deletes the entry at i. The lock is held.
func (p *part[K, V]) delete(i int) {
	delete(p.at, p.cells[i].key)
	p.cells[i] = cell[K, V]{}
	p.free = append(p.free, i)
}

// holdsSlices reports whether copies of values of type T, which travels, share memory.
func holdsSlices[T any]() bool { return holds(reflect.TypeFor[T](), reflect.Slice) }
