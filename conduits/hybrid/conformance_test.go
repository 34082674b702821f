package hybrid_test

import (
	"flag"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/chaos"
	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/hybrid"
)

// layouts are what the suite runs on: one only, unless -hybrid.layouts asks for
// all.
var (
	all     = flag.Bool("hybrid.layouts", false, "run the suite on all layouts of hosts")
	layouts = []struct {
		name  string
		hosts func(n int) []int
	}{
		{"two", func(n int) []int { return hybrid.Even(n, (n+1)/2) }},
		{"one", func(n int) []int { return []int{n} }},
		{"alone", func(n int) []int { return hybrid.Even(n, 1) }},
		{"uneven", func(n int) []int { return hybrid.Even(n, 3) }},
		{"late", func(n int) []int {
			if n == 1 {
				return []int{1}
			}
			return append([]int{1}, hybrid.Even(n-1, 3)...)
		}},
	}
)

func open(hosts func(n int) []int) conduittest.Open {
	return func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		return hybrid.LocalHosts(n, c, hosts(n))
	}
}

// TestConformance runs the suite.
func TestConformance(t *testing.T) {
	for i, l := range layouts {
		if i == 0 || *all {
			t.Run(l.name, func(t *testing.T) { conduittest.Run(t, open(l.hosts)) })
		}
	}
}

// TestConformanceChaos runs it with an endpoint in between that is unlucky.
func TestConformanceChaos(t *testing.T) {
	if !*all {
		t.Skip("with -hybrid.layouts only")
	}
	conduittest.Run(t, chaos.Local(open(layouts[0].hosts), chaos.Config{}))
}
