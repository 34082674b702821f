package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// earlier are the figures of a file that -json has written.
type earlier struct {
	file  string
	slack float64 // by more than this factor a figure is slower, or faster
	lines map[rowKey][]line
}

// rowKey identifies a figure in different runs.
type rowKey struct {
	figureKey
	conduit, auth string
	ranks         int
	datagram      int
	loss          float64 // -1: there is no relay
}

func keyOf(l *line) rowKey {
	k := rowKey{
		figureKey: figureOf(l), conduit: l.Conduit, auth: l.Auth,
		ranks: l.Ranks, datagram: l.Datagram, loss: -1,
	}
	if l.Loss != nil {
		k.loss = *l.Loss
	}
	return k
}

// readEarlier reads the figures of a file. Those of several runs may follow each
// other in it.
func readEarlier(file string, slack float64) (*earlier, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("-against: %w", err)
	}
	defer f.Close()
	e := &earlier{file: file, slack: slack, lines: map[rowKey][]line{}}
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	for {
		var l line
		switch err := d.Decode(&l); {
		case err == io.EOF && len(e.lines) > 0:
			return e, nil
		case err == io.EOF:
			return nil, fmt.Errorf("-against %s: there are no figures in it; -json prints some", file)
		case err != nil:
			return nil, fmt.Errorf("-against %s: not what -json prints of real jobs: at byte %d: %w", file, d.InputOffset(), err)
		case l.Bench == "" || l.Metric == "" || l.Unit == "":
			return nil, fmt.Errorf("-against %s: the object that ends at byte %d has no bench, metric or unit", file, d.InputOffset())
		}
		e.lines[keyOf(&l)] = append(e.lines[keyOf(&l)], l)
	}
}

// band is where a figure lies: its median, and the quartiles around it, if they are
// known.
type band struct {
	low, mid, high float64
	known          bool
}

// compared is the figure of a line that other runs' are compared with: in units of
// the reference, if it has one that was measured.
func compared(l *line) float64 {
	if l.RefValue > 0 {
		return l.Ratio
	}
	return l.Value
}

// bandOf is the band of a figure of several runs: it holds both what moved from
// burst to burst and what moved from run to run.
func bandOf(lines []line) band {
	var mids, all []float64
	for i := range lines {
		l := &lines[i]
		v := compared(l)
		mids = append(mids, v)
		all = append(all, v)
		if l.Low != 0 || l.High != 0 {
			all = append(all, l.Low, l.High)
		}
	}
	b := band{mid: median(mids), known: len(all) >= 3}
	b.low, b.high = quartiles(all)
	return b
}

// alike returns those lines of which the reference took about as long as for some of
// the others, so that the machine was in the same state.
func alike(lines, others []line) []line {
	var l []line
	for _, a := range lines {
		if slices.ContainsFunc(others, func(b line) bool {
			return max(a.RefValue, b.RefValue) <= steady*min(a.RefValue, b.RefValue)
		}) {
			l = append(l, a)
		}
	}
	return l
}

// change is how a figure relates to the earlier one.
type change struct {
	key       rowKey
	now, then line // the medians
	nowBand   band
	thenBand  band
	verdict   string
}

const (
	slower    = "slower"
	faster    = "faster"
	same      = ""
	incommens = "not compared" // its reference was another
)

// more reports whether more of a unit is better.
func more(unit string) bool { return unit == "bytes/s" || unit == "1/s" || unit == "share" }

// compare relates a figure of this run to the earlier one. It is slower, or faster,
// only if the bands of both are known and are apart by more than the factor slack.
func compare(k rowKey, now, then []line, slack float64) change {
	a, b := alike(now, then), alike(then, now)
	if len(a) == 0 {
		return change{key: k, now: medians(now), then: medians(then), verdict: incommens}
	}
	c := change{key: k, now: medians(a), then: medians(b), nowBand: bandOf(a), thenBand: bandOf(b)}
	up, down := slower, faster
	if more(c.now.Unit) {
		up, down = faster, slower
	}
	switch {
	case !c.nowBand.known || !c.thenBand.known:
	case c.nowBand.low > slack*c.thenBand.high:
		c.verdict = up
	case slack*c.nowBand.high < c.thenBand.low:
		c.verdict = down
	}
	return c
}

// errSlower is the error of a comparison in which a figure became slower.
var errSlower = errors.New("slower than before")

// compare prints how the figures of this run relate to the earlier ones, and returns
// errSlower if some have become slower by more than the noise of both.
func (e *earlier) compare(lines []line, out io.Writer) error {
	var keys []rowKey
	now := map[rowKey][]line{}
	for i := range lines {
		if strings.HasPrefix(lines[i].Bench, "ref/") && lines[i].Ref == "" {
			continue // it says how fast the machine is
		}
		k := keyOf(&lines[i])
		if now[k] == nil {
			keys = append(keys, k)
		}
		now[k] = append(now[k], lines[i])
	}
	t := table{out: out}
	t.printf("\nagainst %s: medians, in brackets the quartiles; in units of the reference where there is one\n\n", e.file)
	row := func(c ...any) { t.printf("%-19s %-16s %8s %-10s %-13s %-13s %25s %25s %7s  %s\n", c...) }
	row("bench", "via", "size", "metric", "conduit", "reference", "before", "now", "change", "")
	count := map[string]int{}
	missing := 0
	for _, k := range keys {
		then := e.lines[k]
		if then == nil {
			missing++
			continue
		}
		c := compare(k, now[k], then, e.slack)
		count[c.verdict]++
		l := &c.now
		if c.verdict == incommens {
			row(l.Bench, l.Via, l.sizeText(), l.Metric, k.where(), l.Ref, l.value(c.then.RefValue), l.value(l.RefValue), "",
				"not compared: the reference moved")
			continue
		}
		relation := ""
		if c.thenBand.mid > 0 {
			relation = digits(c.nowBand.mid / c.thenBand.mid)
		}
		row(l.Bench, l.Via, l.sizeText(), l.Metric, k.where(), l.Ref, c.thenBand.text(l), c.nowBand.text(l), relation, c.verdict)
	}
	total := len(keys) - missing
	if total == 0 {
		t.printf("\nnone of the %d figures of this run is in %s\n", len(keys), e.file)
		return errors.Join(t.err, fmt.Errorf("-against %s: it has no figure of this run", e.file))
	}
	t.printf("\n%d figures: %d slower, %d faster, by more than the noise of both", total, count[slower], count[faster])
	if e.slack > 1 {
		t.printf(" and a factor of %s", digits(e.slack))
	}
	if n := count[incommens]; n > 0 {
		t.printf("; %d not compared, as their references differ by more than %.0f %%", n, 100*(steady-1))
	}
	if missing > 0 {
		t.printf("; %d of this run are not in %s", missing, e.file)
	}
	t.printf("\n")
	if t.err == nil && count[slower] > 0 {
		return fmt.Errorf("%d of %d figures are %w", count[slower], total, errSlower)
	}
	return t.err
}

// comparison is where a comparison is printed: below the table, or apart from the
// objects of -json.
func comparison(objects bool, out, notes io.Writer) io.Writer {
	if objects {
		return notes
	}
	return out
}

// where is the conduit and how it was set.
func (k *rowKey) where() string {
	parts := []string{k.conduit}
	if k.auth != "" {
		parts = append(parts, k.auth[:min(4, len(k.auth))])
	}
	if k.datagram > 0 {
		parts = append(parts, strconv.Itoa(k.datagram))
	}
	if k.loss >= 0 {
		parts = append(parts, digits(100*k.loss)+"%")
	}
	if k.beside != "" {
		parts = append(parts, "beside", k.beside)
	}
	return strings.Join(parts, " ")
}

// text is the band as people read it.
func (b band) text(l *line) string {
	f := digits
	if l.RefValue == 0 {
		f = l.value
	}
	if !b.known {
		return f(b.mid)
	}
	return fmt.Sprintf("%s [%s %s]", f(b.mid), f(b.low), f(b.high))
}

// table keeps the first error of what is printed.
type table struct {
	out io.Writer
	err error
}

func (t *table) printf(format string, c ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format, c...)
	}
}
