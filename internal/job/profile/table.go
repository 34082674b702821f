package profile

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// mostRows is how many rows a table has; mostNamed how many peers or sizes a row names.
const mostRows, mostNamed = 40, 8

// Table writes j for people, each line after prefix.
func (j *Job) Table(w io.Writer, prefix string, o Options) error {
	waits := time.Duration(0)
	for _, r := range j.Rows {
		waits += waiting(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "profile of %s: %v of each, of which %s in waits and collective calls\n", plural(j.Ranks, "rank"), short(j.Elapsed/time.Duration(max(j.Ranks, 1))), percent(waits, j.Elapsed))
	t := [][]any{{"line", "call", "kind", "calls", "bytes", "total", "min", "mean", "p99", "max", "of waits", "last"}}
	for _, r := range j.Rows[:min(len(j.Rows), mostRows)] {
		mean := r.Total / time.Duration(max(r.Calls, 1))
		part := "-"
		if waiting(r) > 0 {
			part = percent(waiting(r), waits)
		}
		t = append(t, []any{
			r.Line, cmp.Or(r.Call, "-"), r.Kind, r.Calls, r.Bytes,
			short(r.Total), short(r.Min), short(mean), short(r.P99), short(r.Max), part, r.last(),
		})
	}
	columns(&b, t)
	if more := len(j.Rows) - mostRows; more > 0 {
		fmt.Fprintf(&b, "and %d rows more, which ARGON_PROFILE=json=FILE has\n", more)
	}
	for _, r := range j.Rows[:min(len(j.Rows), mostRows)] {
		if o.Sizes && r.Bytes > 0 {
			fmt.Fprintf(&b, "%s, %s by size:", r.Line, r.Kind)
			for _, s := range slices.Sorted(maps.Keys(r.Sizes)) {
				fmt.Fprintf(&b, " %d: %d", s, r.Sizes[s])
			}
			b.WriteByte('\n')
		}
		if len(r.Peers) > 0 {
			fmt.Fprintf(&b, "%s, %s by rank:", r.Line, r.Kind)
			peers := slices.SortedFunc(maps.Keys(r.Peers), func(a, b int) int {
				return cmp.Or(cmp.Compare(r.Peers[b].Bytes, r.Peers[a].Bytes), cmp.Compare(r.Peers[b].Calls, r.Peers[a].Calls), cmp.Compare(a, b))
			})
			for _, p := range peers[:min(len(peers), mostNamed)] {
				fmt.Fprintf(&b, " %d: %d (%d bytes)", p, r.Peers[p].Calls, r.Peers[p].Bytes)
			}
			if more := len(peers) - mostNamed; more > 0 {
				fmt.Fprintf(&b, " and %d more", more)
			}
			b.WriteByte('\n')
		}
	}
	text := prefix + strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", "\n"+prefix+"  ") + "\n"
	_, err := io.WriteString(w, text)
	return err
}

// columns writes rows, of which the first three columns and the last are words, the others figures.
func columns(b *strings.Builder, rows [][]any) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(fmt.Sprint(c)))
		}
	}
	for _, row := range rows {
		line := ""
		for i, c := range row {
			if i < 3 || i == len(row)-1 {
				line += fmt.Sprintf("%-*v  ", width[i], c)
			} else {
				line += fmt.Sprintf("%*v  ", width[i], c)
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// waiting is what counts as waiting: of a collective call all of it.
func waiting(r *Row) time.Duration {
	if r.Kind == Collective {
		return r.Total
	}
	return r.Wait
}

// last is the rank that came last most often, and how often.
func (r *Row) last() string {
	most, all := -1, uint64(0)
	for _, rank := range slices.Sorted(maps.Keys(r.Last)) {
		if all += r.Last[rank]; most < 0 || r.Last[rank] > r.Last[most] {
			most = rank
		}
	}
	if most < 0 {
		return "-"
	}
	return fmt.Sprintf("rank %d: %s", most, percent(time.Duration(r.Last[most]), time.Duration(all)))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func percent(part, of time.Duration) string {
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(max(of, 1)))
}

// short is t in three digits.
func short(t time.Duration) time.Duration {
	unit := time.Duration(1)
	for t/unit >= 1000 {
		unit *= 10
	}
	return t.Round(unit)
}
