// Heat lets heat spread over an insulated plate, and writes a picture of it.
//
//	go run ./examples/heat -n 4 -o heat.png            # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/heat -o heat.png
//	go run ./examples/heat -size 1024 -steps 2000 -check -o ""
//
// The plate is a square of cells. In a step every cell gives a part of what it
// is warmer to each of its four neighbours:
//
//	u'[y][x] = u[y][x] + k (u[y-1][x] + u[y+1][x] + u[y][x-1] + u[y][x+1] - 4 u[y][x])
//
// Nothing leaves the plate, so all heat together stays what it was, which is
// checked at the end. With -check rank 0 also does all steps alone and compares
// every cell, bit by bit.
//
// Ranks have consecutive rows, and room for one row of each neighbour above and
// below (the halo). In a step each rank
//
//   - puts its first and last row into its neighbours' halos, one-sidedly,
//   - enters the barrier, whose first half says that this has been done,
//   - computes the rows that need no halo while the others arrive,
//   - leaves the barrier, and computes its first and last row.
//
// A second copy of everything takes the results, so one barrier a step is
// enough: a rank that is one step ahead puts into the other copy's halo.
package main

import (
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/argon-go/argon/gas"
)

type options struct {
	ranks, size, steps int
	check              bool
	png                string
}

// k is how much of a difference crosses in a step; above 1/4 nothing is stable.
const k = 0.24

const maxSize = 1 << 14

func main() {
	var o options
	flag.IntVar(&o.ranks, "n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	flag.IntVar(&o.size, "size", 512, "make the plate `S` by S cells")
	flag.IntVar(&o.steps, "steps", 1000, "do `T` steps")
	flag.BoolVar(&o.check, "check", false, "compare with doing it all on one rank")
	flag.StringVar(&o.png, "o", "heat.png", "write a picture to `FILE`; none if it is empty")
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "heat: %v\n", err)
		os.Exit(2)
	}
	gas.Exit(run(o, os.Stdout))
}

func (o *options) validate(args []string) error {
	switch {
	case o.ranks < 1:
		return fmt.Errorf("-n %d: it must be at least 1", o.ranks)
	case o.size < 2 || o.size > maxSize:
		return fmt.Errorf("-size %d: it must be 2 to %d", o.size, maxSize)
	case o.steps < 0:
		return fmt.Errorf("-steps %d: it must be at least 0", o.steps)
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	if o.png != "" {
		if i, err := os.Stat(filepath.Dir(o.png)); err != nil || !i.IsDir() {
			return fmt.Errorf("-o %s: there is no folder %s", o.png, filepath.Dir(o.png))
		}
	}
	return nil
}

// initial is the temperature of a cell at the start, 0 to 1: a warm ring, hot
// spots of different sizes, and a hot bar, on a cold plate.
func initial(size, x, y int) float64 {
	fx, fy := (float64(x)+0.5)/float64(size), (float64(y)+0.5)/float64(size)
	if r := math.Hypot(fx-0.5, fy-0.5); r > 0.30 && r < 0.34 {
		return 0.6
	}
	for i := range 5 {
		a := 2 * math.Pi * float64(i) / 5
		if math.Hypot(fx-0.5-0.17*math.Sin(a), fy-0.5+0.17*math.Cos(a)) < 0.02+0.01*float64(i) {
			return 1
		}
	}
	if fy > 0.9 && fy < 0.94 && fx > 0.15 && fx < 0.85 {
		return 0.9
	}
	return 0
}

// share is the rows of rank: from first, count of them. Ranks beyond the rows
// have none.
func share(size, ranks, rank int) (first, count int) {
	first = rank * size / ranks
	return first, (rank+1)*size/ranks - first
}

// plate is one rank's part of the plate: its rows with the halo's row above and
// below them, twice.
type plate struct {
	n     *gas.Node
	size  int
	rows  int // without the halo
	first int // of the plate
	// above and below are the ranks with the neighbouring rows, -1 for none.
	above, below int
	belowHalo    int // row of above's memory that is the halo below its rows

	at  [2]gas.Ptr[float64] // the same on all ranks
	own [2][]float64        // this rank's, as memory
	now int                 // which copy holds the present state
}

func newPlate(n *gas.Node, size int) (*plate, error) {
	p := &plate{n: n, size: size, above: -1, below: -1}
	p.first, p.rows = share(size, n.Size(), n.Rank())
	most := 0
	for r := range n.Size() {
		_, count := share(size, n.Size(), r)
		most = max(most, count)
		if count == 0 {
			continue
		}
		if r < n.Rank() {
			p.above, p.belowHalo = r, count+1
		} else if r > n.Rank() && p.below < 0 {
			p.below = r
		}
	}
	for i := range p.at {
		var err error
		if p.at[i], err = gas.NewSlice[float64](n, (most+2)*size); err != nil {
			return nil, fmt.Errorf("heat: a plate of %d by %d cells over %d ranks: %w", size, size, n.Size(), err)
		}
		var ok bool
		if p.own[i], ok = p.at[i].LocalSlice(n, (p.rows+2)*size); !ok {
			return nil, fmt.Errorf("heat: rank %d cannot reach its own memory", n.Rank())
		}
	}
	for y := range p.rows {
		row := p.row(0, y+1)
		for x := range row {
			row[x] = initial(size, x, p.first+y)
		}
	}
	return p, n.Barrier()
}

// row is row y of this rank's memory; 0 and p.rows+1 are the halo.
func (p *plate) row(which, y int) []float64 {
	return p.own[which][y*p.size:][:p.size]
}

// step computes the next state.
func (p *plate) step() error {
	n, now, next := p.n, p.now, 1-p.now
	if p.rows > 0 {
		if p.above >= 0 {
			if err := p.at[now].On(p.above).Add(p.belowHalo*p.size).PutSlice(n, p.row(now, 1)); err != nil {
				return err
			}
		} else {
			copy(p.row(now, 0), p.row(now, 1)) // insulated: as warm outside as inside
		}
		if p.below >= 0 {
			if err := p.at[now].On(p.below).PutSlice(n, p.row(now, p.rows)); err != nil {
				return err
			}
		} else {
			copy(p.row(now, p.rows+1), p.row(now, p.rows))
		}
	}
	if err := n.BarrierNotify(); err != nil {
		return err
	}
	for y := 2; y < p.rows; y++ {
		spread(p.row(next, y), p.row(now, y-1), p.row(now, y), p.row(now, y+1))
	}
	if err := n.BarrierWait(); err != nil {
		return err
	}
	for _, y := range []int{1, p.rows} {
		if y > 0 && y <= p.rows {
			spread(p.row(next, y), p.row(now, y-1), p.row(now, y), p.row(now, y+1))
		}
	}
	p.now = next
	return nil
}

// spread computes a row from its three predecessors.
func spread(to, above, row, below []float64) {
	last := len(row) - 1
	above, below, to = above[:len(row)], below[:len(row)], to[:len(row)]
	to[0] = row[0] + k*(above[0]+below[0]+row[1]-3*row[0])
	for x := 1; x < last; x++ {
		to[x] = row[x] + k*(above[x]+below[x]+row[x-1]+row[x+1]-4*row[x])
	}
	to[last] = row[last] + k*(above[last]+below[last]+row[last-1]-3*row[last])
}

// heat is the sum over this rank's rows.
func (p *plate) heat() (sum float64) {
	for y := 1; y <= p.rows; y++ {
		for _, v := range p.row(p.now, y) {
			sum += v
		}
	}
	return sum
}

// whole reads all rows from their ranks.
func (p *plate) whole() ([]float64, error) {
	all := make([]float64, p.size*p.size)
	for r := range p.n.Size() {
		first, count := share(p.size, p.n.Size(), r)
		if err := p.at[p.now].On(r).Add(p.size).GetSlice(p.n, all[first*p.size:][:count*p.size]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// alone computes all steps without other ranks.
func alone(size, steps int) []float64 {
	now, next := make([]float64, size*size), make([]float64, size*size)
	for i := range now {
		now[i] = initial(size, i%size, i/size)
	}
	row := func(u []float64, y int) []float64 { return u[min(max(y, 0), size-1)*size:][:size] }
	for range steps {
		for y := range size {
			spread(row(next, y), row(now, y-1), row(now, y), row(now, y+1))
		}
		now, next = next, now
	}
	return now
}

// run lets the heat spread and writes to out what came of it.
func run(o options, out io.Writer) error {
	return gas.Run(gas.Config{Ranks: o.ranks}, func(n *gas.Node) error {
		p, err := newPlate(n, o.size)
		if err != nil {
			return err
		}
		before, err := gas.Reduce(n, 0, p.heat(), gas.Sum[float64])
		if err != nil {
			return err
		}
		start := n.Now()
		for range o.steps {
			if err := p.step(); err != nil {
				return err
			}
		}
		after, err := gas.Reduce(n, 0, p.heat(), gas.Sum[float64])
		if err != nil {
			return err
		}
		took := n.Now() - start
		// All ranks have finished their last step when the sum is there, and
		// they keep their rows until rank 0 leaves as well.
		if n.Rank() != 0 {
			return nil
		}
		if _, err := fmt.Fprintf(out, "%d steps of %d by %d cells over %d ranks: %.3f s, %.0f million cells a second\n",
			o.steps, o.size, o.size, n.Size(), took.Seconds(), float64(o.steps)*float64(o.size)*float64(o.size)/took.Seconds()/1e6); err != nil {
			return err
		}
		if err := conserved(before, after, o.steps); err != nil {
			return err
		}
		all, err := p.whole()
		if err != nil {
			return err
		}
		coldest, warmest := extremes(all)
		if _, err := fmt.Fprintf(out, "heat %.3f before and after, from %.6f to %.6f a cell\n", after, coldest, warmest); err != nil {
			return err
		}
		if o.check {
			for i, want := range alone(o.size, o.steps) {
				if math.Float64bits(all[i]) != math.Float64bits(want) {
					return fmt.Errorf("heat: check: cell (%d, %d) is %v; on one rank it is %v", i%o.size, i/o.size, all[i], want)
				}
			}
			if _, err := fmt.Fprintln(out, "check: every cell is as on one rank"); err != nil {
				return err
			}
		}
		if o.png == "" {
			return nil
		}
		if err := writePNG(o.png, all, o.size); err != nil {
			return fmt.Errorf("heat: %w", err)
		}
		_, err = fmt.Fprintf(out, "wrote %s\n", o.png)
		return err
	})
}

// conserved checks that no heat was lost, but for rounding, which grows with the
// square root of the steps at most as long as it is random.
func conserved(before, after float64, steps int) error {
	if limit := 1e-12 * (1 + math.Sqrt(float64(steps))); math.Abs(after-before) > limit*before {
		return fmt.Errorf("heat: there was %v and is %v", before, after)
	}
	return nil
}

func extremes(u []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range u {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// palette goes from cold to hot.
var palette = []color.NRGBA{
	{0, 0, 24, 255},
	{40, 11, 84, 255},
	{101, 21, 110, 255},
	{159, 42, 99, 255},
	{212, 72, 66, 255},
	{245, 125, 21, 255},
	{250, 193, 39, 255},
	{252, 255, 164, 255},
}

// colour is the palette's at v, 0 to 1.
func colour(v float64) color.NRGBA {
	pos := min(max(v, 0), 1) * float64(len(palette)-1)
	i := min(int(pos), len(palette)-2)
	a, b, f := palette[i], palette[i+1], pos-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + f*(float64(y)-float64(x)))) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// writePNG paints the plate so that its warmest cell has the last colour of the
// palette.
func writePNG(name string, u []float64, size int) error {
	_, warmest := extremes(u)
	if warmest <= 0 {
		warmest = 1
	}
	img := image.NewNRGBA(image.Rect(0, 0, size, size))
	for i, v := range u {
		img.SetNRGBA(i%size, i/size, colour(v/warmest))
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := png.Encode(f, img); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
