// Package env is the list of argon's environment variables: what each of them
// does, which values it can have, which code reads it, which conduits use it and what
// it is for. Nothing else says so: docs/knobs.md and the table of package gas's
// documentation are made from it, by
//
//	go test ./internal/job/env -run TestKnobsPage -write
//
// and what ARGON_VERBOSEENV prints is taken from it. The code that reads a variable
// has a constant for its name; a test compares the list with all names in the tree.
package env

import (
	"errors"
	"slices"
	"strings"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// Prefix begins the names of argon's variables. Those of its tests begin with
// ARGONTEST_, which Check does not look at.
const Prefix = "ARGON_"

// Meaning describes the variable of that name, in short; "" if there is none.
func Meaning(name string) string {
	if v := find(name); v != nil {
		return v.Meaning
	}
	return ""
}

// Known reports whether there is a variable of that name.
func Known(name string) bool { return find(name) != nil }

// find returns the variable of that name, or nil.
func find(name string) *Var {
	for i := range Vars {
		if Vars[i].Name == name {
			return &Vars[i]
		}
	}
	return nil
}

// Check reports what of environ, a list of NAME=VALUE, cannot be meant in a job on
// conduit: names that are nearly those of a variable, values that are none of its
// Values, and Strict variables that the conduit does not use; with given, which is for
// settings of a command line, all names with argon's prefix that no variable has, and all
// variables that the conduit does not use. Other names are not argon's: Foreign lists
// them. An empty value counts as not set, but its name must not be nearly known. Each
// problem is an error of one line that begins with prefix and ends with knob, if that is
// not empty; all are joined. conduit "" means that it is not known yet, so that no
// variable counts as unused; nor does one on a conduit that is not argon's own, which may
// be made of these.
func Check(environ []string, conduit string, given bool, prefix, knob string) error {
	if !slices.Contains(ours, conduit) {
		conduit = ""
	}
	if knob != "" {
		knob = " (" + knob + ")"
	}
	var all []error
	bad := func(format string, args ...any) {
		all = append(all, errs.BadArg(prefix+": "+format+"%s", append(args, knob)...))
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, Prefix) {
			if v := find(strings.ToUpper(name)); v != nil && v.For == Users {
				bad("%s is no variable of argon; did you mean %s?", printable(name), v.Name)
			}
			continue
		}
		v := find(name)
		switch {
		case v == nil && serviceLink(name, value):
		case v == nil:
			if near := nearest(name); near != "" {
				bad("%s is no variable of argon; did you mean %s?", printable(name), near)
			} else if given {
				bad("%s is no variable of argon; docs/knobs.md lists them", printable(name))
			}
		case value == "":
		case v.Values != nil && !slices.Contains(v.Values, value):
			bad("%s=%q is not %s", name, clip(value), strings.Join(v.Values, " or "))
		case conduit != "" && v.Uses != nil && !slices.Contains(v.Uses, conduit) && (v.Strict || given):
			bad("%s=%q is not used by conduit %s, but by %s (-conduit, ARGON_CONDUIT)", name, clip(shown(v, value)), conduit, strings.Join(v.Uses, " and "))
		}
	}
	return errors.Join(all...)
}

// maxShown is how much of a name or a value is printed, bytes.
const maxShown = 200

func clip(s string) string {
	if len(s) > maxShown {
		return s[:maxShown] + "..."
	}
	return s
}

// shown is value as it may be printed: a key may not.
func shown(v *Var, value string) string {
	if v.Name == jobenv.JobKey || v.Name == jobenv.JobSocket {
		return "(secret)"
	}
	return value
}

// printable is a name as it may be written to a terminal, on one line.
func printable(name string) string {
	return strings.ReplaceAll(errs.Printable(name, maxShown), "\n", `\n`)
}

// nearest is the variable for users whose name takes the fewest changes of single
// characters to get from name, "" if that is more than a third of what follows the
// prefix and name does not go on after a variable's name, such as that of the segment with _OF_A_RANK. Of
// several the first counts.
func nearest(name string) string {
	rest := strings.ToUpper(name[len(Prefix):])
	if len(rest) > 64 {
		return ""
	}
	best, least := "", max(1, len(rest)/3)+1
	for i := range Vars {
		if Vars[i].For != Users {
			continue
		}
		if d := distance(rest, Vars[i].Name[len(Prefix):]); d < least {
			best, least = Vars[i].Name, d
		}
	}
	for i := range Vars {
		if v := &Vars[i]; best == "" && v.For == Users && strings.HasPrefix(rest, v.Name[len(Prefix):]+"_") {
			best = v.Name
		}
	}
	return best
}

// distance is how many characters have to be put in, left out, replaced or swapped
// with the next one to make b of a (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
