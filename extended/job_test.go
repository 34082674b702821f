package extended_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"stress": func() {
		end, err := testjob.Join(conduits.Config{})
		testjob.Check(err)
		testjob.Check(stress(end, extended.Config{AlwaysHandle: testjob.Rank()%2 == 1}, 2000))
		testjob.Check(end.Close())
	}, "orphan": orphan, "locks": lockedRounds})
}

// TestProcesses runs stress in ranks that are processes.
func TestProcesses(t *testing.T) {
	for _, n := range []int{2, 5} {
		testjob.Run(t, n, "stress").Want(t, 0)
	}
}

// TestGoroutines runs it in ranks of this process, where the race detector sees
// them.
func TestGoroutines(t *testing.T) {
	const n = 4
	shm, err := conduits.Lookup("shm")
	if err != nil {
		t.Fatal(err)
	}
	ends, err := shm.Local(n, conduits.Config{MaxSegment: stressBytes})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for r, end := range ends {
		wg.Go(func() {
			if err := stress(end, extended.Config{AlwaysHandle: r == 0}, 500); err != nil {
				t.Errorf("rank %d: %v", r, err)
				end.Fail(err)
			}
		})
	}
	wg.Wait()
	for r, end := range ends {
		if err := end.Close(); err != nil && !t.Failed() {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

const stressBytes = 1 << 16

// The control words of stress, at the beginning of each segment.
const (
	arrived = segment.AttachBase + 8*iota // for meet
	counter                               // every rank adds to that of every rank
	highest
	sums = segment.AttachBase + 256 // a checksum of each rank's stripe
)

// meet is a barrier made of signals.
func meet(x *extended.Initiator, round uint64) error {
	for r := range x.Size() {
		if err := x.Signal(r, arrived, extended.SignalAdd, 1); err != nil {
			return err
		}
	}
	_, err := x.WaitUntil(arrived, extended.Ge, round*uint64(x.Size()))
	return err
}

// stress writes, in all ways, to its own stripe of every segment, reads it back
// beside a model, and adds to words that all ranks share; the owner of each
// segment then checks what came.
func stress(end conduits.Endpoint, c extended.Config, rounds int) error {
	x := extended.New(c)
	e, err := am.Attach(end, am.Config{Runtime: x.Handlers(), Completer: x, Exposer: x, SegmentSize: stressBytes})
	if err != nil {
		return err
	}
	x.Bind(e)
	n, me := x.Size(), x.Rank()
	stripe := (stressBytes - segment.PageSize) / n &^ 7
	base := func(rank int) int { return segment.PageSize + rank*stripe }
	address := func(off int) segment.NLA { return segment.AttachBase + segment.NLA(base(me)+off) }
	model := make([][]byte, n)
	for r := range model {
		model[r] = make([]byte, stripe)
	}
	rnd := rand.New(rand.NewPCG(uint64(me), 2))
	region := x.NewRegion()
	var hs []extended.Handle
	var most int64
	src, dst := make([]byte, stripe), make([]byte, stripe)
	for i := range src {
		src[i] = byte(i * (me + 3))
	}
	for i := range rounds {
		to := rnd.IntN(n)
		size := 1 << rnd.IntN(11)
		off, from := rnd.IntN(stripe-size), rnd.IntN(stripe-size)
		chunk := src[from : from+size]
		expect := model[to][off : off+size]
		var h extended.Handle
		switch i % 6 {
		case 0:
			err = x.Put(to, address(off), chunk)
			copy(expect, chunk)
		case 1:
			h, err = x.PutNB(to, address(off), chunk)
			copy(expect, chunk)
		case 2:
			err = region.PutBulkNBI(to, address(off), chunk)
			copy(expect, chunk)
		case 3:
			v := rnd.Uint64()
			err = x.PutValue(to, address(off&^7), v, 8)
			for k := range 8 {
				model[to][off&^7+k] = byte(v >> (8 * k))
			}
		case 4:
			if err = x.Get(to, address(off), dst[:size]); err == nil && !bytes.Equal(dst[:size], expect) {
				err = fmt.Errorf("round %d: %d bytes at %d of rank %d differ", i, size, off, to)
			}
		case 5:
			if _, err = extended.FetchAdd[uint64](x, to, counter, 1); err == nil {
				most = max(most, int64(rnd.IntN(1<<30)))
				_, err = extended.Atomic(x, (me+1)%n, highest, extended.AtomicMax, most, 0)
			}
		}
		if err != nil {
			return err
		}
		if hs = append(hs, h); len(hs) == 50 {
			if err := x.WaitAll(hs); err != nil {
				return err
			}
			hs = hs[:0]
		}
	}
	if err := x.WaitAll(hs); err != nil {
		return err
	}
	if err := region.Sync(extended.All); err != nil {
		return err
	}
	for r := range model {
		if err := x.PutValue(r, sums+segment.NLA(8*me), sum(model[r]), 8); err != nil {
			return err
		}
	}
	if err := meet(x, 1); err != nil {
		return err
	}
	total := uint64(0)
	for r := range n {
		mine := x.Direct(me, segment.AttachBase+segment.NLA(base(r)), uint64(stripe))
		want, err := x.GetValue(me, sums+segment.NLA(8*r), 8)
		if err != nil {
			return err
		}
		if sum(mine) != want {
			return fmt.Errorf("rank %d's stripe is not what it put", r)
		}
		v, err := extended.Load[uint64](x, r, counter)
		if err != nil {
			return err
		}
		total += v
	}
	if want := uint64(n * (rounds / 6)); total != want {
		return fmt.Errorf("counters add up to %d, not %d", total, want)
	}
	got, err := extended.Load[int64](x, (me+1)%n, highest)
	if err != nil {
		return err
	}
	if got != most {
		return fmt.Errorf("greatest is %d, not %d", got, most)
	}
	return meet(x, 2)
}

func sum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// TestWaitingForTheDead: a rank that waits for a signal of one that dies is
// woken, and told which rank it was.
func TestWaitingForTheDead(t *testing.T) {
	testjob.Run(t, 3, "orphan").Want(t, 3)
}

// joined is the endpoint of a rank that is a process, with a segment of size bytes.
func joined(size uint64) (*am.Messenger, *extended.Initiator) {
	end, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	x := extended.New(extended.Config{})
	e, err := am.Attach(end, am.Config{Runtime: x.Handlers(), Completer: x, Exposer: x, SegmentSize: size})
	testjob.Check(err)
	x.Bind(e)
	return e, x
}

func orphan() {
	_, x := joined(segment.PageSize)
	testjob.Check(meet(x, 1))
	if x.Rank() == 2 {
		os.Exit(3)
	}
	_, err := x.WaitUntil(counter, extended.Eq, 1)
	var pe *conduits.PeerError
	if !errors.As(err, &pe) || pe.Rank != 2 {
		testjob.Fatal("waiting ended with %v", err)
	}
	testjob.Check(err)
}
