package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/fips140"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// Mode is the protection of datagrams. All ranks of a job have the same.
type Mode uint8

// The modes.
const (
	// Authenticated protects datagrams from everything but being read. It is the
	// zero Mode: authentication is on unless None is asked for by name.
	Authenticated Mode = iota
	// Encrypted also keeps strangers from reading payloads.
	Encrypted
	// None protects from nothing; see the package's threat model.
	None

	numModes
)

var modes = [numModes]string{"authenticated", "encrypted", "none"}

// String names the mode as ParseMode reads it.
func (m Mode) String() string {
	if m < numModes {
		return modes[m]
	}
	return "mode " + strconv.Itoa(int(m))
}

// ParseMode reads "authenticated", "encrypted" or "none".
func ParseMode(s string) (Mode, error) {
	if i := slices.Index(modes[:], s); i >= 0 {
		return Mode(i), nil
	}
	return 0, errs.BadArg("seal: no mode %q; there are %q, %q and %q", s, modes[0], modes[1], modes[2])
}

// A sealed datagram, integers big-endian:
//
//	 0        1                        4             8
//	+--------+------------------------+-------------+
//	| format | source                 | destination |
//	+--------+------------------------+-------------+
//	| counter, per source and destination           |
//	+-----------------------------------------------+
//	| incarnation of the source                     |
//	+-------------------------+---------------------+
//	| ticket                  | destination's epoch |
//	+-------------------------+---------------------+
//	| payload ...                                   |
//	+-----------------------------------------------+
//	| tag, 16 bytes (not in mode None)              |
//	+-----------------------------------------------+
//
// Bytes 4 to 16 are the nonce: no two datagrams of one source and incarnation,
// hence under one key, share it. The tag covers everything before it. The ticket is a
// tag of 32 bits of the header alone. That of a datagram of up to shortBytes proves that
// a holder of the key made this source and incarnation up, before a key is derived for
// them. That of a longer one covers all of its header and its length, so that a stranger
// cannot have 65,000 bytes hashed for a header copied from elsewhere: a ticket is 24 ns,
// a tag of so many bytes 7,900. The epoch is the destination's incarnation as far as the
// source knew it, in 32 bits, or 0.
const (
	atFormat      = 0
	atDestination = 4
	atCounter     = 8
	atIncarnation = 16
	atTicket      = 24
	atEpoch       = 28

	nonceStart, nonceEnd = 4, 16

	tagSize       = 16
	cipherKeySize = 16 // AES-128; see the package comment for the choice

	// format is the version in the high four bits, the mode in the low four.
	version = 2

	// shortBytes is the longest datagram whose ticket says nothing of it.
	shortBytes = 2048

	// maxBlocks is how many blocks a sender may put through its cipher, and so
	// bounds its counters too.
	maxBlocks = 1 << 48
)

const (
	// HeaderSize is how many bytes of a datagram come before the payload, in all
	// modes: a multiple of 16, so that the payload is aligned as the datagram is.
	HeaderSize = 32
	// MaxDatagram is the largest sealed datagram in bytes: what UDP's length
	// field can say, less UDP's own header. IPv4 takes 20 bytes fewer.
	MaxDatagram = 65535 - 8
	// MaxRanks is the largest size of a job.
	MaxRanks = 1 << 24
)

// Overhead is by how many bytes a datagram is longer than its payload.
func Overhead(m Mode) int {
	if m == None {
		return HeaderSize
	}
	return HeaderSize + tagSize
}

// NewIncarnation returns an incarnation that is larger than those of all
// earlier runs, as long as the host's clock does not go back: the time in
// nanoseconds.
func NewIncarnation() uint64 { return uint64(time.Now().UnixNano()) }

// A Sealer seals and opens the datagrams of one rank. Any number of goroutines
// may use it at once: sealing shares two atomic counters, opening a short lock
// per source. What is remembered of a peer (about 70 bytes, and 1.4 KiB once it
// was heard) lives as long as the Sealer.
type Sealer struct {
	rank        uint32
	size        uint32
	mode        Mode
	format      byte
	incarnation uint64
	prefix      block  // of its own tickets
	ticket      uint32 // of datagrams of up to shortBytes
	epoch       uint32

	key  jobkey.Key
	aead cipher.AEAD // this rank's own; nil in mode None

	blocks  atomic.Uint64 // sealed so far, of maxBlocks
	refused counters

	peers atomic.Pointer[table]
	mu    sync.Mutex // held to add to peers, and for scratch

	tickets cipher.Block // nil in mode None
	scratch block
}

// A peer is a rank that was sealed to, or that was heard.
type peer struct {
	rank    uint32
	counter atomic.Uint64          // of the next datagram to it
	source  atomic.Pointer[source] // its incarnation as far as known; nil before

	mu        sync.Mutex
	candidate *source // another incarnation, with a ticket but without a datagram yet
}

// A source is one incarnation of a peer.
type source struct {
	incarnation uint64
	aead        cipher.AEAD // nil in mode None
	prefix      block       // of its tickets

	mu      sync.Mutex
	seen    window
	scratch block
}

// block is the unit of a ticket's cipher.
type block [aes.BlockSize]byte

// New makes the sealer of a rank of a job of size ranks, in its incarnation,
// which is not 0 and never occurs twice with the same key and rank: see
// NewIncarnation. Mode None ignores key, the others need one. The error is ErrBadArg, which
// names the argument, or ErrNotSupported if the process is confined to ciphers that package
// seal does not use.
func New(key jobkey.Key, rank, size int, incarnation uint64, mode Mode) (*Sealer, error) {
	switch {
	case size < 1 || size > MaxRanks:
		return nil, errs.BadArg("seal: %d ranks; a job has 1 to %d", size, MaxRanks)
	case rank < 0 || rank >= size:
		return nil, errs.BadArg("seal: rank %d in a job of %d", rank, size)
	case incarnation == 0:
		return nil, errs.BadArg("seal: incarnation 0 of rank %d; they start at 1 (NewIncarnation)", rank)
	case mode >= numModes:
		return nil, errs.BadArg("seal: no mode %d; the last is %d", mode, numModes-1)
	case mode != None && !key.Valid():
		return nil, errs.BadArg("seal: mode %v needs a job key; set %s, or name mode %v", mode, jobenv.JobKeyFile, None)
	case mode != None && fips140.Enforced():
		return nil, errs.NotSupported("seal: mode %v in a process with GODEBUG=fips140=only, which takes AES-GCM with random nonces alone", mode)
	}
	s := &Sealer{
		rank: uint32(rank), size: uint32(size), mode: mode,
		format:      version<<4 | byte(mode),
		incarnation: incarnation,
		epoch:       epochOf(incarnation),
	}
	s.peers.Store(newTable(8))
	if mode != None {
		s.key = key
		s.aead = newAEAD(senderKey(key, mode, s.rank, incarnation))
		s.tickets = newBlock(key.Derive("ticket", []byte{byte(mode)}, cipherKeySize))
		s.prefix = s.prefixOf(s.rank, incarnation)
		s.ticket = s.ticketOf(&s.scratch, &s.prefix, nil)
	}
	return s, nil
}

// senderKey derives from a job's key what source, in that incarnation, seals with.
func senderKey(key jobkey.Key, mode Mode, source uint32, incarnation uint64) []byte {
	var c [13]byte
	c[0] = byte(mode)
	binary.BigEndian.PutUint32(c[1:], source)
	binary.BigEndian.PutUint64(c[5:], incarnation)
	return key.Derive("sender", c[:], cipherKeySize)
}

// Rank is the rank that s seals as.
func (s *Sealer) Rank() int { return int(s.rank) }

// Incarnation is the incarnation that s seals as.
func (s *Sealer) Incarnation() uint64 { return s.incarnation }

// Mode is the mode of s.
func (s *Sealer) Mode() Mode { return s.mode }

// Format prints rank and mode of the sealer, whatever the verb: below are keys.
func (s *Sealer) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "sealer of rank %d of %d, incarnation %d, %v", s.rank, s.size, s.incarnation, s.mode)
}

// Refused counts the datagrams that Open has refused since New.
func (s *Sealer) Refused() Counts { return s.refused.counts() }

// Seal appends to dst a datagram for rank to that carries plain, and returns the
// longer slice. It allocates only if dst has too little room (Overhead of the
// mode more than plain), and when rank to is met for the first time.
//
// plain may lie where the payload will, at dst[len(dst)+HeaderSize:]: it is then
// not copied, but in mode Encrypted overwritten. Otherwise it must not overlap
// the room that the datagram takes. Neither slice is kept. To send the same
// datagram again is harmless: the second one to arrive is refused.
//
// Errors, for which dst is returned as it was: ErrBadArg if there is no rank to,
// or plain makes the datagram longer than MaxDatagram; ErrResource when the key
// has protected as much as it should.
func (s *Sealer) Seal(dst []byte, to int, plain []byte) ([]byte, error) {
	if uint(to) >= uint(s.size) {
		return dst, errs.BadArg("seal: datagram to rank %d of %d", to, s.size)
	}
	n := len(plain)
	if n > MaxDatagram-Overhead(s.mode) {
		return dst, errs.BadArg("seal: %d bytes of payload; a datagram takes %d in mode %v", n, MaxDatagram-Overhead(s.mode), s.mode)
	}
	if !s.spend(n) {
		return dst, errs.Resource("seal: rank %d has sealed all that one key should protect; a new incarnation can go on", s.rank)
	}
	p := s.peerOf(uint32(to))

	start := len(dst)
	dst = slices.Grow(dst, n+Overhead(s.mode))
	d := dst[start : start+HeaderSize+n]
	binary.BigEndian.PutUint32(d[atFormat:], uint32(s.format)<<24|s.rank)
	binary.BigEndian.PutUint32(d[atDestination:], uint32(to))
	binary.BigEndian.PutUint64(d[atCounter:], p.counter.Add(1)-1)
	binary.BigEndian.PutUint64(d[atIncarnation:], s.incarnation)
	epoch := uint32(0)
	if src := p.source.Load(); src != nil {
		epoch = epochOf(src.incarnation)
	}
	binary.BigEndian.PutUint32(d[atEpoch:], epoch)
	ticket := s.ticket
	if whole := start + n + Overhead(s.mode); s.tickets != nil && whole-start > shortBytes {
		// The tag is not there yet.
		ticket = s.ticketOf((*block)(dst[whole-tagSize:whole]), &s.prefix, dst[start:whole])
	}
	binary.BigEndian.PutUint32(d[atTicket:], ticket)

	header, payload, nonce := d[:HeaderSize], d[HeaderSize:], d[nonceStart:nonceEnd]
	if s.mode == Encrypted {
		return s.aead.Seal(dst[:start+HeaderSize], nonce, plain, header), nil
	}
	if n > 0 && &payload[0] != &plain[0] {
		copy(payload, plain)
	}
	if s.mode == None {
		return dst[:start+len(d)], nil
	}
	return s.aead.Seal(dst[:start+len(d)], nonce, nil, d), nil
}

// spend takes the blocks for n bytes out of what the key may protect.
func (s *Sealer) spend(n int) bool {
	if s.blocks.Load() >= maxBlocks {
		return false // not added to: it could wrap
	}
	use := uint64(1) // the block that hides the tag
	if s.mode == Encrypted {
		use += uint64(n+15) / 16
	}
	return s.blocks.Add(use) <= maxBlocks
}

// Open checks a datagram and returns the rank that sealed it and its payload,
// which is a part of datagram: in mode Encrypted it is decrypted in place. It
// belongs to the caller as datagram does; nothing is kept.
//
// Any other Reason than Accepted says why the datagram is refused, and is
// counted; the rank is then -1, the payload nil, and in mode Encrypted the bytes
// after the header are undefined. Refusing does not allocate. Accepting does for
// the first datagram of a rank's incarnation.
func (s *Sealer) Open(datagram []byte) (from int, plain []byte, why Reason) {
	from, plain, why = s.open(datagram)
	if why != Accepted {
		s.refused[why].Add(1)
		return -1, nil, why
	}
	return from, plain, Accepted
}

func (s *Sealer) open(d []byte) (int, []byte, Reason) {
	if len(d) < Overhead(s.mode) {
		return 0, nil, TooShort
	}
	word := binary.BigEndian.Uint32(d[atFormat:])
	rank := word & (MaxRanks - 1)
	counter := binary.BigEndian.Uint64(d[atCounter:])
	incarnation := binary.BigEndian.Uint64(d[atIncarnation:])
	if byte(word>>24) != s.format || counter >= maxBlocks || incarnation == 0 {
		return 0, nil, Malformed
	}
	epoch := binary.BigEndian.Uint32(d[atEpoch:])
	if binary.BigEndian.Uint32(d[atDestination:]) != s.rank || epoch != 0 && epoch != s.epoch {
		return 0, nil, WrongDestination
	}
	if rank >= s.size {
		return 0, nil, UnknownRank
	}

	p := s.peers.Load().find(rank)
	var src *source
	if p != nil {
		src = p.source.Load()
	}
	if src == nil || src.incarnation < incarnation {
		if src = s.admit(p, rank, incarnation, d); src == nil {
			return 0, nil, BadTag
		}
	} else if src.incarnation > incarnation {
		return 0, nil, OldIncarnation
	} else if len(d) > shortBytes && s.mode != None {
		// Cheap checks, without a pass over the datagram; each is made again afterwards.
		why := BadTag
		src.mu.Lock()
		if s.ticketHolds(&src.scratch, &src.prefix, d) {
			why = src.seen.look(counter)
		}
		src.mu.Unlock()
		if why != Accepted {
			return 0, nil, why
		}
	}
	plain, ok := s.verify(src.aead, d)
	if !ok {
		return 0, nil, BadTag
	}
	if p == nil {
		p = s.peerOf(rank)
	}
	if cur := p.source.Load(); cur != src && !p.promote(src) {
		return 0, nil, OldIncarnation // a later one was heard meanwhile
	}
	if s.mode == None {
		// Nothing vouches for the counter: a window moved by one that was damaged, or
		// made up, would refuse all that the rank says from then on.
		return int(rank), plain, Accepted
	}
	src.mu.Lock()
	why := src.seen.see(counter)
	src.mu.Unlock()
	return int(rank), plain, why
}

// Claims returns the sender that a datagram's header names, rank and incarnation, before
// anything is checked. ok is false if the datagram is too short.
func Claims(datagram []byte) (rank int, incarnation uint64, ok bool) {
	if len(datagram) < HeaderSize {
		return 0, 0, false
	}
	word := binary.BigEndian.Uint32(datagram[atFormat:])
	return int(word & (MaxRanks - 1)), binary.BigEndian.Uint64(datagram[atIncarnation:]), true
}

// Alike reports whether the headers of two datagrams, the second of which Open has
// accepted, differ in nothing but their counters. In mode None Open would then
// accept the first one too, unless a later incarnation of its source has been heard
// or learnt since.
func Alike(datagram, accepted []byte) bool {
	if len(datagram) < HeaderSize || len(accepted) < HeaderSize {
		return false
	}
	be := binary.BigEndian
	return be.Uint64(datagram) == be.Uint64(accepted) && be.Uint64(datagram[atIncarnation:]) == be.Uint64(accepted[atIncarnation:]) &&
		be.Uint64(datagram[atTicket:]) == be.Uint64(accepted[atTicket:]) && be.Uint64(datagram[atCounter:]) < maxBlocks
}

// verify checks the tag of d and returns the payload, decrypted in place. The
// payload's capacity is its length: behind it lie the tag and other datagrams.
func (s *Sealer) verify(aead cipher.AEAD, d []byte) ([]byte, bool) {
	header, nonce := d[:HeaderSize], d[nonceStart:nonceEnd]
	switch s.mode {
	case None:
		return slices.Clip(d[HeaderSize:]), true
	case Encrypted:
		sealed := d[HeaderSize:]
		plain, err := aead.Open(sealed[:0], nonce, sealed, header)
		return slices.Clip(plain), err == nil
	}
	end := len(d) - tagSize
	_, err := aead.Open(nil, nonce, d[end:], d[:end])
	return d[HeaderSize:end:end], err == nil
}

// admit returns a source for an incarnation that is not the peer's known one, or
// nil if no holder of the key made the header of d, which names it. p is nil if nothing is
// known of the rank.
// The source is kept as the peer's candidate, so that repeating one header over
// false payloads does not cost a derivation each time; the rank that made the
// ticket exists, which bounds how many there are.
func (s *Sealer) admit(p *peer, rank uint32, incarnation uint64, d []byte) *source {
	if s.mode != None {
		s.mu.Lock()
		prefix := s.prefixOf(rank, incarnation)
		right := s.ticketHolds(&s.scratch, &prefix, d)
		s.mu.Unlock()
		if !right {
			return nil
		}
	}
	if p == nil {
		p = s.peerOf(rank)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Another goroutine may have promoted it since the caller looked: there must
	// not be two windows for one incarnation.
	if cur := p.source.Load(); cur != nil && cur.incarnation == incarnation {
		return cur
	}
	if p.candidate == nil || p.candidate.incarnation != incarnation {
		p.candidate = s.newSource(rank, incarnation)
	}
	return p.candidate
}

func (s *Sealer) newSource(rank uint32, incarnation uint64) *source {
	src := &source{incarnation: incarnation}
	if s.mode != None {
		src.aead = newAEAD(senderKey(s.key, s.mode, rank, incarnation))
		s.mu.Lock()
		src.prefix = s.prefixOf(rank, incarnation)
		s.mu.Unlock()
	}
	return src
}

// promote makes src, from which an authentic datagram has come, the peer's
// source. It answers false if that would take the peer back, or if src was
// replaced by another source for the same incarnation: the datagram is then
// lost, as datagrams may be.
func (p *peer) promote(src *source) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	cur := p.source.Load()
	if cur == src {
		return true
	}
	if cur != nil && cur.incarnation >= src.incarnation {
		return false
	}
	p.source.Store(src)
	if p.candidate == src {
		p.candidate = nil
	}
	return true
}

// Learn sets a peer's incarnation, as told by the rendezvous or by the peer itself over a
// way that strangers cannot use: datagrams that the peer sealed in earlier incarnations are
// refused from now on, and those sealed to it open in this one only. It is never necessary;
// the package comment gives its use. ErrBadArg if there is no such rank, or a later
// incarnation of it is known.
func (s *Sealer) Learn(rank int, incarnation uint64) error {
	if uint(rank) >= uint(s.size) {
		return errs.BadArg("seal: rank %d of %d has no incarnation", rank, s.size)
	}
	if incarnation == 0 {
		return errs.BadArg("seal: incarnation 0 of rank %d; they start at 1", rank)
	}
	p := s.peerOf(uint32(rank))
	p.mu.Lock()
	defer p.mu.Unlock()
	if cur := p.source.Load(); cur != nil && cur.incarnation >= incarnation {
		if cur.incarnation == incarnation {
			return nil
		}
		return errs.BadArg("seal: incarnation %d of rank %d; it has reached %d", incarnation, rank, cur.incarnation)
	}
	p.source.Store(s.newSource(uint32(rank), incarnation))
	p.candidate = nil // the same or an older one, or it proves itself again
	return nil
}

// Known returns the incarnation of rank that was heard or learnt last, or 0.
func (s *Sealer) Known(rank int) uint64 {
	if uint(rank) >= uint(s.size) {
		return 0
	}
	if p := s.peers.Load().find(uint32(rank)); p != nil {
		if src := p.source.Load(); src != nil {
			return src.incarnation
		}
	}
	return 0
}

// peerOf finds a rank's peer, and makes it if there is none.
func (s *Sealer) peerOf(rank uint32) *peer {
	if p := s.peers.Load().find(rank); p != nil {
		return p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.peers.Load()
	if p := t.find(rank); p != nil {
		return p
	}
	if t.used >= len(t.slots)/2 {
		t = t.grown()
		s.peers.Store(t)
	}
	p := &peer{rank: rank}
	t.add(p)
	return p
}

// A ticket is a CBC-MAC, cut to 32 bits, of exactly two blocks. The first is the source
// and its incarnation; the second destination, counter, length and epoch of the datagram,
// in 24, 48, 24 and 32 bits, or zeros if it is not longer than shortBytes. What the cipher
// makes of the first is the prefix, which does not leave the process.

// prefixOf computes the prefix of a source. The caller holds mu, except in New: an
// array of its own would be allocated for each call.
func (s *Sealer) prefixOf(rank uint32, incarnation uint64) block {
	b := s.scratch[:]
	binary.BigEndian.PutUint64(b, uint64(rank))
	binary.BigEndian.PutUint64(b[8:], incarnation)
	s.tickets.Encrypt(b, b)
	return s.scratch
}

// ticketOf computes the ticket of datagram d, whose destination is below MaxRanks and whose
// counter is below maxBlocks, by means of b, which the caller alone uses.
func (s *Sealer) ticketOf(b, prefix *block, d []byte) uint32 {
	*b = block{}
	if len(d) > shortBytes {
		be := binary.BigEndian
		counter := be.Uint64(d[atCounter:])
		be.PutUint64(b[:], uint64(be.Uint32(d[atDestination:]))<<40|counter>>8)
		be.PutUint64(b[8:], counter<<56|uint64(len(d))<<32|uint64(be.Uint32(d[atEpoch:])))
	}
	subtle.XORBytes(b[:], b[:], prefix[:])
	s.tickets.Encrypt(b[:], b[:])
	return binary.BigEndian.Uint32(b[:])
}

// ticketHolds reports whether the ticket in d is right.
func (s *Sealer) ticketHolds(b, prefix *block, d []byte) bool {
	return subtle.ConstantTimeEq(int32(s.ticketOf(b, prefix, d)), int32(binary.BigEndian.Uint32(d[atTicket:]))) == 1
}

// epochOf folds an incarnation to 32 bits, not 0: both small numbers and times
// that follow each other stay apart.
func epochOf(incarnation uint64) uint32 {
	return max(1, uint32(incarnation)^uint32(incarnation>>32))
}

func newAEAD(key []byte) cipher.AEAD {
	a, err := cipher.NewGCM(newBlock(key))
	if err != nil {
		panic("seal: " + err.Error()) // the cipher has the block size that GCM needs
	}
	return a
}

func newBlock(key []byte) cipher.Block {
	b, err := aes.NewCipher(key)
	if err != nil {
		panic("seal: " + err.Error()) // the key has a size that AES takes
	}
	return b
}
