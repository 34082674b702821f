// Uts is the Unbalanced Tree Search benchmark (Olivier et al. 2006 in docs/bibliography.md): it counts the nodes of a tree of
// which nothing is known but how to get a node's children from the node, so that no rank
// can tell how much work lies below one. Ranks share the work by a queue with stealing.
//
//	go run ./examples/uts -n 2                      # ranks in one process
//	go run ./cmd/gasrun -n 2 ./examples/uts -tree T3
//
// A node is a SHA-1 digest: child i of a node has the digest of the node's digest with i behind it, as
// four bytes, the highest first; the root that of the seed. Its last 31 bits are the node's random number, which
// says how many children it has. T1 and T3 are two of the benchmark's standard trees, and have the
// published numbers of nodes; small is T1 less deep. -check has rank 0 search the whole tree
// by itself as well, without a queue, and compares times.
package main

import (
	"crypto/sha1"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// A tree has the benchmark's flags for it, and its published figures.
type tree struct {
	binomial bool    // -t 0; else geometric, of one shape at all depths (-t 1 -a 3)
	root     float64 // -b: children of the root, of a geometric tree on average of all nodes
	depth    int32   // -d: nodes of a geometric tree have children above this depth
	some     float64 // -q: the share of a binomial tree's nodes that have children
	many     int     // -m: how many these have
	seed     uint32  // -r

	want count
}

// count has the figures of a search.
type count struct{ Nodes, Leaves, Depth uint64 }

// combine is the count of two parts of a tree.
func (c count) combine(d count) count {
	return count{c.Nodes + d.Nodes, c.Leaves + d.Leaves, max(c.Depth, d.Depth)}
}

var trees = map[string]tree{
	"T1":    {root: 4, depth: 10, seed: 19, want: count{4130071, 3305118, 10}},
	"T3":    {binomial: true, root: 2000, some: 0.124875, many: 8, seed: 42, want: count{4112897, 3599034, 1572}},
	"small": {root: 4, depth: 7, seed: 19, want: count{63914, 51124, 7}},
}

// mostChildren is the benchmark's bound for nodes other than the root of a binomial tree.
const mostChildren = 100

// node is an item of the queue.
type node struct {
	digest [sha1.Size]byte
	depth  int32
}

// start is the root.
func (t *tree) start() (r node) {
	var seed [sha1.Size]byte
	binary.BigEndian.PutUint32(seed[16:], t.seed)
	r.digest = sha1.Sum(seed[:])
	return r
}

// random is the node's random number, from 0 to 1.
func (v *node) random() float64 {
	return float64(binary.BigEndian.Uint32(v.digest[16:])&math.MaxInt32) / (1 << 31)
}

// children is how many v has.
func (t *tree) children(v *node) int {
	switch {
	case t.binomial && v.depth == 0:
		return int(t.root)
	case t.binomial:
		if v.random() < t.some {
			return t.many
		}
		return 0
	case v.depth >= t.depth:
		return 0
	}
	p := 1 / (1 + t.root)
	return min(int(math.Log(1-v.random())/math.Log(1-p)), mostChildren)
}

// visit counts v and appends its children to next.
func (t *tree) visit(v *node, c *count, next []node) []node {
	k := t.children(v)
	c.Nodes++
	c.Depth = max(c.Depth, uint64(v.depth))
	if k == 0 {
		c.Leaves++
	}
	var data [sha1.Size + 4]byte
	copy(data[:], v.digest[:])
	for i := range k {
		binary.BigEndian.PutUint32(data[sha1.Size:], uint32(i))
		next = append(next, node{sha1.Sum(data[:]), v.depth + 1})
	}
	return next
}

// alone searches the tree without a queue.
func (t *tree) alone() (c count) {
	stack := []node{t.start()}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = t.visit(&v, &c, stack[:len(stack)-1])
	}
	return c
}

// search has all ranks search the tree, and returns what this one has found.
func (t *tree) search(n *gas.Node, q *dist.Queue[node]) (c count, err error) {
	if n.Rank() == 0 {
		if err := q.Push(t.start()); err != nil {
			return c, err
		}
	}
	var next []node
	err = q.Run(func(_ *gas.Node, v node) error {
		next = t.visit(&v, &c, next[:0])
		return q.PushAll(next)
	})
	return c, err
}

type options struct {
	ranks int
	tree  string
	check bool
}

func main() {
	var o options
	flag.IntVar(&o.ranks, "n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	flag.StringVar(&o.tree, "tree", "small", "search the tree `NAME`: "+treeNames())
	flag.BoolVar(&o.check, "check", false, "search on rank 0 alone as well, and compare")
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "uts: %v\n", err)
		os.Exit(2)
	}
	gas.Exit(run(o, os.Stdout))
}

func treeNames() string { return strings.Join(slices.Sorted(maps.Keys(trees)), ", ") }

func (o *options) validate(args []string) error {
	switch {
	case o.ranks < 1:
		return fmt.Errorf("-n %d: it must be at least 1", o.ranks)
	case trees[o.tree] == tree{}:
		return fmt.Errorf("-tree %q: it must be one of %s", o.tree, treeNames())
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// found is a rank's share of the report.
type found struct {
	Count    count
	Steals   uint64
	Searched uint64 // ranks that have visited nodes
}

func (f found) combine(g found) found {
	return found{f.Count.combine(g.Count), f.Steals + g.Steals, f.Searched + g.Searched}
}

// run does the benchmark and writes the result to out.
func run(o options, out io.Writer) error {
	return gas.Run(gas.Config{Ranks: o.ranks}, func(n *gas.Node) error {
		t := trees[o.tree]
		q, err := dist.NewQueue[node](n, "nodes", 0)
		if err != nil {
			return fmt.Errorf("uts: %w", err)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		start := n.Now()
		mine, err := t.search(n, q)
		if err != nil {
			return err
		}
		took := n.Now() - start
		f := found{Count: mine, Steals: q.Stats().Steals}
		if mine.Nodes > 0 {
			f.Searched = 1
		}
		if f, err = gas.Reduce(n, 0, f, found.combine); err != nil {
			return err
		}
		if err := q.Delete(); err != nil || n.Rank() != 0 {
			return err
		}
		return t.report(n, o, f, took, out)
	})
}

// report writes what all ranks have found, which took so long, and is an error if it is wrong.
func (t *tree) report(n *gas.Node, o options, f found, took time.Duration, out io.Writer) error {
	if _, err := fmt.Fprintf(out, "tree %s: %d nodes, %d leaves, depth %d; %d ranks: %.3f s, %.2f million nodes/s, %d ranks had some, by %d steals\n",
		o.tree, f.Count.Nodes, f.Count.Leaves, f.Count.Depth, n.Size(), took.Seconds(), rate(f.Count, took), f.Searched, f.Steals); err != nil {
		return err
	}
	if f.Count != t.want {
		return fmt.Errorf("uts: tree %s has %+v, found were %+v", o.tree, t.want, f.Count)
	}
	if _, err := fmt.Fprintln(out, "these are the numbers that the tree has"); err != nil || !o.check {
		return err
	}
	start := n.Now()
	c := t.alone()
	alone := n.Now() - start
	if c != f.Count {
		return fmt.Errorf("uts: tree %s has %+v without a queue, and %+v with it", o.tree, c, f.Count)
	}
	_, err := fmt.Fprintf(out, "the same without a queue: %.3f s, %.2f million nodes/s, %.2f times as long\n", alone.Seconds(), rate(c, alone), alone.Seconds()/took.Seconds())
	return err
}

// rate is millions of nodes a second.
func rate(c count, took time.Duration) float64 { return float64(c.Nodes) / took.Seconds() / 1e6 }
