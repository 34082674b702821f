package sys

import "golang.org/x/sys/unix"

// FileSize is the length in bytes of the file that is open as fd.
func FileSize(fd uintptr) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(fd), &st); err != nil {
		return 0, err
	}
	return st.Size, nil
}
