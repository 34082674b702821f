package extended

import (
	"github.com/argon-go/argon/extended/internal/exposed"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
)

// SetStrategy changes Config.Strategy. It is for measurements that compare them: no
// operation of this rank on exposed memory may be under way.
func (x *Endpoint) SetStrategy(s Strategy) error {
	switch {
	case s >= numStrategies:
		return errs.BadArg("extended: strategy %v: there are %v to %v", s, Adaptive, numStrategies-1)
	case x.exposed == nil:
		return errs.NotSupported("extended: strategy %v: no memory is exposed without Config.Firehose and Config.Space", s)
	}
	x.exposed.SetStrategy(exposed.Strategy(s))
	return nil
}

// Firehose is Config.Firehose, for its limits and counters; nil if there is none.
func (x *Endpoint) Firehose() *firehose.Cache {
	if x.exposed == nil {
		return nil
	}
	return x.exposed.Cache()
}
