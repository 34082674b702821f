package launch

import (
	"fmt"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// launched returns the part of the named conduit for launchers; ok is false if
// none is registered that a launcher can start jobs on.
func launched(name string) (l conduits.Launch, ok bool) {
	c, err := conduits.Lookup(name)
	if err != nil || c.Launch == nil {
		return l, false
	}
	return *c.Launch, true
}

// launch is the part of the job's conduit for launchers.
func (c *Config) launch() conduits.Launch {
	l, _ := launched(c.Conduit)
	return l
}

// memory is the configuration that the memory which ranks share has to have room for.
func (c *Config) memory() conduits.Config {
	lanes, _ := c.lanes() // Validate says what is wrong
	like := conduits.Config{MaxSegment: c.attached(), Lanes: lanes}
	if !c.Large { // else segments are not there
		like.Remark = c.remark
	}
	return like
}

// lanes is how many lanes the ranks are told to have; 0 if nothing says so.
func (c *Config) lanes() (int, error) {
	if s := rankEnv(c.Env, jobenv.Lanes); s != "" {
		return jobenv.ParseLanes(s)
	}
	return 0, nil
}

func checkConduit(name string) error {
	if _, ok := launched(name); ok {
		return nil
	}
	return errs.BadArg("launch: no conduit %q; known: %s (-conduit, ARGON_CONDUIT)", name, strings.Join(Conduits(), ", "))
}

// Conduits lists the conduits that jobs can be started with, sorted.
func Conduits() []string {
	var names []string
	for _, c := range conduits.Launchable() {
		names = append(names, c.Name)
	}
	return names
}

// MaxRanks is the largest number of ranks of a job on the conduit of that name;
// for one that is not known, what other jobs may have.
func MaxRanks(conduit string) int {
	if l, _ := launched(conduit); l.MaxRanks > 0 {
		return l.MaxRanks
	}
	return jobenv.MaxRanks
}

// single says that one process runs all ranks of the job.
func (c *Config) single() bool { return c.Memory == nil && c.launch().Single }

// name is the name of the job's process r in messages.
func (c *Config) name(r int) string {
	if c.single() {
		return "the simulated job"
	}
	return fmt.Sprintf("rank %d", r)
}

// processes is how many processes the job has.
func (c *Config) processes() int {
	if c.single() {
		return 1
	}
	return c.Size
}
