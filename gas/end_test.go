package gas

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/conc"
)

// virtual is how much of this process's address space is mapped, MiB.
func virtual(t *testing.T) int {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var kb int
		if rest, ok := strings.CutPrefix(in.Text(), "VmSize:"); ok {
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				t.Fatal(err)
			}
			return kb >> 10
		}
	}
	t.Skip("/proc/self/status has no VmSize")
	return 0
}

// TestMemoryGivenBack: when a job has ended its segments are unmapped, without the
// collector, and accesses by a Node that was kept are errors.
func TestMemoryGivenBack(t *testing.T) {
	const ranks, jobs, size = 2, 12, 256 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, c := range []struct {
		conduit string
		ranks   int
		large   bool
	}{{"sim", ranks, false}, {"sim", ranks, true}, {"udp", ranks, false}, {"hybrid", 2 * ranks, false}, {"hybrid", ranks, true}} {
		t.Run(fmt.Sprintf("%s/large=%v", c.conduit, c.large), func(t *testing.T) {
			nodes := make([]*Node, c.ranks)
			ptrs := make([]Ptr[uint64], c.ranks)
			run := func() {
				t.Helper()
				cfg := Config{Ranks: c.ranks, Conduit: c.conduit, SegmentSize: size / uint64(c.ranks), Large: c.large}
				if err := Run(cfg, func(n *Node) error {
					p := Must(New[uint64](n))
					nodes[n.Rank()], ptrs[n.Rank()] = n, p
					return p.On((n.Rank()+1)%n.Size()).Put(n, 1)
				}); err != nil {
					t.Fatal(err)
				}
			}
			run() // what the process maps once
			before := virtual(t)
			for range jobs {
				run()
			}
			// Over udp links linger a moment.
			const most = 3 * size >> 20
			for i := 0; virtual(t)-before > most; i++ {
				if i == 6000 {
					t.Fatalf("%d jobs with %d MiB each have left %d MiB mapped", jobs, size>>20, virtual(t)-before)
				}
				time.Sleep(10 * time.Millisecond)
			}
			closed := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, ErrClosed) && !(c.large && errors.Is(err, ErrFault)) {
					t.Errorf("%s after the end: %v", what, err)
				}
			}
			if conc.Race && c.conduit != "sim" {
				return // a Node that is kept is not ordered with what its links leave
			}
			for r, n := range nodes {
				for i := 0; n.Neighbour(r); i++ { // until the links of the last job are gone, too
					if i == 6000 {
						t.Fatalf("rank %d still has its segment", r)
					}
					time.Sleep(10 * time.Millisecond)
				}
				for _, p := range ptrs {
					closed("Put", p.Put(n, 1))
					_, err := p.Get(n)
					closed("Get", err)
					_, err = FetchAdd(n, p, 1)
					closed("FetchAdd", err)
					closed("PutSlice", p.PutSlice(n, make([]uint64, 1)))
					_, err = p.PutNB(n, 1)
					closed("PutNB", err)
					if _, ok := p.Local(n); ok && !c.large {
						t.Error("Local after the end")
					}
				}
				_, err := Alloc[byte](n, 1<<20)
				closed("Alloc", err)
				_, err = New[byte](n)
				closed("New", err)
			}
		})
	}
}
