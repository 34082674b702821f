package udp

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Name is the conduit's name.
const Name = "udp"

func init() { conduits.Register(conduits.Conduit{Name: Name, Local: Local}) }

// maxRanks of a job: each has a socket.
const maxRanks = 512

// localDatagram suits loopback: large, and a medium payload fits in.
const localDatagram = 8192

// limits are what c asks for, with defaults.
func limits(n int, c conduits.Config) (conduits.Limits, error) {
	l := conduits.Limits{MaxMedium: max(c.MaxMedium, 512), Credits: c.Credits, MaxSegment: c.MaxSegment}
	if n < 1 || n > maxRanks {
		return l, errs.BadArg("udp: %d ranks; 1 to %d (-n)", n, maxRanks)
	}
	if c.MaxMedium == 0 {
		l.MaxMedium = 4096
	}
	if l.Credits == 0 {
		l.Credits = 64
	}
	if l.Credits < 1 || l.Credits > 1<<14 {
		return l, errs.BadArg("udp: Config.Credits is %d; 1 to %d", l.Credits, 1<<14)
	}
	if l.MaxMedium > 1<<20 {
		return l, errs.BadArg("udp: Config.MaxMedium is %d bytes; the most is %d", l.MaxMedium, 1<<20)
	}
	if l.MaxSegment == 0 {
		l.MaxSegment = 64 << 20
	}
	if l.MaxSegment > uint64(segment.MaxAttach) {
		return l, errs.Resource("udp: segments of %d bytes; the most is %d (-segment, ARGON_SEGMENT)", l.MaxSegment, uint64(segment.MaxAttach))
	}
	l.MaxLong = l.MaxSegment
	return l, nil
}

// Local opens all ranks of a job in this process, on sockets of the loopback
// interface.
func Local(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	lim, err := limits(n, c)
	if err != nil {
		return nil, err
	}
	l, err := sockets(n)
	if err != nil {
		return nil, err
	}
	b := newBoard(n)
	epoch := rand.Uint32() | 1
	eps := make([]conduits.Endpoint, n)
	for r := range eps {
		e, err := newEndpoint(seat{b, r, start}, l[r], lim, engine.Config{
			Rank: r, Size: n, Epoch: epoch, Datagram: localDatagram,
			// Ranks of one process do not die one by one.
			DeadTime: 24 * time.Hour,
		})
		if err != nil {
			for _, s := range l {
				s.Close()
			}
			return nil, err
		}
		if n <= runtime.GOMAXPROCS(0) {
			e.patience = 20
		} else {
			e.patience = 2
		}
		b.eps = append(b.eps, e)
		eps[r] = e
	}
	return eps, nil
}

// start starts a goroutine.
func start(f func()) { go f() }
