package sys

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrnoName is the symbol of an error number, such as ENETUNREACH.
func ErrnoName(e syscall.Errno) string { return unix.ErrnoName(e) }

// Lasting reports whether err, of a call that sends to an address or connects to it,
// is about the way there or the permission to use it, and so will not go away by
// trying again; and for how long it should nevertheless be tried: routes flap.
// A refused connection is not: no process listens there yet, or no more.
func Lasting(err error) (patience time.Duration, lasting bool) {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return 0, false
	}
	switch e {
	case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.EPERM:
		return flap, true
	case unix.EACCES, unix.EADDRNOTAVAIL, unix.EAFNOSUPPORT, unix.EINVAL:
		return 200 * time.Millisecond, true
	}
	return 0, false
}

// Tries is a row of attempts that have failed for lasting errors. The zero value is
// one of none.
type Tries struct {
	Routes time.Duration // how long those without a route are made at least; 0: as Lasting says
	Count  int
	Took   time.Duration // as far as this host ran
	last   time.Duration // when the last one was
}

// A row is long enough with leastTries, and one adds at most tryStep to the time of
// its row: a host that stood still has not tried.
const (
	leastTries = 3
	tryStep    = 500 * time.Millisecond
	flap       = time.Second // the patience with routes, which come back
)

// Lasting takes err into account, of an attempt at a time of any clock, and reports
// whether there have been enough, for long enough (see the function Lasting), so that
// nothing is gained by another one. Any other error begins the row anew.
func (t *Tries) Lasting(err error, now time.Duration) bool {
	patience, lasting := Lasting(err)
	if !lasting {
		*t = Tries{Routes: t.Routes}
		return false
	}
	if patience >= flap {
		patience = max(patience, t.Routes)
	}
	if t.Count == 0 {
		t.last = now
	}
	t.Count++
	t.Took += min(now-t.last, tryStep)
	t.last = now
	return t.Count >= leastTries && t.Took >= patience
}
