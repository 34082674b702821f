package launch

import (
	"fmt"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys/awake"
)

// dump is the launcher's question to all ranks where they wait.
type dump struct {
	begun bool
	asked []int            // ranks that were asked
	event chan struct{}    // all have answered or had the time to
	quiet <-chan time.Time // looks whether ranks still write
	size  int              // what they have written so far

	summarised bool
}

// ask sends every rank a SIGQUIT. The runtime of a rank answers on its standard
// error with one line "argon: rank R: where it waits", then the stacks of its
// goroutines. Lines are collected first, so that they can be read together; the
// job ends with status and err after that.
func (j *job) ask(status int, err error) {
	j.conclude(status, err)
	if j.ending {
		j.kill()
		return
	}
	j.ending = true
	d := &j.dump
	d.begun, d.event = true, make(chan struct{}, 1)
	var wait []*rank
	seen := look(j.byHost(j.alive()))
	for r := range j.ranks {
		if rk := &j.ranks[r]; rk.live {
			d.asked = append(d.asked, r)
			// One process that runs all ranks has a line for each.
			prefix := "\x00" // no line begins so
			if !j.single() {
				prefix = fmt.Sprintf("argon: rank %d: ", r)
			}
			rk.held = rk.err.hold(prefix)
			if !seen[r].stopped() {
				wait = append(wait, rk)
			}
		}
	}
	j.signalGroups(syscall.SIGQUIT)
	limit := awake.After(j.AnswerGrace)
	go func() {
		for _, rk := range wait {
			select {
			case <-rk.held.answered:
			case <-rk.err.ended:
			case <-limit:
				d.event <- struct{}{}
				return
			}
		}
		d.event <- struct{}{}
	}()
}

// summarise writes one line per rank. Stacks stay back until clean.
func (j *job) summarise() {
	d := &j.dump
	d.summarised = true
	seen := look(j.byHost(j.alive()))
	j.log.printf("gasrun: %v; where each rank waits:", j.verdict)
	for r := range j.ranks {
		rk := &j.ranks[r]
		if j.single() && rk.err.heldSize() > 0 {
			continue
		}
		answer, got := "", false
		if rk.held != nil {
			select {
			case <-rk.held.answered:
				answer, got = errs.Line(rk.held.answer, textMost), true
			default:
			}
		}
		p, there := seen[r]
		switch {
		case got:
		case rk.held == nil:
			answer = "has ended before"
			if rk.cause != "" {
				answer += ": " + rk.cause
			}
		case j.memory.State(r) <= Joined:
			answer = "has not attached"
			if rk.live && there && p.state != 'Z' {
				answer += "; the process is " + p.describe()
			}
		case rk.live && there && p.state != 'Z':
			answer = "does not answer; the process is " + p.describe()
		default:
			answer = "ended without an answer"
		}
		j.log.printf("gasrun:   %s: %s", j.named(r), answer)
		if rk.live && there && p.stopped() {
			j.signalRanks([]int{r}, syscall.SIGKILL, true)
		}
	}
	d.quiet = awake.After(j.AnswerGrace)
}

// endWhenQuiet ends the ranks when none has written anything for a while.
func (j *job) endWhenQuiet() {
	d := &j.dump
	size := 0
	for _, r := range d.asked {
		size += j.ranks[r].err.heldSize()
	}
	if size == d.size {
		d.quiet = nil
		j.kill()
		return
	}
	d.size = size
	d.quiet = awake.After(j.AnswerGrace)
}

// stacks passes on what ranks wrote in answer, one rank after the other. All
// streams have ended.
func (j *job) stacks() {
	if !j.dump.begun {
		return
	}
	if !j.dump.summarised { // all ranks ended first
		j.summarise()
	}
	for _, r := range j.dump.asked {
		rk := &j.ranks[r]
		if rk.err.heldSize() > 0 {
			j.log.printf("gasrun: %s:", j.named(r))
		}
		rk.err.release()
	}
}
