package shm

import "github.com/argon-go/argon/conduits"

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
