package firehose_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// card is a network card that registers memory natively, as InfiniBand's do: what is
// registered has a key, which peers show with each access, and which no other memory is
// given again. It reads and writes own memory by keys, too, so that the source of a put
// and the destination of a get are pinned as well. To use a key it has a window open,
// which takes long: so windows stay open as long as what they were opened for is pinned,
// and Config.Leave and Move close them.
//
// It is the Memory of its rank, of addresses from a bucket on.
type card struct {
	mem   []byte
	cards []*card

	mu      sync.Mutex
	keys    uint64
	at      segment.NLA
	regs    map[uint64]registered // by key
	windows map[place]uint64      // keys, of peers' buckets and own ones
	opened  int
	closed  int
	wrong   error // the first rule that was broken
}

type registered struct {
	at  segment.NLA
	mem []byte
}

// place is a bucket of a rank.
type place struct {
	rank int
	a    firehose.Addr
}

// registerAt registers n bytes at a.
func (c *card) registerAt(a firehose.Addr, n uint64) (firehose.Grant, error) {
	off := uint64(a) - bucket
	if a < bucket || off >= uint64(len(c.mem)) {
		return firehose.Grant{}, firehose.ErrNotExposed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys += 1 << 33 // both words of a key count
	c.at += segment.NLA(n+segment.PageSize) &^ (segment.PageSize - 1)
	g := firehose.Grant{NLA: c.at, Key: c.keys | 1}
	c.regs[g.Key] = registered{g.NLA, c.mem[off:min(off+n, uint64(len(c.mem)))]}
	c.at += segment.NLA(n)
	return g, nil
}

func (c *card) Pin(a firehose.Addr, n uint64) (firehose.Grant, error) { return c.registerAt(a, n) }

func (c *card) PinOnce(a firehose.Addr, n uint64) (firehose.Grant, error) { return c.registerAt(a, n) }

// Unpin ends the use of a key: no window of this rank may be open for it any more.
func (c *card) Unpin(a firehose.Addr, _ uint64, g firehose.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, key := range c.windows {
		if key == g.Key && c.cards[p.rank] == c {
			c.blame(fmt.Errorf("%#x is unpinned, and the window of its key %#x is open", a, key))
		}
	}
	if r, ok := c.regs[g.Key]; !ok || r.at != g.NLA {
		c.blame(fmt.Errorf("%#x is unpinned by %+v, which was not given", a, g))
	}
	delete(c.regs, g.Key)
}

func (c *card) Revoke(firehose.Addr, uint64, firehose.Grant)       { panic("nothing is withdrawn") }
func (c *card) Forget(a firehose.Addr, n uint64, g firehose.Grant) { c.Unpin(a, n, g) }

// blame keeps the first error. c.mu is held.
func (c *card) blame(err error) {
	if c.wrong == nil {
		c.wrong = err
	}
}

// shut closes the window of a bucket if there is one.
func (c *card) shut(rank int, a firehose.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.windows[place{rank, a}]; ok {
		delete(c.windows, place{rank, a})
		c.closed++
	}
}

// open opens the window of a bucket unless that has been done.
func (c *card) open(rank int, a firehose.Addr, key uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := place{rank, a &^ (bucket - 1)}
	old, ok := c.windows[p]
	if ok && old != key {
		return fmt.Errorf("the window of bucket %#x of rank %d is open for key %#x, and it is %#x now", p.a, rank, old, key)
	}
	if !ok {
		c.windows[p] = key
		c.opened++
	}
	return nil
}

// reach is the memory that the card's peers reach by a grant.
func (c *card) reach(g firehose.Grant, n uint64) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.regs[g.Key]
	if off := uint64(g.NLA - r.at); ok && off < uint64(len(r.mem)) && n <= uint64(len(r.mem))-off {
		return r.mem[off : off+n], nil
	}
	return nil, fmt.Errorf("%d bytes by %+v: the key is not valid there", n, g)
}

// move has the card copy n bytes between what is pinned of rank dst and of its own
// memory: a put, or a get. Regions of PinOnce have no windows.
func (r *rank) move(c *card, remote, local firehose.Pinned, at, own firehose.Addr, n uint64, get, windows bool) error {
	for done := uint64(0); done < n; {
		far, k := r.c.At(remote, at+firehose.Addr(done))
		near, m := r.c.At(local, own+firehose.Addr(done))
		k = min(k, m, n-done)
		if windows {
			if err := c.open(remote.Rank(), at+firehose.Addr(done), far.Key); err != nil {
				return err
			}
		}
		if err := c.open(r.e.Rank(), own+firehose.Addr(done), near.Key); err != nil {
			return err
		}
		to, err := c.cards[remote.Rank()].reach(far, k)
		if err != nil {
			return err
		}
		from, err := c.reach(near, k)
		if err != nil {
			return err
		}
		if get {
			to, from = from, to
		}
		copy(to, from)
		done += k
	}
	return nil
}

// TestCard puts and gets by cards that have keys and windows, with far less pinned than
// is accessed: what a conduit for such a card does with each of its operations.
func TestCard(t *testing.T) {
	const ranks, threads, rounds, longest = 3, 2, 150, 2*bucket + 100
	const slot = 6 * bucket // bytes of each rank's memory that are a goroutine's
	cards := make([]*card, ranks)
	for i := range cards {
		cards[i] = &card{mem: make([]byte, ranks*threads*slot), cards: cards, regs: map[uint64]registered{}, windows: map[place]uint64{}}
	}
	change := func(rank int, c *firehose.Config) {
		own := cards[rank]
		c.Memory = own
		c.Leave = func(peer int, a firehose.Addr, _ uint64) { own.shut(peer, a) }
		c.Move = func(a firehose.Addr, n uint64) {
			for end := a + firehose.Addr(n); a < end; a += bucket {
				own.shut(rank, a&^(bucket-1))
			}
		}
	}
	var once, tried atomic.Int64
	config := firehose.Config{Budget: 28 * bucket, Local: 12 * bucket}
	check(t, job(t, ranks, config, change, func(r *rank) error {
		c := cards[r.e.Rank()]
		errs := make(chan error, threads)
		for th := range threads {
			go func() {
				errs <- func() error {
					rng := rand.New(rand.NewPCG(uint64(r.e.Rank()), uint64(th)))
					base := uint64((r.e.Rank()*threads + th) * slot)
					mine := c.mem[base : base+slot] // sources, and destinations
					want := make([][]byte, ranks)
					for i := range want {
						want[i] = make([]byte, slot)
					}
					for range rounds {
						dst := (r.e.Rank() + 1 + rng.IntN(ranks-1)) % ranks
						n := uint64(1 + rng.IntN(longest))
						off, src := uint64(rng.IntN(slot-int(n)+1)), uint64(rng.IntN(slot-int(n)+1))
						at, own := firehose.Addr(bucket+base+off), firehose.Addr(bucket+base+src)
						get, windows := rng.IntN(2) == 0, true
						if !get {
							for i := range mine[src : src+n] {
								mine[src+uint64(i)] = byte(rng.Uint32())
							}
							copy(want[dst][off:], mine[src:src+n])
						}
						var remote, local firehose.Pinned
						var err error
						switch rng.IntN(4) {
						case 0: // in the other order, without waiting for the second
							if local, err = r.c.LocalPin(own, n); err != nil {
								return err
							}
							var ok bool
							if remote, ok = r.c.TryRemotePin(dst, at, n); ok {
								tried.Add(1)
								break
							}
							if err := r.c.Release(local); err != nil {
								return err
							}
							fallthrough
						default:
							if remote, err = r.c.RemotePin(dst, at, n); err != nil {
								return err
							}
							var ok bool
							if local, ok = r.c.TryLocalPin(own, n); !ok {
								local, err = r.c.LocalPin(own, n)
							}
						case 1:
							remote, err = r.c.PinOnce(dst, at, n)
							if errors.Is(err, firehose.ErrResource) {
								remote, err = r.c.RemotePin(dst, at, n)
							} else {
								windows = false
								once.Add(1)
							}
							if err != nil {
								return err
							}
							var ok bool
							if local, ok = r.c.TryLocalPin(own, n); ok {
								break
							}
							if err := r.c.Release(remote); err != nil { // it waits for no pin
								return err
							}
							windows = true
							if remote, err = r.c.RemotePin(dst, at, n); err == nil {
								local, err = r.c.LocalPin(own, n)
							}
						}
						if err != nil {
							return err
						}
						err = r.move(c, remote, local, at, own, n, get, windows)
						if err = errors.Join(err, r.c.Release(local), r.c.Release(remote)); err != nil {
							return err
						}
						if get && !bytes.Equal(mine[src:src+n], want[dst][off:off+n]) {
							return fmt.Errorf("%d bytes at %#x of rank %d are not what was put", n, at, dst)
						}
					}
					return nil
				}()
			}()
		}
		var err error
		for range threads {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			return err
		}
		var s firehose.Stats
		r.c.Stats(&s)
		if s.PeakPinned > 28*bucket || s.Victims == 0 || s.Violations > 0 {
			return fmt.Errorf("%+v", s)
		}
		return r.sync()
	}))
	for i, c := range cards {
		if c.wrong != nil || len(c.regs) > 0 || c.closed == 0 {
			t.Errorf("rank %d: %d keys are left, %d windows were opened and %d closed: %v", i, len(c.regs), c.opened, c.closed, c.wrong)
		}
	}
	if once.Load() == 0 || tried.Load() == 0 {
		t.Errorf("%d transfers were pinned once, %d without waiting", once.Load(), tried.Load())
	}
}
