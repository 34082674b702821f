package shm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// register makes mem accessible and says where.
func register(t tb, e *Endpoint, mem []byte, rights segment.Rights, peer int) (segment.NLA, segment.Region) {
	u, err := e.ATU()
	if err != nil {
		t.Fatal(err)
	}
	r, err := u.Register(mem, rights, peer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	return a, r
}

func deregister(t tb, e *Endpoint, r segment.Region) {
	u, err := e.ATU()
	if err == nil {
		err = u.Deregister(r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRegisteredHere: what peers do to a rank's Go memory.
func TestRegisteredHere(t *testing.T) {
	var got []string
	fm := forms[0]
	eps := fm.open(t, 2, conduits.Config{})
	attach(t, eps, page, func(rank int, m *conduits.Message) {
		got = append(got, string(m.Payload))
	})
	mem := make([]byte, 3*page)
	a, r := register(t, eps[1], mem, segment.RightsAll, segment.AnyPeer)

	for from, e := range eps {
		want := bytes.Repeat([]byte{byte(from + 1)}, page)
		if ev, err := e.Put(1, a+page/2, want, done, 0); err != nil || ev != done {
			t.Fatalf("put by rank %d: %v, %v", from, ev, err)
		}
		b := make([]byte, page)
		if ev, err := e.Get(b, 1, a+page/2, done, 0); err != nil || ev != done || !bytes.Equal(b, want) {
			t.Fatalf("get by rank %d: %v, %v", from, ev, err)
		}
		if _, err := e.PutWord(1, a&^7+16, 5, 8, done, 0); err != nil {
			t.Fatal(err)
		}
		if old, _, err := e.Atomic(1, a&^7+16, conduits.AtomicAdd, conduits.Uint64, 3, 0, 0); err != nil || old != 5 {
			t.Fatalf("atomic by rank %d: %d, %v", from, old, err)
		}
	}
	long := func(text string) {
		s, ev, st := eps[0].ReservePut(1, conduits.Request, 1, a+9, []byte(text), 0)
		if st != conduits.Ready || ev != done {
			t.Fatalf("long message: %v, %v", st, ev)
		}
		eps[0].Commit(1, conduits.Request, s, 1, 0)
		eps[1].Poll()
	}
	long("once")
	deregister(t, eps[1], r)
	long("twice")
	if len(got) != 1 || got[0] != "once" {
		t.Fatalf("arrived: %q", got)
	}
	var s conduits.Stats
	if eps[0].Stats(&s); s.Faults != 1 {
		t.Fatalf("%d faults are counted, want 1", s.Faults)
	}
	_, err := eps[0].Put(1, a, mem[:1], done, 0)
	if !errors.Is(err, segment.ErrFault) || !isBadArg(err) {
		t.Fatalf("put to what was registered: %v", err)
	}
}
