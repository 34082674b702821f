// Package faultproxy relays datagrams between the ranks of a job over real
// sockets and mistreats them on the way: it loses, repeats, reorders, delays,
// corrupts, cuts and extends them, and keeps ranks apart, for tests of what runs
// over UDP. What package sim does to simulated sockets this does to those of the
// system.
//
// # How a job is led through it
//
// Each rank is told, in place of the address of each other rank, that of a relay
// which stands for that rank towards this one alone: [Proxy.Rewrite] gives it.
// A datagram that rank a sends to the relay that stands for b is passed on to b from the
// relay that stands for a towards b, so that b sees it come from where it
// believes a to be. The distributor of addresses calls Rewrite, such as a
// rendezvous in a test.
//
//	p, err := faultproxy.New(faultproxy.Config{Size: 4, Seed: seed, Faults: faultproxy.Faults{Drop: 0.2}})
//	defer p.Close()
//	told := p.Rewrite(viewer, rank, addr) // viewer is to send there to reach rank, which is at addr
//
// # Chance
//
// The fate of the i-th datagram from one rank to another follows from the
// seed, the two ranks and i alone, whatever other ranks send and however long
// things take; so the same seed and the same datagrams of a flow meet the same
// fate. When a datagram was sent that was late, and which datagrams a program
// sends at all, is decided by the scheduler and the clock.
//
// Faults act in this order: a cut link loses the datagram, else Drop may, else
// Duplicate makes two of it, each of which is damaged, held back and delayed by
// its own chances.
package faultproxy
