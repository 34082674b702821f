package engine_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// TestSmallGets: gets of some bytes share the datagrams of their answers, those of
// the segment as those of registered memory, and an answer that is lost brings the
// same when it is sent again, whatever the memory holds by then.
func TestSmallGets(t *testing.T) {
	const n = 50 // a window holds their requests
	a, b, mem := pair(t, nil)
	for i := range n {
		binary.NativeEndian.PutUint64(mem.b[8*i:], uint64(i)+1)
	}
	got := make([]byte, 8*n)
	for i := range n {
		if _, err := a.Get(got[8*i:8*i+8], 1, at(8*i), conduits.RemoteDone, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Microsecond
	buf := make([]byte, 2000)
	for _, m, ok := a.Next(now, buf); ok; _, m, ok = a.Next(now, buf) {
		b.Receive(now, 0, buf[:m])
	}
	answers := 0
	now += time.Millisecond // nothing is held any longer
	b.Advance(now)
	for _, _, ok := b.Next(now, buf); ok; _, _, ok = b.Next(now, buf) {
		answers++ // and lost
	}
	if answers == 0 || answers > n/10 {
		t.Errorf("%d gets are answered by %d datagrams", n, answers)
	}
	clear(mem.b)
	done := map[uint64]int{}
	for range 200 {
		now += 10 * time.Millisecond
		carry(now, a, b)
		for c, ok := a.NextCompletion(); ok; c, ok = a.NextCompletion() {
			if done[c.Cookie]++; c.Err != nil {
				t.Error(c.Err)
			}
		}
	}
	for i := range n {
		if v := binary.NativeEndian.Uint64(got[8*i:]); done[uint64(i)] != 1 || v != uint64(i)+1 {
			t.Fatalf("get %d has ended %d times with %d", i, done[uint64(i)], v)
		}
	}
}

// TestSmallGetsRefused: the rights are checked when a get is answered.
func TestSmallGetsRefused(t *testing.T) {
	a, b, mem := pair(t, nil)
	mem.rights = segment.RightWrite
	got := make([]byte, 8)
	for i := range 10 {
		if _, err := a.Get(got, 1, at(8*i), conduits.RemoteDone, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	carry(time.Microsecond, a, b)
	carry(time.Millisecond, a, b)
	refused := 0
	for c, ok := a.NextCompletion(); ok; c, ok = a.NextCompletion() {
		if refused++; !errors.Is(c.Err, segment.ErrFault) {
			t.Errorf("%+v", c)
		}
	}
	if refused != 10 {
		t.Errorf("%d of 10 are refused", refused)
	}
}
