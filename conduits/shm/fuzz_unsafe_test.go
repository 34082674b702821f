package shm

import (
	"encoding/binary"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// touch reads all of a message and fails the test where it lies outside the
// memory that it may lie in.
func touch(t *testing.T, e *Endpoint, src int, m *conduits.Message) {
	p := e.j.talk(src, e.rank, 0)
	if m.Class == conduits.Reply {
		p = e.j.talk(e.rank, src, 0)
	}
	inside := func(q unsafe.Pointer, n int) {
		if n == 0 {
			return
		}
		seg, size := e.views[e.rank].Base, e.views[e.rank].Size()
		if q := uintptr(q); !(q >= uintptr(p) && q+uintptr(n) <= uintptr(p)+uintptr(e.j.geometry.talk())) &&
			!(q >= uintptr(seg) && q+uintptr(n) <= uintptr(seg)+uintptr(size)) {
			t.Errorf("message %+v has %d bytes at %#x, outside conversation and segment", *m, n, q)
		}
		// What lies in a cell lies in one of its four parts.
		if at := uintptr(q) - uintptr(p) - talkCells; at < uintptr(e.j.cells*cellBytes) {
			at %= cellBytes
			for _, end := range []uintptr{nearClass, lineBytes, farAt + farBytes, cellBytes} {
				if at < end {
					if at+uintptr(n) > end {
						t.Errorf("message %+v has %d bytes at %d of a cell, beyond %d", *m, n, at, end)
					}
					break
				}
			}
		}
	}
	inside(unsafe.Pointer(unsafe.SliceData(m.Words)), 4*len(m.Words))
	inside(unsafe.Pointer(unsafe.SliceData(m.Payload)), len(m.Payload))
	if len(m.Words) > conduits.MaxWords || len(m.Payload) > max(e.j.landing, int(e.views[e.rank].Size())) {
		t.Errorf("message with %d words and %d bytes", len(m.Words), len(m.Payload))
	}
	if m.To == 0 && len(m.Payload) > 0 {
		clear(m.Payload) // the receiver may
	}
}

// FuzzSlot writes arbitrary bytes into a ring. Whatever they are, polling
// neither crashes nor hands out memory outside the mailbox, and what no sender
// writes fails the job.
func FuzzSlot(f *testing.F) {
	slot := func(st uint64, header ...uint64) []byte {
		b := binary.LittleEndian.AppendUint64(nil, st)
		for _, h := range header {
			b = binary.LittleEndian.AppendUint64(b, h)
		}
		return b
	}
	words := func(n uint64) uint64 { return n << stWordsShift }
	kind := func(k uint64) uint64 { return k << stKindShift }
	f.Add(slot(status(0, words(3)|77), 1, 2), uint8(0))
	f.Add(slot(status(0, words(31))), uint8(0))
	f.Add(slot(1), uint8(0))
	f.Add(slot(status(1, 0)), uint8(0))
	f.Add(slot(status(0, kind(kindLanded)|words(4)), landed(0, 500, 300)), uint8(1))
	f.Add(slot(status(0, kind(kindLanded)), landed(1<<20, 64, 64)), uint8(0))
	f.Add(slot(status(0, kind(kindLanded)), landed(0, 64, 65)), uint8(0))
	f.Add(slot(status(0, kind(kindLanded)), ^uint64(0)), uint8(0))
	f.Add(slot(status(0, kind(kindInline)|words(2)), 40), uint8(0))
	f.Add(slot(status(0, kind(kindInline)|words(2)), 1<<63), uint8(0))
	f.Add(slot(status(0, kind(kindInline)|words(20)), 33), uint8(0))
	f.Add(slot(status(0, kind(kindLong)|words(2)), uint64(segment.AttachBase), page), uint8(0))
	f.Add(slot(status(0, kind(kindLong)), uint64(segment.AttachBase)+1, page), uint8(0))
	f.Add(slot(status(0, kind(kindLong)), 0, 1<<63), uint8(0))
	cell := func(b []byte) []byte { return append(b, make([]byte, nearClass+farBytes-len(b))...) }
	f.Add(append(cell(slot(status(0, stSkip))), slot(status(1, stFar|words(20)))...), uint8(1))
	f.Add(append(cell(cell(slot(status(0, stSkip|2)))), slot(status(2, words(6)))...), uint8(1))
	f.Add(slot(status(0, stSkip|4)), uint8(0))
	f.Add(slot(status(0, stFar|kind(kindLong)|words(20)), 0, 0, 0, uint64(segment.AttachBase), page), uint8(0))
	far := func(st, head uint64, body ...uint64) []byte {
		return slot(st, append([]uint64{head, 0, 0}, body...)...)
	}
	f.Add(far(status(0, stFar|kind(kindLong)|words(2)), 0, uint64(segment.AttachBase), page, 0, 1), uint8(0))
	f.Add(far(status(0, stFar|kind(kindLanded)|words(20)), landed(0, 64, 64), 1, 2), uint8(1))
	f.Add(far(status(0, stFar|kind(kindInline)|words(20)), 80, 1, 2), uint8(0))
	f.Add(far(status(0, stFar|kind(kindInline)|words(20)), 81, 1, 2), uint8(0))
	direct := kind(kindLong) | stDirect
	f.Add(slot(status(0, direct|words(4)), directly(segment.AttachBase, page), 1, 2), uint8(0))
	f.Add(slot(status(0, direct), directly(segment.AttachBase+1, page)), uint8(0))
	f.Add(slot(status(0, direct|words(5)), directly(segment.AttachBase, page)), uint8(0))
	f.Add(slot(status(0, direct), ^uint64(0)), uint8(0))
	f.Add(far(status(0, stFar|direct|words(20)), directly(segment.AttachBase, 8), 1, 2), uint8(1))
	f.Add(far(status(0, stFar|direct|words(21)), directly(segment.AttachBase, 8), 1, 2), uint8(1))
	f.Add(slot(status(0, direct|stSkip), directly(segment.AttachBase, 0)), uint8(0))
	f.Fuzz(func(t *testing.T, content []byte, class uint8) {
		l, err := Local(2, conduits.Config{Credits: 4, MaxMedium: 512})
		if err != nil {
			t.Fatal(err)
		}
		eps := []*Endpoint{l[0].(*Endpoint), l[1].(*Endpoint)}
		received := 0
		attach(t, eps, page, func(rank int, m *conduits.Message) {
			received++
			touch(t, eps[rank], 1-rank, m)
		})
		c := conduits.Class(class % conduits.NumClasses)
		r := eps[0].ring(1, c)
		// Of each cell the half of the first line and the far part of this class.
		rest := content
		for i := uint64(0); i <= r.mask && len(rest) > 0; i++ {
			p := r.cell(i)
			rest = rest[copy(unsafe.Slice((*byte)(p), nearClass), rest):]
			rest = rest[copy(unsafe.Slice((*byte)(unsafe.Add(p, r.far)), farBytes), rest):]
		}
		for range 4 {
			eps[1].Poll()
		}
		first := uint64(0)
		if len(content) >= 8 {
			first = binary.LittleEndian.Uint64(content)
		} else {
			var b [8]byte
			copy(b[:], content)
			first = binary.LittleEndian.Uint64(b[:])
		}
		if sound := first == 0 || first>>stSeqShift == 1 && first&stValid != 0; !sound && (eps[0].Err() == nil || received > 0) {
			t.Errorf("status %#x: received %d messages, error %v", first, received, eps[0].Err())
		}
		if pending := *eps[1].in[c].next() != 0; pending != (eps[1].Err() != nil) {
			t.Errorf("stuck: %v, error: %v", pending, eps[1].Err())
		}
	})
}

// FuzzHeader joins a file with arbitrary bytes at its beginning: an error or an
// endpoint of a job that fits the file, never a crash.
func FuzzHeader(f *testing.F) {
	m, err := CreateJob(2, conduits.Config{MaxSegment: page})
	if err != nil {
		f.Fatal(err)
	}
	defer m.Close()
	header := make([]byte, hdrFence+8)
	if _, err := m.File().ReadAt(header, 0); err != nil {
		f.Fatal(err)
	}
	total := m.j.total()
	f.Add(header, total, 0, 2)
	f.Add(header, total-1, 0, 2)
	f.Add(header, int64(hdrBytes), 1, 2)
	f.Add(header[:8], int64(hdrBytes), 1, 2)
	f.Add([]byte{}, int64(0), 0, 0)
	for _, at := range []int{hdrSize, hdrCells, hdrLanding, hdrSegment, hdrSegment + 7} {
		for _, v := range []byte{0, 1, 3, 0x7f, 0xff} {
			h := append([]byte(nil), header...)
			h[at] = v
			f.Add(h, total, 1, 2)
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, header []byte, size int64, rank, ranks int) {
		if size < 0 || size > 1<<24 {
			t.Skip()
		}
		file, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		defer os.Remove(file.Name())
		if err := file.Truncate(size); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(header[:min(int64(len(header)), size)], 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		ep, err := Join(conduits.Job{Rank: rank, Size: ranks, Env: segfd(file)}, conduits.Config{})
		if err != nil {
			return
		}
		e := ep.(*Endpoint)
		defer e.j.unmap()
		if e.Rank() != rank || e.Size() != ranks || e.j.total() > size || e.Limits().MaxMedium < 512 {
			t.Errorf("joined %+v in %d bytes", e.j.geometry, size)
		}
		// The last byte of everything is there.
		e.System(ranks-1, conduits.SystemWords)[conduits.SystemBytes-1]++
		*(*byte)(unsafe.Add(e.j.base, e.j.total()-1))++
		if !send(e, ranks-1, conduits.Request, 1) {
			t.Error("no room for the first message")
		}
	})
}

// TestAttachLies: a rank that says its segment is larger than there is room for is
// to blame, and no access reaches beyond.
func TestAttachLies(t *testing.T) {
	eps := forms[3].open(t, 2, conduits.Config{MaxSegment: 4 * page})
	done := make(chan error)
	go func() { done <- eps[0].Attach(conduits.AttachConfig{Receiver: &sink{}}) }()
	awaitArmed(eps[0], 1)
	*(*uint64)(unsafe.Add(eps[1].j.ctl(1), ctlSegment)) = 5 * page
	atomic.AddUint32(eps[1].j.h32(hdrAttached), 1)
	eps[1].j.rouseAll()
	if err := peerFailed(<-done, 1, "20480 bytes"); err != nil {
		t.Error(err)
	}
}
