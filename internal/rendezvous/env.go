package rendezvous

import (
	"context"
	"time"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/errs"
)

// Setup is what a process needs to join the rendezvous of its job.
type Setup struct {
	// Server is the service's address, "host:port".
	Server string
	// Key is the job's.
	Key seal.Key
	// Serve says that rank 0's process runs the service, on the port of Server,
	// since no launcher does.
	Serve bool
	// Patience is how long ranks may be missing.
	Patience time.Duration
}

// FromEnv reads ARGON_RENDEZVOUS, the key, and the others from the environment,
// which env looks up as os.Getenv does.
func FromEnv(env func(key string) string) (Setup, error) {
	return Setup{}, errs.NotSupported("rendezvous: to come")
}

// Join starts the service if that is up to this rank, and joins it.
//
// A service that it has started lives until the Client is closed, and Close then
// waits until all other ranks have left too, or the job has failed.
func (s Setup) Join(ctx context.Context, h Hello, e Events) (*Client, error) {
	return Join(ctx, s.Server, s.Key, h, e)
}
