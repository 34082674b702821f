package where

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// FewLines is the longest report with a line for each rank.
const FewLines = 24

// Cause is one line on why a job of which all ranks have answered does not go on: the ranks that
// wait for each other, or the one that others wait for. "" if no rank waits for another one
// and some go on. stuck reports whether nothing that argon does can end it: the ranks of a circle wait for
// each other, or all wait and nothing is under way.
func Cause(all []Answer) (text string, stuck bool) {
	by := make(map[int]*Answer, len(all))
	for i := range all {
		by[all[i].Rank] = &all[i]
	}
	// next is a rank that a needs and that does not come.
	next := func(a *Answer) *Answer {
		if a.State != Waits {
			return nil
		}
		var found *Answer
		for _, r := range a.Needs {
			b := by[r]
			if b == nil || b.State == Ended || a.Served && b.In == "" && (b.State == Waits || b.State == Inside) {
				continue
			}
			if found == nil || found.State == Waits && b.State != Waits {
				found = b // one that does not wait tells more
			}
		}
		return found
	}
	// From each rank the way leads to a circle or to a rank from which none leads on.
	behind := map[*Answer][]int{}
	for i := range all {
		seen := map[*Answer]bool{}
		a := &all[i]
		for {
			if seen[a] {
				return circle(a, next), quiet(all)
			}
			seen[a] = true
			b := next(a)
			if b == nil {
				break
			}
			a = b
		}
		if a != &all[i] {
			behind[a] = append(behind[a], all[i].Rank)
		}
	}
	var root *Answer
	waiting, settled := 0, true
	for i := range all {
		a := &all[i]
		if a.State == Waits {
			waiting++
		} else if a.State != Ended {
			settled = false
		}
		if k := len(behind[a]); k > 0 && (root == nil || k > len(behind[root])) {
			root = a
		}
	}
	stuck = settled && waiting > 0 && quiet(all)
	switch {
	case root != nil:
		text = fmt.Sprintf("%s, which %s, %s%s", root.Label(), waitsFor(behind[root]), root.does(), root.held())
	case waiting > 0:
		for i := range all {
			if a := &all[i]; a.State == Waits {
				text = fmt.Sprintf("%s %s", a.Label(), a.does())
				break
			}
		}
		if !settled {
			for i := range all { // what the others do may be the cause
				if a := &all[i]; a.State != Waits && a.State != Ended {
					text = fmt.Sprintf("%s %s%s, while %s", a.Label(), a.does(), a.held(), text)
					break
				}
			}
		}
	}
	if stuck {
		what := fmt.Sprintf("all %d ranks wait", waiting)
		if waiting == 1 {
			what = "the rank waits"
		}
		text = fmt.Sprintf("%s, and nothing is under way: %s", what, text)
	}
	return text, stuck
}

// quiet reports whether no message and no operation is under way, and nothing else of the ranks may go on.
func quiet(all []Answer) bool {
	var sent, received uint64
	for i := range all {
		a := &all[i]
		if a.Open > 0 || a.Busy || a.Loose || a.State != Waits && a.State != Ended && a.State != Blocked {
			return false
		}
		sent, received = sent+a.Sent, received+a.Received
	}
	return sent == received
}

// does is brief as the end of a sentence that begins with the rank.
func (a *Answer) does() string {
	switch a.State {
	case Waits:
		if s := a.brief(); strings.HasPrefix(s, "until ") {
			return "waits " + s
		} else {
			return "waits for " + s
		}
	case Blocked, Inside, Goes:
		if s := a.brief(); strings.HasPrefix(s, "blocked") || strings.HasPrefix(s, "in ") {
			return "is " + s
		}
	}
	return a.brief()
}

// circle names the ranks that wait for each other, from a on.
func circle(a *Answer, next func(*Answer) *Answer) string {
	first := a
	for b := next(a); b != a; b = next(b) { // the lowest rank comes first, in each report the same
		if b.Rank < first.Rank {
			first = b
		}
	}
	var parts []string
	for b := first; ; {
		to := next(b)
		whom := to.Label()
		if to == b {
			whom = "itself"
		}
		parts = append(parts, fmt.Sprintf("%s waits for %s (%s)", b.Label(), whom, b.brief()))
		if b = to; b == first || len(parts) == 8 {
			break
		}
	}
	return "DEADLOCK: " + strings.Join(parts, "; ")
}

func waitsFor(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d waits for", ranks[0])
	}
	slices.Sort(ranks)
	return fmt.Sprintf("ranks %s wait for", Spans(ranks))
}

// Report lays answers out: a line for each rank or, if that is more than most, a line for
// all ranks whose answers differ in numbers only, with the answer of the first of them.
// Counters are there with verbose, and of each rank those of its largest peers, or of all ranks those of the largest pairs.
func Report(all []Answer, most int, verbose bool) (lines []string) {
	by := make(map[int]*Answer, len(all))
	for i := range all {
		by[all[i].Rank] = &all[i]
	}
	line := func(a *Answer) string {
		s := a.Label() + ": " + a.brief() + a.held()
		for _, r := range a.Needs {
			if b := by[r]; b != nil && b != a && b.State != Waits && len(a.Needs) <= 2 {
				s += fmt.Sprintf("; rank %d %s", r, b.does())
			}
		}
		if len(a.Others) > 0 {
			s += "; its goroutines: " + strings.Join(a.Others, "; ")
		}
		if verbose && a.Counts != "" {
			s += "; " + a.Counts
		}
		for i := range a.Peers {
			if p := &a.Peers[i]; verbose && len(all) <= most {
				s += fmt.Sprintf("; to rank %d: %v", p.Rank, p)
			}
		}
		return s
	}
	groups := Groups(all, most)
	for i, g := range groups {
		if i == FewLines && len(groups) > FewLines+1 && len(all) > most {
			rest := 0
			for _, g := range groups[i:] {
				rest += len(g)
			}
			lines = append(lines, fmt.Sprintf("and %d ranks more, in %d further places", rest, len(groups)-i))
			break
		}
		s := line(&all[g[0]])
		if len(g) > 1 {
			s = fmt.Sprintf("ranks %s (%d), as %s", g.Spans(all), len(g), s)
		}
		lines = append(lines, s)
	}
	if verbose && len(all) > most {
		for _, p := range Pairs(all, mostPeers) {
			lines = append(lines, fmt.Sprintf("largest traffic: rank %d to %d: %v", p.From, p.Rank, &p.Peer))
		}
	}
	return lines
}

// A Group is the indices of answers that are told of together: of equal ranks, in ascending order.
type Group []int

// Spans names the group's ranks.
func (g Group) Spans(all []Answer) string {
	ranks := make([]int, len(g))
	for i, k := range g {
		ranks[i] = all[k].Rank
	}
	return Spans(ranks)
}

// Groups puts answers together that differ in numbers only, if there are more than most.
func Groups(all []Answer, most int) (groups []Group) {
	at := map[string]int{}
	for i := range all {
		a := &all[i]
		kind := strconv.Itoa(i)
		if len(all) > most {
			kind = number.ReplaceAllString(a.Text, "#") + a.Line + a.Call
		}
		g, known := at[kind]
		if !known {
			g = len(groups)
			at[kind], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// Spans is an ascending list of ranks as messages have it, such as 0-2, 7, of which at most
// eight parts are named.
func Spans(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		k := i + 1
		for k < len(ranks) && ranks[k] == ranks[k-1]+1 {
			k++
		}
		if len(parts) == 8 {
			return strings.Join(parts, ", ") + ", ..."
		}
		part := strconv.Itoa(ranks[i])
		if k > i+1 {
			part += "-" + strconv.Itoa(ranks[k-1])
		}
		parts, i = append(parts, part), k
	}
	return strings.Join(parts, ", ")
}
