package weathertest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/lab/faultproxy"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func init() {
	c := config{faults: faultproxy.Faults{Drop: 0.2}, env: map[string]string{"ARGON_DEADTIME": "30s"}}
	conduits.Register(conduits.Conduit{Name: "rain", Local: opener(c)})
}

// letters counts how often a rank has had each of what others have sent to it.
type letters [lettersEach]atomic.Int32

// lettersEach is how many letters a rank sends by each way, of which a few fill a datagram.
const lettersEach = 600

// addressee is the rank that letter i is for.
func addressee(i, ranks int) int { return int(uint32(i) * 2654435761 >> 8 % uint32(ranks)) }

// onceEach is the error of letters that have not come once from each of so many ranks to rank.
func (l *letters) onceEach(what string, rank, ranks int) error {
	for i := range l {
		want := int32(0)
		if addressee(i, ranks) == rank {
			want = int32(ranks)
		}
		if got := l[i].Load(); got != want {
			return fmt.Errorf("rank %d had %s %d %d times, want %d", rank, what, i, got, want)
		}
	}
	return nil
}

var (
	lettersSent, lettersDone gas.PerRank[letters]

	sentLetter = gas.RegisterCall("weathertest.sent", func(n *gas.Node, i int) struct{} {
		lettersSent.Of(n)[i].Add(1)
		return struct{}{}
	})
	doneLetter = gas.RegisterTask("weathertest.done", func(c *gas.Call, i int) (int, error) {
		lettersDone.Of(c.Node)[i].Add(1)
		return i + c.Caller(), nil
	})
)

// TestRunOnceInRain: where a fifth of the datagrams is lost, each item of a mailbox, each item that
// a function pushes on, and each call is handled once.
func TestRunOnceInRain(t *testing.T) {
	testmain.Long(t)
	const ranks = 3
	err := gas.Run(gas.Config{Ranks: ranks, Conduit: "rain", SegmentSize: 1 << 20}, func(n *gas.Node) error {
		type item struct{ number, hops int }
		var pushed, passed letters
		var failed error
		var box *gas.Mailbox[item]
		box, err := gas.NewMailbox(n, "letters", func(n *gas.Node, _ int, items []item) {
			for _, it := range items {
				if it.hops > 0 {
					passed[it.number].Add(1)
					continue
				}
				pushed[it.number].Add(1)
				if err := box.Push(addressee(it.number, ranks), item{it.number, 1}); err != nil {
					failed = err
				}
			}
		})
		if err != nil {
			return err
		}
		futures := make([]gas.Future[int], 0, lettersEach)
		for i := range lettersEach {
			to := addressee(i, ranks)
			if err := box.Push(to, item{number: i}); err != nil {
				return err
			}
			if i%8 == 0 {
				if err := box.Flush(); err != nil {
					return err
				}
			}
			if err := sentLetter.Send(n, to, i); err != nil {
				return err
			}
			f, err := doneLetter.Go(n, to, i)
			if err != nil {
				return err
			}
			futures = append(futures, f)
		}
		for i := range futures {
			if got, err := futures[i].Wait(); err != nil || got != i+n.Rank() {
				return fmt.Errorf("call %d of rank %d: %d, %w", i, n.Rank(), got, err)
			}
		}
		if err := box.Delete(); err != nil {
			return err
		}
		if err := n.Quiesce(); err != nil {
			return err
		}
		for what, l := range map[string]*letters{
			"item": &pushed, "item pushed on": &passed, "message": lettersSent.Of(n), "task": lettersDone.Of(n),
		} {
			if err := l.onceEach(what, n.Rank(), ranks); err != nil {
				return err
			}
		}
		return failed
	})
	if err != nil {
		t.Fatal(err)
	}
}
