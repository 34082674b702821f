package shm

import (
	"runtime"
	"sync"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// vectors has buffers for the arguments of system calls.
var vectors = sync.Pool{New: func() any { return new(sys.Pieces) }}

// many transfers those pieces from the first on that take the same way, and returns how many
// they are: those that are private to another process by one system call.
func (e *Endpoint) many(rank int, pieces []conduits.Piece, need segment.Rights) (n int) {
	if e.over() != nil || !e.reaches(rank) {
		return 0
	}
	if e.owner(rank) != nil {
		for n < len(pieces) && e.copyNow(rank, pieces[n].At, pieces[n].Mem, need, false) {
			n++
		}
		return n
	}
	for n < len(pieces) && e.copyDirect(rank, &pieces[n], need) {
		n++
	}
	if n > 0 {
		return n
	}
	return e.reachMany(rank, pieces, need)
}

// copyDirect transfers p if it is in reach of load and store.
func (mem *memory) copyDirect(rank int, p *conduits.Piece, need segment.Rights) bool {
	n := uint64(len(p.Mem))
	if n == 0 {
		return false
	}
	m, w := mem.direct(rank, p.At, n, need)
	if m == nil {
		return false
	}
	carry(m, p.Mem, p.At, need)
	exit(w)
	return true
}

// reachMany transfers the first pieces, private to rank, which is another process, by one
// system call.
func (mem *memory) reachMany(rank int, pieces []conduits.Piece, need segment.Rights) (n int) {
	p := mem.peer(rank)
	if !mem.reachable(p) || p.blind.Load() {
		return 0
	}
	w := mem.enter()
	if w == nil {
		return 0
	}
	v := vectors.Get().(*sys.Pieces)
	for i := range pieces[:min(len(pieces), sys.MaxPieces)] {
		q := &pieces[i]
		if len(q.Mem) == 0 {
			break
		}
		addr, k, err := p.reader.Translate(mem.vpid, q.At, uint64(len(q.Mem)), need)
		if err != nil || k != uint64(len(q.Mem)) || addr&segment.AddrPrivate == 0 {
			break
		}
		v.Add(addr&^segment.AddrPrivate, q.Mem)
	}
	switch {
	case v.Len() == 0 || mem.j.hasFailed(): // see reachInto
	case need == segment.RightWrite:
		mem.calls.Add(1)
		n = v.Write(p.pid)
	default:
		mem.calls.Add(1)
		n = v.Read(p.pid)
	}
	exit(w)
	runtime.KeepAlive(pieces)
	v.Reset()
	vectors.Put(v)
	return n
}
