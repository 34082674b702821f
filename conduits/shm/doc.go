// Package shm is the conduit for ranks that share memory: processes of one
// host, or goroutines of one process.
//
// # Bootstraps
//
// [Local] opens all ranks inside this process; everything lies in the Go heap,
// where the race detector sees it. A launcher calls [CreateJob] and starts
// processes that inherit the job's memory as a file without a name, so nothing
// is left in the file system however they end; each of them calls [Join].
//
// # Mailbox
//
// Each ordered pair of ranks that ever talks has two rings of 64-byte slots, one
// for requests and one for replies, and beside each ring a landing buffer for
// medium payloads. A sender owns the tail of its rings, the receiver their head;
// neither needs an atomic read-modify-write. A slot:
//
//	0        status, 8 bytes, written last; zero means empty
//	         63..40 index of the slot plus one, low 24 bits
//	         39     1
//	         38     the message goes on in the next slot
//	         37..36 kind: short, landed payload, payload in the slot, long
//	         35     nothing to deliver: a gap or a cancelled message
//	         34..30 number of words
//	         23..0  tag
//	8..63    short: words
//	         landed: place and length in the landing buffer (8), words
//	         in the slot: length (8), words, padding to 8, payload
//	         long: address (8), length (8), words
//
// The receiver clears the status when it has run the message: a later sender
// finds the line in one state instead of two, which halved the cost of a flood.
// Credits return as the cumulative head, which the receiver publishes every
// quarter of a ring: a full ring implies that a quarter was consumed, so credit
// cannot get stuck. Landing buffers work likewise, in bytes.
//
// A receiver looks only at rings that have been used: a sender's first message
// to a rank sets a bit at the receiver. It watches the ring that delivered last,
// looks at up to 16 others a poll, and thus reaches each in a bounded number of
// polls. Measurements are in ARCHITECTURE.md.
//
// # Sleeping
//
// A sender reads one word of the receiver after each message, which is written
// only when the receiver goes to sleep, so that it costs nothing otherwise. The
// receiver makes this safe: having announced itself, it makes every running
// thread of the job pass a memory barrier (membarrier(2)) and looks once more.
// Where ranks outnumber processors, or the system call is missing, senders
// fence instead.
package shm
