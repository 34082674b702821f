package contract

import "github.com/argon-go/argon/segment"

// At is the address of byte off of a segment.
func At(off int) segment.NLA { return segment.AttachBase + segment.NLA(off) }

// Pages rounds bytes up to what a segment may have.
func Pages(n int) uint64 { return uint64(n+segment.PageSize-1) &^ (segment.PageSize - 1) }

// Mix makes a key of numbers.
func Mix(parts ...uint64) uint64 {
	k := uint64(0x243f6a8885a308d3)
	for _, p := range parts {
		k = (k ^ p) * 0x9e3779b97f4a7c15
		k ^= k >> 29
	}
	return k
}

// ByteOf is byte i of what key determines.
func ByteOf(key uint64, i int) byte {
	z := (key + uint64(i)) * 0xbf58476d1ce4e5b9
	return byte(z >> 56)
}

// chunk is how many bytes go through an array on the stack at once. The race detector is told
// of the bytes of a slice by one call a chunk, as of a range, and not by one for each byte.
const chunk = 1 << 10

// Fill writes to b what key determines, as if b began at byte from of it.
func Fill(b []byte, key uint64, from int) []byte {
	for off := 0; off < len(b); off += chunk {
		var c [chunk]byte
		n := min(chunk, len(b)-off)
		for i := range n {
			c[i] = ByteOf(key, from+off+i)
		}
		copy(b[off:], c[:n])
	}
	return b
}

// Wrong is the index of the first byte of b that fill(b, key, from) would
// change, or -1.
func Wrong(b []byte, key uint64, from int) int {
	return Differ(b, Fill(make([]byte, len(b)), key, from))
}

// Differ is the first index where a and b, equally long, differ, or -1.
func Differ(a, b []byte) int {
	for off := 0; off < len(a); off += chunk {
		var c, d [chunk]byte
		n := copy(c[:], a[off:])
		copy(d[:], b[off:])
		for i := range n {
			if c[i] != d[i] {
				return off + i
			}
		}
	}
	return -1
}

// Spoil changes every byte of b.
func Spoil(b []byte) {
	for off := 0; off < len(b); off += chunk {
		var c [chunk]byte
		n := copy(c[:], b[off:])
		for i := range n {
			c[i] ^= 0xa5
		}
		copy(b[off:], c[:n])
	}
}

// Sizes are the lengths that are worth a try, up to most: all small ones, and
// the powers of two with their neighbours.
func Sizes(small, most int) []int {
	var s []int
	for n := range min(small, most) + 1 {
		s = append(s, n)
	}
	for p := 8; p > 0 && p-1 <= most; p *= 2 {
		for n := p - 1; n <= p+1; n++ {
			if n > small && n <= most {
				s = append(s, n)
			}
		}
	}
	if last := s[len(s)-1]; last < most {
		s = append(s, most)
	}
	return s
}
