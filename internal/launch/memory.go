package launch

import (
	"os"
	"strconv"
)

// DefaultConduit is what ranks join if nobody says otherwise, and
// DefaultHostsConduit if hosts are named.
const (
	DefaultConduit      = "shm"
	DefaultHostsConduit = "hybrid"
)

// State is how far a rank has got, as the job's memory tells.
type State int

// The states.
const (
	Starting State = iota // nothing is known of it
	Joined                // has joined the job, but not attached yet
	Attached              // takes part in the job
	Finished              // has left the job in good order
	Failed                // the launcher, or the rank itself, noted its failure
)

// String names the state.
func (s State) String() string {
	switch s {
	case Starting, Joined:
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
	// File is inherited by the ranks; nil if there is none.
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

// An inheritance is what ranks find when they start: files, from the fourth on,
// and variables that tell of them and of what else they need.
type inheritance struct {
	files []*os.File // whoever put them here closes them
	vars  []string   // KEY=VALUE
}

// firstInherited is the number of the first file beside the standard ones.
const firstInherited = 3

// file lets ranks inherit f. Variable key gets its number, after prefix.
func (in *inheritance) file(f *os.File, key, prefix string) {
	in.set(key, prefix+strconv.Itoa(firstInherited+len(in.files)))
	in.files = append(in.files, f)
}

func (in *inheritance) set(key, value string) { in.vars = append(in.vars, key+"="+value) }

// A bequeather is a Memory that leaves ranks more than its file.
type bequeather interface {
	bequeath(in *inheritance)
}
