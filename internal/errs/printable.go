package errs

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is s as it may be written to a terminal or a log although another
// rank, another host or a stranger has made it: what is not printable (control
// and formatting characters, bytes that are not UTF-8) is escaped as in a Go
// string, line ends and tabs are kept, and what is longer than most bytes is cut off at a
// character, with the number of bytes that are missing. most counts bytes of s;
// 0 means any length.
func Printable(s string, most int) string {
	cut := 0
	if most > 0 && len(s) > most {
		for cut = most; cut > most-utf8.UTFMax && cut > 0 && !utf8.RuneStart(s[cut]); cut-- {
		}
		s, cut = s[:cut], len(s)-cut
	}
	if cut == 0 && plain(s) {
		return s
	}
	var b strings.Builder
	for i, n := 0, 0; i < len(s); i += n {
		var r rune
		r, n = utf8.DecodeRuneInString(s[i:])
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[i : i+n])
			continue
		}
		q := strconv.Quote(s[i : i+n])
		b.WriteString(q[1 : len(q)-1])
	}
	if cut > 0 {
		b.WriteString(" ... (" + strconv.Itoa(cut) + " more bytes)")
	}
	return b.String()
}

// plain reports whether there is nothing to be escaped in s.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// Line is [Printable] for what is to stay one line: line ends and tabs are escaped too.
func Line(s string, most int) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Printable(s, most))
}
