package hybrid

import (
	"errors"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/internal/errs"
)

// TestLoneBlame: in a job of one host the conduit between hosts hears of a rank that
// another one blames, and tells it to all, whether they poll or not.
func TestLoneBlame(t *testing.T) {
	const n = 3
	near, err := shm.LocalPart(n, conduits.Part{Size: n, Conduit: "hybrid"}, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	far, err := udp.Local(n, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps := make([]conduits.Endpoint, n)
	for r, e := range near {
		accompany(e, far[r].(*udp.Endpoint), nil)
		eps[r] = e
	}
	attach(t, eps, nil)
	eps[0].Blame(2, errors.New("it left early"))
	eps[0].Blame(1, errors.New("too late"))
	for r, e := range far {
		var p *conduits.PeerError
		if err := e.(*udp.Endpoint).Failure(); r == 0 && (!errors.As(err, &p) || p.Rank != 2 || p.Err.Error() != "it left early") {
			t.Fatalf("between hosts the failure is %v, want rank 2, which left early", err)
		}
		// The other ranks' conduits hear of it in their time, without a poll.
		tk := e.Arm(nil)
		for e.(*udp.Endpoint).Failure() == nil {
			e.Park(tk)
			tk = e.Arm(nil)
		}
		e.Disarm(tk)
	}
	leave(t, eps)
}

// slowFar is a conduit between hosts, which before it hears of a failure calls before.
type slowFar struct {
	conduits.FarEndpoint
	before func()
}

func (f slowFar) Fail(err error) {
	f.before()
	f.FarEndpoint.Fail(err)
}

// TestLoneExit: ranks that share memory hear of the end of the job when the conduit between hosts knows, and so the launcher. They
// would end else, and the first would count as failed.
func TestLoneExit(t *testing.T) {
	near, err := shm.LocalPart(2, conduits.Part{Size: 2, Conduit: "hybrid"}, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	far, err := udp.Local(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps, early := make([]conduits.Endpoint, 2), []error{errors.New("far has not been told")}
	for r, e := range near {
		accompany(e, slowFar{far[r].(*udp.Endpoint), func() { early = []error{near[1].Err(), near[0].Err()} }}, nil)
		eps[r] = e
	}
	attach(t, eps, nil)
	eps[0].Fail(&errs.ExitError{Code: 3})
	if err := errors.Join(early...); err != nil {
		t.Errorf("before the conduit between hosts is told the ranks know: %v", err)
	}
	var exit *errs.ExitError
	if err := eps[1].Err(); !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("rank 1 hears of %v, not of an Exit with 3", err)
	}
	leave(t, eps)
}
