// Package fabric models a network in virtual time: how long messages take from
// node to node, and how they wait for each other. It knows nothing of what they
// contain, nor of what nodes do with them.
//
// A [Fabric] is driven by its owner's event queue, the [Scheduler]: Inject
// enters a message, events come back through Handle, and when the last byte of
// a message is at its destination the fabric says so by the function given to
// [New]. One goroutine drives it. Given the same calls in the same order it does
// the same; it draws no random numbers and reads no clock.
//
// # Time
//
// The terms are LogGP's, per link. A message of up to Free bytes takes Latency
// where least is in between, and HopLatency for each further hop; each byte
// beyond Free adds Byte. A packet keeps each link of its path for its bytes'
// time, and for Gap at least. Messages longer than Packet are cut; their packets
// follow each other through the network. [Fabric.Unloaded] is this in closed
// form, and is exact in an idle network. What the network adds to it is waiting
// for links that carry other packets.
//
// # Networks
//
// A [Crossbar] is one switch. Packets wait at its inputs, in one queue ([Single])
// or in one per destination ([VOQ]), and in buffers at its crosspoints if it has
// such. Inputs serve their destinations in turn, and outputs their inputs.
//
// A [Torus] routes in dimension order, the shorter way round. A [FatTree] goes up
// as far as needed, by links that the destination chooses, and down. In both, a
// packet goes on as soon as its first bytes are at a switch (virtual
// cut-through), and links serve packets in the order in which they come. A
// node's interface sends a packet of each of its messages in turn: messages of a
// pair of nodes may overtake each other if one has more packets.
//
// Their buffers are not bounded: there is no back-pressure
// from one switch to the one before, and no deadlock.
//
// With a [Params] Buffer, a torus has finite buffers, and so have a [Mesh] and an
// [Irregular] network always: packets are worms of flits that keep the virtual channels of a link, which
// makes those behind them wait, as [Routing] leads them. [Fabric.Deadlock] reports a
// circle of packets that wait for each other, and Recover resolves it.
//
// # Cost
//
// A node costs a few links of 16 bytes and 24 bytes of queues; messages under
// way cost 64 bytes each. Nothing is allocated once the pools have grown to what
// is under way at a time. In an idle network a message is one event in a
// crossbar or without contention, one per hop in a torus (and a last one if it
// is longer than Free), one per switch but one in a fat tree; with finite buffers, one per
// flit and link, and one for each time that a flit waits for a link.
package fabric
