// Package races finds data races of UPC programs that the simulator runs: accesses of two threads to
// the same bytes of shared memory, of which one is a write, that no barrier, lock, strict access or
// collective call orders. Each thread has a vector clock, and each word that was accessed has the last
// accesses to it, with the clocks of their threads (FastTrack: Flanagan and Freund, PLDI 2009). So a
// race is found in any run in which both accesses happen, in whatever order. All threads run in one
// process, one at a time: nothing here is locked.
package races

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/argon-go/argon/internal/sys/origin"
)

// Access is what an access does: atomic ones race with others alone.
type Access uint8

// The accesses.
const (
	Reads Access = iota
	Writes
	AtomicReads
	AtomicWrites
)

// String is the access as a verb.
func (k Access) String() string {
	return [...]string{"reads", "writes", "reads, by an atomic,", "writes, by an atomic,"}[k]
}

// against is, by access, those that it must not be beside, a bit for each.
var against = [...]uint8{
	Reads:        1<<Writes | 1<<AtomicWrites,
	Writes:       1<<Reads | 1<<Writes | 1<<AtomicReads | 1<<AtomicWrites,
	AtomicReads:  1 << Writes,
	AtomicWrites: 1<<Reads | 1<<Writes,
}

// covers reports whether what races with l races with k, too.
func (k Access) covers(l Access) bool { return against[l]&^against[k] == 0 }

// What a detector keeps, at most. Beyond that it forgets the oldest.
const (
	wordsMost   = 1 << 20 // words of 8 bytes, of all threads
	recordsMost = 64      // accesses to one word
	roomMost    = 1 << 22 // accesses to all words
	edgesMost   = 1 << 16 // words by which accesses are ordered: those beyond share one clock
	racesMost   = 20      // races that are printed
)

// clock is a vector clock: how many epochs of each thread come before.
type clock []uint32

// join adds what comes before o. It makes c, if that is nil.
func (c clock) join(o clock) clock {
	if c == nil {
		return append(clock(nil), o...)
	}
	for i, e := range o {
		c[i] = max(c[i], e)
	}
	return c
}

// record is an access to a word.
type record struct {
	place, epoch uint32
	thread       uint16
	bytes        uint8 // which of the word, a bit for each
	access       Access
}

// edge orders accesses by some bytes of a word: of a structure those of a member, say.
type edge struct {
	before clock
	bytes  uint8
}

// part is the word at p, which of its bytes those before end are, a bit for each, and where they end.
func part(p, end uint64) (word uint64, bytes uint8, to uint64) {
	word = p &^ 7
	to = min(end, word+8)
	return word, uint8(1<<(to-p)-1) << (p & 7), to
}

// Detector is what the threads of a job know of each other's accesses. A nil one looks for nothing.
// Places in shared memory are numbers, whose words of 8 bytes are aligned.
type Detector struct {
	threads []clock
	phases  []int    // by thread: how many barriers it has come to
	meets   [2]clock // what comes before a barrier, of even phases and of odd ones
	edges   map[uint64][]edge
	rest    clock    // of the words that have no room there
	crowded bool     // some have had none
	reads   []uint64 // by thread: the word that it reads, which none has begun to write since
	writes  []uint64 // and the one that it writes, if the access is strict
	calls   []int    // by thread: how many collective calls it has come to
	flows   map[int]*flow
	words   map[uint64][]record
	order   []uint64 // of the words, in a ring
	next    int      // the oldest, or the last that was forgotten
	most    int      // words
	room    int      // for so many accesses more
	forgot  int      // accesses

	numbers map[uintptr]uint32 // of the places of program counters, 0 for those of this package
	places  []string
	found   map[[2]uint32]bool // races, by places
	name    func(p uint64) string
	print   func(text string)
	place   func() uint32 // the number of the place of the access that is under way
}

// New is the detector of a job with so many threads, which names objects so, and prints races.
func New(threads int, name func(p uint64) string) *Detector {
	d := &Detector{
		threads: make([]clock, threads), phases: make([]int, threads), edges: map[uint64][]edge{},
		calls: make([]int, threads), flows: map[int]*flow{}, words: map[uint64][]record{}, reads: make([]uint64, threads), writes: make([]uint64, threads), most: wordsMost, room: roomMost,
		numbers: map[uintptr]uint32{}, places: []string{"an unknown place"}, found: map[[2]uint32]bool{},
		name:  name,
		print: func(s string) { fmt.Fprintln(os.Stderr, "argon: upc: "+s) },
	}
	d.place = d.here
	for i := range d.threads {
		d.threads[i] = make(clock, threads)
		d.threads[i][i] = 1
	}
	return d
}

// Accessed looks at an access of thread me to n bytes at p.
func (d *Detector) Accessed(me int, p uint64, n int, k Access) {
	if d == nil {
		return
	}
	var at uint32
	asked := false
	now := d.threads[me]
	for end := p + uint64(n); p < end; {
		word, bytes, to := part(p, end)
		p = to
		all, known := d.words[word]
		if repeats(all, me, now[me], bytes, k) {
			continue
		}
		if !asked {
			at, asked = d.place(), true
		}
		keep := all[:0]
		for _, r := range all {
			before := r.epoch <= now[r.thread]
			if !before && r.bytes&bytes != 0 && against[k]>>r.access&1 != 0 {
				d.report(word, me, k, at, r)
			}
			if !before || r.bytes&^bytes != 0 || !k.covers(r.access) {
				keep = append(keep, r)
			}
		}
		if len(keep) == recordsMost {
			keep = append(keep[:0], keep[1:]...)
			d.forgot++
		}
		if cap(all) > 4*len(keep)+4 {
			keep = slices.Clone(keep)
		}
		keep = append(keep, record{at, now[me], uint16(me), bytes, k})
		d.words[word] = keep
		d.room -= cap(keep) - cap(all)
		if !known {
			d.added(word)
		}
		for d.room < 0 {
			d.forgot += len(d.words[d.order[d.next]])
			d.clear(d.order[d.next])
			d.next = (d.next + 1) % len(d.order)
		}
	}
}

// repeats reports whether the thread has done, in this epoch, what races with all that the access does.
func repeats(all []record, me int, epoch uint32, bytes uint8, k Access) bool {
	for _, r := range all {
		if int(r.thread) == me && r.epoch == epoch && bytes&^r.bytes == 0 && r.access.covers(k) {
			return true
		}
	}
	return false
}

// added makes room for a word more.
func (d *Detector) added(word uint64) {
	if len(d.order) < d.most {
		d.order = append(d.order, word)
		return
	}
	old := d.order[d.next]
	d.forgot += len(d.words[old])
	d.clear(old)
	delete(d.words, old)
	d.order[d.next] = word
	d.next = (d.next + 1) % d.most
}

// clear forgets the accesses to a word that has a place in the ring, which it keeps.
func (d *Detector) clear(word uint64) {
	if all := d.words[word]; all != nil {
		d.room += cap(all)
		d.words[word] = nil
	}
}

// Allocated says that n bytes at p are another object's than before.
func (d *Detector) Allocated(p, n uint64) {
	if d == nil {
		return
	}
	end := p + n
	p &^= 7
	if n/8 <= uint64(len(d.words)+len(d.edges)) {
		for ; p < end; p += 8 {
			d.clear(p)
			delete(d.edges, p)
		}
		return
	}
	for w := range d.words {
		if w >= p && w < end {
			d.clear(w)
		}
	}
	for w := range d.edges {
		if w >= p && w < end {
			delete(d.edges, w)
		}
	}
}

func (d *Detector) report(word uint64, me int, k Access, at uint32, r record) {
	pair := [2]uint32{min(at, r.place), max(at, r.place)}
	if d.found[pair] {
		return
	}
	d.found[pair] = true
	if len(d.found) > racesMost {
		return
	}
	d.print(fmt.Sprintf("data race on %s: thread %d %v at %s, and thread %d %v at %s: no barrier, lock, strict access or collective call orders them",
		d.name(word), r.thread, r.access, d.places[r.place], me, k, d.places[at]))
}

// Release orders what thread me has done before what a thread does after it acquires some of the n bytes at p.
func (d *Detector) Release(me int, p uint64, n int) {
	if d == nil {
		return
	}
	for end := p + uint64(n); p < end; {
		word, bytes, to := part(p, end)
		p = to
		es, ok := d.edges[word]
		if !ok && len(d.edges) == edgesMost {
			d.rest = d.rest.join(d.threads[me])
			d.crowded = true
			continue
		}
		i := slices.IndexFunc(es, func(e edge) bool { return e.bytes == bytes })
		if i < 0 {
			i, es = len(es), append(es, edge{bytes: bytes})
			d.edges[word] = es
		}
		es[i].before = es[i].before.join(d.threads[me])
	}
	d.threads[me][me]++
}

// Reads begins a strict read of the word at p.
func (d *Detector) Reads(me int, p uint64) {
	if d != nil {
		d.reads[me] = p &^ 7
	}
}

// Settled ends it, and reports whether no strict write to the word was under way meanwhile: what was
// read is then what the last one wrote.
func (d *Detector) Settled(me int, p uint64) bool {
	return d == nil || d.reads[me] == p&^7 && !slices.Contains(d.writes, p&^7)
}

// Writes begins a strict write to the word at p, and ends that of 0.
func (d *Detector) Writes(me int, p uint64) {
	if d == nil {
		return
	}
	d.writes[me] = p &^ 7
	for i, w := range d.reads {
		if w == p&^7 {
			d.reads[i] = 0
		}
	}
}

// Acquire comes after Release of some of the n bytes at p by any thread.
func (d *Detector) Acquire(me int, p uint64, n int) {
	if d == nil {
		return
	}
	for end := p + uint64(n); p < end; {
		word, bytes, to := part(p, end)
		p = to
		es, ok := d.edges[word]
		if !ok {
			d.threads[me].join(d.rest)
		}
		for _, e := range es {
			if e.bytes&bytes != 0 {
				d.threads[me].join(e.before)
			}
		}
	}
}

// Notify is thread me's first half of a barrier. The barrier of a phase shares a clock with the last but
// one, to which all had come before: but not with the last one, which some may not have left.
func (d *Detector) Notify(me int) {
	if d == nil {
		return
	}
	d.phases[me]++
	m := &d.meets[d.phases[me]%2]
	*m = m.join(d.threads[me])
	d.threads[me][me]++
}

// Wait is the other half.
func (d *Detector) Wait(me int) {
	if d != nil {
		d.threads[me].join(d.meets[d.phases[me]%2])
	}
}

// flow is the data of a collective call.
type flow struct {
	from []clock // by thread, what comes before it; nil if it has not entered, or does not say
	left int     // how many threads have returned
}

// Enter is thread me's entry to a collective call, before which what it has done comes unless the call
// is not synchronized.
func (d *Detector) Enter(me int, synchronized bool) {
	if d == nil {
		return
	}
	f := d.flows[d.calls[me]]
	if f == nil {
		f = &flow{from: make([]clock, len(d.threads))}
		d.flows[d.calls[me]] = f
	}
	if synchronized {
		f.from[me] = f.from[me].join(d.threads[me])
		d.threads[me][me]++
	}
}

// Leave is its return, after which it has the data of threads from to to-1.
func (d *Detector) Leave(me, from, to int) {
	if d == nil {
		return
	}
	f := d.flows[d.calls[me]]
	for _, c := range f.from[from:to] {
		d.threads[me].join(c)
	}
	if f.left++; f.left == len(d.threads) {
		delete(d.flows, d.calls[me])
	}
	d.calls[me]++
}

// here is the number of the place in the program that calls this package.
func (d *Detector) here() uint32 {
	var few [6]uintptr // enough for Get and Put
	if n := d.find(few[:runtime.Callers(2, few[:])]); n != 0 {
		return n
	}
	var more [32]uintptr
	return d.find(more[:runtime.Callers(2, more[:])])
}

func (d *Detector) find(pcs []uintptr) uint32 {
	for i, pc := range pcs {
		n, ok := d.numbers[pc]
		if !ok {
			f, _ := runtime.CallersFrames(pcs[i : i+1]).Next()
			// What generated programs read and write structures by has no place in the source.
			if !origin.Own(f.Function, f.File) && !strings.Contains(f.Function, ".getAny") && !strings.Contains(f.Function, ".putAny") {
				place := fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
				if n = uint32(max(slices.Index(d.places, place), 0)); n == 0 {
					n = uint32(len(d.places))
					d.places = append(d.places, place)
				}
			}
			d.numbers[pc] = n
		}
		if n != 0 {
			return n
		}
	}
	return 0
}

// Status is the exit status of a job that ends with a status: not 0 if there were races. It prints what
// there is to say at the end.
func (d *Detector) Status(status int) int {
	if d == nil {
		return status
	}
	if n := len(d.found); n > racesMost {
		d.print(fmt.Sprintf("%d more data races", n-racesMost))
	}
	if d.forgot > 0 {
		d.print(fmt.Sprintf("races: %d accesses were forgotten, and races with them not looked for: %d to %d words are kept", d.forgot, roomMost, d.most))
	}
	if d.crowded {
		d.print(fmt.Sprintf("races: more than %d words order accesses: some races were not looked for", edgesMost))
	}
	if len(d.found) > 0 && status == 0 {
		return 1
	}
	return status
}
