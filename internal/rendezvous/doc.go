// Package rendezvous is the service where the ranks of a job that spans
// processes and hosts find each other, and learn which of them has failed.
//
// There is one service per job, on one TCP port: in the launcher ([Serve]), or,
// if no launcher serves, in rank 0's process ([Setup.Join]). Every rank keeps one
// connection to it ([Client]) as long as it takes part. It carries little: which rank is
// where, which segments there are, a few small values that all may read, and that
// ranks leave or fail. Messages between ranks do not pass here.
//
// # What a rank does
//
// It says [Hello] and waits until all have; then it knows the address,
// incarnation, public key and host of every rank. It announces its segment ([Client.Attach])
// and hears when all have ([Events.Attached]). At the end it leaves
// ([Client.Leave]) and closes.
//
// A difference is an error on both sides that names both values: another
// number of ranks, a rank that is there already or cannot be, another
// [Hello.Agree]. While ranks are missing it fails the job, for the rank that
// does not fit would be missed; later it can only be a stray of another job, and
// only it is refused. So is at any time one that says the name of another job
// ([Hello.Job]), which tries again, for the service of its own job may still
// come. Ranks that do not come within [ServerConfig.Patience] fail the job, and
// all ranks are told which.
//
// Ranks may start before the service does. They try again, at growing intervals,
// as long as no service listens, the name is unknown, or the connection is closed
// before they were let in. They do not try again when the service holds another
// key, is no rendezvous at all, or refuses them.
//
// # Failure
//
// A rank whose connection ends without Leave has failed. The system ends a dead
// process's connections, so that all ranks hear of a kill -9 within a round trip
// or two, or half a second later if no launcher of ours serves; of a host that is
// dead or cut off they hear after [ServerConfig.DeadTime]. A rank that loses the
// service treats the job as failed: because of rank 0 if its process served, else
// because of itself, for to the others it is this rank that has gone. [Server.Fail]
// and [Client.Fail] are for callers that know better. The first failure of a job
// counts, and is what every rank is told. [ServerConfig.Grace] gives a launcher the
// time to say how a process ended before its connection speaks.
//
// Time-outs of the service and of the ranks (Patience, Grace, the handshake's, the
// answers to Leave) count only while the process that judges runs, see package
// awake. The system's, by which a silent host's connections end, go on while
// processes are stopped; but the systems of both hosts answer for them.
//
// If rank 0 serves and leaves before the others, its Close waits for them, for
// [Setup.Linger] at most. Then it tells them that the service is over, and they go
// on without: they do not hear of leaving any more, nor of a failure, unless they
// talk to the rank that fails.
//
// A rank that is silent to another one need not be gone: its runtime may be busy with what
// lets no goroutine run. [Client.Look] has the service look at its process, and try whether
// it answers by TCP.
//
// # Trust
//
// Connections are TLS 1.3. Both sides show a certificate, whose private key is an
// ed25519 key derived from the job's key ([jobkey.Key.Seed]); each compares the
// other's public key with its own, and TLS proves that the private one is there.
// Nothing else of a certificate counts, so that no authority, no host name and no
// clock matters. A holder of the job's key is trusted, as the datagrams trust
// it: it may say that it is any rank, as long as that has not come. What it sends is still checked, and bounded,
// for it may be another version, or mad.
//
// A stranger costs the service a slot of 256 for at most 10 s, at most 16 KiB of
// its bytes, one signature (the service's own, of a fresh handshake), and a count
// ([Server.Strangers]), of which the first, second, fourth and so on are logged. If all
// slots are taken and no rank has got in for a second, the oldest are thrown out,
// so that strangers that say nothing delay ranks, and do not keep them out. A
// flood of connections takes processor time and sockets, as it does from every
// server. A stranger in the place of the service learns nothing: the rank ends the
// handshake, and its error says that the server does not hold the same key. The key
// is never printed.
//
// There is no forward secrecy of the right to enter: a thief of the key
// can later still not read what was recorded, for TLS agrees on fresh keys, but can
// enter.
//
// # Protocol
//
// A frame is a length (4 bytes, big-endian), a kind (1 byte) and a body; the length
// counts kind and body, and is at most 64 KiB, and 2 KiB for the first frame. From a
// rank come
//
//	hello     version, rank, size, incarnation, port, address, host, job,
//	          public key, agree
//	attach    size, rights
//	put, get  number, key, value; forget  number
//	fail      rank, status, cause
//	who       (asks which ranks are missing)
//	look      number, rank, how long it may take, how long that rank is silent
//	echo      number, and what was seen of a process of this host (to echo)
//	probe     (in place of hello: whether the service holds the key)
//	watch     (in place of hello: it is no rank, and is told if the job fails)
//	leave     (last)
//
// and from the service
//
//	welcome   instance, whether rank 0 serves, dead time; or refuse  why
//	missing   how many, the first 8
//	table     of all ranks, in parts, once all are there
//	attached  table of all segments, in parts, once all have attached
//	left      ranks
//	answer    number, verdict, value or why
//	failed    rank, status, cause
//	echo      number, process to look at or 0
//	watch     (to watch)
//	bye       (to leave and probe); over  (the service ends first)
//
// The version is the first thing that is said, and must be the same.
//
// # Scale
//
// The number of messages grows with the number of ranks, not of pairs. A table is
// encoded once and sent to all. It has columns, each with as many bytes per rank as
// its numbers differ in, and stays in memory as it came:
//
//	address      0 to 2 bytes: which of the addresses there are (24 bytes each)
//	port         0 to 2
//	incarnation  5, if clocks differ by less than 18 minutes (it is a time in ns)
//	host         0 to 2
//	public key   32 with udp's seals, else none
//	segment      0, if all are of equal size, else up to 8
//	rights       0, if all are equal, else up to 4
//
// that is 8 to 11 bytes per rank in every process, 40 to 43 with public keys, and nothing else per rank: 8.0 and 40.0
// measured at 9,900 ranks. Each of n ranks must hear of n addresses, so that the
// service sends n² times that: 4 GB in all for 10,000 ranks.
//
// Ranks that leave are told of in turns: the first at once, those that leave while
// the others are being told in the next turn, together. No turn comes sooner
// than 20 µs per rank after the last, which leaves time for other things, and
// each rank is told of all that it has missed in one message. A slow or stuck rank
// delays only itself: it has its own goroutine while it is written to, and no
// queue, but a position in the news of all.
//
// A rank costs the service one connection and one goroutine. Entering costs about
// 1 ms of processor time for both sides together, most of it signatures and their
// checks; clients and service in one process took 75 KiB per rank for both,
// without tables.
package rendezvous
