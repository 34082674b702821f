package engine_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

// TestBadConfig is refused.
func TestBadConfig(t *testing.T) {
	for name, f := range map[string]func(c *engine.Config){
		"rank":      func(c *engine.Config) { c.Rank = 2 },
		"negative":  func(c *engine.Config) { c.Rank = -1 },
		"epoch":     func(c *engine.Config) { c.Epoch = 0 },
		"memory":    func(c *engine.Config) { c.Memory = nil },
		"small":     func(c *engine.Config) { c.Datagram = 255 },
		"large":     func(c *engine.Config) { c.Datagram = 65508 },
		"window":    func(c *engine.Config) { c.Window = 100 },
		"credits":   func(c *engine.Config) { c.Credits = -1 },
		"medium":    func(c *engine.Config) { c.MaxMedium = 511 },
		"flight":    func(c *engine.Config) { c.Flight = 1000 },
		"times":     func(c *engine.Config) { c.InitialRTT = -1 },
		"dead time": func(c *engine.Config) { c.DeadTime = -1 },
		"overhead":  func(c *engine.Config) { c.Datagram, c.Sealer = 256, mask{} },
	} {
		c := config(0, 2)
		c.Memory = &memory{}
		if _, err := engine.New(c); err != nil {
			t.Fatal(err)
		}
		f(&c)
		if _, err := engine.New(c); !errors.Is(err, conduits.ErrBadArg) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mask is a Sealer that protects nothing, but changes every byte.
type mask struct{}

func (mask) Header() int  { return 5 }
func (mask) Trailer() int { return 11 }
func (mask) Plain() bool  { return false }

func (mask) Seal(dst int, b []byte) bool {
	for i := range b[5:] {
		b[5+i] ^= 0x55
	}
	b[0], b[len(b)-1] = byte(1-dst), byte(dst)
	return true
}

func (mask) Open(b []byte) (int, []byte, bool) {
	if len(b) < 16 || int(b[0]) != 1-int(b[len(b)-1]) {
		return 0, nil, false
	}
	for i := range b[5:] {
		b[5+i] ^= 0x55
	}
	return int(b[0]), b[5 : len(b)-11], true
}

// TestSealer sends everything through a Sealer; what it does not open is dropped.
func TestSealer(t *testing.T) {
	a, b, mem := pair(t, func(c *engine.Config) { c.Sealer = mask{} })
	data := fill(make([]byte, 5000), 1)
	_, _ = a.Put(1, at(100), data, conduits.RemoteDone, 1)
	a.Reserve(1, conduits.Request)
	a.Send(1, conduits.Request, 1, []uint32{1}, data[:4096])
	buf := make([]byte, engine.DefaultDatagram)
	for _, n, ok := a.Next(0, buf); ok; _, n, ok = a.Next(0, buf) {
		if n > engine.DefaultDatagram {
			t.Fatalf("a datagram of %d bytes", n)
		}
		b.Receive(0, -1, append([]byte(nil), buf[:n]...))
		b.Receive(0, -1, buf[:n-1])
	}
	carry(1, a, b)
	if !bytes.Equal(mem.b[100:5100], data) {
		t.Error("the put is not there")
	}
	if m := b.NextMessage(conduits.Request); m == nil || !bytes.Equal(m.Payload, data[:4096]) {
		t.Error("the message is not there")
	}
	if b.Stats().Malformed == 0 {
		t.Error("nothing was dropped")
	}
}

// TestAllocations: once warm, operations allocate nothing.
func TestAllocations(t *testing.T) {
	a, b, _ := pair(t, nil)
	words := make([]uint32, 4)
	data := make([]byte, 4096)
	get := make([]byte, 4096)
	buf := make([]byte, engine.DefaultDatagram)
	round := func() {
		for range 4 {
			a.Reserve(1, conduits.Request)
			a.Send(1, conduits.Request, 1, words, nil)
			a.Reserve(1, conduits.Request)
			a.Send(1, conduits.Request, 1, words, data)
			a.Reserve(1, conduits.Request)
			a.SendLong(1, conduits.Request, 1, words, at(0), data, 1)
			_, _ = a.Put(1, at(0), data, conduits.RemoteDone, 2)
			_, _ = a.Put(1, at(0), data[:8], conduits.RemoteDone, 3)
			_, _ = a.Get(get, 1, at(0), conduits.RemoteDone, 4)
			_ = a.Atomic(1, at(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, 5)
		}
		for i := 0; i < 3; i++ {
			for _, n, ok := a.Next(0, buf); ok; _, n, ok = a.Next(0, buf) {
				b.Receive(0, 0, buf[:n])
			}
			for m := b.NextMessage(conduits.Request); m != nil; m = b.NextMessage(conduits.Request) {
				b.Release(m)
			}
			for _, n, ok := b.Next(0, buf); ok; _, n, ok = b.Next(0, buf) {
				a.Receive(0, 1, buf[:n])
			}
		}
		for _, ok := a.NextCompletion(); ok; _, ok = a.NextCompletion() {
		}
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if s := b.Stats(); s.Malformed+s.Refused+s.Beyond != 0 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkPut is the engine's own part of a large put: no network.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1400, 65507} {
		b.Run(map[int]string{1400: "1400", 65507: "65507"}[size], func(b *testing.B) {
			x, y, mem := pair(b, func(c *engine.Config) { c.Datagram = size })
			mem.b = make([]byte, 1<<20)
			data := make([]byte, 1<<20)
			buf := make([]byte, size)
			b.SetBytes(1 << 20)
			for b.Loop() {
				_, _ = x.Put(1, segment.AttachBase, data, conduits.RemoteDone, 1)
				for ok := false; !ok; _, ok = x.NextCompletion() {
					for _, n, more := x.Next(0, buf); more; _, n, more = x.Next(0, buf) {
						y.Receive(0, 0, buf[:n])
					}
					for _, n, more := y.Next(0, buf); more; _, n, more = y.Next(0, buf) {
						x.Receive(0, 1, buf[:n])
					}
				}
			}
		})
	}
}
