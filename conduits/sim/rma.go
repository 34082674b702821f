package sim

import (
	"encoding/binary"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
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

// checkTarget is target with an error, at the initiator.
func (e *Endpoint) checkTarget(op string, dst int, a segment.NLA, n uint64, need segment.Rights) error {
	if e.closed {
		return errClosed
	}
	if err := e.Err(); err != nil {
		return err
	}
	e.thread(op)
	if err := conduits.CheckRemote(e, "sim: "+op, dst, a, n); err != nil {
		return err
	}
	if dst != e.rank && e.j.rights[dst]&need != need && conduits.InSegment(e, dst, a, n) {
		return errs.BadArg("sim: %s: rank %d attached its segment without the right to it (%v)", op, dst, need)
	}
	return nil
}

// Put has the card read src and put it to dst's segment.
func (e *Endpoint) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if err := e.checkTarget("put", dst, to, uint64(len(src)), segment.RightWrite); err != nil {
		return 0, err
	}
	j := e.j
	p := &j.p
	id, m := e.message(dst, conduits.Request, 0)
	e.j.m.access(m)
	m.kind, m.to, m.cookie, m.want, m.data = kindPut, to, cookie, want, src
	e.puts++
	gap := p.RMAGap
	if len(src) > p.Immediate {
		gap = p.PutGap
	}
	at := e.issue(1, gap, &e.rmaFree) + p.Unit
	j.trace.message(e.clock, 's', m)
	if len(src) <= p.Immediate {
		return e.immediate(id, m, at), nil
	}
	j.schedule(at+p.ATU+p.DMARead+j.faults.jitter(j), evRead, uint64(id))
	return 0, nil
}

// immediate sends a put whose data has been read with the descriptor.
func (e *Endpoint) immediate(id uint32, m *message, at Time) conduits.Event {
	j := e.j
	b := j.m.buffer(len(m.data))
	bulk.Copy(b, m.data)
	m.data, m.own = b, true
	have := m.want & conduits.SourceDone
	m.want &^= have
	j.schedule(at+j.faults.jitter(j), evInject, uint64(id))
	return have
}

// PutWord is an immediate put.
func (e *Endpoint) PutWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if n < 1 || n > 8 || n&(n-1) != 0 || uint64(to)%uint64(n) != 0 {
		return 0, errs.BadArg("sim: put of a word: %d bytes at %v: 1, 2, 4 or 8, aligned", n, to)
	}
	if err := e.checkTarget("put of a word", dst, to, uint64(n), segment.RightWrite); err != nil {
		return 0, err
	}
	p := &e.j.p
	id, m := e.message(dst, conduits.Request, 0)
	e.j.m.access(m)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	m.kind, m.to, m.cookie, m.want = kindPut, to, cookie, want
	e.puts++
	m.data, m.own = e.j.m.buffer(n), true
	copy(m.data, b[:n])
	have := want & conduits.SourceDone
	m.want &^= have
	at := e.issue(1, p.RMAGap, &e.rmaFree) + p.Unit
	e.j.trace.message(e.clock, 's', m)
	e.j.schedule(at+e.j.faults.jitter(e.j), evInject, uint64(id))
	return have, nil
}

// Get asks src's card for data.
func (e *Endpoint) Get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if err := e.checkTarget("get", src, from, uint64(len(dst)), segment.RightRead); err != nil {
		return 0, err
	}
	id, m := e.message(src, conduits.Request, 0)
	e.j.m.access(m)
	m.kind, m.to, m.cookie, m.want, m.dest = kindGet, from, cookie, want, dst
	e.gets++
	e.request(id, m)
	return 0, nil
}

// Atomic asks dst's card to perform an operation.
func (e *Endpoint) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	if err := conduits.CheckAtomic("sim: atomic", op, t, to); err != nil {
		return 0, 0, err
	}
	if err := e.checkTarget("atomic", dst, to, uint64(t.Size()), segment.RightAtomic); err != nil {
		return 0, 0, err
	}
	id, m := e.message(dst, conduits.Request, 0)
	e.j.m.access(m)
	m.kind, m.op, m.typ, m.to, m.a, m.b, m.cookie, m.want = kindAtomic, op, t, to, a, b, cookie, conduits.RemoteDone
	e.atomics++
	e.request(id, m)
	return 0, 0, nil
}

func (e *Endpoint) request(id uint32, m *message) {
	p := &e.j.p
	at := e.issue(1, p.RMAGap, &e.rmaFree) + p.Unit
	e.j.trace.message(e.clock, 's', m)
	e.j.schedule(at+e.j.faults.jitter(e.j), evInject, uint64(id))
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
		j.answer(id, m, kindGetReply)
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

// refuse ends message id, whose target has not registered what it asks for.
func (j *Job) refuse(id uint32, err error) {
	m := j.m.at(id)
	if m.kind == kindLong || m.want == 0 { // no caller asks what has become of it
		j.eps[m.dst].faults++
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
func (j *Job) answer(id uint32, m *message, k kind) {
	m.kind = k
	m.src, m.dst = m.dst, m.src
	j.schedule(j.now+j.faults.jitter(j), evInject, uint64(id))
}

// Post begins an access.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) { return conduits.PostBy(e, a) }
