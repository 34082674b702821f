package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"sort": main})
}

// TestSampleSort compares the ranks' parts, one behind the other, with a sorted slice.
func TestSampleSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOf(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3))), 1, 5).Draw(t, "keys")
		sorted := make([][]uint64, len(parts))
		err := gas.Run(gas.Config{Ranks: len(parts), SegmentSize: 1 << 18}, func(n *gas.Node) error {
			part, err := sampleSort(n, slices.Clone(parts[n.Rank()]))
			sorted[n.Rank()] = part
			return err
		})
		want := slices.Concat(parts...)
		slices.Sort(want)
		if got := slices.Concat(sorted...); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v sorted is %v, want %v: %v", parts, got, want, err)
		}
	})
}

func TestInProcess(t *testing.T) {
	for _, ranks := range []int{1, 2, 5} {
		for _, distinct := range []uint64{0, 1, 3} {
			for _, size := range []int{0, 1, 14} {
				var out bytes.Buffer
				if err := run(options{ranks: ranks, size: size, distinct: distinct, alone: true}, &out); err != nil {
					t.Fatal(err)
				}
				want := fmt.Sprintf("%d keys in order, none lost or made, rank 0 to %d have ", 1<<size, ranks-1)
				if s := out.String(); !strings.Contains(s, want) || !strings.Contains(s, "slices.Sort of all on one rank has the same: ") {
					t.Errorf("got %q, want %q", s, want)
				}
			}
		}
	}
}

func TestProcesses(t *testing.T) {
	r := testjob.RunConfig(t, 3, "sort", testjob.Config{Args: []string{"-size", "12"}}).Want(t, 0)
	if want := "4096 keys in order, none lost or made, rank 0 to 2 have "; !strings.Contains(r.Stdout[0], want) {
		t.Errorf("got %q, want %q", r.Stdout[0], want)
	}
}

// TestWrong shows that each check would notice.
func TestWrong(t *testing.T) {
	for name, c := range map[string]struct {
		parts [2][]uint64
		want  string
	}{
		"inside":  {[2][]uint64{{1, 3}, {5, 4}}, "sort: the part of rank 1 is not in order"},
		"between": {[2][]uint64{{1, 5}, {3, 4}}, "sort: rank 0 has key 0x5, and rank 1 0x3"},
		"another": {[2][]uint64{{1, 3}, {4, 6}}, "sort: there were 4 keys with sum "},
		"lost":    {[2][]uint64{{1, 3}, {4}}, "and are 3 with sum "},
	} {
		t.Run(name, func(t *testing.T) {
			err := gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
				before := sumsOf([]uint64{1, 3, 4, 5}[2*n.Rank():][:2], 0)
				return new(options).check(n, before, c.parts[n.Rank()], 1, &bytes.Buffer{})
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":         "sort: -n 0: it must be at least 1\n",
		"-size -1":     "sort: -size -1: it must be 0 to 34\n",
		"-size 35":     "sort: -size 35: it must be 0 to 34\n",
		"-distinct -1": "invalid value \"-1\" for flag -distinct",
		"much":         "sort: unexpected argument \"much\"\n",
	} {
		r := testjob.RunConfig(t, 1, "sort", testjob.Config{Args: strings.Fields(args)})
		if r.Status == 0 || !strings.Contains(r.Stderr[0], want) {
			t.Errorf("sort %s: status %d, %q, want %q", args, r.Status, r.Stderr[0], want)
		}
	}
}
