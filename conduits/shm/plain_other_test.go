//go:build race || !amd64

package shm

import "sync/atomic"

func storePlain(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
