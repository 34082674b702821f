package firehose

import (
	"container/list"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// What a victim can be chosen by. access reports whether k is a hit.
type victims interface{ access(k int) bool }

type fifoPolicy struct {
	in   map[int]bool
	q    []int
	head int
}

func (p *fifoPolicy) access(k int) bool {
	if p.in[k] {
		return true
	}
	delete(p.in, p.q[p.head])
	p.q[p.head], p.in[k] = k, true
	p.head = (p.head + 1) % len(p.q)
	return false
}

type lruPolicy struct {
	in   map[int]*list.Element
	l    *list.List
	size int
}

func (p *lruPolicy) access(k int) bool {
	if e := p.in[k]; e != nil {
		p.l.MoveToFront(e)
		return true
	}
	if p.l.Len() == p.size {
		e := p.l.Back()
		delete(p.in, e.Value.(int))
		p.l.Remove(e)
	}
	p.in[k] = p.l.PushFront(k)
	return false
}

type clockPolicy struct {
	in   map[int]int
	k    []int
	mark []bool
	hand int
}

func (p *clockPolicy) access(k int) bool {
	if i, ok := p.in[k]; ok {
		p.mark[i] = true
		return true
	}
	for p.mark[p.hand] {
		p.mark[p.hand] = false
		p.hand = (p.hand + 1) % len(p.k)
	}
	delete(p.in, p.k[p.hand])
	p.k[p.hand], p.in[k] = k, p.hand
	p.hand = (p.hand + 1) % len(p.k)
	return false
}

type randomPolicy struct {
	in map[int]int
	k  []int
	r  *rand.Rand
}

func (p *randomPolicy) access(k int) bool {
	if _, ok := p.in[k]; ok {
		return true
	}
	i := p.r.IntN(len(p.k))
	delete(p.in, p.k[i])
	p.k[i], p.in[k] = k, i
	return false
}

// sievePolicy is the machine's own table.
type sievePolicy struct {
	t    table
	size int
}

func (p *sievePolicy) access(k int) bool {
	if i := p.t.find(uint64(k)); i != 0 {
		p.t.use(i)
		p.t.unuse(i)
		return true
	}
	if p.t.index.n == p.size {
		p.t.remove(p.t.victim())
	}
	p.t.unuse(p.t.insert(uint64(k), present))
	return false
}

func empty(n int) (k []int) {
	for i := range n {
		k = append(k, -1-i)
	}
	return k
}

// zipf draws 0..n-1 with probabilities as 1, 1/2, 1/3...
func zipf(n int, r *rand.Rand) func() int {
	var sums []float64
	sum := 0.0
	for i := range n {
		sum += 1 / float64(i+1)
		sums = append(sums, sum)
	}
	place := r.Perm(n)
	return func() int { return place[sort.SearchFloat64s(sums, r.Float64()*sum)] }
}

// pattern makes the accesses of one kind to a working set of n.
func pattern(kind string, n, size int, r *rand.Rand) func() int {
	z, i := zipf(n, r), -1
	switch kind {
	case "uniform":
		return func() int { return r.IntN(n) }
	case "Zipf":
		return z
	case "streaming":
		return func() int { i = (i + 1) % n; return i }
	}
	return func() int { // half Zipf, half streaming over 16 x M
		if i++; i%2 == 0 {
			return z()
		}
		return n + i/2%(16*size)
	}
}

var policies = []string{"FIFO", "LRU", "CLOCK", "SIEVE", "random"}

const firehoses = 1024

// simulate is the percentage of hits after so many accesses to warm up, for a
// working set of so many times M.
func simulate(name, kind string, of float64, warm, count int) float64 {
	const size = firehoses
	var p victims
	switch name {
	case "FIFO":
		p = &fifoPolicy{in: map[int]bool{}, q: empty(size)}
	case "LRU":
		p = &lruPolicy{in: map[int]*list.Element{}, l: list.New(), size: size}
	case "CLOCK":
		p = &clockPolicy{in: map[int]int{}, k: empty(size), mark: make([]bool, size)}
	case "SIEVE":
		p = &sievePolicy{size: size}
	default:
		p = &randomPolicy{in: map[int]int{}, k: empty(size), r: rand.New(rand.NewPCG(9, 9))}
	}
	next := pattern(kind, int(of*size), size, rand.New(rand.NewPCG(1, 2)))
	hits := 0
	for i := range warm + count {
		if p.access(next()) && i >= warm {
			hits++
		}
	}
	return 100 * float64(hits) / float64(count)
}

// BenchmarkPolicies has the table of the package comment: -benchtime 1x.
func BenchmarkPolicies(b *testing.B) {
	for _, kind := range []string{"uniform", "Zipf", "streaming", "mixed"} {
		for _, of := range []float64{0.5, 1, 2, 8} {
			b.Run(fmt.Sprintf("%s/%.1f", kind, of), func(b *testing.B) {
				for b.Loop() {
					for _, name := range policies {
						b.ReportMetric(simulate(name, kind, of, 100_000, 200_000), name+"%")
					}
				}
			})
		}
	}
}

// TestPolicies holds SIEVE, which the table implements, to what can be
// predicted, and to being the best where they differ.
func TestPolicies(t *testing.T) {
	const warm, count = 12_000, 12_000
	for _, of := range []float64{0.5, 1} {
		for _, kind := range []string{"uniform", "streaming"} {
			if got := simulate("SIEVE", kind, of, warm, count); got < 99.9 {
				t.Errorf("%s, %.1f x M: %.2f %% hits of what fits", kind, of, got)
			}
		}
	}
	for _, of := range []float64{2, 8} {
		if got, want := simulate("SIEVE", "uniform", of, warm, count), 100/of; math.Abs(got-want) > 1.5 {
			t.Errorf("uniform, %.1f x M: %.2f %% hits, want about %.1f", of, got, want)
		}
		for _, kind := range []string{"Zipf", "mixed"} {
			got := simulate("SIEVE", kind, of, warm, count)
			for _, other := range policies {
				if rate := simulate(other, kind, of, warm, count); got < rate {
					t.Errorf("%s, %.1f x M: SIEVE has %.2f %% hits, %s %.2f %%", kind, of, got, other, rate)
				}
			}
		}
	}
}

// TestPhases: what was used a lot, and is not any more, does not stay for long.
func TestPhases(t *testing.T) {
	const size = 256
	p := &sievePolicy{size: size}
	r := rand.New(rand.NewPCG(3, 4))
	for phase := range 10 {
		next := zipf(size, r)
		misses := 0
		for i := range 20 * size {
			if !p.access(phase*size+next()) && i > 10*size {
				misses++
			}
		}
		if misses > size {
			t.Errorf("phase %d: %d misses of %d after the change", phase, misses, 10*size)
		}
	}
}

// TestStuck: what fits is found after a while, whatever was there before and however
// it is used, also if nothing of it is used again before all the rest has been.
func TestStuck(t *testing.T) {
	const size = 256
	for _, before := range []string{"uniform", "Zipf", "streaming", "mixed"} {
		for _, of := range []float64{0.5, 1, 2, 8} {
			p := &sievePolicy{size: size}
			old := pattern(before, int(of*size), size, rand.New(rand.NewPCG(5, 6)))
			for range 20 * size {
				p.access(old())
			}
			misses := 0
			for i := range 20 * size {
				if !p.access(1<<20+i%(size/2)) && i > 10*size {
					misses++
				}
			}
			if misses > 0 {
				t.Errorf("after %s, %.1f x M: %d misses of %d in half of M", before, of, misses, 10*size)
			}
		}
	}
}

// directPolicy is a cache with one place for a key, as cards have.
type directPolicy []int

func (p directPolicy) access(k int) bool {
	at := &p[k%len(p)]
	hit := *at == k+1
	*at = k + 1
	return hit
}

// npb are the messages of benchmarks as tables I to III of Seifert, Balkanski and Rehm 2000 count them, with 8 processes: in each round so many
// of so many bytes, each size sent from one buffer and received in another.
var npb = []struct {
	name     string
	rounds   int
	messages [][2]int // bytes, count
}{
	{"IS-W", 11, [][2]int{{8192, 1}, {4, 1}, {512 << 10, 1}}},
	{"IS-B", 11, [][2]int{{8192, 1}, {4, 1}, {16 << 20, 1}}},
	{"LU-W", 302, [][2]int{{512, 31}, {1024, 31}, {32768, 1}, {65536, 1}}},
	{"LU-B", 252, [][2]int{{1024, 99}, {2048, 99}, {262144, 1}, {524288, 1}}},
}

// missesOf is how many accesses of a program find no translation, percent: an access is of a page, or of a bucket.
func missesOf(program int, p victims, unit int) float64 {
	misses, all := 0, 0
	for range npb[program].rounds {
		at := 0
		for _, m := range npb[program].messages {
			pages := (m[0] + unit - 1) / unit
			for range m[1] {
				for k := range 2 * pages { // of the buffer that is sent, and of the one that is received
					if all++; !p.access(at + k) {
						misses++
					}
				}
			}
			at += 2 * pages
		}
	}
	return 100 * float64(misses) / float64(all)
}

// BenchmarkNPB has the miss rates of docs/components.md: -benchtime 1x.
func BenchmarkNPB(b *testing.B) {
	for i := range npb {
		b.Run(npb[i].name, func(b *testing.B) {
			for b.Loop() {
				for _, size := range []int{128, 1024} {
					b.ReportMetric(missesOf(i, make(directPolicy, size), 4096), fmt.Sprintf("direct-%d%%", size))
					b.ReportMetric(missesOf(i, &sievePolicy{size: size}, 4096), fmt.Sprintf("SIEVE-%d%%", size))
				}
				b.ReportMetric(missesOf(i, &sievePolicy{size: 512}, 64<<10), "firehoses%")
			}
		})
	}
}
