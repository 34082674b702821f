package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/gastest"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) {
	if os.Getenv(launch.EnvGuard) != "" || os.Getenv(envNeighbour) != "" { // the guard of a job of TestJobs, or a neighbour
		main()
		return
	}
	testjob.Main(m, map[string]func(){"gasbench": main, "dies": dies})
}

// check reads what -json prints of a job on the conduit and returns the figures by
// bench.
func check(t *testing.T, out, conduit string, ranks int) map[string][]line {
	t.Helper()
	byName := map[string][]line{}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	for {
		var l line
		if err := d.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		byName[l.Bench] = append(byName[l.Bench], l)
		if strings.HasPrefix(l.Bench, "firehose/") {
			checkFirehose(t, &l, conduit, ranks)
			continue
		}
		if l.Metric == overlap {
			// What it is depends on the machine; no more than all of the shorter time can be saved.
			if !strings.HasPrefix(l.Bench, "overlap/") || l.Conduit != conduit || l.Unit != "share" || !slices.Contains(overlapSizes, l.Size) || math.IsNaN(l.Value) || math.IsInf(l.Value, 0) {
				t.Errorf("overlap: %+v", l)
			}
			continue
		}
		if l.Ref == refTarget {
			if l.Bench != "upc/target" || l.Metric != added || l.Unit != "ns" || l.RefValue <= 0 || l.Ratio != l.Value/l.RefValue || l.Low > l.High {
				t.Errorf("beside a target: %+v", l)
			}
			continue
		}
		units := map[string]string{halfRTT: "ns", latency: "ns", rate: "ns", bandwidth: "bytes/s", updateRate: "1/s"}
		if l.Conduit != conduit || l.Ranks != ranks || l.Unit != units[l.Metric] || l.Unit == "" || l.Batch < 1 {
			t.Errorf("wrong fields: %+v", l)
		}
		for _, v := range []float64{l.Value, l.P50, l.P99, l.P999} {
			if !(v > 0) || math.IsInf(v, 0) {
				t.Errorf("a figure is not positive: %+v", l)
			}
		}
		p := []float64{l.P50, l.P99, l.P999}
		if l.Metric == bandwidth || l.Metric == updateRate {
			slices.Reverse(p)
		}
		if !slices.IsSorted(p) {
			t.Errorf("percentiles are not in order: %+v", l)
		}
		isRef := strings.HasPrefix(l.Bench, "ref/") && l.Bench != refCopy
		bulk := refMemcpy
		if conduit != "shm" {
			bulk = refStream
			if (l.Datagram == 0) != (conduit == "shm") || l.Auth == "" {
				t.Errorf("how datagrams travel is not said: %+v", l)
			}
			// There is no bare datagram of more bytes.
			isRef = isRef || l.Ref == "" && l.Size > maxDatagram && l.Metric != bandwidth
		}
		if isRef != (l.Ref == "") || isRef != (l.Ratio == 0) {
			t.Errorf("reference and ratio: %+v", l)
		}
		if l.Ratio < 0 || l.Metric == bandwidth && l.Ref != "" && l.Ref != bulk && l.Ref != refAttachPut {
			t.Errorf("wrong reference or ratio: %+v", l)
		}
	}
	return byName
}

// needUDP skips the test where there are no sockets.
func needUDP(t *testing.T) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no UDP sockets here: %v", err)
	}
	_ = c.Close()
}

func TestAllInProcess(t *testing.T) {
	testmain.Long(t)
	needUDP(t)
	for _, conduit := range []string{"shm", "udp"} {
		t.Run(conduit, func(t *testing.T) {
			t.Setenv("ARGON_RANKS", "2")
			t.Setenv("ARGON_CONDUIT", conduit)
			t.Setenv("ARGON_PINNABLE", "3M") // so that working sets are small
			t.Setenv("ARGON_PIN_LOCAL", "1M")
			allInProcess(t, conduit)
		})
	}
}

func allInProcess(t *testing.T, conduit string) {
	o, err := parse([]string{"-json", "-time", "1us", "-bursts", "1"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	skip := ""
	if conduit == "udp" {
		skip = "rma/handles" // some hundred thousand operations, for which .ci/run waits once
		var names []string
		for _, b := range benchmarks {
			if b.name != skip {
				names = append(names, regexp.QuoteMeta(b.name))
			}
		}
		o.run = regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")
	}
	var out bytes.Buffer
	if err := bench(o, &out, os.Stderr); err != nil {
		t.Fatal(err)
	}
	got := check(t, out.String(), conduit, 2)
	for _, b := range benchmarks {
		if direct := conduit == "shm"; (len(got[b.name]) > 0) != ((direct || b.needs != needDirect) && (bareBuilt || b.needs != needBare) && b.name != skip) {
			t.Errorf("%d figures for %s", len(got[b.name]), b.name)
		}
	}
	var args []int
	via := map[string]int{}
	for _, l := range got["am/short"] {
		switch {
		case l.Via != "":
			if l.Size != goroutineArgs {
				t.Errorf("am/short by %s: %+v", l.Via, l)
			}
			via[l.Via]++
		case l.Metric == halfRTT:
			args = append(args, l.Size)
		}
	}
	if !slices.Equal(args, argCounts) {
		t.Errorf("am/short: half round trips for %v arguments, want %v", args, argCounts)
	}
	if want := map[string]int{"goroutine 1": 2, "goroutine 2": 2, "goroutine 8": 2}; !maps.Equal(via, want) {
		t.Errorf("am/short: figures by goroutine %v, want %v", via, want)
	}
	for _, name := range []string{"rma/put", "rma/get"} {
		via := map[string]bool{}
		for _, l := range got[name] {
			if l.Size == 8 {
				via[l.Via] = true
			}
		}
		if !via[viaPtr] || !via[viaExtended] {
			t.Errorf("%s of 8 bytes went via %v", name, via)
		}
	}
}

func TestProcesses(t *testing.T) {
	r := testjob.RunConfig(t, 3, "gasbench", testjob.Config{
		Args: []string{"-json", "-time", "1us", "-bursts", "2", "-run", "am/short|barrier|ref/[cmu].*", "-size", "0,8,1M"},
	}).Want(t, 0)
	got := check(t, r.Stdout[0], "shm", 3)
	for _, l := range got["am/short"] {
		if l.Size != 0 && l.Size != 8 {
			t.Errorf("-size did not keep to its selection: %+v", l)
		}
	}
	for _, name := range []string{"am/short", "barrier", refLine, refMemcpy, refStream} {
		if len(got[name]) == 0 {
			t.Errorf("no figure for %s", name)
		}
	}
	if len(got["rma/put"]) > 0 {
		t.Error("-run did not keep to its selection")
	}
	if r.Stdout[1]+r.Stdout[2]+r.Stderr[0]+r.Stderr[1]+r.Stderr[2] != "" {
		t.Errorf("more output than the figures:%s", r.Output())
	}
}

func TestTable(t *testing.T) {
	r := testjob.RunConfig(t, 2, "gasbench", testjob.Config{
		Args: []string{"-time", "1us", "-bursts", "1", "-run", "am/short|rma/putnb"},
	}).Want(t, 0)
	for _, want := range []string{"conduit shm, 2 ranks", "p99.9", "am/short", "16 args", "rma/putnb", "64 KiB", refLine, refMemcpy, "GB/s"} {
		if !strings.Contains(r.Stdout[0], want) {
			t.Errorf("the table lacks %q:\n%s", want, r.Stdout[0])
		}
	}
	lines := strings.Split(strings.TrimSpace(r.Stdout[0]), "\n")[2:]
	for _, l := range lines {
		if len(l) != len(lines[0]) {
			t.Errorf("columns are not aligned:\n%s\n%s", lines[0], l)
		}
	}
}

func TestOneRank(t *testing.T) {
	r := testjob.Run(t, 1, "gasbench").Want(t, 1)
	if !strings.Contains(r.Stderr[0], "gasrun -n 2") {
		t.Errorf("one rank alone says %q", r.Stderr[0])
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // part of the error
	}{
		{"", ""},
		{"-run ref/udp.*", ""},
		{"-json -run am/short -time 10ms -bursts 3", ""},
		{"-run am", `-run "am" matches no benchmark as a whole; there are ref/cacheline`},
		{"-run (", `-run "(" is not a regular expression`},
		{"-size 0,8,64K,1M", ""},
		{"-size 8,x", "-size x: not a size"},
		{"-size 8 -conduit sim", "-size is not for simulated jobs"},
		{"-against before.json", ""},
		{"-against before.json -conduit sim", "-against is not for simulated jobs"},
		{"-against before.json -slack 1.5", ""},
		{"-slack 2", "-slack 2: it is a factor, 1 or more, for -against"},
		{"-against before.json -slack 0.9", "-slack 0.9: it is a factor, 1 or more, for -against"},
		{"-against before.json -slack NaN", "-slack NaN: it is a factor, 1 or more, for -against"},
		{"-against= -run am/short", "-against: no file is named"},
		{"-time 0s", "-time 0s: it must be more than 0"},
		{"-time x", "invalid value"},
		{"-bursts 0", "-bursts 0: it must be 1 to 10000"},
		{"-bursts 10001", "-bursts 10001"},
		{"-nope", "-nope"},
		{"am/short", `unexpected argument "am/short"`},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: error %v, want %q", c.args, err, c.want)
		}
	}
	var usage strings.Builder
	if _, err := parse([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "-bursts N") {
		t.Errorf("-h: %v, %q", err, usage.String())
	}
	o, err := parse([]string{"-run", "rma/put"}, io.Discard)
	if err != nil || o.run.MatchString("rma/putnb") || o.time != 200*time.Millisecond {
		t.Errorf("-run rma/put: %v, %+v", err, o)
	}
}

// TestHistogram compares with sorting.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Uint64Range(1, 1<<40), 1, 200).Draw(t, "times")
		q := rapid.SampledFrom([]float64{0.5, 0.99, 0.999, 1}).Draw(t, "quantile")
		var h histogram
		for _, x := range v {
			h.add(float64(x))
		}
		slices.Sort(v)
		want := float64(v[int(math.Ceil(q*float64(len(v))))-1])
		if got := h.quantile(q); got > want || got < want*(1-1.0/128) {
			t.Fatalf("quantile %v of %v is %v, want %v", q, v, got, want)
		}
	})
	var h histogram
	h.add(math.MaxUint64 / 2)
	if h.quantile(1) < math.MaxUint64/4 {
		t.Errorf("a very long time is %v", h.quantile(1))
	}
}

func TestSummarise(t *testing.T) {
	// The machine changes its speed by four during the second cycle, which
	// therefore tells nothing; the ratio is 2 throughout.
	got := summarise([]float64{20, 50, 82, 78}, []float64{10, 10, 40, 41, 39})
	if got.ratio < 1.9 || got.ratio > 2.1 || got.value != 78 {
		t.Errorf("got %+v", got)
	}
	// With nothing but changes all of them count.
	if got := summarise([]float64{10}, []float64{10, 30}); got.ratio != 0.5 {
		t.Errorf("got %+v", got)
	}
}

func TestInvert(t *testing.T) {
	l := line{Size: 1000, Value: 10, P50: 10, P99: 20, P999: 40, RefValue: 5, Ratio: 2, Low: 1, High: 2.5}
	l.invert("bytes/s", float64(l.Size))
	if l.Value != 1e11 || l.Low != 0.4 || l.High != 1 || l.P999 != 2.5e10 || l.RefValue != 2e11 || l.Ratio != 0.5 || l.Unit != "bytes/s" {
		t.Errorf("got %+v", l)
	}
}

// commanding runs f on rank 0 of two, of which the other serves.
func commanding(t *testing.T, f func(j *job) error) {
	t.Helper()
	gastest.RunConfig(t, gas.Config{Ranks: 2, Handlers: handlers}, func(n *gas.Node) error {
		j, err := newJob(n)
		if err != nil {
			return err
		}
		defer j.close()
		if n.Rank() == 1 {
			return j.serve()
		}
		if err := f(j); err != nil {
			return err
		}
		return j.command(cmdQuit, 0, 0)
	})
}

// TestCases checks of every figure that what is measured fits its metric: half
// round trips are operations of two messages in turn, and bandwidths have bytes.
func TestCases(t *testing.T) {
	needUDP(t)
	commanding(t, func(j *job) error {
		for _, b := range benchmarks {
			if b.lines != nil {
				continue
			}
			cases, err := b.cases(j)
			if err != nil {
				return err
			}
			for _, c := range cases {
				for _, out := range c.out {
					if (out.metric == halfRTT) != (c.op.legs == 2) || c.op.legs != 1 && c.op.legs != 2 {
						t.Errorf("%s %d %s: %s of operations of %v messages", b.name, c.size, c.via, out.metric, c.op.legs)
					}
					if out.metric == bandwidth && c.size == 0 {
						t.Errorf("%s %s: bandwidth of nothing", b.name, c.via)
					}
				}
			}
		}
		return nil
	})
}

// TestTimed checks times against an operation whose shortest time is known.
func TestTimed(t *testing.T) {
	const each = 200 * time.Microsecond
	ops := 0
	busy := op{legs: 2, run: func(count int) error {
		for start := time.Now(); time.Since(start) < time.Duration(count)*each; {
		}
		ops += count
		return nil
	}}
	j := &job{clock: 50}
	const shortest = float64(each)/2 - 50
	if ns, err := j.timed(&busy, 5); err != nil || ns < shortest || ops <= 5 {
		t.Errorf("5 operations took %v ns a message, %d were done, error %v; each takes at least %v", ns, ops, err, shortest)
	}
	var h histogram
	ops = 0
	if err := j.sampled(&busy, 7, 3, &h); err != nil || h.total != 2 || ops <= 6 || h.quantile(0.01) < 3*2*shortest*0.99 {
		t.Errorf("%d samples of 3 operations, the shortest %v ns; error %v", h.total, h.quantile(0.01), err)
	}
	busy.run = func(int) error { return io.ErrUnexpectedEOF }
	if _, err := j.timed(&busy, 5); err != io.ErrUnexpectedEOF {
		t.Errorf("an error came back as %v", err)
	}
}

// TestGoroutines: the k-th goroutine runs what is given to it, is always the same one, and
// comes after all before it have used the endpoint.
func TestGoroutines(t *testing.T) {
	commanding(t, func(j *job) error {
		ids := map[uintptr]int{}
		for _, k := range []int{1, 3, 2, 8, 0, 8, 3} {
			before := j.s.pongs
			uses := uint64(max(0, k-1-len(j.goroutines)))
			err := j.on(k, func() error {
				if got := j.s.pongs - before; got != uses*(firstUse+1) {
					t.Errorf("goroutine %d: %d answers came before it, want %d", k, got, uses*(firstUse+1))
				}
				id := sys.Goroutine()
				if was, ok := ids[id]; sys.HasGoroutine && ok && was != max(k, 1) {
					t.Errorf("goroutine %d is the %d-th, too", k, was)
				}
				ids[id] = max(k, 1)
				return nil
			})
			if err != nil {
				return err
			}
		}
		if sys.HasGoroutine && len(ids) != 4 {
			t.Errorf("%d goroutines, want 4", len(ids))
		}
		if err := j.on(2, func() error { return io.ErrUnexpectedEOF }); err != io.ErrUnexpectedEOF {
			t.Errorf("an error came back as %v", err)
		}
		return nil
	})
}
