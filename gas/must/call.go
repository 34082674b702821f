package must

import "github.com/argon-go/argon/gas"

// WaitAll is gas.WaitAll, for calls that n has made.
func WaitAll[R any](n *gas.Node, fs ...gas.Future[R]) []R {
	got, err := gas.WaitAll(fs...)
	n.Must(err)
	return got
}

// WaitAny is gas.WaitAny, for calls that n has made.
func WaitAny[R any](n *gas.Node, fs ...gas.Future[R]) (i int, r R) {
	i, r, err := gas.WaitAny(fs...)
	n.Must(err)
	return i, r
}

// Then is gas.Future.Then, for a call that n has made: fn runs with the result, and an error in
// its place is given to gas.Node.Must. fn runs outside handlers, as what gas.Node.Defer is given
// does: on a goroutine of n that polls or waits, whichever that is, or of Config.Workers. There an error
// ends that goroutine, and the job with it.
func Then[R any](n *gas.Node, f gas.Future[R], fn func(n *gas.Node, r R)) {
	n.Must(f.Then(func(n *gas.Node, r R, err error) {
		n.Must(err)
		fn(n, r)
	}))
}

// Quiesce is gas.Node.Quiesce, which all ranks call.
func Quiesce(n *gas.Node) {
	n.Must(n.Quiesce())
}
