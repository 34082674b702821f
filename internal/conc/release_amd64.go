//go:build !race

// Release32 and Release64 store words so that everything stored before is visible before
// them to readers that load them by package atomic.
//
// On amd64 such a store is a plain one: stores are not reordered with earlier loads
// and stores (Intel SDM volume 3, 8.2.2; AMD APM volume 2, 7.2), and the compiler
// keeps memory operations in order. The Store functions of package atomic are locked
// exchanges there, which wait for the line: on a bare ring 5 ns more a message, and
// three times as long for a flood of them. Elsewhere, and under the race detector,
// the functions are those of package atomic.

package conc

// PlainRelease says that a store does not wait for the line: a load that follows it may
// be done before it is visible.
const PlainRelease = true

// Release32 stores v in *p.
func Release32(p *uint32, v uint32) { *p = v }

// Release64 stores v in *p.
func Release64(p *uint64, v uint64) { *p = v }
