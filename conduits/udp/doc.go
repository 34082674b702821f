// Package udp is the conduit between hosts: reliable messages and RMA over UDP.
//
// The protocol is package engine, a deterministic core; an [Endpoint] drives it
// over a link that carries datagrams: UDP sockets, or, in tests, the sockets of
// the simulator with every misfortune that it knows.
//
// # What exists
//
// [Local] opens all ranks of a job in one process, each with its own socket on
// the loopback interface. All messages and all RMA to other ranks travel as
// datagrams; RMA to the own rank does not. What ranks must know of each other
// before they can talk, and when they can no more, goes through memory that they
// share: addresses, attached segments, failures, Wake, and who has closed.
//
// # What does not exist yet
//
// Jobs across processes and hosts: launching, exchanging addresses, spreading
// failures, a keepalive between ranks that have nothing to say to each other.
// Authentication: datagrams carry a checksum, so that damage is noticed and malice
// is not (the engine has the hook for it). Batches of datagrams per system call
// and segmentation offload. IPv6.
//
// # Waiting and progress
//
// Datagrams are received, sent again and acknowledged only when somebody polls or
// is parked. Of the goroutines of a rank that are parked, one waits for the
// socket and the protocol's next deadline. A rank that does neither for long is
// not lost to the others, but whatever they have sent it is sent again meanwhile.
// Closing an endpoint leaves a goroutine behind that serves its peers until all
// have closed and have what was sent to them, or until the job has failed.
package udp
