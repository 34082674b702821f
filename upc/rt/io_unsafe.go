// Parallel I/O. What is unsafe here: strings, buffers and lists at addresses that the program of C names.

package rt

import (
	"errors"
	"io"
	"math"
	"math/bits"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys/files"
)

// FileFlags is what upc_all_fopen is to do, and what UPC_GET_FL returns (UPC 1.3, 7.8.3.1). The values
// are those of the macros in <upc_io.h>.
type FileFlags int32

// The flags UPC_RDONLY and so on.
const (
	FileReadOnly FileFlags = 1 << iota
	FileWriteOnly
	FileReadWrite
	FileIndividual
	FileCommon
	FileAppend
	FileCreate
	FileExcl
	FileStrong
	FileTrunc
	FileDelete

	fileModes    = FileReadOnly | FileWriteOnly | FileReadWrite
	filePointers = FileIndividual | FileCommon
)

// FileOp is what a call does with the data of a file: FileRead or FileWrite, and FileAsync if another
// call, File.Wait or File.Test, ends it.
type FileOp uint8

// The operations.
const (
	FileRead  FileOp = 0
	FileWrite FileOp = 1
	FileAsync FileOp = 2
)

// FileVec is struct upc_filevec (7.8.6): bytes of a file.
type FileVec struct {
	Offset int64
	Len    uint64
}

// LocalVec is struct upc_local_memvec (7.8.6): bytes of private memory.
type LocalVec struct {
	Base unsafe.Pointer
	Len  uint64
}

// SharedVec is struct upc_shared_memvec (7.8.6): bytes of shared memory, in blocks of so many bytes.
type SharedVec struct {
	Base       Phased
	Block, Len uint64
}

// Hint is struct upc_hint (7.8.3.1): two strings of C.
type Hint struct{ Key, Value *int8 }

// List is n elements of C's at p, as the calls here take them.
func List[T any](p unsafe.Pointer, n uint64) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(p), n)
}

// File is an open file of upc_all_fopen (7.8): all its methods are collective, in their order and in the
// arguments that the text calls single-valued. A nil File, of a handle that is not that of an open file, has
// error EBADF in all of them. Errors are of package syscall, or of calls of package os. Each thread has opened the
// file and accesses it by itself, so that all have to reach it by its name.
//
// Asynchronous operations are done when the call that begins them returns (7.8.7p3); File.Wait and File.Test
// have the result.
type File struct {
	t       *Thread
	handle  Phaseless
	f       *os.File
	flags   FileFlags
	name    string
	cName   *int8 // the name and the hints as C has them
	hints   []Hint
	at      int64 // the file pointer; of a common one all threads have a copy, which they move alike
	written bool  // since the last synchronization
	lock    Lock  // has the thread that accesses the file with strong semantics

	begun *ioCall // the asynchronous operation that is under way
}

// ioCall is a call that moves data.
type ioCall struct {
	op     FileOp
	flags  SyncFlags
	shared bool // memory of other threads, too
	n      int64
	err    error
}

// ioMemory is memory of a call: private, or n bytes of shared memory in blocks of so many bytes, 0 for one
// block, of which the first is whole: the phase of pointers is ignored (7.8p9).
type ioMemory struct {
	private  []byte
	at       Phaseless
	block, n int64
}

// cString is a string as C has it. It lies in Go's heap: a File keeps it.
func cString(s string) *int8 {
	return (*int8)(unsafe.Pointer(unsafe.SliceData(append([]byte(s), 0))))
}

// goString is the string of C at p.
func goString(p *int8) string {
	n := 0
	for *(*int8)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(p)), n))
}

// errno is an error as a number; 0 for none.
func errno(err error) syscall.Errno {
	var n syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &n):
		return n
	}
	return syscall.EIO
}

// most is the largest of the threads' values. No thread returns before all have called it.
func most(t *Thread, v int64) int64 {
	v, err := gas.AllReduce(t.n, v, func(a, b int64) int64 { return max(a, b) })
	t.must(err)
	return v
}

// agree is an error that all threads have if one has one: a single-valued error.
func agree(t *Thread, err error) error {
	if n := most(t, int64(errno(err))); n != 0 {
		return syscall.Errno(n)
	}
	return nil
}

// AllFOpen is upc_all_fopen (7.8.3.1). The handle, a Phaseless, is the same on all threads, null if there is an error, which
// is single-valued. Of the hints file_perm counts, an octal number; the others are kept for those that ask.
func AllFOpen(t *Thread, name *int8, flags FileFlags, hints []Hint) (handle uint64, err error) {
	t.together("upc_all_fopen")
	f := &File{t: t, flags: flags, name: goString(name)}
	f.cName = cString(f.name)
	for _, h := range hints {
		f.setHint(h)
	}
	how, ok := map[FileFlags]int{FileReadOnly: os.O_RDONLY, FileWriteOnly: os.O_WRONLY, FileReadWrite: os.O_RDWR}[flags&fileModes]
	if pointers := flags & filePointers; !ok || pointers != FileIndividual && pointers != FileCommon || flags>>1 >= FileDelete ||
		flags&(FileExcl|FileCreate) == FileExcl || flags&(FileTrunc|FileReadOnly) == FileTrunc|FileReadOnly {
		return 0, syscall.EINVAL
	}
	// Thread 0 makes the file, which the others find then.
	if t.me == 0 {
		for flag, more := range map[FileFlags]int{FileCreate: os.O_CREATE, FileExcl: os.O_EXCL, FileTrunc: os.O_TRUNC} {
			if flags&flag != 0 {
				how |= more
			}
		}
		f.f, err = files.Open(f.name, how, f.permissions())
	}
	if err = agree(t, err); err == nil && t.me != 0 {
		f.f, err = files.Open(f.name, how, 0)
	}
	if err = agree(t, err); err != nil {
		if f.f != nil {
			f.f.Close() // the error is another thread's
		}
		return 0, err
	}
	if flags&FileAppend != 0 {
		size, err := f.size()
		f.at = most(t, size)
		if err = agree(t, err); err != nil {
			f.f.Close()
			return 0, err
		}
	}
	if f.handle = t.AllAlloc(1, granule); f.handle == 0 {
		t.must(errs.Resource("upc: upc_all_fopen: %s", t.noRoom))
	}
	if flags&FileStrong != 0 {
		f.setStrong()
	}
	if t.files == nil {
		t.files = map[Phaseless]*File{}
	}
	t.files[f.handle] = f
	return uint64(f.handle), nil
}

// FileOf is the open file of a handle; nil if there is none.
func FileOf(t *Thread, handle Phaseless) *File { return t.files[handle] }

// setStrong has accesses be atomic from now on.
func (f *File) setStrong() {
	f.flags |= FileStrong
	if f.lock == 0 {
		if f.lock = f.t.AllLockAlloc(); f.lock == 0 {
			f.t.must(errs.Resource("upc: strong semantics of a file: %s", f.t.noRoom))
		}
	}
}

// permissions are those of a file that is made.
func (f *File) permissions() os.FileMode {
	for _, h := range f.hints {
		if goString(h.Key) == "file_perm" {
			if perm, err := strconv.ParseUint(goString(h.Value), 8, 9); err == nil {
				return os.FileMode(perm)
			}
		}
	}
	return 0o666
}

// setHint keeps a hint, in place of one with the same key.
func (f *File) setHint(h Hint) {
	h = Hint{cString(goString(h.Key)), cString(goString(h.Value))}
	for i := range f.hints {
		if goString(f.hints[i].Key) == goString(h.Key) {
			f.hints[i] = h
			return
		}
	}
	f.hints = append(f.hints, h)
}

// ready is the error of a call on a file that is not open. One that comes while an asynchronous operation is
// under way, or between notify and wait, ends the job (7.8p19, 7.8.3p4).
func (f *File) ready(what string) error {
	if f == nil {
		return syscall.EBADF
	}
	f.t.together(what)
	if f.begun != nil {
		f.t.must(errs.NotReady("upc: %s of %s, which has an asynchronous operation under way: upc_all_fwait_async or upc_all_ftest_async ends it", what, f.name))
	}
	return nil
}

// Close is upc_all_fclose (7.8.3.2). Its errors are single-valued.
func (f *File) Close() error {
	if f == nil {
		return syscall.EBADF
	}
	f.t.together("upc_all_fclose")
	if f.begun != nil {
		return syscall.EBUSY
	}
	err := agree(f.t, f.leave())
	delete(f.t.files, f.handle)
	f.t.AllLockFree(f.lock)
	f.t.AllFree(f.handle)
	return err
}

// leave is what a thread does by itself when a file is closed.
func (f *File) leave() error {
	err := f.flush()
	if f.flags&FileDelete != 0 && f.t.me == 0 {
		err = errors.Join(err, files.Remove(f.name))
	}
	return errors.Join(err, f.f.Close())
}

// closeFiles closes the files that are open at the thread's end (7.8p4).
func closeFiles(t *Thread) (err error) {
	for _, f := range t.files {
		err = errors.Join(err, f.leave())
	}
	t.files = nil
	return err
}

// flush has the storage device get what the thread has written.
func (f *File) flush() error {
	if !f.written {
		return nil
	}
	f.written = false
	if err := f.f.Sync(); err != nil && errno(err) != syscall.EINVAL { // which files without a device have: fsync(2)
		return err
	}
	return nil
}

// Sync is upc_all_fsync (7.8.3.3).
func (f *File) Sync() error {
	if err := f.ready("upc_all_fsync"); err != nil {
		return err
	}
	return f.synchronize()
}

func (f *File) synchronize() error {
	err := f.flush()
	f.t.meet()
	return err
}

// size is the size of the file as this thread sees it.
func (f *File) size() (int64, error) {
	s, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return s.Size(), nil
}

// Seek is upc_all_fseek (7.8.3.4), by io.SeekStart and its kin.
func (f *File) Seek(offset int64, origin int) (int64, error) {
	if err := f.ready("upc_all_fseek"); err != nil {
		return 0, err
	}
	var from int64
	switch origin {
	case io.SeekStart:
	case io.SeekCurrent:
		from = f.at
	case io.SeekEnd:
		size, err := f.size()
		if f.flags&FileCommon != 0 {
			size = most(f.t, size)
		}
		if err != nil {
			return 0, err
		}
		from = size
	default:
		return 0, syscall.EINVAL
	}
	if from += offset; from < 0 {
		return 0, syscall.EINVAL
	}
	f.at = from
	return from, nil
}

// SetSize is upc_all_fset_size (7.8.3.5).
func (f *File) SetSize(size int64) error {
	return f.resize("upc_all_fset_size", size, func() error { return f.f.Truncate(size) })
}

// Preallocate is upc_all_fpreallocate (7.8.3.7). Where the file system cannot, the file becomes longer alone.
func (f *File) Preallocate(size int64) error {
	return f.resize("upc_all_fpreallocate", size, func() error {
		was, err := f.size()
		if err != nil || size == 0 {
			return err
		}
		if err = syscall.Fallocate(int(f.f.Fd()), 0, 0, size); err == syscall.EOPNOTSUPP {
			err = f.f.Truncate(max(size, was))
		}
		return err
	})
}

// resize has thread 0 change the file's size.
func (f *File) resize(what string, size int64, by func() error) error {
	if err := f.ready(what); err != nil {
		return err
	}
	switch {
	case f.flags&FileReadOnly != 0:
		return syscall.EBADF
	case size < 0:
		return syscall.EINVAL
	}
	err := f.synchronize()
	if f.t.me == 0 && err == nil {
		f.written = true
		err = by()
	}
	return agree(f.t, err)
}

// Size is upc_all_fget_size (7.8.3.6): with all that any thread has written before.
func (f *File) Size() (int64, error) {
	if err := f.ready("upc_all_fget_size"); err != nil {
		return 0, err
	}
	size, err := f.size()
	return most(f.t, size), err
}

// FileCommand is a command of upc_all_fcntl (7.8.3.8).
type FileCommand int32

// The commands UPC_GET_CA_SEMANTICS and so on.
const (
	FileGetCA FileCommand = 1 + iota
	FileSetWeak
	FileSetStrong
	FileGetPointer
	FileSetCommon
	FileSetIndividual
	FileGetFlags
	FileGetName
	FileGetHints
	FileSetHint
	FileOutstanding
)

// Control is upc_all_fcntl (7.8.3.8). What it stores at arg stays until the file is closed.
func (f *File) Control(c FileCommand, arg unsafe.Pointer) (int64, error) {
	if f != nil && f.begun != nil && c == FileOutstanding {
		return 1, nil
	}
	if err := f.ready("upc_all_fcntl"); err != nil {
		return 0, err
	}
	switch c {
	case FileGetCA:
		return int64(f.flags & FileStrong), nil
	case FileGetPointer:
		return int64(f.flags & filePointers), nil
	case FileGetFlags:
		return int64(f.flags), nil
	case FileGetName:
		*(*uintptr)(arg) = uintptr(unsafe.Pointer(f.cName)) // as a number: what was there is no pointer of Go's
		return 0, nil
	case FileGetHints:
		*(*uintptr)(arg) = uintptr(unsafe.Pointer(unsafe.SliceData(f.hints)))
		return int64(len(f.hints)), nil
	case FileSetWeak:
		f.flags &^= FileStrong
	case FileSetStrong:
		f.setStrong()
	case FileSetCommon, FileSetIndividual:
		f.at = 0
		f.flags = f.flags&^filePointers | map[FileCommand]FileFlags{FileSetCommon: FileCommon, FileSetIndividual: FileIndividual}[c]
	case FileSetHint:
		f.setHint(*(*Hint)(arg))
	case FileOutstanding:
		return 0, nil
	default:
		return 0, syscall.EINVAL
	}
	return 0, f.synchronize()
}

// call makes a call that moves data, by move, after what threads have to wait for and before what they have to
// wait for then. private: its buffers are those of the thread alone.
func (f *File) call(what string, c ioCall, private bool, move func() (int64, error)) (int64, error) {
	if err := f.ready(what); err != nil {
		return 0, err
	}
	denied := FileWriteOnly
	if c.op&FileWrite != 0 {
		denied = FileReadOnly
	}
	switch {
	case f.flags&denied != 0:
		c.err = syscall.EBADF
	case private && f.flags&FileCommon != 0:
		c.err = syscall.EINVAL
	default:
		if f.flags&FileStrong != 0 {
			c.flags = 0
		}
		arrive(f.t, what, c.flags, c.shared)
		c.n, c.err = move()
		f.written = f.written || c.op&FileWrite != 0
	}
	if c.op&FileAsync != 0 {
		f.begun = &c
		return 0, nil
	}
	return f.finish(&c)
}

// finish is the return from a call that moves data.
func (f *File) finish(c *ioCall) (int64, error) {
	depart(f.t, c.flags, c.shared)
	return c.n, c.err
}

// Wait is upc_all_fwait_async (7.8.7.9).
func (f *File) Wait() (int64, error) {
	switch {
	case f == nil:
		return 0, syscall.EBADF
	case f.begun == nil:
		return 0, syscall.EINVAL
	}
	f.t.together("upc_all_fwait_async")
	c := f.begun
	f.begun = nil
	return f.finish(c)
}

// Test is upc_all_ftest_async (7.8.7.10): *done becomes 1, since operations are complete when they have begun.
func (f *File) Test(done *int32) (int64, error) {
	*done = 1
	return f.Wait()
}

// product is size*n bytes.
func product(size, n uint64) (int64, error) {
	if hi, lo := bits.Mul64(size, n); hi == 0 && lo <= math.MaxInt64 {
		return int64(lo), nil
	}
	return 0, syscall.EINVAL
}

// Local is upc_all_fread_local, upc_all_fwrite_local (7.8.4.1, 7.8.5.1) and their asynchronous forms: n elements
// of size bytes at p, which is private memory, or the thread's own.
func (f *File) Local(op FileOp, p unsafe.Pointer, size, n uint64, flags SyncFlags) (int64, error) {
	return f.call("upc_all_fread_local or upc_all_fwrite_local", ioCall{op: op, flags: flags}, true, func() (int64, error) {
		total, err := product(size, n)
		if err != nil || total == 0 {
			return 0, err
		}
		return f.pointed(op, ioMemory{private: Bytes(p, int(total)), n: total})
	})
}

// Shared is upc_all_fread_shared, upc_all_fwrite_shared (7.8.4.2, 7.8.5.2) and their asynchronous forms: n elements of
// size bytes at p, in blocks of block elements, 0 for the indefinite size. With a common file pointer each
// thread moves a part of them.
func (f *File) Shared(op FileOp, p Phased, block, size, n uint64, flags SyncFlags) (int64, error) {
	return f.call("upc_all_fread_shared or upc_all_fwrite_shared", ioCall{op: op, flags: flags, shared: true}, false, func() (int64, error) {
		total, err := product(size, n)
		if err != nil || total == 0 {
			return 0, err
		}
		m := ioMemory{at: p.Phaseless(), n: total}
		if block < n { // else it is one
			m.block = int64(block * size)
		}
		if f.flags&FileCommon == 0 {
			return f.pointed(op, m)
		}
		if op&FileWrite == 0 {
			size, err := f.size()
			if total = min(total, max(most(f.t, size)-f.at, 0)); err != nil {
				return 0, err
			}
		}
		from, to := share(total, f.t.me, f.t.threads), share(total, f.t.me+1, f.t.threads)
		if moved, err := f.move(op, m, from, f.at+from, to-from); err != nil {
			return 0, err
		} else if moved < to-from {
			return 0, syscall.EIO // the file has become shorter meanwhile
		}
		f.at += total
		return total, nil
	})
}

// share is where the part of a thread of total bytes begins.
func share(total int64, thread, threads int) int64 {
	each, more := total/int64(threads), total%int64(threads)
	return each*int64(thread) + min(more, int64(thread))
}

// pointed moves memory from or to the place of the thread's own file pointer, and that behind it.
func (f *File) pointed(op FileOp, m ioMemory) (int64, error) {
	defer f.alone()()
	n, err := f.move(op, m, 0, f.at, m.n)
	if err != nil {
		return 0, err
	}
	f.at += n
	return n, nil
}

// alone has no other thread access the file with strong semantics until the function that it returns is called:
// whole calls are atomic.
func (f *File) alone() (until func()) {
	if f.flags&FileStrong == 0 {
		return func() {}
	}
	f.t.Lock(f.lock)
	return func() { f.t.Unlock(f.lock) }
}

// ListLocal is upc_all_fread_list_local, upc_all_fwrite_list_local (7.8.6.1, 7.8.6.3) and their asynchronous forms.
func (f *File) ListLocal(op FileOp, memory []LocalVec, file []FileVec, flags SyncFlags) (int64, error) {
	return f.call("upc_all_fread_list_local or upc_all_fwrite_list_local", ioCall{op: op, flags: flags}, false, func() (int64, error) {
		var all []ioMemory
		for _, v := range memory {
			if v.Len > math.MaxInt64 {
				return 0, syscall.EINVAL
			}
			all = append(all, ioMemory{private: Bytes(v.Base, int(v.Len)), n: int64(v.Len)})
		}
		return f.listed(op, all, file)
	})
}

// ListShared is upc_all_fread_list_shared, upc_all_fwrite_list_shared (7.8.6.2, 7.8.6.4) and their asynchronous forms.
func (f *File) ListShared(op FileOp, memory []SharedVec, file []FileVec, flags SyncFlags) (int64, error) {
	return f.call("upc_all_fread_list_shared or upc_all_fwrite_list_shared", ioCall{op: op, flags: flags, shared: true}, false, func() (int64, error) {
		var all []ioMemory
		for _, v := range memory {
			if v.Len > math.MaxInt64 {
				return 0, syscall.EINVAL
			}
			m := ioMemory{at: v.Base.Phaseless(), n: int64(v.Len)}
			if v.Block < v.Len {
				m.block = int64(v.Block)
			}
			all = append(all, m)
		}
		return f.listed(op, all, file)
	})
}

// listed moves memory from or to the listed places of the file. The lists have equally many bytes, those of
// the file in order (7.8.6p9).
func (f *File) listed(op FileOp, memory []ioMemory, file []FileVec) (total int64, err error) {
	var left, last int64
	for _, m := range memory {
		if left += m.n; left < 0 {
			return 0, syscall.EINVAL
		}
	}
	for _, v := range file {
		if v.Len == 0 {
			continue
		}
		if left -= int64(v.Len); int64(v.Len) < 0 || left < 0 || v.Offset < last {
			return 0, syscall.EINVAL
		}
		last = v.Offset
	}
	if left != 0 {
		return 0, syscall.EINVAL
	}
	defer f.alone()()
	var used int64 // of the first piece of memory
	for _, v := range file {
		for left := int64(v.Len); left > 0; {
			for memory[0].n == used {
				memory, used = memory[1:], 0
			}
			n := min(left, memory[0].n-used)
			moved, err := f.move(op, memory[0], used, v.Offset+int64(v.Len)-left, n)
			if total += moved; err != nil {
				return 0, err
			} else if moved < n {
				return total, nil // at the end of the file, where what follows in the list is, too
			}
			used += n
			left -= n
		}
	}
	return total, nil
}

// ioPiece is how much shared memory is moved at once, bytes. Tests have less.
var ioPiece int64 = 1 << 20

// move moves n bytes between memory, from byte first of it on, and the file from byte at on. It returns how many
// there were up to the end of the file.
func (f *File) move(op FileOp, m ioMemory, first, at, n int64) (moved int64, err error) {
	if m.private != nil {
		return f.access(op, m.private[first:first+n], at)
	}
	buf := make([]byte, min(n, ioPiece))
	for moved < n {
		b := buf[:min(n-moved, int64(len(buf)))]
		if op&FileWrite != 0 {
			m.spread(f.t, first+moved, b, false)
		}
		k, err := f.access(op, b, at+moved)
		if err != nil {
			return moved, err
		}
		if op&FileWrite == 0 {
			m.spread(f.t, first+moved, b[:k], true)
		}
		if moved += k; k < int64(len(b)) {
			break
		}
	}
	return moved, nil
}

// access reads b from the file, up to its end, or writes it.
func (f *File) access(op FileOp, b []byte, at int64) (int64, error) {
	if op&FileWrite != 0 {
		n, err := f.f.WriteAt(b, at)
		return int64(n), err
	}
	n, err := f.f.ReadAt(b, at)
	if err == io.EOF {
		err = nil
	}
	return int64(n), err
}

// place is byte i of shared memory.
func (m ioMemory) place(t *Thread, i int64) Phaseless {
	if m.block == 0 {
		return m.at.AddLocal(int(i), 1)
	}
	k := i/m.block + int64(m.at.Thread())
	n := int64(t.threads)
	return MakePhaseless(int(k%n), m.at.Addr()).AddLocal(int(k/n*m.block+i%m.block), 1)
}

// spread puts b into shared memory from byte first on, or gets it from there. Of the bytes of many blocks, those of one
// thread lie behind each other in its memory, so that there is one transfer for each thread.
func (m ioMemory) spread(t *Thread, first int64, b []byte, put bool) {
	transfer := func(p Phaseless, b []byte) Handle {
		if put {
			return t.MemPutNB(p, b)
		}
		return t.MemGetNB(b, p)
	}
	end := first + int64(len(b))
	if m.block == 0 || t.threads == 1 || (end-1)/m.block <= first/m.block {
		t.Sync(transfer(m.place(t, first), b))
		return
	}
	tmp := make([]byte, len(b))
	// part is where the bytes of the thread that has block k, one of the first blocks, begin in tmp.
	part := make([]int64, 1, t.threads+1)
	var handles []Handle
	k := first / m.block
	blocks := min(int64(t.threads), (end-1)/m.block-k+1)
	for i := range blocks {
		at := part[i]
		n := m.interleave(tmp[at:], b, k+i, first, t.threads, put, !put)
		handles = append(handles, transfer(m.place(t, max((k+i)*m.block, first)), tmp[at:at+n]))
		part = append(part, at+n)
	}
	for _, h := range handles {
		t.Sync(h)
	}
	for i := range blocks {
		if !put {
			m.interleave(tmp[part[i]:], b, k+i, first, t.threads, false, false)
		}
	}
}

// interleave copies the bytes in b, which are those from first on, of block k and the thread's following ones from
// b to tmp, where they lie behind each other, if in, or back, or counts them alone. It returns how many they are.
func (m ioMemory) interleave(tmp, b []byte, k, first int64, threads int, in, count bool) (n int64) {
	end := first + int64(len(b))
	for lo := k * m.block; lo < end; lo += m.block * int64(threads) {
		from, to := max(lo, first), min(lo+m.block, end)
		if !count {
			to, from := tmp[n:n+to-from], b[from-first:to-first]
			if !in {
				to, from = from, to
			}
			switch len(to) { // words are quicker than a call
			case 4:
				*(*[4]byte)(to) = *(*[4]byte)(from)
			case 8:
				*(*[8]byte)(to) = *(*[8]byte)(from)
			default:
				bulk.Copy(to, from)
			}
		}
		n += to - from
	}
	return n
}
