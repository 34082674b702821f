package gas

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/boot"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/env"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/profile"
	"github.com/argon-go/argon/segment"
)

// Config has the options of a program for Run. The zero value is useful. Each
// field with a knob is overridden by its environment variable, so that the
// environment has the last word; ARGON_VERBOSEENV=1 prints to standard
// error which variables were looked at and what came of them.
type Config struct {
	// Ranks is how many ranks to run inside this process when it was not
	// started by gasrun; 0 means 1. Knob: ARGON_RANKS. gasrun -n decides
	// otherwise.
	Ranks int

	// Conduit is the transport's registered name; "" means "shm", or "hybrid" in a
	// job whose ranks meet at ARGON_RENDEZVOUS.
	// Knob: gasrun -conduit, ARGON_CONDUIT.
	Conduit string

	// SegmentSize is the shared memory that each rank brings, bytes, rounded up
	// to whole pages. 0 means DefaultSegment, or what the conduit allows if
	// that is less; with Large DefaultLarge. Memory is not touched before it is
	// used.
	// Knob: gasrun -segment, ARGON_SEGMENT (suffixes K, M, G).
	SegmentSize uint64

	// Large has ranks keep their segments to themselves: nothing is attached when
	// the job starts, and peers reach what they use of a segment as they reach
	// registered memory, see Register. So a segment may be much larger than what
	// can be attached or pinned at once, up to 511 GiB. What all ranks use all the time
	// is reached faster in a segment that is attached. Equal on all ranks.
	// Knob: gasrun -segment-large, ARGON_SEGMENT_LARGE=1.
	Large bool

	// Pinnable is how much of a rank's registered memory (Register, Large) its
	// peers can reach without asking at any moment, bytes: firehose's budget M.
	// Each peer has an equal part of what PinLocal leaves. 0 means
	// 512 MiB, or what gives each peer 16 buckets if that is more. Equal on all
	// ranks. Knob: gasrun -pinnable, ARGON_PINNABLE.
	Pinnable uint64

	// PinLocal is the part of Pinnable that the rank itself may pin, among others
	// for a peer's single transfer that is larger than the peer's part, bytes. 0
	// means a quarter of Pinnable. Equal on all ranks.
	// Knob: gasrun -pin-local, ARGON_PIN_LOCAL.
	PinLocal uint64

	// PinBucket is how much is pinned at once, bytes: a power of two pages, at
	// most a gigabyte. 0 means DefaultBucket. Equal on all ranks.
	// Knob: gasrun -pin-bucket, ARGON_PIN_BUCKET.
	PinBucket uint64

	// PinLock has what is pinned of this rank's registered memory locked (mlock):
	// brought into memory and kept there, for which RLIMIT_MEMLOCK (ulimit -l) must
	// allow: Pinnable bytes for each rank of the process.
	// Knob: ARGON_PIN_LOCK=1.
	PinLock bool

	// PinHost, with PinLock, is how many bytes all ranks on this host whose jobs share it (the same user's, with the same
	// /dev/shm) have locked together at most; 0 means that each has Pinnable. What is pinned beyond that works unlocked.
	// The same for all jobs. Knob: ARGON_PIN_HOST.
	PinHost uint64

	// PinLeast is what a rank has of PinHost for itself; of the rest it is lent what it needs as long as others do not. 0
	// means 1/64. Knob: ARGON_PIN_LEAST.
	PinLeast uint64

	// Handlers are the program's own active message handlers, indices 128 to
	// 255, the same on every rank. Most programs use RegisterCall instead.
	Handlers []am.Entry

	// Lanes is how many lanes a rank has, 1 to MaxLanes, the Node that Run gives included:
	// see Node.Lane. 0 means one for each processor that the rank may use where the conduit has
	// lanes, else 1. Of a job that gasrun starts on conduit shm, or hybrid on one
	// host, gasrun decides, and fewer there are an error. Equal on all ranks. Knob: gasrun -lanes, ARGON_LANES.
	Lanes int

	// Tasks is how many tasks (RegisterTask) a rank has queued or running at most; 0 means
	// 16384. Those that wait take stack on top of each other, a few KiB each.
	Tasks int

	// Progress runs a goroutine per rank that answers peers while the rank
	// computes without calling this package. It costs latency when the rank
	// does call it. Knob: ARGON_PROGRESS=1.
	Progress bool

	// Workers is how many goroutines a rank has, at most MaxWorkers, that run tasks
	// (RegisterTask) and what is put off by Node.Defer while its own compute; 0 means that its
	// own do when they wait or poll. One of them answers peers, as with Progress, which adds
	// nothing then, unless all run tasks that compute. Tasks run side by side on them, so what tasks share must be guarded, and
	// tasks must not push to mailboxes. Knob: ARGON_WORKERS.
	Workers int

	// Debug turns on checks that cost time: every non-blocking transfer returns a
	// Handle that must be synchronized, so that one forgotten or used twice is
	// found on conduits that complete at once: a rank whose function returns with
	// one outstanding, or with an access region open, fails, and the error says where
	// in the program each was begun. A rank that enters a barrier while calls of its
	// (Func.Send, Func.Go) are not answered prints which to Output: barriers do not
	// wait for them. Knob: ARGON_DEBUG=1.
	Debug bool

	// Seed decides what conduit sim leaves to chance; 0 means what ARGON_SIM says. Other conduits
	// do not look at it.
	Seed uint64

	// Stall is after how long a job inside this process, of which no rank gets on, says so to
	// Output, and why: a time such as "30s", with ",end" behind it to fail the job then, or "0" for
	// never. "" means "30s". Knob: gasrun -stall, ARGON_STALL.
	Stall string

	// Profile has rank 0 print, when the job ends, where its time went by lines of the program: "1", or a list of
	// peers (by rank, too), sizes (by powers of two of bytes), labels (goroutines carry rank and call as labels of
	// runtime/pprof), json=FILE, and traffic or traffic=FILE (how much each rank has sent to each other one and accessed
	// of it; alone it costs nothing but the gathering at the end). See docs/seeing.md. Equal on all ranks.
	// Knob: gasrun -profile, ARGON_PROFILE.
	Profile string

	// Trace is a file that gets what all ranks do, message by message, for Perfetto; that of further jobs of the process
	// gets .2, .3, .... "" means none. See docs/seeing.md. Equal on all ranks. Processes that gasrun
	// starts take it from gasrun alone. Knob: gasrun -trace, ARGON_TRACE.
	Trace string

	// TraceLast, a time such as "5s", has the trace be what each rank has done in so long a time until it last did anything, up to 4 MiB of
	// each rank. It is written when the job fails, or a report says where ranks wait, and Trace "" means argon-PID.pftrace
	// then. "" means that all is written at once. Equal on all ranks, and of gasrun as Trace is. Knob: gasrun -trace-last, ARGON_TRACE_LAST.
	TraceLast string

	// Output is where diagnosis goes (SIGQUIT, launcher remarks); nil means
	// standard error.
	Output io.Writer
}

// MaxLanes is the largest Config.Lanes.
const MaxLanes = conduits.MaxLanes

// MaxWorkers is the largest Config.Workers.
const MaxWorkers = 1 << 10

// Defaults, bytes.
const (
	DefaultSegment = jobenv.DefaultSegment // Config.SegmentSize
	DefaultLarge   = 1 << 30               // Config.SegmentSize with Config.Large
	DefaultBucket  = 64 << 10              // Config.PinBucket
)

// maxBucket is the largest Config.PinBucket.
const maxBucket = segment.GATSpan

// job is the part of c that package boot knows.
func (c *Config) job() boot.Config {
	return boot.Config{Name: "gas", Ranks: c.Ranks, Conduit: c.Conduit, MaxSegment: c.SegmentSize, Lanes: c.Lanes, Seed: c.Seed, Stall: c.Stall, Output: c.Output}
}

// EnsureDefaults fills in zero fields and returns c.
func (c *Config) EnsureDefaults() *Config {
	job := c.job()
	job.EnsureDefaults()
	c.Ranks, c.Conduit, c.Lanes, c.Output = job.Ranks, job.Conduit, job.Lanes, job.Output
	if c.Tasks == 0 {
		c.Tasks = 1 << 14
	}
	return c
}

// Validate reports all faults of c together.
func (c *Config) Validate() error {
	var all []error
	job := c.job()
	job.MaxSegment = 0 // by its name here
	all = append(all, job.Validate())
	if c.SegmentSize > uint64(segment.MaxAttach) {
		all = append(all, errs.BadArg("gas: Config.SegmentSize is %d bytes; the most that addresses reach is %d (-segment, ARGON_SEGMENT)",
			c.SegmentSize, uint64(segment.MaxAttach)))
	}
	if c.Tasks < 0 {
		all = append(all, errs.BadArg("gas: Config.Tasks is %d; it must not be negative", c.Tasks))
	}
	if c.Workers < 0 || c.Workers > MaxWorkers {
		all = append(all, errs.BadArg("gas: Config.Workers (ARGON_WORKERS) is %d; it must be 0 to %d", c.Workers, MaxWorkers))
	}
	if _, err := profile.ParseOptions(c.Profile); err != nil {
		all = append(all, err)
	}
	if d, err := time.ParseDuration(c.TraceLast); c.TraceLast != "" && (err != nil || d <= 0) {
		all = append(all, errs.BadArg("gas: Config.TraceLast is %q; it must be a time such as 5s (-trace-last, ARGON_TRACE_LAST)", c.TraceLast))
	}
	all = append(all, c.validatePins())
	seen := map[am.HandlerID]string{}
	for _, h := range c.Handlers {
		if h.Index < firstClient {
			all = append(all, errs.BadArg("gas: Config.Handlers: %q has index %d; programs own %d to 255", h.Name, h.Index, firstClient))
		}
		if other, dup := seen[h.Index]; dup {
			all = append(all, errs.BadArg("gas: Config.Handlers: %q and %q both have index %d", other, h.Name, h.Index))
		}
		seen[h.Index] = h.Name
		if h.Fn == nil {
			all = append(all, errs.BadArg("gas: Config.Handlers: %q (index %d) has no function", h.Name, h.Index))
		}
	}
	return errors.Join(all...)
}

// validatePins is Validate for what has to do with registered memory.
func (c *Config) validatePins() error {
	var all []error
	if b := c.PinBucket; b != 0 && (b < segment.PageSize || b > maxBucket || b&(b-1) != 0) {
		all = append(all, errs.BadArg("gas: Config.PinBucket is %d bytes; it must be a power of two, a page of %d to %d (-pin-bucket, ARGON_PIN_BUCKET)",
			b, segment.PageSize, maxBucket))
	}
	if c.Pinnable > uint64(segment.MaxAttach) {
		all = append(all, errs.BadArg("gas: Config.Pinnable is %d bytes; the most that addresses reach is %d (-pinnable, ARGON_PINNABLE)",
			c.Pinnable, uint64(segment.MaxAttach)))
	}
	if most := uint64(segment.MaxAttach); c.PinLocal > most {
		all = append(all, errs.BadArg("gas: Config.PinLocal is %d bytes; the most that addresses reach is %d (-pin-local, ARGON_PIN_LOCAL)", c.PinLocal, most))
	} else if c.Pinnable != 0 && c.PinLocal > c.Pinnable {
		all = append(all, errs.BadArg("gas: Config.PinLocal is %d bytes, of the %d of Config.Pinnable (-pin-local, ARGON_PIN_LOCAL, -pinnable, ARGON_PINNABLE)",
			c.PinLocal, c.Pinnable))
	}
	if c.PinLeast > c.PinHost || c.PinHost != 0 && !c.PinLock {
		all = append(all, errs.BadArg("gas: Config.PinHost is %d bytes and Config.PinLeast %d, which is a part of it, with PinLock: %t (ARGON_PIN_HOST, ARGON_PIN_LEAST, ARGON_PIN_LOCK)",
			c.PinHost, c.PinLeast, c.PinLock))
	}
	return errors.Join(all...)
}

// locks is how pinned memory is locked.
func (c *Config) locks() *segment.Locks {
	if !c.PinLock {
		return nil
	}
	least := c.PinLeast
	if least == 0 {
		least = c.PinHost / 64
	}
	return &segment.Locks{Host: c.PinHost, Least: least, Table: fmt.Sprintf("/dev/shm/argon-locked-%d", os.Getuid())}
}

// firstClient is the first handler index that programs may use.
const firstClient = 128

// overridden is a Config as boot.Override sees it.
type overridden struct{ *Config }

// FromEnv overrides fields by variables that getenv looks up, and tells verbose, if it
// is not nil, about each. It reports all faults together.
func (c overridden) FromEnv(getenv func(string) string, verbose io.Writer) error {
	job := c.job()
	err := job.FromEnv(getenv, verbose)
	c.Ranks, c.Conduit, c.SegmentSize, c.Lanes, c.Stall = job.Ranks, job.Conduit, job.MaxSegment, job.Lanes, job.Stall
	r := env.Reader{Who: "gas", Getenv: getenv, Verbose: verbose}
	r.Bool(jobenv.Large, &c.Large)
	r.Size(jobenv.Pinnable, &c.Pinnable)
	r.Size(jobenv.PinLocal, &c.PinLocal)
	r.Size(jobenv.PinBucket, &c.PinBucket)
	r.Bool(jobenv.PinLock, &c.PinLock)
	r.Size(jobenv.PinHost, &c.PinHost)
	r.Size(jobenv.PinLeast, &c.PinLeast)
	r.Bool("ARGON_PROGRESS", &c.Progress)
	r.Number("ARGON_WORKERS", "number of goroutines", MaxWorkers, &c.Workers)
	r.Bool("ARGON_DEBUG", &c.Debug)
	r.Text(jobenv.Profile, &c.Profile)
	r.Text(jobenv.Trace, &c.Trace)
	r.Text(jobenv.TraceLast, &c.TraceLast)
	return errors.Join(err, r.Err())
}
