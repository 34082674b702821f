package udp

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
)

// joinedHere is an endpoint of a job whose ranks have joined as processes do, but
// are in this one. The last that closes ends the rendezvous.
type joinedHere struct {
	*Endpoint
	all  []conduits.Endpoint
	left *atomic.Int32
	srv  *rendezvous.Server
}

func (e *joinedHere) Close() error {
	err := e.Endpoint.Close()
	if err == nil && e.left.Add(-1) == 0 {
		e.srv.Close()
	}
	return err
}

// Wake reaches other ranks too, since their memory is this process's.
func (e *joinedHere) Wake(rank int) { e.all[rank].(*joinedHere).notify() }

// Joined opens n ranks in this process as if each were one of its own. A variable of env is for
// one rank only if its name begins with "RANK:".
func Joined(mode seal.Mode, env map[string]string) func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		if _, err := limits(n, MaxLocal, c); err != nil {
			return nil, err // before anything is started
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		key := jobkey.New()
		srv, err := rendezvous.Serve(l, rendezvous.ServerConfig{Key: key, Size: n})
		if err != nil {
			return nil, err
		}
		all := map[string]string{"ARGON_RENDEZVOUS": srv.Addr().String(), "ARGON_RENDEZVOUS_SERVE": "0", "ARGON_JOB_KEY": key.Reveal(), EnvAuth: mode.String()}
		for k, v := range env {
			all[k] = v
		}
		eps, fails := make([]conduits.Endpoint, n), make([]error, n)
		left := new(atomic.Int32)
		left.Store(int32(n))
		marks := make([]atomic.Uint64, n)
		var wg sync.WaitGroup
		for r := range n {
			wg.Go(func() {
				e, err := Open(conduits.Job{Rank: r, Size: n, Env: func(k string) string {
					if v, ok := all[strconv.Itoa(r)+":"+k]; ok {
						return v
					}
					return all[k]
				}}, c)
				if err != nil {
					fails[r] = fmt.Errorf("rank %d: %w", r, err)
					return
				}
				switch l := e.l.(type) { // before anything is sent
				case *socket:
					l.marks = marks
				case *relay:
					l.marks = marks
				}
				eps[r] = &joinedHere{e, eps, left, srv}
			})
		}
		wg.Wait()
		for _, err := range fails {
			if err != nil {
				srv.Close()
				return nil, err
			}
		}
		return eps, nil
	}
}

// nowhere is a book of any number of ranks, as that of processes is.
type nowhere struct{ table }

func (nowhere) addr(int) netip.AddrPort { return netip.AddrPort{} }

// TestMemoryPerRank measures what a rank keeps of ranks that it has never talked
// to, beside the rendezvous' table: nothing.
func TestMemoryPerRank(t *testing.T) {
	const few, many = 2, 10_000
	made := func(n int) (bytes uint64) {
		var before, after runtime.MemStats
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		lim, err := limits(n, MaxRanks, conduits.Config{})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&before)
		l, err := newSocket(conn, 1, nowhere{}, time.Now(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		m := newMember(1, n)
		e, err := newEndpoint(m, l, lim, sealingOf(jobkey.New(), 1, n, 1, seal.Authenticated, func(int) uint64 { return 1 }), engine.Config{Rank: 1, Size: n, Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		m.ep.Store(e)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(e)
		return after.HeapAlloc - before.HeapAlloc
	}
	made(few)
	// What others in this process take or give back meanwhile differs from time to
	// time.
	var a, b uint64
	each := math.Inf(1)
	for range 5 {
		less, more := made(few), made(many)
		if d := float64(int64(more-less)) / (many - few); math.Abs(d) < math.Abs(each) {
			a, b, each = less, more, d
		}
	}
	t.Logf("an endpoint of a job of %d ranks keeps %d bytes, of %d ranks %d bytes: %.3f a rank", few, a, many, b, each)
	if each > 0.5 {
		t.Errorf("%.1f bytes for each rank that was never talked to", each)
	}
}
