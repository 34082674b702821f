package shm

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// One goroutine of each process, the watcher, looks every watchEvery after what a
// rank does not notice while it computes, or accesses memory directly, which runs no
// code of this package: that the job has failed, that what this process alone writes
// in the job's memory has been changed by another. A look costs some microseconds, and
// none of the memory that sends and polls touch is written, but once in auditEvery looks:
// see askAudit.
var watchEvery = 100 * time.Millisecond // tests change it

// stalledLooks is for how many looks in a row a sleeper whose announcement is gone
// may go on sleeping: the rank that takes an announcement wakes the sleeper at once,
// unless it is stopped in between.
const stalledLooks = 20

// checks has the values that the watcher compares the job's memory with. offer and
// all are Attach's; the rest is guarded by watcher.mu.
type checks struct {
	seat
	life      *lifecycle
	bell      *bell
	offer     conduits.AttachConfig // of this rank
	all       atomic.Bool           // all ranks have attached
	lastEnd   uint64
	sent      []uint32 // of ctlOpen
	miscounts int
}

// watcher has the endpoints that a process's watcher looks at.
type watcher struct {
	once sync.Once
	mu   sync.Mutex  // held during a look
	eps  []*Endpoint // of this process that are attached, or attaching
}

// watched has the watcher look after e from now on.
func (j *job) watched(e *Endpoint) {
	w := &j.watch
	w.mu.Lock()
	w.eps = append(w.eps, e)
	w.mu.Unlock()
	w.once.Do(func() {
		// A job whose endpoints are dropped without Close must not live on for this.
		go watchJob(weak.Make(j))
	})
}

// unwatched ends that, and returns when no look is under way.
func (j *job) unwatched(e *Endpoint) {
	w := &j.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, x := range w.eps {
		if x == e {
			w.eps = append(w.eps[:i], w.eps[i+1:]...)
			return
		}
	}
}

// watchJob is the watcher. It ends when the job is no more used.
func watchJob(p weak.Pointer[job]) {
	for {
		time.Sleep(watchEvery)
		j := p.Value()
		if j == nil || !j.look() {
			return
		}
		runtime.KeepAlive(j)
	}
}

// look is one look. It reports whether there will be more to look after.
func (j *job) look() bool {
	w := &j.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	more := false
	for _, e := range w.eps {
		if e.hooks.Look != nil {
			e.hooks.Look()
		}
		// A failure in the meantime changes what is looked at; it is noted before.
		if what := e.checks.damage(); what != "" && !j.hasFailed() {
			e.Fail(fmt.Errorf("the job's shared memory is damaged: %s", what))
		}
		for e := range e.each() {
			e.remindSleepers()
			if e.checks.all.Load() {
				e.askAudit()
			}
		}
		if e.lanes != nil {
			e.lanes.remind()
		}
		// Attach, if it is under way yet, makes the window before it sets all.
		if _, failed := e.Err().(*conduits.PeerError); failed && e.checks.all.Load() {
			e.shutWindow()
			continue
		}
		more = true
	}
	// All endpoints of a job in one process may be closed while others attach.
	return more || j.local != nil && atomic.LoadUint32(j.h32(hdrAttached)) < uint32(j.n)
}

// damage names a word of the header, or of this rank's control block, whose value this
// process knows to be wrong; "" if all is well. Words that others may write are checked
// if every value that they write is known.
func (k *checks) damage() string {
	j := k.j
	if k.life.closed.Load() || j.hasFailed() {
		return ""
	}
	u64 := func(off int) uint64 { return atomic.LoadUint64((*uint64)(unsafe.Add(j.header, off))) }
	all := k.all.Load()
	for _, h := range [...]struct {
		what      string
		got, want uint64
	}{
		{"magic number", u64(hdrMagic), magic},
		{"version", uint64(atomic.LoadUint32(j.h32(hdrVersion))), version},
		{"number of ranks", uint64(atomic.LoadUint32(j.h32(hdrSize))), uint64(j.n)},
		{"number of cells", uint64(atomic.LoadUint32(j.h32(hdrCells))), uint64(j.cells)},
		{"size of landing buffers", uint64(atomic.LoadUint32(j.h32(hdrLanding))), uint64(j.landing)},
		{"number of lanes", uint64(atomic.LoadUint32(j.h32(hdrLanes))), uint64(j.lanes)},
		{"distance of segments", u64(hdrSegment), uint64(j.segment)},
	} {
		if h.got != h.want {
			return fmt.Sprintf("the header's %s is %#x, and was %#x", h.what, h.got, h.want)
		}
	}
	attached := atomic.LoadUint32(j.h32(hdrAttached))
	switch {
	case all && attached != uint32(j.n), attached > uint32(j.n):
		return fmt.Sprintf("the header counts %d ranks that have attached, of %d", attached, j.n)
	case !all && k.allAttached() && atomic.LoadUint32(j.h32(hdrAttached)) != uint32(j.n):
		if k.miscounts++; k.miscounts >= stalledLooks {
			return fmt.Sprintf("the header counts %d ranks that have attached, where all %d have", attached, j.n)
		}
	}
	if end := u64(hdrEnd); j.local == nil && (end < k.lastEnd || end%segment.PageSize != 0) {
		return fmt.Sprintf("the header says that the memory ends at %#x, and it ended at %#x", end, k.lastEnd)
	} else {
		k.lastEnd = end
	}
	block := fmt.Sprintf("the control block of rank %d", k.rank)
	c := j.ctl(k.rank)
	if st := conduits.RankState(atomic.LoadUint32(j.c32(k.rank, ctlState))); st != conduits.RankAttached {
		if st > conduits.RankFailed {
			return fmt.Sprintf("%s says that it is in state %d", block, st)
		}
		return fmt.Sprintf("%s says that it is %v, and it has attached", block, st)
	}
	if r := segment.Rights(atomic.LoadUint32(j.c32(k.rank, ctlRights))); r != k.offer.Rights {
		return fmt.Sprintf("%s says rights %#x, and it has attached with %#x", block, uint32(r), uint32(k.offer.Rights))
	}
	if n := atomic.LoadUint64((*uint64)(unsafe.Add(c, ctlSegment))); n != k.offer.Size {
		return fmt.Sprintf("%s says that its segment has %d bytes, and it has %d", block, n, k.offer.Size)
	}
	if n := atomic.LoadUint32(j.c32(k.rank, ctlJoined)); j.local == nil && n != 1 {
		return fmt.Sprintf("%s says %d where a process has joined", block, n)
	}
	for lane := range j.lanes {
		if n := atomic.LoadUint32(j.p32(k.rank, lane, ctlParked)); n > uint32(j.lanes) {
			return fmt.Sprintf("%s says %d where it reports whether it sleeps", block, n)
		}
	}
	for i := range (MaxRanks + 31) / 32 {
		has := atomic.LoadUint32((*uint32)(unsafe.Add(c, ctlOpen+i*4)))
		bits := uint32(0) // that may be set
		if left := j.n - i*32; left >= 32 {
			bits = ^uint32(0)
		} else if left > 0 {
			bits = 1<<left - 1
		}
		if extra := has &^ bits; extra != 0 {
			return fmt.Sprintf("%s says that ranks have sent which there are not: %#x of those from %d on", block, extra, j.rank(i*32))
		}
		if i < len(k.sent) {
			if lost := k.sent[i] &^ has; lost != 0 {
				return fmt.Sprintf("%s has lost which ranks have sent: %#x of those from %d on", block, lost, j.rank(i*32))
			}
			k.sent[i] = has
		}
	}
	return ""
}

// allAttached reports whether every rank that shares this memory has attached.
func (k *checks) allAttached() bool {
	for i := range k.j.n {
		if conduits.RankState(atomic.LoadUint32(k.j.c32(k.j.rank(i), ctlState))) == conduits.RankStarting {
			return false
		}
	}
	return true
}
