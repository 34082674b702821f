package faultproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"pgregory.net/rapid"
)

// limit is longer than anything here takes, on any machine.
const limit = 5 * time.Minute

// ranks are the sockets of a job that a proxy stands between.
type ranks struct {
	p     *Proxy
	conns []*net.UDPConn
	told  [][]netip.AddrPort // by viewer and rank
}

func open(t testing.TB, c Config, host netip.Addr) *ranks {
	t.Helper()
	c.Listen = host
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	r := &ranks{p: p}
	for range c.Size {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(host, 0)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetReadBuffer(8 << 20)
		r.conns = append(r.conns, conn)
	}
	for viewer := range c.Size {
		told := make([]netip.AddrPort, c.Size)
		for rank := range told {
			told[rank] = p.Rewrite(viewer, rank, r.addr(rank))
		}
		r.told = append(r.told, told)
	}
	return r
}

func (r *ranks) addr(rank int) netip.AddrPort {
	return r.conns[rank].LocalAddr().(*net.UDPAddr).AddrPort()
}

func (r *ranks) send(t testing.TB, from, to int, b []byte) {
	t.Helper()
	if _, err := r.conns[from].WriteToUDPAddrPort(b, r.told[from][to]); err != nil {
		t.Fatal(err)
	}
}

// recv returns the next datagram that rank gets and the rank it takes for its sender.
func (r *ranks) recv(t testing.TB, rank int) (b []byte, from int) {
	t.Helper()
	b = make([]byte, 1<<16)
	_ = r.conns[rank].SetReadDeadline(time.Now().Add(limit))
	n, a, err := r.conns[rank].ReadFromUDPAddrPort(b)
	if err != nil {
		t.Fatalf("rank %d: %v", rank, err)
	}
	return b[:n], slices.Index(r.told[rank], a)
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// modelled is what a flow's receiver gets of datagrams in, when nothing is late
// but by being overtaken and all that waits is let go in the end.
func modelled(c Config, from, to int, in [][]byte) (out [][]byte, s Stats) {
	type waiting struct {
		b      []byte
		behind int
	}
	var held []waiting
	for i, b := range in {
		s.Received++
		x := decide(c.Seed, from, to, uint64(i), &c.Faults)
		if x.n == 0 {
			s.Dropped++
		}
		if x.n == 2 {
			s.Duplicated++
		}
		for _, k := range x.copy[:x.n] {
			s.Corrupted += count(k.corrupt)
			s.Truncated += count(k.truncate)
			s.Extended += count(k.extend)
			if k.behind > 0 {
				s.Reordered++
				held = append(held, waiting{k.apply(b), k.behind})
				continue
			}
			out = append(out, k.apply(b))
			var still []waiting
			for _, h := range held {
				if h.behind--; h.behind == 0 {
					out = append(out, h.b)
				} else {
					still = append(still, h)
				}
			}
			held = still
		}
	}
	for _, h := range held {
		out = append(out, h.b)
	}
	s.Sent = uint64(len(out))
	return out, s
}

// TestModel sends random datagrams over flows with random faults: exactly what
// the model says arrives, in its order.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		chance := rapid.Float64Range(0, 1)
		c := Config{
			Size: rapid.IntRange(2, 4).Draw(rt, "size"), Seed: rapid.Uint64().Draw(rt, "seed"),
			Faults: Faults{
				Drop: chance.Draw(rt, "drop") / 2, Duplicate: chance.Draw(rt, "duplicate"), Corrupt: chance.Draw(rt, "corrupt"),
				Truncate: chance.Draw(rt, "truncate"), Extend: chance.Draw(rt, "extend"), Reorder: chance.Draw(rt, "reorder"),
				ReorderBy: rapid.IntRange(1, 20).Draw(rt, "by"), ReorderFor: time.Hour,
			},
		}
		r := open(t, c, loopback)
		defer r.p.Close()
		_ = c.Faults.ensure()
		sent := map[[2]int][][]byte{}
		n := rapid.IntRange(0, 200).Draw(rt, "datagrams")
		for range n {
			from := rapid.IntRange(0, c.Size-1).Draw(rt, "from")
			to := (from + rapid.IntRange(1, c.Size-1).Draw(rt, "to")) % c.Size
			b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "bytes")
			sent[[2]int{from, to}] = append(sent[[2]int{from, to}], b)
			r.send(t, from, to, b)
		}
		wait(t, func() bool { return r.p.Stats(All, All).Received == uint64(n) })
		r.p.Flush()
		got := map[[2]int][][]byte{}
		for to := range c.Size {
			for range r.p.Stats(All, to).Sent {
				b, from := r.recv(t, to)
				got[[2]int{from, to}] = append(got[[2]int{from, to}], b)
			}
		}
		for from := range c.Size {
			for to := range c.Size {
				l := [2]int{from, to}
				want, stats := modelled(c, from, to, sent[l])
				if !slices.EqualFunc(got[l], want, bytes.Equal) {
					rt.Fatalf("from %d to %d: %d datagrams came, want %d: %x, want %x", from, to, len(got[l]), len(want), got[l], want)
				}
				if s := r.p.Stats(from, to); s != stats {
					rt.Fatalf("from %d to %d: %+v, want %+v", from, to, s, stats)
				}
			}
		}
	})
}

// wait polls for what a goroutine of the proxy will do.
func wait(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !f(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("it never comes")
		}
	}
}

// TestRates compares how often each fault happens with its probability: within
// five standard deviations, for fixed seeds.
func TestRates(t *testing.T) {
	f := Storm()
	f.Truncate, f.Extend, f.Delay = 0.3, 0.01, 0.7
	if err := f.ensure(); err != nil {
		t.Fatal(err)
	}
	const n = 20000
	for seed := range uint64(5) {
		for _, l := range [][2]int{{0, 1}, {1, 0}, {70000, 3}} {
			var drop, twice, corrupt, truncate, extend, reorder, delay, copies float64
			for i := range uint64(n) {
				x := decide(seed, l[0], l[1], i, &f)
				if x.n == 0 {
					drop++
				}
				if x.n == 2 {
					twice++
				}
				for _, c := range x.copy[:x.n] {
					copies++
					corrupt += float64(count(c.corrupt))
					truncate += float64(count(c.truncate))
					extend += float64(count(c.extend))
					reorder += float64(count(c.behind > 0))
					delay += float64(count(c.delay > 0))
					if c.behind > f.ReorderBy || c.delay > f.DelayBy || c.delay < 0 {
						t.Fatalf("%+v", c)
					}
				}
			}
			for _, x := range []struct {
				name       string
				got, of, p float64
			}{
				{"drop", drop, n, f.Drop},
				{"duplicate", twice, n, (1 - f.Drop) * f.Duplicate},
				{"corrupt", corrupt, copies, f.Corrupt},
				{"truncate", truncate, copies, f.Truncate},
				{"extend", extend, copies, f.Extend},
				{"delay", delay, copies, f.Delay},
				{"reorder", reorder, copies, f.Reorder * (1 - f.Delay)},
			} {
				if dev := math.Abs(x.got - x.of*x.p); dev > 5*math.Sqrt(x.of*x.p*(1-x.p)) {
					t.Errorf("seed %d, flow %v: %s happens to %v of %v; its chance is %v", seed, l, x.name, x.got, x.of, x.p)
				}
			}
		}
	}
}

// TestIndependent: a fate depends on each of the seed, the flow and the number,
// and one fault's chance does not change which datagrams the others meet.
func TestIndependent(t *testing.T) {
	f := Storm()
	_ = f.ensure()
	base := decide(1, 2, 3, 4, &f)
	if base != decide(1, 2, 3, 4, &f) {
		t.Error("not the same twice")
	}
	for i, other := range []fate{decide(2, 2, 3, 4, &f), decide(1, 3, 2, 4, &f), decide(1, 2, 4, 4, &f), decide(1, 2, 3, 5, &f)} {
		if other.copy[0].damage == base.copy[0].damage {
			t.Errorf("%d: the same for another datagram", i)
		}
	}
	g := f
	g.Corrupt = 1
	for i := range uint64(1000) {
		a, b := decide(1, 0, 1, i, &f), decide(1, 0, 1, i, &g)
		a.copy[0].corrupt, a.copy[1].corrupt = true, true
		if a != b {
			t.Fatalf("datagram %d: %+v, with corruption %+v", i, a, b)
		}
	}
}

// TestDamage: what is corrupted, cut or extended differs in just that.
func TestDamage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(rt, "bytes")
		c := copyFate{damage: rapid.Uint64().Draw(rt, "damage")}
		kind := rapid.IntRange(0, 3).Draw(rt, "kind")
		c.corrupt, c.truncate, c.extend = kind == 1, kind == 2, kind == 3
		before := bytes.Clone(b)
		got := c.apply(b)
		if !bytes.Equal(b, before) {
			rt.Fatal("the original has changed")
		}
		same := 0
		for same < min(len(b), len(got)) && b[same] == got[same] {
			same++
		}
		switch kind {
		case 0:
			if !bytes.Equal(b, got) {
				rt.Fatalf("%x came of %x", got, b)
			}
		case 1:
			if len(got) != len(b) || len(b) > 0 && same == len(b) {
				rt.Fatalf("%x came of %x", got, b)
			}
		case 2:
			if len(b) > 0 && len(got) >= len(b) || same != len(got) {
				rt.Fatalf("%x came of %x", got, b)
			}
		case 3:
			if len(got) <= len(b) || len(got) > len(b)+64 || same != len(b) {
				rt.Fatalf("%x came of %x", got, b)
			}
		}
	})
	full := copyFate{extend: true}
	if n := len(full.apply(make([]byte, maxDatagram))); n != maxDatagram {
		t.Errorf("extended to %d bytes", n)
	}
}

// TestCut cuts links by direction and rank.
func TestCut(t *testing.T) {
	r := open(t, Config{Size: 3}, loopback)
	number := uint64(0)
	// through reports whether a datagram passes; one of an uncut flow shows that a
	// lost one is not just late.
	through := func(from, to int) bool {
		number++
		before := r.p.Stats(from, to)
		r.send(t, from, to, binary.BigEndian.AppendUint64(nil, number))
		wait(t, func() bool { return r.p.Stats(from, to).Received == before.Received+1 })
		s := r.p.Stats(from, to)
		if s.Sent == before.Sent {
			if s.Cut != before.Cut+1 {
				t.Errorf("%+v", s)
			}
			return false
		}
		b, src := r.recv(t, to)
		if binary.BigEndian.Uint64(b) != number || src != from {
			t.Errorf("datagram %x from %d; number %d from %d was sent", b, src, number, from)
		}
		return true
	}
	check := func(what string, cut ...[2]int) {
		t.Helper()
		for from := range 3 {
			for to := range 3 {
				if from != to && through(from, to) == slices.Contains(cut, [2]int{from, to}) {
					t.Errorf("%s: from %d to %d", what, from, to)
				}
			}
		}
	}
	check("whole")
	r.p.Cut(0, 1)
	check("one way", [2]int{0, 1})
	r.p.Isolate(2)
	check("isolated", [2]int{0, 1}, [2]int{2, 0}, [2]int{2, 1}, [2]int{0, 2}, [2]int{1, 2})
	r.p.Rejoin(2)
	r.p.Heal(0, 1)
	check("healed")
	r.p.Cut(All, 0)
	check("deaf", [2]int{1, 0}, [2]int{2, 0})
	if !r.p.Inject(2, 0, []byte("attack")) {
		t.Error("not injected")
	}
	if b, src := r.recv(t, 0); string(b) != "attack" || src != 2 {
		t.Errorf("%q from %d", b, src)
	}
}

// TestLate: what is delayed comes, not before its time.
func TestLate(t *testing.T) {
	f := Faults{Delay: 1, DelayBy: 20 * time.Millisecond}
	r := open(t, Config{Size: 2, Seed: 3, Faults: f}, loopback)
	_ = f.ensure()
	const n = 50
	var sent [n]time.Time
	for i := range n {
		sent[i] = time.Now()
		r.send(t, 0, 1, []byte{byte(i)})
	}
	for range n {
		b, _ := r.recv(t, 1)
		if took, least := time.Since(sent[b[0]]), decide(3, 0, 1, uint64(b[0]), &f).copy[0].delay; took < least {
			t.Errorf("datagram %d came after %v, not %v", b[0], took, least)
		}
	}
}

// TestReorderedAlone: a datagram that waits to be overtaken and is not comes nevertheless.
func TestReorderedAlone(t *testing.T) {
	r := open(t, Config{Size: 2, Faults: Faults{Reorder: 1, ReorderFor: time.Millisecond}}, loopback)
	r.send(t, 1, 0, []byte("alone"))
	if b, _ := r.recv(t, 0); string(b) != "alone" {
		t.Errorf("%q", b)
	}
}

// TestMoved: a rank that is started again at another address is found there.
func TestMoved(t *testing.T) {
	r := open(t, Config{Size: 2}, loopback)
	again, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	r.conns[1] = again
	if a := r.p.Rewrite(0, 1, r.addr(1)); a != r.told[0][1] {
		t.Errorf("another relay, %v", a)
	}
	r.send(t, 0, 1, []byte("moved"))
	if b, _ := r.recv(t, 1); string(b) != "moved" {
		t.Errorf("%q", b)
	}
	if a := r.p.Rewrite(1, 1, r.addr(1)); a != r.addr(1) {
		t.Errorf("its own address became %v", a)
	}
}

// TestIPv6 relays on the other loopback address, and the largest datagram.
func TestIPv6(t *testing.T) {
	conn, err := net.ListenPacket("udp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6: %v", err)
	}
	conn.Close()
	r := open(t, Config{Size: 2}, netip.IPv6Loopback())
	b := bytes.Repeat([]byte{7}, maxDatagram)
	r.send(t, 0, 1, b)
	if got, _ := r.recv(t, 1); !bytes.Equal(got, b) {
		t.Errorf("%d bytes", len(got))
	}
}

// TestMisuse: what cannot be is refused, and a closed proxy is closed.
func TestMisuse(t *testing.T) {
	for _, c := range []Config{
		{},
		{Size: 1, Faults: Faults{Drop: 1.1}},
		{Size: 1, Faults: Faults{Delay: math.NaN()}},
		{Size: 1, Faults: Faults{ReorderBy: -1}},
	} {
		if _, err := New(c); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	p, err := New(Config{Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.SetFaults(0, All, Faults{Drop: -1}); !errors.Is(err, errs.ErrBadArg) {
		t.Error(err)
	}
	if p.Inject(0, 1, nil) {
		t.Error("injected into nothing")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); !errors.Is(err, errs.ErrClosed) {
		t.Error(err)
	}
	a := netip.AddrPortFrom(loopback, 9)
	if got := p.Rewrite(0, 1, a); got != a {
		t.Errorf("a closed proxy has a relay: %v", got)
	}
}
