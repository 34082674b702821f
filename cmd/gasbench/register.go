package main

import (
	"fmt"

	"github.com/argon-go/argon/segment"
)

// Kinds of memory: that of the Go heap, and that of the conduit's MapMemory.
const (
	kindHeap   = "heap"
	kindMapped = "mapped"
)

// registerSizes are those of figures 5-13 and 5-14 of Nüssle 2008, and
// spreadSize that of figures 5-15 and 5-16, bytes.
var registerSizes = []int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20}

const spreadSize = 16 << 10

// registerArea is the memory that is registered, piece by piece, bytes.
const registerArea = 64 << 20

// registrar registers pieces of some memory and takes that back.
type registrar struct {
	atu     *segment.ATU
	mem     []byte
	regions []segment.Registration
	next    int // where in mem the next piece begins
}

// ownCopy copies within memory of the own rank: what registration saves.
func (j *job) ownCopy(size int) op {
	if len(j.spare) < 2*size {
		j.spare = make([]byte, 2*registerSizes[len(registerSizes)-1])
		for i := range j.spare {
			j.spare[i] = byte(i) // pages that exist
		}
	}
	return copyOp(j.spare[:size], j.spare[len(j.spare)/2:][:size])
}

// newRegistrar prepares as much memory as registerArea of the kind.
func (j *job) newRegistrar(kind string) (*registrar, error) {
	atu, err := j.n.Layers().Conduit.ATU()
	if err != nil {
		return nil, err
	}
	r := &registrar{atu: atu, regions: make([]segment.Registration, 0, registerArea/pageSize)}
	if kind == kindHeap {
		r.mem = make([]byte, registerArea)
	} else {
		if r.mem, err = j.n.Layers().Conduit.MapMemory(registerArea); err != nil {
			return nil, err
		}
		j.mapped = append(j.mapped, r.mem)
	}
	for i := 0; i < len(r.mem); i += pageSize {
		r.mem[i] = 1 // pages that exist
	}
	return r, nil
}

// add registers the next piece of size bytes.
func (r *registrar) add(size int) error {
	if r.next+size > len(r.mem) {
		r.next = 0
	}
	g, err := r.atu.Register(r.mem[r.next:r.next+size], segment.RightsAll, segment.AnyPeer)
	if err != nil {
		return fmt.Errorf("register %d bytes: %w", size, err)
	}
	r.regions = append(r.regions, g)
	r.next += size
	return nil
}

// remove takes all pieces back.
func (r *registrar) remove() error {
	for _, g := range r.regions {
		if err := r.atu.Deregister(g); err != nil {
			return err
		}
	}
	r.regions = r.regions[:0]
	return nil
}

// inTurn makes an operation of the registration of size bytes, or of its end if ends: as
// many as fit into the memory, at most 64, are registered in a row and then taken back in
// a row, and only one of both is timed.
func (r *registrar) inTurn(j *job, size int, ends bool) op {
	add := func(k int) error {
		for range k {
			if err := r.add(size); err != nil {
				return err
			}
		}
		return nil
	}
	remove := func(int) error { return r.remove() }
	p := phases{timed: add, after: remove, group: min(64, len(r.mem)/size)}
	if ends {
		p.before, p.timed, p.after = add, remove, nil
	}
	return p.op(j)
}

func registerCases(j *job) ([]outcase, error) {
	var l []outcase
	for _, kind := range []string{kindHeap, kindMapped} {
		r, err := j.newRegistrar(kind)
		if err != nil {
			return nil, err
		}
		for _, size := range registerSizes {
			for _, ends := range []bool{false, true} {
				metric := register
				if ends {
					metric = deregister
				}
				l = append(l, outcase{
					via: kind, size: size, op: r.inTurn(j, size, ends),
					out: []output{{metric, refOwn}}, single: size == spreadSize,
				})
			}
		}
	}
	return l, nil
}
