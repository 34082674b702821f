package shm

import (
	"testing"

	"github.com/argon-go/argon/conduits"
)

// TestLandingBufferNearlyFull fills a landing buffer to its last line, message
// after message, so that every place of its end is met with too little room before
// what the receiver has not read: there a payload must be refused, or it lies over
// one that is under way. The model compares every payload that arrives.
func TestLandingBufferNearlyFull(t *testing.T) {
	b := newMailbox(t, forms[1], 2, conduits.Config{Credits: 4, MaxMedium: 512})
	b.fail = t.Fatalf
	e := b.eps[0]
	r := e.ring(1, conduits.Request)
	size := r.landSize
	most := e.Limits().MaxMedium / lineBytes
	if most < 4 || size > 64<<10 {
		t.Fatalf("a landing buffer of %d bytes for payloads of %d lines: the sweep below is not made for it", size, most)
	}
	waits := 0 // payloads refused for what the end wastes alone
	put := func(n int) bool {
		if landing(0, n*lineBytes) == 0 {
			return false // goes in the cell
		}
		left := size - r.written&(size-1)
		free := size - (r.written - r.landRead)
		bytes := uint64(n * lineBytes)
		tight := bytes > left && free >= bytes && free < left+bytes
		if b.reserve(0, 1, conduits.Request, 0, n*lineBytes, false, 0) == nil {
			if tight {
				waits++
			}
			return false
		}
		b.settle(len(b.pending)-1, n*lineBytes)
		return true
	}
	for big := 2; big <= most; big++ {
		for small := 2; small <= most; small++ {
			for i := range 60 {
				for put(big) {
				}
				put(small)
				put(2 + i%(most-1))
				// As many as the receiver runs at once, from one to all.
				b.eps[1].Poll()
				if i%3 == 0 {
					b.eps[1].Poll()
				}
			}
		}
	}
	for b.eps[1].Poll() > 0 {
	}
	if waits < 10 {
		t.Errorf("%d payloads were refused for what the end of the buffer wastes: the test is not about it any more", waits)
	}
}
