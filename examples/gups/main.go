// Gups is the RandomAccess benchmark of the HPC Challenge: it updates random
// words of a table that is spread over all ranks, counts giga-updates per second
// (GUPS), and verifies the table by doing the same updates again.
//
//	go run ./examples/gups -n 4 -size 22              # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/gups -size 22 -mode mailbox
//
// The table has 2^size words of 64 bits; word i holds i at first. There are four
// updates for each word: T[a mod 2^size] ^= a, where a runs through the
// benchmark's sequence of pseudo-random numbers, of which every rank takes an
// equal part. An update is its own inverse, so that after all of them have been
// made twice word i must hold i again. The benchmark forgives 1 % of wrong words
// to programs that lose updates to races; here none may be wrong:
//
//   - with -mode atomic (the default) an update is a remote atomic;
//   - with -mode mailbox a rank pushes updates into a mailbox, which collects them by
//     their owner, whose function applies them. On more than two ranks it holds back
//     more than the 1024 that the benchmark's rules allow.
//
// Where ranks have no direct access to each other (-conduit udp, several hosts) an
// atomic is a round trip over the network, and -mode mailbox is hundreds of times faster.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/argon-go/argon/gas"
)

type options struct {
	ranks int
	size  int // log2 of the words of the table
	mode  string
}

const (
	modeAtomic  = "atomic"
	modeMailbox = "mailbox"

	maxSize = 40
)

func main() {
	var o options
	flag.IntVar(&o.ranks, "n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	flag.IntVar(&o.size, "size", 20, "make the table 2^`K` words of 8 bytes")
	flag.StringVar(&o.mode, "mode", modeAtomic, "update by `MODE`: atomic (remote atomics) or mailbox (many to a message)")
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "gups: %v\n", err)
		os.Exit(2)
	}
	gas.Exit(run(o, os.Stdout))
}

func (o *options) validate(args []string) error {
	switch {
	case o.ranks < 1:
		return fmt.Errorf("-n %d: it must be at least 1", o.ranks)
	case o.size < 1 || o.size > maxSize:
		return fmt.Errorf("-size %d: it must be 1 to %d", o.size, maxSize)
	case o.mode != modeAtomic && o.mode != modeMailbox:
		return fmt.Errorf("-mode %q: it must be %s or %s", o.mode, modeAtomic, modeMailbox)
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// period of the sequence of random numbers, as the benchmark defines it.
const period = 1317624576693539401

// after is the number that follows a: a shift register over GF(2) with the
// polynomial x^63 + x^2 + x + 1.
func after(a uint64) uint64 {
	const poly = 7
	return a<<1 ^ uint64(int64(a)>>63)&poly
}

// starts is number n of the sequence, found in O(log n) steps.
func starts(n uint64) uint64 {
	n %= period
	if n == 0 {
		return 1
	}
	// squares[i] is x^(2^i * 2) in the field: to double the exponent of a
	// number, replace each of its bits i by squares[i].
	var squares [64]uint64
	a := uint64(1)
	for i := range squares {
		squares[i] = a
		a = after(after(a))
	}
	top := 63
	for n>>top&1 == 0 {
		top--
	}
	a = 2
	for i := top; i > 0; i-- {
		double := uint64(0)
		for b := range squares {
			if a>>b&1 != 0 {
				double ^= squares[b]
			}
		}
		a = double
		if n>>(i-1)&1 != 0 {
			a = after(a)
		}
	}
	return a
}

// table is one rank's view of the table: blocks of equal size, one a rank.
type table struct {
	n     *gas.Node
	words uint64          // in all
	block uint64          // of a rank
	own   gas.Ptr[uint64] // the first of the own block
}

// update makes one update by a remote atomic.
func (t *table) update(a uint64) error {
	i := a & (t.words - 1)
	_, err := gas.FetchXor(t.n, t.own.On(int(i/t.block)).Add(int(i%t.block)), a)
	return err
}

// updateAll makes this rank's part of all updates.
func (t *table) updateAll(total uint64, mode string) error {
	size, rank := uint64(t.n.Size()), uint64(t.n.Rank())
	part := func(r uint64) uint64 { return total/size*r + min(r, total%size) }
	first, end := part(rank), part(rank+1)
	a := starts(first)
	if mode == modeAtomic {
		for range end - first {
			if err := t.update(a); err != nil {
				return err
			}
			a = after(a)
		}
		return t.n.Barrier()
	}
	own, begin, err := t.ownBlock()
	if err != nil {
		return err
	}
	box, err := gas.NewMailbox(t.n, "updates", func(_ *gas.Node, _ int, updates []uint64) {
		for _, a := range updates {
			own[a&(t.words-1)-begin] ^= a
		}
	})
	if err != nil {
		return err
	}
	for range end - first {
		if err := box.Push(int(a&(t.words-1)/t.block), a); err != nil {
			return err
		}
		a = after(a)
	}
	return box.Delete()
}

// wrong counts the words of the own block that do not hold their index.
func (t *table) wrong() (uint64, error) {
	own, first, err := t.ownBlock()
	bad := uint64(0)
	for i, v := range own {
		if v != first+uint64(i) {
			bad++
		}
	}
	return bad, err
}

// ownBlock is the part of the table that this rank has, and its first index.
func (t *table) ownBlock() (own []uint64, first uint64, err error) {
	first = min(uint64(t.n.Rank())*t.block, t.words)
	own, ok := t.own.LocalSlice(t.n, int(min(t.block, t.words-first)))
	if !ok {
		return nil, 0, fmt.Errorf("gups: rank %d cannot reach its own memory", t.n.Rank())
	}
	return own, first, nil
}

func newTable(n *gas.Node, o options) (*table, error) {
	t := &table{n: n, words: 1 << o.size}
	t.block = (t.words + uint64(n.Size()) - 1) / uint64(n.Size())
	var err error
	if t.own, err = gas.NewSlice[uint64](n, int(t.block)); err != nil {
		return nil, fmt.Errorf("gups: a table of 2^%d words over %d ranks: %w", o.size, n.Size(), err)
	}
	own, first, err := t.ownBlock()
	if err != nil {
		return nil, err
	}
	for i := range own {
		own[i] = first + uint64(i)
	}
	// No rank updates before all are ready.
	return t, n.Barrier()
}

// run does the benchmark and writes the result to out.
func run(o options, out io.Writer) error {
	return gas.Run(gas.Config{Ranks: o.ranks}, func(n *gas.Node) error {
		t, err := newTable(n, o)
		if err != nil {
			return err
		}
		total := 4 * t.words
		start := n.Now()
		if err := t.updateAll(total, o.mode); err != nil {
			return err
		}
		took := n.Now() - start
		changed, err := t.wrong()
		if err != nil {
			return err
		}
		// Looking at words and updating them must not overlap.
		if err := n.Barrier(); err != nil {
			return err
		}
		if err := t.updateAll(total, o.mode); err != nil {
			return err
		}
		bad, err := t.wrong()
		if err != nil {
			return err
		}
		if bad, err = gas.Reduce(n, 0, bad, gas.Sum[uint64]); err != nil {
			return err
		}
		if changed, err = gas.Reduce(n, 0, changed, gas.Sum[uint64]); err != nil || n.Rank() != 0 {
			return err
		}
		if _, err := fmt.Fprintf(out, "%d updates of 2^%d words over %d ranks by %s: %.3f s, %.4f GUPS\n",
			total, o.size, n.Size(), o.mode, took.Seconds(), float64(total)/took.Seconds()/1e9); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "verified by making them again: %d words were changed, %d are wrong now\n", changed, bad); err != nil {
			return err
		}
		if bad > 0 {
			return fmt.Errorf("gups: %d of 2^%d words are wrong", bad, o.size)
		}
		return nil
	})
}
