package extended_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// TestMissesAtOnce has goroutines of all ranks miss the same few buckets by blocking
// operations, with far fewer firehoses than are wanted at once: whether they take the
// short way or the general one, nothing is lost and nothing is done twice.
func TestMissesAtOnce(t *testing.T) {
	const ranks, threads, buckets, each = 3, 3, 6, 200
	const bucket = segment.PageSize
	for _, s := range []firehose.Strategy{firehose.Adaptive, firehose.AlwaysPin} {
		for _, share := range []uint64{1, 2} {
			t.Run(fmt.Sprintf("%v/%d", s, share), func(t *testing.T) {
				ends, err := shm.Local(ranks, conduits.Config{})
				ends = must(t, ends, err)
				var at [ranks]segment.NLA
				var total [ranks]atomic.Uint64
				var missed atomic.Uint64
				c := setup{bucket: bucket, budget: share*(ranks-1) + 1, local: 1, segment: segment.PageSize, config: extended.Config{Strategy: s}}
				job(t, ends, c, func(n *node) error {
					x, me := n.x, n.x.Rank()
					a, err := x.Expose(make([]byte, buckets*bucket), segment.RightsAll, segment.AnyPeer)
					if err != nil {
						return err
					}
					at[me] = a
					if err := n.meet(); err != nil {
						return err
					}
					errs := make(chan error, threads)
					for th := range threads {
						go func() {
							errs <- func() error {
								rng := rand.New(rand.NewPCG(uint64(me), uint64(th)))
								// A word of each bucket is shared, another this goroutine's.
								own := segment.NLA(64 + 8*(me*threads+th))
								var was [ranks][buckets]uint64
								for i := range uint64(each) {
									dst := (me + 1 + rng.IntN(ranks-1)) % ranks
									b := rng.IntN(buckets)
									to := at[dst] + segment.NLA(b*bucket)
									if _, err := extended.FetchAdd[uint64](x, dst, to, 1); err != nil {
										return err
									}
									total[dst].Add(1)
									var got [8]byte
									v, err := x.GetValue(dst, to+own, 8)
									if err = errors.Join(err, x.Get(dst, to+own, got[:])); err != nil {
										return err
									}
									if want := was[dst][b]; v != want || got[0] != byte(want) {
										return fmt.Errorf("rank %d, bucket %d: %d and %v, want %d", dst, b, v, got, want)
									}
									was[dst][b] = i
									if i%2 == 0 {
										err = x.PutValue(dst, to+own, i, 8)
									} else {
										err = x.Put(dst, to+own, []byte{byte(i), 0, 0, 0, 0, 0, 0, 0})
									}
									if err != nil {
										return err
									}
								}
								return nil
							}()
						}()
					}
					for range threads {
						err = errors.Join(err, <-errs)
					}
					if err == nil {
						err = n.meet()
					}
					if err != nil {
						return err
					}
					sum := uint64(0)
					for b := range buckets {
						v, err := x.GetValue(me, a+segment.NLA(b*bucket), 8)
						if err != nil {
							return err
						}
						sum += v
					}
					var st firehose.Stats
					n.cache.Stats(&st)
					missed.Add(st.RemoteMisses)
					if sum != total[me].Load() || st.Violations != 0 || st.PeakPinned > c.budget*bucket {
						return fmt.Errorf("rank %d: %d were added, want %d; %+v", me, sum, total[me].Load(), st)
					}
					return n.meet()
				})
				if missed.Load() == 0 {
					t.Error("nothing missed")
				}
			})
		}
	}
}

// TestMissWithoutSlot: while all slots are in use a blocking operation on exposed memory is made
// without one, or waits for one if it takes several accesses.
func TestMissWithoutSlot(t *testing.T) {
	const bucket, size = segment.PageSize, 64 * segment.PageSize
	ends, err := shm.Local(2, conduits.Config{})
	c := setup{bucket: bucket, budget: 4, local: 1, segment: segment.PageSize, config: extended.Config{Strategy: firehose.AlwaysPin}}
	var to segment.NLA
	job(t, must(t, ends, err), c, func(n *node) (err error) {
		x := n.x
		if x.Rank() == 1 {
			to, err = x.Expose(make([]byte, size), segment.RightsAll, segment.AnyPeer)
			return errors.Join(err, n.meet(), n.meet())
		}
		if err := n.meet(); err != nil {
			return err
		}
		giveBack := x.TakeSlots()
		if _, err := x.PutNB(1, to, make([]byte, 8)); !errors.Is(err, extended.ErrResource) {
			return fmt.Errorf("a put that is not waited for: %v", err)
		}
		at := func(bucketNo int) segment.NLA { return to + segment.NLA(bucketNo*bucket) }
		err = errors.Join(x.Put(1, at(0), []byte("exposed!")), x.PutValue(1, at(8), 42, 2), extended.Store[uint64](x, 1, at(16), 7))
		v, err2 := x.GetValue(1, at(24), 4)
		got := make([]byte, 8)
		if err := errors.Join(err, err2, x.Get(1, at(0), got)); err != nil || string(got) != "exposed!" || v != 0 {
			return fmt.Errorf("%q, %d: %v", got, v, err)
		}
		for _, m := range []struct {
			a    segment.NLA
			want uint64
		}{{at(8), 42}, {at(16), 7}} {
			if v, err := x.GetValue(1, m.a, 8); err != nil || v != m.want {
				return fmt.Errorf("%v: %d, want %d: %v", m.a, v, m.want, err)
			}
		}
		done := make(chan error)
		go func() { done <- x.Put(1, to, make([]byte, size)) }()
		for len(n.end.Waiting()) == 0 {
			select {
			case err := <-done:
				return fmt.Errorf("a put of several accesses did not wait for a slot: %v", err)
			default:
				runtime.Gosched()
			}
		}
		giveBack()
		return errors.Join(<-done, n.meet())
	})
}
