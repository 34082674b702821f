package am_test

import (
	"fmt"
	"log"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// The indices of the program's handlers: the same on every rank.
const (
	hSquare   am.HandlerID = am.FirstClient + iota // request: square a number
	hSquared                                       // its reply
	hDeposit                                       // long request: bytes have been put
	hReceived                                      // its reply
)

// process is the state of one rank of the program. Handlers are its methods, so
// that many ranks can run in one process.
type process struct {
	e       *am.Messenger
	answer  uint64
	replies int
}

// A request's handler may reply once, to the sender of the request.
func (p *process) square(t *am.Token, args []uint32, _ []byte) {
	v := am.Unpack64(args[0], args[1])
	lo, hi := am.Pack64(v * v)
	if err := t.ReplyShort(hSquared, lo, hi); err != nil {
		log.Print(err) // the job has failed, and waiting calls say so
	}
}

// A reply's handler sends nothing.
func (p *process) squared(_ *am.Token, args []uint32, _ []byte) {
	p.answer = am.Unpack64(args[0], args[1])
	p.replies++
}

// A long message's payload is the part of this rank's segment where it was put.
func (p *process) deposit(t *am.Token, _ []uint32, payload []byte) {
	if err := t.ReplyMedium(hReceived, payload[:5]); err != nil {
		log.Print(err)
	}
}

// A medium payload is valid until the handler returns.
func (p *process) received(t *am.Token, _ []uint32, payload []byte) {
	fmt.Printf("rank %d has received %q and so on\n", t.Src(), payload)
	p.replies++
}

// run is the program of one rank, on the layers that generated code uses.
func (p *process) run(end conduits.Endpoint) error {
	// Handler tables and the completer exist before the rank attaches; the
	// layers above are bound to its endpoint after it.
	x, b := extended.New(extended.Config{}), barrier.New()
	e, err := am.Attach(end, am.Config{
		Handlers: []am.Entry{
			{Index: hSquare, Name: "square", Fn: p.square, Args: 2, Kinds: am.Short | am.Request},
			{Index: hSquared, Name: "squared", Fn: p.squared, Args: 2, Kinds: am.Short | am.Reply},
			{Index: hDeposit, Name: "deposit", Fn: p.deposit, Args: 0, Kinds: am.Long | am.Request},
			{Index: hReceived, Name: "received", Fn: p.received, Args: 0, Kinds: am.Medium | am.Reply},
		},
		Runtime:     append(b.Handlers(), x.Handlers()...),
		Completer:   x,
		Exposer:     x,
		SegmentSize: segment.PageSize,
	})
	if err != nil {
		return err
	}
	x.Bind(e)
	if err := b.Bind(e); err != nil {
		return err
	}
	p.e = e

	// No rank sends to one that is not complete.
	if err := b.Barrier(0, barrier.Anonymous); err != nil {
		return err
	}
	if e.Rank() == 0 {
		if err := p.ask(1); err != nil {
			return err
		}
	}
	// Handlers run while a rank waits, here those of rank 1.
	if err := b.Barrier(0, barrier.Anonymous); err != nil {
		return err
	}
	return end.Close()
}

// ask sends dst a short and a long request, and waits for both replies.
func (p *process) ask(dst int) error {
	lo, hi := am.Pack64(3_000_000_000)
	if err := p.e.RequestShort(dst, hSquare, lo, hi); err != nil {
		return err
	}
	text := []byte("bytes for the other segment")
	if err := p.e.RequestLong(dst, hDeposit, segment.AttachBase+64, text); err != nil {
		return err
	}
	if err := p.e.Wait(nil, func() bool { return p.replies == 2 }); err != nil {
		return err
	}
	fmt.Println("square:", p.answer)
	return nil
}

// Two ranks of one process, with everything that generated code needs: active
// messages, one-sided access and barriers.
func Example() {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		log.Fatal(err)
	}
	ends, err := shm.Local(2, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		log.Fatal(err)
	}
	var ranks sync.WaitGroup
	for _, end := range ends {
		ranks.Go(func() {
			if err := new(process).run(end); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
	// Output:
	// rank 1 has received "bytes" and so on
	// square: 9000000000000000000
}
