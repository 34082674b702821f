package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
)

// report prints figures as they come.
type report struct {
	table                  // unless there is json
	json     *json.Encoder // nil for the table
	notes    *os.File
	progress *os.File // notes if that is a terminal, or nil
	all      []line
	beside   string // the neighbour of the rows that come, by -beside
	column   bool   // the table names it
}

func newReport(o options, out io.Writer, notes *os.File, j *job) *report {
	r := &report{table: table{out: out}, notes: notes, column: o.beside[0].text != ""}
	if i, err := notes.Stat(); err == nil && i.Mode()&os.ModeCharDevice != 0 {
		r.progress = notes
	}
	if o.json {
		r.json = json.NewEncoder(out)
		return r
	}
	sealed := ""
	if j.datagram > 0 {
		sealed = fmt.Sprintf(", datagrams of %d bytes, %s", j.datagram, j.auth)
	}
	r.printf("conduit %s%s, %d ranks; medians of %d bursts, each between bursts of its reference\n\n",
		j.n.Layers().Conduit.Conduit(), sealed, j.n.Size(), o.bursts)
	r.row("beside", "bench", "via", "size", "metric", "value", "p50", "p99", "p99.9", "reference", "", "ratio")
	return r
}

func (r *report) row(beside string, c ...any) {
	if r.column {
		r.printf("%-10s ", beside)
	}
	r.printf("%-19s %-16s %8s %-10s %11s %11s %11s %11s  %-13s %11s %7s\n", c...)
}

// doing shows what is being measured, to people.
func (r *report) doing(what string) {
	if r.progress != nil {
		fmt.Fprintf(r.progress, "\r\x1b[K%s", what)
	}
}

// leaveOut reports that a benchmark does not run, and why.
func (r *report) leaveOut(bench, why string) {
	if r.progress != nil {
		fmt.Fprint(r.progress, "\r\x1b[K")
	}
	fmt.Fprintf(r.notes, "gasbench: %s is left out: %s\n", bench, why)
}

func (r *report) add(lines []line) error {
	if r.progress != nil {
		fmt.Fprint(r.progress, "\r\x1b[K")
	}
	for _, l := range lines {
		l.Beside = r.beside
		r.all = append(r.all, l)
		if r.json != nil {
			if r.err == nil {
				r.err = r.json.Encode(l)
			}
			continue
		}
		ref, ratio := "", ""
		if l.Ref != "" {
			ref, ratio = l.value(l.RefValue), digits(l.Ratio)
		}
		p50, p99, p999 := "", "", ""
		if l.Batch > 0 {
			p50, p99, p999 = l.value(l.P50), l.value(l.P99), l.value(l.P999)
		}
		r.row(l.Beside, l.Bench, l.Via, l.sizeText(), l.Metric, l.value(l.Value), p50, p99, p999, l.Ref, ref, ratio)
	}
	return r.err
}

// sizeText is the size as people read it.
func (l *line) sizeText() string {
	switch l.Bench {
	case "am/short":
		return fmt.Sprintf("%d args", l.Size)
	case "lanes/own":
		return fmt.Sprintf("%d lanes", l.Size)
	case "lanes/shared":
		return fmt.Sprintf("%d goroutines", l.Size)
	case "barrier", "coll/barrier", "team/barrier", "team/split", "upc/barrier":
		return ""
	}
	return bytesText(l.Size)
}

// value is a figure with its unit.
func (l *line) value(v float64) string {
	switch l.Unit {
	case "bytes/s":
		return digits(v/1e9) + " GB/s"
	case "1/s":
		return digits(v/1e6) + " M/s"
	case "share":
		return strconv.FormatFloat(100*v, 'f', 2, 64) + " %"
	case "each", "round trips":
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	if v >= 10000 {
		return digits(v/1000) + " us"
	}
	return digits(v) + " ns"
}

// digits prints three significant digits, or all before the point.
func digits(v float64) string {
	prec := 0
	switch {
	case v < 0:
		return "-" + digits(-v)
	case v < 1:
		prec = 3
	case v < 10:
		prec = 2
	case v < 100:
		prec = 1
	}
	return strconv.FormatFloat(v, 'f', prec, 64)
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
