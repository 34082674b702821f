package extended

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Prepared is a put or get of fixed places, which is prepared once and started many times, as a persistent request of MPI
// is: its arguments are checked, and exposed memory stays pinned and translated (the pre-translated descriptors of Banikazemi et
// al., section 6.2.2). On memory in reach of load and store that saves nothing.
type Prepared struct {
	x      *Initiator
	q      operation
	held   *firehose.Held    // or nil
	pieces []conduits.Access // of an access that goes through the conduit
}

// PreparePut prepares a PutBulkNB of src to address to of rank dst. src must not lie on a stack.
func PreparePut(x *Initiator, dst int, to segment.NLA, src []byte) (*Prepared, error) {
	p := &Prepared{x: x}
	p.q.put(dst, to, src, wantBulk)
	return p.prepare("extended: prepare put")
}

// PrepareGet prepares a GetNB of address from of rank src into dst, which must not lie on a stack.
func PrepareGet(x *Initiator, src int, from segment.NLA, dst []byte) (*Prepared, error) {
	p := &Prepared{x: x}
	p.q.get(src, from, dst)
	return p.prepare("extended: prepare get")
}

func (p *Prepared) prepare(what string) (*Prepared, error) {
	x, q := p.x, &p.q
	if x.ep != nil {
		if err := x.poll.Blocking("prepare"); err != nil {
			return nil, err
		}
	}
	moves, err := q.check(x, what)
	if err != nil || !moves || x.views.near(q.Rank) && !q.At.Exposed() {
		return p, err
	}
	rest := q.Mem
	add := func(at segment.NLA, n int) {
		a := q.Access
		a.At, a.Mem = at, rest[:n:n]
		p.pieces, rest = append(p.pieces, a), rest[n:]
	}
	if q.At.Exposed() {
		if p.held, err = x.exposed.Hold(q.Rank, q.At, q.Len()); err != nil || p.held == nil {
			return p, err
		}
		for _, h := range p.held.Pieces {
			add(h.At, h.Len)
		}
		return p, nil
	}
	for at := q.At; len(rest) > 0; {
		n := min(uint64(len(rest)), x.maxLong)
		add(at, int(n))
		at += segment.NLA(n)
	}
	return p, nil
}

// Start begins the transfer. A put takes what its source has then, which must stay as it is until the handle is
// synchronized; the destination of a get must not be touched for as long. It may be started anew before that if it is a put.
func (p *Prepared) Start() (Handle, error) {
	x, q := p.x, &p.q
	if p.pieces == nil {
		switch {
		case x == nil:
			return 0, errs.NotReady("extended: start of a transfer that was freed")
		case x.always:
		case q.verb == verbPut && x.views.put(q.Rank, q.At, q.Mem), q.verb == verbGet && x.views.get(q.Rank, q.At, q.Mem):
			return 0, nil
		}
		return q.begun(x)
	}
	if err := x.admit(); err != nil {
		return 0, err
	}
	f, err := x.begin(byHandle)
	if err != nil {
		return 0, err
	}
	x.table.note(f.name, q.name(byHandle), q.Rank)
	a := f.a
	for i := range p.pieces {
		k := &p.pieces[i]
		a.Verb, a.Want, a.Now, a.Rank, a.At, a.Mem, a.Size = k.Verb, k.Want, false, k.Rank, k.At, k.Mem, k.Size
		if err = f.post(); err != nil {
			break
		}
	}
	a.Mem = nil
	return f.detach(err)
}

// Free ends p, of which no transfer is under way, and gives back what it has pinned.
func (p *Prepared) Free() error {
	held := p.held
	*p = Prepared{}
	if held == nil {
		return nil
	}
	return held.Release()
}
