// Package awake measures time-outs in time during which this process has run.
//
// A time-out on silence declares the other side dead. A pause of this process
// (SIGSTOP, a suspended machine, a host without a free processor) usually stops the
// other side too, and leaves unread what the other side has sent. Such time must not
// count. No clock of the system leaves it out: CLOCK_MONOTONIC goes on while processes
// are stopped (clock_gettime(2)).
//
// A [Count] therefore looks at the clock often, and one look adds no more than a
// twentieth of the limit (50 ms of a limit below a second). After a look that has
// left something out the other side has the time of an answer before the count is
// over, whatever had passed before. A process that runs loses nothing by this: its
// time-outs are as exact as those of package time.
//
// [AfterFunc], [After] and [WithTimeout] are what package time and package context
// have under these names, by such a count.
package awake

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	lookParts = 20                    // of the limit: the most that a look adds
	leastMost = 50 * time.Millisecond // but not less than this
	askParts  = 8                     // of the limit: the time of an answer, unless it is given
	leastAsk  = time.Second           // but not less than this, or the limit
	longPause = time.Second           // at least: a pause after which there is time for an answer again although some was left
)

// A Count counts the time until a limit. It reads no clock: times are given to it,
// from any origin. It must not be used by several goroutines at once.
type Count struct {
	limit, most, answer time.Duration

	looked time.Duration // when
	ran    time.Duration // counted
	missed time.Duration // left out
	grace  time.Duration // it is not over before so much is counted
}

// NewCount starts a count at now. answer is how long the other side may take to
// give a sign of life after a pause; 0 means an eighth of the limit, at least the
// smaller of the limit and a second.
func NewCount(limit, answer, now time.Duration) *Count {
	limit = max(limit, 0)
	if answer <= 0 {
		answer = max(limit/askParts, min(limit, leastAsk))
	}
	return &Count{limit: limit, most: max(limit/lookParts, leastMost), answer: answer, looked: now}
}

// Restart begins the count anew at now, for the other side has been heard.
func (c *Count) Restart(now time.Duration) {
	c.looked, c.ran, c.missed, c.grace = now, 0, 0, 0
}

// Look reports whether the limit is over at now. There should be a look [Count.Next]
// after the last one.
func (c *Count) Look(now time.Duration) (over bool) {
	passed := max(now-c.looked, 0)
	c.looked = now
	if passed > c.most {
		c.missed += passed - c.most
		// Else one that is always a little late would never judge.
		if c.grace <= c.ran || passed >= max(c.limit, longPause) {
			c.grace = c.ran + c.most + c.answer
		}
		passed = c.most
	}
	c.ran += passed
	return c.ran >= max(c.limit, c.grace)
}

// Next is how long after a look the next one is due.
func (c *Count) Next() time.Duration {
	return min(max(max(c.limit, c.grace)-c.ran, 0), c.most/2)
}

// Limit is the one given to NewCount.
func (c *Count) Limit() time.Duration { return c.limit }

// Paused describes the time that the count has left out since it began, such as "; this
// process did not run for 11.2s meanwhile"; "" if that is no more than a delay.
func (c *Count) Paused() string {
	if c.missed <= c.most {
		return ""
	}
	return fmt.Sprintf("; this process did not run for %v meanwhile", c.missed.Round(time.Millisecond))
}

// origin is that of now.
var origin = time.Now()

// Now is the time for a Count.
func Now() time.Duration { return time.Since(origin) }

// A Timer is a time-out under way. Its methods may be called by any goroutine.
type Timer struct {
	mu    sync.Mutex
	count *Count
	now   func() time.Duration
	f     func()
	t     *time.Timer
	done  bool // f was, or will not be, called
}

// AfterFunc calls f on a goroutine of its own when this process has run for limit.
func AfterFunc(limit time.Duration, f func()) *Timer { return start(limit, Now, f) }

func start(limit time.Duration, now func() time.Duration, f func()) *Timer {
	t := &Timer{count: NewCount(limit, 0, now()), now: now, f: f}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t = time.AfterFunc(t.count.Next(), t.look)
	return t
}

// look is called when one is due.
func (t *Timer) look() {
	t.mu.Lock()
	if t.done {
		t.mu.Unlock()
		return
	}
	if !t.count.Look(t.now()) {
		t.t.Reset(t.count.Next())
		t.mu.Unlock()
		return
	}
	t.done = true
	t.mu.Unlock()
	t.f()
}

// Stop keeps f from being called. It is false if f was called, or is about to be,
// or Stop was called before.
func (t *Timer) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return false
	}
	t.done = true
	t.t.Stop()
	return true
}

// After returns a channel that gets the time when this process has run for limit.
func After(limit time.Duration) <-chan time.Time {
	c, _ := NewTimer(limit)
	return c
}

// NewTimer is After with a function that ends it, so that it does not go on until
// the limit.
func NewTimer(limit time.Duration) (over <-chan time.Time, stop func() bool) {
	c := make(chan time.Time, 1)
	t := AfterFunc(limit, func() { c <- time.Now() })
	return c, t.Stop
}

// limited is a context that a Timer ends.
type limited struct{ context.Context }

// Err is context.DeadlineExceeded after the limit.
func (l limited) Err() error {
	err := l.Context.Err()
	if err != nil && context.Cause(l.Context) == errLimit {
		return context.DeadlineExceeded
	}
	return err
}

// errLimit is the cause of a context's end by a Timer.
var errLimit = fmt.Errorf("awake: %w", context.DeadlineExceeded)

// WithTimeout returns a context that ends when parent does, when this process has
// run for limit, and by cancel, which must be called. It has no Deadline of its own.
// Contexts derived from it report context.Canceled and a cause that matches
// context.DeadlineExceeded.
func WithTimeout(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	t := AfterFunc(limit, func() { cancel(errLimit) })
	return limited{ctx}, func() {
		t.Stop()
		cancel(nil)
	}
}
