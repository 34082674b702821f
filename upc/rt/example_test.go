package rt_test

import (
	"fmt"

	"github.com/argon-go/argon/upc/rt"
)

// What generated code consists of: an entry of the table for each shared variable, here
// shared int64_t count[THREADS], and a function that each thread runs.
var count = rt.Static(rt.Object{Name: "count", Size: 8, Block: 1, Count: 1, TimesThreads: true})

func program(t *rt.Thread) {
	p := t.Base(count)
//line count.upc:6
	rt.Put(t, p.Add(t.MyThread(), 8, t.Threads()), int64(t.MyThread()+1))
//line count.upc:7
	t.BarrierAny()
//line count.upc:8
	if t.MyThread() == 0 {
		var sum int64
		for range t.Threads() {
//line count.upc:11
			sum += rt.Get[int64](t, p)
			p = p.Next(8, t.Threads())
		}
		fmt.Println("sum", sum)
	}
}

// The main of a program is rt.Main(rt.Config{}, program), and its launcher chooses the number of threads.
func Example() {
	if err := rt.Run(rt.Config{Threads: 4}, program); err != nil {
		fmt.Println(err)
	}
	// Output: sum 10
}
