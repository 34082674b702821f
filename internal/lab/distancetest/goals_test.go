package distancetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/lab/wan"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

var (
	flagAll   = flag.Bool("distance.all", false, "measure all rows of the tables, some minutes")
	flagWrite = flag.Bool("distance.write", false, "write what was measured into docs/distance.md")
)

// Goals, of the model of TCP on the same path but for the storm's, bit/s.
const (
	goalAlone     = 0.9
	goalLoss      = 0.5
	goalVaries    = 0.85
	goalJitter    = 0.7 // of what the path does not lose
	goalShareLow  = 0.4
	goalShareHigh = 0.6
	goalSlack     = 0.1 // for a minute
	goalTwins     = 0.1
	goalStormNear = 7.3e6
	goalStormFar  = 2e6
)

// row is a line of a table: what was measured and whether it is enough.
type row struct {
	name  string
	cells []string
	value float64 // what is compared with the document's
	met   bool
}

// real is the table of real paths. What is measured there depends on what else the
// machine does, so that nothing follows from a row.
const real = "real"

// report logs a table, fails for rows that miss their goal, and compares with the
// table of that name in docs/distance.md, or writes it there.
func report(t *testing.T, table string, head []string, rows []row) {
	t.Helper()
	lines := "| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat(" --- |", len(head)) + "\n"
	for _, r := range rows {
		lines += "| " + r.name + " | " + strings.Join(r.cells, " | ") + " |\n"
	}
	t.Logf("%s\n%s", table, lines)
	for _, r := range rows {
		switch {
		case !r.met && table == real:
			t.Logf("%s: %s misses its goal: %v", table, r.name, r.cells)
		case !r.met:
			t.Errorf("%s: %s misses its goal: %v", table, r.name, r.cells)
		}
	}
	compare(t, table, lines, rows)
}

// document has the tables.
var document = filepath.Join("..", "..", "..", "docs", "distance.md")

// tolerance is by how much a ratio may differ from the document's. A run is
// deterministic, but any change of the engine changes it.
const tolerance = 0.1

var number = regexp.MustCompile(`\| ([0-9.]+) \|$`)

// compare finds the table, which follows a line "<!-- table -->" in the document,
// and compares the last column of each row.
func compare(t *testing.T, table, lines string, rows []row) {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	mark := "<!-- " + table + " -->\n"
	before, rest, ok := strings.Cut(string(b), mark)
	old, after := "", rest
	if ok {
		end := strings.Index(rest, "\n\n")
		if end < 0 {
			end = len(rest) - 1
		}
		old, after = rest[:end+1], rest[end+1:]
	}
	if *flagWrite {
		if !ok {
			t.Fatalf("%s has no line %s", document, mark)
		}
		if err := os.WriteFile(document, []byte(before+mark+lines+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table == real {
		return
	}
	for _, r := range rows {
		found := false
		for line := range strings.Lines(old) {
			if !strings.HasPrefix(line, "| "+r.name+" |") {
				continue
			}
			found = true
			m := number.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				t.Errorf("%s: no number at the end of %q", document, line)
				continue
			}
			if v, _ := strconv.ParseFloat(m[1], 64); r.value < v-tolerance*max(v, 1) || r.value > v+tolerance*max(v, 1) {
				t.Errorf("%s: %s has %.2f, measured %.2f; see -distance.write", document, r.name, v, r.value)
			}
		}
		if !found {
			t.Errorf("%s: table %s has no row %s; see -distance.write", document, table, r.name)
		}
	}
}

func mbit(v float64) string {
	if v >= 1e9 {
		return fmt.Sprintf("%.0f", v/1e6)
	}
	return fmt.Sprintf("%.3g", v/1e6)
}

// putSize is that of the puts of a transfer for d at rate: 1 MiB, or less so that
// there are hundreds.
func putSize(rate int64, d time.Duration) int {
	n := int(float64(rate) / 8 * d.Seconds() / 400)
	size := 1 << 20
	for size > n && size > 16<<10 {
		size /= 2
	}
	return size
}

// depth is how many bytes of puts are outstanding so that nothing but the path
// limits them.
func depth(p wan.Path) int { return 4*(p.BDP()+p.Queue) + 1<<20 }

// alone measures TCP and puts one after the other on p, bit/s.
func alone(t testing.TB, p wan.Path, d time.Duration) (argon, tcp float64, b *bulk, queue time.Duration) {
	t.Helper()
	n := wan.New(p)
	s, ends := wan.BulkTCP()
	n.Flow(0, ends)
	n.Run(d)
	tcp = float64(s.Acked) * 8 / d.Seconds()
	n = wan.New(p)
	b, ends = puts(t, putSize(p.Rate, d), depth(p), nil)
	n.Flow(0, ends)
	n.Run(d)
	for _, err := range b.fails {
		t.Errorf("%v: %v", p, err)
	}
	return b.rate(0), tcp, b, n.Links[0].Counts.QueueDelay()
}

// TestSweep has one transfer alone on paths without loss by chance.
func TestSweep(t *testing.T) {
	testmain.Long(t)
	var rows []row
	for _, rtt := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		for _, rate := range []int64{10e6, 100e6, 1e9} {
			for _, q := range []float64{0.25, 1, 4} {
				some := rate == 10e6 && q == 4 || rate == 100e6 && q == 1 && rtt < 200*time.Millisecond || rate == 100e6 && q == 0.25 && rtt == 50*time.Millisecond ||
					rate == 1e9 && q == 0.25 && rtt == time.Millisecond
				if !*flagAll && !some {
					continue
				}
				p := wan.Path{Rate: rate, Delay: rtt / 2}.Queued(q)
				d := 10 * time.Second
				switch {
				case rate == 1e9 && rtt <= 10*time.Millisecond:
					d = 2 * time.Second // hundreds of round trips
				case rate == 1e9 && rtt <= 50*time.Millisecond:
					d = 5 * time.Second
				case rtt >= 200*time.Millisecond:
					d = 20 * time.Second
				}
				argon, tcp, b, queue := alone(t, p, d)
				s := b.ranks[0].Stats()
				rows = append(rows, row{
					name: fmt.Sprintf("%v, %s Mbit/s, %g", rtt, mbit(float64(rate)), q),
					cells: []string{
						mbit(argon), mbit(tcp), fmt.Sprintf("%.2f %%", 100*float64(s.Again)/float64(max(s.Sent, 1))), fmt.Sprint(queue.Round(10 * time.Microsecond)), fmt.Sprintf("%.2f", argon/tcp),
					},
					value: argon / tcp, met: argon >= goalAlone*tcp,
				})
			}
		}
	}
	report(t, "alone", []string{"round trip, rate, queue (BDP)", "argon, Mbit/s", "TCP", "sent again", "mean queue", "argon / TCP"}, rows)
}

// TestLoss has one transfer alone on paths that lose a fifth of all packets, both
// ways, and otherwise have 100 Mbit/s.
func TestLoss(t *testing.T) {
	var rows []row
	for _, rtt := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		if !*flagAll && rtt != time.Millisecond && rtt != 50*time.Millisecond {
			continue
		}
		for _, loss := range []float64{0.01, 0.05, 0.2} {
			if !*flagAll && loss == 0.05 {
				continue
			}
			p := wan.Path{Rate: 100e6, Delay: rtt / 2, Loss: loss, Seed: 1}.Queued(1)
			argon, tcp, b, _ := alone(t, p, 10*time.Second)
			s := b.ranks[0].Stats()
			rows = append(rows, row{
				name:  fmt.Sprintf("%v, %g %%", rtt, 100*loss),
				cells: []string{mbit(argon), mbit(tcp), fmt.Sprintf("%.2f %%", 100*float64(s.Again)/float64(max(s.Sent, 1))), fmt.Sprintf("%.2f", argon/p100)},
				value: argon / p100, met: argon >= goalLoss*tcp,
			})
		}
	}
	report(t, "loss", []string{"round trip, loss", "argon, Mbit/s", "TCP", "sent again", "argon / path"}, rows)
}

const p100 = 100e6

// TestJitter has one transfer alone on paths whose round trips vary, since the link or
// the hosts do not serve at once, and that lose some packets both ways or none. A sender
// that takes long round trips for a full queue has what TCP has there, at most.
func TestJitter(t *testing.T) {
	testmain.Long(t)
	const (
		rate  = 50e6
		seeds = 2
	)
	var rows []row
	for _, rtt := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		for _, late := range []struct{ jitter, pause time.Duration }{{2 * time.Millisecond, 0}, {10 * time.Millisecond, 0}, {0, 10 * time.Millisecond}} {
			for _, q := range []float64{0.25, 1, 4} {
				if !*flagAll && (q != 1 || rtt != 10*time.Millisecond && rtt != 50*time.Millisecond) {
					continue
				}
				r := row{name: fmt.Sprintf("%v, %v, %v, %g", rtt, late.jitter, late.pause, q), value: 1, met: true}
				for _, loss := range []float64{0, 0.01, 0.05} {
					argon, tcp := 0.0, 0.0
					for seed := range uint64(seeds) {
						p := wan.Path{Rate: rate, Delay: rtt / 2, Loss: loss, Jitter: late.jitter, Pause: late.pause, Seed: seed + 1}.Queued(q)
						a, c, _, _ := alone(t, p, 10*time.Second)
						argon, tcp = argon+a/seeds, tcp+c/seeds
					}
					r.cells = append(r.cells, mbit(argon), mbit(tcp))
					path := rate * (1 - loss)
					r.value = min(r.value, argon/path)
					goal := goalVaries * tcp
					if loss > 0 && q >= 1 && rtt >= 10*time.Millisecond {
						goal = max(goal, goalJitter*path)
					}
					r.met = r.met && argon >= goal
				}
				r.cells = append(r.cells, fmt.Sprintf("%.2f", r.value))
				rows = append(rows, r)
			}
		}
	}
	report(t, "jitter", []string{"round trip, jitter, pauses, queue (BDP)", "argon, Mbit/s", "TCP", "1 % lost: argon", "TCP", "5 % lost: argon", "TCP", "least of what the path carries"}, rows)
}

// TestLossyEnds has one transfer on a path that loses packets and whose round trips vary,
// until neither is so and one of TCP begins beside it: losses are of a full queue again,
// and both have about a half.
func TestLossyEnds(t *testing.T) {
	const change, warm, d = 10 * time.Second, 30 * time.Second, 60 * time.Second
	for _, q := range []float64{0.5, 1, 4} {
		p := wan.Path{Rate: 20e6, Delay: 10 * time.Millisecond, Loss: 0.05, Jitter: 2 * time.Millisecond, Seed: 1}.Queued(q)
		n := wan.New(p)
		b, ends := puts(t, 32<<10, depth(p), nil)
		n.Flow(0, ends)
		s, ends := wan.BulkTCP()
		n.Flow(change, ends)
		alone := 0.0
		n.At(change, func() {
			alone = float64(b.bytes) * 8 / change.Seconds()
			for _, l := range n.Links {
				l.Path.Loss, l.Path.Jitter = 0, 0
			}
		})
		r := share(n, change+warm, d, func() int64 { return b.bytes }, func() int64 { return s.Acked })
		part := r[0] / (r[0] + r[1])
		t.Logf("%v: %s Mbit/s, then %.2f of both", p, mbit(alone), part)
		if alone < goalJitter*float64(p.Rate) || part < goalShareLow-goalSlack || part > goalShareHigh+goalSlack {
			t.Errorf("%v: %s Mbit/s, then %.2f of both", p, mbit(alone), part)
		}
	}
}

// storm is the worst network of package weathertest, at 100 Mbit/s.
func storm(rtt time.Duration) wan.Path {
	return wan.Path{
		Rate: p100, Delay: rtt / 2, Loss: 0.2, Repeat: 0.1, Reorder: 0.5, Corrupt: 0.05, Late: max(time.Millisecond, rtt/10), Seed: 1,
	}.Queued(1)
}

// TestStorm has puts and messages cross it.
func TestStorm(t *testing.T) {
	var rows []row
	for _, rtt := range []time.Duration{200 * time.Microsecond, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		if !*flagAll && rtt != 200*time.Microsecond && rtt != 200*time.Millisecond {
			continue
		}
		p, d := storm(rtt), 20*time.Second
		n := wan.New(p)
		b, ends := puts(t, 64<<10, depth(p), nil)
		n.Flow(0, ends)
		n.Run(d)
		for _, err := range b.fails {
			t.Errorf("%v: %v", p, err)
		}
		goal := goalStormNear
		if rtt >= 50*time.Millisecond {
			goal = goalStormFar
		}
		got := b.rate(0)
		s := b.ranks[0].Stats()
		rows = append(rows, row{
			name:  fmt.Sprint(rtt),
			cells: []string{mbit(got), mbit(goal), fmt.Sprintf("%.2f %%", 100*float64(s.Again)/float64(max(s.Sent, 1))), fmt.Sprintf("%.2f", got/p100)},
			value: got / p100, met: got >= goal,
		})
	}
	report(t, "storm", []string{"round trip", "argon, Mbit/s", "goal", "sent again", "argon / path"}, rows)
}

// progress is a flow's bytes so far.
type progress func() int64

// share runs flows for d after they have had warm to find their rates, and returns
// the rate of each, bit/s.
func share(n *wan.Network, warm, d time.Duration, flows ...progress) []float64 {
	n.Run(warm)
	r := make([]float64, len(flows))
	for i, f := range flows {
		r[i] = -float64(f())
	}
	n.Run(warm + d)
	for i, f := range flows {
		r[i] = (r[i] + float64(f())) * 8 / d.Seconds()
	}
	return r
}

// Flows of TestShare find their rates until shareWarm is over, and are measured for
// shareTime: two of TCP in the deepest queue take as long to become equal.
const (
	shareWarm = 3 * time.Minute
	shareTime = 7 * time.Minute
	shareLate = 3 * time.Second // by which the second flow begins later
)

// TestShare has one transfer beside one of TCP, which has begun earlier or begins
// later, and two transfers beside each other, as two of TCP are, which need not be
// more equal than those.
func TestShare(t *testing.T) {
	testmain.Long(t)
	var rows []row
	for _, rtt := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
		for _, q := range []float64{0.25, 0.5, 1, 2, 4, 8} {
			some := rtt == 20*time.Millisecond && q == 4 || rtt == 100*time.Millisecond && q == 8
			if !*flagAll && !some {
				continue
			}
			const rate = 20e6
			p := wan.Path{Rate: rate, Delay: rtt / 2, Seed: 1}.Queued(q)
			tcp := func(n *wan.Network, start time.Duration) progress {
				s, ends := wan.BulkTCP()
				n.Flow(start, ends)
				return func() int64 { return s.Acked }
			}
			argon := func(n *wan.Network, start time.Duration) progress {
				b, ends := puts(t, 32<<10, depth(p), nil)
				n.Flow(start, ends)
				return func() int64 {
					for _, err := range b.fails {
						t.Errorf("%v: %v", p, err)
					}
					return b.bytes
				}
			}
			beside := func(first, second func(*wan.Network, time.Duration) progress) (part, uneven float64) {
				n := wan.New(p)
				a := first(n, 0)
				r := share(n, shareWarm, shareTime, a, second(n, shareLate))
				return r[0] / (r[0] + r[1]), max(r[0], r[1])/max(min(r[0], r[1]), 1) - 1
			}
			theirs, _ := beside(tcp, argon)
			before, _ := beside(argon, tcp)
			after := 1 - theirs
			_, twins := beside(argon, argon)
			_, twinTCPs := beside(tcp, tcp)
			mean := (after + before) / 2
			rows = append(rows, row{
				name: fmt.Sprintf("%v, %g", rtt, q),
				cells: []string{
					fmt.Sprintf("%.2f", after), fmt.Sprintf("%.2f", before), fmt.Sprintf("%.2f", twins), fmt.Sprintf("%.2f", twinTCPs), fmt.Sprintf("%.2f", mean),
				},
				value: mean, met: mean >= goalShareLow && mean <= goalShareHigh && twins <= max(goalTwins, twinTCPs),
			})
		}
	}
	report(t, "share", []string{"round trip, queue (BDP)", "argon's share, TCP first", "argon first", "two of argon: more by", "two of TCP: more by", "mean share"}, rows)
}
