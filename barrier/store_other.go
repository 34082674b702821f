//go:build !amd64 || race

package barrier

import "sync/atomic"

// storeRelease stores v so that whatever was stored before is visible before it.
func storeRelease(w *atomic.Uint64, v uint64) { w.Store(v) }
