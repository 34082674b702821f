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
// polls. Measured (go test ./conduits/shm -bench . -run xxx, warm caches):
//
//	ranks that have sent                        1      7     31    127
//	empty poll                               7 ns  28 ns  37 ns  47 ns
//	message from a random one, and its send 26 ns  57 ns  93 ns 226 ns
//	polls until it is found                     1      1    1.9    4.6
//
// To look at every ring each time would cost at 127 senders some 16 times the looks.
//
// A pair that has talked takes 24 KiB of cells and what it has used of two landing
// buffers (128 KiB up to 32 ranks, 16 KiB at 128). A rank keeps state only for ranks it
// has exchanged messages with.
//
// # Strands
//
// Goroutines of a rank that send requests to one rank at the same time, by one endpoint, get rings of
// their own beside the first one, up to 15 (strands_unsafe.go). They lie where the job's memory grows,
// each with 24 KiB of cells and what is used of one landing buffer; without that memory all goroutines
// send by the first ring. The receiver polls strands like the rings of other ranks, under one lock,
// so that handlers still run one at a time. The messages of each goroutine keep their order, on
// whatever processor it runs: a message that goes by another ring than the one before it says so, in a cell
// before it:
//
//	status    35 and 29 set, no words; the tag is the ring of the message before, 0 for the first
//	8 bytes   how many cells of that ring come first
//
// Between goroutines there is no order, also if one has sent before it let the other go on, once they
// have crowded. A goroutine that sends alone uses the first ring.
//
// # Parts
//
// An [Endpoint] is parts by value, so that a send or a poll reaches their fields without a
// step more. Each has a file whose comment names what guards it:
//
//	mailbox    rings, slots, credit (mailbox, poll, ring)    uses bell, memory, lifecycle
//	waiter     idle, arm, sleep                              uses bell
//	desk       questions to owners (ask)                     uses bell, lifecycle
//	answers    to others' questions (answer)                 uses bell, memory, lifecycle
//	checks     what the watcher compares (watch)             uses bell, lifecycle
//	memory     views, registered memory, mappings (foreign)  uses lifecycle
//	bell       wakes other ranks, and siblings
//	lifecycle  attached, closed, failed, hooks
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
//     pieces by one call (conduits.Access.Pieces);
//   - otherwise the owner is asked, and answers when it polls, in handlers, too, and
//     is woken for it. So are atomics, puts of a word and aligned puts and gets of 8 bytes
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
// fence instead (5 ns; membarrier takes 2 to 8 us, once for each sleep). That is
// decided once, at Attach; how long ranks spin may differ and change at any time
// (internal/conc, Patience).
//
// The sender that finds the word set clears it and wakes the receiver by one futex call;
// the receiver sets it again before it sleeps again. Direct accesses wake whatever sleeps
// at their target, too. A caller of conduits.Wait that is woken for nothing polls for
// longer before it sleeps again, up to 128 times: a fetch-and-add of 10.5 ns took 22.5
// beside a rank that slept again at once.
//
// # Failure and damage
//
// Each rank has a failure record with a checksum, and so has the launcher; a word of the
// header names the one that counts, so that none is read half written. A reader checks
// name, checksum, rank, status and length, and escapes the text.
//
// One goroutine of each process, the watcher, looks ten times a second after what a rank
// does not notice while it computes or accesses memory directly:
//
//   - The job has failed: the sizes in the table of views become 0, so that the next
//     direct access takes the slow path, which returns the failure. The fast path is not
//     an instruction longer for it. Under the race detector the table stays as it is.
//   - The job's memory is damaged: the process compares the header, and what it alone
//     writes in its control block, with what it knows. The job fails with the words that
//     differ.
//   - A message in flight is gone: once a second each rank audits its rings
//     (audit_unsafe.go). What is missing in five audits of both sides ends the job by an
//     error that names ring, message and cell; so does a word of a ring or a desk that is
//     not what its only writer has written. A question whose owner was not told is told
//     again. Bytes of a message are not compared.
//   - A sleeper's announcement is gone: after 20 looks the watcher wakes it.
package shm
