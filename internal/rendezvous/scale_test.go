package rendezvous

import (
	"context"
	"errors"
	"flag"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys"
)

var scale = flag.Int("scale", 2000, "ranks of TestScale; each needs two open files")

// TestScale brings many ranks together in one process. With -v it says how long
// that takes and what it costs.
func TestScale(t *testing.T) {
	size := *scale
	if testing.Short() || conc.Race {
		size = min(size, 150)
	}
	if most := sys.FileLimit(); most < uint64(2*size+200) {
		size = (int(most) - 200) / 2
		t.Logf("%d ranks, since this process may open %d files", size, most)
	}
	if size < 2 {
		t.Skip("too few open files are allowed (ulimit -n)")
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := heap()
	j := serve(t, ServerConfig{Size: size, Patience: 10 * time.Minute})
	var mu sync.Mutex
	attached := 0
	last := make(chan struct{})
	m := make([]*Client, size)
	err := make([]error, size)
	each := func(f func(i int) error) time.Duration {
		var wg sync.WaitGroup
		start := time.Now()
		for i := range m {
			wg.Go(func() { err[i] = f(i) })
		}
		wg.Wait()
		if err := errors.Join(err...); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*limit)
	defer cancel()
	join := each(func(i int) (err error) {
		m[i], err = Setup{Server: j.addr, Key: j.key}.Join(ctx, j.hello(i), Events{
			Attached: func() {
				mu.Lock()
				defer mu.Unlock()
				if attached++; attached == size {
					close(last)
				}
			},
		})
		return err
	})
	used := heap() - before
	start := time.Now()
	each(func(i int) error { return m[i].Attach(1<<30, 3) })
	select {
	case <-last:
	case <-time.After(10 * limit):
		t.Fatal("not attached")
	}
	attach := time.Since(start)
	for _, r := range []int{0, size / 2, size - 1} {
		for _, c := range []*Client{m[0], m[size-1]} {
			h := j.hello(r)
			if c.Addr(r) != netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), h.Port) || c.Incarnation(r) != h.Incarnation {
				t.Errorf("rank %d is at %v", r, c.Addr(r))
			}
			if s, rights := c.Segment(r); s != 1<<30 || rights != 3 {
				t.Errorf("rank %d has attached %d, %d", r, s, rights)
			}
		}
	}
	tab := m[0].table
	entry := len(tab.addr.data) + len(tab.port.data) + len(tab.incarnation.data) + len(tab.host.data) + len(tab.public)
	seg := m[0].seg.Load()
	entry += len(seg.size.data) + len(seg.rights.data)
	leave := each(func(i int) error { return m[i].Leave() })
	each(func(i int) error { return m[i].Close() })
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d ranks: join %v, attach %v, leave %v; %d bytes of memory per rank for both sides, table %.1f bytes per rank",
		size, join.Round(time.Millisecond), attach.Round(time.Millisecond), leave.Round(time.Millisecond), used/uint64(size), float64(entry)/float64(size))
	if entry > 48*size {
		t.Errorf("the table has %d bytes for %d ranks", entry, size)
	}
}
