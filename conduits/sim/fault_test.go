package sim_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// member is one rank of a test's job.
type member struct {
	*am.Messenger
	ep  *sim.Endpoint
	b   *barrier.Barrier
	rnd *rand.Rand
	got int
	sum uint64
}

// runMembers runs body as every rank of j, with active messages, a barrier and
// one page of segment, and returns what each returned.
func runMembers(t *testing.T, j *sim.Job, body func(m *member) error) []error {
	t.Helper()
	eps := j.Endpoints()
	ended := make([]error, len(eps))
	conduits.Run(eps, func(i int) {
		ended[i] = errors.New("ended its goroutine")
		m := &member{ep: j.Endpoint(i), b: barrier.New(), rnd: rand.New(rand.NewPCG(uint64(i), 1))}
		var err error
		m.Messenger, err = am.Attach(m.ep, am.Config{
			Runtime:     m.b.Handlers(),
			SegmentSize: segment.PageSize,
			Handlers: []am.Entry{
				{Index: 128, Name: "add", Args: 2, Fn: func(t *am.Token, a []uint32, _ []byte) {
					m.got++
					m.sum += uint64(a[0])
					t.ReplyShort(129, a[1])
				}},
				{Index: 129, Name: "ack", Args: 1, Fn: func(_ *am.Token, a []uint32, _ []byte) { m.got++ }},
			},
		})
		if err == nil {
			err = m.b.Bind(m.Messenger)
		}
		if err == nil {
			err = body(m)
		}
		ended[i] = err
	})
	return ended
}

// chatter sends requests to random ranks, waits for all replies, and ends with a
// barrier.
func chatter(requests int) func(m *member) error {
	return func(m *member) error {
		acks := 0
		for k := range requests {
			if err := m.RequestShort(m.rnd.IntN(m.Size()), 128, uint32(k), 0); err != nil {
				return err
			}
			acks++
		}
		if err := m.b.Barrier(7, 0); err != nil {
			return err
		}
		return m.b.Barrier(8, 0)
	}
}

func newJob(t *testing.T, n int, c sim.Config) *sim.Job {
	t.Helper()
	j, err := sim.New(n, c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func noErrors(t *testing.T, ended []error) {
	t.Helper()
	for r, err := range ended {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
}

// everything is a plan of faults that a job survives.
func everything() sim.Faults {
	return sim.Faults{
		Jitter:     3 * sim.Microsecond,
		Slow:       []sim.Slow{{Rank: 3, Factor: 20}},
		Stalls:     []sim.Stall{{Rank: 2, At: 20 * sim.Microsecond, For: 80 * sim.Microsecond}},
		Partitions: []sim.Partition{{First: 0, Last: 4, At: 30 * sim.Microsecond, For: 50 * sim.Microsecond}},
	}
}

// TestSameSeedSameTrace runs a job twice for several seeds: the traces are equal
// byte for byte, and different seeds give different ones.
func TestSameSeedSameTrace(t *testing.T) {
	run := func(seed uint64) (string, uint64) {
		var w bytes.Buffer
		j := newJob(t, 11, sim.Config{Seed: seed, Trace: &w, Faults: everything()})
		noErrors(t, runMembers(t, j, chatter(20)))
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		return w.String(), j.Digest()
	}
	seen := map[uint64]bool{}
	for seed := range uint64(6) {
		a, da := run(seed)
		b, db := run(seed)
		if a != b || da != db {
			t.Fatalf("seed %d: two runs differ: digests %x and %x", seed, da, db)
		}
		if strings.Count(a, "\n") < 1000 {
			t.Fatalf("a trace of %d bytes", len(a))
		}
		if seen[da] {
			t.Fatalf("seed %d gives the digest of another seed", seed)
		}
		seen[da] = true
	}
}

// TestOrderOfEqualTimes sees that a seed changes the order of simultaneous
// events without any fault.
func TestOrderOfEqualTimes(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(8) {
		j := newJob(t, 5, sim.Config{Seed: seed})
		order := ""
		conduits.Run(j.Endpoints(), func(i int) { order += fmt.Sprint(i) })
		orders[order] = true
		if seed == 0 && order != "01234" {
			t.Fatalf("seed 0 gave order %s", order)
		}
	}
	if len(orders) < 5 {
		t.Fatalf("8 seeds gave orders %v", orders)
	}
}

// TestPartitionHeals sees that a barrier waits for the end of a partition, and
// that nothing is lost.
func TestPartitionHeals(t *testing.T) {
	const heal = 500 * sim.Microsecond
	j := newJob(t, 6, sim.Config{Faults: sim.Faults{Partitions: []sim.Partition{{First: 2, Last: 3, At: 10 * sim.Microsecond, For: heal - 10*sim.Microsecond}}}})
	noErrors(t, runMembers(t, j, func(m *member) error {
		for i := range 10 {
			before := m.ep.Now()
			if err := m.b.Barrier(uint32(i), 0); err != nil {
				return err
			}
			if now := m.ep.Now(); before > 10*time.Microsecond && before < 400*time.Microsecond && now < 500*time.Microsecond {
				return fmt.Errorf("a barrier from %v to %v went through the partition", before, now)
			}
		}
		if m.ep.Now() < 500*time.Microsecond {
			return fmt.Errorf("all over at %v", m.ep.Now())
		}
		return nil
	}))
}

// TestCrashAtAnyEvent crashes one rank before each of many events of a job. The
// others always end, either with an error that names it or, if it had done its
// part, in good order.
func TestCrashAtAnyEvent(t *testing.T) {
	whole := newJob(t, 5, sim.Config{})
	noErrors(t, runMembers(t, whole, chatter(4)))
	step := max(1, whole.Events/150)
	failed := 0
	for event := uint64(1); event < whole.Events; event += step {
		j := newJob(t, 5, sim.Config{Faults: sim.Faults{Crashes: []sim.Crash{{Rank: 3, Event: event}}}})
		for r, err := range runMembers(t, j, chatter(4)) {
			var p *conduits.PeerError
			switch {
			case r == 3 || err == nil:
			case !errors.As(err, &p) || p.Rank != 3:
				t.Fatalf("crash of rank 3 before event %d: rank %d ended with %v", event, r, err)
			default:
				failed++
			}
		}
	}
	if failed == 0 {
		t.Fatal("no rank ever noticed")
	}
}

// TestCrashEndsOperations sees that what is under way towards a rank that
// crashes is reported.
func TestCrashEndsOperations(t *testing.T) {
	for _, op := range []string{"put", "get", "atomic"} {
		j := newJob(t, 2, sim.Config{Faults: sim.Faults{Crashes: []sim.Crash{{Rank: 1, At: 100 * sim.Microsecond}}}})
		conduits.Run(j.Endpoints(), func(i int) {
			e := j.Endpoint(i)
			r := &recorder{}
			if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: r}); err != nil {
				t.Error(err)
				return
			}
			if i == 1 {
				_ = conduits.Wait(e, nil, func() bool { return false })
				return
			}
			for e.Now() < 100*time.Microsecond-time.Microsecond {
				e.Poll()
			}
			buf := make([]byte, 64)
			switch op {
			case "put":
				_, _ = post.Put(e, 1, segment.AttachBase, buf, conduits.RemoteDone, 42)
			case "get":
				_, _ = post.Get(e, buf, 1, segment.AttachBase, conduits.RemoteDone, 42)
			case "atomic":
				_, _, _ = post.Atomic(e, 1, segment.AttachBase, conduits.AtomicAdd, conduits.Int64, 1, 0, 42)
			}
			for len(r.errs) == 0 && e.Now() < time.Millisecond {
				e.Poll()
			}
			var p *conduits.PeerError
			if len(r.errs) != 1 || !errors.As(r.errs[0], &p) || p.Rank != 1 {
				t.Errorf("%s: completions %v", op, r.errs)
			}
		})
	}
}

type recorder struct{ errs []error }

func (r *recorder) Receive(*conduits.Message) {}
func (r *recorder) Complete(_ uint64, _ conduits.Event, _ uint64, err error) {
	r.errs = append(r.errs, err)
}

// TestDeadlockIsFound lets ranks wait for what no rank will do.
func TestDeadlockIsFound(t *testing.T) {
	j := newJob(t, 12, sim.Config{})
	for r, err := range runMembers(t, j, func(m *member) error {
		if m.Rank() == 5 {
			return nil
		}
		return m.b.Barrier(1, 0)
	}) {
		var d *sim.DeadlockError
		switch {
		case r == 5:
		case !errors.As(err, &d):
			t.Fatalf("rank %d ended with %v", r, err)
		case len(d.Waiting)+d.More != 11 || !strings.Contains(err.Error(), "rank 6: barrier phase 1: waiting for rank 5"):
			t.Fatalf("%v", err)
		}
	}
}

// TestGoexitAndPanic end one rank in bad ways: the others are not stuck in the
// simulator, and a panic comes out of Run.
func TestGoexitAndPanic(t *testing.T) {
	j := newJob(t, 3, sim.Config{})
	ended := 0
	conduits.Run(j.Endpoints(), func(i int) {
		defer func() { ended++ }()
		if i == 1 {
			runtime.Goexit()
		}
	})
	if ended != 3 {
		t.Fatalf("%d ranks ended", ended)
	}
	j = newJob(t, 3, sim.Config{})
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "the test's own") {
			t.Fatalf("recovered %v", r)
		}
	}()
	conduits.Run(j.Endpoints(), func(i int) {
		if i == 1 {
			panic("the test's own")
		}
	})
	t.Fatal("Run returned")
}

// TestForeignGoroutine sees that a goroutine which the simulator does not run is
// told so instead of racing.
func TestForeignGoroutine(t *testing.T) {
	j := newJob(t, 1, sim.Config{})
	conduits.Run(j.Endpoints(), func(int) {
		e := j.Endpoint(0)
		if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &recorder{}}); err != nil {
			t.Error(err)
			return
		}
		for name, call := range map[string]func(){
			"poll": func() { e.Poll() },
			"send": func() { e.Send(0, conduits.Request, 1, nil) },
			"put":  func() { _, _ = post.Put(e, 0, segment.AttachBase, []byte{1}, 0, 0) },
		} {
			told := make(chan any)
			go func() {
				defer func() { told <- recover() }()
				call()
			}()
			if r := <-told; !strings.Contains(fmt.Sprint(r), "goroutine that the simulator does not run") {
				t.Errorf("%s: recovered %v", name, r)
			}
		}
	})
}

// TestLimit ends a job that polls for ever.
func TestLimit(t *testing.T) {
	j := newJob(t, 2, sim.Config{Limit: sim.Millisecond})
	for r, err := range runMembers(t, j, func(m *member) error {
		for m.ep.Err() == nil {
			m.Poll()
		}
		return m.ep.Err()
	}) {
		if err == nil || !strings.Contains(err.Error(), "1ms") {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
}

// TestSlowAndStalled sees what the faults do to the clock of a rank.
func TestSlowAndStalled(t *testing.T) {
	took := func(f sim.Faults) time.Duration {
		j := newJob(t, 2, sim.Config{Faults: f})
		var last time.Duration
		noErrors(t, runMembers(t, j, func(m *member) error {
			err := chatter(30)(m)
			last = max(last, m.ep.Now())
			return err
		}))
		return last
	}
	plain := took(sim.Faults{})
	if slow := took(sim.Faults{Slow: []sim.Slow{{Rank: 1, Factor: 10}}}); slow < 3*plain {
		t.Errorf("%v with a processor ten times slower, %v without", slow, plain)
	}
	if d := took(sim.Faults{Stalls: []sim.Stall{{Rank: 1, At: sim.Microsecond, For: sim.Millisecond}}}); d < time.Millisecond || d > time.Millisecond+2*plain {
		t.Errorf("%v with a millisecond's stall, %v without", d, plain)
	}
}

// TestBadPlans are refused with the value.
func TestBadPlans(t *testing.T) {
	for want, c := range map[string]sim.Config{
		"rank 4":        {Faults: sim.Faults{Crashes: []sim.Crash{{Rank: 4}}}},
		"rank -1":       {Faults: sim.Faults{Stalls: []sim.Stall{{Rank: -1}}}},
		"by 0":          {Faults: sim.Faults{Slow: []sim.Slow{{Rank: 1}}}},
		"ranks 3 to 1":  {Faults: sim.Faults{Partitions: []sim.Partition{{First: 3, Last: 1}}}},
		"Drop is 1.5":   {Faults: sim.Faults{Drop: 1.5}},
		"Credits is -1": {Credits: -1},
		"MaxMedium":     {MaxMedium: 100},
		"Poll is 0":     {Profile: &sim.Profile{Name: "x", Slot: 1}},
	} {
		_, err := sim.New(4, c)
		if !errors.Is(err, conduits.ErrBadArg) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	for _, n := range []int{0, -1, sim.MaxRanks + 1} {
		if _, err := sim.New(n, sim.Config{}); !errors.Is(err, conduits.ErrBadArg) {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

// TestDatagrams sends numbered datagrams from every rank to the next over a bad
// network, asks again for those that are missing, and in the end has all of
// them: the smallest engine that survives it. It also sees that each kind of
// misfortune has happened.
func TestDatagrams(t *testing.T) {
	for seed := range uint64(20) {
		const n, count = 4, 60
		j := newJob(t, n, sim.Config{Seed: seed, Faults: sim.Faults{
			Drop: 0.2, Duplicate: 0.1, Corrupt: 0.05, Truncate: 0.05, Delay: 0.5, Buffer: 2000,
			Partitions: []sim.Partition{{First: 0, Last: 1, At: 50 * sim.Microsecond, For: 300 * sim.Microsecond}},
		}})
		var bad, twice, reordered int
		finished := 0
		conduits.Run(j.Endpoints(), func(i int) {
			s := j.Endpoint(i).Socket()
			// A datagram: kind, number, check sum.
			pack := func(kind, k uint32) []byte {
				b := binary.LittleEndian.AppendUint32(nil, kind)
				b = binary.LittleEndian.AppendUint32(b, k)
				b = append(b, bytes.Repeat([]byte{byte(k)}, 100)...)
				return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
			}
			have, acked := map[uint32]bool{}, map[uint32]bool{}
			last := -1
			done := false
			for retry := time.Duration(0); ; {
				if !done && len(have) == count && len(acked) == count {
					done = true
					finished++
				}
				if finished == n {
					break
				}
				if s.Now() >= retry {
					for k := range uint32(count) {
						if !acked[k] {
							if err := s.Send((i+1)%n, pack(0, k)); err != nil {
								t.Error(err)
							}
						}
					}
					retry = s.Now() + 100*time.Microsecond
				}
				s.Wait(retry)
				buf := make([]byte, 200)
				for {
					l, src, ok := s.Recv(buf)
					if !ok {
						break
					}
					if l < 12 || crc32.ChecksumIEEE(buf[:l-4]) != binary.LittleEndian.Uint32(buf[l-4:]) {
						bad++
						continue
					}
					k := binary.LittleEndian.Uint32(buf[4:])
					if buf[0] == 1 {
						acked[k] = true
						continue
					}
					if have[k] {
						twice++
					}
					if int(k) < last {
						reordered++
					}
					last = int(k)
					have[k] = true
					if err := s.Send(src, pack(1, k)); err != nil {
						t.Error(err)
					}
				}
			}
		})
		if finished != n || bad == 0 || twice == 0 || reordered == 0 {
			t.Fatalf("seed %d: finished %d, bad %d, twice %d, reordered %d", seed, finished, bad, twice, reordered)
		}
	}
}
