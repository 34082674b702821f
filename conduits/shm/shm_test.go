package shm

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

type sink struct {
	got func(m *conduits.Message)
}

func (s *sink) Receive(m *conduits.Message) { s.got(m) }
func (s *sink) Complete(uint64, conduits.Event, uint64, error) {
	panic("completions are immediate here")
}

// attachAll opens and attaches n ranks in this process.
func attachAll(t testing.TB, n int, size uint64, got func(rank int, m *conduits.Message)) []conduits.Endpoint {
	t.Helper()
	eps, err := Local(n, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	errc := make(chan error, n)
	for r, e := range eps {
		go func() {
			errc <- e.Attach(conduits.AttachConfig{Size: size, Receiver: &sink{func(m *conduits.Message) { got(r, m) }}})
		}()
	}
	for range eps {
		if err := <-errc; err != nil {
			t.Fatal(err)
		}
	}
	return eps
}

func TestOneMessageEachWay(t *testing.T) {
	var got [2][]uint32
	eps := attachAll(t, 2, segment.PageSize, func(rank int, m *conduits.Message) {
		if m.Src != 1-rank || m.Tag != conduits.Tag(77+rank) || m.Class != conduits.Request || m.Payload != nil {
			t.Errorf("rank %d got %+v", rank, *m)
		}
		got[rank] = append(got[rank], m.Words...)
	})
	for r, e := range eps {
		s, st := e.Reserve(1-r, conduits.Request, 3, 0)
		if st != conduits.Ready {
			t.Fatalf("reserve: %v", st)
		}
		copy(s.Words, []uint32{1, 2, uint32(r)})
		e.Commit(1-r, conduits.Request, s, conduits.Tag(78-r), 0)
	}
	for r, e := range eps {
		if n := e.Poll(); n != 1 {
			t.Fatalf("rank %d polled %d messages, want 1", r, n)
		}
		if len(got[r]) != 3 || got[r][2] != uint32(1-r) {
			t.Fatalf("rank %d got words %v", r, got[r])
		}
	}
}
