// Package seal makes the datagrams of a job such that strangers can neither
// disturb them nor, if wanted, read them.
//
// Every rank of a job holds the job's [jobkey.Key], and for each run a private key of its own,
// of which it announces the public one. Two ranks agree on a key that no third one has when they
// meet. A rank's [Sealer] seals datagrams to other ranks and opens those that came from them. What it
// opens was sealed by the rank it names, for this rank, and is opened once; everything else is
// refused and counted before its contents are looked at.
//
// # Threat model
//
// A stranger is a process that does not hold the job's key. It may read, drop, delay,
// reorder, repeat and change every datagram, send what it likes from any
// address, and remember all of it. What it cannot do:
//
//   - have a datagram accepted that no rank sealed, or that was changed, cut or
//     extended on its way (a tag of 128 bits; a forged datagram of n bytes
//     passes with a chance of about (n/16)/2^128);
//   - have a datagram accepted as another rank's, or by another rank than it was sealed for: the tag's
//     key is that of the two, and both stand in the header, which the tag covers;
//   - have it accepted twice, or long after: a window per source remembers what
//     was opened; what is older than the window is refused;
//   - have a datagram accepted of, or by, another run of a rank: the key is that of two runs;
//   - read payloads, in mode [Encrypted], also if it learns the job's key later: the private keys
//     are gone with the processes that had them;
//   - cost memory: what is refused allocates nothing and leaves nothing behind,
//     except that for each other rank of the job about 1.5 KiB of
//     key and window are kept from the first datagram whose header that rank made.
//
// A rank that turned malicious, or a thief of the job's key, is a stranger to all pairs of ranks that it is not of:
// it can neither speak as another rank nor read what others say. (It can make a header
// that costs its target the derivation of a key, once for each rank.) This holds as far as the
// announcements are right: a process that passes for the rendezvous when ranks join, or joins in the place of a rank,
// is between them.
//
// Not protected are:
//
//   - Payloads from being read, in mode [Authenticated], the default.
//   - Which ranks talk to each other, when, how often, and the length of each datagram. The
//     header (ranks, counter, incarnations) is readable in all modes.
//   - The link. A stranger that floods it, or drops datagrams, slows the job or
//     stops it. Refusing one datagram costs a look at its header, and one pass over its
//     bytes only if it has up to 2,048, or if header and length are those of a datagram
//     that a rank has sealed for this one and that has not been opened. The header of a datagram
//     that was lost, or is held back, can be repeated any number of times with other
//     payloads: each costs a full pass.
//   - Anything, in mode [None]. It is for networks to which no other party has
//     access. The header and its checks remain but for the window, which a
//     damaged counter would move too far: datagrams which went astray or belong to
//     an earlier run are dropped among honest ranks; strangers can forge all of it,
//     and have memory taken for each rank of the job. To detect damage beyond UDP's
//     checksum, and repetition, is the payload's business.
//   - The keys on the hosts: what may read the memory of one rank has that rank's, and what may read
//     its environment or key file has the job's. Prefer a file to the environment, which other processes
//     of the same user can read.
//
// # Incarnations
//
// A rank's incarnation is the number of its run, which it announces with its public key. Take it
// from [NewIncarnation], and bind the key to the job with [jobkey.Key.ForJob] if it is
// used for more than one. Two runs of a rank have other private keys, hence other keys with each
// peer, and never the same nonce under one.
//
// # Limits
//
// The counter of datagrams is per destination, so that the window spans as many
// datagrams whether the source talks to one rank or to all, and 64 bits wide;
// the nonce is the destination and the counter. Limits on random nonces, such
// as 2^32 for AES-GCM, therefore do not apply; the limit on the amount of data
// under one key does. Seal fails with ErrResource after 2^47 cipher blocks of 16
// bytes to one rank (2 PiB, or three weeks at 10 Gbit/s; in mode Authenticated 2^47 datagrams), and the
// other rank has as many, where a stranger that saw all of it has an advantage of at most 2^-32. A new
// sealer with a new incarnation and private key goes on.
//
// # Cipher
//
// The cipher is AES-128-GCM of the standard library; mode Authenticated uses it
// on additional data alone. Measured on an AMD EPYC with AES and carry-less
// multiplication, shared with other work, best of several runs, in ns to make
// one tag of 64, 1,400 and 65,000 bytes:
//
//	authenticate  AES-128-GCM     50    243    7,870
//	              AES-256-GCM     54    246    7,920
//	              HMAC-SHA-256   186    964   36,300
//	encrypt       AES-128-GCM    104    378   11,400
//	              AES-256-GCM    114    426   12,400
//
// To agree on a key takes 43 us (BenchmarkFirstContact), once for each pair that talks.
//
// ChaCha20-Poly1305, not in the standard library, took 1.6 to 1.9 times as long
// as encrypting by AES-128-GCM. A processor without AES instructions runs the
// library's portable code, at a small fraction of the speed.
package seal
