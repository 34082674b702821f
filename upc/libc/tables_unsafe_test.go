package libc

// What is unsafe here: memory that functions of C are given, and what they return.

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// thread is a thread's library, on a clock that stands still.
func thread(t *testing.T) *C {
	t.Helper()
	c := New(func() time.Duration { return 1234567 * time.Microsecond })
	return &c
}

// row is an entry of a table that a C program has printed: what C's library is asked, and what it has
// answered on x86-64.
type row struct{ head, key, arg, want string }

// rows are the entries of a table, whose lines tabs divide. A line that begins with @ has a word and the
// arguments of the lines below it, which have a key and an answer for each argument, or ~.
func rows(t *testing.T, name string) (all []row) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var head []string
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case line[0] == '#':
			continue
		case line[0] == '@':
			head = f
			continue
		case len(f) != len(head):
			t.Fatalf("%s: %q has %d fields, not %d", name, line, len(f), len(head))
		}
		for i, want := range f[1:] {
			if want != "~" {
				all = append(all, row{head[0][1:], f[0], head[i+1], want})
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}

// unquote is a string of a table, in which \t and \n stand for themselves.
func unquote(s string) string { return strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(s) }

// constant is a constant of a table, as C writes it.
func constant(t *testing.T, kind, s string) any {
	t.Helper()
	switch kind {
	case "string":
		return str(s)
	case "double":
		f, err := strconv.ParseFloat(map[string]string{"INFINITY": "inf", "-INFINITY": "-inf", "NAN": "nan"}[s], 64)
		if err != nil {
			f, err = strconv.ParseFloat(s, 64)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if s[0] == '\'' {
		return int32(s[1])
	}
	if s == "-2147483647-1" {
		return int32(math.MinInt32)
	}
	if strings.HasPrefix(s, "(-9223372036854775807") {
		return int64(math.MinInt64)
	}
	v, err := strconv.ParseInt(strings.TrimRight(s, "L"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if kind == "int" {
		return int32(v)
	}
	return v
}

// TestPrintf: each conversion prints what C's does.
func TestPrintf(t *testing.T) {
	c := thread(t)
	buf := (*int8)(c.Malloc(4096))
	for _, r := range rows(t, "printf.txt") {
		a := constant(t, r.head, r.arg)
		n := c.Snprintf(buf, 4096, str(r.key), a)
		if got := string(text(buf)); got != r.want || int(n) != len(got) {
			t.Errorf("printf(%q, %s) prints %q (%d), not %q", r.key, r.arg, got, n, r.want)
		}
		// As functions of variable arguments have it.
		var w uint64
		switch v := a.(type) {
		case float64:
			w = math.Float64bits(v)
		default:
			w, _ = word(v)
		}
		top := c.Mark()
		if c.Vsnprintf(buf, 4096, str(r.key), c.Push(w)); string(text(buf)) != r.want {
			t.Errorf("vprintf(%q, %s) prints %q, not %q", r.key, r.arg, text(buf), r.want)
		}
		c.Release(top)
	}
}

// hex is a floating number as %a prints it.
func hex(f float64) string { return (&spec{verb: 'a', prec: -1}).float(f) }

// TestStrtod: the number at the beginning of a string, and where it ends.
func TestStrtod(t *testing.T) {
	c := thread(t)
	for _, r := range rows(t, "strtod.txt") {
		s := str(unquote(r.key))
		var end *int8
		if got := fmt.Sprintf("%s,%d", hex(c.Strtod(s, &end)), Diff(end, s)); got != r.want {
			t.Errorf("strtod(%q) and its length are %s, not %s", r.key, got, r.want)
		}
		if got := hex(c.Atof(s)); !strings.HasPrefix(r.want, got+",") {
			t.Errorf("atof(%q) is %s, not %s", r.key, got, r.want)
		}
	}
}

// TestStrtol: integers in all bases, signed and not, and where they end.
func TestStrtol(t *testing.T) {
	c := thread(t)
	for _, r := range rows(t, "strtol.txt") {
		s := str(unquote(r.key))
		base, err := strconv.Atoi(r.arg)
		if err != nil {
			t.Fatal(err)
		}
		var end, uend *int8
		l, u := c.Strtol(s, &end, int32(base)), c.Strtoul(s, &uend, int32(base))
		if got := fmt.Sprintf("%d,%d,%d,%d", l, u, Diff(end, s), Diff(uend, s)); got != r.want {
			t.Errorf("strtol and strtoul(%q, %d) are %s, not %s", r.key, base, got, r.want)
		}
		if ll, ull := c.Strtoll(s, nil, int32(base)), c.Strtoull(s, nil, int32(base)); ll != l || ull != u {
			t.Errorf("strtoll and strtoull(%q, %d) are %d and %d, not %d and %d", r.key, base, ll, ull, l, u)
		}
		if v := c.Atol(s); base == 10 && v != l {
			t.Errorf("atol(%q) is %d, not %d", r.key, v, l)
		}
	}
}

// TestScanf: what one conversion, or two, store of an input, and how many sscanf counts.
func TestScanf(t *testing.T) {
	c := thread(t)
	for _, r := range rows(t, "scanf.txt") {
		v, n := Static[[64]byte](), Static[int32]()
		*n = -1
		switch r.head {
		case "long":
			*(*int64)(unsafe.Pointer(v)) = 0x1111111111111111
		case "double":
			*(*float64)(unsafe.Pointer(v)) = 77
		case "string":
			copy(v[:], "?????")
		}
		count := c.Sscanf(str(r.arg), str(r.key), unsafe.Pointer(v), n)
		var stored string
		switch r.head {
		case "long":
			stored = fmt.Sprint(*(*int64)(unsafe.Pointer(v)))
		case "double":
			stored = hex(*(*float64)(unsafe.Pointer(v)))
		case "string":
			stored = string(v[:bytes.IndexByte(v[:], 0)])
		}
		if got := fmt.Sprintf("%d,%s,%d", count, stored, *n); got != r.want {
			t.Errorf("sscanf(%q, %q) counts, stores and has n as %s, not %s", r.arg, r.key, got, r.want)
		}
	}
}
