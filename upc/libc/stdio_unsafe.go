// Input and output. What is unsafe here: FILE pointers, which the program has as it got them.

package libc

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// File is FILE: its Fd is 0 for standard input, 1 for standard output, 2 for standard error,
// 3 for others.
type File struct{ Fd int32 }

var (
	stdout = newFile(1)
	stderr = newFile(2)
)

func newFile(fd int32) *File {
	f := Static[File]()
	f.Fd = fd
	return f
}

// Stdout is stdout (C99, 7.19.1).
func (c *C) Stdout() unsafe.Pointer { return unsafe.Pointer(stdout) }

// Stderr is stderr (C99, 7.19.1).
func (c *C) Stderr() unsafe.Pointer { return unsafe.Pointer(stderr) }

// write prints: standard output is written line by line.
func (c *C) write(s []byte) {
	if f := c.anew[1]; f != nil {
		c.writeTo(unsafe.Pointer(f), s)
		return
	}
	c.out = append(c.out, s...)
	if len(s) > 0 && s[len(s)-1] == '\n' || len(c.out) > 1<<16 {
		c.Flush()
	}
}

// Flush writes what has been printed.
func (c *C) Flush() {
	if len(c.out) > 0 {
		os.Stdout.Write(c.out) // a program sees no errors of its output, as with a buffer of C
		c.out = c.out[:0]
	}
}

// Printf is printf. The arguments are of Go's types for those of C.
func (c *C) Printf(f *int8, args ...any) int32 { return c.print(c.format(f, listed(args))) }

// Vprintf is vprintf (C99, 7.19.6.10).
func (c *C) Vprintf(f *int8, args *uint64) int32 { return c.print(c.format(f, pushed(args))) }

func (c *C) print(s []byte) int32 {
	c.write(s)
	return int32(len(s))
}

// Fprintf is fprintf (C99, 7.19.6.1).
func (c *C) Fprintf(to unsafe.Pointer, f *int8, args ...any) int32 {
	return c.printTo(to, c.format(f, listed(args)))
}

// Vfprintf is vfprintf (C99, 7.19.6.8).
func (c *C) Vfprintf(to unsafe.Pointer, f *int8, args *uint64) int32 {
	return c.printTo(to, c.format(f, pushed(args)))
}

func (c *C) printTo(to unsafe.Pointer, s []byte) int32 {
	c.writeTo(to, s)
	return int32(len(s))
}

func (c *C) writeTo(to unsafe.Pointer, s []byte) {
	isErr := (*File)(to).Fd == 2
	if isErr {
		c.Flush()
		if c.anew[2] == nil {
			os.Stderr.Write(s)
			return
		}
	}
	if f, done := find(c, to); f != nil {
		if f.write(s); isErr {
			f.flush()
		}
		done()
		return
	}
	c.write(s)
}

// Sprintf is sprintf (C99, 7.19.6.6).
func (c *C) Sprintf(dst *int8, f *int8, args ...any) int32 {
	return c.storeWithin(dst, math.MaxUint64, c.format(f, listed(args)))
}

// Vsprintf is vsprintf (C99, 7.19.6.13).
func (c *C) Vsprintf(dst *int8, f *int8, args *uint64) int32 {
	return c.storeWithin(dst, math.MaxUint64, c.format(f, pushed(args)))
}

// Snprintf is snprintf (C99, 7.19.6.5).
func (c *C) Snprintf(dst *int8, size uint64, f *int8, args ...any) int32 {
	return c.storeWithin(dst, size, c.format(f, listed(args)))
}

// Vsnprintf is vsnprintf (C99, 7.19.6.12).
func (c *C) Vsnprintf(dst *int8, size uint64, f *int8, args *uint64) int32 {
	return c.storeWithin(dst, size, c.format(f, pushed(args)))
}

// storeWithin stores as much of s as has room in size bytes with a 0, and is the length of s.
func (c *C) storeWithin(dst *int8, size uint64, s []byte) int32 {
	if size > 0 {
		c.store(dst, s[:min(uint64(len(s)), size-1)])
	}
	return int32(len(s))
}

// Puts is puts (C99, 7.19.7.10).
func (c *C) Puts(s *int8) int32 {
	c.write(append(append([]byte(nil), text(s)...), '\n'))
	return 1
}

// Fputs is fputs (C99, 7.19.7.4).
func (c *C) Fputs(s *int8, to unsafe.Pointer) int32 {
	c.writeTo(to, text(s))
	return 1
}

// Putchar is putchar (C99, 7.19.7.9).
func (c *C) Putchar(ch int32) int32 {
	c.write([]byte{byte(ch)})
	return ch
}

// Fflush is fflush (C99, 7.19.5.2).
func (c *C) Fflush(p unsafe.Pointer) int32 {
	c.Flush()
	s, done := find(c, p)
	defer done()
	if s != nil {
		if s.flush(); s.bad {
			return eof
		}
	}
	return 0
}

// spec is a conversion of a format for output (C99 7.19.6.1).
type spec struct {
	minus, plus, space, sharp, zero bool

	width, prec int // prec is -1 if there is none
	size        string
	verb        byte
}

// parseSpec is the conversion at the beginning of f, behind the %, and what follows it. star is
// the next argument, an int.
func parseSpec(f string, star func() int) (v spec, rest string) {
	v.prec = -1
	for ; f != ""; f = f[1:] {
		switch f[0] {
		case '-':
			v.minus = true
		case '+':
			v.plus = true
		case ' ':
			v.space = true
		case '#':
			v.sharp = true
		case '0':
			v.zero = true
		case '\'': // thousands, which locale C does not group
		default:
			goto width
		}
	}
width:
	if v.width, f = count(f, star); v.width < 0 {
		v.minus, v.width = true, -v.width
	}
	if strings.HasPrefix(f, ".") {
		v.prec, f = count(f[1:], star)
		v.prec = max(v.prec, -1)
	}
	for f != "" && strings.IndexByte("hlqjztL", f[0]) >= 0 {
		v.size += f[:1]
		f = f[1:]
	}
	if f == "" {
		return v, ""
	}
	v.verb = f[0]
	return v, f[1:]
}

// count is the number at the beginning of f, or star's if that is *.
func count(f string, star func() int) (n int, rest string) {
	if strings.HasPrefix(f, "*") {
		return star(), f[1:]
	}
	for ; f != "" && f[0] >= '0' && f[0] <= '9'; f = f[1:] {
		n = min(n*10+int(f[0]-'0'), 1<<30)
	}
	return n, f
}

// arguments is the next argument of printf, of a floating type or not: nil if there is none.
type arguments func(float bool) any

func listed(args []any) arguments {
	return func(bool) any {
		if len(args) == 0 {
			return nil
		}
		a := args[0]
		args = args[1:]
		return a
	}
}

// pushed is arguments that Push has pushed.
func pushed(p *uint64) arguments {
	return func(float bool) any {
		w := *p
		p = At(p, 1)
		if float {
			return math.Float64frombits(w)
		}
		return w
	}
}

// format returns the text of printf. A conversion without an argument of its kind prints as
// "%!x", which C leaves undefined.
func (c *C) format(f *int8, arg arguments) []byte {
	s := string(text(f))
	var out []byte
	star := func() int {
		n, _ := word(arg(false))
		return int(int32(n))
	}
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 || i == len(s)-1 {
			return append(out, s...)
		}
		out = append(out, s[:i]...)
		var v spec
		v, s = parseSpec(s[i+1:], star)
		switch v.verb {
		case 0:
			return out
		case '%':
			out = append(out, '%')
		case 'n':
			if to, ok := word(arg(false)); ok {
				storeInt(FromInt(int64(to)), v.size, uint64(len(out)))
			}
		default:
			out = append(out, v.conversion(arg(strings.IndexByte("fFeEgGaA", v.verb) >= 0))...)
		}
	}
}

// pad is a number of a sign or prefix and digits, as wide as v says; with zeros if it may be.
func (v *spec) pad(prefix, digits string, zeros bool) string {
	n := max(v.width-len(prefix)-len(digits), 0)
	switch {
	case v.minus:
		return prefix + digits + strings.Repeat(" ", n)
	case zeros && v.zero:
		return prefix + strings.Repeat("0", n) + digits
	}
	return strings.Repeat(" ", n) + prefix + digits
}

// sign returns the sign, or the space for it, before a signed number.
func (v *spec) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case v.plus:
		return "+"
	case v.space:
		return " "
	}
	return ""
}

// conversion prints one argument.
func (v *spec) conversion(a any) string {
	switch v.verb {
	case 'd', 'i', 'u', 'x', 'X', 'o':
		if w, ok := word(a); ok {
			return v.integer(w)
		}
	case 'c':
		if w, ok := word(a); ok && v.size == "l" {
			return v.pad("", string(rune(w)), false)
		} else if ok {
			return v.pad("", string([]byte{byte(w)}), false)
		}
	case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A':
		if f, ok := a.(float64); ok {
			return v.float(f)
		}
	case 's':
		if w, ok := word(a); ok {
			s := "(null)"
			if w != 0 && v.size == "l" {
				s = wideText((*int32)(FromInt(int64(w))), v.prec)
			} else if w != 0 {
				s = string(textWithin((*int8)(FromInt(int64(w))), v.prec))
			} else if v.prec >= 0 && v.prec < len(s) {
				s = "" // as glibc does
			}
			return v.pad("", s, false)
		}
	case 'p':
		if w, ok := word(a); ok && w == 0 {
			return v.pad("", "(nil)", false)
		} else if ok {
			return v.pad(v.sign(false)+"0x", strconv.FormatUint(w, 16), true)
		}
	}
	return "%!" + string(v.verb)
}

// wideText is a string of wide characters, as many as have room in prec bytes if that is not negative.
func wideText(p *int32, prec int) string {
	var b []byte
	for ; *p != 0; p = At(p, 1) {
		next := utf8.AppendRune(b, *p)
		if prec >= 0 && len(next) > prec {
			break
		}
		b = next
	}
	return string(b)
}

// integer prints w, of which as many bits count as v's size says.
func (v *spec) integer(w uint64) string {
	bits := map[string]uint{"": 32, "h": 16, "hh": 8}[v.size]
	if bits == 0 {
		bits = 64
	}
	w = w << (64 - bits) >> (64 - bits)
	prefix, base := "", 10
	switch v.verb {
	case 'd', 'i':
		n := int64(w<<(64-bits)) >> (64 - bits)
		if prefix = v.sign(n < 0); n < 0 {
			n = -n
		}
		w = uint64(n)
	case 'x', 'X':
		base = 16
		if v.sharp && w != 0 {
			prefix = "0x"
		}
	case 'o':
		base = 8
	}
	digits := strconv.FormatUint(w, base)
	if w == 0 && v.prec == 0 {
		digits = ""
	}
	digits = strings.Repeat("0", max(v.prec-len(digits), 0)) + digits
	if v.verb == 'o' && v.sharp && !strings.HasPrefix(digits, "0") {
		digits = "0" + digits
	}
	if v.verb == 'X' {
		prefix, digits = strings.ToUpper(prefix), strings.ToUpper(digits)
	}
	return v.pad(prefix, digits, v.prec < 0)
}

// float prints f.
func (v *spec) float(f float64) string {
	prefix := v.sign(math.Signbit(f))
	f = math.Abs(f)
	form, verb := "%", v.verb|0x20
	if v.sharp {
		form += "#"
	}
	switch {
	case v.prec >= 0:
		form += "." + strconv.Itoa(v.prec)
	case verb != 'a':
		form += ".6"
	}
	digits, zeros := "", true
	switch {
	case math.IsInf(f, 0):
		digits, zeros = "inf", false
	case math.IsNaN(f):
		digits, zeros = "nan", false
	case verb == 'a':
		prefix += "0x"
		digits = v.hexadecimal(f)
	default:
		digits = fmt.Sprintf(form+string(verb), f)
	}
	if v.verb < 'a' {
		prefix, digits = strings.ToUpper(prefix), strings.ToUpper(digits)
	}
	return v.pad(prefix, digits, zeros)
}

// hexadecimal prints f, which is not negative, behind 0x. As with glibc the digit before the point is
// 0 of 0 and of what is denormal, and 2 of what is rounded up to that; Go's verb x has it 1.
func (v *spec) hexadecimal(f float64) string {
	const point = 52 // bits behind it
	bits := math.Float64bits(f)
	m, e := bits&(1<<point-1), int(bits>>point)-1023
	switch {
	case f == 0:
		e = 0
	case bits>>point == 0:
		e++
	default:
		m |= 1 << point
	}
	if drop := point - 4*v.prec; v.prec >= 0 && drop > 0 {
		half, odd := uint64(1)<<(drop-1), m>>drop&1
		m = (m + half - 1 + odd) >> drop << drop // to even in the middle
	}
	digits := fmt.Sprintf("%013x", m&(1<<point-1))
	switch {
	case v.prec < 0:
		digits = strings.TrimRight(digits, "0")
	case v.prec < len(digits):
		digits = digits[:v.prec]
	default:
		digits += strings.Repeat("0", v.prec-len(digits))
	}
	if digits != "" || v.sharp {
		digits = "." + digits
	}
	return fmt.Sprintf("%d%sp%+d", m>>point, digits, e)
}

// textWithin is the string at p, without its 0 and of at most n bytes, if n is not negative.
// There need be no 0 then.
func textWithin(p *int8, n int) []byte {
	if n < 0 {
		return text(p)
	}
	k := 0
	for k < n && *At(p, k) != 0 {
		k++
	}
	return bytesAt(chars(p), uint64(k))
}
