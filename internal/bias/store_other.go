//go:build !amd64 && !race

package bias

import "sync/atomic"

const raceEnabled = false

func storeRelease(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
