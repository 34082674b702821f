//go:build ofi && cgo

package ofi

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// lend calls f with the locks of a transport's receiving side.
func (t *transport) lend(f func()) {
	t.rx.Lock()
	defer t.rx.Unlock()
	f()
}

// TestBadFrame: a frame that is wrong fails the rank that has sent it, and the receiver
// goes on while the failure is made known.
func TestBadFrame(t *testing.T) {
	ts, _ := pair(t)
	r, gate := ts[0].(*transport), make(chan struct{})
	b := make([]byte, headerBytes+8)
	(&header{job: r.id, src: 1, class: accesses}).encode(b)
	r.lend(func() {
		r.fail = func(rank int, err error) {
			<-gate
			r.Seat.Fail(rank, err)
		}
		r.take(b, true)
	})
	ts[0].Poll()
	close(gate)
	for ts[0].Err() == nil {
		runtime.Gosched()
	}
	var p *conduits.PeerError
	if err := ts[0].Err(); !errors.As(err, &p) || p.Rank != 1 {
		t.Errorf("the job's failure is %v, not one of rank 1", err)
	}
}

// TestDescriptorFails: a rank whose wait descriptor cannot be read fails, and can still
// be closed.
func TestDescriptorFails(t *testing.T) {
	ts, _ := pair(t)
	r := ts[0].(*transport)
	if r.standby.file == nil {
		t.Skip("the provider has no descriptor")
	}
	if err := r.standby.file.Close(); err != nil {
		t.Fatal(err)
	}
	for ts[0].Err() == nil {
		runtime.Gosched()
	}
}

// TestNoDescriptor: an Attach that cannot watch the wait descriptor is an error, before
// other ranks count on this one.
func TestNoDescriptor(t *testing.T) {
	ts, err := Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var before, none syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none = before
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err = ts[0].Attach(ear{}, 0, segment.RightsAll)
	if e := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); e != nil {
		t.Fatal(e)
	}
	if fd := ts[0].(*transport).ep.FD(); fd < 0 {
		t.Skip("the provider has no descriptor")
	}
	if err == nil {
		t.Error("rank 0 has attached without a descriptor")
	}
	if _, err := ts[1].Attach(ear{}, 0, segment.RightsAll); err == nil {
		t.Error("rank 1 has attached to a job that has failed")
	}
	for _, e := range ts {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseUnreachable: a rank that closes has not served a peer that it cannot reach: it
// goes when that has left, or the job has failed.
func TestCloseUnreachable(t *testing.T) {
	ts, _ := pair(t)
	r := ts[0].(*transport)
	for cut := false; !cut; { // before it hears that the message has arrived
		if st := r.Send(1, []uint32{1}, nil); st != conduits.Ready {
			t.Fatal(st)
		}
		r.mu.Lock()
		if p := r.peer(1); r.owes(p) {
			r.lose(p, errors.New("the cable is cut"))
			cut = true
		}
		r.mu.Unlock()
	}
	r.closed.Store(true)
	for range 3 {
		r.step()
	}
	select {
	case <-r.drained:
		t.Error("the rank has left, and its message has not arrived")
	default:
	}
}

// shelf is an Owner with memory, which loses the connection to rank 0 while that is read.
type shelf struct {
	ear
	t   *transport
	mem []byte
}

func (s *shelf) Access(_ int, a segment.NLA, n uint64, _ segment.Rights, f func([]byte)) error {
	s.t.mu.Lock()
	s.t.lose(s.t.peer(0), errors.New("the cable is cut"))
	p := s.t.peer(0)
	if o := &p.out[answers]; o.used > 0 && slices.Contains(s.t.spare, o.open) {
		s.t.mu.Unlock()
		panic("a frame is free that answers are written to")
	}
	s.t.mu.Unlock()
	f(s.mem[:n])
	return nil
}

// TestLostWhileAnswering: the frame of answers that is being written when the peer is lost
// is freed once, after that.
func TestLostWhileAnswering(t *testing.T) {
	ts, _ := pair(t)
	r := ts[1].(*transport)
	r.owner = &shelf{t: r, mem: make([]byte, 64)}
	r.lend(func() {
		r.reply(r.peers0(), reply{record: record{kind: kindGot}, at: segment.AttachBase, remain: 64})
		r.answer()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	o, free := &r.peer(0).out[answers], 0
	for _, c := range r.spare {
		if c == o.open {
			free++
		}
	}
	if o.used != 0 || o.writing || free != 1 {
		t.Errorf("%d bytes are used of the frame, which is free %d times", o.used, free)
	}
}

// TestSilentWhenFailed: a rank of a job that has failed answers no access, for it has closed by then, and
// would seem to have left.
func TestSilentWhenFailed(t *testing.T) {
	ts, _ := pair(t)
	r := ts[1].(*transport)
	r.Fail(0, errors.New("it is the first to fail"))
	p := r.peers0()
	r.lend(func() {
		r.reply(p, reply{record: record{kind: kindDone, code: codeClosed}})
		r.answer()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := &p.out[answers]; o.sent != 0 || o.used != 0 || !o.ready.Empty() || !p.replies.Empty() || p.inReplies {
		t.Errorf("%d frames of answers have left, %d and %d bytes wait", o.sent, len(o.ready.All()), o.used)
	}
}

// peers0 is the peer for rank 0.
func (t *transport) peers0() *peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.peer(0)
}

// reader is an Owner that remembers how gets have ended.
type reader struct {
	ear
	ends []error
}

func (r *reader) Complete(_ uint64, err error) { r.ends = append(r.ends, err) }

// TestGetUnderWay: the memory of a get is the caller's again when the provider is done
// with it, although the rank that it reads has left, or the job has failed.
func TestGetUnderWay(t *testing.T) {
	for _, fails := range []bool{false, true} {
		ts, err := Open(2, conduits.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var owners [2]reader
		attached := make(chan error)
		for i, e := range ts {
			mem, err := e.(*transport).Segment(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			for k := range mem {
				mem[k] = 1
			}
			go func() {
				_, err := e.Attach(&owners[i], 1<<20, segment.RightsAll)
				attached <- err
			}()
		}
		for range ts {
			if err := <-attached; err != nil {
				t.Fatal(err)
			}
		}
		r, other := ts[0].(*transport), ts[1].(*transport)
		if done, err := r.Get(make([]byte, leastRemote), 1, segment.AttachBase, 1); done || err != nil {
			t.Fatal(done, err)
		}
		for len(owners[0].ends) == 0 { // and there is a connection
			r.Poll()
			other.Poll()
		}
		owners[0].ends = nil
		other.rx.Lock() // its provider makes no progress
		dst := make([]byte, 1<<20)
		if done, err := r.Get(dst, 1, segment.AttachBase, 7); done || err != nil {
			t.Fatal(done, err)
		}
		for posted := false; !posted; {
			r.Poll()
			r.mu.Lock()
			posted = r.peer(1).flying > 0
			r.mu.Unlock()
		}
		if fails {
			r.Fail(1, errors.New("the test has it fail"))
		} else {
			r.departed(1)
		}
		for range 10 {
			r.Poll()
		}
		if ended := len(owners[0].ends) > 0; ended != fails {
			t.Errorf("the get has ended: %v, although the job has failed: %v", ended, fails)
		}
		other.rx.Unlock()
		for len(owners[0].ends) == 0 {
			r.Poll()
			runtime.Gosched()
		}
		if err := owners[0].ends[0]; err != nil && (dst[0] != 0 || dst[len(dst)-1] != 0) {
			t.Errorf("the get ended with %v, and the memory was written to", err)
		}
		leave(t, ts, ts)
		if fails && (dst[0] != 0 || dst[len(dst)-1] != 0) {
			t.Error("the memory was written to after the get had ended")
		}
	}
}
