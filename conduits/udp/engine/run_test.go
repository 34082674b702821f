package engine_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// TestRuns gives the same datagrams, which get lost, overtake each other, come twice
// and are damaged, to an engine that takes those of a run together and to one that
// takes each by itself. There must be no difference: not in memory, nor in what they
// count, send and wait for.
func TestRuns(t *testing.T) {
	ran := 0
	for seed := range uint64(*flagSeeds) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		chance := func(one int) bool { return rnd.IntN(one) == 0 }
		window := 64 << rnd.IntN(3)
		adjust := func(c *engine.Config) { c.Window, c.DeadTime = window, time.Hour }
		a, _, _ := pair(t, adjust)
		_, b, mem := pair(t, adjust)
		_, alone, other := pair(t, adjust)
		both := []*engine.Engine{b, alone}
		big := make([]byte, 40_000)
		for i := range big {
			big[i] = byte(rnd.Uint32())
		}
		buf, again := make([]byte, 2000), make([]byte, 2000)
		var air [][]byte
		now := time.Duration(1)
		bad := 3 + rnd.IntN(100)
		cookie := uint64(0)
		step := 0
		give := func(d []byte) {
			t.Helper()
			if len(d) > 48 {
				if seed%2 == 1 {
					d[1] &^= 1 << 2 // asks for no acknowledgement
				}
				binary.LittleEndian.PutUint32(d[4:], 0)
				binary.LittleEndian.PutUint32(d[4:], castagnoli(d))
			}
			was := b.Running()
			b.Receive(now, 0, bytes.Clone(d))
			if was && b.Running() {
				ran++
			}
			alone.Forget()
			alone.Receive(now, 0, d)
			if x, y := b.State(0), alone.State(0); x != y {
				t.Fatalf("seed %d, step %d: %s\nby themselves %s", seed, step, x, y)
			}
		}
		for ; step < 200; step++ {
			now += time.Duration(rnd.IntN(5000))
			switch op := rnd.IntN(40); {
			case op < 2:
				cookie++
				if _, err := a.Put(1, at(rnd.IntN(20_000)), big[:rnd.IntN(len(big))], conduits.RemoteDone, cookie); err != nil {
					t.Fatal(err)
				}
			case op == 2:
				cookie++
				_ = a.Atomic(1, at(8*rnd.IntN(100)), conduits.AtomicAdd, conduits.Uint64, 1, 0, cookie)
			case op == 3:
				_, _ = a.Get(make([]byte, 3000), 1, at(0), conduits.RemoteDone, cookie)
			case op == 4 && a.Reserve(1, conduits.Request) == conduits.Ready:
				a.Send(1, conduits.Request, 1, []uint32{1}, nil)
			case op == 5: // what is asked of rank 0 is awaited
				for _, e := range both {
					_, _ = e.Put(0, at(0), big[:8], conduits.RemoteDone, cookie)
				}
			case op == 6:
				// Memory that is refused.
				_, _ = a.Put(1, at(1<<16-100), big[:5000], conduits.RemoteDone, cookie)
			}
			a.Advance(now)
			for _, n, ok := a.Next(now, buf); ok; _, n, ok = a.Next(now, buf) {
				air = append(air, bytes.Clone(buf[:n]))
			}
			for n := rnd.IntN(40); n > 0 && len(air) > 0; n-- {
				i := 0
				if chance(bad) {
					i = rnd.IntN(len(air))
				}
				d := air[i]
				if !chance(bad) {
					air = append(air[:i], air[i+1:]...)
				}
				if chance(bad) {
					continue
				}
				d = bytes.Clone(d)
				if chance(bad) { // damaged
					torn := bytes.Clone(d[:len(d)-rnd.IntN(2)])
					torn[rnd.IntN(len(torn))] ^= 1 << rnd.IntN(8)
					b.Receive(now, 0, bytes.Clone(torn))
					alone.Forget()
					alone.Receive(now, 0, torn)
				}
				lie := bytes.Clone(d)
				if len(lie) > 48 && chance(8) { // what passes, but says something else
					switch i := 1 + rnd.IntN(90); {
					case i < len(lie):
						lie[i] ^= 1 << rnd.IntN(8)
					case chance(2):
						lie = append(lie, 1, 2, 3)
					default:
						lie = lie[:len(lie)-1]
					}
					give(lie)
				}
				give(d)
			}
			if x, y := b.Stats(), alone.Stats(); x != y {
				t.Fatalf("seed %d, step %d: %+v, by themselves %+v", seed, step, x, y)
			}
			if !bytes.Equal(mem.b, other.b) {
				t.Fatalf("seed %d, step %d: another memory", seed, step)
			}
			if chance(3) {
				for _, e := range both {
					e.Advance(now)
				}
				for {
					_, n, ok := b.Next(now, buf)
					_, m, ok2 := alone.Next(now, again)
					if ok != ok2 || !bytes.Equal(buf[:n], again[:m]) {
						t.Fatalf("seed %d, step %d: sends %x, by themselves %x", seed, step, buf[:n], again[:m])
					}
					if !ok {
						break
					}
					if !chance(bad) {
						a.Receive(now, 1, buf[:n])
					}
				}
			}
			x, ok := b.Deadline()
			y, ok2 := alone.Deadline()
			if x != y || ok != ok2 {
				t.Fatalf("seed %d, step %d: waits until %v, by itself %v", seed, step, x, y)
			}
		}
	}
	t.Logf("%d datagrams followed others", ran)
	if ran < 20**flagSeeds {
		t.Errorf("only %d datagrams followed others", ran)
	}
}
