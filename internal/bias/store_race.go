//go:build race

package bias

import "sync/atomic"

const raceEnabled = true

func storeRelease(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
