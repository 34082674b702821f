package sys

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CreateMemory returns a file of size bytes, all holes, that exists only as long
// as a process holds it open. dir "" asks for a memfd, which no process can make shorter
// any more: one that has mapped what is cut off dies of SIGBUS. Otherwise a file is made
// in dir, which should be a tmpfs, and unlinked at once, so that nothing is
// left behind even by kill -9; such files cannot be sealed.
func CreateMemory(dir, name string, size int64) (*os.File, error) {
	var f *os.File
	if dir == "" {
		var err error
		if f, err = Memfd(name); err != nil {
			return nil, err
		}
	} else {
		var err error
		if f, err = os.CreateTemp(dir, name+"-*"); err != nil {
			return nil, err
		}
		if err := os.Remove(f.Name()); err != nil {
			f.Close()
			return nil, err
		}
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, fmt.Errorf("ftruncate to %d bytes: %w", size, tooLarge(size, err))
	}
	if dir == "" {
		// Nor can a seal be added, such as one that forbids the file to grow.
		if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
			f.Close()
			return nil, fmt.Errorf("F_ADD_SEALS: %w", err)
		}
	}
	return f, nil
}

// Memfd is an empty file of memfd_create(2).
func Memfd(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// MemfdError is why there is no memfd_create(2), as where a filter forbids it; nil if
// there is.
func MemfdError() error {
	fd, err := unix.MemfdCreate("argon-try", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return nil
	} else if err != nil {
		return fmt.Errorf("memfd_create: %w", err)
	}
	return unix.Close(fd)
}

// Map maps the first size bytes of a file shared, readable and writable. The
// address is outside the Go heap and stays until Unmap.
func Map(fd uintptr, size int64) (unsafe.Pointer, error) {
	p, err := unix.MmapPtr(int(fd), 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, unmapped(size, false, err)
	}
	return p, nil
}

// Reserve returns size bytes of zeros of this process alone, for which memory is
// taken page by page when they are written.
func Reserve(size int64) (unsafe.Pointer, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, unmapped(size, true, err)
	}
	return p, nil
}

// Unmap undoes Map and Reserve.
func Unmap(p unsafe.Pointer, size int64) error { return unix.MunmapPtr(p, uintptr(size)) }

// PreferNode has what lies in size bytes at p, a page's address, come from a memory node as long as that
// has room, also where another process touches it first: mbind(2) of shared memory is for all
// that map it. Pages that are there stay where they are.
func PreferNode(p unsafe.Pointer, size int64, node int) error {
	const preferred = 1 // MPOL_PREFERRED of linux/mempolicy.h
	var mask [16]uint64 // 1024 nodes, MAX_NUMNODES
	if node < 0 || node >= 64*len(mask) {
		return unix.EINVAL
	}
	mask[node/64] = 1 << (node % 64)
	// The kernel takes one bit less than it is told (get_nodes of mm/mempolicy.c).
	if _, _, e := unix.Syscall6(unix.SYS_MBIND, uintptr(p), uintptr(size), preferred, uintptr(unsafe.Pointer(&mask)), uintptr(64*len(mask)+1), 0); e != 0 {
		return os.NewSyscallError("mbind", e)
	}
	return nil
}

// FutexWait sleeps while *addr == val, across processes; it may return early.
func FutexWait(addr *uint32, val uint32) {
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), futexWait, uintptr(val), 0, 0, 0)
}

// FutexWake wakes all threads that sleep on addr.
func FutexWake(addr *uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), futexWake, 1<<31-1, 0, 0, 0)
}

// Operations of futex(2); without FUTEX_PRIVATE_FLAG, so that they work on
// memory shared between processes.
const (
	futexWait = 0
	futexWake = 1
)

// Yield gives the processor to another thread of the machine.
func Yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Commands of membarrier(2).
const (
	membarrierGlobalExpedited          = 1 << 1
	membarrierRegisterGlobalExpedited  = 1 << 2
	membarrierPrivateExpedited         = 1 << 3
	membarrierRegisterPrivateExpedited = 1 << 4
)

func membarrier(cmd uintptr) error {
	if _, _, e := unix.RawSyscall(unix.SYS_MEMBARRIER, cmd, 0, 0); e != 0 {
		return e
	}
	return nil
}

// errNoMembarrier is kept from start-up for reports.
var errNoMembarrier = cmp.Or(
	membarrier(membarrierRegisterPrivateExpedited),
	membarrier(membarrierRegisterGlobalExpedited))

// HasMembarrier reports whether Barrier and GlobalBarrier work. The process has
// been registered for both by then.
func HasMembarrier() bool { return errNoMembarrier == nil }

// MembarrierError is why HasMembarrier says no, nil if it does not.
func MembarrierError() error { return errNoMembarrier }

// Barrier makes every running thread of this process execute a full memory
// barrier before it returns: the expensive half of an asymmetric fence whose
// cheap half is program order.
func Barrier() { mustBarrier(membarrierPrivateExpedited) }

// GlobalBarrier does the same for the threads of all processes that have
// registered, as HasMembarrier's processes have.
func GlobalBarrier() { mustBarrier(membarrierGlobalExpedited) }

func mustBarrier(cmd uintptr) {
	if err := membarrier(cmd); err != nil {
		panic("sys: membarrier failed after registration: " + err.Error())
	}
}
