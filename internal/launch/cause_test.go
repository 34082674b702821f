package launch

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// crash is a recorded end of a program: a section of testdata/crashes.txt, "### name
// status signal", "= what is to be said of it", and what it wrote on standard error, of which
// the middle may be left out.
type crash struct {
	name, want, text string
	status           int
	signal           syscall.Signal
}

func crashes(t *testing.T) (all []crash) {
	t.Helper()
	b, err := os.ReadFile("testdata/crashes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range strings.Split(string(b), "### ")[1:] {
		var c crash
		head, rest, _ := strings.Cut(s, "\n= ")
		c.want, c.text, _ = strings.Cut(rest, "\n")
		if _, err := fmt.Sscan(head, &c.name, &c.status, (*int)(&c.signal)); err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		all = append(all, c)
	}
	return all
}

// TestCauses: of crashes that were recorded, of Go's runtime, of argon's ranks, of C, C++,
// Rust and Python, the cause and the place in the program are named, whatever portions their
// output comes in.
func TestCauses(t *testing.T) {
	for _, c := range crashes(t) {
		for _, portion := range []int{len(c.text) + 1, 7} {
			st := newStream(0, &sink{w: discard{}}, false, false, nil, nil)
			st.witness = &witness{}
			for s := c.text; s != ""; {
				n := min(portion, len(s))
				st.feed([]byte(s[:n]))
				s = s[n:]
			}
			st.finish()
			if got := st.why(c.status, c.signal); got != c.want {
				t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
			}
		}
	}
}
