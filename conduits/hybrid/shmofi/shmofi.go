//go:build ofi && cgo

package shmofi

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/hybrid"
	"github.com/argon-go/argon/conduits/ofi"
	"github.com/argon-go/argon/conduits/shm"
)

// Pair has the two parts of the conduit.
var Pair = hybrid.Pair{Name: Name, Near: shm.Near(), Far: ofi.Far()}

func init() { conduits.Register(Pair.Conduit()) }
