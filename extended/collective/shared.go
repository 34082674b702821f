package collective

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
)

// shared serves calls with few bytes where all ranks share memory. Each rank writes what
// it gives into its slot, and reads the slots of the ranks whose data it needs: nothing is
// sent. Two ranks have their slots for up to pairBytes in one line: the one that comes later
// finds what it reads in the line that it has just taken to write its own.
type shared struct {
	c      *Member
	ep     conduits.Endpoint
	spins  int      // see maxSpins
	places []int8   // of a team's ranks, else nil
	mailed bool     // there is no such memory: the other ranks' slots are copies, see mailRanks
	areas  [][]byte // the lines of slots, by rank
	pair   *channel // of two ranks, else nil
	lines  channel

	staging    *staging // nil if there is none; after the first call that asks for it
	hasStaging bool     // it was asked for

	owed awaited // for all ranks to come to the last call, if this rank has not seen them do so
	now  awaited // what the call waits for, or the zero value. Written by the goroutine in the call, with Member.mu held.
}

// channel is slots that calls use one after the other. There are two of
// each rank, for even and for odd phases, which such calls alone count. A rank writes its
// slot when all have come to the call before, of any channel, and so have read what it
// overwrites. So it also learns whether all have made the same call: a rank that has has the same word
// there, and one that has not come yet an older one.
//
// Above fanIn ranks there are levels, which all-reductions and barriers use alone: the rank that finds the slots of
// fanIn neighbouring ranks full combines them, and writes the slot of the next level. Several that
// find them full at once write the same. So no rank needs the help of one that has come already.
type channel struct {
	levels [][2]group // this rank's group by level and parity
	phase  uint32
}

// group is the slots of up to fanIn ranks, or of as many groups of the level below.
type group struct {
	slots  []slot
	at     int  // of them, this rank's
	staged bool // they are of staging
}

// slot begins with a word that names a call; the words behind it are data of that call.
type slot []atomic.Uint64

// awaited is a wait until the slots with numbers from to to-1 of a group are of call word.
type awaited struct {
	g        *group
	word     uint64
	from, to int
}

const (
	fanIn       = 16
	slotWords   = lineBytes / 8
	pairWords   = slotWords / 2
	sharedBytes = 8 * (slotWords - 1)
	pairBytes   = 8 * (pairWords - 1)

	// Lines of a rank, twice each: of two ranks, and by level.
	lineBytes = 64
	levelOff  = 2 * lineBytes
)

// useShared has c know the slots of all ranks, if they share memory. places are those of a team's ranks; see
// takePlace.
func (c *Member) useShared(places []int8) {
	if c.size == 1 {
		return
	}
	if slices.Contains(places, noPlace) {
		useMail(c)
		return
	}
	s := &shared{c: c, ep: c.e.Conduit(), places: places}
	for r := range c.size {
		lines := s.linesOf(r)
		if lines == nil {
			useMail(c)
			return
		}
		s.areas = append(s.areas, lines)
	}
	n := c.size
	if _, virtual := conduits.As[conduits.Runner](s.ep); !virtual {
		// Where the conduit runs the ranks, no other runs while this one watches.
		s.spins = maxSpins
	}
	for span := 1; span < n; span *= fanIn {
		s.addLevel(span)
	}
	if n == 2 {
		var g [2]group
		for p := range g {
			line := lineAt(s.areas[0], p*lineBytes)
			g[p] = group{slots: []slot{line[:pairWords], line[pairWords:]}, at: c.rank}
		}
		s.pair = &channel{levels: [][2]group{g}}
	}
	c.shared = s
}

// addLevel adds the level to lines whose slots are of span ranks each.
func (s *shared) addLevel(span int) {
	var g [2]group
	first := s.c.rank / (span * fanIn) * (span * fanIn)
	for p := range g {
		for r := first; r < min(first+span*fanIn, s.c.size); r += span {
			g[p].slots = append(g[p].slots, s.slotOf(r, len(s.lines.levels), p))
		}
		g[p].at = (s.c.rank - first) / span
	}
	s.lines.levels = append(s.lines.levels, g)
}

// linesOf is the lines of rank r for slots, nil if it does not share memory.
func (s *shared) linesOf(r int) []byte {
	if s.places == nil {
		if area := s.ep.System(r, conduits.SystemWords); area != nil {
			return area[conduits.SystemCollective:]
		}
		return nil
	}
	if area := s.ep.System(s.c.job(r), conduits.SystemStaging); area != nil {
		return placeIn(area, s.places[r])[:placeLines]
	}
	return nil
}

// stagedOf is the staging of rank r without those lines, nil if there is none.
func (s *shared) stagedOf(r int) []byte {
	if s.mailed {
		return words(new([]uint64), s.mailSize())
	}
	area := s.ep.System(s.c.job(r), conduits.SystemStaging)
	switch {
	case area == nil:
		return nil
	case s.places == nil:
		return placeIn(area, noPlace)
	}
	return placeIn(area, s.places[r])[placeLines:]
}

// A rank's staging is its own for calls of the job, half of it, and of so many teams at once.
const (
	teamPlaces = 8
	placeLines = 1 << 10
	noPlace    = -1
)

// placeIn is the part of area that a team has, or, without a place, the job.
func placeIn(area []byte, place int8) []byte {
	half := len(area) / 2
	if place == noPlace {
		return area[:half]
	}
	n := half / teamPlaces
	return area[half+int(place)*n:][:n]
}

// takePlace takes a place for a team in the staging of the rank of c, which is of the job, whose slots are of no call then; noPlace if there is none.
func takePlace(c *Member) int8 {
	area := c.e.Conduit().System(c.rank, conduits.SystemStaging)
	if area == nil {
		return noPlace
	}
	c.mu.Lock()
	place := bits.TrailingZeros8(^c.places)
	c.places |= 1 << place
	c.mu.Unlock()
	if place == teamPlaces {
		return noPlace
	}
	part := placeIn(area, int8(place))
	bulk.Clear(part[:placeLines])
	for p, part := 0, part[placeLines:]; p < 2; p++ {
		bulk.Clear(part[p*halfOf(part):][:lineBytes])
	}
	return int8(place)
}

// freePlace gives a place back.
func freePlace(c *Member, place int8) {
	if place != noPlace {
		c.mu.Lock()
		c.places &^= 1 << place
		c.mu.Unlock()
	}
}

// slotOf is the slot of a level and parity whose first rank is r.
func (s *shared) slotOf(r, level, parity int) slot {
	return lineAt(s.areas[r], levelOff+(2*level+parity)*lineBytes)[:]
}

// channel is the one for n bytes of each rank, or nil.
func (s *shared) channel(n int) *channel {
	switch {
	case n > sharedBytes:
		return nil
	case s.pair != nil && n <= pairBytes:
		return s.pair
	}
	return &s.lines
}

// of is the channel for call a, or nil.
func (s *shared) of(a *Call) *channel {
	if s == nil {
		return nil
	}
	n := len(a.own)
	if s.mailed && !s.mails(a.kind) {
		return nil
	}
	switch a.kind {
	case kindAllReduce:
		if a.unit > 0 {
			return nil
		}
		return s.channel(n)
	case kindBarrier:
		return s.channel(0)
	case kindScatter:
		n *= s.c.size
	case kindReduceScatter:
		n = len(a.all)
	case kindBroadcast, kindReduce, kindGather, kindAllGather, kindExchange, kindScan, kindExclusiveScan:
	default:
		return nil
	}
	// Those with a root need not wait for all ranks by messages, as slots have them do: 16 ranks on
	// two processors take 13 us for a broadcast by messages and 21 by slots, 15 on sixteen 10 and 0.7.
	if s.c.size > fanIn {
		return nil
	}
	return s.channel(n)
}

// A word is the number of a call and what must be the same on all ranks; none is 0. A call with a root is of
// fanIn ranks at most, and one has sharedBytes at most, as an element of it does.
const (
	wordSeq  = 32
	wordType = 24
	wordRoot = 20
	wordElem = 14
	wordKind = 6

	wordBytes = 1<<6 - 1 // of the size, and of that of an element
)

func (c *Member) word() uint64 { return wordOf(c.seq, c.call) }

func wordOf(seq uint32, d call) uint64 {
	return uint64(seq)<<wordSeq | uint64(d.typ)<<wordType | uint64(d.root)<<wordRoot | uint64(d.elem)<<wordElem | uint64(d.kind+1)<<wordKind | d.size
}

func callOf(w uint64) (seq uint32, d call) {
	return uint32(w >> wordSeq), call{
		form: form{kind(w>>wordKind) - 1, uint8(w >> wordType)}, root: uint32(w >> wordRoot & 0xf),
		elem: uint32(w >> wordElem & wordBytes), size: w & wordBytes,
	}
}

// put writes data, which the word that is stored next makes visible.
func (s slot) put(data []byte) {
	k := 1
	for ; len(data) >= 8; k++ {
		conc.Release64(plain(&s[k]), binary.NativeEndian.Uint64(data))
		data = data[8:]
	}
	if len(data) > 0 {
		var b [8]byte
		copy(b[:], data)
		conc.Release64(plain(&s[k]), binary.NativeEndian.Uint64(b[:]))
	}
}

// take copies bytes of the slot, from a multiple of 8 on, to data.
func (s slot) take(data []byte) {
	k := 1
	for ; len(data) >= 8; k++ {
		binary.NativeEndian.PutUint64(data, s[k].Load())
		data = data[8:]
	}
	if len(data) > 0 {
		var b [8]byte
		binary.NativeEndian.PutUint64(b[:], s[k].Load())
		copy(data, b[:])
	}
}

// lacking is the first slot of what is waited for that is not of the call, or -1.
func (w awaited) lacking() int {
	for k := w.from; k < w.to; k++ {
		if w.g.slots[k][0].Load() != w.word {
			return k
		}
	}
	return -1
}

// differs is a slot that a rank has written for another call than the one waited for, which
// it has not made then, or -1.
func (w awaited) differs() int {
	for k := w.from; k < w.to; k++ {
		v := w.g.slots[k][0].Load()
		if v == w.word || v == 0 {
			continue
		}
		switch ahead := int32(uint32(v>>wordSeq) - uint32(w.word>>wordSeq)); {
		case ahead < 0, ahead == 0 && w.g.staged && int16(uint16(v>>wordRound)-uint16(w.word>>wordRound)) < 0:
		default:
			return k
		}
	}
	return -1
}

// called is the call that the slot is of.
func (s slot) called(staged bool) (seq uint32, d call) {
	if seq, d = callOf(s[0].Load()); staged {
		rest := s[stagedRest].Load()
		d.size, d.root, d.typ, d.elem = s[stagedSize].Load(), uint32(rest&(1<<maxDistance-1)), uint8(rest>>maxDistance), uint32(rest>>32)
	}
	return seq, d
}

// called is the call that is waited for, which this rank has made.
func (w awaited) called() (seq uint32, d call) {
	if w.g.staged {
		return w.g.slots[w.g.at].called(true)
	}
	return callOf(w.word)
}

// all awaits all slots.
func (g *group) all(word uint64) awaited { return awaited{g: g, word: word, to: len(g.slots)} }

// fold leaves in acc the combination of n blocks that take gives, in the order of the tree. room
// is for all of them, each at a multiple of 8 bytes.
func fold(acc, room []byte, n int, combine Combine, take func(k int, block []byte)) {
	stride := strideOf(len(acc))
	at := func(k int) []byte { return room[k*stride:][:len(acc)] }
	for k := range n {
		take(k, at(k))
	}
	for run := 1; run < n; run *= 2 {
		for k := 0; k+run < n; k += 2 * run {
			combine(at(k), at(k+run))
		}
	}
	copy(acc, at(0))
}

// combine is fold of the slots, beginning with number first.
func (g *group) combine(acc, room []byte, first int, combine Combine) {
	n := len(g.slots)
	fold(acc, room, n, combine, func(k int, block []byte) { g.slots[(k+first)%n].take(block) })
}

// do makes call a by channel h: this rank gives its data, waits for what ranks from to to-1 give, and
// takes that. alone says that others wait for this rank's data and no other.
func (s *shared) do(h *channel, a *Call, combine Combine) error {
	c := s.c
	if len(h.levels) > 1 {
		return s.climb(h, a.own, combine)
	}
	give, from, to, alone := a.own, 0, c.size, false
	switch a.kind {
	case kindBroadcast, kindScatter:
		if a.kind == kindScatter {
			give = a.all
		}
		if from, to, alone = a.root, a.root+1, c.rank == a.root; !alone {
			give = nil
		}
	case kindReduce, kindGather: // whose data root alone needs
		if c.rank != a.root {
			to = 0
		}
	case kindReduceScatter:
		give = a.all
	case kindScan, kindExclusiveScan:
		to = c.rank + 1
	}
	g, err := s.meet(h, give, alone, from, to)
	if err != nil {
		return err
	}
	s.take(g, a, combine)
	if to-from == c.size {
		s.owed = awaited{}
	}
	return nil
}

// meet gives data by channel h and waits for the slots from to to-1, whose group it returns.
func (s *shared) meet(h *channel, data []byte, alone bool, from, to int) (*group, error) {
	c := s.c
	if err := s.awaitOwed(); err != nil {
		return nil, err
	}
	s.nextPhase(h)
	g := &h.levels[0][h.phase&1]
	s.owed = g.all(c.word())
	word, mine := s.owed.word, g.slots[g.at]
	mine.put(data)
	switch {
	case s.mailed:
		mine[0].Store(word)
		if err := s.mail(h, func(int) ([]byte, int) { return data, 0 }); err != nil {
			return nil, err
		}
	case h == s.pair:
		conc.Release64(plain(&mine[0]), word)
		s.ep.Wake(c.job(1 - c.rank))
	default:
		// The stores of all ranks have one order, and the last in it sees all others here.
		mine[0].Store(word)
		switch below := (awaited{g: g, word: word, to: c.rank + 1}); {
		case alone || s.owed.lacking() < 0:
			s.wakeFrom(0)
		case from == 0 && to == c.rank+1 && below.lacking() < 0: // a scan: those above wait for no more
			s.wakeFrom(to)
		}
	}
	return g, s.await(awaited{g: g, word: word, from: from, to: to})
}

// awaitOwed waits until all ranks have come to the last call.
func (s *shared) awaitOwed() error {
	if s.owed.g == nil {
		return nil
	}
	return s.await(s.owed)
}

// take leaves the result of call a, for which the slots of g have what is needed.
func (s *shared) take(g *group, a *Call, combine Combine) {
	c := s.c
	room := words(&c.waitingWork().kept, c.size*sharedBytes)
	switch a.kind {
	case kindAllReduce:
		g.combine(a.own, room, 0, combine)
	case kindReduce:
		if c.rank == a.root {
			g.combine(a.own, room, a.root, combine)
		}
	case kindBroadcast:
		if c.rank != a.root {
			g.slots[a.root].take(a.own)
		}
	case kindGather, kindAllGather:
		if n := len(a.own); a.kind == kindAllGather || c.rank == a.root {
			for r, from := range g.slots {
				from.take(a.all[r*n:][:n])
			}
		}
	case kindScatter:
		g.slots[a.root].takeBlock(c.rank, a.own)
	case kindExchange:
		n := len(a.own) / c.size
		for r, from := range g.slots {
			from.takeBlock(c.rank, a.all[r*n:][:n])
		}
	case kindReduceScatter:
		fold(a.own, room, c.size, combine, func(k int, block []byte) { g.slots[k].takeBlock(c.rank, block) })
	case kindScan, kindExclusiveScan:
		scan(c.rank, a.own, a.all, room, combine, func(r int, block []byte) { g.slots[r].take(block) })
	}
}

// scan is work.scan, of rank and those below it, whose blocks take gives, round by round as there.
func scan(rank int, acc, before, room []byte, prepend Combine, take func(r int, block []byte)) {
	stride := strideOf(len(acc))
	at := func(r int) []byte { return room[r*stride:][:len(acc)] }
	for r := range rank + 1 {
		take(r, at(r))
	}
	for by := 1; by <= rank; by *= 2 {
		switch {
		case before == nil:
		case by == 1:
			bulk.Copy(before, at(rank-1))
		default:
			prepend(before, at(rank-by))
		}
		for r := rank; r >= by; r-- {
			prepend(at(r), at(r-by))
		}
	}
	bulk.Copy(acc, at(rank))
}

// pollEvery is after how many phases a rank polls that never has to wait, so that messages are
// handled, and work is done that was put off, also where it comes last each time.
const pollEvery = 8

// nextPhase begins a phase of h.
func (s *shared) nextPhase(h *channel) {
	if h.phase++; h.phase%pollEvery == 0 {
		s.c.e.Poll()
	}
}

// wakeFrom wakes all ranks from first on, but this one.
func (s *shared) wakeFrom(first int) {
	for r := first; r < s.c.size; r++ {
		if r != s.c.rank {
			s.ep.Wake(s.c.job(r))
		}
	}
}

// climb is an all-reduction by channel h, which has levels.
func (s *shared) climb(h *channel, acc []byte, combine Combine) error {
	if err := s.awaitOwed(); err != nil {
		return err
	}
	s.owed = awaited{} // a rank that has the result has seen all come
	room := words(&s.c.waitingWork().kept, fanIn*sharedBytes)
	s.nextPhase(h)
	w, p := s.c.word(), h.phase&1
	top := &h.levels[len(h.levels)-1][p]
	for l := range h.levels {
		g := &h.levels[l][p]
		mine := g.slots[g.at]
		mine.put(acc)
		mine[0].Store(w)
		if g.all(w).lacking() >= 0 {
			break
		}
		g.combine(acc, room, 0, combine)
		if g == top {
			s.wakeFrom(0)
			return nil
		}
	}
	if err := s.await(top.all(w)); err != nil {
		return err
	}
	top.combine(acc, room, 0, combine)
	return nil
}

// takeBlock copies block k of a slot to block.
func (s slot) takeBlock(k int, block []byte) {
	var all [sharedBytes]byte
	n := (k + 1) * len(block)
	s.take(all[:n])
	bulk.Copy(block, all[k*len(block):n])
}

// Before a rank waits as all layers do, it watches the slots: see package barrier, whose
// figures these are.
const (
	maxSpins = 8
	looks    = 16
)

// watch looks for a while whether w is over, and reports whether it is.
func (s *shared) watch(w awaited) bool {
	k := w.lacking()
	budget := s.spins
	if s.pair != nil && k >= 0 && budget > 0 && !w.g.staged {
		q := &w.g.slots[k][0]
		if v := q.Load(); v != w.word {
			conc.ChangedOwned(plain(q), v, budget*looks)
		}
		k = w.lacking()
	}
	for i := 0; k >= 0 && i < budget; i++ {
		q := &w.g.slots[k][0]
		if v := q.Load(); v != w.word {
			conc.Changed(plain(q), v, looks)
		}
		if k = w.lacking(); k >= 0 {
			s.c.e.Poll()
		}
	}
	switch {
	case k >= 0:
		s.spins = max(min(1, budget), budget/2)
	case budget < maxSpins:
		s.spins = 2 * budget
	}
	return k < 0
}

// await waits for w.
func (s *shared) await(w awaited) error {
	if w.lacking() < 0 || !s.mailed && s.watch(w) {
		return nil
	}
	c := s.c
	seq, d := w.called()
	known := s.mailed && seq == c.seq // to all, by mail; of an earlier call they may not have taken notice
	if s.mailed && !known {
		for range s.spins {
			if c.e.Poll(); w.lacking() < 0 {
				return nil
			}
		}
	}
	c.mu.Lock()
	s.now = w
	first := s.lacking(0, c.size)
	c.mu.Unlock()
	// A rank that has not come is told what it is waited for: it comes later, or is in
	// another call, and finds that they do not match. Where all ranks wait for all, one is
	// enough: the last one that comes tells one that does not. One that is in an earlier round of the call
	// needs not be told.
	var err error
	for r := first; r >= 0 && err == nil && !known; r = s.lacking(r+1, c.size) {
		if w.g.staged && s.staging.entered(r, seq) {
			continue
		}
		if err = c.tell(r, handlerOffer, c.number()<<16|slots<<8, seq, d); seq == c.seq && d.kind.waitsForAll() {
			break
		}
	}
	odd := -1
	if err == nil {
		err = c.waitFor(max(first, 0), true, func() int {
			for r := s.lacking(0, c.size); r >= 0; r = s.lacking(r+1, c.size) {
				if s.ep.Left(c.job(r)) && s.lacks(r) { // it may have come before it left
					return c.job(r)
				}
			}
			return -1
		}, func() bool {
			odd = w.differs()
			return odd >= 0 || w.lacking() < 0
		})
	}
	if err == nil && odd >= 0 {
		err = s.tellOdd(w, odd)
	}
	c.mu.Lock()
	s.now = awaited{}
	c.mu.Unlock()
	return err
}

// tellOdd asks the rank of slot odd about call w, which it has not made, and waits for the mismatch.
func (s *shared) tellOdd(w awaited, odd int) error {
	c := s.c
	for r := 0; r < c.size && len(w.g.slots) != c.size; r++ {
		if v := s.leaf(r).Load(); v == w.g.slots[odd][0].Load() {
			odd = r // of those below the slot
			break
		}
	}
	seq, d := w.called()
	if err := c.tell(odd, handlerReady, c.number()<<16|slots<<8, seq, d); err != nil {
		return err
	}
	return c.waitFor(odd, true, nil, func() bool { return false })
}

// lacking is the first rank of from to to-1 that has not come to what is waited for, or -1.
func (s *shared) lacking(from, to int) int {
	for r := from; r < to; r++ {
		if s.lacks(r) {
			return r
		}
	}
	return -1
}

// lacks reports whether rank r has not come to what is waited for.
func (s *shared) lacks(r int) bool {
	if s.ofRanks() && (r < s.now.from || r >= s.now.to) {
		return false
	}
	return s.leaf(r).Load() != s.now.word
}

// ofRanks reports whether the slots that are waited for are ranks' own, not ones of a level above.
func (s *shared) ofRanks() bool { return len(s.now.g.slots) == s.c.size }

// leaf is the word of rank r's own slot, where the call waits.
func (s *shared) leaf(r int) *atomic.Uint64 {
	if s.ofRanks() {
		return &s.now.g.slots[r][0]
	}
	return &s.slotOf(r, 0, int(s.lines.phase&1))[0]
}

// missing names the ranks that the call waits for, if it waits here. Called with Member.mu held.
func (s *shared) missing() string {
	if s.now.g == nil {
		return ""
	}
	n := s.c.size
	var ranks []int
	for r := s.lacking(0, n); r >= 0; r = s.lacking(r+1, n) {
		ranks = append(ranks, s.c.job(r))
	}
	if len(ranks) == 0 {
		return "waiting for a rank that has called it to go on"
	}
	return "waiting for rank " + conduits.RankList(ranks) + " to call it"
}

// stuck reports whether rank r still waits for this one to come to call d of number seq, which this rank has not made:
// it is the last that r has written, and not in a slot of this rank, which would keep it until
// r has written another one.
func (s *shared) stuck(r int, seq uint32, d call) bool {
	var last uint32
	var lastCall call
	any, mine, self := false, false, s.c.rank
	look := func(of, own slot, staged bool) {
		if of[0].Load() == 0 {
			return
		}
		if q, e := of.called(staged); !any || int32(q-last) > 0 {
			any, last, lastCall = true, q, e
		}
		q, e := own.called(staged)
		mine = mine || q == seq && e == d
	}
	for p := range 2 {
		look(s.slotOf(r, 0, p), s.slotOf(self, 0, p), false)
		if s.pair != nil {
			g := &s.pair.levels[0][p]
			look(g.slots[r], g.slots[self], false)
		}
		if s.staging != nil {
			g := &s.staging.levels[0][p]
			look(g.slots[r], g.slots[self], true)
		}
	}
	return any && last == seq && lastCall == d && !mine
}

// matched compares what the last call was called for, if this rank has not seen all ranks come
// to it. All ranks have made all calls.
func (s *shared) matched() error {
	if s == nil || s.owed.g == nil {
		return nil
	}
	c, w := s.c, s.owed
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := w.lacking(); k >= 0 {
		seq, d := w.called()
		other, e := w.g.slots[k].called(w.g.staged)
		if other != seq {
			e = call{form: form{kind: kindOther}}
		}
		c.broke(fault{seq: seq, a: uint32(c.job(c.rank)), callA: d, b: uint32(c.job(k)), callB: e}, false)
	}
	return c.broken
}
