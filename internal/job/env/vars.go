package env

import (
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
)

// For is the reader of a variable.
type For int

// Values of For.
const (
	Users    For = iota // may be set by users; docs/knobs.md lists it
	Internal            // set by gasrun, its deputies and tests
)

// A Var is one variable.
type Var struct {
	Name    string
	For     For
	Group   string   // heading of docs/knobs.md; "" for that of the one before
	Readers string   // packages that read it, separated by spaces
	Meaning string   // in short, without full stop
	Text    string   // what it does, sentences in Markdown; "" for Meaning
	Range   string   // values it can have, with unit and limits, in Markdown
	Default string   // what counts if it is not set, in Markdown; "" for nothing
	Also    string   // the field of gas.Config and the flags of gasrun that say the same
	Uses    []string // conduits that use it; nil for all
	Values  []string // all values that there are; nil if the reader decides
	// Strict: a job on a conduit that does not use the variable is a
	// mistake even if the environment has it. The other variables describe a host
	// or a site, where other jobs may use them, and are refused if the command line
	// sets them for a job that does not (gasrun -x).
	Strict bool
	// Form reports whether the variable can have a value, on any conduit; nil if Values
	// says so. There is the error of a file or directory that is not there; nil for values
	// that name none. CheckValues uses both.
	Form  func(value string) bool
	There func(value string) error
}

var (
	network = []string{"udp", "hybrid"}
	meeting = []string{"udp", "hybrid", "ofi", "hybrid-ofi"}
	shared  = []string{"shm", "hybrid", "hybrid-ofi"}
	fabrics = []string{"ofi", "hybrid-ofi"}
	sim     = []string{"sim"}
	ours    = []string{"shm", "hybrid", "udp", "sim"}
	flag    = []string{"0", "1"}
)

// Vars are all variables, in the order of docs/knobs.md and then those that are
// internal.
var Vars = [...]Var{
	{
		Name: "ARGON_RANKS", Group: "Job", Readers: "conduits/boot",
		Meaning: "ranks inside this process",
		Text:    "Ranks of a program that gasrun did not start: goroutines of one process, simulated ranks on conduit `sim`.",
		Range:   "1 to 16,777,216",
		Default: "1",
		Also:    "`Config.Ranks`",
		Form:    number(1, 1<<24),
	},
	{
		Name: "ARGON_CONDUIT", Readers: "conduits/boot internal/job/jobenv launch",
		Meaning: "transport",
		Text:    "Transport.",
		Range:   "`shm`, `hybrid`, `udp`, `sim`, in a build with the tag `ofi` also `ofi` and `hybrid-ofi`, or one that the program registers",
		Default: "`shm`; with several hosts, with `ARGON_RENDEZVOUS` or by PMI-1, `hybrid`",
		Also:    "`Config.Conduit`, `-conduit`",
		Form:    word,
	},
	{
		Name: "ARGON_LANES", Readers: "conduits/boot internal/launch",
		Meaning: "lanes of a rank",
		Text:    "Lanes of a rank, by which goroutines send and poll without a lock that another one takes. On conduits other than `shm`, and `hybrid` on one host, they share one way.",
		Range:   "1 to 64",
		Default: "one for each processor of a rank, where the conduit has lanes, else 1",
		Also:    "`Config.Lanes`, `-lanes`",
		Form:    number(1, jobenv.MaxLanes),
	},
	{
		Name: "ARGON_BIND", Readers: "conduits/boot internal/launch", Values: []string{"spread", "core", "numa", "none"},
		Meaning: "processors of the ranks of a host",
		Text:    "How the ranks of a host are bound to its processors. `spread`: those that the job may use, and that no other job has taken, are divided evenly; `core`: each rank has one core; `numa`: whole memory nodes; `none`: ranks run anywhere. Ranks that another launcher has bound stay as they are.",
		Range:   "`spread`, `core`, `numa`, `none`",
		Default: "`spread`",
		Also:    "`-bind`",
	},
	{
		Name: "ARGON_PROGRESS", Readers: "gas",
		Meaning: "answer peers in the background",
		Text:    "1: a goroutine of each rank answers peers while the rank computes. Costs latency when the rank does call argon.",
		Range:   "0 or 1",
		Default: "0",
		Also:    "`Config.Progress`",
		Form:    boolean,
	},
	{
		Name: "ARGON_WORKERS", Readers: "gas",
		Meaning: "goroutines that run tasks",
		Text:    "Goroutines of each rank that run tasks and what is put off while the rank computes; one of them answers peers, as with `ARGON_PROGRESS`.",
		Range:   "1 to 1024",
		Default: "none: goroutines that wait or poll run tasks",
		Also:    "`Config.Workers`",
		Form:    number(1, 1024),
	},
	{
		Name: "ARGON_SEGMENT", Group: "Memory", Readers: "conduits/boot internal/launch",
		Meaning: "shared memory of a rank",
		Text:    "Shared memory that each rank brings, rounded up to whole pages and not touched before it is used.",
		Range:   "size: 1 to 511 GiB, in bytes or with K, M, G, T",
		Default: "64 MiB, with `ARGON_SEGMENT_LARGE` 1 GiB; less where a memory group, memory, `ulimit -v` or `-f` leaves less, which is said",
		Also:    "`Config.SegmentSize`, `-segment`",
		Form:    size,
	},
	{
		Name: "ARGON_SEGMENT_LARGE", Readers: "gas internal/launch",
		Meaning: "reach segments by firehoses",
		Text:    "1: segments are not attached, but reached by firehoses as they are used. Equal on all ranks.",
		Range:   "0 or 1",
		Default: "0",
		Also:    "`Config.Large`, `-segment-large`",
		Form:    boolean,
	},
	{
		Name: "ARGON_PINNABLE", Readers: "gas",
		Meaning: "memory that firehoses reach",
		Text:    "Registered memory of a rank that its peers reach without asking at any moment. Equal on all ranks.",
		Range:   "size: 1 to 511 GiB, in bytes or with K, M, G, T",
		Default: "512 MiB, or 16 buckets for each peer and a third more",
		Also:    "`Config.Pinnable`, `-pinnable`",
		Form:    size,
	},
	{
		Name: "ARGON_PIN_LOCAL", Readers: "gas",
		Meaning: "part of ARGON_PINNABLE for own pins",
		Text:    "The part of `ARGON_PINNABLE` that the rank may pin itself. Equal on all ranks.",
		Range:   "size: 1 to `ARGON_PINNABLE`",
		Default: "a quarter of `ARGON_PINNABLE`",
		Also:    "`Config.PinLocal`, `-pin-local`",
		Form:    size,
	},
	{
		Name: "ARGON_PIN_BUCKET", Readers: "gas",
		Meaning: "unit of ARGON_PINNABLE, pinned at once",
		Text:    "What is pinned at once. Equal on all ranks.",
		Range:   "size: a power of two from 4 KiB (a page) to 1 GiB",
		Default: "64 KiB",
		Also:    "`Config.PinBucket`, `-pin-bucket`",
		Form:    bucket,
	},
	{
		Name: "ARGON_PIN_LOCK", Readers: "gas",
		Meaning: "have pinned memory locked",
		Text:    "1: what is pinned is locked in memory (mlock). RLIMIT_MEMLOCK (`ulimit -l`) has to allow `ARGON_PINNABLE` for each rank of a process.",
		Range:   "0 or 1",
		Default: "0",
		Also:    "`Config.PinLock`",
		Form:    boolean,
	},
	{
		Name: "ARGON_PIN_HOST", Readers: "gas",
		Meaning: "what all jobs of a host lock together",
		Text:    "With `ARGON_PIN_LOCK`: the ranks of all jobs of a user on a host that share /dev/shm have so many bytes locked together at most. Each has `ARGON_PIN_LEAST` of them and is lent more by need, which is called back when others need it; what is pinned beyond that works unlocked. Equal for all jobs.",
		Range:   "size",
		Default: "none: each rank may lock `ARGON_PINNABLE`",
		Also:    "`Config.PinHost`",
		Form:    size,
	},
	{
		Name: "ARGON_PIN_LEAST", Readers: "gas",
		Meaning: "part of ARGON_PIN_HOST that each rank has",
		Text:    "What a rank may lock of `ARGON_PIN_HOST` whatever others need. Those of all ranks of the host are together within it.",
		Range:   "size: up to `ARGON_PIN_HOST`",
		Default: "1/64 of `ARGON_PIN_HOST`",
		Also:    "`Config.PinLeast`",
		Form:    size,
	},

	{
		Name: "ARGON_SHM_DIR", Readers: "conduits/shm internal/launch", Uses: shared,
		Meaning: "directory for the job's memory",
		Text:    "The job's memory is a file without a name in this directory instead of a memfd.",
		Range:   "a directory on a tmpfs",
		Default: "a memfd",
		Form:    path,
		There:   directory,
	},
	{
		Name: "ARGON_SHM_PROCESS_VM", Readers: "conduits/shm", Uses: shared, Values: flag,
		Meaning: "do without process_vm_readv",
		Text:    "0: ranks ask for each other's private memory and do not use process_vm_readv, where a filter of system calls would end them for it.",
		Range:   "0 or 1",
		Default: "1",
	},
	{
		Name: "ARGON_IFACE", Group: "Network", Readers: "conduits/ofi conduits/udp internal/launch", Uses: meeting,
		Meaning: "interface for datagrams",
		Text:    "Interface of datagrams, of the rendezvous, and of a provider of libfabric on IP.",
		Range:   "an interface of the host, or an address of one that is not link-local",
		Default: "by route",
		Also:    "`-iface`",
		Form:    iface,
	},
	{
		Name: jobenv.Networks, Readers: "conduits/udp", Uses: network, Strict: true,
		Meaning: "networks of the hosts",
		Text:    "Networks of the hosts, with latency and bandwidth: datagrams of a pair take the one, or the way through others, that is quickest for their data. Equal on all ranks. See [hosts.md](hosts.md).",
		Range:   "`network NAME PREFIX latency TIME bandwidth RATE; ...`",
		Default: "one network, by route or `ARGON_IFACE`",
		Also:    "`-networks`",
		Form:    networks,
	},
	{
		Name: "ARGON_AUTH", Readers: "conduits/udp", Uses: network,
		Meaning: "protection of datagrams",
		Text:    "Protection of datagrams. Equal on all ranks.",
		Range:   "`authenticated`, `encrypted` (and authenticated), `none`",
		Values:  []string{"authenticated", "encrypted", "none"},
		Default: "`authenticated`",
	},
	{
		Name: "ARGON_DATAGRAM", Readers: "conduits/udp", Uses: network,
		Meaning: "largest datagram, bytes",
		Text:    "Largest datagram, without the headers of IP and UDP; between hosts the search for what the path carries ends there. Equal on all ranks.",
		Range:   "bytes: 256, and what the seal adds, to 65,507",
		Default: "1400; if all ranks are on one host 65,000, or 8192 where its sockets keep less than 4 MiB",
		Form:    number(256, 65507),
	},
	{
		Name: "ARGON_DEADTIME", Readers: "conduits/udp internal/rendezvous internal/launch", Uses: meeting,
		Meaning: "silence that counts as death",
		Text:    "Silence after which a peer counts as dead. A host that hears nothing from gasrun ends its ranks 2 s later. A host that gasrun hears nothing of for 5 s longer is lost. Hosts may be silent to the rendezvous for 30 s, or for this if it is longer.",
		Range:   "time: 500 ms or more, such as `30s`",
		Default: "`10s`",
		Form:    lasting(500 * time.Millisecond),
	},
	{
		Name: "ARGON_PROVIDER", Readers: "conduits/ofi/providers", Uses: fabrics,
		Meaning: "provider of libfabric",
		Text:    "Provider of libfabric, on conduits `ofi` and `hybrid-ofi`. Equal on all ranks. [fabrics.md](fabrics.md)",
		Range:   "a name that `gasrun -conduit ofi -providers` lists, or its part before a semicolon",
		Default: "the best by its rules",
		Also:    "`-provider`",
		Form:    text,
	},
	{
		Name: "ARGON_PROVIDER_FORCE", Readers: "conduits/ofi/providers", Uses: fabrics, Values: flag,
		Meaning: "use a provider that argon refuses",
		Text:    "1: `ARGON_PROVIDER` is used although argon refuses it by name.",
		Range:   "0 or 1",
		Default: "0",
		Also:    "`-provider-force`",
	},
	{
		Name: "ARGON_RENDEZVOUS", Group: "Meeting", Readers: "internal/job/jobenv conduits/hybrid internal/rendezvous", Uses: meeting,
		Meaning: "where ranks meet",
		Text:    "Where the ranks of a job without gasrun meet.",
		Range:   "`host:port`, port 1 to 65535",
		Default: "what rank 0 says by PMI-1, if that is spoken",
		Form:    hostPort,
	},
	{
		Name: "ARGON_RENDEZVOUS_SERVE", Readers: "internal/rendezvous", Uses: meeting,
		Meaning: "who serves there",
		Text:    "1: rank 0 serves there; 0: something else does.",
		Range:   "0 or 1",
		Default: "1 without gasrun, unless `ARGON_JOBID` is set",
		Form:    number(0, 1),
	},
	{
		Name: "ARGON_JOIN_TIMEOUT", Readers: "internal/rendezvous", Uses: meeting,
		Meaning: "how long ranks may be missing at the start",
		Text:    "How long ranks may be missing when a job starts; those that are then are named.",
		Range:   "time above 0, such as `90s`",
		Default: "`60s`, under gasrun `10m`",
		Form:    lasting(1),
	},
	{
		Name: "ARGON_RANK", Readers: "conduits/boot internal/job/jobenv",
		Meaning: "number of the rank",
		Text:    "Which rank a process is, if neither gasrun nor another known launcher says so.",
		Range:   "0 to `ARGON_SIZE` - 1",
		Form:    number(0, jobenv.MaxRanks-1),
	},
	{
		Name: "ARGON_SIZE", Readers: "internal/job/jobenv",
		Meaning: "number of ranks",
		Text:    "Of how many ranks the job is.",
		Range:   "1 to 65,536",
		Form:    number(1, jobenv.MaxRanks),
	},
	{
		Name: "ARGON_JOBID", Readers: "conduits/boot internal/rendezvous internal/launch",
		Meaning: "name of the job",
		Text:    "Name of the job, which tells it from others at the same `host:port`. Equal on all ranks.",
		Range:   "printable text on one line, of which 249 bytes count",
		Default: "the launcher's",
		Form:    text,
	},
	{
		Name: "ARGON_JOB_KEY_FILE", Readers: "conduits/boot internal/job/jobkey", Uses: meeting,
		Meaning: "file with the job's key",
		Text:    "File with the job's key.",
		Range:   "a file that others cannot read (mode 0400, 0600, or 0440) with 64 hexadecimal digits",
		Default: "gasrun makes one",
		Form:    path,
	},
	{
		Name: "ARGON_JOB_KEY", Readers: "internal/job/jobkey", Uses: meeting,
		Meaning: "the job's key",
		Text:    "The job's key itself, instead of the file.",
		Range:   "64 hexadecimal digits",
		Form:    hexKey,
	},
	{
		Name: "ARGON_HOST", Readers: "conduits/udp", Uses: network,
		Meaning: "name of the host",
		Text:    "Name of the host: ranks with the same one share memory.",
		Range:   "printable text on one line",
		Default: "by the system's identity: boot, space of process ids, name",
		Form:    text,
	},
	{
		Name: "ARGON_ALONE", Readers: "conduits/boot internal/job/jobenv",
		Meaning: "processes of another launcher are jobs by themselves",
		Text:    "1: processes that Slurm, Open MPI or PMI started without `ARGON_RENDEZVOUS` are jobs by themselves.",
		Range:   "0 or 1",
		Default: "0: they are one job if their process manager tells them where to meet, and else an error",
		Form:    number(0, 1),
	},
	{
		Name: "ARGON_DEBUG", Group: "Looking inside", Readers: "gas",
		Meaning: "checks that cost time",
		Text:    "1: handlers are checked at every call for keeping the rules, forgotten handles say where they come from, and a rank that enters a barrier says which of its calls are under way.",
		Range:   "0 or 1",
		Default: "0",
		Also:    "`Config.Debug`",
		Form:    boolean,
	},
	{
		Name: "ARGON_STALL", Readers: "conduits/boot internal/launch",
		Meaning: "say why when no rank gets on",
		Text:    "When no rank has got on for so long (no message handled, no operation ended, none computes), gasrun, or a job in one process, says once which rank is the cause and where each is, and goes on; of ranks that wait for each other after seconds. `,end` ends the job then. Under other launchers nothing looks.",
		Range:   "a time such as `30s`, `30s,end`, or `0` for never",
		Default: "`30s`",
		Also:    "`-stall`",
		Form:    stall,
	},
	{
		Name: "ARGON_PROFILE", Readers: "gas",
		Meaning: "print where time goes",
		Text:    "Rank 0 prints, when the job ends, where the time of all ranks went: by line of the program, call and kind. `peers`: by rank, too; `sizes`: by powers of two of bytes; `labels`: goroutines carry rank and call as labels of runtime/pprof; `json=FILE`: rank 0 writes all figures there; `traffic`: how much each rank has sent to each other one and accessed of it, which costs nothing but the gathering at the end; `traffic=FILE`: into FILE, too, as CSV if it ends with .csv, else as JSON.",
		Range:   "1, 0, or a list of `peers`, `sizes`, `labels`, `json=FILE`, `traffic`, `traffic=FILE`",
		Default: "0",
		Also:    "`Config.Profile`, `-profile`",
		Form:    profiled,
	},
	{
		Name: "ARGON_TRACE", Readers: "gas launch",
		Meaning: "file for a trace",
		Text:    "File that gets what the ranks do, message by message, for Perfetto; that of further jobs of the process gets .2, .3, .... Ranks of several processes have it from gasrun.",
		Range:   "a file",
		Also:    "`Config.Trace`, `-trace`",
		Form:    path,
	},
	{
		Name: "ARGON_TRACE_LAST", Readers: "gas launch",
		Meaning: "keep the last of the trace",
		Text:    "The trace is what ranks have done in so long a time, up to 4 MiB of each, and is written when the job fails, or is found or asked not to get on. Without `ARGON_TRACE` it is `argon-PID.pftrace`.",
		Range:   "a time such as `5s`",
		Also:    "`Config.TraceLast`, `-trace-last`",
		Form:    lasting(1),
	},
	{
		Name: "ARGON_FREEZE", Readers: "conduits/boot", Values: flag,
		Meaning: "stop before joining, for a debugger",
		Text:    "1: the process stops before it joins, for a debugger.",
		Range:   "0 or 1",
		Default: "0",
		Also:    "`-freeze RANK`",
	},
	{
		Name: "ARGON_VERBOSEENV", Readers: "conduits/boot conduits/sim", Values: flag,
		Meaning: "print what came of the variables",
		Text:    "1: what came of the variables is printed to standard error.",
		Range:   "0 or 1",
		Default: "0",
	},
	{
		Name: "ARGON_RECORD", Readers: "conduits/boot launch",
		Meaning: "file for the traffic",
		Text:    "File that gets what the ranks send, put and get, and what they wait for, for `gasrun -replay`; that of further jobs of the process gets .2, .3, .... Ranks of several processes have it from gasrun.",
		Range:   "a file",
		Also:    "`-record`",
		Form:    path,
	},
	{
		Name: "ARGON_SIM", Group: "Simulation", Readers: "conduits/sim launch", Uses: sim, Strict: true,
		Meaning: "options of the simulation",
		Text:    "Options of a simulated job, such as `seed=7 topology=torus crash=2@50us`.",
		Range:   "KEY=VALUE, separated by spaces or commas: `sim.ParseOptions`",
		Default: "`seed=0 machine=extoll`",
		Also:    "`-sim`, `-seed`, `-machine`, `-topology`, `-queue`, `-fault`, `-limit`",
	},
	{
		Name: "ARGON_SIM_TRACE", Readers: "conduits/sim launch", Uses: sim, Strict: true,
		Meaning: "file for its trace",
		Text:    "File that gets a line for each step of each message; those of further jobs of the process get .2, .3, ...",
		Range:   "a file",
		Also:    "`-sim-trace`",
		Form:    path,
	},
	{
		Name: "ARGON_SIM_KEEP", Readers: "conduits/sim launch", Uses: sim, Strict: true,
		Meaning: "file for its record",
		Text:    "File that gets what a run needs to be repeated.",
		Range:   "a file",
		Also:    "`-keep`",
		Form:    path,
	},
	{
		Name: "ARGON_SIM_AGAIN", Readers: "conduits/sim", Uses: sim, Strict: true,
		Meaning: "record to repeat",
		Text:    "Record of a run that is repeated.",
		Range:   "a file",
		Also:    "`-again`",
		Form:    path,
	},

	{
		Name: "ARGON_SIM_FILES", Readers: "internal/sys/files", Uses: sim, Strict: true,
		Meaning: "where the files of UPC programs are",
		Text:    "`memory` has UPC programs work on copies of the files that they change, which begin and end with the process, so that whatever a run does to files the next one finds them as this one did.",
		Range:   "`disk`, `memory`", Values: []string{"disk", "memory"},
		Default: "`disk`; `memory` of `upc run -seeds`",
	},

	{Name: "ARGON_LOCAL_RANK", For: Internal, Readers: "internal/job/jobenv", Meaning: "number among the ranks of the host", Form: number(0, jobenv.MaxRanks-1)},
	{Name: "ARGON_LOCAL_SIZE", For: Internal, Readers: "internal/job/jobenv conduits/hybrid", Meaning: "number of ranks of the host", Form: number(1, jobenv.MaxRanks)},
	{Name: "ARGON_SHARERS", For: Internal, Readers: "internal/conc", Meaning: "ranks of the job that run on the processors of this rank", Form: number(1, jobenv.MaxRanks)},
	{Name: "ARGON_VIEWED", For: Internal, Readers: "conduits/boot", Meaning: "counters by peer are shown", Values: flag},
	{Name: "ARGON_SEGFD", For: Internal, Readers: "conduits/boot conduits/shm conduits/hybrid", Meaning: "inherited file that is the job's memory", Uses: shared, Form: number(0, 1<<30)},
	{Name: "ARGON_CTLFD", For: Internal, Readers: "conduits/boot", Meaning: "inherited read end of the control pipe", Form: number(0, 1<<30)},
	{Name: "ARGON_JOB_SOCKET", For: Internal, Readers: "conduits/boot internal/launch", Meaning: "socket that hands out ranks and their files, and its token", Form: socket},
	{Name: "ARGON_TAKEN_BY", For: Internal, Readers: "internal/job/jobenv", Meaning: "process that is the rank, for those that it starts", Form: jobenv.IsProcess},
	{Name: "ARGON_DEPUTY", For: Internal, Readers: "internal/launch", Meaning: "set for a host's deputy", Form: never},
	{Name: "ARGON_GUARD", For: Internal, Readers: "internal/launch", Meaning: "set for the guard of a job", Form: never},
	{Name: "ARGON_HYBRID_HOST", For: Internal, Readers: "conduits/hybrid", Meaning: "ranks of each host that one process pretends", Uses: []string{"hybrid", "hybrid-ofi"}, Form: number(1, 1<<24)},
	{Name: "ARGON_SIM_STATUS", For: Internal, Readers: "conduits/sim", Meaning: "inherited file for gasrun's record", Uses: sim, Form: number(0, 1<<30)},
}
