// Package must has the operations of package gas without error results: the first error of a
// rank ends its function, and gas.Run returns it with the line of the program in front, see
// [gas.Node.Must].
//
//	gas.Main(func(n *gas.Node) error {
//		p := must.New[int64](n)
//		must.Add(n, p.On((n.Rank()+1)%n.Size()), int64(n.Rank()))
//		must.Barrier(n)
//		fmt.Println(n.Rank(), must.Get(n, p.On(n.Rank())))
//		return nil
//	})
//
// They are functions of a package of their own, whose first parameter is the Node: methods of
// Node could not be generic, methods of Ptr that return no error would need another name each
// or another type of pointer, which would have to be converted wherever one is stored. What is
// a method in package gas has its receiver behind the Node here: must.Put(n, p, v) is
// p.Put(n, v). Names, arguments and results are those of package gas, but for elements of
// arrays (GetAt, PutAt, GetAtIndexed, PutAtIndexed, GatherAt, ScatterAt), DeleteArray, Result,
// PollMailbox and SyncMailbox. Calls are those of tasks, too. The containers of package dist are in
// package mustdist. What is not here is given to n.Must:
//
//	n.Must(f())
//
// An error is for the whole job: package must is for programs that have nothing to do about
// it. A program that goes on after errors uses package gas, also beside this one. The functions
// are as fast as those of package gas, and allocate nothing where these do not.
//
// Called functions and handlers, which may run on any goroutine that polls, return errors and
// do not use this package. Goroutines that a rank's function starts may use it.
package must
