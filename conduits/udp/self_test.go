package udp

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/segment"
)

// alone is a rank that is a job, attached.
func alone(t *testing.T, r conduits.Receiver) *Endpoint {
	t.Helper()
	eps, err := Joined(seal.Authenticated, nil)(1, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ep := eps[0]
	if err := ep.Attach(conduits.AttachConfig{Size: 1 << 16, Receiver: r}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ep.Close() })
	return ep.(*joinedHere).Endpoint
}

// TestSelf: what a rank sends to itself reaches neither its engine nor its socket,
// and takes no memory.
func TestSelf(t *testing.T) {
	var got counter
	e := alone(t, &got)
	words, payload := []uint32{1, 2}, make([]byte, 100)
	once := func() {
		for c := range conduits.Class(conduits.NumClasses) {
			want := got.n + 2
			if e.Send(0, c, 1, words) != conduits.Ready || e.SendPayload(0, c, 1, words, payload, 0) != conduits.Ready {
				t.Fatal("no credit")
			}
			for got.n < want {
				e.Poll()
			}
		}
	}
	once()
	if n := testing.AllocsPerRun(1000, once); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s := e.eng.Stats(); s.Sent+s.Received+s.Frames != 0 || s.Peers != 0 {
		t.Errorf("%+v", s)
	}
	var s conduits.Stats
	e.Stats(&s)
	if want := uint64(2 * 1002); s.Sent != [2]uint64{want, want} || s.Received != s.Sent || s.PeersUsed != 1 {
		t.Errorf("%+v", s)
	}
}

// TestSelfWithdrawn: data of a message to oneself is written to memory that is
// withdrawn before the message is run, which is then refused.
func TestSelfWithdrawn(t *testing.T) {
	var got counter
	e := alone(t, &got)
	u, err := e.ATU()
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 4096)
	credits := 2 * e.limits.Credits
	for again := range 2 * credits {
		a, err := u.Register(mem, segment.RightsAll, segment.AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := a.At(0)
		slot, _, st := e.ReservePut(0, conduits.Request, 0, at, []byte{1, 2, 3}, 1)
		if st != conduits.Ready {
			t.Fatalf("message %d: status %d", again, st)
		}
		e.Commit(0, conduits.Request, slot, 1, 0)
		if err := u.Deregister(a); err != nil {
			t.Fatal(err)
		}
		e.Poll()
	}
	if mem[2] != 3 || got.n != 0 {
		t.Errorf("%d messages were run; memory has %v", got.n, mem[:3])
	}
	var s conduits.Stats
	if e.Stats(&s); s.Faults != uint64(2*credits) {
		t.Errorf("%d are counted of %d", s.Faults, 2*credits)
	}
}
