package sys

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A Waiter waits for a socket beside the runtime's poller, at the cost of a thread
// while it does. A socket that the poller knows wakes an idle thread of the process
// with every datagram, whichever thread receives it: two ranks that play ping-pong on two
// processors lose half of their time to that.
type Waiter struct {
	fd, event int

	waiting sync.Mutex // held by the waiter
	closing atomic.Bool
	mu      sync.Mutex // guards the files against Close, for the waker
	closed  bool
}

// NewWaiter takes over the socket fd, non-blocking or not: Close closes it. The
// runtime's poller must not know it; see Detach.
func NewWaiter(fd uintptr) (*Waiter, error) {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &Waiter{fd: int(fd), event: event}, nil
}

// Detach returns a duplicate of fd. When fd has been closed, the runtime's poller knows
// nothing of the file any more.
func Detach(fd uintptr) (uintptr, error) {
	n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("fcntl", err)
	}
	return uintptr(n), nil
}

// CloseFile closes fd.
func CloseFile(fd uintptr) { _ = unix.Close(int(fd)) }

// Wait returns when there is something to be received, after timeout (negative:
// never), after Wake, also one before it that has ended no Wait yet, after Close,
// and now and then without a reason. Several calls take turns.
func (w *Waiter) Wait(timeout time.Duration) {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	if w.closing.Load() {
		return
	}
	fds := [2]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}, {Fd: int32(w.event), Events: unix.POLLIN}}
	var limit *unix.Timespec
	if timeout >= 0 {
		t := unix.NsecToTimespec(int64(timeout))
		limit = &t
	}
	if n, _ := unix.Ppoll(fds[:], limit, nil); n > 0 && fds[1].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(w.event, count[:])
	}
}

// Wake ends a Wait.
func (w *Waiter) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		one := [8]byte{1} // of any byte order: what counts is that it is not 0
		_, _ = unix.Write(w.event, one[:])
	}
}

// Close ends all waits and closes the socket, which must not be in use.
func (w *Waiter) Close() {
	if w.closing.Swap(true) {
		return
	}
	w.Wake()
	w.waiting.Lock()
	defer w.waiting.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	_ = unix.Close(w.event)
	_ = unix.Close(w.fd)
}

// Watchable returns a duplicate of fd for the runtime's poller, which
// tells of each change of its readiness once. Blocking calls on fd, such as poll and
// epoll_wait, stay as they are, but reads and writes return EAGAIN.
func Watchable(fd int) (*os.File, error) {
	n, err := Detach(uintptr(fd))
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(int(n), true); err != nil {
		CloseFile(n)
		return nil, os.NewSyscallError("fcntl", err)
	}
	f := os.NewFile(n, "completion queue")
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Signalled reports whether fd, of any kind, is readable now.
func Signalled(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n > 0
}

// Unread is how many bytes have arrived at fd, a connected socket, that were not read; 0 if it is
// no socket, or one that listens.
func Unread(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}
