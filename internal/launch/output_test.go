package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Whatever the ranks write on both streams, in whatever portions and with whatever
// pauses: no line holds bytes of two streams, each stream's bytes come out in order and
// complete, what follows a pause has been shown before it, and nothing is added but labels
// and the ends of lines that were cut; without pauses no line is.
func TestLinesStayWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) { // its Deadline is not for bubbles
			n := rapid.IntRange(1, 3).Draw(t, "ranks")
			label := rapid.Bool().Draw(t, "label")
			pauses := rapid.Bool().Draw(t, "pauses")
			var out bytes.Buffer
			sk := &sink{w: &out}
			streams := make([]*stream, 2*n)
			texts, left := make([]string, 2*n), make([]string, 2*n)
			for i := range streams {
				streams[i] = newStream(i/2, sk, label, n == 1 && !label, nil, nil)
				// Stream i writes its own characters only, so that a line shows whose it is.
				chars := []string{string(rune('a' + i))}
				if i == 0 {
					chars = append(chars, "\x00", "\xff", "é", "\x1b[31m")
				}
				var b strings.Builder
				for range rapid.IntRange(0, 8).Draw(t, "lines") {
					for range rapid.IntRange(0, 20).Draw(t, "length") {
						b.WriteString(rapid.SampledFrom(chars).Draw(t, "char"))
					}
					b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\r", "\r\n"}).Draw(t, "end"))
				}
				if rapid.Bool().Draw(t, "unfinished") {
					b.WriteString(chars[0])
				}
				texts[i], left[i] = b.String(), b.String()
			}
			for open := len(streams); open > 0; {
				i := rapid.IntRange(0, len(streams)-1).Draw(t, "stream")
				st := streams[i]
				switch {
				case st == nil:
				case left[i] == "":
					st.finish()
					streams[i] = nil
					open--
				default:
					k := rapid.IntRange(1, min(len(left[i]), 40)).Draw(t, "portion")
					st.feed([]byte(left[i][:k]))
					left[i] = left[i][k:]
				}
				if pauses && rapid.IntRange(0, 3).Draw(t, "pause") == 0 {
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
					for i, st := range streams {
						if st != nil && len(st.buf) != halfTail(st.buf) {
							t.Fatalf("after a pause %q of stream %d is not shown", st.buf, i)
						}
					}
				}
			}
			if n == 1 && !label { // two streams of one process, as on its terminal
				if out.Len() != len(texts[0])+len(texts[1]) || texts[1] == "" && out.String() != texts[0] || texts[0] == "" && out.String() != texts[1] {
					t.Fatalf("one rank wrote %q, passed on %q", texts, out.String())
				}
				return
			}
			r := reader{label: label, want: texts, cut: make([]bool, 2*n)}
			if !r.reads(slices.Collect(strings.Lines(out.String()))) {
				t.Fatalf("%q wrote %q", texts, out.String())
			}
			if r.cuts > 0 && !pauses {
				t.Fatalf("%d lines were cut without a pause: %q", r.cuts, out.String())
			}
		})
	})
}

// A reader takes the output of several streams apart.
type reader struct {
	label bool
	want  []string // what comes next, of each stream
	cut   []bool   // its line has been ended where it goes on
	cuts  int
}

// reads reports whether lines are all that the streams wrote, each line of one of them.
func (r *reader) reads(lines []string) bool {
	if len(lines) == 0 {
		return strings.Join(r.want, "") == ""
	}
	for i, want := range r.want {
		rest, ok := r.without(lines[0], i)
		body, end := strings.CutSuffix(rest, "\n")
		if !ok || !strings.HasPrefix(want, body) {
			continue
		}
		next := reader{r.label, slices.Clone(r.want), slices.Clone(r.cut), r.cuts}
		next.want[i], next.cut[i] = want[len(body):], false
		if end {
			own := false
			if next.want[i], own = strings.CutPrefix(next.want[i], "\n"); !own && body == "" {
				continue
			} else if !own && next.want[i] != "" && !strings.HasSuffix(body, "\r") {
				next.cut[i] = true
				next.cuts++
			}
		}
		if next.reads(lines[1:]) {
			*r = next
			return true
		}
	}
	return false
}

// without is line as stream i wrote it; ok is false if its labels are another rank's.
func (r *reader) without(line string, i int) (text string, ok bool) {
	if !r.label {
		return line, true
	}
	for part := range strings.SplitAfterSeq(line, "\r") { // each begins anew
		if part != "" && part != "\n" || text == "" {
			if part, ok = strings.CutPrefix(part, fmt.Sprintf("[%d] ", i/2)); !ok {
				return "", false
			}
			if text == "" && r.cut[i] {
				if part, ok = strings.CutPrefix(part, cutMark); !ok {
					return "", false
				}
			}
		}
		text += part
	}
	return text, true
}

// A line of several megabytes comes out in one piece, and its memory is given
// back.
func TestVeryLongLine(t *testing.T) {
	var out bytes.Buffer
	sk := &sink{w: &out}
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

// Part of a line is shown after a pause; what comes of another rank then begins a line,
// and so does the rest, with a mark.
func TestPrompts(t *testing.T) {
	const pause = ""
	for _, tc := range []struct {
		name          string
		steps         []string // rank, its output; or a pause
		plain, labels string
	}{
		{"prompt", []string{"0How many? ", pause}, "How many? ", "[0] How many? "},
		{"no pause", []string{"0How many? ", "1x\n"}, "x\n", "[1] x\n"},
		{"goes on", []string{"0a: ", pause, "0b\n", "1x\n"}, "a: b\nx\n", "[0] a: b\n[1] x\n"},
		{"cut", []string{"0a: ", pause, "1x\n", "0b\n"}, "a: \nx\nb\n", "[0] a: \n[1] x\n[0] ... b\n"},
		{"cut at its end", []string{"0a", pause, "1x\n", "0\n0b\n"}, "a\nx\n0b\n", "[0] a\n[1] x\n[0] 0b\n"},
		{"two prompts", []string{"0a? ", pause, "1b? ", pause}, "a? \nb? ", "[0] a? \n[1] b? "},
		{"dots", []string{"0.", pause, "0.", pause, "1x\n", "0.", pause, "0.\n"}, "..\nx\n..\n", "[0] ..\n[1] x\n[0] ... ..\n"},
		{"percents", []string{"01%\r", pause, "02%\r", pause, "1x\n", "03%\r", pause, "0\n"}, "1%\r2%\r\nx\n3%\r\n", "[0] 1%\r[0] 2%\r\n[1] x\n[0] 3%\r\n"},
		{"half a rune", []string{"0a\xe2\x82", pause, "1x\n", "0\xac\n"}, "a\nx\n€\n", "[0] a\n[1] x\n[0] ... €\n"},
		{"half a colour", []string{"0a\x1b[1;3", pause, "1x\n", "02mb\n"}, "a\nx\n\x1b[1;32mb\n", "[0] a\n[1] x\n[0] ... \x1b[1;32mb\n"},
		{"no text", []string{"0\xff\x00", pause, "1x\n"}, "\xff\x00\nx\n", "[0] \xff\x00\n[1] x\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, label := range []bool{false, true} {
					var out bytes.Buffer
					sk := &sink{w: &out}
					streams := []*stream{newStream(0, sk, label, false, nil, nil), newStream(1, sk, label, false, nil, nil)}
					for _, s := range tc.steps {
						if s == pause {
							time.Sleep(99 * time.Millisecond)
							synctest.Wait()
							continue
						}
						streams[s[0]-'0'].feed([]byte(s[1:]))
					}
					want := tc.plain
					if label {
						want = tc.labels
					}
					if got := sk.text(&out); got != want {
						t.Errorf("labels %v: %q, want %q", label, got, want)
					}
				}
			})
		})
	}
}

// text is all that s has written to b, which its timers write to as well.
func (s *sink) text(b *bytes.Buffer) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.String()
}

// A long line is not taken for a prompt while it grows.
func TestLongLineGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		sk := &sink{w: &out}
		st := newStream(0, sk, false, false, nil, nil)
		for range 50 {
			st.feed(bytes.Repeat([]byte("a"), showShort+1))
			time.Sleep(37 * time.Millisecond) // less than two ticks
			synctest.Wait()
		}
		if n := len(sk.text(&out)); n > 0 {
			t.Errorf("%d bytes of a line that grows were passed on", n)
		}
		time.Sleep(99 * time.Millisecond)
		synctest.Wait()
		if n := len(sk.text(&out)); n != 50*(showShort+1) {
			t.Errorf("after a pause %d bytes were passed on", n)
		}
	})
}

// A progress display is passed on step by step, one step late.
func TestProgressIsPassedOn(t *testing.T) {
	var out bytes.Buffer
	sk := &sink{w: &out}
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
	sk := &sink{w: &out}
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
	tail := st.lastLines()
	want := []string{"line 17", "line 18", "line 19", ("panic: " + strings.Repeat("x", tailWidth))[:tailWidth], "last"}
	if fmt.Sprint(tail) != fmt.Sprint(want) {
		t.Errorf("kept %q, want %q", tail, want)
	}
}

// While held, the answer is picked out and the rest comes later, in order.
func TestHoldPicksTheAnswer(t *testing.T) {
	var out bytes.Buffer
	sk := &sink{w: &out}
	st := newStream(3, sk, true, false, nil, nil)
	st.feed([]byte("before\nunfin"))
	h := st.hold(1, true)
	st.feed([]byte("stray\nargon: where rank"))
	select {
	case <-h.answered:
		t.Fatal("answered by half a line")
	default:
	}
	st.feed([]byte(" 3 waits: in barrier\ngoroutine 1\nargon: where rank 3 waits: again\n"))
	<-h.answered
	if got := st.answers(); len(got) != 1 || got[3] != "in barrier" {
		t.Errorf("answers are %v", got)
	}
	if got := out.String(); got != "[3] before\n[3] unfin\n" {
		t.Errorf("passed on %q while held", got)
	}
	_ = st.release(nil) // to no file
	st.feed([]byte("after\n"))
	if got := out.String(); got != "[3] before\n[3] unfin\n[3] stray\n[3] goroutine 1\n[3] argon: where rank 3 waits: again\n[3] after\n" {
		t.Errorf("passed on %q", got)
	}
}

type brokenWriter struct{ calls int }

func (w *brokenWriter) Write([]byte) (int, error) { w.calls++; return 0, errors.New("full") }

func TestWriteErrorIsReportedOnce(t *testing.T) {
	w := &brokenWriter{}
	reports := 0
	sk := &sink{w: w, failed: func(error) { reports++ }}
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
