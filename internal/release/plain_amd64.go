//go:build !race

package release

// Plain says that a store does not wait for the line: a load that follows it may
// be done before it is visible.
const Plain = true

// Store32 stores v in *p.
func Store32(p *uint32, v uint32) { *p = v }

// Store64 stores v in *p.
func Store64(p *uint64, v uint64) { *p = v }
