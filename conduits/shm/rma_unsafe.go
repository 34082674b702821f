package shm

import (
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

const done = conduits.SourceDone | conduits.RemoteDone

// Post makes an access, as the layers above do themselves where they can. What an
// endpoint writes counts as an arrival: the rank may be parked for it.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return e.now(a), nil
	}
	e.count(a)
	if a.Verb != conduits.Put && a.Verb != conduits.Get {
		return e.postWord(a)
	}
	if err := e.over(); err != nil {
		return 0, err
	}
	if !e.near(a.Rank) {
		return e.copyFar(a)
	}
	v := &e.views[a.Rank-e.memory.first] // by memory's own first the compiler sees that near has checked
	if a.Verb == conduits.Get {
		m, ok := v.At(a.At, uint64(len(a.Mem)), v.Read)
		if !ok {
			return e.copyFar(a)
		}
		carry(m, a.Mem, a.At, segment.RightRead)
		return done & a.Want, nil
	}
	m, ok := v.At(a.At, uint64(len(a.Mem)), v.Write)
	if !ok {
		return e.copyFar(a)
	}
	carry(m, a.Mem, a.At, segment.RightWrite)
	e.Wake(a.Rank)
	return done & a.Want, nil
}

// postWord is Post of a word.
func (e *Endpoint) postWord(a *conduits.Access) (conduits.Event, error) {
	if err := e.over(); err != nil {
		return 0, err
	}
	if !a.Sound() {
		return 0, conduits.CheckAccess(e, "shm", a)
	}
	if !e.near(a.Rank) {
		return e.wordFar(a)
	}
	v := &e.views[a.Rank-e.memory.first]
	if a.Verb == conduits.PutWord {
		m, ok := v.At(a.At, uint64(a.Size), v.Write)
		if !ok {
			return e.wordFar(a)
		}
		a.Perform(m)
		e.Wake(a.Rank)
		return done & a.Want, nil
	}
	m, ok := v.At(a.At, uint64(a.Type.Size()), v.Atomic)
	if !ok {
		return e.wordFar(a)
	}
	a.Value = conduits.ApplyAtomic(m, a.Op, a.Type, a.A, a.B)
	if a.Op != conduits.AtomicLoad {
		e.Wake(a.Rank)
	}
	return conduits.RemoteDone, nil
}

// now is Post of an access with Now: the usual case of registered_unsafe.go by itself, with no
// errors, no questions, and nothing counted.
func (e *Endpoint) now(a *conduits.Access) conduits.Event {
	ok := false
	switch {
	case a.Pieces != nil:
		a.Value = uint64(e.many(a.Rank, a.Pieces, a.Need()))
		ok = a.Value > 0
	case a.Verb == conduits.Put:
		if e.copyNow(a.Rank, a.At, a.Mem, segment.RightWrite, false) {
			e.Wake(a.Rank)
			return done
		}
	case a.Verb == conduits.Get:
		if e.copyNow(a.Rank, a.At, a.Mem, segment.RightRead, a.Size != 0) {
			return done
		}
	default:
		ok = e.wordNow(a)
	}
	if !ok {
		return 0
	}
	if a.Writes() {
		e.Wake(a.Rank)
	}
	return done
}

// copyNow copies between buf and registered memory if that need not ask the owner; whole as transfer has it.
func (e *Endpoint) copyNow(rank int, at segment.NLA, buf []byte, need segment.Rights, whole bool) bool {
	n := uint64(len(buf))
	if n == 0 {
		return false
	}
	x, ok := e.beginNow(rank, at, n, need)
	if !ok {
		return false
	}
	if x.mem != nil {
		if x.own == nil {
			carry(x.mem, buf, at, need)
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
	ask, err := e.transfer(rank, at, buf, need, whole)
	return !ask && err == nil
}

// wordNow accesses a word that is in reach of load and store.
func (e *Endpoint) wordNow(a *conduits.Access) bool {
	if !a.Sound() {
		return false
	}
	n := a.Len()
	x, ok := e.beginNow(a.Rank, a.At, n, a.Need())
	if !ok || x.mem == nil {
		return ok && e.wordBySystem(a)
	}
	mem := unsafe.Slice((*byte)(x.mem), n)
	switch {
	case x.own == nil:
		a.Perform(x.mem)
	case a.Verb == conduits.PutWord:
		ok = segment.TouchCopy(mem, mem, unsafe.Slice((*byte)(unsafe.Pointer(&a.A)), n))
	case a.Verb == conduits.GetWord:
		a.Value = 0
		ok = segment.TouchCopy(mem, unsafe.Slice((*byte)(unsafe.Pointer(&a.Value)), n), mem)
	default:
		ok = segment.Touch(mem, func() { a.Perform(x.mem) })
	}
	x.finish()
	return ok
}

// beginNow is begin of what may be done; x.mem is nil if it is not in reach of load and
// store.
func (e *Endpoint) beginNow(rank int, a segment.NLA, n uint64, need segment.Rights) (x access, ok bool) {
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
