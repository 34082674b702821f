package udp

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// Registrar is nil: datagrams carry no keys of memory.
func (e *Endpoint) Registrar() segment.Registrar { return nil }

// Far opens this conduit as a part of another one.
func Far() conduits.Far {
	return conduits.Far{
		Local: func(n int, c conduits.Config) ([]conduits.FarEndpoint, error) {
			return conc.UpcastSlice[conduits.FarEndpoint](openLocal(n, c))
		},
		Join: func(j conduits.Job, c conduits.Config) (conduits.FarEndpoint, error) {
			return conc.UpcastOne[conduits.FarEndpoint](Open(j, c))
		},
	}
}
