package rt

import (
	"iter"
	"math"

	"github.com/argon-go/argon/internal/errs"
)

// ForInt turns the loop
//
//	upc_forall (i = lo; i < hi; i += step; a*i + b)
//
// whose affinity is an integer (UPC 1.3, 6.6.2: the thread (a*i+b) mod THREADS, nonnegative),
// into
//
//	for i = first; i < hi; i += stride
//
// of the calling thread, where i > hi for a negative step, which must not be 0. Without an
// iteration first is hi. A loop that would not end, since i has no room for the stride behind hi,
// ends the thread.
func (t *Thread) ForInt(lo, hi, step, a, b int) (first, stride int) {
	// Iteration k is of thread (on + k*by) mod THREADS; of residues products and sums fit.
	mod := func(x int) int { return x % t.threads }
	by := mod(mod(step) * mod(a))
	_, on := divide(mod(lo)*mod(a)+mod(b), t.threads)
	period := t.threads / gcd(t.threads, by)
	stride = step * period
	room := math.MaxInt - uint(hi) // for another stride
	if step < 0 {
		room = uint(hi) - 1<<63
	}
	for k := range period {
		if step > 0 && lo >= hi || step < 0 && lo <= hi {
			break
		}
		if on == t.me {
			if stride/period != step || uint(max(stride, -stride)) > room {
				t.must(errs.BadArg("upc: upc_forall from %d up to %d by %d on %d threads: the loop variable has no room for %d steps behind the end", lo, hi, step, t.threads, period))
			}
			return lo, stride
		}
		if k == period-1 || step > 0 && hi-lo <= step && hi-lo > 0 || step < 0 && hi-lo >= step && hi-lo < 0 {
			break // before lo overflows
		}
		lo += step
		_, on = divide(on+by, t.threads)
	}
	return hi, stride
}

// OwnRun is ForShared one run at a time, for loops whose step is 1: the first of the calling
// thread's runs from index i on, which ends before hi. There is none if from is not less than to.
// The next begins with i = to. shift is [Shift] of a pointer to the element of index 0; block is 0
// for the indefinite size.
func (t *Thread) OwnRun(i, hi, shift, block int) (from, to int) {
	if i >= hi || block == 0 && shift != t.me {
		return hi, hi
	}
	if block == 0 || t.threads == 1 {
		return i, hi
	}
	if uint(block) > mostBlock {
		t.must(errs.BadArg("upc: upc_forall over an array in blocks of %d elements: they have at most %d", block, mostBlock))
	}
	// Element i of the array is at this place of a round of the threads' blocks.
	round := block * t.threads
	_, at := divide(i%round+shift%round, round)
	on, phase := at/block, at%block
	if on == t.me {
		return i, past(i, block-phase, hi)
	}
	ahead := t.me - on
	if ahead < 0 {
		ahead += t.threads
	}
	from = past(i, ahead*block-phase, hi)
	return from, past(from, block, hi)
}

// mostBlock is the largest block of which sums of two rounds fit an int.
const mostBlock = 1 << 62 / MaxThreads

// past is i+n, but at most hi, which is not less than i; no sum of theirs need fit an int.
func past(i, n, hi int) int {
	if uint(hi)-uint(i) <= uint(n) {
		return hi
	}
	return i + n
}

// Shift is the number of the element that q points to among those of an array that begins with
// phase 0 on thread 0, less whole rounds of the threads' blocks; the thread for block size 0.
func Shift(q Phased, block int) int {
	if block == 0 {
		return q.Thread()
	}
	return q.Thread()*block + q.Phase()
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// ForShared turns the loop
//
//	upc_forall (i = lo; i < hi; i += step; &p[i + b])
//
// whose affinity is an element of an array (6.6.2: the thread that it is on), into a loop over
// runs, ranges of i for which the elements lie one after the other on the calling thread:
//
//	for from, to := range t.ForShared(lo, hi, step, w, b, block) {
//		for i := from; i < to; i += step {
//
// p is unpacked, of a type with blocks of block elements, 0 for the indefinite size; step is at
// least 1. The elements of a run have the address of the first and those behind it.
func (t *Thread) ForShared(lo, hi, step int, p Wide, b, block int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		// Element i is the one with number i+shift of an array that begins with phase 0 on
		// thread 0.
		shift := p.Thread
		if block != 0 && uint(block) <= mostBlock {
			round := block * t.threads
			shift = b%round + (p.Thread*block+p.Phase)%round
		}
		for next := lo; ; {
			from, to := t.OwnRun(next, hi, shift, block)
			if from >= to {
				return
			}
			next = to
			if rest := (uint(from) - uint(lo)) % uint(step); rest != 0 { // the first i of the loop from there on
				from = past(from, step-int(rest), to)
			}
			if from < to && !yield(from, to) {
				return
			}
		}
	}
}
