package sys

import (
	"errors"
	"io"
	"os"
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
		return nil, unmapped(size, false, e)
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
	return tooLarge(size, err)
}

// Discard gives back the memory behind size bytes at p, which are mapped from a
// file: they are zeros for all that have mapped them, and a hole in the file.
func Discard(p unsafe.Pointer, size int64) error {
	return unix.Madvise(unsafe.Slice((*byte)(p), size), unix.MADV_REMOVE)
}

// Errors of ReadProcess and WriteProcess that callers tell apart.
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
		local := [1]unix.Iovec{{Base: unsafe.SliceData(b)}}
		local[0].SetLen(len(b))
		remote := [1]remoteIovec{{addr, uint64(len(b))}}
		n, err := vectored(call, pid, local[:], remote[:])
		runtime.KeepAlive(b)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		b, addr = b[n:], addr+n
	}
	return nil
}

// vectored copies between as many bytes on both sides, and returns how many it has
// copied, in order: fewer than all if it came to what is not there.
func vectored(call uintptr, pid int, local []unix.Iovec, remote []remoteIovec) (n uint64, err error) {
	r, _, e := unix.Syscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&local[0])), uintptr(len(local)), uintptr(unsafe.Pointer(&remote[0])), uintptr(len(remote)), 0)
	switch e {
	case 0:
		return uint64(r), nil
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
		return 0, ErrForbidden
	case unix.ESRCH:
		return 0, ErrNoProcess
	}
	return 0, e
}

// MaxPieces is how many Pieces one system call copies (IOV_MAX, see readv(2)).
const MaxPieces = 1024

// Pieces are runs of another process's memory, each with memory of this one of the same
// length. The zero Pieces is empty. Not for concurrent use.
type Pieces struct {
	local  []unix.Iovec
	remote []remoteIovec
}

// Len is how many there are.
func (p *Pieces) Len() int { return len(p.remote) }

// Add adds b, 1 byte or more, and what is at addr there. There are fewer than MaxPieces. The
// caller keeps b alive until Reset.
func (p *Pieces) Add(addr uint64, b []byte) {
	p.remote = append(p.remote, remoteIovec{addr, uint64(len(b))})
	if k := len(p.local) - 1; k >= 0 {
		if v := &p.local[k]; uintptr(unsafe.Pointer(v.Base))+uintptr(v.Len) == uintptr(unsafe.Pointer(unsafe.SliceData(b))) {
			v.SetLen(int(v.Len) + len(b)) // the two sides need not be divided alike
			return
		}
	}
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	p.local = append(p.local, v)
}

// Reset forgets all.
func (p *Pieces) Reset() {
	clear(p.local) // lest it keep memory
	p.local, p.remote = p.local[:0], p.remote[:0]
}

// Read copies memory of process pid to this one's (process_vm_readv(2)), and returns how
// many pieces from the first on are complete. It stops at one that is not there.
func (p *Pieces) Read(pid int) int { return p.copied(unix.SYS_PROCESS_VM_READV, pid) }

// Write is Read in the other direction (process_vm_writev(2)).
func (p *Pieces) Write(pid int) int { return p.copied(unix.SYS_PROCESS_VM_WRITEV, pid) }

func (p *Pieces) copied(call uintptr, pid int) (whole int) {
	if len(p.remote) == 0 {
		return 0
	}
	n, err := vectored(call, pid, p.local, p.remote)
	if err != nil {
		return 0
	}
	for _, r := range p.remote {
		if n < r.n {
			break
		}
		n -= r.n
		whole++
	}
	return whole
}

// Populate has pages stand behind n bytes at p, as if each had been written to, and changes
// none of them. It needs Linux 5.14.
func Populate(p unsafe.Pointer, n int) error {
	page := uintptr(os.Getpagesize())
	low := uintptr(p) &^ (page - 1)
	high := (uintptr(p) + uintptr(n) + page - 1) &^ (page - 1)
	return unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(p, -int(uintptr(p)-low))), int(high-low)), unix.MADV_POPULATE_WRITE)
}
