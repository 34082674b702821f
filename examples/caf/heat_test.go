package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/upc/rt"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"heat": main})
}

// want is what so many images print: temperatures are squares of places, which rise by 2 r a step,
// and r is 1/4.
func want(images int) []string {
	n := images * int(m_)
	rise := float64(steps_) / 2
	sum := float64(n*(n+1)*(2*n+1)/6) + float64(n)*rise
	return []string{
		fmt.Sprintf("squares of %d images: %d", images, images*(images+1)*(2*images+1)/6),
		fmt.Sprint("temperatures: ", rise, " ", float64(n*n)+rise, " sum ", sum),
	}
}

func check(t *testing.T, what string, images int, out string) {
	t.Helper()
	got := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(got)
	if !slices.Equal(got, want(images)) {
		t.Errorf("%d images, %s: %q, not %q", images, what, got, want(images))
	}
}

// TestImages: images of one process find what they must, on each conduit.
func TestImages(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "sim"} {
		for _, images := range []int{4, 1} {
			if testing.Short() && images == 1 {
				break
			}
			out, err := testjob.Command(t, "heat", fmt.Sprint("ARGON_RANKS=", images), "ARGON_CONDUIT="+conduit).CombinedOutput()
			if err != nil {
				t.Errorf("%d images on %s: %v", images, conduit, err)
			}
			check(t, conduit, images, string(out))
		}
	}
}

// TestProcesses: and so do images that are processes.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("two jobs of processes")
	}
	for _, conduit := range []string{"shm", "udp"} {
		r := testjob.RunConfig(t, 3, "heat", testjob.Config{Launch: func(c *launch.Config) { c.Conduit = conduit }}).Want(t, 0)
		check(t, "processes on "+conduit, 3, strings.Join(r.Stdout, ""))
	}
}

// TestLine: errors name the line that called a helper of the generated program, not the helper's.
func TestLine(t *testing.T) {
	var line int
	err := rt.Run(rt.Config{Threads: 1, Conduit: "shm"}, func(t *rt.Thread) {
		_, _, line, _ = runtime.Caller(0)
		at(t, static_u, 102, 0, m_+1, 2)
	})
	says := fmt.Sprintf("heat_test.go:%d: caf: u(102)[2]: there are elements 0 to 101, and images 1 to 1", line+1)
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, not %s", err, says)
	}
}
