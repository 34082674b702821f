package launch

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
)

const (
	exitLimit = 2 * time.Second  // for it, or ssh, to end after that
	killLimit = 10 * time.Second // for a host to report that killed ranks have ended

	pulse     = time.Second // between signs of life
	pulsesOut = 60          // so many missing while the host gets ready, which it does without a word: it is lost

	// hostGrace is how much longer than the dead time a host may be silent whose ranks
	// run: longer than it bears with the launcher (lostGrace), so that both have given
	// each other up then.
	hostGrace = 5 * pulse

	// pulseAnswer is how long, after a pause of this process, the next pulse of the
	// other side takes that goes on at the same time.
	pulseAnswer = pulse * 3 / 2
)

// byeLimit is how long a deputy has to clean up.
var byeLimit = 15 * time.Second

// A host is the launcher's side of one placement: a deputy there starts its ranks and
// reports what becomes of them.
type host struct {
	placement
	j     *job
	task  task
	route netip.Addr // address of this machine that leads there; invalid if that is not known
	link  *link      // to the deputy; nil until it has said hello
	in    io.WriteCloser
	out   io.ReadCloser
	cmd   *exec.Cmd        // the deputy, or ssh
	state *os.ProcessState // of cmd, when it has ended

	tokenText string
	exited    chan struct{} // closed when cmd has ended
	silent    chan struct{} // closed when its standard error has ended, or is not worth waiting for
	lines     lastLines     // of standard error
	heard     atomic.Bool   // something, since the last pulse
	quiet     atomic.Bool   // the launcher has let go of it: what happens now is no failure
	reports   chan error    // of the start: nil, or why not
	seen      chan map[int]process
	looking   sync.Mutex // of look, one at a time
	bye       chan frame
	running   chan struct{} // closed when its ranks have been started
	failed    chan struct{} // closed when the connection is lost
	input     *meter        // of standard input; nil if rank 0 is elsewhere
	backlogs  [][2]*backlog // of the ranks' output
	foreign   [][2]bool     // see stream.foreign; of the reader's goroutine until the backlog ends
	trace     hostTrace
	left      bool    // leave has been called
	inside    *deputy // in this process; nil: elsewhere
}

func newHost(j *job, p placement) *host {
	h := &host{
		placement: p,
		j:         j,
		exited:    make(chan struct{}),
		silent:    make(chan struct{}),
		reports:   make(chan error, 4),
		seen:      make(chan map[int]process, 1),
		bye:       make(chan frame, 1),
		running:   make(chan struct{}),
		failed:    make(chan struct{}),
		trace:     hostTrace{clock: clock{done: make(chan struct{}, 1)}},
	}
	if p.own { // its output comes directly
		return h
	}
	h.backlogs, h.foreign = make([][2]*backlog, p.size), make([][2]bool, p.size)
	for i := range h.backlogs {
		h.backlogs[i] = [2]*backlog{newBacklog(), newBacklog()}
	}
	return h
}

// failure is err as the failure of this host.
func (h *host) failure(format string, args ...any) error {
	return &HostError{Host: h.label, Cause: fmt.Sprintf(format, args...)}
}

// pump copies the output of the host's ranks to their streams.
func (h *host) pump() {
	for i := range h.backlogs {
		for k, st := range []*stream{h.j.ranks[h.first+i].out, h.j.ranks[h.first+i].err} {
			go func() {
				b := h.backlogs[i][k]
				for {
					p, ok := b.get()
					if !ok {
						break
					}
					st.accept(p)
					h.link.send(frameCredit, []int64{int64(h.first + i), int64(k), int64(len(p))})
				}
				st.close(h.foreign[i][k])
			}()
		}
	}
}

// listen takes what the deputy says until it ends.
func (h *host) listen(r *bufio.Reader) {
	var err error
	for err == nil {
		var f frame
		if f, err = readFrame(r); err == nil {
			h.heard.Store(true)
			err = h.hear(&f)
		}
	}
	h.link.close()
	close(h.failed)
	var cause error
	if !h.quiet.Load() {
		cause = h.gone("the connection was lost", err)
	}
	for i := range h.backlogs {
		for _, b := range h.backlogs[i] {
			b.close()
		}
	}
	if b := h.trace.coming.Load(); b != nil {
		b.close()
	}
	if h.input != nil {
		h.input.stop()
	}
	if cause == nil {
		h.report(h.failure("was given up"))
		return
	}
	h.report(cause)
	h.j.post(func() { h.j.hostLost(h, cause) })
}

// hear acts on one frame of the deputy.
func (h *host) hear(f *frame) error {
	odd := fmt.Errorf("%w %q", errFrame, f.kind)
	if f.odd(h.first, h.size) {
		return odd
	}
	switch f.kind {
	case frameAlive:
		if now := sys.Monotonic(); len(f.nums) == 2 && h.trace.clock.heard(time.Duration(f.nums[0]), time.Duration(f.nums[1]), now) {
			h.link.send(frameAlive, []int64{int64(sys.Monotonic())})
		}
	case frameTraced:
		if !h.traced(f) {
			return odd
		}
	case frameOutput:
		h.backlogs[f.num(0)-h.first][f.nums[1]].put(f.texts[0])
	case frameOutEnd:
		i, k := f.num(0)-h.first, f.nums[1]
		h.foreign[i][k] = f.nums[2] != 0
		h.backlogs[i][k].close()
	case frameEndings:
		if len(f.nums)%endingNums != 0 || len(f.texts) != len(f.nums)/endingNums {
			return odd
		}
		var all []ending
		for i, cause := range f.texts {
			n := f.nums[endingNums*i:]
			if !within(n[0], h.first, h.size) {
				return odd
			}
			all = append(all, ending{
				rank: int(n[0]), status: int(n[1]), signal: syscall.Signal(n[2]), cause: errs.Line(string(cause), textMost),
				user: time.Duration(n[3]), system: time.Duration(n[4]), maxRSS: n[5],
			})
		}
		h.j.post(func() { h.j.ended(all) })
	case frameStarted:
		rank, pid, where := f.num(0), f.num(1), errs.Line(f.text(), textMost)
		if pid <= 0 {
			return odd
		}
		h.j.post(func() { h.j.started(rank, pid, where) })
	case frameThirst:
		if h.input == nil {
			return odd
		}
		h.j.thirst.Do(func() { go h.j.feed(h) })
	case frameTaken:
		if h.input == nil {
			return odd
		}
		if f.nums[0] < 0 {
			h.input.stop()
		} else {
			h.input.give(f.num(0))
		}
	case frameSeen:
		if len(f.nums)%seenNums != 0 {
			return odd
		}
		seen := map[int]process{}
		for n := range slices.Chunk(f.nums, seenNums) {
			seen[int(n[0])] = process{pid: int(n[1]), state: byte(n[2]), did: sys.Activity{
				State: byte(n[2]), Ran: time.Duration(n[3]), Delayed: time.Duration(n[4]), Faults: uint64(n[5]),
			}}
		}
		select {
		case h.seen <- seen:
		default: // no goroutine has asked
		}
	case frameBye:
		select {
		case h.bye <- *f:
		default:
		}
	case frameWant:
		go h.sendProgram()
	case frameReady:
		if len(f.texts) == 0 {
			return odd
		}
		if h.j.Verbose {
			h.j.note(h.label, "its ranks find the others at "+errs.Line(string(f.texts[0]), textMost))
		}
		for _, note := range f.texts[1:] {
			h.j.note(h.label, errs.Line(string(note), textMost))
		}
		h.report(nil)
	case frameRunning:
		select {
		case <-h.running:
			return odd
		default:
			close(h.running)
		}
		h.alive()
		h.report(nil)
	case frameRefuse:
		h.report(h.failure("%s", errs.Line(f.text(), textMost)))
	default:
		return odd
	}
	return nil
}

// seenNums is how many numbers tell of one process that was looked at.
const seenNums = 6

// endingNums is how many numbers tell of one ending.
const endingNums = 6

// report answers the waiter for a step of the start.
func (h *host) report(err error) {
	select {
	case h.reports <- err:
	default: // no goroutine has asked
	}
}

// beat sends messages so often that both sides notice when the other one falls silent.
func (h *host) beat() {
	t := time.NewTicker(pulse)
	defer t.Stop()
	silence := awake.NewCount(pulsesOut*pulse, pulseAnswer, awake.Now())
	look := time.NewTimer(silence.Next())
	defer look.Stop()
	running := h.running
	for {
		select {
		case <-h.failed:
			return
		case <-running:
			running = nil
			silence = awake.NewCount(patience(h.j.Env), pulseAnswer, awake.Now())
		case <-t.C:
			h.alive()
			continue
		case <-look.C:
		}
		if h.heard.Swap(false) {
			silence.Restart(awake.Now())
		}
		if silence.Look(awake.Now()) {
			h.lose(fmt.Sprintf("no sign of life for %v%s", silence.Limit(), silence.Paused()))
			return
		}
		look.Reset(max(silence.Next(), pulse/20))
	}
}

// alive sends a sign of life, and compares clocks if there is need.
func (h *host) alive() {
	if h.task.Trace {
		h.link.send(frameAlive, h.trace.clock.begin())
	} else {
		h.link.send(frameAlive, nil)
	}
}

// patience is how long a host may be silent that runs ranks with env in their environment.
func patience(env []string) time.Duration { return deadTime(env) + hostGrace }

// lose gives the host up.
func (h *host) lose(why string) {
	h.lines.add(why)
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
	h.out.Close() // what it has started may have the other end
}

// signal sends sig to ranks, or with group to their process groups.
func (h *host) signal(ranks []int, sig syscall.Signal, group bool) {
	nums := []int64{int64(sig), 0}
	if group {
		nums[1] = 1
	}
	for _, r := range ranks {
		nums = append(nums, int64(r))
	}
	h.link.send(frameSignal, nums)
}

// suspend stops all ranks that run, on behalf of the terminal; resume lets those go on.
func (h *host) suspend() {
	h.link.send(frameSuspend, nil)
	h.link.flush(time.Second)
}

func (h *host) resume() { h.link.send(frameResume, nil) }

// look learns what the processes of ranks do, and with did what they have done. Those that
// nothing is known of are missing.
func (h *host) look(ranks []int, did bool) map[int]process {
	h.looking.Lock()
	defer h.looking.Unlock()
	select {
	case <-h.seen: // the answer to a question that was given up
	default:
	}
	nums := []int64{0}
	if did {
		nums[0] = 1
	}
	for _, r := range ranks {
		nums = append(nums, int64(r))
	}
	h.link.send(frameLook, nums)
	select {
	case seen := <-h.seen:
		return seen
	case <-h.failed:
	case <-awake.After(time.Second):
	}
	return nil
}

// fail tells the host's ranks that one has failed, where they wait for each other
// in shared memory.
func (h *host) fail(rank, status int, cause string) {
	if h.link != nil {
		h.link.send(frameFail, []int64{int64(rank), int64(status)}, []byte(cause))
	}
}

// stop has the deputy clean up, and ends it, unless it has something of the trace; leave does then. All ranks have ended, or must.
func (h *host) stop() {
	if h.link != nil {
		h.link.send(frameEnd, nil)
		select {
		case f := <-h.bye:
			if len(f.nums) > 0 && f.nums[0] > 0 && h.j.Verbose {
				h.j.log.printf("gasrun: killed %d processes that ranks had left behind%s", f.nums[0], on(h.label))
			}
			for _, pid := range f.nums[min(1, len(f.nums)):] {
				h.j.log.printf("gasrun: process %d of the job%s does not die", pid, on(h.label))
			}
			if h.task.Trace {
				return
			}
		case <-h.failed:
		case <-awake.After(byeLimit):
			h.j.log.printf("gasrun: host %s does not say that it has cleaned up", h.label)
		}
	}
	h.leave()
}

// leave lets go of the deputy, which ends.
func (h *host) leave() {
	if h.left {
		return
	}
	h.left = true
	h.quiet.Store(true)
	if h.link != nil {
		h.link.close()
	}
	if h.cmd != nil && h.cmd.Process != nil {
		select {
		case <-h.exited:
		case <-awake.After(exitLimit):
		}
		h.kill()
		<-h.exited
		<-h.silent
	}
	h.unused()
}

// unused ends the streams of a host that has never been heard of.
func (h *host) unused() {
	for i := range h.backlogs {
		for _, b := range h.backlogs[i] {
			b.close()
		}
	}
}
