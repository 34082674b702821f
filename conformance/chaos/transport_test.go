package chaos_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/loop"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// log is the Owner of a rank that one goroutine drives: it writes down what it hears.
type log struct {
	mem   []byte
	peer  []byte // mem of the other one, where puts go to
	heard []any  // uint32: the first word of a message; told; left
	seen  []byte
}

type (
	told uint64 // the cookie of a completion
	left int    // the rank
)

func (l *log) Deliver(_ int, words []uint32, _ []byte) {
	l.heard = append(l.heard, words[0])
	l.seen = append(l.seen, l.mem[words[0]])
}

func (l *log) Complete(cookie uint64, err error) {
	if err != nil || l.peer[cookie] == 0 {
		panic(fmt.Sprintf("put %d is done, with error %v, and its data are %d", cookie, err, l.peer[cookie]))
	}
	l.heard = append(l.heard, told(cookie))
}
func (l *log) Left(rank int) { l.heard = append(l.heard, left(rank)) }

func (l *log) Access(_ int, a segment.NLA, n uint64, _ segment.Rights, f func([]byte)) error {
	off := uint64(a - segment.AttachBase)
	f(l.mem[off : off+n])
	return nil
}

// fatal is a test, or a property's.
type fatal interface {
	Helper()
	Fatal(args ...any)
}

// openTwo attaches two ranks of loop under chaos.
func openTwo(t fatal, cfg chaos.TransportConfig) ([]conduits.Transport, []*log) {
	t.Helper()
	ts, err := chaos.Open(loop.Open, cfg)(2, conduits.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a, b := make([]byte, segment.PageSize), make([]byte, segment.PageSize)
	logs := []*log{{mem: a, peer: b}, {mem: b, peer: a}}
	attached := make(chan error)
	for i, tr := range ts {
		go func() {
			_, err := tr.Attach(logs[i], segment.PageSize, segment.RightsAll)
			attached <- err
		}()
	}
	for range ts {
		if err := <-attached; err != nil {
			t.Fatal(err)
		}
	}
	return ts, logs
}

// always is a probability of 1 for all.
var always = chaos.TransportConfig{Delay: 1, Defer: 1, NoCredit: 1, Wake: 1}

// TestTransportKeeps: of any misfortune, what rank 0 puts and sends arrives once, each
// message after the put that was done before it was sent, and that it has left last; and no
// poll tells more than it returns.
func TestTransportKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]float64{-1, 0, 0.5, 1})
		cfg := chaos.TransportConfig{
			Seed:  rapid.Uint64().Draw(t, "seed"),
			Delay: p.Draw(t, "delay"), Defer: p.Draw(t, "defer"), NoCredit: p.Draw(t, "no credit"), Wake: p.Draw(t, "wake"),
		}
		ts, logs := openTwo(t, cfg)
		poll := func(r int) {
			before := len(logs[r].heard)
			if n := ts[r].Poll(); n != len(logs[r].heard)-before {
				t.Fatalf("rank %d: a poll returned %d, and made %d calls", r, n, len(logs[r].heard)-before)
			}
		}
		const n = 20
		due := map[uint32]bool{} // sent, by number
		sent, begun := 0, uint32(0)
		done := func(i uint32) { due[i] = true }
		for steps := 0; sent < n; steps++ {
			if steps > 100*n {
				t.Fatalf("%d of %d messages are sent after %d steps", sent, n, steps)
			}
			if begun < n && rapid.Bool().Draw(t, "put") {
				ok, err := ts[0].Put(1, segment.AttachBase+segment.NLA(begun), []byte{byte(begun) + 1}, uint64(begun))
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					done(begun)
				}
				begun++
			}
			heard := len(logs[0].heard)
			poll(0)
			for _, h := range logs[0].heard[heard:] {
				done(uint32(h.(told)))
			}
			for i := range uint32(n) {
				if due[i] && ts[0].Send(1, []uint32{i}, nil) == conduits.Ready {
					delete(due, i)
					sent++
				}
			}
			if rapid.Bool().Draw(t, "poll") {
				poll(1)
			}
		}
		if err := ts[0].Close(); err != nil {
			t.Fatal(err)
		}
		for steps := 0; !slices.Contains(logs[1].heard, any(left(0))); steps++ {
			if steps > 100*n {
				t.Fatalf("rank 1 has heard %v after %d polls", logs[1].heard, steps)
			}
			poll(1)
		}
		var got []uint32
		for _, h := range logs[1].heard[:len(logs[1].heard)-1] {
			got = append(got, h.(uint32))
		}
		for k, i := range got {
			if logs[1].seen[k] != byte(i)+1 {
				t.Fatalf("message %d came before the data that was put before it", i)
			}
		}
		slices.Sort(got)
		for i := range uint32(n) {
			if len(got) != n || got[i] != i {
				t.Fatalf("rank 1 got %v; each of %d messages once", got, n)
			}
		}
	})
}

// TestTransportFreedom: with the default probabilities each freedom is taken; with
// negative ones none is.
func TestTransportFreedom(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   chaos.TransportConfig
		taken bool
	}{
		"default": {chaos.TransportConfig{}, true},
		"never":   {chaos.TransportConfig{Delay: -1, Defer: -1, NoCredit: -1, Wake: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ts, logs := openTwo(t, c.cfg)
			var refused, deferred, kept int
			for i := range uint32(1000) {
				for ts[0].Send(1, []uint32{i}, nil) != conduits.Ready {
					refused++
				}
				if i%8 == 7 {
					ts[1].Poll()
					if len(logs[1].heard) <= int(i) {
						kept++
					}
				}
				if done, err := ts[0].Put(1, segment.AttachBase, []byte{1}, 0); err != nil {
					t.Fatal(err)
				} else if !done {
					deferred++
				}
			}
			for len(logs[1].heard) < 1000 {
				ts[1].Poll()
			}
			sorted := slices.IsSortedFunc(logs[1].heard, func(a, b any) int { return int(a.(uint32)) - int(b.(uint32)) })
			if got := refused > 0; got != c.taken {
				t.Errorf("%d sends of 1000 had no room", refused)
			}
			if got := deferred > 0; got != c.taken {
				t.Errorf("%d puts of 1000 were deferred", deferred)
			}
			if got := kept > 0; got != c.taken {
				t.Errorf("%d polls left something", kept)
			}
			if sorted == c.taken {
				t.Errorf("messages came in order: %v", sorted)
			}
		})
	}
}

// TestTransportSeed: the same seed does the same, another one something else.
func TestTransportSeed(t *testing.T) {
	run := func(seed uint64) []any {
		ts, logs := openTwo(t, chaos.TransportConfig{Seed: seed})
		for i := range uint32(50) {
			for ts[0].Send(1, []uint32{i}, nil) != conduits.Ready {
				ts[1].Poll()
			}
		}
		for len(logs[1].heard) < 50 {
			ts[1].Poll()
		}
		return logs[1].heard
	}
	if a, b := run(1), run(1); !slices.Equal(a, b) {
		t.Errorf("one seed, two orders:\n%v\n%v", a, b)
	}
	if a, b := run(1), run(2); slices.Equal(a, b) {
		t.Error("two seeds, one order")
	}
}

// TestTransportAlways: with every probability 1 room is given, and a wait lasts, now and
// then.
func TestTransportAlways(t *testing.T) {
	ts, _ := openTwo(t, always)
	for i := range uint32(10) {
		for tries := 1; ts[0].Send(1, []uint32{i}, nil) != conduits.Ready; tries++ {
			if tries == 4 {
				t.Fatalf("message %d is refused %d times in a row", i, tries)
			}
		}
		ts[1].Poll()
	}
	ts, _ = openTwo(t, always)
	for range 4 {
		for i := range 4 {
			if i == 3 {
				ts[0].Kick()
			}
			until := ts[0].Now() + time.Minute
			if ts[0].Wait(until); ts[0].Now() >= until {
				t.Errorf("wait %d of four ended by time", i)
			}
		}
	}
}

// TestTransportNever: without misfortune a wait ends by time.
func TestTransportNever(t *testing.T) {
	ts, _ := openTwo(t, chaos.TransportConfig{Wake: -1})
	for range 20 {
		until := ts[0].Now() + time.Microsecond
		if ts[0].Wait(until); ts[0].Now() < until {
			t.Fatal("a wait without an event ended early")
		}
	}
}

// TestTransportConfig: what is no probability is refused.
func TestTransportConfig(t *testing.T) {
	for _, c := range []chaos.TransportConfig{{Delay: 2}, {Defer: math.NaN()}, {NoCredit: 1.5}, {Wake: math.Inf(1)}} {
		if _, err := chaos.Open(loop.Open, c)(2, conduits.Config{}); !errors.Is(err, conduits.ErrBadArg) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// has names the capabilities of t.
func has(t conduits.Transport) (l []string) {
	for name, ok := range map[string]bool{
		"NotifyPutter": can[conduits.NotifyPutter](t), "WordPutter": can[conduits.WordPutter](t),
		"AtomicUnit": can[conduits.AtomicUnit](t), "Reserver": can[conduits.Reserver](t),
		"ReplyLane": can[conduits.ReplyLane](t), "Direct": can[conduits.Direct](t),
		"Neighbourly": can[conduits.Neighbourly](t), "Kicker": can[conduits.Kicker](t),
	} {
		if ok {
			l = append(l, name)
		}
	}
	slices.Sort(l)
	return l
}

func can[C any](t conduits.Transport) bool {
	_, ok := conduits.CapabilityOf[C](t)
	return ok
}

// TestTransportCapabilities: chaos has the capabilities of what it is on top of, and no
// others, however often it is put there.
func TestTransportCapabilities(t *testing.T) {
	base, err := loop.Open(1, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	type plain = conduits.Transport
	for _, tr := range []conduits.Transport{
		base[0],
		struct {
			plain
			conduits.NotifyPutter
		}{plain: base[0]},
		struct {
			plain
			conduits.WordPutter
			conduits.Kicker
		}{plain: base[0]},
		struct {
			plain
			conduits.AtomicUnit
		}{plain: base[0]},
		struct {
			plain
			conduits.Reserver
			conduits.ReplyLane
		}{plain: base[0]},
		struct {
			plain
			conduits.Direct
			conduits.Neighbourly
		}{plain: base[0]},
	} {
		once := chaos.Transport(tr, chaos.TransportConfig{})
		twice := chaos.Transport(once, chaos.TransportConfig{})
		want := has(tr)
		if a, b := has(once), has(twice); !slices.Equal(a, want) || !slices.Equal(b, want) {
			t.Errorf("of %v chaos has %v, and twice %v", want, a, b)
		}
	}
}

// TestTransportClosed: after Close nothing is left to a poll that there is not.
func TestTransportClosed(t *testing.T) {
	ts, _ := openTwo(t, always)
	if err := ts[0].Close(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if st := ts[0].Send(1, []uint32{1}, nil); st != conduits.Dead {
			t.Errorf("Send answers %v", st)
		}
		if done, err := ts[0].Put(1, segment.AttachBase, []byte{1}, 1); done || !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("Put: %v, %v", done, err)
		}
		if done, err := ts[0].Get(make([]byte, 1), 1, segment.AttachBase, 1); done || !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("Get: %v, %v", done, err)
		}
	}
}
