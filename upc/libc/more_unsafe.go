// The rest of <stdlib.h>, <string.h> and <time.h>. What is unsafe here: struct tm at the places that the program names.

package libc

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Nanoseconds is a struct timespec.
func Nanoseconds(p unsafe.Pointer) int64 {
	t := (*[2]int64)(p)
	return t[0]*1e9 + t[1]
}

// Umask is umask.
func Umask(mask uint32) uint32 { return uint32(syscall.Umask(int(mask))) }

// Environ is environ.
func Environ(c *C) ***int8 {
	if c.environ == nil {
		c.environ = Args(os.Environ())
	}
	return &c.environ
}

// Setenv is setenv (POSIX).
func Setenv(c *C, name, value *int8, overwrite int32) int32 {
	if _, ok := os.LookupEnv(string(text(name))); ok && overwrite == 0 {
		return 0
	}
	return c.Err.Status(os.Setenv(string(text(name)), string(text(value))))
}

// Unsetenv is unsetenv (POSIX).
func Unsetenv(c *C, name *int8) int32 { return c.Err.Status(os.Unsetenv(string(text(name)))) }

// Putenv is putenv (POSIX).
func Putenv(c *C, s *int8) int32 {
	name, value, _ := strings.Cut(string(text(s)), "=")
	return c.Err.Status(os.Setenv(name, value))
}

// RandR is rand_r (POSIX).
func RandR(seed *uint32) int32 {
	*seed = *seed*1103515245 + 12345
	return int32(*seed >> 1 & math.MaxInt32)
}

// state48 is the generator of drand48 with its state at p.
func state48(p *uint16) *C {
	x := unsafe.Slice(p, 3)
	c := &C{rand48: uint64(x[0]) | uint64(x[1])<<16 | uint64(x[2])<<32}
	c.next48()
	x[0], x[1], x[2] = uint16(c.rand48), uint16(c.rand48>>16), uint16(c.rand48>>32)
	return c
}

// Erand48 is erand48 (POSIX).
func Erand48(p *uint16) float64 { return float64(state48(p).rand48) / (1 << 48) }

// Nrand48 is nrand48 (POSIX).
func Nrand48(p *uint16) int64 { return int64(state48(p).rand48 >> 17) }

// Jrand48 is jrand48 (POSIX).
func Jrand48(p *uint16) int64 { return int64(int32(state48(p).rand48 >> 16)) }

// Mrand48 is mrand48 (POSIX).
func Mrand48(c *C) int64 { return int64(int32(c.next48() >> 16)) }

// Aligned is aligned_alloc (C11): blocks of malloc lie at multiples of 16, others at the end of larger ones, which
// free finds by a header of their own. An alignment that is no power of two is the next one, as with glibc.
func Aligned(align, size uint64) unsafe.Pointer {
	switch {
	case align <= header:
		return allocate(max(size, 1))
	case align > heapSize || size > heapSize:
		return nil
	}
	align = 1 << bits.Len64(align-1)
	p := allocate(size + align + header)
	if p == nil {
		return nil
	}
	at := unsafe.Add(p, header)
	at = unsafe.Add(at, -uintptr(at)&uintptr(align-1))
	h := (*[2]uint64)(unsafe.Add(at, -header))
	h[0], h[1] = uint64(uintptr(at)-uintptr(p)), inside
	return at
}

// PosixAligned is posix_memalign (POSIX).
func PosixAligned(to *unsafe.Pointer, align, size uint64) int32 {
	if align < 8 || align&(align-1) != 0 {
		return int32(syscall.EINVAL)
	}
	p := Aligned(align, size)
	if p == nil {
		return int32(syscall.ENOMEM)
	}
	*to = p
	return 0
}

// StrtokR is strtok_r (POSIX).
func StrtokR(c *C, s, set *int8, state **int8) *int8 {
	own := C{tok: *state}
	s = own.Strtok(s, set)
	*state = own.tok
	return s
}

// Strndup is strndup (POSIX).
func Strndup(s *int8, n uint64) *int8 {
	return Str(string(textWithin(s, int(min(n, math.MaxInt)))) + "\x00")
}

// Strnlen is strnlen (POSIX).
func Strnlen(s *int8, n uint64) uint64 {
	return uint64(len(textWithin(s, int(min(n, math.MaxInt)))))
}

// Stpcpy is stpcpy (POSIX).
func Stpcpy(c *C, dst, src *int8) *int8 {
	b := text(src)
	c.store(dst, b)
	return At(dst, len(b))
}

// Strsep is strsep of BSD.
func Strsep(c *C, s **int8, set *int8) *int8 {
	was := *s
	if was == nil {
		return nil
	}
	if *s = c.Strpbrk(was, set); *s != nil {
		**s = 0
		*s = At(*s, 1)
	}
	return was
}

// Strcasestr is strcasestr of BSD.
func Strcasestr(s, sub *int8) *int8 {
	lower := func(s *int8) []byte { // not by bytes.ToLower, which takes bytes beyond 127 for UTF-8
		b := bytes.Clone(text(s))
		for i := range b {
			if 'A' <= b[i] && b[i] <= 'Z' {
				b[i] += 'a' - 'A'
			}
		}
		return b
	}
	i := bytes.Index(lower(s), lower(sub))
	if i < 0 {
		return nil
	}
	return At(s, i)
}

// Strxfrm is strxfrm (C99, 7.21.4.5).
func Strxfrm(c *C, dst, src *int8, n uint64) uint64 {
	return uint64(c.storeWithin(dst, n, text(src)))
}

// Classify is fpclassify (C99, 7.12.3.1).
func Classify(f float64) int32 {
	switch {
	case math.IsNaN(f):
		return 0
	case math.IsInf(f, 0):
		return 1
	case f == 0:
		return 2
	case math.Abs(f) < 0x1p-1022:
		return 3
	}
	return 4
}

// Difftime is difftime (C99, 7.23.2.2).
func Difftime(a, b int64) float64 { return float64(a - b) }

// ClockGetres is clock_getres (POSIX).
func ClockGetres(to unsafe.Pointer) int32 {
	if to != nil {
		*(*[2]int64)(to) = [2]int64{0, 1}
	}
	return 0
}

// tm is struct tm.
type tm struct {
	sec, min, hour, mday, mon, year, wday, yday, isdst int32
	gmtoff                                             int64
	zone                                               *int8
}

var utc = Str("UTC\x00")

// when is the time that a struct tm says.
func when(p unsafe.Pointer) time.Time {
	t := (*tm)(p)
	return time.Date(int(t.year)+1900, time.Month(t.mon+1), int(t.mday), int(t.hour), int(t.min), int(t.sec), 0, time.UTC)
}

// GmtimeR is gmtime_r, and localtime_r in the only time zone, UTC.
func GmtimeR(p *int64, to unsafe.Pointer) unsafe.Pointer {
	t := time.Unix(*p, 0).UTC()
	*(*tm)(to) = tm{
		int32(t.Second()), int32(t.Minute()), int32(t.Hour()), int32(t.Day()), int32(t.Month() - 1), int32(t.Year() - 1900),
		int32(t.Weekday()), int32(t.YearDay() - 1), 0, 0, utc,
	}
	return to
}

// Gmtime is gmtime (C99, 7.23.3.3), and localtime.
func Gmtime(c *C, p *int64) unsafe.Pointer { return GmtimeR(p, date(c)) }

// date is memory for a struct tm, and behind it the text of asctime.
func date(c *C) unsafe.Pointer {
	if c.calendar == nil {
		c.calendar = allocate(uint64(unsafe.Sizeof(tm{})) + 64)
	}
	return c.calendar
}

// Mktime is mktime (C99, 7.23.2.3).
func Mktime(p unsafe.Pointer) int64 {
	s := when(p).Unix()
	GmtimeR(&s, p)
	return s
}

// Asctime is asctime (C99, 7.23.3.1).
func Asctime(c *C, p unsafe.Pointer) *int8 {
	to := (*int8)(unsafe.Add(date(c), unsafe.Sizeof(tm{})))
	c.store(to, []byte(when(p).Format("Mon Jan _2 15:04:05 2006\n")))
	return to
}

// Strftime is strftime (C99, 7.23.3.5).
func Strftime(c *C, to *int8, size uint64, format *int8, p unsafe.Pointer) uint64 {
	t := when(p)
	layouts := map[byte]string{
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02",
		'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'X': "15:04:05",
		'x': "01/02/06", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "UTC",
	}
	year, week := t.ISOWeek()
	day := int(t.Weekday())
	numbers := map[byte]struct {
		form string
		n    int
	}{
		'C': {"%02d", t.Year() / 100}, 'j': {"%03d", t.YearDay()}, 'u': {"%d", (day+6)%7 + 1}, 'w': {"%d", day}, 'V': {"%02d", week}, 'G': {"%d", year},
		's': {"%d", int(t.Unix())}, 'U': {"%02d", (t.YearDay() + 6 - day) / 7}, 'W': {"%02d", (t.YearDay() + 6 - (day+6)%7) / 7},
	}
	var out []byte
	f := text(format)
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 == len(f) {
			out = append(out, f[i])
			continue
		}
		i++
		if (f[i] == 'E' || f[i] == 'O') && i+1 < len(f) {
			i++
		}
		switch ch := f[i]; {
		case layouts[ch] != "":
			out = t.AppendFormat(out, layouts[ch])
		case numbers[ch].form != "":
			out = fmt.Appendf(out, numbers[ch].form, numbers[ch].n)
		case ch == 'n':
			out = append(out, '\n')
		case ch == 't':
			out = append(out, '\t')
		default:
			out = append(out, ch)
		}
	}
	if uint64(len(out)) >= size {
		return 0
	}
	c.store(to, out)
	return uint64(len(out))
}

// Alloca is memory of the function that calls it, until it returns.
func Alloca(c *C, size uint64) unsafe.Pointer {
	p := c.stack.top
	if size > stackSize || uintptr(p)+uintptr(size)+16 > uintptr(c.stack.end) {
		panic("libc: stack overflow")
	}
	c.stack.top = unsafe.Add(p, (size+15)&^15)
	return p
}

// Room is Alloca where a declaration is met again, at which the top was mark before: what it had, and all above, is given back.
func Room(c *C, mark unsafe.Pointer, size uint64) (top, p unsafe.Pointer) {
	if mark != nil {
		c.stack.top = mark
	}
	top = c.stack.top
	return top, Alloca(c, size)
}

// Ones is __builtin_popcount and its kin (gcc).
func Ones(v uint64) int32 { return int32(bits.OnesCount64(v)) }

// Parity is __builtin_parity.
func Parity(v uint64) int32 { return Ones(v) & 1 }

// LeadingZeros is __builtin_clz of a word of so many bits.
func LeadingZeros(v uint64, word int32) int32 { return int32(bits.LeadingZeros64(v)) - 64 + word }

// TrailingZeros is __builtin_ctz.
func TrailingZeros(v uint64) int32 { return int32(bits.TrailingZeros64(v)) }

// FindFirst is ffs (POSIX) and its kin.
func FindFirst(v int64) int32 { return int32(bits.TrailingZeros64(uint64(v))+1) % 65 }

// Swap16 is __builtin_bswap16.
func Swap16(v uint16) uint16 { return bits.ReverseBytes16(v) }

// Swap32 is __builtin_bswap32.
func Swap32(v uint32) uint32 { return bits.ReverseBytes32(v) }

// Swap64 is __builtin_bswap64.
func Swap64(v uint64) uint64 { return bits.ReverseBytes64(v) }

// Complex is re + im i: no constant, which Go would compute without signs of zeros, and refuse to divide by zero.
func Complex(re, im float64) complex128 { return complex(re, im) }

// Held is c as a variable: Go's compiler loads a constant wherever it is used, and keeps a variable in a register. The sum is c, of -0, too.
func Held[T float32 | float64](c T) T { return c + T(minusZero) }

var minusZero = math.Copysign(0, -1)

// Scale is z times x.
func Scale(z complex128, x float64) complex128 { return complex(real(z)*x, imag(z)*x) }

// Unscale is z divided by x.
func Unscale(z complex128, x float64) complex128 { return complex(real(z)/x, imag(z)/x) }

// Shift is z plus x.
func Shift(z complex128, x float64) complex128 { return complex(real(z)+x, imag(z)) }

// Cproj is cproj (C99, 7.3.9.4).
func Cproj(z complex128) complex128 {
	if math.IsInf(real(z), 0) || math.IsInf(imag(z), 0) {
		return complex(math.Inf(1), math.Copysign(0, imag(z)))
	}
	return z
}
