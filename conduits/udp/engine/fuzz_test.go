package engine_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

// amend makes a datagram of any bytes one that passes for rank 0's: its contents
// remain to be checked.
func amend(b []byte) {
	if len(b) < 48 {
		return
	}
	le := binary.LittleEndian
	b[0] = 0xA8
	b[1] &= 1<<4 - 1
	b[2] %= 6
	le.PutUint32(b[8:], 0)
	le.PutUint32(b[12:], 7)
	le.PutUint32(b[16:], 8*uint32(b[16]&1))
	for i := 20; i < 48; i += 4 { // numbers that are likely ones
		le.PutUint32(b[i:], le.Uint32(b[i:])&0x8000003f)
	}
	le.PutUint32(b[4:], 0)
	le.PutUint32(b[4:], castagnoli(b))
}

// FuzzReceive gives an engine that is at work datagrams of a peer that lies:
// each a length byte (times four) and so many bytes. It must neither panic nor
// touch what is not granted, and consume no more memory than credits allow.
func FuzzReceive(f *testing.F) {
	// A page of its own, of which a part is registered.
	atu, err := segment.NewATU(segment.ATUConfig{})
	if err != nil {
		f.Fatal(err)
	}
	beside := make([]byte, 32<<10)
	r, err := atu.Register(beside[256:2048], segment.RightsAll, segment.AnyPeer)
	if err != nil {
		f.Fatal(err)
	}
	registered, _ := r.At(0)
	a, b, mem := pair(f, nil)
	mem.atu = atu
	_, _ = a.Put(1, registered, make([]byte, 8), conduits.RemoteDone, 5)
	_, _ = a.Put(1, registered+1800, make([]byte, 8), conduits.RemoteDone, 6) // and what is refused
	_, _ = a.Put(1, registered, make([]byte, 3000), conduits.RemoteDone, 7)
	_, _ = a.Get(make([]byte, 1700), 1, registered, conduits.RemoteDone, 8)
	_, _ = a.Get(make([]byte, 1900), 1, registered, conduits.RemoteDone, 9)
	_ = a.Atomic(1, registered+2048, conduits.AtomicAdd, conduits.Uint64, 1, 0, 10)
	a.Reserve(1, conduits.Request)
	a.Send(1, conduits.Request, 1, []uint32{1, 2, 3}, make([]byte, 2000))
	_, _ = a.Put(1, at(0), make([]byte, 600), conduits.RemoteDone, 1)
	_, _ = a.Get(make([]byte, 600), 1, at(0), conduits.RemoteDone, 2)
	_ = a.Atomic(1, at(0), conduits.AtomicAdd, conduits.Int64, 1, 0, 3)
	b.Reserve(0, conduits.Reply)
	b.SendLong(0, conduits.Reply, 4, []uint32{9}, at(64), make([]byte, 700), 4)
	buf := make([]byte, 2000)
	for range 12 {
		if _, n, ok := a.Next(0, buf); ok {
			f.Add(append([]byte{255}, buf[:n]...))
			b.Receive(0, 0, buf[:n])
		}
		if _, n, ok := b.Next(0, buf); ok {
			f.Add(append([]byte{255}, buf[:n]...))
			a.Receive(0, 1, buf[:n])
		}
	}
	if s := a.Stats(); s.Faults == 0 || s.Refused > 0 {
		f.Fatalf("%+v", s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, e, mem := pair(t, func(c *engine.Config) { c.Credits = 4 })
		guard := mem.b
		mem.atu = atu
		clear(beside)
		mem.b = mem.b[256 : 256+1024]
		for i := range 3 {
			if e.Reserve(0, conduits.Request) == conduits.Ready {
				e.Send(0, conduits.Request, 1, nil, make([]byte, 3000))
			}
			_, _ = e.Put(0, at(0), make([]byte, 3000), conduits.RemoteDone, uint64(i))
			_, _ = e.Get(make([]byte, 3000), 0, at(0), conduits.RemoteDone, 10)
			_ = e.Atomic(0, at(0), conduits.AtomicAdd, conduits.Int64, 1, 0, 11)
		}
		out := make([]byte, 65507)
		for now := time.Duration(1); len(data) > 0; now += time.Millisecond {
			n := min(4*int(data[0]), len(data)-1)
			d := append([]byte(nil), data[1:1+n]...)
			data = data[1+n:]
			amend(d)
			e.Receive(now, 0, d)
			e.Advance(now)
			for range 20 {
				if _, _, ok := e.Next(now, out); !ok {
					break
				}
			}
			e.NextCompletion()
		}
		held := 0
		for c := range conduits.Class(conduits.NumClasses) {
			for m := e.NextMessage(c); m != nil; m = e.NextMessage(c) {
				if len(m.Payload) > 4096 || len(m.Words) > conduits.MaxWords {
					t.Fatalf("a message of %d words, %d bytes", len(m.Words), len(m.Payload))
				}
				held++
			}
		}
		if held > 8 {
			t.Fatalf("%d messages where 4 of a class are allowed", held)
		}
		for i, v := range guard {
			if v != 0 && (i < 256 || i >= 256+1024) {
				t.Fatalf("byte %d outside the segment has changed", i)
			}
		}
		for i, v := range beside {
			if v != 0 && (i < 256 || i >= 2048) {
				t.Fatalf("byte %d beside the registered ones has changed", i)
			}
		}
	})
}

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
