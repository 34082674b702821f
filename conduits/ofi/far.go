//go:build ofi && cgo

package ofi

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/internal/conc"
)

// Far opens this conduit as a part of another one.
func Far() conduits.Far {
	return conduits.Far{
		Local: func(n int, c conduits.Config) ([]conduits.FarEndpoint, error) {
			ts, err := Open(n, c)
			if err != nil {
				return nil, err
			}
			eps := make([]conduits.FarEndpoint, n)
			for i, t := range ts {
				eps[i] = farEndpoint{adapt.New(Name, t), t.(*transport)}
			}
			return eps, nil
		},
		Join: func(j conduits.Job, c conduits.Config) (conduits.FarEndpoint, error) {
			return conc.UpcastOne[conduits.FarEndpoint](openProcess(j, c))
		},
	}
}

// farEndpoint is a rank's endpoint, with what only this package knows of its job.
type farEndpoint struct {
	*adapt.Endpoint
	t *transport
}

var _ conduits.Adopter = (*transport)(nil)

// Adopt has mem be the segment. Of memory beyond it the other conduit tells the endpoint.
func (t *transport) Adopt(mem []byte) { t.segment = mem }

// AtEnd has f called when the job, whose ranks are all in this process, has ended without
// failing and no endpoint of the provider is left.
func (f farEndpoint) AtEnd(end func()) { f.t.atEnd = end }

// Board is the rendezvous, if the ranks are processes.
func (f farEndpoint) Board() conduits.Board { return f.t.Board() }
