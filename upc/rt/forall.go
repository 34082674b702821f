package rt

import "iter"

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
// iteration first is hi.
func (t *Thread) ForInt(lo, hi, step, a, b int) (first, stride int) {
	period := t.threads / gcd(t.threads, step*a)
	stride = step * period
	for k := range period {
		i := lo + k*step
		if step > 0 && i >= hi || step < 0 && i <= hi {
			break
		}
		if _, thread := divide(a*i+b, t.threads); thread == t.me {
			return i, stride
		}
	}
	return hi, stride
}

// OwnRun is ForShared one run at a time, for loops whose step is 1: the first of the calling
// thread's runs from index i on, which ends before hi. There is none if from is not less than to.
// The next begins with i = to. shift is [Shift] of a pointer to the element of index 0; block is 0
// for the indefinite size.
func (t *Thread) OwnRun(i, hi, shift, block int) (from, to int) {
	if block == 0 {
		if shift == t.me {
			return i, hi
		}
		return hi, hi
	}
	k, phase := divide(i+shift, block)
	_, on := divide(k, t.threads)
	if on == t.me {
		return i, min(i+block-phase, hi)
	}
	_, ahead := divide(t.me-on, t.threads)
	from = i + ahead*block - phase
	return from, min(from+block, hi)
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
		if block == 0 {
			if p.Thread == t.me && lo < hi {
				yield(lo, hi)
			}
			return
		}
		if lo >= hi {
			return
		}
		// Element i is the one with number i+shift of an array that begins with phase 0 on
		// thread 0; block k of that lies on thread k mod threads.
		shift := b + p.Thread*block + p.Phase
		k, _ := divide(lo+shift, block)
		_, on := divide(k, t.threads)
		_, ahead := divide(t.me-on, t.threads)
		for k += ahead; ; k += t.threads {
			from, to := max(k*block-shift, lo), min((k+1)*block-shift, hi)
			if from >= hi {
				return
			}
			if step > 1 { // the first i of the loop from there on
				rounds, rest := divide(from-lo, step)
				if rest != 0 {
					rounds++
				}
				from = lo + rounds*step
			}
			if from < to && !yield(from, to) {
				return
			}
		}
	}
}
