//go:build !amd64 || race

package conc

import "sync/atomic"

// PlainRelease says that a store does not wait for the line; here stores are sequentially
// consistent, so that no later load overtakes them.
const PlainRelease = false

// Release32 stores v in *p.
func Release32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

// Release64 stores v in *p.
func Release64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
