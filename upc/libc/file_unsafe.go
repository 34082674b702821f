// Files. What is unsafe here: FILE pointers, which the program has as it got them, and the
// memory that it names to be read into or written.

package libc

import (
	"bufio"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/argon-go/argon/internal/sys/files"
)

// stream is an open file, of which the program has the File. Threads of one process share
// standard input.
type stream struct {
	sync.Mutex
	f     *os.File
	r     *bufio.Reader
	w     *bufio.Writer
	owner *C // the thread at whose end it is closed; nil of standard input

	last byte // what ReadByte has given last
	back int  // a byte that is read again; -1 for none
	eof  bool
	bad  bool
}

// streams are the open files of the process.
var streams struct {
	sync.Mutex
	all map[*File]*stream
}

var stdin = func() *File {
	f := newFile(0)
	open(f, os.Stdin, nil)
	return f
}()

func open(f *File, of *os.File, owner *C) {
	streams.Lock()
	defer streams.Unlock()
	if streams.all == nil {
		streams.all = map[*File]*stream{}
	}
	streams.all[f] = &stream{f: of, r: bufio.NewReader(of), w: bufio.NewWriter(of), owner: owner, back: -1}
}

// file is the FILE that has the stream of p: for a standard one that the thread has opened anew another.
func file(c *C, p unsafe.Pointer) *File {
	f := (*File)(p)
	if f == nil || uint32(f.Fd) >= 3 || c.anew[f.Fd] == nil {
		return f
	}
	return c.anew[f.Fd]
}

// find is the stream of a FILE that is locked, and what unlocks it; nil for standard output and
// what is not open.
func find(c *C, p unsafe.Pointer) (*stream, func()) {
	streams.Lock()
	s := streams.all[file(c, p)]
	streams.Unlock()
	if s == nil {
		return nil, func() {}
	}
	s.Lock() // which a thread that waits for input may have
	return s, s.Unlock
}

// ReadByte is the next byte; at the end the stream remembers that it was there.
func (s *stream) ReadByte() (byte, error) {
	if s.back >= 0 {
		s.last = byte(s.back)
		s.back = -1
		return s.last, nil
	}
	s.flush()
	b, err := s.r.ReadByte()
	if err != nil {
		s.failed(err)
		return 0, err
	}
	s.last = b
	return b, nil
}

// UnreadByte gives back what ReadByte has read last.
func (s *stream) UnreadByte() error {
	s.back = int(s.last)
	return nil
}

func (s *stream) failed(err error) {
	if err == io.EOF {
		s.eof = true
	} else if err != nil {
		s.bad = true
	}
}

// flush writes what is buffered.
func (s *stream) flush() {
	if s.w.Buffered() > 0 {
		s.failed(s.w.Flush())
	}
}

// write appends to what is to be written, after what has been read so far.
func (s *stream) write(b []byte) int {
	s.still()
	n, err := s.w.Write(b)
	s.failed(err)
	return n
}

// still drops what was read ahead, so that the file stands where the program is.
func (s *stream) still() {
	ahead := s.r.Buffered()
	if s.back >= 0 {
		ahead++
	}
	if ahead == 0 {
		return
	}
	s.back = -1
	if _, err := s.f.Seek(-int64(ahead), io.SeekCurrent); err == nil {
		s.r.Reset(s.f)
	}
}

// Finish flushes standard output and closes what the thread has left open, as exit does.
func (c *C) Finish() {
	c.Flush()
	c.anew = [3]*File{}
	streams.Lock()
	defer streams.Unlock()
	for f, s := range streams.all {
		if s.owner == c {
			s.flush()
			s.f.Close() // a program sees no errors at its end
			delete(streams.all, f)
		}
	}
}

// Stdin is stdin. Under gasrun rank 0 has it.
func (c *C) Stdin() unsafe.Pointer { return unsafe.Pointer(stdin) }

// Fopen is fopen (C99, 7.19.5.3).
func (c *C) Fopen(name, mode *int8) unsafe.Pointer {
	m := string(text(mode))
	flags, ok := map[byte]int{'r': os.O_RDONLY, 'w': os.O_WRONLY | os.O_CREATE | os.O_TRUNC, 'a': os.O_WRONLY | os.O_CREATE | os.O_APPEND}[(m + " ")[0]]
	if !ok {
		c.Err.Set(syscall.EINVAL)
		return nil
	}
	if strings.Contains(m, "+") {
		flags = flags&^os.O_WRONLY | os.O_RDWR
	}
	f, err := files.Open(string(text(name)), flags, 0o666)
	if c.Err.Status(err) != 0 {
		return nil
	}
	return newStream(c, f)
}

// newStream is a FILE of f.
func newStream(c *C, f *os.File) unsafe.Pointer {
	p := allocate(uint64(unsafe.Sizeof(File{})))
	if p == nil {
		f.Close()
		return nil
	}
	(*File)(p).Fd = 3
	open((*File)(p), f, c)
	return p
}

// Fclose is fclose (C99, 7.19.5.1).
func (c *C) Fclose(p unsafe.Pointer) int32 {
	if f := file(c, p); f != (*File)(p) {
		c.anew[(*File)(p).Fd], p = nil, unsafe.Pointer(f)
	}
	s, done := find(c, p)
	if s == nil {
		return eof
	}
	s.flush()
	bad := s.f.Close() != nil || s.bad
	done()
	streams.Lock()
	delete(streams.all, (*File)(p))
	streams.Unlock()
	if s.owner != nil {
		c.Free(p)
	}
	if bad {
		return eof
	}
	return 0
}

const eof = -1 // EOF

// Fgetc is fgetc (C99, 7.19.7.1).
func (c *C) Fgetc(p unsafe.Pointer) int32 {
	s, done := find(c, p)
	defer done()
	if s == nil {
		return eof
	}
	b, err := s.ReadByte()
	if err != nil {
		return eof
	}
	return int32(b)
}

// Getc is getc (C99, 7.19.7.5).
func (c *C) Getc(p unsafe.Pointer) int32 { return c.Fgetc(p) }

// Getchar is getchar (C99, 7.19.7.6).
func (c *C) Getchar() int32 { return c.Fgetc(c.Stdin()) }

// Ungetc is ungetc (C99, 7.19.7.11).
func (c *C) Ungetc(ch int32, p unsafe.Pointer) int32 {
	s, done := find(c, p)
	defer done()
	if s == nil || ch == eof || s.back >= 0 {
		return eof
	}
	s.back, s.eof = int(byte(ch)), false
	return int32(byte(ch))
}

// Fgets is fgets (C99, 7.19.7.2).
func (c *C) Fgets(dst *int8, size int32, p unsafe.Pointer) *int8 {
	s, done := find(c, p)
	defer done()
	if s == nil || size <= 0 {
		return nil
	}
	var line []byte
	for len(line) < int(size)-1 {
		b, err := s.ReadByte()
		if err != nil {
			break
		}
		line = append(line, b)
		if b == '\n' {
			break
		}
	}
	if len(line) == 0 && size > 1 {
		return nil
	}
	c.store(dst, line)
	return dst
}

// Fputc is fputc (C99, 7.19.7.3).
func (c *C) Fputc(ch int32, p unsafe.Pointer) int32 {
	c.writeTo(p, []byte{byte(ch)})
	return int32(byte(ch))
}

// Putc is putc (C99, 7.19.7.8).
func (c *C) Putc(ch int32, p unsafe.Pointer) int32 { return c.Fputc(ch, p) }

// Fread is fread (C99, 7.19.8.1).
func (c *C) Fread(dst unsafe.Pointer, size, n uint64, p unsafe.Pointer) uint64 {
	s, done := find(c, p)
	defer done()
	if s == nil || size*n == 0 {
		return 0
	}
	to := bytesAt(dst, size*n)
	got := 0
	if s.back >= 0 {
		to[0], got, s.back = byte(s.back), 1, -1
	}
	s.flush()
	k, err := io.ReadFull(s.r, to[got:])
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	s.failed(err)
	return uint64(got+k) / size
}

// Fwrite is fwrite (C99, 7.19.8.2).
func (c *C) Fwrite(src unsafe.Pointer, size, n uint64, p unsafe.Pointer) uint64 {
	c.writeTo(p, bytesAt(src, size*n))
	return n
}

// Feof is feof (C99, 7.19.10.2).
func (c *C) Feof(p unsafe.Pointer) int32 {
	s, done := find(c, p)
	defer done()
	return Bool(s != nil && s.eof)
}

// Ferror is ferror (C99, 7.19.10.3).
func (c *C) Ferror(p unsafe.Pointer) int32 {
	s, done := find(c, p)
	defer done()
	return Bool(s != nil && s.bad)
}

// Fseek is fseek (C99, 7.19.9.2).
func (c *C) Fseek(p unsafe.Pointer, offset int64, whence int32) int32 {
	s, done := find(c, p)
	defer done()
	if s == nil {
		return eof
	}
	s.flush()
	s.still()
	if _, err := s.f.Seek(offset, int(whence)); c.Err.Status(err) != 0 {
		return eof
	}
	s.eof = false
	return 0
}

// Ftell is ftell (C99, 7.19.9.4).
func (c *C) Ftell(p unsafe.Pointer) int64 {
	s, done := find(c, p)
	defer done()
	if s == nil {
		return eof
	}
	s.flush()
	s.still()
	at, err := s.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return eof
	}
	return at
}

// Clearerr is clearerr (C99, 7.19.10.1).
func Clearerr(c *C, p unsafe.Pointer) {
	if s, done := find(c, p); s != nil {
		s.eof, s.bad = false, false
		done()
	}
}

// Tmpfile is tmpfile (C99, 7.19.4.3).
func Tmpfile(c *C) unsafe.Pointer {
	f, err := os.CreateTemp("", "upc-")
	if c.Err.Status(err) != 0 {
		return nil
	}
	os.Remove(f.Name()) // its file lasts until it is closed
	return newStream(c, f)
}

// Freopen is freopen (C99, 7.19.5.4). A standard stream, which threads share, is another for the thread that calls.
func Freopen(c *C, name, mode *int8, p unsafe.Pointer) unsafe.Pointer {
	f := (*File)(p)
	c.Flush()
	if f.Fd < 3 {
		if c.anew[f.Fd] != nil {
			c.Fclose(p)
		}
		if c.anew[f.Fd] = (*File)(c.Fopen(name, mode)); c.anew[f.Fd] == nil {
			return nil
		}
		return p
	}
	if was, done := find(c, p); was != nil { // closed first, so that what it has is written before another opens the file
		was.flush()
		was.f.Close()
		done()
	}
	q := c.Fopen(name, mode)
	if q == nil {
		c.Fclose(p)
		return nil
	}
	streams.Lock()
	streams.all[f] = streams.all[(*File)(q)]
	delete(streams.all, (*File)(q))
	streams.Unlock()
	c.Free(q)
	return p
}

// Getline is getline (POSIX).
func Getline(c *C, line **int8, size *uint64, p unsafe.Pointer) int64 {
	s, done := find(c, p)
	defer done()
	if s == nil {
		return eof
	}
	var text []byte
	for b := byte(0); b != '\n'; {
		var err error
		if b, err = s.ReadByte(); err != nil {
			break
		}
		text = append(text, b)
	}
	if len(text) == 0 {
		return eof
	}
	if n := uint64(len(text)) + 1; *line == nil || *size < n {
		*size = max(n, 120)
		*line = (*int8)(c.Realloc(unsafe.Pointer(*line), *size))
	}
	c.store(*line, text)
	return int64(len(text))
}

// Setvbuf is setvbuf (C99, 7.19.5.6): the stream keeps its own buffer, without which nothing else is written.
func Setvbuf(c *C, _ unsafe.Pointer, _ *int8, mode int32, _ uint64) int32 {
	return -Bool(mode < 0 || mode > 2)
}

// Rewind is rewind (C99, 7.19.9.5).
func (c *C) Rewind(p unsafe.Pointer) { c.Fseek(p, 0, io.SeekStart) }

// Remove is remove (C99, 7.19.4.1).
func (c *C) Remove(name *int8) int32 {
	return c.Err.Status(files.Remove(string(text(name))))
}

// Fscanf is fscanf (C99, 7.19.6.2).
func (c *C) Fscanf(p unsafe.Pointer, f *int8, args ...any) int32 {
	s, done := find(c, p)
	defer done()
	if s == nil {
		return eof
	}
	return scan(s, string(text(f)), args)
}

// Scanf is scanf (C99, 7.19.6.4).
func (c *C) Scanf(f *int8, args ...any) int32 { return c.Fscanf(c.Stdin(), f, args...) }

// Sscanf is sscanf (C99, 7.19.6.7).
func (c *C) Sscanf(s, f *int8, args ...any) int32 {
	return scan(strings.NewReader(string(text(s))), string(text(f)), args)
}
