package conduits

import "github.com/argon-go/argon/internal/bulk"

// Copy is the built-in copy for memory of any length, in pieces between which the collector can
// stop the goroutine: the built-in is one call of assembly, in which a goroutine cannot be
// preempted, and a process whose collector waits for it answers no peer.
func Copy(dst, src []byte) int { return bulk.Copy(dst, src) }
