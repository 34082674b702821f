package extended_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// TestPrepared: what was prepared once moves what is there each time that it is started, to and from the segment and
// exposed memory, whether that stays pinned or there is no room for it; and what stays pinned is found
// without a miss, though other accesses move firehoses meanwhile.
func TestPrepared(t *testing.T) {
	roomy := tiny(2)
	roomy.config.Strategy = firehose.AlwaysPin
	for _, w := range worlds {
		roomy.budget = 5000 // more than the largest pin takes, which medium payloads bound
		if w.name == "sim" || w.name == "chaos" {
			roomy.budget = 65 // these have 512 bytes, and 31 buckets; 62 are a share
		}
		for name, s := range map[string]setup{"tiny": tiny(2), "roomy": roomy} {
			t.Run(w.name+"/"+name, func(t *testing.T) {
				var exposed atomic.Uint64
				job(t, w.open(t, 2, 1), s, func(n *node) error {
					x := n.x
					const far = 80 // pages that firehoses move over
					if x.Rank() == 1 {
						a, err := x.Expose(make([]byte, (far+4)*segment.PageSize), segment.RightsAll, segment.AnyPeer)
						if err != nil {
							return err
						}
						exposed.Store(uint64(a))
					}
					if err := n.meet(); err != nil || x.Rank() == 1 {
						return errors.Join(err, n.meet())
					}
					there := segment.NLA(exposed.Load())
					for _, rank := range []int{0, 1} {
						for _, at := range []segment.NLA{guardedAt, there + 123} {
							if rank == 0 && at != guardedAt {
								continue
							}
							for _, size := range []int{0, 1, 8, 100, segment.PageSize / 2, 2 * segment.PageSize} {
								if at == guardedAt && size > segment.PageSize/2 {
									continue
								}
								if err := prepared(n, rank, at, size, there+4*segment.PageSize, far, name == "roomy"); err != nil {
									return fmt.Errorf("%d bytes at %v of rank %d: %w", size, at, rank, err)
								}
							}
						}
					}
					for k := range far { // more than may be held at a time
						if err := prepared(n, 1, there+segment.NLA((4+k)*segment.PageSize), 8, there, 1, name == "roomy"); err != nil {
							return fmt.Errorf("page %d: %w", k, err)
						}
					}
					return n.meet()
				})
			})
		}
	}
}

// prepared is one case: pages at others are put to in between.
func prepared(n *node, rank int, at segment.NLA, size int, others segment.NLA, pages int, stays bool) error {
	x := n.x
	src, dst := make([]byte, size), make([]byte, size)
	put, err := extended.PreparePut(x, rank, at, src)
	if err != nil {
		return err
	}
	get, err := extended.PrepareGet(x, rank, at, dst)
	if err != nil {
		return err
	}
	misses := func() uint64 {
		var s firehose.Stats
		n.cache.Stats(&s)
		return s.RemoteMisses
	}
	for i := range byte(4) {
		for k := range src {
			src[k] = byte(k) ^ i
		}
		for k := range pages {
			if err := x.Put(1, others+segment.NLA(k*segment.PageSize), []byte{i}); err != nil {
				return err
			}
		}
		before := misses()
		for _, p := range []*extended.Prepared{put, get} {
			h, err := p.Start()
			if err != nil {
				return err
			}
			if err := x.Wait(h); err != nil {
				return err
			}
		}
		if !bytes.Equal(src, dst) {
			return fmt.Errorf("start %d: got other bytes than were put", i)
		}
		if k := misses() - before; stays && k > 0 {
			return fmt.Errorf("start %d: %d misses of memory that was prepared", i, k)
		}
	}
	if err := errors.Join(put.Free(), get.Free()); err != nil {
		return err
	}
	if _, err := put.Start(); !errors.Is(err, errs.ErrNotReady) {
		return fmt.Errorf("start after Free: %v", err)
	}
	return nil
}

// TestPrepareRefuses: wrong arguments are found when a transfer is prepared.
func TestPrepareRefuses(t *testing.T) {
	if _, err := extended.PreparePut(extended.New(extended.Config{}), 0, lockAt, make([]byte, 8)); !errors.Is(err, extended.ErrNotInit) {
		t.Errorf("before Bind: %v", err)
	}
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			job(t, w.open(t, 2, 0), tiny(2), func(n *node) error {
				for text, at := range map[string]segment.NLA{"extended: prepare get: ": segment.AttachBase + 2*segment.PageSize - 7, "extended: prepare get:": 0} {
					if _, err := extended.PrepareGet(n.x, 1, at, make([]byte, 8)); !errors.Is(err, extended.ErrBadArg) || !strings.Contains(err.Error(), text) {
						return fmt.Errorf("prepared at %v: %v", at, err)
					}
				}
				if _, err := extended.PreparePut(n.x, 2, lockAt, nil); !errors.Is(err, extended.ErrBadArg) {
					return fmt.Errorf("prepared for rank 2 of 2: %v", err)
				}
				return n.meet()
			})
		})
	}
}

// TestPreparedWithoutCredit: a rank whose first access to exposed memory is prepared, when it has no credit for a message to the owner,
// sends that while it waits.
func TestPreparedWithoutCredit(t *testing.T) {
	const nothing = am.HandlerID(128)
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			s := tiny(2)
			s.budget = 5000
			s.handlers = func(*node) []am.Entry {
				return []am.Entry{{Index: nothing, Name: "nothing", Args: 0, Fn: func(*am.Token, []uint32, []byte) {}}}
			}
			var exposed atomic.Uint64
			job(t, w.open(t, 2, 0), s, func(n *node) error {
				if n.x.Rank() == 1 {
					a, err := n.x.Expose(make([]byte, 8), segment.RightsAll, segment.AnyPeer)
					if err != nil {
						return err
					}
					exposed.Store(uint64(a))
				}
				if err := n.meet(); err != nil || n.x.Rank() == 1 {
					return errors.Join(err, n.meet())
				}
				for sent := true; sent; {
					var err error
					if sent, err = n.e.TryRequestShort(1, nothing); err != nil {
						return err
					}
				}
				p, err := extended.PreparePut(n.x, 1, segment.NLA(exposed.Load()), []byte("12345678"))
				if err != nil {
					return err
				}
				h, err := p.Start()
				return errors.Join(err, n.x.Wait(h), p.Free(), n.meet())
			})
		})
	}
}
