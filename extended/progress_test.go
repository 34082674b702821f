package extended_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

// TestProgressInOtherWaits has one rank begin an atomic and wait for what only its
// target sends when it is there, in the layer below: as in a barrier, say.
func TestProgressInOtherWaits(t *testing.T) {
	const hSeen = am.FirstClient
	for _, w := range worlds {
		for s := firehose.Adaptive; s <= firehose.AlwaysRegister; s++ {
			t.Run(fmt.Sprintf("%s/%v", w.name, s), func(t *testing.T) {
				c := tiny(2)
				c.config.Strategy = s
				var seen atomic.Bool
				c.handlers = func(n *node) []am.Entry {
					return []am.Entry{{Index: hSeen, Name: "seen", Kinds: am.Short | am.Request, Fn: func(*am.Token, []uint32, []byte) {
						seen.Store(true)
						n.end.Wake(n.end.Rank())
					}}}
				}
				at := make([]segment.NLA, 2)
				mem := make([]byte, 8)
				job(t, w.open(t, 2, 1), c, func(n *node) (err error) {
					if n.x.Rank() == 1 {
						if at[1], err = n.x.Expose(mem, segment.RightsAll, segment.AnyPeer); err != nil {
							return err
						}
					}
					if err := n.meet(); err != nil {
						return err
					}
					if n.x.Rank() == 0 {
						h, err := extended.AtomicNB[uint64](n.x, 1, at[1], nil, conduits.AtomicStore, 7, 0)
						if err == nil {
							err = n.e.Wait(nil, seen.Load)
						}
						if err != nil {
							return err
						}
						return n.x.Wait(h)
					}
					err = conduits.Wait(n.end, nil, func() bool {
						v, err := extended.Load[uint64](n.x, 1, at[1])
						return v == 7 || err != nil
					})
					if err != nil {
						return err
					}
					return n.e.RequestShort(0, hSeen)
				})
			})
		}
	}
}

// TestSleepsWithoutCredit has a rank wait for more than it has credit to ask for,
// of a rank that does not poll: it sleeps.
func TestSleepsWithoutCredit(t *testing.T) {
	for _, w := range worlds {
		if w.name == "sim" {
			continue // goroutines sleep there in virtual time alone
		}
		for _, s := range []firehose.Strategy{firehose.AlwaysPin, firehose.AlwaysRegister, firehose.AlwaysBounce} {
			t.Run(fmt.Sprintf("%s/%v", w.name, s), func(t *testing.T) {
				const n = 100
				c := setup{bucket: segment.PageSize, budget: 4 * n, local: 2 * n, segment: 2 * segment.PageSize}
				c.config.Strategy = s
				var at segment.NLA
				begun := make(chan struct{})
				ends := w.open(t, 2, 2)
				job(t, ends, c, func(k *node) (err error) {
					if k.x.Rank() == 1 {
						if at, err = k.x.Expose(make([]byte, n*segment.PageSize), segment.RightsAll, segment.AnyPeer); err != nil {
							return err
						}
					}
					if err := k.meet(); err != nil {
						return err
					}
					if k.x.Rank() == 1 {
						<-begun
						return asleep(ends[0])
					}
					hs := make([]extended.Handle, n)
					for i := range hs {
						if hs[i], err = k.x.PutNB(1, at+segment.NLA(i*segment.PageSize), []byte{1}); err != nil {
							break
						}
					}
					close(begun)
					if err != nil {
						return err
					}
					return k.x.WaitAll(hs)
				})
			})
		}
	}
}

// asleep waits until a rank has gone to sleep and stays so, without having been
// woken again and again.
func asleep(end conduits.Endpoint) error {
	var before, now conduits.Stats
	for quiet := 0; quiet < 3; quiet++ {
		end.Stats(&before)
		testmain.Spend(10 * time.Millisecond)
		if end.Stats(&now); now.Parks != before.Parks || now.Parks == 0 {
			quiet = -1
		}
		if now.Parks > 1000 {
			break
		}
	}
	if now.Parks > 1000 {
		return fmt.Errorf("the rank has gone to sleep %d times", now.Parks)
	}
	return nil
}
