package launch

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys/awake"
)

// askTime is how long a job that is told to end waits for its ranks to say where they wait.
// Tests have more of it for slow machines.
var askTime = time.Second

// fewLines is the longest report with a line for each rank.
const fewLines = 24

// A question is what the launcher has asked all ranks: where they wait.
type question struct {
	head string // of the report
	then func() // what follows it, or nil
	most int    // lines of the report until ranks are put together
}

// dump is the question that ends the job.
type dump struct {
	begun bool
	asked []int            // ranks that were asked
	quiet <-chan time.Time // looks whether ranks still write
	size  int              // what they have written so far
}

// ask asks every rank by sig where it waits, and has the job's loop report the answers,
// when all have come or after limit, and then call then. The answers, and with keep all
// else that ranks write to standard error, do not get into the job's output.
func (j *job) ask(sig syscall.Signal, limit time.Duration, keep bool, q *question) {
	j.question = q
	var wait []*rank
	seen := look(j.byHost(j.alive()))
	for r := range j.ranks {
		rk := &j.ranks[r]
		if !rk.live {
			continue
		}
		need := 1
		if j.single() {
			need = min(j.Size, jobenv.MostDiagnosed)
		}
		rk.held = rk.err.hold(need, keep)
		if !seen[r].stopped() && (keep || j.memory.State(r) == Attached) {
			wait = append(wait, rk)
		}
	}
	j.signalGroups(sig)
	over := awake.After(limit)
	go func() {
		for _, rk := range wait {
			select {
			case <-rk.held.answered:
				continue
			case <-rk.err.ended:
				continue
			case <-over:
			}
			break
		}
		j.post(func() {
			if j.question == q {
				j.answers(q)
			}
		})
	}()
}

// askAside asks ranks where they wait and lets them go on.
func (j *job) askAside(limit time.Duration, q *question) {
	then := q.then
	q.then = func() {
		for r := range j.ranks {
			j.ranks[r].err.release()
		}
		if then != nil {
			then()
		}
	}
	j.ask(jobenv.AskSignal, limit, false, q)
}

// anyAttached reports whether a rank lives that can answer.
func (j *job) anyAttached() bool {
	return slices.ContainsFunc(j.alive(), func(r int) bool { return j.memory.State(r) == Attached })
}

// askLast has each rank say where it waits and end. A rank answers SIGQUIT by a line that
// says where it waits, then the stacks of its goroutines. Lines are collected first, so that
// they can be read together; the job ends with status and err after that.
func (j *job) askLast(status int, err error) {
	j.conclude(status, err)
	if j.ending {
		j.kill()
		return
	}
	j.ending = true
	j.dump = dump{begun: true, asked: j.alive()}
	j.ask(syscall.SIGQUIT, j.AnswerGrace, true, &question{
		head: j.verdict.Error(),
		most: math.MaxInt,
		then: func() { j.dump.quiet = awake.After(j.AnswerGrace) },
	})
}

// answers reports what ranks have answered to q.
func (j *job) answers(q *question) {
	j.question = nil
	seen := look(j.byHost(j.alive()))
	var all []answer
	for p := range j.ranks {
		rk := &j.ranks[p]
		said := rk.err.answers()
		for _, r := range slices.Sorted(maps.Keys(said)) {
			if a := (answer{r, j.named(p), errs.Line(said[r], textMost)}); j.single() {
				a.name = fmt.Sprintf("rank %d", r)
				all = append(all, a)
			} else if r == p {
				all = append(all, a)
			}
		}
		proc, there := seen[p]
		there = there && rk.live && proc.state != 'Z'
		if len(said) == 0 {
			all = append(all, answer{p, j.named(p), j.silence(p, proc, there)})
		}
		if j.dump.begun && there && proc.stopped() { // it would not obey
			j.signalRanks([]int{p}, syscall.SIGKILL, true)
		}
	}
	j.log.printf("gasrun: %s; where each rank waits:", q.head)
	for _, line := range report(all, q.most) {
		j.log.printf("gasrun:   %s", line)
	}
	if q.then != nil {
		q.then()
	}
}

// silence is why process p has not answered.
func (j *job) silence(p int, proc process, there bool) string {
	switch rk := &j.ranks[p]; {
	case !rk.live && !slices.Contains(j.dump.asked, p):
		if rk.cause != "" {
			return "has ended before: " + rk.cause
		}
		return "has ended before"
	case j.memory.State(p) <= Joined:
		if there {
			return "has not attached; the process is " + proc.describe()
		}
		return "has not attached"
	case there:
		return "does not answer; the process is " + proc.describe()
	}
	return "ended without an answer"
}

// An answer is what is known of where a rank waits.
type answer struct {
	rank       int
	name, text string
}

// report lays answers out: a line for each rank or, if that is more than most, a line for
// all ranks whose answers differ in numbers only, with the answer of the first of them.
func report(all []answer, most int) (lines []string) {
	if len(all) <= most {
		for _, a := range all {
			lines = append(lines, a.name+": "+a.text)
		}
		return lines
	}
	ranks := map[string][]int{}
	var first []answer
	var kinds []string
	for _, a := range all {
		kind := number.ReplaceAllString(a.text, "#")
		if ranks[kind] == nil {
			first, kinds = append(first, a), append(kinds, kind)
		}
		ranks[kind] = append(ranks[kind], a.rank)
	}
	for i, a := range first {
		name := a.name
		if rs := ranks[kinds[i]]; len(rs) > 1 {
			name = fmt.Sprintf("ranks %s (%d), as %s", spans(rs), len(rs), a.name)
		}
		lines = append(lines, name+": "+a.text)
	}
	return lines
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// spans is an ascending list of ranks as messages have it, such as 0-2, 7, of which at most
// eight parts are named.
func spans(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		k := i + 1
		for k < len(ranks) && ranks[k] == ranks[k-1]+1 {
			k++
		}
		if len(parts) == 8 {
			return strings.Join(parts, ", ") + ", ..."
		}
		part := strconv.Itoa(ranks[i])
		if k > i+1 {
			part += "-" + strconv.Itoa(ranks[k-1])
		}
		parts, i = append(parts, part), k
	}
	return strings.Join(parts, ", ")
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
	if j.question != nil { // all ranks ended first
		j.answers(j.question)
	}
	for _, r := range j.dump.asked {
		rk := &j.ranks[r]
		if rk.err.heldSize() > 0 {
			j.log.printf("gasrun: %s:", j.named(r))
		}
		rk.err.release()
	}
}
