package sys

import "golang.org/x/sys/unix"

// LockFile locks the file that is open as fd until unlock is called. While another process has locked it, it waits,
// or with wait false the error is EWOULDBLOCK. The lock is of the open file, and keeps out nothing but other locks (flock(2)).
func LockFile(fd uintptr, wait bool) (unlock func(), err error) {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(fd), how)
	}
	return func() { _ = unix.Flock(int(fd), unix.LOCK_UN) }, err
}

// FileSize is the length in bytes of the file that is open as fd.
func FileSize(fd uintptr) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(fd), &st); err != nil {
		return 0, err
	}
	return st.Size, nil
}
