package boot

import (
	"context"
	"fmt"
	"os"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/hybrid/shmofi" // with the tag ofi
	_ "github.com/argon-go/argon/conduits/hybrid/shmudp" // the conduits that are always there
	_ "github.com/argon-go/argon/conduits/ofi"           // with the tag ofi
	_ "github.com/argon-go/argon/conduits/shm"
	_ "github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/traffic"
	_ "github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/env"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/segment"
)

// Main runs fn as Run does, without a context, and ends the process as Exit does.
func Main(cfg Config, fn func(ep conduits.Endpoint) error) {
	Exit(Run(context.Background(), cfg, fn))
}

// Run calls fn once for each rank that this process has in the job, each time on
// a goroutine of its own with the rank's endpoint, and returns when all of them are
// done: in a process that gasrun started, or another launcher as conduits.Launched
// says, that is one rank; otherwise the process is a job by itself, with Config.Ranks
// ranks. Run closes the endpoints, each when its fn has ended, and does no barrier
// before.
//
// A rank fails if its fn returns an error, panics, or ends its goroutine
// (runtime.Goexit, and with it testing's FailNow), and if the job has failed when it
// returns nil: then what other ranks wait for ends with a *PeerError, and Run returns a
// *RankError for the rank of this process that failed first, in preference one that
// did not fail because of another. Run cannot stop goroutines: it returns when every
// fn has.
//
// The end of ctx ends the job: that is a failure of a rank of this process, with
// [context.Cause] of ctx as its reason. What any rank waits for then, or later, ends with
// a *PeerError that names the rank and has the cause's text, and Run returns an error that
// matches the cause, such as [context.Canceled], when every fn has returned. In other
// processes of the job the cause is a text, which errors.Is does not know. If the job has
// failed before ctx ends, Run returns that failure. A job that is done before ctx ends
// returns nil.
//
// A job whose ctx ends before it begins calls no fn, also while ranks of other
// processes are missing. Those hear the cause only if this rank joins the job
// nevertheless, because they all come while its process still runs; else they wait for
// it until ARGON_JOIN_TIMEOUT, or until the launcher ends them.
//
// How far a simulated job has come when ctx ends is not decided by its seed. A deadline
// of ctx is in real time also there: a simulated job in which all ranks wait ends as a
// deadlock at once, unless the job has heard of ctx's end before.
//
// A process may call Run many times, also at once, except that gasrun's ranks
// may call it once.
func Run(ctx context.Context, cfg Config, fn func(ep conduits.Endpoint) error) error {
	if fn == nil {
		return errs.BadArg("%s: Run without a function", cfg.name())
	}
	if err := Override(cfg.name(), &cfg); err != nil {
		return err
	}
	return RunRanks(ctx, cfg, func(ep conduits.Endpoint) Rank { return &bare{ep, fn} })
}

// A Rank is one rank of a job to the runtime that runs it.
type Rank interface {
	// Run is the rank's part in the job, called on a goroutine of its own. A rank fails
	// as that of package boot's Run by its fn.
	Run() error
	// Close is called when Run has ended in whatever way, on its goroutine: after the
	// other ranks have been told if the rank has failed, and before its endpoint is
	// closed. killed: a simulator lets the rank die, so that Close may not wait.
	// An error fails the rank if the job has not failed.
	Close(killed bool) error
	// Diagnosis is a few words for the rank's line of what SIGQUIT prints, or "". It may
	// be called by any goroutine at any time.
	Diagnosis() string
	// Pending is how many operations the rank has begun that are not over. As Diagnosis.
	Pending() int
}

// An Ender is a Rank that may end its goroutine by runtime.Goexit with an error, which fails
// the rank as one that Run returns. Ended is the error, or nil if it has not ended so.
type Ender interface {
	Rank
	Ended() error
}

// A Teller is a Rank that is told when a report says where the ranks of the job wait: by any goroutine, once or more.
type Teller interface {
	Rank
	Told()
}

// bare is a rank of which nothing is known but its endpoint.
type bare struct {
	ep conduits.Endpoint
	fn func(ep conduits.Endpoint) error
}

func (b *bare) Run() error      { return b.fn(b.ep) }
func (*bare) Close(bool) error  { return nil }
func (*bare) Diagnosis() string { return "" }
func (*bare) Pending() int      { return 0 }

// RunRanks is Run for a runtime that keeps more of a rank than its endpoint: begin makes
// the ranks of this process, all before the first runs. The environment overrides
// nothing of cfg here: Override does that before.
func RunRanks(ctx context.Context, cfg Config, begin func(ep conduits.Endpoint) Rank) error {
	s := settle()
	if s.err != nil {
		return errs.Misstarted(s.err)
	}
	place, launched, err := conduits.Launched(os.Getenv)
	if err != nil {
		return errs.Misstarted(err)
	}
	if s.key != "" {
		place.Env = withKey(place.Env, s.key)
	}
	if launched && cfg.Conduit == "" {
		cfg.Conduit = place.Env(jobenv.Conduit)
	}
	cfg.EnsureDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	cd, err := conduits.Lookup(cfg.Conduit)
	if err != nil {
		if os.Getenv(jobenv.Conduit) == "" {
			return err
		}
		return errs.Misstarted(err)
	}
	if err := env.Check(os.Environ(), cd.Name, false, cfg.Name, ""); err != nil {
		return errs.Misstarted(err)
	}
	if err := env.CheckValues(os.Environ(), true, cfg.Name, ""); err != nil {
		return errs.Misstarted(err)
	}
	if launched {
		keepInherited(place)
	}
	if ctx.Err() != nil {
		return cfg.ended(ctx)
	}
	if launched {
		return runLaunched(ctx, &cfg, cd, place, begin)
	}
	// gasrun starts one process for a simulated job, and knows what it does.
	switch {
	case os.Getenv(jobenv.JobID) != "":
		jobenv.Take()
	case s.nested == "":
		remark, err := alone(cfg.Name, os.Getenv)
		if err != nil {
			return err
		}
		if remark != "" {
			fmt.Fprintln(cfg.Output, "argon: "+remark)
		}
	}
	if cd.Local == nil {
		return errs.NotSupported("%s: conduit %s cannot run ranks inside one process; start the program with gasrun", cfg.Name, cd.Name)
	}
	most := (cfg.MaxSegment + segment.PageSize - 1) &^ (segment.PageSize - 1)
	remark := func(line string) { fmt.Fprintln(cfg.Output, "argon: "+line) }
	lanes := cfg.Lanes
	if cd.Launch == nil || !cd.Launch.Single { // a simulator's ranks may attach more than there is, and are the same on any machine
		if lanes == 0 {
			lanes = conduits.DefaultLanes(cfg.Ranks)
		}
		room, err := conduits.FitLocal(cfg.Name, cfg.Ranks, most, remark)
		if err != nil {
			return errs.Misstarted(err)
		}
		if room < jobenv.DefaultSegment {
			most = room
		}
	}
	eps, err := cd.Local(cfg.Ranks, conduits.Config{MaxSegment: most, Lanes: lanes, Seed: cfg.Seed, Remark: remark})
	if err != nil {
		return errs.Misstarted(err)
	}
	if eps, err = recorded(&cfg, eps); err != nil {
		return err
	}
	return runRanks(ctx, &cfg, eps, begin)
}

// recorded is eps, the ranks of this process in a job, with their traffic recorded if that
// is asked for.
func recorded(cfg *Config, eps []conduits.Endpoint) ([]conduits.Endpoint, error) {
	file := os.Getenv(jobenv.Record)
	if file == "" {
		return eps, nil
	}
	byGasrun := os.Getenv(jobenv.JobID) != "" && (os.Getenv(jobenv.CtlFD) != "" || os.Getenv(jobenv.SimStatus) != "")
	if !byGasrun && len(eps) < eps[0].Size() {
		return nil, errs.Misstarted(errs.NotSupported("%s: %s=%q: ranks of several processes write to a file that gasrun begins: start them by gasrun -record", cfg.Name, jobenv.Record, file))
	}
	eps, err := traffic.Record(eps, file, byGasrun)
	if err != nil {
		return nil, errs.Misstarted(err)
	}
	return eps, nil
}

// ended is the error of a job that the end of ctx has ended.
func (c *Config) ended(ctx context.Context) error {
	return fmt.Errorf("%s: the context of the job has ended: %w", c.name(), context.Cause(ctx))
}
