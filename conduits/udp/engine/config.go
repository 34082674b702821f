package engine

import (
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Config is one rank's part. Rank, Size, Epoch and Memory are required; the zero
// value of everything else means its default. Datagram, Window, Credits and
// MaxMedium must be equal on all ranks.
type Config struct {
	Rank, Size int
	// Ranks, if it is not 0, is how many ranks there are: a peer of number n, of Size, is rank
	// n % Ranks, reached in another way than those of other numbers. Each number has a path,
	// credits and windows of its own. What a caller is told of, but for messages and errors
	// of operations, are numbers.
	Ranks int

	// Epoch is the rank's incarnation, not 0: a process that is started in the place
	// of another has another one, and is ignored by those that knew the first.
	Epoch uint32

	// Datagram is the largest datagram, bytes, with everything that the engine
	// and the sealer add: 256 to 65507; 0 means 1400.
	Datagram int
	// Sealer authenticates datagrams; nil means that a checksum finds damage and
	// nothing finds malice.
	Sealer Sealer

	// Window is how many datagrams of a class to a peer may be under way, counted
	// from the first that has not been acknowledged: a power of two, 64 to 131072;
	// 0 means 65536. Memory for them is taken as they are needed.
	Window int
	// Flight is how many bytes may be under way to a peer in all, from 65536; 0 means
	// 96 MiB: the product of 1 Gbit/s and 400 ms, and as much again in queues.
	Flight int
	// Credits is how many messages of a class to a peer may be under way; 0 means
	// 64, the most is 32768.
	Credits int
	// MaxMedium is the largest medium payload, bytes; 0 means 4096.
	MaxMedium int

	// InitialRTT is the assumed round trip before one has been measured
	// (kInitialRtt of RFC 9002, section 6.2.2); 0 means 333 ms.
	InitialRTT time.Duration
	// RTT, if it is not nil, knows better for a rank: it is called at the first contact
	// and returns about how long a round trip takes, or 0 where InitialRTT will do.
	RTT func(rank int) time.Duration
	// Sure, if it is not nil, is how large a datagram to a rank may be, bytes, that
	// surely arrives: it is called at the first contact. Where that is less than
	// Datagram the engine begins with 1200 bytes, or Sure's result if that is more,
	// and looks for more, up to Datagram, while there is traffic (RFC 8899). Without
	// Sure datagrams of that size are taken to arrive everywhere.
	Sure func(rank int) int
	// Local, if it is not nil, tells in errors the MTU of the own interface, such as "; here
	// eth0 has 500".
	Local func() string
	// Floor is how long datagrams are, bytes, that every path carries: what they fall to where
	// those of 1200 do not arrive; 0 means 1200.
	Floor int
	// RaiseTime is how long the search rests when it has ended; 0 means 10 minutes.
	RaiseTime time.Duration
	// Granularity is the least deviation of round trips, and the least
	// delay of a datagram that is lost by time (kGranularity of RFC 9002,
	// section 6.1.2); 0 means 64 us, about what a wait for a socket misses its time by.
	Granularity time.Duration
	// AckDelay is how long an acknowledgement waits for a datagram that goes to
	// the peer anyway; 0 means 200 us.
	AckDelay time.Duration
	// Hold is how long small messages wait for company, at most, after a datagram
	// with small ones that has not been acknowledged; 0 means 10 us. See Push.
	Hold time.Duration
	// DeadTime is how long a peer that something is awaited from may be silent,
	// while this rank itself runs; 0 means 10 s. It must exceed the longest time for
	// which a peer does not call its engine.
	DeadTime time.Duration
	// Name names a rank in errors, with its host and address; nil: by its number.
	Name func(rank int) string
	// Seen, if it is not nil, tells in errors what has been found out about a silent rank
	// by other means; "" if nothing has.
	Seen func(rank int) string
	// Doubt, if it is not nil, is called when a rank has been silent for half of
	// DeadTime and is probed for that. The caller may look at it meanwhile, see Name.
	Doubt func(rank int)

	// Memory is the rank's segment and registered memory.
	Memory Memory
}

// Memory is a rank's memory as peers reach it. Its methods check rank, address, length and
// rights, since a datagram may lie. src is the initiator.
type Memory interface {
	// Target returns n bytes of the segment at a, or ok false if src may not access
	// them with all of need. They stay as long as the engine is used.
	Target(src int, a segment.NLA, n uint64, need segment.Rights) (b []byte, ok bool)
	// Access returns n bytes, not 0, that Target does not: registered memory, which
	// stays until u.Exit, or an error that has a *segment.FaultError.
	Access(src int, a segment.NLA, n uint64, need segment.Rights) (b []byte, u *segment.Unit, err error)
	// Registrations is how many regions have been registered so far. Since reports
	// whether some of n bytes, which Access has just returned, belong to a later one
	// than number count: the addresses were other memory's before.
	Registrations() uint64
	Since(a segment.NLA, n, count uint64) bool
	// Atomic performs an operation that is known to be one (CheckAtomic), or returns
	// Access's error.
	Atomic(src int, a segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, x, y uint64) (old uint64, err error)
}

// Sealer protects datagrams with the job's key, in the place where they lie.
type Sealer interface {
	// Header and Trailer are how many bytes of a sealed datagram come before and
	// after the datagram.
	Header() int
	Trailer() int
	// Seal seals b for rank dst: all but its first Header and last Trailer bytes
	// is the datagram. ok is false if that can not be done; it is then as good as
	// lost.
	Seal(dst int, b []byte) (ok bool)
	// Open finds out which rank has sealed b for this one and returns the datagram,
	// which is a part of b. ok is false if none has, or if it has come before.
	Open(b []byte) (src int, datagram []byte, ok bool)
	// Plain reports whether Seal and Open look at the first Header bytes of a sealed
	// datagram alone, and Trailer is 0. Seal may then be given its beginning only.
	Plain() bool
}

// rank is the rank that the peer of a number is.
func (c *Config) rank(number int) int {
	if number >= c.Ranks {
		return number % c.Ranks
	}
	return number
}

// overhead is how many bytes sealing adds.
func (c *Config) overhead() int {
	if c.Sealer == nil {
		return 0
	}
	return c.Sealer.Header() + c.Sealer.Trailer()
}

// Defaults.
const (
	DefaultDatagram = 1400
	leastDatagram   = 256 // without what sealing adds
	maxDatagram     = 65507
)

func (c *Config) ensure() error {
	for _, d := range []struct {
		v   *int
		def int
	}{{&c.Datagram, DefaultDatagram}, {&c.Window, 1 << 16}, {&c.Flight, 96 << 20}, {&c.Credits, 64}, {&c.MaxMedium, 4096}, {&c.Floor, baseSize}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&c.InitialRTT, 333 * time.Millisecond},
		{&c.Granularity, 64 * time.Microsecond},
		{&c.AckDelay, 200 * time.Microsecond},
		{&c.Hold, 10 * time.Microsecond},
		{&c.DeadTime, 10 * time.Second},
		{&c.RaiseTime, 10 * time.Minute},
	} {
		if *d.v < 0 {
			return errs.BadArg("udp: Config: a time of %v", *d.v)
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if c.Ranks == 0 {
		c.Ranks = c.Size
	}
	over := c.overhead()
	switch {
	case c.Ranks < 1 || c.Size < c.Ranks || c.Rank < 0 || c.Rank >= c.Ranks:
		return errs.BadArg("udp: rank %d of %d", c.Rank, c.Ranks)
	case c.Epoch == 0:
		return errs.BadArg("udp: Config.Epoch is 0")
	case c.Memory == nil:
		return errs.BadArg("udp: Config.Memory is nil")
	case c.Datagram-over < leastDatagram || c.Datagram > maxDatagram:
		return errs.BadArg("udp: Config.Datagram is %d bytes; %d to %d", c.Datagram, leastDatagram+over, maxDatagram)
	case c.Window < 64 || c.Window > 1<<17 || c.Window&(c.Window-1) != 0:
		return errs.BadArg("udp: Config.Window is %d; a power of two, 64 to %d", c.Window, 1<<17)
	case c.Flight < 1<<16 || c.Flight > 1<<30:
		return errs.BadArg("udp: Config.Flight is %d bytes; %d to %d", c.Flight, 1<<16, 1<<30)
	case c.Credits < 1 || c.Credits > 1<<15:
		return errs.BadArg("udp: Config.Credits is %d; 1 to %d", c.Credits, 1<<15)
	case c.MaxMedium < 512 || c.MaxMedium > 1<<20:
		return errs.BadArg("udp: Config.MaxMedium is %d bytes; 512 to %d", c.MaxMedium, 1<<20)
	}
	return nil
}

// Stats count what an engine has done.
type Stats struct {
	Sent, Received   uint64 // datagrams
	Again            uint64 // datagrams sent again, among Sent
	Spurious         uint64 // transmissions that were taken for lost and had arrived
	Probes           uint64 // times the oldest under way were sent again for want of news
	Timeouts         uint64 // of these, that followed another one without any
	Twice            uint64 // datagrams that had come before
	Acks             uint64 // datagrams sent without contents
	Malformed        uint64 // dropped: too short, checksum, or nonsense
	Stale            uint64 // dropped: of or for another incarnation
	Beyond           uint64 // dropped: outside the window or without credit
	Refused          uint64 // frames without effect: what they ask for, or answer, is not permitted
	Faults           uint64 // puts, gets and atomics of this rank that peers refused
	Unheard          uint64 // of these, puts that no caller waits for; and long messages of peers, refused and not delivered
	NoCredit         uint64 // answers of Reserve
	PathProbes       uint64 // datagrams sent to find out whether their size arrives
	BlackHoles       uint64 // times a path stopped to let pass what it had
	Split            uint64 // contents sent in pieces for that
	Peers            int    // ranks that there is state for
	Deaths           int
	Frames, FramesIn uint64 // messages, fragments and operations
}
