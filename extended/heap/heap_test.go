package heap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/loop"
	_ "github.com/argon-go/argon/conduits/shm"
	_ "github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/race"
	"github.com/argon-go/argon/internal/testjob"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) { testjob.Main(m, nil) }

var networks = []string{"shm", "loop", "sim"}

// The heaps of the tests; that of rank r is so many pages larger.
const (
	heapBase = segment.AttachBase + 4096
	heapSize = 1 << 14
)

func sizeOf(rank int) uint64 { return heapSize + uint64(rank)*segment.PageSize }

// member is a rank of a job.
type member struct {
	*Heap
	b *barrier.Barrier
}

// meet is a barrier.
func (m *member) meet() error { return m.b.Barrier(0, 0) }

// run runs body as so many ranks of this process and returns their errors.
func run(t testjob.TB, network string, ranks int, body func(m *member) error) []error {
	t.Helper()
	return testjob.Local(t, network, ranks, func(ep conduits.Endpoint) error { return join(ep, body) })
}

// must is run of what has no error.
func must(t testjob.TB, network string, ranks int, body func(m *member) error) {
	t.Helper()
	testjob.MustLocal(t, network, ranks, func(ep conduits.Endpoint) error { return join(ep, body) })
}

// errLeft is of a body that has closed its endpoint.
var errLeft = errors.New("the rank has left")

func join(ep conduits.Endpoint, body func(m *member) error) error {
	own, err := segment.NewHeap(heapBase, sizeOf(ep.Rank()))
	if err != nil {
		return err
	}
	m := &member{New(own), barrier.New()}
	e, err := am.Attach(ep, am.Config{Runtime: append(m.b.Handlers(), m.Handlers()...)})
	if err == nil {
		err = m.b.Bind(e)
	}
	if err != nil {
		return err
	}
	m.Bind(e)
	if err := m.meet(); err != nil {
		return err
	}
	if err := body(m); err != nil {
		if errors.Is(err, errLeft) {
			return nil
		}
		return err
	}
	return m.meet()
}

// block is one that a rank has allocated and none has begun to free.
type block struct {
	rank int
	at   segment.NLA
	size uint64
}

// model is what all ranks have allocated.
type model struct {
	mu     sync.Mutex
	blocks []block
}

// add notes a new block, which must lie in the heap of its rank and overlap none.
func (m *model) add(b block) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.at < heapBase || b.at+segment.NLA(b.size) > heapBase+segment.NLA(sizeOf(b.rank)) || b.at%segment.MinAlign != 0 || b.size >= segment.CacheLine && b.at%segment.CacheLine != 0 {
		return fmt.Errorf("%+v is not aligned or not in the heap", b)
	}
	for _, o := range m.blocks {
		if o.rank == b.rank && o.at < b.at+segment.NLA(b.size) && b.at < o.at+segment.NLA(o.size) {
			return fmt.Errorf("%+v overlaps %+v", b, o)
		}
	}
	m.blocks = append(m.blocks, b)
	return nil
}

// remove takes one of the blocks, if there is any.
func (m *model) remove(rnd *rand.Rand) (block, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := len(m.blocks)
	if k == 0 {
		return block{}, false
	}
	i := rnd.IntN(k)
	b := m.blocks[i]
	m.blocks[i] = m.blocks[k-1]
	m.blocks = m.blocks[:k-1]
	return b, true
}

// goroutines runs f(0..k-1) as goroutines of m's rank and returns their errors.
func (m *member) goroutines(k int, f func(i int) error) error {
	var left atomic.Int32
	all := make([]error, k)
	left.Store(int32(k))
	ep := m.e.Conduit()
	for i := range k {
		conduits.Go(ep, func() {
			all[i] = f(i)
			left.Add(-1)
			ep.Wake(ep.Rank())
		})
	}
	if err := m.e.Wait(nil, func() bool { return left.Load() == 0 }); err != nil {
		return err
	}
	return errors.Join(all...)
}

// TestModel allocates and frees from all ranks, and several goroutines of each, at once:
// no two blocks overlap, and when all are freed the heaps are one block again.
func TestModel(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
				threads := rapid.IntRange(1, 3).Draw(t, "goroutines")
				steps := rapid.IntRange(1, 60).Draw(t, "steps")
				frees := rapid.IntRange(0, 60).Draw(t, "frees of a hundred")
				most := rapid.SampledFrom([]uint64{100, 1000, 9000}).Draw(t, "most bytes")
				seed := rapid.Uint64().Draw(t, "seed")
				var all model
				must(t, network, ranks, func(m *member) error {
					err := m.goroutines(threads, func(i int) error {
						rnd := rand.New(rand.NewPCG(seed, uint64(m.rank*10+i)))
						for range steps {
							if rnd.IntN(100) < frees {
								if b, ok := all.remove(rnd); ok {
									if err := m.Free(b.rank, b.at); err != nil {
										return err
									}
								}
								continue
							}
							b := block{rank: rnd.IntN(ranks), size: 1 + rnd.Uint64N(most)}
							var err error
							if b.at, err = m.Alloc(b.rank, b.size); err == nil {
								err = all.add(b)
							} else if errors.Is(err, ErrResource) {
								err = nil
							}
							if err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						return err
					}
					rnd := rand.New(rand.NewPCG(seed, uint64(m.rank)))
					for {
						b, ok := all.remove(rnd)
						if !ok {
							break
						}
						if err := m.Free(b.rank, b.at); err != nil {
							return err
						}
					}
					if err := m.meet(); err != nil {
						return err
					}
					if u := m.Own().Usage(); u.Used != 0 || u.Largest != sizeOf(m.rank) || u.Frees != u.Allocs {
						return fmt.Errorf("when all is freed: %+v", u)
					}
					return nil
				})
			})
		})
	}
}

// TestRefused: what is wrong is said in the same words by the own heap and by another
// rank's.
func TestRefused(t *testing.T) {
	for _, network := range networks {
		must(t, network, 3, func(m *member) error {
			if m.rank != 1 {
				return nil
			}
			for _, rank := range []int{1, 2} {
				at, err := m.Alloc(rank, 200)
				if err != nil {
					return err
				}
				whole := sizeOf(rank)
				alloc := func(size uint64) func() error {
					return func() error { _, err := m.Alloc(rank, size); return err }
				}
				free := func(at segment.NLA) func() error { return func() error { return m.Free(rank, at) } }
				for i, x := range []struct {
					f     func() error
					kind  error
					words []string
				}{
					{alloc(0), ErrBadArg, []string{"heap: Alloc of 0 bytes"}},
					{alloc(whole + 1), ErrResource, []string{fmt.Sprint(whole + 1), fmt.Sprintf("largest free block %d, free %d of %d", whole-256, whole-256, whole), "ARGON_SEGMENT"}},
					{alloc(whole), ErrResource, []string{fmt.Sprintf("largest free block %d", whole-256)}},
					{alloc(1<<64 - 1), ErrResource, []string{"Alloc of 18446744073709551615 bytes", "-segment"}},
					{alloc(1 << 63), ErrResource, []string{"9223372036854775808"}},
					{free(at + 16), segment.ErrNotAllocated, []string{"it lies inside the one of 256 bytes"}},
					{free(at - 16), segment.ErrNotAllocated, []string{"none ever began there"}},
					{free(heapBase - 16), segment.ErrNotAllocated, []string{"the heap has addresses"}},
					{free(0), segment.ErrNotAllocated, []string{"the heap has addresses"}},
					{free(at), nil, nil},
					{free(at), segment.ErrDoubleFree, []string{"heap: Free of " + at.String(), "freed already"}},
					{alloc(whole), nil, nil},
				} {
					err := x.f()
					if x.kind == nil && err == nil {
						continue
					}
					if x.kind == nil || !errors.Is(err, x.kind) || !errors.Is(err, ErrBadArg) && !errors.Is(err, ErrResource) {
						return fmt.Errorf("%s, rank %d: %d: %w", network, rank, i, err)
					}
					for _, w := range append(x.words, fmt.Sprintf("on rank %d: ", rank)) {
						if !strings.Contains(err.Error(), w) {
							return fmt.Errorf("%s, rank %d: %d: no %q in %w", network, rank, i, w, err)
						}
					}
				}
			}
			for _, rank := range []int{-1, 3} {
				_, err := m.Alloc(rank, 8)
				for _, err := range []error{err, m.Free(rank, heapBase)} {
					if !errors.Is(err, ErrBadArg) || !strings.HasSuffix(err.Error(), fmt.Sprintf("on rank %d: rank out of range: the job has ranks 0..2", rank)) {
						return fmt.Errorf("rank %d: %w", rank, err)
					}
				}
			}
			return nil
		})
	}
}

// TestFailure: an owner that fails, or leaves, ends the calls that wait for it with an
// error that names it.
func TestFailure(t *testing.T) {
	errTest := errors.New("a reason")
	for _, network := range networks {
		for how, leave := range map[string]func(m *member) error{
			"fails":  func(*member) error { return errTest },
			"leaves": func(m *member) error { return errors.Join(m.e.Conduit().Close(), errLeft) },
		} {
			var begun atomic.Int32
			all := run(t, network, 3, func(m *member) error {
				if m.rank == 1 {
					// Not before the others are out of the barrier.
					err := m.e.Wait(nil, func() bool { return begun.Load() == 2 })
					return errors.Join(err, leave(m))
				}
				begun.Add(1)
				m.e.Conduit().Wake(1)
				for { // until there is no answer any more
					at, err := m.Alloc(1, 16)
					if err == nil {
						err = m.Free(1, at)
					}
					if err != nil {
						return err
					}
				}
			})
			for _, r := range []int{0, 2} {
				var p *PeerError
				if err := all[r]; !errors.As(err, &p) || p.Rank != 1 && p.Rank != 2-r || !errors.Is(err, ErrPeer) || !strings.HasPrefix(err.Error(), "heap: ") {
					t.Errorf("%s: rank 1 %s; rank %d gets %v", network, how, r, err)
				}
			}
		}
	}
}

// TestInHandler: a handler may use the heap of its own rank.
func TestInHandler(t *testing.T) {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		t.Fatal(err)
	}
	eps, err := shm.Local(1, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := segment.NewHeap(heapBase, heapSize)
	if err != nil {
		t.Fatal(err)
	}
	h, done := New(own), false
	e, err := am.Attach(eps[0], am.Config{Runtime: h.Handlers(), Handlers: []am.Entry{{Index: am.FirstClient, Name: "use", Fn: func(*am.Token, []uint32, []byte) {
		at, err := h.Alloc(0, 8)
		if err = errors.Join(err, h.Free(0, at)); err != nil {
			t.Error(err)
		}
		done = true
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	h.Bind(e)
	if err := errors.Join(e.RequestShort(0, am.FirstClient), e.Wait(nil, func() bool { return done }), eps[0].Close()); err != nil {
		t.Error(err)
	}
}

func TestUnbound(t *testing.T) {
	h := New(nil)
	if _, err := h.Alloc(0, 8); !errors.Is(err, ErrNotInit) || !strings.Contains(err.Error(), "call Bind") {
		t.Error(err)
	}
	if err := h.Free(0, heapBase); !errors.Is(err, ErrNotInit) {
		t.Error(err)
	}
	if u := h.Own().Usage(); u.Size != 0 {
		t.Errorf("%+v", u)
	}
}

// TestForged: answers to no call, to one that is over, of another rank and with no
// status change nothing.
func TestForged(t *testing.T) {
	must(t, "shm", 2, func(m *member) error {
		if m.rank == 1 {
			return nil
		}
		p := m.openCall(1, false, 8)
		text := []byte("a\nb")
		for _, x := range []struct {
			src  int
			args []uint32
		}{
			{1, []uint32{p.slot + 1, p.use, 0, 1, 0}},
			{1, []uint32{p.slot, p.use + 1, 0, 1, 0}},
			{0, []uint32{p.slot, p.use, 0, 1, 0}},
		} {
			m.note(x.src, x.args, text)
			if p.answered {
				return fmt.Errorf("%v of rank %d has been taken for an answer", x.args, x.src)
			}
		}
		m.note(1, []uint32{p.slot, p.use, 98, 0, 0}, text)
		m.note(1, []uint32{p.slot, p.use, 0, 1, 0}, nil) // a second answer
		if _, err := m.closeCall(p); !p.answered || !errors.Is(err, ErrBadArg) || strings.Contains(err.Error(), "\n") {
			return fmt.Errorf("a status that there is not: %w", err)
		}
		late := []uint32{p.slot, p.use - 1, 0, 1, 0}
		if p = m.openCall(1, false, 8); p.slot != late[0] {
			return fmt.Errorf("slot %d, not %d", p.slot, late[0])
		}
		if m.note(1, late, nil); p.answered {
			return errors.New("an answer to the call before has been taken")
		}
		return nil
	})
}

func TestNothingAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has sync.Pool drop at random what it is given")
	}
	must(t, "shm", 2, func(m *member) error {
		if m.rank == 1 {
			return nil
		}
		var failed error
		for _, rank := range []int{0, 1} {
			if a := testing.AllocsPerRun(200, func() {
				at, err := m.Alloc(rank, 40)
				if err == nil {
					err = m.Free(rank, at)
				}
				if err != nil {
					failed = err
				}
			}); a != 0 {
				return fmt.Errorf("%v allocations for a block of rank %d", a, rank)
			}
		}
		return failed
	})
}

func BenchmarkAllocFree(b *testing.B) {
	for _, rank := range []int{0, 1} {
		b.Run(fmt.Sprintf("rank%d", rank), func(b *testing.B) {
			must(b, "shm", 2, func(m *member) error {
				for i := 0; m.rank == 0 && i < b.N; i++ {
					at, err := m.Alloc(rank, 40)
					if err == nil {
						err = m.Free(rank, at)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
