package barrier

import (
	"math/bits"
	"strconv"
	"sync"

	"github.com/argon-go/argon/am"
)

// The handler index of this package.
const handlerArrive = am.FirstBarrier

// dissem is the dissemination barrier (Hensgen, Finkel and Manber 1988): in round
// r every rank tells rank+2^r what it knows and learns from rank-2^r; after
// ceil(log2 N) rounds every rank knows of all. Rounds advance when Notify,
// Wait or Try is called, for handlers may not send requests.
//
// A message of the next phase may come early; it has its own slot by the
// phase's parity. One of the phase after that cannot: its sender has finished
// the next phase, which takes a message of this rank.
type dissem struct {
	e          *am.Messenger
	rank, size int   // this rank's place among those that take part
	ranks      []int // their numbers, by place; nil if all ranks do
	rounds     int

	mu sync.Mutex
	// slots has a slot for each round of even phases, then for each of odd ones;
	// written by the handler. nil before the first message and bind.
	slots []slot
	phase uint32
	sent  int       // rounds sent
	round int       // rounds received and merged
	known knowledge // what is known of the ranks heard of
}

// slot is a message as it came: a word in halves, so that a slot is 12 bytes.
type slot struct {
	low, high, other uint32
}

func (s *slot) word() word { return word(am.Unpack64(s.low, s.high)) }

// knowledge is a combined state with, for a mismatch of ids, the evidence:
// w then has wordNamed set beside wordMismatch, and the two ids are w's and
// other.
type knowledge struct {
	w     word
	other uint32
}

// merge is combine that keeps evidence.
func merge(a, b knowledge) knowledge {
	switch {
	case a.w&wordMismatch != 0:
		return a
	case b.w&wordMismatch != 0:
		return b
	}
	v := combine(a.w, b.w)
	if v&wordMismatch == 0 {
		return knowledge{w: v}
	}
	return knowledge{w: a.w&wordState | wordMismatch, other: b.w.id()}
}

// Handlers are the entries that this package needs in the Config.Runtime given to
// am.Attach.
func (b *Barrier) Handlers() []am.Entry {
	return []am.Entry{{
		Index: handlerArrive,
		Name:  "barrier.arrive",
		Fn:    b.d.arrived,
		Args:  4,
		Kinds: am.Short | am.Request,
	}}
}

// bind has all ranks take part, or those listed in ranks, of which this rank is number
// place.
func (d *dissem) bind(e *am.Messenger, ranks []int, place int) {
	d.e, d.ranks, d.rank, d.size = e, ranks, place, len(ranks)
	if ranks == nil {
		d.rank, d.size = e.Rank(), e.Size()
	}
	d.rounds = rounds(d.size)
	d.mu.Lock()
	d.makeSlots(e.Size()) // as many as when the first message made them
	d.mu.Unlock()
}

// at is the rank that is so many places further.
func (d *dissem) at(further int) int {
	p := (d.rank + further%d.size + d.size) % d.size
	if d.ranks != nil {
		return d.ranks[p]
	}
	return p
}

// rounds is ceil(log2 size).
func rounds(size int) int { return bits.Len(uint(size - 1)) }

// makeSlots makes the slots if they are missing: the first message may come
// before bind. Called with mu held.
func (d *dissem) makeSlots(size int) {
	if d.slots == nil {
		d.slots = make([]slot, 2*rounds(size))
	}
}

// slot is that of a round in phases of phase's parity. Called with mu held.
func (d *dissem) slot(phase uint32, round int) *slot {
	return &d.slots[int(phase&1)*(len(d.slots)/2)+round]
}

// arrived keeps a message: args are the low and high half of the sender's word,
// the evidence, and the round.
func (d *dissem) arrived(t *am.Token, args []uint32, _ []byte) {
	w := word(am.Unpack64(args[0], args[1]))
	d.mu.Lock()
	d.makeSlots(t.Messenger().Size())
	if int(args[3]) < len(d.slots)/2 {
		*d.slot(w.phase(), int(args[3])) = slot{args[0], args[1], args[2]}
	}
	d.mu.Unlock()
	// The waiter may be another goroutine, which looked before this store and
	// was about to park after the message had been taken.
	ep := t.Messenger().Conduit()
	ep.Wake(ep.Rank())
}

func (d *dissem) arrive(w word) error {
	d.mu.Lock()
	d.phase = w.phase()
	d.startRounds(knowledge{w: w & wordState})
	d.advance()
	return d.insist()
}

// startRounds starts the rounds of the phase that d is in, to which this rank brings
// known. Called with mu held.
func (d *dissem) startRounds(known knowledge) {
	d.sent, d.round, d.known = 0, 0, known
}

// insist sends the first message if advance could not. Called with mu held, which
// it gives up.
func (d *dissem) insist() error {
	first := d.rounds > 0 && d.sent == 0
	if first {
		d.sent = 1
	}
	phase, m := d.phase, d.known
	d.mu.Unlock()
	if !first {
		return nil
	}
	// There was no credit. Later rounds can wait for Wait, but the first message
	// is this rank's arrival, and Wait may be called late.
	dst, a := d.message(phase, 0, m)
	return d.e.RequestShort(dst, handlerArrive, a[0], a[1], a[2], a[3])
}

// message is the one of a round, and its target.
func (d *dissem) message(phase uint32, round int, m knowledge) (dst int, args [4]uint32) {
	lo, hi := am.Pack64(uint64(phase)<<wordPhase | uint64(m.w&wordState))
	return d.at(1 << round), [4]uint32{lo, hi, m.other, uint32(round)}
}

// advance sends and merges what can be sent and merged. Called with mu held; it
// neither blocks nor polls.
func (d *dissem) advance() {
	for d.round < d.rounds {
		if d.sent == d.round {
			dst, a := d.message(d.phase, d.round, d.known)
			// An error means that the job has failed, which Wait reports.
			if sent, err := d.e.TryRequestShort(dst, handlerArrive, a[0], a[1], a[2], a[3]); !sent || err != nil {
				return
			}
			d.sent++
		}
		s := d.slot(d.phase, d.round)
		w := s.word()
		if w.phase() != d.phase {
			return
		}
		d.known = merge(d.known, knowledge{w: w & wordState, other: s.other})
		d.round++
	}
}

func (d *dissem) verdict(phase uint32) (word, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != phase {
		return 0, false // Notify is just about to begin it
	}
	d.advance()
	return bare(d.known.w), d.round == d.rounds
}

// bare is v without evidence.
func bare(v word) word {
	if v&wordMismatch != 0 {
		return wordMismatch
	}
	return v & wordState
}

func (d *dissem) spin(uint32) { d.e.Conduit().Spin() }

func (d *dissem) appendBlocked(b []byte, phase uint32) []byte {
	d.mu.Lock()
	round, sent, now := d.round, d.sent, d.phase
	d.mu.Unlock()
	switch {
	case now != phase || round == d.rounds:
		return append(b, "all ranks have arrived"...)
	case sent == round:
		b = append(b, "no credit to notify rank "...)
		return strconv.AppendInt(b, int64(d.at(1<<round)), 10)
	}
	b = append(b, "waiting for rank "...)
	b = strconv.AppendInt(b, int64(d.at(-(1 << round))), 10)
	if round > 0 || d.ranks != nil {
		b = append(b, " or a rank it waits for"...)
	}
	b = append(b, " (round "...)
	b = strconv.AppendInt(b, int64(round+1), 10)
	b = append(b, " of "...)
	b = strconv.AppendInt(b, int64(d.rounds), 10)
	return append(b, ')')
}

// lacking is the rank whose message of this round is awaited, or that takes none
// from this one any more, if it has left. Ranks that wait for it by way of this one
// hear of it from the job's failure, see Barrier.failed.
func (d *dissem) lacking(phase uint32) int {
	d.mu.Lock()
	round, from, to := d.round, d.at(-(1 << d.round)), d.at(1<<d.round)
	d.mu.Unlock()
	for _, r := range [...]int{from, to} {
		if !d.e.Conduit().Left(r) {
			continue
		}
		d.mu.Lock()
		if d.phase == phase {
			d.advance()
		}
		// Its message may be here although the round goes on, for want of credit.
		stuck := d.phase == phase && d.round == round && round < d.rounds &&
			(r == from && d.slot(phase, round).word().phase() != phase || r == to && d.sent == round)
		d.mu.Unlock()
		if stuck {
			return r
		}
	}
	return -1
}

func (d *dissem) explain(uint32) (string, [2]uint32, bool) {
	d.mu.Lock()
	m := d.known
	d.mu.Unlock()
	return m.explain()
}

// explain describes a mismatch: the reason, and the ids if two differ.
func (k knowledge) explain() (why string, ids [2]uint32, differ bool) {
	if k.w&wordNamed == 0 {
		return "a rank signalled a mismatch", ids, false
	}
	ids = [2]uint32{min(k.w.id(), k.other), max(k.w.id(), k.other)}
	return "ids differ: " + utoa(ids[0]) + " and " + utoa(ids[1]), ids, true
}
