package where

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m)) }

// A report has a line for each rank, or where they are many for all that answer alike.
func TestReport(t *testing.T) {
	var all []Answer
	for r := range 30 {
		a := Answer{Rank: r, Name: fmt.Sprintf("rank %d (pid %d)", r, 100+r), State: Waits, Line: "a.go:7", Text: fmt.Sprintf("barrier phase 3: waiting for rank %d", r^1), Counts: fmt.Sprint("slept ", r)}
		if r == 4 {
			a.State, a.Text = Runs, "runs"
		}
		all = append(all, a)
	}
	want := []string{
		"ranks 0-3, 5-29 (29), as rank 0 (pid 100): barrier phase 3: waiting for rank 1, at a.go:7",
		"rank 4 (pid 104): runs at a.go:7",
	}
	if got := Report(all, 29, false); !slices.Equal(got, want) {
		t.Errorf("it says %q", got)
	}
	if got := Report(all, 30, true); len(got) != 30 || got[4] != want[1]+"; slept 4" {
		t.Errorf("it says %q", got)
	}
	for r := range all { // one screen, however many places there are
		all[r].Line = fmt.Sprintf("a.go:%d", r)
	}
	if got := Report(all, 24, false); len(got) != FewLines+1 || got[FewLines] != "and 6 ranks more, in 6 further places" {
		t.Errorf("it says %q", got)
	}
	if got := Spans([]int{1, 3, 5, 7, 9, 11, 13, 14, 16, 18}); got != "1, 3, 5, 7, 9, 11, 13-14, 16, ..." {
		t.Errorf("it says %q", got)
	}
}

// Largest peers are in reports of ranks one by one, and the largest pairs of all below those of many.
func TestReportedPeers(t *testing.T) {
	var all []Answer
	for r := range 30 {
		a := Answer{Rank: r, State: Runs, Text: "runs", Counts: "slept"}
		for to := range r { // twice those of the same weight, of which the first come first
			a.Met(Peer{Rank: to, Count: 1, Bytes: uint64(100*r + to/2)})
		}
		a.Met(Peer{Rank: r, Count: 1 << 60})
		a.Met(Peer{Rank: 31})
		if r == 1 {
			a.Met(Peer{Rank: 2, NoCredit: 3, Resent: 4})
		}
		all = append(all, a)
	}
	got := Report(all, 30, true)
	if got[0] != "rank 0: runs; slept" || got[1] != "rank 1: runs; slept; to rank 0: 1 messages and accesses of 100 bytes; to rank 2: 0 messages and accesses of 0 bytes, no credit 3 times, 4 datagrams again" ||
		!regexp.MustCompile(`to rank 28: .*to rank 26: .* of 2913 bytes; to rank 27: .* of 2913 bytes; to rank 24: .*to rank 25: [^;]*$`).MatchString(got[29]) {
		t.Errorf("it says %q", got)
	}
	if got := Report(all, 29, true); len(got) != 6 || strings.Contains(got[0], "to rank") || got[1] != "largest traffic: rank 29 to 28: 1 messages and accesses of 2914 bytes" {
		t.Errorf("of many it says %q", got)
	}
	if got := Report(all, 30, false); strings.Contains(strings.Join(got, ""), "to rank") {
		t.Errorf("unasked it says %q", got)
	}
	if got := Pairs(all, 7); len(got) != 7 || got[0].From != 29 || got[4].Rank != 25 || got[5].From != 28 || got[6].Rank != 27 {
		t.Errorf("pairs are %+v", got)
	}
}

func TestNeeds(t *testing.T) {
	for text, want := range map[string]string{
		"barrier phase 2: waiting for rank 1 or a rank it waits for (round 1 of 2)":         "[1] false",
		"barrier phase 2: waiting for ranks 0, 3, 5, 7 and 29 more":                         "[0 3 5 7] false",
		"collective call 1, Barrier: waiting for rank 0, 4 to 6 and 12 more to call it":     "[0 4 5 6] false",
		"barrier phase 3: waiting for ranks 0 and 1":                                        "[0 1] false",
		"lock 0+0x20, which rank 1 holds exclusively":                                       "[1] false",
		"call of insert on rank 7":                                                          "[7] true",
		"am: request waits for credit of rank 12, which does not poll or is slower":         "[12] true",
		"until the word at 1+0x0 is == 7; it is 0":                                          "[] false",
		"a condition of the program (a.go:4)":                                               "[] false",
		"mailbox \"rows\": 12 bytes for rank 3, which takes no more until it pushes, polls": "[3] true",
	} {
		if r, served := needs(text); fmt.Sprint(r, served) != want {
			t.Errorf("%q needs %v, %v; want %s", text, r, served, want)
		}
	}
}

// An answer comes back as it was, and a long one fits in what a pipe keeps together.
func TestEncode(t *testing.T) {
	a := Answer{Rank: 3, State: Waits, Text: "lock \"x\"\nof rank 1", Line: "a.go:1", Needs: []int{1}, Moves: 9, Sent: 4}
	line := a.Encode()
	text, ok := strings.CutPrefix(line, "argon: where rank 3 waits: ")
	if !ok || strings.Contains(line, "\n") {
		t.Fatalf("the line is %q", line)
	}
	if b := Decode(3, text); b.State != Waits || b.Line != a.Line || b.Moves != 9 || b.Sent != 4 || !slices.Equal(b.Needs, a.Needs) {
		t.Errorf("%q is %+v", line, b)
	}
	for to := range 5 {
		a.Met(Peer{Rank: 1<<24 - 1 - to, Count: 1 << 60, Bytes: 1 << 60, NoCredit: 1 << 60})
	}
	if b := Decode(3, strings.TrimPrefix(a.Encode(), "argon: where rank 3 waits: ")); !slices.Equal(b.Peers, a.Peers) {
		t.Errorf("%+v are %+v", a.Peers, b.Peers)
	}
	if b := Decode(3, "in barrier"); b.Text != "in barrier" || b.State != Unknown {
		t.Errorf("text is %+v", b)
	}
	a.Counts, a.Needs = strings.Repeat("xyz", 9999), slices.Repeat([]int{65535}, 9999)
	for range 9999 {
		a.Others = append(a.Others, strings.Repeat("y", 9999))
	}
	if line := a.Encode(); len(line) >= 4096 || len(Decode(3, strings.TrimPrefix(line, "argon: where rank 3 waits: ")).Needs) != 50 {
		t.Errorf("a long answer has %d bytes", len(line))
	}
}

// TestCause: the rank that others wait for by way of others is named, and those that wait for each other.
func TestCause(t *testing.T) {
	barrier := func(r int, needs ...int) Answer {
		return Answer{Rank: r, State: Waits, Text: "barrier", Line: "a.go:1", Needs: needs}
	}
	served := func(r, by int) Answer {
		return Answer{Rank: r, State: Waits, Text: "call", Line: "a.go:2", Needs: []int{by}, Served: true}
	}
	runs := func(r int) Answer { return Answer{Rank: r, State: Runs, Text: "runs", Line: "a.go:3"} }
	task := Answer{Rank: 1, State: Waits, Text: "a condition", In: "f", Line: "a.go:4"}
	word := Answer{Rank: 1, State: Waits, Text: "until the word is 1", Line: "a.go:5"}
	flying := word
	flying.Sent = 1
	for _, c := range []struct {
		all   []Answer
		want  string
		stuck bool
	}{
		{[]Answer{barrier(0, 1), barrier(1, 2), runs(2)}, "rank 2, which ranks 0-1 wait for, runs at a.go:3", false},
		{[]Answer{barrier(0, 1), runs(1), barrier(2, 0)}, "rank 1, which ranks 0, 2 wait for, runs at a.go:3", false},
		{[]Answer{barrier(0, 1), barrier(1, 0), runs(2)}, "DEADLOCK: rank 0 waits for rank 1 (barrier, at a.go:1); rank 1 waits for rank 0 (barrier, at a.go:1)", false},
		{[]Answer{barrier(0, 1), barrier(1, 1)}, "DEADLOCK: rank 1 waits for itself (barrier, at a.go:1)", true},
		{[]Answer{served(0, 1), barrier(1, 0)}, "all 2 ranks wait, and nothing is under way: rank 0, which rank 1 waits for, waits for call, at a.go:2", true},
		{[]Answer{served(0, 1), runs(1)}, "rank 1, which rank 0 waits for, runs at a.go:3", false},
		{[]Answer{served(0, 1), task}, "all 2 ranks wait, and nothing is under way: rank 1, which rank 0 waits for, waits for a condition, in f, at a.go:4", true},
		{[]Answer{barrier(0, 1), word}, "all 2 ranks wait, and nothing is under way: rank 1, which rank 0 waits for, waits until the word is 1, at a.go:5", true},
		{[]Answer{barrier(0, 1), flying}, "rank 1, which rank 0 waits for, waits until the word is 1, at a.go:5", false},
		{[]Answer{runs(0), runs(1)}, "", false},
	} {
		if text, stuck := Cause(c.all); text != c.want || stuck != c.stuck {
			t.Errorf("of %+v it says %q, %v", c.all, text, stuck)
		}
	}
}

// TestWatch: a standstill is told of once, and not while a rank computes, or messages are handled.
func TestWatch(t *testing.T) {
	at := func(s State, moves uint64) []Answer {
		return []Answer{{Rank: 0, State: Waits, Text: "call", Needs: []int{1}, Served: true, Moves: 5}, {Rank: 1, State: s, Text: "x", Line: "a.go:1", Moves: moves}}
	}
	w := Watch{Stall: Stall{After: 10 * time.Second}}
	now := time.Duration(0)
	step := func(all []Answer) bool {
		now += 3 * time.Second
		said, _ := w.Note(now, all)
		return said
	}
	for i := range 20 {
		for _, all := range [][]Answer{at(Runs, 0), at(Goes, 0), at(Blocked, uint64(i)), at(Unknown, 0)} {
			if step(all) {
				t.Fatalf("it speaks of %+v", all)
			}
		}
	}
	said := 0
	for range 20 {
		all := at(Blocked, 0)
		if step(all) {
			said++
			if all[1].Since < 9*time.Second {
				t.Errorf("rank 1 is blocked for %v", all[1].Since)
			}
		}
	}
	step(at(Runs, 0))
	for range 20 {
		if step(at(Stopped, 0)) {
			said++
		}
	}
	if said != 2 {
		t.Errorf("of two standstills it tells %d times", said)
	}
	other := at(Stopped, 0)
	other[0].Text = "another call"
	if step(other); other[0].Since != 0 || other[1].Since < 9*time.Second {
		t.Errorf("rank 0 makes another call for %v, rank 1 is stopped for %v", other[0].Since, other[1].Since)
	}
	// Ranks that wait for each other are told of at the next look.
	circle := at(Waits, 0)
	circle[1].Needs, circle[1].In = []int{1}, "f"
	step(at(Runs, 0))
	if step(circle) || !step(circle) {
		t.Error("a circle is told of at once, or late")
	}
}

// TestTransfers: of a rank that waits for a transfer on a network nothing is said, however long that takes.
func TestTransfers(t *testing.T) {
	for _, c := range []struct {
		text string
		far  bool
		said bool
	}{
		{"operation 0x12, of which 3 pieces are under way", true, false},
		{"operation 0x12, of which 3 pieces are under way", false, true},
		{"am: request waits for credit of rank 1, which does not poll", true, true},
		{"barrier phase 3: waiting for rank 1", true, true},
	} {
		w, said := Watch{Stall: Stall{After: time.Second}}, false
		for i := range 10 {
			a := Answer{State: Waits, Line: "a.go:1"}
			a.Wait([]string{c.text}, c.far)
			speak, _ := w.Note(time.Duration(i)*time.Second, []Answer{a})
			said = said || speak
		}
		if said != c.said {
			t.Errorf("%q, far %v: told of: %v", c.text, c.far, said)
		}
	}
}

func TestParseStall(t *testing.T) {
	for s, want := range map[string]Stall{"30s": {30 * time.Second, false}, "2m,end": {2 * time.Minute, true}, "0": {-1, false}} {
		if got, err := ParseStall(s); err != nil || got != want {
			t.Errorf("%q is %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "30", "-3s", "0,end", ",end", "3s,", "3s,stop"} {
		if got, err := ParseStall(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

// inHandler is a function of the program in which a goroutine stands.
func inHandler(on <-chan bool) { <-on }

// TestStacks: a goroutine's place is that in the program, and what it does is known.
func TestStacks(t *testing.T) {
	on := make(chan bool)
	done := make(chan bool)
	go func() { inHandler(on); close(done) }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read := make(chan bool)
	go func() { _, _ = r.Read(make([]byte, 1)); close(read) }()
	var stop atomic.Bool
	stopped := make(chan bool)
	go func() {
		for !stop.Load() {
		}
		close(stopped)
	}()
	find := func(text string) bool {
		for _, g := range Stacks() {
			if a := g.Look(); a.Text == text && strings.HasPrefix(a.Line, "where_test.go:") {
				return true
			}
		}
		return false
	}
	for !find("blocked on a channel (chan receive)") || !find("reads or writes a file or connection") || !find("runs") {
		time.Sleep(time.Millisecond)
	}
	close(on)
	w.Close()
	stop.Store(true)
	<-done
	<-read
	<-stopped
}

// TestSystemCalls: a rank that waits in argon is not taken for one that calls the system itself.
func TestSystemCalls(t *testing.T) {
	all := parse("goroutine 7 [syscall]:\n" +
		"golang.org/x/sys/unix.ppoll(0x1)\n\t/mod/golang.org/x/sys/unix/zsyscall_linux.go:138 +0x52\n" +
		"github.com/argon-go/argon/conduits.WaitFor({0x1})\n\t/argon/conduits/wait.go:115 +0x1\n" +
		"main.run(0x1)\n\t/home/main.go:40 +0x1\n")
	if len(all) != 1 {
		t.Fatalf("%d goroutines", len(all))
	}
	if a := all[0].Look(); a.State != Waits || a.Line != "main.go:40" || a.Call != "conduits.WaitFor" || a.In != "" {
		t.Errorf("it does %+v", a)
	}
}
