package shm

import (
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// What is here is the usual case of registered_unsafe.go by itself, for callers that know
// that the address is registered: no errors, no questions, nothing counted.

// PutAtOnce is Put to what is registered, if that need not ask the owner.
func (e *Endpoint) PutAtOnce(dst int, to segment.NLA, src []byte) bool {
	ok := e.copyAtOnce(dst, to, src, segment.RightWrite)
	if ok {
		e.Wake(dst)
	}
	return ok
}

// GetAtOnce is Get likewise.
func (e *Endpoint) GetAtOnce(dst []byte, src int, from segment.NLA) bool {
	return e.copyAtOnce(src, from, dst, segment.RightRead)
}

func (e *Endpoint) copyAtOnce(rank int, a segment.NLA, buf []byte, need segment.Rights) bool {
	n := uint64(len(buf))
	if n == 0 {
		return false
	}
	x, ok := e.beginAtOnce(rank, a, n, need)
	if !ok {
		return false
	}
	if x.mem != nil {
		if x.own == nil {
			carry(x.mem, buf, a, need)
			exit(x.unit)
			return true
		}
		mem := unsafe.Slice((*byte)(x.mem), n)
		if need == segment.RightWrite {
			ok = segment.TouchCopy(mem, mem, buf)
		} else {
			ok = segment.TouchCopy(mem, buf, mem)
		}
		x.own.Exit()
		return ok
	}
	ask, err := e.transfer(rank, a, buf, need, a%8 == 0 && n == 8)
	return !ask && err == nil
}

// wordAtOnce is beginAtOnce for a word that is in reach of load and store.
func (e *Endpoint) wordAtOnce(rank int, a segment.NLA, n int, need segment.Rights) (x access, ok bool) {
	if n < 1 || n > 8 || n&(n-1) != 0 || uint64(a)%uint64(n) != 0 {
		return x, false
	}
	x, ok = e.beginAtOnce(rank, a, uint64(n), need)
	return x, ok && x.mem != nil
}

// GetWordAtOnce is Get of a word likewise.
func (e *Endpoint) GetWordAtOnce(src int, from segment.NLA, n int) (v uint64, done bool) {
	x, ok := e.wordAtOnce(src, from, n, segment.RightRead)
	if !ok {
		return 0, false
	}
	mem, word := unsafe.Slice((*byte)(x.mem), n), unsafe.Slice((*byte)(unsafe.Pointer(&v)), n)
	if x.own == nil {
		carry(x.mem, word, from, segment.RightRead)
	} else {
		ok = segment.TouchCopy(mem, word, mem)
	}
	x.finish()
	return v, ok
}

// PutWordAtOnce is PutWord likewise.
func (e *Endpoint) PutWordAtOnce(dst int, to segment.NLA, v uint64, n int) bool {
	x, ok := e.wordAtOnce(dst, to, n, segment.RightWrite)
	if !ok {
		return false
	}
	if x.own == nil {
		storeWord(x.mem, v, n)
	} else {
		mem := unsafe.Slice((*byte)(x.mem), n)
		ok = segment.TouchCopy(mem, mem, unsafe.Slice((*byte)(unsafe.Pointer(&v)), n))
	}
	x.finish()
	if ok {
		e.Wake(dst)
	}
	return ok
}

// AtomicAtOnce is Atomic likewise.
func (e *Endpoint) AtomicAtOnce(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (old uint64, done bool) {
	if conduits.CheckAtomic("atomic", op, t, to) != nil {
		return 0, false
	}
	x, ok := e.beginAtOnce(dst, to, uint64(t.Size()), segment.RightAtomic)
	if !ok || x.mem == nil {
		return 0, false
	}
	ok = x.touch(uint64(t.Size()), func() { old = conduits.ApplyAtomic(x.mem, op, t, a, b) })
	x.finish()
	if ok && op != conduits.AtomicLoad {
		e.Wake(dst)
	}
	return old, ok
}

// beginAtOnce is begin of what may be done; x.mem is nil if it is not in reach of load and
// store.
func (e *Endpoint) beginAtOnce(rank int, a segment.NLA, n uint64, need segment.Rights) (x access, ok bool) {
	if e.over() != nil || !e.reaches(rank) {
		return x, false
	}
	if l := e.memory.j.local; l != nil {
		if t := l.eps[e.memory.j.place(rank)].MadeATU(); t != nil {
			if x.mem, x.own = t.Reach(e.memory.rank, a, n, need); x.own != nil {
				return x, true
			}
		}
	} else if x.mem, x.unit = e.direct(rank, a, n, need); x.mem != nil {
		return x, true
	}
	x, err := e.begin(rank, a, n, need)
	return x, err == nil
}
