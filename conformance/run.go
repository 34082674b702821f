package conformance

import (
	"slices"
	"testing"

	"github.com/argon-go/argon/conformance/contract"
)

// Open opens all ranks of a new job in this process; it is the Local of a
// conduits.Conduit. Config.Seed is to be used by a conduit that decides
// anything by chance.
type Open = contract.Open

// Run checks the conduit that open opens.
func Run(t *testing.T, open Open) { RunGroups(t, open) }

// RunGroups is Run for some of the groups of checks, by their names; without names
// it is Run.
func RunGroups(t *testing.T, open Open, names ...string) {
	s := contract.New(t, open)
	for _, g := range []struct {
		name   string
		checks []contract.Check
	}{
		{"contract", contract.Checks},
		{"card", contract.CardChecks},
		{"layers", checks(layerChecks)},
		{"machine", checks(machineChecks)},
	} {
		if len(names) == 0 || slices.Contains(names, g.name) {
			s.Run(t, g.name, g.checks)
		}
	}
	s.Report(t)
}

// check is one property of the layers, as contract.Check is of the contract.
type check struct {
	name   string
	seeded bool
	run    func(c *ctx)
}

// ctx is one execution of a check, with the layers at hand.
type ctx struct{ *contract.Case }

// checks makes l ready for the suite.
func checks(l []check) []contract.Check {
	all := make([]contract.Check, len(l))
	for i, k := range l {
		all[i] = contract.Check{Name: k.name, Seeded: k.seeded, Run: func(c *contract.Case) { k.run(&ctx{c}) }}
	}
	return all
}
