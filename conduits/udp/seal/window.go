package seal

// Window is how far behind the newest datagram of a source a datagram may be
// and still open, counted in datagrams from that source to this rank.
const Window = 64 * (windowWords - 1)

const windowWords = 64 // a power of two; 512 bytes

// window remembers which of the newest counters of a source were seen: a ring of
// bits, of which whole words are cleared as the newest counter goes on (RFC
// 6479). One word is therefore always partly in the future, and not usable for
// the past. The zero window has seen nothing. Counters stay below 2^63.
type window struct {
	next uint64 // one more than the newest counter seen
	bits [windowWords]uint64
}

// look is see that marks nothing.
func (w *window) look(c uint64) Reason {
	switch {
	case c >= w.next:
		return Accepted
	case w.next-c > Window:
		return TooOld
	case w.bits[c/64%windowWords]>>(c%64)&1 != 0:
		return Replayed
	}
	return Accepted
}

// see marks counter c as seen. It answers Accepted if it was not before.
func (w *window) see(c uint64) Reason {
	if c >= w.next {
		// Clear the words that c is the first to reach; word next-1 lies in is in use.
		last := c / 64
		first := (w.next + 63) / 64
		if last+1-first > windowWords {
			first = last + 1 - windowWords
		}
		for i := first; i <= last; i++ {
			w.bits[i%windowWords] = 0
		}
		w.next = c + 1
	} else if w.next-c > Window {
		return TooOld
	}
	word, bit := &w.bits[c/64%windowWords], uint64(1)<<(c%64)
	if *word&bit != 0 {
		return Replayed
	}
	*word |= bit
	return Accepted
}
