package sys

import (
	"fmt"
	"os"
	"runtime/metrics"
	"strings"
	"sync"
	"time"
)

// Starvation finds what keeps this process from the processor time that it could use. Any goroutine may use it.
type Starvation struct {
	mu   sync.Mutex
	was  share
	text string
}

// A share is for what processor time went until a moment.
type share struct {
	at           time.Duration // CLOCK_MONOTONIC
	ran, delayed time.Duration // of all threads, see Activity
	throttled    time.Duration // how long its limit kept a control group from running
	collecting   time.Duration // of ran, in collections of garbage that have ended
}

// Look says what has held the process back since a look that was a second ago or more: its threads have waited
// for processors longer than they ran, or a fifth of the time the limit of its control group, or a fifth of what it ran
// the garbage collector. "" if nothing of this is so, and at the first look.
func (s *Starvation) Look() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := Monotonic()
	if s.was.at != 0 && now-s.was.at < time.Second {
		return s.text
	}
	a, _ := ReadActivity(os.Getpid())
	is := share{at: now, ran: a.Ran, delayed: a.Delayed, throttled: throttled("/"), collecting: collecting()}
	if s.was.at != 0 {
		s.text = is.since(s.was, ready("/"), NumCPU(), cpuLimit("/"))
	}
	s.was = is
	return s.text
}

func (s share) since(was share, ready string, processors int, limit float64) string {
	const notable = 5 // the part of a time from which on it is told
	passed, ran, delayed := s.at-was.at, s.ran-was.ran, s.delayed-was.delayed
	held := s.throttled - was.throttled
	collecting := min(s.collecting-was.collecting, ran) // the runtime counts also what its collector waited for a processor
	short := func(d time.Duration) time.Duration { return d.Round(time.Second / 10) }
	var parts []string
	if delayed > ran && delayed > passed/notable {
		parts = append(parts, fmt.Sprintf("starved: threads ran for %v and waited for a processor for %v, with %s ready on the host and %d of its processors to run on",
			short(ran), short(delayed), ready, processors))
	}
	if held > passed/notable {
		parts = append(parts, fmt.Sprintf("was throttled for %v by the limit of its control group, %.3g processors", short(held), limit))
	}
	if collecting > ran/notable && collecting > passed/20 {
		parts = append(parts, fmt.Sprintf("collected garbage for %v of %v that it ran", short(collecting), short(ran)))
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("in %v its process %s", short(passed), strings.Join(parts, "; "))
}

// collecting is the processor time of the garbage collector but for that which nothing else wanted.
func collecting() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64 || s[1].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * float64(time.Second))
}

// throttled is how long the control group that was kept most from running has been so: cpu.stat of both versions.
func throttled(root string) (most time.Duration) {
	for _, g := range groups(root, "cpu") {
		if us, ok := g.field("cpu.stat", "throttled_usec"); ok {
			most = max(most, time.Duration(us)*time.Microsecond)
		}
		if ns, ok := g.field("cpu.stat", "throttled_time"); ok {
			most = max(most, time.Duration(ns))
		}
	}
	return most
}

// ready is how many threads of the host run or could (proc_loadavg(5)).
func ready(root string) string {
	b, _ := os.ReadFile(root + "/proc/loadavg")
	if f := strings.Fields(string(b)); len(f) > 3 {
		n, _, _ := strings.Cut(f[3], "/")
		return n + " threads"
	}
	return "unknown threads"
}
