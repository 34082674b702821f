// Input and output. What is unsafe here: FILE pointers, which the program has as it got them.

package libc

import (
	"fmt"
	"os"
	"strings"
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

// Stdout is stdout.
func (c *C) Stdout() unsafe.Pointer { return unsafe.Pointer(stdout) }

// Stderr is stderr.
func (c *C) Stderr() unsafe.Pointer { return unsafe.Pointer(stderr) }

// write prints: standard output is written line by line.
func (c *C) write(s []byte) {
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
func (c *C) Printf(f *int8, args ...any) int32 {
	s := c.format(f, args)
	c.write(s)
	return int32(len(s))
}

// Fprintf is fprintf.
func (c *C) Fprintf(to unsafe.Pointer, f *int8, args ...any) int32 {
	s := c.format(f, args)
	c.writeTo(to, s)
	return int32(len(s))
}

func (c *C) writeTo(to unsafe.Pointer, s []byte) {
	if (*File)(to).Fd == 2 {
		c.Flush()
		os.Stderr.Write(s)
		return
	}
	if f, done := find(to); f != nil {
		f.write(s)
		done()
		return
	}
	c.write(s)
}

// Sprintf is sprintf.
func (c *C) Sprintf(dst *int8, f *int8, args ...any) int32 {
	s := c.format(f, args)
	c.store(dst, s)
	return int32(len(s))
}

// Snprintf is snprintf.
func (c *C) Snprintf(dst *int8, size uint64, f *int8, args ...any) int32 {
	s := c.format(f, args)
	if size > 0 {
		c.store(dst, s[:min(uint64(len(s)), size-1)])
	}
	return int32(len(s))
}

// Puts is puts.
func (c *C) Puts(s *int8) int32 {
	c.write(append(append([]byte(nil), text(s)...), '\n'))
	return 1
}

// Fputs is fputs.
func (c *C) Fputs(s *int8, to unsafe.Pointer) int32 {
	c.writeTo(to, text(s))
	return 1
}

// Putchar is putchar.
func (c *C) Putchar(ch int32) int32 {
	c.write([]byte{byte(ch)})
	return ch
}

// Fflush is fflush.
func (c *C) Fflush(p unsafe.Pointer) int32 {
	c.Flush()
	s, done := find(p)
	defer done()
	if s != nil {
		if s.flush(); s.bad {
			return eof
		}
	}
	return 0
}

// format is what printf prints. A conversion without an argument of its kind prints as
// "%!x", which C leaves undefined.
func (c *C) format(f *int8, args []any) []byte {
	s := string(text(f))
	var out []byte
	arg := func() any {
		if len(args) == 0 {
			return nil
		}
		a := args[0]
		args = args[1:]
		return a
	}
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 || i == len(s)-1 {
			return append(out, s...)
		}
		out = append(out, s[:i]...)
		s = s[i+1:]
		if s[0] == '%' {
			out = append(out, '%')
			s = s[1:]
			continue
		}
		spec := "%"
		for s != "" && strings.IndexByte("-+ #0", s[0]) >= 0 {
			spec += s[:1]
			s = s[1:]
		}
		precise := false
		for s != "" && strings.IndexByte("0123456789.*", s[0]) >= 0 {
			switch s[0] {
			case '*':
				n, _ := arg().(int32)
				if n < 0 && !precise {
					spec += "-"
					n = -n
				}
				spec += fmt.Sprint(max(n, 0))
			case '.':
				precise = true
				fallthrough
			default:
				spec += s[:1]
			}
			s = s[1:]
		}
		size := ""
		for s != "" && strings.IndexByte("hlqjztL", s[0]) >= 0 {
			size += s[:1]
			s = s[1:]
		}
		if s == "" {
			return out
		}
		out = append(out, conversion(spec, size, s[0], precise, arg())...)
		s = s[1:]
	}
}

// unpadded is spec without the flag 0.
func unpadded(spec string) string {
	n := 1
	for n < len(spec) && strings.IndexByte("-+ #0", spec[n]) >= 0 {
		n++
	}
	return strings.ReplaceAll(spec[:n], "0", "") + spec[n:]
}

// conversion prints one argument.
func conversion(spec, size string, verb byte, precise bool, a any) string {
	wrong := "%!" + string(verb)
	switch verb {
	case 'd', 'i', 'u', 'x', 'X', 'o', 'c':
		v, ok := word(a)
		if !ok {
			return wrong
		}
		if verb == 'c' {
			return fmt.Sprintf(unpadded(spec)+"s", string([]byte{byte(v)}))
		}
		if precise {
			spec = unpadded(spec)
		}
		signed := verb == 'd' || verb == 'i'
		if verb == 'i' || verb == 'u' {
			verb = 'd'
		}
		switch {
		case signed && size == "hh":
			return fmt.Sprintf(spec+"d", int8(v))
		case signed && size == "h":
			return fmt.Sprintf(spec+"d", int16(v))
		case signed && size == "":
			return fmt.Sprintf(spec+"d", int32(v))
		case signed:
			return fmt.Sprintf(spec+"d", int64(v))
		case size == "hh":
			return fmt.Sprintf(spec+string(verb), uint8(v))
		case size == "h":
			return fmt.Sprintf(spec+string(verb), uint16(v))
		case size == "":
			return fmt.Sprintf(spec+string(verb), uint32(v))
		}
		return fmt.Sprintf(spec+string(verb), v)
	case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A':
		f, ok := a.(float64)
		if !ok {
			return wrong
		}
		if (verb == 'g' || verb == 'G') && !precise {
			spec += ".6"
		}
		if verb == 'F' {
			verb = 'f'
		}
		if verb == 'a' {
			verb = 'x'
		}
		s := fmt.Sprintf(spec+string(verb), f)
		s = strings.Replace(strings.Replace(s, "+Inf", "inf", 1), "NaN", "nan", 1)
		return strings.Replace(s, "-Inf", "-inf", 1)
	case 's':
		switch p := a.(type) {
		case *int8:
			if p == nil {
				return "(null)"
			}
			return fmt.Sprintf(unpadded(spec)+"s", text(p))
		case *uint8:
			return fmt.Sprintf(unpadded(spec)+"s", text((*int8)(unsafe.Pointer(p))))
		}
		return wrong
	case 'p':
		v, ok := word(a)
		if !ok {
			return wrong
		}
		if v == 0 {
			return "(nil)"
		}
		return fmt.Sprintf("%#x", v)
	case 'n':
		return ""
	}
	return wrong
}
