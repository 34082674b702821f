package gastest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) {
	if os.Getenv(envVictim) != "" {
		os.Exit(m.Run()) // without a watchdog, whose report would hide this package's
	}
	os.Exit(testmain.Run(m))
}

// envVictim is set where TestFailures runs one test that fails.
const envVictim = "GASTEST_VICTIM"

var (
	errVictim = errors.New("the input is damaged")
	never     sync.Mutex
)

// victims fail, each in another way; what the test says then.
var victims = map[string]struct {
	test func(t *testing.T)
	says []string
}{
	"error": {
		func(t *testing.T) {
			Run(t, 3, func(n *gas.Node) error {
				if n.Rank() == 2 {
					return errVictim
				}
				return n.Barrier()
			})
		}, []string{"gastest: of 3 ranks rank 2: the input is damaged"},
	},
	"panic": {
		func(t *testing.T) {
			Run(t, 2, func(n *gas.Node) error {
				if n.Rank() == 1 {
					panic("out of luck")
				}
				return n.Barrier()
			})
		}, []string{"gastest: of 2 ranks rank 1: panic: out of luck", "gastest_test.go:"},
	},
	"fatal": {
		func(t *testing.T) {
			Run(t, 4, func(n *gas.Node) error {
				if n.Rank() == 3 {
					t.Fatal("seven is odd")
				}
				return n.Barrier()
			})
		}, []string{"seven is odd", "gastest: rank 3: ", "t.Fatal"},
	},
	"fatal simulated": {
		func(t *testing.T) {
			RunSeeds(t, 3, gas.Config{Ranks: 4, Seed: 5}, func(n *gas.Node) error {
				if n.Rank() == 3 {
					t.Fatal("seven is odd")
				}
				return n.Barrier()
			})
		}, []string{"seven is odd", "gastest: rank 3: ", "(Config.Seed 5); this was t.Fatal"},
	},
	"deadlock": {
		func(t *testing.T) {
			RunConfig(t, gas.Config{Ranks: 2, Stall: "800ms"}, func(n *gas.Node) error {
				if n.Rank() == 1 {
					return n.Wait(func() bool { return false })
				}
				return n.Barrier()
			})
		}, []string{"the job of 2 ranks hangs.", "a condition of the program", "rank 0: barrier", "gastest_test.go:"},
	},
	"mutex": {
		func(t *testing.T) {
			RunConfig(t, gas.Config{Ranks: 2, Stall: "800ms", Conduit: "udp"}, func(n *gas.Node) error {
				if n.Rank() == 1 {
					never.Lock()
					never.Lock()
				}
				return n.Barrier()
			})
		}, []string{"the job of 2 ranks hangs.", "rank 1, which rank 0 waits for, is blocked on a mutex", "Some ranks do not return"},
	},
	"deadlock simulated": {
		func(t *testing.T) {
			RunSeeds(t, 1, gas.Config{Ranks: 2}, func(n *gas.Node) error {
				if n.Rank() == 1 {
					return n.Wait(func() bool { return false })
				}
				return n.Barrier()
			})
		}, []string{"(Config.Seed 1)", "deadlock"},
	},
	"loop": {
		func(t *testing.T) {
			Run(limited{t}, 2, func(n *gas.Node) error {
				for n.Rank() == 1 {
					n.Poll()
				}
				return n.Barrier()
			})
		}, []string{"the job of 2 ranks hangs.", "rank 0: barrier", "gastest_test.go:"},
	},
	"goroutine": {
		func(t *testing.T) {
			Run(t, 2, func(n *gas.Node) error {
				if n.Rank() == 1 {
					go leaked()
				}
				return n.Barrier()
			})
		}, []string{"what its ranks have started is not", "goroutines: 1", "gastest.leaked", "gastest_test.go:"},
	},
}

// limited is a test whose time limit is about to end.
type limited struct{ *testing.T }

func (limited) Deadline() (time.Time, bool) { return time.Now().Add(4 * time.Second), true }

func leaked() { <-make(chan int) }

// TestVictim is what TestFailures runs.
func TestVictim(t *testing.T) {
	v, ok := victims[os.Getenv(envVictim)]
	if !ok {
		t.Skip("is run by others")
	}
	looks = 20
	v.test(t)
	t.Log("went on") // after a failure
}

// TestFailures: jobs fail and hang, and the test says how.
func TestFailures(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range victims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(self, "-test.run", "^TestVictim$", "-test.timeout", "5m")
			c.Env = append(os.Environ(), envVictim+"="+name)
			out, err := c.CombinedOutput()
			if c.ProcessState.ExitCode() != 1 {
				t.Errorf("ends with %v", err)
			}
			for _, w := range append(v.says, "--- FAIL: TestVictim") {
				if !strings.Contains(string(out), w) {
					t.Errorf("does not say %q", w)
				}
			}
			if strings.Contains(string(out), "went on") || strings.Contains(string(out), "panic: test timed out") {
				t.Error("the test goes on")
			}
			if t.Failed() {
				t.Logf("it says:\n%s", out)
			}
		})
	}
}

// TestPasses: jobs that work do, and Debug's remarks are logged and written.
func TestPasses(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "sim"} {
		RunConfig(t, gas.Config{Ranks: 3, Conduit: conduit}, func(n *gas.Node) error {
			if sum := gas.Must(gas.AllReduce(n, n.Rank(), gas.Sum)); sum != 3 {
				t.Errorf("rank %d: %d", n.Rank(), sum)
			}
			return nil
		})
	}
	var out strings.Builder
	RunConfig(t, gas.Config{Ranks: 1, Output: &out}, func(n *gas.Node) error {
		fmt.Fprintln(&out, n.Rank())
		return nil
	})
	if out.String() != "0\n" {
		t.Errorf("%q", out.String())
	}
}

// TestSeeds: each seed is another run, and the same seed the same one.
func TestSeeds(t *testing.T) {
	first := func(seed uint64) string {
		var order []byte
		RunSeeds(t, 1, gas.Config{Ranks: 8, Seed: seed}, func(n *gas.Node) error {
			p := gas.Must(gas.New[uint64](n))
			for range 4 {
				gas.Must(gas.FetchAdd(n, p.On(0), 1))
				order = append(order, '0'+byte(n.Rank())) // a simulator runs one rank at a time
			}
			return nil
		})
		return string(order)
	}
	found := map[string]bool{}
	for seed := range uint64(4) {
		a := first(seed + 1)
		if b := first(seed + 1); a != b {
			t.Errorf("seed %d: %s, and then %s", seed+1, a, b)
		}
		found[a] = true
	}
	if len(found) < 3 {
		t.Errorf("four seeds have %d orders: %v", len(found), found)
	}
}

// TestSkip: a rank may skip the test.
func TestSkip(t *testing.T) {
	t.Run("skips", func(t *testing.T) {
		defer func() {
			if !t.Skipped() || t.Failed() {
				panic("the test was not skipped")
			}
		}()
		Run(t, 2, func(n *gas.Node) error {
			if n.Rank() == 1 {
				t.Skip("has nothing to do")
			}
			return n.Barrier()
		})
	})
}
