package fabric

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"
)

// spans are when each link carried something, in order of time.
type spans map[int][][2]Time

// busy reports whether at each time from a up to b one of the links carried
// something.
func (s spans) busy(a, b Time, links ...int) bool {
next:
	for a < b {
		for _, l := range links {
			i, ok := slices.BinarySearchFunc(s[l], a, func(x [2]Time, t Time) int { return cmp.Compare(x[0], t) })
			if !ok {
				i--
			}
			if i >= 0 && a < s[l][i][1] {
				a = s[l][i][1]
				continue next
			}
		}
		return false
	}
	return true
}

// checkWaiting tells whether packets waited for a reason, and in order.
func checkWaiting(t *rapid.T, f *Fabric, msgs []sent, uses []use) {
	s := spans{}
	for _, u := range uses {
		s[u.link] = append(s[u.link], [2]Time{u.start, u.start + u.occ})
	}
	if f.p.Topology == Crossbar {
		checkCrossbar(t, f, msgs, uses, s)
		return
	}
	// On its way a packet is at the next link a fixed time after it began on the
	// one before; that link serves it as soon as it has served what was there
	// before.
	type packetID struct {
		id     uint64
		packet uint32
	}
	prev := map[packetID]use{}
	arrived, free := map[int]Time{}, map[int]Time{}
	for _, u := range uses {
		k := packetID{u.id, u.packet}
		m := msgs[u.id]
		src, dst := uint32(m.src), uint32(m.dst)
		if u.link == int(f.injection(src)) {
			// Its packets share the interface with those of others.
			if u.start < m.at || !s.busy(m.at, u.start, u.link) {
				t.Fatalf("packet %v entered at %d waits until %d for nothing", k, m.at, u.start)
			}
			prev[k] = u
			continue
		}
		at := prev[k].start
		first := prev[k].link == int(f.injection(src))
		if !first {
			at += f.p.HopLatency
		}
		if u.link == int(f.ejection(dst)) {
			at += f.p.Latency
			if f.p.Topology == Torus {
				at -= f.p.HopLatency
			}
		}
		if at < arrived[u.link] {
			t.Fatalf("packet %v comes to %s at %d, served after one of %d", k, f.LinkName(u.link), at, arrived[u.link])
		}
		if want := max(at, free[u.link]); u.start != want {
			t.Fatalf("packet %v came to %s at %d, began at %d, not %d", k, f.LinkName(u.link), at, u.start, want)
		}
		arrived[u.link], free[u.link], prev[k] = at, u.start+u.occ, u
	}
}

// checkCrossbar does that for a crossbar, where a packet waits for its input,
// its output and room in its crosspoint buffer.
func checkCrossbar(t *rapid.T, f *Fabric, msgs []sent, uses []use, s spans) {
	type packet struct {
		id      uint64
		n       uint32
		in, out use
	}
	type key struct{ src, dst int }
	var order []key
	pairs := map[key][]packet{}
	inputs := map[int][]*packet{} // in the order of sending
	for _, u := range uses {
		m := msgs[u.id]
		k := key{m.src, m.dst}
		if u.link == 2*m.src {
			if pairs[k] == nil {
				order = append(order, k)
			}
			pairs[k] = append(pairs[k], packet{id: u.id, n: u.packet, in: u})
			continue
		}
		i := slices.IndexFunc(pairs[k], func(p packet) bool { return p.out.occ == 0 })
		p := &pairs[k][i]
		if p.id != u.id || p.n != u.packet {
			t.Fatalf("packet %d of message %d leaves a crosspoint before packet %d of message %d", u.packet, u.id, p.n, p.id)
		}
		p.out = u
	}
	for _, k := range order {
		ps := pairs[k]
		for i := range ps {
			p := &ps[i]
			inputs[k.src] = append(inputs[k.src], p)
			ready := msgs[p.id].at
			if i > 0 {
				last := ps[i-1]
				if p.id < last.id || p.in.start < last.in.start {
					t.Fatalf("message %d passes message %d between the same nodes", p.id, last.id)
				}
				ready = max(ready, last.in.start)
			}
			if p.in.start < ready || p.out.start < p.in.start {
				t.Fatalf("message %d of %d begins at %d in, %d out", p.id, ready, p.in.start, p.out.start)
			}
			switch c := f.p.Crosspoint; {
			case c == 0:
				if p.in.start != p.out.start {
					t.Fatalf("message %d begins at %d in, %d out, without a buffer", p.id, p.in.start, p.out.start)
				}
				if f.p.Queue == VOQ && !s.busy(ready, p.in.start, p.in.link, p.out.link) {
					t.Fatalf("message %d waits from %d to %d for nothing", p.id, ready, p.in.start)
				}
			default:
				room := Time(0)
				if i >= c {
					room = ps[i-c].out.start + ps[i-c].out.occ
				}
				if p.in.start < room {
					t.Fatalf("message %d goes at %d into a buffer that is full until %d", p.id, p.in.start, room)
				}
				if f.p.Queue == VOQ && !s.busy(max(ready, room), p.in.start, p.in.link) {
					t.Fatalf("message %d waits from %d to %d for nothing", p.id, max(ready, room), p.in.start)
				}
				if !s.busy(p.in.start, p.out.start, p.out.link) {
					t.Fatalf("message %d waits at its output from %d to %d for nothing", p.id, p.in.start, p.out.start)
				}
			}
		}
	}
	if f.p.Queue != Single {
		return
	}
	// One queue: messages in order; the head waits for its output or for room,
	// the others for the head.
	for _, ps := range inputs {
		slices.SortStableFunc(ps, func(a, b *packet) int { return cmp.Compare(a.in.start, b.in.start) })
		behind := map[int][]*packet{} // of each output
		for i, p := range ps {
			ready := msgs[p.id].at
			if i > 0 {
				last := ps[i-1]
				if p.id < last.id {
					t.Fatalf("message %d passes message %d in the queue of their input", p.id, last.id)
				}
				ready = max(ready, last.in.start+last.in.occ)
			}
			var ok bool
			if c, b := f.p.Crosspoint, behind[p.out.link]; c == 0 {
				ok = s.busy(ready, p.in.start, p.out.link)
			} else {
				if len(b) >= c {
					o := b[len(b)-c].out
					ready = max(ready, o.start+o.occ)
				}
				ok = p.in.start == ready
			}
			if !ok {
				t.Fatalf("message %d waits from %d to %d for nothing", p.id, ready, p.in.start)
			}
			behind[p.out.link] = append(behind[p.out.link], p)
		}
	}
}
