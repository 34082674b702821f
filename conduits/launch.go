package conduits

import (
	"os"
	"sort"
)

// Launch lists what a launcher prepares for a job whose ranks are processes. The
// zero value is for ranks that need nothing but their places (see Launched): they
// have left in good order if they end with status 0.
type Launch struct {
	// MaxRanks is the most ranks of a job; 0 means 65,536.
	MaxRanks int
	// Rendezvous says that ranks find each other at a service which the launcher runs.
	// Job.Env has ARGON_RENDEZVOUS, ARGON_HOST, ARGON_JOB_KEY_FILE and, if that was
	// asked for, ARGON_IFACE then, and a job may span hosts.
	Rendezvous bool
	// Memory, if not nil, makes what the ranks of one host share: n of them, which is
	// the whole job without Rendezvous. It is called in the launcher, or on another
	// host in what takes its place there. Of c only MaxSegment, Lanes and Remark are set. Ranks inherit
	// the file by ARGON_SEGFD.
	Memory func(n int, c Config) (JobMemory, error)
	// Single says that one process runs all ranks, by Local. It writes a record
	// as package conduits/sim does (sim.Record) to the file that ARGON_SIM_STATUS names.
	// Rendezvous and Memory are then ignored.
	Single bool
}

// JobMemory is a launcher's side of what the ranks of a job share.
type JobMemory interface {
	// File is inherited by the ranks; nil if there is none.
	File() *os.File
	// State says how far a rank has got.
	State(rank int) RankState
	// Fail notes that a rank has died, which ends with an error what others
	// await from it. A rank fails once; later notes change nothing.
	Fail(rank, status int, cause string)
	// Failure is the first failure that was noted, by the launcher or by a rank
	// itself.
	Failure() (rank, status int, cause string, ok bool)
	// Close gives the memory back as far as the launcher is concerned.
	Close() error
}

// RankState is how far a rank has got, as the job's memory tells.
type RankState int

// Values of RankState, in order.
const (
	RankStarting RankState = iota // nothing is known of it
	RankJoined                    // has joined the job, but not attached yet
	RankAttached                  // takes part in the job
	RankFinished                  // has left the job in good order
	RankFailed                    // the launcher, or the rank itself, noted its failure
)

// String names the state.
func (s RankState) String() string {
	switch s {
	case RankStarting, RankJoined:
		return "not attached"
	case RankAttached:
		return "attached"
	case RankFinished:
		return "finished"
	case RankFailed:
		return "failed"
	}
	return "unknown"
}

// Launchable lists the registered conduits that a launcher can start jobs on, in
// order of their names.
func Launchable() []Conduit {
	regMu.Lock()
	defer regMu.Unlock()
	var all []Conduit
	for _, c := range reg {
		if c.Launch != nil && c.Missing == "" {
			all = append(all, c)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}
