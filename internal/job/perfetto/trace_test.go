package perfetto

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// written has a process write slices with these names to a file in one piece.
func written(t *testing.T, name string, slices ...string) {
	t.Helper()
	to, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	f := &File{to: to, say: io.Discard}
	r := f.Rank(0, nil, true)
	for i, s := range slices {
		r.Done(Messages, &Slice{Name: s, Peer: None, Began: time.Duration(i)}, time.Duration(i))
	}
	if f.Close(); f.err != os.ErrClosed {
		t.Fatal(f.err)
	}
}

// names are those of all slices in a file, all of whose packets must be whole.
func names(t *testing.T, name string) (list string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if k := whole(b); k != len(b) {
		t.Fatalf("%d bytes of %d are whole packets: %x", k, len(b), b)
	}
	for _, s := range []string{"one", "two", "three", "four", "five"} {
		if n := bytes.Count(b, []byte(s)); n > 1 {
			t.Errorf("%d slices %q", n, s)
		} else if n == 1 {
			list += " " + s
		}
	}
	return list
}

// TestTorn: a process that is killed while it writes leaves at each byte what others can write behind, and readers read: all whole packets
// of it, and all of others.
func TestTorn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace")
	written(t, name, "one", "two")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	written(t, name, "three", "four")
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for cut := len(before); cut <= len(all); cut++ {
		if err := os.WriteFile(name, all[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Mend(name); err != nil {
			t.Fatal(err)
		}
		want, had := " one two", names(t, name)
		for _, s := range []string{"three", "four"} {
			if i := bytes.Index(all, []byte(s)); cut > i+30 { // its packet has ended
				want += " " + s
			}
		}
		if !strings.HasPrefix(had, want) || len(had) < last {
			t.Fatalf("cut at %d of %d the file has%s", cut, len(all), had)
		}
		last = len(had)
		if err := os.WriteFile(name, all[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		written(t, name, "five")
		if got := names(t, name); got != had+" five" {
			t.Fatalf("cut at %d of %d, and written on, the file has%s, not%s five", cut, len(all), got, had)
		}
	}
	if last != len(" one two three four") {
		t.Errorf("the whole file has %d bytes of names", last)
	}
}
