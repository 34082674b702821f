package where

import (
	"strings"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// Stall is what a job does when no rank has got on: the value of ARGON_STALL and of gasrun -stall.
type Stall struct {
	After time.Duration // not above 0: nothing is looked for
	End   bool          // the job ends then
}

// DefaultStall counts where nothing is said.
var DefaultStall = Stall{After: 30 * time.Second}

// ParseStall reads a duration, or 0, and behind it maybe ",end".
func ParseStall(s string) (Stall, error) {
	text, end := strings.CutSuffix(s, ",end")
	if text == "0" && !end {
		return Stall{After: -1}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return Stall{}, errs.BadArg("where: %q is neither a time such as 30s, with or without \",end\", nor 0", s)
	}
	return Stall{d, end}, nil
}

// A Watch finds by ranks' answers when none has got on. Its methods are for one goroutine at a time.
type Watch struct {
	Stall
	last  map[int]Answer
	since map[int]time.Duration // when the rank's answer became what it is
	moved time.Duration         // when a rank last got on
	stuck time.Duration         // when a deadlock was first seen, 0: not now
	said  bool                  // of this standstill
	begun bool
}

// Every is the time until the next look: short when nothing moved at the last, so that a deadlock is
// said within seconds.
func (w *Watch) Every() time.Duration {
	if w.stuck != 0 {
		return max(min(w.After/8, time.Second), 20*time.Millisecond)
	}
	return max(w.After/4, 20*time.Millisecond)
}

// Note takes the answers of a look at time now, and adds to each for how long it has been so.
// speak reports whether a standstill is to be told of; what begins the line that tells of it.
func (w *Watch) Note(now time.Duration, all []Answer) (speak bool, what string) {
	on := !w.begun || len(all) != len(w.last)
	last := make(map[int]Answer, len(all))
	since := make(map[int]time.Duration, len(all))
	for i := range all {
		a := &all[i]
		b, known := w.last[a.Rank]
		moved := a.State != Stopped && (!known || a.Moves != b.Moves || a.State == Runs || a.State == Goes || a.Busy && (a.State == Blocked || a.Open > 0))
		on = on || moved || a.State == Unknown
		since[a.Rank] = now
		if known && !moved && a.Line == b.Line && a.State == b.State && a.Text == b.Text {
			since[a.Rank] = w.since[a.Rank]
		}
		a.Since = now - since[a.Rank]
		last[a.Rank] = *a
	}
	w.last, w.since, w.begun = last, since, true
	if on {
		w.moved, w.stuck, w.said = now, 0, false
		return false, ""
	}
	if w.said {
		w.stuck = 0 // and looks are rarer
		return false, ""
	}
	if _, stuck := Cause(all); !stuck {
		w.stuck = 0
	} else if w.stuck == 0 {
		w.stuck = now
	} else if now-w.stuck >= min(w.After/8, time.Second) {
		w.said = true
		return true, "the job cannot go on"
	}
	if now-w.moved < w.After {
		return false, ""
	}
	w.said = true
	return true, "no rank has got on for " + (now - w.moved).Round(time.Second/10).String()
}

// Ages adds to answers that were asked for otherwise for how long they have been so.
func (w *Watch) Ages(now time.Duration, all []Answer) {
	for i := range all {
		a := &all[i]
		if b, ok := w.last[a.Rank]; ok && a.Moves == b.Moves && a.Line == b.Line && a.State == b.State && a.Text == b.Text {
			a.Since = now - w.since[a.Rank]
		}
	}
}
