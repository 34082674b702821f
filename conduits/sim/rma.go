package sim

import (
	"encoding/binary"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/segment"
)

// target is n bytes at a of dst's segment, if initiator has the right to them; a
// rank has all rights to its own.
func (j *Job) target(dst, initiator int, a segment.NLA, n uint64, need segment.Rights) ([]byte, bool) {
	if dst != initiator && j.rights[dst]&need != need {
		return nil, false
	}
	v := &j.eps[dst].view[0]
	return v.Bytes(a, n, v.Size())
}

// reach is n bytes at a of e's segment or of memory that e has registered, for an
// access by src that is made now. The former has been checked by the initiator;
// the latter is checked here, and a refusal is an error for it. No rank can take
// the memory away before something else happens.
func (e *Endpoint) reach(src int, a segment.NLA, n uint64, need segment.Rights) ([]byte, error) {
	if mem, ok := e.j.target(e.rank, src, a, n, 0); ok {
		return mem, nil
	}
	if n == 0 {
		return nil, nil
	}
	mem, u, err := e.Admit(src, a, n, need)
	if err != nil {
		return nil, err
	}
	u.Exit()
	return mem, nil
}

// Post gives an access to the card, which reads a long put's data itself; what is shorter is
// read with the descriptor.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return 0, nil
	}
	if e.closed {
		return 0, errClosed
	}
	if err := e.Err(); err != nil {
		return 0, err
	}
	e.thread(a.Verb.String())
	if err := conduits.CheckAccess(e, "sim", a); err != nil {
		return 0, err
	}
	e.tally.Lock()
	e.tally.Accessed(a)
	e.tally.Unlock()
	j := e.j
	p := &j.p
	id, m := e.message(a.Rank, conduits.Request, 0)
	j.m.access(m)
	m.kind, m.to, m.cookie, m.want = kindPut, a.At, a.Cookie, a.Wanted()
	have, gap, read := conduits.Event(0), p.RMAGap, false
	switch a.Verb {
	case conduits.Get:
		m.kind, m.dest = kindGet, a.Mem
	case conduits.Atomic:
		m.kind, m.op, m.typ, m.a, m.b = kindAtomic, a.Op, a.Type, a.A, a.B
	default:
		if read = a.Len() > uint64(p.Immediate) && a.Verb == conduits.Put; read {
			m.data, gap = a.Mem, p.PutGap
			break
		}
		m.data, m.own = j.m.buffer(int(a.Len())), true
		if a.Verb == conduits.PutWord {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], a.A)
			bulk.Copy(m.data, b[:a.Size])
		} else {
			bulk.Copy(m.data, a.Mem)
		}
		have = m.want & conduits.SourceDone
		m.want &^= have
	}
	parts := 1
	if a.Verb != conduits.Atomic {
		parts = j.commands(a.Rank, a.At, int(a.Len()))
	}
	at := e.issue(parts, int(a.Len())/parts, gap, &e.rmaFree) + p.Unit
	j.trace.message(e.clock, 's', m)
	if read {
		j.schedule(at+translateOwn(e, at, m.data)+p.DMARead+j.faults.jitter(j), evRead, uint64(id))
	} else {
		j.schedule(at+j.faults.jitter(j), evInject, uint64(id))
	}
	return have, nil
}

// perform does what message id asks of its target's memory.
func (j *Job) perform(id uint32) {
	m := j.m.at(id)
	e := &j.eps[m.dst]
	if e.crashed {
		j.lose(id)
		return
	}
	j.trace.message(j.now, 'w', m)
	n, need := uint64(len(m.data)), segment.RightWrite
	switch m.kind {
	case kindGet:
		n, need = uint64(len(m.dest)), segment.RightRead
	case kindAtomic:
		n, need = uint64(m.typ.Size()), segment.RightAtomic
	}
	mem, err := e.reach(int(m.src), m.to, n, need)
	if err != nil {
		j.refuse(id, err)
		return
	}
	if !e.touch(m, mem) {
		j.refuse(id, segment.Gone(int(m.src), m.to, n, need))
		return
	}
	if f := j.c.Landed; f != nil && m.kind != kindGet {
		f(int(m.src), int(m.dst), m.cookie)
	}
	switch m.kind {
	case kindLong:
		if t := e.MadeATU(); t != nil {
			m.regs = t.Registrations()
		}
		e.notify(true)
		j.schedule(j.now+j.p.DMAWrite, evMailbox, uint64(id))
	case kindPut:
		e.notify(true)
		if m.want == 0 {
			j.m.put(id)
			return
		}
		j.m.release(m)
		j.answer(id, m, kindAck)
	case kindGet:
		// The card reads the data of gets no faster than that of its own puts.
		wait := max(0, e.getFree-j.now)
		e.getFree = j.now + wait + j.p.PutGap
		j.answerAfter(wait, id, m, kindGetReply)
	case kindAtomic:
		e.notify(true)
		j.answer(id, m, kindAtomicReply)
	}
}

// touch does to mem what m asks for. It says no if mem has been unmapped before it
// was deregistered; a segment is always there.
func (e *Endpoint) touch(m *message, mem []byte) bool {
	if m.kind == kindGet {
		m.data, m.own = e.j.m.buffer(len(mem)), true
	}
	access := func() {
		switch m.kind {
		case kindGet:
			bulk.Copy(m.data, mem)
		case kindAtomic:
			m.a = apply(mem, m)
		default:
			bulk.Copy(mem, m.data)
		}
	}
	if conduits.InSegment(e, e.rank, m.to, uint64(len(mem))) {
		access()
		return true
	}
	return segment.Touch(mem, access)
}

// refuse ends message id, whose target has not registered the memory.
func (j *Job) refuse(id uint32, err error) {
	m := j.m.at(id)
	if m.kind == kindLong || m.want == 0 { // no caller asks what has become of it
		bump(&j.eps[m.dst].faults)
		j.lose(id)
		return
	}
	m.err = conduits.Fault("sim: "+m.kind.String(), int(m.dst), err)
	j.m.release(m)
	k := kindAck
	switch m.kind {
	case kindGet:
		k = kindGetReply
	case kindAtomic:
		k = kindAtomicReply
	}
	j.answer(id, m, k)
}

// answer sends m back as k.
func (j *Job) answer(id uint32, m *message, k kind) { j.answerAfter(0, id, m, k) }

func (j *Job) answerAfter(t Time, id uint32, m *message, k kind) {
	m.kind = k
	m.src, m.dst = m.dst, m.src
	j.schedule(j.now+t+j.faults.jitter(j), evInject, uint64(id))
}
