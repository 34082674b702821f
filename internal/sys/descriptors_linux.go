package sys

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Descriptors are the numbers of the descriptors that this process has open, in no order;
// nil where there is no /proc.
func Descriptors() []int {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	all := make([]int, 0, len(names))
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd != int(d.Fd()) {
			all = append(all, fd)
		}
	}
	return all
}

// Inherited reports whether programs that this process starts have fd open, too.
func Inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}
