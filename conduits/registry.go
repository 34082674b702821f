package conduits

import (
	"sort"
	"strings"
	"sync"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Config has the options of the opener of a job. The zero value means defaults.
type Config struct {
	// MaxSegment is the largest segment a rank may attach, bytes; 0 lets the
	// conduit choose. Knob: gasrun -segment, ARGON_SEGMENT.
	MaxSegment uint64
	// Credits and MaxMedium are the least that Limits of those names must be; 0
	// lets the conduit choose. Small ones save memory, large ones even out
	// bursts. The maker of the job decides: ranks that join it do not.
	Credits, MaxMedium int
	// Lanes is how many lanes a rank has, 1 to MaxLanes; 0 lets the conduit choose. Of a conduit that is not
	// Laned it means nothing. The maker of the job decides: ranks that join it do not.
	// Knob: gasrun -lanes, ARGON_LANES.
	Lanes int
	// Seed decides what a conduit leaves to chance, such as a simulator; the
	// same seed, the same run.
	Seed uint64
	// Remark, if not nil, is told in one line what a user should know of the job that
	// is made, such as a default that had to be smaller.
	Remark func(line string)
}

// Limits are what c asks for, with defaults, of a conduit that sets no memory aside for them.
// name begins the errors.
func (c Config) Limits(name string) (Limits, error) {
	l := Limits{MaxMedium: c.MaxMedium, MaxSegment: c.MaxSegment, Credits: c.Credits}
	if l.MaxMedium == 0 {
		l.MaxMedium = 4096
	}
	l.MaxMedium = max(l.MaxMedium, 512)
	if l.Credits == 0 {
		l.Credits = 64
	}
	if l.MaxSegment == 0 {
		l.MaxSegment = 64 << 20
	}
	l.MaxLong = l.MaxSegment
	switch {
	case l.MaxMedium > 1<<20:
		return l, errs.BadArg("%s: Config.MaxMedium is %d bytes; the most is %d", name, l.MaxMedium, 1<<20)
	case l.Credits < 1 || l.Credits > 1<<14:
		return l, errs.BadArg("%s: Config.Credits is %d; 1 to %d", name, l.Credits, 1<<14)
	case l.MaxSegment > uint64(segment.MaxAttach):
		return l, errs.Resource("%s: segments of %d bytes; the most is %d (-segment, ARGON_SEGMENT)", name, l.MaxSegment, uint64(segment.MaxAttach))
	}
	return l, nil
}

// Job is one rank's place in a job that a launcher started.
type Job struct {
	Rank, Size int
	// Env looks up what the launcher said, such as ARGON_SEGFD.
	Env func(key string) string
	// Failed, if not nil, is called once when the job has failed, by a conduit that
	// hears of that while its rank does not poll (udp, hybrid): on any goroutine, at
	// any time from Join on. It must not block.
	Failed func(*PeerError)
}

// Conduit is a transport as the registry knows it.
type Conduit struct {
	// Name as in gasrun -conduit.
	Name string
	// Local opens all ranks of a job inside this process. nil if it cannot.
	Local func(size int, c Config) ([]Endpoint, error)
	// Join opens this process's rank of a launched job. nil if it cannot.
	Join func(j Job, c Config) (Endpoint, error)
	// Launch lists what a launcher prepares for ranks that Join. nil if no launcher
	// starts jobs on the conduit.
	Launch *Launch
	// Missing, if not empty, says that the conduit is not part of this build, and what to
	// install and how to build: the rest is not used then, and Lookup's error says it.
	Missing string
}

var (
	regMu sync.Mutex
	reg   = map[string]Conduit{}
)

// Register makes a conduit known by its name; called from the conduit's init.
// Registering a name twice panics.
func Register(c Conduit) {
	regMu.Lock()
	defer regMu.Unlock()
	if _, dup := reg[c.Name]; dup {
		panic("conduits: " + c.Name + " registered twice")
	}
	reg[c.Name] = c
}

// Lookup finds a conduit by name; the error lists the names there are.
func Lookup(name string) (Conduit, error) {
	regMu.Lock()
	defer regMu.Unlock()
	c, ok := reg[name]
	switch {
	case ok && c.Missing != "":
		return Conduit{}, errs.NotSupported("conduits: conduit %s is not part of this build: %s", name, c.Missing)
	case ok:
		return c, nil
	}
	names := make([]string, 0, len(reg))
	for n, c := range reg {
		if c.Missing == "" {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	return Conduit{}, errs.BadArg("conduits: no conduit %q; known: %s (-conduit, ARGON_CONDUIT)", name, strings.Join(names, ", "))
}
