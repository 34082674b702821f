package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/lab/faultproxy"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
)

// jobOptions are the command line of a gasbench that starts jobs of two ranks
// itself: one for each variant, as often as there are rounds.
type jobOptions struct {
	variants []variant
	rounds   int
	bind     launch.Bind
	json     bool
	against  string // a file, or ""
	slack    float64
	args     []string // of the ranks
}

// variant is a kind of job.
type variant struct {
	conduit  string
	auth     string  // ARGON_AUTH; "" if not set
	datagram int     // ARGON_DATAGRAM; 0 if not set
	loss     float64 // share of the datagrams that a relay loses; negative: there is no relay
}

// maxRounds bounds what is kept in memory.
const maxRounds = 1000

// parseJobs reads what belongs to jobs that gasbench starts itself; lists are
// separated by commas.
func parseJobs(o options, conduits, auths, datagrams, losses, bind string, rounds int, run, sizes, beside string) (jobOptions, error) {
	jo := jobOptions{rounds: rounds, bind: launch.Bind(bind), json: o.json, against: o.against, slack: o.slack}
	if os.Getenv(jobenv.Rank) != "" {
		return jo, errors.New("-conduit starts a job, and this is a rank of one already: use gasrun -conduit")
	}
	if rounds < 1 || rounds > maxRounds {
		return jo, fmt.Errorf("-rounds %d: it must be 1 to %d", rounds, maxRounds)
	}
	if _, err := launch.ParseBind(bind); err != nil {
		return jo, err
	}
	list := func(s string) []string {
		if s == "" {
			return []string{""}
		}
		return strings.Split(s, ",")
	}
	for _, c := range list(conduits) {
		if c == sim.Name || !slices.Contains(launch.Conduits(), c) {
			return jo, fmt.Errorf("-conduit %s: known: %s; sim cannot be compared with others", c, strings.Join(launch.Conduits(), ", "))
		}
		if c == "shm" {
			jo.variants = append(jo.variants, variant{conduit: c, loss: -1})
			continue
		}
		for _, a := range list(auths) {
			for _, d := range list(datagrams) {
				for _, l := range list(losses) {
					v := variant{conduit: c, auth: a, loss: -1}
					var err error
					if d != "" {
						if v.datagram, err = strconv.Atoi(d); err != nil || v.datagram < 1 {
							return jo, fmt.Errorf("-datagram %s: not a number of bytes", d)
						}
					}
					if l != "" {
						if v.loss, err = strconv.ParseFloat(strings.TrimSuffix(l, "%"), 64); err != nil || v.loss < 0 || v.loss >= 100 {
							return jo, fmt.Errorf("-loss %s: not a percentage from 0 to less than 100", l)
						}
						v.loss /= 100
					}
					jo.variants = append(jo.variants, v)
				}
			}
		}
	}
	jo.args = []string{"-run", run, "-time", o.time.String(), "-bursts", strconv.Itoa(o.bursts)}
	if sizes != "" {
		jo.args = append(jo.args, "-size", sizes)
	}
	if beside != "" {
		jo.args = append(jo.args, "-beside", beside)
	}
	return jo, nil
}

// env is the environment of the variant's ranks.
func (v variant) env() []string {
	var env []string
	if v.auth != "" {
		env = append(env, udp.EnvAuth+"="+v.auth)
	}
	if v.datagram != 0 {
		env = append(env, udp.EnvDatagram+"="+strconv.Itoa(v.datagram))
	}
	return env
}

// runner starts jobs.
type runner struct {
	o       jobOptions
	program string
	signals <-chan os.Signal
	stderr  io.Writer
	started func() // called when the ranks of a job, which is quiet, run; nil if it is no neighbour
}

// job runs one, whose standard output goes to out.
func (r *runner) job(v variant, args []string, out io.Writer) error {
	c := launch.Config{
		Size: 2, Program: r.program, Args: args, Conduit: v.conduit, Env: v.env(), Bind: r.o.bind,
		Stdout: out, Stderr: r.stderr, Log: r.stderr, Signals: r.signals, Guard: r.program,
	}
	if r.started != nil {
		c.Quiet, c.Started = true, func([]int) { r.started() }
	}
	if v.loss >= 0 {
		p, err := faultproxy.New(faultproxy.Config{Size: c.Size, Seed: 1, Faults: faultproxy.Faults{Drop: v.loss}})
		if err != nil {
			return err
		}
		defer p.Close()
		c.Rewrite = p.Rewrite
	}
	_, err := launch.Run(context.Background(), c)
	return err
}

// runJobs runs them all and prints a table, or their objects.
func runJobs(o jobOptions, out io.Writer, stderr *os.File) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var before *earlier
	if o.against != "" {
		if before, err = readEarlier(o.against, o.slack); err != nil {
			return err
		}
	}
	signals := make(chan os.Signal, 8)
	sys.Catch(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	r := &runner{o: o, program: program, signals: signals, stderr: stderr}
	if len(o.variants) == 1 && o.rounds == 1 && !o.json && before == nil {
		return r.job(o.variants[0], o.args, out)
	}
	all := newTally(len(o.variants))
	for range o.rounds {
		for i, v := range o.variants {
			var b bytes.Buffer
			if err := r.job(v, append([]string{"-json"}, o.args...), &b); err != nil {
				return err
			}
			d := json.NewDecoder(&b)
			for d.More() {
				var l line
				if err := d.Decode(&l); err != nil {
					return fmt.Errorf("the output of a job on conduit %s: %w", v.conduit, err)
				}
				if v.loss >= 0 {
					loss := v.loss
					l.Loss = &loss
				}
				all.add(i, l)
				if o.json {
					if err := json.NewEncoder(out).Encode(l); err != nil {
						return err
					}
				}
			}
		}
	}
	if !o.json {
		err = all.print(out, o.rounds)
	}
	if err == nil && before != nil {
		err = before.compare(all.lines(), comparison(o.json, out, stderr))
	}
	return err
}

// figureKey identifies a figure in different jobs.
type figureKey struct {
	bench, via, metric, ref, beside string
	size                            int
}

func figureOf(l *line) figureKey {
	return figureKey{bench: l.Bench, via: l.Via, metric: l.Metric, ref: l.Ref, size: l.Size, beside: l.Beside}
}

// tally is figures by key and variant, in the order of rounds.
type tally struct {
	keys     []figureKey
	rows     map[figureKey][][]line
	variants int
}

func newTally(variants int) *tally {
	return &tally{rows: map[figureKey][][]line{}, variants: variants}
}

func (t *tally) add(variant int, l line) {
	k := figureOf(&l)
	if t.rows[k] == nil {
		t.keys = append(t.keys, k)
		t.rows[k] = make([][]line, t.variants)
	}
	t.rows[k][variant] = append(t.rows[k][variant], l)
}

// medians is the figure of a variant: its values are medians over the rounds.
func medians(lines []line) line {
	l := lines[0]
	fields := func(l *line) []*float64 {
		return []*float64{&l.Value, &l.RefValue, &l.Ratio, &l.P50, &l.P99, &l.P999}
	}
	for k, to := range fields(&l) {
		v := make([]float64, len(lines))
		for i := range lines {
			v[i] = *fields(&lines[i])[k]
		}
		*to = median(v)
	}
	return l
}

// lines are the figures of all variants and rounds.
func (t *tally) lines() []line {
	var l []line
	for _, k := range t.keys {
		for _, lines := range t.rows[k] {
			l = append(l, lines...)
		}
	}
	return l
}

// over is how a variant's values relate to another's of the same rounds, as the
// median over the rounds. Rounds in which the machine changed its speed between
// the two, as their references show, are left out if others are left. False if the
// other's values are all 0, as hit rates may be.
func over(lines, first []line) (float64, bool) {
	var good, all []float64
	for i := range min(len(lines), len(first)) {
		a, b := lines[i], first[i]
		if b.Value == 0 {
			continue
		}
		all = append(all, a.Value/b.Value)
		if max(a.RefValue, b.RefValue) <= steady*min(a.RefValue, b.RefValue) {
			good = append(good, a.Value/b.Value)
		}
	}
	if len(good) < (len(all)+3)/4 {
		good = all
	}
	if len(good) == 0 {
		return 0, false
	}
	return median(good), true
}

// print prints a table: the variants of each figure below each other.
func (t *tally) print(out io.Writer, rounds int) error {
	p := table{out: out}
	p.printf("two ranks on %d processors; medians of %d rounds of jobs; over first: of values in the same round\n\n", runtime.NumCPU(), rounds)
	row := func(c ...any) {
		p.printf("%-19s %-16s %8s %-10s %-8s %-13s %8s %5s %-8s %11s  %-13s %11s %7s %10s\n", c...)
	}
	row("bench", "via", "size", "metric", "conduit", "auth", "datagram", "loss", "beside", "value", "reference", "", "ratio", "over first")
	for _, k := range t.keys {
		byVariant := t.rows[k]
		for i, lines := range byVariant {
			if len(lines) == 0 {
				continue
			}
			l := medians(lines)
			datagram, loss, ref, ratio, relation := "", "", "", "", ""
			if l.Datagram > 0 {
				datagram = strconv.Itoa(l.Datagram)
			}
			if l.Loss != nil {
				loss = digits(100**l.Loss) + "%"
				if *l.Loss == 0 {
					loss = "0%"
				}
			}
			if l.Ref != "" {
				ref, ratio = l.value(l.RefValue), digits(l.Ratio)
			}
			if i > 0 {
				if q, ok := over(lines, byVariant[0]); ok {
					relation = digits(q)
				}
			}
			row(l.Bench, l.Via, l.sizeText(), l.Metric, l.Conduit, l.Auth, datagram, loss, l.Beside, l.value(l.Value), l.Ref, ref, ratio, relation)
		}
	}
	return p.err
}
