// Package barrier is the split-phase barrier of a job: named, anonymous, and
// with mismatches that every rank reports (GASNet-1 specification, "Barriers",
// with the rules of its releases since 1.20).
//
// # Concepts
//
// A rank says that it has arrived with [Barrier.Notify], may do other work, and
// waits for all others with [Barrier.Wait] (or asks with [Barrier.Try]). The
// two together are one phase; [Barrier.Barrier] does both.
//
// A rank may give its barrier a name, an id of 32 bits, or be [Anonymous]. All
// ranks that name the barrier must name the same; anonymous ranks match
// anything. A rank may also give [Mismatch]. If the ranks do not match, every
// rank's Wait returns an error that wraps [ErrBarrierMismatch] and says which
// ranks or ids were seen; the ranks have met nevertheless, and the next phase
// is a fresh one. Wait has an id and flags too, which may differ from Notify's:
// a named Wait must name the id that the ranks agreed on, if there is one; what
// it says concerns the calling rank only.
//
// # Memory
//
// Notify is a release and Wait an acquire: whatever a rank has written by
// direct access, and every put and atomic of its that is complete, before it
// calls Notify, is seen by all ranks once their Wait of that phase (or the Try
// that says that it is over) has returned. Operations still under way are not
// ordered: a barrier completes no non-blocking operation.
//
// # Cost
//
// Where all ranks reach each other's memory, two ranks share one cache line that
// crosses once a barrier (0.4 to 0.9 times the one-way time of a flag, depending on
// where the processors lie); up to 16 ranks each write a line and read the others';
// more ranks count themselves in a tree of counters with 8 arrivals each, and the
// last one releases all. A rank then sends no
// message, needs no help from ranks that have arrived, and is woken from sleep
// once. Where the conduit's cards have a barrier, they do it, and no rank need call
// anything in between. Elsewhere each rank sends ceil(log2 N) short messages, and a round
// advances when the rank calls Wait or Try: a rank that computes between Notify
// and Wait holds up those that learn of others through it. If the conduit says
// which ranks share memory, then those count themselves in a tree, and only the
// first rank of each of H neighbourhoods sends, ceil(log2 H) messages; it is the
// one that may hold up others. State per rank is
// O(log N). Nothing allocates, except to describe an error.
//
// # Duties of the caller
//
// The handlers of this package go into am.Config.Runtime; [Barrier.Bind]
// comes after it. All ranks run the same phases. No method may be called in a
// handler: Notify, Wait and Try fail the job there, with an error that names it.
// While a rank waits, handlers run on its goroutine.
//
// # Failure
//
// Misuse (two Notifies in a row, Wait without Notify, unknown flags) is an error
// and changes nothing. If a rank of the job fails, Wait and Try return a
// *[PeerError] that names it; so they do if a rank leaves the job (closes its
// endpoint) that others wait for, which fails the job. [Barrier.Blocked]
// names the rank that is missing.
package barrier
