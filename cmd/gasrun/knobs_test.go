package main

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// write has TestFlagsPage write what it otherwise compares.
var write = flag.Bool("write", false, "write the flags in docs/knobs.md instead of comparing them")

// TestFlagsPage compares the flags in docs/knobs.md with what gasrun -help prints,
// or with -write makes them so.
func TestFlagsPage(t *testing.T) {
	const (
		page  = "../../docs/knobs.md"
		begin = "<!-- flags: written by go test ./cmd/gasrun -run TestFlagsPage -write -->\n"
		end   = "\n<!-- end -->"
	)
	help := gasrun(t, "-help").stdout
	want := "\n```\n" + help[strings.Index(help, "\n  -n N")+1:] + "```\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	i := strings.Index(text, begin)
	n := strings.Index(text[max(i, 0):], end)
	if i < 0 || n < 0 {
		t.Fatalf("docs/knobs.md has no line %q, or none %q after it", begin, end)
	}
	i, n = i+len(begin), i+n
	if text[i:n] != want {
		if !*write {
			t.Errorf("docs/knobs.md does not have what gasrun -help prints; go test ./cmd/gasrun -run TestFlagsPage -write makes it:\n%s", want)
		} else if err := os.WriteFile(page, []byte(text[:i]+want+text[n:]), 0o666); err != nil {
			t.Error(err)
		}
	}
}
