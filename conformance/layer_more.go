package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// moreLayerChecks close holes that deliberate defects have shown, see
// internal/tools/mutants. A wake-up that a layer forgets does no harm where the waiting rank
// has not gone to sleep yet, and most waits of other checks are over before.
var moreLayerChecks = []check{
	{name: "am/reply looks again", run: amReplyLooksAgain},
	{name: "extended/signals wake", run: extendedSignalsWake},
	{name: "gas/lock wakes", run: gasLockWakes},
	{name: "gas/heap ends", run: gasHeapEnds},
}

// extendedSignalsWake: a rank that sleeps until a word of its segment changes is
// woken by each kind of signal, and by nothing else.
func extendedSignalsWake(c *ctx) {
	const rounds = 30
	var b contract.Bed
	var woke atomic.Uint64
	c.stack(2, conduits.Config{}, layers{segment: segment.PageSize}, func(s *stack) {
		x := s.ext
		for r := uint64(1); r <= rounds; r++ {
			if s.Rank == 1 {
				b.Lie(s.EP)
				_, err := x.WaitUntil(contract.At(0), extended.Ge, r)
				s.Must(err)
				woke.Store(r)
				s.barrier()
				continue
			}
			b.Watch(s.poll, func() bool { return s.EP.Err() != nil })
			switch r % 4 {
			case 0:
				s.Must(x.Signal(1, contract.At(0), extended.SignalSet, r))
			case 1:
				s.Must(x.Signal(1, contract.At(0), extended.SignalAdd, 1))
			case 2:
				s.Must(x.PutSignal(1, contract.At(64), make([]byte, 100), contract.At(0), extended.SignalAdd, 1))
			case 3:
				h, err := x.PutSignalNB(1, contract.At(64), make([]byte, 100), contract.At(0), extended.SignalSet, r)
				s.Must(err)
				s.Must(x.Wait(h))
			}
			// A barrier would wake it, too.
			s.Idle(func() bool { return woke.Load() == r })
			s.barrier()
		}
	})
}

// gasLockWakes: a rank that sleeps until it gets a lock gets it when it is given back,
// exclusive or shared.
func gasLockWakes(c *ctx) {
	const rounds = 20
	var b contract.Bed
	c.job(2, func(n *gas.Node) error {
		l, err := gas.NewLock(n)
		if err != nil {
			return err
		}
		for r := range rounds {
			take, release := l.Lock, l.Unlock
			if n.Rank() == 0 && r%4 == 3 || n.Rank() == 1 && r%4 == 2 {
				take, release = l.RLock, l.RUnlock
			}
			if n.Rank() == 1 {
				// When rank 0 has it.
				if err := n.Barrier(); err != nil {
					return err
				}
				b.Lie(n.Layers().Conduit)
				if err := errors.Join(take(n), release(n), n.Barrier()); err != nil {
					return err
				}
				continue
			}
			if err := errors.Join(take(n), n.Barrier()); err != nil {
				return err
			}
			poll := func() {
				n.Poll()
				runtime.Gosched()
			}
			b.Watch(poll, func() bool { return n.Layers().Conduit.Err() != nil })
			if r%4 != 3 && !conc.Race { // to look is a race
				// It has to be in the list of those that wait, asleep or not.
				for range 200_000 {
					w, err := l.Word().Get(n)
					if err != nil {
						return err
					}
					if !reflect.ValueOf(w).FieldByName("waiters").IsZero() {
						break
					}
					poll()
				}
			}
			if err := errors.Join(release(n), n.Barrier()); err != nil {
				return err
			}
		}
		return nil
	})
}

// gasHeapEnds: what a rank allocates by itself, be it all that there is, takes
// nothing of the part where all ranks have allocated together: there the same
// calls give the same addresses.
func gasHeapEnds(c *ctx) {
	const ranks, size = 3, 16 << 10
	c.job(ranks, func(n *gas.Node) error {
		first, err := gas.NewSlice[byte](n, size)
		if err != nil {
			return err
		}
		last, err := gas.NewSlice[byte](n, 64)
		if err != nil {
			return err
		}
		if err := gas.Delete(n, first); err != nil {
			return err
		}
		var own []gas.Ptr[byte]
		for k := size; n.Rank() == 1 && k >= 64; {
			p, err := gas.Alloc[byte](n, k)
			switch {
			case err == nil:
				own = append(own, p)
			case errors.Is(err, gas.ErrResource):
				k /= 2
			default:
				return err
			}
		}
		for _, p := range own {
			if err := isErr(gas.Free(n, p.Add(32)), gas.ErrBadArg, "free of an address inside a block"); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		again, err := gas.NewSlice[byte](n, size)
		if err != nil || again != first {
			return off(err, "room at %v that all ranks have freed is at %v to the next of that size, where rank 1 has taken all of its own end", first, again)
		}
		for _, p := range own {
			if err := gas.Free(n, p); err != nil {
				return fmt.Errorf("free of %v: %w", p, err)
			}
		}
		return errors.Join(gas.Delete(n, again), gas.Delete(n, last))
	})
}

// stingy is an endpoint without credit for replies until a goroutine has announced
// that it sleeps for some: it comes too early to wake any.
type stingy struct {
	contract.Tardy
	rich bool
}

func (e *stingy) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	if c == conduits.Reply && !e.rich {
		return conduits.NoCredit
	}
	return e.Tardy.Send(dst, c, tag, words)
}

// amReplyLooksAgain: a handler that waits for credit for its reply tries once
// more when it has announced itself.
func amReplyLooksAgain(c *ctx) {
	c.Job(1, conduits.Config{}, func(p *contract.Peer) {
		const ask, answer = 200, 201
		answered := false
		e := &stingy{Tardy: contract.Tardy{Endpoint: p.EP}}
		e.Change = func() { e.rich = true }
		a, err := am.Attach(e, am.Config{Handlers: []am.Entry{
			{Index: ask, Name: "ask", Fn: func(t *am.Token, _ []uint32, _ []byte) { p.Must(t.ReplyShort(answer)) }},
			{Index: answer, Name: "answer", Fn: func(*am.Token, []uint32, []byte) { answered = true }},
		}})
		p.Must(err)
		p.Must(a.RequestShort(0, ask))
		for !answered {
			a.Poll()
			p.Must(p.EP.Err())
		}
		if e.Armed != 1 || e.Parked != 0 {
			p.Fatalf("the handler armed %d times and parked %d times for credit that came before it armed", e.Armed, e.Parked)
		}
	})
}
