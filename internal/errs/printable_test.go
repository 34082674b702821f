package errs

import (
	"strconv"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"", 0, ""},
		{"killed by SIGKILL", 0, "killed by SIGKILL"},
		{"two\nlines", 0, "two\nlines"},
		{"grün, 日本", 0, "grün, 日本"},
		{"\x1b[2J\x1b]0;owned\a", 0, `\x1b[2J\x1b]0;owned\a`},
		{"a\rb\tc\x00d\x7f", 0, "a\\rb\tc\\x00d\\x7f"},
		{"\xff\xfe", 0, `\xff\xfe`},
		{"rtl \u202e and \u200b", 0, `rtl \u202e and \u200b`},
		{"\ufffd", 0, "\ufffd"},
		{"12345", 5, "12345"},
		{"123456", 5, "12345 ... (1 more bytes)"},
		{"1234ü6", 5, "1234 ... (3 more bytes)"},
	} {
		if got := Printable(c.in, c.most); got != c.want {
			t.Errorf("Printable(%q, %d) is %q, want %q", c.in, c.most, got, c.want)
		}
	}
}

// TestPrintableIsPrintable: whatever goes in, what comes out moves no cursor, is
// bounded, and says the same as before if there was nothing to be escaped.
func TestPrintableIsPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		most := rapid.IntRange(0, 50).Draw(t, "most")
		out := Printable(in, most)
		clean := true
		for _, r := range out {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Fatalf("%q holds %U", out, r)
			}
		}
		for _, r := range in {
			clean = clean && (r == '\n' || r == '\t' || unicode.IsPrint(r)) && r != utf8.RuneError
		}
		if (most == 0 || len(in) <= most) && clean && out != in {
			t.Fatalf("%q became %q", in, out)
		}
		if limit := 10*most + len(" ... ( more bytes)") + len(strconv.Itoa(len(in))); most > 0 && len(out) > limit {
			t.Fatalf("%d bytes of %q, limit %d", len(out), out, limit)
		}
	})
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{"": "", "one line": "one line", "two\nlines\n": `two\nlines\n`, "\x1b[2J\n": `\x1b[2J\n`} {
		if got := Line(in, 0); got != want {
			t.Errorf("Line(%q) is %q, want %q", in, got, want)
		}
	}
	if got := Line("12345\n7", 6); got != `12345\n ... (1 more bytes)` {
		t.Errorf("cut it is %q", got)
	}
}
