// Package udp is the conduit between hosts: reliable messages and RMA over UDP.
//
// The protocol is package engine, a deterministic core; an [Endpoint] drives it
// over a link that carries datagrams: a UDP socket, or, in tests, the sockets of
// the simulator with every misfortune that it knows.
//
// # Jobs
//
// [Join] opens the rank of a process in a job of processes, on any number of
// hosts. The ranks meet at a rendezvous (package internal/rendezvous), which gives
// each a table of all addresses, incarnations and public keys, and tells it later when all have
// attached, which have left, and that the job has failed. Of a rank that it has never
// talked to, a rank keeps nothing beside that rank's entry in the table.
//
// [Local] opens all ranks of a job in one process, each with its own socket on
// the loopback interface; what they must know of each other beside datagrams goes
// through memory that they share, and datagrams are not sealed.
//
// All messages and all RMA to other ranks travel as datagrams. What a rank sends to
// itself never leaves the process: a message waits in a queue of the endpoint until
// the next poll, under the same credit; a poll that finds such a message looks at
// the socket only one time in eight.
//
// # Parts
//
// An [Endpoint] is made of parts, each in a file of its own whose comment names what guards
// it. They use each other in this order:
//
//	mailbox    reserve, commit, poll, deliver; messages to oneself (self.go)  uses driver, memory
//	attendant  polls for a rank that computes (attend.go)                     uses driver
//	driver     engine and link: receive, send, hear of failure                uses waiter, lifecycle
//	memory     segment and registrations, as the engine sees them
//	waiter     idle, arm, sleep, notify
//	lifecycle  rank, control, closed, failed
//
// Two interfaces lead out of it. A link carries datagrams in batches: a UDP socket, or the
// simulator's (link.go). A control tells a rank of others beside datagrams: by memory,
// if all ranks are in one process; by the rendezvous, if each is a process (control.go).
//
// # Registered memory
//
// Memory beyond the segment is reached by the engine of the rank that has registered
// it, which translates each datagram's part anew, so that nothing is read or written
// after Deregister has returned, whatever is under way or comes again. Refusals
// travel back; a put that is not refused costs what it costs in the segment. A get
// copies once more than from the segment. [Endpoint.Diagnosis] counts refusals.
//
// # Environment
//
// Beside what the rendezvous needs, a rank of a job of processes reads ARGON_IFACE,
// ARGON_AUTH (see package seal), ARGON_DATAGRAM, ARGON_DEADTIME and ARGON_HOST;
// docs/knobs.md describes them, with their defaults.
//
// ARGON_AUTH and ARGON_DATAGRAM must be equal on all ranks, which the rendezvous
// checks. All addresses are IPv4, or all are IPv6.
//
// # Addresses and strangers
//
// Datagrams are sealed with a key that only the two ranks have, made of the job's key,
// a random number of the rendezvous and what the two have announced there. The rank that a datagram is from is the one that its seal
// says, not its address: so a peer behind a translation of addresses is heard. But
// datagrams are sent to the address in the table and nowhere else, whatever comes
// from where. The table says the incarnation of each rank as well: any other one
// is refused, even if it is later and holds the key, for ranks do not come back.
// To a rank of its own host that it sends much to, a rank sends from a second
// port, of a connected socket, which takes the kernel less time. Between hosts all
// datagrams are from the port in the table.
//
// Refused datagrams are counted ([Endpoint.Refused], Stats.Refused) and shown by
// [Endpoint.Diagnosis]. One that is longer than the job's datagrams counts as malformed. Such
// a one, and one of more than 2,048 bytes, unless header and length are those of a datagram
// that a rank has sealed for this one and that has not been opened, is refused before the
// cipher has looked at all of it: so 65,000 bytes cost 6 us, nearly all of it to receive them,
// instead of 17 (BenchmarkRefuseDatagrams). The header of a datagram that was lost, or is
// held back, can be repeated any number of times with other payloads, for 17 us each.
//
// # Paths between hosts
//
// Before a job on several hosts begins, the first ranks of the hosts try whether
// datagrams pass between their sockets in both directions, up to 64 hosts each with
// all others, and Join fails on all ranks if some do not. The error names the hosts,
// ranks and addresses of the pairs and the direction (paths.go). That takes two round
// trips or so; or the dead time, 5 s at least, if datagrams are lost. It also measures
// the round trips, so that the first loss between two hosts is made good after three of
// them, and not after a second, as RFC 9002 has it of unknown paths.
//
// # Several networks
//
// With ARGON_NETWORKS hosts have an address on each of several networks (package
// internal/job/nets), and each pair of hosts up to four ways by size of data, of one or more
// networks. To the engine each way is a peer of its own. A host between two others hands datagrams
// on by their header, with no key for them (networks.go). Without it, nothing of that is there but
// a comparison with nil where a message or an access begins.
//
// # Waiting and progress
//
// Of the goroutines of a rank that are parked, one waits for the socket and the
// protocol's next deadline; in a process of its own it holds a thread
// meanwhile, since Go's poller would wake one with every datagram, also while
// the rank spins. If no rank of a process has polled for 10 ms and none is
// parked, an attendant, a goroutine of the endpoint, takes over until one
// does: it receives, acknowledges, answers puts, gets and atomics, and sends
// again what was lost, but runs no Receiver. So a rank that computes for a
// minute neither looks dead nor holds up its peers' one-sided operations;
// messages to it wait, and their senders when they are out of credit. In a job
// in one process there is no attendant.
//
// # Failure
//
// A rank whose process ends in any way, or that says so, has failed: the
// rendezvous notices at once, since its connection ends, and tells all, whose Err
// then names it. A rank that is silent for ARGON_DEADTIME although a peer awaits
// something of its engine (an acknowledgement, a get) is declared failed by that
// peer. There are no heartbeats between ranks: the sender of something watches
// its target, and a host that vanishes while nothing is under way to it is
// noticed by the keepalive of its connections to the rendezvous, one per rank and
// not one per pair. Partitions that are shorter heal, unless the system itself refuses
// to send: a rank that there is no route to, or that a local firewall keeps from, for a
// second and for a tenth of the dead time, has failed.
//
// A process whose runtime waits to stop the world cannot answer either, nor can its
// attendant, which is a goroutine. So after half of the dead time the observer asks the
// rendezvous for a look at the silent rank (internal/rendezvous, look.go): by TCP, and at
// its process. A rank that runs is vouched for (package engine, Vouch).
//
// The dead time need not exceed what a program computes without polling. Silence
// counts only while the rank that observes it runs, and is followed by several
// probes: a job all of whose ranks are stopped, suspended or starved for longer
// than the dead time goes on afterwards. It must exceed how long one process or host
// stands still while others run: stopped by a debugger or by SIGSTOP, migrated.
// Raise it there.
//
// # Leaving
//
// Close of a rank in a process of its own waits until all that it has sent has
// been acknowledged, or its target has left, which bounds it by the dead time if
// the target is silent; then it says at the rendezvous that it leaves. A rank that
// misses its last acknowledgement hears from there that it has left, and takes
// all puts and messages to it for done; gets and atomics that are under way end
// with an error, and later operations too.
//
// Close of a rank in a job in one process leaves a goroutine behind that serves
// its peers until all have closed and have what was sent to them, or until the job
// has failed.
package udp
