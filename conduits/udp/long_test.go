package udp

import (
	"bytes"
	"sync"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

// keeper copies the payloads of messages that it receives.
type keeper struct {
	counter
	got [][]byte
}

func (k *keeper) Receive(m *conduits.Message) {
	k.counter.Receive(m)
	k.got = append(k.got, bytes.Clone(m.Payload))
}

// TestLongReturns: the source of a long message of up to engine.CopyMost bytes is free
// when its place is reserved, to this rank's own memory as far as a medium message reaches;
// what is reserved and not sent takes nothing.
func TestLongReturns(t *testing.T) {
	eps, err := openLocal(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]keeper, len(eps))
	var wg sync.WaitGroup
	for r, e := range eps {
		wg.Go(func() {
			if err := e.Attach(conduits.AttachConfig{Size: 1 << 20, Receiver: &got[r]}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	defer func() {
		for _, e := range eps {
			wg.Go(func() { _ = e.Close() })
		}
		wg.Wait()
	}()
	e := eps[0]
	for _, size := range []int{1, e.limits.MaxMedium, e.limits.MaxMedium + 1, engine.CopyMost} {
		for range 200 {
			slot, ev, st := e.ReservePut(1, conduits.Request, 1, segment.AttachBase, make([]byte, size), 1)
			if st != conduits.Ready || ev != conduits.SourceDone {
				t.Fatalf("%d bytes, after others that were not sent: status %d, event %d", size, st, ev)
			}
			e.Cancel(1, conduits.Request, slot)
		}
		for dst := range eps {
			if dst == 0 && size > e.limits.MaxMedium {
				continue
			}
			src := bytes.Repeat([]byte{7}, size)
			slot, ev, st := e.ReservePut(dst, conduits.Request, 1, segment.AttachBase, src, 1)
			if st != conduits.Ready || ev != conduits.SourceDone {
				t.Fatalf("%d bytes to rank %d: status %d, event %d", size, dst, st, ev)
			}
			clear(src)
			e.Commit(dst, conduits.Request, slot, 1, 0)
			for k := &got[dst]; len(k.got) == 0; {
				eps[0].Poll()
				eps[1].Poll()
			}
			if b := got[dst].got[0]; !bytes.Equal(b, bytes.Repeat([]byte{7}, size)) {
				t.Errorf("%d bytes to rank %d: other ones arrive", size, dst)
			}
			got[dst].got = nil
		}
	}
}
