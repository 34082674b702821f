package shm

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
)

// LaunchMemory is CreateJob as a launcher wants it.
func LaunchMemory(n int, c conduits.Config) (conduits.JobMemory, error) {
	return conc.UpcastOne[conduits.JobMemory](CreateJob(n, c))
}

// Near opens this conduit as a part of another one.
func Near() conduits.Near {
	return conduits.Near{
		Local: func(n int, p conduits.Part, c conduits.Config) ([]conduits.NearEndpoint, error) {
			return conc.UpcastSlice[conduits.NearEndpoint](LocalPart(n, p, c))
		},
		Join: func(fd, rank, n int, p conduits.Part) (conduits.NearEndpoint, error) {
			return conc.UpcastOne[conduits.NearEndpoint](JoinPart(fd, rank, n, p))
		},
		Memory: LaunchMemory,
	}
}
