package launch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/monitor"
	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/sys/awake"
)

// fewLines is the longest report with a line for each rank.
const fewLines = where.FewLines

// A question is what the launcher has asked all ranks: where they wait.
type question struct {
	head string // of the report
	then func() // what follows it, or nil
	most int    // lines of the report until ranks are put together
	// say takes each line of the report, nil: the job's log.
	say func(format string, args ...any)
	// silent: nothing is reported but, if no rank gets on, that.
	silent bool
	// told: a report has been made, or will be by others; ranks write what they keep.
	told bool
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
	tell := j.Last && !q.silent
	type answer struct{ came, ended <-chan struct{} }
	var wait []answer
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
		held := rk.err.hold(need, keep)
		if tell && !seen[r].stopped() {
			j.signalRanks([]int{r}, jobenv.ToldSignal, true)
		}
		if !seen[r].stopped() && (keep || j.memory.State(r) == Attached) {
			wait = append(wait, answer{held.answered, rk.err.ended})
		}
	}
	j.signalGroups(sig)
	over := awake.After(limit)
	go func() {
		for _, a := range wait {
			select {
			case <-a.came:
				continue
			case <-a.ended:
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
			_ = j.ranks[r].err.release(nil) // to no file
		}
		if then != nil {
			then()
		}
	}
	j.ask(jobenv.AskSignal, limit, false, q)
}

// anyAttached reports whether a rank lives that can answer.
func anyAttached(j *job) bool {
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
		most: fewLines,
		then: func() { j.dump.quiet = awake.After(j.AnswerGrace) },
	})
}

// answers reports what ranks have answered to q.
func (j *job) answers(q *question) {
	j.question = nil
	if q.told {
		q.then()
		return
	}
	all := j.collect()
	now := time.Since(j.begun)
	stalled := ""
	switch {
	case !q.silent:
		j.watcher.Ages(now, all)
	case !slices.ContainsFunc(all, func(a where.Answer) bool { return a.State != where.Unknown }):
		if !j.Feed.Wanted() { // else it is tried again
			j.deaf++ // their standard error goes elsewhere
		}
	default:
		if speak, what := j.watcher.Note(now, all); speak && j.stalls() {
			stalled = what
		}
	}
	j.Feed.Publish(now, all)
	if !q.silent {
		j.tell(q.say, q.head, q.most, all)
	}
	if q.then != nil {
		q.then()
	}
	if stalled != "" {
		j.tellStall(stalled, all)
	}
}

// recorded has ranks write what they have done last, if they keep that, and then calls then.
func recorded(j *job, limit time.Duration, then func()) {
	if !j.Last || !anyAttached(j) {
		then()
		return
	}
	j.askAside(limit, &question{told: true, then: then})
}

// collect is what is known of all ranks when they have answered, or had the time to.
func (j *job) collect() (all []where.Answer) {
	seen := look(j.byHost(j.alive()))
	for p := range j.ranks {
		rk := &j.ranks[p]
		said := rk.err.answers()
		for _, r := range slices.Sorted(maps.Keys(said)) {
			if a := where.Decode(r, said[r]); j.single() {
				all = append(all, a)
			} else if r == p {
				a.Name = j.named(p)
				all = append(all, a)
			}
		}
		proc, there := seen[p]
		there = there && rk.live && proc.state != 'Z'
		if len(said) == 0 {
			a := j.silence(p, proc, there)
			a.Rank, a.Name = p, j.named(p)
			all = append(all, a)
		}
		if j.dump.begun && there && proc.stopped() { // it would not obey
			j.signalRanks([]int{p}, syscall.SIGKILL, true)
		}
	}
	return all
}

// tell says why the job does not go on, as far as that is known, and where each rank is.
func (j *job) tell(say func(format string, args ...any), head string, most int, all []where.Answer) {
	if say == nil {
		say = j.log.printf
	}
	if cause, _ := where.Cause(all); cause != "" {
		say("gasrun: %s: %s", head, errs.Line(cause, 2*textMost))
	} else {
		say("gasrun: %s; where each rank waits:", head)
	}
	for _, line := range where.Report(all, most, j.Verbose) {
		say("gasrun:   %s", errs.Line(line, 2*textMost))
	}
}

// stalls reports whether it is told if no rank gets on.
func (j *job) stalls() bool {
	return j.Stall.After > 0 && (!j.Quiet || j.Stall.End) && j.deaf < 2
}

// Times between views of a job, which are further apart if it takes ranks long to answer.
const (
	viewEvery = time.Second
	viewMost  = 5 * time.Second
	viewShare = 8 // of the time goes for answers
)

// nextLook has ranks asked again: for viewers, or to find whether they get on.
func (j *job) nextLook() {
	j.stall = nil
	if j.Feed.Wanted() {
		j.stall = awake.After(max(0, j.lookAt-time.Since(j.begun)))
	} else if j.stalls() {
		j.stall = awake.After(j.watcher.Every())
	}
}

// rearm has ranks asked again if the question that another one replaces was whether they get on.
func rearm(j *job) {
	if j.question != nil && j.question.silent {
		j.nextLook()
	}
}

// lookStall asks all ranks where they are. Nothing of that is seen but by viewers.
func (j *job) lookStall() {
	j.stall = nil
	wanted := j.Feed.Wanted()
	if j.ending || j.dump.begun || !wanted && !j.stalls() {
		return
	}
	began := time.Since(j.begun)
	j.lookAt = began + viewEvery
	starting := slices.ContainsFunc(j.alive(), func(r int) bool { return j.memory.State(r) <= Joined }) // still says so
	if starting && wanted {
		j.Feed.Publish(began, j.collect())
	}
	if starting || j.question != nil {
		j.nextLook()
		return
	}
	j.askAside(j.AnswerGrace, &question{silent: true, then: func() {
		j.lookAt = began + min(max(viewEvery, viewShare*(time.Since(j.begun)-began)), viewMost)
		j.nextLook()
	}})
}

// seenAs is j as viewers know it.
func seenAs(j *job) monitor.Job {
	s := monitor.Job{ID: j.id, Program: j.Program, Size: j.Size}
	for _, h := range j.hosts {
		s.Hosts = append(s.Hosts, monitor.Host{Name: h.label, First: h.first, Size: h.size})
	}
	if j.single() { // one process has all ranks
		s.Hosts[0].Size = j.Size
	}
	return s
}

// tellStall tells that no rank gets on, and ends the job if that was asked for.
func (j *job) tellStall(what string, all []where.Answer) {
	what += " (-stall)"
	j.tell(nil, what, fewLines, all)
	if !j.Stall.End {
		recorded(j, j.AnswerGrace, j.nameLast)
		return
	}
	cause, _ := where.Cause(all)
	j.conclude(jobenv.StatusTimeout, errors.New(strings.TrimSuffix(what+": "+cause, ": ")))
	j.terminate(syscall.SIGTERM)
}

// nameLast tells where ranks have written what they have done last, if they keep that.
func (j *job) nameLast() {
	if !j.Last {
		return
	}
	hosts := elsewhere(j.hosts)
	tell := func() { j.log.printf("gasrun: what the ranks have done last is in %s (-trace-last)", j.Trace) }
	if len(hosts) == 0 {
		tell()
		return
	}
	j.traces.aside.Go(func() { // which may take long
		fetchAll(hosts, func(h *host, err error) {
			if err != nil {
				j.log.printf("gasrun: what the ranks on %s have done last is not all in %s: %s (-trace-last)", h.label, j.Trace, bare(err))
			}
		})
		tell()
	})
}

// silence is what is known of process p, which has not answered.
func (j *job) silence(p int, proc process, there bool) where.Answer {
	switch rk := &j.ranks[p]; {
	case !rk.live && !slices.Contains(j.dump.asked, p):
		if rk.cause != "" {
			return where.Answer{State: where.Ended, Text: "has ended before: " + rk.cause}
		}
		return where.Answer{State: where.Ended, Text: "has ended before"}
	case rk.live && j.memory.State(p) == Finished:
		return where.Answer{State: where.Ended, Text: "has left the job"}
	case j.memory.State(p) <= Joined:
		if there {
			return where.Answer{Text: "has not attached; the process is " + proc.describe()}
		}
		return where.Answer{Text: "has not attached"}
	case there && proc.stopped():
		return where.Answer{State: where.Stopped, Text: "does not answer; the process is " + proc.describe() + " (kill -CONT lets it go on)"}
	case there:
		return where.Answer{Text: "does not answer; the process is " + proc.describe()}
	}
	return where.Answer{State: where.Ended, Text: "ended without an answer"}
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

// stacks passes on what ranks wrote in answer, one rank after the other: to Config.Stacks, so that the report is the last on the
// screen, or to the job's output where there is no such file. All streams have ended.
func (j *job) stacks() {
	if !j.dump.begun {
		return
	}
	if j.question != nil { // all ranks ended first
		j.answers(j.question)
	}
	var f *os.File
	var err error
	begun := false
	for _, r := range j.dump.asked {
		if j.ranks[r].err.heldSize() == 0 {
			_ = j.ranks[r].err.release(nil) // ends its line
			continue
		}
		if !begun {
			begun = true
			f, err = createStacks(j.Stacks)
		}
		if head := fmt.Sprintf("gasrun: %s:", j.named(r)); f == nil {
			j.log.printf("%s", head)
		} else {
			fmt.Fprintln(f, head) // if that fails, so does what comes
		}
		err = cmp.Or(err, j.ranks[r].err.release(f))
	}
	if f != nil {
		err = cmp.Or(err, f.Close())
	}
	switch {
	case err != nil:
		j.log.printf("gasrun: the stacks of the goroutines: %v", err)
	case f != nil && !j.Quiet:
		j.log.printf("gasrun: the stacks of the goroutines are in %s", f.Name())
	}
}

// createStacks makes the file or, where that cannot be, one among temporary files; it is nil if there is to be none, or none can be.
func createStacks(name string) (f *os.File, err error) {
	if name == "" {
		return nil, nil
	}
	if f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o666); err != nil {
		f, err = os.CreateTemp("", "*-"+filepath.Base(name))
	}
	return f, err
}
