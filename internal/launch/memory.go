package launch

import (
	"os"
	"strconv"

	"github.com/argon-go/argon/conduits"
)

// DefaultConduit is the conduit of a job for which none is named, and
// DefaultHostsConduit is that of one on named hosts.
const (
	DefaultConduit      = "shm"
	DefaultHostsConduit = "hybrid"
)

// State is how far a rank has got, as the job's memory tells.
type State = conduits.RankState

// The states.
const (
	Starting = conduits.RankStarting
	Joined   = conduits.RankJoined
	Attached = conduits.RankAttached
	Finished = conduits.RankFinished
	Failed   = conduits.RankFailed
)

// Memory is the launcher's side of what the ranks of a job share.
type Memory = conduits.JobMemory

// noMemory is for ranks that share nothing with their launcher: they count as
// finished, and have failed by what their processes end with.
type noMemory struct{}

func (noMemory) File() *os.File        { return nil }
func (noMemory) State(int) State       { return Finished }
func (noMemory) Fail(int, int, string) {}
func (noMemory) Close() error          { return nil }

func (noMemory) Failure() (rank, status int, cause string, ok bool) { return 0, 0, "", false }

// An inheritance has the files that ranks find when they start, from the fourth on,
// and the variables that hold their numbers and other settings.
type inheritance struct {
	files []*os.File // closed where they were opened
	keys  []string   // of the variable that has each one's number
	vars  []string   // KEY=VALUE
}

// firstInherited is the number of the first file beside the standard ones.
const firstInherited = 3

// file lets ranks inherit f. Variable key gets its number, after prefix.
func (in *inheritance) file(f *os.File, key, prefix string) {
	in.vars = append(in.vars, key+"="+prefix+strconv.Itoa(firstInherited+len(in.files)))
	in.files, in.keys = append(in.files, f), append(in.keys, key)
}
