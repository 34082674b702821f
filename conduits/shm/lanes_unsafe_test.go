package shm

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// laneSink counts what a lane receives, and answers requests.
type laneSink struct {
	ep      conduits.Endpoint
	got     [conduits.NumClasses]atomic.Int64
	replies bool
}

func (s *laneSink) Receive(m *conduits.Message) {
	s.got[m.Class].Add(1)
	if m.Class == conduits.Request && s.replies {
		s.ep.Send(m.Src, conduits.Reply, 1, m.Words)
	}
}

func (s *laneSink) Complete(uint64, conduits.Event, uint64, error) {}

// lanedJob opens n ranks with so many lanes each, attached, and what all lanes receive by.
func lanedJob(t *testing.T, n, lanes int, replies bool) (eps [][]*Endpoint, sinks [][]*laneSink) {
	t.Helper()
	open, err := Local(n, conduits.Config{Lanes: lanes, MaxSegment: segment.PageSize})
	if err != nil {
		t.Fatal(err)
	}
	sinks = make([][]*laneSink, n)
	done := make(chan error)
	for r, ep := range open {
		sinks[r] = make([]*laneSink, lanes)
		for i := range sinks[r] {
			sinks[r][i] = &laneSink{replies: replies}
		}
		sinks[r][0].ep = ep
		go func() {
			done <- ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: sinks[r][0], Lane: func(i int, l conduits.Endpoint) conduits.Receiver {
				sinks[r][i].ep = l
				return sinks[r][i]
			}})
		}()
	}
	for range open {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, ep := range open {
			ep.Close()
		}
	})
	eps = make([][]*Endpoint, n)
	for r, ep := range open {
		for i := range lanes {
			laned, _ := conduits.As[conduits.Laned](ep)
			l, err := laned.Lane(i)
			if err != nil {
				t.Fatal(err)
			}
			eps[r] = append(eps[r], l.(*Endpoint))
		}
	}
	return eps, sinks
}

// bytesOf is the memory of *p.
func bytesOf[T any](p *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p))
}

// TestLanesShareNothing: messages of one lane, requests and replies, write no byte that
// another lane reads or writes: of the ranks' common parts, of the job, and of the blocks,
// mailboxes and rings of other lanes.
func TestLanesShareNothing(t *testing.T) {
	const lanes, used, messages = 3, 1, 1000
	eps, sinks := lanedJob(t, 2, lanes, true)
	trip := func(lane int) {
		a, b := eps[0][lane], eps[1][lane]
		if st := a.Send(1, conduits.Request, 1, []uint32{1, 2}); st != conduits.Ready {
			t.Fatal(st)
		}
		if b.Spin() != 1 || a.Spin() != 1 {
			t.Fatal("a message was not there")
		}
	}
	for lane := range lanes {
		for range 200 { // all rings are open, and their locks have owners
			trip(lane)
		}
	}
	eps[0][0].j.watch.mu.Lock() // the watcher writes what it has seen
	defer eps[0][0].j.watch.mu.Unlock()
	shared := map[string][]byte{}
	for r := range eps {
		first := eps[r][0]
		shared[fmt.Sprintf("what the lanes of rank %d share", r)] = bytesOf(first.common)
		shared[fmt.Sprintf("the lanes of rank %d", r)] = bytesOf(first.lanes)
		shared[fmt.Sprintf("the control block of rank %d", r)] = unsafe.Slice((*byte)(first.j.ctl(r)), ctlBytes)
		for lane, e := range eps[r] {
			if lane == used {
				continue
			}
			name := fmt.Sprintf("lane %d of rank %d", lane, r)
			shared[name] = bytesOf(e)
			shared[name+", its block"] = unsafe.Slice((*byte)(e.j.port(r, lane)), laneBytes)
			shared[name+", its conversation"] = unsafe.Slice((*byte)(e.j.talk(r, 1-r, lane)), e.j.geometry.talk())
			for i := range e.out {
				if o := e.out[i].Load(); o != nil {
					shared[fmt.Sprintf("%s, its ring %d out", name, i)] = bytesOf(o)
				}
			}
			for i, in := range e.in {
				shared[fmt.Sprintf("%s, its ring %d in", name, i)] = bytesOf(in)
			}
		}
	}
	shared["the header"] = unsafe.Slice((*byte)(eps[0][0].j.header), hdrBytes)
	before := map[string][]byte{}
	for name, b := range shared {
		before[name] = bytes.Clone(b)
	}
	for range messages {
		trip(used)
	}
	for name, b := range shared {
		if !bytes.Equal(b, before[name]) {
			t.Errorf("messages of lane %d have written to %s", used, name)
		}
	}
	if got := sinks[0][used].got[conduits.Reply].Load(); got != messages+200 {
		t.Errorf("%d replies", got)
	}
}

// TestLaneSleeper: a goroutine that sleeps in one lane runs what comes to the others, by
// which no goroutine waits.
func TestLaneSleeper(t *testing.T) {
	const lanes = 4
	eps, sinks := lanedJob(t, 2, lanes, false)
	sleeper := eps[1][1]
	for lane := range lanes { // opens the rings
		eps[0][lane].Send(1, conduits.Request, 1, nil)
	}
	var stop atomic.Bool
	woken := make(chan error, 1)
	go func() {
		woken <- conduits.Wait(sleeper, nil, stop.Load)
	}()
	for parks := uint64(0); parks == 0; {
		parks = sleeper.parks.Load()
		eps[0][0].j.yield()
	}
	for round := int64(2); round < 5; round++ {
		for _, lane := range []int{2, 0, 3} {
			if st := eps[0][lane].Send(1, conduits.Request, 1, nil); st != conduits.Ready {
				t.Fatal(st)
			}
			for sinks[1][lane].got[conduits.Request].Load() < round {
				eps[0][0].j.yield()
			}
		}
	}
	stop.Store(true)
	eps[1][0].Wake(1)
	if err := <-woken; err != nil {
		t.Error(err)
	}
}

// TestLaneLeftAlone: a lane that another goroutine polled when the last one went to sleep,
// and does not poll any more, has that one wake.
func TestLaneLeftAlone(t *testing.T) {
	eps, sinks := lanedJob(t, 2, 3, false)
	sleeper, other := eps[1][1], eps[1][2]
	for lane := range 3 {
		eps[0][lane].Send(1, conduits.Request, 1, nil)
	}
	watch := &sleeper.j.watch.mu
	watch.Lock()               // the watcher must not find this lane left alone yet
	for _, e := range eps[1] { // the messages, and the news that there are lanes
		e.Poll()
	}
	sleeper.Disarm(sleeper.Arm(nil)) // has seen how often the other was polled
	other.Poll()
	ticket := sleeper.Arm(nil)
	if v := atomic.LoadUint32(other.parked); v != 0 {
		t.Errorf("a lane that is polled announces %d", v)
	}
	if st := eps[0][2].Send(1, conduits.Request, 1, nil); st != conduits.Ready {
		t.Fatal(st)
	}
	awake := make(chan bool)
	go func() {
		sleeper.Park(ticket)
		close(awake)
	}()
	for sleeper.parks.Load() == 0 {
		sleeper.j.yield()
	}
	watch.Unlock()
	<-awake
	if err := conduits.Wait(sleeper, nil, func() bool { return sinks[1][2].got[conduits.Request].Load() == 2 }); err != nil {
		t.Error(err)
	}
}

// TestLaneOfSleepers: what comes to a lane that was polled until several goroutines slept, of
// other lanes, is run though none of them was woken for it.
func TestLaneOfSleepers(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		t.Run(fmt.Sprintf("crowded=%v", crowded), func(t *testing.T) {
			eps, sinks := lanedJob(t, 2, 3, false)
			first := eps[1][0]
			for _, e := range eps[1] {
				if crowded {
					e.patience.Set(0, false)
				} else {
					e.patience.Set(mostSpins, false)
				}
			}
			for round := int64(1); round <= 3; round++ {
				var stop atomic.Bool
				woken := make(chan error)
				for _, e := range eps[1][1:] {
					go func() { woken <- conduits.Wait(e, nil, stop.Load) }()
				}
				asleep := func(e *Endpoint) bool {
					e.waitMu.Lock()
					defer e.waitMu.Unlock()
					return e.armed > 0
				}
				for !asleep(eps[1][1]) || !asleep(eps[1][2]) {
					first.Poll()
					first.j.yield()
				}
				if st := eps[0][0].Send(1, conduits.Request, 1, nil); st != conduits.Ready {
					t.Fatal(st)
				}
				for sinks[1][0].got[conduits.Request].Load() < round {
					first.j.yield()
				}
				stop.Store(true)
				first.Wake(1)
				for range eps[1][1:] {
					if err := <-woken; err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// TestLaneWithoutReceiver: an endpoint that was attached without AttachConfig.Lane gives no
// lanes, and a message to one fails its rank.
func TestLaneWithoutReceiver(t *testing.T) {
	eps, err := Local(1, conduits.Config{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	e := eps[0].(*Endpoint)
	if _, err := e.Lane(1); err == nil {
		t.Error("a lane before Attach")
	}
	if err := e.Attach(conduits.AttachConfig{Receiver: &laneSink{}}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Lane(1); err == nil {
		t.Error("a lane without a Receiver")
	}
	for _, i := range []int{-1, 2} {
		if _, err := e.Lane(i); !isBadArg(err) {
			t.Errorf("lane %d: %v", i, err)
		}
	}
	if l, err := e.Lane(0); err != nil || l != e {
		t.Errorf("lane 0: %v", err)
	}
	atomic.OrUint64(e.j.lanesWord(0), 1<<1)
	atomic.AddUint32(e.j.c32(0, ctlOpenSeq), 1)
	for e.Err() == nil {
		e.Poll()
	}
}

// TestLanesByDefault: a launcher's ranks have a lane for each processor, or as many as they are told.
func TestLanesByDefault(t *testing.T) {
	for lanes, want := range []int{conduits.DefaultLanes(1), 1, 2, 3} {
		m, err := CreateJob(1, conduits.Config{MaxSegment: page, Lanes: lanes})
		if err != nil {
			t.Fatal(err)
		}
		if m.j.lanes != want {
			t.Errorf("%d lanes of a rank that is told to have %d, not %d", m.j.lanes, lanes, want)
		}
		m.Close()
	}
}
