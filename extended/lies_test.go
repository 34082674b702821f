package extended_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// TestBounceLies has a rank send requests of no sense to the handlers by which an
// owner serves exposed memory: nothing but what it may write changes, and the
// owner goes on.
func TestBounceLies(t *testing.T) {
	const size = 3 * segment.PageSize
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			var at [2]segment.NLA
			mem, closed := make([]byte, size), make([]byte, size)
			c := tiny(2)
			c.config.Strategy = firehose.AlwaysBounce
			job(t, w.open(t, 2, 2), c, func(n *node) (err error) {
				if n.x.Rank() == 1 {
					if at[0], err = n.x.Expose(mem, segment.RightsAll, segment.AnyPeer); err != nil {
						return err
					}
					if at[1], err = n.x.Expose(closed, segment.RightRead, segment.AnyPeer); err != nil {
						return err
					}
				}
				if err := n.meet(); err != nil {
					return err
				}
				if n.x.Rank() == 0 {
					rnd := rand.New(rand.NewPCG(1, 2))
					word := func() uint32 {
						return [...]uint32{0, 1, 7, 1 << 31, ^uint32(0), rnd.Uint32(), uint32(rnd.IntN(64)), uint32(rnd.IntN(1 << 14))}[rnd.IntN(8)]
					}
					for range 3000 {
						args := make([]uint32, 9)
						for i := range args {
							args[i] = word()
						}
						args[0] |= 1 << 20 // the answer, which may come late, is to nothing that is asked below
						a := uint64(at[rnd.IntN(2)]-segment.ExposedBase) + uint64(rnd.IntN(2*size)-size/2)
						if rnd.IntN(4) > 0 {
							args[2], args[3] = am.Pack64(a)
						}
						switch rnd.IntN(3) {
						case 0:
							err = n.e.RequestMedium(1, 32, make([]byte, rnd.IntN(n.e.MaxMedium()+1)), args[:4]...)
						case 1:
							err = n.e.RequestShort(1, 33, args[:6]...)
						case 2:
							if rnd.IntN(2) > 0 {
								args[4] = uint32(rnd.IntN(int(conduits.NumAtomicOps)+1)) | uint32(rnd.IntN(int(conduits.NumAtomicTypes)+1))<<8
							}
							err = n.e.RequestShort(1, 34, args...)
						}
						if err != nil {
							return err
						}
					}
					// What is right is served as before.
					src, dst := []byte("as before"), make([]byte, 9)
					if err := n.x.Put(1, at[0]+1, src); err != nil {
						return err
					}
					if err := n.x.Get(1, at[0]+1, dst); err != nil || !bytes.Equal(src, dst) {
						return fmt.Errorf("%q, %v", dst, err)
					}
				}
				if err := n.meet(); err != nil {
					return err
				}
				if !bytes.Equal(closed, make([]byte, size)) {
					return fmt.Errorf("memory that may only be read was written to")
				}
				return nil
			})
		})
	}
}

// TestAnswersLie has an owner answer requests to copy with answers to others, some
// of which have ended or are still to be sent: the initiator may get an error
// or none, but goes on.
func TestAnswersLie(t *testing.T) {
	for _, w := range worlds {
		if w.name == "sim" {
			continue // where no goroutine may run beside the conduit
		}
		t.Run(w.name, func(t *testing.T) {
			c := tiny(2)
			c.config.Strategy = firehose.AlwaysBounce
			rnd := rand.New(rand.NewPCG(3, 4))
			var known [][2]uint32
			c.runtime = func(n *node, own []am.Entry) {
				if n.end.Rank() == 0 {
					return
				}
				for i := range own {
					if own[i].Index < 32 || own[i].Index > 34 {
						continue
					}
					honest := own[i].Fn
					own[i].Fn = func(t *am.Token, args []uint32, payload []byte) {
						if rnd.IntN(8) == 0 {
							honest(t, args, payload)
							return
						}
						known = append(known, [2]uint32{args[0], args[1]})
						k := known[max(0, len(known)-1-rnd.IntN(8)):][0]
						k[1] += uint32(rnd.IntN(3)) // what will come is easily guessed
						word := func() uint32 { return [...]uint32{0, 0, 0, 5, 300, ^uint32(0)}[rnd.IntN(6)] }
						if rnd.IntN(2) == 0 {
							_ = t.ReplyMedium(35, make([]byte, rnd.IntN(500)), k[0], k[1], uint32(rnd.IntN(2)*rnd.IntN(6)), word(), word())
						} else {
							_ = t.ReplyShort(35, k[0], k[1], uint32(rnd.IntN(2)*rnd.IntN(6)), word(), word())
						}
					}
				}
			}
			var at segment.NLA
			job(t, w.open(t, 2, 2), c, func(n *node) (err error) {
				if n.x.Rank() == 1 {
					if at, err = n.x.Expose(make([]byte, 100_000), segment.RightsAll, segment.AnyPeer); err != nil {
						return err
					}
				}
				if err := n.meet(); err != nil || n.x.Rank() == 1 {
					return err
				}
				var hs []extended.Handle
				for i := range 1000 {
					var h extended.Handle
					b := make([]byte, 1+i*37%30_000)
					switch i % 3 {
					case 0:
						h, err = n.x.PutBulkNB(1, at, b)
					case 1:
						h, err = n.x.GetNB(1, at, b)
					case 2:
						var v uint64
						h, err = extended.AtomicNB[uint64](n.x, 1, at, &v, conduits.AtomicAdd, 1, 0)
					}
					if err != nil {
						return err
					}
					hs = append(hs, h)
					for k := range hs {
						if done, _ := n.x.Try(hs[k]); done {
							hs[k] = 0
						}
					}
					hs = slices.DeleteFunc(hs, func(h extended.Handle) bool { return h == 0 })
				}
				return nil
			})
		})
	}
}
