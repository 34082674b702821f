package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/gastest"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"gups": main})
}

// TestStarts compares jumping into the sequence with walking there.
func TestStarts(t *testing.T) {
	const n = 5000
	a := uint64(1)
	for i := range uint64(n) {
		if got := starts(i); got != a {
			t.Fatalf("starts(%d) = %#x, want %#x", i, got, a)
		}
		a = after(a)
	}
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.Uint64Range(0, period-2).Draw(t, "number")
		if starts(i+1) != after(starts(i)) {
			t.Fatalf("starts(%d) is not what follows starts(%d)", i+1, i)
		}
		if starts(i+period) != starts(i) {
			t.Fatalf("the sequence does not repeat at %d", i)
		}
	})
}

// expected is how many of 2^size words all updates change.
func expected(size int) (changed int) {
	words := uint64(1) << size
	table := make([]uint64, words)
	a := uint64(1)
	for range 4 * words {
		table[a&(words-1)] ^= a
		a = after(a)
	}
	for _, v := range table {
		if v != 0 {
			changed++
		}
	}
	return changed
}

func check(t *testing.T, out, want string) {
	t.Helper()
	if !strings.Contains(out, want) {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestInProcess(t *testing.T) {
	if changed := expected(10); changed != 363 {
		t.Fatalf("a plain table has %d changed words", changed)
	}
	for _, mode := range []string{modeAtomic, modeMailbox} {
		for _, ranks := range []int{1, 2, 3, 8} {
			var out bytes.Buffer
			if err := run(options{ranks: ranks, size: 10, mode: mode}, &out); err != nil {
				t.Fatalf("%d ranks, %s: %v", ranks, mode, err)
			}
			check(t, out.String(), "verified by making them again: 363 words were changed, 0 are wrong now\n")
		}
	}
	// More ranks than words, and updates that do not divide evenly: each of the
	// few updates counts.
	for size := 1; size <= 5; size++ {
		for _, ranks := range []int{3, 5, 7} {
			var out bytes.Buffer
			if err := run(options{ranks: ranks, size: size, mode: modeMailbox}, &out); err != nil {
				t.Fatal(err)
			}
			check(t, out.String(), fmt.Sprintf("%d updates of 2^%d words over %d ranks by mailbox", 4<<size, size, ranks))
			check(t, out.String(), fmt.Sprintf(": %d words were changed, 0 are wrong now\n", expected(size)))
		}
	}
}

func TestProcesses(t *testing.T) {
	for _, mode := range []string{modeAtomic, modeMailbox} {
		r := testjob.RunConfig(t, 4, "gups", testjob.Config{Args: []string{"-size", "10", "-mode", mode}}).Want(t, 0)
		check(t, r.Stdout[0], "4096 updates of 2^10 words over 4 ranks by "+mode)
		check(t, r.Stdout[0], "363 words were changed, 0 are wrong now\n")
	}
}

// TestWrong shows that the verification would notice.
func TestWrong(t *testing.T) {
	gastest.Run(t, 2, func(n *gas.Node) error {
		tb, err := newTable(n, options{size: 8})
		if err != nil {
			return err
		}
		if n.Rank() == 1 {
			if err := tb.update(5 << 32); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		bad, err := tb.wrong()
		if err == nil && bad != uint64(1-n.Rank()) {
			err = errors.New("one update of a word of rank 0 went unnoticed")
		}
		return err
	})
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":        "gups: -n 0: it must be at least 1\n",
		"-size 0":     "gups: -size 0: it must be 1 to 40\n",
		"-size 41":    "gups: -size 41: it must be 1 to 40\n",
		"-mode magic": "gups: -mode \"magic\": it must be atomic or mailbox\n",
		"much":        "gups: unexpected argument \"much\"\n",
		"-size 30":    "a table of 2^30 words over 1 ranks",
	} {
		r := testjob.RunConfig(t, 1, "gups", testjob.Config{Args: strings.Fields(args)})
		if r.Status == 0 || !strings.Contains(r.Stderr[0], want) {
			t.Errorf("gups %s: status %d, %q, want %q", args, r.Status, r.Stderr[0], want)
		}
	}
}
