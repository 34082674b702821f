package firehose

import (
	"encoding/binary"
	"testing"
)

// FuzzReceive has rank 2 send requests and replies: frames of the input, each with
// a byte before it for which of the two it is, and how long. What has a kind
// is given the right digest. What is as long as the words of a move, or a moved, is
// one. The fake memory checks the budget.
func FuzzReceive(f *testing.F) {
	frame := func(reply byte, h head, words ...uint64) []byte {
		b := appendHead(nil, h)
		for _, w := range words {
			b = appendWord(b, w)
		}
		return append([]byte{reply | byte(len(b))<<1}, b...)
	}
	f.Add([]byte{})
	f.Add(frame(0, head{id: 1, kind: kindMove, pins: 2}, 3, 4))
	f.Add(append(frame(0, head{id: 1, kind: kindMove, pins: 1}, 3), frame(0, head{id: 2, kind: kindMove, unpins: 1, pins: 1}, 3, 4)...))
	f.Add(append(frame(0, head{id: 5, kind: kindOnce, pins: 1}, 100, 50), frame(0, head{id: 5, kind: kindDrop})...))
	f.Add(frame(1, head{id: 1, kind: kindMove, pins: 1}, 1<<30))
	f.Add(frame(1, head{id: 1, kind: kindMove, keys: true, pins: 1}, 1<<30, 7))
	f.Add(frame(1, head{id: 1, kind: kindMove, pins: 1}, refusedNotExposed))
	words := func(reply byte, words ...uint32) (b []byte) {
		for _, w := range words {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return append([]byte{reply | byte(len(b))<<1}, b...)
	}
	f.Add(append(words(0, 1, 1, 0, 3), words(0, 1, 2, 4, 4)...))
	f.Add(words(1, 1, 1<<30, 0, 0, 0))
	f.Add(words(1, 1, refusedNotExposed, 0, 0, 0))
	f.Fuzz(func(t *testing.T, in []byte) {
		m, mem := newTest(t, Config{Size: 4, Budget: 8 * testBucket, Local: 2 * testBucket, Payload: 128})
		honest := appendWord(appendHead(nil, head{digest: m.digest, id: 1, kind: kindMove, pins: 1}), 3)
		if _, ok := m.Receive(1, honest, nil); !ok {
			t.Fatal("an honest request is refused")
		}
		if _, _, err := m.RemotePin(2, 5*testBucket, 1, 77); err != nil { // a reply may be the answer
			t.Fatal(err)
		}
		m.NextMessage()
		for len(in) > 0 {
			reply, n := in[0]&1 != 0, min(int(in[0]>>1), len(in)-1)
			b := append([]byte(nil), in[1:1+n]...)
			in = in[1+n:]
			words := make([]uint32, len(b)/4)
			for i := range words {
				words[i] = binary.LittleEndian.Uint32(b[4*i:])
			}
			switch asks := !reply && len(b) == 4*len(move{}); {
			case asks && words[moveDigest]&1 != 0:
				words[moveDigest] = m.digest
				fallthrough
			case asks:
				m.ReceiveMove(2, move(words))
			case reply && len(b) == 4*len(moved{}):
				if d, ok := m.ReceiveMoved(2, moved(words)); ok {
					m.done.Add(d) // for what follows
				}
			default:
				if len(b) >= headBytes && b[8] != 0 {
					binary.LittleEndian.PutUint32(b, m.digest)
				}
				if reply {
					m.ReceiveReply(2, b)
				} else {
					m.Receive(2, b, nil)
				}
			}
			for {
				d, ok := m.NextDone()
				if !ok {
					break
				}
				if d.Err == nil && d.Pinned.Valid() {
					if err := m.Release(d.Pinned); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if m.peer(1).holds.n != 1 {
			t.Fatal("one peer has taken another's firehose")
		}
		m.Close()
		if len(mem.pinned) != 0 {
			t.Fatalf("%d buckets stay pinned", len(mem.pinned))
		}
	})
}
