package profile

import (
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/sys/origin"
)

// A Recorder counts what a rank does from Start to Stop, and what it answers others from Open to Close, whose
// functions may begin before and end after its own. Its methods are for any
// goroutine; those that count look at the stack of the caller's caller.
type Recorder struct {
	what  atomic.Int32
	peers bool
	mu    sync.Mutex
	rows  map[place]*Row
	list  []*Row
	began time.Duration
	took  time.Duration
	met   []met
}

// met is a call in which all ranks wait for each other.
type met struct {
	row  *Row
	took time.Duration
}

// mostMet is of how many such calls it is found out which rank came last.
const mostMet = 1 << 16

// NewRecorder counts by peers, too, if that is wanted.
func NewRecorder(peers bool) *Recorder { return &Recorder{peers: peers, rows: map[place]*Row{}} }

// What is counted.
const (
	nothing int32 = iota
	answers
	everything
)

// Open begins to count answers.
func (r *Recorder) Open() { r.what.Store(answers) }

// Start begins to count everything, at time now.
func (r *Recorder) Start(now time.Duration) {
	r.began = now
	r.what.Store(everything)
}

// Stop ends what Start has begun.
func (r *Recorder) Stop(now time.Duration) {
	r.took = now - r.began
	r.what.Store(answers)
}

// Close ends what Open has begun.
func (r *Recorder) Close() { r.what.Store(nothing) }

// On reports whether everything is counted.
func (r *Recorder) On() bool { return r.what.Load() == everything }

// row is that of a place; mu is held.
func (r *Recorder) row(s *site, kind string) *Row {
	p := place{s.line, s.call, kind}
	row := r.rows[p]
	if row == nil {
		row = &Row{Line: s.line, Call: s.call, Kind: kind, Ranks: 1}
		r.rows[p] = row
		r.list = append(r.list, row)
	}
	return row
}

// Add counts a call of a kind, with a peer.
func (r *Recorder) Add(kind string, peer int, bytes uint64, took time.Duration) {
	what := r.what.Load()
	if what == nothing || what == answers && kind != Reply {
		return
	}
	s := here()
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row(s, kind)
	row.count(bytes, took)
	if r.peers {
		if row.Peers == nil {
			row.Peers = map[int]Traffic{}
		}
		t := row.Peers[peer]
		row.Peers[peer] = Traffic{t.Calls + 1, t.Bytes + bytes}
	}
}

// Waited counts a wait, as a part of the collective call that it is in.
func (r *Recorder) Waited(took time.Duration) {
	if !r.On() {
		return
	}
	s := here()
	if s.line == RuntimeLine { // its goroutines wait for more to do
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.joint {
		r.row(s, Collective).Wait += took
		return
	}
	row := r.row(s, Wait)
	row.Wait += took
	row.count(0, took)
}

// Met counts a collective call. all: each rank waits for all others in it. split: this one has come to it before.
func (r *Recorder) Met(bytes uint64, took time.Duration, all, split bool) {
	if !r.On() {
		return
	}
	s := here()
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row(s, Collective)
	row.count(bytes, took)
	if split {
		took = -1
	}
	if all && len(r.met) < mostMet {
		r.met = append(r.met, met{row, took})
	}
}

// Here is the line and the call that the caller's caller is in.
func Here() (line, call string) {
	s := here()
	return s.line, s.call
}

// Times reports how long this rank was in each call that all wait for each other in, of which all ranks have the same
// ones. The one that came last was in it for the shortest time; -1 is of one that had come by an earlier call.
func (r *Recorder) Times() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := make([]time.Duration, len(r.met))
	for i, m := range r.met {
		l[i] = m.took
	}
	return l
}

// CameLast says which rank came last in each of them, as many as there are; -1 if that is unknown.
func (r *Recorder) CameLast(ranks []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, rank := range ranks[:min(len(ranks), len(r.met))] {
		if row := r.met[i].row; rank >= 0 {
			if row.Last == nil {
				row.Last = map[int]uint64{}
			}
			row.Last[rank]++
		}
	}
}

// Encode is what was counted, for Merge.
func (r *Recorder) Encode() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return json.Marshal(&Job{Ranks: 1, Elapsed: r.took, Rows: r.list})
}

// site is where a goroutine is.
type site struct {
	line, call string
	joint      bool // in a collective call
}

// depth is how much of a stack is looked at.
const depth = 48

// sites are those of stacks seen before: finding one takes a tenth of looking at the stack.
var sites struct {
	sync.RWMutex
	by map[[depth]uintptr]*site
}

// mostSites bounds them, for programs that call themselves have many stacks.
const mostSites = 1 << 14

// here is where the caller of a Recorder's method is.
func here() *site {
	var pcs [depth]uintptr
	n := runtime.Callers(4, pcs[:])
	sites.RLock()
	s := sites.by[pcs]
	sites.RUnlock()
	if s != nil {
		return s
	}
	s = look(pcs[:n])
	sites.Lock()
	defer sites.Unlock()
	if sites.by == nil || len(sites.by) >= mostSites {
		sites.by = map[[depth]uintptr]*site{}
	}
	sites.by[pcs] = s
	return s
}

// look finds what a stack is of.
func look(pcs []uintptr) *site {
	s := &site{line: RuntimeLine}
	frames := runtime.CallersFrames(pcs)
	for more := len(pcs) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case where.Program(f.Function, f.File):
			s.line = where.Place(f.File, f.Line)
			return s
		case !origin.Own(f.Function, f.File) || strings.HasPrefix(f.Function, "runtime."):
			continue
		}
		s.call = where.Short(f.Function)
		switch {
		case strings.HasSuffix(f.Function, "/am.(*Messenger).Receive"):
			return &site{line: HandlersLine}
		case strings.Contains(f.Function, "/barrier.(*Barrier)."), strings.Contains(f.Function, "/extended/collective.(*Member)."):
			s.joint = true
		}
	}
	return s
}
