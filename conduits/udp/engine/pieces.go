package engine

import "encoding/binary"

// Contents that have been cut to more than a datagram may have now, since the path
// has become narrower, go in pieces. They keep their sequence number, so that they
// take effect once even if the datagram that they were in before has arrived, and
// each piece's transmissions have packet numbers of their own. The receiver puts
// them together and takes them as if they had come in one datagram.
//
// A piece is the length of the whole contents, the piece's offset in them, 2 bytes
// each, and its bytes.
const pieceHeader = 4

const (
	// mostPieces is how many pieces contents of the largest datagram have at most,
	// in datagrams of the least size.
	mostPieces = 512
	// mostPieced is how many bytes of contents in pieces are put together at a time,
	// of each class of a peer, beside those that are expected next.
	mostPieced = 4 << 20
)

// fit returns what is to be sent of k: k, or if that is too long now the first of
// its pieces. The others are sent as if they had been lost.
func (e *Engine) fit(p *peer, f *flow, k *pkt) *pkt {
	total := len(k.frames) + len(k.data)
	if total <= p.room || k.whole != nil {
		return k
	}
	e.stats.Split++
	// To the floor, so that they fit if the path becomes narrower still.
	per := min(p.room, p.mtu.floor-headerBytes-e.c.overhead())
	per = (per - pieceHeader) &^ 7
	for off := 0; off < total; off += per {
		n := min(per, total-off)
		q := e.pkt()
		q.whole, q.seq, q.tries = k, k.seq, 1
		q.frames = binary.LittleEndian.AppendUint16(q.frames, uint16(total))
		q.frames = binary.LittleEndian.AppendUint16(q.frames, uint16(off))
		if off < len(k.frames) {
			q.frames = append(q.frames, k.frames[off:min(len(k.frames), off+n)]...)
		}
		if left := n - (len(q.frames) - pieceHeader); left > 0 {
			from := off + n - left - len(k.frames)
			q.frames = append(q.frames, k.data[from:from+left]...)
		}
		k.pieces = append(k.pieces, q)
		q.piece = uint16(len(k.pieces))
		if off > 0 {
			q.lost = true
			f.lost.add(q)
		}
	}
	return k.pieces[0]
}

// unpiece forgets the pieces of k.
func (e *Engine) unpiece(p *peer, f *flow, k *pkt) {
	for i := range k.pieces {
		e.dropPiece(p, f, k, i)
	}
	k.pieces = nil
}

// dropPiece forgets the i-th piece of k, unless that has been done.
func (e *Engine) dropPiece(p *peer, f *flow, k *pkt, i int) {
	q := k.pieces[i]
	if q == nil {
		return
	}
	k.pieces[i] = nil
	if q.lost {
		f.lost.remove(q)
	} else {
		p.ground(f, q, moot)
	}
	e.freePkt(q)
}

// pieceLanded notes that a piece of the contents with number seq has arrived; all of
// them have when the last has.
func (e *Engine) pieceLanded(p *peer, f *flow, seq uint64, piece int) {
	k := *f.at(seq)
	if k == nil || piece > len(k.pieces) {
		return
	}
	e.dropPiece(p, f, k, piece-1)
	for _, q := range k.pieces {
		if q != nil {
			return
		}
	}
	e.landed(p, f, seq)
}

// assembly is contents that have come in part.
type assembly struct {
	b    []byte
	had  [mostPieces / 64]uint64 // by the pieces' places
	left int                     // bytes
	per  int                     // of each piece but the last; 0: not known yet
	last int                     // where the last begins; 0: not known yet
}

// readPiece reads the head of a piece.
func readPiece(b []byte) (total, off int, data []byte, ok bool) {
	if len(b) <= pieceHeader {
		return 0, 0, nil, false
	}
	total, off, data = int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:])), b[pieceHeader:]
	return total, off, data, off < total && len(data) < total && off+len(data) <= total
}

// assemble takes a piece of the contents with number seq, and returns all of them if
// they are complete; ok is false if the piece is not taken. All pieces but the last
// are of one length.
func (f *flow) assemble(seq uint64, body []byte) (whole []byte, ok bool) {
	total, off, data, _ := readPiece(body)
	a := f.pieced[seq]
	if a == nil {
		if f.piecedBytes+total > mostPieced && seq != f.cum {
			return nil, false
		}
		a = &assembly{b: make([]byte, total), left: total}
		if f.pieced == nil {
			f.pieced = map[uint64]*assembly{}
		}
		f.pieced[seq] = a
		f.piecedBytes += total
	}
	if len(a.b) != total {
		return nil, false
	}
	per, last, i := a.per, a.last, mostPieces-1
	if off+len(data) == total {
		last = off
	} else {
		per = len(data)
		if i = off / per; off%per != 0 || i >= mostPieces-1 || a.per > 0 && a.per != per {
			return nil, false
		}
	}
	if last == 0 && off+len(data) == total || a.last > 0 && last != a.last || last > 0 && per > 0 && (last%per != 0 || total-last > per || off > last) {
		return nil, false // pieces that overlap
	}
	a.per, a.last = per, last
	if a.had[i/64]>>(i%64)&1 == 0 {
		a.had[i/64] |= 1 << (i % 64)
		copy(a.b[off:], data)
		a.left -= len(data)
	}
	if a.left > 0 {
		return nil, true
	}
	f.forget(seq)
	return a.b, true
}

// forget ends the assembly of the contents with number seq.
func (f *flow) forget(seq uint64) {
	if a := f.pieced[seq]; a != nil {
		f.piecedBytes -= len(a.b)
		delete(f.pieced, seq)
	}
}
