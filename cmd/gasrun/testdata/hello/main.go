// Program hello joins its job, says so, and leaves; see the tests of gasrun.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/testjob"
	"github.com/argon-go/argon/segment"
)

type inbox struct{}

func (inbox) Receive(*conduits.Message)                      {}
func (inbox) Complete(uint64, conduits.Event, uint64, error) {}

func main() {
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	testjob.Check(ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: inbox{}}))
	fmt.Printf("rank %d of %d: %s\n", ep.Rank(), ep.Size(), strings.Join(os.Args[1:], "|"))
	testjob.Check(ep.Close())
}
