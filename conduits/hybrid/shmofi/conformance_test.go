//go:build ofi && cgo

package shmofi_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/hybrid/shmofi"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	// The suite sleeps and wakes less often than it does by itself: a network takes its time.
	if err := flag.Set("conformance.rounds", "100"); err != nil {
		panic(err)
	}
	if os.Getenv("FI_OFI_RXM_BUFFER_SIZE") == "" {
		os.Setenv("FI_OFI_RXM_BUFFER_SIZE", "1024") // 69 MB a rank otherwise
	}
	testjob.Main(m, nil)
}

// TestConformance runs the suite on two hosts, whose ranks have consecutive numbers, and on
// two to which ranks are dealt.
func TestConformance(t *testing.T) {
	testmain.Long(t)
	for name, host := range map[string]func(rank, n int) int{
		"two":   func(r, n int) int { return 2 * r / (n + n%2) },
		"dealt": func(r, _ int) int { return r % 2 },
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
				l := make([]int, n)
				for r := range l {
					l[r] = host(r, n)
				}
				return shmofi.Pair.LocalOn(l, c)
			})
		})
	}
}

// ended counts completions, and keeps the last error.
type ended struct {
	n   int
	err error
}

func (*ended) Receive(*conduits.Message) {}
func (e *ended) Complete(_ uint64, _ conduits.Event, _ uint64, err error) {
	e.n, e.err = e.n+1, err
}

var sent = regexp.MustCompile(`(\d+) sent \d+ taken`)

// frames is how many frames a rank has sent to other hosts, without those that only say
// what has arrived: the watch of a rank asks for some, as time decides.
func frames(t *testing.T, e conduits.Endpoint) (n int) {
	t.Helper()
	d, _ := conduits.As[conduits.Diagnoser](e)
	l := sent.FindAllStringSubmatch(d.Diagnosis(), -1)
	if l == nil {
		t.Fatalf("no frames in %q", d.Diagnosis())
	}
	for _, m := range l {
		k, _ := strconv.Atoi(m[1])
		n += k
	}
	return n
}

// TestRegistered: memory that is registered beyond segments is reached from other hosts by
// remote accesses, until it is deregistered; then accesses fault.
func TestRegistered(t *testing.T) {
	eps, err := shmofi.Pair.LocalOn([]int{0, 0, 1, 1}, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rs, attached := make([]ended, len(eps)), make(chan error)
	for i, e := range eps {
		go func() {
			attached <- e.Attach(conduits.AttachConfig{Size: 1 << 16, Receiver: &rs[i]})
		}()
	}
	for range eps {
		if err := <-attached; err != nil {
			t.Fatal(err)
		}
	}
	owner, far := eps[0], eps[2]
	unit, err := owner.ATU()
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	mem := make([]byte, size)
	r, err := unit.Register(mem, segment.RightsAll, segment.AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := r.At(0)
	do := func(begin func() (conduits.Event, error)) error {
		n := rs[2].n
		if ev, err := begin(); err != nil || ev != 0 {
			return err
		}
		for rs[2].n == n {
			far.Poll()
			owner.Poll()
		}
		return rs[2].err
	}
	data, back := bytes.Repeat([]byte{7}, size), make([]byte, size)
	put := func() error {
		return do(func() (conduits.Event, error) { return post.Put(far, 0, at, data, conduits.RemoteDone, 1) })
	}
	get := func() error {
		return do(func() (conduits.Event, error) { return post.Get(far, back, 0, at, conduits.RemoteDone, 1) })
	}
	if err := put(); err != nil { // and the key is known
		t.Fatal(err)
	}
	before := frames(t, owner)
	if err := get(); err != nil || !conc.Race && !bytes.Equal(back, data) {
		t.Errorf("get: %v, or other bytes", err)
	}
	if n := frames(t, owner) - before; n > 8 {
		t.Errorf("the owner has sent %d frames while %d bytes were got from it", n, size)
	}
	if err := unit.Deregister(r); err != nil {
		t.Error(err)
	}
	if err := put(); !errors.Is(err, segment.ErrFault) {
		t.Errorf("a put to memory that is not registered any more: %v", err)
	}
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
