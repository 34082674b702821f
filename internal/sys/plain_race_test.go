//go:build race || !amd64

package sys

import "sync/atomic"

func storePlain(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
