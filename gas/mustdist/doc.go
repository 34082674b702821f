// Package mustdist has the containers of package dist without error results, as package must has
// the operations of package gas: the first error of a rank ends its function, and gas.Run
// returns it with the line of the program in front, see [gas.Node.Must].
//
//	words := mustdist.NewMap[string, int](n, "words")
//	mustdist.Put(n, words, "gas", 1)
//	count, found := mustdist.Get(n, words, "gas")
//	must.Done(n, words)
//
// The container stands behind the Node of the rank that has made it: mustdist.Put(n, m, key, v) is
// m.Put(key, v). Names, arguments and results are those of package dist, but where two containers
// have methods of one name: PushUpdate, Call and CallAll are those of an Update, PutRect and GetRect
// those of a Matrix, RowLen is Rows.Len, TransposeSparse is Sparse.Transpose. Flush and Done, which
// many have, are must.Flush and must.Done.
//
// It is a package of its own so that programs which have no containers link none. The function of
// a [dist.Update], tasks and called functions, which may run on any goroutine that polls, return errors
// and do not use it.
package mustdist
