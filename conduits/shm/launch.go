package shm

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
)

// LaunchMemory makes the memory of n ranks as a launcher sees it, see
// conduits.Launch and CreateJob.
func LaunchMemory(n int, c conduits.Config) (conduits.JobMemory, error) {
	m, err := CreateJob(n, c)
	if err != nil {
		return nil, err
	}
	return launchMemory{m}, nil
}

// launchMemory has the states that a launcher knows.
type launchMemory struct{ *JobMemory }

// State translates.
func (m launchMemory) State(rank int) conduits.RankState {
	switch m.JobMemory.State(rank) {
	case Attached:
		return conduits.RankAttached
	case Finished:
		return conduits.RankFinished
	case Failed:
		return conduits.RankFailed
	}
	return conduits.RankStarting
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
