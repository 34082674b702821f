package engine

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestAssemble gives contents in pieces in any order, repeated, of several lengths
// and made up: they are put together as they were, or not at all.
func TestAssemble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f flow
		total := rapid.IntRange(2, 5000).Draw(t, "total")
		per := rapid.IntRange(max(1, (total+mostPieces-2)/(mostPieces-1)), total-1).Draw(t, "per")
		want := make([]byte, total)
		for i := range want {
			want[i] = byte(i*31 + i/256)
		}
		for range 2000 {
			off := rapid.IntRange(0, (total-1)/per).Draw(t, "piece") * per
			n := min(per, total-off)
			honest := rapid.IntRange(0, 9).Draw(t, "honest") > 0
			if !honest {
				off, n = rapid.IntRange(0, total-1).Draw(t, "off"), rapid.IntRange(1, total).Draw(t, "n")
			}
			if off+n > total {
				continue
			}
			b := binary.LittleEndian.AppendUint16(nil, uint16(total))
			b = binary.LittleEndian.AppendUint16(b, uint16(off))
			b = append(b, want[off:off+n]...)
			if _, _, _, ok := readPiece(b); !ok {
				continue
			}
			whole, _ := f.assemble(7, b)
			if whole != nil {
				if string(whole) != string(want) {
					t.Fatalf("%d bytes in pieces of %d are others now", total, per)
				}
				if len(f.pieced) != 0 || f.piecedBytes != 0 {
					t.Fatalf("%d bytes remain", f.piecedBytes)
				}
				return
			}
		}
	})
}

// TestPiecedMemory begins with contents until there is no room for more; those that
// are expected next are taken all the same.
func TestPiecedMemory(t *testing.T) {
	var f flow
	f.cum = 10
	b := make([]byte, pieceHeader+100)
	binary.LittleEndian.PutUint16(b, 60000)
	n := 0
	for seq := uint64(11); ; seq++ {
		if _, ok := f.assemble(seq, b); !ok {
			break
		}
		if n++; n > 1000 {
			t.Fatal("there is no limit")
		}
	}
	if n*60000 > mostPieced {
		t.Errorf("%d contents of 60000 bytes", n)
	}
	if _, ok := f.assemble(10, b); !ok {
		t.Error("what is expected next is not taken")
	}
}
