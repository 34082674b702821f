package firehose_test

import (
	"testing"
	"unsafe"

	"github.com/argon-go/argon/internal/sys"
)

// reserve maps memory, which Cache.Unmap unmaps.
func reserve(t *testing.T, n int) []byte {
	p, err := sys.Reserve(int64(n))
	if err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice((*byte)(p), n)
}
