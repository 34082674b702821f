//go:build amd64 && !race

package barrier

import "sync/atomic"

// storeRelease stores v so that whatever was stored before is visible before
// it. On amd64 every store does that (Intel SDM volume 3, 8.2.2; AMD APM volume
// 2, 7.2), and the compiler keeps memory operations in order; Store of package
// atomic is a locked exchange, which waits for the line.
func storeRelease(w *atomic.Uint64, v uint64) { *plain(w) = v }
