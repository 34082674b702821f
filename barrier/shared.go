package barrier

import (
	"strconv"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
)

// flat is the algorithm for few ranks with direct access: every rank writes its
// own arrival word and reads those of all.
type flat struct {
	ep    conduits.Endpoint
	rank  int
	words [][2]*atomic.Uint64 // arrival words by rank and parity
}

func newFlat(ep conduits.Endpoint) *flat {
	f := &flat{ep: ep, rank: ep.Rank(), words: make([][2]*atomic.Uint64, ep.Size())}
	for r := range f.words {
		f.words[r] = [2]*atomic.Uint64{arrivalWord(ep, r, 0), arrivalWord(ep, r, 1)}
	}
	return f
}

func (f *flat) arrive(w word) error {
	f.words[f.rank][w.phase()&1].Store(uint64(w))
	// The stores of all ranks have one order, and the last in it sees
	// all others here. So at least one rank wakes those that sleep, and a rank
	// that would only wake them for another look leaves them alone.
	if _, all := f.verdict(w.phase()); all {
		for r := range f.words {
			if r != f.rank {
				f.ep.Wake(r)
			}
		}
	}
	return nil
}

func (f *flat) verdict(phase uint32) (word, bool) {
	var v word
	for _, p := range f.words {
		w := word(p[phase&1].Load())
		if w.phase() != phase {
			return 0, false
		}
		v = combine(v, w)
	}
	return v, true
}

func (f *flat) spin(phase uint32) {
	for _, p := range f.words {
		w := p[phase&1].Load()
		if word(w).phase() != phase {
			conc.Changed(plain(p[phase&1]), w, looks)
			return
		}
	}
}

func (f *flat) appendBlocked(b []byte, phase uint32) []byte {
	return appendMissing(b, f.ep, members{n: f.ep.Size()}, phase)
}

func (f *flat) lacking(phase uint32) int { return lacking(f.ep, members{n: f.ep.Size()}, phase) }

func (f *flat) explain(phase uint32) (string, [2]uint32, bool) {
	return explainShared(f.ep, members{n: f.ep.Size()}, phase)
}

// pair is flat for two ranks. Their words lie in one line, whose transfer to the
// rank that is later brings the other's word and makes room for its own: measured
// 0.4 times a one-way flag (each in its own line), where two lines take 1.0 times.
type pair struct {
	ep           conduits.Endpoint
	peer         int
	mine, theirs [2]*atomic.Uint64 // arrival words by parity
}

func newPair(ep conduits.Endpoint) *pair {
	p := &pair{ep: ep, peer: 1 - ep.Rank()}
	for i := range 2 {
		p.mine[i], p.theirs[i] = arrivalWord(ep, ep.Rank(), i), arrivalWord(ep, p.peer, i)
	}
	return p
}

func (p *pair) arrive(w word) error {
	conc.Release64(plain(p.mine[w.phase()&1]), uint64(w))
	p.ep.Wake(p.peer)
	return nil
}

func (p *pair) verdict(phase uint32) (word, bool) { return p.watch(phase, 0) }

// watch is verdict after up to n times looks looks.
func (p *pair) watch(phase uint32, n int) (word, bool) {
	q := p.theirs[phase&1]
	w := q.Load()
	if word(w).phase() != phase && n > 0 {
		w = conc.ChangedOwned(plain(q), w, n*looks)
	}
	m := word(p.mine[phase&1].Load())
	return combine(m, word(w)), word(w).phase() == phase && m.phase() == phase
}

func (p *pair) spin(phase uint32) { p.watch(phase, 1) }

func (p *pair) appendBlocked(b []byte, phase uint32) []byte {
	return appendMissing(b, p.ep, members{n: 2}, phase)
}

func (p *pair) lacking(phase uint32) int { return lacking(p.ep, members{n: 2}, phase) }

func (p *pair) explain(phase uint32) (string, [2]uint32, bool) {
	return explainShared(p.ep, members{n: 2}, phase)
}

// fanIn is how many arrivals a counter of the tree takes.
const fanIn = 8

// tree is the algorithm for many ranks with direct access: arrivals are counted
// in groups of fanIn, whose last arriver counts for its group one level up; the
// last of all writes the release line and wakes all. So no rank needs the
// help of a rank that has arrived already: on few processors a barrier costs
// one switch into and one out of every rank, not one for every level.
type tree struct {
	members // that it joins
	ep      conduits.Endpoint
	rank    int
	own     [2]*atomic.Uint64 // arrival words by parity
	release *line
	groups  []group // this rank's group by level
	wakes   int     // how many ranks, from the first on, are woken when all have arrived
}

// group is one counter and how many arrivals it takes.
type group struct {
	counter *line
	size    uint32
}

// members are n ranks that have direct access to each other: list, ascending, or 0 to
// n-1 if it is nil.
type members struct {
	n    int
	list []int
}

// at is number i of them.
func (m members) at(i int) int {
	if m.list != nil {
		return m.list[i]
	}
	return i
}

// newTree joins m, of which this rank is number place.
func newTree(ep conduits.Endpoint, m members, place int) *tree {
	rank, n := ep.Rank(), m.n
	t := &tree{
		members: m,
		ep:      ep,
		rank:    rank,
		own:     [2]*atomic.Uint64{arrivalWord(ep, rank, 0), arrivalWord(ep, rank, 1)},
		release: lineAt(ep.System(m.at(0), conduits.SystemWords), releaseOff),
		wakes:   n,
	}
	// At level l a group spans fanIn^(l+1) ranks, beginning with its leader, and
	// takes one arrival of each span of fanIn^l ranks that is not empty.
	for l, span := 0, 1; span < n; l, span = l+1, span*fanIn {
		leader := place / (span * fanIn) * (span * fanIn)
		ranks := min(n-leader, span*fanIn)
		t.groups = append(t.groups, group{
			counter: lineAt(ep.System(m.at(leader), conduits.SystemWords), counterOff+l*lineBytes),
			size:    uint32((ranks + span - 1) / span),
		})
	}
	return t
}

func (t *tree) arrive(w word) error {
	p := w.phase() & 1
	t.own[p].Store(uint64(w)) // for explain and appendBlocked
	v := w & wordState
	for _, g := range t.groups {
		c := &g.counter.w[p]
		for {
			old := word(c.Load())
			v = combine(v, old)
			if old.phase()+1 == g.size {
				// All others of the group have come: no rank touches the counter
				// until the phase after next, which begins after our release.
				c.Store(0)
				break
			}
			if c.CompareAndSwap(uint64(old), uint64(old&^wordState+1<<wordPhase|v)) {
				return nil
			}
		}
	}
	t.release.w[p].Store(uint64(w&^wordState | v))
	for i := range t.wakes {
		if r := t.at(i); r != t.rank {
			t.ep.Wake(r)
		}
	}
	return nil
}

func (t *tree) verdict(phase uint32) (word, bool) {
	w := word(t.release.w[phase&1].Load())
	return w & wordState, w.phase() == phase
}

func (t *tree) spin(phase uint32) {
	p := &t.release.w[phase&1]
	if w := p.Load(); word(w).phase() != phase {
		conc.Changed(plain(p), w, looks)
	}
}

func (t *tree) appendBlocked(b []byte, phase uint32) []byte {
	return appendMissing(b, t.ep, t.members, phase)
}

func (t *tree) lacking(phase uint32) int { return lacking(t.ep, t.members, phase) }

func (t *tree) explain(phase uint32) (string, [2]uint32, bool) {
	return explainShared(t.ep, t.members, phase)
}

// arrivalWord is where rank writes in phases of a parity.
func arrivalWord(ep conduits.Endpoint, rank, parity int) *atomic.Uint64 {
	if ep.Size() == 2 && ep.System(1-rank, conduits.SystemWords) != nil {
		return &lineAt(ep.System(0, conduits.SystemWords), arrivalOff).w[2*rank+parity]
	}
	return &lineAt(ep.System(rank, conduits.SystemWords), arrivalOff).w[parity]
}

// arrival returns the word that rank wrote last for phases of phase's parity.
func arrival(ep conduits.Endpoint, rank int, phase uint32) word {
	return word(arrivalWord(ep, rank, int(phase&1)).Load())
}

// maxListed bounds the ranks that a message lists one by one.
const maxListed = 4

// appendMissing lists those of m that have not arrived in phase.
func appendMissing(b []byte, ep conduits.Endpoint, m members, phase uint32) []byte {
	var listed [maxListed]int
	missing := 0
	for i := range m.n {
		r := m.at(i)
		if arrival(ep, r, phase).phase() != phase {
			if missing < maxListed {
				listed[missing] = r
			}
			missing++
		}
	}
	return appendRanks(b, listed[:min(missing, maxListed)], missing)
}

// lacking is one of m that has left without having arrived in phase, or -1.
func lacking(ep conduits.Endpoint, m members, phase uint32) int {
	missing := func(r int) bool { return arrival(ep, r, phase).phase() != phase }
	for i := range m.n {
		r := m.at(i)
		if missing(r) && ep.Left(r) && missing(r) { // it may have arrived before it left
			return r
		}
	}
	return -1
}

// appendRanks writes "waiting for ranks 0, 3, 5, 7 and 29 more", where total
// ranks are meant and some of them listed.
func appendRanks(b []byte, listed []int, total int) []byte {
	switch total {
	case 0:
		return append(b, "all ranks have arrived"...)
	case 1:
		b = append(b, "waiting for rank "...)
	default:
		b = append(b, "waiting for ranks "...)
	}
	for i, r := range listed {
		switch {
		case i == 0:
		case i == total-1:
			b = append(b, " and "...)
		default:
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(r), 10)
	}
	if more := total - len(listed); more > 0 {
		b = append(b, " and "...)
		b = strconv.AppendInt(b, int64(more), 10)
		b = append(b, " more"...)
	}
	return b
}

// explainShared names the members of m that did not match in phase, which has
// completed here with a mismatch. The arrival words of a phase stay until the phase after next,
// which cannot begin before this rank has finished with this one.
func explainShared(ep conduits.Endpoint, m members, phase uint32) (why string, ids [2]uint32, differ bool) {
	a, b := disagree(ep, m, phase)
	switch {
	case a < 0:
		return "a rank signalled a mismatch", ids, false
	case b < 0:
		return "rank " + strconv.Itoa(a) + " signalled a mismatch", ids, false
	}
	ids = [2]uint32{arrival(ep, a, phase).id(), arrival(ep, b, phase).id()}
	return "ids differ: rank " + strconv.Itoa(a) + " notified " + utoa(ids[0]) +
		", rank " + strconv.Itoa(b) + " notified " + utoa(ids[1]), ids, true
}

// disagree finds, of m, one that signalled a mismatch, or two
// that notified different ids; -1 stands for those that there are not.
func disagree(ep conduits.Endpoint, m members, phase uint32) (a, b int) {
	a = -1
	for i := range m.n {
		r := m.at(i)
		w := arrival(ep, r, phase)
		switch {
		case w&wordMismatch != 0:
			return r, -1
		case w&wordNamed == 0 || b > 0:
		case a < 0:
			a = r
		case arrival(ep, a, phase).id() != w.id():
			b = r
		}
	}
	if b == 0 { // which no rank can be second to
		return -1, -1
	}
	return a, b
}

func utoa(v uint32) string { return strconv.FormatUint(uint64(v), 10) }
