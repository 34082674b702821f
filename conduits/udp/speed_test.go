package udp

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

var (
	flagSpeed  = flag.Int("udp.speed", 0, "how many rounds TestSpeed measures, and prints the medians of")
	flagOnly   = flag.String("udp.only", "", "the only thing that TestSpeed measures, by its name's beginning")
	flagMillis = flag.Int("udp.millis", 100, "how long TestSpeed measures each thing in each round, ms")
)

// lossy is a link that loses datagrams.
type lossy struct {
	link
	rate float64
	rnd  *rand.Rand
}

func (l *lossy) Recv(in *inbox) bool {
	if !l.link.Recv(in) {
		return false
	}
	in.list = slices.DeleteFunc(in.list, func(incoming) bool { return l.rnd.Float64() < l.rate })
	return true
}

// anonymous is a book that knows no rank by its address.
type anonymous struct{ book }

func (anonymous) source(netip.AddrPort) (int, bool) { return -1, true }

// speedJob is two ranks of one process that run on threads of their own.
func speedJob(t testing.TB, c engine.Config, sealed bool, loss float64) []*Endpoint {
	lim, err := limits(2, MaxLocal, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := sockets(2)
	if err != nil {
		t.Fatal(err)
	}
	if *flagSpeed > 0 {
		for _, s := range l { // as if they were processes
			s.marks, s.book = nil, anonymous{s.book}
		}
	}
	b := newBoard(2)
	key := jobkey.New()
	var eps []*Endpoint
	for r := range 2 {
		var lk link = l[r]
		if loss > 0 {
			lk = &lossy{l[r], loss, rand.New(rand.NewPCG(1, uint64(r)))}
		}
		mode := seal.None
		if sealed {
			mode = seal.Authenticated
		}
		a := sealingOf(key, r, 2, 5, mode, func(int) uint64 { return 5 })
		c.Rank, c.Size, c.Epoch, c.DeadTime = r, 2, 1, time.Hour
		e, err := newEndpoint(seat{b, r, spawn}, lk, lim, a, c)
		if err != nil {
			t.Fatal(err)
		}
		e.patience.Set(mostPolls, true)
		b.eps = append(b.eps, e)
		eps = append(eps, e)
	}
	return eps
}

// speaker is a Receiver that answers.
type speaker struct {
	ep      *Endpoint
	answer  bool
	each    func(m *conduits.Message) // nil: nothing
	got     int
	done    int
	failed  error
	stopped bool
}

func (s *speaker) Receive(m *conduits.Message) {
	s.got++
	if m.Tag == 99 {
		s.stopped = true
	} else if s.each != nil {
		s.each(m)
	}
	if s.answer && m.Class == conduits.Request {
		for s.ep.Send(m.Src, conduits.Reply, 1, m.Words) == conduits.NoCredit {
			s.ep.PollReplies()
		}
	}
}

func (s *speaker) Complete(_ uint64, _ conduits.Event, _ uint64, err error) {
	s.done++
	if err != nil {
		s.failed = err
	}
}

const speedSegment = 8 << 20

// both runs a and b as the two ranks.
func both(t testing.TB, eps []*Endpoint, a, b func(ep *Endpoint, s *speaker)) {
	var wg sync.WaitGroup
	for r, f := range []func(ep *Endpoint, s *speaker){a, b} {
		wg.Go(func() {
			runtime.LockOSThread()
			s := &speaker{ep: eps[r]}
			if err := eps[r].Attach(conduits.AttachConfig{Size: speedSegment, Receiver: s}); err != nil {
				t.Error(err)
				return
			}
			f(eps[r], s)
			if s.failed != nil {
				t.Error(s.failed)
			}
			if err := eps[r].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// serve polls until it is told to stop.
func serve(answer bool) func(ep *Endpoint, s *speaker) {
	return func(ep *Endpoint, s *speaker) {
		s.answer = answer
		_ = conduits.Wait(ep, nil, func() bool { return s.stopped })
	}
}

func stop(ep *Endpoint, s *speaker) {
	_ = conduits.Wait(ep, nil, func() bool { return ep.Send(1, conduits.Request, 99, nil) == conduits.Ready })
}

func millis() time.Duration { return time.Duration(*flagMillis) * time.Millisecond }

// pingpong is a half round trip.
func pingpong(t testing.TB, sealed bool) time.Duration {
	var d time.Duration
	both(t, speedJob(t, engine.Config{Datagram: localDatagram}, sealed, 0), func(ep *Endpoint, s *speaker) {
		words := []uint32{1, 2}
		n := 0
		start := time.Now()
		for ; n&63 != 0 || time.Since(start) < millis(); n++ {
			ep.Send(1, conduits.Request, 1, words)
			want := s.got + 1
			_ = conduits.Wait(ep, nil, func() bool { return s.got == want })
		}
		d = time.Since(start) / time.Duration(2*n)
		stop(ep, s)
	}, serve(true))
	return d
}

// flood is the time for one of many messages.
func flood(t testing.TB, sealed bool) time.Duration {
	var d time.Duration
	both(t, speedJob(t, engine.Config{Datagram: localDatagram}, sealed, 0), func(ep *Endpoint, s *speaker) {
		words := []uint32{1, 2}
		n := 0
		start := time.Now()
		for ; n&63 != 0 || time.Since(start) < millis(); n++ {
			for ep.Send(1, conduits.Request, 1, words) == conduits.NoCredit {
				ep.Spin()
			}
		}
		d = time.Since(start) / time.Duration(n)
		stop(ep, s)
	}, serve(false))
	return d
}

// puts is bytes per second of puts of 1 MiB, so many at once.
func puts(t testing.TB, datagram int, sealed bool, loss float64, deep int) float64 {
	var rate float64
	both(t, speedJob(t, engine.Config{Datagram: datagram}, sealed, loss), func(ep *Endpoint, s *speaker) {
		src := make([]byte, 1<<20)
		begun := 0
		run := func(d time.Duration) {
			start := time.Now()
			for time.Since(start) < d {
				to := segment.AttachBase + segment.NLA(begun%deep)<<20
				if _, err := post.Put(ep, 1, to, src, conduits.RemoteDone, 1); err != nil {
					t.Error(err)
				}
				begun++
				_ = conduits.Wait(ep, nil, func() bool { return begun-s.done < deep })
			}
			_ = conduits.Wait(ep, nil, func() bool { return begun == s.done })
		}
		run(millis() / 4)
		before, start := begun, time.Now()
		run(millis())
		rate = float64(begun-before) * (1 << 20) / time.Since(start).Seconds()
		ep.mu.Lock()
		if st := ep.eng.Stats(); loss > 0 || st.Again > 0 {
			t.Logf("%d B, %v lost: %+v", datagram, loss, st)
		}
		ep.mu.Unlock()
		stop(ep, s)
	}, serve(false))
	return rate
}

func bare(t testing.TB) (a, b *sys.BareSocket) {
	var s [2]*sys.BareSocket
	var at [2]netip.AddrPort
	for i := range s {
		var err error
		if s[i], err = sys.OpenBare(netip.MustParseAddrPort("127.0.0.1:0"), 4<<20); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s[i].Close() })
		p, err := s[i].Port()
		if err != nil {
			t.Fatal(err)
		}
		at[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), p)
	}
	for i := range s {
		if err := s[i].Connect(at[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	return s[0], s[1]
}

// barePingpong is a half round trip of n bytes without anything.
func barePingpong(t testing.TB, n int) time.Duration {
	a, b := bare(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		p := make([]byte, 2000)
		for {
			n, _ := b.Receive(p)
			if n == 1 {
				return
			}
			if n > 0 {
				_, _ = b.Send(p[:n])
			}
		}
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := make([]byte, 2000)
	k := 0
	start := time.Now()
	for ; k&63 != 0 || time.Since(start) < millis(); k++ {
		_, _ = a.Send(p[:n])
		for {
			if n, _ := a.Receive(p); n > 0 {
				break
			}
		}
	}
	d := time.Since(start) / time.Duration(2*k)
	_, _ = a.Send(p[:1])
	wg.Wait()
	return d
}

// bareStream is bytes per second received by a socket that is sent datagrams without
// any control; segments of up to 64 KiB if they are small.
func bareStream(t testing.TB, datagram int) float64 {
	a, b := bare(t)
	n := datagram
	if n < 32000 {
		if !a.Segment(n) || !b.Segment(n) {
			t.Log("no segmentation offload")
		} else {
			n = min(64, 65507/n) * n
		}
	}
	var wg sync.WaitGroup
	var rate float64
	wg.Go(func() {
		runtime.LockOSThread()
		p := make([]byte, 1<<16)
		got, last := 0, time.Time{}
		var start time.Time
		for {
			n, _ := b.Receive(p)
			if n == 1 {
				break
			}
			if n == 0 {
				continue
			}
			got += n
			if got == n {
				start = time.Now()
			}
			last = time.Now()
		}
		rate = float64(got) / last.Sub(start).Seconds()
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := make([]byte, 1<<20)
	start := time.Now()
	for off := 0; time.Since(start) < millis(); off += n {
		if off+n > len(p) {
			off = 0
		}
		_, _ = a.Send(p[off : off+n])
	}
	time.Sleep(20 * time.Millisecond)
	for range 3 {
		_, _ = a.Send(p[:1])
	}
	wg.Wait()
	return rate
}

// TestSpeed prints how fast things are beside what the sockets do by themselves,
// measured in turns.
func TestSpeed(t *testing.T) {
	if *flagSpeed == 0 {
		t.Skip("-udp.speed says how many rounds")
	}
	figures := []struct {
		name string
		f    func() float64
		ref  int // index of what it is compared with
		inv  bool
	}{
		{"bare ping-pong 64 B, ns", func() float64 { return float64(barePingpong(t, 64)) }, 0, false},
		{"short message, half round trip, ns", func() float64 { return float64(pingpong(t, false)) }, 0, false},
		{"  sealed", func() float64 { return float64(pingpong(t, true)) }, 0, false},
		{"flood, ns/message", func() float64 { return float64(flood(t, false)) }, 0, false},
		{"  sealed", func() float64 { return float64(flood(t, true)) }, 0, false},
		{"bare stream 1400 B, MB/s", func() float64 { return bareStream(t, 1400) / 1e6 }, 5, false},
		{"put 1 MiB, 1400 B", func() float64 { return puts(t, 1400, false, 0, 1) / 1e6 }, 5, false},
		{"  4 at once", func() float64 { return puts(t, 1400, false, 0, 4) / 1e6 }, 5, false},
		{"  sealed", func() float64 { return puts(t, 1400, true, 0, 1) / 1e6 }, 5, false},
		{"  sealed, 4 at once", func() float64 { return puts(t, 1400, true, 0, 4) / 1e6 }, 5, false},
		{"  1 % lost, of put", func() float64 { return puts(t, 1400, false, 0.01, 1) / 1e6 }, 6, false},
		{"  1 % lost, 4 at once", func() float64 { return puts(t, 1400, false, 0.01, 4) / 1e6 }, 7, false},
		{"bare stream 65000 B, MB/s", func() float64 { return bareStream(t, 65000) / 1e6 }, 12, false},
		{"put 1 MiB, 65000 B", func() float64 { return puts(t, 65000, false, 0, 1) / 1e6 }, 12, false},
		{"  4 at once", func() float64 { return puts(t, 65000, false, 0, 4) / 1e6 }, 12, false},
		{"  sealed", func() float64 { return puts(t, 65000, true, 0, 1) / 1e6 }, 12, false},
		{"  sealed, 4 at once", func() float64 { return puts(t, 65000, true, 0, 4) / 1e6 }, 12, false},
		{"  1 % lost, of put", func() float64 { return puts(t, 65000, false, 0.01, 1) / 1e6 }, 13, false},
		{"  8192 B", func() float64 { return puts(t, 8192, false, 0, 1) / 1e6 }, 12, false},
	}
	all := make([][]float64, len(figures))
	for range *flagSpeed {
		for i, f := range figures {
			if *flagOnly != "" && f.name[:min(len(f.name), len(*flagOnly))] != *flagOnly {
				all[i] = []float64{0}
				continue
			}
			all[i] = append(all[i], f.f())
		}
	}
	med := make([]float64, len(figures))
	for i, f := range figures {
		slices.Sort(all[i])
		if all[i][0] == 0 {
			continue
		}
		med[i] = all[i][len(all[i])/2]
		fmt.Printf("%-40s %9.0f  (%.0f to %.0f)  %.2f\n", f.name, med[i], all[i][0], all[i][len(all[i])-1], med[i]/med[f.ref])
	}
}
