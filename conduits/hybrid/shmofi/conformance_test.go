//go:build ofi && cgo

package shmofi_test

import (
	"flag"
	"os"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/hybrid/shmofi"
	"github.com/argon-go/argon/internal/testjob"
)

func TestMain(m *testing.M) {
	// The suite sleeps and wakes less often than it does by itself: a network takes its time.
	if err := flag.Set("conduittest.rounds", "100"); err != nil {
		panic(err)
	}
	if os.Getenv("FI_OFI_RXM_BUFFER_SIZE") == "" {
		os.Setenv("FI_OFI_RXM_BUFFER_SIZE", "1024") // 69 MB a rank otherwise
	}
	testjob.Main(m, nil)
}

// TestConformance runs the suite on two hosts, whose ranks have consecutive numbers, and on
// two to which ranks are dealt.
func TestConformance(t *testing.T) {
	for name, host := range map[string]func(rank, n int) int{
		"two":   func(r, n int) int { return 2 * r / (n + n%2) },
		"dealt": func(r, _ int) int { return r % 2 },
	} {
		t.Run(name, func(t *testing.T) {
			conduittest.Run(t, func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
				l := make([]int, n)
				for r := range l {
					l[r] = host(r, n)
				}
				return shmofi.Pair.LocalOn(l, c)
			})
		})
	}
}
