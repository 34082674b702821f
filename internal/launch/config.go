package launch

import (
	"cmp"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/env"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/monitor"
	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/ifaddr"
	"github.com/argon-go/argon/internal/sys/place"
)

// EnvDeputy is set for a host's deputy, see func Deputy.
const EnvDeputy = "ARGON_DEPUTY"

// ownEnv are the variables that the launcher alone sets.
var ownEnv = []string{
	jobenv.Rank, jobenv.Size, jobenv.LocalRank, jobenv.LocalSize, jobenv.JobID, jobenv.Conduit, jobenv.SegFD, jobenv.CtlFD, jobenv.JobSocket, jobenv.TakenBy, jobenv.Segment, jobenv.Large, jobenv.Freeze, jobenv.Ranks, jobenv.SimStatus,
	jobenv.Rendezvous, jobenv.RendezvousServe, jobenv.Host, jobenv.Iface, EnvDeputy, jobenv.JobKey, jobenv.JobKeyFile,
	jobenv.Bind, jobenv.Sharers, jobenv.Viewed,
}

// Config describes a job. The zero value of each field means its default.
type Config struct {
	// Size is the number of ranks; 0 means 1, or all slots of Hosts. At most
	// MaxRanks of the conduit. On conduit "sim" one process runs them all.
	Size int
	// Program is the executable; a name without slash is looked up in PATH.
	// Resolve turns packages into executables. Required.
	Program string
	// Args follow the program's name.
	Args []string
	// Conduit that ranks join; "" means "shm", with Hosts "hybrid".
	Conduit string
	// Segment is the largest segment per rank in bytes; 0 means what
	// ARGON_SEGMENT says, or the conduit's default.
	Segment uint64
	// Large has the ranks keep their segments to themselves, of Segment bytes
	// each, and peers reach what they use of them; so the job's memory has no
	// part in Segment. False means what ARGON_SEGMENT_LARGE says.
	Large bool
	// Env is added to the environment of the ranks, as KEY=VALUE. Ranks inherit
	// everything from the launcher except the variables that the launcher sets.
	Env []string
	// Dir is the ranks' working directory; "" means the launcher's.
	Dir string

	// Stdin goes to rank 0; nil means none. Other ranks read /dev/null. Run
	// closes it once rank 0 cannot read any more of it.
	Stdin *os.File
	// Stdout and Stderr receive the output of all ranks; nil means none. They
	// are written to by one goroutine at a time.
	Stdout, Stderr io.Writer
	// Log receives the launcher's own lines; nil means Stderr.
	Log io.Writer
	// Label puts "[rank] " before every line.
	Label bool
	// OutputDir gets two files per rank (such as rank-03.out and rank-03.err)
	// with its output, unchanged; "" means none. It is made if need be.
	OutputDir string

	// Bind says on which processors ranks run; "" means what ARGON_BIND says, or
	// BindSpread, and BindNone for a simulation.
	Bind Bind
	// Timeout ends the job with jobenv.StatusTimeout after asking each rank where it
	// waits; 0 means never.
	Timeout time.Duration
	// Stall is what is done when no rank has got on for a while; the zero value means what
	// ARGON_STALL says, or that it is told of after 30 s. With Quiet it is not told of.
	Stall where.Stall
	// Feed gets views of the job for its viewers; nil means none.
	Feed *monitor.Feed
	// Trace is the file, which is there, to which ranks write what they do (jobenv.Trace); those of other machines write to files there, and
	// it gets these. "" means none.
	Trace string
	// Last says that ranks write to it what they have done last, when they are told that a report says where they
	// wait (jobenv.TraceLast).
	Last bool
	// Stacks is the file that gets the goroutines' stacks, and what else ranks write to standard error in answer to SIGQUIT or Timeout; ""
	// means that they are output as other lines are.
	Stacks string
	// KillGrace is the time between SIGTERM (or a forwarded signal) and
	// SIGKILL; 0 means 5 s. Negative means none.
	KillGrace time.Duration
	// AnswerGrace is the time ranks have to say where they wait; 0 means DefaultAnswerGrace.
	AnswerGrace time.Duration
	// Freeze lists ranks that stop before they run, for a debugger.
	Freeze []int
	// Verbose logs what is done; Quiet leaves out all but errors.
	Verbose, Quiet bool

	// Signals to act on: SIGINT, SIGTERM and SIGHUP ask each rank where it waits,
	// unless Quiet, are forwarded and end the job, a second one at once; SIGQUIT asks and
	// ends the job; SIGUSR1 asks; others are forwarded. nil means none.
	Signals <-chan os.Signal
	// Started is called once when all ranks have been started, with their
	// process ids, on a goroutine of its own, whose end Run awaits. nil means
	// that nothing is called.
	Started func(pids []int)
	// Ended is called once when a job that has begun is over, with what Run will return, before other hosts send what their ranks
	// have written to Trace. nil means that nothing is called.
	Ended func(Result, error)
	// Exclusive says that the launcher's process has no children except the
	// ranks' own, so that every other child is something that a rank has left
	// behind. Without it such children are known by ARGON_JOBID in their
	// environment or by their process group.
	Exclusive bool
	// Guard is an executable that becomes the job's guard process, since it calls func
	// Helper first; "" means that there is none, and that processes which ranks have
	// started survive if the launcher is killed by SIGKILL.
	Guard string
	// Remove lists directories that the guard removes if the launcher cannot;
	// otherwise they are the caller's. Absolute paths without newlines.
	Remove []string
	// Iface is the interface, by name or by one of its addresses, that ranks use
	// for datagrams and where the rendezvous of the job listens; "" means what
	// ARGON_IFACE says, or by route. Only for conduits that use the network.
	Iface string
	// Hosts are where ranks run, in blocks: the first host's slots come first.
	// nil means this machine, without further ado. Only for conduits that use the
	// network.
	Hosts []Host
	// PerHost is how many ranks run on each host; 0 means as many as it has slots.
	PerHost int
	// SSH is the command, as words, that is called with a host's name and one word
	// more, which a shell there is to run; nil means the system's ssh, which must
	// not need to ask for anything.
	SSH []string
	// Deputy is an executable that calls func Helper first: on each
	// host, as a copy if it is not there. Required with Hosts.
	Deputy string
	// TempDir is the directory, an absolute path, where hosts put what is sent to
	// them; "" means what TMPDIR says there, or /tmp. Programs must be allowed to run
	// from it.
	TempDir string
	// StartLimit is how long hosts have until their ranks can be started; 0 means
	// a minute.
	StartLimit time.Duration
	// Rewrite, if not nil, returns the address that viewer gets for rank, in place of
	// addr, if ranks find each other at a rendezvous. It leads datagrams through
	// a relay, such as faultproxy.Proxy.
	Rewrite func(viewer, rank int, addr netip.AddrPort) netip.AddrPort
	// Memory makes the job's memory; nil means the conduit's own way.
	Memory func(size int, segment uint64) (Memory, error)

	logf   func(format string, args ...any) // for what only -v shows; nil for nothing
	remark func(line string)                // for the user; nil for nothing
	// process looks at a rank's process on another host; nil if there is none.
	process func(rank int) (a sys.Activity, pid int, ok bool)
}

// DefaultAnswerGrace is Config.AnswerGrace where that is 0. Tests raise it for slow machines.
var DefaultAnswerGrace = 2 * time.Second

// DefaultAskTime is how long a job that is told to end waits for its ranks to say where they wait. Tests raise it likewise.
var DefaultAskTime = time.Second

// EnsureDefaults replaces zero values by the defaults. It takes Segment from
// ARGON_SEGMENT if that is a size; Validate complains if it is not.
func (c *Config) EnsureDefaults() {
	if c.Conduit == "" {
		if c.Conduit = DefaultConduit; len(c.Hosts) > 0 {
			c.Conduit = DefaultHostsConduit
		}
	}
	if c.Size == 0 && len(c.Hosts) > 0 {
		if places, err := c.place(); err == nil { // else Validate says what is wrong
			last := places[len(places)-1]
			c.Size = last.first + last.size
		}
	} else if c.Size == 0 {
		c.Size = 1
	}
	if c.StartLimit == 0 {
		c.StartLimit = time.Minute
	}
	if s := os.Getenv(jobenv.Segment); c.Segment == 0 && s != "" {
		c.Segment, _ = jobenv.ParseSize(s)
	}
	if s := os.Getenv(jobenv.Large); !c.Large && s != "" {
		c.Large, _ = strconv.ParseBool(s)
	}
	if c.Iface == "" && c.Memory == nil && c.launch().Rendezvous {
		c.Iface = os.Getenv(jobenv.Iface)
	}
	if c.Bind == "" && c.single() {
		c.Bind = BindNone
	}
	c.Bind = cmp.Or(c.Bind, Bind(os.Getenv(jobenv.Bind)), BindSpread)
	if c.Stdout == nil {
		c.Stdout = io.Discard
	}
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	if c.Log == nil {
		c.Log = c.Stderr
	}
	if c.KillGrace == 0 {
		c.KillGrace = 5 * time.Second
	}
	if c.AnswerGrace == 0 {
		c.AnswerGrace = DefaultAnswerGrace
	}
	if c.Stall == (where.Stall{}) {
		c.Stall = where.DefaultStall
		if s := os.Getenv(jobenv.Stall); s != "" {
			c.Stall, _ = where.ParseStall(s) // Validate complains
		}
	}
}

// Validate reports everything that is wrong with c; call EnsureDefaults first.
func (c *Config) Validate() error {
	var all []error
	bad := func(format string, args ...any) { all = append(all, errs.BadArg(format, args...)) }
	if most := MaxRanks(c.Conduit); (c.Size < 1 || c.Size > most) && (c.Size != 0 || len(c.Hosts) == 0) {
		bad("launch: %d ranks: a job has 1 to %d (-n)", c.Size, most)
	}
	if c.Program == "" {
		bad("launch: no program given")
	}
	if c.Memory == nil {
		if err := checkConduit(c.Conduit); err != nil {
			all = append(all, err)
		}
	}
	if c.single() {
		for _, f := range []struct {
			given     bool
			flag, why string
		}{
			{c.Label, "-l", "ranks share one standard output"},
			{c.OutputDir != "", "-output-dir", "ranks share one standard output, which can be redirected as a whole"},
			{c.Bind != BindNone, "-bind", "one rank runs at a time"},
			{len(c.Freeze) > 0, "-freeze", "a debugger can start the process itself, with ARGON_CONDUIT=sim and ARGON_RANKS"},
		} {
			if f.given {
				bad("launch: %s is not for simulated jobs, which are one process: %s", f.flag, f.why)
			}
		}
	}
	all = append(all, c.validateHosts()...)
	if gone := deletedDir("name one (-wdir)"); gone != nil && !filepath.IsAbs(c.Dir) {
		all = append(all, gone)
	} else if c.Dir != "" && len(c.Hosts) == 0 { // hosts look themselves
		if err := usableDir(c.Dir); err != nil {
			bad("launch: working directory (-wdir): %v", err)
		}
	}
	if _, err := place.ParseBind(string(c.Bind)); err != nil {
		all = append(all, err)
	}
	if c.Iface != "" {
		if c.Memory != nil || !c.launch().Rendezvous {
			bad("launch: interface %q: conduit %s uses no network (-iface)", c.Iface, c.Conduit)
		} else if _, err := ifaddr.Choose(c.Iface, true); err != nil {
			all = append(all, err)
		}
	}
	if c.Timeout < 0 {
		bad("launch: time limit %v is negative (-timeout)", c.Timeout)
	}
	if s := os.Getenv(jobenv.Segment); c.Segment == 0 && s != "" {
		if _, err := jobenv.ParseSize(s); err != nil {
			bad("launch: %s=%q is not a size: digits and K, M, G or T", jobenv.Segment, s)
		}
	}
	if _, err := c.lanes(); err != nil {
		bad("launch: %v (-lanes, %s)", err, jobenv.Lanes)
	}
	if s := os.Getenv(jobenv.Large); s != "" {
		if _, err := strconv.ParseBool(s); err != nil {
			bad("launch: %s=%q is neither 0 nor 1", jobenv.Large, s)
		}
	}
	for _, r := range c.Freeze {
		if r < 0 || r >= c.Size {
			bad("launch: cannot freeze rank %d: the job has ranks 0..%d (-freeze)", r, c.Size-1)
		}
	}
	for _, kv := range c.Env {
		k, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok || k == "":
			bad("launch: %q is not VARIABLE=VALUE (-x)", kv)
		case strings.ContainsRune(kv, 0):
			bad("launch: variable %q holds a zero byte (-x)", k)
		case strings.IndexFunc(k, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) >= 0:
			bad("launch: %q is no name of a variable: it holds white space or a control character (-x)", k)
		case Reserved(k):
			bad("launch: variable %s is set by the launcher; it has flags for what can be chosen (-x)", k)
		}
	}
	all = append(all, c.validateEnv(errors.Join(all...) == nil))
	if c.TempDir != "" && (c.TempDir[0] != '/' || strings.IndexFunc(c.TempDir, hardToQuote) >= 0) {
		bad("launch: directory %q: an absolute path of letters, digits and /._-+=:,@%% (-tmpdir)", c.TempDir)
	}
	return errors.Join(all...)
}

// validateEnv is Validate for argon's variables: those that ranks inherit, and Env. With
// values, it also looks at those that Validate has not read itself.
func (c *Config) validateEnv(values bool) error {
	var own, given []string
	set := map[string]bool{}
	for _, kv := range c.Env {
		k, _, _ := strings.Cut(kv, "=")
		set[k] = true
		if !Reserved(k) { // an error by itself
			given = append(given, kv)
		}
	}
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); !set[k] {
			own = append(own, kv)
		}
	}
	err := errors.Join(env.Check(given, c.Conduit, true, "launch", "-x"), env.Check(own, c.Conduit, false, "launch", ""))
	if err != nil || !values {
		return err
	}
	// Ranks look for files, on their host.
	return errors.Join(env.CheckValues(given, false, "launch", "-x"), env.CheckValues(own, false, "launch", ""))
}

// validateHosts is Validate for what has to do with hosts.
func (c *Config) validateHosts() (all []error) {
	bad := func(format string, args ...any) { all = append(all, errs.BadArg(format, args...)) }
	if len(c.Hosts) == 0 {
		if c.PerHost != 0 {
			bad("launch: %d ranks per host, but no hosts are given (-ppn, -hosts, -hostfile)", c.PerHost)
		}
		return all
	}
	if l, ok := launched(c.Conduit); ok && !l.Rendezvous {
		bad("launch: conduit %s does not span hosts; %s does, and uses shared memory within one (-conduit, ARGON_CONDUIT, -hosts)", c.Conduit, DefaultHostsConduit)
	}
	if c.PerHost < 0 {
		bad("launch: %d ranks per host (-ppn)", c.PerHost)
	} else if _, err := c.place(); err != nil {
		all = append(all, err)
	}
	if c.Memory != nil {
		bad("launch: ranks on hosts have no memory in common")
	}
	if c.Deputy == "" {
		bad("launch: nothing to start on hosts")
	}
	if c.StartLimit < 0 {
		bad("launch: time limit %v is negative (-start-timeout)", c.StartLimit)
	}
	return all
}

// Reserved reports whether the variable is one that the launcher itself sets for
// ranks.
func Reserved(key string) bool { return slices.Contains(ownEnv, key) }

// environ is the environment of rank r of a job, one of size on its host from rank first on;
// extra comes last.
func (c *Config) environ(jobID string, r, first, size int, extra []string) []string {
	env := make([]string, 0, 64)
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); !Reserved(k) {
			env = append(env, kv)
		}
	}
	for _, kv := range c.Env {
		k, _, _ := strings.Cut(kv, "=")
		for i, old := range env { // a later setting replaces an earlier one
			if strings.HasPrefix(old, k+"=") {
				env = append(env[:i], env[i+1:]...)
				break
			}
		}
		env = append(env, kv)
	}
	set := func(k, v string) { env = append(env, k+"="+v) }
	if c.single() {
		set(jobenv.Ranks, strconv.Itoa(c.Size))
	} else {
		set(jobenv.Rank, strconv.Itoa(r))
		set(jobenv.Size, strconv.Itoa(c.Size))
		set(jobenv.LocalRank, strconv.Itoa(r-first))
		set(jobenv.LocalSize, strconv.Itoa(size))
	}
	set(jobenv.JobID, jobID)
	set(jobenv.Conduit, c.Conduit)
	if c.Segment != 0 {
		set(jobenv.Segment, strconv.FormatUint(c.Segment, 10))
	}
	if c.Large {
		set(jobenv.Large, "1")
	}
	env = append(env, extra...)
	if slices.Contains(c.Freeze, r) {
		set(jobenv.Freeze, "1")
	}
	return env
}

// attached is the largest segment that a rank may attach, which the job's memory
// has room for; 0 means the conduit's default.
func (c *Config) attached() uint64 {
	if c.Large {
		return 0
	}
	return c.Segment
}

// Plan lists for each process what its environment has beyond the launcher's, as
// KEY=VALUE. The job's identity and the numbers of inherited files are known
// only when it runs.
func (c *Config) Plan() [][]string {
	plan := make([][]string, c.processes())
	places, _ := c.place()
	for _, p := range places {
		for r := p.first; r < p.first+p.size; r++ {
			plan[r] = append(plan[r], c.Env...)
			for _, kv := range c.environ("", r, p.first, p.size, nil) {
				if k, v, _ := strings.Cut(kv, "="); Reserved(k) && v != "" {
					plan[r] = append(plan[r], kv)
				}
			}
		}
	}
	return plan
}

// PlanHosts says for each rank what its host is called; nil if all are on this
// machine.
func (c *Config) PlanHosts() []string {
	if len(c.Hosts) == 0 {
		return nil
	}
	names := make([]string, 0, c.Size)
	places, _ := c.place()
	for _, p := range places {
		for range p.size {
			names = append(names, p.label)
		}
	}
	return names
}
