package seal

import (
	"bytes"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
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

// runs are the incarnations of the ranks of a job, of which those not named have 1.
type runs map[int]uint64

// theRuns are those of most tests.
var theRuns = runs{1: 7, 2: 9}

func (r runs) of(rank int) uint64 { return max(1, r[rank]) }

// with is r but for one rank, which runs again.
func (r runs) with(rank int, incarnation uint64) runs {
	c := maps.Clone(r)
	if c == nil {
		c = runs{}
	}
	c[rank] = incarnation
	return c
}

// announced is what a rank announces.
func (r runs) announced(rank int) (uint64, []byte) {
	return r.of(rank), private(rank, r.of(rank)).PublicKey().Bytes()
}

// private is the key of a run of a rank, in every test the same.
func private(rank int, incarnation uint64) *ecdh.PrivateKey {
	b := sha256.Sum256(fmt.Appendf(nil, "%d %d", rank, incarnation))
	k, err := ecdh.X25519().NewPrivateKey(b[:])
	if err != nil {
		panic(err)
	}
	return k
}

func (r runs) config(rank, size int, mode Mode) Config {
	return Config{Key: testKey, Rank: rank, Size: size, Mode: mode, Incarnation: r.of(rank), Private: private(rank, r.of(rank)), Peer: r.announced}
}

// sealer is that of a rank of a job with these runs.
func (r runs) sealer(t interface{ Fatal(...any) }, rank, size int, mode Mode) *Sealer {
	s, err := New(r.config(rank, size, mode))
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
		all := runs{from: rapid.Uint64Range(1, 1<<64-1).Draw(t, "incarnation")}
		if from != to {
			all[to] = rapid.Uint64Range(1, 1<<64-1).Draw(t, "other incarnation")
		}
		a := all.sealer(t, from, size, mode)
		b := a
		if from != to {
			b = all.sealer(t, to, size, mode)
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
		a, b := theRuns.sealer(t, 1, size, mode), theRuns.sealer(t, 2, size, mode)
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
				"destination", "epoch", "payload", "random", "random header", "reflect", "elsewhere", "other key", "other mode", "other job", "other private", "empty",
			}).Draw(t, "attack")
			flip := func(from, to int) {
				bit := rapid.IntRange(8*from, 8*to-1).Draw(t, "bit")
				d[bit/8] ^= 1 << (bit % 8)
			}
			other := func(change func(*Config)) {
				c := theRuns.config(1, size, mode)
				change(&c)
				o, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
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
				want = []Reason{OtherIncarnation, BadTag}
			case "incarnation":
				binary.BigEndian.PutUint64(d[atIncarnation:], rapid.OneOf(rapid.Uint64Range(1, 6), rapid.Uint64Range(8, 1<<64-1)).Draw(t, "incarnation"))
				want = []Reason{OtherIncarnation}
			case "counter":
				binary.BigEndian.PutUint64(d[atCounter:], rapid.Uint64Range(2, maxCounter-1).Draw(t, "counter"))
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
				want = []Reason{WrongDestination}
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
				at = theRuns.sealer(t, 3, size, mode)
				before = at.Refused()
				want = []Reason{WrongDestination}
			case "other key":
				other(func(c *Config) { c.Key = jobkey.New() })
				want = []Reason{BadTag}
			case "other job":
				other(func(c *Config) { c.Key = testKey.ForJob([]byte("another")) })
				want = []Reason{BadTag}
			case "other mode":
				other(func(c *Config) { c.Mode = rapid.SampledFrom([]Mode{1 - mode, None}).Draw(t, "mode of other") })
				want = []Reason{TooShort, Malformed}
			case "other private": // of a rank that has the job's key, and speaks as this one
				other(func(c *Config) { c.Private = private(3, 1) })
				want = []Reason{BadTag, Replayed} // the ticket is right
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
	case OtherIncarnation:
		before.OtherIncarnation++
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
		a, b := theRuns.sealer(t, 1, 4, mode), theRuns.sealer(t, 2, 4, mode)
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

// A world is a model of a job, and of a network that
// delivers any datagram ever sealed, any number of times.
type world struct {
	mode  Mode
	ranks []*modelRank
	sent  []record
}

type modelRank struct {
	s     *Sealer
	seen  map[[2]uint64]bool // source, counter
	next  map[int]uint64     // by source
	sends map[int]uint64     // datagrams sealed so far, by destination
}

type record struct {
	d        []byte
	plain    string
	from, to int
	counter  uint64
	stray    bool // of another run of from
}

// expect returns the answer that opening r at rank at must give, and changes the model so.
func (w *world) expect(r record, at int) Reason {
	m := w.ranks[at]
	switch {
	case r.to != at:
		return WrongDestination
	case r.stray:
		return OtherIncarnation
	case w.mode == None:
		return Accepted // nothing vouches for a counter
	}
	id := [2]uint64{uint64(r.from), r.counter}
	switch {
	case m.next[r.from] > r.counter && m.next[r.from]-r.counter > Window:
		return TooOld
	case m.seen[id]:
		return Replayed
	}
	m.seen[id] = true
	m.next[r.from] = max(m.next[r.from], r.counter+1)
	return Accepted
}

// TestWorld runs a job through sealing, delivery in any order and any number of
// times, and compares each answer with the model's.
func TestWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{mode: Mode(rapid.IntRange(0, int(numModes)-1).Draw(t, "mode"))}
		w.ranks = make([]*modelRank, rapid.IntRange(1, 4).Draw(t, "size"))
		all := runs{}
		for i := range w.ranks {
			all[i] = rapid.Uint64Range(1, 3).Draw(t, "incarnation")
		}
		for i := range w.ranks {
			w.ranks[i] = &modelRank{s: all.sealer(t, i, len(w.ranks), w.mode), seen: map[[2]uint64]bool{}, next: map[int]uint64{}, sends: map[int]uint64{}}
		}
		rank := rapid.IntRange(0, len(w.ranks)-1)
		few := rapid.IntRange(1, 3)
		total := make([]uint64, len(w.ranks))
		deliver := func(t *rapid.T, r record, at int) {
			want := w.expect(r, at)
			from, plain, why := w.ranks[at].s.Open(bytes.Clone(r.d))
			if why != want || want == Accepted && (from != r.from || string(plain) != r.plain) {
				t.Fatalf("rank %d opens %+v: %v from %d, %q; want %v", at, r, why, from, plain, want)
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
					r := record{plain: fmt.Sprint(from, to, i), from: from, to: to, counter: m.sends[to]}
					r.d = sealed(t, m.s, to, []byte(r.plain))
					m.sends[to]++
					if i < 3 || i >= n-3 {
						w.sent = append(w.sent, r)
					}
				}
			},
			"seal in another run": func(t *rapid.T) {
				r := record{from: rank.Draw(t, "from"), to: rank.Draw(t, "to"), stray: true}
				if r.from != r.to {
					r.d = sealed(t, all.with(r.from, all[r.from]+rapid.Uint64Range(1, 3).Draw(t, "more")).sealer(t, r.from, len(w.ranks), w.mode), r.to, nil)
					w.sent = append(w.sent, r)
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
			"": func(t *rapid.T) {
				for i, m := range w.ranks {
					if got := m.s.Refused().Total(); got != total[i] {
						t.Fatalf("rank %d counts %d refused, not %d", i, got, total[i])
					}
				}
			},
		})
	})
}

// TestPairs: a rank that has the job's key can neither speak as another one to a third, nor read what
// others say to each other, however it makes its sealer.
func TestPairs(t *testing.T) {
	for _, mode := range protected {
		one, two := theRuns.sealer(t, 1, 4, mode), theRuns.sealer(t, 2, 4, mode)
		c := theRuns.config(1, 4, mode)
		c.Private = private(3, 1) // what rank 3 has
		as, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // before the two have met, and after
			if _, _, why := two.Open(sealed(t, as, 2, []byte("I am rank 1"))); why != BadTag {
				t.Errorf("%v: rank 3 speaks as rank 1: %v", mode, why)
			}
			d := sealed(t, two, 1, []byte("for rank 1 alone"))
			if _, _, why := as.Open(bytes.Clone(d)); why != BadTag {
				t.Errorf("%v: rank 3 opens what is for rank 1: %v", mode, why)
			}
			if from, plain, why := one.Open(d); why != Accepted || from != 2 || string(plain) != "for rank 1 alone" {
				t.Errorf("%v: rank 1 opens what is for it: %v of %d, %q", mode, why, from, plain)
			}
		}
	}
}

// TestBadPublic: a rank that has announced what is no key is not talked to, others are.
func TestBadPublic(t *testing.T) {
	for name, public := range map[string][]byte{"nothing": nil, "too little": make([]byte, PublicSize-1), "zeros, for which each secret is the same": make([]byte, PublicSize)} {
		c := theRuns.config(2, 4, Authenticated)
		c.Peer = func(rank int) (uint64, []byte) {
			inc, right := theRuns.announced(rank)
			if rank == 3 {
				return inc, public
			}
			return inc, right
		}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Seal(nil, 3, nil); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "rank 3") {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, why := s.Open(sealed(t, theRuns.sealer(t, 3, 4, Authenticated), 2, nil)); why != BadTag {
			t.Errorf("%s: %v", name, why)
		}
		if _, _, why := s.Open(sealed(t, theRuns.sealer(t, 1, 4, Authenticated), 2, nil)); why != Accepted {
			t.Errorf("%s, another rank: %v", name, why)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for says, change := range map[string]func(c *Config){
		"0 ranks":         func(c *Config) { c.Size = 0 },
		"-1 ranks":        func(c *Config) { c.Size = -1 },
		"16777216":        func(c *Config) { c.Size = MaxRanks + 1 },
		"rank -1":         func(c *Config) { c.Rank = -1 },
		"rank 4":          func(c *Config) { c.Rank = 4 },
		"incarnation 0":   func(c *Config) { c.Incarnation = 0 },
		"mode 3":          func(c *Config) { c.Mode = numModes },
		jobenv.JobKeyFile: func(c *Config) { c.Key = jobkey.Key{} },
		"private key":     func(c *Config) { c.Private = nil },
		"Config.Peer":     func(c *Config) { c.Peer = nil },
	} {
		for _, mode := range protected {
			c := theRuns.config(0, 4, mode)
			change(&c)
			if _, err := New(c); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		}
	}
	c := theRuns.config(0, 1, None)
	c.Key, c.Private = jobkey.Key{}, nil
	if _, err := New(c); err != nil {
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
		s := theRuns.sealer(t, 1, 4, mode)
		dst := []byte("before")
		for _, c := range []struct{ to, n int }{{-1, 0}, {4, 0}, {math.MaxInt, 0}, {0, MaxDatagram - Overhead(mode) + 1}} {
			if got, err := s.Seal(dst, c.to, make([]byte, c.n)); !errors.Is(err, errs.ErrBadArg) || string(got) != "before" {
				t.Errorf("%+v: %q, %v", c, got, err)
			}
		}
		if p := s.peers.Load().find(0); p != nil && p.blocks.Load() != 0 || s.peers.Load().used > 1 {
			t.Error("a bad argument left something behind")
		}
		if s.Mode() != mode {
			t.Error("what New was told is lost")
		}
	}
}

// TestUnknownRank has a rank of a larger job under the same key send.
func TestUnknownRank(t *testing.T) {
	for mode := range numModes {
		a, b := theRuns.sealer(t, 9, 10, mode), theRuns.sealer(t, 2, 4, mode)
		if _, _, why := b.Open(sealed(t, a, 2, nil)); why != UnknownRank {
			t.Errorf("mode %v: %v", mode, why)
		}
	}
}

// TestMalformed gives headers that no sealer makes, in a mode in which the tag
// does not give them away.
func TestMalformed(t *testing.T) {
	a, b := theRuns.sealer(t, 1, 4, None), theRuns.sealer(t, 2, 4, None)
	for name, change := range map[string]func(d []byte){
		"last counter":   func(d []byte) { binary.BigEndian.PutUint64(d[atCounter:], math.MaxUint64) },
		"first too high": func(d []byte) { binary.BigEndian.PutUint64(d[atCounter:], maxCounter) },
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
		s := theRuns.sealer(t, 0, 4, mode)
		p := s.peerOf(1)
		p.blocks.Store(maxBlocks - 4)
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
		p.blocks.Store(maxBlocks)
		for range 3 {
			if _, err := s.Seal(nil, 1, nil); !errors.Is(err, errs.ErrResource) {
				t.Error(err)
			}
		}
		if p.blocks.Load() != maxBlocks {
			t.Error("the count of blocks runs on and would wrap")
		}
		if _, err := s.Seal(nil, 2, nil); err != nil {
			t.Errorf("mode %v: another rank, with which the key is another: %v", mode, err)
		}
	}
}

// TestWire pins the form of datagrams: ranks of one version of this package
// understand each other.
func TestWire(t *testing.T) {
	for mode, want := range []string{
		"3000010200000304000000000000000111121314151617180052aed4000000556172676f6ee100cc0cb301c9973a7a36dfe2c05397",
		"310001020000030400000000000000011112131415161718f749bb4c00000055e7465af80d47723b4804017cf04036e40c8d4f31c8",
		"32000102000003040000000000000001111213141516171800000000000000556172676f6e",
	} {
		s := runs{0x0102: 0x1112131415161718, 0x0304: 0x55}.sealer(t, 0x0102, 0x1000, Mode(mode))
		sealed(t, s, 0x0304, nil)
		if got := hex.EncodeToString(sealed(t, s, 0x0304, []byte("argon"))); got != want {
			t.Errorf("mode %v: %s, want %s", Mode(mode), got, want)
		}
	}
	for mode, want := range []string{
		"30000102000003040000000000000001111213141516171857a50ecf00000055",
		"31000102000003040000000000000001111213141516171802ac5e6e00000055",
		"3200010200000304000000000000000111121314151617180000000000000055",
	} {
		s := runs{0x0102: 0x1112131415161718, 0x0304: 0x55}.sealer(t, 0x0102, 0x1000, Mode(mode))
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
			a, b := theRuns.sealer(t, 1, 4, mode), theRuns.sealer(t, 2, 4, mode)
			short := sealed(t, a, 2, make([]byte, shortBytes-Overhead(mode)))
			if met {
				if _, _, why := b.Open(bytes.Clone(short)); why != Accepted {
					t.Fatal(why)
				}
			}
			long := func(n int) []byte { return sealed(t, a, 2, make([]byte, n-Overhead(mode))) }
			genuine := long(shortBytes + 10)
			aead := a.peerOf(2).aead
			// seal makes a datagram of n bytes with this header whose tag is right.
			seal := func(header []byte, n int) []byte {
				d := append(bytes.Clone(header[:HeaderSize]), make([]byte, n-Overhead(mode))...)
				if mode == Encrypted {
					return aead.Seal(d[:HeaderSize], d[nonceStart:nonceEnd], d[HeaderSize:], d[:HeaderSize])
				}
				return aead.Seal(d, d[nonceStart:nonceEnd], nil, d)
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
	a, b := theRuns.sealer(t, 1, 4, Authenticated), theRuns.sealer(t, 2, 4, Authenticated)
	genuine := sealed(t, a, 2, []byte("payload"))
	forged := bytes.Clone(genuine)
	forged[HeaderSize] ^= 1
	for range 3 {
		if _, _, why := b.Open(forged); why != BadTag {
			t.Fatal(why)
		}
	}
	if n := testing.AllocsPerRun(100, func() { b.Open(forged) }); n != 0 {
		t.Errorf("%v allocations for a forged datagram with a copied header", n)
	}
	if from, _, why := b.Open(genuine); why != Accepted || from != 1 {
		t.Error(from, why)
	}
}

// TestForgedTicket has strangers send as a rank that was not met, over tickets that they make up: no key is
// derived for them. The rank is believed afterwards.
func TestForgedTicket(t *testing.T) {
	for _, mode := range protected {
		b := theRuns.sealer(t, 2, 4, mode)
		for _, n := range []int{0, 100, shortBytes - Overhead(mode), shortBytes, 3000} {
			for bit := range 32 {
				d := sealed(t, theRuns.sealer(t, 1, 4, mode), 2, make([]byte, n))
				d[atTicket+bit/8] ^= 1 << (bit % 8)
				if _, _, why := b.Open(d); why != BadTag {
					t.Fatalf("%v, %d bytes, bit %d of the ticket: %v", mode, n, bit, why)
				}
			}
		}
		if b.peers.Load().find(1) != nil {
			t.Errorf("%v: a key was derived for a ticket that is forged", mode)
		}
		if _, _, why := b.Open(sealed(t, theRuns.sealer(t, 1, 4, mode), 2, nil)); why != Accepted {
			t.Errorf("%v: the rank itself is refused as %v", mode, why)
		}
	}
}

// TestOtherIncarnationCostsNoMemory replays what a rank sealed in other
// incarnations, before it was met and after.
func TestOtherIncarnationCostsNoMemory(t *testing.T) {
	a, b := theRuns.sealer(t, 1, 4, Authenticated), theRuns.sealer(t, 2, 4, Authenticated)
	var old [3][]byte
	for i := range old {
		old[i] = sealed(t, theRuns.with(1, uint64(6+2*i)).sealer(t, 1, 4, Authenticated), 2, nil)
	}
	inc, public := theRuns.announced(1)
	b.c.Peer = func(int) (uint64, []byte) { return inc, public } // the test's makes a key each time
	for range 2 {
		i := 0
		if n := testing.AllocsPerRun(99, func() {
			if _, _, why := b.Open(old[i%3]); why != OtherIncarnation {
				t.Fatal(why)
			}
			i++
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		if _, _, why := b.Open(sealed(t, a, 2, nil)); why != Accepted {
			t.Fatal(why)
		}
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
	a, b := theRuns.sealer(t, 1, 4, None), theRuns.sealer(t, 2, 4, None)
	d := sealed(t, a, 2, nil)
	d[atCounter+2] = 0xff
	if _, _, why := b.Open(d); why != Accepted {
		t.Error(why)
	}
	if _, _, why := b.Open(sealed(t, a, 2, nil)); why != Accepted {
		t.Error(why)
	}
}

// TestGarbageCostsNoMemory opens many random datagrams, half of them with a
// header that passes all checks but the key's.
func TestGarbageCostsNoMemory(t *testing.T) {
	for _, mode := range protected {
		b := theRuns.sealer(t, 2, 1<<16, mode)
		inc, public := theRuns.announced(1)
		b.c.Peer = func(int) (uint64, []byte) { return inc, public } // the test's makes a key each time
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
				binary.BigEndian.PutUint64(d[atIncarnation:], inc)
				binary.BigEndian.PutUint32(d[atEpoch:], b.epoch)
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
		a, b := theRuns.sealer(t, 1, 4, mode), theRuns.sealer(t, 2, 4, mode)
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
	inc, public := theRuns.announced(1)
	c := theRuns.config(0, MaxRanks, Authenticated)
	c.Peer = func(int) (uint64, []byte) { return inc, public }
	before := inUse()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	empty := inUse()
	for i := range peers {
		sealed(t, s, 1+i, nil)
	}
	met := inUse()
	runtime.KeepAlive(s)
	each := (int64(met) - int64(empty)) / peers
	t.Logf("sealer of %d ranks: %d bytes; each peer %d bytes", MaxRanks, int64(empty)-int64(before), each)
	if int64(empty)-int64(before) > 16<<10 || each > 2048 {
		t.Error("that is more than documented")
	}
}

// TestConcurrent has goroutines of one rank seal, and goroutines of another open
// everything twice at once, from the first datagram on.
func TestConcurrent(t *testing.T) {
	for mode := range numModes {
		const sealers, each = 4, 200
		a, b := theRuns.sealer(t, 1, 3, mode), theRuns.sealer(t, 0, 3, mode)
		var all [][]byte
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range sealers {
			wg.Go(func() {
				for i := range each {
					d, err := a.Seal(nil, i%3, binary.BigEndian.AppendUint64(nil, 5))
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
		accepted := make([]atomic.Int32, len(all))
		for g := range 4 {
			wg.Go(func() {
				for i := range all {
					j := (i + g*len(all)/7) % len(all)
					from, plain, why := b.Open(bytes.Clone(all[j]))
					if why == Accepted {
						accepted[j].Add(1)
						if from != 1 || binary.BigEndian.Uint64(plain) != 5 {
							t.Errorf("datagram %d: rank %d, %x", j, from, plain)
						}
					} else if why != Replayed {
						t.Errorf("datagram %d: %v", j, why)
					}
				}
			})
		}
		wg.Go(func() {
			for range 100 {
				b.Refused()
			}
		})
		wg.Wait()
		for j := range accepted {
			if n := accepted[j].Load(); n != 1 && mode != None || n == 0 {
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
			d := sealed(f, theRuns.sealer(f, i, 4, mode), 2, make([]byte, n))
			f.Add(byte(mode), d)
			f.Add(byte(mode), d[:len(d)-1])
			genuine[string(d)] = true
		}
	}
	f.Add(byte(0), []byte{})
	f.Add(byte(1), make([]byte, HeaderSize+tagSize))
	f.Fuzz(func(t *testing.T, m byte, d []byte) {
		mode := Mode(m % byte(numModes))
		b := theRuns.sealer(t, 2, 4, mode)
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
				s := theRuns.sealer(b, 1, 4, mode)
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
				s := theRuns.sealer(b, 2, 4, mode)
				d := sealed(b, theRuns.sealer(b, 1, 4, mode), 2, make([]byte, n))
				c := bytes.Clone(d)
				s.Open(c)
				seen := &s.peers.Load().find(1).seen
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
	s := theRuns.sealer(b, 2, 4, Authenticated)
	d := sealed(b, theRuns.sealer(b, 1, 4, Authenticated), 2, make([]byte, 1400-Overhead(Authenticated)))
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

// BenchmarkFirstContact is the cost of meeting a peer: the two agree on a key.
func BenchmarkFirstContact(b *testing.B) {
	inc, public := theRuns.announced(1)
	c := theRuns.config(0, MaxRanks, Authenticated)
	c.Peer = func(int) (uint64, []byte) { return inc, public }
	var s *Sealer
	b.ReportAllocs()
	for rank := 1; b.Loop(); rank = 1 + rank%(1<<12) {
		if rank == 1 {
			s, _ = New(c)
		}
		s.peerOf(uint32(rank))
	}
}

// TestAlike changes headers of datagrams that were accepted, in mode None: Open
// accepts whatever is alike, as the same rank's, and what is not alike but for its
// counter it refuses.
func TestAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := theRuns.sealer(t, 1, 4, None), theRuns.sealer(t, 2, 4, None)
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
	c := theRuns.config(0, 2, Encrypted)
	c.Key = k
	s, err := New(c)
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
