package adapt

import "github.com/argon-go/argon/conduits"

// gifts are a Transport's capabilities. What is nil or zero the Endpoint does itself.
type gifts struct {
	notify      conduits.NotifyPutter
	notifyWords int // most words that notify carries; 0 if it is nil
	putWord     conduits.WordPutter
	rooms       conduits.Reserver
	lane        conduits.ReplyLane
	direct      conduits.Direct // asked for before Attach
	kicker      conduits.Kicker
	card        conduits.AtomicUnit
	coherent    [conduits.NumAtomicOps][conduits.NumAtomicTypes]bool // with the owner's processors
	alone       [2]bool                                              // words of 4, of 8 bytes in segments are the card's alone
}

// ask finds out what t has, but for direct. shared says that others reach segments by load
// and store.
func (g *gifts) ask(t conduits.Transport, shared bool) {
	if n, ok := conduits.CapabilityOf[conduits.NotifyPutter](t); ok && n.NotifyWords() > 0 {
		g.notify, g.notifyWords = n, n.NotifyWords()
	}
	g.putWord, _ = conduits.CapabilityOf[conduits.WordPutter](t)
	g.rooms, _ = conduits.CapabilityOf[conduits.Reserver](t)
	g.lane, _ = conduits.CapabilityOf[conduits.ReplyLane](t)
	g.kicker, _ = conduits.CapabilityOf[conduits.Kicker](t)
	if u, ok := conduits.CapabilityOf[conduits.AtomicUnit](t); ok {
		g.askAtomics(u, shared || g.direct != nil)
	}
}

// askAtomics decides which atomics the Transport does; conduits.AtomicUnit states the
// rule.
func (g *gifts) askAtomics(u conduits.AtomicUnit, shared bool) {
	var lacks, mixes [2]bool // of a width: an operation is missing; one is not the processors', too
	for op := range conduits.NumAtomicOps {
		for t := range conduits.NumAtomicTypes {
			if conduits.CheckAtomic("", op, t, 0) != nil {
				continue
			}
			w := width(t)
			switch u.AtomicOps(op, t) {
			case conduits.CoherentOwner:
				g.coherent[op][t], g.card = true, u
			case conduits.CoherentCard:
				mixes[w] = true
			default:
				lacks[w] = true
			}
		}
	}
	for w := range g.alone {
		if g.alone[w] = mixes[w] && !lacks[w] && !shared; g.alone[w] {
			g.card = u
		}
	}
}

// width is the index of t's size in gifts.alone.
func width(t conduits.AtomicType) int { return t.Size() / 8 }

// native reports whether an atomic on a word of dst, in its segment or else registered,
// is the Transport's.
func (e *Endpoint) native(dst int, inSegment bool, op conduits.AtomicOp, t conduits.AtomicType) bool {
	return inSegment && e.alone[width(t)] || dst != e.rank && e.coherent[op][t]
}
