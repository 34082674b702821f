package traffic

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Tables begins the names of traffic that is made of published tables, where a file is expected.
const Tables = "npb:"

// NPB is the traffic of a program of the NAS parallel benchmarks, version 2.3, as the tables of calls by
// power of two of their size have it that Seifert, Balkanski and Rehm (2000) made by MPI's profiling interface (I to IV). what
// is PROGRAM.CLASS.TASKS, such as "is.B.8"; ep has no class, as "ep.8".
//
//   - is: 11 times an all-reduce of 8 KiB, an all-to-all of 4 bytes, and one of what table II
//     says, each message of it; a reduce of 4 and of 8 bytes, and 4 bytes to the next task. Of the
//     sorting in between no time is published: tasks do not compute.
//   - ep: three all-reduces of 8 bytes and one of 128. It computes for no time, either.
//   - lu: tasks on a grid of 4 by 2. A step is a sweep over the planes from one
//     corner to the other and one back, in which each task waits for what two neighbours have
//     computed, and an exchange with all; in it a task computes its part of the total time of table IV,
//     a half in each sweep.
//
// Messages of more than 4 KiB are puts that notify, of 1 MiB at most. Collectives are what MPI
// libraries made of them then: recursive doubling, pairwise exchanges, binomial trees.
func NPB(what string) (*Traffic, error) {
	f := strings.Split(what, ".")
	n, err := strconv.Atoi(f[len(f)-1])
	if err != nil || n != 2 && n != 4 && n != 8 {
		n = 0
	}
	switch {
	case n > 0 && len(f) == 2 && f[0] == "ep":
		return newScript(what, n).ep(), nil
	case n > 0 && len(f) == 3 && f[0] == "is" && isBytes[f[1]] > 0:
		return newScript(what, n).is(isBytes[f[1]] / uint64(n)), nil
	case n == 8 && len(f) == 3 && f[0] == "lu" && lu[f[1]].steps > 0:
		return newScript(what, n).lu(lu[f[1]]), nil
	}
	return nil, errs.BadArg("traffic: %s%s: there are is.CLASS.TASKS of classes W, A and B and 2, 4 or 8 tasks, lu.W.8, lu.B.8, ep.2, ep.4 and ep.8", Tables, errs.Printable(what, 80))
}

// isBytes are the bytes that table II gives for each message of 2 tasks, times 2: those of n tasks are
// an n-th.
var isBytes = map[string]uint64{"W": 4 << 20, "A": 32 << 20, "B": 128 << 20}

// solver is a class of lu: table III, of 8 tasks.
type solver struct {
	steps, planes int       // calls by size are their product
	sweep         [2]uint64 // bytes across the long and the short side of the grid
	exchange      [2]uint64
	total         time.Duration // table IV
}

var lu = map[string]solver{
	"W": {300, 31, [2]uint64{1024, 512}, [2]uint64{65536, 32768}, 26400 * time.Millisecond},
	"B": {250, 100, [2]uint64{2048, 1024}, [2]uint64{524288, 262144}, 856 * time.Second},
}

// script makes the traffic of a program.
type script struct {
	t      *Traffic
	unread map[pair]*queue // messages that are sent and not received
	gap    []time.Duration // that ranks have computed since their last item
}

func newScript(what string, n int) *script {
	return &script{
		t:      &Traffic{Name: Tables + what, Program: "NPB 2.3 " + what, Ranks: make([]Rank, n)},
		unread: map[pair]*queue{}, gap: make([]time.Duration, n),
	}
}

func (s *script) compute(rank int, d time.Duration) { s.gap[rank] += d }

func (s *script) item(rank int, it Item) {
	it.Gap, s.gap[rank] = s.gap[rank], 0
	s.t.Ranks[rank].Items = append(s.t.Ranks[rank].Items, it)
}

// piece is the most bytes of a message.
const piece = 1 << 20

func (s *script) send(src, dst int, bytes uint64) {
	k := &s.t.Ranks[src]
	p := pair{int32(src), int32(dst)}
	if s.unread[p] == nil {
		s.unread[p] = &queue{}
	}
	for first := true; first || bytes > 0; first = false {
		n := min(bytes, piece)
		bytes -= n
		id := int32(len(s.t.Messages))
		m := Message{Src: p.src, Dst: p.dst, Size: n, Access: -1, Arrival: -1}
		if n > maxMedium {
			m.Long, m.At, m.Access = true, 1, int32(len(k.Accesses))
			k.Accesses = append(k.Accesses, Access{Verb: conduits.Put, Rank: p.dst, Message: id, Size: n, At: 1, Arrival: [2]int32{-1, -1}, Landing: -1})
			s.t.Ranks[dst].Segment = max(s.t.Ranks[dst].Segment, n)
		}
		s.t.Messages = append(s.t.Messages, m)
		s.unread[p].l = append(s.unread[p].l, id)
		s.item(src, Item{Verb: Send, N: id, Last: -1})
	}
}

// receive waits for all that src has sent to dst.
func (s *script) receive(dst, src int) {
	k := &s.t.Ranks[dst]
	q := s.unread[pair{int32(src), int32(dst)}]
	for _, id := range q.l {
		s.t.Messages[id].Arrival = int32(k.Arrivals)
		k.Needed = append(k.Needed, true)
		k.Arrivals++
	}
	q.l = q.l[:0]
	s.item(dst, Item{Verb: Wait, Upto: int32(k.Arrivals), Last: -1})
}

// exchange has each rank send to one and receive from another.
func (s *script) exchange(bytes uint64, to, from func(rank int) int) {
	n := len(s.t.Ranks)
	for r := range n {
		s.send(r, to(r), bytes)
	}
	for r := range n {
		s.receive(r, from(r))
	}
}

func (s *script) allReduce(bytes uint64) {
	for d := 1; d < len(s.t.Ranks); d *= 2 {
		partner := func(r int) int { return r ^ d }
		s.exchange(bytes, partner, partner)
	}
}

func (s *script) allToAll(bytes uint64) {
	for d := 1; d < len(s.t.Ranks); d++ {
		partner := func(r int) int { return r ^ d }
		s.exchange(bytes, partner, partner)
	}
}

func (s *script) broadcast(bytes uint64) {
	for d := len(s.t.Ranks) / 2; d > 0; d /= 2 {
		for r := 0; r < len(s.t.Ranks); r += 2 * d {
			s.send(r, r+d, bytes)
			s.receive(r+d, r)
		}
	}
}

func (s *script) reduce(bytes uint64) {
	for d := 1; d < len(s.t.Ranks); d *= 2 {
		for r := 0; r < len(s.t.Ranks); r += 2 * d {
			s.send(r+d, r, bytes)
			s.receive(r, r+d)
		}
	}
}

func (s *script) barrier() {
	n := len(s.t.Ranks)
	for d := 1; d < n; d *= 2 {
		s.exchange(0, func(r int) int { return (r + d) % n }, func(r int) int { return (r - d + n) % n })
	}
}

func (s *script) is(bytes uint64) *Traffic {
	for range 11 {
		s.allReduce(8192)
		s.allToAll(4)
		s.allToAll(bytes)
	}
	n := len(s.t.Ranks)
	for r := range n - 1 {
		s.send(r, r+1, 4)
	}
	for r := range n - 1 {
		s.receive(r+1, r)
	}
	s.reduce(4)
	s.reduce(8)
	return s.finish()
}

func (s *script) ep() *Traffic {
	for _, bytes := range []uint64{8, 8, 8, 128} {
		s.allReduce(bytes)
	}
	return s.finish()
}

func (s *script) lu(c solver) *Traffic {
	const long, short = 4, 2
	at := func(x, y int) int { return x*short + y }
	for _, b := range []uint64{4, 4, 4, 8, 8, 8, 8, 8, 64} {
		s.broadcast(b)
	}
	neighbours := func() {
		for x := range long {
			for y := range short {
				for _, d := range []int{-1, 1} {
					if x+d >= 0 && x+d < long {
						s.send(at(x, y), at(x+d, y), c.exchange[0])
					}
					if y+d >= 0 && y+d < short {
						s.send(at(x, y), at(x, y+d), c.exchange[1])
					}
				}
			}
		}
		for x := range long {
			for y := range short {
				for _, d := range []int{-1, 1} {
					if x+d >= 0 && x+d < long {
						s.receive(at(x, y), at(x+d, y))
					}
					if y+d >= 0 && y+d < short {
						s.receive(at(x, y), at(x, y+d))
					}
				}
			}
		}
	}
	plane := c.total / time.Duration(c.steps*2*c.planes)
	sweep := func(d int) {
		for range c.planes {
			for i := range long {
				for j := range short {
					x, y := i, j
					if d < 0 {
						x, y = long-1-i, short-1-j
					}
					if i > 0 {
						s.receive(at(x, y), at(x-d, y))
					}
					if j > 0 {
						s.receive(at(x, y), at(x, y-d))
					}
					s.compute(at(x, y), plane)
					if i < long-1 {
						s.send(at(x, y), at(x+d, y), c.sweep[0])
					}
					if j < short-1 {
						s.send(at(x, y), at(x, y+d), c.sweep[1])
					}
				}
			}
		}
	}
	neighbours()
	neighbours()
	s.barrier()
	for range c.steps {
		sweep(1)
		sweep(-1)
		neighbours()
	}
	for _, b := range []uint64{8, 8, 8, 8, 64, 64, 64, 64} {
		s.allReduce(b)
	}
	return s.finish()
}

// finish completes the traffic.
func (s *script) finish() *Traffic {
	for r, gap := range s.gap {
		if gap > 0 {
			s.item(r, Item{Verb: Pause, Last: -1})
		}
	}
	// At most 2^21 messages of all, so that each has a number.
	if err := s.t.number(); err != nil {
		panic(err)
	}
	s.t.Messages = slices.Clip(s.t.Messages)
	return s.t
}
