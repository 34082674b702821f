package hybrid

import (
	"errors"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/udp"
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
