package gas

import (
	"fmt"
	"testing"
)

// A ring of ranks passes a growing message round, each by one put with signal.
func TestPutSignal(t *testing.T) {
	const rounds, length = 50, 200
	everywhere(t, small(3), func(n *Node) error {
		data := Must(NewSlice[uint32](n, length))
		flag := Must(New[uint64](n))
		next := (n.Rank() + 1) % n.Size()
		msg := make([]uint32, length)
		for round := range uint64(rounds) {
			if n.Rank() != 0 || round > 0 {
				came := round + 1
				if n.Rank() == 0 {
					came = round
				}
				v, err := WaitUntil(n, flag, Ge, 3*came)
				if err != nil || v%3 != 0 {
					return fmt.Errorf("flag %d, %v", v, err)
				}
				n.Must(data.GetSlice(n, msg))
				want := uint32(round)*uint32(n.Size()) + uint32(n.Rank()) - 1
				for i, m := range msg {
					if m != want+uint32(i) {
						return fmt.Errorf("round %d: element %d is %d, want %d", round, i, m, want+uint32(i))
					}
				}
			}
			for i := range msg {
				msg[i] = uint32(round)*uint32(n.Size()) + uint32(n.Rank()) + uint32(i)
			}
			n.Must(data.On(next).PutSignal(n, msg, flag.On(next), SignalAdd, 3))
		}
		return n.Barrier()
	})
}

// TestGetSignal: each rank has a buffer that the rank before it reads, and writes it anew once that has told so; what is
// read is of one round.
func TestGetSignal(t *testing.T) {
	const rounds, length = 50, 300
	everywhere(t, small(3), func(n *Node) error {
		data := Must(NewSlice[uint32](n, length))
		flags := Must(NewSlice[uint64](n, 2))
		ready, read := flags, flags.Add(1)
		next, before := (n.Rank()+1)%n.Size(), (n.Rank()+n.Size()-1)%n.Size()
		own, got := make([]uint32, length), make([]uint32, length)
		for round := range uint64(rounds) {
			for i := range own {
				own[i] = uint32(round)<<16 + uint32(n.Rank())<<12 + uint32(i)
			}
			if v, err := WaitUntil(n, read, Ge, round); err != nil || v != round {
				return fmt.Errorf("round %d was read %d times: %w", round, v, err)
			}
			n.Must(data.PutSlice(n, own))
			n.Must(Store(n, ready.On(before), round+1))
			Must(WaitUntil(n, ready, Ge, round+1))
			n.Must(data.On(next).GetSignal(n, got, read.On(next), SignalAdd, 1))
			for i, v := range got {
				if want := uint32(round)<<16 + uint32(next)<<12 + uint32(i); v != want {
					return fmt.Errorf("round %d: element %d of rank %d is %#x, want %#x", round, i, next, v, want)
				}
			}
		}
		return n.Barrier()
	})
}

func TestSignalRefuses(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		p, err := NewSlice[uint64](n, 4)
		if err != nil {
			return err
		}
		other := p.On(1 - n.Rank())
		n.Must(wantErr(p.GetSignal(n, []uint64{1}, other, SignalAdd, 1), ErrBadArg, "GetSignal: data"))
		n.Must(wantErr(p.PutSignal(n, []uint64{1}, other, SignalAdd, 1), ErrBadArg, "different ranks"))
		n.Must(wantErr(Ptr[int]{}.PutSignal(n, []int{1}, p, SignalAdd, 1), ErrBadArg, "nil Ptr"))
		n.Must(wantErr(p.PutSignal(n, []uint64{1}, Ptr[uint64]{w: p.w + 4}, SignalAdd, 1), ErrBadArg, "align"))
		if v, err := p.Get(n); err != nil || v != 0 {
			return fmt.Errorf("something was put: %d, %v", v, err)
		}
		if _, err := WaitUntil(n, other, Ge, 1); err == nil {
			return fmt.Errorf("waits for another rank's word")
		}
		_, err = WaitUntil(n, Ptr[uint64]{}, Ge, 1)
		n.Must(wantErr(err, ErrBadArg))
		return n.Barrier()
	})
}
