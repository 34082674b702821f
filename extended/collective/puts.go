package collective

import (
	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// Between ranks that share no memory data of putLeast bytes and more are put to their place. The
// receiver registers where they land for the sender alone, says the address when it says that it is ready,
// and ends the registration when they have come. The sender sends one long message, whose handler finds them there.
// Where registration is refused, or the partner shares memory, data go in pieces, as less than that does.
// On two processors a broadcast of 1 MiB over udp took 640 us in messages of 4 KiB, and takes 335 so.
const putLeast = 16 << 10

// putWords is how many arguments handlerPut has.
const putWords = 2

// puts is what a call has under way of these.
type puts struct {
	// sources are of the long messages that were sent; the first busy of them may still be read.
	sources []*am.Event
	busy    int
	grounds []ground
}

// ground is memory that the partner of a link puts to.
type ground struct {
	key uint32
	at  segment.NLA
	r   segment.Registration
}

// puttable reports whether the data of s, which posts a buffer, may be put there. They may not if an earlier
// list's data, which the conduit may read once more, lie in the buffer.
func (w *work) puttable(s *stage) bool {
	switch {
	case !w.c.apart || len(s.buf) < putLeast:
		return false
	case w.kind == kindExchange, w.kind == kindExchangeV:
		return s.dir == direct
	case w.kind == kindAllReduce, agreeing(w.kind), w.kind == kindClose:
		return s.dir == direct || s.dir == up
	}
	return true
}

// open registers where the data of s land, and returns the address, or 0 if they are to come in pieces.
func (w *work) open(s *stage) segment.NLA {
	if !w.puttable(s) {
		return 0
	}
	src := w.c.job(int(s.rank))
	key := keyAt(int(s.dir), int(s.far), src)
	if w.puts == nil {
		w.puts = new(puts)
	}
	for i := range w.puts.grounds {
		if g := &w.puts.grounds[i]; g.key == key {
			return g.at // there was no credit to say so
		}
	}
	ep := w.c.e.Conduit()
	if ep.System(src, conduits.SystemWords) != nil || uint64(len(s.buf)) > ep.Limits().MaxLong {
		return 0
	}
	atu, err := ep.ATU()
	if err != nil {
		return 0
	}
	r, err := atu.Register(s.buf, segment.RightWrite, src)
	if err != nil {
		return 0
	}
	at, n := r.At(0)
	if n < uint64(len(s.buf)) {
		_ = atu.Deregister(r)
		return 0
	}
	w.puts.grounds = append(w.puts.grounds, ground{key, at, r})
	return at
}

// close ends the registration for s, whose data have come.
func (w *work) close(s *stage) {
	p, key := w.puts, keyAt(int(s.dir), int(s.far), w.c.job(int(s.rank)))
	for i := range p.grounds {
		if p.grounds[i].key == key {
			deregister(w.c, p.grounds[i].r)
			last := len(p.grounds) - 1
			p.grounds[i], p.grounds[last] = p.grounds[last], ground{}
			p.grounds = p.grounds[:last]
			return
		}
	}
}

// closeAll ends all registrations: no put reaches the call's buffers afterwards.
func (w *work) closeAll() {
	if w.puts == nil {
		return
	}
	for i := range w.puts.grounds {
		deregister(w.c, w.puts.grounds[i].r)
		w.puts.grounds[i] = ground{}
	}
	w.puts.grounds = w.puts.grounds[:0]
	if w.puts.busy > 0 {
		w.puts = nil // the events are in use
	}
}

func deregister(c *Member, r segment.Registration) {
	if atu, err := c.e.Conduit().ATU(); err == nil { // else the endpoint is closed, with all that was registered
		_ = atu.Deregister(r)
	}
}

// invite says that this rank is ready for the data of s, which go to address at if that is not 0.
func (w *work) invite(s *stage, at segment.NLA) (int, error) {
	if at == 0 {
		return w.tell(s, handlerReady)
	}
	to, d := w.c.job(int(s.rank)), w.call.words()
	lo, hi := am.Pack64(uint64(at))
	if w.waits() {
		return stageDone, w.c.e.RequestShort(to, handlerInvite, w.seq, w.word(s), d[0], d[1], d[2], d[3], d[4], lo, hi)
	}
	return sent(w.c.e.TryRequestShort(to, handlerInvite, w.seq, w.word(s), d[0], d[1], d[2], d[3], d[4], lo, hi))
}

// put sends the data of s to the address that the receiver has said.
func (w *work) put(s *stage) (came int, err error) {
	if w.puts == nil {
		w.puts = new(puts)
	}
	p := w.puts
	if p.busy == len(p.sources) {
		p.sources = append(p.sources, new(am.Event))
	}
	to, word, ev := w.c.job(int(s.rank)), w.word(s), p.sources[p.busy]
	if w.waits() {
		err = w.c.e.RequestLongNB(to, handlerPut, w.at, s.buf, ev, w.seq, word)
	} else {
		came, err = sent(w.c.e.TryRequestLong(to, handlerPut, w.at, s.buf, ev, w.seq, word|dirNB<<8))
	}
	if came == stageDone && err == nil {
		p.busy++
		w.at, w.sub = 0, 0
	}
	return came, err
}

// writes reports whether stage s may change memory whose data are being put.
func (w *work) writes(s *stage) bool {
	switch s.do {
	case stagePost:
		return s.dir != direct || w.kind == kindAllReduce
	case stageAwait:
		return s.buf != nil
	case stageFold:
		return w.kind != kindAllReduce // whose parts for others, which are being put, are not the one that is folded
	case stageCombine, stageCopy:
		return true
	}
	return false
}

// drain waits until no memory of the call is read by puts any more.
func (w *work) drain() (came int, err error) {
	for p := w.puts; p.busy > 0; p.busy-- {
		switch ev := p.sources[p.busy-1]; {
		case ev.Done():
		case w.waits():
			if err := w.c.e.WaitEvent(ev); err != nil {
				return stageDone, err
			}
		default:
			if err := w.c.e.Conduit().Err(); err != nil {
				return stageDone, err
			}
			return stageStalls, nil
		}
	}
	return stageDone, nil
}

// finishPuts ends the puts of a call that waits and has ended with err. What is still read then is so because the job has failed.
func (w *work) finishPuts(err error) error {
	if _, failed := w.drain(); err == nil {
		err = failed
	}
	w.closeAll()
	return err
}

// takeAll notes that all of the data were put in their place.
func (l *landing) takeAll(data []byte) bool {
	if l.state != landOpen || len(data) != len(l.buf) {
		return false
	}
	l.state = landBegun + len(data)
	return true
}
