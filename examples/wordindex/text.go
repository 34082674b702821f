package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/argon-go/argon/gas"
)

// file is one file to read. Its number is its place in the list, which is in
// the order of names.
type file struct {
	name string
	size int64
	rank int // that reads it
}

// list finds all regular files in dir.
func list(dir string) ([]file, error) {
	var l []file
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return nil
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		l = append(l, file{name: name, size: i.Size()})
		return nil
	})
	if err == nil && len(l) == 0 {
		err = fmt.Errorf("there is no file in %s", dir)
	}
	sort.Slice(l, func(i, j int) bool { return l[i].name < l[j].name })
	return l, err
}

// deal spreads files over ranks: the largest first, each to the rank that has
// the fewest bytes so far.
func deal(files []file, ranks int) {
	order := make([]int, len(files))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return files[order[i]].size > files[order[j]].size })
	load := make([]int64, ranks)
	for _, i := range order {
		least := 0
		for r := range load {
			if load[r] < load[least] {
				least = r
			}
		}
		files[i].rank = least
		// Opening a file costs as much as reading some thousand bytes.
		load[least] += files[i].size + 4096
	}
}

// shareFiles gives every rank rank 0's list of files. Collective.
func shareFiles(n *gas.Node, dir string) ([]file, error) {
	var files []file
	var names []byte
	if n.Rank() == 0 {
		var err error
		if files, err = list(dir); err != nil {
			return nil, fmt.Errorf("wordindex: %w", err)
		}
		for _, f := range files {
			names = append(append(names, f.name...), 0)
		}
	}
	sizes, err := gas.Broadcast(n, 0, [2]int{len(files), len(names)})
	if err != nil {
		return nil, err
	}
	if n.Rank() != 0 {
		names = make([]byte, sizes[1])
	}
	if err := gas.BroadcastSlice(n, 0, names); err != nil {
		return nil, err
	}
	bytes := make([]int64, sizes[0])
	for i, f := range files {
		bytes[i] = f.size
	}
	if err := gas.BroadcastSlice(n, 0, bytes); err != nil {
		return nil, err
	}
	if n.Rank() != 0 {
		for i, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
			files = append(files, file{name: name, size: bytes[i]})
		}
	}
	deal(files, n.Size())
	return files, nil
}

// reader reads files into one buffer.
type reader struct{ buf bytes.Buffer }

// read returns a file's content, which is valid until the next call.
func (r *reader) read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r.buf.Reset()
	if _, err := io.Copy(&r.buf, f); err != nil {
		return nil, err
	}
	return r.buf.Bytes(), nil
}

// isBinary reports whether text is none, in the way of grep and git.
func isBinary(text []byte) bool {
	return bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0
}

// maxWord is the length of the longest word, bytes.
const maxWord = 64

// letters maps ASCII letters to lower case and all other bytes to 0.
var letters = func() (t [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = byte(c), byte(c)
	}
	return t
}()

// eachWord calls emit with each word of text, which is valid until emit returns.
func eachWord(text []byte, emit func(word []byte)) {
	var buf [maxWord + utf8.UTFMax]byte
	n := 0
	for i := 0; i < len(text); {
		c := text[i]
		if l := letters[c]; l != 0 {
			if n <= maxWord {
				buf[n] = l
				n++
			}
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRune(text[i:]); unicode.IsLetter(r) {
				if n <= maxWord {
					n += utf8.EncodeRune(buf[n:], unicode.ToLower(r))
				}
				i += size
				continue
			}
		}
		if 0 < n && n <= maxWord {
			emit(buf[:n])
		}
		n = 0
		i++
	}
	if 0 < n && n <= maxWord {
		emit(buf[:n])
	}
}
