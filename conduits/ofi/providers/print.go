package providers

import (
	"fmt"
	"io"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// Print writes what Choose made as a table for people, and after it the notes and the
// reasons, each once. An error is w's.
func Print(w io.Writer, all []Choice) error {
	var b strings.Builder
	rows := [][]string{{"", "provider", "domain", "address", "for", "order", "memory", "wait", "inject", "largest"}}
	for i, c := range all {
		mark := " "
		if i == 0 && c.Usable {
			mark = "*"
		} else if !c.Usable {
			mark = "-"
		}
		domain := c.Domain
		if c.Link != "" {
			domain += " (" + c.Link + ")"
		}
		rows = append(rows, []string{
			mark, c.Name, domain, c.Address, c.Class.String(), c.Order.String(), strings.ReplaceAll(c.MR.String(), "FI_MR_", ""),
			c.Wait.String(), size(c.Inject), size(c.MaxMsg),
		})
	}
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, s := range r {
			width[i] = max(width[i], len(printable(s)))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, s := range r {
			fmt.Fprintf(&line, "%-*s  ", width[i], printable(s))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	b.WriteString("* used; - not used\n")
	said := map[string]bool{}
	for _, c := range all {
		for _, s := range append([]string{c.Why}, c.Notes...) {
			line := fmt.Sprintf("%s: %s\n", printable(c.Name), printable(s))
			if s != "" && !said[line] {
				said[line] = true
				b.WriteString(line)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printable returns a text of the library, as it may be written to a terminal.
func printable(s string) string { return errs.Line(s, 200) }

// size is n bytes in a few characters; lengths without a limit that matters are "any".
func size(n uint64) string {
	switch {
	case n >= 1<<40:
		return "any"
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dK", n>>10)
	}
	return fmt.Sprint(n)
}
