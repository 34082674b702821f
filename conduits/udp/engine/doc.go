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
// a *conduits.PeerError that names it. Time during which this rank itself did not
// run does not count (silence.go). A peer that nothing is awaited from is not
// watched. A datagram from or for another incarnation of a rank is dropped.
//
// A put is RemoteDone when the target's engine has written it, which the
// acknowledgement of its last datagram says. An access that the target refuses
// ends with an error that matches segment.ErrFault, unless it is a put whose
// RemoteDone no caller wants, which is counted; a long message that is refused is not
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
// Each transmission has a packet number, which is never used twice, beside the
// sequence number of its contents, which stays when they are sent again (RFC 9000,
// section 12.3). So every acknowledgement is a sample of the round trip, and that
// contents were sent again for nothing is noticed. Every datagram carries the
// acknowledgements of both classes (the next sequence number expected, the highest
// packet number that has arrived, how long ago that was, and a bitmap of those
// before it if contents are missing) and the credits (messages consumed in all), as
// counts that only grow (QFC in Papamichael 2007). Both classes share the path: its round
// trips, its congestion window and its probes. Each has credits and a window of
// sequence numbers of its own, they take turns, and a reply may go when requests
// fill the congestion window; a datagram is acknowledged when the engine has it, not
// when a message in it is consumed. So a reply never waits for a request.
//
// Small frames never wait when nothing of their kind is under way. Those that come
// while a datagram with small ones has been for less than Config.Hold collect, in one
// or in several that go together, until it has arrived, until there are enough of them,
// until credit runs out, until that time has passed, or until the caller says that it
// waits ([Engine.Push]). Small are puts of up to 256 bytes, gets, atomics and their
// answers, and messages that fit into a datagram, long ones of up to Config.MaxMedium
// bytes among them. A caller that stops calling sends the rest itself: see
// [Engine.Held].
//
// An acknowledgement without contents costs as much as a datagram with them, so
// there are few: of what fills a gap, of what is asked for, of a quarter of the
// largest window, and of what nothing else has acknowledged for Config.AckDelay.
// A sender that may send less than that window asks when a quarter of its own is under
// way, and when it is full.
//
// A peer may have some datagrams in a row, of one length if there is much to be
// sent, so that the system can take them together ([Engine.NextParts]). Of fragments
// of a put that come like that, all but the first are only compared with the one
// before, written, and their numbers noted.
//
// Losses are detected as RFC 9002, section 6, says: a datagram is lost if one that
// was sent three later has arrived, or any later one and 9/8 of a round trip has
// passed. Where datagrams have been seen to overtake each other time alone decides,
// and the more of them are taken for lost wrongly the more time there is. If there
// is no news at all, the oldest are sent again as a probe, with exponential backoff
// until something is acknowledged; a probe says nothing of losses.
//
// Congestion control is CUBIC (RFC 9438) with HyStart++ (RFC 9406), once for both
// classes. Losses are congestion if round trips are longer than the shortest, as
// they are while a queue is full, or if a third of all datagrams is lost; other
// losses are accidents that the window does not suffer from. Where round trips are
// shorter than a millisecond, up to three in a hundred datagrams of a round trip
// are accidents in any case: sockets lose them. From 250 us on datagrams are paced.
//
// Data of long messages is copied, so that its sender need not wait until it has arrived:
// up to Config.MaxMedium bytes always, as for medium ones, whose number credits bound,
// and up to [CopyMost] if the caller asks for it and not too many are under way
// ([Engine.Copy]).
//
// That a put was refused travels as a frame, in the class of replies, which names
// the put's datagram. Until it has been acknowledged the target acknowledges no
// datagram from that one on, so that the put's initiator hears of the refusal
// first. Puts that are not refused bear no trace of this: they need no answer.
//
// Gets of up to 256 bytes are answered from a copy that is made when they come, and
// their answers share datagrams, as results of atomics do. Larger ones from the
// segment are answered from where the data lies, as often as a datagram is lost; of
// registered memory, which may be withdrawn, a fragment is copied when it is cut.
//
// Where it is not sure that the largest datagram arrives (Config.Sure), an engine
// begins with 1200 bytes and looks for more by probes of padding, as RFC 8899 says,
// and returns to 1200 if shorter datagrams arrive and longer ones no more. Contents that have been
// cut by then go in pieces, with their sequence number, so that they still take
// effect once.
//
// # Not there yet
//
// No heartbeat to peers that nothing is awaited from; no explicit congestion
// notification. Where something drops by rate and keeps no queue (a policer), up to
// a third of the datagrams is lost. A path that becomes longer while it lasts is
// used as TCP would use it.
package engine
