package sys

import "golang.org/x/sys/unix"

// LockFile waits until no other process has locked the file that is open as fd, which stays locked until unlock is called.
// The lock is of the open file, and keeps out nothing but other locks (flock(2)).
func LockFile(fd uintptr) (unlock func(), err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(fd), unix.LOCK_EX)
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
