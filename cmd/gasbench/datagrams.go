package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/ifaddr"
)

// sockets are for the references of bare UDP. Ranks 0 and 1 each have three that are
// connected with the other's, one for each reference, so that none gets another's datagrams.
type sockets struct {
	pings, single, joined flow
}

func (s *sockets) all() []*flow { return []*flow{&s.pings, &s.single, &s.joined} }

const (
	socketBuffer = 4 << 20 // bytes asked for
	maxDatagram  = 65000   // bytes, as large as loopback carries with room for headers
	maxSegments  = 64      // datagrams of one call, of every kernel that joins them
	minMessage   = 8       // bytes: a number that tells pings apart
	messages     = 256     // of a flood on their way
	streamWindow = 512 << 10
	lostAfter    = 10 * time.Second
)

// flow is a stream of datagrams from rank 0 to rank 1 on one socket. Rank 1 acknowledges
// the number of bytes after every quarter of the window, and when asked by
// a datagram of one byte. As many bytes as were lost are sent again: no rank
// looks at them.
type flow struct {
	s *sys.BareSocket
	// Rank 0: bytes that are to be sent, have been, and have been heard of.
	target, sent, heard uint64
	question            byte   // number of the last question
	asked               uint64 // what had been sent before
	// Rank 1: bytes that have come, and that rank 0 has been told of.
	got, told uint64
	buf       []byte // what is received
}

// close closes what the job has opened for itself.
func (j *job) close() {
	j.endGoroutines()
	if j.threads != nil {
		j.threads.t.Leave()
	}
	if j.sockets != nil {
		j.sockets.close()
	}
	if j.bare != nil {
		j.bare.close()
	}
	// Memory that cannot be taken back now goes with the job.
	for _, a := range j.exposed {
		_ = j.x.Conceal(a)
	}
	for _, mem := range j.mapped {
		_ = j.n.Layers().Conduit.UnmapMemory(mem)
	}
}

// errNoSockets is wrapped by errors of missing references over UDP.
var errNoSockets = errors.New("no UDP sockets to measure against")

// openSockets opens the calling rank's sockets and returns their address as the
// other rank needs it.
func (j *job) openSockets() (text string, err error) {
	ip, err := ownAddress(os.Getenv)
	if err != nil {
		return "", fmt.Errorf("%w: %v", errNoSockets, err)
	}
	s := &sockets{}
	text = ip.String()
	for _, f := range s.all() {
		if f.s, err = sys.OpenBare(netip.AddrPortFrom(ip, 0), socketBuffer); err == nil {
			var port uint16
			port, err = f.s.Port()
			text += fmt.Sprintf(" %d", port)
		}
		if err != nil {
			s.close()
			return "", fmt.Errorf("%w: %s: %v", errNoSockets, ip, err)
		}
		f.buf = make([]byte, 1<<16)
	}
	j.sockets = s
	return text, nil
}

func (s *sockets) close() {
	for _, f := range s.all() {
		if f.s != nil {
			_ = f.s.Close()
		}
	}
}

// ownAddress is the address by which the rank reaches the job's rendezvous, so
// that the references take the way of the job's own datagrams; loopback if there
// is no rendezvous.
func ownAddress(env func(string) string) (netip.Addr, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	at := env(jobenv.Rendezvous)
	if at == "" {
		return loopback, nil
	}
	a, err := ifaddr.To(context.Background(), at)
	if err != nil {
		return loopback, err
	}
	return a, nil
}

// connectSockets connects them with the other rank's, whose address is text.
func (j *job) connectSockets(text string) error {
	var ip string
	var port [3]uint16
	if _, err := fmt.Sscanf(text, "%s %d %d %d", &ip, &port[0], &port[1], &port[2]); err != nil {
		return fmt.Errorf("the other rank's address %q: %w", text, err)
	}
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return err
	}
	for i, f := range j.sockets.all() {
		if err := f.s.Connect(netip.AddrPortFrom(a, port[i])); err != nil {
			return err
		}
	}
	return nil
}

// needSockets makes the references over UDP available: rank 0's side.
func (j *job) needSockets() error {
	if j.sockets != nil {
		return nil
	}
	return j.join(cmdSockets, j.openSockets, j.connectSockets)
}

// receive waits for a datagram. It looks without telling the scheduler, as the
// conduit does. Only when nothing has come for some 50 us it lets others
// run, polls, since the conduit may have to send again what told the other rank to
// begin, and looks whether the job has failed. n is 0 if nothing has come.
func (j *job) receive(f *flow) (n int, err error) {
	for range 1 << 8 {
		if n, err = f.s.Receive(f.buf); n > 0 || err != nil {
			return n, err
		}
	}
	runtime.Gosched()
	sys.Yield()
	j.e.Poll()
	return 0, j.n.Layers().Conduit.Err()
}

// patient is receive until something comes; what is done after every hundredth
// of a second or so without.
func (j *job) patient(f *flow, then func() error) (int, error) {
	var begun, last time.Time
	for {
		n, err := j.receive(f)
		if n > 0 || err != nil {
			return n, err
		}
		now := time.Now()
		if begun.IsZero() {
			begun, last = now, now
		}
		if now.Sub(begun) > lostAfter {
			return 0, fmt.Errorf("the other rank's datagrams do not arrive: none for %v", lostAfter)
		}
		if now.Sub(last) > lostAfter/200 {
			last = now
			if err := then(); err != nil {
				return 0, err
			}
		}
	}
}

func nothing() error { return nil }

// send sends one datagram, or several joined.
func (j *job) send(f *flow, p []byte) error {
	for {
		ok, err := f.s.Send(p)
		if ok || err != nil {
			return err
		}
		if err := j.n.Layers().Conduit.Err(); err != nil {
			return err
		}
		sys.Yield()
	}
}

// sendPings is rank 0's side of count rounds of a ping-pong of size bytes.
func (j *job) sendPings(count, size int) error {
	f := &j.sockets.pings
	p := j.local[:size]
	for range count {
		j.ping++
		binary.LittleEndian.PutUint64(p, j.ping)
		if err := j.send(f, p); err != nil {
			return err
		}
		for {
			n, err := j.patient(f, func() error { return j.send(f, p) })
			if err != nil {
				return err
			}
			if n == size && binary.LittleEndian.Uint64(f.buf) == j.ping {
				break
			}
		}
	}
	return nil
}

// answerPings is rank 1's side.
func (j *job) answerPings(count uint64, size int) error {
	f := &j.sockets.pings
	for last := j.ping + count; j.ping < last; {
		n, err := j.patient(f, nothing)
		if err != nil {
			return err
		}
		if n != size {
			continue
		}
		j.ping = binary.LittleEndian.Uint64(f.buf)
		answer := func() error { return j.send(f, f.buf[:n]) }
		if j.ping == last {
			return farewell(answer)
		}
		if err := answer(); err != nil {
			return err
		}
	}
	return nil
}

// farewell makes rank 1's last answer, which no peer will answer again, several times, so that one
// arrives. Rank 0 may end with the first, and its closed socket then refuses the others.
func farewell(answer func() error) error {
	for range 3 {
		if err := answer(); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
	}
	return nil
}

// way is how a flow runs.
type way struct {
	chunk  int // bytes handed to the kernel at once
	window int // most bytes on their way
}

// alone sends messages of size bytes in a datagram each.
func alone(size int) way { return way{chunk: size, window: messages * size} }

// stream is how datagrams of so many bytes travel fastest: the kernel cuts
// chunks into them where it can and where it makes a difference.
func (s *sockets) stream(datagram int) way {
	f := &s.joined
	w := way{chunk: datagram}
	k := min(maxDatagram/datagram, maxSegments)
	if k > 1 && f.s.Segment(datagram) {
		w.chunk = k * datagram
	} else {
		f.s.Segment(0)
	}
	// The kernel counts more than the bytes, up to twice as much.
	w.window = max(min(f.s.Buffer()/4, streamWindow), 2*w.chunk)
	return w
}

// pour is rank 0's side of a flow of so many bytes, a multiple of 4, which are
// taken from src over and over.
func (j *job) pour(f *flow, w way, src []byte, bytes int) error {
	f.target += uint64(bytes)
	off := 0
	for f.sent < f.target {
		n := int(min(uint64(w.chunk), f.target-f.sent))
		if off+n > len(src) {
			off = 0
		}
		if err := j.await(f, uint64(max(w.window-n, 0))); err != nil {
			return err
		}
		if err := j.send(f, src[off:off+n]); err != nil {
			return err
		}
		f.sent += uint64(n)
		off += n
	}
	return nil
}

// await waits until at most so many bytes are on their way, as far as rank 0
// knows. What is lost it takes back from what has been sent.
func (j *job) await(f *flow, most uint64) error {
	for f.sent-f.heard > most {
		n, err := j.patient(f, func() error { return j.ask(f) })
		if err != nil {
			return err
		}
		if n < 8 {
			continue
		}
		heard := binary.LittleEndian.Uint64(f.buf)
		if heard > f.sent {
			return fmt.Errorf("%d bytes more have arrived than were sent", heard-f.sent)
		}
		f.heard = max(f.heard, heard)
		// The question went after all that has been sent, and so did the answer.
		if n == 9 && f.buf[8] == f.question && f.sent == f.asked {
			f.sent = f.heard
		}
	}
	return nil
}

// ask asks rank 1 how much has come.
func (j *job) ask(f *flow) error {
	f.question++
	f.asked = f.sent
	return j.send(f, []byte{f.question})
}

// finishFlow ends rank 0's side of a flow: all has come.
func (j *job) finishFlow(f *flow, w way, src []byte) error {
	for f.heard < f.target {
		if err := j.ask(f); err != nil {
			return err
		}
		if err := j.await(f, 0); err != nil {
			return err
		}
		if err := j.pour(f, w, src, 0); err != nil { // what was lost
			return err
		}
	}
	return nil
}

// catch is rank 1's side: it copies so many bytes to dst, over and over.
func (j *job) catch(f *flow, dst []byte, bytes uint64, window int) error {
	off := 0
	for last := f.got + bytes; f.got < last; {
		n, err := j.receive(f)
		switch {
		case err != nil:
			return err
		case n == 1:
			err = j.tell(f, f.buf[:1])
		case n > 1:
			if off+n > len(dst) {
				off = 0
			}
			off += copy(dst[off:], f.buf[:n])
			f.got += uint64(n)
			if f.got-f.told >= uint64(window)/4 {
				err = j.tell(f, nil)
			}
		}
		if err != nil {
			return err
		}
	}
	return farewell(func() error { return j.tell(f, nil) })
}

// tell tells rank 0 how much has come; answer is empty or the question.
func (j *job) tell(f *flow, answer []byte) error {
	f.told = f.got
	var b [9]byte
	binary.LittleEndian.PutUint64(b[:], f.got)
	return j.send(f, b[:8+copy(b[8:], answer)])
}
