package place

import (
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// own has addresses of a test not be those of jobs, or of other tests.
func own(t *testing.T) {
	t.Helper()
	was := folder
	folder = fmt.Sprintf("@argon/test/%d.%s/", os.Getpid(), t.Name())
	t.Cleanup(func() { folder = was })
}

// takeOne takes one of two processors, the one that fewest have, and returns how many had it.
func takeOne(t *testing.T) (c *Claim, cpu, load int) {
	t.Helper()
	c, err := Take([]int{0, 1}, func(loads func(int) int) []int {
		if loads(1) < loads(0) {
			cpu = 1
		}
		load = loads(cpu)
		return []int{cpu}
	})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(c.Release)
	return c, cpu, load
}

// TestClaims has two claims take different processors, a third share, and one that is
// released leave its processor to the next.
func TestClaims(t *testing.T) {
	own(t)
	first, cpu1, load1 := takeOne(t)
	_, cpu2, load2 := takeOne(t)
	if cpu1 == cpu2 || load1 != 0 || load2 != 0 {
		t.Errorf("two claims have processors %d and %d, taken %d and %d times before", cpu1, cpu2, load1, load2)
	}
	third, cpu3, load3 := takeOne(t)
	if load3 != 1 {
		t.Errorf("the third has processor %d, taken %d times before", cpu3, load3)
	}
	if _, cpu4, load4 := takeOne(t); load4 != 1 || cpu4 == cpu3 {
		t.Errorf("the third and fourth have processors %d and %d, the latter taken %d times", cpu3, cpu4, load4)
	}
	third.Release()
	first.Release()
	first.Release()
	if _, cpu, load := takeOne(t); cpu != cpu1 || load != 0 {
		t.Errorf("after its release processor %d is taken, want %d, taken %d times", cpu, cpu1, load)
	}
	(*Claim)(nil).Release()
}

// TestChoicesAtOnce has many jobs choose at the same time: none sees what another one only looks at.
func TestChoicesAtOnce(t *testing.T) {
	own(t)
	const jobs = 16
	cpus := upTo(jobs)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var got []int
	for range jobs {
		wg.Go(func() {
			var mine int
			c, err := Take(cpus, func(load func(int) int) []int {
				mine = slices.IndexFunc(cpus, func(cpu int) bool { return load(cpu) == 0 })
				return []int{mine}
			})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, mine)
			t.Cleanup(c.Release)
		})
	}
	wg.Wait()
	slices.Sort(got)
	if !slices.Equal(got, cpus) {
		t.Errorf("%d jobs have taken %v", jobs, got)
	}
}

// TestChoiceOfStopped has a job that has stopped while it chose not hold up another.
func TestChoiceOfStopped(t *testing.T) {
	own(t)
	l, err := net.Listen("unix", address("choice"))
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	if _, _, load := takeOne(t); load != 0 {
		t.Errorf("a processor is taken %d times", load)
	}
}

// TestAwait has a waiter be woken by the end of what it waits for, not by its deadline.
func TestAwait(t *testing.T) {
	own(t)
	l, err := net.Listen("unix", address("choice"))
	if err != nil {
		t.Skip(err)
	}
	got := make(chan net.Listener)
	go func() { got <- await(address("choice"), time.Hour) }()
	conn, err := l.Accept() // it waits
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	conn.Close()
	next := <-got
	if next == nil {
		t.Fatal("the next one has no turn")
	}
	next.Close()
}
