package gas

import (
	"errors"
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Team is some ranks of the job, in an order of their own: a [Group], so that they make
// collective calls by themselves. Calls of a team are made by one goroutine of each member
// at a time and in one order; calls of different teams are independent, though a rank that
// waits in one is not in the other. Teams may overlap.
type Team struct {
	n *Node
	m *members
}

// World is the team of all ranks, by which to make others. It is not deleted.
func (n *Node) World() *Team { return &Team{n, &n.all} }

// HostTeam is collective: it makes a team for each neighbourhood of ranks, which reach each
// other by load and store, and returns this rank's: in order of their numbers. It is to be
// deleted.
func (n *Node) HostTeam() (*Team, error) {
	hood := 0
	if h := conduits.NeighbourhoodsOf(n.ep); h != nil {
		hood = h.Of(n.rank)
	} else {
		for !n.Neighbour(hood) && hood < n.rank {
			hood++
		}
	}
	return n.World().split(hood, 0)
}

// Split is collective among the members: it makes a team of those that give the same
// colour, in order of their keys and, where these are equal, of their numbers in t, and
// returns that of this rank. A rank whose colour is negative is in none, and gets nil.
func (t *Team) Split(colour, key int) (*Team, error) { return t.split(colour, key) }

func (t *Team) split(colour, key int) (*Team, error) {
	c, err := t.m.coll.Split(colour, key)
	if c == nil || err != nil {
		return nil, err
	}
	return &Team{t.n, &members{coll: c}}, nil
}

// Delete is collective among the members: it gives the team back, of which no call is under
// way. Later calls match ErrNotReady. Teams that are there at the end of the program need not be deleted.
func (t *Team) Delete() error { return t.m.coll.Close() }

// Rank is this rank's number in the team, 0 to Size()-1.
func (t *Team) Rank() int { return t.m.coll.Rank() }

// Size is the number of members.
func (t *Team) Size() int { return t.m.coll.Size() }

// Global is the rank of the job that is member r, what [Ptr.On] and calls of other ranks take;
// -1 if r is not in 0..Size()-1.
func (t *Team) Global(r int) int { return t.m.coll.Global(r) }

// Of is the number in the team of a rank of the job, if it is a member.
func (t *Team) Of(rank int) (r int, ok bool) { return t.m.coll.Of(rank) }

// Node is the rank that has t.
func (t *Team) Node() *Node { return t.n }

// Must is [Node.Must] of the rank that has t.
func (t *Team) Must(err error) { t.n.Must(err) }

// Barrier is collective among the members: it waits until all have called it. It does not match [Team.BarrierNotify]. What a
// member did to memory before is visible to all members afterwards.
func (t *Team) Barrier() error { return t.m.coll.Barrier() }

// BarrierNotify is collective among the members: it begins a barrier, which BarrierWait
// ends, before the next BarrierNotify: [BarrierNB] with one Future, which t keeps.
func (t *Team) BarrierNotify() error { return t.m.coll.BarrierNotify() }

// BarrierWait is collective among the members: it waits until all have called
// BarrierNotify, which this one has.
func (t *Team) BarrierWait() error { return t.m.coll.BarrierWait() }

func (t *Team) members() *members { return t.m }

// TeamSlice is memory of the ranks of a group: count elements of T in the segment of each.
type TeamSlice[T any] struct {
	g    Group
	own  Ptr[T]   // nil after Delete
	at   []Ptr[T] // by member; nil for all ranks of the job, which have counterparts of own
	have int      // members; 0 after Delete
	size int
}

// teamPart is the contribution of a member to NewTeamSlice.
type teamPart[T any] struct {
	At    Ptr[T] // nil if there is none
	Count int
	Rank  int // of the job
}

// NewTeamSlice is collective: each rank of g allocates count elements of T, zeroed, the same
// count on all. It is [NewSlice] for a group; members of a team may have them at
// different offsets. If a member has no room, all get an error and no memory.
func NewTeamSlice[T any](g Group, count int) (*TeamSlice[T], error) {
	n := g.Node()
	s := &TeamSlice[T]{g: g, have: g.Size(), size: count}
	var err error
	if g.members() == &n.all {
		if s.own, err = NewSlice[T](n, count); err != nil {
			return nil, err
		}
		return s, nil
	}
	var failed error
	s.own, failed = Alloc[T](n, count)
	all, err := AllGather(g, teamPart[T]{s.own, count, n.rank})
	if err == nil {
		err = failed
	}
	for _, part := range all {
		switch {
		case err != nil:
		case part.Count != count:
			err = errs.BadArg("gas: NewTeamSlice: %d elements on rank %d of the job, %d on rank %d", count, n.rank, part.Count, part.Rank)
		case part.At.IsNil():
			err = errs.Resource("gas: NewTeamSlice: rank %d of the job could not allocate %d elements of %d bytes, as its own error says", part.Rank, count, sizeOf[T]())
		}
		s.at = append(s.at, part.At)
	}
	if err != nil {
		if failed == nil {
			err = errors.Join(err, Free(n, s.own))
		}
		return nil, err
	}
	return s, nil
}

// On is the Ptr to the first element of member r; it is nil if r is not in 0..Size()-1.
func (s *TeamSlice[T]) On(r int) Ptr[T] {
	if uint(r) >= uint(s.have) {
		strayed(r, s.have)
		return Ptr[T]{}
	}
	if s.at == nil {
		return s.own.On(r)
	}
	return s.at[r]
}

// Len is how many elements each member has.
func (s *TeamSlice[T]) Len() int { return s.size }

// All are the Ptrs of all members, by their numbers in the group; the caller's.
func (s *TeamSlice[T]) All() []Ptr[T] {
	all := make([]Ptr[T], s.have)
	for r := range all {
		all[r] = s.On(r)
	}
	return all
}

// Delete is collective among the members: it takes the memory back when all have called it.
func (s *TeamSlice[T]) Delete() error {
	n, own, team := s.g.Node(), s.own, s.at != nil
	if own.IsNil() {
		return errs.NotReady("gas: Delete of a TeamSlice of %d elements of %s on rank %d: deleted already", s.size, typeName[T](), n.rank)
	}
	var err error
	if team {
		err = s.g.Barrier()
	}
	if err == nil {
		s.own, s.at, s.have = Ptr[T]{}, nil, 0
		if team {
			return Free(n, own)
		}
		err = Delete(n, own)
	}
	if err != nil {
		err = fmt.Errorf("gas: Delete of a TeamSlice of %d elements of %s: %w", s.size, typeName[T](), err)
	}
	return err
}
