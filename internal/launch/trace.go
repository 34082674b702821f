package launch

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/perfetto"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
)

// traceLimit is how long nothing may come of hosts' parts of a trace, or be written of them, until gasrun ends without the rest.
var traceLimit = 10 * time.Second

// tracesAtOnce is how many hosts send at the same time: some of each is in memory.
const tracesAtOnce = 16

// A hostTrace is what a host's ranks write of the trace, which the deputy there keeps in a file, as the launcher has it.
type hostTrace struct {
	clock    clock
	fetching sync.Mutex              // of fetch, one at a time
	coming   atomic.Pointer[backlog] // what the deputy has sent
	whole    bool                    // and that it was all; of the reader's goroutine until the backlog ends
	why      string                  // it is not, likewise
	err      error                   // of a fetch, after which there is none
	residual time.Duration           // of the times in it
}

// traces is the file that gets the parts of all hosts.
type traces struct {
	mu    sync.Mutex
	to    *perfetto.File
	aside sync.WaitGroup // fetches while the job goes on
	moved atomic.Int64   // bytes
}

// file opens it.
func (t *traces) file(name string) (_ *perfetto.File, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		t.to, err = perfetto.Extend(name)
	}
	return t.to, err
}

// fetch appends to the job's trace what the host's ranks have written since it was called last. Little of it is in memory at a time.
func (h *host) fetch() error {
	h.trace.fetching.Lock()
	defer h.trace.fetching.Unlock()
	if h.trace.err == nil {
		h.trace.err = h.fetchOnce()
	}
	return h.trace.err
}

func (h *host) fetchOnce() error {
	p := &h.trace
	to, err := h.j.traces.file(h.j.Trace)
	if err != nil {
		return err
	}
	b := newBacklog()
	p.coming.Store(b)
	lost := errors.New("the connection was lost")
	select {
	case <-p.clock.done: // of a sign of life before
	default:
	}
	h.link.send(frameAlive, p.clock.begin())
	select {
	case <-p.clock.done:
	case <-h.failed: // from then on b is closed if need be
		return lost
	}
	here, residual := p.clock.conversion()
	p.whole, p.residual = false, max(residual, p.residual)
	h.link.send(frameTrace, []int64{0})
	err = to.Merge(func() ([]byte, bool) {
		piece, ok := b.get()
		if ok {
			h.link.send(frameTrace, []int64{int64(len(piece))})
			h.j.traces.moved.Add(int64(len(piece)))
		}
		return piece, ok
	}, here)
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		b.close()
		return err
	case !p.whole:
		return lost
	case p.why != "":
		return errors.New(p.why)
	}
	return err
}

// traced takes a piece of the host's part of the trace, or its end.
func (h *host) traced(f *frame) (ok bool) {
	b := h.trace.coming.Load()
	if b == nil {
		return false
	}
	if f.nums[0] != 0 {
		b.put(f.texts[0])
		return true
	}
	h.trace.whole, h.trace.why = true, errs.Line(f.text(), textMost)
	b.close()
	return true
}

// fetchAll is fetch of those hosts, and calls done for each.
func fetchAll(hosts []*host, done func(h *host, err error)) {
	turns := make(chan struct{}, tracesAtOnce)
	eachHost(hosts, func(h *host) {
		turns <- struct{}{}
		defer func() { <-turns }()
		done(h, h.fetch())
	})
}

// elsewhere are the hosts that keep their parts of the trace.
func elsewhere(hosts []*host) []*host {
	return slices.DeleteFunc(slices.Clone(hosts), func(h *host) bool { return !h.task.Trace || h.link == nil })
}

// lastTraces gets what hosts have of the trace when the job is over, and says how good it is. It does not wait for ever:
// not for a host that says nothing, nor for a disk that is stuck, and not once it is told to end.
func (j *job) lastTraces() {
	hosts := elsewhere(j.hosts)
	if len(hosts) == 0 {
		return
	}
	var mu sync.Mutex
	why := map[*host]string{}
	for _, h := range hosts {
		why[h] = "?"
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		j.traces.aside.Wait()
		fetchAll(hosts, func(h *host, err error) {
			mu.Lock()
			defer mu.Unlock()
			if delete(why, h); err != nil {
				why[h] = bare(err)
			}
		})
	}()
	end := j.traces.await(over, j.Signals, func() {
		if !j.Quiet {
			j.log.printf("gasrun: hosts send their parts of the trace; Ctrl-C ends it without them")
		}
	})
	if end == "" && j.traces.to != nil {
		j.traces.to.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	names := map[string][]string{}
	var worst [2]time.Duration // two hosts may be wrong in opposite ways
	for _, h := range hosts {
		text, failed := why[h]
		if text == "?" {
			text = end
		}
		if failed {
			names[text] = append(names[text], h.label)
			continue
		}
		if r := h.trace.residual; r > worst[0] {
			worst = [2]time.Duration{r, worst[0]}
		} else {
			worst[1] = max(worst[1], r)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(names)) {
		j.log.printf("gasrun: the trace has not all of what ranks have done on %s: %s (-trace)", strings.Join(names[text], ", "), text)
	}
	if !j.Quiet && j.traces.moved.Load() > 0 && len(why) < len(hosts) {
		j.log.printf("gasrun: hosts have sent their parts of the trace to %s: times of two hosts are wrong by up to %v (half the round trips by which clocks are compared)",
			j.Trace, worst[0]+worst[1])
	}
}

// await waits for the end of fetches, or returns why it does not. It calls say once if that takes long.
func (t *traces) await(over <-chan struct{}, signals <-chan os.Signal, say func()) (why string) {
	was, since := int64(-1), awake.Now()
	say = sync.OnceFunc(say)
	for {
		select {
		case <-over:
			return ""
		case <-awake.After(traceLimit / 5):
			if now := t.moved.Load(); now != was {
				was, since = now, awake.Now()
			} else if awake.Now()-since > traceLimit {
				return fmt.Sprintf("nothing came for %v", traceLimit)
			}
			say()
		case s := <-signals:
			if s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT {
				return "ended by " + sys.SignalName(s.(syscall.Signal))
			}
		}
	}
}

// keepTrace begins the file to which the ranks of this host write what they do.
func (d *deputy) keepTrace() error {
	if !d.task.Trace {
		return nil
	}
	if err := d.makeTemp("trace"); err != nil {
		return err
	}
	name := filepath.Join(d.temp, "trace")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return errs.Resource("launch: no room for the trace: %v (-trace)", err)
	}
	d.trace, d.traceMeter = f, newMeter()
	d.task.Env = append(d.task.Env, jobenv.Trace+"="+name)
	return nil
}

// sendTrace sends what the file has got since it was called last. It may wait for a disk.
func (d *deputy) sendTrace() {
	d.tracing.Lock()
	defer d.tracing.Unlock()
	size, err := perfetto.Mend(d.trace, true)
	buf := make([]byte, chunk)
	for err == nil && d.traceSent < size {
		var n int
		n, err = d.trace.ReadAt(buf[:min(chunk, size-d.traceSent)], d.traceSent)
		if n > 0 && !d.traceMeter.acquire(n) {
			return
		}
		d.traceSent += int64(n)
		d.link.send(frameTraced, []int64{1}, buf[:n])
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	d.link.send(frameTraced, []int64{0}, []byte(why))
}
