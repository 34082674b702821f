//go:build amd64 && !race

package conc

// Enter takes the lock if it is biased to the caller, as the first half of Lock
// and by one call instead of three: write
//
//	if !bias.Enter(&l) {
//		l.Lock()
//	}
//
//go:noescape
func Enter(l *Lock) bool

// TryEnter is the first half of TryLock likewise.
//
//go:noescape
func TryEnter(l *Lock) bool
