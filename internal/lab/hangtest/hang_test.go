package hangtest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"hang": func() { gas.Main(hang) }})
}

// hang is the kind that the first argument names.
func hang(n *gas.Node) error {
	for _, k := range kinds {
		if k.name == os.Args[1] {
			return k.run(n)
		}
	}
	testjob.Fatal("no kind %q", os.Args[1])
	return nil
}

// causes are the lines that kinds name as the cause.
func causes(t *testing.T) map[string]string {
	text, err := os.ReadFile("kinds_test.go")
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if _, names, ok := strings.Cut(line, "// cause: "); ok {
			for _, name := range strings.Fields(names) {
				at[name] = fmt.Sprintf("kinds_test.go:%d", i+1)
			}
		}
	}
	return at
}

// talk is the launcher's log of one job, and what the test does about it.
type talk struct {
	mu    sync.Mutex
	lines []string
	heard func(line string)
}

func (l *talk) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		l.lines = append(l.lines, line)
		l.heard(line)
	}
	return len(b), nil
}

// TestKinds starts each kind. The first line that is said unasked names the cause, with its place in the program,
// and so does that of the answer to SIGUSR1; of a rank that is at work, for all that can be known, nothing is said unasked.
func TestKinds(t *testing.T) {
	at := causes(t)
	var asked, alone, mute atomic.Int32
	t.Run("kind", func(t *testing.T) {
		for _, k := range kinds {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				if k.alive {
					mute.Add(1)
				}
				unasked, answer, all := job(t, k, func(line string) bool {
					return strings.Contains(line, at[k.name]) && regexp.MustCompile(k.first).MatchString(line)
				})
				if answer == "" {
					t.Fatalf("asked, it does not name %s and %q:\n%s", at[k.name], k.first, strings.Join(all, "\n"))
				}
				asked.Add(1)
				switch {
				case k.alive && unasked != "" && !strings.Contains(unasked, "in argon and awake"):
					t.Errorf("it speaks of a rank that may be at work: %q", unasked)
				case !k.alive && !(strings.Contains(unasked, at[k.name]) && regexp.MustCompile(k.first).MatchString(unasked)):
					t.Errorf("unasked it says %q", unasked)
				case !k.alive:
					alone.Add(1)
				}
			})
		}
	})
	t.Logf("of %d kinds %d are named if asked; of the %d that stand still, %d unasked", len(kinds), asked.Load(), len(kinds)-int(mute.Load()), alone.Load())
}

// job runs a kind until it has been told of unasked, unless it is alive, and then asks until
// the first line of the report is right, and ends it.
func job(t *testing.T, k kind, right func(line string) bool) (unasked, answer string, all []string) {
	signals := make(chan os.Signal, 4)
	l := &talk{}
	ask := func() { signals <- syscall.SIGUSR1 }
	asks := 0
	l.heard = func(line string) {
		switch {
		case strings.HasPrefix(line, "gasrun:   ") || answer != "":
		case strings.Contains(line, "(-stall)"):
			if unasked == "" && !k.alive {
				ask()
			}
			unasked = line
		case strings.HasPrefix(line, "gasrun: SIGUSR1"):
			if asks++; right(line) || !k.alive && asks > 3 || asks > 1000 {
				if right(line) {
					answer = line
				}
				signals <- syscall.SIGTERM
				signals <- syscall.SIGTERM
				return
			}
			time.AfterFunc(50*time.Millisecond, ask) // ranks may not have come there yet
		}
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r := testjob.RunConfig(t, 3, "hang", testjob.Config{Args: []string{k.name}, Launch: func(c *launch.Config) {
		c.Quiet, c.Log, c.Signals, c.Stdin, c.KillGrace = false, l, signals, in, -1
		c.Stall = where.Stall{After: 300 * time.Millisecond}
		if k.alive {
			c.Started = func([]int) { ask() }
		}
	}})
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Status == 0 && k.name == "put-alone" {
		t.Skip("the rank was awake when its word was put")
	}
	return unasked, answer, slices.Clone(l.lines)
}
