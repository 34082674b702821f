package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// report sums the findings of all ranks.
type report struct {
	shares []share
	all    share
	tops   tops
}

func newReport(shares []share, lists []tops) *report {
	r := &report{shares: shares}
	for _, s := range shares {
		r.all.Files += s.Files
		r.all.Bytes += s.Bytes
		r.all.Words += s.Words
		r.all.Binary += s.Binary
		r.all.Distinct += s.Distinct
		r.all.Digest += s.Digest
	}
	for _, l := range lists {
		for _, t := range l {
			r.tops.insert(t)
		}
	}
	return r
}

// print writes the report of files files.
func (r *report) print(out io.Writer, files int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d files, %d of them binary and left out: %d bytes, %d words, %d of them distinct\n\n",
		files, r.all.Binary, r.all.Bytes, r.all.Words, r.all.Distinct)
	fmt.Fprintf(&b, "rank %8s %12s %10s  distinct words owned\n", "files", "bytes", "words")
	for i, s := range r.shares {
		fmt.Fprintf(&b, "%4d %8d %12d %10d %10d\n", i, s.Files, s.Bytes, s.Words, s.Distinct)
	}
	fmt.Fprintf(&b, "\n   occurrences    files  most frequent words\n")
	for i, t := range r.tops {
		if t.Count == 0 {
			break
		}
		fmt.Fprintf(&b, "%2d %11d %8d  %s\n", i+1, t.Count, t.Files, t.text())
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// compare returns an error if r and want differ.
func (r *report) compare(want *report) error {
	if r.all != want.all {
		return fmt.Errorf("wordindex: check: the index is %+v, a sequential run has %+v", r.all, want.all)
	}
	if r.tops != want.tops {
		return fmt.Errorf("wordindex: check: the most frequent words differ from those of a sequential run")
	}
	return nil
}

// printFound writes where a word is, which has entry e if it is found.
func printFound(out io.Writer, word string, e entry, found bool, files []file) error {
	var b strings.Builder
	if !found {
		fmt.Fprintf(&b, "\n%q is in no file\n", word)
	} else {
		fmt.Fprintf(&b, "\n%q occurs %d times in %d files\n", word, e.Count, len(e.Postings))
		slices.SortFunc(e.Postings, func(a, b posting) int { return int(a.File) - int(b.File) })
		for _, p := range e.Postings {
			fmt.Fprintf(&b, "%8d  %s\n", p.Count, files[p.File].name)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
