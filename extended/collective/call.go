package collective

import (
	"strconv"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/errs"
)

// kind is which collective a rank is in. It travels as a number.
type kind uint8

// The collectives; kindBad and kindPast are no calls.
const (
	kindBroadcast kind = iota
	kindReduce
	kindAllReduce
	kindGather
	kindAllGather
	kindExclusiveScan
	kindAgree
	kindLeave
	kindBad  // a call that failed its own checks
	kindPast // a call that was finished so long ago that it is forgotten
	kindScan
	kindScatter
	kindExchange
	kindReduceScatter
	kindGatherV
	kindAllGatherV
	kindExchangeV
	kindSplit
	kindClose
	kindBarrier
	kindOther // not the call that others have made; no more is known
	kindPhase // no call: the barrier of Config.Phases
	numKinds
)

var kindNames = [numKinds]string{
	kindBroadcast:     "Broadcast",
	kindReduce:        "Reduce",
	kindAllReduce:     "AllReduce",
	kindGather:        "Gather",
	kindAllGather:     "AllGather",
	kindExclusiveScan: "ExclusiveScan",
	kindBad:           "a collective with bad arguments",
	kindPast:          "over already",
	kindScan:          "Scan",
	kindScatter:       "Scatter",
	kindExchange:      "Exchange",
	kindReduceScatter: "ReduceScatter",
	kindGatherV:       "GatherV",
	kindAllGatherV:    "AllGatherV",
	kindExchangeV:     "ExchangeV",
	kindSplit:         "Split",
	kindClose:         "Close",
	kindBarrier:       "Barrier",
	kindOther:         "another call",
	kindPhase:         "a barrier",
}

// waitsForAll reports whether each rank waits for what all others give in calls of kind k.
func (k kind) waitsForAll() bool {
	switch k {
	case kindAllReduce, kindAllGather, kindExchange, kindReduceScatter, kindAllGatherV, kindExchangeV, kindBarrier:
		return true
	}
	return false
}

// kindOf is the kind that travelled as w.
func kindOf(w uint32) kind {
	if w&^uint32(kindNB) >= uint32(numKinds) {
		return kindPast
	}
	return kind(w)
}

// A call travels as this many arguments.
const callWords = 5

func (d call) words() [callWords]uint32 {
	lo, hi := am.Pack64(d.size)
	return [callWords]uint32{uint32(d.kind) | uint32(d.typ)<<8, d.root, d.elem, lo, hi}
}

// parseCall is the call of words, of which others may use the upper half of the first.
func parseCall(w []uint32) call {
	return call{form: form{kindOf(w[0] & 0xff), uint8(w[0] >> 8)}, root: w[1], elem: w[2], size: am.Unpack64(w[3], w[4])}
}

// name is the name of a call of kind k in messages.
func (c *Member) name(k kind) string {
	switch k {
	case kindAgree:
		return c.names.Agree
	case kindLeave:
		return c.names.Leave
	case kindBarrier | kindNB:
		return "BarrierNB or BarrierNotify"
	}
	if k&kindNB != 0 {
		return kindNames[k&^kindNB] + "NB"
	}
	return kindNames[k]
}

// call has the arguments that must be the same on all ranks in one collective call.
type call struct {
	size uint64 // bytes that a rank contributes, or is a unit of these
	root uint32
	elem uint32 // bytes of an element, or 0
	form
}

// form is apart from call so that the compiler keeps calls in registers, which it does with up to four fields: written to
// the stack field by field and read as a whole, they took 10 ns more of an AllReduce.
type form struct {
	kind kind
	typ  uint8 // Call.Type
}

// text is a call as messages name it.
func (c *Member) text(d call) string {
	s := c.name(d.kind)
	switch d.kind &^ kindNB {
	case kindBroadcast, kindScatter:
		s += " from rank " + strconv.Itoa(int(d.root))
	case kindGatherV:
		s += " to rank " + strconv.Itoa(int(d.root))
		return s + ", in units" + d.ofBytes()
	case kindAllGatherV, kindExchangeV:
		return s + ", in units" + d.ofBytes()
	case kindReduce, kindGather:
		s += " to rank " + strconv.Itoa(int(d.root))
	case kindAgree, kindLeave, kindBad, kindPast, kindSplit, kindClose, kindBarrier, kindOther, kindPhase:
		return s
	}
	return s + d.ofBytes()
}

// inElements is how the data of d are cut, in messages.
func (d call) inElements() string {
	if d.elem == 0 {
		return ", in one element"
	}
	return ", in elements of " + strconv.Itoa(int(d.elem))
}

func (d call) ofBytes() string { return " of " + strconv.FormatUint(d.size, 10) + " bytes" }

// matches reports whether ranks in calls c and d can finish them together. Those that
// agree find out themselves what they do not agree on.
func (c call) matches(d call) bool {
	return c == d || agreeing(c.kind) && agreeing(d.kind) && c.size == d.size
}

func agreeing(k kind) bool { return k == kindAgree || k == kindLeave }

// historyLen is how many calls are remembered. What a sender says it offers may
// come when all is over, and must then not be taken for a mismatch.
const historyLen = 16

// history is the call of number seq, one of the last historyLen.
func (c *Member) history(seq uint32) call {
	if o := c.inFlight(seq); o != nil && o.state != opEarly {
		return o.call
	}
	if i := int((seq - 1) % historyLen); i < len(c.past) {
		return c.past[i]
	}
	return call{form: form{kind: kindPast}}
}

// remember makes d the call of number seq, the next.
func (c *Member) remember(seq uint32, d call) {
	if len(c.past) < historyLen {
		c.past = append(c.past, d)
	} else {
		c.past[(seq-1)%historyLen] = d
	}
}

// note says that rank src waits for this one in call number seq: a receiver
// that is ready, or a sender.
type note struct {
	size     uint64 // this, root, elem, kind and typ are the call
	root     uint32
	elem     uint32
	seq, src uint32
	kind     kind
	typ      uint8
	set      bool
}

func (w *note) call() call {
	return call{form: form{w.kind, w.typ}, root: w.root, elem: w.elem, size: w.size}
}

// later says that w is about a call after number seq.
func (w *note) later(seq uint32) bool { return w.set && int32(w.seq-seq) > 0 }

// fault is a mismatch: in call seq, ranks a and b disagree.
type fault struct {
	seq, a, b    uint32
	callA, callB call
}

// err is the error of f.
func (c *Member) err(f *fault) error {
	a, b := c.text(f.callA), c.text(f.callB)
	if agreeing(f.callA.kind) && agreeing(f.callB.kind) { // nothing else can differ
		a, b = a+f.callA.ofBytes(), b+f.callB.ofBytes()
	}
	if a == b && f.callA.elem != f.callB.elem {
		a, b = a+f.callA.inElements(), b+f.callB.inElements()
	}
	if ta, tb := f.callA.typ, f.callB.typ; ta != tb && a == b { // nothing else tells them apart
		a, b = a+" ("+typeName(ta)+")", b+" ("+typeName(tb)+")"
	}
	if c.team != nil {
		return errs.BadArg("%s: collective calls of team %d do not match: call %d is %s on rank %d of the job and %s on rank %d; the team cannot be used any more",
			c.names.Package, c.team.number, f.seq-c.first(), a, f.a, b, f.b)
	}
	return errs.BadArg("%s: collective calls do not match: call %d is %s on rank %d and %s on rank %d; collectives cannot be used any more",
		c.names.Package, f.seq, a, f.a, b, f.b)
}

// A fault travels as this many arguments.
const faultWords = 3 + 2*callWords

// faultWords is the fault of c as it travels. Called with mu held.
func (c *Member) faultWords() [faultWords]uint32 {
	w := c.fault.words()
	w[faultTeam] |= c.number() << 16
	return w
}

// In the upper halves of these words are the number of the team, and whether the receiver
// tells the others.
const faultTeam, faultTell = 3, 3 + callWords

func (f fault) words() [faultWords]uint32 {
	a, b := f.callA.words(), f.callB.words()
	return [faultWords]uint32{
		f.seq, f.a, f.b,
		a[0], a[1], a[2], a[3], a[4],
		b[0], b[1], b[2], b[3], b[4],
	}
}

func parseFault(w []uint32) fault {
	return fault{seq: w[0], a: w[1], b: w[2], callA: parseCall(w[3:]), callB: parseCall(w[faultTell:])}
}
