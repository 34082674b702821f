package traffic

import (
	"slices"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Traffic is what the ranks of a job ask of their endpoints.
type Traffic struct {
	Name     string // the file, or what NPB was asked for
	Program  string
	Conduit  string // it was recorded on; "" if it was not
	Ranks    []Rank
	Messages []Message
}

// Rank is what one rank does, from the end of Attach on.
type Rank struct {
	Items    []Item
	Accesses []Access
	Arrivals int               // messages and completions that it gets
	Needed   []bool            // of each of them, in the order they came: a wait may be for it
	In       map[int32][]int32 // by source: numbers of messages, in the order they are sent
	Replies  []int32           // numbers of messages; see Message.Replies
	Segment  uint64            // bytes that are put to and got from
	Landings int               // accesses of others that change its memory, waits for which there are
	Took     time.Duration     // as recorded, from Attach to Close
	Waited   time.Duration     // of it, in waits
}

// Verb of an Item.
type Verb uint8

// What a rank does.
const (
	Pause Verb = iota // nothing but Item.Gap
	Send              // message N
	Post              // access N of its own
	Wait              // until it has the first Upto arrivals, and the first Landed landings; or, if N is not 0, N polls
	Poll              // N times
)

// Item is one step of a rank, outside of handlers.
type Item struct {
	Verb   Verb
	N      int32
	Upto   int32
	Last   int32 // of a Wait: an arrival, or -1, that it is for beside the first Upto ones
	Landed int32
	Gap    time.Duration // computation before
}

// Message is one message.
type Message struct {
	Src, Dst int32
	Seq      uint32 // number among those of the two ranks, as sent
	Class    conduits.Class
	Words    uint8
	Long     bool
	Want     conduits.Event // of a long one: SourceDone is asked for
	Access   int32          // of a long one that wants that: its number in Accesses
	Size     uint64
	At       uint64        // of a long one: offset in the segment, plus 1; 0 is registered memory
	Arrival  int32         // number among the arrivals of Dst; -1: it never came
	First    int32         // of Replies
	Replies  int32         // messages that its handler sends: Rank.Replies[First:][:Replies] of Dst
	Work     time.Duration // of its handler
}

// Access is a put, a get or an atomic, or the put of a long message.
type Access struct {
	Verb    conduits.Verb
	Rank    int32
	Message int32 // that it is the put of; -1: none
	Want    conduits.Event
	Size    uint64
	At      uint64   // as Message.At
	Arrival [2]int32 // of its SourceDone and RemoteDone among the rank's arrivals; -1: never
	Landing int32    // number among the landings of Rank; -1: no wait there is for it
	Work    time.Duration
}

// decoder makes a Traffic of records.
type decoder struct {
	t     *Traffic
	print []uint16        // of messages
	sent  map[pair]*queue // by ranks: in the order they were sent
	got   [][]arrived     // by rank
	lands [][]landing     // by rank
	looks [][]look
}

type pair struct{ src, dst int32 }

// queue is messages that no record says the arrival of.
type queue struct{ l []int32 }

// arrived is a message that a rank got.
type arrived struct {
	src     int32
	class   conduits.Class
	print   uint16
	arrival int32
	first   int32
	replies int32
	work    time.Duration
	at      int64 // in the file
}

// landing is an access that changed a rank's memory at about a time.
type landing struct {
	at     time.Duration
	src    int32
	access int32
}

// look is a wait for memory that was over at a time.
type look struct {
	at   time.Duration
	item int32
}

func newDecoder(t *Traffic) *decoder {
	n := len(t.Ranks)
	return &decoder{t: t, sent: map[pair]*queue{}, got: make([][]arrived, n), lands: make([][]landing, n), looks: make([][]look, n)}
}

// message adds a message that rank src sends.
func (d *decoder) message(src int, m Message, print uint16) int32 {
	t := d.t
	id := int32(len(t.Messages))
	p := pair{int32(src), m.Dst}
	q := d.sent[p]
	if q == nil {
		q = &queue{}
		d.sent[p] = q
	}
	q.l = append(q.l, id)
	m.Src, m.Arrival = int32(src), -1
	t.Messages = append(t.Messages, m)
	d.print = append(d.print, print)
	return id
}

// rank reads the records of a rank.
func (d *decoder) rank(me int, parts []part) error {
	t := d.t
	k := &t.Ranks[me]
	var (
		r       record
		mark    time.Duration // of the last recEnd
		since   time.Duration // that
		wait    = -1          // item of the wait that goes on
		since0  int           // arrivals before it
		handler = -1          // index in d.got of the request that is handled
		work    *time.Duration
		begun   []time.Duration // when accesses were
		done    []time.Duration // and when the rank knew that they were done; 0: never
		undone  []int32         // accesses whose time in done is that of the next recEnd
		ended   bool
	)
	for _, p := range parts {
		for b := p.b; len(b) > 0; {
			at := p.at + int64(len(p.b)-len(b))
			n, bad := r.read(b)
			wrong := func(format string, args ...any) error {
				return badFile(t.Name, at, "rank %d: "+format, append([]any{me}, args...)...)
			}
			if bad != "" {
				return wrong("byte %#x: %s", b[0], bad)
			}
			b = b[n:]
			if ended {
				return wrong("a record of kind %d behind the rank's end", r.kind)
			}
			since += r.gap
			item := func(v Verb, n int32) {
				k.Items = append(k.Items, Item{Verb: v, N: n, Gap: r.gap, Upto: int32(k.Arrivals), Last: -1})
			}
			peer := func(v uint64) error {
				if v >= uint64(len(t.Ranks)) {
					return wrong("rank %d as a peer; there are ranks 0 to %d", v, len(t.Ranks)-1)
				}
				return nil
			}
			reach := func(rank, at, n uint64) error {
				if n > maxTransfer || at+n > maxTransfer {
					return wrong("an access of %d bytes at offset %d; the most is %d", n, at, uint64(maxTransfer))
				}
				d.segment(rank, at, n)
				return nil
			}
			switch r.kind {
			case recSend, recLong:
				if err := peer(r.v[0]); err != nil {
					return err
				}
				if r.v[1] > conduits.MaxWords || r.kind == recSend && r.v[2] > maxPayload {
					return wrong("a message of %d words and %d bytes; the most is %d and %d", r.v[1], r.v[2], conduits.MaxWords, maxPayload)
				}
				m := Message{Dst: int32(r.v[0]), Class: r.class(), Words: uint8(r.v[1]), Size: r.v[2], Access: -1}
				if r.kind == recLong {
					if err := reach(r.v[0], r.v[3], r.v[2]); err != nil {
						return err
					}
					m.Long, m.At, m.Want = true, r.v[3], r.event()&conduits.SourceDone
					m.Access = int32(len(k.Accesses))
					k.Accesses = append(k.Accesses, Access{Verb: conduits.Put, Rank: m.Dst, Message: int32(len(t.Messages)), Want: m.Want, Size: m.Size, At: m.At, Arrival: [2]int32{-1, -1}, Landing: -1})
					begun = append(begun, mark+since)
				}
				id := d.message(me, m, r.hash)
				if m.Class == conduits.Request {
					item(Send, id)
					break
				}
				if handler < 0 {
					return wrong("a reply to rank %d, and no request before it", m.Dst)
				}
				d.got[me][handler].replies++
				k.Replies = append(k.Replies, id)
			case recPost:
				if err := peer(r.v[1]); err != nil {
					return err
				}
				a := Access{Verb: conduits.Verb(min(r.v[0], 255)), Rank: int32(r.v[1]), Message: -1, Want: r.event(), Size: r.v[2], At: r.v[3], Arrival: [2]int32{-1, -1}, Landing: -1}
				if err := reach(r.v[1], a.At, a.Size); err != nil {
					return err
				}
				if bad := a.unsound(); bad != "" {
					return wrong("verb %d, %d bytes at offset %d: %s", r.v[0], a.Size, a.At, bad)
				}
				item(Post, int32(len(k.Accesses)))
				k.Accesses = append(k.Accesses, a)
				begun = append(begun, mark+since)
			case recGot:
				if err := peer(r.v[0]); err != nil {
					return err
				}
				d.got[me] = append(d.got[me], arrived{src: int32(r.v[0]), class: r.class(), print: r.hash, arrival: int32(k.Arrivals), first: int32(len(k.Replies)), at: at})
				last := len(d.got[me]) - 1
				if r.class() == conduits.Request {
					handler = last
				}
				work = &d.got[me][last].work
				k.Arrivals++
			case recDone:
				i := len(k.Accesses) - int(r.v[0])
				ev := r.event()
				if i < 0 || r.v[0] == 0 || ev == 0 || k.Accesses[i].Want&ev != ev {
					return wrong("completion %d of the access %d before; there are %d", ev, r.v[0], len(k.Accesses))
				}
				a := &k.Accesses[i]
				for b := range 2 {
					if ev>>b&1 != 0 {
						if a.Arrival[b] >= 0 {
							return wrong("completion %d of the access %d before comes again", ev, r.v[0])
						}
						a.Arrival[b] = int32(k.Arrivals)
					}
				}
				if ev&conduits.RemoteDone != 0 {
					undone = append(undone, int32(i))
				}
				work = &a.Work
				k.Arrivals++
			case recWait:
				item(Wait, 0)
				wait, since0 = len(k.Items)-1, k.Arrivals
			case recEnd:
				if wait < 0 {
					return wrong("the end of a wait, and none has begun")
				}
				w := &k.Items[wait]
				w.Upto = int32(since0)
				if k.Arrivals > since0 {
					w.Last = int32(k.Arrivals - 1)
				} else {
					w.N = int32(min(r.v[1], mostSpins))
				}
				mark += time.Duration(r.v[0])
				since = 0
				for len(done) < len(begun) {
					done = append(done, 0)
				}
				for _, i := range undone {
					done[i] = mark
				}
				undone = undone[:0]
				if r.flags&flagMemory != 0 {
					d.looks[me] = append(d.looks[me], look{mark, int32(wait)})
				}
				wait = -1
			case recPolls:
				if r.v[0] > 1<<31-1 {
					return wrong("%d polls", r.v[0])
				}
				item(Poll, int32(min(r.v[0], mostPolls)))
			case recWork:
				if work != nil {
					*work += time.Duration(r.v[0])
				}
			case recClose:
				k.Took, k.Waited = time.Duration(r.v[0]), time.Duration(r.v[1])
				ended = true
			}
			if k.Arrivals > 1<<30 || len(k.Accesses) > 1<<30 || len(t.Messages) > 1<<30 {
				return wrong("more than 2^30 messages or accesses")
			}
		}
	}
	if !ended {
		last := parts[len(parts)-1]
		return badFile(t.Name, last.at+int64(len(last.b)), "rank %d: its records have no end: it has not left the job in good order", me)
	}
	// An access is performed half way between its beginning and its completion. Those whose
	// initiator did not ask take as long as the others.
	sum, known := time.Duration(0), time.Duration(0)
	for i, t := range done {
		if t > begun[i] {
			sum += t - begun[i]
			known++
		}
	}
	for i := range k.Accesses {
		a := &k.Accesses[i]
		if a.Verb == conduits.Get || int(a.Rank) == me {
			continue
		}
		half := sum / max(known, 1) / 2
		if i < len(done) && done[i] > begun[i] {
			half = (done[i] - begun[i]) / 2
		}
		d.lands[a.Rank] = append(d.lands[a.Rank], landing{begun[i] + half, int32(me), int32(i)})
	}
	return nil
}

const (
	// maxMedium is the largest medium payload of a rank that is recorded, as conduits/sim has it.
	maxMedium = 4096
	// mostSpins is how many polls are made again of a wait for something inside the rank.
	mostSpins = 4
	// mostPolls is how many polls by the way are made again of those in a row.
	mostPolls = 1 << 20
	// maxTransfer is the most bytes of an access, and of a segment.
	maxTransfer = 1 << 38
	// maxPayload is the largest medium payload.
	maxPayload = 1 << 20
)

// unsound says what is wrong with a.
func (a *Access) unsound() string {
	aligned := a.At == 0 || (a.At-1)%max(a.Size, 1) == 0
	switch a.Verb {
	case conduits.Put, conduits.Get:
		return ""
	case conduits.PutWord:
		if n := a.Size; n >= 1 && n <= 8 && n&(n-1) == 0 && aligned {
			return ""
		}
		return "words have 1, 2, 4 or 8 bytes and are aligned"
	case conduits.Atomic:
		if (a.Size == 4 || a.Size == 8) && aligned {
			return ""
		}
		return "atomics have 4 or 8 bytes and are aligned"
	}
	return "there is no such verb"
}

// segment has rank's segment reach to an access.
func (d *decoder) segment(rank, at, n uint64) {
	k := &d.t.Ranks[rank]
	k.Segment = max(k.Segment, max(at, 1)-1+n)
}

// link finds for each arrival the message that was sent, and for each wait for memory what had
// been put by then.
func (d *decoder) link() error {
	t := d.t
	for dst := range t.Ranks {
		k := &t.Ranks[dst]
		for len(k.Needed) < k.Arrivals {
			k.Needed = append(k.Needed, false)
		}
		for i := range k.Accesses {
			for _, a := range k.Accesses[i].Arrival {
				if a >= 0 {
					k.Needed[a] = true
				}
			}
		}
		for i := range d.got[dst] {
			g := &d.got[dst][i]
			q := d.sent[pair{g.src, int32(dst)}]
			found := -1
			if q != nil {
				found = slices.IndexFunc(q.l, func(id int32) bool { return t.Messages[id].Class == g.class && d.print[id] == g.print })
			}
			if found < 0 {
				return badFile(t.Name, g.at, "rank %d: a message of rank %d (%v, print %#04x) that this has not sent", dst, g.src, g.class, g.print)
			}
			id := q.l[found]
			if found == 0 {
				q.l = q.l[1:]
			} else {
				q.l = slices.Delete(q.l, found, found+1)
			}
			m := &t.Messages[id]
			m.Arrival, m.First, m.Replies, m.Work = g.arrival, g.first, g.replies, g.work
			if m.Class == conduits.Reply || m.Replies == 0 {
				k.Needed[g.arrival] = true
			}
		}
	}
	d.memory()
	if err := t.number(); err != nil {
		return err
	}
	return newOrder(t, d.looks).run()
}

// number gives messages their numbers among those of two ranks, which their tags have to hold.
func (t *Traffic) number() error {
	for i := range t.Messages {
		m := &t.Messages[i]
		k := &t.Ranks[m.Dst]
		if k.In == nil {
			k.In = map[int32][]int32{}
		}
		m.Seq = uint32(len(k.In[m.Src]))
		if m.Seq >= 1<<conduits.TagBits {
			return errs.NotSupported("traffic: %s: more than %d messages from rank %d to rank %d", t.Name, 1<<conduits.TagBits, m.Src, m.Dst)
		}
		k.In[m.Src] = append(k.In[m.Src], int32(i))
	}
	return nil
}
