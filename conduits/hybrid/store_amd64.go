//go:build amd64 && !race

package hybrid

// storeRelease64 is a store that needs no more order than the processor gives.
// An atomic store would be a locked exchange, at every poll.
func storeRelease64(p *uint64, v uint64) { *p = v }
