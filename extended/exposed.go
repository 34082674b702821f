package extended

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Defaults of Config, from the measurements in the package comment.
const (
	// A put of 16 KiB to memory without a firehose takes 1.3 us by bouncing and
	// 3.1 by a miss on shm; 44 and 38 on udp, which at 8 KiB still are 31 and 45.
	DefaultBounceMax = 16 << 10
	// A put of 1 MiB takes 30 us with registration, 28 by firehoses that are
	// attached and 88 by such as are not on shm; 428, 514 and 982 on udp.
	DefaultOnceMin = 1 << 20
)

// Sizes, bytes.
const (
	// quickMax is the longest access that is made while the cache is locked.
	quickMax = 4096
	// copyMax is the longest source that is copied so that its owner may go on
	// while the memory that it goes to is being pinned, and copyNear the same
	// where the access itself is no more than a copy.
	copyMax  = 64 << 10
	copyNear = 4096
	// bounceMost is the longest piece that is bounced: requests say in 32 bits where
	// in it they belong.
	bounceMost = 1 << 30
	// keepMax is the longest buffer that a piece keeps for its next use.
	keepMax = 4096
	// onceFirst is from which length on memory that is touched for the first time
	// is registered for the one access instead of pinned: 4.8 us against 7.7 on
	// shm, 86 against 87 on udp.
	onceFirst = 64 << 10
)

// far reaches exposed memory. To the layers above it looks like a conduit: its
// put, get, word and atomic return what has happened at once, and have
// Endpoint.Complete called for the rest.
//
// What it is asked for is a piece: as much as one pin covers, or one active
// message. A piece goes its way without anybody waiting for it:
//
//	bounce         its request is sent when there is credit; the reply ends it
//	pin, register  the pin is asked for; when it is there the conduit's
//	               operations are begun; when these have ended it is released
//
// Whatever cannot be done in a handler, where most of these events come to light,
// is left to advance, which package am calls for everybody who waits.
//
// Deadlock: a piece has one pin, which it releases when the conduit has ended its
// operations. It waits for nothing else while it has it, so that the rules of
// package firehose hold whatever the number of pieces.
type far struct {
	x         *Endpoint
	cache     *firehose.Cache
	space     *firehose.Space
	e         *am.Endpoint
	strategy  Strategy
	bounceMax int
	onceMin   uint64
	bucket    uint64 // firehose.Limits has these two
	maxOnce   uint64
	onePin    uint64 // bytes from a bucket's begin that one pin covers
	quickMax  int    // 0: the strategy has no use for it

	spare *piece // see next; the cache's lock guards it
	reply []byte // of the request handler, of which one runs at a time

	todo    atomic.Int32 // pieces in ready and bounces
	mu      sync.Mutex
	all     []*piece // by index
	free    *piece
	ready   list     // to go on with
	bounces []bounce // those that wait for credit, by rank; no rank without any
	touched []uint64 // see first
}

// bounce is the queue of requests to one rank.
type bounce struct {
	dst    int
	busy   bool // somebody is sending
	pieces list
}

// list is a queue of pieces.
type list struct{ first, last *piece }

func (l *list) add(p *piece) {
	p.next = nil
	if l.first == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
}

func (l *list) take() *piece {
	p := l.first
	if p != nil {
		l.first, p.next = p.next, nil
	}
	return p
}

// back undoes take.
func (l *list) back(p *piece) {
	if p.next = l.first; p.next == nil {
		l.last = p
	}
	l.first = p
}

type pieceKind uint8

const (
	putPiece pieceKind = iota
	getPiece
	wordPiece // a put of 1, 2, 4 or 8 bytes that is single-copy atomic
	atomicPiece
)

var pieceNames = [...]string{"put", "get", "put", "atomic"}

// way is how a piece gets to its memory.
type way uint8

const (
	wayBounce way = iota
	wayPin
	wayOnce
)

// piece is an access to exposed memory of another rank.
type piece struct {
	far   *far
	next  *piece
	index uint32
	gen   uint32 // a new one with each use; under far.mu

	kind   pieceKind
	typ    conduits.AtomicType
	op     conduits.AtomicOp
	way    way
	pinned bool // region is there
	again  bool // it has faulted before
	dst    int
	addr   firehose.Addr
	b      []byte // source or destination
	v, w   uint64 // operands
	own    []byte // a buffer of its own

	cookie uint64         // Endpoint.Complete gets it
	want   conduits.Event // and what has not been said yet

	region firehose.Pinned
	done   int // bytes that have been moved, or sent for
	chunk  int // bytes behind them that region is for
	out    int // bounces that have not been answered; under far.mu
	// sending: there are bounces to be sent, so that no answer ends it; under far.mu.
	sending bool

	// left counts the conduit's operations, and whoever is beginning them.
	left  atomic.Int32
	value uint64 // what an atomic found
	err   error  // under far.mu

	then func(firehose.Pinned, error)
}

// pieceCookie marks the cookies of pieces; those of operations are less.
const pieceCookie = 1 << 62

func newFar(x *Endpoint, c *Config) *far {
	limits := c.Firehose.Limits()
	f := &far{
		x: x, cache: c.Firehose, space: c.Space,
		bounceMax: c.BounceMax, onceMin: c.OnceMin, bucket: limits.Bucket, maxOnce: limits.MaxOnce,
	}
	if f.bounceMax == 0 {
		f.bounceMax = DefaultBounceMax
	}
	f.bounceMax = min(f.bounceMax, bounceMost)
	if f.onceMin == 0 {
		f.onceMin = DefaultOnceMin
	}
	f.setStrategy(c.Strategy)
	f.onePin = (limits.MaxRemote-1)/f.bucket*f.bucket + f.bucket
	return f
}

func (f *far) setStrategy(s Strategy) {
	f.strategy, f.quickMax = s, 0
	if s == Adaptive || s == AlwaysPin {
		f.quickMax = quickMax
	}
}

func addrOf(a segment.NLA) firehose.Addr    { return firehose.Addr(a - segment.ExposedBase) }
func exposedAt(a firehose.Addr) segment.NLA { return segment.ExposedBase + segment.NLA(a) }

// near says whether rank's memory is in reach of load and store, so that an
// access to what is registered there is no more than a copy.
func (f *far) near(rank int) bool { return f.x.view(rank) != nil }

// reach is how many bytes from a on one pin covers.
func (f *far) reach(a firehose.Addr) uint64 { return f.onePin - uint64(a)&(f.bucket-1) }

// most is how much of an access of n bytes is one piece.
func (f *far) most(rank int, a segment.NLA, n uint64) uint64 {
	pin := f.reach(addrOf(a))
	switch {
	case rank == f.x.ep.Rank():
		return n
	case f.strategy == AlwaysBounce:
		return min(n, bounceMost)
	case f.strategy == AlwaysRegister, f.strategy == Adaptive && n >= f.onceMin:
		return min(n, f.maxOnce)
	}
	return min(n, pin)
}

func (p *piece) name() uint64 { return pieceCookie | uint64(p.index) }

// size is how many bytes p accesses.
func (p *piece) size() int {
	if p.kind == atomicPiece {
		return p.typ.Size()
	}
	return len(p.b)
}

// local is own exposed memory.
func (f *far) local(a segment.NLA, n uint64) ([]byte, error) {
	mem, ok := f.space.Local(addrOf(a), n)
	if !ok {
		return nil, fmt.Errorf("extended: %d bytes at %v of rank %d, which is this one: %w", n, a, f.x.ep.Rank(), firehose.NotExposed(f.space.End(addrOf(a))))
	}
	return mem, nil
}

// gone is the error of an access to own exposed memory that has been unmapped.
func (f *far) gone(a segment.NLA, n uint64) error {
	return fmt.Errorf("extended: %d bytes at %v of rank %d, which is this one: exposed, and not mapped any more: %w", n, a, f.x.ep.Rank(), segment.ErrFault)
}

// put is conduits.Endpoint.Put for an exposed address.
func (f *far) put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if dst == f.x.ep.Rank() {
		mem, err := f.local(to, uint64(len(src)))
		if err != nil {
			return 0, err
		}
		if !segment.Touch(mem, func() { copyWords(mem, src) }) {
			return 0, f.gone(to, uint64(len(src)))
		}
		return want, nil
	}
	done, p, _ := f.tryPut(dst, to, src, false)
	if done {
		return want, nil
	}
	if p != nil {
		f.attach(p, want, cookie)
		return 0, nil
	}
	p = f.take(putPiece, dst, to, want, cookie)
	p.b = src
	limit := copyMax
	if f.near(dst) {
		limit = copyNear
	}
	var have conduits.Event
	if want&conduits.SourceDone != 0 && len(src) <= limit {
		p.own = append(p.own[:0], src...)
		p.b = p.own
		have = conduits.SourceDone
		p.want &^= have
	}
	f.start(p)
	return have, nil
}

// get is conduits.Endpoint.Get; wait as for tryPut.
func (f *far) get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64, wait bool) (conduits.Event, error) {
	if src == f.x.ep.Rank() {
		mem, err := f.local(from, uint64(len(dst)))
		if err != nil {
			return 0, err
		}
		if !segment.Touch(mem, func() { copyWords(dst, mem) }) {
			return 0, f.gone(from, uint64(len(dst)))
		}
		return want, nil
	}
	done, p, err := f.tryGet(dst, src, from, wait)
	if err != nil {
		return 0, err
	}
	if done {
		return want, nil
	}
	if p != nil {
		f.attach(p, want, cookie)
		return 0, nil
	}
	p = f.take(getPiece, src, from, want, cookie)
	p.b = dst
	f.start(p)
	return 0, nil
}

// word is conduits.Endpoint.PutWord; wait as for tryPut.
func (f *far) word(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64, wait bool) (conduits.Event, error) {
	if dst == f.x.ep.Rank() {
		mem, err := f.local(to, uint64(n))
		if err != nil {
			return 0, err
		}
		if !segment.Touch(mem, func() { storeWord(mem, v) }) {
			return 0, f.gone(to, uint64(n))
		}
		return want, nil
	}
	done, p, err := f.tryWord(dst, to, v, n, wait)
	if err != nil {
		return 0, err
	}
	if done {
		return want, nil
	}
	if p != nil {
		f.attach(p, want&^conduits.SourceDone, cookie)
		return want & conduits.SourceDone, nil
	}
	p = f.take(wordPiece, dst, to, want&^conduits.SourceDone, cookie)
	p.setWord(v, n)
	f.start(p)
	return want & conduits.SourceDone, nil
}

// atomic is conduits.Endpoint.Atomic.
func (f *far) atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	if dst == f.x.ep.Rank() {
		mem, err := f.local(to, uint64(t.Size()))
		if err != nil {
			return 0, 0, err
		}
		var v uint64
		var ok bool
		if !segment.Touch(mem, func() { v, ok = applyWord(mem, op, t, a, b) }) {
			return 0, 0, f.gone(to, uint64(t.Size()))
		}
		if !ok {
			return 0, 0, errUnaligned(to, dst, t)
		}
		f.x.ep.Wake(dst)
		return v, conduits.RemoteDone, nil
	}
	v, done, p, _ := f.tryAtomic(dst, to, op, t, a, b, false)
	if done {
		return v, conduits.RemoteDone, nil
	}
	if p != nil {
		f.attach(p, conduits.RemoteDone, cookie)
		return 0, 0, nil
	}
	p = f.take(atomicPiece, dst, to, conduits.RemoteDone, cookie)
	p.op, p.typ, p.v, p.w = op, t, a, b
	f.start(p)
	return 0, 0, nil
}

func errUnaligned(a segment.NLA, rank int, t conduits.AtomicType) error {
	return errs.BadArg("extended: atomic at %v of rank %d: the memory that is exposed there is not aligned to the %d bytes of the type", a, rank, t.Size())
}

// quick says whether an access of n bytes may be made while the cache is locked: if it
// is short, and no more than a copy.
func (f *far) quick(rank, n int) bool { return n <= f.quickMax && f.x.near(rank) }

// fetch makes a quick access to what no firehose is attached to, by a blocking operation:
// it waits for one, if the strategy is to have one attached. This is the short way of a
// miss, of which nobody else needs to know; whatever it cannot do is done by start.
func (f *far) fetch(kind pieceKind, rank int, a segment.NLA, n int, access func(firehose.Grant) bool) (r firehose.Pinned, ok bool, err error) {
	bounces := f.strategy == Adaptive && n <= f.bounceMax
	if f.strategy == Adaptive && uint64(n) >= f.onceMin || bounces && !f.again(rank, addrOf(a)) {
		return r, false, nil
	}
	r, ok, err = f.cache.Fetch(rank, addrOf(a), uint64(n), access)
	if bounces && (ok || err != nil) {
		f.first(rank, addrOf(a)) // it is remembered no longer
	}
	if err != nil {
		err = failure(kind, n, addrOf(a), rank, err)
	}
	return r, ok, err
}

// next is the piece that an access of quick becomes if the conduit does not complete it
// at once. The cache is locked.
func (f *far) next(rank int, a segment.NLA) *piece {
	if f.spare == nil {
		f.spare = f.take(putPiece, rank, a, 0, 0)
		f.spare.left.Store(2) // the conduit's operation, and who begins it
	}
	return f.spare
}

// begun takes the conduit's answer to an access of quick and says whether that is all;
// otherwise next's piece is used up. A fault is all: it is looked into by start. The
// cache is locked.
func (f *far) begun(ev conduits.Event, err error) bool {
	if ev&conduits.RemoteDone != 0 || err != nil {
		return true
	}
	f.spare = nil
	return false
}

// kept makes p, an access of quick that is not complete, what start would have made of
// it. It is to be attached.
func (p *piece) kept(kind pieceKind, rank int, a segment.NLA, n int, r firehose.Pinned) {
	p.kind, p.dst, p.addr = kind, rank, addrOf(a)
	p.way, p.pinned, p.chunk, p.region = wayPin, true, n, r
}

// tryPut puts src if its target is in reach at once, or, if wait, after one miss. done
// says that it is complete. Otherwise p is what the access has become, to be attached,
// or nil if it is to be made in another way. Who does not wait gets no error.
func (f *far) tryPut(dst int, to segment.NLA, src []byte, wait bool) (done bool, p *piece, err error) {
	if !f.quick(dst, len(src)) {
		return false, nil, nil
	}
	var fault error
	access := func(g firehose.Grant) bool {
		var ev conduits.Event
		p = f.next(dst, to)
		ev, fault = f.x.ep.Put(dst, g.NLA, src, conduits.RemoteDone, p.name())
		return f.begun(ev, fault)
	}
	r, ok := f.cache.Reach(dst, addrOf(to), uint64(len(src)), access)
	if !ok && wait {
		r, ok, err = f.fetch(putPiece, dst, to, len(src), access)
	}
	if !r.Valid() {
		return ok && fault == nil, nil, err
	}
	p.kept(putPiece, dst, to, len(src), r)
	p.b = src
	return false, p, nil
}

// tryWord is tryPut for a word.
func (f *far) tryWord(dst int, to segment.NLA, v uint64, n int, wait bool) (done bool, p *piece, err error) {
	if !f.quick(dst, n) {
		return false, nil, nil
	}
	var fault error
	access := func(g firehose.Grant) bool {
		if uint64(g.NLA)%uint64(n) != 0 {
			fault = ErrBadArg // a word is not put to an unaligned address
			return true
		}
		var ev conduits.Event
		p = f.next(dst, to)
		ev, fault = f.x.ep.PutWord(dst, g.NLA, v, n, conduits.RemoteDone, p.name())
		return f.begun(ev, fault)
	}
	r, ok := f.cache.Reach(dst, addrOf(to), uint64(n), access)
	if !ok && wait {
		r, ok, err = f.fetch(wordPiece, dst, to, n, access)
	}
	if !r.Valid() {
		return ok && fault == nil, nil, err
	}
	p.kept(wordPiece, dst, to, n, r)
	p.setWord(v, n)
	return false, p, nil
}

// setWord says what the put of a word puts.
func (p *piece) setWord(v uint64, n int) {
	if cap(p.own) < 8 {
		p.own = make([]byte, 8)
	}
	p.v, p.b = v, p.own[:n]
	storeWord(p.b, v)
}

// tryGet is tryPut for a get.
func (f *far) tryGet(dst []byte, src int, from segment.NLA, wait bool) (done bool, p *piece, err error) {
	if !f.quick(src, len(dst)) {
		return false, nil, nil
	}
	var fault error
	access := func(g firehose.Grant) bool {
		var ev conduits.Event
		p = f.next(src, from)
		ev, fault = f.x.ep.Get(dst, src, g.NLA, conduits.RemoteDone, p.name())
		return f.begun(ev, fault)
	}
	r, ok := f.cache.Reach(src, addrOf(from), uint64(len(dst)), access)
	if !ok && wait {
		r, ok, err = f.fetch(getPiece, src, from, len(dst), access)
	}
	if !r.Valid() {
		return ok && fault == nil, nil, err
	}
	p.kept(getPiece, src, from, len(dst), r)
	p.b = dst
	return false, p, nil
}

// tryAtomic is tryPut for an atomic.
func (f *far) tryAtomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, wait bool) (value uint64, done bool, p *piece, err error) {
	if !f.quick(dst, t.Size()) {
		return 0, false, nil, nil
	}
	var fault error
	access := func(g firehose.Grant) bool {
		if uint64(g.NLA)%uint64(t.Size()) != 0 {
			fault = ErrBadArg // found again, and said better
			return true
		}
		var ev conduits.Event
		p = f.next(dst, to)
		value, ev, fault = f.x.ep.Atomic(dst, g.NLA, op, t, a, b, p.name())
		return f.begun(ev, fault)
	}
	r, ok := f.cache.Reach(dst, addrOf(to), uint64(t.Size()), access)
	if !ok && wait {
		r, ok, err = f.fetch(atomicPiece, dst, to, t.Size(), access)
	}
	if !r.Valid() {
		return value, ok && fault == nil, nil, err
	}
	p.kept(atomicPiece, dst, to, t.Size(), r)
	p.op, p.typ, p.v, p.w = op, t, a, b
	return 0, false, p, nil
}

// attach says whose the access is that tryPut or its like has begun.
func (f *far) attach(p *piece, want conduits.Event, cookie uint64) {
	p.want, p.cookie = want, cookie
	f.drop(p)
}

// take makes a piece.
func (f *far) take(kind pieceKind, dst int, at segment.NLA, want conduits.Event, cookie uint64) *piece {
	f.mu.Lock()
	p := f.free
	if p != nil {
		f.free = p.next
	} else {
		if f.all == nil { // who has none is not to be slowed down
			f.e.Advance(f.advance)
		}
		p = &piece{far: f, index: uint32(len(f.all))}
		p.then = p.granted
		f.all = append(f.all, p)
	}
	p.gen++
	f.mu.Unlock()
	p.next = nil
	p.kind, p.dst, p.addr, p.want, p.cookie = kind, dst, addrOf(at), want, cookie
	p.pinned, p.again, p.done, p.chunk, p.value = false, false, 0, 0, 0
	return p
}

// start has p begin its way. Not in a handler.
func (f *far) start(p *piece) {
	n := uint64(p.size())
	if f.strategy == Adaptive && n <= f.reach(p.addr) {
		if r, ok := f.cache.TryRemotePin(p.dst, p.addr, n); ok {
			p.region, p.way, p.chunk, p.pinned = r, wayPin, int(n), true
			f.issue(p)
			return
		}
	}
	switch f.choose(p, n) {
	case wayBounce:
		f.bounce(p)
	case wayOnce:
		f.once(p)
	default:
		f.pin(p)
	}
}

// choose finds the way for p, to whose n bytes there are no firehoses, if the
// strategy is Adaptive. See the package comment for the measurements.
func (f *far) choose(p *piece, n uint64) way {
	switch {
	case f.strategy == AlwaysBounce:
		return wayBounce
	case f.strategy == AlwaysRegister:
		return wayOnce
	case f.strategy == AlwaysPin:
		return wayPin
	case n >= f.onceMin, n > f.reach(p.addr):
		return wayOnce
	case n <= uint64(f.bounceMax) && f.first(p.dst, p.addr):
		return wayBounce
	case n >= onceFirst && f.first(p.dst, p.addr):
		return wayOnce
	}
	return wayPin
}

// touches is for how many buckets first remembers that they were touched.
const touches = 1024

// first says whether a's bucket has not been touched lately, that is, since
// another one has taken its place in a table of so many.
func (f *far) first(rank int, a firehose.Addr) bool {
	key := uint64(a)/f.bucket<<24 | uint64(rank) + 1 // 0 is none
	i := key * 0x9e3779b97f4a7c15 >> 54
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.touched == nil {
		f.touched = make([]uint64, touches)
	}
	if f.touched[i] == key {
		f.touched[i] = 0
		return false
	}
	f.touched[i] = key
	return true
}

// again says whether first would say no, and changes nothing.
func (f *far) again(rank int, a firehose.Addr) bool {
	key := uint64(a)/f.bucket<<24 | uint64(rank) + 1
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.touched != nil && f.touched[key*0x9e3779b97f4a7c15>>54] == key
}

// pin asks for firehoses to as much of p as one pin covers.
func (f *far) pin(p *piece) {
	a := p.addr + firehose.Addr(p.done)
	p.way = wayPin
	p.chunk = int(min(uint64(p.size()-p.done), f.reach(a)))
	r, ok, err := f.cache.RemotePinThen(p.dst, a, uint64(p.chunk), p.then)
	switch {
	case err != nil:
		f.end(p, err)
	case ok:
		p.region, p.pinned = r, true
		f.issue(p)
	}
}

// once has all of p registered.
func (f *far) once(p *piece) {
	p.way = wayOnce
	p.chunk = p.size()
	if err := f.cache.PinOnceThen(p.dst, p.addr, uint64(p.chunk), p.then); err != nil {
		f.noRoom(p, err)
	}
}

// noRoom goes on bucket by bucket if memory could not be registered once.
func (f *far) noRoom(p *piece, err error) {
	if errors.Is(err, ErrResource) {
		f.pin(p)
		return
	}
	f.end(p, err)
}

// granted is told that what p waits for is pinned, or why not.
func (p *piece) granted(r firehose.Pinned, err error) {
	p.region, p.pinned, p.err = r, err == nil, err
	p.far.later(p)
}

// later leaves p to advance.
func (f *far) later(p *piece) {
	f.mu.Lock()
	f.ready.add(p)
	f.todo.Add(1)
	f.mu.Unlock()
	f.x.ep.Wake(f.x.ep.Rank())
}

// issue begins the conduit's operations on what is pinned.
func (f *far) issue(p *piece) {
	p.left.Store(1)
	end := p.done + p.chunk
	for at := p.done; at < end; {
		g, k := f.cache.At(p.region, p.addr+firehose.Addr(at))
		n := int(min(k, uint64(end-at), f.x.maxLong))
		p.left.Add(1)
		var value uint64
		var ev conduits.Event
		var err error
		switch {
		case k == 0:
			err = &conduits.PeerError{Rank: p.dst, Op: pieceNames[p.kind], Err: errGone}
		case p.kind == atomicPiece && uint64(g.NLA)%uint64(n) != 0:
			err = errUnaligned(exposedAt(p.addr), p.dst, p.typ)
		case p.kind == atomicPiece:
			if value, ev, err = f.x.ep.Atomic(p.dst, g.NLA, p.op, p.typ, p.v, p.w, p.name()); ev != 0 {
				p.value = value
			}
		case p.kind == wordPiece && uint64(g.NLA)%uint64(n) == 0:
			ev, err = f.x.ep.PutWord(p.dst, g.NLA, p.v, n, conduits.RemoteDone, p.name())
		case p.kind == getPiece:
			ev, err = f.x.ep.Get(p.b[at:at+n:at+n], p.dst, g.NLA, conduits.RemoteDone, p.name())
		default:
			ev, err = f.x.ep.Put(p.dst, g.NLA, p.b[at:at+n:at+n], conduits.RemoteDone, p.name())
		}
		if err != nil || ev&conduits.RemoteDone != 0 {
			p.left.Add(-1)
		}
		if err != nil {
			f.note(p, err)
			break
		}
		at += n
	}
	f.drop(p)
}

// errGone: the firehoses to a rank are gone because it has failed.
var errGone = errs.Closed("the firehoses to it are closed")

// note remembers the first failure.
func (f *far) note(p *piece, err error) {
	f.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	f.mu.Unlock()
}

// complete is told by the conduit that one of a piece's operations has ended.
func (f *far) complete(index, value uint64, err error) {
	f.mu.Lock()
	p := f.all[index]
	f.mu.Unlock()
	if err != nil {
		f.note(p, err)
	} else {
		p.value = value
	}
	f.drop(p)
}

// drop takes one off what p waits for. When it was the last, p's pin is released,
// and p goes on or ends. In handlers, too.
func (f *far) drop(p *piece) {
	if p.left.Add(-1) != 0 {
		return
	}
	err := p.err // all who could have set it have dropped theirs
	retry := !p.again && errors.Is(err, segment.ErrFault)
	if retry {
		// The owner is asked anew: it knows whether the memory is there.
		p.again, p.err, err = true, nil, nil
		f.cache.Stale(p.region)
	}
	r := p.region
	p.region, p.pinned = firehose.Pinned{}, false
	if e := f.cache.Release(r); err == nil {
		err = e
	}
	if err == nil && !retry {
		p.done += p.chunk
	}
	if err != nil || p.done == p.size() {
		f.end(p, err)
		return
	}
	f.later(p)
}

// end ends p and tells whoever began it.
func (f *far) end(p *piece, err error) {
	if err != nil {
		err = failure(p.kind, p.size(), p.addr, p.dst, err)
	}
	cookie, want, value := p.cookie, p.want, p.value
	f.mu.Lock()
	p.b, p.err = nil, nil
	if cap(p.own) > keepMax {
		p.own = nil
	}
	p.next, f.free = f.free, p
	f.mu.Unlock()
	f.x.Complete(cookie, want, value, err)
}

// failure is what an access that err ended fails with.
func failure(kind pieceKind, n int, a firehose.Addr, rank int, err error) error {
	return fmt.Errorf("extended: %s of %d bytes at %v of rank %d: %w", pieceNames[kind], n, exposedAt(a), rank, err)
}

// advance goes on with what could not go on where it came to light: in handlers,
// or without credit. It neither waits nor polls. Not in a handler. Whoever
// waits for anything calls it: a peer may depend on an operation whose initiator
// is in a barrier meanwhile.
func (f *far) advance() {
	if f.cache.Busy() {
		f.cache.Advance()
	}
	if f.todo.Load() == 0 {
		return
	}
	for {
		f.mu.Lock()
		p := f.ready.take()
		if p != nil {
			f.todo.Add(-1)
		}
		f.mu.Unlock()
		if p == nil {
			break
		}
		err := p.err
		p.err = nil
		switch {
		case p.pinned:
			f.issue(p)
		case err == nil && p.way == wayOnce && p.done == 0: // it has faulted
			f.once(p)
		case err == nil: // the same, or there is more of it
			f.pin(p)
		case p.way == wayOnce:
			f.noRoom(p, err)
		default:
			f.end(p, err)
		}
	}
	f.sendAll()
}

// check says what is wrong with an access to exposed memory, as far as anybody
// but its owner can know.
func (f *far) check(op string, a segment.NLA, n uint64) error {
	if f == nil {
		return errs.NotSupported("%s: %v is an exposed address: the endpoint was made without Config.Firehose and Config.Space", op, a)
	}
	if n > uint64(segment.ExposedLimit-a) {
		return errs.BadArg("%s: %d bytes at %v: exposed addresses end at %#x", op, n, a, uint64(segment.ExposedLimit-segment.ExposedBase))
	}
	return nil
}

// Expose gives mem exposed addresses, consecutive from the one returned on, by
// which rank peer, or every rank if that is segment.AnyPeer, may use it with
// rights in all operations of this package and long active messages; this rank
// may use it with all rights. It is registered only while others use it, so that
// there may be more of it than can be registered at once. mem is kept from the
// garbage collector until Conceal; mapped memory must not be unmapped before. It
// holds pointer-free values only. Atomics need it to be aligned to their size.
// Not before Bind.
func (x *Endpoint) Expose(mem []byte, rights segment.Rights, peer int) (segment.NLA, error) {
	const what = "extended: expose"
	if x.far == nil {
		return 0, errs.NotSupported("%s: the endpoint was made without Config.Firehose and Config.Space", what)
	}
	if peer != segment.AnyPeer {
		if err := x.checkRank(what, peer); err != nil {
			return 0, err
		}
	}
	a, err := x.far.space.Expose(mem, rights, peer)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return exposedAt(a), nil
}

// Conceal takes memory back that Expose has given addresses from a on. When it
// returns nobody reaches it by them. What is under way meanwhile is done, or
// fails with an error that matches segment.ErrFault or firehose.ErrNotExposed,
// both of which match ErrBadArg; a large access may have been done in part.
func (x *Endpoint) Conceal(a segment.NLA) error {
	const what = "extended: conceal"
	if !a.Exposed() {
		return errs.BadArg("%s: %v is no exposed address", what, a)
	}
	if err := x.far.check(what, a, 0); err != nil {
		return err
	}
	if err := x.far.cache.Conceal(x.far.space, addrOf(a)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
