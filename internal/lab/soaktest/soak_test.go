package soaktest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/upc/rt"
)

var (
	soakRounds = flag.Int("soak", 0, "rounds of each kind of resource; 0 means few")
	soakKind   = flag.String("soak.kind", "", "a part of the names of the kinds to try")
)

// envRounds and envKind hand the flags to ranks that are processes.
const (
	envRounds = "ARGONTEST_SOAK_ROUNDS"
	envKind   = "ARGONTEST_SOAK_KIND"
)

const ranks = 3

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"soak": func() {
		rounds, err := strconv.Atoi(os.Getenv(envRounds))
		testjob.Check(err)
		w := watch{rounds: rounds, part: max(8, parts[os.Getenv(jobenv.Conduit)]), only: os.Getenv(envKind), each: true}
		testjob.Check(w.run(gas.Config{}))
		for _, grown := range w.grown {
			fmt.Println(grown)
		}
	}})
}

// TestSoak takes and gives back every kind of resource, on each conduit, with the ranks in
// this process and, where that is another way, as processes.
func TestSoak(t *testing.T) {
	testmain.Long(t)
	for _, conduit := range slices.Sorted(maps.Keys(parts)) {
		if _, err := conduits.Lookup(conduit); err != nil {
			continue // ofi, in a build without it
		}
		t.Run(conduit, func(t *testing.T) {
			w := watch{rounds: *soakRounds, part: parts[conduit], only: *soakKind}
			if parts[conduit] >= 16 && *soakRounds == 0 && *soakKind == "" {
				w.only = "handles" // the rest by TestJobs, and by processes
			}
			if err := w.run(gas.Config{Ranks: ranks, Conduit: conduit}); err != nil {
				t.Fatal(err)
			}
			for _, grown := range w.grown {
				t.Error(grown)
			}
		})
	}
	for _, conduit := range []string{"shm", "hybrid"} {
		t.Run(conduit+"-processes", func(t *testing.T) {
			r := testjob.RunConfig(t, ranks, "soak", testjob.Config{
				Segment: segmentSize,
				Env:     []string{fmt.Sprintf("%s=%d", envRounds, *soakRounds), envKind + "=" + *soakKind, jobenv.Lanes + "=2"},
				Launch:  func(c *launch.Config) { c.Conduit = conduit },
			}).Want(t, 0)
			if out := strings.Join(r.Stdout, ""); out != "" {
				t.Error(out)
			}
		})
	}
}

// parts are the conduits, and one in how many rounds of a kind are enough: those of a network
// take longer, and most of what they have to give back is that of others.
var parts = map[string]int{"shm": 1, "udp": 4, "hybrid": 16, "ofi": 16}

const (
	segmentSize = 16 << 20
	mostTimes   = 32 // how many times the rounds of a kind are run for what goes on growing
)

// TestJobs runs jobs one after the other in this process, which leave nothing of all that they
// had, whether they end well or fail.
func TestJobs(t *testing.T) {
	testmain.Long(t)
	for _, conduit := range slices.Sorted(maps.Keys(parts)) {
		if _, err := conduits.Lookup(conduit); err != nil {
			continue
		}
		t.Run(conduit, func(t *testing.T) {
			w, round := watch{rounds: *soakRounds / 100, part: parts[conduit]}, 0
			err := w.observe(kind{name: "jobs"}, true, func() error {
				round++
				return oneJob(conduit, round)
			}, func(more bool) (bool, error) { return more, nil })
			if err != nil {
				t.Fatal(err)
			}
			for _, grown := range w.grown {
				t.Error(grown)
			}
		})
	}
}

// oneJob is a job in which each kind of resource is taken in one round; every other one ends
// by a failure, with all that there is in use.
func oneJob(conduit string, round int) error {
	failure := errors.New("the job is to fail")
	if round%2 == 0 {
		failure = nil
	}
	err := gas.Run(config(gas.Config{Ranks: ranks, Conduit: conduit}), func(n *gas.Node) error {
		t, err := rt.Join(n, rt.Config{})
		if err != nil {
			return err
		}
		defer t.Leave()
		s := &soak{Node: n, thread: t, round: round, all: rand.New(rand.NewPCG(1, uint64(round))), own: rand.New(rand.NewPCG(3, uint64(n.Rank()+round)))}
		if failure != nil {
			_, err := gas.NewMailbox(n, "a mailbox that stays", func(*gas.Node, int, []int) {})
			_, err2 := gas.Register(n, make([]byte, 1000))
			_, _, err3 := gas.MakeSlice[int](n, 1000)
			_, err4 := n.World().Split(0, 0)
			_, err5 := echo.Go(n, s.peer(), make([]byte, 1000))
			if err := errors.Join(err, err2, err3, err4, err5); err != nil {
				return err
			}
			return failure
		}
		for _, k := range kinds {
			if err := k.run(s); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
		return nil
	})
	if failure != nil && errors.Is(err, failure) {
		return nil
	}
	return err
}

// watch runs all kinds in one job and looks at what each leaves behind.
type watch struct {
	rounds int    // 0: as many as a kind needs at least
	part   int    // one in so many of these
	only   string // a part of the names of kinds
	each   bool   // every rank looks: it is a process

	grown []string
}

// config is c with little of everything: firehoses to memory that has gone are given up after
// few rounds.
func config(c gas.Config) gas.Config {
	c.SegmentSize, c.Lanes = segmentSize, 2
	c.Pinnable, c.PinBucket = 16<<20, 512<<10
	return c
}

// run runs the job.
func (w *watch) run(c gas.Config) error {
	return gas.Run(config(c), func(n *gas.Node) error {
		t, err := rt.Join(n, rt.Config{})
		if err != nil {
			return err
		}
		for _, k := range kinds {
			if !strings.Contains(k.name, w.only) {
				continue
			}
			s := &soak{Node: n, thread: t, all: rand.New(rand.NewPCG(1, 2)), own: rand.New(rand.NewPCG(3, uint64(n.Rank())))}
			if err := w.kind(s, k); err != nil {
				return err
			}
		}
		t.Leave()
		return nil
	})
}

// kind runs rounds of k, and all ranks look at what there is, or the first does for all, while
// none does anything.
func (w *watch) kind(s *soak, k kind) error {
	looks := w.each || s.Rank() == 0
	return w.observe(k, looks, func() error {
		err := k.run(s)
		s.round++
		return err
	}, func(more bool) (bool, error) {
		return gas.AllReduce(s.Node, more, func(a, b bool) bool { return a || b })
	})
}

// observe has run called as often as k wants and looks again and again, each time after twice
// as many rounds. What is kept for later use grows to what is used at a time, sooner or later
// and often by doubling, and then no more; a leak grows between all looks. agree has all ranks
// arrive and reports whether one of them wants more.
func (w *watch) observe(k kind, looks bool, run func() error, agree func(more bool) (bool, error)) error {
	// After a quarter of 160 rounds an object of each is more than noise.
	rounds := max(w.rounds, k.rounds/w.part, min(max(k.rounds, 40), 160))
	var was []usage
	for done, until := 0, rounds/4; until <= mostTimes*rounds; until *= 2 {
		for ; done < until; done++ {
			if err := run(); err != nil {
				return fmt.Errorf("%s, round %d: %w", k.name, done, err)
			}
		}
		if _, err := agree(false); err != nil {
			return err
		}
		if looks {
			was = append(was, look(done))
		}
		if more, err := agree(looks && (len(was) < 3 || growing(was) != nil)); err != nil {
			return err
		} else if !more {
			break
		}
	}
	for _, i := range growing(was) {
		text := fmt.Sprintf("%s: %s grow:", k.name, usageNames[i])
		for _, u := range was {
			text += fmt.Sprintf(" %.0f after %d rounds,", u.of[i], u.rounds)
		}
		w.grown = append(w.grown, strings.TrimSuffix(text, ","))
	}
	return nil
}

// growing are the indices of what has grown between all looks, by more than some noise and a
// part of a thing in each round.
func growing(was []usage) (names []int) {
	for i := range usageNames {
		grown := len(was) > 1
		for k := 1; k < len(was); k++ {
			rounds := float64(was[k].rounds - was[k-1].rounds)
			grown = grown && was[k].of[i]-was[k-1].of[i] > usageSlack[i].noise+usageSlack[i].part*rounds
		}
		if grown {
			names = append(names, i)
		}
	}
	return names
}

// usage has the counters of a process after so many rounds, in the order of usageNames.
type usage struct {
	rounds int
	of     [6]float64
}

var (
	usageNames = [6]string{"live objects", "live bytes", "descriptors", "goroutines", "threads", "mappings"}
	// usageSlack is what may differ by chance, and for each round.
	usageSlack = [6]struct{ noise, part float64 }{{30, 0.05}, {8 << 10, 8}, {0, 0}, {0, 0}, {2, 0}, {2, 0}}
)

// look counts what this process has.
func look(rounds int) usage {
	runtime.GC()
	runtime.GC() // what the first has found unreachable may have had cleanups
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	mappings, _ := os.ReadFile("/proc/self/maps")
	return usage{rounds, [6]float64{
		float64(m.HeapObjects), float64(m.HeapAlloc), entries("fd"), float64(runtime.NumGoroutine()), entries("task"),
		float64(bytes.Count(mappings, []byte{10})),
	}}
}

// entries is how many entries a folder of /proc/self has.
func entries(folder string) float64 {
	d, err := os.ReadDir("/proc/self/" + folder)
	if err != nil {
		return -1
	}
	return float64(len(d))
}

// soak is what a rank has in a round: the job, how many rounds there were, and chance that is the same on all ranks or
// its own.
type soak struct {
	*gas.Node
	thread   *rt.Thread
	round    int
	lanes    int // calls by lanes so far
	all, own *rand.Rand
}

// peer is another rank, the same distance from all.
func (s *soak) peer() int { return (s.Rank() + 1 + s.all.IntN(s.Size()-1)) % s.Size() }
