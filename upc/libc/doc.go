// Package libc is the standard library of C, as far as programs that cmd/upc compiles have
// it, and the memory that their pointers point to.
//
// # Memory
//
// All of it lies outside of Go's heap: variables whose address is taken on a stack for each
// thread ([Local], [C.Mark], [C.Release]), those with static storage and what malloc gives in
// one heap for the process, string constants in it, too. So pointers of C may be stored
// anywhere, in shared memory, too, and Go's collector never looks at what they point to.
//
// # Threads
//
// A [C] belongs to one UPC thread and is used by its goroutine alone. Memory that malloc has
// given may be freed by any thread of the process.
package libc
