package firehose

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

func newTest(t interface{ Fatalf(string, ...any) }, c Config) (*machine, *fakeMemory) {
	mem := newFakeMemory(t, c.Rank, int(c.Budget/testBucket))
	for a := Addr(0); a < 64*testBucket; a += testBucket {
		mem.exposed[a] = true
	}
	c.Memory, c.Bucket = mem, testBucket
	m, err := newMachine(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m, mem
}

// TestLies: whatever a peer sends, as request or reply, the budget holds (the
// fake memory checks it), other peers' firehoses stay, and nothing panics.
func TestLies(t *testing.T) {
	var once, dropped, moves int
	defer func() {
		if !testing.Short() && (once == 0 || dropped == 0 || moves == 0) { // fewer programs may lack them
			t.Errorf("%d pinned once, %d dropped, %d moves", once, dropped, moves)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		m, mem := newTest(t, Config{Size: 4, Budget: 8 * testBucket, Local: 2 * testBucket, Payload: 128})
		// Rank 1 is honest and holds bucket 3; rank 2 lies.
		honest := appendWord(appendHead(nil, head{digest: m.digest, id: 1, kind: kindMove, pins: 1}), 3)
		if _, ok := m.Receive(1, honest, nil); !ok || m.peer(1).holds.n != 1 {
			t.Fatalf("honest request")
		}
		waiting := map[uint64]bool{}
		bytes := rapid.Custom(func(t *rapid.T) []byte {
			h := head{
				digest: rapid.SampledFrom([]uint32{m.digest, m.digest, m.digest, 1}).Draw(t, "digest"),
				id:     rapid.Uint32Range(0, 6).Draw(t, "id"),
				kind:   rapid.SampledFrom([]uint8{kindMove, kindMove, kindMove, kindOnce, kindOnce, kindDrop, 9}).Draw(t, "kind"),
				keys:   rapid.IntRange(0, 5).Draw(t, "keys") == 0,
				unpins: rapid.SampledFrom([]int{0, 0, 1, 2, 65535}).Draw(t, "unpins"),
				pins:   rapid.SampledFrom([]int{1, 1, 2, 3, 0, 65535}).Draw(t, "pins"),
			}
			if h.kind == kindDrop && rapid.IntRange(0, 3).Draw(t, "drop") > 0 {
				h.pins, h.unpins = 0, 0
			}
			b := appendHead(nil, h)
			n := rapid.SampledFrom([]int{h.unpins + h.pins, h.unpins + h.pins, h.unpins + h.pins, 5, 1}).Draw(t, "words")
			if h.kind == kindOnce {
				n = 2
			}
			for range min(n, 12) {
				b = appendWord(b, rapid.OneOf(rapid.Uint64Range(0, 7), rapid.SampledFrom([]uint64{segment.PageSize, 1 << 40, 1<<52 - 1, ^uint64(0)})).Draw(t, "word"))
			}
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
			}
			return b
		})
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) {
				src := rapid.SampledFrom([]int{2, 2, 2, 2, 0, -1, 4}).Draw(t, "src")
				had := len(m.onceHeld)
				m.Receive(src, bytes.Draw(t, "b"), nil)
				once += max(0, len(m.onceHeld)-had)
			},
			"move": func(t *rapid.T) {
				word := rapid.OneOf(rapid.Uint32Range(0, 8), rapid.SampledFrom([]uint32{1 << 20, ^uint32(0)}))
				src := rapid.SampledFrom([]int{2, 2, 2, 2, 0, -1, 4}).Draw(t, "src")
				digest := rapid.SampledFrom([]uint32{m.digest, m.digest, m.digest, 1}).Draw(t, "digest")
				w, ok := m.ReceiveMove(src, move{digest, 7, rapid.OneOf(rapid.Just(uint32(0)), word).Draw(t, "unpin"), word.Draw(t, "pin")})
				if ok != (src == 2) || ok && w[movedID] != 7 {
					t.Fatalf("answered: %v, by %v", ok, w)
				}
				moves++
			},
			"moved": func(t *rapid.T) {
				g := Grant{NLA: segment.NLA(rapid.SampledFrom([]uint64{0, refusedNotExposed, refusedResource, refusedRule, refusedDisagree, 77, segment.PageSize, 1 << 40, ^uint64(0)}).Draw(t, "address")), Key: rapid.Uint64Range(0, 1).Draw(t, "key")}
				if d, ok := m.ReceiveMoved(rapid.SampledFrom([]int{2, 2, 1, 0, 9}).Draw(t, "src"), movedTo(rapid.Uint32Range(0, 6).Draw(t, "id"), g)); ok {
					m.done.Add(d) // for what follows
				}
			},
			"noise": func(t *rapid.T) {
				m.Receive(2, rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "b"), nil)
				m.ReceiveReply(2, rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "r"))
			},
			"pin": func(t *rapid.T) {
				r, ok, err := m.RemotePin(2, Addr(rapid.Uint64Range(0, 5*testBucket).Draw(t, "a")), 1, 77)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					if err := m.Release(r); err != nil {
						t.Fatal(err)
					}
				} else {
					waiting[77] = true
				}
			},
			"reply": func(t *rapid.T) {
				m.ReceiveReply(rapid.SampledFrom([]int{2, 2, 1, 0, 9}).Draw(t, "src"), bytes.Draw(t, "b"))
			},
			"once": func(t *rapid.T) {
				if err := m.PinOnce(2, Addr(rapid.Uint64Range(0, 5*testBucket).Draw(t, "a")), 100, 78); err != nil {
					t.Fatal(err)
				}
			},
			"drop": func(t *rapid.T) {
				if had := len(m.onceHeld); had > 0 {
					h := m.onceHeld[0]
					src := rapid.IntRange(1, 2).Draw(t, "src")
					m.Receive(src, appendHead(nil, head{digest: m.digest, id: h.id, kind: kindDrop}), nil)
					if (len(m.onceHeld) < had) != (src == h.src) {
						t.Fatalf("rank %d drops what rank %d has: %d of %d are left", src, h.src, len(m.onceHeld), had)
					}
					dropped += had - len(m.onceHeld)
				}
			},
			"": func(t *rapid.T) {
				for {
					if _, ok := m.NextMessage(); !ok {
						break
					}
				}
				for {
					d, ok := m.NextDone()
					if !ok {
						break
					}
					if d.Err == nil {
						if err := m.Release(d.Pinned); err != nil {
							t.Fatal(err)
						}
					}
				}
				if m.peer(2).holds.n > m.l.Share || m.peer(1).holds.n != 1 {
					t.Fatalf("%d and %d firehoses", m.peer(1).holds.n, m.peer(2).holds.n)
				}
				m.countUsers(t)
				if n := mem.pinnedOnce(); n != m.onceUse || n > m.l.Local {
					t.Fatalf("%d buckets pinned once, counted %d", n, m.onceUse)
				}
				if _, still := mem.pinned[3*testBucket]; !still {
					t.Fatalf("the honest rank's bucket is gone")
				}
			},
		})
		m.Fail(2, errors.New("caught"))
		m.countUsers(t)
		if n := m.peer(2).holds.n; n > 0 {
			t.Fatalf("the liar still holds %d", n)
		}
		if len(m.onceHeld)+len(mem.once) > 0 || len(m.once) != len(m.freeOnce) {
			t.Fatalf("the liar still has %v", m.onceHeld)
		}
		m.Close()
		if len(mem.pinned) > 0 {
			t.Fatalf("%d buckets stay pinned", len(mem.pinned))
		}
	})
}

// TestDisagree: ranks that differ are refused, by short and by medium messages, and
// nothing is pinned for them.
func TestDisagree(t *testing.T) {
	c := Config{Size: 2, Budget: 8 * testBucket, Local: 2 * testBucket}
	zero, _ := newTest(t, c)
	c.Rank = 1
	c.Budget += testBucket
	one, _ := newTest(t, c)
	refused := func(d ended, ok bool, cookie uint64) {
		t.Helper()
		if !ok || d.Cookie != cookie || !errors.Is(d.Err, errs.ErrBadArg) || !strings.Contains(d.Err.Error(), "2 ranks, budget 36864") || zero.pinned != 0 {
			t.Errorf("%+v, %d pinned", d, zero.pinned)
		}
	}
	ask := func(n, cookie uint64) message {
		t.Helper()
		if _, ok, err := one.RemotePin(0, 0, n, cookie); ok || err != nil {
			t.Fatal(ok, err)
		}
		q, ok := one.NextMessage()
		if !ok || q.Dst != 0 {
			t.Fatal("no message")
		}
		return q
	}
	w, _ := zero.ReceiveMove(1, ask(1, 6).Move)
	d, ok := one.ReceiveMoved(0, w)
	refused(d, ok, 6)
	b, ok := zero.Receive(1, ask(2*testBucket, 7).Payload, nil)
	if !ok {
		t.Fatal("no answer")
	}
	one.ReceiveReply(0, b)
	d, ok = one.NextDone()
	refused(d, ok, 7)
}

// TestHalfRefused: an owner that grants one bucket of a request and refuses the other as
// it refuses whole requests has that pin fail, with an error that names it, and the next
// one asked for. An owner that refuses later is named itself.
func TestHalfRefused(t *testing.T) {
	m, _ := newTest(t, Config{Size: 4, Budget: 12 * testBucket, Local: 2 * testBucket})
	ask := func(rank int, n, cookie uint64) message {
		t.Helper()
		if _, ok, err := m.RemotePin(rank, 0, n, cookie); ok || err != nil {
			t.Fatal(ok, err)
		}
		q, ok := m.NextMessage()
		if !ok || q.Dst != rank {
			t.Fatalf("nothing is asked of rank %d: %+v", rank, q)
		}
		return q
	}
	for rank := 1; rank < 3; rank++ {
		h, _, _ := parseHead(ask(rank, 2*testBucket, 5).Payload)
		m.ReceiveReply(rank, appendReply(nil, h, []Grant{{NLA: segment.AttachBase}, {NLA: refusedRule}}))
		d, ok := m.NextDone()
		if want := fmt.Sprintf("rank %d refuses requests of rank 0", rank); !ok || d.Cookie != 5 || !errors.Is(d.Err, errs.ErrBadArg) || !strings.Contains(d.Err.Error(), want) {
			t.Fatalf("%+v, want %q", d, want)
		}
		if r, ok, err := m.RemotePin(rank, 0, 1, 9); !ok || err != nil || m.Release(r) != nil {
			t.Fatal("the bucket that was granted is gone", ok, err)
		}
		if _, ok, err := m.RemotePin(rank, testBucket, 1, 10); ok || err != nil {
			t.Fatal(ok, err)
		}
		if _, ok := m.NextMessage(); !ok {
			t.Fatal("the bucket that was refused is not asked for again")
		}
	}
}

func TestConfig(t *testing.T) {
	good := Config{Size: 3, Budget: 1 << 20, Memory: newFakeMemory(t, 0, 1)}
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) {}, ""},
		{func(c *Config) { c.Size = 0 }, "rank 0 of 0"},
		{func(c *Config) { c.Rank = 3 }, "rank 3 of 3"},
		{func(c *Config) { c.Memory = nil }, "no Memory"},
		{func(c *Config) { c.Bucket = 3 * segment.PageSize }, "power of two"},
		{func(c *Config) { c.Bucket = 1024 }, "at least a page"},
		{func(c *Config) { c.Payload = 31 }, "at least 32"},
		{func(c *Config) { c.Local = 2 << 20 }, "of a budget of 1048576"},
		{func(c *Config) { c.Budget = 128 << 10 }, "too small for 3 ranks"},
		{func(c *Config) { c.Budget, c.Bucket = 1<<62, segment.PageSize }, "can be managed"},
	} {
		k := good
		c.change(&k)
		m, err := newMachine(k)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
		if err == nil {
			if l := m.l; l.Bucket != 64<<10 || l.Budget != 16 || l.Local != 4 || l.Share != 6 || l.MaxRemote != 5<<16+1 {
				t.Errorf("%+v", l)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	m, _ := newTest(t, Config{Rank: 1, Size: 3, Budget: 8 * testBucket, Local: 2 * testBucket})
	for _, c := range []struct {
		rank int
		a    Addr
		n    uint64
		want error
		text string
	}{
		{-1, 0, 1, errs.ErrBadArg, "ranks 0..2"},
		{3, 0, 1, errs.ErrBadArg, "ranks 0..2"},
		{1, 0, 1, errs.ErrBadArg, "the own rank's memory"},
		{0, 0, 0, errs.ErrBadArg, "0 bytes"},
		{0, ^Addr(0), 2, errs.ErrBadArg, "2 bytes at 0xffffffffffffffff"},
		{0, 1, 3 * testBucket, errs.ErrResource, "touches 4 buckets of 4096 bytes: at most 3"},
	} {
		if _, ok, err := m.RemotePin(c.rank, c.a, c.n, 1); ok || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v, %v", c, ok, err)
		}
		if _, ok := m.TryRemotePin(c.rank, c.a, c.n); ok {
			t.Errorf("%+v: try", c)
		}
	}
	b, ok := m.Receive(0, appendWord(appendHead(nil, head{digest: m.digest, id: 1, kind: kindMove, pins: 1}), 0), nil)
	if !ok || m.pinned != 1 {
		t.Fatalf("%v: %x", ok, b)
	}
	for _, bad := range []region{{}, {at: packed(0, 7), meta: 1 << metaCount}, {meta: 1 << metaCount}} {
		if err := m.Release(bad); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := m.Withdraw(0, 0); !errors.Is(err, errs.ErrBadArg) {
		t.Error(err)
	}
	if err := m.Withdraw(0, ^uint64(0)); err != nil || m.pinned != 0 {
		t.Error(err)
	}
}

// TestOnceHasRoom: what peers pin at once is granted as long as there is room, which comes
// back when they drop it.
func TestOnceHasRoom(t *testing.T) {
	m, _ := newTest(t, Config{Size: 2, Budget: 8 * testBucket, Local: 4 * testBucket})
	ask := func(id uint32, buckets uint64) bool {
		b, ok := m.Receive(1, appendWord(appendWord(appendHead(nil, head{digest: m.digest, id: id, kind: kindOnce, pins: 1}), 100), buckets*testBucket), nil)
		if !ok {
			t.Fatal("no answer")
		}
		return valid(segment.NLA(word(b[headBytes:], 0)))
	}
	drop := func(id uint32) {
		if b, ok := m.Receive(1, appendHead(nil, head{digest: m.digest, id: id, kind: kindDrop}), nil); ok || len(b) > 0 {
			t.Fatal("a drop is answered")
		}
	}
	if !ask(1, 2) || ask(2, 3) || ask(1, 1) {
		t.Fatal("there is room for 2 buckets, not for 3 more, and not for the same request twice")
	}
	drop(1)
	if !ask(3, 3) || ask(4, 2) || !ask(5, 1) {
		t.Error("there is room for 4 buckets")
	}
	// Beside 4 buckets of these, and 4 that the peer holds, no other stays pinned: newTest's
	// memory keeps watch over the budget.
	for b := range uint32(8) {
		w := move{moveDigest: m.digest, moveID: 10 + b, movePin: b}
		if b >= 4 {
			w[moveUnpin] = b - 4 + 1
		}
		if w, ok := m.ReceiveMove(1, w); !ok || !valid(w.grant().NLA) {
			t.Fatalf("bucket %d: %v, %v", b, w, ok)
		}
	}
	if m.stats.Violations != 1 {
		t.Errorf("%d violations", m.stats.Violations)
	}
}

// TestClosed: what waits when a machine is closed, or is asked for afterwards, is
// not pinned any more.
func TestClosed(t *testing.T) {
	m, mem := newTest(t, Config{Size: 4, Budget: 8 * testBucket, Local: testBucket})
	ask := func(src int) (ok bool) {
		_, ok = m.Receive(src, appendWord(appendHead(nil, head{digest: m.digest, id: 1, kind: kindMove, pins: 1}), 3), nil)
		return ok
	}
	if _, ok, err := m.RemotePin(2, 0, 1, 2); ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	if !ask(1) {
		t.Fatal("a request is not answered")
	}
	m.Close()
	if d, ok := m.NextDone(); !ok || d.Cookie != 2 || !errors.Is(d.Err, errs.ErrClosed) {
		t.Errorf("what waited ended with %+v, %v", d, ok)
	}
	if ask(1) || ask(2) {
		t.Error("a request is answered")
	}
	for _, rank := range []int{1, 3} {
		if _, ok, err := m.RemotePin(rank, 0, 1, 4); ok || !errors.Is(err, errs.ErrClosed) {
			t.Errorf("remote pin of rank %d: %v, %v", rank, ok, err)
		}
	}
	if len(mem.pinned) > 0 {
		t.Errorf("%d buckets stay pinned", len(mem.pinned))
	}
}
