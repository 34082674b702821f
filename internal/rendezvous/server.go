package rendezvous

import (
	"net"
	"net/netip"
	"time"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/errs"
)

// State is what the service knows of a rank.
type State uint8

// The states. A rank that has Left or Failed stays so.
const (
	Missing  State = iota // has not joined yet
	Joined                // is there
	Attached              // has announced its segment
	Left                  // has left in good order
	Failed                // its connection ended before it left, or it was declared failed
)

// String names the state in one word.
func (s State) String() string {
	switch s {
	case Missing:
		return "missing"
	case Joined:
		return "joined"
	case Attached:
		return "attached"
	case Left:
		return "left"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// ServerConfig is what the service is told about the job.
type ServerConfig struct {
	// Key is the job's; whoever does not hold it does not get in. Required.
	Key seal.Key
	// Size is the number of ranks, 1 to MaxSize.
	Size int
	// Patience is how long ranks may be missing, counted from Serve; 0 means
	// DefaultPatience. Then the job fails, and the failure names them.
	Patience time.Duration
	// Grace is how long a rank whose connection has ended without Leave is not
	// declared failed, so that a launcher can say by Fail how it ended; 0 means
	// not at all.
	Grace time.Duration
	// InRank says that rank 0's process serves: if the service is lost, it is
	// rank 0 that has failed.
	InRank bool
	// Logf prints a line, without a newline at its end; nil drops it. Called
	// from several goroutines.
	Logf func(format string, args ...any)
}

// MaxSize is the largest number of ranks of a job.
const MaxSize = 1 << 16

// DefaultPatience is how long ranks may be missing unless somebody chooses.
const DefaultPatience = 60 * time.Second

// A Server is the rendezvous of one job. Its methods may be called by any
// goroutine.
type Server struct{ l net.Listener }

// Serve answers on l, which the Server closes, until Close. It returns at once.
func Serve(l net.Listener, c ServerConfig) (*Server, error) {
	return nil, errs.NotSupported("rendezvous: to come")
}

// Addr is where the service listens.
func (s *Server) Addr() netip.AddrPort { return netip.AddrPort{} }

// State is what is known of rank; Missing for a number that is no rank.
func (s *Server) State(rank int) State { return Missing }

// Fail declares that rank has failed, with the exit status that the job should
// have, and tells all ranks. Only the first failure of a job counts. rank may be
// NoRank.
func (s *Server) Fail(rank, status int, cause string) {}

// Failure is the job's failure; ok is false if there is none.
func (s *Server) Failure() (rank, status int, cause string, ok bool) { return }

// Close ends the service and all its connections. Ranks that have not left
// treat it as a failure.
func (s *Server) Close() error { return nil }
