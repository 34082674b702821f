package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pieces cuts output into its lines; a carriage return ends one unless a newline
// follows.
func pieces(s string) []string {
	var out []string
	from := 0
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' && (i+1 == len(s) || s[i+1] != '\n') {
			out = append(out, s[from:i+1])
			from = i + 1
		}
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

// Whatever the ranks write, in whatever portions it arrives: every line comes
// out whole, in one piece, and nothing is lost, added or swapped.
func TestLinesStayWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "ranks")
		label := rapid.Bool().Draw(t, "label")
		var out bytes.Buffer
		sk := &sink{w: &out, last: -1}
		streams := make([]*stream, n)
		texts := make([]string, n)
		left := make([]string, n)
		for r := range n {
			streams[r] = newStream(r, sk, label, n == 1 && !label, nil, nil)
			// Rank r writes its own letter only, so that a line shows whose it is.
			letter := string(rune('a' + r))
			var b strings.Builder
			for range rapid.IntRange(0, 12).Draw(t, "lines") {
				b.WriteString(strings.Repeat(letter, rapid.IntRange(1, 40).Draw(t, "length")))
				b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\r", "\r\n"}).Draw(t, "end"))
			}
			if rapid.Bool().Draw(t, "unfinished") {
				b.WriteString(letter)
			}
			texts[r], left[r] = b.String(), b.String()
		}
		open := n
		ended := make([]bool, n)
		for open > 0 {
			r := rapid.IntRange(0, n-1).Draw(t, "rank")
			if ended[r] {
				continue
			}
			if left[r] == "" {
				streams[r].finish()
				ended[r] = true
				open--
				continue
			}
			k := rapid.IntRange(1, min(len(left[r]), 60)).Draw(t, "portion")
			streams[r].feed([]byte(left[r][:k]))
			left[r] = left[r][k:]
		}
		got := make([]string, n)
		for _, p := range pieces(out.String()) {
			if label {
				var r int
				if _, err := fmt.Sscanf(p, "[%d] ", &r); err != nil || r >= n {
					t.Fatalf("no label before %q", p)
				}
				p = p[len(fmt.Sprintf("[%d] ", r)):]
				if body := strings.TrimRight(p, "\r\n"); strings.Trim(body, string(rune('a'+r))) != "" {
					t.Fatalf("line of rank %d holds %q", r, body)
				}
				got[r] += p
				continue
			}
			body := strings.TrimRight(p, "\r\n")
			r := int(body[0] - 'a')
			if strings.Trim(body, body[:1]) != "" {
				t.Fatalf("torn line %q", body)
			}
			got[r] += p
		}
		for r := range n {
			if got[r] != texts[r] && got[r] != texts[r]+"\n" {
				t.Fatalf("rank %d wrote %q, passed on %q", r, texts[r], got[r])
			}
			if n == 1 && !label && got[r] != texts[r] {
				t.Fatalf("one rank wrote %q, passed on %q", texts[r], got[r])
			}
		}
	})
}

// A line of several megabytes comes out in one piece, and its memory is given
// back.
func TestVeryLongLine(t *testing.T) {
	var out bytes.Buffer
	sk := &sink{w: &out, last: -1}
	a, b := newStream(0, sk, false, false, nil, nil), newStream(1, sk, false, false, nil, nil)
	part := bytes.Repeat([]byte("a"), readSize)
	for range 200 {
		a.feed(part)
		b.feed([]byte("b\n"))
	}
	a.feed([]byte("\nend\n"))
	lines := strings.Split(out.String(), "\n")
	long := 0
	for _, l := range lines {
		if strings.HasPrefix(l, "a") {
			long++
			if len(l) != 200*readSize || strings.Trim(l, "a") != "" {
				t.Errorf("a line of %d bytes was torn: want %d", len(l), 200*readSize)
			}
		}
	}
	if long != 1 || len(lines) != 200+3 {
		t.Errorf("%d long lines among %d lines, want 1 among 203", long, len(lines))
	}
	if cap(a.buf) > 1<<20 {
		t.Errorf("the stream still holds %d bytes", cap(a.buf))
	}
}

// A progress display is passed on step by step, one step late.
func TestProgressIsPassedOn(t *testing.T) {
	var out bytes.Buffer
	sk := &sink{w: &out, last: -1}
	st := newStream(0, sk, true, false, nil, nil)
	for i := range 3 {
		st.feed(fmt.Appendf(nil, "%d%%\r", i))
	}
	if got := out.String(); got != "[0] 0%\r[0] 1%\r" {
		t.Errorf("passed on %q", got)
	}
	st.feed([]byte("\n"))
	if got := out.String(); got != "[0] 0%\r[0] 1%\r[0] 2%\r\n" {
		t.Errorf("passed on %q", got)
	}
}

// An unfinished last line is ended only if something else follows.
func TestUnfinishedLine(t *testing.T) {
	var out bytes.Buffer
	sk := &sink{w: &out, last: -1}
	a, b := newStream(0, sk, false, false, nil, nil), newStream(1, sk, false, false, nil, nil)
	a.feed([]byte("first"))
	a.finish()
	if got := out.String(); got != "first" {
		t.Errorf("passed on %q", got)
	}
	b.feed([]byte("second"))
	b.finish()
	sk.printf("third")
	if got := out.String(); got != "first\nsecond\nthird\n" {
		t.Errorf("passed on %q", got)
	}
}

func TestLastLinesAreKept(t *testing.T) {
	st := newStream(0, &sink{w: &bytes.Buffer{}}, false, false, nil, nil)
	for i := range 20 {
		st.feed(fmt.Appendf(nil, "line %d\n\n", i))
	}
	st.feed([]byte("panic: " + strings.Repeat("x", 3*tailWidth)))
	st.feed([]byte("y\nlast"))
	st.finish()
	tail, panicd := st.lastLines()
	want := []string{"line 17", "line 18", "line 19", ("panic: " + strings.Repeat("x", tailWidth))[:tailWidth], "last"}
	if fmt.Sprint(tail) != fmt.Sprint(want) || panicd != want[3] {
		t.Errorf("kept %q and %q, want %q", tail, panicd, want)
	}
}

// The line that says why is kept, however long the stack below it.
func TestCauseIsKept(t *testing.T) {
	for line, want := range map[string]bool{
		"panic: x":                          true,
		"fatal error: all goroutines sleep": true,
		"argon: rank 12: panic: seven":      true,
		"argon: rank 12: no panic: seven":   false,
		"argon: rank 12 panic: ":            false,
		"argon: panic: x":                   false,
		" panic: x":                         false,
		"goroutine 1 [running]:":            false,
		"argon: rank ":                      false,
	} {
		st := newStream(0, &sink{w: &bytes.Buffer{}}, false, false, nil, nil)
		st.feed([]byte(line + "\n\ngoroutine 6 [running]:\n" + strings.Repeat("main.f()\n", 2*tailLines)))
		st.finish()
		if _, cause := st.lastLines(); (cause == line) != want {
			t.Errorf("%q: cause %q", line, cause)
		}
	}
}

// While held, the answer is picked out and the rest comes later, in order.
func TestHoldPicksTheAnswer(t *testing.T) {
	var out bytes.Buffer
	sk := &sink{w: &out, last: -1}
	st := newStream(3, sk, true, false, nil, nil)
	st.feed([]byte("before\nunfin"))
	h := st.hold("argon: rank 3: ")
	st.feed([]byte("stray\nargon: rank"))
	select {
	case <-h.answered:
		t.Fatal("answered by half a line")
	default:
	}
	st.feed([]byte(" 3: waits in barrier\ngoroutine 1\nargon: rank 3: again\n"))
	<-h.answered
	if h.answer != "waits in barrier" {
		t.Errorf("answer is %q", h.answer)
	}
	if got := out.String(); got != "[3] before\n[3] unfin\n" {
		t.Errorf("passed on %q while held", got)
	}
	st.release()
	st.feed([]byte("after\n"))
	if got := out.String(); got != "[3] before\n[3] unfin\n[3] stray\n[3] goroutine 1\n[3] argon: rank 3: again\n[3] after\n" {
		t.Errorf("passed on %q", got)
	}
}

type brokenWriter struct{ calls int }

func (w *brokenWriter) Write([]byte) (int, error) { w.calls++; return 0, errors.New("full") }

func TestWriteErrorIsReportedOnce(t *testing.T) {
	w := &brokenWriter{}
	reports := 0
	sk := &sink{w: w, last: -1, failed: func(error) { reports++ }}
	for range 3 {
		sk.printf("x")
	}
	if reports != 1 || w.calls != 1 {
		t.Errorf("%d reports, %d writes, want 1 and 1", reports, w.calls)
	}
}

// Two descriptors of one file share a sink, so that their lines do not mix.
func TestSinksOfOneFile(t *testing.T) {
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	dir := t.TempDir()
	a, a2, b := open(dir+"/a"), open(dir+"/a"), open(dir+"/b")
	var buf bytes.Buffer
	s := sinks(nil, a, a2, b, &buf, &buf)
	if s[0] != s[1] || s[0] == s[2] || s[2] == s[3] || s[3] != s[4] {
		t.Errorf("sinks %p, want 0=1, 3=4 and no other equal", s)
	}
}
