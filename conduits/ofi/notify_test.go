//go:build ofi && cgo

package ofi

import (
	"bytes"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// witness is an Owner that looks at its segment when words arrive.
type witness struct {
	mem  []byte
	t    *testing.T
	seen int
}

// Deliver checks that the data of put words[0], of words[1] bytes, is in place.
func (w *witness) Deliver(_ int, words []uint32, _ []byte) {
	if want := bytes.Repeat([]byte{byte(words[0])}, int(words[1])); !conc.Race && !bytes.Equal(w.mem[:words[1]], want) {
		w.t.Errorf("the words of put %d have come before its %d bytes", words[0], words[1])
	}
	w.seen++
}
func (*witness) Complete(uint64, error) {}
func (*witness) Left(int)               {}

func (w *witness) Access(_ int, a segment.NLA, n uint64, _ segment.Rights, f func([]byte)) error {
	f(w.mem[a-segment.AttachBase:][:n])
	return nil
}

// TestNotify: words arrive when the data of their put is in place, be it a remote access
// that they follow at once or pieces in messages.
func TestNotify(t *testing.T) {
	const size = 1 << 20
	ts, err := Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ws, attached := make([]*witness, 2), make(chan error)
	for i, e := range ts {
		mem, err := e.(*transport).Segment(size)
		if err != nil {
			t.Fatal(err)
		}
		ws[i] = &witness{mem: mem, t: t}
		go func() {
			_, err := e.Attach(ws[i], size, segment.RightsAll)
			attached <- err
		}()
	}
	for range ts {
		if err := <-attached; err != nil {
			t.Fatal(err)
		}
	}
	defer leave(t, ts, ts)
	from := ts[0].(*transport)
	if n := from.NotifyWords(); n != conduits.TransportWords {
		t.Skipf("%s keeps no messages behind writes: %d words", from.ep.Provider, n)
	}
	for i := 1; i <= 60; i++ {
		n := []int{100, leastRemote, size}[i%3]
		words := []uint32{uint32(i), uint32(n)}
		if done, err := from.PutNotify(1, segment.AttachBase, bytes.Repeat([]byte{byte(i)}, n), words, uint64(i)); done || err != nil {
			t.Fatal(done, err)
		}
		words[0] = 0 // read during the call alone
		for ws[1].seen < i {
			ts[0].Poll()
			ts[1].Poll()
		}
	}
}
