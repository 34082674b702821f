package conduits

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// PeerStats count what an endpoint has done with one rank, which may be its own.
type PeerStats struct {
	Rank          int
	Sent          [NumClasses]uint64 // messages committed to it; to itself, too, those that a Card multiplies
	Received      [NumClasses]uint64 // its messages that were given to the Receiver
	SentBytes     uint64             // payloads of Sent, those put into its segment among them
	ReceivedBytes uint64             // payloads of Received
	NoCredit      uint64             // tries to send to it that were refused for want of credit
	Resent        uint64             // datagrams sent to it once more, as Stats has them
	// Accesses to its memory that went through the endpoint, as Stats has them. Loads and stores
	// of a View are not counted, nor is an access with Now; one that is refused may be.
	Puts, Gets, Atomics uint64
	PutBytes, GetBytes  uint64 // of Puts and Gets
}

// Add adds what o counts to p.
func (p *PeerStats) Add(o *PeerStats) {
	for c := range p.Sent {
		p.Sent[c] += o.Sent[c]
		p.Received[c] += o.Received[c]
	}
	p.SentBytes += o.SentBytes
	p.ReceivedBytes += o.ReceivedBytes
	p.NoCredit += o.NoCredit
	p.Resent += o.Resent
	p.Puts += o.Puts
	p.Gets += o.Gets
	p.Atomics += o.Atomics
	p.PutBytes += o.PutBytes
	p.GetBytes += o.GetBytes
}

// Count adds what p counts to the totals of s, and p to s.Peers if that is not nil.
func (s *Stats) Count(p *PeerStats) {
	for c := range p.Sent {
		s.Sent[c] += p.Sent[c]
		s.Received[c] += p.Received[c]
	}
	s.NoCredit += p.NoCredit
	s.Resent += p.Resent
	s.Puts += p.Puts
	s.Gets += p.Gets
	s.Atomics += p.Atomics
	if s.Peers != nil {
		s.Peers = append(s.Peers, *p)
	}
}

// MergePeers puts list in order of ranks and adds up what is of the same one. The result lies in
// list's memory.
func MergePeers(list []PeerStats) []PeerStats {
	slices.SortFunc(list, func(a, b PeerStats) int { return cmp.Compare(a.Rank, b.Rank) })
	n := 0
	for i := range list {
		if n > 0 && list[n-1].Rank == list[i].Rank {
			list[n-1].Add(&list[i])
			continue
		}
		list[n] = list[i]
		n++
	}
	return list[:n]
}

// A Tally counts what an endpoint does with each of its peers, for endpoints that have no numbers
// of their own to derive that from. It takes tallyBytes for each peer in use, and 12 bytes an entry of its
// table, at most 7/8 of which are in use. The zero value is empty. Its methods, Fill among
// them, are to be called one at a time: under a lock that the endpoint holds anyway.
type Tally struct {
	ranks []int32 // and 1, with open addressing; 0: the entry is free. A power of two.
	rows  []*tallied
	used  int
	last  int32 // as in ranks: that which was counted for last, and its row
	at    *tallied
	more  map[tallyCount]uint64 // counts beyond 32 bits; nil before the first
}

// tallyBytes is the size of a tallied.
const tallyBytes = 64

// tallied is what a Tally has of a peer.
type tallied struct {
	sent, received, put, got uint64 // bytes
	counts                   [tallyCounts]uint32
}

// tallyCount names a count of a rank.
type tallyCount struct {
	rank int32
	what uint8
}

// Indices of tallied.counts. A class is added to those of messages.
const (
	tallySent     = 0
	tallyReceived = tallySent + NumClasses
	tallyNoCredit = tallyReceived + NumClasses
	tallyPuts     = tallyNoCredit + 1
	tallyGets     = tallyPuts + 1
	tallyAtomics  = tallyGets + 1
	tallyCounts   = tallyAtomics + 1
)

// Sent counts a message of class c to rank with a payload of so many bytes.
func (t *Tally) Sent(rank int, c Class, bytes int) {
	t.count(rank, tallySent+uint8(c)).sent += uint64(bytes)
}

// Received counts a message from rank.
func (t *Tally) Received(rank int, c Class, bytes int) {
	t.count(rank, tallyReceived+uint8(c)).received += uint64(bytes)
}

// Refused counts that there was no credit for a message to rank.
func (t *Tally) Refused(rank int) { t.count(rank, tallyNoCredit) }

// Accessed counts an access to a rank that there is.
func (t *Tally) Accessed(a *Access) {
	switch a.Verb {
	case Put, PutWord:
		t.count(a.Rank, tallyPuts).put += a.Len()
	case Get, GetWord:
		t.count(a.Rank, tallyGets).got += a.Len()
	default:
		t.count(a.Rank, tallyAtomics)
	}
}

// Fill adds all that was counted to s, and what was counted of each peer to s.Peers if that is not nil.
func (t *Tally) Fill(s *Stats) {
	if s.Peers != nil {
		s.Peers = slices.Grow(s.Peers, t.used)
	}
	for i, r := range t.rows {
		if r == nil {
			continue
		}
		rank := t.ranks[i] - 1
		n := func(what int) uint64 {
			return uint64(r.counts[what]) + t.more[tallyCount{rank, uint8(what)}]
		}
		p := PeerStats{
			Rank: int(rank), SentBytes: r.sent, ReceivedBytes: r.received, PutBytes: r.put, GetBytes: r.got,
			NoCredit: n(tallyNoCredit), Puts: n(tallyPuts), Gets: n(tallyGets), Atomics: n(tallyAtomics),
		}
		for c := range p.Sent {
			p.Sent[c], p.Received[c] = n(tallySent+c), n(tallyReceived+c)
		}
		s.Count(&p)
	}
	s.Peers = MergePeers(s.Peers)
}

// count adds one to a count of rank, whose row it returns.
func (t *Tally) count(rank int, what uint8) *tallied {
	r := t.row(int32(rank) + 1)
	r.counts[what]++
	if r.counts[what] == 0 {
		t.carry(int32(rank), what)
	}
	return r
}

// row is that of a rank, which is key-1.
func (t *Tally) row(key int32) *tallied {
	if key != t.last {
		t.turn(key)
	}
	return t.at
}

// turn makes key the last one.
func (t *Tally) turn(key int32) {
	i := t.entry(key)
	if i < 0 || t.ranks[i] != key {
		i = t.newRow(key)
	}
	t.last, t.at = key, t.rows[i]
}

// entry is where key is, or would be; negative if there is no table.
func (t *Tally) entry(key int32) int {
	mask := len(t.ranks) - 1
	if mask < 0 {
		return -1
	}
	// The top bits of the product depend on all of the key's; the table has 4 entries or more.
	i := int(uint32(key) * 2654435769 >> (33 - bits.Len32(uint32(len(t.ranks)))))
	for t.ranks[i] != key && t.ranks[i] != 0 {
		i = (i + 1) & mask
	}
	return i
}

// newRow makes the row of key, and returns where it is.
//
//go:noinline
func (t *Tally) newRow(key int32) int {
	if 8*(t.used+1) > 7*len(t.ranks) {
		old := *t
		n := max(2*len(t.ranks), 4)
		t.ranks, t.rows = make([]int32, n), make([]*tallied, n)
		for i, k := range old.ranks {
			if k != 0 {
				j := t.entry(k)
				t.ranks[j], t.rows[j] = k, old.rows[i]
			}
		}
	}
	i := t.entry(key)
	t.ranks[i], t.rows[i] = key, new(tallied)
	t.used++
	return i
}

// carry notes that a count has begun anew.
//
//go:noinline
func (t *Tally) carry(rank int32, what uint8) {
	if t.more == nil {
		t.more = map[tallyCount]uint64{}
	}
	t.more[tallyCount{rank, what}] += 1 << 32
}

// AccessCounts count accesses to the memory of one rank, for goroutines that hold no lock of
// the endpoint: each takes one atomic addition. The zero value is empty.
type AccessCounts struct {
	// Puts and gets that are not in sums yet: the number from bit accessNumber on, their bytes below.
	moved   [2]atomic.Uint64
	atomics atomic.Uint64

	mu   sync.Mutex // guards sums
	sums [2]struct{ number, bytes uint64 }
}

// A word of moved goes into sums when the top bit of its number or of its bytes is set, and
// an access of accessLong bytes goes there at once: so 128 goroutines may add meanwhile.
const (
	accessNumber = 40
	accessFull   = 1<<63 | 1<<(accessNumber-1)
	accessLong   = 1 << 32
)

// Accessed counts an access.
func (c *AccessCounts) Accessed(a *Access) {
	i, n := 0, uint64(len(a.Mem))
	switch a.Verb {
	case Put:
	case PutWord:
		n = uint64(a.Size)
	case Get:
		i = 1
	case GetWord:
		i, n = 1, uint64(a.Size)
	default:
		c.atomics.Add(1)
		return
	}
	if n >= accessLong || c.moved[i].Add(1<<accessNumber|n)&accessFull != 0 {
		c.carry(i, n)
	}
}

// carry puts a word of moved into sums, and an access of n bytes if it is too long for the word.
//
//go:noinline
func (c *AccessCounts) carry(i int, n uint64) {
	c.mu.Lock()
	v := c.moved[i].Swap(0)
	c.sums[i].number += v >> accessNumber
	c.sums[i].bytes += v & (1<<accessNumber - 1)
	if n >= accessLong {
		c.sums[i].number++
		c.sums[i].bytes += n
	}
	c.mu.Unlock()
}

// Fill adds what was counted to s, as of rank. The caller merges s.Peers.
func (c *AccessCounts) Fill(s *Stats, rank int) {
	c.carry(0, 0)
	c.carry(1, 0)
	c.mu.Lock()
	puts, gets := c.sums[0], c.sums[1]
	c.mu.Unlock()
	p := PeerStats{Rank: rank, Puts: puts.number, PutBytes: puts.bytes, Gets: gets.number, GetBytes: gets.bytes, Atomics: c.atomics.Load()}
	if p != (PeerStats{Rank: rank}) {
		s.Count(&p)
	}
}
