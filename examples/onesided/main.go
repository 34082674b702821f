// Onesided is the synchronization of MPI-2's one-sided communication, each step of which is one
// fetch-compare-and-add on a word of the target (Nüssle 2008, 7.5.4): epochs by post, start,
// complete and wait, and locks that are shared or exclusive.
//
//	go run ./examples/onesided -n 4                     # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/onesided -rounds 100
//
// In each round every rank puts a number into the next rank's window, in an epoch, and looks
// whether what it has got is larger than the largest so far, which rank 0 has: with the lock
// shared first, which other ranks may do meanwhile, then, if so, with the lock exclusively.
// A put of a round never meets one of another round, though there is no barrier.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/argon-go/argon/gas"
)

func main() {
	ranks := flag.Int("n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	rounds := flag.Int("rounds", 30, "do `R` rounds")
	flag.Parse()
	switch {
	case *ranks < 1:
		usage("-n %d: it must be at least 1", *ranks)
	case *rounds < 1:
		usage("-rounds %d: it must be at least 1", *rounds)
	case flag.NArg() > 0:
		usage("unexpected argument %q", flag.Arg(0))
	}
	gas.Exit(run(*ranks, *rounds, os.Stdout))
}

func usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "onesided: "+format+"\n", args...)
	os.Exit(2)
}

// run is the job, which prints to out.
func run(ranks, rounds int, out io.Writer) error {
	return gas.Run(gas.Config{Ranks: ranks}, func(n *gas.Node) error {
		s := newSync(n)
		words, err := gas.NewSlice[int64](n, 4)
		if err != nil {
			return err
		}
		epoch, window := words, words.Add(1)
		lock, largest := words.Add(2).On(0), words.Add(3).On(0)
		if err := errors.Join(s.reset(epoch), n.Barrier()); err != nil {
			return err
		}
		next := (n.Rank() + 1) % n.Size()
		for round := range rounds {
			if err := s.post(epoch); err != nil {
				return err
			}
			err := s.start(epoch.On(next))
			if err == nil {
				err = window.On(next).Put(n, value(n.Rank(), round))
			}
			if err == nil {
				err = s.complete(epoch.On(next))
			}
			if err == nil {
				err = s.wait(epoch)
			}
			if err != nil {
				return err
			}
			got, err := window.Get(n)
			if err != nil {
				return err
			}
			if want := value((n.Rank()+n.Size()-1)%n.Size(), round); got != want {
				return fmt.Errorf("onesided: rank %d has %d in round %d, not %d", n.Rank(), got, round, want)
			}
			if err := raise(s, lock, largest, got); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil || n.Rank() != 0 {
			return err
		}
		got, err := largest.Get(n)
		if err != nil {
			return err
		}
		var want int64
		for i := range n.Size() * rounds {
			want = max(want, value(i/rounds, i%rounds))
		}
		if got != want {
			return fmt.Errorf("onesided: the largest number is %d, not %d", got, want)
		}
		_, err = fmt.Fprintf(out, "%d ranks, %d rounds: the largest number is %d\n", n.Size(), rounds, got)
		return err
	})
}

// value is the word that rank puts in a round.
func value(rank, round int) int64 { return int64((rank*7919 + round*104729) % 1000003) }

// raise makes *largest at least v.
func raise(s *sync, lock, largest gas.Ptr[int64], v int64) error {
	if err := s.lock(lock, shared); err != nil {
		return err
	}
	before, err := largest.Get(s.n)
	if err := errors.Join(err, s.unlock(lock)); err != nil || v <= before {
		return err
	}
	if err := s.lock(lock, exclusive); err != nil {
		return err
	}
	// Another rank may have been here in between.
	if before, err = largest.Get(s.n); err == nil && v > before {
		err = largest.Put(s.n, v)
	}
	return errors.Join(err, s.unlock(lock))
}
