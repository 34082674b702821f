// Program hello joins its job, says so, and leaves; see the tests of gasrun.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/segment"
)

type inbox struct{}

func (inbox) Receive(*conduits.Message)                      {}
func (inbox) Complete(uint64, conduits.Event, uint64, error) {}

func main() {
	rank, err1 := strconv.Atoi(os.Getenv("ARGON_RANK"))
	size, err2 := strconv.Atoi(os.Getenv("ARGON_SIZE"))
	check(err1)
	check(err2)
	ep, err := shm.Join(conduits.Job{Rank: rank, Size: size, Env: os.Getenv}, conduits.Config{})
	check(err)
	check(ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: inbox{}}))
	fmt.Printf("rank %d of %d: %s\n", ep.Rank(), ep.Size(), strings.Join(os.Args[1:], "|"))
	check(ep.Close())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
