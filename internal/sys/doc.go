// Package sys is the only place that talks to the operating system by number:
// shared memory, futexes, memory barriers across threads, processor counts. No
// other package imports golang.org/x/sys/unix.
package sys
