// Command hello is a program that may run on conduit tcp: each rank adds its number to a word of
// rank 0. With the argument "kill" the last rank dies instead.
package main

import (
	"fmt"
	"os"
	"syscall"

	_ "example.com/transport/tcp"

	"github.com/argon-go/argon/gas"
)

func main() {
	gas.Main(func(n *gas.Node) error {
		if len(os.Args) > 1 && n.Rank() == n.Size()-1 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		sum, err := gas.AllReduce(n, n.Rank(), gas.Sum)
		if err == nil && n.Rank() == 0 {
			fmt.Printf("%d ranks on %s, sum %d\n", n.Size(), os.Getenv("ARGON_CONDUIT"), sum)
		}
		return err
	})
}
