package gas

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// everywhere runs fn on so many ranks of each conduit that runs them in one
// process.
func everywhere(t *testing.T, cfg Config, fn func(n *Node) error) {
	t.Helper()
	for _, name := range testjob.Concurrent("shm", "hidden", "udp", "hybrid", "sim") {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			cfg.Conduit = name
			if err := Run(cfg, fn); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRegisterMisuse tries what the documentation forbids.
func TestRegisterMisuse(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		s := make([]int64, 4)
		for what, err := range map[string]error{
			"nil slice":   wantErr(second(Register[int](n, nil)), ErrBadArg, "0 elements"),
			"empty slice": wantErr(second(Register(n, s[:0])), ErrBadArg, "0 elements"),
			"strings":     wantErr(second(Register(n, []string{"a"})), ErrBadArg, "string"),
			"pointers":    wantErr(second(Register(n, []struct{ p *int }{{}})), ErrBadArg, "field p has type *int"),
			"of size 0":   wantErr(second(Register(n, make([]struct{}, 5))), ErrBadArg, "size 0"),
			"no rights":   wantErr(second(RegisterFor(n, s, 0, AnyPeer)), ErrBadArg, "0x0", "rwa"),
			"more rights": wantErr(second(RegisterFor(n, s, 9, AnyPeer)), ErrBadArg, "0x9"),
			"rank 2":      wantErr(second(RegisterFor(n, s, RightsAll, 2)), ErrBadArg, "rank 2", "0..1"),
			"rank -2":     wantErr(second(RegisterFor(n, s, RightsAll, -2)), ErrBadArg, "rank -2", "-1"),
		} {
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		p := Must(Register(n, s))
		q := Must(Register(n, s)) // legal, and another place
		if p == q {
			return fmt.Errorf("registered twice as %v", p)
		}
		n.Must(p.Put(n, 7))
		if v, err := q.Get(n); err != nil || v != 7 || s[0] != 7 {
			return fmt.Errorf("%d, %d, %v", v, s[0], err)
		}
		seg := Must(Alloc[int64](n, 1))
		for what, err := range map[string]error{
			"nil":         Free(n, Ptr[int64]{}),
			"the middle":  wantErr(Free(n, p.Add(1)), ErrBadArg, p.Add(1).String()),
			"another's":   wantErr(Free(n, p.On(1-n.Rank())), ErrBadArg, fmt.Sprintf("rank %d", 1-n.Rank())),
			"a segment's": Free(n, seg),
			"once":        Free(n, p),
		} {
			if err != nil {
				return fmt.Errorf("Free: %s: %w", what, err)
			}
		}
		n.Must(wantErr(Free(n, p), ErrBadArg, p.String(), "already"))
		if v, err := q.Get(n); err != nil || v != 7 {
			return fmt.Errorf("the other registration: %d, %v", v, err)
		}
		theirs := Must(swapped(n, q))
		if err := wantErr(Free(n, theirs), ErrBadArg, fmt.Sprintf("rank %d", 1-n.Rank()), "it alone frees it"); err != nil {
			return fmt.Errorf("Free of another's: %w", err)
		}
		n.Must(n.Barrier())
		if err := wantErr(p.Put(n, 8), ErrFault); err != nil {
			return fmt.Errorf("own access after Free: %w", err)
		}
		if _, ok := p.Local(n); ok {
			return errors.New("Local after Free")
		}
		return Free(n, q)
	})
}

func second[T any](_ T, err error) error { return err }

// TestRegisterTooMuch: there are 512 GiB of addresses, in whole buckets.
func TestRegisterTooMuch(t *testing.T) {
	if err := Run(Config{PinBucket: 1 << 30}, func(n *Node) error {
		var err error
		for i := 0; err == nil && i <= 512; i++ {
			_, err = Register(n, make([]byte, 1))
		}
		return wantErr(err, ErrResource, "gas: Register", "1073741824", "-pin-bucket")
	}); err != nil {
		t.Error(err)
	}
}

// swapped gives each rank what the previous one has.
func swapped[T any](n *Node, v T) (T, error) {
	all, err := AllGather(n, v)
	if err != nil {
		return v, err
	}
	return all[(n.Rank()+n.Size()-1)%n.Size()], nil
}

type triple struct {
	a uint64
	b [3]uint16
	c bool
}

// TestRegistered uses registered memory of another rank in every way.
func TestRegistered(t *testing.T) {
	everywhere(t, Config{Ranks: 3}, registeredEverything)
}

var callStore = RegisterCall("test.store", func(n *Node, p Ptr[uint64]) bool {
	q, ok := p.Local(n)
	if ok {
		*q = 4711
	}
	return ok
})

func registeredEverything(n *Node) error {
	words := make([]uint64, 50_000)
	for i := range words {
		words[i] = uint64(n.Rank())<<32 | uint64(i)
	}
	mine := Must(Register(n, words))
	theirs := Must(swapped(n, mine))
	src := (n.Rank() + n.Size() - 1) % n.Size()
	if _, ok := theirs.Local(n); ok {
		return errors.New("registered memory of another rank is local")
	}
	want := func(i int) uint64 { return uint64(src)<<32 | uint64(i) }
	for _, k := range []int{1, 3, 4096, len(words)} {
		got := make([]uint64, k)
		n.Must(theirs.Add(len(words)-k).GetSlice(n, got))
		for i := range got {
			if got[i] != want(len(words)-k+i) {
				return fmt.Errorf("element %d of %d is %#x", i, k, got[i])
			}
		}
	}
	for what, err := range map[string]error{
		"behind":       wantErr(theirs.Add(len(words)).Put(n, 1), ErrFault),
		"across":       wantErr(theirs.Add(len(words)-1).GetSlice(n, make([]uint64, 2)), ErrFault),
		"NB, across":   wantErr(sync2(n)(theirs.Add(len(words)-1).GetSliceNB(n, make([]uint64, 2))), ErrFault),
		"atomic":       wantErr(second(Swap(n, theirs.Add(len(words)), 1)), ErrFault),
		"unaligned":    wantErr(second(FetchAdd(n, theirs.odd(), 1)), ErrBadArg, "aligned"),
		"absurd":       wantErr(theirs.Add(1<<33).Put(n, 1), ErrBadArg),
		"no such rank": wantErr(theirs.On(17).Put(n, 1), ErrBadArg, "rank 17"),
	} {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if !n.large { // else the heap may end there
		if err := wantErr(theirs.Add(-1).Put(n, 1), ErrFault); err != nil {
			return fmt.Errorf("in front: %w", err)
		}
	}
	n.Must(n.Barrier())

	// Values, slices, not waited for, and the result where it belongs.
	h := Must(theirs.PutNB(n, 1))
	list := []uint64{2, 3, 4}
	h2 := Must(theirs.Add(1).PutSliceNB(n, list))
	n.Must(n.SyncAll([]Handle{h, h2}))
	if old, err := FetchAdd(n, theirs, 10); err != nil || old != 1 {
		return fmt.Errorf("FetchAdd: %d, %v", old, err)
	}
	if _, ok, err := CompareAndSwap(n, theirs.Add(1), 2, 20); err != nil || !ok {
		return fmt.Errorf("CompareAndSwap: %v, %v", ok, err)
	}
	if old, ok, err := FetchCompareAdd(n, theirs.Add(2), 3, 5); err != nil || !ok || old != 3 {
		return fmt.Errorf("FetchCompareAdd: %d, %v, %v", old, ok, err)
	}
	if old, err := FetchXor(n, theirs.Add(3), 1); err != nil || old != 4 {
		return fmt.Errorf("FetchXor: %d, %v", old, err)
	}
	if v, err := Load(n, theirs.Add(3)); err != nil || v != 5 {
		return fmt.Errorf("Load: %d, %v", v, err)
	}
	n.Must(n.Barrier())
	if !slices.Equal(words[:5], []uint64{11, 20, 8, 5, uint64(n.Rank())<<32 | 4}) {
		return fmt.Errorf("words begin with %x", words[:5])
	}

	// Signals, and waiting for them in registered memory.
	n.Must(theirs.Add(100).PutSignal(n, []uint64{77, 78}, theirs.Add(200), SignalAdd, 1<<40))
	Must(WaitUntil(n, mine.Add(200), Ge, 1<<40))
	if words[100] != 77 || words[101] != 78 {
		return fmt.Errorf("signalled before the data: %d", words[100])
	}
	n.Must(Store(n, theirs.Add(201), 1))
	at, _ := mine.Add(201).Local(n)
	n.Must(n.Wait(func() bool { return atomic.LoadUint64(at) == 1 }))

	// A lock, a call and collectives, whose data are registered.
	locks := make([]LockWord, 3)
	lp, err := Register(n, locks)
	if err != nil {
		return err
	}
	l := lp.Add(1)
	if l, err = Broadcast(n, 1, l); err != nil {
		return err
	}
	count := Must(Broadcast(n, 2, mine.Add(300)))
	for range 20 {
		n.Must(LockAt(l).Lock(n))
		v := Must(count.Get(n))
		n.Must(count.Put(n, v+1))
		n.Must(LockAt(l).Unlock(n))
	}
	n.Must(n.Barrier())
	if v, err := count.Get(n); err != nil || v != 2<<32|300+uint64(20*n.Size()) {
		return fmt.Errorf("counted to %#x, %v", v, err)
	}
	if ok, err := callStore.Call(n, src, theirs.Add(400)); err != nil || !ok {
		return fmt.Errorf("call: %v, %v", ok, err)
	}
	if v, err := theirs.Add(400).Get(n); err != nil || v != 4711 {
		return fmt.Errorf("stored %d, %v", v, err)
	}
	n.Must(n.Barrier())
	clear(words[:1000])
	words[500] = uint64(n.Rank())
	n.Must(AllReduceSlice(n, words[:1000], Sum[uint64]))
	if words[500] != uint64(n.Size()*(n.Size()-1)/2) {
		return fmt.Errorf("reduced to %d", words[500])
	}

	// Other types.
	threes := make([]triple, 1000)
	tp := Must(Register(n, threes))
	tt := Must(swapped(n, tp))
	v := triple{uint64(n.Rank()), [3]uint16{1, 2, 3}, true}
	n.Must(tt.Add(999).Put(n, v))
	n.Must(Field(tt.Add(999), func(t *triple) *uint16 { return &t.b[1] }).Put(n, 0x4321))
	v.b[1] = 0x4321
	if got, err := tt.Add(999).Get(n); err != nil || got != v {
		return fmt.Errorf("%+v, %v", got, err)
	}
	n.Must(n.Barrier())
	return errors.Join(Free(n, mine), Free(n, lp), Free(n, tp))
}

// odd is an address inside *p.
func (p Ptr[T]) odd() Ptr[T] { return Ptr[T]{w: p.w + 1} }

// sync2 synchronizes what it is given.
func sync2(n *Node) func(Handle, error) error {
	return func(h Handle, err error) error {
		if err != nil {
			return err
		}
		return n.Sync(h)
	}
}

// TestRegisteredRights: each rank may do what it was given the right to.
func TestRegisteredRights(t *testing.T) {
	everywhere(t, Config{Ranks: 3}, func(n *Node) error {
		s := make([]uint64, 10)
		var ps [8]Ptr[uint64]
		for rights := range Rights(8) {
			peer := AnyPeer
			if rights == 0 { // stands for: all, but for rank 1 only
				rights, peer = RightsAll, 1
			}
			p := Must(RegisterFor(n, s, rights, peer))
			if peer == AnyPeer {
				ps[rights] = p
			} else {
				ps[0] = p
			}
		}
		theirs := Must(Broadcast(n, 0, ps))
		check := func(p Ptr[uint64], may Rights) error {
			for what, op := range map[string]struct {
				need Rights
				do   func() error
			}{
				"Get":        {RightRead, func() error { return second(p.Get(n)) }},
				"GetSlice":   {RightRead, func() error { return p.GetSlice(n, make([]uint64, 9)) }},
				"GetSliceNB": {RightRead, func() error { return sync2(n)(p.GetSliceNB(n, make([]uint64, 9))) }},
				"Put":        {RightWrite, func() error { return p.Put(n, 0) }},
				"PutSlice":   {RightWrite, func() error { return p.PutSlice(n, make([]uint64, 9)) }},
				"PutNB":      {RightWrite, func() error { return sync2(n)(p.PutNB(n, 0)) }},
				"FetchAdd":   {RightAtomic, func() error { return second(FetchAdd(n, p, 0)) }},
			} {
				err := op.do()
				if op.need&may == 0 {
					err = wantErr(err, ErrFault)
				}
				if err != nil {
					return fmt.Errorf("%s with rights %v: %w", what, may, err)
				}
			}
			return nil
		}
		for turn := range n.Size() { // they would race for the memory
			n.Must(n.Barrier())
			if turn != n.Rank() {
				continue
			}
			for rights := Rights(1); rights < 8; rights++ {
				may := rights
				if n.Rank() == 0 {
					may = RightsAll // the owner
				}
				for range 3 { // by firehose or not
					n.Must(check(theirs[rights], may))
				}
			}
			may := RightsAll
			if n.Rank() == 2 {
				may = 0
			}
			for range 3 {
				if err := check(theirs[0], may); err != nil {
					return fmt.Errorf("for rank 1: %w", err)
				}
			}
		}
		return n.Barrier()
	})
}

// Memory that the registration alone remembers stays, and what is deregistered
// is not reachable, whether a firehose is attached or not.
func TestDeregistered(t *testing.T) {
	everywhere(t, Config{Ranks: 2, PinBucket: 4096}, func(n *Node) error {
		const size = 3000
		for round := range 3 {
			p := Must(Register(n, make([]uint64, size)))
			runtime.GC()
			q := Must(swapped(n, p))
			for i := range size {
				if i%700 == 0 || round == 0 && i%60 == 0 {
					n.Must(q.Add(i).Put(n, uint64(i)))
				}
			}
			if round > 1 {
				runtime.GC()
			}
			if v, err := q.Add(700).Get(n); err != nil || v != 700 {
				return fmt.Errorf("%d, %v", v, err)
			}
			n.Must(n.Barrier())
			s, ok := p.LocalSlice(n, size)
			if !ok || s[700] != 700 {
				return errors.New("not there any more")
			}
			n.Must(Free(n, p))
			clear(s)
			n.Must(n.Barrier())
			for i := 0; i < size; i += 700 {
				for what, err := range map[string]error{
					"Put":      q.Add(i).Put(n, 1),
					"Get":      second(q.Add(i).Get(n)),
					"GetSlice": q.Add(i).GetSlice(n, make([]uint64, 5)),
					"FetchAdd": second(FetchAdd(n, q.Add(i), 1)),
					"NB":       sync2(n)(q.Add(i).PutSliceNB(n, make([]uint64, 9))),
				} {
					if err := wantErr(err, ErrFault); err != nil {
						return fmt.Errorf("%s of element %d after Free: %w", what, i, err)
					}
				}
			}
			n.Must(n.Barrier())
			n.Must(unchanged(s))
		}
		return nil
	})
}

// unchanged is an error if elements of s, which no rank could reach, are not zero any
// more.
func unchanged[T byte | uint64](s []T) error {
	for i, v := range s {
		if v != 0 {
			return fmt.Errorf("element %d was changed to %d", i, v)
		}
	}
	return nil
}

// TestUnmapped: mapped memory that is deregistered and unmapped is not reached, nor is
// what is mapped in its place afterwards, by firehoses that are still attached.
func TestUnmapped(t *testing.T) {
	everywhere(t, Config{Ranks: 2, PinBucket: segment.PageSize}, unmapped)
}

func unmapped(n *Node) error {
	const size = 8 * segment.PageSize
	for range 3 {
		mem := Must(syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON))
		p := Must(Register(n, mem))
		q := Must(swapped(n, p))
		for i := 0; i < size; i += 1000 {
			for range 3 { // the first one may go without a firehose
				n.Must(q.Add(i).Put(n, byte(i)))
			}
		}
		n.Must(n.Barrier())
		if mem[3000] != 3000&0xff {
			return fmt.Errorf("byte 3000 is %d", mem[3000])
		}
		n.Must(errors.Join(Free(n, p), syscall.Munmap(mem)))
		mem = Must(syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)) // most often at the same place
		r := Must(Register(n, mem))
		n.Must(n.Barrier())
		for i := 0; i < size; i += 1000 {
			for what, err := range map[string]error{
				"Put":      q.Add(i).Put(n, 1),
				"Get":      second(q.Add(i).Get(n)),
				"PutSlice": q.Add(i).PutSlice(n, make([]byte, 100)),
			} {
				if err := wantErr(err, ErrFault); err != nil {
					return fmt.Errorf("%s of byte %d that was unmapped: %w", what, i, err)
				}
			}
		}
		n.Must(n.Barrier())
		n.Must(unchanged(mem))
		n.Must(errors.Join(Free(n, r), syscall.Munmap(mem)))
	}
	return nil
}

// TestUnmappedTooEarly: memory that is gone before Free ends the accesses to it
// with ErrFault, on whichever rank the copy is made, and the job goes on.
func TestUnmappedTooEarly(t *testing.T) {
	everywhere(t, Config{Ranks: 2, PinBucket: segment.PageSize}, unmappedTooEarly)
}

func unmappedTooEarly(n *Node) error {
	const size = 8 * segment.PageSize
	file, err := os.CreateTemp("", "unmapped")
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	for _, how := range []string{"protected", "cut off"} {
		var mem []byte
		if how == "protected" { // as good as unmapped, but nothing else is mapped there
			mem, err = syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		} else if err = file.Truncate(size); err == nil {
			mem, err = syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		}
		if err != nil {
			return err
		}
		p, err := Register(n, mem)
		if err != nil {
			return err
		}
		q, err := swapped(n, p)
		if err != nil {
			return err
		}
		words := asWords(q)
		for i := 0; i < size; i += 1000 {
			for range 3 { // the first one may go without a firehose
				if err := q.Add(i).Put(n, byte(i)); err != nil {
					return err
				}
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if how == "protected" {
			err = syscall.Mprotect(mem, syscall.PROT_NONE)
		} else {
			err = file.Truncate(0)
		}
		if err = errors.Join(err, n.Barrier()); err != nil {
			return err
		}
		for _, at := range []struct {
			whose string
			bytes Ptr[byte]
			words Ptr[uint64]
		}{{"the peer's", q, words}, {"own", p, asWords(p)}} {
			for i := 0; i < size; i += 3000 {
				for what, err := range map[string]error{
					"Put":      at.bytes.Add(i).Put(n, 1),
					"Get":      second(at.bytes.Add(i).Get(n)),
					"PutSlice": at.bytes.Add(i).PutSlice(n, make([]byte, 100)),
					"GetSlice": at.bytes.Add(i).GetSlice(n, make([]byte, min(5000, size-i))),
					"FetchAdd": second(FetchAdd(n, at.words.Add(i/8), 1)),
					"word":     at.words.Add(i/8).Put(n, 1),
				} {
					if err := wantErr(err, ErrFault); err != nil {
						return fmt.Errorf("%s: %s of byte %d of %s memory: %w", how, what, i, at.whose, err)
					}
				}
			}
		}
		// The job goes on.
		if err := n.Barrier(); err != nil {
			return err
		}
		if err := Free(n, p); err != nil {
			return err
		}
		if err := syscall.Munmap(mem); err != nil {
			return err
		}
		good := make([]byte, 100)
		g, err := Register(n, good)
		if err != nil {
			return err
		}
		h, err := swapped(n, g)
		if err == nil {
			err = errors.Join(h.Add(50).Put(n, 50), n.Barrier())
		}
		if err != nil || good[50] != 50 {
			return fmt.Errorf("%s: afterwards: byte %d, %w", how, good[50], err)
		}
		if err := errors.Join(n.Barrier(), Free(n, g)); err != nil {
			return err
		}
	}
	return nil
}

// asWords sees bytes as words.
func asWords(p Ptr[byte]) Ptr[uint64] {
	w, err := Cast[uint64](p)
	if err != nil {
		panic(err)
	}
	return w
}

// TestPtrTo finds the Ptr for memory, and the memory for the Ptr.
func TestPtrTo(t *testing.T) {
	for _, large := range []bool{false, true} {
		cfg := small(2)
		cfg.Large = large
		if err := Run(cfg, func(n *Node) error {
			s := make([]triple, 100)
			p := Must(Register(n, s))
			part := Must(Register(n, s[10:20]))
			seg := Must(Alloc[triple](n, 5))
			insideSeg, _ := seg.Add(3).Local(n)
			for _, c := range []struct {
				q    *triple
				want Ptr[triple]
			}{
				{&s[0], p},
				{&s[99], p.Add(99)},
				{&s[9], p.Add(9)},
				{&s[10], part},
				{&s[19], part.Add(9)},
				{&s[20], p.Add(20)},
				{insideSeg, seg.Add(3)},
				{nil, Ptr[triple]{}},
				{new(triple), Ptr[triple]{}},
			} {
				got, ok := PtrTo(n, c.q)
				if got != c.want || ok == c.want.IsNil() {
					return fmt.Errorf("PtrTo is %v, %v, want %v", got, ok, c.want)
				}
				if back, ok := got.Local(n); ok == c.want.IsNil() || ok && back != c.q {
					return fmt.Errorf("%v is elsewhere", got)
				}
			}
			if f, ok := PtrTo(n, &s[5].b[2]); !ok || f != Field(p.Add(5), func(t *triple) *uint16 { return &t.b[2] }) {
				return fmt.Errorf("PtrTo a field is %v, %v", f, ok)
			}
			// A value of which the end is not registered.
			if _, ok := PtrTo(n, (*[2]triple)(s[98:])); !ok {
				return errors.New("the last two")
			}
			n.Must(Free(n, p))
			if _, ok := PtrTo(n, (*[2]triple)(s[19:])); ok {
				return errors.New("PtrTo beyond the end")
			}
			if _, ok := PtrTo(n, &s[9]); ok {
				return errors.New("PtrTo what is deregistered")
			}
			if _, ok := PtrTo(n, new(string)); ok {
				return errors.New("PtrTo a string")
			}
			return Free(n, part)
		}); err != nil {
			t.Errorf("large %v: %v", large, err)
		}
	}
}

func TestRegisteredPtr(t *testing.T) {
	runN(t, 1, func(n *Node) error {
		p := Must(Register(n, make([]uint32, 10)))
		if s := p.Add(2).String(); s != fmt.Sprintf("0@%#x", p.Offset()+8) {
			return fmt.Errorf("printed as %s", s)
		}
		if !p.NLA().Exposed() || p.Add(7).Sub(p) != 7 || p.Add(7).Add(-7) != p || !p.Less(p.Add(1)) {
			return errors.New("arithmetic")
		}
		lo, hi := p.Words()
		if q, err := MakePtr[uint32](0, p.NLA()); err != nil || q != p || PtrFromWords[uint32](lo, hi) != p || PtrFromUint64[uint32](p.Uint64()) != p {
			return fmt.Errorf("%v, %v", q, err)
		}
		if s, ok := p.LocalSlice(n, 10); !ok || len(s) != 10 {
			return errors.New("LocalSlice")
		}
		if _, ok := p.LocalSlice(n, 11); ok {
			return errors.New("LocalSlice beyond the end")
		}
		if s, ok := p.LocalSlice(n, 0); !ok || len(s) != 0 {
			return errors.New("LocalSlice of nothing")
		}
		return nil
	})
}

// tight is a configuration with next to no room for firehoses.
func tight(ranks int) Config {
	return Config{Ranks: ranks, SegmentSize: 64 << 10, PinBucket: 4096, Pinnable: uint64(2+2*(ranks-1)) * 4096, PinLocal: 2 * 4096}
}

var modelMemory PerRank[[]uint64]

type registration struct {
	From, To int
	Rights   Rights
	Peer     int
}

// made is the memory that a call has registered.
type made struct {
	P   Ptr[uint64]
	Bad bool
}

var callRegister = RegisterCall("test.register", func(n *Node, r registration) made {
	p, err := RegisterFor(n, (*modelMemory.Of(n))[r.From:r.To], r.Rights, r.Peer)
	return made{p, err != nil}
})

var callFree = RegisterCall("test.deregister", func(n *Node, p Ptr[uint64]) bool { return Free(n, p) == nil })

// TestRegisteredAgainstModel has rank 0 use memory of three ranks, itself among
// them, that comes and goes by its order, and plain slices beside it, with hardly
// any room for firehoses.
func TestRegisteredAgainstModel(t *testing.T) {
	const ranks, words = 3, 6000
	everywhere(t, tight(ranks), func(n *Node) error {
		mine := make([]uint64, words)
		*modelMemory.Of(n) = mine
		if err := n.Barrier(); err != nil || n.Rank() != 0 {
			return err
		}
		var model [ranks][words]uint64
		rapid.Check(t, func(t *rapid.T) {
			type window struct {
				registration
				p    Ptr[uint64]
				rank int
			}
			var live, gone []window
			defer func() { // rapid tries again when something has failed
				for _, w := range live {
					_, _ = callFree.Call(n, w.rank, w.p)
				}
			}()
			check := func(what string, err error) {
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			// span is a place in some window, what the model has there, and
			// whether it may be accessed.
			span := func(t *rapid.T, need Rights, most int) (p Ptr[uint64], at []uint64, may bool) {
				if len(live) == 0 {
					t.Skip()
				}
				w := rapid.SampledFrom(live).Draw(t, "window")
				from := rapid.IntRange(w.From, w.To-1).Draw(t, "from")
				to := rapid.IntRange(from+1, min(w.To, from+most)).Draw(t, "to")
				if rapid.IntRange(0, 9).Draw(t, "beyond") == 0 {
					return w.p.Add(w.To - 1 - w.From), make([]uint64, 2), false
				}
				may = w.rank == 0 || w.Rights&need == need && w.Peer <= 0
				return w.p.Add(from - w.From), model[w.rank][from:to], may
			}
			verdict := func(what string, may bool, err error) bool {
				if !may {
					err = wantErr(err, ErrFault)
				}
				check(what, err)
				return may
			}
			t.Repeat(map[string]func(*rapid.T){
				"register": func(t *rapid.T) {
					w := window{rank: rapid.IntRange(0, ranks-1).Draw(t, "rank")}
					w.From = rapid.IntRange(0, words-1).Draw(t, "from")
					w.To = rapid.IntRange(w.From+1, words).Draw(t, "to")
					w.Rights = Rights(rapid.SampledFrom([]int{1, 2, 3, 7, 7, 7}).Draw(t, "rights"))
					w.Peer = rapid.SampledFrom([]int{AnyPeer, AnyPeer, 0, 1}).Draw(t, "peer")
					m, err := callRegister.Call(n, w.rank, w.registration)
					check("register", err)
					if m.Bad {
						t.Fatalf("cannot register %+v", w)
					}
					w.p = m.P
					live = append(live, w)
				},
				"deregister": func(t *rapid.T) {
					if len(live) == 0 {
						t.Skip()
					}
					i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
					w := live[i]
					ok, err := callFree.Call(n, w.rank, w.p)
					check("deregister", err)
					if !ok {
						t.Fatalf("cannot deregister %+v", w)
					}
					live = slices.Delete(live, i, i+1)
					gone = append(gone, w)
				},
				"use what is gone": func(t *rapid.T) {
					if len(gone) == 0 {
						t.Skip()
					}
					w := rapid.SampledFrom(gone).Draw(t, "window")
					for _, v := range live { // addresses may have become another's
						if v.rank == w.rank && v.p.NLA() <= w.p.NLA() && w.p.NLA() < v.p.Add(v.To-v.From).NLA() {
							t.Skip()
						}
					}
					verdict("put", false, w.p.Put(n, 1))
					_, err := w.p.Get(n)
					verdict("get", false, err)
				},
				"put": func(t *rapid.T) {
					p, at, may := span(t, RightWrite, 1)
					v := rapid.Uint64().Draw(t, "value")
					if verdict("put", may, p.PutSlice(n, slices.Repeat([]uint64{v}, len(at)))) {
						at[0] = v
					}
				},
				"get": func(t *rapid.T) {
					p, at, may := span(t, RightRead, 1)
					got := make([]uint64, len(at))
					if verdict("get", may, p.GetSlice(n, got)) && got[0] != at[0] {
						t.Fatalf("got %d, want %d", got[0], at[0])
					}
				},
				"put slice": func(t *rapid.T) {
					p, at, may := span(t, RightWrite, words)
					src := slices.Repeat([]uint64{rapid.Uint64().Draw(t, "value")}, len(at))
					nb := rapid.Bool().Draw(t, "NB")
					var err error
					if nb {
						err = sync2(n)(p.PutSliceNB(n, src))
					} else {
						err = p.PutSlice(n, src)
					}
					if verdict("put slice", may, err) {
						copy(at, src)
					}
				},
				"get slice": func(t *rapid.T) {
					p, at, may := span(t, RightRead, words)
					got := make([]uint64, len(at))
					nb := rapid.Bool().Draw(t, "NB")
					var err error
					if nb {
						err = sync2(n)(p.GetSliceNB(n, got))
					} else {
						err = p.GetSlice(n, got)
					}
					if verdict("get slice", may, err) && !slices.Equal(got, at) {
						t.Fatalf("got other than was put")
					}
				},
				"fetch add": func(t *rapid.T) {
					p, at, may := span(t, RightAtomic, 1)
					if len(at) > 1 {
						p = p.Add(1) // the one beyond
					}
					v := rapid.Uint64().Draw(t, "value")
					old, err := FetchAdd(n, p, v)
					if verdict("fetch add", may, err) {
						if old != at[0] {
							t.Fatalf("there was %d, want %d", old, at[0])
						}
						at[0] += v
					}
				},
				"several at once": func(t *rapid.T) {
					var hs []Handle
					under := map[*uint64]bool{} // puts to one place would race
					for range rapid.IntRange(1, 20).Draw(t, "count") {
						p, at, may := span(t, RightWrite, 1)
						if !may || len(at) != 1 || under[&at[0]] {
							continue
						}
						under[&at[0]] = true
						h, err := p.PutNB(n, at[0])
						check("put", err)
						hs = append(hs, h)
					}
					check("sync", n.SyncAll(hs))
				},
				"": func(t *rapid.T) {
					if !slices.Equal(mine, model[0][:]) {
						t.Fatal("the own memory is another")
					}
					var s firehose.Stats
					n.FirehoseStats(&s)
					if most := tight(ranks).Pinnable; s.PeakPinned > most {
						t.Fatalf("%d bytes were pinned of %d", s.PeakPinned, most)
					}
				},
			})
		})
		return nil
	})
}

// TestManyGoroutinesUseRegistered: goroutines of all ranks add to counters of all
// ranks, with more buckets than there is room for; memory that is not registered
// for long comes and goes beside.
func TestManyGoroutinesUseRegistered(t *testing.T) {
	const ranks, workers, adds, counters = 3, 3, 60, 4000
	everywhere(t, tight(ranks), func(n *Node) error {
		s := make([]uint64, counters)
		p := Must(Register(n, s))
		all := Must(AllGather(n, p))
		p = Must(Register(n, make([]uint64, counters))) // which no rank writes
		still := Must(swapped(n, p))
		var left atomic.Int32
		var failed atomic.Pointer[error]
		left.Store(workers)
		for w := range workers {
			conduits.Go(n.Layers().Conduit, func() {
				if err := func() error {
					x := uint64(n.Rank()*workers + w + 1)
					for k := range adds {
						x = x*6364136223846793005 + 1442695040888963407
						at := all[x>>33%ranks].Add(int(x >> 40 % counters))
						if _, err := FetchAdd(n, at, 1); err != nil {
							return err
						}
						if k%10 == 0 {
							buf := make([]uint64, counters)
							if err := still.GetSlice(n, buf); err != nil {
								return err
							}
							short, err := Register(n, buf)
							if err != nil {
								return err
							}
							if err := short.Add(counters/2).Put(n, 1); err != nil {
								return err
							}
							if err := Free(n, short); err != nil {
								return err
							}
						}
					}
					return nil
				}(); err != nil {
					failed.Store(&err)
				}
				left.Add(-1)
				n.Wake(n.Rank())
			})
		}
		n.Must(n.Wait(func() bool { return left.Load() == 0 }))
		if e := failed.Load(); e != nil {
			return *e
		}
		n.Must(n.Barrier())
		sum := uint64(0)
		for _, v := range s {
			sum += v
		}
		total := Must(AllReduce(n, sum, Sum[uint64]))
		if total != ranks*workers*adds {
			return fmt.Errorf("counted to %d", total)
		}
		return nil
	})
}

// What ranks may pin must be equal: each rank computes the shares of all.
func TestRanksDifferInPins(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"pinnable": {func(c *Config) { c.Pinnable = 3 << 20 }, []string{"Config.Pinnable", "-pinnable", "ARGON_PINNABLE", "3145728 on rank 1"}},
		"local":    {func(c *Config) { c.PinLocal = 1 << 20 }, []string{"Config.PinLocal", "-pin-local", "ARGON_PIN_LOCAL", "1048576 on rank 1"}},
		"bucket":   {func(c *Config) { c.PinBucket = 4096 }, []string{"Config.PinBucket", "-pin-bucket", "ARGON_PIN_BUCKET", "4096 on rank 1", "65536 on rank 0"}},
		"large":    {func(c *Config) { c.Large = true }, []string{"Config.Large", "-segment-large", "ARGON_SEGMENT_LARGE", "1 on rank 1", "0 on rank 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			eps, err := conduitOf(t, "shm").Local(3, conduits.Config{MaxSegment: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			cfg := small(3)
			cfg.EnsureDefaults()
			nodes := make([]*Node, len(eps))
			var errs [3]error
			var compared sync.WaitGroup // a rank that hears of another's failure before says that
			compared.Add(len(eps))
			for i, ep := range eps {
				nodes[i] = newNode(ep, &run{cfg: new(Config).EnsureDefaults()})
			}
			conduits.Run(eps, func(i int) {
				cfg := cfg
				if i == 1 {
					c.change(&cfg)
				}
				n := nodes[i]
				errs[i] = n.attach(&cfg)
				compared.Done()
				compared.Wait()
				if errs[i] != nil && n.ep.Err() == nil {
					n.ep.Fail(errs[i])
				}
				if err := errors.Join(n.withdraw(), n.ep.Close()); err != nil {
					t.Error(err)
				}
			})
			for i, err := range errs {
				if err := wantErr(err, ErrBadArg, c.want...); err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
			}
		})
	}
}

func conduitOf(t *testing.T, name string) conduits.Conduit {
	c, err := conduits.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPinsOfConfig: what cannot be is refused with value, limit and knob.
func TestPinsOfConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		kind error
		want []string
	}{
		{Config{PinBucket: 5000}, ErrBadArg, []string{"Config.PinBucket", "5000", "4096", "-pin-bucket", "ARGON_PIN_BUCKET"}},
		{Config{PinBucket: 2048}, ErrBadArg, []string{"2048", "-pin-bucket"}},
		{Config{PinBucket: 1 << 31}, ErrBadArg, []string{"2147483648", "1073741824", "-pin-bucket"}},
		{Config{Pinnable: 1 << 40}, ErrBadArg, []string{"1099511627776", "548682072064", "-pinnable", "ARGON_PINNABLE"}},
		{Config{PinLocal: 1 << 40}, ErrBadArg, []string{"1099511627776", "-pin-local", "ARGON_PIN_LOCAL"}},
		{Config{Pinnable: 1 << 20, PinLocal: 2 << 20}, ErrBadArg, []string{"2097152", "1048576", "-pin-local", "-pinnable"}},
		{Config{Pinnable: 64 << 10}, ErrResource, []string{"65536", "3 ranks", "-pinnable", "ARGON_PINNABLE"}},
		{Config{Pinnable: 1 << 20, PinLocal: 1 << 20}, ErrResource, []string{"1048576", "-pin-local"}},
		{Config{Pinnable: 8192, PinBucket: 4096}, ErrResource, []string{"8192", "4096", "-pin-bucket"}},
	} {
		c.cfg.Ranks = 3
		err := Run(c.cfg, func(*Node) error { return nil })
		if err := wantErr(err, c.kind, c.want...); err != nil {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	var c Config
	env := map[string]string{"ARGON_SEGMENT_LARGE": "1", "ARGON_PINNABLE": "3M", "ARGON_PIN_LOCAL": "1M", "ARGON_PIN_BUCKET": "8K"}
	if err := (overridden{&c}).FromEnv(func(k string) string { return env[k] }, nil); err != nil || !c.Large || c.Pinnable != 3<<20 || c.PinLocal != 1<<20 || c.PinBucket != 8<<10 {
		t.Errorf("%+v, %v", c, err)
	}
	env = map[string]string{"ARGON_SEGMENT_LARGE": "perhaps", "ARGON_PINNABLE": "x", "ARGON_PIN_LOCAL": "-1", "ARGON_PIN_BUCKET": "1Q"}
	err := overridden{&c}.FromEnv(func(k string) string { return env[k] }, nil)
	for k, v := range env {
		if err := wantErr(err, ErrBadArg, fmt.Sprintf("%s=%q", k, v)); err != nil {
			t.Error(err)
		}
	}
}

// TestLarge has everything in segments that are reached by firehoses.
func TestLarge(t *testing.T) {
	everywhere(t, Config{Ranks: 3, Large: true, SegmentSize: 8 << 20}, func(n *Node) error {
		if n.Usage().Size != 8<<20 || n.Layers().Conduit.SegmentSize(n.Rank()) != 0 {
			return fmt.Errorf("%d bytes of a heap and %d attached", n.Usage().Size, n.Layers().Conduit.SegmentSize(n.Rank()))
		}
		return everything(n)
	})
	tight := tight(3)
	tight.Large, tight.SegmentSize = true, 8<<20
	if err := Run(tight, everything); err != nil {
		t.Errorf("with little room: %v", err)
	}
}

// A large segment costs what is touched of it, and may be larger than memory.
func TestLargeIsReserved(t *testing.T) {
	everywhere(t, Config{Ranks: 2, Large: true, SegmentSize: 40 << 30}, func(n *Node) error {
		a := Must(NewArray[uint64](n, 8<<30, Blocked)) // 32 GiB a rank
		if p := a.At(0); !p.NLA().Exposed() || !strings.HasPrefix(p.String(), "0@") {
			return fmt.Errorf("element 0 is %v", p)
		}
		other := 1 - n.Rank()
		for k := range 50 {
			i := other*(4<<30) + k*80_000_001
			n.Must(a.Put(n, i, uint64(k+1)))
		}
		n.Must(n.Barrier())
		mine := a.LocalSlice(n)
		if len(mine) != 4<<30 {
			return fmt.Errorf("%d local elements", len(mine))
		}
		for k := range 50 {
			if mine[k*80_000_001] != uint64(k+1) {
				return fmt.Errorf("element %d is %d", k*80_000_001, mine[k*80_000_001])
			}
		}
		if _, err := NewSlice[uint64](n, 2<<30); !errors.Is(err, ErrResource) {
			return fmt.Errorf("16 GiB more: %v", err)
		}
		return a.Delete(n)
	})
}

// A rank that fails takes what it has registered along: others are told of it,
// and its memory is its own again.
func TestOwnerOfRegisteredFails(t *testing.T) {
	for _, name := range []string{"shm", "hidden", "udp", "hybrid"} {
		s := make([]uint64, 1000)
		cfg := small(2)
		cfg.Conduit = name
		err := Run(cfg, func(n *Node) error {
			var p Ptr[uint64]
			if n.Rank() == 1 {
				var err error
				if p, err = Register(n, s); err != nil {
					return err
				}
			}
			p = Must(Broadcast(n, 1, p))
			if n.Rank() == 1 {
				n.Must(n.Wait(func() bool { return atomic.LoadUint64(&s[0]) > 10 }))
				return errTest
			}
			for {
				Must(FetchAdd(n, p, 1))
			}
		})
		var re *RankError
		if !errors.As(err, &re) || re.Rank != 1 || !errors.Is(err, errTest) {
			t.Errorf("%s: %v", name, err)
		}
		clear(s) // no rank writes any more: the race detector looks
	}
}

// TestRegisteredDiagnosis: what SIGQUIT prints tells of pins.
func TestRegisteredDiagnosis(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		if s := (*member)(n).Diagnosis(); strings.Contains(s, "pinned") {
			return fmt.Errorf("without pins: %s", s)
		}
		n.Must(n.Barrier())
		p := Must(Register(n, make([]uint64, 100_000)))
		q := Must(swapped(n, p))
		for range 10 {
			n.Must(q.GetSlice(n, make([]uint64, 5000)))
		}
		n.Must(n.Barrier())
		l := n.Layers().Firehose.Limits()
		for _, want := range []string{fmt.Sprintf("pinned %d bytes of %d", l.Bucket, uint64(l.Budget)*l.Bucket), "holds 1 firehoses", "1 misses"} {
			if s := (*member)(n).Diagnosis(); !strings.Contains(s, want) {
				return fmt.Errorf("diagnosis %q lacks %q", s, want)
			}
		}
		return nil
	})
}

// An address that no rank could have given is refused, not followed.
func TestMadeUpAddresses(t *testing.T) {
	everywhere(t, small(2), func(n *Node) error {
		Must(Register(n, make([]byte, 100)))
		n.Must(n.Barrier())
		if n.Rank() == 0 {
			for _, a := range []segment.NLA{1, segment.PageSize, segment.AttachBase - 1, segment.AttachBase + 1<<20, segment.NLALimit - 8, segment.ExposedBase, segment.ExposedBase + 1<<38, segment.ExposedLimit - 8} {
				for rank := range 2 {
					p := Must(MakePtr[[2]uint64](rank, a))
					if err := wantErr(p.Put(n, [2]uint64{}), ErrBadArg); err != nil {
						return fmt.Errorf("put to %v: %w", p, err)
					}
					if _, err := p.Get(n); !errors.Is(err, ErrBadArg) {
						return fmt.Errorf("get from %v: %v", p, err)
					}
				}
			}
		}
		return n.Barrier()
	})
}

// TestRegisteredProcesses: the same between processes, with and without room for
// firehoses, and with segments that are reached by them.
func TestRegisteredProcesses(t *testing.T) {
	little := []string{"ARGON_PIN_BUCKET=4K", "ARGON_PINNABLE=24K", "ARGON_PIN_LOCAL=8K"}
	for _, c := range []struct {
		conduit, program string
		env              []string
		large            bool
	}{
		{"shm", "registered", nil, false},
		{"shm", "registered", little, true},
		{"shm", "unmapped", little, false},
		{"shm", "unmapped early", little, false},
		{"shm", "unmapped early", []string{"ARGON_SHM_PROCESS_VM=0"}, false}, // the owner is asked
		{"udp", "unmapped early", little, false},
		{"shm", "all", nil, true},
		{"udp", "registered", little, false},
		{"udp", "all", nil, true},
		{"hybrid", "registered", nil, true},
	} {
		if testing.Short() && c.conduit != "shm" {
			continue
		}
		t.Run(fmt.Sprintf("%s %s %v %v", c.conduit, c.program, c.env != nil, c.large), func(t *testing.T) {
			testjob.RunConfig(t, 3, c.program, testjob.Config{Env: c.env, Launch: func(l *launch.Config) { l.Conduit, l.Large = c.conduit, c.large }}).Want(t, 0)
		})
	}
}

func TestProcessesDifferInPins(t *testing.T) {
	r := testjob.Run(t, 3, "pins").Want(t, 1)
	// A rank that hears first that another one has failed says that.
	if s := r.Stderr[0] + r.Stderr[1] + r.Stderr[2]; !strings.Contains(s, "Config.Pinnable (-pinnable, ARGON_PINNABLE)") || !strings.Contains(s, "7340032 on rank 1") {
		t.Errorf("ranks say %q", s)
	}
}

// ownerIsKilled has rank 1 die while others use what it has registered.
func ownerIsKilled(n *Node) error {
	s := make([]uint64, 1<<16)
	p, err := Register(n, s)
	if err != nil {
		return err
	}
	all, err := AllGather(n, p)
	if err != nil {
		return err
	}
	if n.Rank() == 1 {
		if err := n.Wait(func() bool { return atomic.LoadUint64(&s[0]) > 10 }); err != nil {
			return err
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	for i := 0; ; i = (i + 12345) % len(s) {
		if _, err := FetchAdd(n, all[1], 1); err != nil {
			return err
		}
		if err := all[1].Add(i).GetSlice(n, s[:min(1000, len(s)-i)]); err != nil {
			return err
		}
	}
}

func TestOwnerOfRegisteredIsKilled(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "hybrid"} {
		for _, env := range [][]string{nil, {"ARGON_PIN_BUCKET=4K", "ARGON_PINNABLE=24K", "ARGON_PIN_LOCAL=8K"}} {
			if testing.Short() && env != nil {
				continue
			}
			r := testjob.RunConfig(t, 3, "lost", testjob.Config{Env: env, Launch: func(l *launch.Config) { l.Conduit, l.Large = conduit, env != nil }}).Want(t, 128+9)
			for _, rank := range []int{0, 2} {
				if st := r.Ranks[rank].Status; st != jobenv.StatusPeerFailed && st != 128+int(syscall.SIGTERM) {
					t.Errorf("%s %v: rank %d ended with status %d%s", conduit, env, rank, st, r.Output())
				}
			}
		}
	}
}

// TestLargeIsLeft has a rank leave a job whose other ranks still use its segment,
// while others of its goroutines poll: what they serve is there, or refused.
func TestLargeIsLeft(t *testing.T) {
	stop := errors.New("stop")
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		var over atomic.Bool
		var polls sync.WaitGroup
		c := tight(3)
		c.Conduit, c.Large, c.SegmentSize = "shm", true, 1<<20
		err := Run(c, func(n *Node) error {
			const most = 1 << 14
			p := Must(NewSlice[uint64](n, most))
			n.Must(n.Barrier())
			if n.Rank() == 0 {
				for range 2 {
					polls.Go(func() {
						for !over.Load() {
							n.e.Poll()
						}
					})
				}
				for range 1000 {
					n.e.Poll()
				}
				return stop
			}
			buf := make([]uint64, 300)
			for k := 0; ; k++ {
				n.Must(p.On(0).Add(k*7919%(most-len(buf))).PutSlice(n, buf))
			}
		})
		over.Store(true)
		polls.Wait()
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
}

// TestLockable: a rank that may not lock what it is to lock is told so at the start.
func TestLockable(t *testing.T) {
	for _, c := range []struct {
		ranks         int
		budget, limit uint64
		beyond, ok    bool
	}{
		{1, 1 << 20, 1 << 20, false, true},
		{2, 1 << 20, 1<<21 - 1, false, false},
		{2, 1 << 20, 1<<21 - 1, true, true},
		{2, 1 << 20, 1 << 21, false, true},
		{4, 1 << 62, math.MaxUint64, false, false},
		{1, 1 << 62, math.MaxUint64, false, true},
		{1, 4096, 0, false, false},
	} {
		err := lockable(c.ranks, c.budget, c.limit, c.beyond)
		if !c.ok {
			err = wantErr(err, ErrResource, fmt.Sprint(c.ranks, " ranks"), fmt.Sprint(c.budget), fmt.Sprint(c.limit), "ulimit -l", "ARGON_PINNABLE", "ARGON_PIN_LOCK")
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestPinLock: what firehoses reach is locked in memory if Config says so.
func TestPinLock(t *testing.T) {
	const bucket = segment.PageSize
	if limit := sys.LockLimit(); limit < 2*16*bucket {
		t.Skipf("RLIMIT_MEMLOCK is %d", limit)
	}
	for i, lock := range []bool{false, true, true} {
		host := uint64(i/2) * 64 * bucket // what the ranks of all jobs share in the last round
		everywhere(t, Config{Ranks: 2, PinLock: lock, PinBucket: bucket, Pinnable: 16 * bucket, PinHost: host}, func(n *Node) error {
			p := Must(Register(n, make([]uint64, bucket/4)))
			q := Must(swapped(n, p))
			for range 4 { // the first one may go without a firehose
				n.Must(q.Put(n, 1))
			}
			n.Must(n.Barrier())
			u := Must(n.ep.ATU())
			var s segment.ATUStats
			u.Stats(&s)
			if s.Bytes == 0 || (s.Locked > 0) != lock {
				return fmt.Errorf("%d of %d bytes are locked", s.Locked, s.Bytes)
			}
			return n.Barrier()
		})
	}
}
