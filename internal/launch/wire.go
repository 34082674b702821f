package launch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/argon-go/argon/internal/sys/awake"
)

// The launcher and its deputy on a host talk in frames:
//
//	byte      kind
//	uint32    length of the rest, big endian
//	uvarint   how many numbers
//	          that many varints
//	uvarint   how many texts
//	          that many times: uvarint length, bytes
//
// Neither side ever waits for the other one to take a frame: what may be large
// (output and input of ranks) needs credit, and the rest is small and rare.
type frame struct {
	kind  frameKind
	nums  []int64
	texts [][]byte
}

type frameKind byte

// Messages of the launcher.
const (
	frameJob     frameKind = 'J' // what is to be run, see job
	frameProgram frameKind = 'P' // text: the next bytes of the program; empty: that was all
	frameGo      frameKind = 'G' // start the ranks
	frameSignal  frameKind = 'S' // signal, 1 for process groups, ranks
	frameSuspend frameKind = 'Z' // stop the ranks, for the launcher will be stopped
	frameResume  frameKind = 'C' // and let them go on
	frameFail    frameKind = 'F' // rank, status, cause: tell the ranks that wait in shared memory
	frameInput   frameKind = 'I' // text: standard input of rank 0; empty: that was all
	frameCredit  frameKind = 'A' // rank, stream, so many bytes of output were taken
	frameLook    frameKind = 'L' // 1 to learn what they have done as well; ranks: what do their processes do?
	frameTrace   frameKind = 'T' // 0: send what ranks have written of the trace since; else so many bytes of that were taken
	frameEnd     frameKind = 'E' // all ranks have ended: clean up
)

// Messages of the deputy.
const (
	frameHello   frameKind = 'h' // process id
	frameWant    frameKind = 'w' // the program is not here
	frameReady   frameKind = 'r' // texts: where its ranks find the rendezvous, then notes for the user
	frameRefuse  frameKind = 'x' // text: why nothing can be started
	frameStarted frameKind = 's' // rank, process id; text: where it runs
	frameRunning frameKind = 'g' // all have started
	frameOutput  frameKind = 'o' // rank, stream; text
	frameOutEnd  frameKind = 'e' // rank, stream, 1 if a stranger still holds it open
	frameEndings frameKind = 'd' // for each rank: rank, status, signal, user, system, memory; its cause
	frameThirst  frameKind = 'i' // rank 0 waits for input
	frameTaken   frameKind = 'a' // so many bytes of input were taken; -1: no more are
	frameSeen    frameKind = 'l' // of each: rank, process id, state, time that it ran and waited for a processor, faults
	frameTraced  frameKind = 't' // 1 and the next bytes of the trace, or 0 and why there are no more, "" if that was all
	frameBye     frameKind = 'b' // how many processes were killed, those that do not die

	// Of either: a sign of life. With a time of the launcher's clock the deputy's answer has that and its own.
	frameAlive frameKind = 'H'
)

// maxFrame bounds the length of a frame. The longest is that of the job, with
// arguments and environment.
const maxFrame = 16 << 20

// chunk is how much of a file or stream goes into one frame.
const chunk = 32 << 10

// window is how much of one stream may be under way. Each end keeps so much of it
// in the worst case.
const window = 8 * chunk

// append appends f in the form above.
func (f *frame) append(b []byte) []byte {
	start := len(b)
	b = append(b, byte(f.kind), 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(len(f.nums)))
	for _, n := range f.nums {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(f.texts)))
	for _, t := range f.texts {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	binary.BigEndian.PutUint32(b[start+1:], uint32(len(b)-start-5))
	return b
}

var errFrame = errors.New("a malformed message")

// readFrame reads one frame. The error is io.EOF if r ends before it begins.
func readFrame(r *bufio.Reader) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return frame{}, fmt.Errorf("%w: %d bytes, at most %d", errFrame, n, maxFrame)
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(n))) // grows as the bytes come
	if err == nil && len(b) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return frame{}, err
	}
	return parseFrame(frameKind(head[0]), b)
}

// parseFrame reads what follows a frame's length. The texts lie in b.
func parseFrame(kind frameKind, b []byte) (frame, error) {
	f := frame{kind: kind}
	count := func() (int, bool) { // of things that take a byte at least
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return 0, false
		}
		b = b[k:]
		return int(n), true
	}
	nums, ok := count()
	if !ok {
		return frame{}, errFrame
	}
	if nums > 0 {
		f.nums = make([]int64, nums)
	}
	for i := range f.nums {
		v, k := binary.Varint(b)
		if k <= 0 {
			return frame{}, errFrame
		}
		f.nums[i], b = v, b[k:]
	}
	texts, ok := count()
	if !ok {
		return frame{}, errFrame
	}
	if texts > 0 {
		f.texts = make([][]byte, 0, min(texts, 1024))
	}
	for range texts {
		n, ok := count()
		if !ok {
			return frame{}, errFrame
		}
		f.texts = append(f.texts, b[:n:n])
		b = b[n:]
	}
	if len(b) > 0 {
		return frame{}, errFrame
	}
	return f, nil
}

// shapes are how many numbers and texts frames have that have always as many, and what the
// first numbers are.
var shapes = map[frameKind]struct {
	nums, texts  int
	rank, stream bool
}{
	frameFail:    {2, 1, true, false},
	frameInput:   {0, 1, false, false},
	frameCredit:  {3, 0, true, true},
	frameOutput:  {2, 1, true, true},
	frameOutEnd:  {3, 0, true, true},
	frameStarted: {2, 1, true, false},
	frameTaken:   {1, 0, false, false},
	frameTrace:   {1, 0, false, false},
	frameTraced:  {1, 1, false, false},
}

// odd reports whether f is none that is about ranks first to first+count-1.
func (f *frame) odd(first, count int) bool {
	s, ok := shapes[f.kind]
	return ok && (!f.has(s.nums, s.texts) || s.rank && !within(f.nums[0], first, count) || s.stream && !within(f.nums[1], 0, 2))
}

// within reports whether n is one of the count numbers from first on.
func within(n int64, first, count int) bool {
	return n >= int64(first) && n-int64(first) < int64(count)
}

// has reports whether the frame has so many numbers and texts.
func (f *frame) has(nums, texts int) bool { return len(f.nums) == nums && len(f.texts) == texts }

// text is the frame's first text, "" if there is none.
func (f *frame) text() string {
	if len(f.texts) == 0 {
		return ""
	}
	return string(f.texts[0])
}

// num is one of the frame's numbers, as an int.
func (f *frame) num(i int) int { return int(f.nums[i]) }

// A link sends frames, in order, without making the sender wait.
type link struct {
	w      io.WriteCloser
	mu     sync.Mutex
	cond   *sync.Cond
	wait   [][]byte
	size   int           // bytes that have not been written yet
	shut   bool          // nothing more is accepted
	broken bool          // nothing more can be sent
	done   chan struct{} // closed when w is
	call   func(*frame)  // the other end, if it is in this process; nil: at w
}

// newCall is a link to an end in this process that is called for each frame.
func newCall(f func(*frame)) *link {
	l := &link{call: f}
	l.cond = sync.NewCond(&l.mu)
	return l
}

// newLink sends to w, which it closes at the end.
func newLink(w io.WriteCloser) *link {
	l := &link{w: w, done: make(chan struct{})}
	l.cond = sync.NewCond(&l.mu)
	go l.run()
	return l
}

func (l *link) run() {
	defer close(l.done)
	defer l.w.Close()
	for {
		l.mu.Lock()
		for len(l.wait) == 0 && !l.shut {
			l.cond.Wait()
		}
		all := l.wait
		l.wait = nil
		shut := l.shut
		l.mu.Unlock()
		for _, b := range all {
			_, err := l.w.Write(b)
			l.mu.Lock()
			l.size -= len(b)
			if err != nil { // the reader at the other side will notice
				l.shut, l.broken = true, true
			}
			l.cond.Broadcast()
			l.mu.Unlock()
			if err != nil {
				return
			}
		}
		if shut && len(all) == 0 {
			return
		}
	}
}

// send sends a frame. On a link that is closed or broken it is lost.
func (l *link) send(kind frameKind, nums []int64, texts ...[]byte) {
	f := frame{kind: kind, nums: nums, texts: texts}
	if l.call != nil {
		l.call(&f)
		return
	}
	b := f.append(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.shut {
		l.wait = append(l.wait, b)
		l.size += len(b)
		l.cond.Broadcast()
	}
}

// flush gives what was sent some time to be written.
func (l *link) flush(limit time.Duration) {
	done := make(chan struct{})
	go func() { defer close(done); l.drain(0) }()
	over, stop := awake.NewTimer(limit)
	defer stop()
	select {
	case <-done:
	case <-over:
	}
}

// drain waits until at most size bytes have not been written, or the link is
// broken.
func (l *link) drain(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.size > size && !l.broken {
		l.cond.Wait()
	}
}

// close lets what was sent go and closes the writer. It does not wait.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	l.cond.Broadcast()
}

// A meter is the credit for one stream: the sender takes, the receiver gives.
type meter struct {
	mu   sync.Mutex
	cond *sync.Cond
	free int
	off  bool
}

func newMeter() *meter {
	m := &meter{free: window}
	m.cond = sync.NewCond(&m.mu)
	return m
}

// acquire waits for credit for n bytes, at most window. It is false if the meter was
// switched off.
func (m *meter) acquire(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.free < n && !m.off {
		m.cond.Wait()
	}
	m.free -= n
	return !m.off
}

func (m *meter) give(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = min(m.free+n, window)
	m.cond.Signal()
}

// stop switches the meter off: no writer waits any more.
func (m *meter) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = true
	m.cond.Broadcast()
}

// A backlog is data on its way from a goroutine that must not wait to one that
// may. The sender's meter bounds it.
type backlog struct {
	mu    sync.Mutex
	cond  *sync.Cond
	parts [][]byte
	ended bool
}

func newBacklog() *backlog {
	b := &backlog{}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *backlog) put(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.parts = append(b.parts, p)
		b.cond.Signal()
	}
}

// close says that nothing more is put.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.cond.Signal()
}

// get waits for the next part; ok is false after the last one.
func (b *backlog) get() (p []byte, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.parts) == 0 && !b.ended {
		b.cond.Wait()
	}
	if len(b.parts) == 0 {
		return nil, false
	}
	p, b.parts = b.parts[0], b.parts[1:]
	return p, true
}
