//go:build !race

package shm

// storePlain is a store without a fence.
func storePlain(p *uint64, v uint64) { *p = v }
