package plot

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
)

// element is what the tests look at.
type element struct {
	name string
	attr map[string]string
	text string
}

// parse reads an SVG; anything that is not well-formed ends the test.
func parse(t *testing.T, svg []byte) []element {
	t.Helper()
	var l []element
	var open []int
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch x := tok.(type) {
		case xml.StartElement:
			e := element{name: x.Name.Local, attr: map[string]string{}}
			for _, a := range x.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			open = append(open, len(l))
			l = append(l, e)
		case xml.CharData:
			if len(open) > 0 {
				l[open[len(open)-1]].text += string(x)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	return l
}

func float(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPoints(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, Chart{
		Title: `<barrier> & "all"`, X: "ranks", Y: "us",
		Series: []Series{
			{Name: "a", X: []float64{2, 8, 32}, Y: []float64{0, 5, 10}},
			{Name: "model", X: []float64{2, 32}, Y: []float64{2.5, 10}, Model: true, Color: 1},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var circles, dashed [][2]float64
	var texts []string
	for _, e := range parse(t, b.Bytes()) {
		switch {
		case e.name == "circle":
			circles = append(circles, [2]float64{float(t, e.attr["cx"]), float(t, e.attr["cy"])})
		case e.name == "polyline" && e.attr["stroke-dasharray"] != "":
			for _, p := range strings.Fields(e.attr["points"]) {
				x, y, _ := strings.Cut(p, ",")
				dashed = append(dashed, [2]float64{float(t, x), float(t, y)})
			}
		case e.name == "text":
			texts = append(texts, e.text)
		}
	}
	near := func(what string, got, want [][2]float64) {
		if len(got) != len(want) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
		for i := range got {
			if math.Abs(got[i][0]-want[i][0]) > 0.01 || math.Abs(got[i][1]-want[i][1]) > 0.01 {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
	}
	// 2 to 32 is four doublings, and 10 is at the top.
	near("points", circles, [][2]float64{{left, bottom}, {(left + right) / 2, (top + bottom) / 2.0}, {right, top}})
	near("model", dashed, [][2]float64{{left, bottom - (bottom-top)/4.0}, {right, top}})
	all := strings.Join(texts, "|")
	for _, want := range []string{`<barrier> & "all"`, "ranks|us", "2|4|8|16|32|0|2|4|6|8|10", "a|model"} {
		if !strings.Contains(all, want) {
			t.Errorf("texts %s lack %s", all, want)
		}
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct{ largest, step, y1 float64 }{
		{10, 2, 10}, {11, 2, 12}, {0.7, 0.1, 0.7}, {99, 10, 100}, {34, 5, 35}, {1, 0.2, 1}, {0, 0.2, 1}, {12345, 2000, 14000},
	} {
		s, err := fit(&Chart{Series: []Series{{X: []float64{1}, Y: []float64{c.largest}}}})
		if err != nil || math.Abs(s.step-c.step) > 1e-9*c.step || math.Abs(s.y1-c.y1) > 1e-9*c.y1 || s.x1 <= s.x0 {
			t.Errorf("largest %v: %+v, %v; want steps of %v up to %v", c.largest, s, err, c.step, c.y1)
		}
	}
}

func TestSeveral(t *testing.T) {
	one := Chart{Series: []Series{{X: []float64{4}, Y: []float64{1}}}}
	var b bytes.Buffer
	if err := Write(&b, one, one); err != nil {
		t.Fatal(err)
	}
	groups := 0
	for _, e := range parse(t, b.Bytes()) {
		if e.name == "g" {
			if want := "translate(0," + strconv.Itoa(groups*height) + ")"; e.attr["transform"] != want {
				t.Errorf("chart %d is at %s", groups, e.attr["transform"])
			}
			groups++
		}
	}
	if groups != 2 {
		t.Errorf("%d charts", groups)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []Chart{
		{},
		{Series: []Series{{X: []float64{1}}}},
		{Series: []Series{{X: []float64{0}, Y: []float64{1}}}},
		{Series: []Series{{X: []float64{1}, Y: []float64{-1}}}},
		{Series: []Series{{X: []float64{1}, Y: []float64{math.NaN()}}}},
		{Series: []Series{{X: []float64{math.Inf(1)}, Y: []float64{1}}}},
	} {
		if err := Write(io.Discard, c); err == nil {
			t.Errorf("no error for %+v", c)
		}
	}
}
