package place

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

const (
	// mostJobs is how many jobs can take a processor. More are not told from so many.
	mostJobs = 16
	// turnLimit is how long a job waits for another one that is choosing. A choice takes some ms;
	// one that was stopped meanwhile must not hold up others, which then may take what it takes.
	turnLimit = 500 * time.Millisecond
)

// A Claim is the processors that a job has taken. nil is none.
type Claim struct{ taken map[int]int } // sockets by processor

// Take has choose decide, while no other job does, which of the processors allowed to take: load is
// how many jobs have taken one. What choose returns is taken until Release, or until this process has
// ended. An error says that jobs cannot be told apart here; choose was called with no load then.
func Take(allowed []int, choose func(load func(cpu int) int) []int) (*Claim, error) {
	turn := await(address("choice"), turnLimit)
	if turn != nil {
		defer turn.Close()
	}
	c := &Claim{taken: map[int]int{}}
	loads := map[int]int{}
	var bad error
	for _, cpu := range allowed {
		for i := 0; bad == nil && i < mostJobs; i++ {
			fd, err := bind(fmt.Sprintf("%d/%d", cpu, i))
			_, have := c.taken[cpu]
			switch {
			case errors.Is(err, syscall.EADDRINUSE):
				loads[cpu]++
			case err != nil:
				bad = err
			case have:
				_ = syscall.Close(fd)
			default:
				c.taken[cpu] = fd
			}
		}
	}
	if bad != nil {
		c.Release()
		choose(func(int) int { return 0 })
		return nil, errs.NotSupported("place: the processors of other jobs are not known (unix socket: %v)", bad)
	}
	others := c.taken
	c.taken = map[int]int{}
	for _, cpu := range choose(func(cpu int) int { return loads[cpu] }) {
		if fd, ok := others[cpu]; ok {
			c.taken[cpu] = fd
			delete(others, cpu)
		}
	}
	(&Claim{others}).Release()
	return c, nil
}

// Release gives back what was taken.
func (c *Claim) Release() {
	if c == nil {
		return
	}
	for _, fd := range c.taken {
		_ = syscall.Close(fd)
	}
	c.taken = nil
}

// address is an abstract address, which no file system has (unix(7)).
func address(name string) string { return folder + name }

// folder begins the addresses.
var folder = "@argon/processor/"

// bind makes a socket that has an address and takes nothing there.
func bind(name string) (fd int, err error) {
	fd, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: address(name)}); err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// await returns a listener at an address, which others that ask for one there wait for: their
// connections end with it. It is nil if one of those that come before has it for longer than limit.
func await(at string, limit time.Duration) net.Listener {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		l, err := net.Listen("unix", at)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil
		}
		conn, err := net.DialTimeout("unix", at, time.Until(deadline))
		switch {
		case errors.Is(err, syscall.ECONNREFUSED): // it has ended, or begins to listen
			continue
		case err != nil:
			return nil
		}
		_ = conn.SetReadDeadline(deadline)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			deadline = time.Now().Add(limit) // that one is done; another may be before this one
		}
		conn.Close()
	}
	return nil
}
