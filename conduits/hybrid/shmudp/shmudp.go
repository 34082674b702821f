// Package shmudp registers the conduit hybrid, which is made of shared memory inside
// a host (package shm) and UDP between hosts (package udp): programs import it for
// that.
package shmudp

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/hybrid"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/udp"
)

// Pair has the two parts of the conduit.
var Pair = hybrid.Pair{Name: "hybrid", Near: shm.Near(), Far: udp.Far()}

func init() { conduits.Register(Pair.Conduit()) }
