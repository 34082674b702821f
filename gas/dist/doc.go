// Package dist has containers that are spread over the ranks of a group: of all the job, or of a
// team. They are made of what package gas exports, and are used beside it.
//
// # Rules for all
//
// A container is made by a collective call, which all ranks of a [gas.Group] make with the same
// arguments: New with the type's name. It lies on these ranks alone: in what is said of it here all
// ranks are those of the group, collective calls are theirs, and ranks have their numbers in the group,
// of which [gas.Team.Global] is the number in the job. Other ranks have no part in it. Containers of
// one team and of several are independent, whatever their names, and are deleted before
// their team is. A container ends by Delete, which is collective, too; calls after that which
// return errors return one that matches [gas.ErrNotReady]. The first line of a comment reports whether a call is
// collective; others any rank makes by itself, whenever it likes.
//
// The name that a container is given is for messages to people. Elements that a program gets
// are its own, unless a comment says that they are the container's. Lengths of zero, and ranks that have
// nothing, are legal everywhere. An invalid argument gives an error that names the value
// and the limit. If a rank dies, calls that need it end with a [*gas.PeerError].
//
// # Containers
//
// [Map] is a hash map: get, put, delete, one key at a time or many in a message, and functions of
// the program ([Update]) that run where an entry lies, atomically.
//
// [Bitmap] is a bitmap: bits are set, cleared and tested by one-sided atomics, or many in a message.
//
// [Queue] is work that ranks steal from each other, and that ends on all when there is none left.
//
// [Rows] is a ragged array: rows of different lengths, got from any rank, permuted and transposed.
// [Sparse] is a sparse matrix of such rows, which multiplies vectors.
//
// [Matrix] is a dense matrix in tiles, of which any part is got and put.
package dist
