package extended_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// BenchmarkExposed measures what an access to exposed memory of another rank
// costs, by the way it takes. Both ranks are goroutines of this process; the
// target does nothing but poll.
//
//	hit       a firehose is attached
//	miss      none is, and another has to move: AlwaysPin, with as many buckets
//	          as are accessed in turn not at hand
//	bounce    AlwaysBounce
//	register  AlwaysRegister
//	attach    the segment instead, by load and store or by the conduit
//	conduit   the same by the conduit's own Put
//	known     the conduit's own Put to registered memory
func BenchmarkExposed(b *testing.B) {
	for _, w := range []world{
		{name: "shm", open: func(t testing.TB, size int, _ uint64) []conduits.Endpoint {
			ends, err := shm.Local(size, conduits.Config{MaxSegment: 8 << 20})
			return must(t, ends, err)
		}},
		{name: "udp", open: func(t testing.TB, size int, _ uint64) []conduits.Endpoint {
			ends, err := udp.Local(size, conduits.Config{MaxSegment: 8 << 20})
			return must(t, ends, err)
		}},
	} {
		for _, way := range []string{"attach", "conduit", "known", "hit", "miss", "bounce", "register"} {
			for _, n := range []int{8, 256, 1024, 2048, 4096, 8192, 16384, 65536, 256 << 10, 1 << 20, 4 << 20} {
				b.Run(fmt.Sprintf("%s/%s/%d", w.name, way, n), func(b *testing.B) {
					benchExposed(b, w, way, n)
				})
			}
		}
	}
}

// cpu is the time that this process has had a processor: what others do beside it
// does not count. With one processor (-cpu 1) it is that of both ranks.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchExposed(b *testing.B, w world, way string, n int) {
	const bucket = 64 << 10
	s := setup{bucket: bucket, budget: 128, local: 64, segment: 8 << 20}
	s.config.Strategy = firehose.AlwaysPin
	switch way {
	case "bounce":
		s.config.Strategy = firehose.AlwaysBounce
	case "register":
		s.config.Strategy = firehose.AlwaysRegister
	}
	var at, reg segment.NLA
	const room = 16 << 20 // four times what firehoses reach
	job(b, w.open(b, 2, 1), s, func(node *node) error {
		if node.x.Rank() == 1 {
			a, err := node.x.Expose(make([]byte, room), segment.RightsAll, segment.AnyPeer)
			if err != nil {
				return err
			}
			at = a
			atu, err := node.end.ATU()
			if err != nil {
				return err
			}
			r, err := atu.Register(make([]byte, 1<<20), segment.RightsAll, segment.AnyPeer)
			if err != nil {
				return err
			}
			reg, _ = r.At(0)
			if err := node.meet(); err != nil {
				return err
			}
			return node.meet()
		}
		if err := node.meet(); err != nil {
			return err
		}
		src := make([]byte, n)
		step, to := max(n, bucket), at
		switch way {
		case "attach", "conduit":
			to = segment.AttachBase + segment.PageSize
		case "known":
			to = reg
		}
		off := 0
		put := func() error {
			a := to + segment.NLA(off)
			if way == "miss" {
				if off += step; off+n > room {
					off = 0
				}
			}
			if way == "conduit" || way == "known" {
				ev, err := post.Put(node.end, 1, a, src, conduits.RemoteDone, 0)
				if err == nil && ev == 0 {
					return errors.New("not complete at once")
				}
				return err
			}
			return node.x.Put(1, a, src)
		}
		if err := put(); err != nil { // the first miss, and what is made once
			return err
		}
		b.SetBytes(int64(n))
		before := cpu()
		for b.Loop() {
			if err := put(); err != nil {
				return err
			}
		}
		b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
		return node.meet()
	})
}
