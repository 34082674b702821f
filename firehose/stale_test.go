package firehose_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// put and get go by region and conduit, as those of the layer above, and are
// complete when they return, since ranks of a process are neighbours.
func (r *rank) put(reg firehose.Pinned, a firehose.Addr, b []byte) error {
	g, _ := r.c.At(reg, a)
	ev, err := post.Put(r.e.Conduit(), reg.Rank(), g.NLA, b, conduits.RemoteDone, 0)
	if err == nil && ev&conduits.RemoteDone == 0 {
		err = errors.New("the put takes its time")
	}
	return err
}

func (r *rank) get(reg firehose.Pinned, a firehose.Addr, b []byte) error {
	g, _ := r.c.At(reg, a)
	ev, err := post.Get(r.e.Conduit(), b, reg.Rank(), g.NLA, conduits.RemoteDone, 0)
	if err == nil && ev&conduits.RemoteDone == 0 {
		err = errors.New("the get takes its time")
	}
	return err
}

// faults reports whether reg is reached neither way, and gives it up.
func (r *rank) faults(reg firehose.Pinned, a firehose.Addr) error {
	for what, err := range map[string]error{"put": r.put(reg, a, []byte{1}), "get": r.get(reg, a, []byte{1})} {
		if !errors.Is(err, segment.ErrFault) {
			return fmt.Errorf("%s at %#x, which is stale: %v", what, a, err)
		}
	}
	return r.c.Stale(reg)
}

// gone reports whether memory at a is neither pinned anew nor reached by what is
// remembered.
func (r *rank) gone(dst int, a firehose.Addr) error {
	if _, ok := r.c.TryRemotePin(dst, a, 1); ok || r.x.Now(&conduits.Access{Verb: conduits.GetWord, Size: 1, Rank: dst, At: nla(a)}) {
		return errors.New("a stale firehose is reached by")
	}
	if _, err := r.c.RemotePin(dst, a, 1); !errors.Is(err, firehose.ErrNotExposed) {
		return fmt.Errorf("pin of %#x, which is gone: %v", a, err)
	}
	if _, err := r.c.PinOnce(dst, a, 1); !errors.Is(err, firehose.ErrNotExposed) {
		return fmt.Errorf("pin at once of %#x, which is gone: %v", a, err)
	}
	return nil
}

// pair runs two ranks: owner and user take turns, step by step, the owner first.
func pair(t *testing.T, owner, user func(r *rank, step int) error, steps int) {
	check(t, job(t, 2, firehose.Config{Budget: 16 * bucket, Local: 8 * bucket}, nil, func(r *rank) error {
		for step := range steps {
			for i, f := range []func(*rank, int) error{owner, user} {
				if r.e.Rank() == i {
					if err := f(r, step); err != nil {
						return fmt.Errorf("step %d: %w", step, err)
					}
				}
				if err := r.sync(); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// TestSliceDropped: a slice that its owner has dropped stays as long as it is
// exposed, and is garbage afterwards though a firehose is attached to it.
func TestSliceDropped(t *testing.T) {
	var collected atomic.Bool
	var reg, once firehose.Pinned
	var a firehose.Addr
	pair(t, func(r *rank, step int) error {
		switch step {
		case 0:
			mem := make([]byte, 2*bucket)
			runtime.AddCleanup(&mem[0], func(int) { collected.Store(true) }, 0)
			var err error
			a, err = r.s.Expose(mem, segment.RightsAll, segment.AnyPeer)
			return err
		case 1:
			runtime.GC()
			runtime.GC()
			if collected.Load() {
				return errors.New("exposed memory is garbage")
			}
		case 2:
			if err := r.c.Conceal(r.s, a); err != nil {
				return err
			}
			for !collected.Load() { // or the watchdog tells
				runtime.GC()
				runtime.Gosched()
			}
		}
		return nil
	}, func(r *rank, step int) error {
		var err error
		switch step {
		case 0:
			if reg, err = r.c.RemotePin(0, a, bucket+1); err != nil {
				return err
			}
			if once, err = r.c.PinOnce(0, a+5, bucket+1); err != nil {
				return err
			}
			return r.put(reg, a+3, []byte("still here"))
		case 1:
			b := make([]byte, 8)
			if err := errors.Join(r.get(reg, a+5, b), r.get(once, a+5, b[:4])); err != nil || string(b) != "ill here" {
				return fmt.Errorf("%q: %w", b, err)
			}
		case 2:
			return errors.Join(r.faults(once, a+5), r.faults(reg, a+3), r.gone(0, a), r.gone(0, a+bucket))
		}
		return nil
	}, 3)
}

// TestSliceMoved: append moves a slice away; what is exposed is the array that was,
// until it is concealed and the new one is exposed, under another address.
func TestSliceMoved(t *testing.T) {
	var reg firehose.Pinned
	var mem, old []byte
	var was, is firehose.Addr
	pair(t, func(r *rank, step int) (err error) {
		switch step {
		case 0:
			mem = make([]byte, bucket)
			was, err = r.s.Expose(mem, segment.RightsAll, segment.AnyPeer)
		case 1:
			old = mem
			mem = append(mem, make([]byte, bucket)...)
			mem[7] = 7
		case 2:
			if old[8] != 8 || mem[8] == 8 {
				return errors.New("the put has not reached the array that is exposed, or another")
			}
			if is, err = r.s.Expose(mem, segment.RightsAll, segment.AnyPeer); err == nil && is == was {
				err = errors.New("both have the same address")
			}
			err = errors.Join(err, r.c.Conceal(r.s, was))
		}
		return err
	}, func(r *rank, step int) (err error) {
		b := make([]byte, 1)
		switch step {
		case 0:
			reg, err = r.c.RemotePin(0, was, 1)
		case 1:
			if err = r.get(reg, was+7, b); err == nil && b[0] != 0 {
				err = errors.New("the array that append has made is reached")
			}
			err = errors.Join(err, r.put(reg, was+8, []byte{8}))
		case 2:
			if err := errors.Join(r.faults(reg, was), r.gone(0, was)); err != nil {
				return err
			}
			if reg, err = r.c.RemotePin(0, is+bucket, 1); err != nil {
				return err
			}
			err = errors.Join(r.get(reg, is+bucket, b), r.c.Release(reg))
		}
		return err
	}, 3)
}

// TestUnmapped: memory that the conduit has mapped is not reached any more when it
// is unmapped, nor is memory mapped in its place; neither by firehoses, in use or
// idle, nor by what was pinned at once.
func TestUnmapped(t *testing.T) {
	var used, idle, once, again firehose.Pinned
	var mem []byte
	var was, is firehose.Addr
	pair(t, func(r *rank, step int) (err error) {
		ep := r.e.Conduit()
		switch step {
		case 0:
			if mem, err = ep.MapMemory(4 * bucket); err != nil {
				return err
			}
			was, err = r.s.Expose(mem, segment.RightsAll, segment.AnyPeer)
		case 1:
			if mem[bucket] != 'x' {
				return errors.New("not put")
			}
			if err := r.c.Unmap(r.s, was, func(mem []byte) error {
				var s segment.ATUStats
				if r.atu.Stats(&s); s.Regions > 0 {
					return fmt.Errorf("%d registrations of what is about to be unmapped", s.Regions)
				}
				if _, ok := r.s.Local(was, 1); ok || len(mem) != 4*bucket {
					return fmt.Errorf("found before it is unmapped: %v; %d bytes", ok, len(mem))
				}
				return ep.UnmapMemory(mem)
			}); err != nil {
				return err
			}
			if err := r.c.Unmap(r.s, was, ep.UnmapMemory); !errors.Is(err, errs.ErrBadArg) {
				return fmt.Errorf("unmapped twice: %v", err)
			}
			if _, ok := r.s.Local(was, 1); ok {
				return errors.New("found after it was unmapped")
			}
			// As likely as not where the other was.
			if mem, err = ep.MapMemory(4 * bucket); err != nil {
				return err
			}
			if is, err = r.s.Expose(mem, segment.RightsAll, segment.AnyPeer); err != nil {
				return err
			}
		case 2:
			for i, v := range mem {
				if v != 0 && i != bucket {
					return fmt.Errorf("byte %d of what is mapped now was written", i)
				}
			}
			err = r.c.Unmap(r.s, is, ep.UnmapMemory)
		}
		return err
	}, func(r *rank, step int) (err error) {
		switch step {
		case 0:
			for _, k := range []struct {
				reg *firehose.Pinned
				off firehose.Addr
			}{{&used, bucket}, {&idle, 0}} {
				if *k.reg, err = r.c.RemotePin(0, was+k.off, 1); err != nil {
					return err
				}
			}
			if once, err = r.c.PinOnce(0, was, 4*bucket); err != nil {
				return err
			}
			err = errors.Join(r.put(used, was+bucket, []byte{'x'}), r.c.Release(idle))
		case 1:
			if again, err = r.c.RemotePin(0, is+bucket, 1); err != nil {
				return err
			}
			if err := r.put(again, is+bucket, []byte{'y'}); err != nil {
				return err
			}
			// The idle one is granted, for the rank does not know yet.
			if idle, err = r.c.RemotePin(0, was, 1); err != nil {
				return err
			}
			err = errors.Join(r.faults(used, was+bucket), r.faults(idle, was), r.faults(once, was+2*bucket), r.gone(0, was), r.gone(0, was+bucket))
		case 2:
			err = errors.Join(r.faults(again, is+bucket), r.gone(0, is+bucket))
		}
		return err
	}, 3)
}

// TestExposedAgain: the same memory under a new address, with other rights; the
// old one stays gone.
func TestExposedAgain(t *testing.T) {
	const rounds = 20
	var mem []byte
	var was, is firehose.Addr
	var reg firehose.Pinned
	pair(t, func(r *rank, step int) (err error) {
		if step == 0 {
			mem = make([]byte, bucket)
		} else {
			was = is
			if err := r.c.Conceal(r.s, was); err != nil {
				return err
			}
		}
		rights := segment.RightRead
		if step%2 == 1 {
			rights = segment.RightsAll
		}
		mem[0] = byte(step)
		is, err = r.s.Expose(mem, rights, segment.AnyPeer)
		return err
	}, func(r *rank, step int) (err error) {
		if step > 0 {
			if err := errors.Join(r.faults(reg, was), r.gone(0, was)); err != nil {
				return err
			}
		}
		if reg, err = r.c.RemotePin(0, is, bucket); err != nil {
			return err
		}
		b := make([]byte, 1)
		if err := r.get(reg, is, b); err != nil || b[0] != byte(step) {
			return fmt.Errorf("%d: %w", b[0], err)
		}
		if err = r.put(reg, is, b); step%2 == 0 {
			if !errors.Is(err, segment.ErrFault) {
				return fmt.Errorf("put to what may be read: %v", err)
			}
			err = nil
		}
		if step == rounds-1 {
			err = errors.Join(err, r.c.Release(reg))
		}
		return err
	}, rounds)
}
