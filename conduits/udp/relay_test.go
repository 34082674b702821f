package udp

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/job/nets"
)

// busy is a link that is never found empty, and has nothing for its own rank.
type busy struct {
	link
	calls int
	now   time.Duration
}

const busyBatch, busyBytes = gulp / 2, 1 << 20

func (l *busy) Recv(in *inbox) bool {
	l.calls++
	in.list, in.more, in.others, in.otherBytes = in.list[:0], true, busyBatch, busyBytes
	return true
}

func (l *busy) Now() time.Duration        { l.now++; return l.now }
func (l *busy) Unreachable() (int, error) { return -1, nil }
func (l *busy) Err() error                { return nil }
func (l *busy) Send(*outbox)              {}
func (l *busy) Wake()                     {}

// TestReceiveOthers has a rank receive without end what is for others: it knows nevertheless since
// when it has received all that had come, by which it judges what is lost and which rank is dead; a
// poll ends, and no waiter is woken.
func TestReceiveOthers(t *testing.T) {
	lim, err := limits(2, MaxRanks, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := new(busy)
	m := newMember(1, 2)
	e, err := newEndpoint(m, l, lim, nil, engine.Config{Rank: 1, Size: 2, Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	m.ep.Store(e)
	var known []time.Duration
	for range 4 * flooded / busyBytes {
		calls := l.calls
		e.inMu.Lock()
		_, drained, any := e.receive()
		e.mu.Unlock()
		if any || l.calls != calls+gulp/busyBatch {
			t.Fatalf("%d batches, %v that some are for this rank", l.calls-calls, any)
		}
		if drained > 0 {
			known = append(known, drained)
		}
	}
	if len(known) < 2 || known[1] <= known[0] {
		t.Errorf("all had been received at %v", known)
	}
	if before := e.seq.Load(); e.progress() || e.seq.Load() != before {
		t.Error("waiters are woken for what is for other ranks")
	}
}

// TestRelayCounts has a host between two others be sent what is for another one, though not to be
// handed on, and what is for its own rank: it tells how much the former was.
func TestRelayCounts(t *testing.T) {
	const size = 3
	env := map[string]string{EnvNetworks: "network n 127.0.0.0/8 latency 1us bandwidth 1GB/s hosts a,b; network m 127.0.0.0/8 latency 1us bandwidth 1GB/s hosts b,c"}
	for r := range size {
		env[strconv.Itoa(r)+":"+EnvHost] = string(rune('a' + r))
	}
	eps, err := Joined(seal.Authenticated, env)(size, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		var wg sync.WaitGroup
		for _, ep := range eps {
			wg.Go(func() { _ = ep.Close() })
		}
		wg.Wait()
	}()
	w := eps[1].(*joinedHere).nets
	l := linked(t, "127.0.0.1")
	r := &relay{socket: l[1], w: w, rank: 1}
	o := newOutbox()
	want := [2]int{}
	add := func(from, to int, own uint64, other bool) {
		a := sealingOf(jobkey.New(), from, w.numbers(), own, seal.Authenticated, func(int) uint64 { return own })
		b := sealed(t, a, to, fmt.Sprintf("from %d to %d", from, to))
		o.add(1, copy(o.room(len(b)), b), nil)
		if other {
			want[0], want[1] = want[0]+1, want[1]+len(b)
		}
	}
	run := w.c.Incarnation(0)
	add(0, 2, run+1, true)                                           // of another run
	add((nets.MaxPaths-1)*size, (nets.MaxPaths-1)*size+2, run, true) // by no path that there is
	add(0, 2, run+2, true)
	add(0, 1, run, false)
	l[0].Send(o)
	var in inbox
	var got [2]int
	for own := 0; own == 0; { // it is the last
		if !r.Recv(&in) {
			r.Wait(0)
			continue
		}
		got[0], got[1], own = got[0]+in.others, got[1]+in.otherBytes, len(in.list)
	}
	if got != want {
		t.Errorf("%d datagrams of %d bytes for others, of %d and %d", got[0], got[1], want[0], want[1])
	}
}
