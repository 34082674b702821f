package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/fips140"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
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
// Bytes 4 to 16 are the nonce: no two datagrams of a pair of ranks, which share a key, have the same, since
// the two directions have different destinations. The tag covers everything before it. The ticket is a
// tag of 32 bits of the header alone, under the job's key. That of a datagram of up to shortBytes proves that
// a rank of the job has made the header up, before a key is derived for the source. That of a longer one covers all of its header and its length, so that a stranger
// cannot have 65,000 bytes hashed for a header copied from elsewhere: a ticket is 24 ns,
// a tag of so many bytes 7,900. The epoch is the destination's incarnation in 32 bits.
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
	version = 3

	// shortBytes is the longest datagram whose ticket says nothing of it.
	shortBytes = 2048

	// maxBlocks is how many blocks each rank of a pair may put through their cipher.
	maxBlocks = 1 << 47
	// maxCounter is above all counters; a ticket has 48 bits of them.
	maxCounter = 1 << 48
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
	// PublicSize is the length of what a rank announces of its key, bytes.
	PublicSize = 32
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

// NewPrivate makes the private key of a run of a rank, which stays in its process; the others
// are told its PublicKey. Mode None has none. The error is ErrNotSupported if the process is
// confined to ciphers that package seal does not use.
func NewPrivate(mode Mode) (*ecdh.PrivateKey, error) {
	if mode == None {
		return nil, nil
	}
	if fips140.Enforced() {
		return nil, errs.NotSupported("seal: mode %v in a process with GODEBUG=fips140=only, which takes AES-GCM with random nonces alone", mode)
	}
	return ecdh.X25519().GenerateKey(rand.Reader)
}

// Config is what a Sealer is made of.
type Config struct {
	Key        jobkey.Key // of the job; mode None ignores it
	Rank, Size int
	Mode       Mode
	// Incarnation is the number of this run, not 0, and never the same twice for a rank: see NewIncarnation.
	Incarnation uint64
	// Private is this run's key, see NewPrivate.
	Private *ecdh.PrivateKey
	// Peer returns what a rank of the job has announced: its incarnation and, but in mode None, its
	// public key of PublicSize bytes, which is not kept. Any goroutine calls it, for a rank that was not met:
	// at the first Seal to it, and for each datagram that names it. The answer must not change.
	Peer func(rank int) (incarnation uint64, public []byte)
}

// A Sealer seals and opens the datagrams of one rank. Any number of goroutines
// may use it at once: sealing shares two atomic counters per destination, opening a short lock
// per source. What is remembered of a peer that was sealed to or heard (1.5 KiB) lives as long as the Sealer.
type Sealer struct {
	c      Config
	format byte
	prefix block  // of its own tickets
	ticket uint32 // of datagrams of up to shortBytes
	epoch  uint32

	refused counters

	peers atomic.Pointer[table]
	mu    sync.Mutex // held to add to peers, and for scratch

	tickets cipher.Block // nil in mode None
	scratch block
}

// A peer is a rank that was sealed to, or that was heard.
type peer struct {
	rank        uint32
	epoch       uint32
	incarnation uint64
	aead        cipher.AEAD // of the pair; nil in mode None, and if the rank has announced no point of the curve
	prefix      block       // of its tickets

	counter atomic.Uint64 // of the next datagram to it
	blocks  atomic.Uint64 // sealed so far, of maxBlocks

	mu      sync.Mutex
	seen    window
	scratch block
}

// block is the unit of a ticket's cipher.
type block [aes.BlockSize]byte

// New makes a sealer. The error is ErrBadArg, which names what is wrong in c.
func New(c Config) (*Sealer, error) {
	switch {
	case c.Size < 1 || c.Size > MaxRanks:
		return nil, errs.BadArg("seal: %d ranks; a job has 1 to %d", c.Size, MaxRanks)
	case c.Rank < 0 || c.Rank >= c.Size:
		return nil, errs.BadArg("seal: rank %d in a job of %d", c.Rank, c.Size)
	case c.Incarnation == 0:
		return nil, errs.BadArg("seal: incarnation 0 of rank %d; they start at 1 (NewIncarnation)", c.Rank)
	case c.Mode >= numModes:
		return nil, errs.BadArg("seal: no mode %d; the last is %d", c.Mode, numModes-1)
	case c.Mode != None && !c.Key.Valid():
		return nil, errs.BadArg("seal: mode %v needs a job key; set %s, or name mode %v", c.Mode, jobenv.JobKeyFile, None)
	case c.Mode != None && c.Private == nil:
		return nil, errs.BadArg("seal: mode %v needs a private key (NewPrivate)", c.Mode)
	case c.Peer == nil:
		return nil, errs.BadArg("seal: nothing tells what the ranks have announced (Config.Peer)")
	}
	s := &Sealer{c: c, format: version<<4 | byte(c.Mode), epoch: epochOf(c.Incarnation)}
	s.peers.Store(newTable(8))
	if c.Mode != None {
		s.tickets = newBlock(c.Key.Derive("ticket", []byte{byte(c.Mode)}, cipherKeySize))
		s.prefix = s.prefixOf(uint32(c.Rank), c.Incarnation)
		s.ticket = s.ticketOf(&s.scratch, &s.prefix, nil)
	}
	return s, nil
}

// pairKey derives what this rank and another, in that incarnation and with that public key, seal for each
// other: from the job's key, so that it is of this job, and from what only the two can compute
// (X25519, RFC 7748). It is nil if that cannot be.
func (s *Sealer) pairKey(rank uint32, incarnation uint64, public []byte) []byte {
	p, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil
	}
	secret, err := s.c.Private.ECDH(p)
	if err != nil { // a point of low order, for which the secret would be known to all
		return nil
	}
	low, lowRun, high, highRun := rank, incarnation, uint32(s.c.Rank), s.c.Incarnation
	if low > high {
		low, lowRun, high, highRun = high, highRun, low, lowRun
	}
	var c [25]byte
	c[0] = byte(s.c.Mode)
	binary.BigEndian.PutUint32(c[1:], low)
	binary.BigEndian.PutUint64(c[5:], lowRun)
	binary.BigEndian.PutUint32(c[13:], high)
	binary.BigEndian.PutUint64(c[17:], highRun)
	key, err := hkdf.Key(sha256.New, secret, s.c.Key.Derive("pair", c[:], sha256.Size), "argon pair", cipherKeySize)
	if err != nil {
		panic("seal: " + err.Error()) // 16 bytes are not too many for HKDF
	}
	return key
}

// Mode is the mode of s.
func (s *Sealer) Mode() Mode { return s.c.Mode }

// Format prints rank and mode of the sealer, whatever the verb: below are keys.
func (s *Sealer) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "sealer of rank %d of %d, incarnation %d, %v", s.c.Rank, s.c.Size, s.c.Incarnation, s.c.Mode)
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
// Errors, for which dst is returned as it was: ErrBadArg if there is no rank to, if it has announced a key
// that is none, or if plain makes the datagram longer than MaxDatagram; ErrResource when the key of this rank and
// that one has protected as much as it should.
func (s *Sealer) Seal(dst []byte, to int, plain []byte) ([]byte, error) {
	if uint(to) >= uint(s.c.Size) {
		return dst, errs.BadArg("seal: datagram to rank %d of %d", to, s.c.Size)
	}
	mode, n := s.c.Mode, len(plain)
	if n > MaxDatagram-Overhead(mode) {
		return dst, errs.BadArg("seal: %d bytes of payload; a datagram takes %d in mode %v", n, MaxDatagram-Overhead(mode), mode)
	}
	p := s.peerOf(uint32(to))
	if p.aead == nil && mode != None {
		return dst, errs.BadArg("seal: rank %d has announced a public key that is none", to)
	}
	if !p.spend(n, mode) {
		return dst, errs.Resource("seal: rank %d has sealed all that its key with rank %d should protect; a new incarnation can go on", s.c.Rank, to)
	}

	start := len(dst)
	dst = slices.Grow(dst, n+Overhead(mode))
	d := dst[start : start+HeaderSize+n]
	binary.BigEndian.PutUint32(d[atFormat:], uint32(s.format)<<24|uint32(s.c.Rank))
	binary.BigEndian.PutUint32(d[atDestination:], uint32(to))
	binary.BigEndian.PutUint64(d[atCounter:], p.counter.Add(1)-1)
	binary.BigEndian.PutUint64(d[atIncarnation:], s.c.Incarnation)
	binary.BigEndian.PutUint32(d[atEpoch:], p.epoch)
	ticket := s.ticket
	if whole := start + n + Overhead(mode); s.tickets != nil && whole-start > shortBytes {
		// The tag is not there yet.
		ticket = s.ticketOf((*block)(dst[whole-tagSize:whole]), &s.prefix, dst[start:whole])
	}
	binary.BigEndian.PutUint32(d[atTicket:], ticket)

	header, payload, nonce := d[:HeaderSize], d[HeaderSize:], d[nonceStart:nonceEnd]
	if mode == Encrypted {
		return p.aead.Seal(dst[:start+HeaderSize], nonce, plain, header), nil
	}
	if n > 0 && &payload[0] != &plain[0] {
		copy(payload, plain)
	}
	if mode == None {
		return dst[:start+len(d)], nil
	}
	return p.aead.Seal(dst[:start+len(d)], nonce, nil, d), nil
}

// spend takes the blocks for n bytes out of what the key may protect.
func (p *peer) spend(n int, mode Mode) bool {
	if p.blocks.Load() >= maxBlocks {
		return false // not added to: it could wrap
	}
	use := uint64(1) // the block that hides the tag
	if mode == Encrypted {
		use += uint64(n+15) / 16
	}
	return p.blocks.Add(use) <= maxBlocks
}

// Open checks a datagram and returns the rank that sealed it and its payload,
// which is a part of datagram: in mode Encrypted it is decrypted in place. It
// belongs to the caller as datagram does; nothing is kept.
//
// Any other Reason than Accepted says why the datagram is refused, and is
// counted; the rank is then -1, the payload nil, and in mode Encrypted the bytes
// after the header are undefined. Refusing does not allocate. Accepting does for
// the first datagram of a rank that was not met.
func (s *Sealer) Open(datagram []byte) (from int, plain []byte, why Reason) {
	from, plain, why = s.open(datagram)
	if why != Accepted {
		s.refused[why].Add(1)
		return -1, nil, why
	}
	return from, plain, Accepted
}

func (s *Sealer) open(d []byte) (int, []byte, Reason) {
	if len(d) < Overhead(s.c.Mode) {
		return 0, nil, TooShort
	}
	word := binary.BigEndian.Uint32(d[atFormat:])
	rank := word & (MaxRanks - 1)
	counter := binary.BigEndian.Uint64(d[atCounter:])
	incarnation := binary.BigEndian.Uint64(d[atIncarnation:])
	if byte(word>>24) != s.format || counter >= maxCounter || incarnation == 0 {
		return 0, nil, Malformed
	}
	if binary.BigEndian.Uint32(d[atDestination:]) != uint32(s.c.Rank) || binary.BigEndian.Uint32(d[atEpoch:]) != s.epoch {
		return 0, nil, WrongDestination
	}
	if rank >= uint32(s.c.Size) {
		return 0, nil, UnknownRank
	}

	p := s.peers.Load().find(rank)
	switch {
	case p == nil:
		if now, _ := s.c.Peer(int(rank)); now != incarnation {
			return 0, nil, OtherIncarnation
		}
		if s.c.Mode != None && !s.ticketOfRank(rank, incarnation, d) {
			return 0, nil, BadTag // before a key is derived
		}
		p = s.peerOf(rank)
	case p.incarnation != incarnation:
		return 0, nil, OtherIncarnation
	case len(d) > shortBytes && s.c.Mode != None:
		// Cheap checks, without a pass over the datagram; each is made again afterwards.
		why := BadTag
		p.mu.Lock()
		if s.ticketHolds(&p.scratch, &p.prefix, d) {
			why = p.seen.look(counter)
		}
		p.mu.Unlock()
		if why != Accepted {
			return 0, nil, why
		}
	}
	plain, ok := p.verify(d, s.c.Mode)
	if !ok {
		return 0, nil, BadTag
	}
	if s.c.Mode == None {
		// Nothing vouches for the counter: a window moved by one that was damaged, or
		// made up, would refuse all that the rank says from then on.
		return int(rank), plain, Accepted
	}
	p.mu.Lock()
	why := p.seen.see(counter)
	p.mu.Unlock()
	return int(rank), plain, why
}

// Ends returns what the header of a datagram says of its source, that one's incarnation and its
// destination, which nothing has verified; ok is false if it has no such header.
func Ends(datagram []byte) (from int, incarnation uint64, to int, ok bool) {
	if len(datagram) < HeaderSize || datagram[atFormat]>>4 != version {
		return 0, 0, 0, false
	}
	be := binary.BigEndian
	return int(be.Uint32(datagram[atFormat:]) & (MaxRanks - 1)), be.Uint64(datagram[atIncarnation:]), int(be.Uint32(datagram[atDestination:])), true
}

// Alike reports whether the headers of two datagrams, the second of which Open has
// accepted, differ in nothing but their counters. In mode None Open would then
// accept the first one too.
func Alike(datagram, accepted []byte) bool {
	if len(datagram) < HeaderSize || len(accepted) < HeaderSize {
		return false
	}
	be := binary.BigEndian
	return be.Uint64(datagram) == be.Uint64(accepted) && be.Uint64(datagram[atIncarnation:]) == be.Uint64(accepted[atIncarnation:]) &&
		be.Uint64(datagram[atTicket:]) == be.Uint64(accepted[atTicket:]) && be.Uint64(datagram[atCounter:]) < maxCounter
}

// verify checks the tag of d and returns the payload, decrypted in place. The
// payload's capacity is its length: behind it lie the tag and other datagrams.
func (p *peer) verify(d []byte, mode Mode) ([]byte, bool) {
	header, nonce := d[:HeaderSize], d[nonceStart:nonceEnd]
	switch {
	case mode == None:
		return slices.Clip(d[HeaderSize:]), true
	case p.aead == nil:
		return nil, false
	case mode == Encrypted:
		sealed := d[HeaderSize:]
		plain, err := p.aead.Open(sealed[:0], nonce, sealed, header)
		return slices.Clip(plain), err == nil
	}
	end := len(d) - tagSize
	_, err := p.aead.Open(nil, nonce, d[end:], d[:end])
	return d[HeaderSize:end:end], err == nil
}

// peerOf finds a rank's peer, and makes it if there is none: 43 us, most of it to agree on a key.
func (s *Sealer) peerOf(rank uint32) *peer {
	if p := s.peers.Load().find(rank); p != nil {
		return p
	}
	incarnation, public := s.c.Peer(int(rank))
	p := &peer{rank: rank, incarnation: incarnation, epoch: epochOf(incarnation)}
	if s.c.Mode != None {
		if key := s.pairKey(rank, incarnation, public); key != nil {
			p.aead = newAEAD(key)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.peers.Load()
	if p := t.find(rank); p != nil { // another goroutine's: there must not be two windows
		return p
	}
	if s.c.Mode != None {
		p.prefix = s.prefixOf(rank, incarnation)
	}
	if t.used >= len(t.slots)/2 {
		t = t.grown()
		s.peers.Store(t)
	}
	t.add(p)
	return p
}

// ticketOfRank reports whether the ticket in d is right for a rank that was not met.
func (s *Sealer) ticketOfRank(rank uint32, incarnation uint64, d []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	prefix := s.prefixOf(rank, incarnation)
	return s.ticketHolds(&s.scratch, &prefix, d)
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
// counter is below maxCounter, by means of b, which the caller alone uses.
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
