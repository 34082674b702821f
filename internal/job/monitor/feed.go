// Package monitor shows a job while it runs: at a terminal, on a page and to Prometheus. The launcher
// makes views, of the same answers by which it finds that a job hangs, and only while a
// viewer waits for one: a job that is not looked at is not asked.
package monitor

import (
	"context"
	"sync"
	"time"

	"github.com/argon-go/argon/internal/job/where"
)

// A Feed passes views on from a launcher to viewers. Those that are slow miss some, and hold up nothing.
type Feed struct {
	mu      sync.Mutex
	job     Job
	wake    func() // has the launcher make a view; nil before Begin
	wanted  int    // viewers that wait for one
	now     *View
	over    bool
	changed chan struct{} // closed at the next change
	last    map[int]sample
}

// A Job is what does not change while it runs.
type Job struct {
	ID, Program string
	Size        int
	Hosts       []Host
}

// A Host has the ranks from First on. Its Name is "" if it is the launcher's.
type Host struct {
	Name        string
	First, Size int
}

// A View is what was known of all ranks at one moment.
type View struct {
	Job
	At      time.Duration  // since the job began
	Answers []where.Answer // in ascending order of ranks; of very many simulated ones, some
	rates   []rates        // of each
	last    map[int]sample // of the view before, by rank

	once sync.Once
	json []byte // of JSON
}

// rates are what an answer's counters grew by since the one before, a second.
type rates struct{ sent, received, accesses, processors float64 }

type sample struct {
	at time.Duration
	where.Answer
}

// Begin says that the job runs, and how views of it are had: by wake, after which the launcher calls
// Publish, soon. The methods of the launcher's side do nothing if f is nil.
func (f *Feed) Begin(job Job, wake func()) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.job, f.wake = job, wake
	wanted := f.wanted
	f.mu.Unlock()
	if wanted > 0 {
		wake()
	}
}

// Wanted reports whether a viewer waits.
func (f *Feed) Wanted() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wanted > 0
}

// Publish passes answers on that were given at now, if a viewer waits.
func (f *Feed) Publish(now time.Duration, all []where.Answer) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wanted == 0 {
		return
	}
	v := &View{Job: f.job, At: now, Answers: all, rates: make([]rates, len(all)), last: f.last}
	last := make(map[int]sample, len(all))
	for i := range all {
		a, was := &all[i], f.last[all[i].Rank]
		if a.Moves+a.Sent+a.Received == 0 && a.Ran == 0 { // it did not answer
			a.Sent, a.Received, a.Accesses, a.Ran, a.Peers = was.Sent, was.Received, was.Accesses, was.Ran, was.Peers
			if a.State != where.Ended {
				a.Memory = was.Memory
			}
		}
		if passed := (now - was.at).Seconds(); passed > 0 {
			v.rates[i] = rates{
				grown(a.Sent, was.Sent) / passed, grown(a.Received, was.Received) / passed,
				grown(a.Accesses, was.Accesses) / passed, grown(uint64(a.Ran), uint64(was.Ran)) / passed / 1e9,
			}
		}
		last[a.Rank] = sample{now, *a}
	}
	f.last, f.now = last, v
	f.change()
}

// grown is by how much a counter is above what it was; a further job of the program begins at 0.
func grown(now, was uint64) float64 {
	if now < was {
		was = 0
	}
	return float64(now - was)
}

// Close says that the job has ended.
func (f *Feed) Close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		f.change()
	}
}

func (f *Feed) change() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// Next waits for a view that is newer than seen, with nil for one that is newer than the call. It is nil at the end of
// the job or of ctx.
func (f *Feed) Next(ctx context.Context, seen *View) *View {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seen == nil {
		seen = f.now
	}
	f.wanted++
	defer func() { f.wanted-- }()
	if wake := f.wake; wake != nil && f.now == seen && !f.over {
		f.mu.Unlock()
		wake()
		f.mu.Lock()
	}
	for f.now == seen && !f.over {
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		f.mu.Lock()
		if ctx.Err() != nil {
			return nil
		}
	}
	if f.over && f.now == seen {
		return nil
	}
	return f.now
}
