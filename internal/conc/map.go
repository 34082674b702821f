package conc

import "github.com/puzpuzpuz/xsync/v3"

// A Map is a table of a process that many goroutines read and few change: a look-up writes no line and makes no
// interface. An empty one takes 3 KB; see docs/decisions/tables.md on what else tables are made of. K is, and holds,
// no interface: xsync hashes what a pointer in one points to.
type Map[K comparable, V any] = xsync.MapOf[K, V]

// NewMap makes an empty one.
func NewMap[K comparable, V any]() *Map[K, V] { return xsync.NewMapOf[K, V]() }
