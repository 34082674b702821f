//go:build !race

package sys

// storePlain is a store without a fence.
func storePlain(p *uint32, v uint32) { *p = v }
