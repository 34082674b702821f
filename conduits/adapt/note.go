package adapt

import "github.com/argon-go/argon/conduits"

// way is how the message of a notification put travels.
type way uint8

const (
	afterData  way = iota // by itself, when the data is in place
	withData              // as the words of a conduits.NotifyPutter
	besideData            // by itself, at once; the data has a note with it
)

// numberShift is where a note's number begins in the length of an awaited message,
// which is that of memory with addresses of 40 bits.
const numberShift = 40

// noteKey names a notification put that arrives in two halves.
type noteKey struct {
	src    int
	number uint32
}

// note is the half that has come first: a letter, or the note itself.
type note struct {
	letter  *letter // nil: the note was first
	class   conduits.Class
	refused bool   // the data was
	regs    uint64 // registrations when the note came
}

// note returns the words that the data of l takes along to dst: all of the message, or else
// a note, and the message is sent.
func (e *Endpoint) note(dst int, c conduits.Class, l *letter) []uint32 {
	if all := l.words[:longWords+l.nwords]; len(all) <= e.notifyWords {
		l.way = withData
		return all
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &e.peers[dst]
	p.number = (p.number + 1) & (1<<conduits.TagBits - 1)
	l.way, l.number = besideData, p.number
	l.words[0] = header(kindAwaited, c, conduits.Tag(l.words[0]&(1<<conduits.TagBits-1)))
	l.words[longWords-1] |= l.number << (numberShift - 32)
	e.transmit(dst, l.words[:longWords+l.nwords], nil)
	l.words[0] = header(kindNote, 0, conduits.Tag(l.number))
	return l.words[:1]
}

// retract tells dst that the data of a message that it has or will have was refused,
// with mu held.
func (e *Endpoint) retract(dst int, number uint32) {
	e.out[0], e.out[1] = header(kindNote, 0, conduits.Tag(number)), 0
	e.transmit(dst, e.out[:2], nil)
}

// awaited takes a message that goes with a note, with mu held; false if there is one of
// that number.
func (e *Endpoint) awaited(c conduits.Class, l *letter) bool {
	k := noteKey{l.src, l.number}
	n, ok := e.notes[k]
	if !ok {
		e.keep(k, note{letter: l, class: c})
		return true
	}
	if n.letter != nil {
		return false
	}
	l.regs = n.regs
	e.peers[l.src].early--
	e.join(k, c, l, n.refused)
	return true
}

// noted takes a note of src, with mu held; false if there is one of that number, or
// more of them than src may have messages under way.
func (e *Endpoint) noted(src int, number uint32, refused bool) bool {
	k, p := noteKey{src, number}, &e.peers[src]
	n, ok := e.notes[k]
	if ok && n.letter != nil {
		e.join(k, n.class, n.letter, refused)
		return true
	}
	if ok || p.early == conduits.NumClasses*e.limits.Credits {
		return false
	}
	p.early++
	e.keep(k, note{refused: refused, regs: e.registrations()})
	return true
}

// keep keeps a half, with mu held.
func (e *Endpoint) keep(k noteKey, n note) {
	if e.notes == nil {
		e.notes = map[noteKey]note{}
	}
	e.notes[k] = n
}

// join has a message run whose data is in place, or forgets it, with mu held.
func (e *Endpoint) join(k noteKey, c conduits.Class, l *letter, refused bool) {
	delete(e.notes, k)
	if !refused {
		e.queues[c].Add(l)
		return
	}
	e.credit(l.src, c)
	e.release(l)
}
