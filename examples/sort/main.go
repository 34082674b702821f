// Sort is a sample sort: every rank has a part of the keys, and afterwards the ranks have them in
// order, the least on rank 0.
//
//	go run ./examples/sort -n 4                     # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/sort -size 24
//
// A rank sorts its keys and shows some of them, at equal distances, to all. Of these samples the ranks
// choose the same splitters, cut their keys there, and send each piece to its rank, which
// merges what it gets. The order is checked between neighbours and inside of ranks, and sums over all keys and
// places are compared with those of slices.Sort on rank 0 alone, unless -alone=false.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/argon-go/argon/gas"
)

type options struct {
	ranks    int
	size     int    // log2 of the keys
	distinct uint64 // how many different keys there may be; 0 means any
	alone    bool
}

const (
	maxSize = 34
	// samples is how many keys a rank shows for each rank: with more, parts are more equal.
	samples = 32
)

func main() {
	var o options
	flag.IntVar(&o.ranks, "n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	flag.IntVar(&o.size, "size", 18, "sort 2^`K` keys of 8 bytes")
	flag.Uint64Var(&o.distinct, "distinct", 0, "have at most `D` different keys; 0 for any number")
	flag.BoolVar(&o.alone, "alone", true, "sort all keys on rank 0 alone as well, and compare")
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "sort: %v\n", err)
		os.Exit(2)
	}
	gas.Exit(run(o, os.Stdout))
}

func (o *options) validate(args []string) error {
	switch {
	case o.ranks < 1:
		return fmt.Errorf("-n %d: it must be at least 1", o.ranks)
	case o.size < 0 || o.size > maxSize:
		return fmt.Errorf("-size %d: it must be 0 to %d", o.size, maxSize)
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// mix spreads x over all words, one to one.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// generate is keys first and on of all, of which each is what its number says.
func (o *options) generate(first, count uint64) []uint64 {
	keys := make([]uint64, count)
	for i := range keys {
		keys[i] = mix((first + uint64(i) + 1) * 0x9e3779b97f4a7c15)
		if o.distinct > 0 {
			keys[i] %= o.distinct
		}
	}
	return keys
}

// sums tell apart, but for chance, what has other keys, or has them in another order.
type sums struct {
	Count  uint64
	Keys   uint64 // of the keys alone, each mixed
	Placed uint64 // of the keys with their places
}

func (s sums) combine(t sums) sums {
	return sums{s.Count + t.Count, s.Keys + t.Keys, s.Placed + t.Placed}
}

// sumsOf are those of keys, of which the first has a place.
func sumsOf(keys []uint64, place uint64) (s sums) {
	s.Count = uint64(len(keys))
	for i, k := range keys {
		s.Keys += mix(k)
		s.Placed += mix(k + mix(place+uint64(i)))
	}
	return s
}

// splitters are the keys at which all ranks cut theirs: rank r gets those from splitter r-1 up to below
// splitter r. sorted are this rank's.
func splitters(n *gas.Node, sorted []uint64) ([]uint64, error) {
	own := make([]uint64, 0, samples*n.Size())
	for i := range cap(own) {
		if len(sorted) > 0 {
			own = append(own, sorted[i*len(sorted)/cap(own)])
		}
	}
	all, err := gas.AllGatherV(n, own)
	if err != nil {
		return nil, err
	}
	shown := slices.Concat(all...)
	slices.Sort(shown)
	cuts := make([]uint64, n.Size()-1)
	for r := range cuts {
		if len(shown) > 0 {
			cuts[r] = shown[(r+1)*len(shown)/n.Size()]
		}
	}
	return cuts, nil
}

// sampleSort sorts the keys of all ranks and returns this rank's part of all. It reorders keys.
func sampleSort(n *gas.Node, keys []uint64) ([]uint64, error) {
	slices.Sort(keys)
	cuts, err := splitters(n, keys)
	if err != nil {
		return nil, err
	}
	pieces := make([][]uint64, n.Size())
	rest := keys
	for r, cut := range cuts {
		at, _ := slices.BinarySearch(rest, cut)
		pieces[r], rest = rest[:at], rest[at:]
	}
	pieces[len(cuts)] = rest
	got, err := gas.AllToAllV(n, pieces)
	if err != nil {
		return nil, err
	}
	return merge(got), nil
}

// merge makes one sorted slice of several, pair by pair.
func merge(sorted [][]uint64) []uint64 {
	for len(sorted) > 1 {
		var next [][]uint64
		for i := 0; i < len(sorted); i += 2 {
			if i+1 == len(sorted) {
				next = append(next, sorted[i])
				break
			}
			a, b := sorted[i], sorted[i+1]
			out := make([]uint64, 0, len(a)+len(b))
			for len(a) > 0 && len(b) > 0 {
				if a[0] <= b[0] {
					out, a = append(out, a[0]), a[1:]
				} else {
					out, b = append(out, b[0]), b[1:]
				}
			}
			next = append(next, append(append(out, a...), b...))
		}
		sorted = next
	}
	return sorted[0]
}

// border has the ends of a rank's part, for the others.
type border struct {
	Count       uint64
	First, Last uint64 // keys, if there are any
}

// inOrder is an error if part, this rank's, is not sorted or not behind those of the ranks below. It
// returns the place of the first key among all, and the least and the greatest part.
func inOrder(n *gas.Node, part []uint64) (place uint64, least, most uint64, err error) {
	b := border{Count: uint64(len(part))}
	if len(part) > 0 {
		b.First, b.Last = part[0], part[len(part)-1]
	}
	all, err := gas.AllGather(n, b)
	if err != nil {
		return 0, 0, 0, err
	}
	if !slices.IsSorted(part) {
		return 0, 0, 0, fmt.Errorf("sort: the part of rank %d is not in order", n.Rank())
	}
	least = all[0].Count
	for r, other := range all {
		least, most = min(least, other.Count), max(most, other.Count)
		if r >= n.Rank() {
			continue
		}
		place += other.Count
		if other.Count > 0 && b.Count > 0 && other.Last > b.First {
			return 0, 0, 0, fmt.Errorf("sort: rank %d has key %#x, and rank %d %#x", r, other.Last, n.Rank(), b.First)
		}
	}
	return place, least, most, nil
}

// run sorts, checks and writes the result to out.
func run(o options, out io.Writer) error {
	return gas.Run(gas.Config{Ranks: o.ranks}, func(n *gas.Node) error {
		total, size, rank := uint64(1)<<o.size, uint64(n.Size()), uint64(n.Rank())
		first := func(r uint64) uint64 { return total/size*r + min(r, total%size) }
		keys := o.generate(first(rank), first(rank+1)-first(rank))
		before := sumsOf(keys, 0)
		if err := n.Barrier(); err != nil {
			return err
		}
		start := n.Now()
		part, err := sampleSort(n, keys)
		if err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		took := n.Now() - start
		return o.check(n, before, part, took, out)
	})
}

// check compares part, which this rank has after sorting for so long, with what there was before,
// and writes the result to out on rank 0.
func (o *options) check(n *gas.Node, before sums, part []uint64, took time.Duration, out io.Writer) error {
	place, least, most, err := inOrder(n, part)
	if err != nil {
		return err
	}
	after, err := gas.Reduce(n, 0, sumsOf(part, place), sums.combine)
	if err != nil {
		return err
	}
	before, err = gas.Reduce(n, 0, before, sums.combine)
	if err != nil || n.Rank() != 0 {
		return err
	}
	if before.Count != after.Count || before.Keys != after.Keys {
		return fmt.Errorf("sort: there were %d keys with sum %#x, and are %d with sum %#x", before.Count, before.Keys, after.Count, after.Keys)
	}
	if _, err := fmt.Fprintf(out, "%d keys in order, none lost or made, rank 0 to %d have %d to %d: %.3f s, %.1f million/s\n",
		after.Count, n.Size()-1, least, most, took.Seconds(), float64(after.Count)/took.Seconds()/1e6); err != nil || !o.alone {
		return err
	}
	all := o.generate(0, after.Count)
	start := n.Now()
	slices.Sort(all)
	alone := n.Now() - start
	if want := sumsOf(all, 0); want != after {
		return fmt.Errorf("sort: slices.Sort of all keys has sums %+v, found were %+v", want, after)
	}
	_, err = fmt.Fprintf(out, "slices.Sort of all on one rank has the same: %.3f s, %.2f times as long\n", alone.Seconds(), alone.Seconds()/took.Seconds())
	return err
}
