package conduits

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"
)

// TestTally compares a Tally of many ranks with plain counts, beyond 32 bits, too.
func TestTally(t *testing.T) {
	if s := unsafe.Sizeof(tallied{}); s != tallyBytes {
		t.Fatalf("a peer takes %d bytes, not %d", s, tallyBytes)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var tally Tally
	want := map[int]*PeerStats{}
	for range 20000 {
		rank, c, n := rng.IntN(1000)*rng.IntN(1000), Class(rng.IntN(NumClasses)), rng.IntN(1<<30)
		p := want[rank]
		if p == nil {
			p = &PeerStats{Rank: rank}
			want[rank] = p
		}
		a := Access{Rank: rank, Mem: make([]byte, rng.IntN(100))}
		switch rng.IntN(6) {
		case 0:
			tally.Sent(rank, c, n)
			p.Sent[c]++
			p.SentBytes += uint64(n)
		case 1:
			tally.Received(rank, c, n)
			p.Received[c]++
			p.ReceivedBytes += uint64(n)
		case 2:
			tally.Refused(rank)
			p.NoCredit++
		case 3:
			a.Verb = Put
			tally.Accessed(&a)
			p.Puts++
			p.PutBytes += uint64(len(a.Mem))
		case 4:
			a.Verb = Get
			tally.Accessed(&a)
			p.Gets++
			p.GetBytes += uint64(len(a.Mem))
		default:
			a.Verb = Atomic
			tally.Accessed(&a)
			p.Atomics++
		}
	}
	for _, p := range want { // as if 2^32 more had been sent
		r := tally.row(int32(p.Rank) + 1)
		before := r.counts[tallySent]
		r.counts[tallySent] = 1<<32 - 1
		tally.Sent(p.Rank, Request, 0)
		r.counts[tallySent] += before
		p.Sent[Request] += 1 << 32
	}
	s := Stats{Peers: []PeerStats{}}
	tally.Fill(&s)
	if len(s.Peers) != len(want) || tally.used != len(want) {
		t.Fatalf("%d peers, %d in use; want %d", len(s.Peers), tally.used, len(want))
	}
	var sum PeerStats
	for i, p := range s.Peers {
		if p != *want[p.Rank] {
			t.Fatalf("have %+v, want %+v", p, *want[p.Rank])
		}
		if i > 0 && p.Rank <= s.Peers[i-1].Rank {
			t.Fatalf("rank %d comes after %d", p.Rank, s.Peers[i-1].Rank)
		}
		sum.Add(&p)
	}
	if s.Sent != sum.Sent || s.Received != sum.Received || s.NoCredit != sum.NoCredit || s.Puts != sum.Puts || s.Gets != sum.Gets || s.Atomics != sum.Atomics {
		t.Fatalf("the peers add up to %+v, and the totals are %+v", sum, s)
	}
	var none Stats
	if tally.Fill(&none); none.Peers != nil || none.Sent != s.Sent {
		t.Fatalf("without Peers: %+v", none)
	}
	r := tally.row(1)
	if n := testing.AllocsPerRun(100, func() { tally.Sent(0, Request, 8) }); n != 0 || tally.row(1) != r {
		t.Fatalf("a message to a peer in use allocates %v times", n)
	}
}

// TestAccessCounts compares AccessCounts of goroutines at once, while others read them, with plain
// counts, beyond what one word holds.
func TestAccessCounts(t *testing.T) {
	if s := unsafe.Sizeof(AccessCounts{}); s != 64 {
		t.Fatalf("a peer takes %d bytes, not a line", s)
	}
	var c AccessCounts
	seven := make([]byte, 7)
	word := Access{Verb: PutWord, Size: 4}
	const each = 3000
	var w sync.WaitGroup
	for range 4 {
		w.Go(func() {
			for range each {
				c.moved[0].Add(1<<accessNumber | accessLong - 1) // as an access for which there is no memory here
				c.carry(0, 0)
				c.Accessed(&word)
				c.carry(1, 2*accessLong)
				c.Accessed(&Access{Verb: Get, Mem: seven})
				c.Accessed(&Access{Verb: Atomic, Type: Uint64})
			}
		})
	}
	for last := (Stats{}); last.Gets < 8*each; {
		var s Stats
		if c.Fill(&s, 3); s.Puts < last.Puts || s.Gets < last.Gets {
			t.Fatalf("%+v after %+v", s, last)
		}
		last = s
	}
	w.Wait()
	const n = 4 * each
	s := Stats{Peers: []PeerStats{}}
	c.Fill(&s, 3)
	want := PeerStats{Rank: 3, Puts: 2 * n, PutBytes: n * (1<<32 - 1 + 4), Gets: 2 * n, GetBytes: n * (1<<33 + 7), Atomics: n}
	if len(s.Peers) != 1 || s.Peers[0] != want || s.Puts != want.Puts || s.Gets != want.Gets || s.Atomics != want.Atomics {
		t.Fatalf("have %+v, want %+v", s, want)
	}
	c = AccessCounts{}
	c.moved[0].Store(1<<63 - 1<<accessNumber) // a number that is about to be full
	c.Accessed(&word)
	if s = (Stats{}); c.moved[0].Load() != 0 {
		t.Fatal("a full word is not carried")
	}
	if c.Fill(&s, 0); s.Puts != 1<<23 {
		t.Fatalf("%d puts", s.Puts)
	}
}

// TestMergePeers: what is of one rank is added up.
func TestMergePeers(t *testing.T) {
	got := MergePeers([]PeerStats{{Rank: 3, Puts: 1}, {Rank: 1, Gets: 2}, {Rank: 3, Puts: 4, PutBytes: 7}})
	if want := []PeerStats{{Rank: 1, Gets: 2}, {Rank: 3, Puts: 5, PutBytes: 7}}; !slices.Equal(got, want) {
		t.Fatalf("have %+v, want %+v", got, want)
	}
}

func BenchmarkTally(b *testing.B) {
	var t Tally
	for _, peers := range []int{1, 16} {
		b.Run(fmt.Sprintf("peers=%d", peers), func(b *testing.B) {
			for i := range b.N {
				t.Sent(i&(peers-1)*4, Request, 8)
			}
		})
	}
}
