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
// Each ordered pair of ranks that ever talks has a conversation: a ring of cells
// for the requests of one and the replies of the other, and two landing buffers
// for their medium payloads. The rings of the two classes advance on their own;
// they share cells, not credits. A sender owns the tail of its ring, the
// receiver its head; neither needs an atomic read-modify-write. A cell:
//
//	  0..31   request: status, 8 bytes, and up to 24 bytes of body   one line
//	 32..63   reply:   the same                                      of 64 bytes
//	 64..223  request: a larger body
//	224..383  reply:   a larger body
//
// The status is written last; zero means empty:
//
//	63..40 index of the message plus one, low 24 bits
//	39     1
//	38     the body is the larger one
//	37..36 kind: short, landed payload, payload in the body, long
//	35     nothing to deliver: a cancelled message, or cells to be skipped
//	34..30 number of words
//	29     long, to a segment
//	23..0  tag
//
// and the body is
//
//	short             words
//	landed            words
//	in the body       words, padding to 8, payload
//	long              address (8), length (8), registrations (8), words
//	long, to segment  words
//
// In all but the first and the fourth a header of 8 bytes comes before it, always beside
// the status: place and length in the landing buffer, the payload's length, the address
// (low 40 bits) and length.
//
// So a short message of up to six words is one line, the 64-byte slot of the
// card; more take the next lines too (the card of Nüssle 2008 sends a second slot).
//
// A reply lies in the line of its request, which the replier has taken already
// to read it and the requester watches: that saves the reply's sender one of the
// two transfers of a line that a message costs. The receiver clears the status
// before it runs the message, while it has the line. Credits return as the
// cumulative head, which the receiver publishes every quarter of a ring: a full
// ring implies that a quarter was consumed, so credit cannot get stuck. Landing
// buffers work likewise, in bytes.
//
// A receiver looks only at rings that have been used: a sender's first message
// to a rank sets a bit at the receiver. It watches the ring that delivered last,
// looks at up to 16 others a poll, and thus reaches each in a bounded number of
// polls. Measurements are in ARCHITECTURE.md.
//
// # Lanes
//
// A rank that has lanes (conduits.Config.Lanes) has a conversation for each lane and rank it
// talks to, and a block of words for each lane; the first lane's is in its control block. A
// first message in another lane sets a bit there, too, and the receiver makes the lane.
//
// # Registered memory
//
// In one process a rank reaches what another has registered by that rank's address
// translation unit. Between processes the unit's tables lie in the job's memory,
// which grows for them, and each process reads the others' tables itself. While it
// does, and until it has copied, one of its units, a word in the job's memory, is
// odd; Deregister waits for those of all ranks that have ever read the tables. Then
//
//   - memory that the owner has from MapMemory lies in the job's memory, too. Others
//     map it, a gigabyte at a time, when they first need it, and load and store:
//     13 ns more than a put to the segment, which takes 7 (BenchmarkPut);
//   - memory private to the owner is reached by process_vm_readv(2) and
//     process_vm_writev(2), where a trial shows that they are permitted; up to 1024
//     pieces by one call (conduits.ManyAtOnce);
//   - otherwise the owner is asked, and answers when it polls, in handlers, too, and
//     is woken for it. So are atomics, PutWord and aligned puts and gets of 8 bytes
//     on private memory, which the system calls could tear. Such operations complete
//     later, by Complete. A rank has places for 32 questions of 16 KiB, of
//     which one owner gets at most 24 and the last 8 go to owners that have none:
//     up to 8 owners that do not poll hold up only the ranks that ask them.
//
// A long message to registered memory says how many registrations its receiver had
// had before the data was put. If the memory is of a later one when the message's turn
// comes, the addresses have been given out again since, and it is not delivered.
//
// A refused put that takes several questions may have been done in part. A question to
// a rank that has left the job ends with a fault, to one that has failed with its *PeerError. What a
// rank that died was accessing when its memory was deregistered is never given out
// again.
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
