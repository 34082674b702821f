package conduits

import (
	"errors"
	"testing"
)

// busy is an endpoint of a failed job to which messages never cease to come.
type busy struct {
	Endpoint
	polls int
}

var errFailed = errors.New("the job has failed")

func (b *busy) Err() error { return errFailed }

func (b *busy) Spin() int {
	b.polls++
	return 1
}

func TestWaitHearsOfFailureAmidArrivals(t *testing.T) {
	b := &busy{}
	err := Wait(b, nil, func() bool { return b.polls > 1000 })
	if !errors.Is(err, errFailed) {
		t.Fatalf("Wait polled %d times in a failed job and returned %v", b.polls, err)
	}
}

// quiet is an endpoint to which the last message of rank 1 comes while Left is asked:
// the rank has left then.
type quiet struct {
	Endpoint
	queue []int
	woken bool
}

func (q *quiet) Rank() int              { return 0 }
func (q *quiet) Err() error             { return nil }
func (q *quiet) Spin() int              { return 0 }
func (q *quiet) Poll() int              { return 0 }
func (q *quiet) Polling() bool          { return false }
func (q *quiet) Idle(int) bool          { return false }
func (q *quiet) Arm(Blocked) (t Ticket) { return t }
func (q *quiet) Disarm(Ticket)          {}
func (q *quiet) Park(Ticket)            {}

func (q *quiet) Left(int) bool {
	if !q.woken {
		q.woken, q.queue = true, append(q.queue, 7)
	}
	return true
}

// TestWaitTakesOnce: a condition that has held, and has taken something by that,
// is not called again.
func TestWaitTakesOnce(t *testing.T) {
	q, calls, got := &quiet{}, 0, 0
	err := WaitFor(q, nil, Cond{Lacking: LackingRank(q, 1), Ready: func() bool {
		if calls++; got != 0 {
			t.Error("called again after it has held")
		}
		if len(q.queue) == 0 {
			return false
		}
		got, q.queue = q.queue[0], q.queue[1:]
		return true
	}})
	if err != nil || got != 7 || calls != 3 {
		t.Errorf("%v, got %d by %d calls", err, got, calls)
	}
}

// disturbed is an endpoint whose sleeper is woken for nothing; Idle is told to go on until
// a wait has polled for as long as it may.
type disturbed struct {
	quiet
	parks, polls int
	each         []int // polls before each park
}

func (d *disturbed) Idle(idle int) bool {
	if idle >= 0 {
		return false
	}
	d.polls++
	return true
}

func (d *disturbed) Park(Ticket) {
	d.parks++
	d.each = append(d.each, d.polls)
	d.polls = 0
}

// TestWokenForNothing: a caller that is woken time and again without a reason sleeps ever
// later, so that those that wake it do so seldom, and never waits without a bound.
func TestWokenForNothing(t *testing.T) {
	d := &disturbed{}
	if err := Wait(d, nil, func() bool { return d.parks == 20 }); err != nil {
		t.Fatal(err)
	}
	for i, n := range d.each {
		if i > 0 && n < d.each[i-1] || n > mostWoken {
			t.Fatalf("polls before each sleep: %v, at most %d wanted", d.each, mostWoken)
		}
	}
	if first, last := d.each[0]+d.each[1], d.each[len(d.each)-1]; first != 0 || last != mostWoken {
		t.Fatalf("polls before each sleep: %v, from 0 to %d wanted", d.each, mostWoken)
	}
}
