package am

import "github.com/argon-go/argon/segment"

// Pack64 splits a 64-bit value into two arguments, low half first.
func Pack64(v uint64) (lo, hi uint32) { return uint32(v), uint32(v >> 32) }

// Unpack64 joins what Pack64 split.
func Unpack64(lo, hi uint32) uint64 { return uint64(lo) | uint64(hi)<<32 }

// PackNLA splits an address into two arguments.
func PackNLA(a segment.NLA) (lo, hi uint32) { return Pack64(uint64(a)) }

// UnpackNLA joins what PackNLA split.
func UnpackNLA(lo, hi uint32) segment.NLA { return segment.NLA(Unpack64(lo, hi)) }

// Uint64 reads arguments i and i+1 as one value packed by Pack64.
func Uint64(args []uint32, i int) uint64 { return Unpack64(args[i], args[i+1]) }
