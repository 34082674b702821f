// Program simprog does what its first argument says; see the tests of gasrun on
// the simulator.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/argon-go/argon/gas"
)

func main() {
	run := func(fn func(n *gas.Node) error) error { return gas.Run(gas.Config{}, fn) }
	switch what := os.Args[1]; what {
	case "nothing":
	case "twice": // one job after the other
		err := run(work)
		if err == nil {
			err = run(work)
		}
		gas.Exit(err)
	case "both": // two jobs at once
		var errs [2]error
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = run(work) })
		}
		wg.Wait()
		gas.Exit(errors.Join(errs[:]...))
	case "after": // the job, which is the same as that of "good"
		if err := run(do("good")); err != nil {
			gas.Exit(err)
		}
		os.Exit(4)
	case "ignore": // a failure
		_ = run(do("error"))
	default:
		gas.Exit(run(do(what)))
	}
}

// rounds is the second argument, or 3.
func rounds() int {
	if len(os.Args) > 2 {
		n, err := strconv.Atoi(os.Args[2])
		if err != nil {
			panic(err)
		}
		return n
	}
	return 3
}

// work lets ranks exchange something.
func work(n *gas.Node) error {
	for i := range rounds() {
		sum, err := gas.AllReduce(n, uint64(n.Rank()+i), func(a, b uint64) uint64 { return a + b })
		if err != nil {
			return err
		}
		if want := uint64(n.Size()*(n.Size()-1)/2 + i*n.Size()); sum != want {
			return fmt.Errorf("sum %d, want %d", sum, want)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
	}
	return nil
}

// do returns the work of rank 1 between two rounds of work of all.
func do(what string) func(n *gas.Node) error {
	return func(n *gas.Node) error {
		if err := work(n); err != nil {
			return err
		}
		if n.Rank() == 1 {
			switch what {
			case "good":
			case "error":
				return errors.New("out of luck")
			case "ugly": // for terminals
				return errors.New("out of luck \x1b[2J\x1b]0;owned\a\rgasrun: all is well")
			case "panic":
				panic("boom")
			case "exit":
				os.Exit(3)
			case "kill":
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			case "wait": // for what never comes
				return n.Wait(func() bool { return false })
			case "foreign": // goroutine of its own
				done := make(chan error)
				go func() { done <- n.Barrier() }()
				return <-done
			case "deaf": // waits in Go's own way
				fmt.Println("ready")
				<-make(chan bool)
			default:
				return fmt.Errorf("what is %q?", what)
			}
		}
		return work(n)
	}
}
