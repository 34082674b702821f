package libc

import (
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

func str(s string) *int8 { return Str(s + "\x00") }

// TestFinish: what a thread has left open is written when it ends, and what others have open
// is not touched.
func TestFinish(t *testing.T) {
	one, other := New(func() time.Duration { return 0 }), New(func() time.Duration { return 0 })
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	f, g := one.Fopen(str(a), str("w")), other.Fopen(str(b), str("w"))
	one.Fputs(str("left open"), f)
	other.Fputs(str("still"), g)
	has := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, not %q", filepath.Base(name), got, err, want)
		}
	}
	has(a, "")
	one.Finish()
	has(a, "left open")
	has(b, "")
	if one.Fclose(f) != eof || other.Fclose(g) != 0 {
		t.Error("files that are open are not those that were left open")
	}
	has(b, "still")
}

// TestFreopen: a thread's standard streams are the files that freopen opens for it, and not those of others; what is printed
// before is written first.
func TestFreopen(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) *int8 { return str(filepath.Join(dir, name)) }
	has := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, not %q", name, got, err, want)
		}
	}
	c, other := New(func() time.Duration { return 0 }), New(func() time.Duration { return 0 })
	for name, std := range map[string]unsafe.Pointer{"out": c.Stdout(), "err": c.Stderr()} {
		if Freopen(&c, in(name), str("w"), std) != std {
			t.Fatalf("freopen of std%s fails: %v", name, syscall.Errno(c.Err))
		}
	}
	c.Printf(str("%d"), int32(1))
	c.Fputs(str("2"), c.Stdout())
	c.Puts(str("3"))
	c.Fputs(str("wrong"), c.Stderr())
	has("err", "wrong") // which is not buffered
	if file(&other, other.Stdout()) != stdout || Fileno(&c, c.Stdout()) == 1 {
		t.Error("stdout is another for all threads, or for none")
	}
	if Freopen(&c, in("next"), str("w"), c.Stdout()) != c.Stdout() {
		t.Fatal("freopen of what freopen has opened fails")
	}
	has("out", "123\n")
	c.Putchar('4')
	if Freopen(&c, in("out"), str("r"), c.Stdin()) != c.Stdin() || c.Getchar() != '1' || file(&other, other.Stdin()) != stdin {
		t.Error("stdin is not the file")
	}
	f := c.Fopen(in("again"), str("w"))
	c.Fputs(str("first"), f)
	if f = Freopen(&c, in("again"), str("r"), f); f == nil || c.Fgetc(f) != 'f' {
		t.Error("what was written before freopen is not read behind it")
	}
	if c.Err = 0; Freopen(&c, in("no/file"), str("w"), f) != nil || c.Err != Errno(syscall.ENOENT) || c.Fclose(f) != eof {
		t.Errorf("freopen of no file leaves its stream open, with errno %d", c.Err)
	}
	c.Finish()
	has("next", "4")
	for _, s := range streams.all {
		if s.owner == &c {
			t.Errorf("%s is still open", s.f.Name())
		}
	}
}

// TestNames: with files in memory no call about a file by its name changes that of the operating system.
func TestNames(t *testing.T) {
	t.Setenv("ARGON_SIM_FILES", "memory")
	c := New(func() time.Duration { return 0 })
	dir := t.TempDir()
	a, b := str(filepath.Join(dir, "a")), str(filepath.Join(dir, "b"))
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("as it was"), 0o640); err != nil {
		t.Fatal(err)
	}
	var s stat
	ask := func(name *int8, follow bool) int32 { return Stat(&c, name, 0, follow, unsafe.Pointer(&s)) }
	for what, status := range map[string]func() int32{
		"chmod": func() int32 { return Chmod(&c, a, 0o600) }, "truncate": func() int32 { return Truncate(&c, a, 2) },
	} {
		if status() != 0 {
			t.Errorf("%s fails: %v", what, syscall.Errno(c.Err))
		}
	}
	if Rename(&c, a, b) != 0 || Rename(&c, a, b) != -1 || c.Err != Errno(syscall.ENOENT) {
		t.Errorf("rename: %v", syscall.Errno(c.Err))
	}
	for _, follow := range []bool{false, true} {
		if ask(b, follow) != 0 || s.size != 2 || s.mode != syscall.S_IFREG|0o600 {
			t.Errorf("b has %d bytes and mode %#o", s.size, s.mode)
		}
		if ask(a, follow) != -1 || c.Err != Errno(syscall.ENOENT) {
			t.Error("a is still there")
		}
	}
	for what, status := range map[string]func() int32{
		"chmod": func() int32 { return Chmod(&c, a, 0o600) }, "truncate": func() int32 { return Truncate(&c, a, 2) },
		"rename to a folder": func() int32 { return Rename(&c, b, str(dir)) },
	} {
		if status() != -1 {
			t.Errorf("%s succeeds", what)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "a"))
	i, failed := os.Stat(filepath.Join(dir, "a"))
	if err != nil || failed != nil || string(text) != "as it was" || i.Mode() != 0o640 {
		t.Errorf("on the disk a has %q, %v; %v", text, i, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); err == nil {
		t.Error("b is on the disk")
	}
}

// TestCase: letters beyond ASCII have no case, and are one byte each.
func TestCase(t *testing.T) {
	for _, x := range []struct {
		s, sub string
		at     int
	}{{"\u212aelvin AB", "ab", 9}, {"\u0130\u0130\u0130x", "X", 6}, {"\xffAb", "aB", 1}, {"\u00c4", "\u00e4", -1}, {"\xc3a", "\xc4", -1}, {"@[`{", "`{", 2}} {
		s := str(x.s)
		var want *int8
		if x.at >= 0 {
			want = At(s, x.at)
		}
		if got := Strcasestr(s, str(x.sub)); got != want {
			t.Errorf("strcasestr(%q, %q) is %p, not %d behind %p", x.s, x.sub, got, x.at, s)
		}
	}
}

// TestAligned: sizes and alignments that are too large, or none, get no memory; those that are not too large get it aligned.
func TestAligned(t *testing.T) {
	c := C{}
	for _, x := range []struct{ align, size uint64 }{
		{64, math.MaxUint64}, {64, math.MaxUint64 - 63}, {1 << 63, 8}, {math.MaxUint64, 16}, {1<<63 + 1, 1 << 63}, {8, math.MaxUint64}, {32, heapSize},
	} {
		if p := Aligned(x.align, x.size); p != nil {
			t.Errorf("%d bytes aligned to %d are at %p", x.size, x.align, p)
		}
	}
	for align, want := range map[uint64]int32{0: 22, 4: 22, 24: 22, 65: 22, 8: 0, 16: 0, 4096: 0, 1 << 63: 12} {
		var p unsafe.Pointer
		if got := PosixAligned(&p, align, 100); got != want || want == 0 && (p == nil || uintptr(p)%uintptr(align) != 0) {
			t.Errorf("posix_memalign to %d is %d at %p, not %d", align, got, p, want)
		}
		c.Free(p)
	}
	if p := Aligned(24, 1); uintptr(p)%32 != 0 {
		t.Errorf("%p is not aligned to 32", p)
	}
}
