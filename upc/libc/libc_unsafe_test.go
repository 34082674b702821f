package libc

// What is unsafe here: memory that functions of C are given, and what they return.

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// atEdge is s without a 0, in the last bytes of memory behind which nothing can be read.
func atEdge(t *testing.T, s string) *int8 {
	t.Helper()
	const size = 2 * segment.PageSize
	p, err := sys.Reserve(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sys.Unmap(p, size) })
	if err := syscall.Mprotect(bytesAt(unsafe.Add(p, segment.PageSize), segment.PageSize), syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	at := unsafe.Add(p, segment.PageSize-len(s))
	copy(bytesAt(at, uint64(len(s))), s)
	return (*int8)(at)
}

// TestBounded: functions with a length read no byte behind it, of strings that do not end.
func TestBounded(t *testing.T) {
	c := thread(t)
	a, b := atEdge(t, "abc"), atEdge(t, "abd")
	if v := c.Strncmp(a, b, 3); v >= 0 {
		t.Errorf("strncmp of abc and abd is %d", v)
	}
	if v := c.Strncmp(a, b, 2); v != 0 {
		t.Errorf("strncmp of 2 bytes of abc and abd is %d", v)
	}
	if v := c.Strncasecmp(a, b, 3); v >= 0 {
		t.Errorf("strncasecmp of abc and abd is %d", v)
	}
	dst := (*int8)(c.Calloc(16, 1))
	if got := string(text(c.Strncpy(dst, a, 3))); got != "abc" {
		t.Errorf("strncpy of 3 bytes is %q", got)
	}
	if got := string(text(c.Strncat(dst, b, 3))); got != "abcabd" {
		t.Errorf("strncat of 3 bytes is %q", got)
	}
	if n := c.Snprintf(dst, 16, str("%.3s"), a); n != 3 || string(text(dst)) != "abc" {
		t.Errorf("printf of %%.3s is %q", text(dst))
	}
	if p := c.Memchr(chars(a), 'c', 3); p != unsafe.Pointer(At(a, 2)) {
		t.Error("memchr does not find the last byte")
	}
}

// TestStrings: what each function of strings gives.
func TestStrings(t *testing.T) {
	c := thread(t)
	at := func(p, of *int8) int64 {
		if p == nil {
			return -1
		}
		return Diff(p, of)
	}
	hello := str("hello, world")
	buf := func(s string) *int8 {
		b := (*int8)(c.Malloc(64))
		c.store(b, []byte(s))
		return b
	}
	sign := func(v int32) int { return max(-1, min(1, int(v))) }
	for _, x := range []struct {
		what      string
		got, want any
	}{
		{"strlen", c.Strlen(hello), uint64(12)},
		{"strlen of nothing", c.Strlen(str("")), uint64(0)},
		{"strcmp <", sign(c.Strcmp(str("a"), str("b"))), -1},
		{"strcmp >", sign(c.Strcmp(str("ab"), str("a"))), 1},
		{"strcmp =", sign(c.Strcmp(str("ab"), str("ab"))), 0},
		{"strcmp of bytes beyond 127", sign(c.Strcmp(str("\xff"), str("a"))), 1},
		{"strncmp behind the end", sign(c.Strncmp(str("ab"), str("ab"), 9)), 0},
		{"strcasecmp", sign(c.Strcasecmp(str("HeLLo"), str("hEllO"))), 0},
		{"strcasecmp <", sign(c.Strcasecmp(str("A"), str("b"))), -1},
		{"memcmp", sign(c.Memcmp(chars(str("a\x00c")), chars(str("a\x00b")), 3)), 1},
		{"strcpy", string(text(c.Strcpy(buf("xxxxxxx"), str("abc")))), "abc"},
		{"strncpy pads", string(bytesAt(chars(c.Strncpy(buf("xxxxxxx"), str("ab"), 4)), 5)), "ab\x00\x00x"},
		{"strncpy cuts", string(bytesAt(chars(c.Strncpy(buf("xxxxxxx"), str("abcdef"), 3)), 5)), "abcxx"},
		{"strcat", string(text(c.Strcat(buf("ab"), str("cd")))), "abcd"},
		{"strncat", string(text(c.Strncat(buf("ab"), str("cdef"), 2))), "abcd"},
		{"strdup", string(text(c.Strdup(hello))), "hello, world"},
		{"strchr", at(c.Strchr(hello, 'o'), hello), int64(4)},
		{"strchr of the end", at(c.Strchr(hello, 0), hello), int64(12)},
		{"strchr of none", at(c.Strchr(hello, 'z'), hello), int64(-1)},
		{"strrchr", at(c.Strrchr(hello, 'o'), hello), int64(8)},
		{"strrchr of the end", at(c.Strrchr(hello, 0), hello), int64(12)},
		{"strrchr of none", at(c.Strrchr(hello, 'z'), hello), int64(-1)},
		{"strstr", at(c.Strstr(hello, str("wor")), hello), int64(7)},
		{"strstr of nothing", at(c.Strstr(hello, str("")), hello), int64(0)},
		{"strstr of none", at(c.Strstr(hello, str("wort")), hello), int64(-1)},
		{"strspn", c.Strspn(hello, str("elh")), uint64(4)},
		{"strcspn", c.Strcspn(hello, str(", ")), uint64(5)},
		{"strpbrk", at(c.Strpbrk(hello, str("ow")), hello), int64(4)},
		{"strpbrk of none", at(c.Strpbrk(hello, str("xyz")), hello), int64(-1)},
		{"atoi", c.Atoi(str(" -42x")), int32(-42)},
		{"atoll", c.Atoll(str("9000000000")), int64(9000000000)},
		{"strtof", c.Strtof(str("0.1"), nil), float32(0.1)},
		{"memchr of none", c.Memchr(chars(hello), 'z', 12) == nil, true},
		{"memset", string(bytesAt(c.Memset(chars(buf("abcdef")), 'x'+256, 3), 6)), "xxxdef"},
	} {
		if x.got != x.want {
			t.Errorf("%s is %v, not %v", x.what, x.got, x.want)
		}
	}
	line := buf(",a,,bc, d,")
	var parts []string
	for p := c.Strtok(line, str(", ")); p != nil; p = c.Strtok(nil, str(", ")) {
		parts = append(parts, string(text(p)))
	}
	if !slices.Equal(parts, []string{"a", "bc", "d"}) || c.Strtok(nil, str(",")) != nil {
		t.Errorf("strtok gives %q", parts)
	}
	over := buf("0123456789")
	c.Memmove(chars(At(over, 2)), chars(over), 8)
	if got := string(text(over)); got != "0101234567" {
		t.Errorf("memmove onto itself gives %q", got)
	}
	c.Memcpy(chars(over), chars(hello), 5)
	if got := string(text(over)); got != "hello34567" {
		t.Errorf("memcpy gives %q", got)
	}
}

// TestKinds: what each byte is, as locale C has it, and EOF.
func TestKinds(t *testing.T) {
	c := thread(t)
	for ch := int32(-1); ch < 256; ch++ {
		in := func(from, to byte) bool { return ch >= int32(from) && ch <= int32(to) }
		upper, lower, digit := in('A', 'Z'), in('a', 'z'), in('0', '9')
		space := in('\t', '\r') || ch == ' '
		graph := in('!', '~')
		for name, x := range map[string]struct {
			got  int32
			want bool
		}{
			"isalpha": {c.Isalpha(ch), upper || lower}, "isdigit": {c.Isdigit(ch), digit}, "isalnum": {c.Isalnum(ch), upper || lower || digit},
			"isspace": {c.Isspace(ch), space}, "isupper": {c.Isupper(ch), upper}, "islower": {c.Islower(ch), lower},
			"isblank": {c.Isblank(ch), ch == ' ' || ch == '\t'}, "iscntrl": {c.Iscntrl(ch), ch >= 0 && ch < 32 || ch == 127},
			"isgraph": {c.Isgraph(ch), graph}, "isprint": {c.Isprint(ch), graph || ch == ' '},
			"ispunct":  {c.Ispunct(ch), graph && !upper && !lower && !digit},
			"isxdigit": {c.Isxdigit(ch), digit || in('a', 'f') || in('A', 'F')},
		} {
			if (x.got != 0) != x.want {
				t.Errorf("%s(%d) is %d", name, ch, x.got)
			}
		}
		up, down := ch, ch
		if lower {
			up -= 32
		}
		if upper {
			down += 32
		}
		if c.Toupper(ch) != up || c.Tolower(ch) != down {
			t.Errorf("toupper(%d) is %d, tolower %d", ch, c.Toupper(ch), c.Tolower(ch))
		}
	}
}

// TestNumbers: functions of numbers, in the corners that Go's have otherwise.
func TestNumbers(t *testing.T) {
	c := thread(t)
	nan, inf := math.NaN(), math.Inf(1)
	var e int32
	var whole float64
	frexp := func(f float64) string { f = Frexp(f, &e); return fmt.Sprint(f, e) }
	modf := func(f float64) string { f = Modf(f, &whole); return fmt.Sprint(f, whole, math.Signbit(f)) }
	for _, x := range []struct {
		what      string
		got, want any
	}{
		{"abs", Abs(-5), int32(5)},
		{"labs", Labs(-5), int64(5)},
		{"llabs", Llabs(5), int64(5)},
		{"ldexp", Ldexp(0.75, 3), 6.0},
		{"scalbn", Scalbn(3, -1), 1.5},
		{"frexp", frexp(6), "0.75 3"},
		{"frexp of 0", frexp(0), "0 0"},
		{"modf", modf(-2.5), "-0.5 -2 true"},
		{"modf of a whole", modf(-3), "-0 -3 true"},
		{"modf of an infinity", modf(inf), "0 +Inf false"},
		{"ilogb", Ilogb(10), int32(3)},
		{"ilogb of 0", Ilogb(0), int32(math.MinInt32)},
		{"lround", Lround(-2.5), int64(-3)},
		{"llround", Llround(0.5), int64(1)},
		{"lrint", Lrint(2.5), int64(2)},
		{"llrint", Llrint(-3.5), int64(-4)},
		{"lgamma", Lgamma(5), math.Log(24)},
		{"round", Round(-0.5), -1.0},
		{"Float", Float(inf), inf},
		{"fmax of none", Fmax(nan, 1), 1.0},
		{"fmax", Fmax(2, 1), 2.0},
		{"fmax and none", Fmax(1, nan), 1.0},
		{"fmin of none", Fmin(nan, 1), 1.0},
		{"fmin", Fmin(2, 1), 1.0},
		{"fmin and none", Fmin(1, nan), 1.0},
		{"fdim", Fdim(3, 1), 2.0},
		{"fdim below", Fdim(1, 3), 0.0},
		{"fdim of infinities", Fdim(inf, inf), 0.0},
		{"time", c.Time(nil), int64(1)},
		{"clock", c.Clock(), int64(1234567)},
	} {
		if x.got != x.want {
			t.Errorf("%s is %v, not %v", x.what, x.got, x.want)
		}
	}
	var at int64
	var tv Timeval
	if c.Time(&at) != 1 || at != 1 || c.Gettimeofday(unsafe.Pointer(&tv), nil) != 0 || tv != (Timeval{1, 234567}) {
		t.Errorf("time stores %d, gettimeofday %v", at, tv)
	}
	// POSIX gives the generator, so that all give the same numbers.
	c.Srand48(1)
	if a, b := c.Drand48(), c.Lrand48(); math.Abs(a-0.041630344771878) > 1e-15 || b != 976015093 {
		t.Errorf("drand48 and lrand48 of seed 1 give %.15g and %d", a, b)
	}
	c.Srand(7)
	a := c.Rand()
	c.Srand(7)
	if b := c.Rand(); a != b || a < 0 {
		t.Errorf("rand gives %d and %d of one seed", a, b)
	}
	t.Setenv("ARGONTEST_LIBC", "here")
	if v := c.Getenv(str("ARGONTEST_LIBC")); string(text(v)) != "here" || c.Getenv(str("ARGONTEST_NOTHING")) != nil {
		t.Errorf("getenv gives %q", text(v))
	}
}

// TestMemory: blocks keep what is in them, are cleared if that is asked for, and are given back once.
func TestMemory(t *testing.T) {
	c := thread(t)
	p := c.Malloc(100)
	c.Memset(p, 7, 100)
	q := c.Realloc(p, 100000)
	if b := bytesAt(q, 100); b[0] != 7 || b[99] != 7 {
		t.Error("realloc loses what was there")
	}
	if q = c.Realloc(q, 10); bytesAt(q, 10)[9] != 7 {
		t.Error("realloc to less loses what is left")
	}
	c.Free(q)
	z := c.Calloc(25, 4)
	for _, b := range bytesAt(z, 100) {
		if b != 0 {
			t.Fatal("calloc gives memory that is not cleared")
		}
	}
	c.Free(z)
	c.Free(nil)
	if c.Calloc(1<<33, 1<<33) != nil || c.Malloc(math.MaxUint64) != nil || c.Malloc(heapSize) != nil {
		t.Error("there is memory without end")
	}
	// Rows that are allocated one after the other lie so: loops over them that go down in memory take twice as long.
	for last, i := c.Malloc(1<<20), 0; i < 3; i++ {
		next := c.Malloc(1 << 20)
		if uintptr(next) <= uintptr(last) {
			t.Errorf("a block at %p, and behind it one at %p", last, next)
		}
		last = next
	}
	if c.Realloc(nil, 5) == nil || c.Malloc(0) == nil {
		t.Error("no memory for realloc of nothing, or for 0 bytes")
	}
	z = c.Malloc(100)
	c.Free(z)
	for what, fn := range map[string]func(){
		"free twice": func() { c.Free(z) }, "realloc of what is free": func() { c.Realloc(z, 1) }, "stack overflow": func() {
			for {
				Local[[1 << 20]byte](c)
			}
		},
	} {
		func() {
			defer func() {
				if e := recover(); e == nil || !strings.HasPrefix(fmt.Sprint(e), "libc: ") {
					t.Errorf("%s: %v", what, e)
				}
			}()
			fn()
		}()
	}
	c.Release(c.stack.base)
	top := c.Mark()
	v := Local[[3]int64](c)
	v[2] = 5
	if w := Local[int32](c); *w != 0 || uintptr(unsafe.Pointer(w))%16 != 0 {
		t.Error("a local variable is not 0, or not aligned")
	}
	c.Release(top)
	if w := Local[[3]int64](c); w != v || w[2] != 0 {
		t.Error("a variable in place of one that was given back is not 0")
	}
	args := unsafe.Slice(Args([]string{"prog", "x"}), 3)
	if string(text(args[0])) != "prog" || string(text(args[1])) != "x" || args[2] != nil {
		t.Error("argv has other arguments")
	}
	var name [4]int8
	SetStr(name[:], "ab\xff")
	if name != [4]int8{'a', 'b', -1, 0} {
		t.Errorf("an array of characters is %v", name)
	}
	if Byte(-1) != 255 || Bool(true) != 1 || Bool(false) != 0 || FromInt(0) != nil || string(Bytes(chars(str("xyz")), 2)) != "xy" {
		t.Error("conversions give other values")
	}
	if Recast[*int8](v) != (*int8)(unsafe.Pointer(v)) {
		t.Error("a pointer that is recast is another")
	}
}

// TestBitFields: a bit-field has its bits alone, with their sign if its type has one.
func TestBitFields(t *testing.T) {
	for shift := uint(0); shift < 32; shift++ {
		for n := uint(1); shift+n <= 32; n++ {
			for _, v := range []int32{0, 1, -1, 5, -8, math.MaxInt32, math.MinInt32} {
				for _, before := range []uint32{0, math.MaxUint32, 0xa5a5a5a5} {
					u, s := before, int32(before)
					mask := uint32((uint64(1)<<n - 1) << shift)
					want := before&^mask | uint32(v)<<shift&mask
					ext := int32(uint32(v)<<(32-n)) >> (32 - n)
					if got := SetBits(&u, shift, n, uint32(v)); u != want || got != uint32(ext)&(mask>>shift) || Bits(u, shift, n) != got {
						t.Fatalf("%d as %d unsigned bits from %d on of %#x: %#x in %#x", v, n, shift, before, got, u)
					}
					if got := SetBits(&s, shift, n, v); uint32(s) != want || got != ext || Bits(s, shift, n) != got {
						t.Fatalf("%d as %d bits from %d on of %#x: %d in %#x", v, n, shift, before, got, uint32(s))
					}
					s = int32(before)
					p := unsafe.Pointer(&s)
					if got := SetPackedBits(p, shift, n, v); uint32(s) != want || got != ext || PackedBits[int32](p, shift, n) != ext {
						t.Fatalf("%d as %d packed bits from %d on of %#x: %d in %#x", v, n, shift, before, got, uint32(s))
					}
				}
			}
		}
	}
}

// TestSorts: qsort and bsearch, by a function of the program.
func TestSorts(t *testing.T) {
	c := thread(t)
	of := func(p unsafe.Pointer) int32 { return *(*int32)(p) }
	by := func(a, b unsafe.Pointer) int32 { return of(a) - of(b) }
	for n := range 40 {
		p := c.Malloc(uint64(4*n + 4))
		v := unsafe.Slice((*int32)(p), n+1)
		for i := range v {
			v[i] = int32(i * 7 % (n + 1) * 2)
		}
		want := slices.Sorted(slices.Values(v))
		if c.Qsort(p, uint64(len(v)), 4, by); !slices.Equal(v, want) {
			t.Fatalf("qsort gives %v", v)
		}
		for key := int32(-1); key <= v[len(v)-1]+1; key++ {
			at := c.Bsearch(unsafe.Pointer(&key), p, uint64(len(v)), 4, by)
			if i, found := slices.BinarySearch(v, key); found != (at != nil) || found && v[i] != of(at) {
				t.Fatalf("bsearch of %d in %v finds %v", key, v, at != nil)
			}
		}
		c.Free(p)
	}
}

// TestFiles: what is written to a file is read from it, wherever the program is in it, in each mode.
func TestFiles(t *testing.T) {
	c := thread(t)
	name := str(filepath.Join(t.TempDir(), "f"))
	ok := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %v, not %v", what, got, want)
		}
	}
	ok("fopen of none", c.Fopen(name, str("r")) == nil, true)
	ok("fopen in a mode that there is not", c.Fopen(name, str("x")) == nil, true)
	ok("fopen without a mode", c.Fopen(name, str("")) == nil, true)
	f := c.Fopen(name, str("w+"))
	ok("fprintf", c.Fprintf(f, str("%d lines\n"), int32(2)), int32(8))
	ok("vfprintf", c.Vfprintf(f, str("%s\n"), c.Push(uint64(uintptr(unsafe.Pointer(str("second")))))), int32(7))
	ok("fputs", c.Fputs(str("ab"), f), int32(1))
	ok("fputc", c.Fputc('c'+256, f), int32('c'))
	ok("putc", c.Putc('d', f), int32('d'))
	ok("fwrite", c.Fwrite(chars(str("EFGH")), 2, 2, f), uint64(2))
	ok("ftell", c.Ftell(f), int64(23))
	c.Rewind(f)
	var n int32
	ok("fscanf", c.Fscanf(f, str("%d"), unsafe.Pointer(&n)), int32(1))
	ok("what fscanf stores", n, int32(2))
	line := (*int8)(c.Malloc(64))
	ok("fgets", string(text(c.Fgets(line, 64, f))), " lines\n")
	ok("fgets of a part", string(text(c.Fgets(line, 4, f))), "sec")
	ok("fgetc", c.Fgetc(f), int32('o'))
	ok("ungetc", c.Ungetc('O', f), int32('O'))
	ok("ungetc of a second byte", c.Ungetc('x', f), int32(eof))
	ok("ungetc of EOF", c.Ungetc(eof, f), int32(eof))
	ok("getc", c.Getc(f), int32('O'))
	ok("fseek", c.Fseek(f, -4, 2), int32(0))
	ok("fread", c.Fread(chars(line), 2, 9, f), uint64(2))
	ok("what fread gives", string(bytesAt(chars(line), 4)), "EFGH")
	ok("feof", c.Feof(f), int32(1))
	ok("fgetc at the end", c.Fgetc(f), int32(eof))
	ok("fgets at the end", c.Fgets(line, 64, f) == nil, true)
	ok("fseek beyond", c.Fseek(f, -100, 0), int32(eof))
	ok("fseek back", c.Fseek(f, 0, 0), int32(0))
	ok("feof behind a seek", c.Feof(f), int32(0))
	// In between reads a write goes where the program is.
	ok("fgetc", c.Fgetc(f), int32('2'))
	ok("fputc behind it", c.Fputc('!', f), int32('!'))
	ok("ferror", c.Ferror(f), int32(0))
	ok("fflush", c.Fflush(f), int32(0))
	ok("fclose", c.Fclose(f), int32(0))
	ok("fclose again", c.Fclose(f), int32(eof))
	ok("fgetc of a closed file", c.Fgetc(f), int32(eof))
	ok("ftell of a closed file", c.Ftell(f), int64(eof))
	ok("fseek of a closed file", c.Fseek(f, 0, 0), int32(eof))
	ok("fgets of a closed file", c.Fgets(line, 4, f) == nil, true)
	ok("fread of a closed file", c.Fread(chars(line), 1, 1, f), uint64(0))
	ok("fscanf of a closed file", c.Fscanf(f, str("%d"), unsafe.Pointer(&n)), int32(eof))
	a := c.Fopen(name, str("a"))
	c.Fputs(str("+"), a)
	ok("fclose", c.Fclose(a), int32(0))
	r := c.Fopen(name, str("r"))
	ok("fputs to a file to be read", c.Fputs(str("x"), r), int32(1))
	ok("fflush of it", c.Fflush(r), int32(eof))
	ok("ferror", c.Ferror(r), int32(1))
	ok("fclose of it", c.Fclose(r), int32(eof))
	b, err := os.ReadFile(string(text(name)))
	ok("the file", string(b), "2!lines\nsecond\nabcdEFGH+")
	ok("reading it", err, nil)
	ok("remove", c.Remove(name), int32(0))
	ok("remove again", c.Remove(name), int32(eof))
}

// TestFormats: what the rows of printf.txt do not have: several arguments, widths from arguments, %n,
// pointers, buffers that are too short, and arguments that are missing.
func TestFormats(t *testing.T) {
	c := thread(t)
	buf := (*int8)(c.Malloc(256))
	n := Static[int32]()
	for _, x := range []struct {
		format string
		args   []any
		want   string
	}{
		{"%d-%s-%g%%", []any{int32(1), str("two"), 3.5}, "1-two-3.5%"},
		{"%*d|%-*d|", []any{int32(5), int32(42), int32(4), int32(7)}, "   42|7   |"},
		{"%*d|", []any{int32(-5), int32(42)}, "42   |"},
		{"%.*f", []any{int32(2), 3.14159}, "3.14"},
		{"%.*f", []any{int32(-1), 0.5}, "0.500000"},
		{"abc%n", []any{n}, "abc"},
		{"%p %p", []any{unsafe.Pointer(nil), (*int8)(FromInt(0x1234))}, "(nil) 0x1234"},
		{"%s %.3s %.9s", []any{(*int8)(nil), (*int8)(nil), (*int8)(nil)}, "(null)  (null)"},
		{"%d %s %f", nil, "%!d %!s %!f"},
		{"%y 50%", []any{int32(1)}, "%!y 50%"},
		{"%l", nil, ""},
		{"%hhd %hd %ld", []any{int8(-1), int16(-2), int64(-3)}, "-1 -2 -3"},
		{"%u %lu", []any{uint32(math.MaxUint32), uint64(math.MaxUint64)}, "4294967295 18446744073709551615"},
	} {
		if got := c.Sprintf(buf, str(x.format), x.args...); string(text(buf)) != x.want || int(got) != len(x.want) {
			t.Errorf("printf(%q) prints %q, not %q", x.format, text(buf), x.want)
		}
	}
	if *n != 3 {
		t.Errorf("%%n stores %d, not 3", *n)
	}
	if k := c.Snprintf(buf, 4, str("%s"), str("abcdef")); k != 6 || string(text(buf)) != "abc" {
		t.Errorf("snprintf into 4 bytes: %d, %q", k, text(buf))
	}
	c.store(buf, []byte("same"))
	if k := c.Snprintf(buf, 0, str("%s"), str("abcdef")); k != 6 || string(text(buf)) != "same" {
		t.Errorf("snprintf into 0 bytes: %d, %q", k, text(buf))
	}
	if k := c.Vsprintf(buf, str("%d %g"), c.Push(uint64(42), math.Float64bits(1.5))); k != 6 || string(text(buf)) != "42 1.5" {
		t.Errorf("vsprintf: %d, %q", k, text(buf))
	}
}

// TestEnds: how main ends: by its value, by exit, by abort, by a failed assertion, or by a mistake.
func TestEnds(t *testing.T) {
	for what, x := range map[string]struct {
		main    func(c *C) int32
		status  int32
		aborted bool
	}{
		"return": {func(*C) int32 { return 3 }, 3, false},
		"exit":   {func(c *C) int32 { c.Exit(4); return 0 }, 4, false},
		"abort":  {func(c *C) int32 { c.Abort(); return 0 }, 134, true},
		"caught": {func(c *C) int32 { Catch(c, func(uint64, int32, int32) { c.Exit(5) }); return 0 }, 5, false},
		"assert": {func(c *C) int32 { c.AssertFail(str("x > 0"), str("f.upc"), 7, str("main")); return 0 }, 134, true},
	} {
		c := thread(t)
		if status, aborted := c.Run(func() int32 { return x.main(c) }); status != x.status || aborted != x.aborted {
			t.Errorf("%s: status %d, aborted %v", what, status, aborted)
		}
	}
	for what, main := range map[string]func(c *C) int32{
		"null pointer": func(*C) int32 { return *(*int32)(FromInt(0)) },
		"bad free":     func(c *C) int32 { c.Free(unsafe.Pointer(str("x   "))); c.Free(FromInt(64)); return 0 },
		"another":      func(*C) int32 { panic(fmt.Errorf("another")) },
	} {
		c := thread(t)
		func() {
			defer func() {
				if e := recover(); e == nil {
					t.Errorf("%s: the thread goes on", what)
				}
			}()
			c.Run(func() int32 { return main(c) })
		}()
	}
}
