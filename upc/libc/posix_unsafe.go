// What programs use of POSIX beside files: what the system says of the process and of files, waiting, signals, options.
// What is unsafe here: structures at the places that the program names, laid out as the headers declare them.

package libc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/files"
	"github.com/argon-go/argon/internal/sys/origin"
)

// Errnum is where a thread's errno is.
func Errnum(c *C) *int32 { return (*int32)(&c.Err) }

// Strerror is strerror (C99, 7.21.6.2), in the words of the C library.
func Strerror(c *C, e int32) *int8 {
	s := syscall.Errno(e).Error()
	switch {
	case e == 0:
		s = "Success"
	case e < 0 || strings.HasPrefix(s, "errno "):
		s = fmt.Sprint("Unknown error ", e)
	default:
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	p, ok := c.messages[s]
	if !ok {
		if c.messages == nil {
			c.messages = map[string]*int8{}
		}
		p = Str(s + "\x00")
		c.messages[s] = p
	}
	return p
}

// Perror is perror (C99, 7.19.10.4).
func Perror(c *C, s *int8) {
	m := string(text(Strerror(c, int32(c.Err)))) + "\n"
	if s != nil && *s != 0 {
		m = string(text(s)) + ": " + m
	}
	c.writeTo(c.Stderr(), []byte(m))
}

// Open is open of POSIX: in truth with the flags of Linux.
func Open(c *C, name *int8, flags int32, mode ...any) int32 {
	m := uint64(0)
	if len(mode) > 0 {
		m, _ = word(mode[0])
	}
	f, err := files.Open(string(text(name)), int(flags), os.FileMode(m))
	var fd int
	if err == nil {
		if fd, err = syscall.Dup(int(f.Fd())); err == nil {
			syscall.CloseOnExec(fd)
		}
		f.Close()
	}
	return int32(c.Err.Off(int64(fd), err))
}

// Close is close, and so on: those that POSIX describes under their names in small letters.
func Close(c *C, fd int32) int32 { return c.Err.Status(syscall.Close(int(fd))) }

// Read reads from a file, or from standard input after what stdio has of it.
func Read(c *C, fd int32, p unsafe.Pointer, n uint64) int64 {
	if fd != 0 {
		k, err := syscall.Read(int(fd), bytesAt(p, n))
		return c.Err.Off(int64(k), err)
	}
	s, done := find(c, c.Stdin())
	defer done()
	k, err := s.r.Read(bytesAt(p, n))
	if err == io.EOF {
		return 0
	}
	return c.Err.Off(int64(k), err)
}

// Write writes to a file after what stdio has for it.
func Write(c *C, fd int32, p unsafe.Pointer, n uint64) int64 {
	c.Flush()
	k, err := syscall.Write(int(fd), bytesAt(p, n))
	return c.Err.Off(int64(k), err)
}

// Lseek moves where a file is read and written.
func Lseek(c *C, fd int32, offset int64, whence int32) int64 {
	n, err := syscall.Seek(int(fd), offset, int(whence))
	return c.Err.Off(n, err)
}

// Fileno is the descriptor of a stream.
func Fileno(c *C, p unsafe.Pointer) int32 {
	if s, done := find(c, p); s != nil {
		defer done()
		return int32(s.f.Fd())
	}
	return (*File)(p).Fd
}

// Named are the calls about a file by its name.
func Unlink(c *C, name *int8) int32 { return c.Err.Status(files.Unlink(string(text(name)))) }

// Rmdir removes a folder.
func Rmdir(c *C, name *int8) int32 { return c.Err.Status(syscall.Rmdir(string(text(name)))) }

// Mkdir makes a folder.
func Mkdir(c *C, name *int8, mode uint32) int32 {
	return c.Err.Status(syscall.Mkdir(string(text(name)), mode))
}

// Chmod changes the rights to a file.
func Chmod(c *C, name *int8, mode uint32) int32 {
	return c.Err.Status(files.Chmod(string(text(name)), mode))
}

// Chdir changes the folder of the process, which all its threads share.
func Chdir(c *C, name *int8) int32 { return c.Err.Status(syscall.Chdir(string(text(name)))) }

// Access asks whether a file may be used.
func Access(c *C, name *int8, mode int32) int32 {
	return c.Err.Status(syscall.Access(files.Path(string(text(name))), uint32(mode)))
}

// Rename is rename (C99, 7.19.4.2).
func Rename(c *C, from, to *int8) int32 {
	return c.Err.Status(files.Rename(string(text(from)), string(text(to))))
}

// Truncate changes the length of a file.
func Truncate(c *C, name *int8, n int64) int32 {
	return c.Err.Status(files.Truncate(string(text(name)), n))
}

// Ftruncate changes the length of an open file.
func Ftruncate(c *C, fd int32, n int64) int32 { return c.Err.Status(syscall.Ftruncate(int(fd), n)) }

// Fsync has a file written to its disk.
func Fsync(c *C, fd int32) int32 { return c.Err.Status(syscall.Fsync(int(fd))) }

// Getcwd is the folder of the process, at p, or in memory of its own.
func Getcwd(c *C, p *int8, n uint64) *int8 {
	dir, err := os.Getwd()
	if err == nil && p != nil && uint64(len(dir)) >= n {
		err = syscall.ERANGE
	}
	if c.Err.Status(err) != 0 {
		return nil
	}
	if p == nil {
		return Str(dir + "\x00")
	}
	c.store(p, []byte(dir))
	return p
}

// Gethostname is the name of the host.
func Gethostname(c *C, p *int8, n uint64) int32 {
	name, err := os.Hostname()
	if err == nil && uint64(len(name)) >= n {
		err = syscall.ENAMETOOLONG
	}
	if c.Err.Status(err) != 0 {
		return -1
	}
	c.store(p, []byte(name))
	return 0
}

// Isatty reports whether a file is a terminal.
func Isatty(c *C, fd int32) int32 {
	var mode [64]byte // struct termios
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TCGETS, uintptr(unsafe.Pointer(&mode[0])))
	if e != 0 {
		c.Err.Status(e)
	}
	return Bool(e == 0)
}

// Sysconf is what the system has of something, by the numbers of Linux.
func Sysconf(c *C, name int32) int64 {
	switch name {
	case 0: // _SC_ARG_MAX
		return 2 << 20
	case 2: // _SC_CLK_TCK
		return ticks
	case 4: // _SC_OPEN_MAX
		return 1 << 20
	case 30: // _SC_PAGESIZE
		return int64(os.Getpagesize())
	case 83, 84: // _SC_NPROCESSORS_CONF and _SC_NPROCESSORS_ONLN
		return int64(runtime.NumCPU())
	case 85: // _SC_PHYS_PAGES
		var total int64
		if b, err := os.ReadFile("/proc/meminfo"); err == nil {
			fmt.Sscanf(string(b), "MemTotal: %d", &total)
		}
		return total * 1024 / int64(os.Getpagesize())
	}
	return int64(c.Err.Status(syscall.EINVAL))
}

// stat is struct stat of <sys/stat.h>.
type stat struct {
	dev, ino, nlink       uint64
	mode, uid, gid, pad   uint32
	rdev                  uint64
	size, blksize, blocks int64
	atime, mtime, ctime   syscall.Timespec
}

// Stat asks about the file of that name, or with a nil name about an open one.
func Stat(c *C, name *int8, fd int32, follow bool, to unsafe.Pointer) int32 {
	var s syscall.Stat_t
	var err error
	switch {
	case name == nil:
		err = syscall.Fstat(int(fd), &s)
	default:
		own := string(text(name))
		path := files.Path(own)
		if follow || path != own { // of a copy the name is a link to it
			err = syscall.Stat(path, &s)
		} else {
			err = syscall.Lstat(path, &s)
		}
	}
	if err == nil {
		*(*stat)(to) = stat{uint64(s.Dev), s.Ino, uint64(s.Nlink), s.Mode, s.Uid, s.Gid, 0, uint64(s.Rdev), s.Size, int64(s.Blksize), s.Blocks, s.Atim, s.Mtim, s.Ctim}
	}
	return c.Err.Status(err)
}

// rusage is struct rusage of <sys/resource.h>.
type rusage struct {
	user, system Timeval
	counts       [14]int64
}

// Getrusage is what the process, with all its threads, has used.
func Getrusage(c *C, who int32, to unsafe.Pointer) int32 {
	var r syscall.Rusage
	err := syscall.Getrusage(int(who), &r)
	if err == nil {
		*(*rusage)(to) = rusage{timeval(r.Utime), timeval(r.Stime), [14]int64{
			r.Maxrss, r.Ixrss, r.Idrss, r.Isrss, r.Minflt, r.Majflt, r.Nswap, r.Inblock, r.Oublock, r.Msgsnd, r.Msgrcv, r.Nsignals, r.Nvcsw, r.Nivcsw,
		}}
	}
	return c.Err.Status(err)
}

func timeval(t syscall.Timeval) Timeval { return Timeval{t.Sec, int64(t.Usec)} }

const ticks = 100 // of times and sysconf, a second

// Times is times: the process's time in ticks, and the job's clock.
func Times(c *C, to unsafe.Pointer) int64 {
	var r rusage
	Getrusage(c, 0, unsafe.Pointer(&r))
	in := func(t Timeval) int64 { return t.Sec*ticks + t.Usec*ticks/1e6 }
	*(*[4]int64)(to) = [4]int64{in(r.user), in(r.system), 0, 0}
	return int64(c.now() * ticks / time.Second)
}

// ClockGettime is clock_gettime: the clocks of processes and threads are the process's, all others the job's.
func ClockGettime(c *C, clock int32, to unsafe.Pointer) int32 {
	ns := c.now().Nanoseconds()
	if clock == 2 || clock == 3 {
		var r rusage
		Getrusage(c, 0, unsafe.Pointer(&r))
		ns = (r.user.Sec+r.system.Sec)*1e9 + (r.user.Usec+r.system.Usec)*1000
	}
	if to != nil {
		*(*[2]int64)(to) = [2]int64{ns / 1e9, ns % 1e9}
	}
	return 0
}

// Uname is uname.
func Uname(c *C, to unsafe.Pointer) int32 { return c.Err.Status(syscall.Uname((*syscall.Utsname)(to))) }

// System is system (C99, 7.20.4.6).
func System(c *C, command *int8) int32 {
	if command == nil {
		return 1
	}
	c.Flush()
	cmd := exec.Command("/bin/sh", "-c", string(text(command)))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int32(exit.Sys().(syscall.WaitStatus))
	}
	return c.Err.Status(err)
}

// Quit is _exit: it ends the thread's main without what exit does before.
func Quit(c *C, status int32) {
	c.out = nil
	panic(exit{status: status, aborted: status != 0})
}

// Atexit has exit, and the return of main, call f (C99, 7.20.4.2): the last first.
func Atexit(c *C, f func()) int32 {
	c.atexit = append(c.atexit, f)
	return 0
}

// Handlers of signals, by their numbers. A pointer that is 1 is SIG_IGN.
type handler struct {
	raw unsafe.Pointer
	fn  func(int32)
}

// Signal is signal (C99, 7.14.1.1). A signal from outside is handled beside the thread, which goes on; those
// of raise, abort and of wrong accesses by the thread.
func Signal(c *C, number int32, raw unsafe.Pointer, fn func(int32)) unsafe.Pointer {
	if number < 1 || number > 64 || number == 9 || number == 19 {
		c.Err.Status(syscall.EINVAL)
		return FromInt(-1)
	}
	was, known := c.handlers.LoadAndStore(number, handler{raw, fn})
	switch s := syscall.Signal(number); s {
	case syscall.SIGSEGV, syscall.SIGFPE, syscall.SIGBUS, syscall.SIGILL: // which are panics of Go
	default:
		if !known && raw != nil {
			sys.OnSignal(s, func() { interrupted(c, number, "beside its thread") })
		}
	}
	return was.raw
}

// interrupted runs a signal's handler, away from the functions of the thread. If it calls exit, the process ends, and
// also if it does what cannot be there, such as longjmp.
func interrupted(c *C, number int32, where string) {
	defer func() {
		switch e := recover().(type) {
		case nil:
			return
		case exit:
			os.Exit(int(e.status))
		case *jump:
			fmt.Fprintf(os.Stderr, "%s: libc: longjmp from the handler of signal %d, which runs %s\n", origin.Caller(), number, where)
		default:
			fmt.Fprintf(os.Stderr, "%s: in the handler of signal %d, which runs %s: %v\n", origin.Caller(), number, where, e)
		}
		os.Exit(134)
	}()
	Raise(c, number)
}

// Raise is raise (C99, 7.14.2.1).
func Raise(c *C, number int32) int32 {
	h, _ := c.handlers.Load(number)
	switch {
	case h.raw == nil:
		c.Flush()
		panic(exit{128 + number, true})
	case uintptr(h.raw) != 1:
		h.fn(number)
	}
	return 0
}

// Kill sends a signal to a process.
func Kill(c *C, pid, number int32) int32 {
	return c.Err.Status(syscall.Kill(int(pid), syscall.Signal(number)))
}

// Path is the last part of a path, or what stands before it.
func Path(s *int8, last bool) *int8 {
	p := string(text(s))
	if last {
		return Str(filepath.Base(p) + "\x00")
	}
	return Str(filepath.Dir(p) + "\x00")
}

// Alarm has SIGALRM arrive after so many seconds of the host's clock, and is how many were left before the last one.
func Alarm(seconds uint32) uint32 { return sys.Alarm(seconds) }
