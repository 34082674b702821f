package sys

import (
	"time"

	"golang.org/x/sys/unix"
)

// SetUserTimeout has a TCP connection end when what was sent is not acknowledged
// for so long (TCP_USER_TIMEOUT), instead of after a quarter of an hour.
func SetUserTimeout(fd uintptr, d time.Duration) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}
