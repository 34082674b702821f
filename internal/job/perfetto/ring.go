package perfetto

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// ringChunks is how many chunks a rank keeps at most: 4 MiB of events.
const ringChunks = 64

// ring is what a rank has done last: its events of some time, as far as there is room. Slices that have begun before and go
// on are kept, too, so that what a reader gets has a begin for each end.
type ring struct {
	last   time.Duration
	newest time.Duration // of all events
	chunks []kept        // the oldest first
	open   map[uint64][][]byte
	// of the slices that go on where the ring begins, the packets of their begins by track, the outermost first; nil: the file has it
	late []byte // packets of the ends of such, which the ring has no more
}

// kept is a chunk of entries.
type kept struct {
	b      []byte
	newest time.Duration
}

// entry is an event in the ring: a byte for what it is, 8 for its track, 8 for its time, 4 for the length of its packet, the packet.
type entry struct {
	what   int
	track  uint64
	at     time.Duration
	packet []byte
}

// entryHead is the length of an entry before its packet.
const entryHead = 1 + 8 + 8 + 4

// first takes the first entry of b apart.
func first(b []byte) (v entry, rest []byte) {
	le, n := binary.LittleEndian, entryHead+int(binary.LittleEndian.Uint32(b[17:]))
	return entry{int(b[0]), le.Uint64(b[1:]), time.Duration(le.Uint64(b[9:])), b[entryHead:n]}, b[n:]
}

// add keeps an event.
func (g *ring) add(v entry) {
	g.newest = max(g.newest, v.at)
	need := entryHead + len(v.packet)
	if n := len(g.chunks); n == 0 || len(g.chunks[n-1].b)+need > cap(g.chunks[n-1].b) {
		var b []byte
		for n > 0 && (n == ringChunks || g.chunks[0].newest < g.newest-g.last) {
			for b = g.chunks[0].b; len(b) > 0; {
				b = g.drop(b)
			}
			b = g.chunks[0].b[:0]
			g.chunks = slices.Delete(g.chunks, 0, 1)
			n--
		}
		if cap(b) < need {
			b = make([]byte, 0, max(chunkBytes, need))
		}
		g.chunks = append(g.chunks, kept{b: b})
	}
	c := &g.chunks[len(g.chunks)-1]
	le := binary.LittleEndian
	c.b = le.AppendUint64(le.AppendUint64(append(c.b, byte(v.what)), v.track), uint64(v.at))
	c.b = append(le.AppendUint32(c.b, uint32(len(v.packet))), v.packet...)
	c.newest = max(c.newest, v.at)
}

// drop takes the first entry of b, the oldest of the ring, out of it.
func (g *ring) drop(b []byte) (rest []byte) {
	v, rest := first(b)
	l := g.open[v.track]
	switch {
	case v.what == begin:
		if g.open == nil {
			g.open = map[uint64][][]byte{}
		}
		g.open[v.track] = append(l, bytes.Clone(v.packet))
	case v.what == finish && len(l) > 0:
		if l[len(l)-1] == nil { // the file has the begin
			g.late = append(g.late, v.packet...)
		}
		g.ended(v.track, l)
	}
	return rest
}

// ended takes the innermost slice off those that go on in a track.
func (g *ring) ended(track uint64, l [][]byte) {
	if g.open[track] = l[:len(l)-1]; len(l) == 1 {
		delete(g.open, track)
	}
}

// dump has f get what the ring has, which is empty then.
func (g *ring) dump(f *File) {
	e := &f.e
	since := g.newest - g.last
	for len(g.chunks) > 0 { // the first may be older in parts
		b := g.chunks[0].b
		if len(b) > 0 {
			if v, _ := first(b); v.at < since {
				g.chunks[0].b = g.drop(b)
				continue
			}
			break
		}
		g.chunks = g.chunks[1:]
	}
	e.b = append(e.b, g.late...)
	for _, track := range slices.Sorted(maps.Keys(g.open)) {
		for i, packet := range g.open[track] {
			e.b = append(e.b, packet...)
			g.open[track][i] = nil
		}
	}
	for _, c := range g.chunks {
		for b := c.b; len(b) > 0; {
			var v entry
			v, b = first(b)
			e.b = append(e.b, v.packet...)
			switch l := g.open[v.track]; {
			case v.what == begin:
				if g.open == nil {
					g.open = map[uint64][][]byte{}
				}
				g.open[v.track] = append(l, nil)
			case v.what == finish && len(l) > 0:
				g.ended(v.track, l)
			}
		}
	}
	g.chunks, g.late = nil, nil
}
