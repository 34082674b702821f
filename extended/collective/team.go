package collective

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"sort"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// team is the part of a Member that only one of fewer ranks than the job's has.
type team struct {
	world  *Member // of the job
	number uint16  // the same on all members, which are in no other team of it; not 0
	ranks  []int32 // of the job, by rank of the team; nil before Split has made it
	base   uint32  // number of the call before its first
	closed bool
	place  int8 // in this rank's staging, or noPlace
	early  []earlyMail
	// plan, if it is not nil, is given what a call would post, send and await, in this order,
	// and nothing is: the schedule of any rank of any team can be counted without running it.
	plan func(s *stage)
}

// planned gives a transfer to the plan, if there is one, and says so.
func (t *team) planned(s *stage) bool {
	if t == nil || t.plan == nil || s.do > stageHear {
		return false
	}
	t.plan(s)
	return true
}

// maxTeams is how many team numbers there are; they travel as 16 bits.
const maxTeams = 1<<16 - 1

// numbers has the team numbers that a rank uses or has heard of.
type numbers struct {
	by    map[uint16]*Member // what was heard of a number, also when its team is closed
	taken map[uint16]bool    // by a team, or by a Split that is being made
	early []earlyMail        // for the job
}

func newNumbers() *numbers {
	return &numbers{by: map[uint16]*Member{}, taken: map[uint16]bool{}}
}

// job is the rank of the job that is rank r here.
func (c *Member) job(r int) int {
	if c.team == nil {
		return r
	}
	return int(c.team.ranks[r])
}

// number is that of the team, and 0 for the job.
func (c *Member) number() uint32 {
	if c.team == nil {
		return 0
	}
	return uint32(c.team.number)
}

// first is the number of the call before the first one.
func (c *Member) first() uint32 {
	if c.team == nil {
		return 0
	}
	return c.team.base
}

// Rank is this rank's number among those that make the calls together, Size how many there
// are: all of the job, or of a team.
func (c *Member) Rank() int { return c.rank }

// Size is the number of ranks that make the calls together.
func (c *Member) Size() int { return c.size }

// Global is the rank of the job that has number r here; -1 if r is not in 0..Size()-1.
func (c *Member) Global(r int) int {
	if uint(r) >= uint(c.size) {
		return -1
	}
	return c.job(r)
}

// Of is the number here of a rank of the job, if it takes part.
func (c *Member) Of(rank int) (r int, ok bool) {
	if c.team == nil {
		return rank, uint(rank) < uint(c.size)
	}
	if rank != int(int32(rank)) {
		return -1, false
	}
	r = slices.Index(c.team.ranks, int32(rank))
	return r, r >= 0
}

// at is the endpoint for messages of the team with a number, which c is for the job. This
// rank may be told of a team before its Split has returned.
func (c *Member) at(number uint32) *Member {
	if number == 0 {
		return c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.teamAt(uint16(number))
}

// teamAt is at with mu held.
func (c *Member) teamAt(number uint16) *Member {
	if c.teams == nil {
		c.teams = newNumbers()
	}
	t := c.teams.by[number]
	if t == nil {
		t = &Member{names: c.names, e: c.e, spot: spot{rank: -1}, team: &team{world: c, number: number}, left: c.ended, watched: c.watched}
		c.teams.by[number] = t
	}
	return t
}

// used returns a bit for each of the 64 numbers from first on, set if the number is taken.
func (c *Member) used(first int) (set uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range 64 {
		if k := first + i; k > maxTeams || c.teams != nil && c.teams.taken[uint16(k)] {
			set |= 1 << i
		}
	}
	return set
}

// claim takes a number, if no other Split of this rank has done it, and returns the number
// of the last call by it.
func (c *Member) claim(number int) (seq uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.teamAt(uint16(number))
	if c.teams.taken[uint16(number)] {
		return 0, false
	}
	c.teams.taken[uint16(number)] = true
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seq, true
}

// release gives a number back.
func (c *Member) release(number int) {
	c.mu.Lock()
	delete(c.teams.taken, uint16(number))
	c.mu.Unlock()
}

// world is the endpoint of the job.
func (c *Member) world() *Member {
	if c.team == nil {
		return c
	}
	return c.team.world
}

// share is the contribution of a rank to a Split.
type share struct {
	colour, key, rank int
	seq               uint32
	claimed           bool
	place             int8
}

const shareSize = 24

func (m share) put(b []byte) {
	binary.LittleEndian.PutUint64(b, uint64(m.colour))
	binary.LittleEndian.PutUint64(b[8:], uint64(m.key))
	binary.LittleEndian.PutUint32(b[16:], m.seq)
	if m.claimed {
		b[20] = 1
	}
	b[21] = byte(m.place)
}

func shareOf(rank int, b []byte) share {
	return share{
		colour: int(binary.LittleEndian.Uint64(b)), key: int(binary.LittleEndian.Uint64(b[8:])), rank: rank,
		seq: binary.LittleEndian.Uint32(b[16:]), claimed: b[20] != 0, place: int8(b[21]),
	}
}

// Split makes teams of the ranks of c: those that give the same colour are in one, in order
// of their keys and, where these are equal, of their ranks. A rank that gives a negative
// colour is in none and gets nil. All ranks of c call it.
//
// The calls of a team are made by its ranks alone, and are in order among themselves. A
// rank may be in many teams, and in calls of several of them at once by one goroutine each;
// ranks may make calls of different teams in different orders where none waits for the other in a circle.
// Calls that do not match end the calls of their team and of no other. A rank
// that fails ends all. Close gives a team back.
func (c *Member) Split(colour, key int) (*Member, error) {
	if c.e == nil {
		return nil, c.errUnbound(kindSplit)
	}
	w, place := c.world(), int8(noPlace)
	if colour >= 0 {
		place = takePlace(w)
	}
	t, err := split(c, colour, key, place)
	if t == nil || t.shared == nil || t.shared.mailed {
		freePlace(w, place)
	} else {
		t.team.place = place
	}
	return t, err
}

// split is Split of a rank that has a place for the team.
func split(c *Member, colour, key int, place int8) (*Member, error) {
	w := c.world()
	for first := 1; ; {
		var used [8]byte
		binary.LittleEndian.PutUint64(used[:], w.used(first))
		if err := c.Do(&Call{kind: kindSplit, own: used[:]}, or); err != nil {
			return nil, err
		}
		free := bits.TrailingZeros64(^binary.LittleEndian.Uint64(used[:]))
		number := first + free
		if first > maxTeams {
			return nil, errs.Resource("%s: Split: no team number is free on all %d ranks; a rank is in at most %d teams that are not closed", c.names.Package, c.size, maxTeams)
		}
		if free == 64 {
			first = number
			continue
		}
		seq, ok := w.claim(number)
		all, err := c.members(share{colour: colour, key: key, seq: seq, claimed: ok, place: place})
		if err == nil && !slices.ContainsFunc(all, func(m share) bool { return !m.claimed }) {
			if colour < 0 {
				w.release(number)
				return nil, nil
			}
			return c.found(number, colour, all), nil
		}
		if ok {
			w.release(number)
		}
		if err != nil {
			return nil, err
		}
		// A rank is in several calls of Split at once, which have chosen the same number.
		first = number + 1 + int(c.number())%7
	}
}

// or is a Combine.
func or(acc, in []byte) {
	for i := range acc {
		acc[i] |= in[i]
	}
}

// members gathers the shares of all ranks, by rank.
func (c *Member) members(own share) ([]share, error) {
	all := make([]byte, shareSize*c.size)
	mine := all[shareSize*c.rank:][:shareSize]
	own.put(mine)
	if err := c.Do(&Call{kind: kindSplit, own: mine, all: all}, nil); err != nil {
		return nil, err
	}
	ms := make([]share, c.size)
	for r := range ms {
		ms[r] = shareOf(r, all[shareSize*r:])
	}
	return ms, nil
}

// found is the team of a number and those of all that gave colour.
func (c *Member) found(number, colour int, all []share) *Member {
	all = slices.DeleteFunc(all, func(m share) bool { return m.colour != colour })
	slices.SortStableFunc(all, func(a, b share) int { return cmp.Compare(a.key, b.key) })
	ranks, places := make([]int32, len(all)), make([]int8, len(all))
	var last uint32
	for r, m := range all {
		places[r] = m.place
		ranks[r] = int32(c.job(m.rank))
		if int32(m.seq-last) > 0 {
			last = m.seq
		}
	}
	// Calls of an earlier team of the number, of which offers may still be on their way, are
	// so long past that they are forgotten, and the history begins with its first place.
	if last > 0 {
		last = (last+historyLen-1)/historyLen*historyLen + historyLen
	}
	w := c.world()
	t := w.at(uint32(number))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.team.ranks, t.team.base, t.seq = ranks, last, last
	t.rank, t.size = slices.Index(ranks, int32(w.rank)), len(ranks)
	t.team.place = noPlace
	t.useShared(places)
	if h := conduits.NeighbourhoodsOf(c.e.Conduit()); h != nil {
		t.useLevels(conduits.NewNeighbourhoods(t.size, func(r int) int { return h.Of(int(ranks[r])) }))
	}
	return t
}

// Close ends a team; all its ranks call it, when they have no other call of it to make. An
// error says that this rank cannot tell whether the others have; the team is closed then,
// too. The endpoint of the job is not closed.
func (c *Member) Close() error {
	if c.team == nil {
		return c.Refuse(errs.BadArg("%s: Close: not of a team but of the job, which ends with its program", c.names.Package))
	}
	c.mu.Lock()
	going := 0
	if c.flight != nil && c.broken == nil {
		going = c.flight.going
	}
	c.mu.Unlock()
	if going > 0 {
		return c.Refuse(errs.NotReady("%s: Close: %d calls of team %d that were begun are not done: they are waited for first", c.names.Package, going, c.team.number))
	}
	err := c.Do(&Call{kind: kindClose}, func(_, _ []byte) {})
	w := c.team.world
	if err == nil {
		freePlace(w, c.team.place)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		// No message of the team needs to be answered any more. What comes late is told
		// from messages of the next team by the number of its call.
		w.teams.by[c.team.number] = &Member{
			names: c.names, e: c.e, spot: spot{rank: -1}, seq: c.seq, links: c.links, flight: c.flight, left: w.ended,
			team: &team{world: w, number: c.team.number},
		}
		delete(w.teams.taken, c.team.number)
		c.links, c.flight = nil, nil
	}
	c.team.closed = true
	return err
}

// leaveTeams tells ranks which wait for this one in calls of teams, or will, that its
// program is at its end.
func (c *Member) leaveTeams() {
	c.mu.Lock()
	c.ended = true
	var all []*Member
	if c.teams != nil {
		all = slices.Collect(maps.Values(c.teams.by))
	}
	c.mu.Unlock()
	sort.Slice(all, func(i, j int) bool { return all[i].team.number < all[j].team.number })
	for _, t := range all {
		t.leaveTeam()
	}
}

// leaveTeam is leaveTeams for one of them.
func (c *Member) leaveTeam() {
	c.mu.Lock()
	c.left = true
	waiting := c.links.later(c, nil)
	if c.flight != nil {
		for _, o := range c.flight.ops {
			waiting = o.links.later(c, waiting)
		}
	}
	c.mu.Unlock()
	for _, w := range waiting {
		c.mu.Lock()
		c.broke(c.leftFault(&w), false)
		f := c.faultWords()
		f[faultTell] |= 1 << 16
		c.mu.Unlock()
		// It tells the others; if it cannot be told, it has failed, which all learn.
		_ = c.e.RequestShort(int(w.src), handlerAbort, f[:]...)
	}
}

// later appends the notes about calls that c has not begun. Called with mu held.
func (ls links) later(c *Member, to []note) []note {
	for _, l := range ls {
		for _, w := range [...]note{l.wanted, l.offered} {
			if w.later(c.seq) && c.broken == nil {
				to = append(to, w)
			}
		}
	}
	return to
}

// leftFault is that of a rank which waits in w for this one, which is at the end of its program.
func (c *Member) leftFault(w *note) fault {
	return fault{seq: w.seq, a: uint32(c.e.Rank()), callA: call{form: form{kind: kindLeave}}, b: w.src, callB: w.call()}
}

// Barrier waits until all ranks of c have called it. What a rank has written before is
// visible to all afterwards.
func (c *Member) Barrier() error {
	return c.Do(&Call{kind: kindBarrier}, func(_, _ []byte) {})
}

// BarrierNotify is BarrierNB whose Handle is kept here: BarrierWait waits for it, before the
// next BarrierNotify.
func (c *Member) BarrierNotify() error {
	c.mu.Lock()
	twice := c.flight != nil && c.flight.barrier.o != nil
	c.mu.Unlock()
	if twice {
		return errs.NotReady("%s: BarrierNotify twice without BarrierWait", c.names.Package)
	}
	h, err := c.BarrierNB()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.flight.barrier = h
	c.mu.Unlock()
	return nil
}

// BarrierWait waits until all ranks of c have called BarrierNotify, as this one has, or it
// returns ErrNotReady.
func (c *Member) BarrierWait() error {
	c.mu.Lock()
	var h Handle
	if c.flight != nil {
		h, c.flight.barrier = c.flight.barrier, h
	}
	c.mu.Unlock()
	if h.o == nil {
		return errs.NotReady("%s: BarrierWait without BarrierNotify", c.names.Package)
	}
	return h.Wait()
}
