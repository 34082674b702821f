// Package post has the accesses of a conduit as functions, for tests that make one now and
// then: each makes the record of one call of Endpoint.Post.
package post

import (
	"sync"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// poster is an endpoint to which accesses are posted.
type poster interface {
	Post(a *conduits.Access) (conduits.Event, error)
}

// records are kept: a record that is passed to a method of an interface is allocated. A
// sync.Pool would lose some of them under the race detector, where tests count allocations, too.
var records struct {
	mu   sync.Mutex
	free []*conduits.Access
}

func record() *conduits.Access {
	records.mu.Lock()
	defer records.mu.Unlock()
	n := len(records.free)
	if n == 0 {
		return new(conduits.Access)
	}
	r := records.free[n-1]
	records.free = records.free[:n-1]
	return r
}

func keep(r *conduits.Access) {
	*r = conduits.Access{}
	records.mu.Lock()
	records.free = append(records.free, r)
	records.mu.Unlock()
}

func post(ep poster, a conduits.Access) (value uint64, ev conduits.Event, err error) {
	r := record()
	*r = a
	ev, err = ep.Post(r)
	value = r.Value
	keep(r)
	return value, ev, err
}

// Put puts src to address to of dst.
func Put(ep poster, dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	_, ev, err := post(ep, conduits.Access{Verb: conduits.Put, Rank: dst, At: to, Mem: src, Want: want, Cookie: cookie})
	return ev, err
}

// Get gets what is at address from of src to dst.
func Get(ep poster, dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	_, ev, err := post(ep, conduits.Access{Verb: conduits.Get, Rank: src, At: from, Mem: dst, Want: want, Cookie: cookie})
	return ev, err
}

// PutWord puts the low n bytes of v.
func PutWord(ep poster, dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	_, ev, err := post(ep, conduits.Access{Verb: conduits.PutWord, Rank: dst, At: to, A: v, Size: size(n), Want: want, Cookie: cookie})
	return ev, err
}

// size is n, or what is no word's size either.
func size(n int) uint8 { return uint8(min(uint(n), 255)) }

// Atomic performs op.
func Atomic(ep poster, dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	value, ev, err := post(ep, conduits.Access{Verb: conduits.Atomic, Rank: dst, At: to, Op: op, Type: t, A: a, B: b, Cookie: cookie})
	if ev == 0 {
		value = 0
	}
	return value, ev, err
}

func now(ep poster, a conduits.Access) (uint64, bool) {
	a.Now = true
	value, ev, err := post(ep, a)
	return value, ev != 0 && err == nil
}

// PutNow is Put at once, and reports whether it has been made; so do the others.
func PutNow(ep poster, dst int, to segment.NLA, src []byte) bool {
	_, ok := now(ep, conduits.Access{Verb: conduits.Put, Rank: dst, At: to, Mem: src})
	return ok
}

// GetNow is Get at once.
func GetNow(ep poster, dst []byte, src int, from segment.NLA) bool {
	_, ok := now(ep, conduits.Access{Verb: conduits.Get, Rank: src, At: from, Mem: dst})
	return ok
}

// PutWordNow is PutWord at once.
func PutWordNow(ep poster, dst int, to segment.NLA, v uint64, n int) bool {
	_, ok := now(ep, conduits.Access{Verb: conduits.PutWord, Rank: dst, At: to, A: v, Size: size(n)})
	return ok
}

// GetWordNow gets a word of n bytes at once.
func GetWordNow(ep poster, src int, from segment.NLA, n int) (uint64, bool) {
	return now(ep, conduits.Access{Verb: conduits.GetWord, Rank: src, At: from, Size: size(n)})
}

// AtomicNow is Atomic at once.
func AtomicNow(ep poster, dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (uint64, bool) {
	return now(ep, conduits.Access{Verb: conduits.Atomic, Rank: dst, At: to, Op: op, Type: t, A: a, B: b})
}

// PutManyNow puts pieces at once and returns how many from the first on are complete.
func PutManyNow(ep poster, dst int, pieces []conduits.Piece) int {
	k, _ := now(ep, conduits.Access{Verb: conduits.Put, Rank: dst, Pieces: pieces})
	return int(k)
}

// GetManyNow is PutManyNow for gets.
func GetManyNow(ep poster, src int, pieces []conduits.Piece) int {
	k, _ := now(ep, conduits.Access{Verb: conduits.Get, Rank: src, Pieces: pieces})
	return int(k)
}
