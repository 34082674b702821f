package shm

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// form is one way to have a job inside this process: the in-process form, or
// ranks that map a launcher's memory as processes do; with senders that fence
// or with sleepers that make a barrier.
type form struct {
	name          string
	mapped, fence bool
}

var forms = []form{
	{"local/fence", false, true},
	{"local/barrier", false, false},
	{"mapped/fence", true, true},
	{"mapped/barrier", true, false},
}

// tb has the methods that testing.T and rapid.T share.
type tb interface {
	Cleanup(func())
	Name() string
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	FailNow()
	Failed() bool
}

// eachForm runs f as a subtest for every form.
func eachForm(t *testing.T, f func(t *testing.T, fm form)) {
	for _, fm := range forms {
		t.Run(fm.name, func(t *testing.T) { f(t, fm) })
	}
}

// open opens n ranks that are not attached yet.
func (fm form) open(t tb, n int, c conduits.Config) []*Endpoint {
	if c.MaxSegment == 0 {
		c.MaxSegment = 1 << 20
	}
	eps := make([]*Endpoint, n)
	if fm.mapped {
		m, err := CreateJob(n, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		fm.force(m.j)
		for r := range eps {
			eps[r] = join(t, m, r, n)
		}
		return eps
	}
	l, err := Local(n, c)
	if err != nil {
		t.Fatal(err)
	}
	for r, e := range l {
		eps[r] = e.(*Endpoint)
		fm.force(eps[r].j)
	}
	return eps
}

// force sets what the number of processors would decide.
func (fm form) force(j *job) {
	fence := uint32(0)
	if fm.fence && conc.PlainRelease {
		fence = 1
	}
	atomic.StoreUint32(j.h32(hdrFence), fence)
}

// join opens rank of a job as a process would.
func join(t tb, m *JobMemory, rank, size int) *Endpoint {
	e, err := Join(conduits.Job{Rank: rank, Size: size, Env: segfd(m.File())}, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, e.(*Endpoint))
	return e.(*Endpoint)
}

// endWith has what e has mapped of its job's memory unmapped at the end of the test, if
// the test has closed it: mappings of a process are limited.
func endWith(t tb, e *Endpoint) {
	t.Cleanup(func() {
		if e.closed.Load() {
			e.j.unmap()
		}
	})
}

// segfd is an environment that names f.
func segfd(f *os.File) func(string) string {
	return func(key string) string {
		if key == "ARGON_SEGFD" {
			return strconv.Itoa(int(f.Fd()))
		}
		return ""
	}
}

// attach attaches all of eps.
func attach(t tb, eps []*Endpoint, size uint64, got func(rank int, m *conduits.Message)) {
	inParallel(t, len(eps), func(r int) error {
		return eps[r].Attach(conduits.AttachConfig{Size: size, Receiver: &sink{func(m *conduits.Message) { got(r, m) }}})
	})
	for _, e := range eps {
		if want := conc.PlainRelease && *e.j.h32(hdrFence) != 0; e.fence != want {
			t.Fatalf("rank %d fences: %v, want %v", e.rank, e.fence, want)
		}
	}
	watch(t, eps)
}

// inParallel runs f for 0..n-1 and fails the test on any error.
func inParallel(t tb, n int, f func(i int) error) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := f(i); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}()
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// watch prints where ranks wait shortly before the test binary's time is over: a
// lost wake-up shows as a hang.
func watch(t tb, eps []*Endpoint) {
	type deadliner interface{ Deadline() (time.Time, bool) }
	d, ok := t.(deadliner)
	if !ok {
		return
	}
	end, ok := d.Deadline()
	if !ok {
		return
	}
	timer := time.AfterFunc(time.Until(end)-5*time.Second, func() {
		for _, e := range eps {
			fmt.Fprintf(os.Stderr, "%s: %s\n", t.Name(), e.state())
		}
	})
	t.Cleanup(func() { timer.Stop() })
}

// state describes an endpoint that may hang.
func (e *Endpoint) state() string {
	s := fmt.Sprintf("rank %d: parked %d, seq %d", e.rank, atomic.LoadUint32(e.parked), atomic.LoadUint32(e.j.c32(e.rank, ctlSeq)))
	for _, b := range e.Waiting() {
		s += "; " + b.Blocked()
	}
	return s
}

// send commits one short message and reports whether there was room.
func send(e *Endpoint, dst int, c conduits.Class, words ...uint32) bool {
	s, st := e.Reserve(dst, c, len(words), 0)
	if st != conduits.Ready {
		return false
	}
	copy(s.Words, words)
	e.Commit(dst, c, s, 1, 0)
	return true
}

// why is a reason to wait, for tests that look for it.
type why string

func (w why) Blocked() string { return string(w) }

const page = segment.PageSize

func isBadArg(err error) bool { return errors.Is(err, conduits.ErrBadArg) }
