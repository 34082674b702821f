package races

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func detector(threads int) *Detector {
	return New(threads, func(p uint64) string { return fmt.Sprintf("%#x", p) })
}

// TestRaces compares what a detector finds in random programs with what one finds that keeps all accesses and compares each
// with each.
func TestRaces(t *testing.T) {
	type past struct {
		me    int
		epoch uint32
		p     uint64
		n     int
		k     Access
	}
	races := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		const threads = 3
		d := detector(threads)
		var all []past
		var log []string
		found, want := false, false
		d.print = func(string) { found = true }
		d.place = func() uint32 { return uint32(len(all)) } // another place each time
		for range 24 {
			me := r.IntN(threads)
			p := 64 + uint64(r.IntN(12))
			switch r.IntN(8) {
			case 0, 1:
				d.Release(me, p&^3, 4)
				log = append(log, fmt.Sprintf("%d releases %v", me, p&^3))
			case 2, 3:
				d.Acquire(me, p&^3, 4)
				log = append(log, fmt.Sprintf("%d acquires %v", me, p&^3))
			case 4, 5:
				if r.IntN(2) == 0 {
					for i := range threads {
						d.Notify(i)
					}
					for i := range threads {
						d.Wait(i)
					}
					log = append(log, "barrier")
				}
			default:
				a := past{me, d.threads[me][me], p, 1 + r.IntN(9), Access(r.IntN(4))}
				d.places = make([]string, len(all)+1)
				d.Accessed(me, p, a.n, a.k)
				for _, o := range all {
					if o.epoch > d.threads[me][o.me] && o.p < p+uint64(a.n) && p < o.p+uint64(o.n) && (a.k == Writes || o.k == Writes ||
						a.k+o.k == Reads+AtomicWrites) {
						want = true
					}
				}
				all = append(all, a)
				log = append(log, fmt.Sprintf("%d %v %d bytes at %v", me, a.k, a.n, p))
			}
			if found != want {
				t.Fatalf("seed %d: a race: %v, not %v, in\n%s", seed, found, want, strings.Join(log, "\n"))
			}
			if found {
				races++
				break
			}
		}
	}
	if races < 500 || races > 2900 {
		t.Errorf("%d of 3000 programs have races", races)
	}
}

// TestRacesMemory: a detector forgets the oldest words, and says so; edges that have no room order what others do, too.
func TestRacesMemory(t *testing.T) {
	d := detector(2)
	var got []string
	d.print = func(s string) { got = append(got, s) }
	d.most = 4
	at := func(i int) uint64 { return uint64(64 + 8*i) }
	for i := range 6 {
		d.Accessed(0, at(i), 8, Writes)
	}
	if len(d.words) != 4 || d.forgot != 2 {
		t.Errorf("%d words, and %d accesses forgotten, not 4 and 2", len(d.words), d.forgot)
	}
	d.Accessed(1, at(0), 8, Reads) // in place of word 2
	d.Allocated(at(3), 8)
	d.Accessed(1, at(3), 8, Reads)
	if len(got) != 0 {
		t.Errorf("races with what is forgotten: %q", got)
	}
	d.Accessed(1, at(5), 8, Reads)
	if len(got) != 1 || !strings.HasPrefix(got[0], "data race on 0x68: ") {
		t.Errorf("the youngest word: %q", got)
	}
	if s := d.Status(0); s != 1 || len(got) != 2 || !strings.HasPrefix(got[1], "races: 3 accesses were forgotten") {
		t.Errorf("at the end, status %d: %q", s, got)
	}
	many := detector(recordsMost + 2)
	for i := range many.threads {
		many.Accessed(i, at(0), 8, Reads)
	}
	if n := len(many.words[at(0)]); n != recordsMost || many.forgot != 2 {
		t.Errorf("%d accesses to a word, %d forgotten", n, many.forgot)
	}
	e := detector(2)
	e.print = func(s string) { got = append(got, s) }
	for i := range edgesMost {
		e.Release(0, at(i), 8)
	}
	got = nil
	if e.Status(0); got != nil {
		t.Errorf("%d edges, which all have room: %q", edgesMost, got)
	}
	for i := range 3 {
		e.Release(0, at(edgesMost+i), 8)
	}
	e.Acquire(1, at(edgesMost+1), 8)
	if len(e.edges) != edgesMost || e.threads[1][0] != edgesMost+3 {
		t.Errorf("%d edges; thread 1 comes after epoch %d of thread 0", len(e.edges), e.threads[1][0])
	}
	if e.Status(0); len(got) != 1 || !strings.HasPrefix(got[0], "races: more than 65536 words order accesses") {
		t.Errorf("at the end of a job with too many edges: %q", got)
	}
}

// TestRacesRoom: all words together have so much room, and what all they have is counted.
func TestRacesRoom(t *testing.T) {
	d := detector(recordsMost)
	d.print = func(s string) { t.Error(s) }
	const room = 10 * recordsMost
	d.room = room
	for i := range 100 {
		for me := range 1 + i%recordsMost {
			d.Accessed(me, uint64(64+8*(i%40)), 8, Reads)
		}
		held := 0
		for _, all := range d.words {
			held += cap(all)
		}
		if d.room < 0 || d.room+held != room {
			t.Fatalf("after access %d: room for %d accesses and for %d more, not for %d", i, held, d.room, room)
		}
	}
	if d.forgot == 0 {
		t.Error("nothing was forgotten")
	}
}

// TestRacesAllocated: memory that is allocated again and again takes no other's room, and has no past.
func TestRacesAllocated(t *testing.T) {
	d := detector(2)
	reports := 0
	d.print = func(string) { reports++ }
	d.most = 16
	const kept, at, most = 8, 64, 8
	d.Accessed(0, kept, 8, Writes)
	for i := range 20 {
		size := uint64(8 * most)
		if i%2 == 0 {
			size = 1 << 40
		}
		d.Allocated(at, size)
		d.Acquire(1, at, 8)
		d.Accessed(1, at, 8*most, Writes)
		d.Release(0, at, 8)
	}
	if len(d.words) != 1+most || d.forgot != 0 || reports != 0 {
		t.Errorf("%d words, not %d; %d accesses forgotten; %d races", len(d.words), 1+most, d.forgot, reports)
	}
	d.Allocated(at, 8)
	d.Acquire(1, at, 8)
	d.Accessed(1, kept, 8, Reads)
	if reports != 1 || d.threads[1][0] != 0 {
		t.Errorf("%d races, not one; thread 1 comes after epoch %d of thread 0", reports, d.threads[1][0])
	}
}

// TestRacesBytes: an access orders by its bytes alone, and by those of all words that it is to.
func TestRacesBytes(t *testing.T) {
	for _, c := range []struct {
		release, acquire uint64
		n, m             int
		ordered          bool
	}{
		{64, 68, 4, 4, false}, {64, 67, 4, 1, true}, {64, 64, 4, 8, true}, {64, 72, 12, 4, true}, {64, 76, 12, 4, false}, {72, 64, 8, 12, true},
	} {
		d := detector(2)
		d.Release(0, c.release, c.n)
		d.Acquire(1, c.acquire, c.m)
		if got := d.threads[1][0] == 1; got != c.ordered {
			t.Errorf("%d bytes at %d order what %d bytes at %d do: %v", c.n, c.release, c.m, c.acquire, got)
		}
	}
}

// TestRacesFlow: a collective call orders what the thread that has the data did before.
func TestRacesFlow(t *testing.T) {
	d := detector(3)
	for range 2 { // thread 0 runs ahead
		d.Enter(0, true)
		d.Leave(0, 0, 1)
	}
	d.Enter(1, false)
	d.Enter(2, true)
	d.Leave(2, 1, 2)
	d.Leave(1, 0, 1)
	want := []clock{{3, 0, 0}, {1, 1, 0}, {0, 0, 2}}
	if !slices.EqualFunc(d.threads, want, slices.Equal[clock]) || len(d.flows) != 1 {
		t.Errorf("clocks %v, not %v; %d calls that some have not left", d.threads, want, len(d.flows))
	}
}

// TestRacesBarrier: a thread that has not left a barrier is not after what one that has left it does before the next.
func TestRacesBarrier(t *testing.T) {
	d := detector(2)
	reports := 0
	d.print = func(string) { reports++ }
	for range 3 {
		d.Notify(0)
		d.Notify(1)
		d.Wait(0)
		d.Accessed(0, 64, 4, Writes)
		d.Notify(0)
		d.Wait(1)
		if d.threads[1][0] >= d.words[64][0].epoch {
			t.Errorf("thread 1 comes after epoch %d of thread 0, %d of which it has not seen", d.threads[1][0], d.words[64][0].epoch)
		}
		d.Notify(1)
		d.Wait(1)
		d.Accessed(1, 64, 4, Writes)
		d.Wait(0)
	}
	if reports != 0 {
		t.Errorf("%d races", reports)
	}
}

// TestRacesSettled: a strict read is settled unless a strict write to its word is under way, or has begun and ended meanwhile.
func TestRacesSettled(t *testing.T) {
	d := detector(2)
	for i, c := range []struct {
		before, meanwhile []uint64 // words that thread 1 writes to, 0 for the end of that
		settled           bool
	}{
		{nil, nil, true},
		{[]uint64{72}, []uint64{0}, true},
		{[]uint64{68}, nil, false},
		{[]uint64{68, 0}, nil, true},
		{nil, []uint64{64}, false},
		{nil, []uint64{64, 0}, false},
	} {
		for _, p := range c.before {
			d.Writes(1, p)
		}
		d.Reads(0, 64)
		for _, p := range c.meanwhile {
			d.Writes(1, p)
		}
		if got := d.Settled(0, 64); got != c.settled {
			t.Errorf("case %d: settled: %v", i, got)
		}
		d.Writes(1, 0)
	}
}
