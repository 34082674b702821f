package sys

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MapAt maps size bytes of a file from offset off on, a multiple of the page size,
// shared, readable, and writable if asked for. Bytes beyond the file's end must not
// be touched, but may exist later.
func MapAt(fd uintptr, off, size int64, writable bool) (unsafe.Pointer, error) {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	// Not unix.MmapPtr, which knows no offset.
	p, _, e := unix.Syscall6(unix.SYS_MMAP, 0, uintptr(size), uintptr(prot), unix.MAP_SHARED|unix.MAP_NORESERVE, fd, uintptr(off))
	if e != 0 {
		return nil, fmt.Errorf("mmap of %d bytes at %d: %w", size, off, e)
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&p)), nil
}

// Extend makes a file at least size bytes long, and never shorter, even if others
// do the same at the same time. The byte before must not be in use yet.
func Extend(fd uintptr, size int64) error {
	if n, err := FileSize(fd); err != nil || n >= size {
		return err
	}
	_, err := unix.Pwrite(int(fd), []byte{0}, size-1)
	return err
}

// Discard gives back the memory behind size bytes at p, which are mapped from a
// file: they are zeros for all that have mapped them, and a hole in the file.
func Discard(p unsafe.Pointer, size int64) error {
	return unix.Madvise(unsafe.Slice((*byte)(p), size), unix.MADV_REMOVE)
}

// What ReadProcess and WriteProcess say if the reason matters.
var (
	// ErrForbidden: this process may not reach the other's memory, or the kernel
	// or a filter does not offer the system call.
	ErrForbidden = errors.New("access to another process's memory is forbidden")
	// ErrNoProcess: there is no such process any more.
	ErrNoProcess = errors.New("no such process")
)

// ReadProcess fills b with memory of process pid from address addr on
// (process_vm_readv(2)).
func ReadProcess(pid int, addr uint64, b []byte) error {
	return processVM(unix.SYS_PROCESS_VM_READV, pid, addr, b)
}

// WriteProcess copies b to memory of process pid (process_vm_writev(2)).
func WriteProcess(pid int, addr uint64, b []byte) error {
	return processVM(unix.SYS_PROCESS_VM_WRITEV, pid, addr, b)
}

// remoteIovec is an iovec of another process's addresses.
type remoteIovec struct{ base, n uint64 }

func processVM(call uintptr, pid int, addr uint64, b []byte) error {
	for len(b) > 0 {
		local := unix.Iovec{Base: unsafe.SliceData(b)}
		local.SetLen(len(b))
		remote := remoteIovec{addr, uint64(len(b))}
		n, _, e := unix.Syscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
		runtime.KeepAlive(b)
		switch e {
		case 0:
		case unix.EPERM, unix.EACCES, unix.ENOSYS:
			return ErrForbidden
		case unix.ESRCH:
			return ErrNoProcess
		default:
			return e
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		b, addr = b[n:], addr+uint64(n)
	}
	return nil
}
