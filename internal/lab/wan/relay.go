package wan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

// A Relay carries IP packets in real time between two TUN devices, one in each of
// two network namespaces, as a path says. To the kernels there, with their TCP, it
// is the network.
type Relay struct {
	tuns  [2]int
	pipe  [2]int // a byte in it interrupts the relay
	ended chan struct{}
	calls chan func()
	stop  bool
	err   error

	transit
	links    [2]*Link
	start    time.Time
	latest   time.Duration // the longest that a packet was delivered too late
	lateness [32]int64     // packets by the logarithm of how late they were
}

// StartRelay makes a TUN device called name in each of two network namespaces,
// files at paths, and carries packets between them until Close. It needs root. The
// devices have no addresses yet.
func StartRelay(p Path, name string, namespaces [2]string) (*Relay, error) {
	r := &Relay{
		tuns: [2]int{-1, -1}, ended: make(chan struct{}), calls: make(chan func()),
		links: [2]*Link{NewLink(p, 0), NewLink(p, 1)}, start: time.Now(),
	}
	for i, path := range namespaces {
		err := sys.InNamespace(path, func() (err error) {
			r.tuns[i], err = sys.OpenTun(name)
			return err
		})
		if err != nil {
			r.closeFiles()
			return nil, fmt.Errorf("wan: %w", err)
		}
	}
	if err := syscall.Pipe2(r.pipe[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		r.closeFiles()
		return nil, fmt.Errorf("wan: %w", os.NewSyscallError("pipe", err))
	}
	go r.run()
	return r, nil
}

func (r *Relay) closeFiles() {
	for _, fd := range r.tuns {
		if fd >= 0 {
			sys.CloseFile(uintptr(fd))
		}
	}
	if r.pipe[1] > 0 {
		sys.CloseFile(uintptr(r.pipe[0]))
		sys.CloseFile(uintptr(r.pipe[1]))
	}
}

// call has f run between packets.
func (r *Relay) call(f func()) {
	done := make(chan struct{})
	_, _ = syscall.Write(r.pipe[1], []byte{0})
	select {
	case r.calls <- func() { f(); close(done) }:
		<-done
	case <-r.ended:
	}
}

// Change has f change the links between two packets.
func (r *Relay) Change(f func(links [2]*Link)) { r.call(func() { f(r.links) }) }

// Counts returns the counts of the links, from side 0 to side 1 and back.
func (r *Relay) Counts() (c [2]Counts) {
	r.call(func() { c = [2]Counts{r.links[0].Counts, r.links[1].Counts} })
	return c
}

// Late is by how much packets were delivered too late: at most, and 99 of a hundred
// of them, rounded up to a power of two of microseconds.
func (r *Relay) Late() (most, p99 time.Duration) {
	r.call(func() {
		sum, all := int64(0), int64(0)
		for _, n := range r.lateness {
			all += n
		}
		for i, n := range r.lateness {
			if sum += n; sum*100 >= all*99 {
				p99 = time.Microsecond << i
				break
			}
		}
		most = r.latest
	})
	return most, p99
}

// Close ends the relay and removes the devices; the error is the first of either. No other
// call may be under way, nor come later.
func (r *Relay) Close() error {
	r.call(func() { r.stop = true })
	<-r.ended
	// Not in run, which may end by itself: call writes to the pipe.
	r.closeFiles()
	return r.err
}

// mostRead is how many packets are taken from a device in a row.
const mostRead = 64

func (r *Relay) run() {
	defer close(r.ended)
	runtime.LockOSThread() // it never unlocks: the thread's priority goes with it
	sys.Precise()
	fds := []int{r.tuns[0], r.tuns[1], r.pipe[0]}
	scratch := make([]byte, 1<<16)
	for !r.stop {
		now := time.Since(r.start)
		for q, from := r.first(); q != nil && q.at <= now; q, from = r.first() {
			r.take(from)
			late := now - q.at
			r.latest = max(r.latest, late)
			i := 0
			for late > time.Microsecond<<i && i < len(r.lateness)-1 {
				i++
			}
			r.lateness[i]++
			// A device that is down, or whose queue is full, loses it.
			_, _ = syscall.Write(r.tuns[1-q.side], q.Data)
			r.release(q)
		}
		busy := false
		for side, fd := range r.tuns {
			for range mostRead {
				n, err := syscall.Read(fd, scratch)
				if err != nil {
					if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR) {
						r.err = fmt.Errorf("wan: %w", os.NewSyscallError("read", err))
						r.stop = true
					}
					break
				}
				busy = true
				q := r.packet()
				q.Data, q.Size = append(q.Data, scratch[:n]...), n
				f := r.links[side].Offer(time.Since(r.start), n)
				if f.Corrupt {
					corrupt(q.Data, f.Bit)
				}
				r.carry(q, side, f)
			}
		}
		if busy {
			continue
		}
		wait := time.Duration(-1)
		if q, _ := r.first(); q != nil {
			wait = max(0, q.at-time.Since(r.start))
		}
		if wait != 0 {
			sys.PollIn(fds, wait)
		}
		if n, _ := syscall.Read(r.pipe[0], scratch); n > 0 {
			(<-r.calls)()
			for range n - 1 {
				(<-r.calls)()
			}
		}
	}
}

// corrupt flips a bit of the contents of a UDP packet of IPv4 so that the
// receiver's checksums do not find it: that of UDP becomes 0, for none.
func corrupt(b []byte, bit uint64) {
	const udp = 17
	if len(b) < 20 || b[0]>>4 != 4 || b[9] != udp || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return
	}
	h := int(b[0]&15) * 4
	if len(b) <= h+8 {
		return
	}
	b[h+6], b[h+7] = 0, 0
	data := b[h+8:]
	bit %= uint64(8 * len(data))
	data[bit/8] ^= 1 << (bit % 8)
}
