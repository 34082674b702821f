package sim

import (
	"bufio"
	"io"
	"strconv"

	"github.com/argon-go/argon/segment"
)

// trace hashes the steps of a job and, if asked to, writes them down: a line
// for each step of a message, "TIME STEP KIND SRC>DST ..." with the time in
// picoseconds. Steps: s sent, i into the network, a in the mailbox, h handled, w
// performed on the segment, d completion at hand, x lost, r a thread goes on,
// f the job fails, ! a fault of the plan.
//
// Addresses are those of segments: one of a registered slice is in the same place
// of its page as the slice, which is not the same in another run of the program.
type trace struct {
	digest uint64
	count  uint64
	w      *bufio.Writer
	line   []byte
	// every is called after each so many entries; see Config.Checkpoint.
	every func(count, digest uint64)
	mask  uint64
	sizes []uint64 // of segments
}

func (t *trace) open(w io.Writer) {
	if w != nil {
		t.w = bufio.NewWriterSize(w, 1<<16)
	}
}

func (t *trace) flush() error {
	if t.w == nil {
		return nil
	}
	return t.w.Flush()
}

func (t *trace) add(at Time, a, b uint64) {
	t.digest = mix(t.digest^uint64(at)) + mix(a*0x9e3779b97f4a7c15^b)
	t.count++
	if t.every != nil && t.count&t.mask == 0 {
		t.every(t.count, t.digest)
	}
}

// note traces something that is no message.
func (t *trace) note(at Time, step byte, a, b uint64) {
	t.add(at, uint64(step)<<56|a, b)
	if t.w != nil {
		t.head(at, step)
		t.line = strconv.AppendInt(append(t.line, ' '), int64(a), 10)
		t.line = strconv.AppendInt(append(t.line, ' '), int64(b), 10)
		t.endLine()
	}
}

// message traces a step of m.
func (t *trace) message(at Time, step byte, m *message) {
	var w uint64
	for _, v := range m.words[:m.nwords] {
		w = w*0x100000001b3 + uint64(v)
	}
	to, registered := m.to, false
	if owner := m.owner(); to != 0 && to-segment.AttachBase > segment.NLA(t.sizes[owner]) {
		to, registered = 0, true
	}
	w = mix(w ^ m.a ^ m.b<<1 ^ uint64(to))
	t.add(at, uint64(step)<<56|uint64(m.kind)<<48|uint64(m.src)<<24|uint64(m.dst), w^uint64(m.tag)<<32^uint64(len(m.data)))
	if t.w == nil {
		return
	}
	t.head(at, step)
	t.line = append(append(t.line, ' '), m.kind.String()...)
	t.line = strconv.AppendInt(append(t.line, ' '), int64(m.src), 10)
	t.line = strconv.AppendInt(append(t.line, '>'), int64(m.dst), 10)
	t.line = strconv.AppendUint(append(t.line, " tag "...), uint64(m.tag), 16)
	t.line = append(t.line, " words"...)
	for _, v := range m.words[:m.nwords] {
		t.line = strconv.AppendUint(append(t.line, ' '), uint64(v), 16)
	}
	if n := max(len(m.data), len(m.dest)); n > 0 {
		t.line = strconv.AppendInt(append(t.line, " bytes "...), int64(n), 10)
	}
	switch {
	case registered:
		t.line = append(t.line, " at registered memory"...)
	case to != 0:
		t.line = strconv.AppendUint(append(t.line, " at "...), uint64(to), 16)
	}
	t.endLine()
}

func (t *trace) head(at Time, step byte) {
	t.line = append(strconv.AppendInt(t.line[:0], at, 10), ' ', step)
}

func (t *trace) endLine() {
	t.line = append(t.line, '\n')
	// An error stays in the writer and is returned by flush.
	_, _ = t.w.Write(t.line)
}
