package traffic

import (
	"slices"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// order runs the traffic without time, to see that it comes to an end: that each wait is for
// what comes before it. For messages and completions a recording says so. When
// memory was changed is a guess by clocks of several processes, and a wait is not for what can only
// come after it: Landed is made smaller then.
type order struct {
	t     *Traffic
	looks [][]look // by rank: waits for memory, as long as they are not over
	ranks []progress
	todo  []int32 // ranks that may go on
	left  int     // ranks that have not come to their end
}

// progress is how far a rank has come.
type progress struct {
	at, low, lowLanded int
	got, landed        []bool
	queued             bool
}

func newOrder(t *Traffic, looks [][]look) *order {
	o := &order{t: t, looks: looks, ranks: make([]progress, len(t.Ranks))}
	for r := range t.Ranks {
		if len(t.Ranks[r].Items) > 0 {
			o.left++
		}
		o.ranks[r] = progress{got: make([]bool, t.Ranks[r].Arrivals), landed: make([]bool, t.Ranks[r].Landings)}
		o.again(int32(r))
	}
	return o
}

func (o *order) again(r int32) {
	if p := &o.ranks[r]; !p.queued {
		p.queued = true
		o.todo = append(o.todo, r)
	}
}

// run reports what stands still.
func (o *order) run() error {
	for o.left > 0 {
		for len(o.todo) > 0 {
			r := o.todo[len(o.todo)-1]
			o.todo = o.todo[:len(o.todo)-1]
			o.ranks[r].queued = false
			o.advance(r)
		}
		if o.left > 0 && !o.release() {
			for r := range o.ranks {
				if p := &o.ranks[r]; p.at < len(o.t.Ranks[r].Items) {
					return errs.BadArg("traffic: %s: rank %d: step %d waits for what comes after it: no run has gone so", o.t.Name, r, p.at)
				}
			}
		}
	}
	return nil
}

// advance runs rank r to its next wait that is not over, or to its end.
func (o *order) advance(r int32) {
	k, p := &o.t.Ranks[r], &o.ranks[r]
	if p.at == len(k.Items) {
		return
	}
	for ; p.at < len(k.Items); p.at++ {
		it := &k.Items[p.at]
		switch it.Verb {
		case Send:
			o.send(it.N)
		case Post:
			a := &k.Accesses[it.N]
			o.access(r, a)
		case Wait:
			if !p.ready(k, it) {
				return
			}
		}
	}
	o.left--
}

// ready reports whether a wait is over.
func (p *progress) ready(k *Rank, it *Item) bool {
	for p.low < int(it.Upto) && (p.got[p.low] || !k.Needed[p.low]) {
		p.low++
	}
	for p.lowLanded < int(it.Landed) && p.landed[p.lowLanded] {
		p.lowLanded++
	}
	return it.N > 0 || p.low >= int(it.Upto) && (it.Last < 0 || p.got[it.Last]) && p.lowLanded >= int(it.Landed)
}

// send has message id arrive, and what its handler sends. Replies have no replies.
func (o *order) send(id int32) {
	m := &o.t.Messages[id]
	if m.Access >= 0 {
		o.access(m.Src, &o.t.Ranks[m.Src].Accesses[m.Access])
	}
	if m.Arrival >= 0 {
		o.ranks[m.Dst].got[m.Arrival] = true
		o.again(m.Dst)
	}
	for _, reply := range o.t.Ranks[m.Dst].Replies[m.First:][:m.Replies] {
		o.send(reply)
	}
}

// access has an access of rank r be complete.
func (o *order) access(r int32, a *Access) {
	for _, k := range a.Arrival {
		if k >= 0 {
			o.ranks[r].got[k] = true
		}
	}
	if a.Landing >= 0 {
		o.ranks[a.Rank].landed[a.Landing] = true
		o.again(a.Rank)
	}
}

// release ends the wait for memory that was over first of all that go on, and reports whether there is one.
func (o *order) release() bool {
	first, when := -1, time.Duration(0)
	for r := range o.ranks {
		k, p := &o.t.Ranks[r], &o.ranks[r]
		for len(o.looks[r]) > 0 && int(o.looks[r][0].item) < p.at {
			o.looks[r] = o.looks[r][1:]
		}
		if p.at == len(k.Items) || len(o.looks[r]) == 0 || int(o.looks[r][0].item) != p.at {
			continue
		}
		it := k.Items[p.at]
		if it.Landed = int32(p.lowLanded); p.ready(k, &it) && (first < 0 || o.looks[r][0].at < when) {
			first, when = r, o.looks[r][0].at
		}
	}
	if first < 0 {
		return false
	}
	p := &o.ranks[first]
	items := o.t.Ranks[first].Items
	items[p.at].Landed = int32(p.lowLanded)
	o.again(int32(first))
	return true
}

// memory tells waits for memory what they are for.
func (d *decoder) memory() {
	for r := range d.t.Ranks {
		if len(d.looks[r]) == 0 {
			continue
		}
		l := d.lands[r]
		slices.SortStableFunc(l, func(a, b landing) int { return int(a.at - b.at) })
		k := &d.t.Ranks[r]
		for i, x := range l {
			d.t.Ranks[x.src].Accesses[x.access].Landing = int32(i)
		}
		k.Landings = len(l)
		i, landed := 0, 0
		for _, w := range d.looks[r] {
			for i < len(l) && l[i].at <= w.at {
				i++
			}
			// Of a wait that nothing is known of it counts how often it polled.
			if it := &k.Items[w.item]; i > landed {
				it.N, it.Landed = 0, int32(i)
				landed = i
			}
		}
	}
}
