package extended

import (
	"sync"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/segment"
)

// bounces are buffers for what conduits, and other goroutines for them, read and write
// while the caller of a blocking operation waits and its stack may move.
var bounces = sync.Pool{New: func() any { return new([bounceSize]byte) }}

const bounceSize = 4096

// bounce gives n bytes of the heap.
func bounce(n int) []byte {
	if n > bounceSize {
		return make([]byte, n)
	}
	return bounces.Get().(*[bounceSize]byte)[:n]
}

// debounce takes back what bounce gave, if the operation that used it is complete: one
// that has failed may use it yet, and leaves it to the collector.
func debounce(b []byte, err error) {
	if err == nil && cap(b) == bounceSize {
		bounces.Put((*[bounceSize]byte)(b[:bounceSize]))
	}
}

// putSlow is Put where load and store do not do it. src may be hidden.
//
//go:noinline
func (x *Initiator) putSlow(dst int, to segment.NLA, src []byte) error {
	stack := onStack(src)
	if stack {
		heap := bounce(len(src))
		bulk.Copy(heap, src)
		src = heap
	}
	q := putOf(dst, to, src, wantBulk)
	q.tried = true
	_, err := q.now(x)
	if stack {
		debounce(src, err)
	}
	return err
}

// getSlow is Get where load and store do not do it. dst may be hidden.
//
//go:noinline
func (x *Initiator) getSlow(src int, from segment.NLA, dst []byte) error {
	mem, stack := dst, onStack(dst)
	if stack {
		mem = bounce(len(dst))
	}
	q := getOf(src, from, mem)
	q.tried = true
	_, err := q.now(x)
	if stack {
		if err == nil {
			bulk.Copy(dst, mem)
		}
		debounce(mem, err)
	}
	return err
}

// PutNB begins to put src to address to of rank dst's segment. src may be
// reused when PutNB returns, which may have to wait for that. The put is
// visible at dst once the handle is synchronized; see Handle.
func (x *Initiator) PutNB(dst int, to segment.NLA, src []byte) (Handle, error) {
	if !x.always && x.views.put(dst, to, src) {
		return 0, nil
	}
	q := putOf(dst, to, src, wantCopy)
	q.tried = true
	return q.begun(x)
}

// PutBulkNB is PutNB for a source that must stay as it is, and must not be
// freed by other than the garbage collector, until the handle is synchronized.
func (x *Initiator) PutBulkNB(dst int, to segment.NLA, src []byte) (Handle, error) {
	if !x.always && x.views.put(dst, to, src) {
		return 0, nil
	}
	q := putOf(dst, to, src, wantBulk)
	q.tried = true
	return q.begun(x)
}

// GetNB begins to get len(dst) bytes from address from of rank src's segment.
// dst holds them once the handle is synchronized; until then its contents are
// undefined and it must not be touched.
func (x *Initiator) GetNB(src int, from segment.NLA, dst []byte) (Handle, error) {
	if !x.always && x.views.get(src, from, dst) {
		return 0, nil
	}
	q := getOf(src, from, dst)
	q.tried = true
	return q.begun(x)
}

// PutValueNB begins a PutValue.
func (x *Initiator) PutValueNB(rank int, to segment.NLA, v uint64, n int) (Handle, error) {
	if !x.always && uint(n-1) < 8 && x.views.putValue(rank, to, v, n) {
		return 0, nil
	}
	q := putValueOf(rank, to, v, n)
	q.tried = true
	return q.begun(x)
}

// GetValueNB begins a GetValue; *result holds the value once the handle is
// synchronized.
func (x *Initiator) GetValueNB(rank int, from segment.NLA, result *uint64, n int) (Handle, error) {
	q := getValueOf(rank, from, result, n)
	return q.begun(x)
}

// Memset fills n bytes from address to of rank with value. n must not be
// negative.
func (x *Initiator) Memset(rank int, to segment.NLA, value byte, n int) error {
	if n > 0 && x.views.memset(rank, to, value, uint64(n)) {
		return nil
	}
	q := memsetOf(rank, to, value, n)
	q.tried = true
	_, err := q.now(x)
	return err
}

// MemsetNB begins a Memset.
func (x *Initiator) MemsetNB(rank int, to segment.NLA, value byte, n int) (Handle, error) {
	if !x.always && n > 0 && x.views.memset(rank, to, value, uint64(n)) {
		return 0, nil
	}
	q := memsetOf(rank, to, value, n)
	q.tried = true
	return q.begun(x)
}

var zeros [4096]byte

func fill(b []byte, value byte) {
	if value == 0 {
		bulk.Clear(b)
		return
	}
	for i := range b[:min(len(b), 64)] {
		b[i] = value
	}
	for i := 64; i < len(b); {
		i += copy(b[i:], b[:min(i, 4096)])
	}
}
