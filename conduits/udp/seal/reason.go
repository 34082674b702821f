package seal

import (
	"strconv"
	"sync/atomic"
)

// Reason is why a datagram was refused, or Accepted. A number and not an error:
// refusing is the daily business of a socket that any process may send to.
type Reason uint8

// The reasons, in the order in which Open checks.
const (
	// Accepted: the datagram was opened.
	Accepted Reason = iota
	// TooShort: fewer bytes than a header and a tag.
	TooShort
	// Malformed: not the format of this version and mode, such as a datagram of
	// another program, or of a rank that was given another mode.
	Malformed
	// WrongDestination: sealed for another rank, or for another incarnation of
	// this one.
	WrongDestination
	// UnknownRank: it claims a source that the job does not have.
	UnknownRank
	// OtherIncarnation: of another run of the source than the job has.
	OtherIncarnation
	// BadTag: forged, damaged, or sealed with another key.
	BadTag
	// Replayed: authentic, and opened before.
	Replayed
	// TooOld: authentic, and behind the window; it may have been opened before.
	TooOld

	numReasons
)

var reasons = [numReasons]string{
	"accepted", "too short", "malformed", "wrong destination", "unknown rank",
	"other incarnation", "bad tag", "replayed", "too old",
}

// String names the reason.
func (r Reason) String() string {
	if r < numReasons {
		return reasons[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// Counts are numbers of refused datagrams, by reason.
type Counts struct {
	TooShort         uint64
	Malformed        uint64
	WrongDestination uint64
	UnknownRank      uint64
	OtherIncarnation uint64
	BadTag           uint64
	Replayed         uint64
	TooOld           uint64
}

// Add adds those of another sealer.
func (c *Counts) Add(o Counts) {
	c.TooShort += o.TooShort
	c.Malformed += o.Malformed
	c.WrongDestination += o.WrongDestination
	c.UnknownRank += o.UnknownRank
	c.OtherIncarnation += o.OtherIncarnation
	c.BadTag += o.BadTag
	c.Replayed += o.Replayed
	c.TooOld += o.TooOld
}

// Total is the number of datagrams refused, whatever the reason.
func (c Counts) Total() uint64 {
	return c.TooShort + c.Malformed + c.WrongDestination + c.UnknownRank +
		c.OtherIncarnation + c.BadTag + c.Replayed + c.TooOld
}

// counters count refusals by reason.
type counters [numReasons]atomic.Uint64

func (c *counters) counts() Counts {
	return Counts{
		TooShort:         c[TooShort].Load(),
		Malformed:        c[Malformed].Load(),
		WrongDestination: c[WrongDestination].Load(),
		UnknownRank:      c[UnknownRank].Load(),
		OtherIncarnation: c[OtherIncarnation].Load(),
		BadTag:           c[BadTag].Load(),
		Replayed:         c[Replayed].Load(),
		TooOld:           c[TooOld].Load(),
	}
}
