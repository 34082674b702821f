package rendezvous

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"

	"pgregory.net/rapid"
)

// TestColumn compares columns with what went into them.
func TestColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.OneOf(
			rapid.Uint64Range(0, 3),
			rapid.Uint64Range(1<<40, 1<<40+1<<16),
			rapid.SampledFrom([]uint64{0, 1, 255, 256, math.MaxUint32, math.MaxUint64 - 1, math.MaxUint64}),
			rapid.Uint64(),
		), 1, 50).Draw(t, "v")
		b := appendColumn(nil, v)
		p := parser{b: b}
		c := p.column(len(v), 0)
		if !p.done() {
			t.Fatalf("%x of %v is not read", b, v)
		}
		for i := range v {
			if c.at(i) != v[i] {
				t.Fatalf("%d is %d, not %d: %x", i, c.at(i), v[i], b)
			}
		}
		low, high := slices.Min(v), slices.Max(v)
		for n := range len(b) {
			p := parser{b: b[:n]}
			if p.column(len(v), 0); p.done() {
				t.Fatalf("read from %d of %d bytes", n, len(b))
			}
		}
		if high < math.MaxUint64 {
			p = parser{b: b}
			if p.column(len(v), high+1); p.bad {
				t.Fatalf("%v is not below %d", v, high+1)
			}
		}
		if high > 0 {
			p = parser{b: b}
			if p.column(len(v), high); !p.bad {
				t.Fatalf("%v is below %d", v, high)
			}
		}
		if want := columnHeader + len(v)*8; low == high && len(b) != columnHeader || len(b) > want {
			t.Fatalf("%d bytes for %v", len(b), v)
		}
	})
}

// TestTable builds tables of random ranks, through all that lies between the
// hello and the lookup.
func TestTable(t *testing.T) {
	ips := []netip.Addr{
		netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("10.1.2.4"), netip.MustParseAddr("fd00::7"),
		netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"),
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(1, 6), rapid.IntRange(100, 400)).Draw(t, "size")
		public := rapid.OneOf(rapid.Just(0), rapid.Just(32), rapid.IntRange(0, MaxPublic)).Draw(t, "bytes announced")
		s := &Server{c: ServerConfig{Size: size}, seats: make([]seat, size)}
		for i := range s.seats {
			s.seats[i] = seat{
				addr: rapid.SampledFrom(ips).Draw(t, "addr"), port: rapid.Uint16().Draw(t, "port"),
				host: rapid.Uint16Range(0, 9).Draw(t, "host"), incarnation: rapid.Uint64().Draw(t, "incarnation"),
				public:  rapid.SliceOfN(rapid.Byte(), public, public).Draw(t, "announced"),
				segment: segment{rapid.Uint64().Draw(t, "segment"), rapid.Uint32().Draw(t, "rights")},
			}
		}
		whole := s.table(NoRank)
		tab, err := parseTable(whole, size)
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) > maxTable(size) {
			t.Fatalf("%d bytes for %d ranks, more than %d", len(whole), size, maxTable(size))
		}
		c := &Client{table: tab, size: size}
		hosts := map[uint16]int{}
		for i, q := range s.seats {
			if _, ok := hosts[q.host]; !ok {
				hosts[q.host] = len(hosts)
			}
			if !bytes.Equal(c.Public(i), q.public) {
				t.Fatalf("rank %d has announced %x; read %x", i, q.public, c.Public(i))
			}
			if c.Addr(i) != netip.AddrPortFrom(q.addr, q.port) || c.Incarnation(i) != q.incarnation || c.Host(i) != hosts[q.host] {
				t.Fatalf("rank %d is %+v; read %v, %d, %d (want host %d)", i, q, c.Addr(i), c.Incarnation(i), c.Host(i), hosts[q.host])
			}
		}
		b := s.segments()
		seg, err := parseSegments(b, size)
		if err != nil || len(b) > maxSegments(size) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		c.seg.Store(seg)
		for i, q := range s.seats {
			if n, r := c.Segment(i); n != q.segment.size || r != q.segment.rights {
				t.Fatalf("rank %d has attached %+v; read %d, %d", i, q.segment, n, r)
			}
		}
		if _, err := parseTable(whole, size+1); err == nil {
			t.Fatal("read as one of another size")
		}
		if _, err := parseTable(whole[:len(whole)-1], size); err == nil {
			t.Fatal("read without its end")
		}
	})
}

// TestLoopback: a rank that came over the loopback interface is found where others
// have found the service, if there are others, and unless the address was chosen.
func TestLoopback(t *testing.T) {
	lo, out, far := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for _, c := range []struct {
		seats []seat
		want  []netip.Addr
	}{
		{[]seat{{addr: lo, loop: true, at: lo}, {addr: lo, loop: true, at: lo}}, []netip.Addr{lo, lo}},
		{[]seat{{addr: lo, loop: true, at: lo}, {addr: far, at: out}}, []netip.Addr{out, far}},
		{[]seat{{addr: lo, at: lo}, {addr: far, at: out}}, []netip.Addr{lo, far}},
		{[]seat{{addr: out, at: lo}, {addr: far, at: out}, {addr: lo, loop: true, at: lo}}, []netip.Addr{out, far, out}},
	} {
		tab, err := parseTable((&Server{seats: c.seats}).table(NoRank), len(c.seats))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if a := tab.addrs[tab.addr.at(i)]; a != want {
				t.Errorf("%+v: rank %d is at %v, want %v", c.seats, i, a, want)
			}
		}
	}
}

func TestMissingText(t *testing.T) {
	for want, m := range map[string]missing{
		"rank 3":                          {1, []int{3}},
		"ranks 3 and 4":                   {2, []int{3, 4}},
		"ranks 3, 4 and 9":                {3, []int{3, 4, 9}},
		"ranks 1, 2, 3, 4, 5, 6, 7 and 8": {8, []int{1, 2, 3, 4, 5, 6, 7, 8}},
		"ranks 1, 2, 3, 4, 5, 6, 7, 8 and 1 more": {9, []int{1, 2, 3, 4, 5, 6, 7, 8}},
		"ranks": {},
	} {
		if got := m.String(); got != want {
			t.Errorf("%+v is %q, want %q", m, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range [][2]string{{"abc", "abc"}, {"abcdefgh", "abcdef"}, {"abcdeé", "abcde"}, {"a\xffb", "a?b"}, {"日本語", "日本"}} {
		if got := clip(c[0], 6); got != c[1] {
			t.Errorf("%q is clipped to %q, want %q", c[0], got, c[1])
		}
	}
}

// again checks that what decode has taken for a message encodes to the same
// bytes, if both are functions of one kind of message.
func again(t *testing.T, b []byte, ok bool, encode func([]byte) []byte) {
	if ok && !bytes.Equal(encode(nil), b) {
		t.Errorf("%x is read, and written as %x", b, encode(nil))
	}
}

func FuzzHello(f *testing.F) {
	h := hello{Hello{1, 4, "host", 7, netip.MustParseAddr("10.0.0.1"), 5, []byte{1, 2}, "agree", "job"}, true, 77, 1 << 63}
	f.Add(h.append(nil))
	h.Addr = netip.MustParseAddr("fd00::1")
	f.Add(h.append(nil))
	f.Add([]byte{9, 9})
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, v, ok := parseHello(b)
		if ok && v == version {
			again(t, b, ok, h.append)
			if len(h.Host) > MaxHost || len(h.Agree) > MaxAgree {
				t.Errorf("too long: %+v", h)
			}
		}
	})
}

func FuzzSegment(f *testing.F) {
	f.Add((&segment{1, 2}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := parseSegment(b)
		again(t, b, ok, s.append)
	})
}

func FuzzRequest(f *testing.F) {
	f.Add((&request{1, "key", []byte("value")}).append(nil))
	f.Add((&request{id: 1}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := parseRequest(b)
		again(t, b, ok, r.append)
		if ok && len(r.value) > MaxValue {
			t.Errorf("%d bytes", len(r.value))
		}
	})
}

// FuzzLook: what is said about ranks that do not answer.
func FuzzLook(f *testing.F) {
	f.Add((&Sight{PID: 77, State: 'R', Took: 1, Ran: 2, Delayed: 3, Faults: 4}).append(nil))
	f.Add((&Sight{PID: 77, Took: 1, Ran: 2}).append(nil)) // a process without a state
	f.Add((&question{1, 2, 3, 4}).append(nil))
	f.Add((&echo{1, 2, sys.Activity{State: 'S', Ran: 3, Delayed: 4, Faults: 5}}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := parseSight(b)
		again(t, b, ok, s.append)
		if ok && errs.Printable(s.String(), 1000) != s.String() {
			t.Errorf("%q", s.String())
		}
		q, ok := parseQuestion(b)
		again(t, b, ok, q.append)
		e, ok := parseEcho(b)
		again(t, b, ok, e.append)
	})
}

func FuzzFailure(f *testing.F) {
	f.Add((&failure{NoRank, 1, "cause"}).append(nil))
	f.Add((&failure{65535, -3, ""}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, ok := parseFailure(b)
		if !ok {
			return
		}
		// The cause is escaped as it is read. What it was then stays as it is.
		if x.cause != errs.Line(x.cause, 0) {
			t.Errorf("the cause %q does not fit one line", x.cause)
		}
		if bytes.HasSuffix(b, []byte(x.cause)) && len(b) == 8+len(x.cause) {
			again(t, b, ok, x.append)
		}
		y, ok := parseFailure(x.append(nil))
		if x.cause = clip(x.cause, maxCause); !ok || y != x {
			t.Errorf("%+v is written, and read as %+v", x, y)
		}
		if x.rank < NoRank || x.rank >= jobenv.MaxRanks {
			t.Errorf("rank %d", x.rank)
		}
	})
}

func FuzzWelcome(f *testing.F) {
	f.Add((&welcome{[16]byte{1, 2}, true, 30000}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, ok := parseWelcome(b)
		again(t, b, ok, w.append)
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add((&answer{1, badArg, []byte("text")}).append(nil))
	f.Add((&answer{1, jobFailed, (&failure{1, 2, "x"}).append(nil)}).append(nil))
	f.Add((&answer{1, numVerdict, nil}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := parseAnswer(b)
		again(t, b, ok, a.append)
		if ok && a.err() == nil {
			t.Error("no error")
		}
	})
}

func FuzzMissing(f *testing.F) {
	f.Add((&missing{2, []int{0, 7}}).append(nil))
	f.Add((&missing{100, []int{1, 2, 3, 4, 5, 6, 7, 8}}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := parseMissing(b)
		again(t, b, ok, m.append)
		if s := m.String(); ok && (len(s) > 200 || !strings.HasPrefix(s, "rank")) {
			t.Errorf("%q", s)
		}
	})
}

func FuzzRanks(f *testing.F) {
	f.Add(appendRanks(nil, []uint16{0, 65535}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := parseRanks(b)
		again(t, b, ok, func(b []byte) []byte { return appendRanks(b, r) })
	})
}

func FuzzPart(f *testing.F) {
	f.Add((&part{3, []byte{1, 2}}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := parsePart(b)
		again(t, b, ok, p.append)
	})
}

func FuzzTable(f *testing.F) {
	a := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	f.Add(appendTable(nil, a, []uint16{0, 1, 0}, []uint16{1, 2, 3}, []uint64{1, 1 << 60, 7}, []uint16{0, 1, 0}, []byte("abcdef")), 3)
	f.Add(appendTable(nil, a[:1], []uint16{0}, []uint16{1}, []uint64{1}, []uint16{0}, nil), 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size < 1 || size > 1<<10 {
			return
		}
		tab, err := parseTable(b, size)
		if err != nil {
			return
		}
		c := Client{table: tab}
		for r := range size {
			if a := c.Addr(r); !a.IsValid() {
				t.Errorf("rank %d at %v", r, a)
			}
			if h := c.Host(r); h < 0 || h >= size {
				t.Errorf("rank %d on host %d", r, h)
			}
			c.Incarnation(r)
			c.Public(r)
		}
	})
}

func FuzzSegments(f *testing.F) {
	f.Add(appendSegments(nil, []uint64{1, 1 << 40}, []uint32{1, 7}), 2)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size < 1 || size > 1<<10 {
			return
		}
		s, err := parseSegments(b, size)
		if err != nil {
			return
		}
		for r := range size {
			s.size.at(r)
			if s.rights.at(r) > math.MaxUint32 {
				t.Errorf("rank %d has rights %x", r, s.rights.at(r))
			}
		}
	})
}

// FuzzFrame reads a stream of frames; none is longer than allowed, and what was
// read is what was there.
func FuzzFrame(f *testing.F) {
	f.Add(frame(frame(nil, kLeave, nil), kPut, (&request{1, "k", nil}).append), 100)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1}, maxFrame)
	f.Add([]byte{0, 0, 0, 0, 1}, maxFrame)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if limit < 1 || limit > maxFrame {
			return
		}
		r := bytes.NewReader(b)
		var buf, back []byte
		for {
			k, body, err := readFrame(r, &buf, limit)
			if err != nil {
				break
			}
			if len(body)+1 > limit {
				t.Fatalf("a body of %d bytes; limit %d", len(body), limit)
			}
			back = frame(back, k, func(b []byte) []byte { return append(b, body...) })
		}
		if !bytes.HasPrefix(b, back) {
			t.Errorf("%x is read as %x", b, back)
		}
	})
}

// FuzzHandle has a rank receive whatever a service with the key may send, in any
// order: it must not do more than give up.
func FuzzHandle(f *testing.F) {
	tab := parts(kTable, appendTable(nil, []netip.Addr{netip.MustParseAddr("10.0.0.1")}, []uint16{0, 0}, []uint16{1, 2}, []uint64{1, 2}, []uint16{0, 1}, nil))
	seg := parts(kAttached, appendSegments(nil, []uint64{1, 2}, []uint32{1, 2}))
	fail := frame(nil, kFailed, (&failure{1, 2, "x"}).append)
	left := frame(nil, kLeft, func(b []byte) []byte { return appendRanks(b, []uint16{0, 1}) })
	bye := frame(nil, kBye, nil)
	f.Add(slices.Concat(tab, seg, left, fail, bye))
	f.Add(slices.Concat(seg, tab))
	f.Add(slices.Concat(tab, tab))
	f.Add(slices.Concat(fail, tab, fail))
	f.Add(slices.Concat(tab, bye, bye, fail))
	f.Add(slices.Concat(tab, frame(nil, kEcho, (&echo{number: 1, pid: 1}).append), fail))
	f.Add(slices.Concat(tab, fail, left, seg))
	f.Add(slices.Concat(tab, frame(nil, kAnswer, (&answer{id: 1}).append), frame(nil, kMissing, (&missing{}).append), frame(nil, kOver, nil), left))
	f.Fuzz(func(t *testing.T, b []byte) {
		var events []string
		c := newClient("server", "server", Hello{Rank: 1, Size: 2}, Events{
			Attached: func() { events = append(events, "attached") },
			Failed:   func(p *errs.PeerError) { events = append(events, fmt.Sprint("failed ", p.Rank)) },
			Left:     func(rank int) { events = append(events, fmt.Sprint("left ", rank)) },
		})
		c.conn, c.out.w, c.out.next = nothing{}, io.Discard, c.next
		c.leaving = true
		c.read(bytes.NewReader(b))
		if !reflect.DeepEqual(c.isReady(), c.table != nil) || !c.isReady() && len(events) > 0 {
			t.Errorf("events %v, table %v", events, c.table)
		}
		if i := slices.IndexFunc(events, func(e string) bool { return strings.HasPrefix(e, "failed") }); i >= 0 && i != len(events)-1 {
			t.Errorf("events %v", events)
		}
		if c.failure() == nil {
			t.Error("there is no reason why the connection has ended")
		}
	})
}

// nothing is a connection of which only Close is used.
type nothing struct{ net.Conn }

func (nothing) Close() error { return nil }
