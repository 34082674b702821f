package sys

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Processors is how many processors the ranks of a host have to themselves: those
// that this process may run on, or fewer, see QuotaCPU.
func Processors() int { return min(NumCPU(), QuotaCPU()) }

// QuotaCPU is how many processors this process's control group has time for, at
// least 1; very many if it has no limit. A limit of 1.5 processors counts as one,
// for two threads that spin would be throttled.
func QuotaCPU() int { return int(min(max(cpuLimit("/"), 1), 1<<30)) }

// InvoluntarySwitches is how often threads of this process were taken off their
// processors while they could have gone on.
func InvoluntarySwitches() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Nivcsw
}

// ProcessorTime is how long threads of this process have run.
func ProcessorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// RunDelay is how long the threads of this process have run, and how long they were
// ready and waited for a processor. ok is false if the kernel does not tell
// (CONFIG_SCHED_INFO). It allocates nothing. One goroutine at a time may call it.
func RunDelay() (run, delay time.Duration, ok bool) {
	dir, e := openat(unix.AT_FDCWD, taskPath[:], unix.O_DIRECTORY)
	if e != 0 {
		return 0, 0, false
	}
	defer unix.Close(dir)
	for {
		n, _, e := unix.Syscall(unix.SYS_GETDENTS64, uintptr(dir), uintptr(unsafe.Pointer(&direntBuf)), uintptr(len(direntBuf)))
		if e != 0 || n == 0 {
			return run, delay, ok
		}
		// struct linux_dirent64: inode 8, offset 8, length 2, type 1, name (getdents(2)).
		for b := direntBuf[:n]; len(b) > 19; {
			size := int(b[16]) | int(b[17])<<8
			if size <= 19 || size > len(b) {
				return run, delay, false
			}
			k := 0
			for c := 19; c < size && b[c] >= '0' && b[c] <= '9' && k < 20; c, k = c+1, k+1 {
				statPath[k] = b[c]
			}
			b = b[size:]
			if k == 0 {
				continue
			}
			copy(statPath[k:], "/schedstat\x00")
			fd, e := openat(dir, statPath[:], 0)
			if e != 0 {
				continue
			}
			m, _, e := unix.Syscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&statBuf)), uintptr(len(statBuf)))
			_ = unix.Close(fd)
			if e != 0 {
				continue
			}
			r, rest, ok1 := number(statBuf[:m])
			d, _, ok2 := number(rest)
			if ok1 && ok2 {
				run, delay, ok = run+time.Duration(r), delay+time.Duration(d), true
			}
		}
	}
}

// What RunDelay works with: system calls would have it escape.
var (
	taskPath  = [...]byte{'/', 'p', 'r', 'o', 'c', '/', 's', 'e', 'l', 'f', '/', 't', 'a', 's', 'k', 0}
	direntBuf [4096]byte
	statPath  [32]byte
	statBuf   [80]byte
)

func openat(dir int, name []byte, flags int) (int, unix.Errno) {
	fd, _, e := unix.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(unsafe.SliceData(name))), uintptr(unix.O_RDONLY|unix.O_CLOEXEC|flags), 0, 0, 0)
	return int(fd), e
}

// number reads digits and one character after them.
func number(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		n, i = n*10+uint64(b[i]-'0'), i+1
	}
	if i == 0 {
		return 0, nil, false
	}
	return n, b[min(i+1, len(b)):], true
}
