// Plot draws the figures that gasbench -json prints, read from standard input, as SVG on standard
// output: times and hit rates by size, how times spread, and those of simulated jobs by number of
// ranks. It is a module of its own, whose library for drawing nothing else needs.
//
//	go run ./cmd/gasbench -conduit shm -run 'firehose/.*' -json >figures
//	go run -C cmd/gasbench/plot . <figures >firehose.svg
//
// Of figures that are there several times, as with -rounds, the medians are drawn.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// line has the fields of a figure of gasbench that are drawn; its command has the meanings of the fields.
// Those of simulated jobs have What and no Conduit.
type line struct {
	Bench, Conduit, Metric, Unit, Ref, Via, Auth, What, Profile, Beside string

	Ranks, Size, Batch, X      int
	Value, P50, Expected, Hops float64
	RefValue                   float64 `json:"ref_value"`
	Loss                       *float64
	Spread                     [][2]float64
}

func main() {
	lines, err := read(os.Stdin)
	if err == nil {
		lines = medians(lines)
		err = drawCharts(os.Stdout, append(figureCharts(lines), scaleCharts(lines)...))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "plot: %v\n", err)
		os.Exit(1)
	}
}

// read reads what gasbench -json prints.
func read(in io.Reader) ([]line, error) {
	var l []line
	for d := json.NewDecoder(in); ; {
		var f line
		switch err := d.Decode(&f); {
		case errors.Is(err, io.EOF):
			return l, nil
		case err != nil:
			return nil, fmt.Errorf("standard input, which should be of gasbench -json: %w", err)
		}
		l = append(l, f)
	}
}

// medians are the figures, each once.
func medians(lines []line) []line {
	var keys []string
	same := map[string][]line{}
	for _, l := range lines {
		k := fmt.Sprint(l.Bench, l.Conduit, l.Metric, l.Unit, l.Ref, l.Via, l.Auth, l.What, l.Profile, l.Beside, l.Ranks, l.Size, l.X, l.loss())
		if same[k] == nil {
			keys = append(keys, k)
		}
		same[k] = append(same[k], l)
	}
	var all []line
	for _, k := range keys {
		l := same[k][0]
		fields := func(l *line) []*float64 { return []*float64{&l.Value, &l.P50, &l.RefValue} }
		for i, to := range fields(&l) {
			var v []float64
			for n := range same[k] {
				v = append(v, *fields(&same[k][n])[i])
			}
			slices.Sort(v)
			*to = (v[(len(v)-1)/2] + v[len(v)/2]) / 2
		}
		all = append(all, l)
	}
	return all
}

// loss names the share of datagrams that is lost, if any may be.
func (l *line) loss() string {
	if l.Loss == nil {
		return ""
	}
	return ", " + strconv.FormatFloat(100**l.Loss, 'g', 3, 64) + " % lost"
}

// figureCharts are the curves of figures: median times by size, one chart for each benchmark
// and kind of job, how times of one size spread, and hit rates of working sets.
func figureCharts(lines []line) []chart {
	var charts []*chart
	index := map[string]*chart{}
	at := func(l *line, metric string) *chart {
		where := l.Conduit
		if l.X > 0 {
			where = fmt.Sprintf("%d nodes, simulated, profile %s", l.Ranks, l.Profile)
		}
		if l.Auth != "" {
			where += ", " + l.Auth
		}
		if l.Beside != "" {
			where += ", beside " + l.Beside
		}
		where += l.loss()
		title := fmt.Sprintf("%s: %s, %s", l.Bench, metric, where)
		c := index[title]
		if c == nil {
			c = &chart{title: title}
			index[title] = c
			charts = append(charts, c)
		}
		return c
	}
	for i := range lines {
		l := &lines[i]
		switch {
		case l.X > 0: // a network of finite buffers
			network, traffic := cutLast(l.What, ", ")
			c := at(l, traffic+", "+l.Metric)
			c.x, c.y = "load, % of a link", l.Unit
			if l.Bench == "network/locality" {
				c.x = "how far packets go"
			}
			c.point(network, false, float64(l.X), l.Value)
			continue
		case l.What != "" || l.Size <= 0 || !(l.Value >= 0):
			continue
		case l.Metric == "hit_rate":
			c := at(l, "hits")
			c.x, c.y, c.mark = "bytes of the working set", "hits, %", sizeText
			c.point(l.Via, false, float64(l.Size), 100*l.Value)
			c.point(l.Via+", "+l.Ref, true, float64(l.Size), 100*l.RefValue)
		case l.Unit == "ns" && l.Value > 0 && l.Ref != "target":
			c := at(l, l.Metric)
			c.x, c.y, c.log, c.mark = "bytes", "", true, sizeText
			if l.Bench == "am/short" {
				c.x, c.mark = "arguments", nil
			}
			v := l.Value
			if l.Batch > 0 {
				v = l.P50 // which other work of the machine changes less
			}
			c.point(l.Via, false, float64(l.Size), v)
		}
		if len(l.Spread) > 0 {
			c := at(l, "times of "+sizeText(float64(l.Size))+" bytes")
			c.x, c.y = "ns", "share, %"
			for _, p := range l.Spread {
				c.point(l.Via+", "+l.Metric, false, p[0], 100*p[1])
			}
		}
	}
	var l []chart
	for _, c := range charts {
		for _, a := range c.series {
			if len(a.x) > 1 { // one point is no curve
				l = append(l, *c)
				break
			}
		}
	}
	return l
}

// cutLast cuts s around the last sep.
func cutLast(s, sep string) (before, after string) {
	i := max(0, strings.LastIndex(s, sep))
	return s[:i], strings.TrimPrefix(s[i:], sep)
}

// point adds a point to the series of that name; a model is of the colour of the
// series before it.
func (c *chart) point(name string, model bool, x, y float64) {
	for i := range c.series {
		if a := &c.series[i]; a.name == name {
			a.x, a.y = append(a.x, x), append(a.y, y)
			return
		}
	}
	color := 0
	for _, a := range c.series {
		if !a.model {
			color++
		}
	}
	if model {
		color--
	}
	c.series = append(c.series, series{name: name, x: []float64{x}, y: []float64{y}, model: model, color: color})
}

// scaleCharts are the curves of simulated jobs among figures.
func scaleCharts(lines []line) []chart {
	var charts []chart
	for _, b := range []struct{ name, title, model string }{
		{"scale/barrier", "Dissemination barrier", "model: ceil(log2 N) messages"},
		{"scale/allreduce", "All-reduce of 8 bytes", "model: 2 ceil(log2 N) messages"},
	} {
		c := chart{x: "ranks", y: "us"}
		model := series{name: b.model, model: true}
		var topologies []string
		for _, l := range lines {
			if l.Bench == b.name && !slices.Contains(topologies, l.What) {
				topologies = append(topologies, l.What)
				c.title = b.title + ", simulated, profile " + l.Profile
			}
		}
		for i, topology := range topologies {
			a := series{name: topology, color: i}
			hops := series{name: topology + ", longest ways", model: true, color: i}
			for _, l := range lines {
				if l.Bench != b.name || l.What != topology {
					continue
				}
				n := float64(l.Ranks)
				a.x, a.y = append(a.x, n), append(a.y, l.Value/1000)
				hops.x, hops.y = append(hops.x, n), append(hops.y, l.Hops/1000)
				if i == 0 {
					model.x, model.y = append(model.x, n), append(model.y, l.Expected/1000)
				}
			}
			c.series = append(c.series, a)
			if topology != "crossbar" { // where every way is as long
				c.series = append(c.series, hops)
			}
		}
		if len(topologies) > 0 {
			model.color = len(topologies)
			c.series = append(c.series, model)
			charts = append(charts, c)
		}
	}
	return charts
}
