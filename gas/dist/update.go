package dist

import (
	"fmt"
	"math"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// Entry is an entry of a map as the function of an [Update] sees it. It is valid until the
// function returns.
type Entry[K comparable, V any] struct {
	Key   K
	Value *V   // of the map, to be changed there; zero if the entry is not Found
	Found bool // there was one before
	// Drop, which the function sets, deletes the entry, or has it not be made.
	Drop bool
}

// Update is a function that runs where an entry of a map lies. Its methods may be used by many
// goroutines of a rank, but for Push and Flush.
type Update[K comparable, V, A, R any] struct {
	m       *Map[K, V]
	name    string
	number  uint32 // of the map
	fn      func(e *Entry[K, V], a A) R
	args    gas.Codec[A]
	results gas.Codec[R]
	// words: each argument, of size bytes, fits into a question, and each result into a
	// reply.
	words bool
	size  int
	copyA bool // arguments hold slices
	copyR bool // results do

	// For the function, with the lock of the part held.
	e       Entry[K, V]
	key     K
	none    V
	arg     A
	res     R
	one     question
	answer  reply
	watched bool // it is the program's, which may use the map by mistake

	pushed *shipment[K, V, A, R] // by Push
}

// update is an Update of any types.
type update interface {
	served
	Flush() error
}

// NewUpdate is collective: it makes fn a function of the map, of that name, which is for messages
// to people. fn gets the entry of a key, which it may change, make and delete, and what the
// caller gave for it; A and R travel as arguments and results of calls do. It runs at the rank that has the
// entry, one at a time of all functions of the map there, inside calls of that rank, as a called function
// does: it must not wait, nor use the map. Slices in a are its own, to keep. fn is the same on all ranks.
//
// An entry that was not there is made with the zero value, unless fn sets Drop:
//
//	count, err := dist.NewUpdate(words, "count", func(e *dist.Entry[string, int], by int) int {
//		*e.Value += by
//		return *e.Value
//	})
//
// A panic of fn is an error of its caller, a *gas.CallError, or if the entry lies at
// the caller's rank its panic.
func NewUpdate[K comparable, V, A, R any](m *Map[K, V], name string, fn func(e *Entry[K, V], a A) R) (*Update[K, V, A, R], error) {
	if err := m.check("NewUpdate"); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("NewUpdate %q of map %q", name, m.name)
	var u *Update[K, V, A, R]
	failed := prepare(&u, m, name, fn)
	if failed != nil {
		failed = fmt.Errorf("dist: %s: %w", what, failed)
	}
	u.watched = sys.HasGoroutine
	if err := m.agree(what, sayOf(what, typeName[A](), typeName[R](), fmt.Sprint(u.number)), failed); err != nil {
		return nil, err
	}
	return u, nil
}

// prepare makes an update and gives it its number, also if there is an error: other ranks
// may have none.
func prepare[K comparable, V, A, R any](to **Update[K, V, A, R], m *Map[K, V], name string, fn func(e *Entry[K, V], a A) R) error {
	u := &Update[K, V, A, R]{m: m, name: name, fn: fn}
	*to = u
	m.mu.Lock()
	var all []update
	if old := m.updates.Load(); old != nil {
		all = *old // whose readers do not look behind its end
	}
	u.number = uint32(len(all))
	all = append(all, u)
	m.updates.Store(&all)
	m.mu.Unlock()
	if fn == nil {
		return errs.BadArg("it has no function")
	}
	var err error
	if u.args, err = gas.NewCodec[A](); err != nil {
		return err
	}
	if u.results, err = gas.NewCodec[R](); err != nil {
		return err
	}
	size, fixed := u.args.Size()
	back, fixedBack := u.results.Size()
	u.words = fixed && size <= len(question{}.Data) && fixedBack && back <= len(reply{}.Data) && u.number <= math.MaxUint16
	u.size = size
	u.copyA, u.copyR = holdsSlices[A](), holdsSlices[R]()
	return nil
}

// failed is err of the update.
func (u *Update[K, V, A, R]) failed(err error) error {
	return fmt.Errorf("dist: %s of map %q: %w", u.name, u.m.name, err)
}

// Call runs the function on the entry of key, with a, and returns its result.
func (u *Update[K, V, A, R]) Call(key K, a A) (r R, err error) {
	m := u.m
	if err := m.check(u.name); err != nil {
		return r, err
	}
	owner := ownerOf(m.keys.hash(&key), m.size)
	if owner == m.rank {
		return u.local(key, a)
	}
	if u.words {
		q := question{Map: m.number, Op: uint16(u.number)}
		if k, ok := m.keys.copyTo(q.Data[:len(q.Data)-u.size], &key); ok {
			q.Len = uint16(k + copy(q.Data[k:], u.args.Bytes(&a)))
			w, err := callOne.Call(m.n, m.job(owner), q)
			if err != nil {
				return r, u.failed(err)
			}
			copy(u.results.Bytes(&r), w.Data[:])
			return r, nil
		}
	}
	return u.far(owner, key, a)
}

// far is Call for what takes more than some words.
func (u *Update[K, V, A, R]) far(owner int, key K, a A) (r R, err error) {
	m := u.m
	data := u.args.Append(m.keys.append(nil, &key), &a)
	data, err = callMany.Call(m.n, m.job(owner), request{Map: m.number, Op: u.number, Count: 1, Data: data})
	if err == nil {
		_, err = u.results.Decode(data, &r)
	}
	if err != nil {
		return r, u.failed(err)
	}
	return r, nil
}

// cloned is v with memory of its own.
func cloned[T any](c gas.Codec[T], v T) (w T, err error) {
	_, err = c.Decode(c.Append(nil, &v), &w)
	return w, err
}

// local is Call for an entry of this rank.
func (u *Update[K, V, A, R]) local(key K, a A) (r R, err error) {
	if u.copyA {
		if a, err = cloned(u.args, a); err != nil {
			return r, err
		}
	}
	p := &u.m.part
	p.lock()
	defer p.unlock()
	i, found := p.at[key]
	u.key, u.arg = key, a
	u.apply(i, found)
	if u.copyR {
		return cloned(u.results, u.res)
	}
	return u.res, nil
}

// apply runs the function with u.key and u.arg on the entry at i, if it is found, and
// leaves its result in u.res. The lock is held.
func (u *Update[K, V, A, R]) apply(i int, found bool) {
	p, e := &u.m.part, &u.e
	*e = Entry[K, V]{Key: u.key, Value: &u.none, Found: found}
	if found {
		e.Value = &p.cells[i].value
	} else {
		u.none = *new(V)
	}
	if u.watched {
		p.runs.Store(sys.Goroutine())
	}
	u.res = u.fn(e, u.arg)
	switch {
	case found && e.Drop:
		p.delete(i)
	case !found && !e.Drop:
		p.put(u.key, u.none)
	}
}

// decoded takes key and argument of one access from b, applies it, and returns the rest. The
// lock is held.
func (u *Update[K, V, A, R]) decoded(b []byte) (rest []byte, err error) {
	p := &u.m.part
	var i int
	var found bool
	if k := &u.m.keys; k.text {
		var s []byte
		if s, b, err = splitText(b); err != nil {
			return nil, err
		}
		if i, found = p.texts[string(s)]; found {
			u.key = p.cells[i].key
		} else {
			u.key = any(string(s)).(K)
		}
	} else {
		if b, err = k.codec.Decode(b, &u.key); err != nil {
			return nil, err
		}
		i, found = p.at[u.key]
	}
	if b, err = u.args.Decode(b, &u.arg); err != nil {
		return nil, err
	}
	u.apply(i, found)
	return b, nil
}

// serveOne carries out an access of another rank.
func (u *Update[K, V, A, R]) serveOne(q question) (w reply, err error) {
	p := &u.m.part
	p.lock()
	defer p.unlock()
	u.one = q // which is in the heap
	if _, err = u.decoded(u.one.Data[:min(int(q.Len), len(q.Data))]); err != nil {
		return w, err
	}
	u.results.Append(u.answer.Data[:0], &u.res)
	return u.answer, nil
}

// serveMany carries out accesses of another rank.
func (u *Update[K, V, A, R]) serveMany(q *request) (out []byte, err error) {
	p := &u.m.part
	p.lock()
	defer p.unlock()
	b := q.Data
	for range q.Count {
		if b, err = u.decoded(b); err != nil {
			return nil, err
		}
		if !q.Quiet {
			out = u.results.Append(out, &u.res)
		}
	}
	return out, nil
}
