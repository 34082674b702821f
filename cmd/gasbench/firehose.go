package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

// Bytes of a rank's memory that its peers may have pinned, unless the environment
// sets them: with two ranks, 512 buckets for the other one and 256 for single
// transfers. Working sets of eight times that still fit anywhere.
const (
	pinnable = 48 << 20
	pinLocal = 16 << 20
)

// far is memory of rank 1 that rank 0 reaches by firehoses. Each kind has an area
// whose buckets are touched one after the other, all misses, and after it one that is
// used over and over, all hits. Larger working sets lie in mapped memory.
type far struct {
	limits firehose.Limits
	at     map[string]segment.NLA // by kind
	misses uint64                 // length of the first area, bytes
	hits   segment.NLA            // begin of the second one, from at
}

// hitArea is the length of the second area, bytes.
const hitArea = 1 << 20

// plan is how far's memory is laid out.
func (j *job) plan() (f far, mapped, heap uint64, err error) {
	f.limits = j.x.Exposed().Cache().Limits()
	bucket := f.limits.Bucket
	round := max(bucket, hitArea)
	// Peers leave buckets pinned until the room is needed: to have all of them moved
	// takes more than all of the budget.
	f.misses = (uint64(f.limits.Budget)*bucket*5/4 + round) / round * round
	f.hits = segment.NLA(f.misses)
	heap = f.misses + round
	mapped = max(heap, uint64(f.limits.Share)*bucket*largestSet)
	if f.misses < 2*round || f.limits.MaxRemote < hitArea {
		err = fmt.Errorf("%d firehoses of %d bytes are too few for transfers of %d bytes", f.limits.Share, bucket, hitArea)
	}
	return f, mapped, heap, err
}

// expose is rank 1's side of needFar.
func (j *job) expose() error {
	f, mapped, heap, err := j.plan()
	if err != nil {
		return err
	}
	mem, p, err := gas.MakeSlice[byte](j.n, int(mapped)) // the job's end takes it back
	if err != nil {
		return err
	}
	slice := make([]byte, heap)
	for _, m := range [][]byte{mem, slice} {
		for i := uint64(0); i < f.misses+hitArea; i += pageSize {
			m[i] = 1 // pages that exist
		}
	}
	a, err := j.x.Expose(slice, segment.RightsAll, segment.AnyPeer)
	if err != nil {
		return err
	}
	j.exposed = append(j.exposed, a)
	var words []uint32
	for _, a := range []segment.NLA{p.NLA(), a} {
		lo, hi := am.Pack64(uint64(a))
		words = append(words, lo, hi)
	}
	for i, kind := range []string{kindMapped, kindHeap} {
		m := [][]byte{mem, slice}[i][:f.misses]
		r := &registrar{mem: m}
		if r.atu, err = j.n.Layers().Conduit.ATU(); err != nil {
			return err
		}
		j.s.pinners[kind] = &pinner{r: r, bucket: int(f.limits.Bucket), fail: j.n.Layers().Conduit.Fail}
	}
	return j.e.RequestShort(0, hAnswer, words...)
}

// inquire has rank 1 do something and send words back.
func (j *job) inquire(what uint32) ([]uint32, error) {
	j.s.answer = nil
	if err := j.command(what, 0, 0); err != nil {
		return nil, err
	}
	err := j.e.Wait(nil, func() bool { return j.s.answer != nil })
	return j.s.answer, err
}

// needFar has rank 1 expose memory, once.
func (j *job) needFar() error {
	if j.far.at != nil || j.n.Rank() != 0 {
		return nil
	}
	f, _, _, err := j.plan()
	if err != nil {
		return err
	}
	w, err := j.inquire(cmdExpose)
	if err != nil {
		return err
	}
	f.at = map[string]segment.NLA{
		kindMapped: segment.NLA(am.Unpack64(w[0], w[1])),
		kindHeap:   segment.NLA(am.Unpack64(w[2], w[3])),
	}
	j.far = f
	return nil
}

// pins is how many buckets rank 1 has pinned so far.
func (j *job) pins() (uint64, error) {
	w, err := j.inquire(cmdPins)
	if err != nil {
		return 0, err
	}
	return am.Unpack64(w[0], w[1]), nil
}

// answerPins is rank 1's side.
func (j *job) answerPins() error {
	var s firehose.Stats
	j.x.Exposed().Cache().Stats(&s)
	lo, hi := am.Pack64(s.Pins)
	return j.e.RequestShort(0, hAnswer, lo, hi)
}

// pinner does what a miss must have done, and nothing else: it registers one bucket
// after the other and takes the one back that was registered longest ago.
type pinner struct {
	r      *registrar
	bucket int
	oldest int
	fail   func(error)
}

// kept is how many buckets a pinner has registered at most.
const kept = 256

func (p *pinner) turn() error {
	r := p.r
	if r.next+p.bucket > len(r.mem) {
		r.next = 0
	}
	if len(r.regions) < kept {
		return r.add(p.bucket)
	}
	if err := r.atu.Deregister(r.regions[p.oldest]); err != nil {
		return err
	}
	g, err := r.atu.Register(r.mem[r.next:r.next+p.bucket], segment.RightsAll, segment.AnyPeer)
	if err != nil {
		return err
	}
	r.regions[p.oldest] = g
	r.next += p.bucket
	p.oldest = (p.oldest + 1) % kept
	return nil
}

// onPin registers a bucket of the kind and answers. An error makes no answer: rank 0
// would wait for ever, so that it fails the job.
func onPin(t *am.Token, args []uint32, _ []byte) {
	p := states[t.Messenger().Rank()].pinners[[]string{kindMapped, kindHeap}[args[0]&1]]
	if p == nil {
		return
	}
	if err := p.turn(); err != nil {
		p.fail(err)
		return
	}
	_ = t.ReplyShort(hPong)
}

// The ways to memory that is not attached.
const (
	viaAttach   = "attach"   // it is, for comparison
	viaHit      = "hit"      // a firehose is there
	viaMiss     = "miss"     // one has to be moved
	viaRegister = "register" // registered for each transfer
	viaBounce   = "bounce"   // copied by its owner
)

// way names a way to memory of the kind.
func viaOf(way, kind string) string {
	if kind == kindHeap {
		return way + "-heap"
	}
	return way
}

// transfer makes an operation of put or get of size bytes of rank 1's memory at
// address at(i) in turn, by a strategy.
func (j *job) transfer(get bool, size int, s firehose.Strategy, next func() segment.NLA) op {
	x, local := j.x, j.local[:size]
	run := func(count int) error {
		for range count {
			if err := x.Put(1, next(), local); err != nil {
				return err
			}
		}
		return nil
	}
	if get {
		run = func(count int) error {
			for range count {
				if err := x.Get(1, next(), local); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return op{begin: func(int) error { return x.Exposed().SetStrategy(s) }, run: run, legs: 1}
}

// always is one address over and over.
func always(a segment.NLA) func() segment.NLA { return func() segment.NLA { return a } }

// onward goes through n bytes from a on in steps, over and over.
func onward(a segment.NLA, n, step uint64) func() segment.NLA {
	step = min(step, n)
	at := uint64(0)
	return func() segment.NLA {
		if at += step; at+step > n {
			at = 0
		}
		return a + segment.NLA(at)
	}
}

// hit is a transfer to memory that a firehose reaches.
func (j *job) hit(get bool, size int, kind string) op {
	return j.transfer(get, size, firehose.AlwaysPin, always(j.far.at[kind]+j.far.hits))
}

// miss is a transfer to memory whose firehose is elsewhere.
func (j *job) miss(get bool, size int, kind string) op {
	return j.transfer(get, size, firehose.AlwaysPin, onward(j.far.at[kind], j.far.misses, max(uint64(size), j.far.limits.Bucket)))
}

func farPutCases(j *job) ([]outcase, error) { return j.transferCases(false) }
func farGetCases(j *job) ([]outcase, error) { return j.transferCases(true) }

// transferCases are puts or gets by all ways.
func (j *job) transferCases(get bool) ([]outcase, error) {
	if err := j.needFar(); err != nil {
		return nil, err
	}
	ref := refAttachPut
	if get {
		ref = refAttachGet
	}
	var l []outcase
	for _, size := range copySizes {
		l = append(l, outcase{via: viaAttach, size: size, op: j.attached(get, size), out: []output{{latency, j.way(size)}}})
		add := func(via string, o op) {
			l = append(l, outcase{via: via, size: size, op: o, out: []output{{latency, ref}}})
		}
		for _, kind := range []string{kindMapped, kindHeap} {
			add(viaOf(viaHit, kind), j.hit(get, size, kind))
			add(viaOf(viaMiss, kind), j.miss(get, size, kind))
			add(viaOf(viaRegister, kind), j.transfer(get, size, firehose.AlwaysRegister, always(j.far.at[kind]+j.far.hits)))
		}
		add(viaBounce, j.transfer(get, size, firehose.AlwaysBounce, always(j.far.at[kindMapped]+j.far.hits)))
	}
	return l, nil
}

// preparedCases are puts to the attach segment and to registered memory that are not waited for, each begun with its arguments, and started
// as prepared.
func preparedCases(j *job) ([]outcase, error) {
	if err := j.needFar(); err != nil {
		return nil, err
	}
	x := j.x
	var l []outcase
	for _, size := range []int{8, 512, 4 << 10, 64 << 10} {
		for _, place := range []struct {
			name string
			at   segment.NLA
		}{{"segment", j.data()}, {kindHeap, j.far.at[kindHeap] + j.far.hits}} {
			src := j.local[:size]
			var p *extended.Prepared
			handles := make([]extended.Handle, 0, window)
			add := func(via string, start func() (extended.Handle, error)) {
				o := windowed(func() error {
					h, err := start()
					handles = append(handles, h)
					return err
				}, func() error {
					err := x.WaitAll(handles)
					handles = handles[:0]
					return err
				})
				o.begin = func(int) (err error) {
					if err = x.Exposed().SetStrategy(firehose.Adaptive); err == nil && p == nil {
						p, err = extended.PreparePut(x, 1, place.at, src)
					}
					return err
				}
				l = append(l, outcase{via: via, size: size, op: o, out: []output{{rate, j.message(size)}}})
			}
			add(place.name, func() (extended.Handle, error) { return x.PutBulkNB(1, place.at, src) })
			add(place.name+" prepared", func() (extended.Handle, error) { return p.Start() })
		}
	}
	return l, nil
}

// attached is a transfer to the attach segment.
func (j *job) attached(get bool, size int) op {
	return j.transfer(get, size, firehose.AlwaysPin, always(j.data()))
}

// largestSet is the largest working set, of what firehoses reach.
const largestSet = 8

// zipf draws 0 to n-1 with probabilities as 1, 1/2, 1/3...
func zipf(n int, r *rand.Rand) func() int {
	sums := make([]float64, n)
	sum := 0.0
	for i := range sums {
		sum += 1 / float64(i+1)
		sums[i] = sum
	}
	place := r.Perm(n)
	return func() int { return place[sort.SearchFloat64s(sums, r.Float64()*sum)] }
}

// pattern draws buckets of a working set of n.
func pattern(name string, n int) func() int {
	r := rand.New(rand.NewPCG(1, 2))
	switch name {
	case "uniform":
		return func() int { return r.IntN(n) }
	case "Zipf":
		return zipf(n, r)
	}
	i := -1
	return func() int { i = (i + 1) % n; return i }
}

var patterns = []string{"uniform", "Zipf", "streaming"}

// workingSets measures which share of puts finds its firehose, and sets beside it
// what the policy by itself makes of the same addresses.
func workingSets(j *job, o options) ([]line, error) {
	if err := j.needFar(); err != nil {
		return nil, err
	}
	if err := j.x.Exposed().SetStrategy(firehose.AlwaysPin); err != nil {
		return nil, err
	}
	share, bucket := j.far.limits.Share, j.far.limits.Bucket
	at := j.far.at[kindMapped]
	policy := newSieve(share)
	var lines []line
	for _, name := range patterns {
		for _, n := range []int{share / 2, share, 2 * share, largestSet * share} {
			size := n * int(bucket)
			if !o.wants(size) {
				continue
			}
			var next func() int
			hits := 0
			visit := func(count int) error {
				hits = 0
				for range count {
					k := next()
					if policy.access(k) {
						hits++
					}
					if err := j.x.Put(1, at+segment.NLA(uint64(k)*bucket), j.local[:8]); err != nil {
						return err
					}
				}
				return nil
			}
			// All of it, since little of Zipf's tail would come by itself, and, if it fits, so
			// often that what was there before is gone; and then as much as is counted.
			next = pattern("streaming", n)
			passes := 1
			if n <= share {
				passes = 8 * sievePatience
			}
			if err := visit(passes * n); err != nil {
				return nil, err
			}
			next = pattern(name, n)
			count := 16 * share
			if err := visit(count); err != nil {
				return nil, err
			}
			before := j.misses()
			if err := visit(count); err != nil {
				return nil, err
			}
			l := j.newLine(name, size)
			l.Metric, l.Unit, l.Ref = hitRate, "share", refPredicted
			l.Value = 1 - float64(j.misses()-before)/float64(count)
			l.RefValue = float64(hits) / float64(count)
			l.Ratio = 1
			if l.RefValue > 0 {
				l.Ratio = l.Value / l.RefValue
			}
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// misses counts the pins of this rank for which a firehose had to be moved.
func (j *job) misses() uint64 {
	var s firehose.Stats
	j.x.Exposed().Cache().Stats(&s)
	return s.RemoteMisses
}

// newLine is a figure of this job without value.
func (j *job) newLine(via string, size int) line {
	return line{
		Conduit: j.n.Layers().Conduit.Conduit(), Ranks: j.n.Size(), Size: size, Via: via,
		Auth: j.auth, Datagram: j.datagram,
	}
}

// derived is the median of what f makes of the values of each burst, beside limit, which it
// should not exceed; 0: there is none.
func derived(j *job, via string, size int, metric, unit string, limit float64, values [][]float64, f func(v []float64) float64) line {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = f(v)
	}
	l := j.newLine(via, size)
	l.Metric, l.Unit, l.Value = metric, unit, median(all)
	l.Low, l.High = quartiles(all)
	if limit > 0 {
		l.Ref, l.RefValue, l.Ratio = refTarget, limit, l.Value/limit
		l.Low, l.High = l.Low/limit, l.High/limit
	}
	return l
}

// pinned makes an operation of requests whose handler registers a bucket.
func (j *job) pinned(kind string) op {
	which := uint32(0)
	if kind == kindHeap {
		which = 1
	}
	o := j.answered(func() error { return j.e.RequestShort(1, hPin, which) })
	o.legs = 1
	return o
}

// The targets: what a hit may add to a put, ns; what a miss may take, in round trips
// beyond the registration.
const (
	mostAdded  = 25
	mostFactor = 1.2
)

// moveBytes is the payload of a request that moves one firehose.
const moveBytes = 32

// targets measures puts of 8 bytes, hits and misses, in turn with their references, and
// gives the differences and ratios of figures measured in turn.
func targets(j *job, o options) ([]line, error) {
	const size = 8
	if !o.wants(size) {
		return nil, nil
	}
	if err := j.needFar(); err != nil {
		return nil, err
	}
	whole := func(o op) op { o.legs = 1; return o }
	const attach, short, medium, first = 0, 1, 2, 3
	ops := []op{
		attach: j.attached(false, size),
		short:  whole(j.answered(func() error { return j.e.RequestShort(1, hPing) })),
		medium: whole(j.answered(func() error { return j.e.RequestMedium(1, hPing, j.local[:moveBytes]) })),
	}
	kinds := []string{kindMapped, kindHeap}
	const hit, pin, miss, each = 0, 1, 2, 3
	for _, kind := range kinds {
		ops = append(ops, j.hit(false, size, kind), j.pinned(kind), j.miss(false, size, kind))
	}
	values, err := j.inTurn(ops, o)
	if err != nil {
		return nil, err
	}
	var lines []line
	figure := func(via, metric, unit string, limit float64, f func(v []float64) float64) {
		lines = append(lines, derived(j, via, size, metric, unit, limit, values, f))
	}
	plainly := func(via string, k int) {
		figure(via, latency, "ns", 0, func(v []float64) float64 { return v[k] })
	}
	plainly(viaAttach, attach)
	plainly("am/short", short)
	plainly("am/medium", medium)
	for i, kind := range kinds {
		at := first + each*i
		plainly(viaOf(viaHit, kind), at+hit)
		plainly(viaOf("am+register", kind), at+pin)
		plainly(viaOf(viaMiss, kind), at+miss)
		figure(viaOf(viaHit, kind), added, "ns", mostAdded, func(v []float64) float64 { return v[at+hit] - v[attach] })
		figure(viaOf(viaMiss, kind), factor, "round trips", mostFactor, func(v []float64) float64 {
			return (v[at+miss] - v[at+hit] - (v[at+pin] - v[short])) / v[short]
		})
	}
	more, err := j.count(kinds)
	return append(lines, more...), err
}

// count reports, for each kind, the fraction of intended misses that missed, and requests
// and pins per miss. The fraction varies with where rounds begin: buckets that each round
// finds keep their firehoses.
func (j *job) count(kinds []string) ([]line, error) {
	var lines []line
	for _, kind := range kinds {
		o := j.miss(false, 8, kind)
		n := int(j.far.misses / j.far.limits.Bucket)
		if err := o.begin(0); err != nil {
			return nil, err
		}
		if err := o.run(n); err != nil { // whatever was left here by others
			return nil, err
		}
		pins, err := j.pins()
		if err != nil {
			return nil, err
		}
		var before, after conduits.Stats
		misses := j.misses()
		j.n.Layers().Conduit.Stats(&before)
		if err := o.run(n); err != nil {
			return nil, err
		}
		j.n.Layers().Conduit.Stats(&after)
		misses = j.misses() - misses
		now, err := j.pins()
		if err != nil {
			return nil, err
		}
		for _, c := range []struct {
			metric   string
			count, n uint64
		}{
			{"misses", misses, uint64(n)},
			{"requests", after.Sent[conduits.Request] - before.Sent[conduits.Request], misses},
			{"pins", now - pins, misses},
		} {
			l := j.newLine(viaOf(viaMiss, kind), 8)
			l.Metric, l.Unit, l.Value = c.metric, "each", float64(c.count)/float64(max(c.n, 1))
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// inTurn takes bursts of the operations in turn, as many as o says: values[i][k] is
// the median time of the operations of ops[k] in burst i, ns; if some of them
// missed, of those that did. Unlike a mean it is the same on a machine that
// does other things, as long as it does them half of the time at most.
func (j *job) inTurn(ops []op, o options) (values [][]float64, err error) {
	d := o.time / time.Duration(o.bursts)
	counts, batches := make([]int, len(ops)), make([]int, len(ops))
	for k := range ops {
		var ns float64
		if counts[k], ns, err = j.calibrate(&ops[k], d); err != nil {
			return nil, err
		}
		batches[k] = max(1, int(math.Ceil(minSample/ns)))
	}
	var times []float64
	for range o.bursts {
		v := make([]float64, len(ops))
		for k := range ops {
			if err := ops[k].warmUp(ops[k].warm(counts[k]), counts[k]); err != nil {
				return nil, err
			}
			misses := j.misses()
			times = times[:0]
			for done := 0; done < counts[k]; done += batches[k] {
				start := time.Now()
				if err := ops[k].run(batches[k]); err != nil {
					return nil, err
				}
				times = append(times, max(float64(time.Since(start).Nanoseconds())-j.clock, 1)/float64(batches[k]))
			}
			slices.Sort(times)
			half := len(times) / 2
			if m := int(j.misses() - misses); m > 0 { // others are faster
				half = max(len(times)-1-m/2, 0)
			}
			v[k] = times[half]
		}
		values = append(values, v)
	}
	return values, nil
}
