// Package conc has what goroutines, and ranks that share memory, take turns by: a lock that is
// biased to one goroutine (bias.go), stores that release (release.go), words that tell when others
// have left (presence_unsafe.go), looking at a word that another processor writes (spin.go), and how
// long to look before sleeping (patience.go); and the containers that the layers keep what waits in:
// Queue, Sleepers and Treap, and Map, a table of what many goroutines look up. [Race] reports whether the race detector is on. Each file says how its
// part works.
//
// What is unsafe here: words of package atomic are stored by plain stores on amd64.
package conc
