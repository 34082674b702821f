package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestParseJobs(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // part of the error, or the variants
	}{
		{"-conduit shm", "{shm  0 -1}"},
		{"-conduit udp", "{udp  0 -1}"},
		{"-conduit udp -auth none,encrypted -datagram 1400,65000", "{udp none 1400 -1} {udp none 65000 -1} {udp encrypted 1400 -1} {udp encrypted 65000 -1}"},
		{"-conduit shm,udp -auth none -loss 0,1,2.5%", "{shm  0 -1} {udp none 0 0} {udp none 0 0.01} {udp none 0 0.025}"},
		{"-conduit nope", "-conduit nope: known: "},
		{"-conduit shm,sim", "sim cannot be compared"},
		{"-conduit udp -rounds 0", "-rounds 0: it must be 1 to"},
		{"-conduit udp -bind both", `"both": known are spread, core, numa and none`},
		{"-conduit udp -datagram x", "-datagram x: not a number"},
		{"-conduit udp -datagram -1", "-datagram -1: not a number"},
		{"-conduit udp -loss 100", "-loss 100: not a percentage"},
		{"-conduit udp -loss x", "-loss x: not a percentage"},
		{"-conduit udp -machine ideal", "-machine is for simulated jobs"},
		{"-conduit sim -loss 1", "-loss is for jobs that gasbench starts"},
		{"-auth none", "-auth is for jobs that gasbench starts: it needs -conduit"},
		{"-conduit udp -run nope", `-run "nope" matches no benchmark`},
	} {
		o, err := parse(strings.Fields(c.args), io.Discard)
		var got []string
		if o.jobs != nil {
			for _, v := range o.jobs.variants {
				b, _ := json.Marshal([]any{v.conduit, v.auth, v.datagram, v.loss})
				got = append(got, strings.NewReplacer("[", "{", "]", "}", ",", " ", `"`, "").Replace(string(b)))
			}
		}
		if text := strings.Join(got, " "); err == nil && text != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %s, error %v; want %s", c.args, text, err, c.want)
		}
	}
	t.Setenv(jobenv.Rank, "0")
	if _, err := parse([]string{"-conduit", "udp"}, io.Discard); err == nil || !strings.Contains(err.Error(), "rank of one already") {
		t.Errorf("within a job: %v", err)
	}
}

// TestJobs starts jobs of every kind.
func TestJobs(t *testing.T) {
	needUDP(t)
	defer testjob.AssertNoLeftovers(t)
	t.Setenv("ARGONTEST_JOB", "gasbench") // what this binary is when it is started again
	o, err := parse(strings.Fields("-json -conduit shm,udp -auth encrypted -datagram 1400 -loss 0,5 -rounds 2 -time 1us -bursts 1 -run atomic/add"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := runJobs(*o.jobs, &out, os.Stderr); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for d := json.NewDecoder(&out); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		kind := l.Conduit + " " + l.Auth
		if l.Loss != nil {
			kind += " " + digits(*l.Loss)
		}
		if l.Value <= 0 || (l.Conduit == "udp") != (l.Datagram == 1400) {
			t.Errorf("%+v", l)
		}
		if l.Bench == "atomic/add" && l.Via == viaPtr {
			kinds = append(kinds, kind)
		}
	}
	want := []string{"shm ", "udp encrypted 0.000", "udp encrypted 0.050"}
	if want = append(want, want...); !slices.Equal(kinds, want) {
		t.Errorf("jobs were of kinds %q, want %q", kinds, want)
	}
}

// TestTally checks a table against known figures.
func TestTally(t *testing.T) {
	half := 0.01
	tl := newTally(2)
	for _, v := range []float64{10, 12, 90} { // the machine changes its speed in the last round
		tl.add(0, line{Bench: "am/short", Conduit: "shm", Metric: rate, Size: 4, Value: v, Ref: refLine, RefValue: v, Ratio: 1})
		tl.add(1, line{Bench: "am/short", Conduit: "udp", Metric: rate, Size: 4, Value: 20, Ref: refLine, RefValue: 10, Ratio: 2, Auth: "none", Datagram: 1400, Loss: &half})
	}
	var out strings.Builder
	if err := tl.print(&out, 3); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || strings.Join(strings.Fields(lines[3]), " ") != "am/short 4 args rate shm 12.0 ns ref/cacheline 12.0 ns 1.00" ||
		strings.Join(strings.Fields(lines[4]), " ") != "am/short 4 args rate udp none 1400 1.00% 20.0 ns ref/cacheline 10.0 ns 2.00 1.83" {
		t.Errorf("got\n%s", out.String())
	}
	// The first round's 2 and the second's 1.67; not the third's 0.2.
	if got, ok := over(tl.rows[tl.keys[0]][1], tl.rows[tl.keys[0]][0]); !ok || got < 1.8 || got > 1.9 {
		t.Errorf("over is %v, %v", got, ok)
	}
	// What is 0 relates to nothing, nor does what the first variant does not have.
	none := []line{{Value: 0}, {Value: 0}}
	some := []line{{Value: 3}, {Value: 4}}
	for _, c := range []struct {
		lines, first []line
		want         float64
		ok           bool
	}{
		{none, none, 0, false},
		{some, none, 0, false},
		{some, nil, 0, false},
		{none, some, 0, true},
		{some, []line{{Value: 0}, {Value: 2}}, 2, true},
	} {
		if got, ok := over(c.lines, c.first); got != c.want || ok != c.ok {
			t.Errorf("%v over %v: %v, %v, want %v, %v", c.lines, c.first, got, ok, c.want, c.ok)
		}
	}
	tl = newTally(2)
	for i := range 2 {
		tl.add(i, line{Bench: "firehose/workingset", Conduit: "shm", Metric: "hits", Unit: "share"})
	}
	out.Reset()
	if err := tl.print(&out, 1); err != nil || strings.Contains(out.String(), "NaN") {
		t.Errorf("%v, got\n%s", err, out.String())
	}
}
