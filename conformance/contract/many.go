package contract

import (
	"bytes"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// checkManyAtOnce: what has been transferred of pieces (Access.Pieces) is as if each piece had
// been by itself. It stops at what is not registered any more.
func checkManyAtOnce(c *Case) {
	const n, size = 2, 5 * segment.PageSize
	var xs [n][2]*extra
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := p.bothKinds(size, &xs[p.Rank])
		rng := c.Random(uint64(p.Rank))
		// Each rank has its half of all memory.
		half, model := size/n, [n][2][]byte{}
		for dst := range n {
			for k := range 2 {
				model[dst][k] = make([]byte, half)
			}
		}
		from := p.Rank * half
		// cut is memory of dst in pieces that do not overlap, in any order, of both kinds.
		cut := func(dst int) (pieces []conduits.Piece, want []byte, there [][]byte) {
			local := make([]byte, 0, 2*half)
			for k := range 2 {
				for off := rng.IntN(100); off < half; off += rng.IntN(1 + half/8) {
					length := min(1+rng.IntN(20), half-off)
					if rng.IntN(20) == 0 {
						length = min(1+rng.IntN(half), half-off)
					}
					at := len(local)
					local = local[:at+length]
					pieces = append(pieces, conduits.Piece{At: xs[dst][k].at(from + off), Mem: local[at:]})
					there = append(there, model[dst][k][off:][:length])
					off += length
				}
			}
			rng.Shuffle(len(pieces), func(i, j int) {
				pieces[i], pieces[j] = pieces[j], pieces[i]
				there[i], there[j] = there[j], there[i]
			})
			return pieces, local, there
		}
		for step := range 40 {
			dst := rng.IntN(n)
			pieces, local, there := cut(dst)
			put := rng.IntN(2) == 0
			if put {
				Fill(local, uint64(step), 0)
			}
			for left := pieces; len(left) > 0; {
				k := 0
				if put {
					k = post.PutManyNow(p.EP, dst, left)
				} else {
					k = post.GetManyNow(p.EP, dst, left)
				}
				if k < 0 || k > len(left) {
					p.Fatalf("%d of %d pieces", k, len(left))
				}
				if k == 0 && put {
					p.Must(r.tryPut(dst, left[0].At, left[0].Mem))
				} else if k == 0 {
					p.Must(r.tryGet(left[0].Mem, dst, left[0].At))
				}
				left = left[max(k, 1):]
			}
			for i, q := range pieces {
				if put {
					copy(there[i], q.Mem)
				} else if !bytes.Equal(q.Mem, there[i]) {
					p.Fatalf("step %d: piece %d of %d, %d bytes at %v of rank %d: %x, want %x", step, i, len(pieces), len(q.Mem), q.At, dst, q.Mem, there[i])
				}
			}
		}
		r.over()
		p.Meet()
		p.deregister(xs[p.Rank][0])
		p.Meet()
		// Of a piece that is there and one that is not any more the first may be done.
		gone, left := conduits.Piece{At: xs[1-p.Rank][0].at(from), Mem: make([]byte, 10)}, make([]byte, 10)
		two := []conduits.Piece{{At: xs[1-p.Rank][1].at(from), Mem: left}, gone}
		if k := post.GetManyNow(p.EP, 1-p.Rank, two); k > 1 || k == 1 && !bytes.Equal(left, model[1-p.Rank][1][:10]) {
			p.Fatalf("%d of two pieces, one of which is not registered any more: %x", k, left)
		}
		if k := post.PutManyNow(p.EP, 1-p.Rank, []conduits.Piece{gone, gone}); k != 0 {
			p.Fatalf("%d pieces were put to what is not registered any more", k)
		}
		p.Meet()
		p.deregister(xs[p.Rank][1])
	})
}
