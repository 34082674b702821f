package launch

import (
	"os"
	"strconv"
	"sync"

	"github.com/argon-go/argon/conduits"
)

// DefaultConduit is what ranks join unless another is named, and
// DefaultHostsConduit if hosts are named.
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
// finished unless they have failed, by what their processes end with.
type noMemory struct {
	mu     sync.Mutex
	failed bool
	rank   int
	status int
	cause  string
}

func (*noMemory) File() *os.File { return nil }

func (m *noMemory) State(rank int) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed && rank == m.rank {
		return Failed
	}
	return Finished
}

func (m *noMemory) Fail(rank, status int, cause string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.failed {
		m.failed, m.rank, m.status, m.cause = true, rank, status, cause
	}
}

func (m *noMemory) Failure() (rank, status int, cause string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rank, m.status, m.cause, m.failed
}

func (*noMemory) Close() error { return nil }

// An inheritance is what ranks find when they start: files, from the fourth on,
// and variables that tell of them and of what else they need.
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
