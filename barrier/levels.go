package barrier

import (
	"sort"
	"strconv"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
)

// levels is the algorithm for several neighbourhoods: the ranks of each count
// themselves as in a tree, the first rank of each then speaks for it in a
// dissemination among them, and writes the verdict, which the others watch. A
// barrier of H neighbourhoods takes as many rounds of messages as one of H ranks.
//
// Only the first ranks have to be in Notify, Wait or Try for the rounds to go on.
type levels struct {
	ep    conduits.Endpoint
	in    *tree
	out   *line // the verdict
	leads bool  // this rank is the first of its neighbourhood

	// Of a rank that leads. d.mu guards begun, and writing out.
	d     *dissem
	begun bool // the rounds of d.phase
}

func newLevels(e *am.Messenger, hoods *conduits.Neighbourhoods, d *dissem) *levels {
	ep := e.Conduit()
	hood := hoods.Of(ep.Rank())
	near := hoods.Ranks(hood)
	l := &levels{
		ep:    ep,
		in:    newTree(ep, members{n: len(near), list: near}, sort.SearchInts(near, ep.Rank())),
		out:   lineAt(ep.System(near[0], conduits.SystemWords), verdictOff),
		leads: near[0] == ep.Rank(),
		d:     d,
	}
	l.in.wakes = 1
	d.bind(e, hoods.Firsts(), hood)
	return l
}

func (l *levels) arrive(w word) error {
	if !l.leads {
		return l.in.arrive(w)
	}
	l.d.mu.Lock()
	l.d.phase, l.begun = w.phase(), false
	l.d.mu.Unlock()
	if err := l.in.arrive(w); err != nil {
		return err
	}
	l.d.mu.Lock()
	if told := l.step(); told || !l.begun {
		l.d.mu.Unlock()
		l.tell(told)
		return nil
	}
	return l.d.insist()
}

// step does what can be done of the phase that d is in, and reports whether there is
// a verdict now that was not there before. Called with d.mu held.
func (l *levels) step() bool {
	d := l.d
	if !l.begun {
		v, all := l.in.verdict(d.phase)
		if !all {
			return false
		}
		l.begun = true
		d.startRounds(l.known(v))
	}
	p := d.phase & 1
	d.advance()
	if d.round < d.rounds || word(l.out.w[p].Load()).phase() == d.phase {
		return false
	}
	l.out.w[2+p].Store(uint64(d.known.w.id())<<32 | uint64(d.known.other))
	l.out.w[p].Store(uint64(d.phase)<<wordPhase | uint64(d.known.w&wordState))
	return true
}

// known returns the knowledge that the neighbourhood, which has notified v, brings to the rounds.
func (l *levels) known(v word) knowledge {
	if v&wordMismatch == 0 {
		return knowledge{w: v}
	}
	a, b := disagree(l.ep, l.in.members, l.d.phase)
	if a < 0 || b < 0 {
		return knowledge{w: wordMismatch}
	}
	x, y := arrival(l.ep, a, l.d.phase), arrival(l.ep, b, l.d.phase)
	return knowledge{w: wordMismatch | wordNamed | x&wordID, other: y.id()}
}

// tell wakes the goroutines that wait for the verdict, if it is there. This rank is among
// them: another goroutine may wait.
func (l *levels) tell(there bool) {
	if !there {
		return
	}
	for i := range l.in.n {
		l.ep.Wake(l.in.at(i))
	}
}

func (l *levels) verdict(phase uint32) (word, bool) {
	p := &l.out.w[phase&1]
	w := word(p.Load())
	if w.phase() != phase && l.leads {
		l.d.mu.Lock()
		told := l.d.phase == phase && l.step()
		l.d.mu.Unlock()
		l.tell(told)
		w = word(p.Load())
	}
	return bare(w), w.phase() == phase
}

func (l *levels) spin(phase uint32) {
	p := &l.out.w[phase&1]
	if l.leads {
		if _, all := l.in.verdict(phase); all {
			l.ep.Spin()
			return
		}
		p = &l.in.release.w[phase&1]
	}
	if w := p.Load(); word(w).phase() != phase {
		conc.Changed(plain(p), w, looks)
	}
}

func (l *levels) appendBlocked(b []byte, phase uint32) []byte {
	switch _, all := l.in.verdict(phase); {
	case !all:
		return l.in.appendBlocked(b, phase)
	case l.leads:
		return l.d.appendBlocked(b, phase)
	}
	b = append(b, "waiting for rank "...)
	b = strconv.AppendInt(b, int64(l.in.at(0)), 10)
	return append(b, ", which asks the other neighbourhoods"...)
}

func (l *levels) lacking(phase uint32) int {
	switch _, all := l.in.verdict(phase); {
	case !all:
		return l.in.lacking(phase)
	case l.leads:
		return l.d.lacking(phase)
	}
	if lead := l.in.at(0); l.ep.Left(lead) && word(l.out.w[phase&1].Load()).phase() != phase {
		return lead
	}
	return -1
}

func (l *levels) explain(phase uint32) (string, [2]uint32, bool) {
	if v, all := l.in.verdict(phase); all && v&wordMismatch != 0 {
		return l.in.explain(phase)
	}
	p := phase & 1
	ids := l.out.w[2+p].Load()
	return knowledge{w: word(l.out.w[p].Load())&^wordID | word(ids>>32), other: uint32(ids)}.explain()
}
