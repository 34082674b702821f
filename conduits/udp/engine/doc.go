// Package engine is a rank's reliable transport to all others over datagrams
// that may be lost, repeated, reordered, damaged or made up: a deterministic core
// without I/O, clock, goroutines or chance of its own. What drives it (sockets,
// or a simulator) hands in datagrams and the time, and takes out datagrams,
// messages and completions.
//
// # Duties of the caller
//
// One goroutine at a time uses an Engine. It repeats:
//
//   - [Engine.Receive] for each datagram that has come, then [Engine.Advance];
//   - [Engine.NextMessage], [Engine.Release], [Engine.NextCompletion] and
//     [Engine.NextDead] for what follows from them;
//   - [Engine.Next] until there is nothing to be sent;
//   - and waits until a datagram comes or [Engine.Deadline] has come.
//
// The time only grows; its beginning does not matter. Arguments have been checked
// by the caller: ranks, addresses and lengths of its own operations. What comes
// from the network is checked here and, as far as the segment is concerned, by
// [Memory].
//
// # What is promised
//
// Messages and operations take effect exactly once, in no order, as long as the
// peer lives. A peer that something is awaited from and that is silent for
// Config.DeadTime is dead, for ever: everything under way to it is completed with
// a *conduits.PeerError that names it. A peer that nothing is awaited from is not
// watched. A datagram from or for another incarnation of a rank is dropped.
//
// A put is RemoteDone when the target's engine has written it, which the
// acknowledgement of its last datagram says. An access that the target refuses
// ends with an error that matches segment.ErrFault, unless it is a put whose
// RemoteDone nobody wants, which is counted; a long message that is refused is not
// delivered, and counted by its target. Of what comes in fragments some may have
// been written by then: each finds what is registered when it comes, and takes
// effect once, so that no repetition of it is ever written to memory that has been
// given the same address since.
//
// # How
//
// Datagrams with contents are numbered, per peer and class, and the receiver
// remembers which of a window it has had; so each takes effect once, and nothing
// above needs to know of duplicates. Their frames are self-contained: messages,
// operations, and fragments of larger ones that say where they belong, so that
// they are placed there as they come, in any order.
//
// Every datagram carries the acknowledgements (the next number expected and a
// bitmap) and the credits (messages consumed in all) of both classes, as counts
// that only grow (seed 002, QFC). Requests and replies have separate numbers,
// windows, congestion windows and credits, and take turns; a datagram is
// acknowledged when the engine has it, not when a message in it is consumed. So
// a reply never waits for a request.
//
// Small frames never wait when nothing of their kind is under way. Those that come
// while a datagram with small ones has been for less than Config.Hold collect in
// one, until it has arrived, until there are enough of them, until credit runs
// out, until that time has passed, or until the caller says that somebody waits
// ([Engine.Push]). A caller that stops calling sees to the rest itself: see
// [Engine.Held].
//
// An acknowledgement without contents costs as much as a datagram with them, so
// there are few: of what fills a gap, of what is asked for, of a quarter of the
// largest window, and of what nothing else has acknowledged for Config.AckDelay.
// Whoever may send less than that window asks when a quarter of its own is under
// way, and when it is full.
//
// A peer may have some datagrams in a row, of one length if there is much to be
// sent, so that the system can take them together ([Engine.NextParts]). Of fragments
// of a put that come like that, all but the first are only compared with the one
// before, written, and their numbers noted.
//
// A datagram is lost if three that were sent after it have arrived, and, where
// datagrams have been seen to overtake each other, if a quarter of a round trip
// has passed since. If there is no news at all, the oldest are sent again as a
// probe, and only when that brings none either all are taken for lost. Congestion
// control is that of TCP, but a loss of up to three in a hundred datagrams of a
// round trip is taken for an accident, which the window does not suffer from, and
// the cut is smaller.
//
// That a put was refused travels as a frame, in the class of replies, which names
// the put's datagram. Until it has been acknowledged the target acknowledges no
// datagram from that one on, so that the put's initiator hears of the refusal
// first. Puts that are not refused bear no trace of this: they need no answer.
//
// Gets from the segment are answered from where the data lies, as often as a
// datagram is lost; of registered memory, which may be withdrawn, a fragment is
// copied when it is cut.
//
// # Not there yet
//
// No heartbeat to peers that nothing is awaited from; no path MTU discovery; no
// explicit congestion notification.
package engine
