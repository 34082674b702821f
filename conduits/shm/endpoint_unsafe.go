package shm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bias"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/release"
	"github.com/argon-go/argon/internal/sleepers"
	"github.com/argon-go/argon/internal/spin"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Endpoint is one rank's mailbox and segment; see conduits.Endpoint.
type Endpoint struct {
	// What every send and poll reads, together.
	out     []atomic.Pointer[outRing] // by 2*(rank-first)+class, made on first use
	hot     *inRing                   // delivered last
	openSeq *uint32                   // ctlOpenSeq of this rank
	seen    uint32                    // its value when in was made
	spins   int                       // looks at the hot ring in Spin
	parked  *uint32
	fence   bool          // see notify
	spare   atomic.Uint32 // where this rank fences

	rank     int
	first    int // the lowest rank of j, what out and views begin with
	here     int // its place, see job
	j        *job
	receiver conduits.Receiver
	msg      [conduits.NumClasses]conduits.Message // one a class: replies may nest
	opened   []uint32                              // the bits at ctlOpen that in was made for
	in       []*inRing                             // rings of all sources that have sent
	watch    []*uint64                             // next() of each, closer together
	cursor   int                                   // where the last look at others ended
	turn     uint                                  // polls, for fairness
	views    []segment.View
	sizes    []uint64 // of all segments, by rank-first, and what others may do to them
	rights   []segment.Rights
	window   []segment.View // what Views answers: views, until the job has failed
	lock     bias.Lock      // held while polling
	launched bool           // into a job with more ranks than processors
	crowded  atomic.Bool    // the same, or measured by the watcher

	patience  atomic.Int32 // Spins before a yield, see Idle
	outwaited atomic.Bool  // the last wait was longer

	waitMu  sync.Mutex
	waiting sleepers.List[conduits.Blocked] // by Ticket.Slot
	armed   int
	nested  atomic.Int32 // handlers that sleep until they can reply

	statsMu             sync.Mutex                         // two at once would keep each other from e.lock
	received            [conduits.NumClasses]atomic.Uint64 // as Stats last saw them
	replies, noReplies  atomic.Uint64                      // sent, and not for want of credit, likewise
	puts, gets, atomics atomic.Uint64
	faults              atomic.Uint64 // see conduits.Stats
	parks, wakes        atomic.Uint64
	connectMu           sync.Mutex
	attached            atomic.Bool
	closed              atomic.Bool
	failed              atomic.Pointer[conduits.PeerError]
	start               time.Time
	hooks               conduits.Hooks

	// What the watcher compares the job's memory with, and remembers.
	offer      conduits.AttachConfig // of this rank
	all        atomic.Bool           // all ranks have attached
	lastEnd    uint64
	sent       []uint32 // of ctlOpen
	stalled    int
	stalledSeq uint32
	miscounts  int

	// Registered memory.
	conduits.OwnMemory
	vpid   uint16 // what this rank is called in others' tables
	frames segment.Frames
	units  unsafe.Pointer         // nil in one process, as what follows
	peers  []atomic.Pointer[peer] // by rank-first, made on first use
	cookie *[regCookieBytes]byte  // see present

	probing sync.Mutex
	noVM    bool             // for tests: this rank may not reach into other processes
	desk    desk             // this rank's questions
	desks   []unsafe.Pointer // those of the askers, by place
	lost    lostUnits
	serving sync.Mutex
}

// Hook has h called from now on. Only before Attach, and once.
func (e *Endpoint) Hook(h conduits.Hooks) { e.hooks = h }

// idle is the blocked reason of callers that give none.
type idle struct{}

func (idle) Blocked() string { return "waiting" }

func newEndpoint(j *job, rank int) *Endpoint {
	e := &Endpoint{
		rank:     rank,
		first:    j.first,
		here:     j.place(rank),
		j:        j,
		out:      make([]atomic.Pointer[outRing], conduits.NumClasses*j.span),
		openSeq:  j.c32(rank, ctlOpenSeq),
		parked:   j.c32(rank, ctlParked),
		launched: *j.h32(hdrCrowded) != 0,
		spins:    spins,
		start:    time.Now(),
	}
	e.crowded.Store(e.launched)
	e.patience.Store(mostSpins)
	for c := range e.msg {
		e.msg[c].Class = conduits.Class(c)
	}
	e.vpid = uint16(min(rank, segment.AnyVPID))
	e.opened = make([]uint32, (j.n+31)/32)
	e.sent = make([]uint32, len(e.opened))
	if j.local == nil {
		e.units = unsafe.Pointer(j.unit(rank, 0))
		e.peers = make([]atomic.Pointer[peer], j.span)
		e.desks = make([]unsafe.Pointer, j.n)
		e.present()
	}
	// A rank whose processes cannot do their half of the asymmetric fence makes
	// everybody do theirs; told before Attach, so before the first message.
	if release.Plain && !sys.HasMembarrier() {
		atomic.StoreUint32(j.h32(hdrFence), 1)
	}
	e.fence = release.Plain && atomic.LoadUint32(j.h32(hdrFence)) != 0 // Attach looks again
	return e
}

// Looks at the hot ring in one Spin, of about 15 ns each: while it lasts the
// other rings wait, so with few rings it lasts longer. Measured with two ranks:
// half round trips of 70 ns with 16 looks, 66 with 48.
const (
	spins     = 16
	longSpins = 48
	fewRings  = 4
)

// Rank is this endpoint's rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size is the number of ranks of the job, of which not all need share this memory.
func (e *Endpoint) Size() int { return e.j.size }

// Conduit is "shm", or what the job's Part says.
func (e *Endpoint) Conduit() string { return e.j.conduit }

// Ranks are those that share this memory, ascending.
func (e *Endpoint) Ranks() []int {
	l := make([]int, e.j.n)
	for i := range l {
		l[i] = e.j.rank(i)
	}
	return l
}

// Limits of this job; the medium payload depends on the number of ranks.
func (e *Endpoint) Limits() conduits.Limits {
	return conduits.Limits{
		MaxMedium:  e.j.maxMedium(),
		MaxLong:    uint64(e.j.segment),
		MaxSegment: uint64(e.j.segment),
		Credits:    e.j.cells,
	}
}

// Stats adds up the rings' counters.
func (e *Endpoint) Stats(s *conduits.Stats) {
	*s = conduits.Stats{
		Puts:    e.puts.Load(),
		Gets:    e.gets.Load(),
		Atomics: e.atomics.Load(),
		Parks:   e.parks.Load(),
		Wakes:   e.wakes.Load(),
		Faults:  e.faults.Load(),
	}
	// The rings that messages come from, and those of replies, belong to the
	// poller; if another goroutine polls, yesterday's figures must do.
	e.statsMu.Lock()
	if e.lock.TryLock() {
		var received [conduits.NumClasses]uint64
		var replies, noCredit uint64
		for _, r := range e.in {
			received[r.class] += r.delivered
		}
		for i := int(conduits.Reply); i < len(e.out); i += conduits.NumClasses {
			if r := e.out[i].Load(); r != nil {
				replies += r.tail - r.cancelled
				noCredit += r.noCredit
			}
		}
		e.lock.Unlock()
		for c := range received {
			e.received[c].Store(received[c])
		}
		e.replies.Store(replies)
		e.noReplies.Store(noCredit)
	}
	e.statsMu.Unlock()
	for c := range conduits.NumClasses {
		s.Received[c] = e.received[c].Load()
	}
	s.Sent[conduits.Reply] = e.replies.Load()
	s.NoCredit = e.noReplies.Load()
	for i := int(conduits.Request); i < len(e.out); i += conduits.NumClasses {
		r := e.out[i].Load()
		if r != nil {
			r.lock.Lock()
			s.Sent[conduits.Request] += r.tail - r.cancelled
			s.NoCredit += r.noCredit
			r.lock.Unlock()
		}
		if r != nil || e.out[i+1].Load() != nil {
			s.PeersUsed++
		}
	}
}

// Attach publishes the segment and waits for all ranks to do so.
func (e *Endpoint) Attach(c conduits.AttachConfig) error {
	if err := conduits.CheckAttach("shm", &c, uint64(e.j.segment)); err != nil {
		return err
	}
	switch {
	case e.Err() != nil:
		return e.Err()
	case !e.attached.CompareAndSwap(false, true):
		return errs.NotReady("shm: rank %d is attached already", e.rank)
	}
	if e.j.local != nil {
		err := checkLocal(c.Size)
		if err == nil && e.j.local.outside {
			err = e.j.reserve(e.rank, c.Size)
		}
		if err != nil {
			e.attached.Store(false)
			return err
		}
	}
	e.receiver = c.Receiver
	*(*uint64)(unsafe.Add(e.j.ctl(e.rank), ctlSegment)) = c.Size
	*e.j.c32(e.rank, ctlRights) = uint32(c.Rights)
	atomic.StoreUint32(e.j.c32(e.rank, ctlState), uint32(Attached))
	e.offer = conduits.AttachConfig{Size: c.Size, Rights: c.Rights}
	e.j.watched(e)
	all := e.j.h32(hdrAttached)
	if atomic.AddUint32(all, 1) == uint32(e.j.n) {
		e.j.rouseAll()
	}
	for i := 0; atomic.LoadUint32(all) != uint32(e.j.n); i++ {
		if e.Idle(i) {
			continue
		}
		t := e.Arm(attaching{e})
		if err := e.Err(); err != nil {
			e.Disarm(t)
			return err
		}
		if atomic.LoadUint32(all) == uint32(e.j.n) {
			e.Disarm(t)
			break
		}
		e.Park(t)
	}
	e.fence = release.Plain && atomic.LoadUint32(e.j.h32(hdrFence)) != 0
	views := make([]segment.View, e.j.span)
	e.sizes, e.rights = make([]uint64, e.j.span), make([]segment.Rights, e.j.span)
	for k := range e.j.n {
		r := e.j.rank(k)
		i := r - e.first
		size := *(*uint64)(unsafe.Add(e.j.ctl(r), ctlSegment))
		if e.j.local == nil && size > uint64(e.j.segment) { // no rank of ours writes that
			e.Blame(r, fmt.Errorf("its segment is said to have %d bytes, of at most %d", size, e.j.segment))
			return e.Err()
		}
		e.sizes[i], e.rights[i] = size, segment.Rights(*e.j.c32(r, ctlRights))
		views[i] = segment.NewView(e.j.segmentBase(r), size, e.rights[i])
		// A rank's own accesses are not restricted by what it grants to others.
		if r == e.rank {
			views[i] = segment.NewView(views[i].Base, size, segment.RightsAll)
		}
	}
	e.views, e.window = views, slices.Clone(views)
	e.all.Store(true)
	own := views[e.rank-e.first]
	e.Ready(func() segment.ATUConfig { return e.atuConfig(own, &c) })
	if e.hooks.Attached != nil {
		return e.hooks.Attached(own, c)
	}
	return nil
}

// checkLocal refuses a segment that the Go heap could not give.
func checkLocal(size uint64) error {
	if avail, limit := sys.AvailableMemory(); avail > 0 && size > uint64(avail) {
		return errs.Resource("shm: a segment of %d bytes: %s allows %d (-segment, ARGON_SEGMENT)", size, limit, avail)
	}
	return nil
}

// attaching says which ranks Attach waits for.
type attaching struct{ e *Endpoint }

func (a attaching) Blocked() string {
	var late []int
	for i := range a.e.j.n {
		r := a.e.j.rank(i)
		if RankState(atomic.LoadUint32(a.e.j.c32(r, ctlState))) == Starting {
			late = append(late, r)
		}
	}
	if len(late) > 8 {
		return fmt.Sprintf("attach: waiting for ranks %v and %d more", late[:8], len(late)-8)
	}
	return fmt.Sprintf("attach: waiting for ranks %v", late)
}

// Views is the direct-access table, from the lowest to the highest of the ranks that
// share this memory.
func (e *Endpoint) Views() (first int, views []segment.View) { return e.first, e.window }

// near says whether rank is in the table of views. If it does not share this memory
// (see reaches) its view refuses all.
func (e *Endpoint) near(rank int) bool { return uint(rank-e.first) < uint(len(e.views)) }

// SegmentSize is the size that rank attached.
func (e *Endpoint) SegmentSize(rank int) uint64 {
	if !e.near(rank) {
		return 0
	}
	return e.sizes[rank-e.first]
}

// SegmentRights is what this rank may do to rank's segment.
func (e *Endpoint) SegmentRights(rank int) segment.Rights {
	switch {
	case !e.near(rank):
		return 0
	case rank == e.rank:
		return segment.RightsAll
	}
	return e.rights[rank-e.first]
}

// System is rank's system area, nil if rank does not share this memory.
func (e *Endpoint) System(rank int) []byte {
	if !e.j.has(rank) {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(e.j.ctl(rank), ctlSystem)), conduits.SystemBytes)
}

// ring finds or opens the ring to dst.
func (e *Endpoint) ring(dst int, c conduits.Class) *outRing {
	if r := e.out[(dst-e.first)*conduits.NumClasses+int(c)].Load(); r != nil {
		return r
	}
	return e.connect(dst, c)
}

// connect makes this rank known to dst, which will look at the ring from now on.
func (e *Endpoint) connect(dst int, c conduits.Class) *outRing {
	e.connectMu.Lock()
	defer e.connectMu.Unlock()
	at := &e.out[(dst-e.first)*conduits.NumClasses+int(c)]
	if r := at.Load(); r != nil {
		return r
	}
	r := e.j.outRing(e.rank, dst, c)
	me := e.here
	word := (*uint32)(unsafe.Add(e.j.ctl(dst), ctlOpen+me/32*4))
	bit := uint32(1) << (me % 32)
	if atomic.OrUint32(word, bit)&bit == 0 {
		atomic.AddUint32(e.j.c32(dst, ctlOpenSeq), 1)
	}
	if e.closed.Load() {
		r.shut()
	}
	at.Store(r)
	return r
}

// news finds out why ctlOpenSeq has changed since the last poll: rings have been
// opened, a rank asks this one or has answered it, or has left the job.
func (e *Endpoint) news() int {
	e.seen = atomic.LoadUint32(e.openSeq)
	if e.closed.Load() {
		e.shutReplies()
	}
	for i, had := range e.opened {
		if atomic.LoadUint32((*uint32)(unsafe.Add(e.j.ctl(e.rank), ctlOpen+i*4))) != had {
			e.admit()
			break
		}
	}
	if e.j.local != nil {
		return 0
	}
	return e.serve() + e.advance()
}

// shutReplies has this rank send no replies any more. The endpoint is closed, the
// caller polls.
func (e *Endpoint) shutReplies() {
	for i := int(conduits.Reply); i < len(e.out); i += conduits.NumClasses {
		if r := e.out[i].Load(); r != nil {
			r.shut()
		}
	}
}

// admit takes up rings that have been opened.
func (e *Endpoint) admit() {
	have := make(map[int]bool, len(e.in))
	for _, r := range e.in {
		have[r.src] = true
	}
	for i := range e.opened {
		e.opened[i] = atomic.LoadUint32((*uint32)(unsafe.Add(e.j.ctl(e.rank), ctlOpen+i*4)))
	}
	for i := range e.j.n {
		src := e.j.rank(i)
		if have[src] || e.opened[i/32]>>(i%32)&1 == 0 {
			continue
		}
		for c := range conduits.Class(conduits.NumClasses) {
			r := e.j.inRing(src, e.rank, c)
			r.index = len(e.in)
			e.in = append(e.in, r)
			e.watch = append(e.watch, r.next())
		}
	}
	if e.hot == nil && len(e.in) > 0 {
		e.hot = e.in[0]
	}
	e.spins = spins
	if len(e.in) <= fewRings {
		e.spins = longSpins
	}
}

// Send sends a short message.
func (e *Endpoint) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	r := e.out[(dst-e.first)*conduits.NumClasses+int(c)].Load()
	n := uint64(len(words))
	if r == nil || n > conduits.MaxWords {
		r = e.firstSend(dst, c, n)
	}
	// Replies are sent by the poller, which holds a lock already.
	if c == conduits.Request {
		if !bias.Enter(&r.lock) {
			r.lock.Lock()
		}
	} else if r.requests != nil {
		r.align()
	}
	t := r.tail
	if t >= r.limit && !r.room() {
		return e.fullFor(r, c)
	}
	r.tail = t + 1
	// The words of a message and its status in as few stores, and as close to
	// each other, as can be: the receiver's look may take the line away between.
	p := r.cell(t)
	to, bits := r.body(p, int(n)*4)
	from := unsafe.Pointer(unsafe.SliceData(words))
	for i := uint64(0); i < n/2; i++ {
		*(*uint64)(unsafe.Add(to, 8*i)) = *(*uint64)(unsafe.Add(from, 8*i))
	}
	if n&1 != 0 {
		*(*uint32)(unsafe.Add(to, 4*n-4)) = words[n-1]
	}
	release.Store64((*uint64)(p), status(t, uint64(tag)&stTagMask|n<<stWordsShift|bits))
	if c == conduits.Request {
		r.lock.Unlock()
	}
	if e.fence {
		e.spare.Add(1)
	}
	if atomic.LoadUint32(r.parked) != 0 {
		e.wake(dst)
	}
	return conduits.Ready
}

// firstSend is what Send rarely needs.
//
//go:noinline
func (e *Endpoint) firstSend(dst int, c conduits.Class, words uint64) *outRing {
	if words > conduits.MaxWords {
		panic(fmt.Sprintf("shm: send of %d words; limit %d", words, conduits.MaxWords))
	}
	return e.ring(dst, c)
}

// fullFor is full for a ring that is locked only for requests.
func (e *Endpoint) fullFor(r *outRing, c conduits.Class) conduits.Status {
	if c == conduits.Reply {
		r.lock.Lock()
	}
	return e.full(r)
}

// Reserve claims the cell of a message. Its body goes into the far part, which
// nobody watches while it is being filled.
func (e *Endpoint) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	r := e.ring(dst, c)
	kind := e.payloadKind(words, payload)
	r.lock.Lock()
	t, at, ok := r.claim(kind, uint64(payload))
	if !ok {
		return conduits.Slot{}, e.full(r)
	}
	r.lock.Unlock()
	body := unsafe.Add(r.cell(t), r.far)
	s := conduits.Slot{
		Words: unsafe.Slice((*uint32)(unsafe.Add(body, wordsAt[kind])), words),
		Ref:   t&refIndex | kind<<refKindShift | at/lineBytes<<refLineShift,
	}
	switch kind {
	case kindLanded:
		s.Payload = unsafe.Slice((*byte)(unsafe.Add(r.landing, at)), payload)
	case kindInline:
		s.Payload = unsafe.Slice((*byte)(unsafe.Add(body, inlineAt(words))), payload)
	}
	return s, conduits.Ready
}

// full unlocks r and says why there is no room.
func (e *Endpoint) full(r *outRing) conduits.Status {
	r.noCredit++
	r.lock.Unlock()
	if e.Err() != nil || RankState(atomic.LoadUint32(e.j.c32(r.dst, ctlState))) >= Finished {
		return conduits.Dead
	}
	return conduits.NoCredit
}

// payloadKind says how a payload travels: in the cell if it fits there.
func (e *Endpoint) payloadKind(words, payload int) uint64 {
	if uint(words) > conduits.MaxWords || uint(payload) > uint(e.j.maxMedium()) {
		panic(fmt.Sprintf("shm: message of %d words and %d bytes; limits %d and %d", words, payload, conduits.MaxWords, e.j.maxMedium()))
	}
	switch {
	case payload == 0:
		return kindShort
	case inlineAt(words)+payload <= farBytes:
		return kindInline
	}
	return kindLanded
}

// SendPayload sends a medium message. The cell is written last and at a stretch,
// as in Send.
func (e *Endpoint) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte) conduits.Status {
	r := e.ring(dst, c)
	kind := e.payloadKind(len(words), len(payload))
	if c == conduits.Request {
		if !bias.Enter(&r.lock) {
			r.lock.Lock()
		}
	} else if r.requests != nil {
		r.align()
	}
	t, at, ok := r.claim(kind, uint64(len(payload)))
	if !ok {
		return e.fullFor(r, c)
	}
	if c == conduits.Request {
		r.lock.Unlock()
	}
	p := r.cell(t)
	h := uint64(len(payload))
	size := wordsAt[kindLanded] + 4*len(words)
	if kind == kindLanded {
		copy(unsafe.Slice((*byte)(unsafe.Add(r.landing, at)), len(payload)), payload)
		h = landed(at, h, h)
	} else {
		size = inlineAt(len(words)) + len(payload)
	}
	body, bits := r.body(p, size)
	if kind == kindInline {
		copy(unsafe.Slice((*byte)(unsafe.Add(body, inlineAt(len(words)))), len(payload)), payload)
	}
	*(*uint64)(body) = h
	copy(unsafe.Slice((*uint32)(unsafe.Add(body, wordsAt[kind])), len(words)), words)
	release.Store64((*uint64)(p), status(t, uint64(tag)&stTagMask|uint64(len(words))<<stWordsShift|kind<<stKindShift|bits))
	e.notify(r)
	return conduits.Ready
}

// ReservePut claims the cell and copies data straight into dst's segment.
func (e *Endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	e.payloadKind(words, 0) // checks words
	v := &e.views[dst-e.first]
	b, ok := v.Bytes(to, uint64(len(data)), v.Write)
	far := !ok && len(data) > 0
	if far && !conduits.Registered(e.SegmentSize(dst), to, uint64(len(data))) {
		panic("shm: put to an address that was not checked")
	}
	r := e.ring(dst, c)
	r.lock.Lock()
	t, _, ok := r.claim(kindLong, 0)
	if !ok {
		return conduits.Slot{}, 0, e.full(r)
	}
	r.lock.Unlock()
	if len(data) > 0 && !far && unsafe.SliceData(b) != unsafe.SliceData(data) { // else filled in place
		copy(b, data)
	}
	body := unsafe.Add(r.cell(t), r.far)
	*(*uint64)(body) = uint64(to)
	*(*uint64)(unsafe.Add(body, 8)) = uint64(len(data))
	if far {
		*(*uint64)(unsafe.Add(body, 16)) = e.registrations(dst) // before the data is put: see longAt
	}
	s := conduits.Slot{
		Words: unsafe.Slice((*uint32)(unsafe.Add(body, wordsAt[kindLong])), words),
		Ref:   t&refIndex | kindLong<<refKindShift,
	}
	if !far {
		return s, done, conduits.Ready
	}
	ask, err := e.transfer(dst, to, data, segment.RightWrite, false)
	if ask {
		ev, ok := e.askLong(dst, c, &s, to, data, cookie)
		if !ok {
			e.Cancel(dst, c, s)
			return conduits.Slot{}, 0, conduits.NoCredit
		}
		return s, ev, conduits.Ready
	}
	if err != nil {
		e.faults.Add(1)
		s.Ref |= refRefused
	}
	return s, done, conduits.Ready
}

// Commit publishes a reserved message by its status word.
func (e *Endpoint) Commit(dst int, c conduits.Class, s conduits.Slot, tag conduits.Tag, payload int) {
	if s.Ref&(refRefused|refAsked) != 0 {
		if s.Ref&refAsked != 0 {
			e.commitLong(s, tag)
		} else {
			e.Cancel(dst, c, s)
		}
		return
	}
	e.publish(dst, c, s, payload, uint64(tag)&stTagMask|uint64(len(s.Words))<<stWordsShift)
}

// Cancel publishes a message that delivers nothing.
func (e *Endpoint) Cancel(dst int, c conduits.Class, s conduits.Slot) {
	if s.Ref&refAsked != 0 {
		e.cancelLong(s)
	}
	r := e.ring(dst, c)
	r.lock.Lock()
	r.cancelled++
	r.lock.Unlock()
	e.publish(dst, c, s, 0, stSkip)
}

func (e *Endpoint) publish(dst int, c conduits.Class, s conduits.Slot, payload int, bits uint64) {
	r := e.ring(dst, c)
	t := s.Ref & refIndex
	kind := s.Ref >> refKindShift & stKindMask
	p := r.cell(t)
	h := (*uint64)(unsafe.Add(p, r.far))
	switch kind {
	case kindLanded:
		*h = landed(s.Ref>>refLineShift*lineBytes, uint64(len(s.Payload)), uint64(payload))
	case kindInline:
		*h = uint64(payload)
	}
	release.Store64((*uint64)(p), status(t, bits|kind<<stKindShift|stFar))
	e.notify(r)
}

// notify wakes the receiver of r if it sleeps. The load must not overtake the
// status store. With plain stores the processor may let it; then the receiver,
// having announced itself, makes all running threads pass a barrier and looks
// again (Arm), or, where that does not work or not pay, senders fence.
func (e *Endpoint) notify(r *outRing) {
	if e.fence {
		e.spare.Add(1)
	}
	if atomic.LoadUint32(r.parked) != 0 {
		e.wake(r.dst)
	}
}

// Wake makes rank's sleepers look again. The change that was made by direct
// access was a plain store, whatever stores of ours are: where no sleeper makes
// a barrier, fence.
func (e *Endpoint) Wake(rank int) {
	if e.fence || !release.Plain {
		e.spare.Add(1)
	}
	if p := e.j.c32(rank, ctlParked); atomic.LoadUint32(p) != 0 {
		e.wake(rank)
	}
}

// wake is one system call for any number of messages: the sender that clears the word
// rouses; the sleeper sets it again before it sleeps again.
func (e *Endpoint) wake(rank int) {
	if atomic.SwapUint32(e.j.c32(rank, ctlParked), 0) != 0 {
		e.wakes.Add(1)
		e.j.rouse(rank)
	}
}

// Most messages of one ring that one poll runs, and most other rings that it
// looks at: together they bound how long a ring can be overlooked.
const (
	batch = 32
	looks = 16
)

// Poll runs what has arrived.
func (e *Endpoint) Poll() int {
	if !bias.TryEnter(&e.lock) && !e.lock.TryLock() {
		return 0
	}
	n := 0
	if r := e.hot; r != nil {
		if s := atomic.LoadUint64(r.next()); s != 0 {
			n = e.arrived(r, s)
		}
	}
	if e.others(n) {
		n += e.lookAround()
	}
	e.lock.Unlock()
	return n
}

// Spin is Poll that watches the hot ring for a moment.
func (e *Endpoint) Spin() int {
	if e.crowded.Load() {
		return e.Poll()
	}
	if !bias.TryEnter(&e.lock) && !e.lock.TryLock() {
		return 0
	}
	n := 0
	if r := e.hot; r != nil {
		if s := spin.Nonzero(r.next(), e.spins, e.ahead(r)); s != 0 {
			n = e.arrived(r, s)
		}
	}
	if e.others(n) {
		n += e.lookAround()
	}
	e.lock.Unlock()
	return n
}

// others says whether to look at the other rings when n messages of the hot one
// have run. A ring that never rests must not starve them: they are looked at unless
// there was little to do with the hot one, and now and then in any case.
func (e *Endpoint) others(n int) bool {
	e.turn++
	return n == 0 || n >= batch || e.turn&7 == 0
}

// ahead guesses the cell that will be written when the next message of r has
// been handled, so that its line is on its way while the handler runs: the
// answer's, if the last message was answered. nil if it was not: fetching a cell
// in vain takes it from a receiver that watches it.
func (e *Endpoint) ahead(r *inRing) *uint64 {
	if !spin.Ahead {
		return nil
	}
	o := r.partner
	if o == nil {
		o = e.out[(r.src-e.first)*conduits.NumClasses+int(r.class^1)].Load()
		if o != nil && r.class == conduits.Request {
			o.requests = r
		}
		r.partner = o
		return nil
	}
	// The tail of a request ring may move at the same time; a wrong guess costs
	// a transfer.
	if t := o.tail; t != r.answered {
		return (*uint64)(o.cell(t))
	}
	return nil
}

// arrived runs the messages of r, the first of which has status s.
func (e *Endpoint) arrived(r *inRing, s uint64) int {
	if o := r.partner; spin.Ahead && o != nil {
		r.answered = o.tail
	}
	n := e.drain(r, s, batch)
	e.watch[r.index] = r.next()
	if e.fence || atomic.LoadUint32(e.parked) != 0 {
		e.ran()
	}
	return n
}

// lookAround runs what is in some of the other rings.
func (e *Endpoint) lookAround() int {
	n := 0
	if atomic.LoadUint32(e.openSeq) != e.seen {
		n = e.news()
	}
	for i := min(len(e.in), looks); i > 0; i-- {
		if e.cursor++; e.cursor >= len(e.in) {
			e.cursor = 0
		}
		if s := atomic.LoadUint64(e.watch[e.cursor]); s != 0 {
			r := e.in[e.cursor]
			n += e.arrived(r, s)
			e.hot = r
		}
	}
	return n
}

// ran wakes siblings that may wait for what a handler did. As in notify, the
// load must not overtake the handler's stores.
func (e *Endpoint) ran() {
	if e.fence {
		e.spare.Add(1)
	}
	if atomic.LoadUint32(e.parked) != 0 {
		e.wake(e.rank)
	}
}

// PollReplies runs replies only; the caller is in Receive, so it holds the lock.
func (e *Endpoint) PollReplies() int {
	n := 0
	if atomic.LoadUint32(e.openSeq) != e.seen {
		n = e.news()
	}
	for _, r := range e.in {
		if r.class != conduits.Reply {
			continue
		}
		if s := atomic.LoadUint64(r.next()); s != 0 {
			k := e.drain(r, s, batch)
			e.watch[r.index] = r.next()
			e.ran()
			n += k
		}
	}
	return n
}

// Deliver runs f as a handler: with the lock held, which is all that a reply
// needs here.
func (e *Endpoint) Deliver(f func()) bool {
	if !bias.TryEnter(&e.lock) && !e.lock.TryLock() {
		return false
	}
	f()
	e.ran()
	e.lock.Unlock()
	return true
}

// DeliverCount is Deliver for an f that counts.
func (e *Endpoint) DeliverCount(f func() int) (n int, ok bool) {
	if !bias.TryEnter(&e.lock) && !e.lock.TryLock() {
		return 0, false
	}
	n = f()
	e.ran()
	e.lock.Unlock()
	return n, true
}

// Polling says whether the caller is in a handler; where goroutines cannot be
// told apart it says no.
func (e *Endpoint) Polling() bool { return sys.HasGoroutine && e.lock.Held() }

// corrupt ends the job: a slot holds what no sender of ours writes.
func (e *Endpoint) corrupt(r *inRing, s uint64) {
	e.Fail(fmt.Errorf("mailbox of rank %d: slot %d of the %v ring from rank %d holds %#x", e.rank, r.head&r.mask, r.class, r.src, s))
}

// How long a waiting rank spins (in empty Spins of about 0.7 us) and yields
// before it sleeps. Crowded ranks hand the processor over at once, whether the
// launcher knew of it or the watcher has measured it; which side fences does not depend on
// that, so ranks may differ, and change, at any time. The others
// adapt: a wait that outlasts the spinning halves it for the next one, one that
// does not lengthens it, so that two ranks that share a processor against all
// expectation soon lose little.
const (
	mostSpins        = 100
	leastSpins       = 2
	moreSpins        = 8
	yieldsBeforePark = 40
	crowdedYields    = 2
	spinsPerGosched  = 32
)

// Idle yields as the wait grows longer.
func (e *Endpoint) Idle(idle int) bool {
	if e.crowded.Load() {
		if idle >= crowdedYields {
			return false
		}
		e.yield()
		return true
	}
	patience := int(e.patience.Load())
	if idle == 0 {
		if e.outwaited.Swap(false) {
			patience = max(patience/2, leastSpins)
		} else {
			patience = min(patience+moreSpins, mostSpins)
		}
		e.patience.Store(int32(patience))
	}
	switch {
	case idle < patience:
		if idle%spinsPerGosched == spinsPerGosched-1 {
			runtime.Gosched() // lets goroutines of this process run
		}
	case idle < patience+yieldsBeforePark:
		e.outwaited.Store(true)
		e.yield()
	default:
		return false
	}
	return true
}

func (e *Endpoint) yield() {
	if e.j.local != nil {
		runtime.Gosched()
	} else {
		sys.Yield()
	}
}

// Arm announces a sleeper.
func (e *Endpoint) Arm(b conduits.Blocked) conduits.Ticket {
	if b == nil {
		b = idle{}
	}
	e.waitMu.Lock()
	t := conduits.Ticket{Slot: e.waiting.Add(b)}
	e.armed++
	// The number first, then the announcement: the waker that clears it
	// changes the number afterwards, so Park cannot miss it.
	t.Seq = atomic.LoadUint32(e.j.c32(e.rank, ctlSeq))
	atomic.StoreUint32(e.parked, 1)
	e.waitMu.Unlock()
	if release.Plain && !e.fence {
		if e.j.local != nil {
			sys.Barrier()
		} else {
			sys.GlobalBarrier()
		}
	}
	return t
}

// Park sleeps until woken.
func (e *Endpoint) Park(t conduits.Ticket) {
	if e.Polling() {
		// A handler that waits to reply: its PollReplies looked at every ring.
		e.nested.Add(1)
		e.parks.Add(1)
		e.j.sleep(e.rank, t.Seq)
		e.nested.Add(-1)
	} else if e.quiet() {
		e.parks.Add(1)
		e.j.sleep(e.rank, t.Seq)
	}
	e.Disarm(t)
}

// quiet says whether an armed caller may sleep. The poll that it did since Arm
// does not tell: it looked at some of the rings only, or at none, because another
// goroutine was polling, which may have passed a ring just before a message came
// into it from a sender that saw nobody parked.
func (e *Endpoint) quiet() bool {
	if !e.lock.TryLock() {
		// A poller that sleeps in a handler wakes us after it (ran); any other
		// is soon done.
		if e.nested.Load() > 0 {
			return true
		}
		e.yield()
		return false
	}
	quiet := atomic.LoadUint32(e.openSeq) == e.seen
	for _, r := range e.in {
		quiet = quiet && atomic.LoadUint64(r.next()) == 0
	}
	e.lock.Unlock()
	return quiet
}

// Disarm takes the announcement back when nobody else has made one.
func (e *Endpoint) Disarm(t conduits.Ticket) {
	e.waitMu.Lock()
	e.waiting.Remove(t.Slot)
	if e.armed--; e.armed == 0 {
		atomic.StoreUint32(e.parked, 0)
	}
	e.waitMu.Unlock()
}

// Waiting lists the reasons of the goroutines that sleep.
func (e *Endpoint) Waiting() []conduits.Blocked {
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	return e.waiting.All()
}

// Now is the time since the endpoint was opened.
func (e *Endpoint) Now() time.Duration { return time.Since(e.start) }

// Err is the job's failure.
func (e *Endpoint) Err() error {
	if p := e.failed.Load(); p != nil {
		return p
	}
	if rank, status, cause, ok := e.j.failure(); ok {
		e.failed.CompareAndSwap(nil, &conduits.PeerError{Rank: rank, Err: errs.Carried(status, cause)})
		return e.failed.Load()
	}
	if e.closed.Load() {
		return errClosed
	}
	return nil
}

var errClosed = errs.Closed("shm: the endpoint is closed")

// Fail declares this rank failed.
func (e *Endpoint) Fail(err error) {
	e.j.fail(e.here, e.rank, errs.CarriedStatus(err), err.Error())
	atomic.StoreUint32(e.j.c32(e.rank, ctlState), uint32(Failed))
	if e.hooks.Failed != nil {
		e.hooks.Failed(err)
	}
}

// Blame declares rank failed, which need not share this memory: what another
// layer has found out. As with Fail only the first failure of a job counts.
func (e *Endpoint) Blame(rank int, err error) {
	e.j.fail(e.here, rank, errs.CarriedStatus(err), err.Error())
	if e.hooks.Blamed == nil {
		return
	}
	if f, ok := e.Err().(*conduits.PeerError); ok {
		e.hooks.Blamed(f)
	}
}

// Left says whether rank has left and its rings are empty.
func (e *Endpoint) Left(rank int) bool {
	if !e.j.has(rank) || RankState(atomic.LoadUint32(e.j.c32(rank, ctlState))) != Finished {
		return false
	}
	// What it sent lies in its rings since before its state was written.
	for !e.lock.TryLock() {
		if e.nested.Load() > 0 || e.Polling() {
			return false // the poller wakes us when its handler returns
		}
		e.yield()
	}
	i := e.j.place(rank)
	bit := uint32(1) << (i % 32)
	empty := atomic.LoadUint32((*uint32)(unsafe.Add(e.j.ctl(e.rank), ctlOpen+i/32*4)))&bit == e.opened[i/32]&bit // else its rings are new
	for _, r := range e.in {
		empty = empty && (r.src != rank || atomic.LoadUint64(r.next()) == 0)
	}
	e.lock.Unlock()
	return empty
}

// Close leaves the job. The memory stays mapped: goroutines may still hold
// pointers into it. It waits for no handler: if another goroutine polls meanwhile,
// what it finds before it looks around may still be replied to.
func (e *Endpoint) Close() error {
	if !e.closed.CompareAndSwap(false, true) {
		return errClosed
	}
	e.j.unwatched(e)
	err := e.CloseATU()
	if e.j.local == nil {
		e.leaveUnits()
		e.stopServing()
	}
	e.leave()
	if e.hooks.Closed != nil {
		err = errors.Join(err, e.hooks.Closed())
	}
	return err
}

// leave tells the others.
func (e *Endpoint) leave() {
	e.connectMu.Lock()
	for i := int(conduits.Request); i < len(e.out); i += conduits.NumClasses {
		if r := e.out[i].Load(); r != nil {
			r.lock.Lock()
			r.shut()
			r.lock.Unlock()
		}
	}
	e.connectMu.Unlock()
	// Rings of replies belong to the poller. If that is another goroutine, which
	// may be in a handler for long, it shuts them when it next looks around.
	if e.lock.TryLock() {
		e.shutReplies()
		e.lock.Unlock()
	} else if e.Polling() {
		e.shutReplies()
	}
	e.j.growth.close()
	state := e.j.c32(e.rank, ctlState)
	if atomic.LoadUint32(state) == uint32(Starting) {
		// The others would wait for it for ever.
		e.j.fail(e.here, e.rank, 1, "it left the job before it attached")
		return
	}
	atomic.CompareAndSwapUint32(state, uint32(Attached), uint32(Finished))
	e.j.rouseAll()
}
