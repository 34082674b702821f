package gas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/job/profile"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

var tripled = RegisterCall("gas test tripled", func(n *Node, v int) int { return 3 * v })

// counted does what TestProfile knows the figures of.
func counted(n *Node) error {
	p := Must(NewSlice[uint64](n, 32))
	next := p.On((n.Rank() + 1) % n.Size())
	for i := range 100 {
		n.Must(next.Put(n, uint64(i)))
	}
	n.Must(next.PutSlice(n, make([]uint64, 32)))
	n.Must(next.PutShape(n, make([]uint64, 16), Shape{Count: 8, Len: 2, Remote: 4}))
	for range 40 {
		Must(next.Get(n))
	}
	for range 30 {
		Must(FetchAdd(n, next, 1))
	}
	for range 9 {
		if v, err := tripled.Call(n, (n.Rank()+1)%n.Size(), 5); err != nil || v != 15 {
			return fmt.Errorf("three times 5 is %d, %v", v, err)
		}
	}
	for range 20 {
		n.Must(n.Barrier())
	}
	for range 7 {
		Must(AllReduce(n, 1, Sum))
	}
	return nil
}

// written is the profile in a file.
func written(t *testing.T, file string) (j profile.Job, text []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return j, text
}

// rightly compares what the profile of counted on 3 ranks has with what it did, where own memory is counted.
func rightly(t *testing.T, file string) {
	t.Helper()
	const ranks = 3
	j, text := written(t, file)
	type figures struct {
		calls, bytes uint64
		sizes        map[uint64]uint64
	}
	const n = uint64(ranks)
	want := map[string]figures{
		"gas.Ptr.Put put":             {100 * n, 800 * n, map[uint64]uint64{8: 100 * n}},
		"gas.Ptr.PutSlice put":        {n, 256 * n, map[uint64]uint64{256: n}},
		"gas.Ptr.Get get":             {40 * n, 320 * n, map[uint64]uint64{8: 40 * n}},
		"gas.FetchAdd atomic":         {30 * n, 240 * n, map[uint64]uint64{8: 30 * n}},
		"gas.Func.Call request":       {9 * n, 0, map[uint64]uint64{0: 9 * n}},
		" reply":                      {9 * n, 0, map[uint64]uint64{0: 9 * n}},
		"gas.Node.Barrier collective": {20 * n, 0, map[uint64]uint64{0: 20 * n}},
		"gas.AllReduce collective":    {7 * n, 56 * n, map[uint64]uint64{8: 7 * n}},
	}
	for _, r := range j.Rows {
		f, known := want[r.Call+" "+r.Kind]
		if !known {
			continue
		}
		delete(want, r.Call+" "+r.Kind)
		if r.Kind == profile.Reply && r.Calls > f.calls { // collectives of some conduits have some, too
			f.calls, f.sizes = r.Calls, r.Sizes
		}
		if r.Calls != f.calls || r.Bytes != f.bytes || !maps.Equal(r.Sizes, f.sizes) {
			t.Errorf("%s at %s: %d calls of %d bytes, %v; want %d of %d, %v", r.Call, r.Line, r.Calls, r.Bytes, r.Sizes, f.calls, f.bytes, f.sizes)
		}
		if r.Min > r.P99 || r.P99 > r.Max || r.Max > r.Total {
			t.Errorf("%s at %s: times %v, %v, %v of %v", r.Call, r.Line, r.Min, r.P99, r.Max, r.Total)
		}
		calls, last := uint64(0), uint64(0)
		for _, p := range r.Peers {
			calls += p.Calls
		}
		for _, c := range r.Last {
			last += c
		}
		switch {
		case r.Kind == profile.Collective:
			if last != r.Calls/n {
				t.Errorf("%s: ranks came last in %d calls of %d", r.Call, last, r.Calls/n)
			}
		case calls != r.Calls || len(r.Peers) != ranks:
			t.Errorf("%s: %v by rank, of %d", r.Call, r.Peers, r.Calls)
		}
		if r.Kind != profile.Reply && !strings.HasPrefix(r.Line, "profile_test.go:") {
			t.Errorf("%s is at %s", r.Call, r.Line)
		}
	}
	for what := range want {
		t.Errorf("there is no row of %s in\n%s", what, text)
	}
	if j.Ranks != ranks || j.Elapsed <= 0 {
		t.Errorf("it is of %d ranks and %v", j.Ranks, j.Elapsed)
	}
}

// TestProfile: the figures are those of what a program did, on each conduit, and its lines are told.
func TestProfile(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "hybrid", "sim") {
		t.Run(conduit, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "profile")
			var out bytes.Buffer
			cfg := small(3)
			cfg.Conduit, cfg.Output, cfg.Profile = conduit, &out, "peers,sizes,labels,json="+file
			if err := Run(cfg, counted); err != nil {
				t.Fatal(err)
			}
			rightly(t, file)
			for _, want := range []string{"argon: profile of 3 ranks: ", ", put by size: 8: 300\n", ", put by rank: 0: 100 (800 bytes) 1: 100"} {
				if strings.Count(out.String(), want) != 1 {
					t.Errorf("there is not one %q in\n%s", want, &out)
				}
			}
			if conduit == "sim" && !strings.Contains(out.String(), " wait ") {
				t.Errorf("there are no waits in\n%s", &out)
			}
		})
	}
}

// TestProfileOfProcesses: rank 0 has the figures of all processes, and prints them once.
func TestProfileOfProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile")
	r := testjob.RunConfig(t, 3, "counted", testjob.Config{Env: []string{"ARGON_PROFILE=peers,json=" + file}}).Want(t, 0)
	rightly(t, file)
	if strings.Count(r.Output(), "argon: profile of 3 ranks") != 1 {
		t.Errorf("the table is not there once: %s", r.Output())
	}
}

// TestProfileOfFailure: of a job that fails rank 0 tells what it knows, whether it returns the error or ends by Must.
func TestProfileOfFailure(t *testing.T) {
	for _, by := range []func(n *Node) error{(*Node).Barrier, func(n *Node) error { n.Must(n.Barrier()); return nil }} {
		var out bytes.Buffer
		cfg := small(2)
		cfg.Output, cfg.Profile = &out, "1"
		err := Run(cfg, func(n *Node) error {
			if n.Rank() == 1 {
				return fmt.Errorf("out of luck")
			}
			return by(n)
		})
		if err == nil || !strings.Contains(err.Error(), "out of luck") {
			t.Errorf("the error is %v", err)
		}
		if !strings.Contains(out.String(), "argon: the job, or a collective call of it, has failed: this is the profile of rank 0 alone\nargon: profile of 1 rank: ") {
			t.Errorf("it prints %s", &out)
		}
	}
}

// TestProfileUnwritten: that rank 0 cannot write the profile is told, and is no failure of the job, of which the other
// ranks wait for rank 0 at the end.
func TestProfileUnwritten(t *testing.T) {
	for _, conduit := range []string{"shm", "udp"} {
		t.Run(conduit, func(t *testing.T) {
			var out bytes.Buffer
			cfg := small(3)
			cfg.Conduit, cfg.Output, cfg.Profile = conduit, &out, "json="+filepath.Join(t.TempDir(), "none", "profile")
			if err := Run(cfg, (*Node).Barrier); err != nil {
				t.Errorf("the job has failed: %v", err)
			}
			if want := "argon: profile: gas: profile (ARGON_PROFILE=json=FILE): open "; strings.Count(out.String(), want) != 1 {
				t.Errorf("there is not one %q in\n%s", want, &out)
			}
		})
	}
}

// TestProfileOfSplitBarriers: what a rank computes between notify and wait is no waiting, and such a rank did not
// come last, also if others do both in one call.
func TestProfileOfSplitBarriers(t *testing.T) {
	const computes = time.Second
	file := filepath.Join(t.TempDir(), "profile")
	cfg := small(3)
	cfg.Conduit, cfg.Output, cfg.Profile = "sim", &bytes.Buffer{}, "json="+file
	err := Run(cfg, func(n *Node) error {
		split := func() error {
			if err := n.BarrierNotify(); err != nil {
				return err
			}
			conduits.Sleep(n.Layers().Conduit, computes)
			if err := n.BarrierNotify(); !errors.Is(err, ErrNotReady) { // which changes nothing
				return fmt.Errorf("a second notify: %v", err)
			}
			if n.Rank() > 0 {
				return n.BarrierWait()
			}
			for {
				if done, err := n.BarrierTry(); done || err != nil {
					return err
				}
			}
		}
		for range 2 {
			n.Must(split())
		}
		if n.Rank() == 1 {
			n.Must(split())
		} else {
			n.Must(n.Barrier())
		}
		if n.Rank() == 2 {
			conduits.Sleep(n.Layers().Conduit, 2*computes)
		}
		return n.Barrier()
	})
	if err != nil {
		t.Fatal(err)
	}
	j, text := written(t, file)
	last := map[int]uint64{}
	for _, r := range j.Rows {
		if r.Kind != profile.Collective {
			continue
		}
		for rank, k := range r.Last {
			last[rank] += k
		}
		// The last barrier has two ranks wait for the third, 2 and 1 times as long as one computes.
		if limit := 7 * computes / 2; r.Total > limit || r.Call != "gas.Node.Barrier" && r.Total > computes/2 {
			t.Errorf("%s took %v", r.Call, r.Total)
		}
	}
	if want := map[int]uint64{2: 1}; !maps.Equal(last, want) {
		t.Errorf("ranks came last as in %v, not %v:\n%s", last, want, text)
	}
}

// TestProfileOfTeams: goroutines of a rank may be in calls of several teams at once.
func TestProfileOfTeams(t *testing.T) {
	const teams, calls = 3, 20
	file := filepath.Join(t.TempDir(), "profile")
	cfg := small(2)
	cfg.Output, cfg.Profile = &bytes.Buffer{}, "json="+file
	err := Run(cfg, func(n *Node) error {
		var l [teams]*Team
		for i := range l {
			l[i] = Must(n.World().Split(0, i))
		}
		var all sync.WaitGroup
		var failed [teams]error
		for i := range l {
			all.Go(func() {
				for k := range calls {
					if sum, err := AllReduce(l[i], k, Sum); err != nil || sum != 2*k {
						failed[i] = fmt.Errorf("sum %d, %w", sum, err)
						return
					}
				}
			})
		}
		all.Wait()
		return errors.Join(failed[:]...)
	})
	if err != nil {
		t.Fatal(err)
	}
	j, text := written(t, file)
	for _, r := range j.Rows {
		if r.Call == "gas.AllReduce" && r.Kind == profile.Collective {
			if r.Calls != 2*teams*calls || r.Max > j.Elapsed {
				t.Errorf("%d calls, the longest of %v in %v", r.Calls, r.Max, j.Elapsed)
			}
			return
		}
	}
	t.Errorf("there is no row of the calls in\n%s", text)
}

// TestTraffic: the matrix of a job has what each rank has sent to which, with and without a profile.
func TestTraffic(t *testing.T) {
	for _, conduit := range []string{"udp", "shm"} {
		for _, options := range []string{"traffic=", "1,traffic="} {
			checkTraffic(t, conduit, options)
		}
	}
}

func checkTraffic(t *testing.T, conduit, options string) {
	file := filepath.Join(t.TempDir(), "m.json")
	var out bytes.Buffer
	const calls = 1000
	err := Run(Config{Conduit: conduit, Ranks: 3, Profile: options + file, Output: &out}, func(n *Node) error {
		if n.Rank() == 1 {
			for range calls {
				if v, err := tripled.Call(n, 2, 5); err != nil || v != 15 {
					return fmt.Errorf("three times 5 is %d, %v", v, err)
				}
			}
		}
		return n.Barrier()
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	var m struct {
		Ranks int
		Flows []profile.Flow
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || m.Ranks != 3 || !strings.Contains(out.String(), "argon: traffic of 3 ranks: ") || strings.Contains(out.String(), "profile of") != (options[0] == '1') {
		t.Fatalf("%s: %v: %s\n%s", conduit, err, text, &out)
	}
	type pair struct{ from, to int }
	flows := map[pair]profile.Flow{}
	for _, f := range m.Flows {
		flows[pair{f.From, f.To}] = f
		if f.From != 1 && f.Requests > 100 {
			t.Errorf("%s: %d requests from %d to %d", conduit, f.Requests, f.From, f.To)
		}
	}
	if len(flows) != len(m.Flows) {
		t.Errorf("%s: a pair comes twice: %+v", conduit, m.Flows)
	}
	to, back := flows[pair{1, 2}], flows[pair{2, 1}]
	if to.Requests < calls || to.Requests > calls+100 || to.Replies > 100 {
		t.Errorf("%s: of %d calls from 1 to 2: %+v", conduit, calls, to)
	}
	if n := back.Requests + back.Replies; n < calls || n > calls+100 {
		t.Errorf("%s: of %d results from 2 to 1: %+v", conduit, calls, back)
	}
	if to := flows[pair{1, 0}]; to.Requests > 100 {
		t.Errorf("%s: from 1 to 0: %+v", conduit, to)
	}
}

// TestTrafficOfGroups: of more than 16 ranks there are sums, and five pairs are named.
func TestTrafficOfGroups(t *testing.T) {
	var out bytes.Buffer
	err := Run(Config{Conduit: "sim", Ranks: 33, Profile: "traffic", Output: &out}, func(n *Node) error {
		if n.Rank() == 20 {
			for range 1000 {
				if _, err := tripled.Call(n, 32, 5); err != nil {
					return err
				}
			}
		}
		return n.Barrier()
	})
	row := false
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) == 13 && f[1] == "18-20" {
			_, n, _ := strings.Cut(f[12], "/")
			row = strings.HasPrefix(n, "1k") || strings.HasPrefix(n, "1.0")
		}
	}
	if err != nil || !row || strings.Count(out.String(), "argon:   rank ") != 5 {
		t.Fatalf("%v: %s", err, &out)
	}
}

// TestTrafficOfFailure: of a job that fails rank 0 tells its own.
func TestTrafficOfFailure(t *testing.T) {
	var out bytes.Buffer
	cause := errors.New("on purpose")
	err := Run(Config{Ranks: 2, Profile: "traffic", Output: &out}, func(n *Node) error {
		if n.Rank() == 1 {
			return cause
		}
		return n.Barrier()
	})
	if !errors.Is(err, cause) || !strings.Contains(out.String(), "the traffic of rank 0 alone") {
		t.Fatalf("%v: %s", err, &out)
	}
}
