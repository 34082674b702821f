package am

import (
	"testing"

	"github.com/argon-go/argon/conduits"
)

// TestRepliesRealign alternates requests that are not replied to with runs of
// requests that are, so that the rings of both drift apart by every distance and
// are brought together again: no reply is lost, repeated or exchanged.
func TestRepliesRealign(t *testing.T) {
	var sum, want uint64
	var got int
	var done [2]int
	config := func(int) Config {
		return Config{Handlers: []Entry{
			{hEcho, "echo", func(tk *Token, args []uint32, _ []byte) {
				if err := tk.ReplyShort(hEchoed, args...); err != nil {
					t.Error(err)
				}
			}, 2, 0},
			{hEchoed, "echoed", func(_ *Token, args []uint32, _ []byte) {
				got++
				sum = sum*31 + Uint64(args, 0)
			}, 2, 0},
			{hDone, "done", func(tk *Token, _ []uint32, _ []byte) { done[tk.Messenger().Rank()]++ }, 0, 0},
		}}
	}
	job(t, 2, config, func(e *Messenger) error {
		const rounds = 70 // more than there are cells
		if e.Rank() == 1 {
			return e.Wait(nil, func() bool { return done[1] == rounds*(rounds-1)/2+1 })
		}
		n := 0
		for round := range rounds {
			for range round {
				if err := e.RequestShort(1, hDone); err != nil {
					return err
				}
			}
			for range 20 + round {
				n++
				lo, hi := Pack64(uint64(n) * 0x9e3779b97f4a7c15)
				want = want*31 + Unpack64(lo, hi)
				if err := e.RequestShort(1, hEcho, lo, hi); err != nil {
					return err
				}
				if err := e.Wait(nil, func() bool { return got == n }); err != nil {
					return err
				}
			}
		}
		if sum != want {
			t.Errorf("replies came in another order or with other content")
		}
		var s conduits.Stats
		e.Conduit().Stats(&s)
		if s.Received[conduits.Reply] != uint64(n) {
			t.Errorf("%d replies received, %d handled", s.Received[conduits.Reply], n)
		}
		return e.RequestShort(1, hDone)
	})
}
