// Package ofi is the conduit for fabrics: InfiniBand, RoCE, Slingshot, EFA, Omni-Path and
// whatever else libfabric drives. It exists in builds with the tag ofi, which need cgo and
// libfabric's headers; any other build answers those that ask for it with what to install. On Ethernet
// conduit udp has the shorter way: there ofi is for tests, on the providers net and tcp;ofi_rxm.
//
// # Why a Transport
//
// The conduit is a [conduits.Transport], and package adapt makes its endpoint: what a
// message costs on libfabric is ten times what adapt adds, and every call to the provider
// is made under one lock anyway. Atomics, immediate puts, classes and
// their credits, and wakes are adapt's, by messages to the owner; see there.
//
// # What libfabric is used for
//
// A rank has one endpoint (FI_EP_RDM) for messages and remote access (FI_MSG, FI_RMA, with
// the orders SAS and SAW where the provider has them, and never FI_ATOMIC, which would cost SAW), one address vector
// and one completion queue, all called under one lock. Package providers chooses the
// provider. Addresses go by the rendezvous, and into the address vector when they are
// first used; provider, versions, mr_mode, order and limits are compared there, and a rank
// that differs is an error that names it and both values.
//
// Puts and gets of 16 KiB and more are remote accesses of the provider
// (FI_DELIVERY_COMPLETE), posted after the range and the rights have been checked here, as
// a refused one takes the connection with it on some providers; the target is told by a
// message that data has changed. Segments are registered when they are attached, and memory
// that a rank registers beyond (firehoses, exposed slices) then, if its runs are as long. A peer
// asks for the key once, with the check that precedes an access to such memory, and keeps
// it; deregistration first has all that have it give it up, and waits until their accesses
// are over, by messages that a rank answers while it does anything. Memory that the provider does not
// take, and shorter accesses, are pieces in messages, which the owner copies by [conduits.Owner] Access:
// coherent with its own loads and stores, and checked there. An access that the provider has when its
// owner leaves ends when the provider is done with it, and when the job fails after the endpoint
// is closed, so that nothing is written to memory that is the caller's again.
//
// A provider that reports a write before its data is in place (it lacks FI_DELIVERY_COMPLETE) has
// puts end by what does not overtake the write: a message behind it that the target
// answers, one for all writes posted before it (FI_ORDER_SAW). One that offers neither
// has long puts go in pieces by messages, too; gets stay remote accesses.
//
// Notification puts of adapt are a write and the message behind it on the same endpoint where the
// provider keeps that order (FI_ORDER_SAW), else, and for puts in messages, the message goes when
// the put is done.
//
// Of what a provider may ask of registered memory FI_MR_VIRT_ADDR, PROV_KEY, ALLOCATED
// (pages are made before), ENDPOINT, RAW and LOCAL are handled. With the last, memory that is the
// local side of an access is registered for that one access, unless it is in the segment or in memory that
// the rank has registered. Registrations of other memory are not kept: nothing tells when
// the Go runtime, or the program, gives its pages back to the system.
//
// Atomics are never the provider's own. There are no lanes: an endpoint each would be a
// connection and a window each to every peer, and providers lock their domains, so all goroutines share
// the one endpoint.
//
// Conduit hybrid-ofi (package shmofi) is argon's shared memory inside a host and this one, as
// [Far], between hosts: the segment lies in the host's shared memory, and is
// registered here; of memory beyond it hybrid has the other part's unit tell this one. It looks here as often as hybrid looks at its socket, and parks in shared
// memory while a goroutine waits for the completion queue's descriptor.
//
// # Frames, credit and memory
//
// A rank's messages and accesses to a peer are collected in frames of 8 KiB, or as large as a message of
// Limits.MaxMedium needs. The first after a poll leaves at once; what follows is collected
// until the frame is full, or the rank polls or waits, for 200 µs at most. Frames are of
// three classes: messages, which wait until the receiver polls; accesses, which are
// served whenever it does anything; answers to those, which never wait. For each class and pair of
// ranks at most 8 frames are under way that the receiver has not taken, and two wait to be
// sent. A receiver counts what it has taken in the header of every frame that it sends, or
// of one that is a header alone. So a rank that never polls costs each peer 10 frames of
// messages, and itself 8 frames of each peer, whatever the provider would accept. That the
// provider has no room (FI_EAGAIN) is the same as no credit.
//
// Short puts and gets are not the provider's since a message and its answer take less: on provider
// net a put of 8 bytes took 1.3 times a bare write in C that way and 1.5 times as a write of the
// provider's, of which the target would have to be told, too.
//
// Between the arrival of a frame and the leaving of its answer there is one look at the completion
// queue and one send. A frame's buffer goes back to the provider (fi_recv) with the next look, or at once if a
// look has found 16 or the standby poller has looked. Buffers are of one frame each, 64 of them
// (512 KiB a rank), and not shared by frames (FI_MULTI_RECV), which net and tcp;ofi_rxm offer: posting one
// again takes 0.2 us by itself and 0.05 to 0.1 us of 16, when answers have left, and
// of a flood a frame carries some two hundred short messages.
//
// # Progress, waiting and failure
//
// A standby poller serves accesses while the rank waits or has not polled for a
// millisecond. When it has found something, or has been woken, it looks again for 50 µs, as
// the pieces of a long transfer follow each other. It sleeps on the completion queue's
// descriptor (FI_WAIT_FD), or in steps of up to a millisecond if the provider has none.
// Providers over TCP leave in their connections what peers write and read meanwhile, whose
// descriptor tells of it once: while bytes are unread there the poller looks at least once a
// millisecond. Where the provider moves data only while it is called (FI_PROGRESS_MANUAL)
// and has no such connections it does so while accesses are under way, its own and those that
// a peer has told of, and for 2 s beyond.
//
// An error of a send ends traffic with the peer; unless that turns out to have left, or the
// job to have failed, it fails with the provider's text after half of ARGON_DEADTIME, 1 s at
// least and 5 s at most, so that it does not say first that this rank is silent. An error
// before anything has been sent to the peer has it tried again. A rank that closes waits for
// that, if it has sent what may not have arrived. Else failures are the rendezvous' and the
// launcher's to find: a rank that is killed is known at once, a host that is cut off after
// ARGON_DEADTIME as far as the rendezvous hears of it.
//
// A rank that waits for something of a peer (word of frames, answers, accesses, room) asks a
// silent one, and fails it after ARGON_DEADTIME (10 s) without an answer; 3 s later if it has
// never heard from it, as TCP takes that long to send the first packet of a connection for
// the third time; and 1 s later for each 8 MiB of remote accesses of its own, and of the
// peer's to it. The time in which this rank itself takes nothing does not count. The same
// time without room at the provider fails a peer, too, and so do 30 s, with the same seconds
// for accesses, in which the provider ends none of those to a peer that answers.
//
// Frames have numbers. One that does not arrive for 10 s, although the peer answers meanwhile,
// was lost with a connection that the provider has made again: it fails the peer. An access
// that the provider still has 10 s after its owner has left fails this rank.
//
// # What is the process's
//
// Signal handlers that the library changes while it looks for providers or opens one are put
// back, with a message (package internal/job/guest). Those that libraries which libfabric depends
// on install before Go's runtime begins are taken away. Programs that the process starts
// inherit no descriptor that the library opens then. Of connections, which providers over
// TCP make later, they do not inherit those that the first attempt to post something to a peer begins, and
// what a peer has called from its first frame on. Those that the provider makes at other times, such as
// again after one has broken, are closed in programs when the peer has answered: when
// the first frame to or from it is posted or arrives, and once in four looks of the watch (a second, by
// default) while something is awaited. A program that is started before that may have one open.
package ofi

// Name is the conduit's name.
const Name = "ofi"
