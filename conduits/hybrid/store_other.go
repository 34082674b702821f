//go:build !amd64 || race

package hybrid

import "sync/atomic"

// storeRelease64 is a store.
func storeRelease64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
