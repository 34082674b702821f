package launch

import (
	"sort"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// bootstrap says how the launcher prepares a job for a conduit.
type bootstrap struct {
	ranks   int  // most ranks of a job
	single  bool // one process runs all ranks
	network bool // ranks find each other at a rendezvous
	shared  bool // and those of one host share memory
	memory  func(c *Config) (Memory, error)
}

// bootstraps by conduit.
var bootstraps = map[string]bootstrap{}

func checkConduit(name string) error {
	if _, ok := bootstraps[name]; ok {
		return nil
	}
	return errs.BadArg("launch: no conduit %q; known: %s (-conduit, ARGON_CONDUIT)", name, strings.Join(Conduits(), ", "))
}

// Conduits lists the conduits that jobs can be started with, sorted.
func Conduits() []string {
	names := make([]string, 0, len(bootstraps))
	for n := range bootstraps {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// MaxRanks is the largest number of ranks of a job on the conduit of that name;
// for one that is not known, what other jobs may have.
func MaxRanks(conduit string) int {
	if b, ok := bootstraps[conduit]; ok {
		return b.ranks
	}
	return MaxSize
}

// single says that one process runs all ranks of the job.
func (c *Config) single() bool { return c.Memory == nil && bootstraps[c.Conduit].single }

// processes is how many processes the job has.
func (c *Config) processes() int {
	if c.single() {
		return 1
	}
	return c.Size
}
