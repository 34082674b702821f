// Onesided is a halo exchange as programs with MPI-2's one-sided communication have it, by package window: heat spreads
// along a ring of cells, of which each rank has as many, and in each step the ranks put their first and last cells into the
// halos of their neighbours.
//
//	go run ./examples/onesided -n 4                     # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/onesided -steps 1000
//
// It does so twice, and finds the same as one rank alone, bit by bit: by fences, for which all ranks wait for all, and by
// epochs (post, start, complete, wait), for which a rank waits for its neighbours. In the end each rank adds its heat to
// a sum at rank 0, which has no part in that, under a lock.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/window"
)

func main() {
	ranks := flag.Int("n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	cells := flag.Int("cells", 1000, "give each rank `C` cells")
	steps := flag.Int("steps", 200, "do `S` steps")
	flag.Parse()
	switch {
	case *ranks < 1:
		usage("-n %d: it must be at least 1", *ranks)
	case *cells < 1:
		usage("-cells %d: it must be at least 1", *cells)
	case *steps < 0:
		usage("-steps %d: it must be at least 0", *steps)
	case flag.NArg() > 0:
		usage("unexpected argument %q", flag.Arg(0))
	}
	gas.Exit(run(*ranks, *cells, *steps, os.Stdout))
}

func usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "onesided: "+format+"\n", args...)
	os.Exit(2)
}

// initial is the heat of a cell at the start.
func initial(i int) float64 { return float64(i * 7919 % 1009) }

// ring is this rank's part: its cells, with the last one of the rank before it in front of them and the first one of the next
// behind, twice, for the state that is and the one that comes.
type ring struct {
	n            *gas.Node
	cells        int
	w            [2]*window.Window[float64]
	own          [2][]float64
	before, next int
}

func newRing(n *gas.Node, cells int) (*ring, error) {
	r := &ring{n: n, cells: cells, before: (n.Rank() + n.Size() - 1) % n.Size(), next: (n.Rank() + 1) % n.Size()}
	for i := range r.w {
		p, err := gas.NewSlice[float64](n, cells+2)
		if err != nil {
			return nil, err
		}
		r.own[i], _ = p.LocalSlice(n, cells+2)
		if r.w[i], err = window.New(n, p, cells+2); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// step exchanges the halos of state now by exchange, and computes the next one.
func (r *ring) step(now int, exchange func(w *window.Window[float64], puts func() error) error) error {
	u, to, w := r.own[now], r.own[1-now], r.w[now]
	err := exchange(w, func() error {
		return errors.Join(w.Put(r.next, 0, u[r.cells:r.cells+1], gas.Shape{}), w.Put(r.before, r.cells+1, u[1:2], gas.Shape{}))
	})
	for i := 1; i <= r.cells; i++ {
		to[i] = spread(u[i-1], u[i], u[i+1])
	}
	return err
}

// spread is what becomes of a cell between two others.
func spread(left, cell, right float64) float64 { return cell + 0.25*(left-2*cell+right) }

// byFence has the puts between two fences.
func (r *ring) byFence(w *window.Window[float64], puts func() error) error {
	return errors.Join(w.Fence(), puts(), w.Fence())
}

// byEpochs has them in an epoch with the neighbours. The halos are free: what was put there two steps ago was
// read before this rank called Post.
func (r *ring) byEpochs(w *window.Window[float64], puts func() error) error {
	neighbours := []int{r.before, r.next}
	if r.before == r.next {
		neighbours = neighbours[:1]
	}
	return errors.Join(w.Post(neighbours...), w.Start(neighbours...), puts(), w.Complete(), w.Wait())
}

// alone is all cells after so many steps.
func alone(cells, steps int) []float64 {
	u, to := make([]float64, cells), make([]float64, cells)
	for i := range u {
		u[i] = initial(i)
	}
	for range steps {
		for i := range u {
			to[i] = spread(u[(i+cells-1)%cells], u[i], u[(i+1)%cells])
		}
		u, to = to, u
	}
	return u
}

// run is the job, which prints to out.
func run(ranks, cells, steps int, out io.Writer) error {
	return gas.Run(gas.Config{Ranks: ranks}, func(n *gas.Node) error {
		r, err := newRing(n, cells)
		if err != nil {
			return err
		}
		heat, err := gas.New[float64](n)
		if err != nil {
			return err
		}
		sum, err := window.New(n, heat, 1)
		if err != nil {
			return err
		}
		first := n.Rank() * cells
		want := alone(n.Size()*cells, steps)[first:][:cells]
		var had float64
		for _, exchange := range []func(*window.Window[float64], func() error) error{r.byFence, r.byEpochs} {
			had = 0
			for i := range cells {
				r.own[0][i+1] = initial(first + i)
			}
			for i := range steps {
				if err := r.step(i%2, exchange); err != nil {
					return err
				}
			}
			for i, u := range r.own[steps%2][1 : cells+1] {
				if math.Float64bits(u) != math.Float64bits(want[i]) {
					return fmt.Errorf("onesided: cell %d is %v; on one rank it is %v", first+i, u, want[i])
				}
				had += u
			}
		}
		if err := errors.Join(sum.Lock(0), sum.Accumulate(0, 0, []float64{had}, gas.Shape{}, gas.AddNBI[float64]), sum.Unlock(0), n.Barrier()); err != nil {
			return err
		}
		if n.Rank() != 0 {
			return nil
		}
		total, err := heat.Get(n)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%d ranks, %d steps of %d cells, by fences and by epochs: heat %.3f, every cell as on one rank\n", n.Size(), steps, n.Size()*cells, total)
		return err
	})
}
