package rendezvous

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// version of the messages below; both sides must have the same. Other versions
// must understand that they are refused, so that kinds keep their numbers, a hello
// its beginning, and a refusal its form.
const version = 5

// A frame is a length of 4 bytes, which counts what follows it, a kind, and the
// message's body. Numbers are big-endian.
const (
	frameHeader = 5
	maxFrame    = 64 << 10 // longest frame after the length
	maxHello    = 2 << 10  // the same for the first frame of a connection
	maxCause    = 1 << 10  // longest text of a failure or refusal, bytes
	maxText     = 4 << 10  // of a refusal is shown
	namedRanks  = 8        // so many missing ranks are named one by one
)

// A kind is the kind of message in a frame.
type kind byte

const (
	// From a rank.
	kHello  kind = 1 + iota // which rank it is; the first frame
	kAttach                 // its segment
	kPut                    // store a value
	kGet                    // ask for a value
	kForget                 // do not wait for a value any more
	kFail                   // a rank has failed
	kLeave                  // it leaves
	kWho                    // ask which ranks are missing

	// From the service.
	kWelcome  // the rank is let in; the first frame
	kRefuse   // the rank is not let in; the only frame
	kTable    // a part of the table of all ranks
	kAttached // a part of the table of all segments
	kLeft     // ranks that have left
	kFailed   // the job has failed
	kAnswer   // to kPut and kGet
	kMissing  // to kWho
	kBye      // to kLeave and kProbe
	kOver     // the service ends, and the job goes on without it

	// From a holder of the key that is no rank.
	kProbe // whether this is the job's service; the only frame
	kWatch // to be told if the job fails; the service's answer is the same

	// About ranks that do not answer others, see look.go.
	kLook // from a rank: ask for a look at another one
	kEcho // from the service, and the rank's answer at once
)

// openFrame starts a frame at the end of b; closeFrame completes it.
func openFrame(b []byte, k kind) []byte { return append(b, 0, 0, 0, 0, byte(k)) }

// closeFrame fills in the length of the frame that starts at b[at].
func closeFrame(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// frame appends a frame with the body that body appends; nil for none.
func frame(b []byte, k kind, body func([]byte) []byte) []byte {
	at := len(b)
	b = openFrame(b, k)
	if body != nil {
		b = body(b)
	}
	return closeFrame(b, at)
}

// readFrame reads a frame of at most limit bytes. The body is valid until the
// next call with the same buf.
func readFrame(r io.Reader, buf *[]byte, limit int) (kind, []byte, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(h[:])
	if n < 1 || n > uint32(limit) {
		return 0, nil, fmt.Errorf("a frame of %d bytes; at most %d are allowed", n, limit)
	}
	body := int(n) - 1
	const keep = 4 << 10 // a table or a large value should not stay in memory
	switch {
	case body > keep:
		*buf = nil
		b := make([]byte, body)
		_, err := io.ReadFull(r, b)
		return kind(h[4]), b, err
	case body > cap(*buf):
		*buf = make([]byte, body, max(body, 128))
	}
	b := (*buf)[:body]
	_, err := io.ReadFull(r, b)
	return kind(h[4]), b, err
}

// A parser takes a body apart. After a step over the end bad is set and all that
// follows is zero.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) bytes(n int) []byte {
	if n > len(p.b) {
		p.bad, p.b = true, nil
		return nil
	}
	b := p.b[:n:n]
	p.b = p.b[n:]
	return b
}

// number takes n bytes, the highest first; 0 if they are missing.
func (p *parser) number(n int) (v uint64) {
	for _, b := range p.bytes(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (p *parser) u8() uint8   { return uint8(p.number(1)) }
func (p *parser) u16() uint16 { return uint16(p.number(2)) }
func (p *parser) u32() uint32 { return uint32(p.number(4)) }
func (p *parser) u64() uint64 { return p.number(8) }

// rest takes what is left, at most n bytes.
func (p *parser) rest(n int) []byte {
	if len(p.b) > n {
		p.bad = true
		return nil
	}
	return p.bytes(len(p.b))
}

// addr takes a length and an address, of length 0 for none.
func (p *parser) addr() netip.Addr {
	switch n := p.u8(); n {
	case 0:
		return netip.Addr{}
	case 4, 16:
		b := p.bytes(int(n))
		a, ok := netip.AddrFromSlice(b)
		p.bad = p.bad || !ok || a != a.Unmap()
		return a
	}
	p.bad = true
	return netip.Addr{}
}

// done reports whether the body was as it should be.
func (p *parser) done() bool { return !p.bad && len(p.b) == 0 }

func appendAddr(b []byte, a netip.Addr) []byte {
	s := a.Unmap().WithZone("").AsSlice()
	return append(append(b, byte(len(s))), s...)
}

// clip is s in a form and length that fits a message.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// hello is kHello: Hello, and whether its address was chosen or is only where
// the connection to the service starts.
type hello struct {
	Hello
	chosen    bool
	pid       uint32 // its process,
	processes uint64 // among which; see the function of that name
}

func (h *hello) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(h.Rank))
	b = binary.BigEndian.AppendUint32(b, uint32(h.Size))
	b = binary.BigEndian.AppendUint64(b, h.Incarnation)
	b = binary.BigEndian.AppendUint16(b, h.Port)
	b = append(b, bit(h.chosen))
	b = binary.BigEndian.AppendUint32(b, h.pid)
	b = binary.BigEndian.AppendUint64(b, h.processes)
	b = appendAddr(b, h.Addr)
	b = append(append(b, byte(len(h.Host))), h.Host...)
	b = append(append(b, byte(len(h.Job))), h.Job...)
	b = append(append(b, byte(len(h.Public))), h.Public...)
	return append(b, h.Agree...)
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// parseHello also returns the sender's version; if it is another one than ours
// there is nothing else to say.
func parseHello(b []byte) (h hello, v uint16, ok bool) {
	p := parser{b: b}
	v = p.u16()
	if p.bad || v != version {
		return h, v, !p.bad
	}
	h.Rank, h.Size = int(p.u32()), int(p.u32())
	h.Incarnation, h.Port = p.u64(), p.u16()
	c := p.u8()
	h.chosen = c == 1
	h.pid, h.processes = p.u32(), p.u64()
	h.Addr = p.addr()
	h.Host = string(p.bytes(int(p.u8())))
	h.Job = string(p.bytes(int(p.u8())))
	h.Public = p.bytes(int(p.u8()))
	h.Agree = string(p.rest(MaxAgree))
	return h, v, p.done() && c <= 1
}

// segment is kAttach.
type segment struct {
	size   uint64
	rights uint32
}

func (s *segment) append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, s.size), s.rights)
}

func parseSegment(b []byte) (s segment, ok bool) {
	p := parser{b: b}
	s = segment{p.u64(), p.u32()}
	return s, p.done()
}

// request is kPut, kGet (without value) and kForget (without key either).
type request struct {
	id    uint32
	key   string
	value []byte
}

func (r *request) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, r.id)
	b = append(append(b, byte(len(r.key))), r.key...)
	return append(b, r.value...)
}

// parseRequest returns a value that is a part of b.
func parseRequest(b []byte) (r request, ok bool) {
	p := parser{b: b}
	r.id = p.u32()
	r.key = string(p.bytes(int(p.u8())))
	r.value = p.rest(MaxValue)
	return r, p.done()
}

// failure is kFail and kFailed: the rank that failed, and why.
type failure struct {
	rank, status int
	cause        string
}

func (f *failure) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(int32(f.rank)))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(f.status)))
	return append(b, clip(f.cause, maxCause)...)
}

func parseFailure(b []byte) (f failure, ok bool) {
	p := parser{b: b}
	f.rank, f.status = int(int32(p.u32())), int(int32(p.u32()))
	f.cause = errs.Line(string(p.rest(maxCause)), 0) // it ends up on terminals
	return f, p.done() && f.rank >= NoRank && f.rank < jobenv.MaxRanks
}

// welcome is kWelcome.
type welcome struct {
	instance [16]byte
	inRank   bool   // ServerConfig.InRank
	dead     uint32 // ServerConfig.DeadTime, ms
}

func (w *welcome) append(b []byte) []byte {
	b = append(b, w.instance[:]...)
	b = append(b, bit(w.inRank))
	return binary.BigEndian.AppendUint32(b, w.dead)
}

func parseWelcome(b []byte) (w welcome, ok bool) {
	p := parser{b: b}
	copy(w.instance[:], p.bytes(len(w.instance)))
	f := p.u8()
	w.inRank = f == 1
	w.dead = p.u32()
	return w, p.done() && f <= 1
}

// verdict is the first byte of kRefuse and kAnswer.
type verdict uint8

const (
	good        verdict = iota // no error
	badArg                     // errs.ErrBadArg
	resource                   // errs.ErrResource
	jobFailed                  // the job has failed: a failure follows
	goneService                // the service is about to end
	otherJob                   // it is that of another job
	numVerdict                 // of verdicts
)

// answer is kAnswer; kRefuse is its body without id. data is the value if the
// verdict is good, else a text; after jobFailed the body of a failure.
type answer struct {
	id   uint32
	v    verdict
	data []byte
}

func (a *answer) append(b []byte) []byte {
	return append(append(binary.BigEndian.AppendUint32(b, a.id), byte(a.v)), a.data...)
}

// parseAnswer returns data that is a part of b.
func parseAnswer(b []byte) (a answer, ok bool) {
	p := parser{b: b}
	a = answer{id: p.u32(), v: verdict(p.u8())}
	a.data = p.rest(MaxValue)
	return a, p.done() && a.v < numVerdict
}

// missing is kMissing: how many ranks are not there, and the first of them.
type missing struct {
	count int
	first []int
}

func (m *missing) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(m.count))
	for _, r := range m.first {
		b = binary.BigEndian.AppendUint32(b, uint32(r))
	}
	return b
}

func parseMissing(b []byte) (m missing, ok bool) {
	p := parser{b: b}
	m.count = int(p.u32())
	for !p.bad && len(p.b) > 0 && len(m.first) < namedRanks {
		m.first = append(m.first, int(p.u32()))
	}
	return m, p.done() && len(m.first) == min(m.count, namedRanks)
}

// String is such as "rank 3" or "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 90 more".
func (m missing) String() string {
	var b strings.Builder
	b.WriteString("rank")
	if m.count != 1 {
		b.WriteString("s")
	}
	for i, r := range m.first {
		sep := ", "
		switch {
		case i == 0:
			sep = " "
		case i == m.count-1:
			sep = " and "
		}
		fmt.Fprintf(&b, "%s%d", sep, r)
	}
	if more := m.count - len(m.first); more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// appendRanks is the body of kLeft: numbers of ranks, which have 16 bits.
func appendRanks(b []byte, ranks []uint16) []byte {
	for _, r := range ranks {
		b = binary.BigEndian.AppendUint16(b, r)
	}
	return b
}

// maxRanks is how many ranks one kLeft names at most.
const maxRanks = (maxFrame - 1) / 2

func parseRanks(b []byte) (ranks []uint16, ok bool) {
	if len(b)%2 != 0 {
		return nil, false
	}
	p := parser{b: b}
	for len(p.b) > 0 {
		ranks = append(ranks, p.u16())
	}
	return ranks, true
}

// part is kTable and kAttached: a piece of something longer than a frame.
type part struct {
	total uint32 // length of the whole
	data  []byte
}

func (c *part) append(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, c.total), c.data...)
}

func parsePart(b []byte) (c part, ok bool) {
	p := parser{b: b}
	c.total = p.u32()
	c.data = p.bytes(len(p.b))
	return c, p.done() && len(c.data) > 0 && len(c.data) <= int(c.total)
}

// parts returns the frames of all pieces of whole.
func parts(k kind, whole []byte) []byte {
	const piece = maxFrame - frameHeader - 4
	b := make([]byte, 0, len(whole)+(len(whole)/piece+1)*(frameHeader+4))
	for at := 0; at < len(whole); at += piece {
		c := part{uint32(len(whole)), whole[at:min(at+piece, len(whole))]}
		b = frame(b, k, c.append)
	}
	return b
}
