package monitor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m)) }

// launcher is a job's side of a feed: it makes the next view when it is asked, second by second.
func launcher(f *Feed, job Job, answers func(second int) []where.Answer) (asked func() int) {
	second := make(chan int, 1)
	second <- 0
	f.Begin(job, func() {
		n := <-second + 1
		second <- n
		f.Publish(time.Duration(n)*time.Second, answers(n))
	})
	return func() int { n := <-second; second <- n; return n }
}

// fourRanks are the answers of two hosts, on which rank r has sent 10 (r+1) messages each second, handled and put so many more; rank 2 does not answer
// from the second second on.
func fourRanks(second int) (all []where.Answer) {
	for r := range 4 {
		n := uint64(10 * (r + 1) * second)
		a := where.Answer{
			Rank: r, State: where.Waits, Text: "barrier phase 3", Line: "main.go:7", Call: "gas.Node.Barrier", Since: 3 * time.Second,
			Sent: n, Received: n + 1, Accesses: n + 2, Moves: 3*n + 3, Ran: time.Duration(second) * time.Second / 2, Memory: 1 << 20,
		}
		a.Met(where.Peer{Rank: 3 - r, Count: n, Bytes: 2 * n, NoCredit: 1, Resent: 2})
		if r == 2 && second > 1 {
			a = where.Answer{Rank: 2, Text: "does not answer"}
		}
		all = append(all, a)
	}
	return all
}

var onTwoHosts = Job{ID: "7.1", Program: "heat", Size: 4, Hosts: []Host{{"a", 0, 3}, {"b", 3, 1}}}

// TestViews: a view is made when a viewer waits, and only then; its rows have the counters of the answers, sums of
// them, what they grew by, and of a rank that does not answer the last ones.
func TestViews(t *testing.T) {
	var f Feed
	asked := launcher(&f, onTwoHosts, fourRanks)
	f.Publish(0, nil)
	if f.Wanted() || asked() > 0 {
		t.Fatal("a view is wanted, and no viewer waits")
	}
	v := f.Next(context.Background(), nil)
	if v = f.Next(context.Background(), v); v == nil || asked() != 2 {
		t.Fatalf("after two views %v, ranks asked %d times", v, asked())
	}
	if r := v.Total(); r.Sent != 20+40+30+80 || r.SentRate != 10+20+0+40 || r.Received != r.Sent+4 || r.Processors != 1.5 || r.ResidentMemory != 4<<20 || r.State != "unknown 1, waits 3" {
		t.Errorf("the row of all ranks is %+v", r)
	}
	if h := v.ByHost(); len(h) != 2 || h[0].Sent != 90 || h[1].Sent != 80 || h[1].Name != "b" || h[1].Accesses != 82 {
		t.Errorf("rows of hosts are %+v", h)
	}
	rows := v.Rows(4)
	if len(rows) != 4 || rows[3].Name != "rank 3" || rows[3].Sent != 80 || rows[3].Doing != "barrier phase 3, at main.go:7 (gas.Node.Barrier)" || rows[2].Sent != 30 {
		t.Errorf("rows of ranks are %+v", rows)
	}
	if rows = v.Rows(2); len(rows) != 2 || rows[0].Name != "ranks 0-1, 3" || rows[0].Sent != 140 || rows[1].State != "unknown" {
		t.Errorf("rows of equal ranks are %+v", rows)
	}
	if rows = v.Rows(1); len(rows) != 1 || rows[0].Ranks != 4 || rows[0].Sent != 170 {
		t.Errorf("the row of the rest is %+v", rows)
	}
	want := `2s              state    sent/s recv/s  acc/s procs memory  since  what for
4 ranks                      70     70     70  1.50  4.19M         unknown 1, waits 3
a                            30     30     30  1.00  3.15M         unknown 1, waits 2
b                            40     40     40  0.50  1.05M         waits 1
ranks 0-1, 3: 3 waits        70     70     70  1.50  3.15M     3s  barrier phase 3, at
rank 2          unknown       0      0      0  0.00  1.05M         does not answer`
	if got := strings.Join(v.Text(86, 6), "\n"); got != want {
		t.Errorf("as text it is\n%s", got)
	}
	pairs := fmt.Sprint(v.Traffic(9))
	if hosts := fmt.Sprint(v.Traffic(3)); hosts != "[{{1 {0 80 160 1 2}} 40 80} {{0 {0 70 140 2 4}} 20 40} {{0 {1 20 40 1 2}} 10 20}] true" {
		t.Errorf("pairs of hosts are %s", hosts)
	}
	if want := "[{{3 {0 80 160 1 2}} 40 80} {{1 {2 40 80 1 2}} 20 40} {{2 {1 30 60 1 2}} 0 0} {{0 {3 20 40 1 2}} 10 20}] false"; pairs != want {
		t.Errorf("pairs are %s, want %s", pairs, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.wake = func() { cancel() } // while it waits
	if v := f.Next(ctx, v); v != nil || f.Wanted() {
		t.Errorf("a viewer that has left got %v", v)
	}
	f.wake = f.Close
	if v := f.Next(context.Background(), v); v != nil {
		t.Errorf("after the end there is a view: %v", v)
	}
}

// TestScreen: on a terminal the view is below the output, and not drawn while a line of that is unfinished; in a file
// one view comes after the other.
func TestScreen(t *testing.T) {
	var f Feed
	launcher(&f, onTwoHosts, fourRanks)
	v := f.Next(context.Background(), nil)
	for _, terminal := range []bool{true, false} {
		var out strings.Builder
		var size func() (int, int)
		if terminal {
			size = func() (int, int) { return 20, 4 }
		}
		s := NewScreen(&out, size)
		picture := strings.Join(v.Text(20, 3), "\n") + "\n"
		if !terminal {
			picture = strings.Join(v.Text(200, 34), "\n") + "\n"
		}
		var want string
		write := func(text, after string) {
			want += text
			if terminal {
				want += after
			}
			if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("Write returns %d, %v", n, err)
			}
		}
		write("one\n", "")
		s.Show(v)
		want += picture
		if terminal {
			want += "\x1b[3A\x1b[J"
		}
		write("two", "")
		s.Show(v)
		write(".\n", picture)
		if got := out.String(); got != want {
			t.Errorf("terminal %v: wrote %q, want %q", terminal, got, want)
		}
	}
	if got := slices.Collect(func(yield func(string) bool) {
		for _, x := range []float64{0, 999, 999.6, 12345, 9.99e8} {
			yield(short(x))
		}
	}); !slices.Equal(got, []string{"0", "999", "1k", "12.3k", "999M"}) {
		t.Errorf("counts are %q", got)
	}
}
