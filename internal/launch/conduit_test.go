package launch_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/hybrid/shmudp" // these register how their jobs are started
	_ "github.com/argon-go/argon/conduits/shm"
	_ "github.com/argon-go/argon/conduits/sim"
	_ "github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// Conduits of these tests: slate's ranks share a file of one byte each, in which a
// rank says how far it has got; meeting's find each other at the rendezvous, and
// places' have nothing but their places.
func init() {
	conduits.Register(conduits.Conduit{Name: "slate", Join: joinSlate, Launch: &conduits.Launch{MaxRanks: 4, Memory: newSlate}})
	conduits.Register(conduits.Conduit{Name: "meeting", Launch: &conduits.Launch{Rendezvous: true}})
	conduits.Register(conduits.Conduit{Name: "places", Launch: &conduits.Launch{}})
	conduits.Register(conduits.Conduit{Name: "inside", Local: func(int, conduits.Config) ([]conduits.Endpoint, error) { return nil, nil }})
}

// slate is the launcher's side.
type slate struct {
	f    *os.File
	fail string
}

func newSlate(n int, c conduits.Config) (conduits.JobMemory, error) {
	f, err := os.CreateTemp("", "slate-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	if c.MaxSegment != 1<<20 {
		return nil, fmt.Errorf("the launcher asks for segments of %d bytes", c.MaxSegment)
	}
	return &slate{f: f}, f.Truncate(int64(n))
}

func (s *slate) File() *os.File { return s.f }

func (s *slate) State(rank int) conduits.RankState {
	var b [1]byte
	if _, err := s.f.ReadAt(b[:], int64(rank)); err != nil {
		panic(err)
	}
	return conduits.RankState(b[0])
}

func (s *slate) Fail(_, _ int, cause string) { s.fail = cause }

func (s *slate) Failure() (rank, status int, cause string, ok bool) {
	return 0, 1, s.fail, s.fail != ""
}

func (s *slate) Close() error { return s.f.Close() }

// chalk is a rank's endpoint as far as these tests use it.
type chalk struct {
	conduits.Endpoint
	f    *os.File
	rank int
}

func joinSlate(j conduits.Job, _ conduits.Config) (conduits.Endpoint, error) {
	fd, err := strconv.Atoi(j.Env(jobenv.SegFD))
	if err != nil {
		return nil, err
	}
	e := &chalk{f: os.NewFile(uintptr(fd), "slate"), rank: j.Rank}
	return e, e.write(conduits.RankAttached)
}

func (e *chalk) write(s conduits.RankState) error {
	_, err := e.f.WriteAt([]byte{byte(s)}, int64(e.rank))
	return err
}

func (e *chalk) Close() error { return e.write(conduits.RankFinished) }

// slated joins; of three ranks the last leaves without a word if it is told to.
func slated() {
	e, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	if len(os.Args) > 1 && testjob.Rank() == testjob.Size()-1 {
		return
	}
	testjob.Check(e.Close())
}

// told prints what the launcher says of the rendezvous.
func told() {
	_, err := jobkey.LoadFrom(os.Getenv)
	fmt.Println(os.Getenv(jobenv.Rendezvous) != "", os.Getenv(jobenv.Host) != "", err == nil, os.Getenv(jobenv.SegFD) != "")
}

func on(conduit string) testjob.Config {
	return testjob.Config{Segment: 1 << 20, Launch: func(c *launch.Config) { c.Conduit = conduit }}
}

// TestForeignConduit launches conduits that the launcher knows by what they have
// registered alone.
func TestForeignConduit(t *testing.T) {
	r := testjob.RunConfig(t, 3, "slated", on("slate")).Want(t, 0)
	for i, rk := range r.Ranks {
		if rk.State != launch.Finished {
			t.Errorf("rank %d ended %v", i, rk.State)
		}
	}
	c := on("slate")
	c.Args = []string{"silent"}
	if r := testjob.RunConfig(t, 3, "slated", c); r.Status != jobenv.StatusFailed || r.Failed != 2 || r.Err == nil || !strings.Contains(r.Err.Error(), "before it left the job") {
		t.Errorf("a rank that has not left: status %d, rank %d, %v", r.Status, r.Failed, r.Err)
	}
	for _, c := range []struct {
		conduit string
		status  int // at a rendezvous a rank must have been seen
		want    string
	}{
		{"meeting", jobenv.StatusFailed, "true true true false\n"},
		{"places", 0, "false false false false\n"},
	} {
		for i, out := range testjob.RunConfig(t, 2, "told", on(c.conduit)).Want(t, c.status).Stdout {
			if out != c.want {
				t.Errorf("%s, rank %d was told %q, want %q", c.conduit, i, out, c.want)
			}
		}
	}
	if r := testjob.RunConfig(t, 2, "fail", on("places")); r.Status != 7 || r.Err == nil {
		t.Errorf("a rank that fails: status %d, %v", r.Status, r.Err)
	}
}

// TestConduitLimits: what a conduit has registered bounds its jobs, and one without
// Launch is none for a launcher.
func TestConduitLimits(t *testing.T) {
	for _, c := range []struct {
		conduit string
		hosts   []launch.Host
		size    int
		want    string
	}{
		{"slate", nil, 5, "5 ranks: a job has 1 to 4"},
		{"slate", []launch.Host{{Name: "a", Slots: 2}}, 2, "slate does not span hosts"},
		{"meeting", []launch.Host{{Name: "a", Slots: 2}}, 2, ""},
		{"inside", nil, 1, `no conduit "inside"; known: `},
	} {
		cfg := launch.Config{Conduit: c.conduit, Size: c.size, Program: "true", Hosts: c.hosts, Deputy: "/proc/self/exe"}
		cfg.EnsureDefaults()
		if err := cfg.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.conduit, err, c.want)
		}
	}
}
