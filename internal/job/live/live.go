// Package live lists the jobs that run in this process, so that a watchdog can
// say what their ranks wait for.
package live

import "sync"

// A Job is one job under way.
type Job struct {
	// Waiting describes the job, one line per rank where ranks are few. It may be
	// called at any time until Remove, on any goroutine, and may block if the job
	// is broken.
	Waiting func() string
	// Ask, if not nil, makes a job of several processes say where each rank waits,
	// on standard error, and end; it returns when the job has ended.
	Ask func()
}

var (
	mu   sync.Mutex
	jobs []*Job
)

// Add lists j.
func Add(j *Job) {
	mu.Lock()
	defer mu.Unlock()
	jobs = append(jobs, j)
}

// Remove takes j off the list.
func Remove(j *Job) {
	mu.Lock()
	defer mu.Unlock()
	for i, x := range jobs {
		if x == j {
			last := len(jobs) - 1
			jobs[i], jobs[last] = jobs[last], nil
			jobs = jobs[:last]
			return
		}
	}
}

// Jobs is the list now, in no order.
func Jobs() []*Job {
	mu.Lock()
	defer mu.Unlock()
	return append([]*Job(nil), jobs...)
}
