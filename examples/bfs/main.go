// Bfs searches a large random graph breadth first, from several roots, as the benchmark Graph500
// does, and checks each search by that benchmark's five rules.
//
//	go run ./examples/bfs -n 4                      # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/bfs -scale 18 -roots 16
//
// The graph is a Kronecker (R-MAT) one with Graph500's parameters: 2^scale vertices and, for each of
// them, so many edges; few vertices have very many. Vertices are numbered at random, and each rank has
// those that it has of a bitmap.
//
//   - Each rank draws its part of the edges and pushes them to a mailbox, for both their ends.
//   - A search goes level by level. For each edge of what was reached last a rank pushes the edge's other
//     end to the rank that has it, which looks into its part of the bitmap whether that is new.
//     A level is over when the mailbox is in sync.
//   - The result is a tree: each vertex's parent. Levels are found again from it, by a batch of questions,
//     and compared, tree and edges looked at.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/argon-go/argon/gas"
)

type options struct {
	ranks, scale, edges, roots int
	seed                       uint64
}

// The largest flags.
const (
	maxRanks = 1 << 16
	maxScale = 26
	maxEdges = 1024
	maxRoots = 1 << 16
)

func main() {
	var o options
	flag.IntVar(&o.ranks, "n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	flag.IntVar(&o.scale, "scale", 12, "make 2^`S` vertices")
	flag.IntVar(&o.edges, "edges", 16, "draw `E` edges for each vertex")
	flag.IntVar(&o.roots, "roots", 4, "search from `R` roots")
	flag.Uint64Var(&o.seed, "seed", 1, "draw the graph of number `K`")
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "bfs: %v\n", err)
		os.Exit(2)
	}
	gas.Exit(run(o, os.Stdout))
}

func (o *options) validate(args []string) error {
	for _, f := range []struct {
		name       string
		value, max int
	}{{"n", o.ranks, maxRanks}, {"scale", o.scale, maxScale}, {"edges", o.edges, maxEdges}, {"roots", o.roots, maxRoots}} {
		if f.value < 1 || f.value > f.max {
			return fmt.Errorf("-%s %d: it must be 1 to %d", f.name, f.value, f.max)
		}
	}
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// run searches, and writes to out what came of it.
func run(o options, out io.Writer) error {
	return gas.Run(gas.Config{Ranks: o.ranks}, func(n *gas.Node) error {
		g, roots, err := prepare(n, &o)
		if err != nil {
			return err
		}
		say := func(format string, args ...any) {
			if n.Rank() == 0 {
				fmt.Fprintf(out, format, args...)
			}
		}
		kept, err := gas.AllReduce(n, len(g.ends), gas.Sum)
		if err != nil {
			return err
		}
		say("%d vertices, %d of %d edges without loops, over %d ranks\n", 1<<o.scale, kept/2, o.edges<<o.scale, n.Size())
		var took time.Duration
		inverse := 0.0 // the sum of the inverse rates
		for _, root := range roots {
			start := n.Now()
			t, err := g.search(root)
			if err != nil {
				return err
			}
			d := n.Now() - start
			found, err := g.measure(t)
			if err != nil {
				return err
			}
			if err := g.check(t); err != nil {
				return err
			}
			took += d
			inverse += d.Seconds() / float64(found.Edges)
			say("from %d: %d vertices and %d edges, %d levels: a valid tree\n", root, found.Vertices, found.Edges, t.levels)
		}
		if err := g.done(); err != nil {
			return err
		}
		say("%d searches took %.3f s: the harmonic mean is %.2f million edges a second (TEPS)\n",
			len(roots), took.Seconds(), float64(len(roots))/max(inverse, 1e-9)/1e6)
		return nil
	})
}

// size counts the vertices and edges that a search has reached.
type size struct{ Vertices, Edges int64 }

// measure adds up what all ranks have reached.
func (g *graph) measure(t *tree) (size, error) {
	var s size
	for i, p := range t.parents {
		if p != none {
			s.Vertices++
			s.Edges += int64(g.start[i+1] - g.start[i])
		}
	}
	all, err := gas.AllReduce(g.n, s, func(a, b size) size { return size{a.Vertices + b.Vertices, a.Edges + b.Edges} })
	all.Edges /= 2 // each is at both its ends
	return all, err
}
