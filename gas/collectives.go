package gas

import (
	"errors"
	"math/bits"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Collectives move data along binomial trees (and scans along a dissemination
// pattern), so every transfer is between ranks whose distance is a power of two
// modulo the job's size. Where several neighbourhoods are known, broadcasts have
// two levels: a tree among the first ranks of the neighbourhoods and one in each,
// where distances are counted likewise; so H neighbourhoods take H - 1 messages
// between them, ceil(log2 H) of them one after the other. Reductions keep to the
// one tree, since their result must not depend on where ranks are; it is the same
// where neighbourhoods have equal sizes, powers of two, and the root is rank 0. The receiver begins: it says what it is ready for and
// where the data will land, and only then does the sender send; one that has to
// wait for that says what it is about to send. So nothing has to be queued, ranks
// may be skewed as they like, and whoever waits has told its partner which call
// it is in: calls that do not match are found by the partner, and all ranks are
// told.

// Handler indices of the collectives: the first 16 of package gas.
const (
	handlerCollReady = am.FirstGas + iota // request: the receiver is ready
	handlerCollOffer                      // request: the sender waits
	handlerCollData                       // request: a piece of the data
	handlerCollWrong                      // reply: the receiver of a request, or sender, is in another call
	handlerCollAbort                      // request: some rank's call did not match
)

// collKind is which collective a rank is in.
type collKind uint8

// The collectives. The last two are no calls.
const (
	collBroadcast collKind = iota
	collReduce
	collAllReduce
	collGather
	collAllGather
	collScan
	collHeap  // allocation and freeing agree, see statement
	collLeave // the same at the end of the program's function
	collBad   // a call that failed its own checks
	collPast  // a call that was finished so long ago that it is forgotten
)

// collCall is what must be the same on all ranks in one collective call.
type collCall struct {
	size uint64 // bytes that a rank contributes
	root uint32
	kind collKind
}

// String is a call as messages name it.
func (c collCall) String() string {
	s := c.kind.String()
	switch c.kind {
	case collBroadcast:
		s += " from rank " + strconv.Itoa(int(c.root))
	case collReduce, collGather:
		s += " to rank " + strconv.Itoa(int(c.root))
	case collAllReduce, collAllGather, collScan:
	default:
		return s
	}
	return s + " of " + strconv.FormatUint(c.size, 10) + " bytes"
}

// collKindOf is the kind that travelled as w.
func collKindOf(w uint32) collKind { return collKind(min(w, uint32(collPast))) }

// String is what a call of this kind is to a program.
func (k collKind) String() string {
	if k > collPast {
		k = collPast
	}
	return [...]string{
		collBroadcast: "Broadcast",
		collReduce:    "Reduce",
		collAllReduce: "AllReduce",
		collGather:    "Gather",
		collAllGather: "AllGather",
		collScan:      "ExclusiveScan",
		collHeap:      "a collective allocation or free",
		collLeave:     "the end of the program's function",
		collBad:       "a collective with bad arguments",
		collPast:      "over already",
	}[k]
}

// matches says whether ranks in calls c and d can finish them together. Those that
// agree find out themselves what they do not agree on.
func (c collCall) matches(d collCall) bool {
	agreeing := func(k collKind) bool { return k == collHeap || k == collLeave }
	return c == d || agreeing(c.kind) && agreeing(d.kind)
}

// Directions of a transfer: away from the root or towards it, in the one tree;
// away from it inside a neighbourhood and between the first ranks of them.
const (
	collDown = iota
	collUp
	collNear
	collFar
	collDirs
)

// collectives is one rank's part in collective calls.
type collectives struct {
	e          *am.Endpoint
	rank, size int
	levels     *collLevels // nil if there is one neighbourhood only, or one for each rank

	// Buffers of the call under way, kept for the next one.
	cell, scratch []uint64

	mu   sync.Mutex
	busy atomic.Bool // a call is under way
	seq  uint32      // number of the call under way, or of the last one
	call collCall
	past []collCall // the last ones, at most collHistory; see history
	// What there is with partners, of those that something was heard of or that are
	// waited for (see link). Most ranks of a tree are leaves and have one or two.
	links []*collLink

	// leaving is the barrier that this rank waits in besides, nil but at the end of
	// the program's function.
	leaving *barrier.Barrier

	broken error      // calls did not match; all later ones fail
	fault  *collFault // which; nil as long as broken is
	// What the call waits for, for diagnosis.
	waitPeer  int
	waiting   bool
	waitReady bool // for the peer to be ready, rather than for its data

	active bool // the call of seq is under way
	report bool // this rank found broken and has not told the others
	spared bool // a rank below this one tells them
}

// collLevels is where a rank is in a job of several neighbourhoods.
type collLevels struct {
	hoods    *conduits.Neighbourhoods
	firsts   []int // the first rank of each
	hood     int   // which of them is this rank's
	near     []int // the ranks of that
	nearRank int   // this rank's number among those
}

// collHistory is how many calls are remembered. What a sender says it offers may
// come when all is over, and must then not be taken for a mismatch.
const collHistory = 16

// collNote says that rank src waits for this one in call number seq: a receiver
// that is ready, or a sender.
type collNote struct {
	size     uint64 // this, root and kind are the call
	root     uint32
	seq, src uint32
	kind     collKind
	set      bool
}

func (w *collNote) call() collCall { return collCall{kind: w.kind, root: w.root, size: w.size} }

// history is the call of number seq, one of the last collHistory.
func (c *collectives) history(seq uint32) collCall {
	if i := int((seq - 1) % collHistory); i < len(c.past) {
		return c.past[i]
	}
	return collCall{kind: collPast}
}

// remember makes call the one of number seq, the next.
func (c *collectives) remember(seq uint32, call collCall) {
	if len(c.past) < collHistory {
		c.past = append(c.past, call)
	} else {
		c.past[(seq-1)%collHistory] = call
	}
}

// collLink is the transfers in one direction with one partner.
type collLink struct {
	wanted  collNote // the partner is ready to receive
	offered collNote // the partner waits to send
	slot    uint16   // direction and logarithm of the distance
	land    collLanding
}

// link is the collLink for a direction and the logarithm of the distance. Called
// with mu held.
func (c *collectives) link(dir, i int) *collLink {
	slot := uint16(dir<<8 | i)
	for _, l := range c.links {
		if l.slot == slot {
			return l
		}
	}
	l := spareLinks.Get().(*collLink)
	l.slot = slot
	c.links = append(c.links, l)
	return l
}

// spareLinks are links that no rank of this process uses.
var spareLinks = sync.Pool{New: func() any { return new(collLink) }}

// unlink gives back the links that nothing of a later call is kept in: a rank that
// waits elsewhere than in a collective has most often none. Called with mu held.
func (c *collectives) unlink() {
	kept := c.links[:0]
	for _, l := range c.links {
		l.land = collLanding{}
		if l.wanted.later(c.seq) || l.offered.later(c.seq) {
			kept = append(kept, l)
			continue
		}
		*l = collLink{}
		spareLinks.Put(l)
	}
	clear(c.links[len(kept):])
	c.links = kept
}

// later says that w is about a call after number seq.
func (w *collNote) later(seq uint32) bool { return w.set && int32(w.seq-seq) > 0 }

// collLanding is where data lands. got counts bytes.
type collLanding struct {
	buf   []byte
	got   int
	open  bool
	begun bool
}

// collFault is a mismatch: in call seq, ranks a and b disagree.
type collFault struct {
	seq, a, b    uint32
	callA, callB collCall
}

func (f collFault) err() error {
	return errs.BadArg("gas: collective calls do not match: call %d is %v on rank %d and %v on rank %d; collectives cannot be used any more",
		f.seq, f.callA, f.a, f.callB, f.b)
}

// A fault travels as this many arguments.
const collFaultWords = 11

func (f collFault) words() [collFaultWords]uint32 {
	la, ha := am.Pack64(f.callA.size)
	lb, hb := am.Pack64(f.callB.size)
	return [collFaultWords]uint32{
		f.seq, f.a, f.b,
		uint32(f.callA.kind), f.callA.root, la, ha,
		uint32(f.callB.kind), f.callB.root, lb, hb,
	}
}

func parseFault(w []uint32) collFault {
	call := func(w []uint32) collCall {
		return collCall{kind: collKindOf(w[0]), root: w[1], size: am.Unpack64(w[2], w[3])}
	}
	return collFault{seq: w[0], a: w[1], b: w[2], callA: call(w[3:]), callB: call(w[7:])}
}

// mismatch is the error of calls that did not match, or nil.
func (c *collectives) mismatch() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// handlers are the entries for am.Config.Runtime.
func (c *collectives) handlers() []am.Entry {
	return []am.Entry{
		{Index: handlerCollReady, Name: "gas.collective.ready", Fn: c.onReady, Args: 6, Kinds: am.Short | am.Request},
		{Index: handlerCollOffer, Name: "gas.collective.offer", Fn: c.onOffer, Args: 6, Kinds: am.Short | am.Request},
		{Index: handlerCollData, Name: "gas.collective.data", Fn: c.onData, Args: 4, Kinds: am.Medium | am.Request},
		{Index: handlerCollWrong, Name: "gas.collective.wrong", Fn: c.onWrong, Args: collFaultWords, Kinds: am.Short | am.Reply},
		{Index: handlerCollAbort, Name: "gas.collective.abort", Fn: c.onAbort, Args: collFaultWords, Kinds: am.Short | am.Request},
	}
}

// bind joins c to the endpoint. Handlers may have run already, if a peer was
// faster.
func (c *collectives) bind(e *am.Endpoint) {
	c.e, c.rank, c.size = e, e.Rank(), e.Size()
	c.useLevels(conduits.NeighbourhoodsOf(e.Conduit()))
}

// useLevels has c know the neighbourhoods, if there are levels.
func (c *collectives) useLevels(h *conduits.Neighbourhoods) {
	if h == nil || h.Len() < 2 || h.Len() == c.size {
		return
	}
	l := &collLevels{hoods: h, firsts: h.Firsts(), hood: h.Of(c.rank)}
	l.near = h.Ranks(l.hood)
	l.nearRank = sort.SearchInts(l.near, c.rank)
	c.levels = l
}

// collWake makes the goroutine that is in the call look again, for a handler may run
// on another one.
func collWake(t *am.Token) {
	ep := t.Endpoint().Conduit()
	ep.Wake(ep.Rank())
}

func (c *collectives) onReady(t *am.Token, args []uint32, _ []byte) { c.note(t, args, true) }

func (c *collectives) onOffer(t *am.Token, args []uint32, _ []byte) { c.note(t, args, false) }

// note keeps what a waiting rank has said, and answers if it waits in vain.
func (c *collectives) note(t *am.Token, args []uint32, ready bool) {
	w := collNote{
		set: true, seq: args[0], src: uint32(t.Src()),
		kind: collKindOf(args[2]), root: args[3], size: am.Unpack64(args[4], args[5]),
	}
	dir, i, ok := collSlot(args[1])
	if !ok {
		return
	}
	defer collWake(t)
	c.mu.Lock()
	l := c.link(dir, i)
	in := &l.offered
	if ready {
		in = &l.wanted
	}
	mine, good := c.call, c.broken == nil
	switch ahead := int32(w.seq - c.seq); {
	case !good:
	case ahead > 0:
		*in = w
	case ahead == 0 && c.active:
		*in = w
		good = w.call().matches(mine)
	default:
		// A call ends when all who were to get something have got it, so a
		// receiver that waits is in another call than this rank was. A sender's
		// offer may have been on its way since before the end.
		if mine = (collCall{kind: collPast}); ahead > -collHistory {
			mine = c.history(w.seq)
		}
		good = !ready && (w.call().matches(mine) || mine.kind == collPast)
	}
	if good {
		c.mu.Unlock()
		return
	}
	// Whoever is in a call will tell all others when it ends: this rank if it is
	// in one, and else the one that waits.
	c.broke(collFault{seq: w.seq, a: uint32(c.rank), callA: mine, b: w.src, callB: w.call()}, c.active)
	f := c.fault.words()
	c.mu.Unlock()
	// If the reply fails, so has the job, and the other rank learns of that.
	_ = t.ReplyShort(handlerCollWrong, f[:]...)
}

func (c *collectives) onWrong(t *am.Token, args []uint32, _ []byte) { c.told(t, args, true) }
func (c *collectives) onAbort(t *am.Token, args []uint32, _ []byte) {
	c.mu.Lock()
	// Whoever tells this rank tells all others, or is spared by one below it.
	c.report = false
	c.spared = c.spared || t.Src() < t.Endpoint().Rank()
	c.mu.Unlock()
	c.told(t, args, false)
}

// told notes a mismatch that another rank has found; report says that the others
// do not know it from there.
func (c *collectives) told(t *am.Token, args []uint32, report bool) {
	c.mu.Lock()
	c.broke(parseFault(args), report)
	c.mu.Unlock()
	collWake(t)
}

func (c *collectives) onData(t *am.Token, args []uint32, payload []byte) {
	dir, i, ok := collSlot(args[1])
	if !ok {
		return
	}
	off := am.Unpack64(args[2], args[3])
	c.mu.Lock()
	l := &c.link(dir, i).land
	if l.open && args[0] == c.seq && off <= uint64(len(l.buf)) && uint64(len(payload)) <= uint64(len(l.buf))-off {
		l.got += copy(l.buf[off:], payload)
		l.begun = true
	}
	c.mu.Unlock()
	collWake(t)
}

// collSlot takes the second argument of a message apart.
func collSlot(w uint32) (dir, i int, ok bool) {
	dir, i = int(w>>8), int(w&0xff)
	return dir, i, dir < collDirs && i < rankBits
}

// broke notes the first mismatch. report says that the others have to be told.
// Called with mu held.
func (c *collectives) broke(f collFault, report bool) {
	if c.broken == nil {
		c.broken, c.fault, c.report = f.err(), &f, report
	}
}

// begin enters a call, which finish leaves. If it returns an error, the call is over
// already.
func (c *collectives) begin(call collCall) error {
	if err := c.e.Blocking(call.kind.String()); err != nil {
		return err
	}
	if !c.busy.CompareAndSwap(false, true) {
		return errs.NotReady("gas: %v: another goroutine of rank %d is in a collective", call, c.rank)
	}
	c.mu.Lock()
	if c.broken == nil {
		c.seq++
		c.call, c.active = call, true
		c.remember(c.seq, call)
		c.compare()
	}
	err := c.broken
	c.mu.Unlock()
	if err != nil {
		return c.finish(err)
	}
	return nil
}

// compare looks for ranks that wait for this one in the call it is in now, but
// think that it is another one. Called with mu held.
func (c *collectives) compare() {
	for _, l := range c.links {
		for _, w := range [...]*collNote{&l.wanted, &l.offered} {
			if w.set && w.seq == c.seq && !w.call().matches(c.call) {
				c.broke(collFault{seq: c.seq, a: uint32(c.rank), callA: c.call, b: w.src, callB: w.call()}, true)
			}
		}
	}
}

// finish leaves the call with err, which it returns.
func (c *collectives) finish(err error) error {
	c.mu.Lock()
	c.active = false
	c.unlink()
	call, seq := c.call, c.seq
	c.mu.Unlock()
	c.announce()
	c.busy.Store(false)
	if err != nil {
		err = call.failed(seq, err)
	}
	return err
}

// failed adds to a failure of the job what this rank was doing.
func (c collCall) failed(seq uint32, err error) error {
	var p *PeerError
	if errors.As(err, &p) {
		return &PeerError{Rank: p.Rank, Op: "collective call " + strconv.FormatUint(uint64(seq), 10) + ", " + c.String(), Err: p.Err}
	}
	return err
}

// collTold is how many ranks are told of a mismatch before looking whether
// another rank does so.
const collTold = 32

// announce tells the other ranks of a mismatch that this rank has found. Very many
// may find it at once: the lowest of those tells all others, and the others stop
// when they hear of it.
func (c *collectives) announce() {
	c.mu.Lock()
	report := c.report
	c.report = false
	c.mu.Unlock()
	if !report {
		return
	}
	w := c.fault.words() // which stays
	for k := 1; k < c.size; k++ {
		// A rank that cannot be told has failed, which everybody learns.
		_ = c.e.RequestShort((c.rank+k)%c.size, handlerCollAbort, w[:]...)
		if k%collTold == 0 {
			c.e.Poll()
			c.mu.Lock()
			spared := c.spared
			c.mu.Unlock()
			if spared {
				return
			}
		}
	}
}

// refuse takes part in a call whose arguments are wrong with err: the call
// counts, so that ranks whose arguments were right are told instead of left
// waiting, and ranks that all made the same error stay in step.
func (c *collectives) refuse(err error) error {
	if c.begin(collCall{kind: collBad}) == nil {
		_ = c.finish(nil)
	}
	return err
}

// post says that data from rank is to land in buf.
func (c *collectives) post(dir, i, rank int, buf []byte) error {
	c.mu.Lock()
	c.link(dir, i).land = collLanding{open: true, buf: buf}
	c.mu.Unlock()
	return c.tell(rank, handlerCollReady, dir, i)
}

// tell says to rank which call this rank is in and for what it waits.
func (c *collectives) tell(rank int, h am.HandlerID, dir, i int) error {
	lo, hi := am.Pack64(c.call.size)
	return c.e.RequestShort(rank, h, c.seq, uint32(dir)<<8|uint32(i), uint32(c.call.kind), c.call.root, lo, hi)
}

// await waits until the data that was posted for has landed.
func (c *collectives) await(dir, i, rank int) error {
	c.mu.Lock()
	l := &c.link(dir, i).land
	c.mu.Unlock()
	return c.wait(rank, false, func() bool { return l.begun && l.got == len(l.buf) })
}

// send waits until rank is ready and sends it data.
func (c *collectives) send(dir, i, rank int, data []byte) error {
	c.mu.Lock()
	w := &c.link(dir, i).wanted
	ready := w.set && w.seq == c.seq
	c.mu.Unlock()
	if !ready {
		if err := c.tell(rank, handlerCollOffer, dir, i); err != nil {
			return err
		}
	}
	if err := c.wait(rank, true, func() bool { return w.set && w.seq == c.seq }); err != nil {
		return err
	}
	c.mu.Lock()
	w.set = false
	c.mu.Unlock()
	slot := uint32(dir)<<8 | uint32(i)
	piece := c.e.MaxMedium()
	for off := 0; ; off += piece {
		k := min(piece, len(data)-off)
		lo, hi := am.Pack64(uint64(off))
		if err := c.e.RequestMedium(rank, handlerCollData, data[off:off+k], c.seq, slot, lo, hi); err != nil {
			return err
		}
		if off+k == len(data) {
			return nil
		}
	}
}

// wait waits until ok, which is called with mu held, or for the mismatch.
func (c *collectives) wait(peer int, ready bool, ok func() bool) error {
	c.mu.Lock()
	c.waiting, c.waitPeer, c.waitReady = true, peer, ready
	c.mu.Unlock()
	err := c.e.WaitFrom(peer, c, func() bool {
		c.mu.Lock()
		over := ok() || c.broken != nil
		c.mu.Unlock()
		return over || c.leaving != nil && c.leaving.Mismatched()
	})
	if err != nil && c.e.Conduit().Err() == nil {
		// Ranks that wait for the one that left by way of others hear of it, too.
		var p *PeerError
		if errors.As(err, &p) {
			c.e.Conduit().Blame(p.Rank, errs.Reason(c.rank, p))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	if err == nil {
		err = c.broken
	}
	if err == nil && !ok() {
		err = errLeaving
	}
	return err
}

// errLeaving ends the call at the end of the program's function, when other ranks
// are in a barrier.
var errLeaving = errs.Mismatch("gas: other ranks are in a barrier")

// Blocked says which rank the call waits for; it makes c a conduits.Blocked.
func (c *collectives) Blocked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := "collective call " + strconv.FormatUint(uint64(c.seq), 10) + ", " + c.call.String() + ": "
	switch {
	case !c.waiting:
		return s + "not waiting"
	case c.waitReady:
		return s + "waiting for rank " + strconv.Itoa(c.waitPeer) + " to call it"
	}
	return s + "waiting for data from rank " + strconv.Itoa(c.waitPeer)
}

// relative is this rank's place in the tree of root, which has place 0. Place p
// has the parent p without its lowest set bit, so the children of p are p + 2^i
// for all i below that bit.
func (c *collectives) relative(root int) int { return (c.rank - root + c.size) % c.size }

// fanout is how many children place p has.
func (c *collectives) fanout(p int) int { return fanout(p, c.size) }

// fanout is that of place p among size.
func fanout(p, size int) int {
	n := bits.Len(uint(size - 1))
	if p != 0 {
		n = bits.TrailingZeros(uint(p))
	}
	for n > 0 && p+1<<(n-1) >= size {
		n--
	}
	return n
}

// around is the place so far after p in a ring of size.
func around(p, by, size int) int { return (p + by%size + size) % size }

// place is this rank's in the tree of its neighbourhood for a broadcast of root:
// of root itself, if that is there, or of the first rank.
func (c *collectives) place(root int) int {
	at := 0
	l := c.levels
	if l.hoods.Of(root) == l.hood {
		at = sort.SearchInts(l.near, root)
	}
	return around(l.nearRank-at, 0, len(l.near))
}

// source is whom this rank has a broadcast of root from: by which link, and who.
// ok is false for root.
func (c *collectives) source(root int) (dir, i, rank int, ok bool) {
	if root == c.rank {
		return 0, 0, 0, false
	}
	l := c.levels
	if l == nil {
		i = bits.TrailingZeros(uint(c.relative(root)))
		return collDown, i, c.above(i), true
	}
	if p := c.place(root); p != 0 {
		i = bits.TrailingZeros(uint(p))
		return collNear, i, l.near[around(l.nearRank, -(1<<i), len(l.near))], true
	}
	h := len(l.firsts)
	i = bits.TrailingZeros(uint(around(l.hood-l.hoods.Of(root), 0, h)))
	return collFar, i, l.firsts[around(l.hood, -(1<<i), h)], true
}

// toBelow calls send for each that has a broadcast of root from this rank, beginning
// with who is farthest: its subtree is the largest, and its way the longest.
func (c *collectives) toBelow(root int, send func(dir, i, rank int) error) error {
	l := c.levels
	if l == nil {
		for i := c.fanout(c.relative(root)) - 1; i >= 0; i-- {
			if err := send(collDown, i, c.below(i)); err != nil {
				return err
			}
		}
		return nil
	}
	if h := len(l.firsts); l.nearRank == 0 {
		for i := fanout(around(l.hood-l.hoods.Of(root), 0, h), h) - 1; i >= 0; i-- {
			if err := send(collFar, i, l.firsts[around(l.hood, 1<<i, h)]); err != nil {
				return err
			}
		}
	}
	for i := fanout(c.place(root), len(l.near)) - 1; i >= 0; i-- {
		if err := send(collNear, i, l.near[around(l.nearRank, 1<<i, len(l.near))]); err != nil {
			return err
		}
	}
	return nil
}

// above and below are the ranks at distance 2^i towards the root and away.
func (c *collectives) above(i int) int { return (c.rank - 1<<i%c.size + c.size) % c.size }
func (c *collectives) below(i int) int { return (c.rank + 1<<i) % c.size }

// broadcast spreads buf of root to all.
func (c *collectives) broadcast(root int, buf []byte) error {
	if err := c.expect(root, buf); err != nil {
		return err
	}
	return c.spread(root, buf)
}

// expect is the first half of broadcast: buf is overwritten from now on, though
// not before the root calls spread.
func (c *collectives) expect(root int, buf []byte) error {
	dir, i, rank, ok := c.source(root)
	if !ok {
		return nil
	}
	return c.post(dir, i, rank, buf)
}

func (c *collectives) spread(root int, buf []byte) error {
	if dir, i, rank, ok := c.source(root); ok {
		if err := c.await(dir, i, rank); err != nil {
			return err
		}
	}
	return c.toBelow(root, func(dir, i, rank int) error { return c.send(dir, i, rank, buf) })
}

// collScratch is how much memory the contributions of children may take at once
// in a reduction, bytes; one contribution may always be held.
const collScratch = 64 << 10

// reduce combines acc of all ranks into acc of root; the others' acc holds
// something in between then. combine adds the contribution of later places in
// the tree to that of earlier ones. The order depends on root and size only.
func (c *collectives) reduce(root int, acc []byte, combine func(dst, src []byte)) error {
	p := c.relative(root)
	kids := c.fanout(p)
	stride := (len(acc) + 7) &^ 7
	batch := kids
	if stride > 0 {
		batch = min(kids, max(1, collScratch/stride))
	}
	room := words(&c.scratch, batch*stride)
	for first := 0; first < kids; first += batch {
		last := min(first+batch, kids)
		for i := first; i < last; i++ {
			if err := c.post(collUp, i, c.below(i), room[(i-first)*stride:][:len(acc)]); err != nil {
				return err
			}
		}
		for i := first; i < last; i++ {
			if err := c.await(collUp, i, c.below(i)); err != nil {
				return err
			}
			combine(acc, room[(i-first)*stride:][:len(acc)])
		}
	}
	if p == 0 {
		return nil
	}
	i := bits.TrailingZeros(uint(p))
	return c.send(collUp, i, c.above(i), acc)
}

// allReduce is reduce with the result on all ranks.
func (c *collectives) allReduce(acc []byte, combine func(dst, src []byte)) error {
	// Announced before anything is sent up: the result then meets ranks that are
	// ready for it. It cannot come before this rank has sent acc.
	if err := c.expect(0, acc); err != nil {
		return err
	}
	if err := c.reduce(0, acc, combine); err != nil {
		return err
	}
	return c.spread(0, acc)
}

// gather collects one block of each rank at root, in order of their places
// there. buf has room for the blocks of all ranks below this one, itself
// included, and begins with its own.
func (c *collectives) gather(root int, buf []byte, block int) error {
	p := c.relative(root)
	kids := c.fanout(p)
	for i := range kids {
		if err := c.post(collUp, i, c.below(i), buf[block<<i:][:block*c.subtree(p+1<<i)]); err != nil {
			return err
		}
	}
	for i := range kids {
		if err := c.await(collUp, i, c.below(i)); err != nil {
			return err
		}
	}
	if p == 0 {
		return nil
	}
	i := bits.TrailingZeros(uint(p))
	return c.send(collUp, i, c.above(i), buf)
}

// subtree is how many places there are at and below place p.
func (c *collectives) subtree(p int) int {
	if p == 0 {
		return c.size
	}
	return min(p&-p, c.size-p)
}

// scan leaves in acc the combination of all ranks up to this one and in before
// that of all ranks below it, if there are any. prepend makes dst the combination
// of src, which is of lower ranks, and dst.
func (c *collectives) scan(acc, before []byte, prepend func(dst, src []byte)) error {
	in := words(&c.scratch, len(acc))
	for i := 0; 1<<i < c.size; i++ {
		has := c.rank >= 1<<i
		if has {
			if err := c.post(collDown, i, c.above(i), in); err != nil {
				return err
			}
		}
		if c.rank+1<<i < c.size {
			if err := c.send(collDown, i, c.below(i), acc); err != nil {
				return err
			}
		}
		if !has {
			continue
		}
		if err := c.await(collDown, i, c.above(i)); err != nil {
			return err
		}
		if i == 0 {
			copy(before, in)
		} else {
			prepend(before, in)
		}
		prepend(acc, in)
	}
	return nil
}
