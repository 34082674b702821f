package boot

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/env"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/segment"
)

// Config has a program's options of its job. The zero value is useful. Each field
// with a knob is overridden by its environment variable, so that a launcher
// has the last word; ARGON_VERBOSEENV=1 prints to standard error which variables
// were looked at and their effect.
type Config struct {
	// Name begins the errors about the job's start: the name of the runtime or of
	// the program; "" means "boot".
	Name string

	// Ranks is how many ranks to run inside this process when no launcher has given
	// it a place in a job; 0 means 1. Knob: ARGON_RANKS.
	Ranks int

	// Conduit is the transport's registered name; "" means "shm", or "hybrid" in a
	// job whose ranks meet at ARGON_RENDEZVOUS.
	// Knob: gasrun -conduit, ARGON_CONDUIT.
	Conduit string

	// MaxSegment is the largest segment that a rank of a job inside this process
	// attaches, bytes, rounded up to whole pages; 0 lets the conduit choose. Of a
	// launched job the launcher says it. Endpoint.Limits has what came of it.
	// Knob: gasrun -segment, ARGON_SEGMENT (suffixes K, M, G).
	MaxSegment uint64

	// Lanes is how many lanes a rank has, see conduits.Laned, 1 to conduits.MaxLanes; 0
	// means one for each processor of a rank. Of a launched job the launcher says it. Knob: gasrun -lanes, ARGON_LANES.
	Lanes int

	// Seed decides what a simulator leaves to chance; 0 means what ARGON_SIM says. Other conduits
	// do not look at it.
	Seed uint64

	// Stall is after how long a job inside this process, of which no rank gets on, says so to
	// Output: a time such as "30s", with ",end" behind it to fail the job then, or "0" for never. ""
	// means "30s". Knob: gasrun -stall, ARGON_STALL.
	Stall string

	// Output is where diagnosis goes (SIGQUIT, launcher remarks); nil means
	// standard error.
	Output io.Writer
}

// maxRanks is the largest number of ranks in one process.
const maxRanks = 1 << 24

// EnsureDefaults fills in zero fields, but MaxSegment, and returns c.
func (c *Config) EnsureDefaults() *Config {
	if c.Name == "" {
		c.Name = "boot"
	}
	if c.Ranks == 0 {
		c.Ranks = 1
	}
	if c.Conduit == "" {
		c.Conduit = "shm"
	}
	if c.Output == nil {
		c.Output = os.Stderr
	}
	return c
}

// name is Name, or "boot".
func (c *Config) name() string {
	if c.Name == "" {
		return "boot"
	}
	return c.Name
}

// Validate reports all faults of c together.
func (c *Config) Validate() error {
	var all []error
	if c.Ranks < 0 || c.Ranks > maxRanks {
		all = append(all, errs.BadArg("%s: Config.Ranks is %d; it must be 1 to %d (ARGON_RANKS)", c.name(), c.Ranks, maxRanks))
	}
	if c.MaxSegment > uint64(segment.MaxAttach) {
		all = append(all, errs.BadArg("%s: Config.MaxSegment is %d bytes; the most that addresses reach is %d (-segment, ARGON_SEGMENT)",
			c.name(), c.MaxSegment, uint64(segment.MaxAttach)))
	}
	if _, err := c.stall(); err != nil {
		all = append(all, fmt.Errorf("%s: Config.Stall (-stall, ARGON_STALL): %w", c.name(), err))
	}
	if c.Lanes < 0 || c.Lanes > conduits.MaxLanes {
		all = append(all, errs.BadArg("%s: Config.Lanes is %d; it must be 1 to %d (-lanes, ARGON_LANES)", c.name(), c.Lanes, conduits.MaxLanes))
	}
	return errors.Join(all...)
}

// stall is Stall as it is meant.
func (c *Config) stall() (where.Stall, error) {
	if c.Stall == "" {
		return where.DefaultStall, nil
	}
	return where.ParseStall(c.Stall)
}

// FromEnv overrides fields by variables that getenv looks up, and tells verbose, if it
// is not nil, about each. It reports all faults together.
func (c *Config) FromEnv(getenv func(key string) string, verbose io.Writer) error {
	r := env.Reader{Who: c.name(), Getenv: getenv, Verbose: verbose}
	r.Number(jobenv.Ranks, "number of ranks", maxRanks, &c.Ranks)
	r.Text(jobenv.Conduit, &c.Conduit)
	r.Size(jobenv.Segment, &c.MaxSegment)
	r.Number(jobenv.Lanes, "number of lanes", conduits.MaxLanes, &c.Lanes)
	r.Text(jobenv.Stall, &c.Stall)
	return r.Err()
}

// Settings are options of a program or a runtime, which the environment may change. A
// *Config is one.
type Settings interface {
	// FromEnv overrides fields by variables that getenv looks up, and tells verbose, if
	// it is not nil, about each. It reports all faults together.
	FromEnv(getenv func(key string) string, verbose io.Writer) error
	// Validate reports all faults together, as errors that match ErrBadArg.
	Validate() error
}

// Override has this process's environment override s, and validates what comes of it. It
// refuses variables ARGON_* that there are not. The error says, for Exit, whether the
// program or the environment is at fault. name is as in Config.
func Override(name string, s Settings) error {
	placed := settle()
	if placed.err != nil {
		return errs.Misstarted(placed.err)
	}
	var verbose io.Writer
	if os.Getenv("ARGON_VERBOSEENV") == "1" {
		if r := os.Getenv(jobenv.Rank); r == "" || r == "0" { // once is enough
			verbose = os.Stderr
			placed.remark(verbose)
			for _, line := range env.Foreign(os.Environ()) {
				fmt.Fprintln(verbose, "argon: env "+line)
			}
		}
	}
	wrong := s.Validate() != nil
	if err := errors.Join(env.Check(os.Environ(), "", false, name, ""), s.FromEnv(os.Getenv, verbose)); err != nil {
		return errs.Misstarted(err)
	}
	if err := s.Validate(); err != nil {
		if wrong { // without the environment
			return err
		}
		return errs.Misstarted(err)
	}
	return nil
}
