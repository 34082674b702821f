package gas

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// fakeJob is a job without direct access between its ranks, whose conduit costs
// next to nothing: its times are those of the layers above. It can do
// nothing but messages.
type fakeJob struct {
	eps      []conduits.Endpoint
	ranks    []*fakeEndpoint
	attached sync.WaitGroup
	parked   atomic.Int32
}

type fakeEndpoint struct {
	conduits.Endpoint // nil, for what no test here needs

	j       *fakeJob
	rank    int
	view    [1]segment.View
	recv    conduits.Receiver
	polling atomic.Bool

	mu    sync.Mutex
	wake  sync.Cond
	seq   uint32
	queue []*conduits.Message
	err   error
}

// fakeSegment is how large the ranks' segments are, bytes, all of which are one.
const fakeSegment = segment.PageSize

func newFakeJob(n int) *fakeJob {
	j := &fakeJob{}
	j.attached.Add(n)
	page := segment.NewView(unsafe.Pointer(new([fakeSegment + 1]byte)), fakeSegment, segment.RightsAll)
	for r := range n {
		ep := &fakeEndpoint{j: j, rank: r, view: [1]segment.View{page}}
		ep.wake.L = &ep.mu
		j.ranks = append(j.ranks, ep)
		j.eps = append(j.eps, ep)
	}
	return j
}

func (ep *fakeEndpoint) Rank() int                    { return ep.rank }
func (ep *fakeEndpoint) Size() int                    { return len(ep.j.ranks) }
func (ep *fakeEndpoint) Conduit() string              { return "fake" }
func (ep *fakeEndpoint) Stats(*conduits.Stats)        {}
func (ep *fakeEndpoint) SegmentSize(int) uint64       { return fakeSegment }
func (ep *fakeEndpoint) Views() (int, []segment.View) { return ep.rank, ep.view[:] }
func (ep *fakeEndpoint) Left(int) bool                { return false }

// Polling tells misuse from use, of which there is none here.
func (ep *fakeEndpoint) Polling() bool               { return false }
func (ep *fakeEndpoint) Idle(int) bool               { return false }
func (ep *fakeEndpoint) Waiting() []conduits.Blocked { return nil }
func (ep *fakeEndpoint) Now() time.Duration          { return 0 }
func (ep *fakeEndpoint) Spin() int                   { return ep.Poll() }
func (ep *fakeEndpoint) Disarm(conduits.Ticket)      {}
func (ep *fakeEndpoint) Wake(rank int)               { ep.j.ranks[rank].notify(nil, nil) }
func (ep *fakeEndpoint) Limits() conduits.Limits {
	return conduits.Limits{MaxMedium: 512, MaxLong: 1 << 20, MaxSegment: fakeSegment, Credits: 1 << 20}
}

func (ep *fakeEndpoint) System(rank int, area conduits.SystemArea) []byte {
	if rank != ep.rank || area != conduits.SystemWords {
		return nil
	}
	return make([]byte, conduits.SystemBytes)
}

func (ep *fakeEndpoint) Attach(c conduits.AttachConfig) error {
	ep.recv = c.Receiver
	ep.j.attached.Done()
	ep.j.attached.Wait()
	return ep.Err()
}

func (ep *fakeEndpoint) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	return ep.SendPayload(dst, c, tag, words, nil, 0)
}

func (ep *fakeEndpoint) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	if to != 0 {
		return conduits.Apart
	}
	m := &conduits.Message{Src: ep.rank, Class: c, Tag: tag, Words: append([]uint32(nil), words...)}
	if len(payload) > 0 {
		m.Payload = append([]byte(nil), payload...)
	}
	ep.j.ranks[dst].notify(m, nil)
	return conduits.Ready
}

// notify gives the rank a message, if there is one, or an error, and has it look.
func (ep *fakeEndpoint) notify(m *conduits.Message, err error) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if m != nil {
		ep.queue = append(ep.queue, m)
	}
	if ep.err == nil {
		ep.err = err
	}
	ep.seq++
	ep.wake.Broadcast()
}

func (ep *fakeEndpoint) Poll() int {
	if !ep.polling.CompareAndSwap(false, true) {
		return 0
	}
	defer ep.polling.Store(false)
	ep.mu.Lock()
	queue := ep.queue
	ep.queue = nil
	ep.mu.Unlock()
	for _, m := range queue {
		ep.recv.Receive(m)
	}
	return len(queue)
}

func (ep *fakeEndpoint) Arm(conduits.Blocked) conduits.Ticket {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return conduits.Ticket{Seq: ep.seq}
}

func (ep *fakeEndpoint) Park(t conduits.Ticket) {
	ep.j.parked.Add(1)
	ep.mu.Lock()
	for ep.seq == t.Seq && ep.err == nil {
		ep.wake.Wait()
	}
	ep.mu.Unlock()
	ep.j.parked.Add(-1)
}

func (ep *fakeEndpoint) Err() error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.err
}

func (ep *fakeEndpoint) Fail(err error) { ep.j.fail(ep.rank, err) }

func (j *fakeJob) fail(rank int, err error) {
	for _, ep := range j.ranks {
		ep.notify(nil, &PeerError{Rank: rank, Err: err})
	}
}

func (ep *fakeEndpoint) Close() error { return nil }

// fakes counts the jobs that tests have registered as conduits.
var fakes atomic.Int64

// A conduit that runs its ranks itself is asked to, also for the progress
// goroutines, and a rank that it kills is named with the reason.
func TestConduitRunsRanks(t *testing.T) {
	const ranks = 3
	j := newFakeJob(ranks)
	run := &fakeRunner{}
	for i := range j.eps {
		j.eps[i] = &runByFake{j.ranks[i], run}
	}
	cfg := Config{Ranks: ranks, Progress: true, Conduit: "fake-" + strconv.FormatInt(fakes.Add(1), 10)}
	var attached sync.WaitGroup // a rank that is told of a failure before has no progress goroutine
	attached.Add(ranks)
	conduits.Register(conduits.Conduit{
		Name:  cfg.Conduit,
		Local: func(int, conduits.Config) ([]conduits.Endpoint, error) { return j.eps, nil },
	})
	err := Run(cfg, func(n *Node) error {
		attached.Done()
		if n.rank == 1 {
			attached.Wait()
			j.fail(1, errTest)
			runtime.Goexit()
		}
		return n.Barrier()
	})
	run.wg.Wait() // the progress goroutines end, too
	var re *RankError
	var pe *PeerError
	if !errors.As(err, &re) || re.Rank != 1 || !errors.Is(err, errTest) || errors.As(err, &pe) && pe.Rank != 1 || strings.Contains(err.Error(), "Goexit") {
		t.Errorf("Run: %v", err)
	}
	if run.ranks != ranks || run.more.Load() != ranks {
		t.Errorf("%d ranks and %d further goroutines were run by the conduit, of %d", run.ranks, run.more.Load(), ranks)
	}
}

// fakeRunner counts what it runs.
type fakeRunner struct {
	wg    sync.WaitGroup
	ranks int
	more  atomic.Int32
}

type runByFake struct {
	*fakeEndpoint
	run *fakeRunner
}

func (r *runByFake) RunRanks(eps []conduits.Endpoint, rank func(i int)) {
	r.run.ranks = len(eps)
	var wg sync.WaitGroup
	for i := range eps {
		wg.Go(func() { rank(i) })
	}
	wg.Wait()
}

func (r *runByFake) Interrupt(err error) { r.Fail(err) }

func (r *runByFake) Sleep(time.Duration) {}

func (r *runByFake) GoRank(f func()) {
	r.run.more.Add(1)
	r.run.wg.Go(f)
}
