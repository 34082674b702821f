package hybrid_test

import (
	"flag"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/hybrid/shmudp"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// layouts are those that the suite runs on, by the host of each of n ranks: the first two
// only, unless -hybrid.layouts asks for all, and the first with -short.
var (
	all     = flag.Bool("hybrid.layouts", false, "run the suite on all layouts of hosts")
	layouts = []struct {
		name string
		host func(rank, n int) int
	}{
		{"two", func(r, n int) int { return 2 * r / (n + n%2) }},
		{"dealt", func(r, n int) int { return r % 2 }},
		{"one", func(r, n int) int { return 0 }},
		{"alone", func(r, n int) int { return r }},
		{"uneven", func(r, n int) int { return r / 3 }},
		{"late", func(r, n int) int { return (r + 2) / 3 }},
		{"dealtUneven", func(r, n int) int { return []int{1, 0, 2, 0, 0, 1}[r%6] }},
		{"middle", func(r, n int) int { // the host of the first rank and the last has another between
			if r < (n+2)/3 || r >= n-n/3 {
				return 0
			}
			return 1
		}},
	}
)

func open(host func(rank, n int) int) conformance.Open {
	return func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		l := make([]int, n)
		for r := range l {
			l[r] = host(r, n)
		}
		return shmudp.Pair.LocalOn(l, c)
	}
}

// TestConformance runs the suite.
func TestConformance(t *testing.T) {
	for i, l := range layouts {
		switch {
		case i == 1 && testmain.Quick():
		case i == 1 && !*all: // what the layers do is seen on the first
			t.Run(l.name, func(t *testing.T) { conformance.RunGroups(t, open(l.host), "contract") })
		case i < 2 || *all:
			t.Run(l.name, func(t *testing.T) {
				if testmain.Quick() {
					conformance.RunGroups(t, open(l.host), "contract")
					return
				}
				conformance.Run(t, open(l.host))
			})
		}
	}
}

// TestConformanceChaos runs it with an endpoint in between that is unlucky.
func TestConformanceChaos(t *testing.T) {
	if !*all {
		t.Skip("with -hybrid.layouts only")
	}
	conformance.Run(t, chaos.Local(open(layouts[0].host), chaos.Config{}))
}
