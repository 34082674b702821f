//go:build !amd64 || race

package shm

import "sync/atomic"

// plainStores: stores are sequentially consistent here, so a sender's later
// load of the parked word cannot overtake them.
const plainStores = false

// storeRelease64 makes everything stored before visible before v.
func storeRelease64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
