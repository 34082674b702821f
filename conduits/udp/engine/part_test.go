package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// TestPart has a peer leave with everything under way to it: puts end well,
// what must bring a value ends with an error that names the peer, and no rank has
// died.
func TestPart(t *testing.T) {
	a, b, _ := pair(t, nil)
	a.Part(1) // nothing is known of it
	if a.Stats().Peers != 0 {
		t.Fatal("there is state for a peer that was never met")
	}
	mustNot := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	big, into := make([]byte, 1<<20), make([]byte, 64)
	_, err := a.Put(1, at(0), big[:8], conduits.RemoteDone, 1)
	mustNot(err)
	_, err = a.Put(1, at(0), big, conduits.SourceDone|conduits.RemoteDone, 2)
	mustNot(err)
	_, err = a.Get(into, 1, at(0), conduits.RemoteDone, 3)
	mustNot(err)
	mustNot(a.Atomic(1, at(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, 4))
	if a.Reserve(1, conduits.Request) != conduits.Ready {
		t.Fatal("no credit")
	}
	a.SendLong(1, conduits.Request, 1, nil, at(0), big, 5)
	buf := make([]byte, a.Config().Datagram)
	for range 10 { // some are sent, some wait
		a.Next(1, buf)
	}
	if a.Drained() {
		t.Fatal("drained, with everything under way")
	}
	a.Part(1)
	ends := map[uint64]error{}
	for c, ok := a.NextCompletion(); ok; c, ok = a.NextCompletion() {
		if _, twice := ends[c.Cookie]; twice {
			t.Errorf("operation %d ended twice", c.Cookie)
		}
		ends[c.Cookie] = c.Err
	}
	for cookie := range uint64(6) {
		err, ended := ends[cookie]
		var p *conduits.PeerError
		switch {
		case cookie == 0:
		case !ended:
			t.Errorf("operation %d has not ended", cookie)
		case slices.Contains([]uint64{3, 4}, cookie) != errors.As(err, &p), p != nil && p.Rank != 1:
			t.Errorf("operation %d: %v", cookie, err)
		}
	}
	if r, ok := a.NextDead(); ok {
		t.Errorf("rank %d is reported dead", r)
	}
	if _, ok := a.Deadline(); ok || !a.Drained() || !a.Quiet() {
		t.Error("something is still awaited")
	}
	if _, _, ok := a.Next(2, buf); ok {
		t.Error("something is sent")
	}
	if st := a.Reserve(1, conduits.Request); st != conduits.Dead {
		t.Errorf("Reserve answers %v", st)
	}
	if _, err := a.Put(1, at(0), big[:8], conduits.RemoteDone, 1); !errors.Is(err, conduits.ErrPeer) {
		t.Errorf("put: %v", err)
	}
	// What comes late from it is dropped.
	mustNot(b.Atomic(0, at(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, 4))
	_, n, _ := b.Next(1, buf)
	a.Receive(3, 1, buf[:n])
	if s := a.Stats(); s.Stale != 1 || s.Deaths != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestChangingData sends from memory that changes between the moment when a
// datagram is made and that when it is sent: the first of each is damaged by that,
// but what is sent again is not, or it would never arrive.
func TestChangingData(t *testing.T) {
	a, b, _ := pair(t, func(c *engine.Config) { c.Datagram = 9000 })
	src, buf := make([]byte, 40000), make([]byte, 9000)
	if _, err := a.Put(1, at(0), src, conduits.RemoteDone, 1); err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	for range 100 {
		for _, n, data, ok := a.NextParts(now, buf); ok; _, n, data, ok = a.NextParts(now, buf) {
			for i := range src {
				src[i]++
			}
			b.Receive(now, 0, append(buf[:n:n], data...))
		}
		for _, n, ok := b.Next(now, buf); ok; _, n, ok = b.Next(now, buf) {
			a.Receive(now, 1, buf[:n])
		}
		if _, ok := a.NextCompletion(); ok {
			return
		}
		now += time.Millisecond
		a.Advance(now)
		b.Advance(now)
	}
	t.Errorf("it never arrives: %+v, %+v", a.Stats(), b.Stats())
}
