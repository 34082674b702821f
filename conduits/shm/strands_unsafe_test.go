package shm

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// braid is a job of two ranks of which goroutines of rank 0 send numbered requests to rank 1,
// which finds out whether those of each come in order.
type braid struct {
	t    tb
	eps  []*Endpoint
	sent []uint32 // by goroutine
	came []uint32
	does []chan func()
	done chan struct{}
}

func newBraid(t tb, fm form, goroutines int) *braid {
	b := &braid{t: t, eps: fm.open(t, 2, conduits.Config{}), sent: make([]uint32, goroutines), came: make([]uint32, goroutines), done: make(chan struct{})}
	attach(t, b.eps, page, func(rank int, m *conduits.Message) {
		if w, n := m.Words[0], m.Words[1]; n != b.came[w] {
			t.Errorf("message %d of goroutine %d came, and %d is next", n, w, b.came[w])
		} else {
			b.came[w]++
		}
	})
	for range goroutines {
		do := make(chan func())
		b.does = append(b.does, do)
		go func() {
			for f := range do {
				f()
				b.done <- struct{}{}
			}
		}()
	}
	t.Cleanup(func() {
		for _, do := range b.does {
			close(do)
		}
	})
	return b
}

// by has goroutine w run f, alone.
func (b *braid) by(w int, f func()) {
	b.does[w] <- f
	<-b.done
}

// send sends a message of a kind, and reports whether there was room. Goroutine w calls it.
func (b *braid) send(w, kind int) bool {
	e, words := b.eps[0], []uint32{uint32(w), b.sent[w]}
	st := conduits.NoCredit
	switch kind {
	case 0:
		st = e.Send(1, conduits.Request, 1, words)
	case 1:
		st = e.SendPayload(1, conduits.Request, 1, words, make([]byte, 8), 0)
	case 2:
		st = e.SendPayload(1, conduits.Request, 1, words, make([]byte, 1000), 0)
	case 3:
		st = e.SendPayload(1, conduits.Request, 1, words, make([]byte, 100), segment.AttachBase+segment.NLA(128*w))
	default:
		var s conduits.Slot
		if s, st = e.Reserve(1, conduits.Request, 2, 8); st != conduits.Ready {
			break
		}
		if kind == 4 {
			e.Cancel(1, conduits.Request, s)
			return true
		}
		copy(s.Words, words)
		e.Commit(1, conduits.Request, s, 1, 8)
	}
	if st == conduits.Ready {
		b.sent[w]++
	}
	return st == conduits.Ready
}

// weave has the calling goroutine find the lock of its ring taken once more than it takes to move,
// and reports whether it has moved to a strand. Rank 1 may have to poll before it does.
func (b *braid) weave() bool {
	home := b.eps[0].ring(1, conduits.Request)
	r := b.eps[0].lockRing(home)
	r.crowded = crowdedOften
	r.lock.Unlock()
	to := b.eps[0].lockRing(home)
	to.lock.Unlock()
	return to != r
}

// spread has goroutine w move to a strand, the next one.
func (b *braid) spread(w int) {
	for i := 0; ; i++ {
		got := false
		b.by(w, func() { got = b.weave() })
		if got {
			return
		}
		if i > 3*mostStrands {
			b.t.Fatalf("goroutine %d gets no strand", w)
		}
		b.eps[1].Poll()
	}
}

// idle has each strand look, at its next message, whether its goroutine can go home, and
// find that no other uses the first ring.
func (b *braid) idle() {
	home := b.eps[0].ring(1, conduits.Request)
	home.each(func(r *outRing) {
		r.lock.Lock()
		if r != home {
			r.looked, r.before = r.tail-homeOften, atomic.LoadUint64(home.head)
		}
		r.lock.Unlock()
	})
}

// finish takes what has been sent, and checks that this was all, and that both ranks find
// their rings as they are to be.
func (b *braid) finish() {
	for b.eps[1].Poll() > 0 {
	}
	for w, n := range b.sent {
		if b.came[w] != n {
			b.t.Errorf("%d messages of goroutine %d have come, of %d", b.came[w], w, n)
		}
	}
	var from, to conduits.Stats
	b.eps[0].Stats(&from)
	b.eps[1].Stats(&to)
	if n := from.Sent[conduits.Request]; n != to.Received[conduits.Request] {
		b.t.Errorf("%d requests were sent, and %d came", n, to.Received[conduits.Request])
	}
	b.audits()
	if err := b.eps[0].Err(); err != nil {
		b.t.Errorf("an audit found: %v", err)
	}
}

// audits has both ranks audit their rings, often enough to find anything.
func (b *braid) audits() {
	for range 3 * lostAudits {
		for _, e := range b.eps {
			e.mailbox.auditDue.Store(true)
			atomic.AddUint32(e.openSeq, 1)
			e.Poll()
		}
	}
}

func needStrands(t *testing.T) {
	t.Helper()
	if !sys.HasGoroutine {
		t.Skip("goroutines cannot be told apart here")
	}
}

// TestStrandOrder: whatever goroutines send and whenever they get strands and go home, the
// messages of each come once and in order.
func TestStrandOrder(t *testing.T) {
	needStrands(t)
	rapid.Check(t, func(t *rapid.T) {
		const goroutines = 4
		b := newBraid(t, forms[rapid.IntRange(0, len(forms)-1).Draw(t, "form")], goroutines)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			w := rapid.IntRange(0, goroutines-1).Draw(t, "goroutine")
			switch k := rapid.IntRange(0, 11).Draw(t, "step"); {
			case k < 6:
				b.by(w, func() { b.send(w, k) })
			case k < 8:
				b.eps[1].Poll()
			case k == 8:
				b.by(w, func() { b.weave() })
			case k == 9:
				b.by(w, b.idle)
			default: // a burst
				for range k * 2 {
					b.by(w, func() { b.send(w, 0) })
				}
			}
		}
		b.finish()
	})
}

// TestStrandsTogether: goroutines that send at once, and get strands meanwhile, lose no
// message, and those of each come in order.
func TestStrandsTogether(t *testing.T) {
	needStrands(t)
	eachForm(t, func(t *testing.T, fm form) {
		const goroutines, each = 8, 2000
		b := newBraid(t, fm, goroutines)
		for w, do := range b.does {
			do <- func() {
				for i := 0; i < each; {
					if i%500 == 50*w {
						b.weave()
					}
					if b.send(w, []int{0, 1, 2, 3, 0, 5}[i%6]) {
						i++
					} else {
						runtime.Gosched()
					}
				}
			}
		}
		for left := goroutines; left > 0; {
			select {
			case <-b.done:
				left--
			default:
				if b.eps[1].Poll() == 0 {
					runtime.Gosched()
				}
			}
		}
		b.finish()
	})
}

// TestStrandsShared: more goroutines than strands get one in turn, and keep the order of
// their messages when they move on.
func TestStrandsShared(t *testing.T) {
	needStrands(t)
	b := newBraid(t, forms[0], 2*mostStrands)
	used := map[uint8]bool{}
	for range 3 {
		for w := range b.does {
			b.spread(w)
			b.by(w, func() {
				r := b.eps[0].lockRing(b.eps[0].ring(1, conduits.Request))
				used[r.strand] = true
				r.lock.Unlock()
				b.send(w, 0)
				b.send(w, 0)
			})
		}
		for b.eps[1].Poll() > 0 {
		}
	}
	if len(used) != mostStrands || used[0] {
		t.Errorf("the goroutines have used rings %v, of %d strands", used, mostStrands)
	}
	b.finish()
}

// TestStrandWaits: what a goroutine sends by a strand is not received as long as a message that it
// has sent by the first ring waits there, behind one that is reserved.
func TestStrandWaits(t *testing.T) {
	needStrands(t)
	eachForm(t, func(t *testing.T, fm form) {
		b := newBraid(t, fm, 2)
		e, slot := b.eps[0], conduits.Slot{}
		b.by(1, func() {
			st := conduits.NoCredit
			if slot, st = e.Reserve(1, conduits.Request, 2, 8); st != conduits.Ready {
				t.Error(st)
			}
			copy(slot.Words, []uint32{1, 0})
		})
		b.by(0, func() { b.send(0, 0) })
		b.spread(0)
		b.by(0, func() { b.send(0, 0) })
		for range 3 {
			b.eps[1].Poll()
		}
		if b.came[0] != 0 {
			t.Errorf("%d messages have overtaken a reserved one", b.came[0])
		}
		e.Commit(1, conduits.Request, slot, 1, 8)
		b.sent[1]++
		b.finish()
	})
}

// TestStrandLost: a goroutine that has found its strand, and waits for its lock while another one of
// its entry moves, moves with that.
func TestStrandLost(t *testing.T) {
	needStrands(t)
	b := newBraid(t, forms[0], 1)
	b.by(0, func() { b.send(0, 0) })
	b.spread(0)
	home := b.eps[0].ring(1, conduits.Request)
	s := home.strands.Load()
	own, sent := s.ring[0].Load(), home.tail
	own.lock.Lock()
	b.does[0] <- func() { b.send(0, 0) }
	for range 1000 { // it waits for the lock, or comes later
		runtime.Gosched()
	}
	for i := range s.way {
		s.way[i].Store(0)
	}
	own.lock.Unlock()
	<-b.done
	if own.tail != 1 || home.tail != sent+1 {
		t.Errorf("%d messages went by the strand, and %d by the first ring", own.tail-1, home.tail-sent)
	}
	b.finish()
}

// TestStrandLines: what each sender reads of a first ring is in one line, which no sender writes.
func TestStrandLines(t *testing.T) {
	if size, lock := unsafe.Sizeof(outRing{}), unsafe.Offsetof(outRing{}.lock); size%lineBytes != 0 || lock != lineBytes {
		t.Errorf("rings of %d bytes, with the lock at %d", size, lock)
	}
}

// TestStrandsCrowded: a goroutine that finds the lock of the ring taken, often, gets a strand;
// one that never does has none.
func TestStrandsCrowded(t *testing.T) {
	needStrands(t)
	b := newBraid(t, forms[0], 1)
	r := b.eps[0].ring(1, conduits.Request)
	for range 100 {
		b.by(0, func() { b.send(0, 0) })
		b.eps[1].Poll()
	}
	if r.strands.Load() != nil {
		t.Error("a goroutine that sends alone has got a strand")
	}
	// The goroutine may come to the lock when it is free again.
	spread := func() bool { s := r.strands.Load(); return s != nil && s.moves > 0 }
	for i := 0; !spread() && i < 100000; i++ {
		r.lock.Lock()
		b.does[0] <- func() { b.send(0, 0) }
		for range 10 {
			runtime.Gosched()
		}
		r.lock.Unlock()
		<-b.done
		b.eps[1].Poll()
	}
	if !spread() {
		t.Error("a goroutine that finds the lock taken again and again has got no strand")
	}
	b.finish()
}

// TestStrandsFair: a receiver that finds all rings full takes messages of each of them in its first
// two polls: no goroutine's wait until others have none.
func TestStrandsFair(t *testing.T) {
	needStrands(t)
	b := newBraid(t, forms[0], mostStrands+1)
	b.by(0, func() { b.send(0, 0) })
	for w := 1; w < len(b.does); w++ {
		b.spread(w)
	}
	for w := range b.does {
		b.by(w, func() {
			for b.send(w, 0) {
			}
		})
	}
	for range 2 { // one looks at so many rings
		b.eps[1].Poll()
	}
	for w := range b.does {
		if b.came[w] == 0 && b.sent[w] > 0 { // none if another one of its entry has filled their ring
			t.Errorf("goroutine %d: no message came in the first polls, of %d", w, b.sent[w])
		}
	}
	b.finish()
}

// TestStrandLeft: a rank has not left as long as there are messages in a strand, and one that has
// left sends by none.
func TestStrandLeft(t *testing.T) {
	needStrands(t)
	eachForm(t, func(t *testing.T, fm form) {
		b := newBraid(t, fm, 1)
		b.by(0, func() { b.send(0, 0) })
		b.spread(0)
		b.by(0, func() { b.send(0, 0) })
		if err := b.eps[0].Close(); err != nil {
			t.Fatal(err)
		}
		if b.eps[1].Left(0) {
			t.Error("rank 0 has left, and its message has not been taken")
		}
		for b.eps[1].Poll() > 0 {
		}
		if b.came[0] != 2 || !b.eps[1].Left(0) {
			t.Errorf("%d messages have come; rank 0 has left: %v", b.came[0], b.eps[1].Left(0))
		}
		b.by(0, func() {
			if st := b.eps[0].Send(1, conduits.Request, 1, nil); st != conduits.Dead {
				t.Errorf("a strand of a closed endpoint: %v", st)
			}
		})
	})
}

// TestStrandsRefused: where the sender or the receiver cannot have the memory, goroutines that
// crowd go on by the first ring.
func TestStrandsRefused(t *testing.T) {
	needStrands(t)
	for _, rank := range []int{0, 1} {
		b := newBraid(t, forms[3], 2)
		b.by(0, func() { b.send(0, 0) })
		b.eps[rank].j.growth.close()
		for range 3 * mostStrands {
			for w := range b.does {
				b.by(w, func() {
					if b.weave() {
						t.Errorf("rank %d cannot have the memory, and goroutine %d has a strand", rank, w)
					}
					b.send(w, 0)
				})
			}
			b.eps[1].Poll()
		}
		b.finish()
	}
}

// TestStrandsDamaged: words of strands that no rank of ours writes end the job.
func TestStrandsDamaged(t *testing.T) {
	needStrands(t)
	for _, c := range []struct {
		name, want string
		by         int
		damage     func(b *braid, home *outRing)
	}{
		{"place", "the ring of requests to rank 1 says that its strands are 0x7", 0, func(_ *braid, home *outRing) {
			atomic.StoreUint64(strandsWord(home.sumWords), 7)
		}},
		{"count", "holds", 1, func(b *braid, home *outRing) { // of cells to be taken first
			b.spread(0)
			s := home.strands.Load().ring[1].Load()
			*head(s.cell(0)) = 1000
		}},
		{"ring", "holds", 1, func(b *braid, home *outRing) {
			b.spread(0)
			s := home.strands.Load().ring[1].Load()
			atomic.StoreUint64((*uint64)(s.cell(0)), status(0, stSkip|stDirect|9))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBraid(t, forms[3], 1)
			b.by(0, func() { b.send(0, 0) })
			b.spread(0)
			b.eps[1].Poll()
			c.damage(b, b.eps[0].ring(1, conduits.Request))
			b.audits()
			if err := peerFailed(b.eps[0].Err(), c.by, c.want); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("unmade", func(t *testing.T) {
		for _, w := range []uint64{1, 16, 1<<40 | 1, ^uint64(0)} {
			b := newBraid(t, forms[3], 1)
			b.by(0, func() { b.send(0, 0) })
			b.eps[1].Poll()
			atomic.StoreUint64(strandsWord(b.eps[0].ring(1, conduits.Request).sumWords), w)
			b.audits()
			if err := peerFailed(b.eps[0].Err(), 1, "the ring of requests from rank 0 says that its strands are"); err != nil {
				t.Errorf("%#x: %v", w, err)
			}
		}
	})
}
