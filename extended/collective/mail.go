package collective

import (
	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
)

// Ranks that share no memory use slots and staging, too, for calls in which each waits for all, and two ranks for all: each rank
// has its own copies of those of all ranks, and mails what it has written to the others. Such a message
// says in which call its sender is, as one of handlerOffer does, so that a rank which waits tells nothing more.
// The longest path has one message. On two processors an all-reduction of 8 bytes over udp took 35, 500, 1,700 and 4,600 us
// among 2, 4, 8 and 16 ranks by trees, and takes 13, 260, 800 and 3,600.
const (
	mailRanks = fanIn
	mailRoom  = 4 << 10 // of a half, bytes, or Limits.MaxMedium if that is less
	mailPolls = 50      // before a rank tells another one that it waits for it to have made an earlier call
)

// Bits of the last argument of handlerSlot, below an offset in a half.
const (
	mailOdd    = 1 << iota // of an odd phase
	mailStaged             // of a half, not of a slot
	mailOff    = iota
)

// earlyMail has come before this rank has called Bind, or made the team that it is for.
type earlyMail struct {
	src     int
	args    [3 + callWords]uint32
	payload []byte
}

// earlyOf is what has come so for c. Called with Member.mu held.
func earlyOf(c *Member) *[]earlyMail {
	if c.team != nil {
		return &c.team.early
	}
	if c.teams == nil {
		c.teams = newNumbers()
	}
	return &c.teams.early
}

// useMail has c use copies of slots.
func useMail(c *Member) {
	if _, virtual := conduits.As[conduits.Runner](c.e.Conduit()); virtual {
		return // simulated ranks keep to the trees that docs/scaling.md has models of
	}
	c.apart = true
	if c.size < 2 || c.size > mailRanks || c.card != nil {
		return
	}
	c.shared = &shared{c: c, ep: c.e.Conduit(), mailed: true, spins: mailPolls}
	for range c.size {
		c.shared.areas = append(c.shared.areas, words(new([]uint64), levelOff+2*lineBytes))
	}
	c.shared.addLevel(1)
	early := earlyOf(c)
	for _, m := range *early {
		if int32(m.args[0]-c.first()) > 0 { // not of an earlier team of the number
			c.shared.arrive(m.src, m.args[:], m.payload)
		}
	}
	*early = nil
}

// mailSize is how long a rank's staging is.
func (s *shared) mailSize() int {
	return 2*(lineBytes+min(mailRoom, s.c.e.MaxMedium())&^(lineBytes-1)) + skews*lineBytes
}

// mail sends to all others what this rank has written in a phase of h, if that is not in memory that they share; part is
// the bytes for rank r, which begin at byte off of a half.
func (s *shared) mail(h *channel, part func(r int) (data []byte, off int)) error {
	if !s.mailed {
		return nil
	}
	c, d, what := s.c, s.c.call.words(), h.phase&mailOdd
	if h != &s.lines {
		what |= mailStaged
	}
	for k := 1; k < c.size; k++ {
		r := around(c.rank, k, c.size)
		data, off := part(r)
		if err := c.e.RequestMedium(c.job(r), handlerSlot, data, c.seq, c.number()<<16|slots<<8, d[0], d[1], d[2], d[3], d[4], what|uint32(off)<<mailOff); err != nil {
			return err
		}
	}
	return nil
}

// stagedMail is the staging if it serves call a, in one round, else nil.
func (s *shared) stagedMail(a *Call) *staging {
	if len(a.own) == 0 || !s.mails(a.kind) {
		return nil
	}
	s.c.mu.Lock()
	t := s.stagingNow()
	s.c.mu.Unlock()
	n, room := len(a.own), t.room()
	switch a.kind {
	case kindExchange: // see moveStaged
		n, room = n/s.c.size, room/(s.c.size-1)&^(lineBytes-1)
	case kindReduceScatter:
		n = strideOf(n) * s.c.size
	case kindScan, kindExclusiveScan: // of several rounds
		return nil
	}
	if n > room {
		return nil
	}
	return t
}

// stagingNow is the staging of all ranks, or nil.
func (s *shared) stagingNow() *staging {
	if !s.hasStaging {
		s.staging, s.hasStaging = s.newStaging(), true
	}
	return s.staging
}

// mails reports whether small calls of kind k are made by mail: if each rank waits for all, or there is one other.
func (s *shared) mails(k kind) bool {
	switch k {
	case kindAllReduce, kindAllGather, kindExchange, kindReduceScatter:
		return true
	case kindBroadcast, kindReduce, kindGather, kindScatter, kindScan, kindExclusiveScan:
		return s.c.size == 2
	}
	return false
}

func onSlot(c *Member, t *am.Token, args []uint32, payload []byte) {
	at := c.at(args[1] >> 16)
	at.mu.Lock()
	switch {
	case at.shared != nil:
		if at.shared.mailed {
			at.shared.arrive(t.Src(), args, payload)
		}
	case at.size == 0:
		if early := earlyOf(at); len(*early) < mailRanks {
			*early = append(*early, earlyMail{t.Src(), [3 + callWords]uint32(args), bulk.Clone(payload)})
		}
	}
	at.mu.Unlock()
	c.note(t, args[:2+callWords], false)
}

// arrive takes what rank src of the job has mailed: a rank has done with what lies there when all have come to the call behind it.
// Called with Member.mu held.
func (s *shared) arrive(src int, args []uint32, payload []byte) {
	r, ok := s.c.Of(src)
	if !ok || r == s.c.rank {
		return
	}
	seq, d, what := args[0], parseCall(args[2:]), args[2+callWords]
	parity, off := int(what&mailOdd), int(what>>mailOff)
	if what&mailStaged == 0 {
		if len(payload) <= sharedBytes && d.size <= sharedBytes {
			q := s.slotOf(r, 0, parity)
			q.put(payload)
			q[0].Store(wordOf(seq, d))
		}
		return
	}
	t := s.stagingNow()
	half := t.halves[parity][r]
	if off > len(half) || len(payload) > len(half)-off {
		return
	}
	bulk.Copy(half[off:], payload)
	q := t.levels[0][parity].slots[r]
	q[stagedSize].Store(d.size)
	q[stagedRest].Store(d.rest())
	q[0].Store(stagedWord(seq, 0, d))
}
