package launch

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
)

func init() {
	bootstraps["shm"] = bootstrap{ranks: MaxSize, memory: func(c *Config) (Memory, error) { return newShmMemory(c.Size, c.attached()) }}
}

func newShmMemory(size int, segment uint64) (Memory, error) {
	m, err := shm.CreateJob(size, conduits.Config{MaxSegment: segment})
	if err != nil {
		return nil, err
	}
	return shmMemory{m}, nil
}

// shmMemory is the memory of a job whose ranks join conduit shm.
type shmMemory struct{ *shm.JobMemory }

// State translates the conduit's states.
func (m shmMemory) State(rank int) State {
	switch m.JobMemory.State(rank) {
	case shm.Attached:
		return Attached
	case shm.Finished:
		return Finished
	case shm.Failed:
		return Failed
	}
	return Starting
}
