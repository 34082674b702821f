package conduittest

import (
	"testing"

	"github.com/argon-go/argon/conduits"
)

// offer is what a conduit offers beyond the least.
type offer struct {
	conduit string
	limits  conduits.Limits
	direct  bool // a rank reaches the segment of another by load and store
}

// probe finds out.
func probe(t *testing.T, open Open) *offer {
	eps, err := open(2, conduits.Config{})
	if err != nil {
		t.Fatalf("conduittest: open 2 ranks: %v", err)
	}
	o := &offer{conduit: eps[0].Conduit(), limits: eps[0].Limits()}
	for _, ep := range eps {
		if err := ep.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	return o
}

// report prints what the conduit offers and which checks ran.
func (s *suite) report(t *testing.T) {
	t.Logf("conduit %s: %+v", s.offer.conduit, s.offer.limits)
	for _, o := range s.ran {
		t.Logf("%-40s seeds %d failed %v %s", o.name, o.seeds, o.failed, o.skip)
	}
}
