package extended

import (
	"fmt"

	"github.com/argon-go/argon/extended/internal/exposed"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Defaults of Config, from the measurements in the package comment.
const (
	// A put of 16 KiB to memory without a firehose takes 1.3 us by bouncing and
	// 3.1 by a miss on shm; 44 and 38 on udp, which at 8 KiB still are 31 and 45.
	DefaultBounceMax = 16 << 10
	// A put of 1 MiB takes 30 us with registration, 28 by firehoses that are
	// attached and 88 by such as are not on shm; 428, 514 and 982 on udp.
	DefaultOnceMin = 1 << 20
)

// newExposed makes what reaches exposed memory.
func newExposed(x *Endpoint, c *Config) *exposed.Endpoint {
	k := exposed.Config{
		Firehose: c.Firehose, Space: c.Space,
		Strategy: exposed.Strategy(c.Strategy), BounceMax: c.BounceMax, OnceMin: c.OnceMin,
	}
	if k.BounceMax == 0 {
		k.BounceMax = DefaultBounceMax
	}
	if k.OnceMin == 0 {
		k.OnceMin = DefaultOnceMin
	}
	return exposed.New(k, x)
}

// Expose gives mem exposed addresses, consecutive from the one returned on, by
// which rank peer, or every rank if that is segment.AnyPeer, may use it with
// rights in all operations of this package and long active messages; this rank
// may use it with all rights. It is registered only while others use it, so that
// there may be more of it than can be registered at once. mem is kept from the
// garbage collector until Conceal; mapped memory must not be unmapped before. It
// holds pointer-free values only. Atomics need it to be aligned to their size.
// Not before Bind.
func (x *Endpoint) Expose(mem []byte, rights segment.Rights, peer int) (segment.NLA, error) {
	const what = "extended: expose"
	if x.exposed == nil {
		return 0, errs.NotSupported("%s: the endpoint was made without Config.Firehose and Config.Space", what)
	}
	if peer != segment.AnyPeer {
		if err := x.checkRank(what, peer); err != nil {
			return 0, err
		}
	}
	a, err := x.exposed.Expose(mem, rights, peer)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return a, nil
}

// Conceal takes memory back that Expose has given addresses from a on. When it
// returns no rank reaches it by them. What is under way meanwhile is done, or
// fails with an error that matches segment.ErrFault or firehose.ErrNotExposed,
// both of which match ErrBadArg; a large access may have been done in part.
func (x *Endpoint) Conceal(a segment.NLA) error {
	const what = "extended: conceal"
	if !a.Exposed() {
		return errs.BadArg("%s: %v is no exposed address", what, a)
	}
	if err := x.exposed.Check(what, a, 0); err != nil {
		return err
	}
	if err := x.exposed.Conceal(a); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Exposes reports whether there are exposed addresses; part of am.Exposer.
func (x *Endpoint) Exposes() bool { return x.exposed != nil }

// PutExposed is Put; part of am.Exposer.
func (x *Endpoint) PutExposed(dst int, to segment.NLA, src []byte) error { return x.Put(dst, to, src) }

// Deposit puts what rank src has sent to an exposed address of this rank; part of
// am.Exposer, not for users.
func (x *Endpoint) Deposit(src int, to segment.NLA, n uint64, data []byte) ([]byte, error) {
	return x.exposed.Deposit(src, to, n, data)
}
