package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
)

// Runs under way, for the signals that ask where ranks wait.
var running struct {
	mu   sync.Mutex
	runs map[*run]bool
	sig  chan os.Signal

	starvation sys.Starvation // of the process, since a question before or since it had a run
}

// diagnose has signals answered for r until forget is called: by a report of where ranks wait or, under
// gasrun, which makes that of all processes, by a line per rank. SIGQUIT ends the process, with
// all goroutine stacks before the report and exit status 131; SIGUSR1 does not, nor does the launcher's question.
func diagnose(r *run) (forget func()) {
	d := &running
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.runs) == 0 {
		d.starvation.Look()
		d.runs = map[*run]bool{}
		d.sig = make(chan os.Signal, 4)
		ask := syscall.SIGUSR1
		if underGasrun() {
			ask = jobenv.AskSignal
			if os.Getenv(jobenv.TraceLast) != "" {
				sys.Catch(d.sig, jobenv.ToldSignal)
			}
		}
		sys.Catch(d.sig, syscall.SIGQUIT, ask)
		go func(sig <-chan os.Signal) {
			told := -time.Second
			for s := range sig {
				if s == jobenv.ToldSignal { // which a shell sends, too, to go on with a job
					told = awake.Now()
					continue
				}
				answer(s == syscall.SIGQUIT, awake.Now()-told < time.Second)
			}
		}(d.sig)
	}
	d.runs[r] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.runs, r)
		if len(d.runs) == 0 {
			signal.Stop(d.sig)
			close(d.sig)
		}
	}
}

// underGasrun reports whether gasrun looks after the job of this process.
func underGasrun() bool {
	return joined.Load() && !foreign.Load() || os.Getenv(jobenv.SimStatus) != ""
}

// answer says where ranks wait, which is told if that is set, and ends the process if last is.
func answer(last, told bool) {
	d := &running
	d.mu.Lock()
	var out io.Writer = os.Stderr
	var said bytes.Buffer // what is the last on the screen
	for r := range d.runs {
		out = r.cfg.Output
		if told || last || !underGasrun() {
			r.told()
		}
		all := r.answers(last && !underGasrun() || os.Getenv(jobenv.Viewed) == "1")
		if underGasrun() {
			for i := range all {
				fmt.Fprintln(out, all[i].Encode())
			}
		}
		if last || !underGasrun() {
			r.age(all)
			to := out
			if last {
				to = &said
			}
			report(to, "where each rank waits", all, len(r.eps), last)
		}
	}
	if !last {
		d.mu.Unlock()
		return
	}
	buf := make([]byte, 1<<20)
	for len(buf) < 64<<20 {
		if k := runtime.Stack(buf, true); k < len(buf) {
			buf = buf[:k]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	fmt.Fprintf(out, "\n%s\n\n", buf)
	_, _ = said.WriteTo(out)
	os.Exit(jobenv.StatusQuit)
}

// toldTime is how long an answer waits for what ranks write because of it: the disk may be stuck.
const toldTime = time.Second / 2

// told tells ranks that a report says where they wait.
func (r *run) told() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, rank := range r.ranks {
			if t, ok := rank.(Teller); ok {
				t.Told()
			}
		}
	}()
	over, stop := awake.NewTimer(toldTime)
	defer stop()
	select {
	case <-done:
	case <-over:
	}
}

// report writes why the ranks of this process do not go on, of which there are so many, and where each is.
func report(out io.Writer, head string, all []where.Answer, ranks int, verbose bool) {
	if cause, _ := where.Cause(all); cause != "" {
		head += ": " + cause
	}
	var b strings.Builder
	fmt.Fprintf(&b, "argon: %s\n", head)
	for _, line := range where.Report(all, where.FewLines, verbose) {
		fmt.Fprintf(&b, "argon:   %s\n", line)
	}
	if more := ranks - len(all); more > 0 {
		fmt.Fprintf(&b, "argon:   and %d more ranks\n", more)
	}
	_, _ = io.WriteString(out, b.String())
}

// answers are those of the ranks of this process, up to jobenv.MostDiagnosed, and if that is asked for with their peers.
func (r *run) answers(peers bool) []where.Answer {
	chosen := make([]int, len(r.eps))
	for i := range chosen {
		chosen[i] = i
	}
	if len(chosen) > jobenv.MostDiagnosed {
		// Of very many those that do not wait tell more than those that wait for
		// them.
		waiting := make([]int, len(chosen))
		r.look(chosen, func(i int, waits []conduits.Blocked) { waiting[i] = min(len(waits), 1) })
		slices.SortStableFunc(chosen, func(a, b int) int { return waiting[a] - waiting[b] })
		chosen = chosen[:jobenv.MostDiagnosed]
		if !slices.Contains(chosen, 0) {
			chosen[len(chosen)-1] = 0 // which tells of the process
		}
		slices.Sort(chosen)
	}
	stacks := map[int][]*where.Goroutine{}
	if len(r.eps) <= mostTraced {
		all := where.Stacks()
		for i := range all {
			g := &all[i]
			stacks[g.Rank] = append(stacks[g.Rank], g)
		}
	}
	loose := slices.ContainsFunc(stacks[-1], func(g *where.Goroutine) bool { // of no rank; it may act for any
		s := g.Look().State
		return s != where.Unknown && s != where.Waits
	})
	parked := func(k int) wait { return r.parked(chosen[k : k+1])[0] }
	if len(chosen) > 0 {
		if _, ok := conduits.As[looker](r.eps[0]); ok {
			all := r.parked(chosen)
			parked = func(k int) wait { return all[k] }
		}
	}
	list := make([]where.Answer, 0, len(chosen))
	for k, i := range chosen {
		a := r.diagnosis(i, stacks[i], peers, func() wait { return parked(k) })
		a.Loose = a.Loose || loose
		list = append(list, a)
	}
	if len(list) > 0 {
		list[0].Ran, list[0].Memory = sys.ProcessorTime(), sys.Resident()
	}
	held := running.starvation.Look()
	for i := range list {
		if s := list[i].State; s == where.Runs || s == where.Inside || s == where.Unknown {
			list[i].Held = held // of the others it is no matter
		}
	}
	return list
}

// mostTraced is how many ranks a process may have whose stacks are looked at: all
// goroutines stand still meanwhile.
const mostTraced = 4096

const (
	// lookFor is how long a rank is looked at that waits but is not parked, in time and in
	// time of processors, of which a loaded machine gives little; several times what a rank
	// spins and yields before it parks. Simulated ranks are looked at together for as long.
	lookFor  = 20 * time.Millisecond
	lookMost = 500 * time.Millisecond // of time, within what a launcher waits for an answer
)

// A looker is an endpoint of a conduit on which Waiting is a question to the whole job, and that answers one of many ranks as well.
type looker interface {
	Look(ranks []int, f func(i int, waits []conduits.Blocked))
}

// look calls f with what the rank at index chosen[i] is parked for. It leaves out those that nothing is known of.
func (r *run) look(chosen []int, f func(i int, waits []conduits.Blocked)) {
	l, ok := conduits.As[looker](r.eps[0])
	if !ok {
		for i, c := range chosen {
			f(i, r.eps[c].Waiting())
		}
		return
	}
	ranks := make([]int, len(chosen))
	for i, c := range chosen {
		ranks[i] = r.eps[c].Rank()
	}
	l.Look(ranks, f)
}

// wait is what goroutines of a rank are parked for, and the texts of that.
type wait struct {
	list  []conduits.Blocked
	texts []string
}

// add adds those of waits that go on.
func (w *wait) add(waits []conduits.Blocked) {
	for _, b := range waits {
		if text := b.Blocked(); text != "" {
			w.list, w.texts = append(w.list, b), append(w.texts, text)
		}
	}
}

// parked is what the ranks at indices chosen are parked for, and empty of those that are not.
func (r *run) parked(chosen []int) []wait {
	// A wait looks around before it parks, and after each wake-up: a rank that waits is
	// caught parked if it is looked at for a while.
	found := make([]wait, len(chosen))
	left := make([]int, len(chosen)) // indices of found
	for k := range left {
		left[k] = k
	}
	chosen = slices.Clone(chosen)
	start, used := sys.Monotonic(), sys.ProcessorTime()
	for {
		r.look(chosen, func(i int, waits []conduits.Blocked) { found[left[i]].add(waits) })
		n := 0
		for i, k := range left {
			if len(found[k].list) == 0 {
				left[n], chosen[n] = k, chosen[i]
				n++
			}
		}
		left, chosen = left[:n], chosen[:n]
		took := sys.Monotonic() - start
		if n == 0 || took >= lookFor && (took >= lookMost || sys.ProcessorTime()-used >= lookFor) {
			return found
		}
		runtime.Gosched()
	}
}

// diagnosis is where rank i is, whose goroutines are gs and that is parked for what parked finds.
func (r *run) diagnosis(i int, gs []*where.Goroutine, peers bool, parked func() wait) where.Answer {
	ep, rank := r.eps[i], r.ranks[i]
	var a where.Answer
	var others []where.Answer
	var main *where.Goroutine
	for _, g := range gs {
		if at := g.Look(); g.Main {
			main, a = g, at
		} else if at.State != where.Unknown {
			others = append(others, at)
		}
	}
	r.mu.Lock()
	closed := r.closed[i]
	r.mu.Unlock()
	switch {
	case main == nil && !closed, a.State == where.Waits, len(others) > 0:
		w := parked()
		list, texts := w.list, w.texts
		at := slices.IndexFunc(list, func(b conduits.Blocked) bool {
			a := conduits.Awaited(b) // which may be over by now: what it points to must not be read
			return main != nil && reflect.TypeOf(a).Kind() == reflect.Pointer && main.Finds(fmt.Sprintf("%p", a))
		})
		if at >= 0 {
			texts[0], texts[at] = texts[at], texts[0]
		}
		if main == nil && len(texts) > 0 {
			a.State = where.Waits
		}
		if a.State != where.Waits { // another goroutine waits, of which this rank's own may have to hear
			if k := slices.IndexFunc(others, func(o where.Answer) bool { return o.State == where.Waits }); k >= 0 && len(texts) > 0 && a.State == where.Blocked {
				others[k], a = a, others[k]
			}
		}
		if a.State == where.Waits {
			_, far := conduits.As[conduits.Diagnoser](ep)
			a.Wait(texts, far)
		}
	case main == nil:
		a.State, a.Text = where.Ended, "has left the job"
	}
	if a.State == where.Unknown {
		a.Text = "is not seen to wait"
	}
	for _, o := range others {
		a.Busy = a.Busy || o.State == where.Runs || o.State == where.Goes || o.State == where.Inside
		a.Loose = a.Loose || o.State == where.Blocked
		if o.State != where.Goes {
			a.Other(o)
		}
	}
	a.Rank = ep.Rank()
	r.count(&a, ep, rank, peers)
	return a
}

// count fills in what has moved.
func (r *run) count(a *where.Answer, ep conduits.Endpoint, rank Rank, peers bool) {
	var s conduits.Stats
	if peers {
		s.Peers = []conduits.PeerStats{}
	}
	ep.Stats(&s)
	for i := range s.Peers {
		p := &s.Peers[i]
		n := p.Sent[conduits.Request] + p.Sent[conduits.Reply] + p.Puts + p.Gets + p.Atomics
		a.Met(where.Peer{Rank: p.Rank, Count: n, Bytes: p.SentBytes + p.PutBytes + p.GetBytes, NoCredit: p.NoCredit, Resent: p.Resent})
	}
	for c := range s.Sent {
		a.Sent, a.Received = a.Sent+s.Sent[c], a.Received+s.Received[c]
	}
	a.Accesses = s.Puts + s.Gets + s.Atomics
	a.Moves = a.Sent + a.Received + a.Accesses
	if _, simulated := conduits.As[conduits.Runner](ep); simulated {
		// The simulator finds deadlocks itself, and one rank's counts say nothing of the others. It gets on as
		// long as it computes.
		a.Moves = uint64(sys.ProcessorTime() / simMove)
	}
	a.Open += rank.Pending()
	a.Counts = fmt.Sprintf("requests sent %d, received %d; replies sent %d, received %d; out of credit %d times; slept %d times",
		s.Sent[conduits.Request], s.Received[conduits.Request], s.Sent[conduits.Reply], s.Received[conduits.Reply], s.NoCredit, s.Parks)
	if own := rank.Diagnosis(); own != "" {
		a.Counts = own + "; " + a.Counts
	}
	if d, ok := conduits.As[conduits.Diagnoser](ep); ok {
		if more := d.Diagnosis(); more != "" {
			a.Counts += "; " + more
		}
	}
}

// simMove is the processor time in which a simulation has got on.
const simMove = 100 * time.Millisecond

// A watcher looks whether the ranks of a job get on that is this process alone.
type watcher struct {
	mu  sync.Mutex
	w   where.Watch
	now time.Duration // of looks, by what passed between them: a process that is stopped ages nothing
}

// watch begins to look after r, if its ranks are the job.
func (r *run) watch(s where.Stall) (stop func()) {
	if s.After <= 0 || joined.Load() || underGasrun() {
		return func() {}
	}
	v := &watcher{w: where.Watch{Stall: s}}
	r.watched = v
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			every := v.w.Every()
			next, cancel := awake.NewTimer(every)
			select {
			case <-over:
				cancel()
				return
			case <-next:
				v.look(r, every)
			}
		}
	}()
	return func() { close(over); <-ended }
}

// look tells, once for each standstill, that no rank gets on.
func (v *watcher) look(r *run, passed time.Duration) {
	all := r.answers(false)
	v.mu.Lock()
	v.now += passed
	speak, what := v.w.Note(v.now, all)
	v.mu.Unlock()
	if !speak {
		return
	}
	report(r.cfg.Output, what+" (ARGON_STALL)", all, len(r.eps), false)
	r.told()
	if v.w.End {
		cause, _ := where.Cause(all)
		r.interrupt(errors.New(what + " (ARGON_STALL): " + cause))
	}
}

// age adds to answers for how long they have been so.
func (r *run) age(all []where.Answer) {
	if v := r.watched; v != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.w.Ages(v.now, all)
	}
}
