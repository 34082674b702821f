package rendezvous

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// A column is one number per rank, in as many bytes as the largest needs after
// the smallest has been subtracted: none if all are equal. It is the same in
// memory and in messages.
type column struct {
	base  uint64
	width int    // bytes per number, 0 to 8
	data  []byte // little-endian
}

// columnHeader is the length of base and width in a message.
const columnHeader = 9

func appendColumn[T uint16 | uint32 | uint64](b []byte, v []T) []byte {
	var low, high uint64
	for i, x := range v {
		if i == 0 || uint64(x) < low {
			low = uint64(x)
		}
		high = max(high, uint64(x))
	}
	width := (bits.Len64(high-low) + 7) / 8
	b = append(binary.BigEndian.AppendUint64(b, low), byte(width))
	for _, x := range v {
		var le [8]byte
		binary.LittleEndian.PutUint64(le[:], uint64(x)-low)
		b = append(b, le[:width]...)
	}
	return b
}

// column takes a column of n numbers, each less than limit if that is not 0. Its
// data is a part of the body.
func (p *parser) column(n int, limit uint64) (c column) {
	c.base, c.width = p.u64(), int(p.u8())
	if c.width > 8 {
		p.bad = true
		return column{}
	}
	c.data = p.bytes(n * c.width)
	if p.bad {
		return column{}
	}
	for i := 0; limit != 0 && i < n; i++ {
		if c.at(i) >= limit {
			p.bad = true
			return column{}
		}
	}
	return c
}

// at is rank i's number.
func (c *column) at(i int) uint64 {
	v, d := uint64(0), c.data[i*c.width:][:c.width]
	for k := len(d) - 1; k >= 0; k-- {
		v = v<<8 | uint64(d[k])
	}
	return c.base + v
}

// table has the addresses and incarnations of all ranks, once they have joined: with one
// address per host and clocks that are a second apart, up to 11 bytes per rank, 24 per address, and what
// ranks have announced.
type table struct {
	size        int
	addrs       []netip.Addr
	addr        column // number in addrs
	port        column
	incarnation column
	host        column
	public      []byte // of all ranks, equally many bytes of each, perhaps none
}

// appendTable has addrs distinct, and addr index them.
func appendTable(b []byte, addrs []netip.Addr, addr, port []uint16, incarnation []uint64, host []uint16, public []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(addr)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(addrs)))
	for _, a := range addrs {
		b = appendAddr(b, a)
	}
	b = appendColumn(b, addr)
	b = appendColumn(b, port)
	b = appendColumn(b, incarnation)
	b = appendColumn(b, host)
	return append(append(b, byte(len(public)/len(addr))), public...)
}

// maxTable is the longest table of size ranks, bytes.
func maxTable(size int) int { return 8 + 4*columnHeader + 1 + size*(17+2+2+8+2+MaxPublic) }

// parseTable keeps parts of b.
func parseTable(b []byte, size int) (*table, error) {
	p := parser{b: b}
	if n := p.u32(); p.bad || int(n) != size {
		return nil, fmt.Errorf("a table of %d ranks, not %d", n, size)
	}
	n := p.u32()
	if p.bad || n < 1 || int(n) > size {
		return nil, fmt.Errorf("a table of %d ranks with %d addresses", size, n)
	}
	t := &table{size: size, addrs: make([]netip.Addr, n)}
	for i := range t.addrs {
		if t.addrs[i] = p.addr(); !t.addrs[i].IsValid() {
			return nil, fmt.Errorf("a table without address %d of %d", i, n)
		}
	}
	t.addr = p.column(size, uint64(n))
	t.port = p.column(size, 1<<16)
	t.incarnation = p.column(size, 0)
	t.host = p.column(size, uint64(size))
	t.public = p.bytes(size * int(p.u8()))
	if !p.done() {
		return nil, fmt.Errorf("a table of %d ranks that is not well-formed", size)
	}
	return t, nil
}

// segments are sizes and rights of all ranks' segments: no bytes per rank if all are alike.
type segments struct{ size, rights column }

func appendSegments(b []byte, size []uint64, rights []uint32) []byte {
	return appendColumn(appendColumn(b, size), rights)
}

// maxSegments is the longest table of segments of size ranks, bytes.
func maxSegments(size int) int { return 2*columnHeader + size*(8+4) }

// parseSegments keeps parts of b.
func parseSegments(b []byte, size int) (*segments, error) {
	p := parser{b: b}
	s := &segments{p.column(size, 0), p.column(size, 1<<32)}
	if !p.done() {
		return nil, fmt.Errorf("segments of %d ranks that are not well-formed", size)
	}
	return s, nil
}
