// Accesses that are under way together. What is unsafe here: pointers into a segment, made as Get
// makes them.

package rt

import (
	"unsafe"

	"github.com/argon-go/argon/conduits"
)

// groupMost is how many puts and updates of a group may be under way, at most.
const groupMost = 256

// opSize is above all operations.
const opSize = 24

// Group is relaxed accesses of one loop that are under way together, in place of one after the
// other. Those to threads that are reached by load and store are done at once. The order that a
// thread sees its own accesses to one place in (5.1.2.3) is kept: an access to bytes that a put of
// the group is on its way to waits for it, and one to a word that an update is on its way to, unless it is an
// update by the same operation. Between Begin and End the thread accesses shared
// memory of others by the group alone.
type Group struct {
	t     *Thread
	words [2 * groupMost]uint64 // that puts or updates are on their way to: a hash table, 0 for a free place
	bytes [2 * groupMost]uint8  // which bytes of them, a bit for each
	ops   [2 * groupMost]Op     // of words that updates are on their way to: the operation, and the size from opSize on
	n     int
}

// Near reports whether all threads are reached by load and store, so that groups gain nothing.
func (t *Thread) Near() bool { return len(t.views.All) == t.threads }

// Begin begins a group. A thread has one at a time.
func (t *Thread) Begin() *Group {
	if t.group == nil {
		t.group = &Group{t: t}
	}
	return t.group
}

// Sync waits for all that the group has under way.
func (g *Group) Sync() {
	g.t.must(g.t.x.Implicit().Sync(allOps))
	if g.n > 0 {
		clear(g.words[:])
		clear(g.bytes[:])
		clear(g.ops[:])
		g.n = 0
	}
}

// End is Sync, after which the thread may begin another group.
func (g *Group) End() { g.Sync() }

// find is the place of the word at p in the table, or the free one where it belongs.
func (g *Group) find(p Phaseless) (at int, word uint64) {
	word = uint64(p) &^ 7
	at = int(word * 0x9e3779b97f4a7c15 >> 55)
	for g.words[at] != 0 && g.words[at] != word {
		at = (at + 1) % len(g.words)
	}
	return at, word
}

// bytesOf is the size bytes at p in their word, a bit for each.
func bytesOf(p Phaseless, size uintptr) uint8 { return uint8(1<<size-1) << (p & 7) }

// inOrder waits for a put that is under way to any of the size bytes at p, if there is one, and for all if p is
// a member of a packed structure that lies in two words.
func (g *Group) inOrder(p Phaseless, size uintptr) {
	if at, _ := g.find(p); g.bytes[at]&bytesOf(p, size) != 0 || uintptr(p&7)+size > 8 {
		g.Sync()
	}
}

// GroupPut is a relaxed write to the T at p, which is done when it returns if it lies in two aligned words of 8 bytes.
func GroupPut[T Scalar](g *Group, p Phaseless, v T) {
	t := g.t
	if at, ok := t.writable(p, unsafe.Sizeof(v)); ok {
		*(*T)(at) = v
		return
	}
	t.there("write", p)
	g.inOrder(p, unsafe.Sizeof(v))
	if uintptr(p&7)+unsafe.Sizeof(v) > 8 {
		Put(t, p, v)
		return
	}
	g.mark(p, unsafe.Sizeof(v), 0)
	t.must(t.x.Implicit().PutValueNBI(p.Thread(), p.Addr(), toWord(v), int(unsafe.Sizeof(v))))
}

// mark notes a put, or an update by op, that is under way to the size bytes at p from now on. A word has
// puts or updates by one operation.
func (g *Group) mark(p Phaseless, size uintptr, op Op) {
	at, word := g.find(p)
	if g.n == groupMost || g.bytes[at] != 0 && g.ops[at] != op {
		g.Sync()
		at, word = g.find(p)
	}
	g.words[at], g.ops[at] = word, op
	g.bytes[at] |= bytesOf(p, size)
	g.n++
}

// GroupUpdate is a relaxed read of the T at p and a relaxed write of op of it and v, OpAdd, OpAnd, OpOr or OpXor,
// which the other thread's process does: one message, and no wait for the value. Where p is reached by load and store
// another thread's update may be lost, as UPC has it.
func GroupUpdate[T int32 | uint32 | int64 | uint64](g *Group, op Op, p Phaseless, v T) {
	t, size := g.t, unsafe.Sizeof(v)
	at, ok := t.writable(p, size)
	if !ok && uintptr(p)%size == 0 {
		t.there("update", p)
		g.mark(p, size, op|Op(size)<<opSize) // sums of 32 and of 64 bits differ by a carry
		typ := conduits.Uint64
		if size == 4 {
			typ = conduits.Uint32
		}
		t.must(t.x.Implicit().AtomicBitsNBI(p.Thread(), p.Addr(), codes[op], typ, toWord(v), 0))
		return
	}
	var old T
	if ok {
		old = *(*T)(at)
	} else {
		old = GroupGet[T](g, p)
	}
	switch op {
	case OpAdd:
		v += old
	case OpAnd:
		v &= old
	case OpOr:
		v |= old
	case OpXor:
		v ^= old
	}
	if ok {
		*(*T)(at) = v
	} else {
		GroupPut(g, p, v)
	}
}

// GroupGet is a relaxed read of the T at p. It blocks.
func GroupGet[T Scalar](g *Group, p Phaseless) (v T) {
	g.inOrder(p, unsafe.Sizeof(v))
	return Get[T](g.t, p)
}

// Ahead begins a relaxed read of the T at p: *v is its
// value after the next Sync, and is left alone until then.
func Ahead[T Scalar](g *Group, p Phaseless, v *T) {
	if at, ok := g.t.readable(p, unsafe.Sizeof(*v)); ok {
		*v = *(*T)(at)
		return
	}
	g.inOrder(p, unsafe.Sizeof(*v))
	GetAsync(g.t, p, v)
}
