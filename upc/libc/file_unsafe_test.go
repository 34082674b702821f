package libc

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
