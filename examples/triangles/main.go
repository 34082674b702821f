// Triangles counts the triangles of a large random graph whose edges lie in
// ordinary Go slices, spread over all ranks.
//
//	go run ./examples/triangles -n 4 -check            # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/triangles -v -scale 16
//	go run ./cmd/gasrun -n 4 -pinnable 128K ./examples/triangles -v
//
// The graph is an R-MAT one: few vertices have very many edges, most have few,
// as in networks of people or pages. Vertices are dealt out to the ranks. What a
// rank has of the graph is far more than its segment, which is a page: the edges
// are in slices that it registers, and other ranks read them where they lie,
// through firehoses.
//
//   - Each rank draws its part of the edges, sorts them by the rank that has to
//     have them, and registers the slice. Each then gets what is its own from
//     all others: long transfers, one from each rank.
//   - It makes sorted lists of neighbours out of them. An edge is kept at the end
//     with fewer edges, so no list is very long. These lists are registered; where
//     each begins all ranks learn at once (that is a number a vertex, where the
//     lists are many).
//   - A triangle is found once: at an edge from u to v, as a vertex that is in both's
//     lists. For each edge from its own vertices a rank gets v's list from its
//     owner. These are short transfers all over the graph, but most of them are of the
//     same few vertices: those firehoses stay where they are. -v says how many did.
//
// With -check rank 0 draws the whole graph by itself, and counts in another way.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/gas"
)

type options struct {
	ranks, scale, degree int
	seed                 uint64
	check, verbose       bool
}

const maxScale = 26

func main() {
	var o options
	flag.IntVar(&o.ranks, "n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	flag.IntVar(&o.scale, "scale", 13, "make 2^`S` vertices")
	flag.IntVar(&o.degree, "degree", 16, "draw `D` edges for each vertex")
	flag.Uint64Var(&o.seed, "seed", 1, "draw the graph of number `K`")
	flag.BoolVar(&o.check, "check", false, "count again on one rank, in another way")
	flag.BoolVar(&o.verbose, "v", false, "say what firehoses did")
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "triangles: %v\n", err)
		os.Exit(2)
	}
	gas.Exit(run(o, os.Stdout))
}

func (o *options) validate(args []string) error {
	switch {
	case o.ranks < 1:
		return fmt.Errorf("-n %d: it must be at least 1", o.ranks)
	case o.scale < 1 || o.scale > maxScale:
		return fmt.Errorf("-scale %d: it must be 1 to %d", o.scale, maxScale)
	case o.degree < 1 || o.degree > 1024:
		return fmt.Errorf("-degree %d: it must be 1 to 1024", o.degree)
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// edge is a pair of vertices.
type edge struct{ from, to uint32 }

func (e edge) compare(f edge) int {
	return cmp.Or(cmp.Compare(e.from, f.from), cmp.Compare(e.to, f.to))
}

// random is the i-th of a sequence of random numbers (splitmix64): any rank can
// draw any of them.
func random(seed, i uint64) uint64 {
	x := seed*0xd1342543de82ef95 + i*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// draw is the i-th edge of the graph: the quarter of the matrix in which it lies is
// chosen again and again, with probabilities 0.57, 0.19, 0.19 and 0.05 (R-MAT,
// Chakrabarti, Zhan and Faloutsos 2004, as Graph500 has it).
func (o *options) draw(i int) edge {
	var e edge
	for bit := range o.scale {
		r := random(o.seed, uint64(i)*maxScale+uint64(bit)) >> 32 * 100 >> 32
		e.from, e.to = e.from<<1, e.to<<1
		switch {
		case r < 57:
		case r < 76:
			e.to |= 1
		case r < 95:
			e.from |= 1
		default:
			e.from |= 1
			e.to |= 1
		}
	}
	return e
}

// edges is how many are drawn.
func (o *options) edges() int { return o.degree << o.scale }

// share is the part of count things that rank has: from first to end.
func share(count, ranks, rank int) (first, end int) {
	return count/ranks*rank + min(rank, count%ranks), count/ranks*(rank+1) + min(rank+1, count%ranks)
}

// graph is one rank's part of the graph. Vertex v is that of rank v mod Size, the
// v/Size-th there.
type graph struct {
	n        *gas.Node
	o        *options
	vertices int
	size     int

	lists [][]uint32 // of this rank's vertices: all their neighbours, sorted
	kept  []uint32   // one after the other: of these the ones that come later, see later
	start []uint32   // where those of each of this rank's vertices begin in kept, and end

	// Of every rank.
	degrees [][]uint32
	starts  [][]uint32
	keptOf  []gas.Ptr[uint32]

	got int // lists of other ranks
}

func (g *graph) owner(v uint32) int { return int(v) % g.size }
func (g *graph) place(v uint32) int { return int(v) / g.size }

// own is how many vertices rank has.
func (g *graph) own(rank int) int { return (g.vertices - rank + g.size - 1) / g.size }

// publish registers s and tells all ranks where it is. A rank may have nothing.
func publish[T any](n *gas.Node, s []T) []gas.Ptr[T] {
	var p gas.Ptr[T]
	if len(s) > 0 {
		p = gas.Must(gas.Register(n, s))
	}
	return gas.Must(gas.AllGather(n, p))
}

// retract ends what publish began, when all ranks have got what they need.
func retract[T any](n *gas.Node, all []gas.Ptr[T]) {
	n.Must(n.Barrier())
	if p := all[n.Rank()]; !p.IsNil() {
		n.Must(gas.Free(n, p))
	}
}

// build draws the graph and has every rank get its part.
func (g *graph) build() {
	n := g.n
	// Each edge has to be at both its ends.
	first, end := share(g.o.edges(), g.size, n.Rank())
	drawn := make([]edge, 0, 2*(end-first))
	for i := first; i < end; i++ {
		if e := g.o.draw(i); e.from != e.to {
			drawn = append(drawn, e, edge{e.to, e.from})
		}
	}
	byOwner := make([]edge, len(drawn))
	begin := make([]uint32, g.size+1) // of what is for each rank
	for _, e := range drawn {
		begin[g.owner(e.from)+1]++
	}
	for r := range g.size {
		begin[r+1] += begin[r]
	}
	next := slices.Clone(begin)
	for _, e := range drawn {
		at := &next[g.owner(e.from)]
		byOwner[*at] = e
		*at++
	}

	edges, begins := publish(n, byOwner), publish(n, begin)
	var mine []edge
	for k := range g.size {
		r := (n.Rank() + k) % g.size // not all from the same one
		var part [2]uint32
		n.Must(begins[r].Add(n.Rank()).GetSlice(n, part[:]))
		at := len(mine)
		mine = slices.Grow(mine, int(part[1]-part[0]))[:at+int(part[1]-part[0])]
		if at < len(mine) {
			n.Must(edges[r].Add(int(part[0])).GetSlice(n, mine[at:]))
		}
	}
	retract(n, edges)
	retract(n, begins)
	slices.SortFunc(mine, edge.compare)
	mine = slices.Compact(mine)
	g.lists = make([][]uint32, g.own(n.Rank()))
	ends := make([]uint32, len(mine))
	for i, e := range mine {
		ends[i] = e.to
	}
	for at := 0; at < len(mine); {
		v := mine[at].from
		to := at
		for to < len(mine) && mine[to].from == v {
			to++
		}
		g.lists[g.place(v)] = ends[at:to]
		at = to
	}
	g.orient()
}

// gather gets a slice of each rank whole: its length at rank r is count(r).
func gather[T any](g *graph, s []T, count func(r int) int) [][]T {
	where := publish(g.n, s)
	all := make([][]T, g.size)
	for k := range g.size {
		r := (g.n.Rank() + k) % g.size
		all[r] = make([]T, count(r))
		if len(all[r]) > 0 {
			g.n.Must(where[r].GetSlice(g.n, all[r]))
		}
	}
	retract(g.n, where)
	return all
}

// orient keeps each edge at the end that comes first by degree, and registers
// what this rank has kept.
func (g *graph) orient() {
	mine := make([]uint32, len(g.lists))
	for i, l := range g.lists {
		mine[i] = uint32(len(l))
	}
	g.degrees = gather(g, mine, g.own)
	g.start = append(g.start, 0)
	for i, l := range g.lists {
		u := uint32(i*g.size + g.n.Rank())
		for _, v := range l {
			if g.later(u, v) {
				g.kept = append(g.kept, v)
			}
		}
		g.start = append(g.start, uint32(len(g.kept)))
	}
	g.lists = nil
	g.starts = gather(g, g.start, func(r int) int { return g.own(r) + 1 })
	g.keptOf = publish(g.n, g.kept)
}

// degree is how many edges v has.
func (g *graph) degree(v uint32) uint32 { return g.degrees[g.owner(v)][g.place(v)] }

// later reports whether v comes after u: by degree, and by number if these are equal.
func (g *graph) later(u, v uint32) bool {
	return cmp.Or(cmp.Compare(g.degree(u), g.degree(v)), cmp.Compare(u, v)) < 0
}

// window is how many lists are under way at once.
const window = 64

// fetch is a list on its way to this rank.
type fetch struct {
	u      int // the place of the vertex at whose edge it is needed
	list   []uint32
	buf    []uint32
	handle gas.Handle
}

// count finds the triangles whose first vertex is this rank's.
func (g *graph) count() (triangles uint64) {
	var ring [window]fetch
	pending, done := 0, 0
	finish := func() {
		f := &ring[done%window]
		done++
		g.n.Must(g.n.Sync(f.handle))
		triangles += common(g.kept[g.start[f.u]:g.start[f.u+1]], f.list)
	}
	for u := range g.own(g.n.Rank()) {
		list := g.kept[g.start[u]:g.start[u+1]]
		if len(list) < 2 {
			continue
		}
		for _, v := range list {
			r, at := g.owner(v), g.place(v)
			from, to := g.starts[r][at], g.starts[r][at+1]
			if from == to {
				continue
			}
			if r == g.n.Rank() {
				triangles += common(list, g.kept[from:to])
				continue
			}
			if pending-done == window {
				finish()
			}
			f := &ring[pending%window]
			pending++
			if k := int(to - from); len(f.buf) < k {
				f.buf = make([]uint32, 2*k)
			}
			f.u, f.list = u, f.buf[:to-from]
			f.handle = gas.Must(g.keptOf[r].Add(int(from)).GetSliceNB(g.n, f.list))
			g.got++
		}
	}
	for done < pending {
		finish()
	}
	return triangles
}

// common is how many numbers are in both of two sorted lists.
func common(a, b []uint32) (n uint64) {
	for len(a) > 0 && len(b) > 0 {
		x, y := a[0], b[0]
		if x == y {
			n++
		}
		if x <= y {
			a = a[1:]
		}
		if y <= x {
			b = b[1:]
		}
	}
	return n
}

// result has the figures of a graph. Its parts add up over the ranks, but
// for the largest degree.
type result struct {
	edges, triangles, wedges, largest uint64
}

func (a result) add(b result) result {
	return result{a.edges + b.edges, a.triangles + b.triangles, a.wedges + b.wedges, max(a.largest, b.largest)}
}

// use counts the bytes moved and the firehoses' hits and misses.
type use struct {
	lists, hits, misses, moves, pinned uint64
}

func (a use) add(b use) use {
	return use{a.lists + b.lists, a.hits + b.hits, a.misses + b.misses, a.moves + b.moves, max(a.pinned, b.pinned)}
}

// alone counts without other ranks, and with whole lists: each triangle is found
// from its vertex with the lowest number.
func alone(o *options) (all result) {
	lists := make([][]uint32, 1<<o.scale)
	for i := range o.edges() {
		if e := o.draw(i); e.from != e.to {
			lists[e.from] = append(lists[e.from], e.to)
			lists[e.to] = append(lists[e.to], e.from)
		}
	}
	for v, l := range lists {
		slices.Sort(l)
		lists[v] = slices.Compact(l)
		d := uint64(len(lists[v]))
		all = all.add(result{edges: d, wedges: d * (d - 1) / 2, largest: d})
	}
	all.edges /= 2
	beside := make([]bool, 1<<o.scale)
	for u := range uint32(1 << o.scale) {
		for _, v := range lists[u] {
			beside[v] = true
		}
		for _, v := range lists[u] {
			if v < u {
				continue
			}
			for _, w := range lists[v] {
				if w > v && beside[w] {
					all.triangles++
				}
			}
		}
		for _, v := range lists[u] {
			beside[v] = false
		}
	}
	return all
}

// run counts triangles and writes to out what came of it.
func run(o options, out io.Writer) error {
	// The segment is for nothing here. Lists are short, so buckets are a page.
	return gas.Run(gas.Config{Ranks: o.ranks, SegmentSize: 4096, PinBucket: 4096}, func(n *gas.Node) error {
		g := &graph{n: n, o: &o, vertices: 1 << o.scale, size: n.Size()}
		start := n.Now()
		g.build()
		built := n.Now()
		var mine result
		for _, d := range g.degrees[n.Rank()] {
			d := uint64(d)
			mine = mine.add(result{wedges: d*max(d, 1) - d, largest: d})
		}
		mine.wedges /= 2
		mine.edges = uint64(len(g.kept))
		mine.triangles = g.count()
		all := gas.Must(gas.AllReduce(n, mine, result.add))
		took := n.Now()
		var s firehose.Stats
		n.FirehoseStats(&s)
		used := gas.Must(gas.Reduce(n, 0, use{uint64(g.got), s.RemoteHits, s.RemoteMisses, s.Moves, s.PeakPinned}, use.add))
		if n.Rank() != 0 {
			return nil
		}
		return report(n.Size(), &o, out, all, used, (built - start).Seconds(), (took - built).Seconds())
	})
}

func report(ranks int, o *options, out io.Writer, all result, used use, build, count float64) error {
	var err error
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(out, format+"\n", args...)
		}
	}
	say("%d vertices and %d edges over %d ranks, the largest degree is %d", 1<<o.scale, all.edges, ranks, all.largest)
	say("%d triangles; %.4f of the pairs of neighbours are neighbours themselves", all.triangles, 3*float64(all.triangles)/max(float64(all.wedges), 1))
	say("built in %.3f s, counted in %.3f s: %.0f lists of other ranks a second", build, count, float64(used.lists)/max(count, 1e-9))
	if o.verbose {
		hits := 100.0
		if used.hits+used.misses > 0 {
			hits = 100 * float64(used.hits) / float64(used.hits+used.misses)
		}
		say("firehoses: %.2f %% of %d accesses found theirs attached, %d round trips moved some; at most %d bytes of a rank were pinned",
			hits, used.hits+used.misses, used.moves, used.pinned)
	}
	if o.check && err == nil {
		if want := alone(o); all != want {
			return fmt.Errorf("triangles: check: ranks together found %+v, one alone finds %+v", all, want)
		}
		say("check: one rank alone finds the same")
	}
	return err
}
