// Package perfetto writes what the ranks of a job do as a trace for Perfetto (ui.perfetto.dev): one file, to which
// the processes of a job append whole packets, since the concatenation of traces is a trace.
//
// A rank is a process there, with rows of slices for each Kind. Slices of one row are nested or apart, for which there
// are several rows of a kind where goroutines of a rank do things at once. Arrows (flows) lead from a message to its
// handler, whose identifiers both ends compute by counting: see Lane.Flow.
package perfetto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// Kind is what a row of a rank shows.
type Kind int

// The kinds. Rows of Spans are those of goroutines, rows of Handlers those of lanes.
const (
	Spans Kind = iota
	Collectives
	Waits
	Messages
	Accesses
	Handlers
	numKinds
)

var kindNames = [numKinds]string{"spans", "collectives", "waits", "messages", "puts, gets, atomics", "handlers"}

// A counter of a rank is one of these.
const (
	moved    = iota // bytes of messages, puts, gets and atomics so far
	underWay        // puts, gets and atomics that are not complete
	numCounters
)

var counters = [numCounters]struct {
	name string
	unit uint64
}{{"bytes moved", 3}, {"operations under way", 2}}

// countEvery is the least time between two values of a counter, which would be as many as events otherwise.
const countEvery = 100 * time.Microsecond

// chunkBytes is how much is kept before it is written.
const chunkBytes = 64 << 10

// File is the trace that the ranks of this process write.
type File struct {
	mu    sync.Mutex
	to    *os.File
	say   io.Writer
	err   error // why it is not complete, which say has been told
	e     encoder
	begun bool          // by gasrun, which tells of it
	last  time.Duration // what ranks keep until Dump; 0: all is written
	ranks []*Rank
}

// Open opens the trace of a job, of which this process has all ranks, or gasrun has begun it. Further jobs of a process
// get name.2, .3, ... What fails later say is told, once. If last is not 0, the file gets nothing but what ranks have done in so long a
// time until Dump.
func Open(name string, begun bool, last time.Duration, say io.Writer) (*File, error) {
	f, begun, err := sys.OpenForJob(name, begun)
	if err != nil {
		return nil, errs.Resource("trace: %v (-trace, ARGON_TRACE)", err)
	}
	return &File{to: f, say: say, begun: begun, last: last}, nil
}

// Extend opens a trace that has been begun, to Merge others into.
func Extend(name string) (*File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	return &File{to: f, say: io.Discard, begun: true}, nil
}

// LastName is the name of a file for the last that ranks do, if none is given: by the process, so that none is lost to
// a later job.
func LastName() string { return fmt.Sprintf("argon-%d.pftrace", os.Getpid()) }

// Flush writes what is kept.
func (f *File) Flush() {
	f.mu.Lock()
	f.flush()
	f.mu.Unlock()
}

// Dump writes what ranks have kept, if they keep anything.
func (f *File) Dump() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == 0 {
		return
	}
	for _, r := range f.ranks {
		r.count(r.newest, 0)
		r.kept.dump(f)
		f.put()
	}
	f.e.b = nil // which was long
	if !f.begun && f.err == nil {
		f.begun = true
		fmt.Fprintf(f.say, "argon: trace: what the ranks have done last is in %s (-trace-last, ARGON_TRACE_LAST)\n", f.to.Name())
	}
}

// TryFlush is Flush that waits neither for a process that writes, perhaps to a disk that is stuck, nor long for
// a goroutine.
func (f *File) TryFlush() {
	for range 1000 {
		if f.mu.TryLock() {
			defer f.mu.Unlock()
			unlock, err := sys.LockFile(f.to.Fd(), false)
			defer unlock()
			if !errors.Is(err, syscall.EWOULDBLOCK) {
				f.flush()
			}
			return
		}
		runtime.Gosched()
	}
}

// flush is Flush with the lock held.
func (f *File) flush() {
	if f.last == 0 {
		f.put()
	}
}

// put is flush of a file that ranks keep things for, too.
func (f *File) put() {
	if len(f.e.b) > 0 && f.err == nil {
		f.failed(f.write())
	}
	f.e.b = f.e.b[:0]
}

// write appends what is kept, and a mark, all of it or nothing: readers take what follows half a packet for its other half. What
// a process that was killed has half written is cut off before that.
func (f *File) write() error {
	unlock, locked := sys.LockFile(f.to.Fd(), true)
	defer unlock()
	size, err := int64(0), locked
	if err == nil {
		size, err = mend(f.to)
	}
	f.e.mark()
	if _, werr := f.to.Write(f.e.b); werr != nil {
		if err == nil {
			_ = f.to.Truncate(size) // of a device that cannot be
		}
		return werr
	}
	return nil
}

// Mend cuts off a file what a process that was killed has half written, and returns how long it is: so much of it stays as it is.
// Without wait it does nothing while another one writes.
func Mend(f *os.File, wait bool) (size int64, err error) {
	unlock, err := sys.LockFile(f.Fd(), wait)
	defer unlock()
	if err == nil {
		size, err = mend(f)
	}
	return size, err
}

var errNoTrace = errors.New("that is no trace")

// maxPacket is the most bytes of a packet of another trace.
const maxPacket = 1 << 20

// Merge appends the packets of a trace of another host, which next returns in pieces until there are no more, at the times that
// here makes of theirs. It is for several goroutines at once. The error is io.ErrUnexpectedEOF if there is half a packet at the end.
func (f *File) Merge(next func() (piece []byte, ok bool), here func(theirs time.Duration) time.Duration) error {
	var b []byte
	for {
		piece, more := next()
		b = append(b, piece...)
		n := whole(b)
		f.mu.Lock()
		f.e.move(b[:n], here)
		if !more || len(f.e.b) >= chunkBytes {
			f.put()
		}
		err := f.err
		f.mu.Unlock()
		b = append(b[:0], b[n:]...)
		switch {
		case err != nil:
			return err
		case len(b) > maxPacket || len(b) > 0 && b[0] != packetHead:
			return errNoTrace
		case !more && len(b) > 0:
			return io.ErrUnexpectedEOF
		case !more:
			return nil
		}
	}
}

// mend cuts off half a packet at the end of f, which is locked, and returns how long f is.
func mend(f *os.File) (size int64, err error) {
	size, err = sys.FileSize(f.Fd())
	if err != nil || size == 0 {
		return size, err
	}
	for back := int64(len(marked)); ; back = max(4*back, 2*chunkBytes) {
		b := make([]byte, min(back, size))
		from := size - int64(len(b))
		if _, err := f.ReadAt(b, from); err != nil {
			return size, err
		}
		if i := bytes.LastIndex(b, marked); i >= 0 {
			b = b[i+len(marked):]
		} else if from > 0 {
			continue
		}
		if half := len(b) - whole(b); half > 0 {
			size -= int64(half)
			return size, f.Truncate(size)
		}
		return size, nil
	}
}

// failed tells of the first error. The lock is held.
func (f *File) failed(err error) {
	if err != nil && f.err == nil {
		f.err = err
		fmt.Fprintf(f.say, "argon: trace: it is not complete: %v (-trace, ARGON_TRACE)\n", err) // which is no failure of the program
	}
}

// Close ends the part of this process.
func (f *File) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.ranks {
		r.count(r.newest, 0)
	}
	f.flush()
	if size, err := sys.FileSize(f.to.Fd()); f.last > 0 && !f.begun && err == nil && size == 0 {
		f.failed(os.Remove(f.to.Name()))
	}
	f.failed(f.to.Close())
	f.err = os.ErrClosed // for goroutines that ranks have left behind
}

// Rank is what one rank writes. Its methods are for any goroutine.
type Rank struct {
	f      *File
	rank   int
	offset time.Duration // of the file's clock before the rank's
	rows   [numKinds][]row
	posts  uint64
	spans  uint64
	kept   ring
	newest time.Duration // of all events
	sums   [numCounters]uint64
	told   [numCounters]struct {
		there bool // the file has the counter
		value uint64
		at    time.Duration
	}
}

// row is a row of slices.
type row struct {
	there bool          // the file has it
	taken bool          // by a slice that has begun
	last  time.Duration // when its last slice ended
	by    uintptr       // the goroutine whose spans these are
	in    []uint64      // spans that it is in, by number, the innermost last
}

// Rank begins what a rank writes, whose clock is now. The file has CLOCK_MONOTONIC, which the processes of a host
// have in common, unless time is virtual, which is the same for all ranks.
func (f *File) Rank(rank int, now func() time.Duration, virtual bool) *Rank {
	r := &Rank{f: f, rank: rank}
	if !virtual {
		best := time.Duration(1<<63 - 1)
		for range 8 { // the reading that was interrupted least
			before := sys.Monotonic()
			at := now()
			if after := sys.Monotonic(); after-before < best {
				best = after - before
				r.offset = before + best/2 - at
			}
		}
	}
	f.mu.Lock()
	if f.last > 0 {
		r.kept.last = f.last
	}
	f.ranks = append(f.ranks, r)
	f.e.process(r.uuid(), r.rank, "rank "+strconv.Itoa(rank))
	f.mu.Unlock()
	return r
}

// uuid is the identifier of the rank's track.
func (r *Rank) uuid() uint64 { return uint64(r.rank+1) << 24 }

// maxRows is the most rows of a kind.
const maxRows = 1 << 20

// track is that of a row, which is new or not. The lock is held.
func (r *Rank) track(k Kind, i int) uint64 {
	for len(r.rows[k]) <= i {
		r.rows[k] = append(r.rows[k], row{})
	}
	id := r.uuid() | uint64(k+1)<<20 | uint64(i)
	if w := &r.rows[k][i]; !w.there {
		w.there = true
		r.f.e.row(id, r.uuid(), kindNames[k])
	}
	return id
}

// free is the first row that has nothing since a time. The lock is held.
func (r *Rank) free(k Kind, since time.Duration) int {
	for i, w := range r.rows[k] {
		if !w.taken && w.last <= since {
			return i
		}
	}
	return min(len(r.rows[k]), maxRows-1)
}

// Slice is something that a rank does.
type Slice struct {
	Name  string
	Line  string // of the program; "": none
	Peer  int    // the other rank; None or Others
	Bytes uint64
	Began time.Duration
	From  []uint64 // flows that begin here
	To    uint64   // the flow that ends here; 0: none
}

// Peers of slices that have no single one.
const (
	None   = -1
	Others = -2 // all other ranks
)

// Done writes a slice that has ended, in a free row.
func (r *Rank) Done(k Kind, s *Slice, ended time.Duration) {
	r.f.mu.Lock()
	r.done(k, r.free(k, s.Began), s, ended)
	r.f.mu.Unlock()
}

// done is Done in row i with the lock held.
func (r *Rank) done(k Kind, i int, s *Slice, ended time.Duration) {
	id := r.track(k, i)
	r.event(begin, k, id, s, s.Began)
	if k == Messages || k == Accesses || k == Handlers {
		r.sums[moved] += s.Bytes
	}
	r.event(finish, k, id, nil, max(ended, s.Began))
	r.rows[k][i].last = ended
}

// Begin writes that a slice has begun, and returns its row, which it has until End.
func (r *Rank) Begin(k Kind, s *Slice) int {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	i := r.free(k, s.Began)
	id := r.track(k, i)
	r.rows[k][i].taken = true
	r.event(begin, k, id, s, s.Began)
	return i
}

// End writes that the slice of row i has ended.
func (r *Rank) End(k Kind, i int, at time.Duration) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.event(finish, k, r.track(k, i), nil, at)
	r.rows[k][i].taken, r.rows[k][i].last = false, at
}

// Span writes that a span has begun, in those that goroutine by is in. What it returns ends it and those that have begun in it, and
// does nothing if it has ended.
func (r *Rank) Span(s *Slice, by uintptr) (end func(at time.Duration)) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	i := slices.IndexFunc(r.rows[Spans], func(w row) bool { return w.by == by && len(w.in) > 0 })
	if i < 0 {
		i = r.free(Spans, s.Began)
	}
	id := r.track(Spans, i)
	r.spans++
	number := r.spans
	w := &r.rows[Spans][i]
	w.by, w.taken, w.in = by, true, append(w.in, number)
	r.event(begin, Spans, id, s, s.Began)
	return func(at time.Duration) {
		r.f.mu.Lock()
		defer r.f.mu.Unlock()
		w := &r.rows[Spans][i]
		k := slices.Index(w.in, number)
		if k < 0 {
			return
		}
		for range w.in[k:] {
			r.event(finish, Spans, id, nil, at)
		}
		w.in = w.in[:k]
		w.taken, w.last = k > 0, at
	}
}

// event writes an event. The lock is held.
func (r *Rank) event(what int, k Kind, id uint64, s *Slice, at time.Duration) {
	before := len(r.f.e.b)
	r.f.e.event(what, kindNames[k], id, r.rank, s, at+r.offset)
	r.keep(what, id, at, before)
	r.newest = max(r.newest, at)
	r.count(r.newest, countEvery)
}

// count writes the counters that have changed, and whose last value is at least so old. The lock is held.
func (r *Rank) count(at, old time.Duration) {
	for i, v := range r.sums {
		t := &r.told[i]
		if v == t.value || t.there && at-t.at < old {
			continue
		}
		id := r.uuid() | uint64(numKinds+1)<<20 | uint64(i)
		if !t.there {
			r.f.e.counter(id, r.uuid(), counters[i].name, counters[i].unit)
		}
		t.there, t.value, t.at = true, v, at
		before := len(r.f.e.b)
		r.f.e.value(id, r.rank, v, at+r.offset)
		r.keep(counter, id, at, before)
	}
}

// keep takes care of the packet that is in the encoder from before on. The lock is held.
func (r *Rank) keep(what int, id uint64, at time.Duration, before int) {
	f := r.f
	if f.last > 0 {
		p := f.e.b[before:]
		f.e.b = f.e.b[:before]
		r.kept.add(entry{what, id, at, p})
	} else if len(f.e.b) >= chunkBytes {
		f.flush()
	}
}

// Lane is a lane of a rank: its handlers run one at a time, or inside each other.
type Lane struct {
	*Rank
	lane   int
	counts [2][2]map[int]*[buckets]uint32 // of messages sent and received, by class, peer and hash
	open   map[uint64][]access            // by cookie, which the pieces of an operation have in common
}

// buckets is how many hashes of messages there are. Messages of the same are taken to come in the order they were sent.
const buckets = 64

// access is one that is not complete.
type access struct {
	flow uint64
	want uint8
	name string
}

// Lane makes lane i.
func (r *Rank) Lane(i int) *Lane {
	l := &Lane{Rank: r, lane: i, open: map[uint64][]access{}}
	for way := range l.counts {
		for c := range l.counts[way] {
			l.counts[way][c] = map[int]*[buckets]uint32{}
		}
	}
	return l
}

// Flow is the identifier of the arrow of a message that this lane has sent to peer, or got from it. Nothing more travels
// for it: it is made of both ranks, the lane, the class, a hash of the message, and how many of
// these came before.
func (l *Lane) Flow(got bool, peer int, class uint8, tag uint32, words []uint32) uint64 {
	h := uint64(tag) + 1
	for _, w := range words {
		h = mix(h ^ uint64(w))
	}
	h = mix(h) % buckets
	way, src, dst := 0, l.rank, peer
	if got {
		way, src, dst = 1, peer, l.rank
	}
	l.f.mu.Lock()
	n := l.counts[way][class&1][peer]
	if n == nil {
		n = new([buckets]uint32)
		l.counts[way][class&1][peer] = n
	}
	n[h]++
	k := n[h]
	l.f.mu.Unlock()
	return mix(mix(mix(uint64(src)<<32|uint64(dst))^uint64(l.lane)<<16^uint64(class)<<8^h) ^ uint64(k))
}

// mix is a bijection that mixes all bits: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Reply writes that the handler that runs has sent a reply.
func (l *Lane) Reply(s *Slice, ended time.Duration) {
	l.f.mu.Lock()
	l.done(Handlers, l.lane, s, ended)
	l.f.mu.Unlock()
}

// Handles writes that a handler runs.
func (l *Lane) Handles(s *Slice) {
	l.f.mu.Lock()
	l.event(begin, Handlers, l.track(Handlers, l.lane), s, s.Began)
	l.f.mu.Unlock()
}

// Handled writes that it has ended.
func (l *Lane) Handled(at time.Duration) { l.End(Handlers, l.lane, at) }

// Posting is the arrow of an access that is about to begin, from there to its completions, of which want is not 0.
func (l *Lane) Posting(name string, cookie uint64, want uint8) (flow uint64) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.posts++
	flow = mix(mix(mix(uint64(l.rank)<<32|math.MaxUint32)) ^ l.posts) // of no message: there is no such rank
	l.open[cookie] = append(l.open[cookie], access{flow, want, name})
	l.sums[underWay]++
	return flow
}

// Posted takes off completions that have come with the access's begin, and reports whether others have come, or will.
func (l *Lane) Posted(flow, cookie uint64, had uint8, at time.Duration) (more bool) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	more = true
	list := l.open[cookie]
	if i := slices.IndexFunc(list, func(a access) bool { return a.flow == flow }); i >= 0 {
		own := list[i].want & had
		had &^= own
		more = !l.off(cookie, i, own)
	}
	l.completed(cookie, had, at) // those of others of the cookie, which have been taken for this one's
	return more
}

// off takes completions off access i of a cookie, and reports whether those were the last.
func (l *Lane) off(cookie uint64, i int, ev uint8) bool {
	list := l.open[cookie]
	if list[i].want &^= ev; list[i].want != 0 {
		return false
	}
	l.sums[underWay]--
	if list = slices.Delete(list, i, i+1); len(list) > 0 {
		l.open[cookie] = list
	} else {
		delete(l.open, cookie)
	}
	return true
}

// Completed takes completions off the oldest accesses of a cookie that want them, and writes which of these are complete.
func (l *Lane) Completed(cookie uint64, ev uint8, at time.Duration) {
	l.f.mu.Lock()
	l.completed(cookie, ev, at)
	l.f.mu.Unlock()
}

// completed is Completed with the lock held.
func (l *Lane) completed(cookie uint64, ev uint8, at time.Duration) {
	for ; ev != 0; ev &= ev - 1 {
		one := ev & -ev
		list := l.open[cookie]
		i := slices.IndexFunc(list, func(a access) bool { return a.want&one != 0 })
		if i < 0 {
			continue
		}
		if a := list[i]; l.off(cookie, i, one) {
			s := Slice{Name: a.name + " complete", Peer: None, To: a.flow}
			l.event(instant, Accesses, l.track(Accesses, 0), &s, at)
		}
	}
}
