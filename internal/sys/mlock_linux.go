package sys

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mlock keeps the pages of [addr, addr+n) in memory, and brings them there,
// until Munlock. Calls do not nest: one Munlock undoes any number of them.
func Mlock(addr, n uintptr) error { return lock("mlock", unix.SYS_MLOCK, addr, n) }

// Munlock undoes Mlock for the pages of [addr, addr+n).
func Munlock(addr, n uintptr) error { return lock("munlock", unix.SYS_MUNLOCK, addr, n) }

func lock(name string, call, addr, n uintptr) error {
	if _, _, e := unix.Syscall(call, addr, n, 0); e != 0 {
		return os.NewSyscallError(name, e)
	}
	return nil
}

// LocksBeyondLimit reports whether LockLimit does not hold for the calling thread,
// which has CAP_IPC_LOCK. In a user namespace the kernel does not honour that.
func LocksBeyondLimit() bool {
	return capable(unix.CAP_IPC_LOCK)
}

// capable reports whether the calling thread has a capability (capabilities(7)).
func capable(capability int) bool {
	caps, err := status("/proc/thread-self/status", "CapEff:")
	if err != nil {
		return false
	}
	set, err := strconv.ParseUint(caps, 16, 64)
	return err == nil && set>>capability&1 == 1
}

// LockedMemory is how many bytes of this process are locked now, as the kernel
// counts them.
func LockedMemory() (int64, error) {
	return statusField("VmLck:")
}

// statusField reads one line of /proc/self/status that counts kB, in bytes.
func statusField(name string) (int64, error) {
	v, err := status("/proc/self/status", name)
	if err != nil {
		return 0, err
	}
	kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(v, "kB")), 10, 64)
	return kb << 10, err
}

// status returns the value of name in a file like /proc/self/status.
func status(file, name string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), name); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("no %s in %s", name, file)
}
