package extended_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// node is a rank with everything that exposed memory needs.
type node struct {
	end   conduits.Endpoint
	e     *am.Messenger
	x     *extended.Initiator
	cache *firehose.Cache
	space *firehose.Space
	round uint64               // of meet
	got   [gangs]atomic.Uint32 // what replies have said, by goroutine
}

// setup has the options of a job of nodes.
type setup struct {
	bucket   uint64
	budget   uint64 // in buckets
	local    uint64 // of these
	config   extended.Config
	segment  uint64
	handlers func(n *node) []am.Entry
	runtime  func(n *node, own []am.Entry) // changes those of package extended
}

func open(end conduits.Endpoint, s setup) (*node, error) {
	n := &node{end: end}
	var err error
	if n.space, err = firehose.NewSpace(end.ATU, s.bucket); err != nil {
		return nil, err
	}
	n.cache, err = firehose.NewCache(firehose.Config{
		Rank: end.Rank(), Size: end.Size(), Budget: s.budget * s.bucket, Local: s.local * s.bucket, Bucket: s.bucket,
		Payload: end.Limits().MaxMedium, Memory: n.space,
	})
	if err != nil {
		return nil, err
	}
	s.config.Firehose, s.config.Space = n.cache, n.space
	n.x = extended.New(s.config)
	var own []am.Entry
	if s.handlers != nil {
		own = s.handlers(n)
	}
	runtime := n.x.Handlers()
	if s.runtime != nil {
		s.runtime(n, runtime)
	}
	n.e, err = am.Attach(end, am.Config{
		Handlers: own, Runtime: runtime, Completer: n.x, Exposer: n.x, SegmentSize: s.segment,
	})
	if err != nil {
		return nil, err
	}
	n.x.Bind(n.e)
	if err := n.meet(); err != nil {
		return nil, err
	}
	return n, n.cache.Bind(n.e)
}

// meet is a barrier; the first page of the segment is for it.
func (n *node) meet() error {
	n.round++
	return meet(n.x, n.round)
}

func (n *node) close() error {
	if err := n.meet(); err != nil {
		return err
	}
	n.cache.Close()
	return n.end.Close()
}

// job runs ranks of a conduit in this process.
func job(t testing.TB, ends []conduits.Endpoint, s setup, rank func(n *node) error) {
	t.Helper()
	errs := make([]error, len(ends))
	conduits.Run(ends, func(i int) {
		n, err := open(ends[i], s)
		if err == nil {
			err = rank(n)
		}
		if err == nil {
			err = n.close()
		}
		if errs[i] = err; err != nil {
			ends[i].Fail(err)
		}
	})
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if t.Failed() {
		for _, end := range ends {
			_ = end.Close()
		}
	}
}

// world is a conduit that the tests run on.
type world struct {
	name string
	open func(t testing.TB, size int, seed uint64) []conduits.Endpoint
}

func must(t testing.TB, ends []conduits.Endpoint, err error) []conduits.Endpoint {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

var worlds = slices.DeleteFunc([]world{
	{"shm", func(t testing.TB, size int, _ uint64) []conduits.Endpoint {
		ends, err := shm.Local(size, conduits.Config{})
		return must(t, ends, err)
	}},
	{"sim", func(t testing.TB, size int, seed uint64) []conduits.Endpoint {
		c := sim.Config{Seed: seed, Credits: 4, MaxMedium: 512}
		c.Faults.Jitter = 3000
		j, err := sim.New(size, c)
		if err != nil {
			t.Fatal(err)
		}
		return j.Endpoints()
	}},
	{"chaos", func(t testing.TB, size int, seed uint64) []conduits.Endpoint {
		ends, err := chaos.Local(shm.Local, chaos.Config{Seed: seed + 1})(size, conduits.Config{Credits: 4, MaxMedium: 512})
		return must(t, ends, err)
	}},
	{"udp", func(t testing.TB, size int, seed uint64) []conduits.Endpoint {
		open := udp.Local
		if seed%2 == 1 { // what arrives is late and in another order
			open = chaos.Local(udp.Local, chaos.Config{Seed: seed})
		}
		ends, err := open(size, conduits.Config{Credits: 8})
		return must(t, ends, err)
	}},
}, func(w world) bool { return len(testjob.Concurrent(w.name)) == 0 })

// tiny is so little that firehoses move all the time.
func tiny(size int) setup {
	return setup{bucket: segment.PageSize, budget: uint64(2*(size-1) + 3), local: 3, segment: 2 * segment.PageSize}
}

// TestExposedSmoke puts and gets of every size by every strategy.
func TestExposedSmoke(t *testing.T) {
	for _, w := range worlds {
		for s := firehose.Adaptive; s <= firehose.AlwaysRegister; s++ {
			t.Run(fmt.Sprintf("%s/%v", w.name, s), func(t *testing.T) {
				c := tiny(2)
				c.config.Strategy = s
				var at [2]segment.NLA
				var mem [2][]byte
				job(t, w.open(t, 2, 1), c, func(n *node) error {
					me := n.x.Rank()
					mem[me] = make([]byte, 100_000)
					var err error
					if at[me], err = n.x.Expose(mem[me], segment.RightsAll, segment.AnyPeer); err != nil {
						return err
					}
					if err := n.meet(); err != nil {
						return err
					}
					for _, to := range []int{1 - me, me} {
						off := me * 50_000
						for _, size := range []int{1, 3, 8, 64, 600, 4096, 5000, 40_000} {
							src, dst := make([]byte, size), make([]byte, size)
							for i := range src {
								src[i] = byte(i + size + me)
							}
							a := at[to] + segment.NLA(off+8)
							if err := n.x.Put(to, a, src); err != nil {
								return err
							}
							if err := n.x.Get(to, a, dst); err != nil {
								return err
							}
							if !bytes.Equal(src, dst) {
								return fmt.Errorf("%d bytes at %v of rank %d: got other ones than put", size, a, to)
							}
						}
						a := at[to] + segment.NLA(off)
						if err := n.x.PutValue(to, a, 41, 8); err != nil {
							return err
						}
						if v, err := extended.FetchAdd[uint64](n.x, to, a, 1); err != nil || v != 41 {
							return fmt.Errorf("fetch and add: %d, %w", v, err)
						}
						if v, err := n.x.GetValue(to, a, 8); err != nil || v != 42 {
							return fmt.Errorf("get value: %d, %w", v, err)
						}
						if _, err := n.x.GetValue(to, at[to]+1<<30, 8); !errors.Is(err, firehose.ErrNotExposed) {
							return fmt.Errorf("nothing is exposed, and get value says %v", err)
						}
					}
					return n.meet()
				})
			})
		}
	}
}
