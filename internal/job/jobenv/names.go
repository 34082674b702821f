package jobenv

// Names of variables that tell a rank its place in a job. gasrun sets them for each
// rank and removes any that it inherited itself.
const (
	Rank      = "ARGON_RANK"          // number of the rank, 0..size-1
	Size      = "ARGON_SIZE"          // number of ranks
	LocalRank = "ARGON_LOCAL_RANK"    // number among the ranks of this host
	LocalSize = "ARGON_LOCAL_SIZE"    // number of ranks of this host
	JobID     = "ARGON_JOBID"         // names the job; the same on all ranks; gasrun sets it, or a user without gasrun
	Conduit   = "ARGON_CONDUIT"       // conduit to join
	Lanes     = "ARGON_LANES"         // lanes of a rank
	Segment   = "ARGON_SEGMENT"       // largest segment per rank in bytes, with K, M or G
	Large     = "ARGON_SEGMENT_LARGE" // 1: segments are not attached but grow
	Freeze    = "ARGON_FREEZE"        // 1: stop (SIGSTOP) before joining, for a debugger
	Ranks     = "ARGON_RANKS"         // number of ranks inside one process
	Bind      = "ARGON_BIND"          // how ranks are bound to processors
	Record    = "ARGON_RECORD"        // file that gets the traffic of the ranks
	Sharers   = "ARGON_SHARERS"       // number of ranks of the job that run where this rank is bound to
	Viewed    = "ARGON_VIEWED"        // 1: counters by peer are shown, and are part of the answer where a rank waits

	Rendezvous      = "ARGON_RENDEZVOUS"       // where ranks that share no memory find each other, host:port
	RendezvousServe = "ARGON_RENDEZVOUS_SERVE" // 1: rank 0 runs that service, 0: another process does; unset: rank 0 if there is no JobID
	Host            = "ARGON_HOST"             // identity of the host: ranks with the same may share memory
	Iface           = "ARGON_IFACE"            // interface for datagrams: its name or an address
	Networks        = "ARGON_NETWORKS"         // networks of the hosts, see package nets
	JobKey          = "ARGON_JOB_KEY"          // the job's key, as 64 hexadecimal digits
	JobKeyFile      = "ARGON_JOB_KEY_FILE"     // a file that holds it
)

// Names of variables by which a rank finds what it inherits: decimal numbers of
// open files.
const (
	SegFD     = "ARGON_SEGFD"      // the job's memory
	CtlFD     = "ARGON_CTLFD"      // the read end of the control pipe
	SimStatus = "ARGON_SIM_STATUS" // what gets the record of a simulated job
)

// Names of variables by which a process knows that it is the rank that the others tell of.
const (
	JobSocket = "ARGON_JOB_SOCKET" // address and token of what hands out ranks and files, see package claim
	TakenBy   = "ARGON_TAKEN_BY"   // the process that has taken the rank, for those that it starts: see Taken
)

// PMIFD is what process managers that speak PMI set: the number of a socket to them, see
// package pmi.
const PMIFD = "PMI_FD"

// PMIxDir is what PMIx launchers set: a folder of a job's user on each host, which goes with
// the job, or with the launcher.
const PMIxDir = "PMIX_SERVER_TMPDIR"

// FDFolder has, for each open file of a process, an entry of its number's name, by
// which the process can open the file once more.
const FDFolder = "/proc/self/fd/"

// Names of variables that a site or a user sets, and that launcher and ranks both
// heed.
const (
	DeadTime    = "ARGON_DEADTIME"     // silence that counts as death, such as 30s
	JoinTimeout = "ARGON_JOIN_TIMEOUT" // how long ranks may be missing at the start, such as 90s
	Alone       = "ARGON_ALONE"        // 1: a process that another launcher started as one of several is a job by itself
	ShmDir      = "ARGON_SHM_DIR"      // directory for the job's memory
	Stall       = "ARGON_STALL"        // how long no rank may get on, such as 30s
	Profile     = "ARGON_PROFILE"      // 1, or more: print where time goes
	Trace       = "ARGON_TRACE"        // file that gets what the ranks do
	TraceLast   = "ARGON_TRACE_LAST"   // what of it, such as 5s: the last, when the job fails

	Pinnable  = "ARGON_PINNABLE"   // most memory of a rank that peers reach by firehoses at once, bytes
	PinLocal  = "ARGON_PIN_LOCAL"  // the part of it for the rank's own pins
	PinBucket = "ARGON_PIN_BUCKET" // the unit of it
	PinLock   = "ARGON_PIN_LOCK"   // 1: what is pinned is locked in memory
	PinHost   = "ARGON_PIN_HOST"   // what all jobs of a host lock together, bytes
	PinLeast  = "ARGON_PIN_LEAST"  // the part of it that each rank has for itself
)

// MaxRanks is the largest number of ranks that are processes: a rank is the owner
// of global address table entries, which have 16 bits for it (Nüssle 2008, figure
// 5-8).
const MaxRanks = 1 << 16
