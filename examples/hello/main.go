// Hello is the first program: every rank writes a greeting into the memory of
// rank 0, which prints them in order.
//
//	go run ./examples/hello -n 4                     # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/hello        # ranks as processes
//
// It shows collective allocation, a one-sided put to another rank, and what a
// barrier is for.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/argon-go/argon/gas"
)

// greeting is text as shared memory can hold it: without Go pointers.
type greeting [80]byte

func main() {
	ranks := flag.Int("n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	flag.Parse()
	switch {
	case *ranks < 1:
		usage("-n %d: it must be at least 1", *ranks)
	case flag.NArg() > 0:
		usage("unexpected argument %q", flag.Arg(0))
	}
	gas.Exit(run(*ranks, os.Stdout))
}

func usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "hello: "+format+"\n", args...)
	os.Exit(2)
}

// run greets and writes the greetings to out.
func run(ranks int, out io.Writer) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	return gas.Run(gas.Config{Ranks: ranks}, func(n *gas.Node) error {
		// The same memory on every rank; of rank 0's all are going to be used.
		all, err := gas.NewSlice[greeting](n, n.Size())
		if err != nil {
			return err
		}
		var mine greeting
		copy(mine[:], fmt.Sprintf("hello from rank %d of %d, process %d on %s", n.Rank(), n.Size(), os.Getpid(), host))
		if err := all.On(0).Add(n.Rank()).Put(n, mine); err != nil {
			return err
		}
		// After the barrier all ranks' puts are there.
		if err := n.Barrier(); err != nil || n.Rank() != 0 {
			return err
		}
		list := make([]greeting, n.Size())
		if err := all.GetSlice(n, list); err != nil {
			return err
		}
		for _, g := range list {
			if _, err := fmt.Fprintf(out, "%s\n", bytes.TrimRight(g[:], "\x00")); err != nil {
				return err
			}
		}
		return nil
	})
}
