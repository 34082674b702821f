//go:build ofi && cgo

package ofi

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/segment"
)

// TestInbox: whatever order frames arrive in, those that have not are known, and none is
// taken twice.
func TestInbox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom([]uint32{0, 5, 1<<32 - 3}).Draw(t, "first")
		i := inbox{next: first}
		var way []uint32 // sent and not arrived
		sent, high := first, first
		var missing []uint32
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			for len(way) < window && rapid.Bool().Draw(t, "send") {
				way, sent = append(way, sent), sent+1
			}
			if len(way) == 0 {
				continue
			}
			k := rapid.IntRange(0, len(way)-1).Draw(t, "which")
			s := way[k]
			way = slices.Delete(way, k, k+1)
			if !i.note(s) {
				t.Fatalf("frame %d is refused", s)
			}
			if i.note(s) {
				t.Fatalf("frame %d has arrived twice", s)
			}
			if s-first >= high-first {
				high = s + 1
			}
			missing = missing[:0]
			for _, w := range way {
				if w-first < high-first {
					missing = append(missing, w)
				}
			}
			if i.next != high || !slices.Equal(i.missing, missing) {
				t.Fatalf("next is %d, missing %v, not %d and %v", i.next, i.missing, high, missing)
			}
		}
	})
}

// sever breaks the connections of this process between two sockets of its own, which
// nothing under way survives.
func sever(t *testing.T) {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		fd, _ := strconv.Atoi(name.Name())
		switch peer, _ := syscall.Getpeername(fd); peer.(type) {
		case *syscall.SockaddrInet4, *syscall.SockaddrInet6:
			if err := syscall.Shutdown(fd, syscall.SHUT_RDWR); err == nil {
				n++
			}
		}
	}
	if n == 0 {
		t.Skip("the provider has no TCP connections")
	}
}

// TestSevered: when connections break, what is sent arrives, or a rank fails by name: no
// frame is lost without a word.
func TestSevered(t *testing.T) {
	ts, heard := pair(t)
	for _, e := range ts {
		r := e.(*transport)
		r.lossTime = time.Second
		r.setDeadTime(time.Second)
	}
	n := uint32(0)
	send := func(src int) {
		if st := ts[src].Send(1-src, []uint32{n}, nil); st == conduits.Ready {
			n++
		}
		ts[src].Poll()
	}
	poll := func() {
		for _, e := range ts {
			e.Poll()
			e.Wait(e.Now() + time.Millisecond)
		}
	}
	lost := func() bool { return ts[0].Err() != nil || ts[1].Err() != nil }
	for range 4 {
		for len(heard) < int(n) {
			poll()
		}
		send(0)
		send(1)
	}
	for len(heard) < int(n) {
		poll()
	}
	sever(t)
	for range 8 {
		send(0)
		send(1)
	}
	for len(heard) < int(n) && !lost() {
		poll()
	}
	if len(heard) == int(n) {
		t.Logf("all %d messages have arrived", n)
		return
	}
	for i, e := range ts {
		var p *conduits.PeerError
		if err := e.Err(); !errors.As(err, &p) || !errors.Is(err, conduits.ErrPeer) {
			t.Errorf("rank %d: the job's failure is %v", i, err)
		}
		t.Log(e.Err())
	}
}

// looker is a transport whose watch is called by a test, in time that it makes up.
type looker struct {
	t   *testing.T
	r   *transport
	p   *peer
	now time.Duration
}

func newLooker(t *testing.T) (*looker, []conduits.Transport) {
	ts, _ := pair(t)
	r := ts[0].(*transport)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watcher.Stop()
	r.watching = true // and does not start again
	return &looker{t, r, r.peer(1), time.Hour}, ts
}

// looks has the watch look for a time, after each call of f, and returns why it has given
// the peer up, or nil, and after which time.
func (l *looker) looks(during time.Duration, looked bool, f func()) (after time.Duration, err error) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	for after < during && l.p.lost == nil {
		f()
		l.now += l.r.tick
		after += l.r.tick
		l.r.watchPeer(l.p, l.now, looked)
	}
	return after, l.p.lost
}

// TestSilent: a peer that something is awaited from and that is silent is given up after
// the dead time, unless this rank has not looked, and later if accesses are under way, or if
// it has never been heard from: the first packets of its connection may have been lost.
func TestSilent(t *testing.T) {
	const dead = 4 * time.Second
	for _, c := range []struct {
		name   string
		looked bool
		flying int64
		f      func(p *peer)
		least  time.Duration // 0: never
	}{
		{"silent", true, 0, func(p *peer) { p.out[messages].sent++; p.heard = 1 }, dead},
		{"never heard", true, 0, func(p *peer) { p.out[messages].sent++ }, dead + connecting},
		{"no connection", true, 0, func(p *peer) { p.out[messages].sent++; p.full = true }, dead + connecting},
		{"heard", true, 0, func(p *peer) { p.out[messages].sent++; p.heard++ }, 0},
		{"not looked", false, 0, func(p *peer) { p.out[messages].sent++ }, 0},
		{"nothing is awaited", true, 0, func(*peer) {}, 0},
		{"an access is under way", true, 20 * slowest, func(p *peer) { p.heard = 1 }, dead + 20*time.Second},
		{"an access is kept", true, 1 << 20, func(p *peer) { p.heard++ }, keeping * lossTime},
		{"long accesses end", true, 1 << 20, func(p *peer) { p.heard++; p.over++ }, 0},
		{"no room", true, 0, func(p *peer) { p.out[messages].sent++; p.full = true; p.heard++ }, dead},
		{"no room at times", true, 0, func(p *peer) { p.out[messages].sent++; p.full = true; p.heard++; p.posted++ }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, ts := newLooker(t)
			l.r.setDeadTime(dead)
			l.p.flying, l.r.flying = c.flying, c.flying
			after, err := l.looks(10*dead, c.looked, func() { c.f(l.p) })
			switch {
			case c.least == 0 && err != nil:
				t.Errorf("given up after %v: %v", after, err)
			case c.least != 0 && (err == nil || after < c.least || after > c.least+dead+time.Second):
				t.Errorf("given up after %v, not %v: %v", after, c.least, err)
			}
			if err == nil {
				ts[0].Fail(0, errors.New("the test is over")) // nothing was sent that counts
			}
		})
	}
}

// TestLostFirst: a rank that cannot reach a peer any more says so before that one, which hears
// nothing of it from then on, takes it for dead.
func TestLostFirst(t *testing.T) {
	ts, heard := pair(t)
	a, b := ts[0].(*transport), ts[1].(*transport)
	for _, r := range []*transport{a, b} {
		r.setDeadTime(4 * time.Second)
	}
	ts[1].Send(0, []uint32{0}, nil)
	ts[0].Send(1, []uint32{2}, nil)
	for heard[0] == 0 || heard[2] == 0 {
		ts[0].Poll()
		ts[1].Poll()
	}
	a.mu.Lock()
	a.lose(a.peer(1), errors.New("the cable is cut"))
	a.mu.Unlock()
	ts[1].Send(0, []uint32{1}, nil)
	for ts[1].Err() == nil {
		ts[0].Poll()
		ts[1].Poll()
		ts[1].Wait(ts[1].Now() + time.Millisecond)
	}
	if err := ts[1].Err(); !strings.Contains(err.Error(), "rank 1 cannot be reached: the cable is cut") {
		t.Error(err)
	}
}

// TestRefused: an attempt to reach a peer that fails is made again, and its error is told when the
// peer is given up.
func TestRefused(t *testing.T) {
	l, ts := newLooker(t)
	l.r.setDeadTime(time.Second)
	unreachable(t, l.r)
	ts[0].Send(1, []uint32{1}, nil)
	_, err := l.looks(time.Minute, true, func() {})
	l.r.mu.Lock()
	why := l.p.refusal
	l.r.mu.Unlock()
	if why == nil || err == nil || !strings.Contains(err.Error(), "no connection to it") || !strings.Contains(err.Error(), why.Error()) {
		t.Errorf("given up because of %v; the last attempt: %v", err, why)
	}
	ts[0].Fail(0, errors.New("the test is over"))
}

// unreachable has r take rank 1's address for one to which nothing connects.
func unreachable(t *testing.T, r *transport) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.cards[1].addr
	if r.hidden.portOf(at) == 0 || len(at) != syscall.SizeofSockaddrInet4 {
		t.Skip("the provider has no addresses of IPv4")
	}
	copy(at[4:], []byte{255, 255, 255, 255}) // TCP knows no broadcast
}

// TestFirstPut: the watch runs, too, when what cannot reach a peer is a remote access, and no frame was
// sent before.
func TestFirstPut(t *testing.T) {
	ts, err := Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps, _ := attach(t, ts, 1<<20)
	defer leave(t, eps, ts)
	r := ts[0].(*transport)
	unreachable(t, r)
	if _, err := r.Put(1, segment.AttachBase, make([]byte, leastRemote), 1); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	if !r.watching || r.peer(1).refusal == nil {
		t.Errorf("the watch runs: %v; the attempt has failed with %v", r.watching, r.peer(1).refusal)
	}
	r.mu.Unlock()
	r.Fail(0, errors.New("the test is over"))
}

// TestSilentSleep: while something is awaited from a peer the watch has the standby poller
// look, which sleeps if nothing arrives: silence does not count for a rank that has not looked.
func TestSilentSleep(t *testing.T) {
	l, ts := newLooker(t)
	r := l.r
	r.standby.quit()
	asked := func(owes uint32) bool {
		r.mu.Lock()
		l.p.out[messages].sent += owes
		r.mu.Unlock()
		select { // what Attach, Send or quit have left
		case <-r.standby.asked:
		default:
		}
		r.lookAround()
		return len(r.standby.asked) > 0
	}
	if asked(0) {
		t.Error("the standby poller is asked to look although nothing is awaited")
	}
	if !asked(1) {
		t.Error("the standby poller is not asked to look")
	}
	r.another(t)
	r.stand()
	ts[0].Fail(0, errors.New("the test is over")) // nothing was sent that counts
}

// another makes a standby poller, which does not run yet, in place of one that has quit.
func (t *transport) another(tb testing.TB) {
	tb.Helper()
	t.standby = standby{}
	t.standby.init()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.prepare(); err != nil {
		tb.Fatal(err)
	}
}

// TestQuit: a standby poller that is to end does not sleep, although it has taken the word that
// quit leaves for it, and undoes the deadline that quit sets: the rank would not end.
func TestQuit(t *testing.T) {
	ts, _ := pair(t)
	r := ts[0].(*transport)
	r.standby.quit()
	r.another(t)
	close(r.standby.stop)
	r.standby.poke()
	r.look(2 * longest) // as one that has found nothing for long
	if len(r.standby.asked) > 0 {
		t.Error("the word is still there")
	}
	if r.standby.file != nil {
		r.standby.file.Close()
	}
	r.another(t)
	r.stand()
}

// TestLoss: a frame that has not arrived while the peer answers is lost: the last one, and
// one before others. One that may be behind accesses is not.
func TestLoss(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(p *peer)
		text string // "" if the peer is not given up
	}{
		{"last", func(p *peer) { p.out[messages].sent = 7; p.here = 6; p.heard++ }, "1 frames of messages to rank 1"},
		{"moving", func(p *peer) { p.out[messages].sent++; p.here = p.out[messages].sent - 1; p.heard++ }, ""},
		{"answers", func(p *peer) { p.out[answers].sent = 7; p.out[answers].acked = 5; p.heard++ }, "2 frames of answers to rank 1"},
		{"gap", func(p *peer) { p.in[accesses] = inbox{9, []uint32{4}}; p.heard++ }, "frame 4 of accesses from rank 1"},
		{"accesses", func(p *peer) { p.in[accesses] = inbox{9, []uint32{4}}; p.heard++; p.theirs = 1 << 20 }, ""},
		{"stopped", stops(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, ts := newLooker(t)
			_, err := l.looks(3*lossTime, true, func() { c.f(l.p) })
			if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("the peer is given up because of %v, not %q", err, c.text)
			}
			if err == nil {
				ts[0].Fail(0, errors.New("the test is over"))
			}
		})
	}
}

// stops is a peer that does not run for lossTime, time and again. When it goes on it
// answers at once all that it was asked meanwhile, and then a frame arrives there.
func stops() func(p *peer) {
	n := 0
	return func(p *peer) {
		k, i := uint32(n/(looks+2)), n%(looks+2)
		n++
		p.out[messages].sent, p.here = k+1, k
		switch i {
		case looks:
			p.heard += looks / probeLooks
		case looks + 1:
			p.here = k + 1
			p.heard++
		}
	}
}

// TestCloseFull: two ranks close which have taken no message, and each of which has more for the
// other one than the window: what each has held counts as taken then, or both would wait for ever.
func TestCloseFull(t *testing.T) {
	ts, _ := pair(t)
	payload := make([]byte, 4000)
	full := func(x int) bool {
		r := ts[x].(*transport)
		r.mu.Lock()
		defer r.mu.Unlock()
		p := r.peer(1 - x)
		return p.here == window && !p.out[messages].ready.Empty()
	}
	for !full(0) || !full(1) { // the standby pollers hold what arrives
		for x := range ts {
			ts[x].Send(1-x, []uint32{1}, payload)
		}
		runtime.Gosched()
	}
}

// TestCloseQuiet: a rank that closes and waits for one that computes asks it now and then,
// not as often as that answers.
func TestCloseQuiet(t *testing.T) {
	ts, _ := pair(t)
	r := ts[0].(*transport)
	payload := make([]byte, 4000)
	full := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		p := r.peer(1)
		return p.here == window && !p.out[messages].ready.Empty()
	}
	for !full() {
		r.Send(1, []uint32{1}, payload)
		r.Poll()
	}
	r.mu.Lock()
	before := r.frames
	r.mu.Unlock()
	r.closed.Store(true)
	r.standby.poke()
	// The pauses between questions double from 1 ms to 100.
	for {
		r.mu.Lock()
		p, asked := r.peer(1), r.frames-before
		gap := p.askGap
		r.mu.Unlock()
		if asked > 20 {
			t.Fatalf("%d frames although the pause is %v", asked, gap)
		}
		if gap == mostAskGap {
			break
		}
		time.Sleep(time.Millisecond)
	}
}

// slow is a Receiver whose first message takes until the gate is open.
type slow struct {
	begun, gate chan struct{}
	n           int
}

func (s *slow) Receive(*conduits.Message) {
	if s.n++; s.n == 1 {
		close(s.begun)
		<-s.gate
	}
}
func (*slow) Complete(uint64, conduits.Event, uint64, error) {}

// TestHandlerRuns: a rank answers its peers' probes while a handler of it runs, however
// many they are.
func TestHandlerRuns(t *testing.T) {
	ts, err := Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps, rs := make([]*adapt.Endpoint, 2), [2]slow{}
	attached := make(chan error)
	for i := range ts {
		eps[i] = adapt.New(Name, ts[i])
		rs[i] = slow{begun: make(chan struct{}), gate: make(chan struct{})}
		go func() { attached <- eps[i].Attach(conduits.AttachConfig{Size: 1 << 16, Receiver: &rs[i]}) }()
	}
	for range ts {
		if err := <-attached; err != nil {
			t.Fatal(err)
		}
	}
	defer leave(t, eps, ts)
	send := func() {
		for eps[0].Send(1, conduits.Request, 0, []uint32{1}) != conduits.Ready {
			eps[0].Poll()
		}
	}
	send()
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		for rs[1].n < 2 {
			eps[1].Poll()
		}
	}()
	for begun := false; !begun; {
		select {
		case <-rs[1].begun:
			begun = true
		default:
			eps[0].Poll()
		}
	}
	send() // is taken while the handler runs, and run behind it
	r := ts[0].(*transport)
	for range 2 * looks { // as many as there are in two dead times
		r.mu.Lock()
		p := r.peer(1)
		heard := p.heard
		asked := r.ack(p, wantAck)
		r.mu.Unlock()
		for answered := false; !answered; {
			eps[0].Poll()
			r.mu.Lock()
			asked = asked || r.ack(p, wantAck) // the provider may have had no room
			answered = p.heard != heard
			r.mu.Unlock()
		}
	}
	close(rs[1].gate)
	for done := false; !done; {
		select {
		case <-polled:
			done = true
		default:
			eps[0].Poll()
		}
	}
}
