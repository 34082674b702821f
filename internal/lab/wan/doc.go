// Package wan is a laboratory for long network paths: a bottleneck with a rate, a
// delay and a queue, which loses, repeats, delays, reorders and corrupts packets as it
// is told, between hosts that stand still now and then. Only tests use it.
//
// A [Path] says what a path is like, and a [Link] decides what becomes of each
// packet of one direction. Two things carry packets by these decisions:
//
//   - a [Network] in virtual time: endpoints are state machines, a run is
//     deterministic, and 30 s at 100 Mbit/s take about a second;
//   - a [Relay] in real time: IP packets between TUN devices in two network
//     namespaces, so that the kernel's TCP and real jobs share a path. A [Lab] has
//     the namespaces, too. It needs root.
//
// [TCP] is a model of the kernel's TCP for the virtual network: CUBIC (RFC 9438)
// with HyStart as Linux has it, loss recovery by selective acknowledgements (RFC
// 6675, RFC 8985, RFC 6937), retransmission time-outs (RFC 6298) with Linux's
// least of 200 ms, delayed acknowledgements. docs/distance.md compares it with the
// kernel's.
//
// Sizes are those of IP packets, with their headers. Times are of the network's
// clock, which begins at 0.
package wan
