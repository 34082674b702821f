package launch

import (
	"os"
)

// DefaultConduit is what ranks join if nobody says otherwise.
const DefaultConduit = "shm"

// State is how far a rank has got, as the job's memory tells.
type State int

// The states.
const (
	Starting State = iota // has not attached yet
	Attached              // takes part in the job
	Finished              // has left the job in good order
	Failed                // the launcher, or the rank itself, noted its failure
)

// String names the state.
func (s State) String() string {
	switch s {
	case Starting:
		return "not attached"
	case Attached:
		return "attached"
	case Finished:
		return "finished"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// Memory is the launcher's side of what the ranks of a job share.
type Memory interface {
	// File is inherited by the ranks.
	File() *os.File
	// State says how far a rank has got.
	State(rank int) State
	// Fail notes that a rank has died, which ends with an error what others
	// await from it. A rank fails once; later notes change nothing.
	Fail(rank, status int, cause string)
	// Failure is the first failure that was noted, by the launcher or by a rank
	// itself.
	Failure() (rank, status int, cause string, ok bool)
	// Close gives the memory back as far as the launcher is concerned.
	Close() error
}
