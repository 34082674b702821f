package sys

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// InNamespace runs f in the network namespace that the file at path stands for:
// sockets and devices that f opens belong to it. f must not start goroutines that
// rely on that. The thread that runs it ends with it, so that no other goroutine
// finds itself in that namespace.
func InNamespace(path string, f func() error) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with the goroutine
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			ended <- &os.PathError{Op: "open", Path: path, Err: err}
			return
		}
		err = unix.Setns(fd, unix.CLONE_NEWNET)
		_ = unix.Close(fd)
		if err != nil {
			ended <- os.NewSyscallError("setns", err)
			return
		}
		ended <- f()
	}()
	return <-ended
}

// OpenTun makes a TUN device of the given name in the caller's network namespace,
// or attaches to the one there is. Each read of the descriptor, which does not
// block, takes an IP packet that the system sends through it, and each write hands
// it one. The device goes when it is closed, by CloseFile.
func OpenTun(name string) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("TUN device %s: %w", name, err)
	}
	return fd, nil
}

// PollIn waits until one of fds can be read, or for timeout, a negative one being
// for ever.
func PollIn(fds []int, timeout time.Duration) {
	var p [4]unix.PollFd
	for i, fd := range fds {
		p[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	var limit *unix.Timespec
	if timeout >= 0 {
		t := unix.NsecToTimespec(int64(timeout))
		limit = &t
	}
	_, _ = unix.Ppoll(p[:len(fds)], limit, nil)
}

// Precise makes the calling thread, which its goroutine is locked to, wake when its
// time has come and run before others: timers without slack (PR_SET_TIMERSLACK) and
// the lowest priority of SCHED_FIFO. It reports whether the system permits the latter.
func Precise() bool {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0) == nil
}

// SetCongestion chooses a TCP connection's congestion control, such as cubic, and
// returns the one that it has then.
func SetCongestion(fd uintptr, name string) (string, error) {
	if err := unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
		return "", os.NewSyscallError("setsockopt TCP_CONGESTION", err)
	}
	return unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
}

// TCPCounts are the system's counts of a connection (TCP_INFO).
type TCPCounts struct {
	Again            uint64 // segments sent again
	RTT, MinRTT      time.Duration
	Window, SSThresh uint32
}

// CountTCP reads them.
func CountTCP(fd uintptr) (c TCPCounts) {
	i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return c
	}
	return TCPCounts{
		Again: uint64(i.Total_retrans), RTT: time.Duration(i.Rtt) * time.Microsecond, MinRTT: time.Duration(i.Min_rtt) * time.Microsecond,
		Window: i.Snd_cwnd, SSThresh: i.Snd_ssthresh,
	}
}
