package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The table stands between these lines of its file; the rest is written by hand.
const (
	tableBegin = "<!-- table: written by -table -->\n"
	tableEnd   = "<!-- end of table -->\n"
	tableHead  = "| mutant | defect | where | on | caught by |\n| --- | --- | --- | --- | --- |\n"
)

// listed is how many checks a row names.
const listed = 3

// writeTable brings the rows of results up to date in file, and keeps those of
// other mutants.
func writeTable(file string, results []outcome) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := withTable(string(b), results)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// withTable is text with the rows of results.
func withTable(text string, results []outcome) (string, error) {
	before, rest, ok := strings.Cut(text, tableBegin)
	old, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("no lines %q and %q", tableBegin, tableEnd)
	}
	rows := tableRows(old)
	for _, o := range results {
		rows[o.m.name] = row(o)
	}
	var s strings.Builder
	s.WriteString(before + tableBegin + tableHead)
	for _, m := range mutants {
		s.WriteString(rows[m.name])
	}
	s.WriteString(tableEnd + after)
	return s.String(), nil
}

// tableRows finds the rows of a table by mutant.
func tableRows(table string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			rows[strings.TrimSpace(cells[1])] = line
		}
	}
	return rows
}

// row is one line, with a line inside for each conduit.
func row(o outcome) string {
	var on, by []string
	for _, v := range o.on {
		on = append(on, v.conduit)
		s := "**nothing**"
		if l := v.all(); len(l) > 0 {
			// Those that fail at once say more than those that run out of time.
			slices.SortStableFunc(l, func(a, b string) int {
				return strings.Count(a, "(time limit)") - strings.Count(b, "(time limit)")
			})
			s = strings.Join(l[:min(len(l), listed)], ", ")
			if more := len(l) - listed; more > 0 {
				s += fmt.Sprintf(" and %d more", more)
			}
		}
		by = append(by, s)
	}
	if len(by) > 1 {
		for i := range by {
			by[i] = on[i] + ": " + by[i]
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", o.m.name, o.m.defect, o.m.file, strings.Join(on, ", "), strings.Join(by, "<br>"))
}
