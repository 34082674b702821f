package distancetest

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/internal/lab/wan"
	"github.com/argon-go/argon/segment"
)

// narrow is a path for datagrams of at most size bytes.
func narrow(size int) wan.Path {
	return wan.Path{Rate: 50e6, Delay: 10 * time.Millisecond, MTU: size + udpHeader, Seed: 1}.Queued(1)
}

// searches makes a configuration that knows nothing of the path.
func searches(most int) func(c *engine.Config) {
	return func(c *engine.Config) {
		c.Datagram = most
		c.Sure = func(int) int { return 0 }
	}
}

// sizes follows the longest datagrams that arrive.
type sizes struct{ most int }

// watch notes the longest datagram that rank r gets from now on.
func (s *sizes) watch(r *rank) { r.size = func(n int) { s.most = max(s.most, n) } }

// TestPathMTU has transfers find the largest datagram of a path.
func TestPathMTU(t *testing.T) {
	for _, c := range []struct{ most, path, least int }{
		{1400, 1200, 1200}, // the smallest there is
		{1400, 1472, 1400}, // the largest at once
		{1400, 1300, 1300 - 16},
		{1472, 1452, 1452 - 16},
		{8972, 1472, 1472 - 16},
		{8972, 4000, 4000 - 16},
		{8972, 8972, 8972},
		{1000, 1472, 1000},
		{65000, 65000, 65000},
	} {
		p := narrow(c.path)
		n := wan.New(p)
		b, ends := puts(t, 64<<10, depth(p), searches(c.most))
		var s sizes
		s.watch(b.ranks[1])
		n.Flow(0, ends)
		n.Run(10 * time.Second)
		st := b.ranks[0].Stats()
		// What is cut from larger data is a multiple of 8 long.
		if s.most < c.least-8 || s.most > c.path || len(b.fails) > 0 {
			t.Errorf("%+v: the longest datagram is %d, %v; %+v", c, s.most, b.fails, st)
		}
		if st.BlackHoles != 0 || st.Split != 0 || st.PathProbes > 60 {
			t.Errorf("%+v: %+v", c, st)
		}
		// What the search loses is no congestion: it costs next to nothing.
		n = wan.New(p)
		plain, ends := puts(t, 64<<10, depth(p), func(cc *engine.Config) { cc.Datagram = min(c.most, max(s.most, 256)) })
		n.Flow(0, ends)
		n.Run(10 * time.Second)
		t.Logf("%+v: %d bytes, %d probes, %s Mbit/s, without a search %s", c, s.most, st.PathProbes, mbit(b.rate(0)), mbit(plain.rate(0)))
		if b.rate(0) < 0.93*plain.rate(0) {
			t.Errorf("%+v: %s Mbit/s with a search, %s without", c, mbit(b.rate(0)), mbit(plain.rate(0)))
		}
	}
}

// TestPathShrinks has a path become narrower, and wider again, in the middle of
// puts and numbered messages: each message is delivered once, no matter how many
// datagrams it took, and all puts are written.
func TestPathShrinks(t *testing.T) {
	for _, c := range []struct {
		name          string
		loss          float64
		deaf          time.Duration // nothing comes back for so long before it,
		mute          time.Duration // or while pieces are under way
		before, after int
	}{
		{"1400 to 1200", 0, 0, 0, 1400, 1200},
		{"1400 to 1300", 0, 0, 0, 1400, 1300},
		{"8972 to 1450", 0, 0, 0, 8972, 1450},
		{"1400 to 972", 0, 0, 0, 1400, 972},
		{"1400 to 572", 0, 0, 0, 1400, 572},
		{"1400 to 548", 0, 0, 0, 1400, 548},
		{"to 572 with losses", 0.05, 0, 0, 1400, 572},
		{"with losses", 0.05, 0, 0, 1400, 1200},
		{"while acknowledgements are lost", 0, 40 * time.Millisecond, 0, 1400, 1200},
		{"before acknowledgements are lost", 0, 0, 150 * time.Millisecond, 1400, 1200},
	} {
		t.Run(c.name, func(t *testing.T) {
			const messages = 4000
			p := narrow(c.before)
			p.Loss = c.loss
			n := wan.New(p)
			rs, ends := job(t, func(cc *engine.Config) {
				searches(c.before)(cc)
				cc.RaiseTime = 3 * time.Second
				if c.after < 1200 {
					cc.Floor = 548
				}
			})
			src := make([]byte, 256<<10)
			for i := range src {
				src[i] = byte(i * 7)
			}
			sent, put := 0, 0
			var gap, last time.Duration
			progress := func(now time.Duration) { gap, last = max(gap, now-last), now }
			var seen [messages]int
			rs[0].done = func(now time.Duration, k engine.Completion) {
				if k.Err != nil {
					t.Errorf("put: %v", k.Err)
				}
				put--
				progress(now)
			}
			payload := make([]byte, 3000)
			rs[0].more = func(now time.Duration) {
				for sent < messages && time.Duration(sent)*2*time.Millisecond <= now && rs[0].Reserve(1, conduits.Request) == conduits.Ready {
					// Some in one datagram, some in several.
					b := payload[:8+sent*37%2900]
					binary.LittleEndian.PutUint64(b, uint64(sent))
					rs[0].Send(1, conduits.Request, 1, nil, b)
					sent++
				}
				for put < 8 && now < 8*time.Second {
					if _, err := rs[0].Put(1, segment.AttachBase, src, conduits.SourceDone|conduits.RemoteDone, 1); err != nil {
						t.Fatal(err)
					}
					put++
				}
			}
			rs[1].got = func(now time.Duration, m *engine.Message) {
				seen[binary.LittleEndian.Uint64(m.Payload)]++
				progress(now)
			}
			var s sizes
			s.watch(rs[1])
			n.Flow(0, ends)
			n.Run(2*time.Second - c.deaf)
			if c.deaf > 0 {
				n.Links[1].Path.Loss = 1
			}
			n.Run(2 * time.Second)
			n.Links[1].Path.Loss = c.loss
			wide := s.most
			n.Links[0].Path.MTU = c.after + udpHeader
			last, gap = n.Now(), 0
			if c.mute > 0 {
				for rs[0].Stats().Split == 0 && n.Now() < 2400*time.Millisecond {
					n.Run(n.Now() + time.Millisecond)
				}
				n.Run(n.Now() + 50*time.Millisecond) // the first of them are complete
				n.Links[1].Path.Loss = 1
				n.Run(n.Now() + c.mute)
				n.Links[1].Path.Loss = c.loss
			}
			n.Run(2500 * time.Millisecond)
			s.most = 0
			n.Run(5 * time.Second)
			narrowed, stall := s.most, gap
			n.Links[0].Path.MTU = c.before + udpHeader
			s.most = 0
			n.Run(15 * time.Second)
			st := rs[0].Stats()
			t.Logf("%d bytes, then %d, then %d; the longest stall was %v; %+v", wide, narrowed, s.most, stall, st)
			if wide < c.before || narrowed > c.after || narrowed < c.after-searchEnd-8 || s.most < c.before-2*searchEnd {
				t.Errorf("%d bytes, then %d, then %d", wide, narrowed, s.most)
			}
			if st.BlackHoles == 0 || c.deaf == 0 && st.Split == 0 { // else all that was cut before has arrived
				t.Errorf("%+v", st)
			}
			if twice := rs[1].Stats().Twice; c.mute > 0 && twice == 0 {
				t.Error("nothing came in pieces that had come before")
			}
			// Some probe time-outs: a round trip is 20 to 40 ms.
			most := 500 * time.Millisecond
			if c.after < 1200 && c.loss > 0 {
				most = time.Second // two black holes in a row, whose probes may be lost, too
			}
			if stall > most {
				t.Errorf("nothing moved for %v", stall)
			}
			for i, k := range seen {
				if k != 1 {
					t.Fatalf("message %d was delivered %d times", i, k)
				}
			}
			if string(rs[1].mem.b[:len(src)]) != string(src) {
				t.Error("the puts have not been written as they were")
			}
			if sent != messages || put != 0 || !rs[0].Drained() {
				t.Errorf("%d messages sent, %d puts under way", sent, put)
			}
		})
	}
}

// searchEnd is the engine's: less is not searched for.
const searchEnd = 16

// TestPathTooNarrow has a path carry less than the floor, from the beginning or from then on:
// the peer is given up after the dead time by an error that says so, although it is heard.
func TestPathTooNarrow(t *testing.T) {
	for _, at := range []time.Duration{0, 2 * time.Second} {
		p := narrow(1400)
		n := wan.New(p)
		b, ends := puts(t, 64<<10, depth(p), func(cc *engine.Config) {
			searches(1400)(cc)
			cc.Floor, cc.DeadTime = 548, 5*time.Second
		})
		n.Flow(0, ends)
		n.Run(at)
		n.Links[0].Path.MTU = 500 + udpHeader
		n.Run(at + 20*time.Second)
		var s *engine.SilentError
		if err := b.ranks[0].Silence(1); !errors.As(err, &s) || s.Narrow != 548 || !strings.Contains(s.Error(), "datagrams of 548 bytes") || !strings.Contains(s.Error(), "ARGON_DATAGRAM") {
			t.Errorf("from %v on: %v; %+v", at, err, b.ranks[0].Stats())
		}
	}
}

// TestPathShrinksForSome has a path become narrower while small datagrams, of the
// other class, keep arriving, so that no probe time-out shows it.
func TestPathShrinksForSome(t *testing.T) {
	p := narrow(1400)
	n := wan.New(p)
	rs, ends := job(t, searches(1400))
	large, said, heard := 0, 0, 0
	src := make([]byte, 64<<10)
	var gap, last time.Duration
	rs[0].done = func(now time.Duration, _ engine.Completion) {
		large--
		gap, last = max(gap, now-last), now
	}
	rs[1].got = func(time.Duration, *engine.Message) { heard++ }
	for at := time.Duration(0); at < 4*time.Second; at += 2 * time.Millisecond {
		n.At(at, func() {
			if rs[0].Reserve(1, conduits.Reply) == conduits.Ready {
				rs[0].Send(1, conduits.Reply, 1, nil, nil)
				said++
			}
			for ; large < 2; large++ {
				if _, err := rs[0].Put(1, segment.AttachBase, src, conduits.RemoteDone, 1); err != nil {
					t.Fatal(err)
				}
			}
			rs[0].port.Wake()
		})
	}
	n.Flow(0, ends)
	n.Run(2 * time.Second)
	n.Links[0].Path.MTU = 1200 + udpHeader
	gap, last = 0, n.Now()
	n.Run(6 * time.Second)
	st := rs[0].Stats()
	t.Logf("%d messages; the longest stall was %v; %+v", said, gap, st)
	if large != 0 || said != heard || said < 1900 || st.BlackHoles != 1 || gap > 500*time.Millisecond {
		t.Errorf("%d puts are under way, %d messages of %d arrived; the longest stall was %v; %+v", large, heard, said, gap, st)
	}
}
