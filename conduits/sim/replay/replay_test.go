package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/sim/replay"
	"github.com/argon-go/argon/conduits/traffic"
	"github.com/argon-go/argon/gas"
)

const elements = 1000

// program has some of everything: puts, gets, atomics, calls, collectives, a lock and a signal.
func program(n *gas.Node) error {
	p, err := gas.NewSlice[uint64](n, 2*elements)
	if err != nil {
		return err
	}
	next := (n.Rank() + 1) % n.Size()
	mem := make([]uint64, elements)
	if err := p.On(next).PutSlice(n, mem); err != nil {
		return err
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	conduits.Sleep(n.Layers().Conduit, time.Duration(1+n.Rank())*time.Microsecond) // computes
	if err := p.On(next).Add(elements).GetSlice(n, mem); err != nil {
		return err
	}
	for range 3 {
		if _, err := gas.FetchAdd(n, p.On(0), 1); err != nil {
			return err
		}
	}
	if sum, err := gas.AllReduce(n, n.Rank(), gas.Sum[int]); err != nil || sum != n.Size()*(n.Size()-1)/2 {
		return fmt.Errorf("sum %d, %w", sum, err)
	}
	return n.Barrier()
}

// record runs program on a conduit and returns its traffic.
func record(t *testing.T, conduit string, ranks int, options string) *traffic.Traffic {
	t.Helper()
	file := filepath.Join(t.TempDir(), "traffic")
	t.Setenv("ARGON_RECORD", file)
	if conduit == "sim" {
		t.Setenv("ARGON_SIM", options)
	}
	if err := gas.Run(gas.Config{Ranks: ranks, Conduit: conduit}, program); err != nil {
		t.Fatal(err)
	}
	// Which job of the process it is depends on the tests before.
	l, err := filepath.Glob(file + "*")
	if err != nil || len(l) != 1 {
		t.Fatal(l, err)
	}
	f, err := os.Open(l[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr, err := traffic.Read(l[0], f)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func run(t *testing.T, tr *traffic.Traffic, options string, compute float64) *replay.Report {
	t.Helper()
	c, err := sim.ParseOptions(options)
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Run(tr, replay.Options{Sim: c, Compute: compute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRecorded: on each conduit a recording has the accesses of the program, and its replay comes to an
// end on every machine, with the times that the machine has.
func TestRecorded(t *testing.T) {
	const ranks = 3
	for _, conduit := range []string{"shm", "udp", "sim"} {
		t.Run(conduit, func(t *testing.T) {
			tr := record(t, conduit, ranks, "")
			puts, gets, atomics := 0, 0, 0
			for r := range tr.Ranks {
				for _, a := range tr.Ranks[r].Accesses {
					switch {
					case a.Verb == conduits.Put && a.Size == 8*elements && int(a.Rank) == (r+1)%ranks && a.Want&conduits.RemoteDone != 0 && a.Arrival[1] >= 0:
						puts++
					case a.Verb == conduits.Get && a.Size == 8*elements && a.Arrival[1] >= 0:
						gets++
					case a.Verb == conduits.Atomic && a.Rank == 0:
						atomics++
					}
				}
			}
			// Rank 0 reaches its own words itself.
			if puts != ranks || gets != ranks || atomics < 3*(ranks-1) {
				t.Errorf("%d puts, %d gets, %d atomics", puts, gets, atomics)
			}
			near := run(t, tr, "", 1)
			far := run(t, tr, "latency=1ms", 1)
			// Put, barrier, get and atomics of a rank are not over before as many trips.
			if trips := 2 + 1 + 2 + 3*2 + 1; far.Took < time.Duration(trips)*time.Millisecond || near.Took >= far.Took {
				t.Errorf("%v, and %v where each way takes 1ms", near.Took, far.Took)
			}
			slow, alone := run(t, tr, "", 1000), run(t, tr, "", 0)
			for r := range tr.Ranks {
				if c := near.Ranks[r].Computing; slow.Ranks[r].Computing != 1000*c || alone.Ranks[r].Computing != 0 {
					t.Errorf("rank %d computed %v, %v 1000 times as slowly, and %v not at all", r, c, slow.Ranks[r].Computing, alone.Ranks[r].Computing)
				}
			}
			var b bytes.Buffer
			if err := near.Print(&b); err != nil || !strings.Contains(b.String(), "recorded on "+conduit) {
				t.Error(err, b.String())
			}
		})
	}
}

// TestSame: on the machine that it was recorded on a replay takes as long for each rank, to the nanosecond: also
// with few credits, another seed, and a network whose buffers are finite.
func TestSame(t *testing.T) {
	for _, options := range []string{"", "credits=1", "seed=5", "machine=atoll topology=torus", "topology=torus flits=4", "machine=firmvia"} {
		tr := record(t, "sim", 5, options)
		r := run(t, tr, options, 1)
		for i := range tr.Ranks {
			if got, want := r.Ranks[i].Took, tr.Ranks[i].Took; got != want {
				t.Errorf("%q: rank %d took %v, and %v again", options, i, want, got)
			}
		}
	}
}

// TestCausality: a wait is over after what it is for, wherever that is late, and a reply comes after its request
// has been handled.
func TestCausality(t *testing.T) {
	const late, latency = 5 * time.Millisecond, time.Millisecond
	tr := &traffic.Traffic{
		Ranks: []traffic.Rank{
			// Rank 0 asks rank 1, which computes first; then it tells rank 2.
			{Items: []traffic.Item{{Verb: traffic.Send, N: 0, Last: -1}, {Verb: traffic.Wait, Upto: 0, Last: 0}, {Verb: traffic.Send, N: 2, Last: -1}}, Arrivals: 1, Needed: []bool{true}},
			{Items: []traffic.Item{{Verb: traffic.Wait, Gap: late, Last: 0}}, Arrivals: 1, Needed: []bool{false}, Replies: []int32{1}},
			{Items: []traffic.Item{{Verb: traffic.Wait, Upto: 1, Last: -1}}, Arrivals: 1, Needed: []bool{true}},
		},
		Messages: []traffic.Message{
			{Src: 0, Dst: 1, Class: conduits.Request, Access: -1, Replies: 1},
			{Src: 1, Dst: 0, Class: conduits.Reply, Access: -1},
			{Src: 0, Dst: 2, Class: conduits.Request, Access: -1},
		},
	}
	for i, m := range tr.Messages {
		tr.Ranks[m.Dst].In = map[int32][]int32{m.Src: {int32(i)}}
	}
	r := run(t, tr, "latency=1ms", 1)
	if w := r.Ranks[0].Took; w < late+latency {
		t.Errorf("rank 0 went on after %v: its request is answered after %v, %v away", w, late, latency)
	}
	if w := r.Ranks[2].Took; w < late+2*latency {
		t.Errorf("rank 2 went on after %v", w)
	}
}

// TestTraffic runs tables of programs.
func TestTraffic(t *testing.T) {
	for what, bytes := range map[string]uint64{"ep.4": 0, "is.W.2": 11 * 2 << 20} {
		tr, err := traffic.NPB(what)
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, tr, "", 1)
		// Extoll's links carry 275 MB/s.
		if least := time.Duration(float64(bytes) / 275e6 * 1e9); r.Took < least || r.Took > least*11/10+time.Millisecond {
			t.Errorf("%s took %v; its data alone takes %v", what, r.Took, least)
		}
	}
}

// TestRefused: a machine, or a factor, that there is not.
func TestRefused(t *testing.T) {
	tr, err := traffic.NPB("ep.2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replay.Run(tr, replay.Options{Compute: -1}); !errors.Is(err, conduits.ErrBadArg) || !strings.Contains(err.Error(), "-1") {
		t.Error(err)
	}
	if _, err := replay.Run(tr, replay.Options{Sim: sim.Config{Credits: 1 << 20}}); !errors.Is(err, conduits.ErrBadArg) {
		t.Error(err)
	}
	const much = 1 << 37
	long := &traffic.Traffic{Name: "f", Ranks: []traffic.Rank{{Accesses: []traffic.Access{{Verb: conduits.Get, Size: much}}}}}
	if _, err := replay.Run(long, replay.Options{Compute: 1}); !errors.Is(err, conduits.ErrResource) || !strings.Contains(err.Error(), fmt.Sprint(much)) {
		t.Error(err)
	}
}
