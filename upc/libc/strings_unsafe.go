// Strings. What is unsafe here: memcmp, whose caller names memory of so many bytes.

package libc

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
)

// Strlen is strlen (C99, 7.21.6.3).
func (c *C) Strlen(s *int8) uint64 { return uint64(len(text(s))) }

// Strcmp is strcmp (C99, 7.21.4.2).
func (c *C) Strcmp(a, b *int8) int32 { return int32(bytes.Compare(text(a), text(b))) }

// Strncmp is strncmp (C99, 7.21.4.4).
func (c *C) Strncmp(a, b *int8, n uint64) int32 {
	limit := int(min(n, math.MaxInt)) // behind which there need be no memory
	return int32(bytes.Compare(textWithin(a, limit), textWithin(b, limit)))
}

// Memcmp is memcmp (C99, 7.21.4.1).
func (c *C) Memcmp(a, b unsafe.Pointer, n uint64) int32 {
	return int32(bytes.Compare(bytesAt(a, n), bytesAt(b, n)))
}

func (c *C) store(dst *int8, s []byte) {
	to := bytesAt(chars(dst), uint64(len(s))+1)
	bulk.Copy(to, s)
	to[len(s)] = 0
}

// Strcpy is strcpy (C99, 7.21.2.3).
func (c *C) Strcpy(dst, src *int8) *int8 {
	c.store(dst, text(src))
	return dst
}

// Strncpy is strncpy (C99, 7.21.2.4).
func (c *C) Strncpy(dst, src *int8, n uint64) *int8 {
	to := bytesAt(chars(dst), n)
	bulk.Clear(to[bulk.Copy(to, textWithin(src, int(min(n, math.MaxInt)))):])
	return dst
}

// Strcat is strcat (C99, 7.21.3.1).
func (c *C) Strcat(dst, src *int8) *int8 {
	c.store(At(dst, int64(len(text(dst)))), text(src))
	return dst
}

// Strncat is strncat (C99, 7.21.3.2).
func (c *C) Strncat(dst, src *int8, n uint64) *int8 {
	c.store(At(dst, int64(len(text(dst)))), textWithin(src, int(min(n, math.MaxInt))))
	return dst
}

// span is how many bytes at the beginning of s are in set, or are not.
func span(s, set *int8, in bool) int {
	b, of := text(s), text(set)
	n := 0
	for n < len(b) && (bytes.IndexByte(of, b[n]) >= 0) == in {
		n++
	}
	return n
}

// Strspn is strspn (C99, 7.21.5.6).
func (c *C) Strspn(s, set *int8) uint64 { return uint64(span(s, set, true)) }

// Strcspn is strcspn (C99, 7.21.5.3).
func (c *C) Strcspn(s, set *int8) uint64 { return uint64(span(s, set, false)) }

// Strpbrk is strpbrk (C99, 7.21.5.4).
func (c *C) Strpbrk(s, set *int8) *int8 {
	if s = At(s, span(s, set, false)); *s == 0 {
		return nil
	}
	return s
}

// Strtok is strtok. Each thread has its own string.
func (c *C) Strtok(s, set *int8) *int8 {
	if s == nil {
		s = c.tok
	}
	if s != nil {
		s = At(s, span(s, set, true))
	}
	if s == nil || *s == 0 {
		c.tok = nil
		return nil
	}
	if c.tok = c.Strpbrk(s, set); c.tok != nil {
		*c.tok = 0
		c.tok = At(c.tok, 1)
	}
	return s
}

// Strcasecmp is strcasecmp (POSIX).
func (c *C) Strcasecmp(a, b *int8) int32 { return c.Strncasecmp(a, b, math.MaxInt) }

// Strncasecmp is strncasecmp (POSIX).
func (c *C) Strncasecmp(a, b *int8, n uint64) int32 {
	limit := int(min(n, math.MaxInt))
	x, y := textWithin(a, limit), textWithin(b, limit)
	for i := range min(len(x), len(y)) { // not by bytes.ToLower, which takes bytes beyond 127 for UTF-8
		if d := c.Tolower(int32(x[i])) - c.Tolower(int32(y[i])); d != 0 {
			return d
		}
	}
	return int32(cmp.Compare(len(x), len(y)))
}

// Strdup is strdup (POSIX).
func (c *C) Strdup(s *int8) *int8 { return Str(string(text(s)) + "\x00") }

// Strstr is strstr (C99, 7.21.5.7).
func (c *C) Strstr(s, sub *int8) *int8 {
	i := bytes.Index(text(s), text(sub))
	if i < 0 {
		return nil
	}
	return At(s, i64(i))
}

func i64(i int) int64 { return int64(i) }

// numberAt is the longest integer at the beginning of s: its digits' value, or the largest one
// if over, its sign, and how long it is.
func numberAt(s []byte, base int) (u uint64, neg, over bool, n int) {
	t := strings.TrimLeft(string(s), spaces)
	n = len(s) - len(t)
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg = t[0] == '-'
		t = t[1:]
		n++
	}
	if (base == 0 || base == 16) && len(t) > 2 && t[0] == '0' && t[1]|0x20 == 'x' && is(int32(t[2]), hexDigits) != 0 {
		base, t, n = 16, t[2:], n+2
	}
	if base == 0 {
		base = 10
		if strings.HasPrefix(t, "0") {
			base = 8
		}
	}
	k := 0
	for k < len(t) {
		if _, err := strconv.ParseUint(t[k:k+1], base, 8); err != nil {
			break
		}
		k++
	}
	if k == 0 {
		return 0, false, false, 0
	}
	u, err := strconv.ParseUint(t[:k], base, 64)
	if err != nil {
		u = math.MaxUint64
	}
	return u, neg, err != nil, n + k
}

// signed is the number that numberAt gives, as a long.
func signed(u uint64, neg bool) int64 {
	switch {
	case neg:
		return -int64(min(u, 1<<63))
	case u > math.MaxInt64:
		return math.MaxInt64
	}
	return int64(u)
}

// unsigned is the number that numberAt gives, as an unsigned long.
func unsigned(u uint64, neg, over bool) uint64 {
	if neg && !over {
		return -u
	}
	return u
}

// Atoi is atoi (C99, 7.20.1.2).
func (c *C) Atoi(s *int8) int32 { return int32(c.Atol(s)) }

// Atol is atol (C99, 7.20.1.2).
func (c *C) Atol(s *int8) int64 {
	u, neg, _, _ := numberAt(text(s), 10)
	return signed(u, neg)
}

// Atoll is atoll (C99, 7.20.1.2).
func (c *C) Atoll(s *int8) int64 { return c.Atol(s) }

// Strtol is strtol (C99, 7.20.1.4).
func (c *C) Strtol(s *int8, end **int8, base int32) int64 {
	u, neg, over, n := numberAt(text(s), int(base))
	if end != nil {
		*end = At(s, i64(n))
	}
	if over || u > math.MaxInt64 && !(neg && u == 1<<63) {
		c.Err.Status(syscall.ERANGE)
	}
	return signed(u, neg)
}

// Strtoll is strtoll (C99, 7.20.1.4).
func (c *C) Strtoll(s *int8, end **int8, base int32) int64 { return c.Strtol(s, end, base) }

// Strtoull is strtoull (C99, 7.20.1.4).
func (c *C) Strtoull(s *int8, end **int8, base int32) uint64 { return c.Strtoul(s, end, base) }

// Strtof is strtof (C99, 7.20.1.3).
func (c *C) Strtof(s *int8, end **int8) float32 { return float32(floating(c, s, end, 32)) }

// Strtoul is strtoul: -1 is ULONG_MAX, as C has it.
func (c *C) Strtoul(s *int8, end **int8, base int32) uint64 {
	u, neg, over, n := numberAt(text(s), int(base))
	if end != nil {
		*end = At(s, i64(n))
	}
	if over {
		c.Err.Status(syscall.ERANGE)
	}
	return unsigned(u, neg, over)
}

// Strtod is strtod (C99, 7.20.1.3).
func (c *C) Strtod(s *int8, end **int8) float64 { return floating(c, s, end, 64) }

// floating is strtod of a number of so many bits.
func floating(c *C, s *int8, end **int8, bits int) float64 {
	b := text(s)
	t := strings.TrimLeft(string(b), " \t\n\v\f\r")
	skip := len(b) - len(t)
	k := 0
	for k < len(t) && strings.IndexByte("0123456789+-.eExXpPaAbBcCdDfFiInNtTyY", t[k]) >= 0 {
		k++
	}
	var f float64
	for ; k > 0; k-- {
		v, err := strconv.ParseFloat(t[:k], bits)
		if err != nil && strings.ContainsAny(t[:k], "xX") {
			v, err = strconv.ParseFloat(t[:k]+"p0", bits) // Go wants the exponent
		}
		if err != nil && strings.EqualFold(t[1:k], "nan") && (t[0] == '-' || t[0] == '+') { // and no sign here
			v, err = math.Copysign(math.NaN(), float64(','-int(t[0]))), nil
		}
		if err == nil || math.IsInf(v, 0) {
			if err != nil {
				c.Err.Status(syscall.ERANGE)
			}
			f = v
			break
		}
	}
	if k == 0 {
		skip = 0
	}
	if end != nil {
		*end = At(s, i64(skip+k))
	}
	return f
}

// Atof is atof (C99, 7.20.1.1).
func (c *C) Atof(s *int8) float64 { return c.Strtod(s, nil) }

// is reports whether ch is a byte of set.
func is(ch int32, set string) int32 {
	return Bool(ch > 0 && ch < 128 && strings.IndexByte(set, byte(ch)) >= 0)
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"

	hexDigits = digits + "abcdefABCDEF"
	spaces    = " \t\n\v\f\r"
)

// Isalpha is isalpha (C99, 7.4.1.2).
func (c *C) Isalpha(ch int32) int32 { return is(ch, lower+upper) }

// Isdigit is isdigit (C99, 7.4.1.5).
func (c *C) Isdigit(ch int32) int32 { return is(ch, digits) }

// Isalnum is isalnum (C99, 7.4.1.1).
func (c *C) Isalnum(ch int32) int32 { return is(ch, lower+upper+digits) }

// Isspace is isspace (C99, 7.4.1.10).
func (c *C) Isspace(ch int32) int32 { return is(ch, spaces) }

// Isupper is isupper (C99, 7.4.1.11).
func (c *C) Isupper(ch int32) int32 { return is(ch, upper) }

// Islower is islower (C99, 7.4.1.7).
func (c *C) Islower(ch int32) int32 { return is(ch, lower) }

// Isblank is isblank (C99, 7.4.1.3).
func (c *C) Isblank(ch int32) int32 { return is(ch, " \t") }

// Iscntrl is iscntrl (C99, 7.4.1.4).
func (c *C) Iscntrl(ch int32) int32 { return Bool(ch >= 0 && ch < ' ' || ch == 127) }

// Isgraph is isgraph (C99, 7.4.1.6).
func (c *C) Isgraph(ch int32) int32 { return Bool(ch > ' ' && ch < 127) }

// Isprint is isprint (C99, 7.4.1.8).
func (c *C) Isprint(ch int32) int32 { return Bool(ch >= ' ' && ch < 127) }

// Ispunct is ispunct (C99, 7.4.1.9).
func (c *C) Ispunct(ch int32) int32 { return c.Isgraph(ch) &^ c.Isalnum(ch) }

// Isxdigit is isxdigit (C99, 7.4.1.12).
func (c *C) Isxdigit(ch int32) int32 { return is(ch, hexDigits) }

// Toupper is toupper (C99, 7.4.2.2).
func (c *C) Toupper(ch int32) int32 {
	if c.Islower(ch) != 0 {
		return ch - 'a' + 'A'
	}
	return ch
}

// Tolower is tolower (C99, 7.4.2.1).
func (c *C) Tolower(ch int32) int32 {
	if c.Isupper(ch) != 0 {
		return ch - 'A' + 'a'
	}
	return ch
}
