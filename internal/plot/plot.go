// Package plot draws charts of figures against powers of two as SVG, for
// documents: points joined by a line, and lines of a model.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Series is one curve.
type Series struct {
	Name string
	X, Y []float64 // as many of both; X more than 0
	// Model draws a dashed line without points.
	Model bool
	// Color is the number of one of a few colours.
	Color int
}

// Chart is one diagram: X in powers of two, Y from 0.
type Chart struct {
	Title, X, Y string
	Series      []Series
}

// The drawing, in its own units.
const (
	width, height = 720, 420 // of a chart
	left, right   = 72, 700  // of its frame
	top, bottom   = 40, 366
)

var colors = [...]string{"#1b5e9e", "#c2410c", "#2e7d32", "#6a1b9a", "#6b6b6b"}

// scale maps figures to the frame.
type scale struct {
	x0, x1 float64 // logarithms to base 2 at the left and right edge
	y1     float64 // figure at the upper edge
	step   float64 // between two marks of the y axis
}

func (s scale) x(v float64) float64 {
	return left + (math.Log2(v)-s.x0)/(s.x1-s.x0)*(right-left)
}

func (s scale) y(v float64) float64 { return bottom - v/s.y1*(bottom-top) }

// fit finds the scale that shows all of c.
func fit(c *Chart) (scale, error) {
	s := scale{x0: math.Inf(1), x1: math.Inf(-1)}
	for i := range c.Series {
		a := &c.Series[i]
		if len(a.X) != len(a.Y) {
			return s, fmt.Errorf("plot: %q: series %q has %d X and %d Y", c.Title, a.Name, len(a.X), len(a.Y))
		}
		for k, x := range a.X {
			y := a.Y[k]
			if !(x > 0) || !(y >= 0) || math.IsInf(x, 0) || math.IsInf(y, 0) {
				return s, fmt.Errorf("plot: %q: series %q has point (%v, %v); X is more than 0 and Y not less", c.Title, a.Name, x, y)
			}
			s.x0, s.x1 = min(s.x0, math.Floor(math.Log2(x))), max(s.x1, math.Ceil(math.Log2(x)))
			s.y1 = max(s.y1, y)
		}
	}
	if s.x0 > s.x1 {
		return s, fmt.Errorf("plot: %q: nothing to draw", c.Title)
	}
	if s.x0 == s.x1 {
		s.x1++
	}
	if s.y1 == 0 {
		s.y1 = 1
	}
	// Four to ten steps of 1, 2 or 5 times a power of ten.
	s.step = math.Pow(10, math.Floor(math.Log10(s.y1)))
	for _, k := range []float64{0.2, 0.5, 1} {
		if s.y1 <= 10*k*s.step {
			s.step *= k
			break
		}
	}
	s.y1 = s.step * math.Ceil(s.y1/s.step)
	return s, nil
}

// Write draws the charts under each other. The output is a document by itself.
func Write(w io.Writer, charts ...Chart) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		width, height*len(charts))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height*len(charts))
	for i := range charts {
		fmt.Fprintf(&b, `<g transform="translate(0,%d)">`+"\n", i*height)
		if err := charts[i].draw(&b); err != nil {
			return err
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

func (c *Chart) draw(b *bytes.Buffer) error {
	s, err := fit(c)
	if err != nil {
		return err
	}
	text := func(x, y float64, attr, v string) {
		fmt.Fprintf(b, `<text x="%s" y="%s" %s>`, number(x), number(y), attr)
		_ = xml.EscapeText(b, []byte(v)) // a buffer takes everything
		b.WriteString("</text>\n")
	}
	const middle, end = `text-anchor="middle"`, `text-anchor="end"`
	text((left+right)/2, top-16, middle+` font-size="14"`, c.Title)
	text((left+right)/2, bottom+36, middle, c.X)
	text(16, (top+bottom)/2, fmt.Sprintf(`%s transform="rotate(-90 16 %d)"`, middle, (top+bottom)/2), c.Y)
	line := func(x0, y0, x1, y1 float64, color string) {
		fmt.Fprintf(b, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"/>`+"\n", number(x0), number(y0), number(x1), number(y1), color)
	}
	for e := s.x0; e <= s.x1; e++ {
		x := s.x(math.Exp2(e))
		line(x, top, x, bottom, "#e4e4e4")
		text(x, bottom+16, middle, number(math.Exp2(e)))
	}
	for i := 0.0; i*s.step <= s.y1*(1+1e-9); i++ {
		y := s.y(i * s.step)
		line(left, y, right, y, "#e4e4e4")
		text(left-8, y+4, end, number(i*s.step))
	}
	line(left, top, left, bottom, "black")
	line(left, bottom, right, bottom, "black")
	for i := range c.Series {
		a := &c.Series[i]
		color := colors[a.Color%len(colors)]
		style := ""
		if a.Model {
			style = ` stroke-dasharray="5 4"`
		}
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s"%s points="`, color, style)
		for k, x := range a.X {
			fmt.Fprintf(b, "%s,%s ", number(s.x(x)), number(s.y(a.Y[k])))
		}
		b.WriteString("\"/>\n")
		if !a.Model {
			for k, x := range a.X {
				fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3" fill="%s"/>`+"\n", number(s.x(x)), number(s.y(a.Y[k])), color)
			}
		}
		y := float64(top + 14 + 18*i)
		fmt.Fprintf(b, `<line x1="%d" y1="%s" x2="%d" y2="%s" stroke="%s"%s stroke-width="2"/>`+"\n", left+12, number(y), left+40, number(y), color, style)
		text(left+48, y+4, "", a.Name)
	}
	return nil
}

// number prints v with at most two digits after the point.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }
