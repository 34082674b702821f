package adapt

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// recorder is a Transport of rank 0 of two that keeps what is sent.
type recorder struct {
	mu     sync.Mutex
	sent   [][]uint32
	failed error
}

func (*recorder) Rank() int { return 0 }
func (*recorder) Size() int { return 2 }
func (*recorder) Limits() conduits.Limits {
	return conduits.Limits{MaxMedium: 512, MaxLong: 1 << 20, MaxSegment: 1 << 20, Credits: 4}
}

func (*recorder) Attach(_ conduits.Owner, size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	a := conduits.Attached{Size: size, Rights: rights}
	return []conduits.Attached{a, a}, nil
}

func (r *recorder) Send(_ int, words []uint32, _ []byte) conduits.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, append([]uint32(nil), words...))
	return conduits.Ready
}

func (*recorder) Put(int, segment.NLA, []byte, uint64) (bool, error) { return false, nil }
func (*recorder) Get([]byte, int, segment.NLA, uint64) (bool, error) { return false, nil }
func (*recorder) Poll() int                                          { return 0 }
func (*recorder) Wait(time.Duration)                                 {}
func (*recorder) Kick()                                              {}
func (*recorder) Now() time.Duration                                 { return 0 }
func (*recorder) Close() error                                       { return nil }

func (r *recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Fail(rank int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = &conduits.PeerError{Rank: rank, Err: err}
	}
}

// counter is a Receiver.
type counter struct{ messages, completions int }

func (c *counter) Receive(m *conduits.Message) {
	c.messages++
	for i := range m.Payload {
		m.Payload[i]++ // it is there
	}
}
func (c *counter) Complete(uint64, conduits.Event, uint64, error) { c.completions++ }

func attach(t *testing.T) (*Endpoint, *recorder, *counter) {
	t.Helper()
	r, c := &recorder{}, &counter{}
	e := New("recorded", r)
	if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: c}); err != nil {
		t.Fatal(err)
	}
	return e, r, c
}

// TestForged: messages that no honest peer sends fail the rank that has sent them,
// and no other.
func TestForged(t *testing.T) {
	const half = 1 << 16
	for name, messages := range map[string][][]uint32{
		"no words":              {{}},
		"a note with more":      {{header(kindNote, 0, 0), 1, 2}},
		"a long one cut short":  {{header(kindLong, 0, 0), 1, 2, 3}},
		"too many words":        {make([]uint32, conduits.TransportWords+1)},
		"a message too long":    {make([]uint32, conduits.MaxWords+2)},
		"credit unasked":        {{header(kindCredit, 0, 0), 1, 0}},
		"credit beyond counts":  {{header(kindCredit, 0, 0), 0, 1<<32 - 1}},
		"a wake with something": {{header(kindWake, 0, 0), 1}},
		"half an atomic":        {{header(kindAtomic, 0, 0), 1, 2, 3}},
		"a result unasked":      {{header(kindResult, 0, 0), half, 0, 0}},
		"more than its credit":  {{0}, {0}, {0}, {0}, {0}},
		"a note twice":          {{header(kindNote, 0, 3)}, {header(kindNote, 0, 3)}},
		"a message noted twice": {awaitedForged(3), awaitedForged(3)},
		"notes beyond credit":   notesForged(2*4 + 1),
	} {
		t.Run(name, func(t *testing.T) {
			e, r, _ := attach(t)
			for i, m := range messages {
				if e.forged != nil {
					t.Fatalf("after %d messages: %v", i, e.forged)
				}
				owner{e}.Deliver(1, m, nil)
			}
			if err := r.Err(); err != nil {
				t.Fatalf("the rank is failed inside Deliver: %v", err)
			}
			e.Poll()
			var p *conduits.PeerError
			if !errors.As(e.Err(), &p) || p.Rank != 1 || !errors.Is(p, errs.ErrBadArg) {
				t.Errorf("the job's failure is %v, want one of rank 1", e.Err())
			}
			e.Poll() // lives on
		})
	}
}

// awaitedForged is a message without words that awaits a note.
func awaitedForged(number uint32) []uint32 {
	w := make([]uint32, longWords)
	w[0], w[longWords-1] = header(kindAwaited, 0, 0), number<<(numberShift-32)
	return w
}

// notesForged are n notes of different numbers.
func notesForged(n uint32) (l [][]uint32) {
	for i := range n {
		l = append(l, []uint32{header(kindNote, 0, conduits.Tag(i))})
	}
	return l
}

// TestCreditComesBack: half of the credit, in one message, when half has been run.
func TestCreditComesBack(t *testing.T) {
	e, r, c := attach(t)
	for range 10 {
		for range e.limits.Credits {
			owner{e}.Deliver(1, []uint32{header(kindMessage, conduits.Reply, 5), 1, 2}, []byte{3})
		}
		e.Poll()
	}
	if want := 10 * e.limits.Credits; c.messages != want {
		t.Errorf("%d messages were run, want %d", c.messages, want)
	}
	total := uint32(0)
	for _, m := range r.sent {
		if kind(m[0]>>25) != kindCredit || m[1] != 0 || m[2] != uint32(e.limits.Credits)/2 {
			t.Fatalf("sent %#x", m)
		}
		total += m[2]
	}
	if int(total) != c.messages {
		t.Errorf("credit for %d of %d messages", total, c.messages)
	}
}

// TestCancelTells: what Cancel gives back, and what a message to a rank that refuses its
// data does, is told to goroutines that sleep until there is credit.
func TestCancelTells(t *testing.T) {
	e, _, _ := attach(t)
	var slots []conduits.Slot
	for {
		s, st := e.Reserve(1, conduits.Request, 1, 0)
		if st != conduits.Ready {
			break
		}
		slots = append(slots, s)
	}
	for i, s := range slots {
		sleeper := e.Arm(nil)
		if st := e.Send(1, conduits.Request, 1, nil); st != conduits.NoCredit {
			t.Fatalf("message %d beside %d that are reserved: %v", i, len(slots), st)
		}
		e.Cancel(1, conduits.Request, s)
		if e.waiters.seq.Load() == sleeper.Seq {
			t.Fatal("Cancel gives credit back and wakes no goroutine that sleeps for it")
		}
		e.Disarm(sleeper)
		if st := e.Send(1, conduits.Request, 1, nil); st != conduits.Ready {
			t.Fatalf("after Cancel: %v", st)
		}
	}
}

// FuzzDeliver: whatever a peer sends, a rank does not panic, and runs no more
// messages than it has credit for.
func FuzzDeliver(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Add(binary.LittleEndian.AppendUint32([]byte{1}, header(kindCredit, 0, 0)))
	long := []byte{7}
	for _, w := range []uint32{header(kindLong, 0, 1), uint32(segment.AttachBase), uint32(uint64(segment.AttachBase) >> 32), 64, 0, 1, 2} {
		long = binary.LittleEndian.AppendUint32(long, w)
	}
	f.Add(long)
	word := []byte{8}
	for _, w := range []uint32{header(kindAtomic, 0, conduits.Tag(uint32(conduits.AtomicAdd)|uint32(conduits.Uint64)<<8)), 9, uint32(segment.AttachBase), uint32(uint64(segment.AttachBase) >> 32), 1, 0, 0, 0} {
		word = binary.LittleEndian.AppendUint32(word, w)
	}
	f.Add(word)
	awaited := append([]byte{5}, long[1:]...)
	binary.LittleEndian.PutUint32(awaited[1:], header(kindAwaited, 0, 1))
	f.Add(binary.LittleEndian.AppendUint32(append(awaited[:1+4*longWords], 1), header(kindNote, 0, 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, r, c := attach(t)
		defer e.Close()
		// An atomic and a get of this rank are under way.
		if _, _, err := post.Atomic(e, 1, segment.AttachBase, conduits.AtomicAdd, conduits.Uint64, 1, 0, 1); err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 && r.Err() == nil {
			n := int(b[0]) % (conduits.TransportWords + 2)
			b = b[1:]
			var words []uint32
			for ; n > 0 && len(b) >= 4; n, b = n-1, b[4:] {
				words = append(words, binary.LittleEndian.Uint32(b))
			}
			owner{e}.Deliver(1, words, b[:min(len(b), 600)])
			if e.pending() {
				e.Poll()
			}
		}
		e.Poll()
		if e.forged != nil {
			t.Errorf("a rank that is to be failed is not: %v", e.forged)
		}
		if c.completions > 1 {
			t.Errorf("%d completions of one operation", c.completions)
		}
	})
}

// TestReadOnly: data of a long message is handed to a handler only if its sender may
// write to where it says that it lies.
func TestReadOnly(t *testing.T) {
	r, c := &recorder{}, &counter{}
	e := New("recorded", r)
	if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Rights: segment.RightRead, Receiver: c}); err != nil {
		t.Fatal(err)
	}
	long := make([]uint32, longWords)
	long[0] = header(kindLong, 0, 0)
	put64(long[1:], uint64(segment.AttachBase))
	put64(long[3:], 64)
	owner{e}.Deliver(1, long, nil)
	e.Poll()
	var s conduits.Stats
	if e.Stats(&s); c.messages != 0 || s.Faults != 1 {
		t.Errorf("%d messages run, %d faults", c.messages, s.Faults)
	}
}

// TestCloseWhileBusy: the Transport is closed once, when the last operation that had
// begun has returned, and sent nothing afterwards.
func TestCloseWhileBusy(t *testing.T) {
	closed := make(chan struct{})
	h := &held{put: make(chan struct{}), closed: closed}
	h.cond.L = &h.recorder.mu
	e := New("held", h)
	if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &counter{}}); err != nil {
		t.Fatal(err)
	}
	s, st := e.Reserve(1, conduits.Request, 1, 0)
	if st != conduits.Ready {
		t.Fatal(st)
	}
	done := make(chan error)
	go func() {
		_, err := post.Put(e, 1, segment.AttachBase, make([]byte, 8), conduits.RemoteDone, 1)
		done <- err
	}()
	<-h.put // the put is in the Transport
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	for !h.waiting || h.kicked {
		h.cond.Wait() // for the carrier to sleep
	}
	h.mu.Unlock()
	h.put <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-closed
	e.Commit(1, conduits.Request, s, 0, 0)
	if ev, err := post.Put(e, 1, segment.AttachBase, make([]byte, 8), conduits.RemoteDone, 2); !errors.Is(err, conduits.ErrClosed) {
		t.Errorf("put after Close: %v, %v", ev, err)
	}
	if len(h.sent) != 0 {
		t.Errorf("%d messages were sent after Close", len(h.sent))
	}
}

// held is a Transport whose puts wait for a word, and whose Wait waits for a Kick.
type held struct {
	recorder
	put    chan struct{}
	closed chan struct{}

	cond            sync.Cond // of recorder.mu
	kicked, waiting bool
}

func (h *held) Put(int, segment.NLA, []byte, uint64) (bool, error) {
	h.put <- struct{}{}
	<-h.put
	return true, nil
}

func (h *held) Wait(time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = true
	h.cond.Broadcast()
	for !h.kicked {
		h.cond.Wait()
	}
	h.kicked, h.waiting = false, false
}

func (h *held) Kick() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kicked = true
	h.cond.Broadcast()
}

func (h *held) Close() error {
	close(h.closed) // panics at the second time
	return nil
}

// TestNoAllocations: what is done again and again allocates nothing here.
func TestNoAllocations(t *testing.T) {
	e, r, _ := attach(t)
	words, payload := []uint32{1, 2, 3}, make([]byte, 100)
	e.t = quiet{r}
	word := make([]uint32, 8)
	word[0] = header(kindAtomic, 0, conduits.Tag(uint32(conduits.AtomicAdd)|uint32(conduits.Uint64)<<8))
	put64(word[2:], uint64(segment.AttachBase))
	in, result := []uint32{header(kindMessage, conduits.Request, 1), 1}, make([]uint32, 4)
	credit := []uint32{header(kindCredit, 0, 0), 1, 0}
	for name, op := range map[string]func(){
		"send": func() {
			if e.SendPayload(1, conduits.Request, 1, words, payload, 0) != conduits.Ready {
				t.Error("no credit")
			}
			owner{e}.Deliver(1, credit, nil)
		},
		"reserve": func() {
			s, st := e.Reserve(1, conduits.Request, 3, 100)
			if st != conduits.Ready {
				t.Error("no credit")
			}
			e.Commit(1, conduits.Request, s, 1, 100)
			owner{e}.Deliver(1, credit, nil)
		},
		"receive": func() {
			owner{e}.Deliver(1, in, payload)
			e.Poll()
		},
		"put": func() {
			if _, err := post.Put(e, 1, segment.AttachBase, payload, conduits.RemoteDone, 1); err != nil {
				t.Error(err)
			}
		},
		"put of a word": func() {
			if _, err := post.PutWord(e, 1, segment.AttachBase, 1, 8, conduits.RemoteDone, 1); err != nil {
				t.Error(err)
			}
		},
		"atomic": func() {
			if _, _, err := post.Atomic(e, 1, segment.AttachBase, conduits.AtomicAdd, conduits.Uint64, 1, 0, 1); err != nil {
				t.Error(err)
			}
			result[0], result[1] = header(kindResult, 0, 0), 0
			owner{e}.Deliver(1, result, nil)
			e.Poll()
		},
		"atomic of a peer": func() { owner{e}.Deliver(1, word, nil) },
		"wake":             func() { e.Wake(1) },
	} {
		if n := testing.AllocsPerRun(200, op); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if err := e.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// quiet is a recorder that keeps nothing, and does puts at once.
type quiet struct{ *recorder }

func (quiet) Send(int, []uint32, []byte) conduits.Status         { return conduits.Ready }
func (quiet) Put(int, segment.NLA, []byte, uint64) (bool, error) { return true, nil }
