package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is one diagram: x in powers of two, y from 0 or in powers of ten.
type chart struct {
	title, x, y string
	series      []series
	log         bool                 // y, ns, in powers of ten; else from 0
	mark        func(float64) string // names a power of two on the x axis; nil for the number
}

// series is one curve: as many x, more than 0, as y.
type series struct {
	name  string
	x, y  []float64
	model bool // dashed, without points
	color int  // the number of one of a few colours
}

// The drawing, in points.
const (
	chartWidth, chartHeight = 560, 300
	chartMargin             = 8
)

// palette is told apart by readers that see fewer colours, too (Okabe and Ito).
var palette = [...]color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff},
	color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	color.RGBA{0x50, 0x50, 0x50, 0xff},
	color.RGBA{0x8c, 0x6b, 0x1f, 0xff},
}

var gridColor = color.Gray{Y: 0xe4}

// doublings are the marks of an axis of powers of two: all of them, or every
// second, or fourth, if they would be too many to read, and the last one at any rate.
type doublings struct{ mark func(float64) string }

// Ticks implements plot.Ticker.
func (b doublings) Ticks(lo, hi float64) []plot.Tick {
	first, last := math.Round(math.Log2(lo)), math.Round(math.Log2(hi))
	step := 1.0
	for (last-first)/step > 12 {
		step *= 2
	}
	var l []plot.Tick
	for e := first; e <= last; e++ {
		t := plot.Tick{Value: math.Exp2(e)}
		if math.Mod(last-e, step) == 0 {
			t.Label = b.mark(t.Value)
		}
		l = append(l, t)
	}
	return l
}

// decades are the marks of an axis of times in powers of ten, ns.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(lo, hi float64) []plot.Tick {
	var l []plot.Tick
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for i := range 9 {
			v := float64(i+1) * math.Pow(10, e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if i == 0 {
				t.Label = timeText(v)
			}
			l = append(l, t)
		}
	}
	return l
}

// timeText is a time of so many ns with its unit.
func timeText(v float64) string {
	switch {
	case v >= 1e9:
		return tickText(v/1e9) + " s"
	case v >= 1e6:
		return tickText(v/1e6) + " ms"
	case v >= 1e3:
		return tickText(v/1e3) + " us"
	}
	return tickText(v) + " ns"
}

// sizeText is a power of two bytes in few letters.
func sizeText(v float64) string {
	for _, unit := range []string{"", "K", "M"} {
		if v < 1024 {
			return tickText(v) + unit
		}
		v /= 1024
	}
	return tickText(v) + "G"
}

// linear are the marks of an axis from 0.
type linear struct{ step float64 }

// Ticks implements plot.Ticker.
func (s linear) Ticks(_, hi float64) []plot.Tick {
	var l []plot.Tick
	for i := 0.0; i*s.step <= hi*(1+1e-9); i++ {
		l = append(l, plot.Tick{Value: i * s.step, Label: tickText(i * s.step)})
	}
	return l
}

// tickText is v without digits that only rounding has put there.
func tickText(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// frame is the part of the plane that a chart shows.
type frame struct{ x0, x1, y0, y1, step float64 }

// fit finds the frame that shows all of c.
func (c *chart) fit() (frame, error) {
	f := frame{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: math.Inf(-1)}
	for i := range c.series {
		a := &c.series[i]
		if len(a.x) != len(a.y) {
			return f, fmt.Errorf("plot: %q: series %q has %d x and %d y", c.title, a.name, len(a.x), len(a.y))
		}
		for k, x := range a.x {
			y := a.y[k]
			if !(x > 0) || !(y >= 0) || c.log && y == 0 || math.IsInf(x, 0) || math.IsInf(y, 0) {
				return f, fmt.Errorf("plot: %q: series %q has point (%v, %v), which has no place", c.title, a.name, x, y)
			}
			f.x0, f.x1 = min(f.x0, math.Exp2(math.Floor(math.Log2(x)))), max(f.x1, math.Exp2(math.Ceil(math.Log2(x))))
			f.y0, f.y1 = min(f.y0, y), max(f.y1, y)
		}
	}
	switch {
	case f.x0 > f.x1:
		return f, fmt.Errorf("plot: %q: nothing to draw", c.title)
	case f.x0 == f.x1:
		f.x1 *= 2
	}
	if c.log {
		f.y0 = math.Pow(10, math.Floor(math.Log10(f.y0)))
		f.y1 = max(math.Pow(10, math.Ceil(math.Log10(f.y1))), 10*f.y0)
		return f, nil
	}
	f.y0 = 0
	if f.y1 == 0 {
		f.y1 = 1
	}
	// Four to ten steps of 1, 2 or 5 times a power of ten.
	f.step = math.Pow(10, math.Floor(math.Log10(f.y1)))
	for _, k := range []float64{0.2, 0.5} {
		if f.y1 <= 10*k*f.step {
			f.step *= k
			break
		}
	}
	f.y1 = f.step * math.Ceil(f.y1/f.step)
	return f, nil
}

// plot makes a drawing of c; its legend stands apart.
func (c *chart) plot() (*plot.Plot, error) {
	f, err := c.fit()
	if err != nil {
		return nil, err
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.Padding = chartMargin
	for _, s := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		s.Variant, s.Size = "Sans", 9
	}
	p.Title.TextStyle.Font.Size = 11
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = f.x0, f.x1, f.y0, f.y1
	p.X.Padding, p.Y.Padding = 0, 0
	mark := c.mark
	if mark == nil {
		mark = tickText
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, doublings{mark}
	if c.log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	} else {
		p.Y.Tick.Marker = linear{f.step}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColor, gridColor
	p.Add(grid)
	p.Legend.Padding = 2
	for i := range c.series {
		a := &c.series[i]
		xys := make(plotter.XYs, len(a.x))
		for k := range xys {
			xys[k] = plotter.XY{X: a.x[k], Y: a.y[k]}
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, fmt.Errorf("plot: %q: series %q: %w", c.title, a.name, err)
		}
		line.Color = palette[a.color%len(palette)]
		if a.model {
			line.Dashes = []vg.Length{4, 3}
			p.Add(line)
			p.Legend.Add(a.name, line)
			continue
		}
		points.Color, points.Shape, points.Radius = line.Color, draw.CircleGlyph{}, 2
		p.Add(line, points)
		p.Legend.Add(a.name, line, points)
	}
	return p, nil
}

// drawCharts draws the charts under each other, as SVG.
func drawCharts(w io.Writer, charts []chart) error {
	if len(charts) == 0 {
		return errors.New("plot: nothing to draw: no figures by size or number of ranks")
	}
	size := vg.Point{X: chartWidth, Y: vg.Length(chartHeight * len(charts))}
	svg := vgsvg.New(size.X, size.Y)
	dc := draw.New(svg)
	rows := make([][]*plot.Plot, len(charts))
	legends := vg.Length(0)
	for i := range charts {
		p, err := charts[i].plot()
		if err != nil {
			return err
		}
		legends = max(legends, 1.15*p.Legend.Rectangle(dc).Size().X) // in case the font is a wider one
		rows[i] = []*plot.Plot{p}
	}
	// Curves are wherever they are: legends stand beside the diagrams, which are
	// all of a width.
	left := draw.Crop(dc, 0, -legends-chartMargin, 0, 0)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	tiles := draw.Tiles{
		Cols: 1, Rows: len(rows), PadY: 2 * chartMargin,
		PadTop: chartMargin, PadBottom: chartMargin, PadLeft: chartMargin, PadRight: chartMargin,
	}
	for i, row := range plot.Align(rows, tiles, left) {
		p, at := rows[i][0], row[0]
		l := p.Legend
		p.Legend = plot.NewLegend()
		p.Draw(at)
		l.Top, l.Left, l.XOffs = true, true, at.Max.X-dc.Min.X+chartMargin
		l.Draw(draw.Canvas{Canvas: dc.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: dc.Min.X, Y: at.Min.Y},
			Max: vg.Point{X: dc.Max.X, Y: at.Max.Y - 3*chartMargin},
		}})
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return err
	}
	// Few have the library's font; Arial's letters are as wide.
	const family = "font-family:Liberation Sans"
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte(family), []byte(family+",Arial,Helvetica,sans-serif")))
	return err
}
