package sim

import (
	"io"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/segment"
)

// Name is the conduit's registered name.
const Name = "sim"

// Config has the options of a simulated job. The zero value is the
// extoll profile without faults, seed 0.
type Config struct {
	// Seed decides everything that is left to chance. The same program with the
	// same Config and the same number of ranks does the same, event by event.
	// Events of one time happen in the order in which they were caused
	// with seed 0, and in an order that the seed decides with any other.
	Seed uint64
	// Profile is the machine; nil means Extoll.
	Profile *Profile

	// MaxSegment is the largest segment of a rank, bytes; 0 means 64 MiB, or
	// less if the addresses of so many ranks do not suffice.
	MaxSegment uint64
	// Credits is how many messages of a class may be under way from one rank to
	// another; 0 means 64.
	Credits int
	// MaxMedium is the largest medium payload, bytes; 0 means 4096.
	MaxMedium int

	// Offload has cards and switches do barriers and multicasts of all ranks: endpoints are
	// a conduits.Card then. Without it layers do both by
	// messages.
	Offload bool

	// Faults are delays, crashes and partitions.
	Faults Faults

	// Limit ends a job that is still running after so much virtual time; 0 means
	// the most that there is, 26 days.
	Limit Time

	// Landed, if not nil, is called when an access of rank src with this cookie, or the data of
	// its long message, has changed dst's memory.
	Landed func(src, dst int, cookie uint64)

	// Trace, if not nil, gets a line for everything that happens (see package
	// comment). Flush it with Job.Flush.
	Trace io.Writer
	// Checkpoint, if not nil, is called with the number of steps and their
	// digest after every 1024 of them, wherever they happen.
	Checkpoint func(steps, digest uint64)
}

// Reserved addresses: all segments together.
const addressSpace = 32 << 40

func (c *Config) ensure(n int) error {
	if c.Profile == nil {
		p := Extoll()
		c.Profile = &p
	}
	if err := c.Profile.check(); err != nil {
		return err
	}
	most := uint64(addressSpace) / uint64(n) &^ (segment.PageSize - 1)
	switch {
	case c.MaxSegment == 0:
		room, err := conduits.FitSegment("sim", n, 0, nil, conduits.Addresses(true))
		if err != nil {
			return err
		}
		c.MaxSegment = min(jobenv.DefaultSegment, most, room)
	case c.MaxSegment > min(most, uint64(segment.MaxAttach)):
		return errs.Resource("sim: segments of %d bytes for %d ranks: the most is %d (-segment, ARGON_SEGMENT)", c.MaxSegment, n, min(most, uint64(segment.MaxAttach)))
	}
	net := c.Profile.Net
	net.EnsureDefaults(n)
	if c.Offload && net.Buffer > 0 {
		return errs.BadArg("sim: switches of a network with finite buffers (topology %v, flits=%d) have no barrier and multicast: not with offload=on", net.Topology, net.Buffer)
	}
	if c.Limit < 0 || c.Limit > maxTime {
		return errs.BadArg("sim: Config.Limit is %d ps; 0 to %d", c.Limit, maxTime)
	}
	if c.Credits == 0 {
		c.Credits = 64
	}
	if c.Credits < 1 || c.Credits > 1<<15 {
		return errs.BadArg("sim: Config.Credits is %d; 1 to %d", c.Credits, 1<<15)
	}
	if c.MaxMedium == 0 {
		c.MaxMedium = 4096
	}
	if c.MaxMedium < 512 || c.MaxMedium > 1<<20 {
		return errs.BadArg("sim: Config.MaxMedium is %d bytes; 512 to %d", c.MaxMedium, 1<<20)
	}
	return nil
}

// Flush writes out what is left of the trace and returns the first error of its
// writer.
func (j *Job) Flush() error { return j.trace.flush() }
