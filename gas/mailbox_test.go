package gas

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// hopper is an item that goes on to other ranks.
type hopper struct {
	id   uint32
	left uint16
	from uint16
	pad  [3]uint64
}

// TestMailboxModel pushes items that go on a few times, in several epochs, and counts them
// where they should come.
func TestMailboxModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 6).Draw(t, "ranks")
		items := rapid.SampledFrom([]int{0, 1, 30, 2000}).Draw(t, "items")
		hops := rapid.IntRange(0, 3).Draw(t, "hops")
		syncs := rapid.IntRange(1, 3).Draw(t, "syncs")
		bulk := rapid.Bool().Draw(t, "bulk")
		target := func(h hopper) int { return int(h.id*2654435761+uint32(h.left)*977) % ranks }
		err := Run(small(ranks), func(n *Node) error {
			epoch := 0
			got := map[uint32]int{}
			var failed error
			var box *Mailbox[hopper]
			box = Must(NewMailbox(n, "hoppers", func(n *Node, source int, items []hopper) {
				for _, h := range items {
					if int(h.from) != source || target(h) != n.Rank() || int(h.id)%syncs != epoch || h.pad[2] != uint64(h.id) {
						failed = fmt.Errorf("rank %d got %+v of rank %d in epoch %d", n.Rank(), h, source, epoch)
					}
					got[h.id<<4|uint32(h.left)]++
					if h.left > 0 {
						h.left--
						h.from = uint16(n.Rank())
						if err := box.Push(target(h), h); err != nil {
							failed = err
						}
					}
				}
			}))
			for ; epoch < syncs; epoch++ {
				byRank := make([][]hopper, ranks)
				for i := range items {
					id := uint32((i*ranks+n.Rank())*syncs + epoch)
					h := hopper{id: id, left: uint16(i % (hops + 1)), from: uint16(n.Rank()), pad: [3]uint64{2: uint64(id)}}
					if bulk {
						byRank[target(h)] = append(byRank[target(h)], h)
					} else if err := box.Push(target(h), h); err != nil {
						return err
					}
				}
				for r, all := range byRank {
					n.Must(box.PushAll(r, all))
				}
				n.Must(box.Sync())
				if failed != nil {
					return failed
				}
				for i := range items {
					for r := range ranks {
						h := hopper{id: uint32((i*ranks+r)*syncs + epoch)}
						for h.left = range uint16(i%(hops+1)) + 1 {
							want := 0
							if target(h) == n.Rank() {
								want = 1
							}
							if k := got[h.id<<4|uint32(h.left)]; k != want {
								return fmt.Errorf("rank %d: item %d with %d hops left came %d times, want %d", n.Rank(), h.id, h.left, k, want)
							}
						}
					}
				}
			}
			return box.Delete()
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestMailboxMisuse has each mistake end with an error that names it, on all ranks.
func TestMailboxMisuse(t *testing.T) {
	none := func(*Node, int, []int64) {}
	for name, c := range map[string]struct {
		want string
		fn   func(n *Node) error
	}{
		"not done": {`returned with 1 mailboxes that are not deleted: "lost" (Mailbox.Delete)`, func(n *Node) error {
			_, err := NewMailbox(n, "lost", none)
			return err
		}},
		"after done": {`push to mailbox "late" on rank `, func(n *Node) error {
			b, err := NewMailbox(n, "late", none)
			if err != nil {
				return err
			}
			if err := b.Delete(); err != nil {
				return err
			}
			return b.Push(0, 1)
		}},
		"no such rank": {"the job has ranks 0..2", func(n *Node) error {
			b, err := NewMailbox(n, "far", none)
			if err != nil {
				return err
			}
			return b.Push(3, 1)
		}},
		"different sizes": {"NewMailbox: rank 0 and rank 1 gave different arguments: items of 4 bytes", func(n *Node) error {
			if n.Rank() == 0 {
				_, err := NewMailbox(n, "box", func(*Node, int, []int32) {})
				return err
			}
			_, err := NewMailbox(n, "box", none)
			return err
		}},
		"no function": {"", func(n *Node) error {
			_, err := NewMailbox[int64](n, "void", nil)
			if err == nil || !strings.Contains(err.Error(), `mailbox "void" without a function`) {
				return fmt.Errorf("NewMailbox without a function: %v", err)
			}
			b, err := NewMailbox(n, "box", none)
			if err != nil {
				return err
			}
			return b.Delete()
		}},
		"pointers": {"", func(n *Node) error {
			if _, err := NewMailbox(n, "pointers", func(*Node, int, []*int) {}); !errors.Is(err, ErrBadArg) {
				return fmt.Errorf("NewMailbox of pointers: %v", err)
			}
			return nil
		}},
		"too large": {"", func(n *Node) error {
			if _, err := NewMailbox(n, "large", func(*Node, int, [][1 << 20]byte) {}); !errors.Is(err, ErrBadArg) {
				return fmt.Errorf("NewMailbox of megabytes: %v", err)
			}
			return nil
		}},
		"barrier": {"ranks are in different collective calls", func(n *Node) error {
			b, err := NewMailbox(n, "box", none)
			if err != nil || n.Rank() == 1 {
				return errors.Join(err, n.Barrier())
			}
			return b.Delete()
		}},
		"left": {"rank 1", func(n *Node) error {
			if n.Rank() == 1 {
				return nil
			}
			return n.Quiesce()
		}},
		"fails": {"rank 1", func(n *Node) error {
			b, err := NewMailbox(n, "box", none)
			if err != nil {
				return err
			}
			if n.Rank() == 1 {
				return errors.New("enough")
			}
			for {
				for range 1000 {
					if err := b.Push(1, 1); err != nil {
						return err
					}
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Run(Config{Ranks: 3, Conduit: "shm"}, c.fn)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

// callOnward sends itself on as often as its argument says, by deferred work.
var callOnward *Func[int, struct{}]

func init() {
	callOnward = RegisterCall("test.onward", func(n *Node, left int) struct{} {
		n.Defer(func(n *Node) {
			onwards.Of(n).ran++
			if left > 0 {
				if err := callOnward.Send(n, (n.Rank()+1)%n.Size(), left-1); err != nil {
					panic(err)
				}
			}
		})
		return struct{}{}
	})
}

var onwards PerRank[struct{ ran int }]

// TestQuiesce counts what sends and what they caused have done when it returns.
func TestQuiesce(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "sim") {
		for _, ranks := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(conduit, ranks), func(t *testing.T) {
				const sends, hops = 20, 5
				err := Run(Config{Ranks: ranks, Conduit: conduit}, func(n *Node) error {
					for round := 1; round <= 3; round++ {
						for i := range sends {
							n.Must(callOnward.Send(n, i%n.Size(), hops))
						}
						n.Must(n.Quiesce())
						all := Must(AllReduce(n, onwards.Of(n).ran, Sum))
						if want := round * ranks * sends * (hops + 1); all != want {
							return fmt.Errorf("%d functions have run after round %d, want %d", all, round, want)
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestMailboxFunctionPanics ends the rank with the panic of a mailbox's function, though a task
// on whose stack it runs would catch its own.
func TestMailboxFunctionPanics(t *testing.T) {
	err := Run(Config{Ranks: 2, Conduit: "shm"}, func(n *Node) error {
		b := Must(NewMailbox(n, "fragile", func(*Node, int, []int64) { panic("no such item") }))
		polling.Of(n).box = b
		if n.Rank() == 0 {
			n.Must(b.Push(1, 1))
			n.Must(b.Flush())
			Must(callPolling.Call(n, 1, 0))
		}
		return errors.Join(n.Barrier(), b.Delete())
	})
	if err == nil || !strings.Contains(err.Error(), "no such item") {
		t.Fatalf("got %v", err)
	}
}

var polling PerRank[struct{ box *Mailbox[int64] }]

// callPolling polls a mailbox, as a task.
var callPolling = RegisterTask("test.polling", func(c *Call, _ int) (int, error) {
	return 0, polling.Of(c.Node).box.Poll()
})

// TestQuiesceFindsNothing: what Quiesce waits for is no finding of Config.Debug.
func TestQuiesceFindsNothing(t *testing.T) {
	var out strings.Builder
	err := Run(Config{Ranks: 2, Conduit: "shm", Debug: true, Output: &out}, func(n *Node) error {
		for range 100 {
			n.Must(callOnward.Send(n, 1-n.Rank(), 3))
		}
		return n.Quiesce()
	})
	if err != nil || out.Len() > 0 {
		t.Errorf("%v; %s", err, out.String())
	}
}
