package seal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// testKey is a key that is the same in every run.
var testKey = func() jobkey.Key {
	var b [jobkey.Size]byte
	for i := range b {
		b[i] = byte(i)
	}
	k, err := jobkey.Parse(hex.EncodeToString(b[:]))
	if err != nil {
		panic(err)
	}
	return k
}()

var protected = []Mode{Authenticated, Encrypted}

func sealer(t interface{ Fatal(...any) }, rank, size int, incarnation uint64, mode Mode) *Sealer {
	s, err := New(testKey, rank, size, incarnation, mode)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sealed is a datagram of s in memory of its own.
func sealed(t interface{ Fatal(...any) }, s *Sealer, to int, plain []byte) []byte {
	d, err := s.Seal(nil, to, plain)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRoundTrip seals payloads of all sizes, in place and not, behind other
// datagrams and not, and opens them.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := Mode(rapid.IntRange(0, int(numModes)-1).Draw(t, "mode"))
		size := rapid.OneOf(rapid.IntRange(1, 4), rapid.Just(MaxRanks)).Draw(t, "size")
		from, to := rapid.IntRange(0, size-1).Draw(t, "from"), rapid.IntRange(0, size-1).Draw(t, "to")
		a := sealer(t, from, size, rapid.Uint64Range(1, 1<<64-1).Draw(t, "incarnation"), mode)
		b := a
		if from != to {
			b = sealer(t, to, size, rapid.Uint64Range(1, 1<<64-1).Draw(t, "other incarnation"), mode)
			if rapid.Bool().Draw(t, "learn") {
				if err := a.Learn(to, b.Incarnation()); err != nil {
					t.Fatal(err)
				}
			}
		}
		var batch []byte
		var ends []int
		var plains [][]byte
		if rapid.Bool().Draw(t, "room") {
			batch = make([]byte, 0, 4*MaxDatagram)
		}
		for range rapid.IntRange(1, 4).Draw(t, "datagrams") {
			n := rapid.OneOf(rapid.IntRange(0, 64), rapid.IntRange(0, 2000), rapid.IntRange(0, MaxDatagram-Overhead(mode)),
				rapid.Just(MaxDatagram-Overhead(mode))).Draw(t, "bytes")
			plain := make([]byte, n)
			rand.NewChaCha8([32]byte{byte(n)}).Read(plain)
			arg := bytes.Clone(plain)
			if room := len(batch) + HeaderSize + n; room <= cap(batch) && rapid.Bool().Draw(t, "in place") {
				arg = batch[len(batch)+HeaderSize : room]
				copy(arg, plain)
			}
			before := len(batch)
			out, err := a.Seal(batch, to, arg)
			if err != nil {
				t.Fatal(err)
			}
			if len(out) != before+n+Overhead(mode) || !bytes.Equal(out[:before], batch) {
				t.Fatalf("%d bytes sealed behind %d give %d", n, before, len(out))
			}
			if body := out[before+HeaderSize : before+HeaderSize+n]; n >= 16 && bytes.Equal(body, plain) != (mode != Encrypted) {
				t.Fatalf("mode %v: payload in clear: %v", mode, mode == Encrypted)
			}
			batch, ends, plains = out, append(ends, len(out)), append(plains, plain)
		}
		start := 0
		for i, end := range ends {
			got, plain, why := b.Open(batch[start:end])
			if why != Accepted || got != from || !bytes.Equal(plain, plains[i]) {
				t.Fatalf("datagram %d from %d: rank %d, %d of %d bytes, %v", i, from, got, len(plain), len(plains[i]), why)
			}
			if len(plain) > 0 && &plain[0] != &batch[start+HeaderSize] || cap(plain) != len(plain) {
				t.Fatal("the payload is not exactly its part of the datagram")
			}
			start = end
		}
		if c := b.Refused().Total(); c != 0 {
			t.Fatalf("%d refused", c)
		}
	})
}

// TestStranger changes genuine datagrams in every way, and checks that each is
// refused and counted once, and that afterwards the genuine one still opens.
func TestStranger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom(protected).Draw(t, "mode")
		const size = 4
		a, b := sealer(t, 1, size, 7, mode), sealer(t, 2, size, 9, mode)
		if rapid.Bool().Draw(t, "met") {
			if _, _, why := b.Open(sealed(t, a, 2, []byte("hello"))); why != Accepted {
				t.Fatal(why)
			}
			if _, _, why := a.Open(sealed(t, b, 1, []byte("hello"))); why != Accepted {
				t.Fatal(why)
			}
		}
		met := b.peers.Load().used
		plain := make([]byte, rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 3000)).Draw(t, "bytes"))
		genuine := sealed(t, a, 2, plain)

		for i := range rapid.IntRange(1, 20).Draw(t, "attacks") {
			d := bytes.Clone(genuine)
			at := b
			before := b.Refused()
			kind := rapid.SampledFrom([]string{
				"flip", "header", "tag", "cut", "cut front", "extend", "source", "incarnation", "counter",
				"destination", "epoch", "payload", "random", "random header", "reflect", "elsewhere", "other key", "other mode", "other job", "empty",
			}).Draw(t, "attack")
			flip := func(from, to int) {
				bit := rapid.IntRange(8*from, 8*to-1).Draw(t, "bit")
				d[bit/8] ^= 1 << (bit % 8)
			}
			other := func(key jobkey.Key, mode Mode) {
				o, err := New(key, 1, size, 7, mode)
				if err != nil {
					t.Fatal(err)
				}
				o.Learn(2, 9)
				d = sealed(t, o, 2, plain)
			}
			var want []Reason // any, if none
			switch kind {
			case "flip":
				flip(0, len(d))
			case "header":
				flip(0, HeaderSize)
			case "tag":
				flip(len(d)-tagSize, len(d))
				want = []Reason{BadTag}
			case "cut":
				d = d[:rapid.IntRange(0, len(d)-1).Draw(t, "length")]
				want = []Reason{TooShort, BadTag}
			case "cut front":
				d = d[rapid.IntRange(1, len(d)).Draw(t, "length"):]
			case "extend":
				d = append(d, make([]byte, rapid.IntRange(1, 40).Draw(t, "more"))...)
				want = []Reason{BadTag}
			case "source":
				binary.BigEndian.PutUint32(d, uint32(b.format)<<24|rapid.SampledFrom([]uint32{0, 2, 3}).Draw(t, "source"))
				want = []Reason{BadTag}
			case "incarnation":
				binary.BigEndian.PutUint64(d[atIncarnation:], rapid.OneOf(rapid.Uint64Range(1, 6), rapid.Uint64Range(8, 1<<64-1)).Draw(t, "incarnation"))
				want = []Reason{OldIncarnation, BadTag}
			case "counter":
				binary.BigEndian.PutUint64(d[atCounter:], rapid.Uint64Range(2, maxBlocks-1).Draw(t, "counter"))
				want = []Reason{BadTag}
			case "destination":
				binary.BigEndian.PutUint32(d[atDestination:], rapid.SampledFrom([]uint32{0, 1, 3, 4, 1 << 31}).Draw(t, "destination"))
				want = []Reason{WrongDestination}
			case "epoch":
				e := rapid.Uint32().Draw(t, "epoch")
				if e == binary.BigEndian.Uint32(d[atEpoch:]) {
					e++
				}
				binary.BigEndian.PutUint32(d[atEpoch:], e)
				want = []Reason{WrongDestination, BadTag}
			case "payload":
				d = append(d[:HeaderSize], rapid.SliceOfN(rapid.Byte(), tagSize, 200).Draw(t, "bytes")...)
				want = []Reason{BadTag}
			case "random":
				d = rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes")
			case "random header":
				d = append(rapid.SliceOfN(rapid.Byte(), HeaderSize, HeaderSize).Draw(t, "bytes"), d[HeaderSize:]...)
				d[0] = b.format
				binary.BigEndian.PutUint32(d[atDestination:], 2)
			case "reflect":
				at, before = a, a.Refused()
				want = []Reason{WrongDestination}
			case "elsewhere":
				at = sealer(t, 3, size, 1, mode)
				before = at.Refused()
				want = []Reason{WrongDestination}
			case "other key":
				other(jobkey.New(), mode)
				want = []Reason{BadTag}
			case "other job":
				other(testKey.ForJob([]byte("another")), mode)
				want = []Reason{BadTag}
			case "other mode":
				other(testKey, rapid.SampledFrom([]Mode{1 - mode, None}).Draw(t, "mode of other"))
				want = []Reason{TooShort, Malformed}
			case "empty":
				d = nil
				want = []Reason{TooShort}
			}
			if bytes.Equal(d, genuine) && at == b {
				continue
			}
			from, got, why := at.Open(d)
			if why == Accepted || from != -1 || got != nil {
				t.Fatalf("attack %d, %s: %v, rank %d, %d bytes", i, kind, why, from, len(got))
			}
			if want != nil && !strings.Contains(fmt.Sprint(want), why.String()) {
				t.Fatalf("attack %d, %s: %v, want one of %v", i, kind, why, want)
			}
			if after := at.Refused(); after.Total() != before.Total()+1 || !counted(after, before, why) {
				t.Fatalf("attack %d, %s: %v is not counted: %+v", i, kind, why, after)
			}
		}
		if now := b.peers.Load().used; now > max(met, 1) {
			t.Fatalf("%d peers known after attacks; one rank exists", now)
		}
		if from, got, why := b.Open(bytes.Clone(genuine)); why != Accepted || from != 1 || !bytes.Equal(got, plain) {
			t.Fatalf("the genuine datagram after the attacks: rank %d, %v", from, why)
		}
		if _, _, why := b.Open(bytes.Clone(genuine)); why != Replayed {
			t.Fatalf("again: %v", why)
		}
	})
}

// counted reports whether after is before and one more of why.
func counted(after, before Counts, why Reason) bool {
	switch why {
	case TooShort:
		before.TooShort++
	case Malformed:
		before.Malformed++
	case WrongDestination:
		before.WrongDestination++
	case UnknownRank:
		before.UnknownRank++
	case OldIncarnation:
		before.OldIncarnation++
	case BadTag:
		before.BadTag++
	case Replayed:
		before.Replayed++
	case TooOld:
		before.TooOld++
	}
	return after == before
}

// TestEveryBit flips each bit of a datagram once.
func TestEveryBit(t *testing.T) {
	for _, mode := range protected {
		a, b := sealer(t, 1, 4, 7, mode), sealer(t, 2, 4, 9, mode)
		for _, met := range []bool{false, true} {
			d := sealed(t, a, 2, []byte("payload of a datagram"))
			for bit := range 8 * len(d) {
				c := bytes.Clone(d)
				c[bit/8] ^= 1 << (bit % 8)
				if _, _, why := b.Open(c); why == Accepted {
					t.Fatalf("mode %v, met %v: accepted with bit %d flipped", mode, met, bit)
				}
			}
			if _, _, why := b.Open(d); why != Accepted {
				t.Fatalf("mode %v: %v", mode, why)
			}
		}
		if n := b.peers.Load().used; n != 1 {
			t.Errorf("mode %v: %d peers are known, one exists", mode, n)
		}
	}
}

// A world is a model of a job whose ranks restart, and of a network that
// delivers any datagram ever sealed, any number of times.
type world struct {
	mode  Mode
	ranks []*modelRank
	sent  []record
}

type modelRank struct {
	s     *Sealer
	inc   uint64
	known map[int]uint64       // incarnation of a peer, as far as heard or learnt
	seen  map[[3]uint64]bool   // source, its incarnation, counter
	next  map[[2]uint64]uint64 // by source and its incarnation
	sends map[int]uint64       // datagrams sealed so far, by destination
}

type record struct {
	d        []byte
	plain    string
	from, to int
	inc      uint64
	knew     uint64 // the destination's incarnation that from knew, or 0
	counter  uint64
}

func (w *world) start(t *rapid.T, rank int, inc uint64) {
	w.ranks[rank] = &modelRank{
		s: sealer(t, rank, len(w.ranks), inc, w.mode), inc: inc,
		known: map[int]uint64{}, seen: map[[3]uint64]bool{}, next: map[[2]uint64]uint64{}, sends: map[int]uint64{},
	}
}

// expect returns the answer that opening r at rank at must give, and changes the model so.
func (w *world) expect(r record, at int) Reason {
	m := w.ranks[at]
	if r.to != at || r.knew != 0 && r.knew != m.inc {
		return WrongDestination
	}
	if r.inc < m.known[r.from] {
		return OldIncarnation
	}
	m.known[r.from] = r.inc
	if w.mode == None {
		return Accepted // nothing vouches for a counter
	}
	id, src := [3]uint64{uint64(r.from), r.inc, r.counter}, [2]uint64{uint64(r.from), r.inc}
	switch {
	case m.next[src] > r.counter && m.next[src]-r.counter > Window:
		return TooOld
	case m.seen[id]:
		return Replayed
	}
	m.seen[id] = true
	m.next[src] = max(m.next[src], r.counter+1)
	return Accepted
}

// TestWorld runs a job through sealing, delivery in any order and any number of
// times, restarts and announcements, and compares each answer with the model's.
func TestWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{mode: Mode(rapid.IntRange(0, int(numModes)-1).Draw(t, "mode"))}
		w.ranks = make([]*modelRank, rapid.IntRange(1, 4).Draw(t, "size"))
		for i := range w.ranks {
			w.start(t, i, rapid.Uint64Range(1, 3).Draw(t, "incarnation"))
		}
		rank := rapid.IntRange(0, len(w.ranks)-1)
		few := rapid.IntRange(1, 3)
		total := make([]uint64, len(w.ranks))
		deliver := func(t *rapid.T, r record, at int) {
			want := w.expect(r, at)
			from, plain, why := w.ranks[at].s.Open(bytes.Clone(r.d))
			if why != want || want == Accepted && (from != r.from || string(plain) != r.plain) {
				t.Fatalf("rank %d (incarnation %d) opens %+v: %v from %d, %q; want %v", at, w.ranks[at].inc, r, why, from, plain, want)
			}
			if want != Accepted {
				total[at]++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"seal": func(t *rapid.T) {
				from, to := rank.Draw(t, "from"), rank.Draw(t, "to")
				m := w.ranks[from]
				// A burst now and then, to move the window on.
				n := rapid.OneOf(few, few, few, few, few, few, rapid.IntRange(Window-2, Window+2)).Draw(t, "datagrams")
				for i := range n {
					r := record{plain: fmt.Sprint(from, to, i), from: from, to: to, inc: m.inc, knew: m.known[to], counter: m.sends[to]}
					r.d = sealed(t, m.s, to, []byte(r.plain))
					m.sends[to]++
					if i < 3 || i >= n-3 {
						w.sent = append(w.sent, r)
					}
				}
			},
			"deliver": func(t *rapid.T) {
				if len(w.sent) == 0 {
					t.Skip("nothing sealed")
				}
				r := rapid.SampledFrom(w.sent).Draw(t, "datagram")
				deliver(t, r, r.to)
			},
			"deliver newest": func(t *rapid.T) {
				if len(w.sent) == 0 {
					t.Skip("nothing sealed")
				}
				r := w.sent[len(w.sent)-1]
				deliver(t, r, r.to)
			},
			"misdeliver": func(t *rapid.T) {
				if len(w.sent) == 0 {
					t.Skip("nothing sealed")
				}
				deliver(t, rapid.SampledFrom(w.sent).Draw(t, "datagram"), rank.Draw(t, "at"))
			},
			"restart": func(t *rapid.T) {
				i := rank.Draw(t, "rank")
				w.start(t, i, w.ranks[i].inc+rapid.Uint64Range(1, 3).Draw(t, "more"))
				total[i] = 0
			},
			"learn": func(t *rapid.T) {
				i, of := rank.Draw(t, "rank"), rank.Draw(t, "of")
				inc := rapid.Uint64Range(1, w.ranks[of].inc).Draw(t, "incarnation")
				m := w.ranks[i]
				err := m.s.Learn(of, inc)
				if older := inc < m.known[of]; older != errors.Is(err, errs.ErrBadArg) {
					t.Fatalf("learn incarnation %d after %d: %v", inc, m.known[of], err)
				} else if !older {
					m.known[of] = inc
				}
			},
			"": func(t *rapid.T) {
				for i, m := range w.ranks {
					if got := m.s.Refused().Total(); got != total[i] {
						t.Fatalf("rank %d counts %d refused, not %d", i, got, total[i])
					}
					for p := range w.ranks {
						if got := m.s.Known(p); got != m.known[p] {
							t.Fatalf("rank %d knows incarnation %d of %d, not %d", i, got, p, m.known[p])
						}
					}
				}
			},
		})
	})
}

func TestBadArguments(t *testing.T) {
	for _, c := range []struct {
		rank, size int
		inc        uint64
		mode       Mode
		key        jobkey.Key
		says       string
	}{
		{0, 0, 1, Authenticated, testKey, "0 ranks"},
		{0, -1, 1, Authenticated, testKey, "-1 ranks"},
		{0, MaxRanks + 1, 1, Authenticated, testKey, "16777216"},
		{-1, 4, 1, Authenticated, testKey, "rank -1"},
		{4, 4, 1, Authenticated, testKey, "rank 4"},
		{0, 4, 0, Authenticated, testKey, "incarnation 0"},
		{0, 4, 1, numModes, testKey, "mode 3"},
		{0, 4, 1, Authenticated, jobkey.Key{}, jobenv.JobKeyFile},
		{0, 4, 1, Encrypted, jobkey.Key{}, jobenv.JobKeyFile},
	} {
		if _, err := New(c.key, c.rank, c.size, c.inc, c.mode); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := New(jobkey.Key{}, 0, 1, 1, None); err != nil {
		t.Error(err)
	}
	var zero Mode
	if zero != Authenticated {
		t.Error("authentication is not the default")
	}
	for m := range numModes {
		if got, err := ParseMode(m.String()); got != m || err != nil {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	for _, s := range []string{"", "None", "off", "mode 3"} {
		if _, err := ParseMode(s); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("mode %q: %v", s, err)
		}
	}
	for mode := range numModes {
		s := sealer(t, 1, 4, 1, mode)
		dst := []byte("before")
		for _, c := range []struct{ to, n int }{{-1, 0}, {4, 0}, {math.MaxInt, 0}, {0, MaxDatagram - Overhead(mode) + 1}} {
			if got, err := s.Seal(dst, c.to, make([]byte, c.n)); !errors.Is(err, errs.ErrBadArg) || string(got) != "before" {
				t.Errorf("%+v: %q, %v", c, got, err)
			}
		}
		if s.peers.Load().used != 0 || s.blocks.Load() != 0 {
			t.Error("a bad argument left something behind")
		}
		if err := s.Learn(4, 1); !errors.Is(err, errs.ErrBadArg) {
			t.Error(err)
		}
		if err := s.Learn(-1, 1); !errors.Is(err, errs.ErrBadArg) {
			t.Error(err)
		}
		if err := s.Learn(0, 0); !errors.Is(err, errs.ErrBadArg) {
			t.Error(err)
		}
		if s.Known(-1) != 0 || s.Known(4) != 0 || s.Known(0) != 0 {
			t.Error("Known")
		}
		if s.Rank() != 1 || s.Incarnation() != 1 || s.Mode() != mode {
			t.Error("what New was told is lost")
		}
	}
}

// TestUnknownRank has a rank of a larger job under the same key send.
func TestUnknownRank(t *testing.T) {
	for mode := range numModes {
		a, b := sealer(t, 9, 10, 1, mode), sealer(t, 2, 4, 1, mode)
		if _, _, why := b.Open(sealed(t, a, 2, nil)); why != UnknownRank {
			t.Errorf("mode %v: %v", mode, why)
		}
	}
}

// TestMalformed gives headers that no sealer makes, in a mode in which the tag
// does not give them away.
func TestMalformed(t *testing.T) {
	a, b := sealer(t, 1, 4, 1, None), sealer(t, 2, 4, 1, None)
	for name, change := range map[string]func(d []byte){
		"last counter":   func(d []byte) { binary.BigEndian.PutUint64(d[atCounter:], math.MaxUint64) },
		"first too high": func(d []byte) { binary.BigEndian.PutUint64(d[atCounter:], maxBlocks) },
		"no incarnation": func(d []byte) { binary.BigEndian.PutUint64(d[atIncarnation:], 0) },
		"version":        func(d []byte) { d[0] += 1 << 4 },
		"mode":           func(d []byte) { d[0] ^= 1 },
	} {
		d := sealed(t, a, 2, nil)
		change(d)
		if _, _, why := b.Open(d); why != Malformed {
			t.Errorf("%s: %v", name, why)
		}
	}
	if _, _, why := b.Open(sealed(t, a, 2, nil)); why != Accepted {
		t.Error(why)
	}
}

// TestExhausted takes a sealer to the end of what its key may protect.
func TestExhausted(t *testing.T) {
	for mode := range numModes {
		s := sealer(t, 0, 2, 1, mode)
		s.blocks.Store(maxBlocks - 4)
		n := 0
		for ; n < 10; n++ {
			if _, err := s.Seal(nil, 1, make([]byte, 17)); err != nil {
				if !errors.Is(err, errs.ErrResource) {
					t.Error(err)
				}
				break
			}
		}
		if want := map[Mode]int{Authenticated: 4, Encrypted: 1, None: 4}[mode]; n != want {
			t.Errorf("mode %v: %d datagrams, want %d", mode, n, want)
		}
		s.blocks.Store(maxBlocks)
		for range 3 {
			if _, err := s.Seal(nil, 1, nil); !errors.Is(err, errs.ErrResource) {
				t.Error(err)
			}
		}
		if s.blocks.Load() != maxBlocks {
			t.Error("the count of blocks runs on and would wrap")
		}
	}
}

// TestWire pins the form of datagrams: ranks of one version of this package
// understand each other.
func TestWire(t *testing.T) {
	for mode, want := range []string{
		"2000010200000304000000000000000111121314151617180052aed4000000556172676f6ef148d40e4bf45d6e2b153b5121a4261b",
		"210001020000030400000000000000011112131415161718f749bb4c00000055f888cee41f6debdda29c3e4771c9d1d67d202840f8",
		"22000102000003040000000000000001111213141516171800000000000000556172676f6e",
	} {
		s := sealer(t, 0x0102, 0x1000, 0x1112131415161718, Mode(mode))
		if err := s.Learn(0x0304, 0x55); err != nil {
			t.Fatal(err)
		}
		sealed(t, s, 0x0304, nil)
		if got := hex.EncodeToString(sealed(t, s, 0x0304, []byte("argon"))); got != want {
			t.Errorf("mode %v: %s, want %s", Mode(mode), got, want)
		}
	}
	for mode, want := range []string{
		"20000102000003040000000000000001111213141516171857a50ecf00000055",
		"21000102000003040000000000000001111213141516171802ac5e6e00000055",
		"2200010200000304000000000000000111121314151617180000000000000055",
	} {
		s := sealer(t, 0x0102, 0x1000, 0x1112131415161718, Mode(mode))
		if err := s.Learn(0x0304, 0x55); err != nil {
			t.Fatal(err)
		}
		sealed(t, s, 0x0304, nil)
		long := sealed(t, s, 0x0304, make([]byte, 3000))
		if got := hex.EncodeToString(long[:HeaderSize]); got != want {
			t.Errorf("mode %v: %s, want %s", Mode(mode), got, want)
		}
	}
	for i := range uint64(1000) {
		if epochOf(i<<32|i) == 0 {
			t.Fatal("epoch 0 means unknown")
		}
	}
}

// TestLongTickets changes headers of long datagrams and lengths, and makes the tag right
// again, as no stranger can: the ticket alone refuses them, as it does those that have
// another one's, and the window those that were opened before.
func TestLongTickets(t *testing.T) {
	for _, mode := range protected {
		for _, met := range []bool{false, true} {
			a, b := sealer(t, 1, 4, 7, mode), sealer(t, 2, 4, 9, mode)
			short := sealed(t, a, 2, make([]byte, shortBytes-Overhead(mode)))
			if met {
				if _, _, why := b.Open(bytes.Clone(short)); why != Accepted {
					t.Fatal(why)
				}
			}
			long := func(n int) []byte { return sealed(t, a, 2, make([]byte, n-Overhead(mode))) }
			genuine := long(shortBytes + 10)
			// seal makes a datagram of n bytes with this header whose tag is right.
			seal := func(header []byte, n int) []byte {
				d := append(bytes.Clone(header[:HeaderSize]), make([]byte, n-Overhead(mode))...)
				if mode == Encrypted {
					return a.aead.Seal(d[:HeaderSize], d[nonceStart:nonceEnd], d[HeaderSize:], d[:HeaderSize])
				}
				return a.aead.Seal(d, d[nonceStart:nonceEnd], nil, d)
			}
			if !bytes.Equal(seal(genuine, len(genuine)), genuine) {
				t.Fatal("the test seals otherwise")
			}
			refuse := func(what string, d []byte) {
				if _, _, why := b.Open(d); why != BadTag {
					t.Errorf("%v, met %v, %s: %v", mode, met, what, why)
				}
			}
			for n := shortBytes + 1; n < shortBytes+20; n++ {
				if n != len(genuine) {
					refuse(fmt.Sprintf("%d bytes in place of %d", n, len(genuine)), seal(genuine, n))
				}
			}
			refuse("the ticket of a short one", seal(short, shortBytes+1))
			if !met { // a short one's ticket matters only before a key is derived
				refuse("the ticket of a long one on a short one", seal(genuine, shortBytes))
			}
			other := long(len(genuine))
			for _, bits := range [][2]int{{8*atCounter + 16, 8 * atIncarnation}, {8 * atTicket, 8 * atEpoch}} {
				for bit := bits[0]; bit < bits[1]; bit++ {
					d := bytes.Clone(other)
					d[bit/8] ^= 1 << (bit % 8)
					refuse(fmt.Sprintf("bit %d", bit), seal(d, len(d)))
				}
			}
			// The epoch may be 0 or the destination's, which is this bit here: only the
			// ticket tells one from the other.
			for bit := range 32 {
				for _, learnt := range []bool{false, true} {
					a, b := sealer(t, 1, 4, 7, mode), sealer(t, 2, 4, 1<<bit, mode)
					if met {
						if err := b.Learn(1, 7); err != nil {
							t.Fatal(err)
						}
					}
					if learnt {
						if err := a.Learn(2, 1<<bit); err != nil {
							t.Fatal(err)
						}
					}
					d := sealed(t, a, 2, make([]byte, shortBytes))
					header := bytes.Clone(d[:HeaderSize])
					binary.BigEndian.PutUint32(header[atEpoch:], binary.BigEndian.Uint32(header[atEpoch:])^1<<bit)
					for want, d := range map[Reason][]byte{BadTag: seal(header, len(d)), Accepted: d} {
						if _, _, why := b.Open(d); why != want {
							t.Errorf("%v, met %v, epoch %#x, learnt %v: %v, want %v", mode, met, 1<<bit, learnt, why, want)
						}
					}
				}
			}
			for i, d := range [][]byte{genuine, other} {
				if _, _, why := b.Open(bytes.Clone(d)); why != Accepted {
					t.Errorf("%v, met %v, genuine %d: %v", mode, met, i, why)
				}
				d[len(d)-1] ^= 1
				if _, _, why := b.Open(d); why != Replayed {
					t.Errorf("%v, met %v, genuine %d again, with a wrong tag: %v", mode, met, i, why)
				}
			}
			if n := testing.AllocsPerRun(100, func() { b.Open(genuine) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		}
	}
}

// TestFirstContact lets strangers copy a genuine header: the ticket in it is
// right, the payload is not.
func TestFirstContact(t *testing.T) {
	a, b := sealer(t, 1, 4, 7, Authenticated), sealer(t, 2, 4, 9, Authenticated)
	genuine := sealed(t, a, 2, []byte("payload"))
	forged := bytes.Clone(genuine)
	forged[HeaderSize] ^= 1
	for range 3 {
		if _, _, why := b.Open(forged); why != BadTag {
			t.Fatal(why)
		}
	}
	if b.Known(1) != 0 {
		t.Error("a forged datagram introduced a rank")
	}
	if n := testing.AllocsPerRun(100, func() { b.Open(forged) }); n != 0 {
		t.Errorf("%v allocations for a forged datagram with a copied header", n)
	}
	// Another incarnation that the rank had, of which only the header is copied,
	// does not stand in the way of the one that is heard.
	late := bytes.Clone(sealed(t, sealer(t, 1, 4, 8, Authenticated), 2, nil))
	late[len(late)-1] ^= 1
	if _, _, why := b.Open(late); why != BadTag {
		t.Fatal(why)
	}
	if from, _, why := b.Open(genuine); why != Accepted || from != 1 || b.Known(1) != 7 {
		t.Error(from, why, b.Known(1))
	}
}

// TestForeignCandidate has a stranger copy the header of one incarnation first,
// before the datagram of another arrives.
func TestForeignCandidate(t *testing.T) {
	b := sealer(t, 2, 4, 9, Authenticated)
	late := sealed(t, sealer(t, 1, 4, 8, Authenticated), 2, nil)
	late[len(late)-1] ^= 1
	if _, _, why := b.Open(late); why != BadTag {
		t.Fatal(why)
	}
	if _, _, why := b.Open(sealed(t, sealer(t, 1, 4, 7, Authenticated), 2, nil)); why != Accepted {
		t.Fatal(why)
	}
}

// TestForgedTicket has strangers name new incarnations of a rank, however much is known of
// it, over tickets that they make up: no key is derived for them, and what is known stays. A rank
// that is really new is believed afterwards, and no key is kept for what it has proven.
func TestForgedTicket(t *testing.T) {
	for _, mode := range protected {
		for known, meet := range map[string]func(b *Sealer){
			"nothing":     func(*Sealer) {},
			"an address":  func(b *Sealer) { sealed(t, b, 1, nil) },
			"a word":      func(b *Sealer) { _ = b.Learn(1, 7) },
			"a datagram":  func(b *Sealer) { b.Open(sealed(t, sealer(t, 1, 4, 7, mode), 2, nil)) },
			"a candidate": func(b *Sealer) { b.Open(damaged(sealed(t, sealer(t, 1, 4, 7, mode), 2, nil))) },
		} {
			b := sealer(t, 2, 4, 9, mode)
			meet(b)
			was := b.peers.Load().find(1)
			var source, candidate *source
			if was != nil {
				source, candidate = was.source.Load(), was.candidate
			}
			for _, n := range []int{0, 100, shortBytes - Overhead(mode), shortBytes, 3000} {
				for bit := range 32 {
					d := sealed(t, sealer(t, 1, 4, 8, mode), 2, make([]byte, n))
					d[atTicket+bit/8] ^= 1 << (bit % 8)
					if _, _, why := b.Open(d); why != BadTag {
						t.Fatalf("%v, of the rank %s is known, %d bytes, bit %d of the ticket: %v", mode, known, n, bit, why)
					}
				}
			}
			p := b.peers.Load().find(1)
			if p != was || p != nil && (p.source.Load() != source || p.candidate != candidate) {
				t.Errorf("%v, of the rank %s is known: a key was derived for a ticket that is forged", mode, known)
			}
			if _, _, why := b.Open(sealed(t, sealer(t, 1, 4, 8, mode), 2, nil)); why != Accepted {
				t.Errorf("%v, of the rank %s is known: a new incarnation is refused as %v", mode, known, why)
			}
			if p := b.peers.Load().find(1); p.candidate != nil {
				t.Errorf("%v, of the rank %s is known: a second key is kept of what was accepted", mode, known)
			}
		}
		b := sealer(t, 2, 4, 9, mode)
		b.Open(damaged(sealed(t, sealer(t, 1, 4, 7, mode), 2, nil)))
		if err := b.Learn(1, 8); err != nil || b.peers.Load().find(1).candidate != nil {
			t.Errorf("%v: the key of an older incarnation is kept after a later one was learnt (%v)", mode, err)
		}
	}
}

// damaged is d with another tag.
func damaged(d []byte) []byte {
	d[len(d)-1] ^= 1
	return d
}

// TestOldIncarnationCostsNoMemory replays what a rank sealed in earlier
// incarnations.
func TestOldIncarnationCostsNoMemory(t *testing.T) {
	b := sealer(t, 2, 4, 9, Authenticated)
	var old [3][]byte
	for i := range old {
		old[i] = sealed(t, sealer(t, 1, 4, uint64(1+i), Authenticated), 2, nil)
	}
	if err := b.Learn(1, 4); err != nil {
		t.Fatal(err)
	}
	i := 0
	if n := testing.AllocsPerRun(99, func() {
		if _, _, why := b.Open(old[i%3]); why != OldIncarnation {
			t.Fatal(why)
		}
		i++
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// again is the answer to opening a datagram for the second time.
func again(m Mode) Reason {
	if m == None {
		return Accepted
	}
	return Replayed
}

// TestDamagedCounter: in mode None a datagram whose counter was damaged on the way
// does not keep those out that come after it.
func TestDamagedCounter(t *testing.T) {
	a, b := sealer(t, 1, 4, 7, None), sealer(t, 2, 4, 9, None)
	d := sealed(t, a, 2, nil)
	d[atCounter+2] = 0xff
	if _, _, why := b.Open(d); why != Accepted {
		t.Error(why)
	}
	if _, _, why := b.Open(sealed(t, a, 2, nil)); why != Accepted {
		t.Error(why)
	}
}

// TestOneWindowPerIncarnation does in order what two goroutines may do at once:
// both have the first datagrams of an incarnation, and one has finished.
func TestOneWindowPerIncarnation(t *testing.T) {
	for mode := range numModes {
		a, b := sealer(t, 1, 4, 7, mode), sealer(t, 2, 4, 9, mode)
		first := sealed(t, a, 2, nil)
		early := b.admit(nil, 1, 7, first)
		p := b.peers.Load().find(1)
		b.admit(p, 1, 6, sealed(t, sealer(t, 1, 4, 6, mode), 2, nil)) // takes the candidate's place
		if _, _, why := b.Open(first); why != Accepted {
			t.Fatal(why)
		}
		if late := b.admit(p, 1, 7, first); late != p.source.Load() {
			t.Error("a second window for an incarnation that was heard")
		}
		if p.promote(early) {
			t.Error("the window was replaced by an empty one")
		}
		if _, _, why := b.Open(first); why != again(mode) {
			t.Error(why)
		}
	}
}

// TestGarbageCostsNoMemory opens many random datagrams, half of them with a
// header that passes all checks but the key's.
func TestGarbageCostsNoMemory(t *testing.T) {
	for _, mode := range protected {
		b := sealer(t, 2, 1<<16, 9, mode)
		rnd := rand.New(rand.NewPCG(1, 2))
		buf := make([]byte, 200)
		open := func() {
			d := buf[:rnd.IntN(len(buf))]
			for i := range d {
				d[i] = byte(rnd.Uint32())
			}
			if rnd.IntN(2) == 0 && len(d) >= HeaderSize {
				binary.BigEndian.PutUint32(d, uint32(b.format)<<24|rnd.Uint32()&0xffff)
				binary.BigEndian.PutUint32(d[atDestination:], 2)
				binary.BigEndian.PutUint16(d[atCounter:], 0)
				binary.BigEndian.PutUint32(d[atEpoch:], 0)
			}
			if _, _, why := b.Open(d); why == Accepted {
				t.Fatal("garbage was accepted")
			}
		}
		const times = 20000
		if n := testing.AllocsPerRun(times, open); n != 0 {
			t.Errorf("mode %v: %v allocations for each random datagram", mode, n)
		}
		if c := b.Refused(); c.Total() != times+1 || c.BadTag < times/10 {
			t.Errorf("mode %v: %+v", mode, c)
		}
		if n := b.peers.Load().used; n != 0 {
			t.Errorf("mode %v: garbage left %d peers", mode, n)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for mode := range numModes {
		a, b := sealer(t, 1, 4, 7, mode), sealer(t, 2, 4, 9, mode)
		buf := make([]byte, 0, MaxDatagram)
		for _, n := range []int{0, 64, 1400, 60000} {
			plain := make([]byte, n)
			round := func() {
				d, err := a.Seal(buf, 2, plain)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, why := b.Open(d); why != Accepted {
					t.Fatal(why)
				}
				if _, _, why := b.Open(d); why == Accepted && mode != None {
					t.Fatal("twice")
				}
			}
			round()
			if got := testing.AllocsPerRun(100, round); got != 0 {
				t.Errorf("mode %v, %d bytes: %v allocations", mode, n, got)
			}
		}
	}
}

// TestMemoryPerPeer bounds what a peer costs, and that others cost nothing.
func TestMemoryPerPeer(t *testing.T) {
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const peers = 512
	before := inUse()
	s := sealer(t, 0, MaxRanks, 1, Authenticated)
	empty := inUse()
	for i := range peers {
		sealed(t, s, 1+i, nil)
	}
	sends := inUse()
	for i := range peers {
		if err := s.Learn(1+i, 1); err != nil {
			t.Fatal(err)
		}
	}
	hears := inUse()
	runtime.KeepAlive(s)
	each := func(from, to uint64) int64 { return (int64(to) - int64(from)) / peers }
	t.Logf("sealer of %d ranks: %d bytes; each peer %d bytes, each heard peer %d bytes more", MaxRanks, int64(empty)-int64(before), each(empty, sends), each(sends, hears))
	if int64(empty)-int64(before) > 16<<10 || each(empty, sends) > 200 || each(sends, hears) > 2048 {
		t.Error("that is more than documented")
	}
}

// TestConcurrent has goroutines of one rank seal, and goroutines of another open
// everything twice at once, from the first datagram on and across a restart.
func TestConcurrent(t *testing.T) {
	for mode := range numModes {
		const sealers, each = 4, 200
		b := sealer(t, 0, 3, 9, mode)
		all := make([][]byte, 0, 2*sealers*each)
		for inc := range uint64(2) {
			a := sealer(t, 1, 3, 1+inc, mode)
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range sealers {
				wg.Go(func() {
					for i := range each {
						d, err := a.Seal(nil, i%3, binary.BigEndian.AppendUint64(nil, inc))
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						if i%3 == 0 {
							all = append(all, d)
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
		}
		accepted := make([]atomic.Int32, len(all))
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range all {
					j := (i + g*len(all)/7) % len(all)
					from, plain, why := b.Open(bytes.Clone(all[j]))
					if why == Accepted {
						accepted[j].Add(1)
						if want := uint64(j * 2 / len(all)); from != 1 || binary.BigEndian.Uint64(plain) != want {
							t.Errorf("datagram %d: rank %d, %x", j, from, plain)
						}
					} else if why != Replayed && why != OldIncarnation {
						t.Errorf("datagram %d: %v", j, why)
					}
				}
			})
		}
		wg.Go(func() {
			for range 100 {
				b.Refused()
				b.Known(1)
				b.Learn(1, 1) // refused once the second incarnation was heard
			}
		})
		wg.Wait()
		for j := range accepted {
			if n := accepted[j].Load(); n > 1 && mode != None || n == 0 && j >= len(all)/2 {
				t.Errorf("mode %v: datagram %d was accepted %d times", mode, j, n)
			}
		}
	}
}

// TestReasons checks that each reason has a name of its own.
func TestReasons(t *testing.T) {
	names := map[string]bool{}
	for r := range numReasons {
		if names[r.String()] || r.String() == "" {
			t.Errorf("reason %d: %q", r, r)
		}
		names[r.String()] = true
	}
	if Reason(99).String() != "reason 99" || Mode(99).String() != "mode 99" {
		t.Error("a reason that does not exist")
	}
	if a, b := NewIncarnation(), NewIncarnation(); a == 0 || b < a {
		t.Error(a, b)
	}
}

// FuzzOpen opens what the fuzzer makes of genuine datagrams. Nothing but these
// may be accepted.
func FuzzOpen(f *testing.F) {
	genuine := map[string]bool{}
	for mode := range numModes {
		for i, n := range []int{0, 5, 100} {
			d := sealed(f, sealer(f, i, 4, 7, mode), 2, make([]byte, n))
			f.Add(byte(mode), d)
			f.Add(byte(mode), d[:len(d)-1])
			genuine[string(d)] = true
		}
	}
	f.Add(byte(0), []byte{})
	f.Add(byte(1), make([]byte, HeaderSize+tagSize))
	f.Fuzz(func(t *testing.T, m byte, d []byte) {
		mode := Mode(m % byte(numModes))
		b := sealer(t, 2, 4, 9, mode)
		was := string(d)
		from, plain, why := b.Open(d)
		if why != Accepted {
			if from != -1 || plain != nil || b.Refused().Total() != 1 {
				t.Fatalf("%v, rank %d, %d bytes", why, from, len(plain))
			}
			return
		}
		if mode != None && !genuine[was] {
			t.Fatalf("accepted %x from %d", was, from)
		}
		if from < 0 || from >= 4 || len(plain) != len(d)-Overhead(mode) {
			t.Fatalf("rank %d, %d bytes", from, len(plain))
		}
		if _, _, why := b.Open([]byte(was)); why != again(mode) {
			t.Fatalf("again: %v", why)
		}
	})
}

var sizes = []int{64, 1400, 65000}

func BenchmarkSeal(b *testing.B) {
	for mode := range numModes {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%v/%d", mode, n), func(b *testing.B) {
				s := sealer(b, 1, 4, 7, mode)
				buf := make([]byte, 0, MaxDatagram)
				plain := buf[HeaderSize : HeaderSize+n]
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Seal(buf, 2, plain); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkOpen opens the same datagram again and again, which the window forgets in
// between. In mode Encrypted the time of a copy is included, since opening decrypts in place.
func BenchmarkOpen(b *testing.B) {
	for mode := range numModes {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%v/%d", mode, n), func(b *testing.B) {
				s := sealer(b, 2, 4, 9, mode)
				d := sealed(b, sealer(b, 1, 4, 7, mode), 2, make([]byte, n))
				c := bytes.Clone(d)
				s.Open(c)
				seen := &s.peers.Load().find(1).source.Load().seen
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if mode == Encrypted {
						copy(c, d)
					} else {
						c = d
					}
					seen.next, seen.bits[0] = 0, 0
					if _, _, why := s.Open(c); why != Accepted {
						b.Fatal(why)
					}
				}
			})
		}
	}
}

// BenchmarkRefuse measures the refusal of a stranger's datagram of 1,400 bytes, by how far
// it gets.
func BenchmarkRefuse(b *testing.B) {
	s := sealer(b, 2, 4, 9, Authenticated)
	d := sealed(b, sealer(b, 1, 4, 7, Authenticated), 2, make([]byte, 1400-Overhead(Authenticated)))
	run := func(name string, want Reason, d []byte) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, why := s.Open(d); why != want {
					b.Fatal(why)
				}
			}
		})
	}
	run("random", Malformed, make([]byte, 1400))
	ticket := bytes.Clone(d)
	ticket[atTicket] ^= 1
	run("ticket", BadTag, ticket)
	tag := bytes.Clone(d)
	tag[len(tag)-1] ^= 1
	run("tag", BadTag, tag)
	run("copied header, 65,000 bytes", BadTag, append(bytes.Clone(d), make([]byte, 65000-len(d))...))
}

// BenchmarkFirstContact is the cost of meeting a peer: a key is derived.
func BenchmarkFirstContact(b *testing.B) {
	s := sealer(b, 0, MaxRanks, 9, Authenticated)
	b.ReportAllocs()
	rank := 0
	for b.Loop() {
		rank = 1 + rank%(1<<16)
		if rank == 1 {
			s = sealer(b, 0, MaxRanks, 9, Authenticated)
		}
		if err := s.Learn(rank, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAlike changes headers of datagrams that were accepted, in mode None: Open
// accepts whatever is alike, as the same rank's, and what is not alike but for its
// counter it refuses.
func TestAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sealer(t, 1, 4, 7, None), sealer(t, 2, 4, 9, None)
		first := sealed(t, a, 2, []byte("one"))
		if _, _, why := b.Open(first); why != Accepted {
			t.Fatal(why)
		}
		d := sealed(t, a, 2, []byte("another"))
		if !Alike(d, first) {
			t.Fatal("the next datagram is not alike")
		}
		at, bit := rapid.IntRange(0, HeaderSize-1).Draw(t, "byte"), rapid.IntRange(0, 7).Draw(t, "bit")
		d[at] ^= 1 << bit
		alike := Alike(d, first)
		src, plain, why := b.Open(d)
		if counts := at >= atCounter && at < atIncarnation; alike && !counts || alike && (why != Accepted || src != 1 || string(plain) != "another") {
			t.Fatalf("bit %d of byte %d: alike %v, and opened as %q of rank %d: %v", bit, at, alike, plain, src, why)
		} else if !alike && counts && why == Accepted {
			t.Fatalf("bit %d of byte %d of the counter: accepted, but not alike", bit, at)
		}
	})
	short := make([]byte, HeaderSize-1)
	if whole := make([]byte, HeaderSize); Alike(short, whole) || Alike(whole, short) || Alike(nil, nil) {
		t.Error("half a header is alike")
	}
}

// TestSealerPrintsNoKey: a sealer that is printed shows nothing of the job's key.
func TestSealerPrintsNoKey(t *testing.T) {
	k := jobkey.New()
	s, err := New(k, 0, 2, 1, Encrypted)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := hex.DecodeString(k.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%o"} {
		out := fmt.Sprintf(verb, s)
		for i := 0; i+4 <= len(raw); i++ {
			for _, form := range []string{"%s", "%x", "%X", "% x", "%d", "%#v", "%o"} {
				if leak := strings.Trim(fmt.Sprintf(form, raw[i:i+4]), "[]{}byte"); strings.Contains(out, leak) {
					t.Fatalf("%s shows a part of the key as %s", verb, form)
				}
			}
		}
	}
}
