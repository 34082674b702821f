package main

import "strconv"

// byGoroutine are the goroutines of rank 0, counted in the order in which they begin to
// use its endpoint, by which short messages are measured. The first is the one that
// measures everything else.
var byGoroutine = []int{1, 2, 8}

// goroutineArgs is how many arguments these messages have.
const goroutineArgs = 4

// firstUse is how many requests a goroutine has answered, and how many it has sent in
// a row, before the next one begins.
const firstUse = 100

// nth makes a case one of the k-th goroutine.
func (c outcase) nth(k int) outcase {
	c.goroutine = k
	c.via = "goroutine " + strconv.Itoa(k)
	return c
}

// on has the k-th goroutine run f, and returns when f has. All before it have used the
// endpoint then, and are there, but do not run: a goroutine that has ended may be
// another one's memory.
func (j *job) on(k int, f func() error) error {
	for len(j.goroutines)+1 < k {
		work, done := make(chan func() error), make(chan error)
		go func() {
			defer close(done)
			for f := range work {
				done <- f()
			}
		}()
		g := goroutine{work, done}
		j.goroutines = append(j.goroutines, g)
		if err := g.run(j.useEndpoint); err != nil {
			return err
		}
	}
	if k <= 1 {
		return f()
	}
	return j.goroutines[k-2].run(f)
}

// goroutine runs the functions that it gets, and reports the end of each.
type goroutine struct {
	work chan<- func() error
	done <-chan error
}

func (g goroutine) run(f func() error) error {
	g.work <- f
	return <-g.done
}

// useEndpoint makes the first accesses of the calling goroutine, before any is measured.
func (j *job) useEndpoint() error {
	send := j.answered(func() error { return j.e.RequestShort(1, hPing) })
	if err := send.run(firstUse); err != nil {
		return err
	}
	many := j.flood(func() error { return j.e.RequestShort(1, hSink) })
	if err := many.run(firstUse); err != nil {
		return err
	}
	return many.finish()
}

// endGoroutines ends those that on has made.
func (j *job) endGoroutines() {
	for _, g := range j.goroutines {
		close(g.work)
		<-g.done
	}
	j.goroutines = nil
}
