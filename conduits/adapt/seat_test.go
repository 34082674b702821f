package adapt_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/segment"
)

// TestSeats: ranks that fail at once agree on the first failure, and are kicked once for it, when all
// ranks have it; the cards and segments of all come to all.
func TestSeats(t *testing.T) {
	const n = 5
	seats, err := adapt.Seats("mine", n, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var kicks [n]int // each written by one failure, which all have seen when it is read
	var all sync.WaitGroup
	for i, s := range seats {
		s.OnFailure(func() {
			kicks[i]++
			for _, o := range seats {
				if o.Err() == nil { // it would take a rank that ends because of the failure for one that has left
					t.Errorf("rank %d has no failure when rank %d hears of it", o.Rank(), i)
				}
			}
		})
		all.Go(func() {
			cards, err := s.Share(fmt.Append(nil, i))
			if err != nil || !slices.EqualFunc(cards, []int{0, 1, 2, 3, 4}, func(c []byte, i int) bool { return string(c) == fmt.Sprint(i) }) {
				t.Errorf("rank %d: cards %q, %v", i, cards, err)
			}
			attached, err := s.Attach(uint64(i), segment.RightRead)
			for r, a := range attached {
				if a.Size != uint64(r) || a.Rights != segment.RightRead {
					t.Errorf("rank %d: rank %d has %+v", i, r, a)
				}
			}
			if err != nil || len(attached) != n || s.Err() != nil {
				t.Errorf("rank %d: %d ranks have attached: %v, %v", i, len(attached), err, s.Err())
			}
		})
	}
	all.Wait()
	for i, s := range seats {
		all.Go(func() { s.Fail(i, fmt.Errorf("the disk of %d is full", i)) })
	}
	all.Wait()
	var first *conduits.PeerError
	if !errors.As(seats[0].Err(), &first) || first.Err.Error() != fmt.Sprintf("the disk of %d is full", first.Rank) {
		t.Fatalf("the failure is %v", seats[0].Err())
	}
	for i, s := range seats {
		select {
		case <-s.Over():
		default:
			t.Errorf("rank %d has not heard of the failure", i)
		}
		s.Wait(0) // the failure is an event
		if s.Err() != error(first) || kicks[i] != 1 {
			t.Errorf("rank %d: %v, %d kicks; the first failure is %v", i, s.Err(), kicks[i], first)
		}
	}
	late := 0
	if seats[0].OnFailure(func() { late++ }); late != 1 {
		t.Errorf("a Transport that is ready after the failure is kicked %d times", late)
	}
}

// TestSeatsEnd: a failure ends the waits for ranks that are missing; what cannot be is refused.
func TestSeatsEnd(t *testing.T) {
	seats, err := adapt.Seats("mine", 2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seats[0].Share(make([]byte, adapt.MostCard+1)); !errors.Is(err, conduits.ErrBadArg) {
		t.Errorf("a long card: %v", err)
	}
	var waits sync.WaitGroup
	waits.Go(func() {
		if _, err := seats[0].Share(nil); !errors.Is(err, conduits.ErrPeer) {
			t.Errorf("Share: %v", err)
		}
		if _, err := seats[0].Attach(0, 0); !errors.Is(err, conduits.ErrPeer) {
			t.Errorf("Attach: %v", err)
		}
	})
	seats[1].Fail(1, errors.New("no such luck"))
	waits.Wait()
	if _, err := adapt.Seats("mine", 0, conduits.Config{}); !errors.Is(err, conduits.ErrBadArg) {
		t.Errorf("no ranks: %v", err)
	}
	mine := errors.New("no card in this machine")
	opened := 0
	_, err = adapt.Conduit("mine", func(s *adapt.Seat) (conduits.Transport, error) {
		opened++
		return nil, mine
	}).Local(3, conduits.Config{})
	if !errors.Is(err, mine) || opened != 1 {
		t.Errorf("Open failed, %d times: %v", opened, err)
	}
}

// TestSeatsLeft: a Transport hears of each other rank that leaves, once, also of one that did so before the Transport
// was ready; ranks of a job have one number, which the next job has not.
func TestSeatsLeft(t *testing.T) {
	const n = 4
	seats, err := adapt.Seats("mine", n, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	next, err := adapt.Seats("mine", 1, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seats[1].Leave()
	var left [n][]int
	for i, s := range seats {
		s.OnLeave(func(rank int) { left[i] = append(left[i], rank) })
	}
	seats[3].Leave()
	for i, want := range [n][]int{{1, 3}, {3}, {1, 3}, {1}} {
		if !slices.Equal(left[i], want) {
			t.Errorf("rank %d has heard that %v have left, want %v", i, left[i], want)
		}
		if s := seats[i]; s.Job() != seats[0].Job() || s.Job() == next[0].Job() || s.Mates() != n || s.Board() != nil {
			t.Errorf("rank %d: job %#x, that of rank 0 %#x, next %#x; %d ranks on its host, board %v", i, s.Job(), seats[0].Job(), next[0].Job(), s.Mates(), s.Board())
		}
	}
}
