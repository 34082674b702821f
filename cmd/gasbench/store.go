package main

import "github.com/argon-go/argon/internal/conc"

// store sets a flag, as a C program would: the reference must not pay for a locked
// exchange.
//
//go:noinline
func store(flag *uint64, v uint64) { conc.Release64(flag, v) }
