package weathertest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

var flagAttack = flag.Int("weather.attack", 4000, "how many datagrams of each kind attackers send at a live job")

// A tape is what a stranger on the network has recorded: the first datagrams of a
// job, and the newest one.
type tape struct {
	mu     sync.Mutex
	first  []recorded
	newest recorded
}

type recorded struct {
	b        []byte
	from, to int
}

const tapeLength = 4096

func (t *tape) tap(from, to int, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest.b, t.newest.from, t.newest.to = append(t.newest.b[:0], b...), from, to
	if len(t.first) < tapeLength {
		t.first = append(t.first, recorded{append([]byte(nil), b...), from, to})
	}
}

// full reports whether a tape's length has been recorded.
func (t *tape) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.first) == tapeLength
}

// datagram is a copy of any recorded datagram, last of the newest one.
func (t *tape) datagram(rnd *rand.Rand) (b []byte, from, to int) {
	return t.copy(&t.first[rnd.IntN(tapeLength)])
}

func (t *tape) last() (b []byte, from, to int) { return t.copy(&t.newest) }

func (t *tape) copy(r *recorded) (b []byte, from, to int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), r.b...), r.from, r.to
}

// TestAttack has strangers send what they can at a job that works: each datagram
// is counted for what it is and dropped, and the job does not notice.
//
// Strangers know every address, have recorded every datagram since the job's
// beginning, and send from the addresses that ranks expect each other at, or from
// their own.
func TestAttack(t *testing.T) {
	testmain.Long(t)
	for _, mode := range []seal.Mode{seal.Authenticated, seal.Encrypted} {
		t.Run(mode.String(), func(t *testing.T) { attack(t, mode) })
	}
}

func attack(t *testing.T, mode seal.Mode) {
	const n = 3
	var rec tape
	j, ranks := start(t, config{size: n, tap: rec.tap, env: map[string]string{"ARGON_AUTH": mode.String(), "ARGON_DEADTIME": "60s"}}, 1<<16)
	eps := make([]*udp.Endpoint, n)
	for i, r := range ranks {
		eps[i] = r.Endpoint.(*here).Endpoint
	}

	// The job: every rank sends to every other one until the attack is over.
	var over atomic.Bool
	var sent [n][n]atomic.Int64 // by source and destination
	var finished sync.WaitGroup
	var ended atomic.Int32
	for _, r := range ranks {
		finished.Go(func() {
			r.heard, r.done = make([]once, n), nil
			me := r.Rank()
			i := uint32(0)
			for ; !over.Load(); i++ {
				for d := 1; d < n; d++ {
					to := (me + d) % n
					if err := r.send(to, i); err != nil {
						t.Errorf("rank %d: %v", me, err)
						ended.Store(n)
						return
					}
					sent[me][to].Add(1)
					if _, _, err := post.Atomic(r, to, segment.AttachBase, conduits.AtomicAdd, conduits.Uint64, 1, 0, uint64(i)*(n-1)+uint64(d-1)); err != nil {
						t.Errorf("rank %d: %v", me, err)
					}
				}
				// No faster than answers come: it is to go on for long.
				if err := conduits.Wait(r, nil, func() bool { return r.ended >= int(i)*(n-1) }); err != nil {
					t.Errorf("rank %d: %v", me, err)
				}
			}
			ended.Add(1)
			for _, e := range eps {
				e.Wake(e.Rank())
			}
			if err := conduits.Wait(r, nil, func() bool {
				if ended.Load() < n {
					return false
				}
				want := int64(0)
				for from := range n {
					want += sent[from][me].Load()
				}
				return int64(r.got) >= want && r.ended == int(i)*(n-1)
			}); err != nil {
				t.Errorf("rank %d: %v", me, err)
			}
		})
	}
	wait(t, rec.full)

	stranger, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	rnd := rand.New(rand.NewPCG(1, uint64(mode)))
	refused := func() (s [n]seal.Counts) {
		for i, e := range eps {
			s[i] = e.Refused()
		}
		return s
	}
	total := func() (k uint64) {
		for _, s := range refused() {
			k += s.Total()
		}
		return k
	}
	shoot := func(from, to int, b []byte) {
		if rnd.IntN(2) == 0 {
			j.proxy.Inject(from, to, b)
		} else if _, err := stranger.WriteToUDPAddrPort(b, j.proxy.Target((to+1)%n, to)); err != nil {
			t.Fatal(err)
		}
	}

	instance := eps[0].Rendezvous().Instance()
	right := j.key.ForJob(instance[:])
	// sealed makes a datagram as a rank of the job can that knows key and all that is announced.
	sealed := func(key jobkey.Key, from, to int, incarnation uint64) []byte {
		private, err := seal.NewPrivate(mode)
		if err != nil {
			t.Fatal(err)
		}
		client := eps[0].Rendezvous()
		s, err := seal.New(seal.Config{
			Key: key, Rank: from, Size: n, Mode: mode, Incarnation: incarnation, Private: private,
			Peer: func(rank int) (uint64, []byte) { return client.Incarnation(rank), client.Public(rank) },
		})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Seal(nil, to, make([]byte, rnd.IntN(1300)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	pair := func() (from, to int) {
		from = rnd.IntN(n)
		return from, (from + 1 + rnd.IntN(n-1)) % n
	}
	garbage := func(b []byte) []byte {
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	const (
		tooShort = 1 << iota
		malformed
		wrongDestination
		unknownRank
		otherIncarnation
		badTag
		replayed
		tooOld
	)
	few := max(*flagAttack/20, 100) // of those that are dear to make
	var heap uint64
	for _, kind := range []struct {
		name  string
		n     int
		make  func() (b []byte, from, to int)
		means int // the reasons there may be
	}{
		{"random", *flagAttack, func() ([]byte, int, int) {
			from, to := pair()
			return garbage(make([]byte, rnd.IntN(1500))), from, to
		}, tooShort | malformed | wrongDestination | unknownRank | otherIncarnation | badTag},
		{"random after a right beginning", *flagAttack, func() ([]byte, int, int) {
			b, from, to := rec.datagram(rnd)
			keep := min(rnd.IntN(seal.HeaderSize), len(b)-1)
			garbage(b[keep:])
			return b, from, to
		}, malformed | wrongDestination | unknownRank | otherIncarnation | badTag},
		{"replayed", *flagAttack, func() ([]byte, int, int) { return rec.datagram(rnd) }, replayed | tooOld},
		// One of the two is refused, the first or the second to come.
		{"replayed at once", few, rec.last, replayed | tooOld},
		{"replayed to another rank", *flagAttack, func() ([]byte, int, int) {
			b, from, to := rec.datagram(rnd)
			return b, from, (to + 1) % n
		}, wrongDestination},
		{"truncated", *flagAttack, func() ([]byte, int, int) {
			b, from, to := rec.datagram(rnd)
			return b[:rnd.IntN(len(b))], from, to
		}, tooShort | badTag},
		{"extended", *flagAttack, func() ([]byte, int, int) {
			b, from, to := rec.datagram(rnd)
			return append(b, garbage(make([]byte, 1+rnd.IntN(100)))...), from, to
		}, malformed | badTag},
		{"oversized", few, func() ([]byte, int, int) {
			b, from, to := rec.datagram(rnd)
			return append(b, make([]byte, 65507-len(b))...), from, to
		}, malformed},
		{"one bit changed", *flagAttack, func() ([]byte, int, int) {
			b, from, to := rec.datagram(rnd)
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			return b, from, to
		}, malformed | wrongDestination | unknownRank | otherIncarnation | badTag},
		{"of another rank", *flagAttack, func() ([]byte, int, int) {
			// The claim is consistent: source and incarnation are those of the other.
			b, from, to := rec.datagram(rnd)
			other := 3 - from - to
			binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)&^0xffffff|uint32(other))
			binary.BigEndian.PutUint64(b[16:], eps[0].Rendezvous().Incarnation(other))
			return b, other, to
		}, badTag},
		{"of its own sender", *flagAttack, func() ([]byte, int, int) {
			b, _, to := rec.datagram(rnd)
			binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)&^0xffffff|uint32(to))
			return b, to, to
		}, otherIncarnation | badTag},
		{"wrong tag", *flagAttack, func() ([]byte, int, int) {
			b, from, to := rec.datagram(rnd)
			binary.BigEndian.PutUint64(b[8:], 1<<40|rnd.Uint64N(1<<40)) // a number that comes late
			garbage(b[len(b)-16:])
			return b, from, to
		}, badTag},
		{"another key", few, func() ([]byte, int, int) {
			from, to := pair()
			return sealed(jobkey.New(), from, to, eps[0].Rendezvous().Incarnation(from)), from, to
		}, badTag},
		{"another job under the same key", few, func() ([]byte, int, int) {
			from, to := pair()
			return sealed(j.key.ForJob([]byte("another")), from, to, eps[0].Rendezvous().Incarnation(from)), from, to
		}, badTag},
		// A rank has the job's key, and does not become another one by it.
		{"the key of the job alone", few, func() ([]byte, int, int) {
			from, to := pair()
			return sealed(right, from, to, eps[0].Rendezvous().Incarnation(from)), from, to
		}, badTag},
		{"an earlier incarnation", few, func() ([]byte, int, int) {
			from, to := pair()
			return sealed(right, from, to, eps[0].Rendezvous().Incarnation(from)-1-rnd.Uint64N(1e9)), from, to
		}, otherIncarnation},
		{"a later incarnation", few, func() ([]byte, int, int) {
			from, to := pair()
			return sealed(right, from, to, eps[0].Rendezvous().Incarnation(from)+1+rnd.Uint64N(1e9)), from, to
		}, otherIncarnation},
	} {
		before, at := refused(), total()
		for i := range kind.n {
			b, from, to := kind.make()
			if from == to {
				from = (to + 1) % n // whose address it comes from
			}
			shoot(from, to, b)
			// Not more than sockets hold: each is to be counted.
			if i%64 == 63 || i == kind.n-1 || len(b) > 2000 {
				wait(t, func() bool { return total() >= at+uint64(i)+1 }, func() string {
					return fmt.Sprintf("%s: %d datagrams of %d are counted: %+v", kind.name, total()-at, i+1, refused())
				})
			}
		}
		var sum seal.Counts
		for i, s := range refused() {
			b := before[i]
			sum.TooShort += s.TooShort - b.TooShort
			sum.Malformed += s.Malformed - b.Malformed
			sum.WrongDestination += s.WrongDestination - b.WrongDestination
			sum.UnknownRank += s.UnknownRank - b.UnknownRank
			sum.OtherIncarnation += s.OtherIncarnation - b.OtherIncarnation
			sum.BadTag += s.BadTag - b.BadTag
			sum.Replayed += s.Replayed - b.Replayed
			sum.TooOld += s.TooOld - b.TooOld
		}
		if sum.Total() != uint64(kind.n) {
			t.Errorf("%s: %d datagrams of %d are counted: %+v", kind.name, sum.Total(), kind.n, sum)
		}
		for i, k := range []uint64{sum.TooShort, sum.Malformed, sum.WrongDestination, sum.UnknownRank, sum.OtherIncarnation, sum.BadTag, sum.Replayed, sum.TooOld} {
			if k > 0 && kind.means>>i&1 == 0 {
				t.Errorf("%s: refused for another reason: %+v", kind.name, sum)
			}
		}
		t.Logf("%s: %+v", kind.name, sum)
		if heap == 0 {
			heap = inUse()
		}
	}
	// What the job itself has in its hands differs by that much.
	if now := inUse(); now > heap+8<<20 {
		t.Errorf("%d bytes in use, %d before", now, heap)
	}
	over.Store(true)
	finished.Wait()
	for _, r := range ranks {
		me := r.Rank()
		for from := range n {
			if k := int(sent[from][me].Load()); !r.heard[from].first(k) {
				t.Errorf("rank %d: %d messages of rank %d came, not those %d that it sent", me, r.heard[from].n, from, k)
			}
		}
		if r.twice > 0 || r.failed != nil {
			t.Errorf("rank %d: %d messages or completions came twice, an operation ended with %v", me, r.twice, r.failed)
		}
		if err := r.Err(); err != nil {
			t.Errorf("rank %d: %v", me, err)
		}
	}
}

// inUse is how many bytes the heap has in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// limit is longer than anything here takes, on any machine.
const limit = 5 * time.Minute

// wait polls for what other goroutines and processes will do.
func wait(t testing.TB, f func() bool, what ...func() string) {
	t.Helper()
	for end := time.Now().Add(limit); !f(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			for _, w := range what {
				t.Log(w())
			}
			t.Fatal("it never comes")
		}
	}
}
