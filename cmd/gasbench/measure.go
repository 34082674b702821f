package main

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
)

// op is something that can be done many times in a row.
type op struct {
	begin func(count int) error // before count operations; may be nil
	run   func(count int) error
	end   func() error // after the last one, timed; may be nil
	legs  float64      // messages in turn that one operation is: 2 for a round trip; else 1
	most  int          // bounds the operations of a burst, whose untimed parts may be much longer; 0: no bound
	parts int          // what one operation is made of, if it is so long that one is a burst; else 0

	// clocked does count operations in place of run and end and returns how long they
	// took, if a part of the work is not to be counted; nil otherwise.
	clocked func(count int) (time.Duration, error)
}

// messages is how many times shorter what is measured is than an operation.
func (o *op) messages() float64 { return o.legs * float64(max(o.parts, 1)) }

// warm is how many operations go before count that are counted.
func (o *op) warm(count int) int {
	if o.parts > 0 {
		return 0
	}
	return 4 + count/16
}

// least is the fewest operations of a burst.
func (o *op) least() int {
	if o.parts > 0 {
		return 1
	}
	return 4
}

// output is one line for a measured operation.
type output struct {
	metric string
	ref    string // reference, as in job.reference; "" for none
}

// outcase is one measured operation and the lines that come of it.
type outcase struct {
	bench string
	via   string
	size  int
	bytes int // for the reference, if size counts something else
	op    op
	out   []output
	// single has every operation timed by itself, however short, and the line show
	// how the times spread.
	single bool
	// goroutine is which of the rank's goroutines measures, see job.on; 0 and 1 are the
	// one that runs the benchmarks.
	goroutine int
}

// refSize is the payload, which a reference of the same has.
func (c *outcase) refSize() int {
	if c.bytes > 0 {
		return c.bytes
	}
	return c.size
}

func (c *outcase) title() string {
	s := fmt.Sprintf("%s %d", c.bench, c.size)
	if c.via != "" {
		s += " " + c.via
	}
	return s
}

// line is one figure, as -json prints it.
type line struct {
	Bench    string  `json:"bench"`
	Conduit  string  `json:"conduit"`
	Ranks    int     `json:"ranks"`
	Size     int     `json:"size"`
	Metric   string  `json:"metric"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Ref      string  `json:"ref,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
	Via      string  `json:"via,omitempty"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	P999     float64 `json:"p999"`
	Batch    int     `json:"batch"`
	RefValue float64 `json:"ref_value,omitempty"`
	Auth     string  `json:"auth,omitempty"`
	Datagram int     `json:"datagram,omitempty"`
	// Spread has, for operations that were timed one by one, times and the shares
	// of all operations that took about as long.
	Spread [][2]float64 `json:"spread,omitempty"`
	// Loss is the share of datagrams that a relay loses; nil if there is none.
	Loss *float64 `json:"loss,omitempty"`
	// Beside is the neighbour on the machine, by -beside.
	Beside string `json:"beside,omitempty"`
	// Low and High are the quartiles, over the bursts, of Ratio, or of Value if there is
	// no reference. 0: nothing is known of them.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// minSample is the shortest time that is worth looking at the clock for, ns.
const minSample = 500

// timed is the time of count operations, ns an operation, after some that are
// not counted.
func (j *job) timed(o *op, count int) (float64, error) {
	if err := o.warmUp(o.warm(count), count); err != nil {
		return 0, err
	}
	d, err := o.clock(count)
	return max(float64(d.Nanoseconds())-j.clock, 1) / float64(count) / o.messages(), err
}

// clock does count operations and returns how long they took.
func (o *op) clock(count int) (time.Duration, error) {
	if o.clocked != nil {
		return o.clocked(count)
	}
	start := time.Now()
	err := o.run(count)
	if err == nil {
		err = o.finish()
	}
	return time.Since(start), err
}

// warmUp announces warm and count operations and does warm of them.
func (o *op) warmUp(warm, count int) error {
	if o.begin != nil {
		if err := o.begin(warm + count); err != nil {
			return err
		}
	}
	if warm == 0 {
		return nil
	}
	_, err := o.clock(warm)
	return err
}

// finish ends operations.
func (o *op) finish() error {
	if o.end == nil {
		return nil
	}
	return o.end()
}

// sampled adds the times of samples of batch operations to h, ns a sample.
func (j *job) sampled(o *op, count, batch int, h *histogram) error {
	count = max(count/batch, 1) * batch
	if err := o.warmUp(o.warm(count), count); err != nil {
		return err
	}
	if o.clocked != nil {
		for i := 0; i < count; i += batch {
			d, err := o.clocked(batch)
			if err != nil {
				return err
			}
			h.add(max(float64(d.Nanoseconds())-j.clock, 1))
		}
		return nil
	}
	last := time.Now()
	for i := 0; i < count; i += batch {
		if err := o.run(batch); err != nil {
			return err
		}
		now := time.Now()
		h.add(max(float64(now.Sub(last).Nanoseconds())-j.clock, 1))
		last = now
	}
	return o.finish()
}

// maxCount bounds a burst when the clock does not tell.
const maxCount = 1 << 28

// calibrate finds how many operations take about d, and an operation's time.
func (j *job) calibrate(o *op, d time.Duration) (count int, ns float64, err error) {
	count = o.least()
	limit := maxCount
	if o.most > 0 {
		limit = o.most
	}
	for {
		// The best of three: a rank that is not running says nothing.
		tries := 3
		if o.parts > 0 {
			tries = 1
		}
		ns = math.Inf(1)
		for range tries {
			v, err := j.timed(o, count)
			if err != nil {
				return 0, 0, err
			}
			ns = min(ns, v)
		}
		total := ns * o.messages() * float64(count)
		if total >= float64(d)/4 || count >= limit {
			return max(o.least(), min(int(float64(d)/(ns*o.messages())), limit)), ns, nil
		}
		grow := min(16, max(2, float64(d)/2/total))
		count = min(int(float64(count)*grow), limit)
	}
}

// cycle is one burst of the measurement between bursts of a reference, or a summary
// of many.
type cycle struct {
	value, ref, ratio float64
	low, high         float64 // of a summary: the quartiles of the ratios
}

// steady is how far the references before and after a burst may differ.
const steady = 1.2

// summarise returns the medians over the cycles that lie between like
// references, or over all if these are too few to tell. before and after hold
// the references of cycle i at i and i+1.
func summarise(values, refs []float64) cycle {
	var good, all []cycle
	for i, v := range values {
		a, b := refs[i], refs[i+1]
		c := cycle{value: v, ref: (a + b) / 2}
		c.ratio = c.value / c.ref
		all = append(all, c)
		if max(a, b) <= steady*min(a, b) {
			good = append(good, c)
		}
	}
	if len(good) < (len(all)+3)/4 {
		good = all
	}
	pick := func(f func(cycle) float64) []float64 {
		v := make([]float64, len(good))
		for i, c := range good {
			v[i] = f(c)
		}
		return v
	}
	ratios := pick(func(c cycle) float64 { return c.ratio })
	s := cycle{
		value: median(pick(func(c cycle) float64 { return c.value })),
		ref:   median(pick(func(c cycle) float64 { return c.ref })),
		ratio: median(ratios),
	}
	s.low, s.high = quartiles(ratios)
	return s
}

// quartiles are the values that a quarter of all is below, and above.
func quartiles(v []float64) (low, high float64) {
	v = slices.Clone(v)
	slices.Sort(v)
	cut := (len(v) - 1) / 4
	return v[cut], v[len(v)-1-cut]
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	if k := len(v) / 2; len(v)%2 == 1 {
		return v[k]
	}
	k := len(v) / 2
	return (v[k-1] + v[k]) / 2
}

// measure takes c in turn with its references, all by c's goroutine.
func (j *job) measure(c *outcase, o options) (lines []line, err error) {
	err = j.on(c.goroutine, func() error {
		lines, err = j.measureHere(c, o)
		return err
	})
	return lines, err
}

// measureHere is measure by the calling goroutine.
func (j *job) measureHere(c *outcase, o options) ([]line, error) {
	var names []string
	for _, out := range c.out {
		if out.ref != "" && !slices.Contains(names, out.ref) {
			names = append(names, out.ref)
		}
	}
	burst := o.time / time.Duration(o.bursts*(len(names)+2))
	type reference struct {
		op     op
		count  int
		values []float64
	}
	refs := make([]reference, len(names))
	for i, name := range names {
		r := &refs[i]
		var err error
		if r.op, err = j.reference(name, c.refSize()); err != nil {
			return nil, err
		}
		if r.count, _, err = j.calibrate(&r.op, burst); err != nil {
			return nil, err
		}
	}
	count, ns, err := j.calibrate(&c.op, burst)
	if err != nil {
		return nil, err
	}
	batch := max(1, int(math.Ceil(minSample/(ns*c.op.messages()))))
	if c.single {
		batch = 1
	}

	takeRefs := func() error {
		for i := range refs {
			r := &refs[i]
			v, err := j.timed(&r.op, r.count)
			if err != nil {
				return err
			}
			r.values = append(r.values, v)
		}
		return nil
	}
	var h histogram
	var values []float64
	for range o.bursts {
		if err := takeRefs(); err != nil {
			return nil, err
		}
		v, err := j.timed(&c.op, count)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		if err := j.sampled(&c.op, count, batch, &h); err != nil {
			return nil, err
		}
	}
	if err := takeRefs(); err != nil {
		return nil, err
	}

	var lines []line
	for _, out := range c.out {
		l := j.newLine(c.via, c.size)
		l.Bench, l.Metric, l.Unit, l.Ref, l.Batch = c.bench, out.metric, "ns", out.ref, batch
		scale := 1 / (float64(batch) * c.op.messages())
		l.P50, l.P99, l.P999 = h.quantile(0.50)*scale, h.quantile(0.99)*scale, h.quantile(0.999)*scale
		if i := slices.Index(names, out.ref); i >= 0 {
			s := summarise(values, refs[i].values)
			l.Value, l.RefValue, l.Ratio = s.value, s.ref, s.ratio
			l.Low, l.High = s.low, s.high
		} else {
			l.Value = median(values)
			l.Low, l.High = quartiles(values)
		}
		switch out.metric {
		case bandwidth:
			l.invert("bytes/s", float64(l.Size))
		case updateRate:
			l.invert("1/s", 1)
		}
		if c.single {
			l.Spread = h.spread()
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// invert turns times an operation, of so many of something, into what a second has of it.
func (l *line) invert(unit string, each float64) {
	l.Unit = unit
	amount := each * 1e9
	for _, v := range []*float64{&l.Value, &l.P50, &l.P99, &l.P999, &l.RefValue} {
		if *v > 0 {
			*v = amount / *v
		}
	}
	if l.Low > 0 {
		of := 1.0
		if l.Ratio == 0 {
			of = amount
		}
		l.Low, l.High = of/l.High, of/l.Low
	}
	if l.Ratio > 0 {
		l.Ratio = 1 / l.Ratio
	}
}

// clockCost is the time that reading the clock adds to a sample, ns.
func clockCost() float64 {
	const samples = 1001
	v := make([]float64, samples)
	last := time.Now()
	for i := range v {
		now := time.Now()
		v[i] = float64(now.Sub(last).Nanoseconds())
		last = now
	}
	return median(v)
}

// histogram counts times in 128 steps for each power of two: its quantiles are
// less than 0.8 % too small.
type histogram struct {
	counts [64 * 128]uint32
	total  int
}

func (h *histogram) add(ns float64) {
	v := uint64(ns)
	i := v
	if v >= 256 {
		e := uint64(63-bits.LeadingZeros64(v)) - 7 // v>>e has 8 bits, the first of them set
		i = 128*(e+1) + v>>e - 128
	}
	h.counts[i]++
	h.total++
}

// spread is the share of times in each eighth of a power of two, from the first
// that has one in a thousand to the last that has: ns and share.
func (h *histogram) spread() [][2]float64 {
	var l [][2]float64
	last := 0
	for i := 0; i < len(h.counts); i += 16 {
		n := uint64(0)
		for _, c := range h.counts[i : i+16] {
			n += uint64(c)
		}
		share := float64(n) / float64(max(h.total, 1))
		if len(l) == 0 && share < 0.001 {
			continue
		}
		l = append(l, [2]float64{binned(i + 8), share})
		if share >= 0.001 {
			last = len(l)
		}
	}
	return l[:last]
}

// binned is the least time of the i-th count, ns.
func binned(i int) float64 {
	if i < 256 {
		return float64(i)
	}
	e := i/128 - 1
	return math.Ldexp(float64(i%128+128), e)
}

// quantile is the time that a share q of all is not above, ns.
func (h *histogram) quantile(q float64) float64 {
	if h.total == 0 {
		return 0
	}
	left := int(math.Ceil(q * float64(h.total)))
	for i, c := range h.counts {
		if left -= int(c); left <= 0 {
			return binned(i)
		}
	}
	return math.Inf(1)
}
