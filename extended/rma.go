package extended

import (
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/segment"
)

// PutNB begins to put src to address to of rank dst's segment. src may be
// reused when PutNB returns, which may have to wait for that. The put is
// visible at dst once the handle is synchronized; see Handle.
func (x *Initiator) PutNB(dst int, to segment.NLA, src []byte) (Handle, error) {
	if !x.always && x.views.put(dst, to, src) {
		return 0, nil
	}
	var q operation
	q.put(dst, to, src, wantCopy)
	return q.begun(x)
}

// PutBulkNB is PutNB for a source that must stay as it is, and must not be
// freed by other than the garbage collector, until the handle is synchronized.
func (x *Initiator) PutBulkNB(dst int, to segment.NLA, src []byte) (Handle, error) {
	if !x.always && x.views.put(dst, to, src) {
		return 0, nil
	}
	var q operation
	q.put(dst, to, src, wantBulk)
	return q.begun(x)
}

// GetNB begins to get len(dst) bytes from address from of rank src's segment.
// dst holds them once the handle is synchronized; until then its contents are
// undefined and it must not be touched.
func (x *Initiator) GetNB(src int, from segment.NLA, dst []byte) (Handle, error) {
	if !x.always && x.views.get(src, from, dst) {
		return 0, nil
	}
	var q operation
	q.get(src, from, dst)
	return q.begun(x)
}

// PutValueNB begins a PutValue.
func (x *Initiator) PutValueNB(rank int, to segment.NLA, v uint64, n int) (Handle, error) {
	if !x.always && uint(n-1) < 8 && x.views.putValue(rank, to, v, n) {
		return 0, nil
	}
	var q operation
	q.putValue(rank, to, v, n)
	return q.begun(x)
}

// GetValueNB begins a GetValue; *result holds the value once the handle is
// synchronized.
func (x *Initiator) GetValueNB(rank int, from segment.NLA, result *uint64, n int) (Handle, error) {
	var q operation
	q.getValue(rank, from, result, n)
	return q.begun(x)
}

// Memset fills n bytes from address to of rank with value. n must not be
// negative.
func (x *Initiator) Memset(rank int, to segment.NLA, value byte, n int) error {
	if n > 0 && x.views.memset(rank, to, value, uint64(n)) {
		return nil
	}
	var q operation
	q.memset(rank, to, value, n)
	_, err := q.now(x)
	return err
}

// MemsetNB begins a Memset.
func (x *Initiator) MemsetNB(rank int, to segment.NLA, value byte, n int) (Handle, error) {
	if !x.always && n > 0 && x.views.memset(rank, to, value, uint64(n)) {
		return 0, nil
	}
	var q operation
	q.memset(rank, to, value, n)
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
