// Package soaktest has no code but tests: every kind of resource of every layer is taken and
// given back many times, and what a process has of memory, descriptors, goroutines, threads
// and mappings is the same afterwards.
//
// By default it takes seconds. Longer, with so many rounds of each kind:
//
//	go test ./internal/lab/soaktest -soak 30000 -timeout 0
//
// In builds with the tag ofi, conduit ofi takes part.
package soaktest
