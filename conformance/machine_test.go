package conformance_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/internal/conc"
)

// lossy is an endpoint that forgets every seventh put.
type lossy struct {
	conduits.Endpoint
	puts int
}

func openLossy(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	eps, err := shm.Local(n, c)
	for i := range eps {
		eps[i] = &lossy{Endpoint: eps[i]}
	}
	return eps, err
}

func (e *lossy) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Verb == conduits.Put && !a.Now {
		if e.puts++; e.puts%7 == 0 {
			return a.Want, nil
		}
	}
	return e.Endpoint.Post(a)
}

// A lost put is found, the program that shows it is short, and its text is a
// test that fails in the same way.
func TestMachineFindsLostPuts(t *testing.T) {
	text := conformance.FindFailure(openLossy, 1, conformance.Program{Hidden: true})
	what, program, ok := strings.Cut(text, "\nTo see it again, run this test:\n\n")
	if !ok {
		t.Fatalf("a conduit that loses puts passes: %q", text)
	}
	t.Log(text)
	if n := strings.Count(program, "Do: "); n < 1 || n > 8 {
		t.Errorf("the program has %d steps", n)
	}
	if testing.Short() {
		t.Skip("building takes seconds")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "replay.go"), filepath.Join(dir, "overlay.json")
	index, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "replayed_test.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{file: []byte(program), overlay: index} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "test", "-overlay", overlay, "-run", "^TestReplay$", ".").CombinedOutput()
	if err == nil {
		t.Errorf("the printed test passes:\n%s", program)
	}
	_, what, _ = strings.Cut(what, ": ") // several ranks see it, and any of them may be first
	if !strings.Contains(string(out), what) {
		t.Errorf("the printed test says\n%s\nand not\n%s", out, what)
	}
}

// slow is an endpoint whose transfers and atomics happen some polls later, in
// any order.
type slow struct {
	conduits.Endpoint
	rng   *rand.Rand
	r     conduits.Receiver
	later []func()
	// hasty says that a put is done before it is.
	hasty bool
}

func openSlow(n int, c conduits.Config) ([]conduits.Endpoint, error) { return slowly(n, c, false) }

func openHasty(n int, c conduits.Config) ([]conduits.Endpoint, error) { return slowly(n, c, true) }

func slowly(n int, c conduits.Config, hasty bool) ([]conduits.Endpoint, error) {
	eps, err := shm.Local(n, c)
	for i := range eps {
		eps[i] = &slow{Endpoint: eps[i], rng: rand.New(rand.NewPCG(c.Seed, uint64(i))), hasty: hasty}
	}
	return eps, err
}

func (e *slow) Attach(c conduits.AttachConfig) error {
	e.r = c.Receiver
	return e.Endpoint.Attach(c)
}

func (e *slow) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return e.Endpoint.Post(a)
	}
	if err := conduits.CheckAccess(e, "slow", a); err != nil {
		return 0, err
	}
	kept := *a
	if e.hasty && a.Verb == conduits.Put && e.rng.IntN(4) == 0 {
		e.later = append(e.later, func() { _, _ = e.Endpoint.Post(&kept) })
		return a.Want, nil
	}
	e.later = append(e.later, func() {
		_, err := e.Endpoint.Post(&kept)
		e.r.Complete(kept.Cookie, kept.Wanted(), kept.Value, err)
	})
	return 0, nil
}

func (e *slow) Poll() int { return e.Endpoint.Poll() + e.some() }
func (e *slow) Spin() int { return e.Endpoint.Spin() + e.some() }

// some does one of what is to be done later, or not.
func (e *slow) some() int {
	if len(e.later) == 0 || e.Polling() || e.rng.IntN(3) == 0 {
		return 0
	}
	i := e.rng.IntN(len(e.later))
	f := e.later[i]
	e.later = append(e.later[:i], e.later[i+1:]...)
	f()
	return 1
}

// Park does not sleep over what is to be done.
func (e *slow) Park(t conduits.Ticket) {
	if len(e.later) > 0 {
		e.Disarm(t)
		return
	}
	e.Endpoint.Park(t)
}

// A conduit that completes late and out of order is as good as any.
func TestMachineOnSlowConduit(t *testing.T) {
	for _, kind := range []conformance.Program{{Hidden: true}, {Bare: true}} {
		if text := conformance.FindFailure(openSlow, 1, kind); text != "" {
			t.Fatal(text)
		}
	}
}

// One that says so too early is found out.
func TestMachineFindsHastyPuts(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector finds the same")
	}
	text := conformance.FindFailure(openHasty, 1, conformance.Program{Hidden: true})
	if text == "" {
		t.Fatal("a conduit that completes puts before it has done them passes")
	}
	t.Log(text)
	if n := strings.Count(text, "Do: "); n > 8 {
		t.Errorf("the program has %d steps", n)
	}
}
