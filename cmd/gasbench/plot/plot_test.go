package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

// svgElements reads a drawing; what is not well-formed ends the test.
func svgElements(t *testing.T, svg []byte, each func(e xml.StartElement)) (texts []string) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		tok, err := d.Token()
		if err == io.EOF {
			return texts
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			each(e)
		case xml.CharData:
			if s := strings.TrimSpace(string(e)); s != "" {
				texts = append(texts, s)
			}
		}
	}
}

// circles counts the points that are drawn, those of legends too.
func circles(t *testing.T, svg []byte) (n int) {
	t.Helper()
	svgElements(t, svg, func(e xml.StartElement) {
		for _, a := range e.Attr {
			if a.Name.Local == "d" && strings.Contains(a.Value, "A") {
				n++
			}
		}
	})
	return n
}

func TestCharts(t *testing.T) {
	var b bytes.Buffer
	c := chart{
		title: `<barrier> & "all"`, x: "bytes", y: "us", mark: sizeText,
		series: []series{
			{name: "a", x: []float64{2, 8, 32}, y: []float64{0, 5, 10}},
			{name: "of a model", x: []float64{2, 32}, y: []float64{2.5, 10}, model: true, color: 1},
		},
	}
	if err := drawCharts(&b, []chart{c, {title: "log", log: true, series: []series{{name: "b", x: []float64{1}, y: []float64{30}}}}}); err != nil {
		t.Fatal(err)
	}
	dashed := 0
	texts := svgElements(t, b.Bytes(), func(e xml.StartElement) {
		for _, a := range e.Attr {
			if a.Name.Local == "style" && strings.Contains(a.Value, "stroke-dasharray:4,3") {
				dashed++
			}
		}
	})
	if n := circles(t, b.Bytes()); n != 3+1+2 || dashed != 2 {
		t.Errorf("%d points and %d dashed lines, with those of legends; want 6 and 2", n, dashed)
	}
	for _, want := range []string{c.title, "bytes", "us", "2", "32", "0", "10", "a", "of a model", "log", "100 ns"} {
		if !slices.Contains(texts, want) {
			t.Errorf("texts %q lack %q", texts, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct{ largest, step, y1 float64 }{
		{10, 2, 10}, {11, 2, 12}, {0.7, 0.1, 0.7}, {99, 10, 100}, {34, 5, 35}, {1, 0.2, 1}, {0, 0.2, 1}, {12345, 2000, 14000},
	} {
		f, err := (&chart{series: []series{{x: []float64{1}, y: []float64{c.largest}}}}).fit()
		if err != nil || math.Abs(f.step-c.step) > 1e-9*c.step || math.Abs(f.y1-c.y1) > 1e-9*c.y1 || f.x1 <= f.x0 {
			t.Errorf("largest %v: %+v, %v; want steps of %v up to %v", c.largest, f, err, c.step, c.y1)
		}
	}
	f, err := (&chart{log: true, series: []series{{x: []float64{3, 100}, y: []float64{20, 20}}}}).fit()
	if want := (frame{2, 128, 10, 100, 0}); err != nil || f != want {
		t.Errorf("%+v, %v; want %+v", f, err, want)
	}
}

// TestMarks checks that marks lie in the frame, and are few enough to read.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		ticker plot.Ticker
		lo, hi float64
		want   string
	}{
		{doublings{tickText}, 2, 32, "2 4 8 16 32"},
		{doublings{tickText}, 1, 1 << 13, "2 8 32 128 512 2048 8192"},
		{doublings{sizeText}, 512, 2 << 30, "512 2K 8K 32K 128K 512K 2M 8M 32M 128M 512M 2G"},
		{decades{}, 10, 1e4, "10 ns 100 ns 1 us 10 us"},
		{decades{}, 1e6, 1e9, "1 ms 10 ms 100 ms 1 s"},
		{linear{0.1}, 0, 0.3, "0 0.1 0.2 0.3"},
		{linear{2000}, 0, 4000, "0 2000 4000"},
	} {
		var l []string
		for _, m := range c.ticker.Ticks(c.lo, c.hi) {
			if m.Value < c.lo*(1-1e-9) || m.Value > c.hi*(1+1e-9) {
				t.Errorf("%v to %v: mark at %v", c.lo, c.hi, m.Value)
			}
			if m.Label != "" {
				l = append(l, m.Label)
			}
		}
		if got := strings.Join(l, " "); got != c.want {
			t.Errorf("%v to %v: marks %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}

func TestChartErrors(t *testing.T) {
	for _, c := range []chart{
		{},
		{series: []series{{x: []float64{1}}}},
		{series: []series{{x: []float64{0}, y: []float64{1}}}},
		{series: []series{{x: []float64{1}, y: []float64{-1}}}},
		{series: []series{{x: []float64{1}, y: []float64{0}}}, log: true},
		{series: []series{{x: []float64{1}, y: []float64{math.NaN()}}}},
		{series: []series{{x: []float64{math.Inf(1)}, y: []float64{1}}}},
	} {
		if err := drawCharts(io.Discard, []chart{c}); err == nil {
			t.Errorf("no error for %+v", c)
		}
	}
	if err := drawCharts(io.Discard, nil); err == nil {
		t.Error("no error for no charts")
	}
}

// TestFigureCharts checks which figures become which curves.
func TestFigureCharts(t *testing.T) {
	lines := []line{
		{Bench: "rma/put", Conduit: "shm", Via: "a", Size: 8, Metric: "latency", Unit: "ns", Value: 10},
		{Bench: "rma/put", Conduit: "shm", Via: "a", Size: 64, Metric: "latency", Unit: "ns", Value: 20},
		{Bench: "rma/put", Conduit: "shm", Via: "b", Size: 64, Metric: "latency", Unit: "ns", Value: 50, P50: 30, Batch: 1},
		{Bench: "rma/put", Conduit: "shm", Via: "a", Size: 64, Metric: "bandwidth", Unit: "bytes/s", Value: 1e9},
		{Bench: "rma/put", Conduit: "udp", Auth: "none", Via: "a", Size: 64, Metric: "latency", Unit: "ns", Value: 30},
		{Bench: "sets", Conduit: "shm", Via: "Zipf", Size: 64, Metric: "hit_rate", Unit: "share", Value: 0.5, Ref: "predicted", RefValue: 0.25},
		{Bench: "sets", Conduit: "shm", Via: "Zipf", Size: 128, Metric: "hit_rate", Unit: "share", Value: 0, Ref: "predicted"},
		{Bench: "one", Conduit: "shm", Size: 16384, Metric: "register", Unit: "ns", Value: 5, Spread: [][2]float64{{4, 0.25}, {8, 0.75}}},
	}
	var b strings.Builder
	for _, c := range figureCharts(lines) {
		fmt.Fprintf(&b, "%s\n", c.title)
		for _, a := range c.series {
			fmt.Fprintf(&b, "  %s %v %v %v %d\n", a.name, a.x, a.y, a.model, a.color)
		}
	}
	const want = `rma/put: latency, shm
  a [8 64] [10 20] false 0
  b [64] [30] false 1
sets: hits, shm
  Zipf [64 128] [50 0] false 0
  Zipf, predicted [64 128] [25 0] true 0
one: times of 16K bytes, shm
  , register [4 8] [25 75] false 0
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestRead: what gasbench -json prints, of jobs of two ranks and simulated ones, becomes curves; a
// figure that is there several times is its median.
func TestRead(t *testing.T) {
	const in = `{"bench":"rma/put","conduit":"shm","ranks":2,"size":8,"metric":"latency","value":3,"unit":"ns","p50":1,"p99":1,"p999":1,"batch":4}
{"bench":"rma/put","conduit":"shm","ranks":2,"size":8,"metric":"latency","value":9,"unit":"ns","p50":2,"p99":1,"p999":1,"batch":4}
{"bench":"rma/put","conduit":"shm","ranks":2,"size":8,"metric":"latency","value":4,"unit":"ns","p50":7,"p99":1,"p999":1,"batch":4}
{"bench":"rma/put","conduit":"shm","ranks":2,"size":64,"metric":"latency","value":5,"unit":"ns","p50":5,"p99":1,"p999":1,"batch":0}
{"bench":"scale/barrier","what":"crossbar","profile":"extoll","ranks":2,"size":0,"metric":"latency","value":1358,"unit":"ns","expected":1400,"hops":1500,"events":14}
{"bench":"scale/barrier","what":"torus","profile":"extoll","ranks":2,"size":0,"metric":"latency","value":1400,"unit":"ns","expected":1400,"hops":1600,"events":14}
`
	lines, err := read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	lines = medians(lines)
	var got []string
	for _, c := range append(figureCharts(lines), scaleCharts(lines)...) {
		for _, a := range c.series {
			got = append(got, fmt.Sprintf("%s %s %v %v", c.title, a.name, a.x, a.y))
		}
	}
	want := []string{
		"rma/put: latency, shm  [8 64] [2 5]",
		"Dissemination barrier, simulated, profile extoll crossbar [2] [1.358]",
		"Dissemination barrier, simulated, profile extoll torus [2] [1.4]",
		"Dissemination barrier, simulated, profile extoll torus, longest ways [2] [1.6]",
		"Dissemination barrier, simulated, profile extoll model: ceil(log2 N) messages [2] [1.4]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := read(strings.NewReader("gasbench: no")); err == nil {
		t.Error("no error for what is no JSON")
	}
}

// TestNetworkCharts: a chart for each traffic and metric of networks, a curve for each of these.
func TestNetworkCharts(t *testing.T) {
	lines := []line{
		{Bench: "network/load", What: "mesh, west first, uniform", Metric: "delay", Unit: "packet times", Ranks: 4, X: 1, Value: 2},
		{Bench: "network/load", What: "mesh, west first, uniform", Metric: "delay", Unit: "packet times", Ranks: 4, X: 2, Value: 3},
		{Bench: "network/load", What: "torus, uniform", Metric: "delay", Unit: "packet times", Ranks: 4, X: 1, Value: 1},
		{Bench: "network/load", What: "torus, uniform", Metric: "blocked", Unit: "of requests", Ranks: 4, X: 1, Value: 0.5},
		{Bench: "network/load", What: "torus, uniform", Metric: "blocked", Unit: "of requests", Ranks: 4, X: 2, Value: 0.5},
	}
	l := figureCharts(medians(lines))
	if len(l) != 2 || len(l[0].series) != 2 || l[0].series[0].name != "mesh, west first" || !slices.Equal(l[0].series[0].y, []float64{2, 3}) || l[1].y != "of requests" {
		t.Errorf("%+v", l)
	}
}
