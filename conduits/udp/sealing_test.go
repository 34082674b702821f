package udp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/job/nets"
	"github.com/argon-go/argon/segment"
)

// lives makes what seals rank's datagrams, in a job of 3 whose rank r has
// incarnation life(r).
func lives(t testing.TB, rank int, own uint64, mode seal.Mode, key jobkey.Key) *sealing {
	t.Helper()
	a := sealingOf(key, rank, 3, own, mode, life)
	a.most = 65507
	return a
}

func life(rank int) uint64 { return uint64(rank)*10 + 5 }

// sealed is text as a sends it to rank dst.
func sealed(t testing.TB, a *sealing, dst int, text string) []byte {
	t.Helper()
	b := append(make([]byte, a.Header()), text...)
	b = append(b, make([]byte, a.Trailer())...)
	if !a.Seal(dst, b) {
		t.Fatal("cannot seal")
	}
	return b
}

// TestIncarnations has datagrams come from, and go to, other runs of a rank than
// the one in the job's table.
func TestIncarnations(t *testing.T) {
	for _, mode := range []seal.Mode{seal.Authenticated, seal.Encrypted, seal.None} {
		t.Run(mode.String(), func(t *testing.T) {
			key := jobkey.New()
			a, b := lives(t, 0, life(0), mode, key), lives(t, 1, life(1), mode, key)
			refused := uint64(0)
			refuse := func(a *sealing, what string, d []byte) {
				t.Helper()
				before := a.refused().Total()
				if src, p, ok := a.Open(d); ok {
					t.Errorf("%s was opened: %q of rank %d", what, p, src)
				}
				if a.refused().Total() != before+1 {
					t.Errorf("%s was not counted", what)
				}
				refused++
			}
			accept := func() {
				t.Helper()
				src, p, ok := a.Open(sealed(t, b, 0, "hello"))
				if !ok || src != 1 || string(p) != "hello" {
					t.Fatalf("opened %q of rank %d: %v; refused %+v", p, src, ok, a.refused())
				}
			}
			for _, met := range []string{"before it was met", "after"} {
				for name, inc := range map[string]uint64{"a later": life(1) + 1, "an earlier": life(1) - 1} {
					other := lives(t, 1, inc, mode, key)
					for _, what := range []string{" incarnation ", " incarnation, heard before, "} {
						refuse(a, name+what+met, sealed(t, other, 0, "x"))
					}
				}
				accept()
				// What was found right of one rank is so of no other.
				refuse(a, "rank 2 in rank 1's incarnation "+met, sealed(t, lives(t, 2, life(1), mode, key), 0, "x"))
			}
			if c := a.refused().OtherIncarnation; c != refused {
				t.Errorf("%d of %d were refused for their incarnation", c, refused)
			}
			// Before anything is heard of rank 1, what is sent to it opens in no other
			// incarnation.
			c := lives(t, 2, life(2), mode, key)
			refuse(lives(t, 1, life(1)+1, mode, key), "a datagram for an earlier incarnation", sealed(t, c, 1, "x"))
			refuse(a, "a datagram for another rank", sealed(t, c, 1, "x"))
			if mode != seal.None {
				refuse(a, "a datagram of another job", sealed(t, lives(t, 1, life(1), mode, jobkey.New()), 0, "x"))
			}
		})
	}
}

// TestPathless has ranks of other hosts, to which there are two paths and one, and one of this
// host send by each number that a rank may have: what is not of a path of the pair is refused, since
// no answer could be sent.
func TestPathless(t *testing.T) {
	const size = 4 // rank 3 is on the host of rank 0
	paths := []int{1, 2, 1, 1}
	for _, mode := range []seal.Mode{seal.Authenticated, seal.Encrypted, seal.None} {
		key := jobkey.New()
		numbered := func(n int) *sealing {
			a := sealingOf(key, n, nets.MaxPaths*size, life(n%size), mode, func(n int) uint64 { return life(n % size) })
			a.most = 65507
			return a
		}
		a := numbered(0)
		a.size, a.paths = size, func(rank int) int { return paths[rank] }
		for n := size; n < nets.MaxPaths*size; n += size {
			a.more = append(a.more, numbered(n).s)
		}
		for from := range nets.MaxPaths * size {
			if from%size == 0 {
				continue
			}
			for to := 0; to < nets.MaxPaths*size; to += size {
				before := a.refused().Malformed
				src, p, ok := a.Open(sealed(t, numbered(from), to, "hello"))
				want := from/size == to/size && to/size < paths[from%size]
				if ok != want || ok && (src != from || string(p) != "hello") || !ok && a.refused().Malformed != before+1 {
					t.Errorf("%v: %q from %d to %d: opened %v, of %d; refused %+v", mode, p, from, to, ok, src, a.refused())
				}
			}
		}
	}
}

// TestTurns has two ranks' datagrams come in turns, among them some that are refused:
// each is its sender's.
func TestTurns(t *testing.T) {
	for _, mode := range []seal.Mode{seal.Authenticated, seal.Encrypted, seal.None} {
		key := jobkey.New()
		a := lives(t, 0, life(0), mode, key)
		from := []*sealing{1: lives(t, 1, life(1), mode, key), 2: lives(t, 2, life(2), mode, key)}
		rnd := rand.New(rand.NewPCG(1, uint64(mode)))
		for range 300 {
			src := 1 + rnd.IntN(2)
			dst := 0
			if rnd.IntN(4) == 0 {
				dst = 3 - src // goes astray
			}
			got, p, ok := a.Open(sealed(t, from[src], dst, "hello"))
			if ok != (dst == 0) || ok && (got != src || string(p) != "hello" || cap(p) != len(p)) {
				t.Fatalf("%v: %q of rank %d to %d: opened %v, of rank %d", mode, p, src, dst, ok, got)
			}
		}
	}
}

// TestUnsealable has sealing fail, which it does when a key has been used up: the rank is told
// why, once.
func TestUnsealable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := lives(t, 0, life(0), seal.Authenticated, jobkey.New())
		told := make(chan error, 2)
		a.exhausted = func(err error) { told <- err }
		for range 2 {
			if a.Seal(1, make([]byte, 1<<17)) {
				t.Fatal("sealed")
			}
		}
		synctest.Wait()
		if n := len(told); n != 1 {
			t.Fatalf("two datagrams that cannot be sealed are told of %d times", n)
		}
		if err := <-told; err == nil {
			t.Error("no reason")
		}
		if a.Seal(7, make([]byte, 100)) {
			t.Error("sealed for rank 7 of 3")
		}
	})
}

// counter counts messages.
type counter struct{ n, bytes, done int }

func (c *counter) Receive(m *conduits.Message) {
	c.n++
	c.bytes += len(m.Payload)
}
func (c *counter) Complete(uint64, conduits.Event, uint64, error) { c.done++ }

// TestStrangers has a sender without the key send all kinds of things to a job that
// goes on meanwhile, under any numbers.
func TestStrangers(t *testing.T) {
	const n, rounds, noise = 2, 300, 20
	eps, err := Joined(seal.Authenticated, nil)(n, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	e0 := eps[0].(*joinedHere)
	to := e0.client.Addr(0)
	rnd := rand.New(rand.NewPCG(1, 1))
	other := sealingOf(jobkey.New(), 1, n, e0.client.Incarnation(1), seal.Authenticated, e0.client.Incarnation)
	got := make([]counter, n)
	var wg sync.WaitGroup
	for r, ep := range eps {
		wg.Go(func() {
			if err := ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &got[r]}); err != nil {
				t.Error(err)
				return
			}
			for i := range rounds {
				for ep.Send(1-r, conduits.Request, 1, []uint32{1}) != conduits.Ready {
					ep.Poll()
				}
				if r == 1 {
					for range noise {
						b := make([]byte, rnd.IntN(1500))
						for i := range b {
							b[i] = byte(rnd.Uint32())
						}
						if rnd.IntN(2) == 0 { // well formed, with another key
							b, _ = other.s.Seal(nil, 0, b)
						}
						if _, err := stranger.WriteToUDPAddrPort(b, to); err != nil {
							t.Error(err)
						}
					}
				}
				if err := conduits.Wait(ep, nil, func() bool { return got[r].n > i }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	var s conduits.Stats
	e0.Stats(&s)
	// The socket may have been full at times.
	if s.Refused == 0 || s.Refused > rounds*noise {
		t.Errorf("%d of %d datagrams refused", s.Refused, rounds*noise)
	}
	if c := e0.Refused(); c.BadTag == 0 || c.Malformed == 0 {
		t.Errorf("refused: %+v", c)
	}
	if d := e0.Diagnosis(); !strings.Contains(d, "bad tag") || !strings.Contains(d, "2 peers met") && !strings.Contains(d, "1 peers met") {
		t.Errorf("diagnosis: %s", d)
	}
	for _, ep := range eps {
		wg.Go(func() {
			if err := ep.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if bytes.Contains([]byte(e0.Diagnosis()), []byte("not all")) {
		t.Errorf("after Close: %s", e0.Diagnosis())
	}
}

// TestTooLong: a datagram that is longer than those of the job is refused, in every mode,
// however well it is sealed, and counted.
func TestTooLong(t *testing.T) {
	for _, mode := range []seal.Mode{seal.Authenticated, seal.Encrypted, seal.None} {
		key := jobkey.New()
		a, b := lives(t, 0, life(0), mode, key), lives(t, 1, life(1), mode, key)
		d := sealed(t, a, 1, strings.Repeat("x", 1000))
		b.most = len(d) - 1
		if _, _, ok := b.Open(bytes.Clone(d)); ok || b.refused() != (seal.Counts{Malformed: 1}) {
			t.Errorf("%v: %d bytes where %d are the most: opened %v, %+v", mode, len(d), b.most, ok, b.refused())
		}
		b.most = len(d)
		if _, p, ok := b.Open(d); !ok || len(p) != 1000 {
			t.Errorf("%v: %d bytes where that is the most: opened %v", mode, len(d), ok)
		}
	}
}

// BenchmarkRefuseLong is a datagram of 65,507 bytes of a sender without the key that has
// copied the beginning of one that passes.
func BenchmarkRefuseLong(b *testing.B) {
	key := jobkey.New()
	from, to := lives(b, 0, life(0), seal.Authenticated, key), lives(b, 1, life(1), seal.Authenticated, key)
	first := sealed(b, from, 1, "x")
	d := append(bytes.Clone(first), make([]byte, 65507-len(first))...)
	to.Open(first)
	for _, most := range []int{1400, 65507} {
		b.Run(fmt.Sprint(most), func(b *testing.B) {
			to.most = most
			for b.Loop() {
				if _, _, ok := to.Open(d); ok {
					b.Fatal("opened")
				}
			}
		})
	}
}
