//go:build !race

package main

// store sets a flag. Stores are not reordered with earlier memory accesses on
// amd64 (Intel SDM volume 3, 8.2.2), and an atomic store would be a locked
// exchange, which the reference must not pay for.
//
//go:noinline
func store(flag *uint64, v uint64) { *flag = v }
