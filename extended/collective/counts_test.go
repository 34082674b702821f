package collective

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

var countRanks = flag.Int("collective.ranks", 0, "the number of ranks of TestCounts instead of the usual ones; 65,536 take minutes")

// counted is a collective whose messages are counted.
type counted struct {
	name string
	call func(c *Member, b *blanks) error
	nb   func(c *Member, b *blanks) (Handle, error)
	// inner, if it is not nil, stands for call in a schedule: the same with less memory.
	inner func(c *Member, b *blanks) error
	// messages with data, and of all those one after the other, those that say that a
	// receiver is ready included.
	messages, depth func(n int) int
	// dense says that each rank sends to each other one, and all do the same at the same time.
	dense bool
	alike bool // all do the same at the same time, though each does not send to each
	every bool // see manyRanks
	// lengths says that each rank has lists of as many lengths as there are ranks.
	lengths bool
	empty   bool // blocks have no bytes
	barrier bool // it has no data, and messages that say that a rank is there count
}

// blanks are buffers for the calls of a rank. Blocks have 8 bytes, or none where so many of
// them on so many ranks are too much.
type blanks struct {
	n, root  int
	own, all []byte   // a block, and one of each rank
	in       []byte   // likewise
	out      [][]byte // likewise, for any number of ranks
	large    []byte   // likewise, of directBlock bytes; large enough for two
}

// fewRanks is how many ranks have blocks that are not empty in calls of few messages.
const fewRanks = 256

// blanks returns what makes the blanks of each of n ranks.
func (k *counted) blanks(n int) func() *blanks {
	block, large := 8, 0
	if k.empty || n > fewRanks && !k.dense {
		block = 0
	}
	if k.dense {
		large = 2 * n * directBlock
	}
	return func() *blanks {
		b := &blanks{n: n, root: n / 3, own: make([]byte, block), all: make([]byte, n*block), in: make([]byte, n*block), large: make([]byte, large)}
		if k.lengths {
			b.out = slices.Repeat([][]byte{b.own}, n)
		}
		return b
	}
}

// edges is how many messages reach all of n ranks.
func edges(n int) int { return n - 1 }

// levelsOf is how many messages one after the other a binomial tree of n places has at most.
func levelsOf(n int) int { return bits.Len(uint(n)) - 1 }

// roundsOf is how many rounds a dissemination has.
func roundsOf(n int) int { return bits.Len(uint(n - 1)) }

// scanned is how many messages with data a scan sends: each rank to those at distances of
// powers of two above it.
func scanned(n int) (sum int) {
	for d := 1; d < n; d *= 2 {
		sum += n - d
	}
	return sum
}

// alone is k, or nothing if there is one rank only.
func alone(n, k int) int {
	if n == 1 {
		return 0
	}
	return k
}

func times(k int, f func(n int) int) func(n int) int { return func(n int) int { return k * f(n) } }

// tree is the depth of a call that goes k times along the tree, and of so many messages that
// say that a receiver is ready.
func tree(k, ready int) func(n int) int {
	return func(n int) int { return alone(n, k*levelsOf(n)+ready) }
}

func pairs(n int) int           { return n * (n - 1) }
func exchanged(n int) int       { return n * roundsOf(n) }
func ring(n int) int            { return alone(n, 1+(n-1+abreast-1)/abreast) }
func rounds2(n int) int         { return 2 * roundsOf(n) }
func word() []byte              { return make([]byte, 8) }
func none(_, _ []byte)          {}
func drop(_ any, e error) error { return e }

var countedCalls = []counted{
	{
		name:     "Barrier",
		call:     func(c *Member, _ *blanks) error { return c.Barrier() },
		nb:       func(c *Member, _ *blanks) (Handle, error) { return c.BarrierNB() },
		barrier:  true,
		messages: exchanged, depth: roundsOf,
	},
	{
		name:     "Broadcast",
		call:     func(c *Member, b *blanks) error { return c.Broadcast(b.root, word()) },
		nb:       func(c *Member, b *blanks) (Handle, error) { return c.BroadcastNB(b.root, word()) },
		messages: edges, depth: tree(1, 1),
	},
	{
		name:     "Reduce",
		call:     func(c *Member, b *blanks) error { return c.Reduce(b.root, word(), none) },
		nb:       func(c *Member, b *blanks) (Handle, error) { return c.ReduceNB(b.root, word(), none) },
		messages: edges, depth: tree(1, 1),
	},
	{
		name:     "AllReduce",
		call:     func(c *Member, _ *blanks) error { return c.AllReduce(word(), none) },
		nb:       func(c *Member, _ *blanks) (Handle, error) { return c.AllReduceNB(word(), none) },
		messages: times(2, edges), depth: tree(2, 1),
	},
	{
		name:     "Gather",
		call:     func(c *Member, b *blanks) error { return c.Gather(b.root, b.own, b.all) },
		nb:       func(c *Member, b *blanks) (Handle, error) { return c.GatherNB(b.root, b.own, b.all) },
		messages: edges, depth: tree(1, 1),
	},
	{
		name:     "Scatter",
		call:     func(c *Member, b *blanks) error { return c.Scatter(b.root, b.all, b.in[:len(b.own)]) },
		nb:       func(c *Member, b *blanks) (Handle, error) { return c.ScatterNB(b.root, b.all, b.in[:len(b.own)]) },
		messages: edges, depth: tree(1, 1),
	},
	{
		name:     "AllGather",
		call:     func(c *Member, b *blanks) error { return c.AllGather(b.own, b.all) },
		nb:       func(c *Member, b *blanks) (Handle, error) { return c.AllGatherNB(b.own, b.all) },
		messages: times(2, edges), depth: tree(2, 1),
	},
	{
		name:     "ReduceScatter",
		call:     func(c *Member, b *blanks) error { return c.ReduceScatter(b.all, b.in[:len(b.own)], none) },
		nb:       func(c *Member, b *blanks) (Handle, error) { return c.ReduceScatterNB(b.all, b.in[:len(b.own)], none) },
		messages: times(2, edges), depth: tree(2, 1),
	},
	{
		name:     "Exchange",
		call:     func(c *Member, b *blanks) error { return c.Exchange(b.all, b.in) },
		nb:       func(c *Member, b *blanks) (Handle, error) { return c.ExchangeNB(b.all, b.in) },
		messages: exchanged, depth: rounds2,
	},
	{
		name:     "Scan",
		call:     func(c *Member, _ *blanks) error { return c.Scan(word(), none) },
		nb:       func(c *Member, _ *blanks) (Handle, error) { return c.ScanNB(word(), none) },
		messages: scanned, depth: rounds2,
	},
	{
		name:     "ExclusiveScan",
		call:     func(c *Member, _ *blanks) error { return c.ExclusiveScan(word(), word(), none) },
		nb:       func(c *Member, _ *blanks) (Handle, error) { return c.ExclusiveScanNB(word(), word(), none) },
		messages: scanned, depth: rounds2,
	},
	{
		name:     "GatherV",
		call:     func(c *Member, b *blanks) error { return drop(c.GatherV(b.root, 1, b.own)) },
		nb:       func(c *Member, b *blanks) (Handle, error) { return c.GatherVNB(b.root, 1, b.own) },
		lengths:  true,
		messages: times(2, edges), depth: tree(1, 3),
	},
	{
		name:    "AllGatherV",
		call:    func(c *Member, b *blanks) error { return drop(c.AllGatherV(1, b.own)) },
		nb:      func(c *Member, b *blanks) (Handle, error) { return c.AllGatherVNB(1, b.own) },
		lengths: true, messages: times(5, edges), depth: tree(4, 3),
	},
	{
		name:  "ExchangeV, empty blocks",
		call:  func(c *Member, b *blanks) error { return drop(c.ExchangeV(1, b.out)) },
		nb:    func(c *Member, b *blanks) (Handle, error) { return c.ExchangeVNB(1, b.out) },
		empty: true, lengths: true, alike: true,
		messages: exchanged, depth: rounds2,
	},
	{
		name:  "ExchangeV",
		call:  func(c *Member, b *blanks) error { return drop(c.ExchangeV(1, b.out)) },
		nb:    func(c *Member, b *blanks) (Handle, error) { return c.ExchangeVNB(1, b.out) },
		dense: true, lengths: true,
		messages: func(n int) int { return exchanged(n) + pairs(n) }, depth: func(n int) int { return rounds2(n) + ring(n) },
	},
	{
		name: "AllGather, 2 KiB",
		call: func(c *Member, b *blanks) error {
			return c.AllGather(b.large[:directBlock], b.large[:b.n*directBlock])
		},
		nb: func(c *Member, b *blanks) (Handle, error) {
			return c.AllGatherNB(b.large[:directBlock], b.large[:b.n*directBlock])
		},
		dense: true, every: true, messages: pairs, depth: ring,
	},
	{
		name: "Exchange, 2 KiB",
		call: func(c *Member, b *blanks) error {
			half := b.n * directBlock
			return c.Exchange(b.large[:half], b.large[half:])
		},
		nb: func(c *Member, b *blanks) (Handle, error) {
			half := b.n * directBlock
			return c.ExchangeNB(b.large[:half], b.large[half:])
		},
		dense: true, messages: pairs, depth: ring,
	},
	{
		name: "ReduceScatter, 2 KiB",
		call: func(c *Member, b *blanks) error {
			return c.ReduceScatter(b.large[:b.n*directBlock], make([]byte, directBlock), none)
		},
		nb: func(c *Member, b *blanks) (Handle, error) {
			return c.ReduceScatterNB(b.large[:b.n*directBlock], make([]byte, directBlock), none)
		},
		inner: func(c *Member, b *blanks) error {
			return c.plan(Call{}, func(w *work) bool { return w.reduceDirect(wholly(b.own), b.in[:len(b.own)]) })
		},
		dense: true, messages: pairs, depth: ring,
	},
	{
		name: "AllReduceElements, 2 KiB",
		call: func(c *Member, b *blanks) error {
			return c.AllReduceElements(8, make([]byte, b.n*directBlock), none)
		},
		nb: func(c *Member, b *blanks) (Handle, error) {
			return c.AllReduceElementsNB(8, make([]byte, b.n*directBlock), none)
		},
		inner: func(c *Member, b *blanks) error { return c.plan(Call{own: b.all, unit: 1}, (*work).allReduceDirect) },
		dense: true, messages: times(2, pairs), depth: times(2, ring),
	},
}

// plan gives the transfers of all lists of a call that is a part of others.
func (c *Member) plan(a Call, list func(w *work) bool) error {
	w := work{c: c, Call: a, lists: new(lists)}
	for more := true; more; {
		w.stages = w.stages[:0]
		more = list(&w)
		for k := range w.stages {
			c.team.planned(&w.stages[k])
		}
	}
	return nil
}

// transfer is a step of a schedule.
type transfer struct {
	rank, bytes  int32
	do, dir, far uint8
}

// planner makes calls as any rank of any job without making any transfer.
type planner struct {
	*Member
	*blanks
	steps []transfer
}

// planner is one that uses m, of a job of its own, for what is no transfer.
func (k *counted) planner(m *member, b *blanks) *planner {
	t := &team{ranks: make([]int32, b.n)}
	for r := range t.ranks {
		t.ranks[r] = int32(r)
	}
	p := &planner{Member: &Member{names: m.names, e: m.e, spot: spot{size: b.n}, team: t}, blanks: b}
	t.world = p.Member
	t.plan = func(s *stage) {
		if k.lengths && s.do == stagePost { // perhaps lengths of blocks that are to come
			for to := s.buf; len(to) >= 8; to = to[8:] {
				binary.LittleEndian.PutUint64(to, uint64(len(b.own)))
			}
		}
		p.steps = append(p.steps, transfer{s.rank, int32(len(s.buf)), s.do, s.dir, s.far})
	}
	return p
}

// of returns what rank transfers in a call, in order, until the next one is asked for.
func (p *planner) of(rank int, call func(c *Member, b *blanks) error) ([]transfer, error) {
	p.rank, p.steps = rank, p.steps[:0]
	err := call(p.Member, p.blanks)
	return p.steps, err
}

// waited is nb and the end of that.
func (k *counted) waited(c *Member, b *blanks) error {
	h, err := k.nb(c, b)
	if err != nil {
		return err
	}
	return h.Wait()
}

// schedule has the transfers of all ranks of a job in a call.
func (k *counted) schedule(m *member, n int, call func(c *Member, b *blanks) error) ([][]transfer, error) {
	steps := make([][]transfer, n)
	err := k.planned(m, n, func(p *planner, r int) error {
		all, err := p.of(r, call)
		steps[r] = slices.Clone(all)
		return err
	})
	return steps, err
}

// planned has do plan for each of n ranks, by all processors.
func (k *counted) planned(m *member, n int, do func(p *planner, r int) error) error {
	blanks := k.blanks(n)
	all := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			p := k.planner(m, blanks())
			for r := int(next.Add(1)) - 1; r < n; r = int(next.Add(1)) - 1 {
				all[r] = do(p, r)
			}
		})
	}
	wg.Wait()
	return errors.Join(all...)
}

// same has the transfers of rank 0 of n ranks in a call, if those of rank r are the same with
// all ranks r higher.
func (k *counted) same(m *member, n int, call func(c *Member, b *blanks) error) ([]transfer, error) {
	first, err := k.planner(m, k.blanks(n)()).of(0, call)
	if err != nil {
		return nil, err
	}
	return first, k.planned(m, n, func(p *planner, r int) error {
		if n > manyRanks && !k.every && r%61 != 0 {
			return nil
		}
		all, err := p.of(r, call)
		for i := range all {
			all[i].rank = int32(around(int(all[i].rank), -r, n))
		}
		if err == nil && !slices.Equal(all, first) {
			err = fmt.Errorf("rank %d of %d does not what rank 0 does", r, n)
		}
		return err
	})
}

// mail is a message of a walk: that a receiver is ready, or data.
type mail struct {
	src, at, bytes int32
	dir, far       uint8
	ready          bool
}

// manyRanks is from where on of calls in which each rank sends to each, which all do that by
// the same function, one is looked at on all ranks and the others on every 61st.
const manyRanks = 1 << 13

// walk does what the steps of all ranks say, where each message takes one unit of time and
// all else none, and returns how many messages with data there were, and what time it is then.
// If all ranks do the same, steps has those of rank 0 alone, for all: what that sends to the rank
// at a distance, the one at this distance before it sends to it at the same time.
func walk(n int, steps ...[]transfer) (messages, depth int, err error) {
	boxes := make([][]mail, len(steps))
	next, now := make([]int, len(steps)), make([]int32, len(steps))
	var todo []int
	for r := range steps {
		todo = append(todo, r)
	}
	// took takes the mail that has come to rank r from its partner in s.
	took := func(r int, s transfer, ready bool) (m mail, ok bool) {
		k := slices.IndexFunc(boxes[r], func(m mail) bool {
			return m.src == s.rank && m.dir == s.dir && m.far == s.far && m.ready == ready
		})
		if k < 0 {
			return mail{}, false
		}
		m = boxes[r][k]
		boxes[r] = slices.Delete(boxes[r], k, k+1)
		now[r] = max(now[r], m.at)
		return m, true
	}
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for ok := true; ok && next[r] < len(steps[r]); {
			s := steps[r][next[r]]
			var room mail
			switch s.do {
			case stageAwait, stageHear:
				_, ok = took(r, s, false)
			case stageSend:
				if room, ok = took(r, s, true); ok && room.bytes != s.bytes {
					return 0, 0, fmt.Errorf("rank %d sends %d bytes to rank %d, which is ready for %d", r, s.bytes, s.rank, room.bytes)
				}
			}
			if !ok {
				break
			}
			next[r]++
			if s.do == stageAwait || s.do == stageHear {
				continue
			}
			m := mail{src: int32(r), at: now[r] + 1, bytes: s.bytes, dir: s.dir, far: s.far, ready: s.do == stagePost}
			if !m.ready {
				messages++
			}
			to := int(s.rank)
			if len(steps) == 1 {
				to, m.src = 0, int32(around(0, -int(s.rank), n))
			}
			boxes[to] = append(boxes[to], m)
			if to != r {
				todo = append(todo, to)
			}
		}
		depth = max(depth, int(now[r]))
	}
	for r := range steps {
		if next[r] < len(steps[r]) || len(boxes[r]) > 0 {
			return 0, 0, fmt.Errorf("rank %d ends at step %d of %d, and has %d messages that nothing waits for", r, next[r], len(steps[r]), len(boxes[r]))
		}
	}
	return messages * n / len(steps), depth, nil
}

// sizes are the numbers of ranks of which calls are counted.
func sizes() []int {
	var all []int
	most := 64
	if conc.Race { // which has nothing to see where ranks run one at a time
		most = 9
	}
	for n := 1; n <= most; n++ {
		all = append(all, n)
	}
	switch {
	case *countRanks > 0:
		return []int{*countRanks}
	case conc.Race:
		return all
	}
	return append(all, fewRanks)
}

// lines counts the messages of collective calls in a simulator's trace.
type lines struct {
	rest []byte // of a line
	now  int    // what is counted now
	seen []seen
}

// seen is messages with data, or of barriers: how many, and the sum of a hash of the ranks of each.
type seen struct {
	messages int
	sum      uint64
}

func (s *seen) add(from, to int) {
	s.messages++
	h := (uint64(from)<<32 | uint64(to)) * 0x9e3779b97f4a7c15
	s.sum += (h ^ h>>29) * 0xbf58476d1ce4e5b9
}

// Write takes lines "TIME STEP KIND SRC>DST tag HANDLER ..." (package sim).
func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	left := l.rest
	for {
		line, after, ok := bytes.Cut(left, []byte{'\n'})
		if !ok {
			break
		}
		left = after
		if !bytes.Contains(line[:min(len(line), 24)], []byte(" s ")) {
			continue
		}
		f := bytes.Fields(line[:min(len(line), 80)])
		from, to, _ := strings.Cut(string(f[3]), ">")
		tag, err := strconv.ParseUint(string(f[5]), 16, 32)
		if err != nil {
			return 0, err
		}
		h := am.HandlerID(tag)
		barrier := countedCalls[l.now/2].barrier
		if h == handlerData && !barrier || h == handlerOffer && barrier {
			src, err1 := strconv.Atoi(from)
			dst, err2 := strconv.Atoi(to)
			if err := errors.Join(err1, err2); err != nil {
				return 0, err
			}
			l.seen[l.now].add(src, dst)
		}
	}
	l.rest = append(l.rest[:0], left...)
	return len(b), nil
}

// So many ranks at most make calls in which each sends to each, and in which each has the
// lengths of all.
const denseRanks, lengthsRanks = 17, 4096

// runCounts makes the calls and compares which messages with data they take, and how many one
// after the other, with what their schedules say. On profile ideal, whose messages take 1 us each,
// whatever they carry, and all else nothing to speak of, the time says how many that were.
func runCounts(t *testing.T, n int, walks []walked) {
	p := sim.Ideal()
	l := &lines{seen: make([]seen, 2*len(countedCalls))}
	j, err := sim.New(n, sim.Config{Profile: &p, MaxSegment: 1 << 16, MaxMedium: 1 << 20, Trace: l})
	if err != nil {
		t.Fatal(err)
	}
	all, eps := make([]error, n), j.Endpoints()
	begun := make([]bool, len(l.seen))
	together := testjob.Together{Latency: time.Microsecond}
	at, end := make([]float64, len(l.seen)), make([]float64, len(l.seen))
	count := func(m *member, i int, call func(c *Member, b *blanks) error, b *blanks) error {
		if err := together.Wait(eps[m.rank], func() error {
			err := j.Flush()
			l.now = i
			return err
		}); err != nil {
			return err
		}
		begun[i] = true
		at[i] = max(at[i], eps[m.rank].Now().Seconds())
		err := call(m.Member, b)
		end[i] = max(end[i], eps[m.rank].Now().Seconds())
		return err
	}
	makers := make([]func() *blanks, len(countedCalls))
	for i := range countedCalls {
		if k := &countedCalls[i]; !(k.dense && n > denseRanks || k.lengths && n > lengthsRanks) {
			makers[i] = k.blanks(n)
		}
	}
	conduits.Run(eps, func(r int) {
		all[r] = join(eps[r], func(m *member) error {
			m.byLinks()
			for i, blanks := range makers {
				if blanks == nil {
					continue
				}
				k, b := &countedCalls[i], blanks()
				err := count(m, 2*i, k.call, b)
				if err == nil && n <= fewRanks {
					err = count(m, 2*i+1, k.waited, b)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", k.name, err)
				}
			}
			return nil
		})
		all[r] = errors.Join(all[r], eps[r].Close())
	})
	if err := errors.Join(append(all, j.Flush())...); err != nil {
		t.Fatalf("%d ranks: %v", n, err)
	}
	for i, got := range l.seen {
		if !begun[i] {
			continue
		}
		k, want := &countedCalls[i/2], walks[i/2]
		if got != want.seen {
			t.Errorf("%s of %d ranks (%d): %d messages with data, or not those of the schedule, which has %d", k.name, n, i%2, got.messages, want.messages)
		}
		if depth := int((end[i]-at[i])*1e6 + 0.5); depth != want.depth {
			t.Errorf("%s of %d ranks (%d): %d messages one after the other, and %d in the schedule", k.name, n, i%2, depth, want.depth)
		}
	}
}

// TestCounts compares messages with data of a call, and how many messages it takes one after
// the other, with formulae: those of its schedule, which its code says without
// making transfers, for all ranks; and of calls that are made.
func TestCounts(t *testing.T) {
	for _, n := range sizes() {
		walks := make([]walked, len(countedCalls))
		must(t, "loop", 1, func(m *member) error {
			for i := range countedCalls {
				k := &countedCalls[i]
				if k.dense && n > denseRanks && n < fewRanks {
					continue
				}
				var err error
				if walks[i], err = k.walk(m, n); err != nil {
					return fmt.Errorf("%s of %d ranks: %w", k.name, n, err)
				}
				k.compare(t, n, walks[i])
			}
			return nil
		})
		if n <= 17 || n == 33 || n >= 64 {
			runCounts(t, n, walks)
		}
	}
}

// walked has the figures that a walk found of a call.
type walked struct {
	seen
	depth int
}

// walk walks the schedule of k.
func (k *counted) walk(m *member, n int) (w walked, err error) {
	var steps [][]transfer
	if k.dense && n > denseRanks || k.alike && n > lengthsRanks {
		call := k.call
		if k.inner != nil {
			call = k.inner
		}
		first, err := k.same(m, n, call)
		if err != nil {
			return w, err
		}
		steps = append(steps, first)
	} else if steps, err = k.schedule(m, n, k.call); err != nil {
		return w, err
	} else if n <= fewRanks {
		nb, err := k.schedule(m, n, k.waited)
		if err != nil {
			return w, err
		}
		for r := range steps {
			if !slices.Equal(steps[r], nb[r]) {
				return w, fmt.Errorf("rank %d transfers %v, and %v without waiting", r, steps[r], nb[r])
			}
		}
	}
	for r := range steps {
		for _, s := range steps[r] {
			if s.do == stageSend || s.do == stageOffer {
				w.add(r, int(s.rank))
			}
		}
	}
	w.messages, w.depth, err = walk(n, steps...)
	return w, err
}

// compare compares a walk with the formulae.
func (k *counted) compare(t *testing.T, n int, w walked) {
	if n >= fewRanks {
		t.Logf("%s of %d ranks: %d messages with data, depth %d", k.name, n, w.messages, w.depth)
	}
	if want := k.messages(n); w.messages != want {
		t.Errorf("%s of %d ranks: %d messages with data, want %d", k.name, n, w.messages, want)
	}
	if want := k.depth(n); w.depth != want {
		t.Errorf("%s of %d ranks: %d messages one after the other, want %d", k.name, n, w.depth, want)
	}
}
