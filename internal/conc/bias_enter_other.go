//go:build !amd64 || race

package conc

// Enter takes the lock if it is biased to the caller and that can be found out
// quickly: not here.
func Enter(*Lock) bool { return false }

// TryEnter is the first half of TryLock likewise.
func TryEnter(*Lock) bool { return false }
