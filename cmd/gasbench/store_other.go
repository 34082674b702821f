//go:build !amd64 || race

package main

import "sync/atomic"

// store sets a flag.
func store(flag *uint64, v uint64) { atomic.StoreUint64(flag, v) }
