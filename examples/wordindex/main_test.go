package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"wordindex": main})
}

// write makes a folder with the given files.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var poem = map[string]string{
	"a.txt":     "The quick brown fox jumps over the lazy dog. THE END",
	"b/c.txt":   "Füße und ÄRGER, und 2x und; don't",
	"b/d.md":    "the " + strings.Repeat("x", maxWord) + " " + strings.Repeat("y", maxWord+1) + " the",
	"e.bin":     "the \x00 the",
	"empty.txt": "",
}

const poemTop = `
   occurrences    files  most frequent words
 1           5        2  the
 2           3        1  und
 3           1        1  brown
 4           1        1  dog
 5           1        1  don
 6           1        1  end
 7           1        1  fox
 8           1        1  füße
 9           1        1  jumps
10           1        1  lazy
check: a sequential run has the same index
`

func TestPoem(t *testing.T) {
	dir := write(t, poem)
	for _, ranks := range []int{1, 2, 5, 8} {
		var out bytes.Buffer
		if err := run(options{ranks: ranks, dir: dir, check: true}, &out); err != nil {
			t.Fatalf("%d ranks: %v", ranks, err)
		}
		// The fox has 9 words, and THE END makes 11, 9 of them distinct; the second text
		// has 8 with the t of don't, 6 distinct; the third has 3, one of them new.
		want := fmt.Sprintf("5 files, 1 of them binary and left out: %d bytes, 22 words, 16 of them distinct\n",
			len(poem["a.txt"])+len(poem["b/c.txt"])+len(poem["b/d.md"]))
		if !strings.HasPrefix(out.String(), want) || !strings.HasSuffix(out.String(), poemTop) {
			t.Errorf("%d ranks:\n%s\nwant first\n%s and last\n%s", ranks, out.String(), want, poemTop)
		}
	}
}

// TestSource indexes the source of a package of this tree in one process and as
// processes: both print the same.
func TestSource(t *testing.T) {
	const dir = "../../am"
	var out bytes.Buffer
	if err := run(options{ranks: 4, dir: dir, check: true, find: "handler"}, &out); err != nil {
		t.Fatal(err)
	}
	r := testjob.RunConfig(t, 4, "wordindex", testjob.Config{Args: []string{"-check", "-find", "Handler", dir}}).Want(t, 0)
	if r.Stdout[0] != out.String() || strings.Join(r.Stdout[1:], "") != "" {
		t.Errorf("as processes:%s\n in one process:\n%s", r.Output(), out.String())
	}
	if !strings.Contains(out.String(), "../../am/token.go\n") {
		t.Errorf("-find does not find:\n%s", out.String())
	}
}

// naive counts words in another way.
func naive(text string) map[string]uint32 {
	m := map[string]uint32{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if w = strings.Map(unicode.ToLower, w); len(w) <= maxWord {
			m[w]++
		}
	}
	return m
}

func TestWordsOfAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[a-zA-Zäß]{1,70}[ .,\n]`),
			rapid.SampledFrom([]string{"the", "The ", "\xff", "\xc3", "é", "ﬁ"}),
		)).Draw(t, "text"), "")
		got := map[string]uint32{}
		eachWord([]byte(text), func(w []byte) { got[string(w)]++ })
		if want := naive(text); !maps.Equal(got, want) {
			t.Fatalf("words of %q: %v, want %v", text, got, want)
		}
	})
}

// TestIndex compares the index of random texts, looked up word by word, with
// plain maps.
func TestIndex(t *testing.T) {
	words := []string{"a", "b", "cc", "d", "longer", "zebra", "füße"}
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(words), 0, 30), 1, 6).Draw(rt, "files")
		files := map[string]string{}
		counts := map[string]uint32{}
		list := map[string]string{}
		dir := write(t, nil)
		for i, l := range texts {
			name := filepath.Join(dir, fmt.Sprintf("%02d", i))
			files[name] = strings.Join(l, " ")
			for w, c := range naive(files[name]) {
				counts[w] += c
				list[w] += fmt.Sprintf("%8d  %s\n", c, name)
			}
			if err := os.WriteFile(name, []byte(files[name]), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		word := rapid.SampledFrom(words).Draw(rt, "find")
		var out bytes.Buffer
		o := options{ranks: rapid.IntRange(1, 4).Draw(rt, "ranks"), dir: dir, check: true, find: word}
		if err := run(o, &out); err != nil {
			rt.Fatal(err)
		}
		want := fmt.Sprintf("\n%q is in no file\n", word)
		if counts[word] > 0 {
			want = fmt.Sprintf("\n%q occurs %d times in %d files\n%s", word, counts[word], strings.Count(list[word], "\n"), list[word])
		}
		if !strings.Contains(out.String(), want) {
			rt.Fatalf("got\n%s\nwant\n%s", out.String(), want)
		}
		if want := fmt.Sprintf(", %d of them distinct\n", len(counts)); !strings.Contains(out.String(), want) {
			rt.Fatalf("got\n%s\nwant %s", out.String(), want)
		}
	})
}

// TestCompare shows that the check would notice.
func TestCompare(t *testing.T) {
	build := func(text string, change func(*entry)) *report {
		e := &entry{3, []posting{{1, 2}, {4, 1}}}
		change(e)
		var s share
		var l tops
		s.note(&l, text, e)
		return newReport([]share{s}, []tops{l})
	}
	same := func(*entry) {}
	want := build("word", same)
	if err := build("word", same).compare(want); err != nil {
		t.Errorf("the same index: %v", err)
	}
	if build("ward", same).compare(want) == nil {
		t.Error("another word goes unnoticed")
	}
	for what, change := range map[string]func(*entry){
		"count": func(e *entry) { e.Count++ },
		"file":  func(e *entry) { e.Postings[1].File++ },
		"share": func(e *entry) { e.Postings[0].Count, e.Postings[1].Count = 1, 2 },
		"lost":  func(e *entry) { e.Postings = e.Postings[:1] },
	} {
		if build("word", change).compare(want) == nil {
			t.Errorf("another %s goes unnoticed", what)
		}
	}
}

func TestDeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOf(rapid.Int64Range(0, 1<<20)).Draw(t, "sizes")
		ranks := rapid.IntRange(1, 10).Draw(t, "ranks")
		var files []file
		for _, s := range sizes {
			files = append(files, file{size: s, rank: -1})
		}
		deal(files, ranks)
		load := make([]int64, ranks)
		for _, f := range files {
			load[f.rank] += f.size + 4096
		}
		// No rank is ahead of another by more than one file.
		if d := slices.Max(load) - slices.Min(load); len(sizes) > 0 && d > slices.Max(sizes)+4096 {
			t.Fatalf("loads %v", load)
		}
	})
}

func TestErrors(t *testing.T) {
	dir := write(t, poem)
	empty := write(t, nil)
	for _, c := range []struct {
		o    options
		want string
	}{
		{options{ranks: 2, dir: filepath.Join(dir, "nowhere")}, "nowhere: no such file or directory"},
		{options{ranks: 2, dir: empty}, "there is no file in " + empty},
	} {
		if err := run(c.o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "a.txt"), 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(filepath.Join(dir, "a.txt")); err == nil {
		f.Close()
		t.Log("this user may read everything")
	} else if err := run(options{ranks: 2, dir: dir}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "a.txt: permission denied") {
		t.Errorf("unreadable file: %v", err)
	}
	for args, want := range map[string]string{
		"":                "which folder?",
		"-n 0 x":          "-n 0: it must be 1 to 65536",
		"x y":             `unexpected argument "y" after the folder`,
		"-find 1 x":       `-find "1": it must be one word`,
		empty + "/nobody": "nobody: no such file or directory",
	} {
		r := testjob.RunConfig(t, 1, "wordindex", testjob.Config{Args: strings.Fields(args)})
		if r.Status == 0 || !strings.Contains(r.Stderr[0], want) {
			t.Errorf("wordindex %s: status %d, %q, want %q", args, r.Status, r.Stderr[0], want)
		}
	}
}
