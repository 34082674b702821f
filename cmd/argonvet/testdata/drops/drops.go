// Package drops has calls whose results are dropped.
package drops

import "github.com/argon-go/argon/gas"

var echo = gas.RegisterCall("drops.echo", func(_ *gas.Node, x int) int { return x })

func drops(n *gas.Node, g gas.Group, p gas.Ptr[int], l gas.Lock) error {
	n.Barrier()                      // want: the error that Barrier returns is dropped
	g.Barrier()                      // want: the error that Barrier returns is dropped
	l.Lock(n)                        // want: the error that Lock returns is dropped
	gas.Add(n, p, 1)                 // want: the error that Add returns is dropped
	p.PutNB(n, 1)                    // want: the Handle that PutNB returns is dropped: nothing can wait for what it begins
	_, err := p.PutNB(n, 2)          // want: the Handle that PutNB returns is dropped: nothing can wait for what it begins
	_ = gas.Must(p.PutNB(n, 3))      // want: the Handle that Must returns is dropped: nothing can wait for what it begins
	gas.Must(echo.Go(n, 0, 1))       // want: the Future that Must returns is dropped: nothing can wait for what it begins
	echo.Call(n, 0, 1)               // want: the error that Call returns is dropped
	var _, failed = echo.Go(n, 0, 1) // want: the Future that Go returns is dropped: nothing can wait for what it begins
	n.Span("step")                   // want: the end of the span is dropped: call what Span returns, as in defer n.Span(name)()
	defer n.Span("step")             // want: the end of the span is dropped: call what Span returns, as in defer n.Span(name)()
	defer n.Span("step")()
	n.Span("step")()
	_ = n.Barrier()
	defer l.Unlock(n)
	n.Must(n.Barrier())
	gas.Must(p.Get(n))
	n.Poll()
	h, err2 := p.PutNB(n, 4)
	n.Must(err2)
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return n.Sync(h)
}
