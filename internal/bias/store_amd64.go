//go:build amd64 && !race

package bias

const raceEnabled = false

// storeRelease stores v after everything before it in program order. On amd64
// stores are not reordered with earlier loads and stores (Intel SDM volume 3,
// 8.2.2), and the compiler keeps stores in order; atomic.Store would be a
// locked exchange, 5 ns.
func storeRelease(p *uint32, v uint32) { *p = v }
