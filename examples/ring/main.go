// Ring passes a token from rank to rank by active messages and tells how long a
// hop takes.
//
//	go run ./examples/ring -n 4 -laps 1000           # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/ring -laps 1000
//
// It shows a handler, how it finds the state of its rank, and waiting for what
// a handler does. A handler must not send requests, so the token goes on from
// the rank's own code, not from the handler.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/gas"
)

func main() {
	ranks := flag.Int("n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	laps := flag.Int("laps", 1000, "send the token around `L` times")
	flag.Parse()
	switch {
	case *ranks < 1:
		usage("-n %d: it must be at least 1", *ranks)
	case *laps < 1 || *laps > maxLaps:
		usage("-laps %d: it must be 1 to %d", *laps, maxLaps)
	case flag.NArg() > 0:
		usage("unexpected argument %q", flag.Arg(0))
	}
	gas.Exit(run(*ranks, *laps, os.Stdout))
}

func usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "ring: "+format+"\n", args...)
	os.Exit(2)
}

const (
	hToken  am.HandlerID = am.FirstClient
	maxLaps              = 1 << 30
)

// station is a rank's record of the token.
type station struct {
	visits atomic.Uint32 // how often it has come here
	value  atomic.Uint64 // what it carried when it came last
}

// stations has one for each rank: a process may run several.
var stations gas.PerRank[station]

// onToken notes the token's arrival. Waiters look again after every handler.
func onToken(t *am.Token, args []uint32, _ []byte) {
	here := stations.Of(gas.NodeOf(t))
	here.value.Store(am.Unpack64(args[0], args[1]))
	here.visits.Add(1)
}

// run sends a token around and writes to out how it went. Every rank adds its
// number to the token, so that its last value tells whether it has been
// everywhere.
func run(ranks, laps int, out io.Writer) error {
	cfg := gas.Config{
		Ranks:    ranks,
		Handlers: []am.Entry{{Index: hToken, Name: "token", Fn: onToken, Args: 2, Kinds: am.Short | am.Request}},
	}
	return gas.Run(cfg, func(n *gas.Node) error {
		here := stations.Of(n)
		next := (n.Rank() + 1) % n.Size()
		pass := func(value uint64) error {
			lo, hi := am.Pack64(value + uint64(n.Rank()))
			return n.Layers().AM.RequestShort(next, hToken, lo, hi)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		start := n.Now()
		if n.Rank() == 0 {
			if err := pass(0); err != nil {
				return err
			}
		}
		lap := uint32(1)
		arrived := func() bool { return here.visits.Load() == lap }
		for ; ; lap++ {
			if err := n.Wait(arrived); err != nil {
				return err
			}
			if n.Rank() == 0 && lap == uint32(laps) {
				break
			}
			if err := pass(here.value.Load()); err != nil {
				return err
			}
			if n.Rank() != 0 && lap == uint32(laps) {
				return nil
			}
		}
		took := n.Now() - start
		got, want := here.value.Load(), uint64(laps)*uint64(n.Size())*uint64(n.Size()-1)/2
		if got != want {
			return fmt.Errorf("ring: the token came back with %d instead of %d", got, want)
		}
		hops := laps * n.Size()
		_, err := fmt.Fprintf(out, "%d laps around %d ranks: the token came back with %d, as it should; %v a hop\n",
			laps, n.Size(), got, (took / time.Duration(hops)).Round(time.Nanosecond))
		return err
	})
}
