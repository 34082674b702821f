// Package release stores words so that everything stored before is visible before
// them to readers that load them by package atomic.
//
// On amd64 such a store is a plain one: stores are not reordered with earlier loads
// and stores (Intel SDM volume 3, 8.2.2; AMD APM volume 2, 7.2), and the compiler
// keeps memory operations in order. The Store functions of package atomic are locked
// exchanges there, which wait for the line: on a bare ring 5 ns more a message, and
// three times as long for a flood of them. Elsewhere, and under the race detector,
// the functions are those of package atomic.
package release
