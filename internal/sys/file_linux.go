package sys

import "golang.org/x/sys/unix"

// FreeIn is how many bytes the file system that fd lies in can still take, and
// whether it has a limit: that of a memfd has none of its own.
func FreeIn(fd uintptr) (bytes int64, limited bool) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(fd), &st); err != nil || st.Blocks == 0 {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}

// FileSize is the length in bytes of the file that is open as fd.
func FileSize(fd uintptr) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(fd), &st); err != nil {
		return 0, err
	}
	return st.Size, nil
}
