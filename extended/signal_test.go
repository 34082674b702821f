package extended

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// TestPutSignal passes blocks of data round a ring; a rank that sees the signal
// must see the data. Ranks sleep while they wait.
func TestPutSignal(t *testing.T) {
	const ranks, rounds, block = 4, 200, 100
	for _, direct := range []bool{true, false} {
		j := newFake(ranks, fakeOptions{direct: direct, eager: true, seed: 9})
		if !direct {
			// Signals that come through a conduit are arrivals there: wake the target.
			for _, e := range j.eps {
				e.wakeTarget = true
			}
		}
		var wg sync.WaitGroup
		for r := range ranks {
			wg.Go(func() {
				x := j.eps[r].x
				next := (r + 1) % ranks
				data := make([]byte, block)
				for i := range rounds {
					if r != 0 { // this round's block, to be passed on
						if w, err := x.WaitUntil(at(0), Ge, uint64(i+1)); err != nil || w < uint64(i+1) {
							t.Error(w, err)
							return
						}
					}
					for k := range data {
						data[k] = byte(i + k)
					}
					if r != 0 {
						for k, b := range j.segs[r][64 : 64+block] {
							if b != byte(i+k) {
								t.Errorf("direct=%v: rank %d round %d: byte %d is %d", direct, r, i, k, b)
								return
							}
						}
					}
					var err error
					if i%2 == 0 {
						err = x.PutSignal(next, at(64), data, at(0), SignalSet, uint64(i+1))
					} else {
						var h Handle
						if h, err = x.PutSignalNB(next, at(64), data, at(0), SignalAdd, 1); err == nil {
							err = x.Wait(h)
						}
					}
					if err != nil {
						t.Error(err)
						return
					}
					// The block may be overwritten when it has come round.
					if r == 0 {
						if _, err := x.WaitUntil(at(0), Eq, uint64(i+1)); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestCmp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64Range(0, 3).Draw(t, "a"), rapid.Uint64Range(0, 3).Draw(t, "b")
		if rapid.Bool().Draw(t, "high") {
			a |= 1 << 63 // unsigned, so greater
		}
		for c, want := range map[Cmp]bool{Eq: a == b, Ne: a != b, Gt: a > b, Ge: a >= b, Lt: a < b, Le: a <= b} {
			if c.holds(a, b) != want {
				t.Fatalf("%d %v %d is %v", a, c, b, !want)
			}
		}
	})
}

// TestWaitLists signals words one after the other, in an order that rapid
// chooses, to a rank that waits for them in all ways.
func TestWaitLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newFake(2, fakeOptions{direct: true})
		x, y := j.eps[0].x, j.eps[1].x
		const n = 6
		sigs := make([]segment.NLA, n)
		for i := range sigs {
			sigs[i] = at(8 * i)
		}
		order := rapid.Permutation(upTo(n)).Draw(t, "order")
		step := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			for _, i := range order {
				<-step
				if err := y.Signal(0, sigs[i], SignalAdd, 7); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		last := -1
		for k, want := range order {
			found, err := x.TestUntilSome(nil, sigs, Eq, 7)
			if err != nil || len(found) != k-taken(order[:k], sigs, x) {
				t.Fatal(found, err)
			}
			step <- struct{}{}
			switch rapid.IntRange(0, 2).Draw(t, "way") {
			case 0:
				i, err := x.WaitUntilAny(sigs, last, Eq, 7)
				if err != nil || i != want {
					t.Fatalf("any gave %d, %v; not %d", i, err, want)
				}
				last = i
			case 1:
				found, err := x.WaitUntilSome([]int{-5}, sigs, Eq, 7)
				if err != nil || len(found) != 2 || found[0] != -5 || found[1] != want {
					t.Fatalf("some gave %v, %v; not %d", found, err, want)
				}
			default:
				w, err := x.WaitUntil(sigs[want], Gt, 6)
				if err != nil || w != 7 {
					t.Fatal(w, err)
				}
			}
			if err := Store[uint64](x, 0, sigs[want], 1000); err != nil { // taken
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := x.WaitUntilAll(sigs, Eq, 1000); err != nil {
			t.Fatal(err)
		}
	})
}

// taken is how many of the words that were signalled have been taken again.
func taken(order []int, sigs []segment.NLA, x *Initiator) (n int) {
	for _, i := range order {
		if w, _, _ := x.TestUntil(sigs[i], Eq, 1000); w == 1000 {
			n++
		}
	}
	return n
}

// TestWaitUntilAllSleeps: the last of the words ends the wait, in whatever order
// they come, and none before it.
func TestWaitUntilAllSleeps(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		j := newFake(2, fakeOptions{direct: true})
		x, y := j.eps[0].x, j.eps[1].x
		sigs := []segment.NLA{at(0), at(8), at(16)}
		done := make(chan error)
		go func() { done <- x.WaitUntilAll(sigs, Ge, 1) }()
		for k, i := range order {
			select {
			case err := <-done:
				t.Fatalf("all, before word %d of %v: %v", k, order, err)
			case <-j.eps[0].parked:
			}
			if err := y.Signal(0, sigs[i], SignalSet, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaitUntilAnyIsFair: of several words that compare the one after the last
// is found.
func TestWaitUntilAnyIsFair(t *testing.T) {
	x := newFake(1, fakeOptions{direct: true}).eps[0].x
	sigs := []segment.NLA{at(0), at(8), at(16)}
	for after, want := range map[int]int{-1: 0, 0: 1, 1: 2, 2: 0} {
		if i, err := x.WaitUntilAny(sigs, after, Eq, 0); i != want || err != nil {
			t.Errorf("after %d: %d, %v; not %d", after, i, err, want)
		}
	}
}

// TestWake: a change by other means than a signal needs it.
func TestWake(t *testing.T) {
	j := newFake(2, fakeOptions{direct: true})
	x, y := j.eps[0].x, j.eps[1].x
	sigs := []segment.NLA{at(0), at(8), at(16)}
	done := make(chan error)
	go func() { done <- x.WaitUntilAll(sigs, Eq, 9) }()
	<-j.eps[0].parked
	for _, a := range sigs {
		if err := Store[uint64](y, 0, a, 9); err != nil {
			t.Fatal(err)
		}
	}
	y.Wake(0)
	y.Wake(-1)
	y.Wake(2)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestSignalBadArguments(t *testing.T) {
	for _, direct := range []bool{true, false} {
		j := newFake(2, fakeOptions{direct: direct})
		x := j.eps[0].x
		size := len(j.segs[0])
		bad := func(what, says string, err error) {
			t.Helper()
			if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "extended: ") {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, a := range []segment.NLA{at(4), segment.PageSize - 8, at(size), at(size - 4), 0} {
			bad("signal", "", x.Signal(1, a, SignalSet, 1))
			bad("put with signal", "", x.PutSignal(1, at(64), []byte{1}, a, SignalAdd, 1))
			_, err := x.PutSignalNB(1, at(64), []byte{1}, a, SignalAdd, 1)
			bad("non-blocking", "", err)
			_, err = x.WaitUntil(a, Eq, 0)
			bad("wait", "", err)
			_, _, err = x.TestUntil(a, Eq, 0)
			bad("test", "", err)
			list := []segment.NLA{at(0), a}
			bad("all", "word 1 of 2", x.WaitUntilAll(list, Ne, 0))
			_, err = x.WaitUntilAny(list, -1, Eq, 0)
			bad("any", "word 1 of 2", err)
			_, err = x.WaitUntilSome(nil, list, Eq, 0)
			bad("some", "word 1 of 2", err)
			_, err = x.TestUntilSome(nil, list, Eq, 0)
			bad("test some", "word 1 of 2", err)
		}
		bad("data", "", x.PutSignal(1, at(size-4), make([]byte, 8), at(0), SignalSet, 1))
		bad("rank", "rank 2", x.Signal(2, at(0), SignalSet, 1))
		bad("rank", "rank -1", x.PutSignal(-1, at(0), nil, at(0), SignalSet, 1))
		bad("way", "way 2", x.Signal(1, at(0), 2, 1))
		bad("way", "way 9", x.PutSignal(1, at(64), []byte{1}, at(0), 9, 1))
		_, err := x.WaitUntil(at(0), numCmps, 0)
		bad("comparison", "6", err)
		_, err = x.WaitUntilAny(nil, -1, Eq, 0)
		bad("no words", "no words", err)
		_, err = x.WaitUntilSome(nil, nil, Eq, 0)
		bad("no words", "no words", err)
		_, err = x.WaitUntilAny([]segment.NLA{at(0)}, 1, Eq, 0)
		bad("after", "index 1", err)
		if err := x.WaitUntilAll(nil, Eq, 0); err != nil {
			t.Error(err)
		}
		for i, b := range j.segs[1] {
			if b != 0 {
				t.Fatalf("byte %d was written", i)
			}
		}
	}
}

func TestWaitUntilFails(t *testing.T) {
	j := newFake(2, fakeOptions{direct: true})
	x := j.eps[0].x
	done := make(chan error)
	go func() { _, err := x.WaitUntil(at(0), Eq, 1); done <- err }()
	j.eps[0].die(errDied, true)
	if err := <-done; !errors.Is(err, ErrPeer) {
		t.Fatal(err)
	}
}
