// Wordindex builds an inverted index of all text files in a folder: for each
// word, how often it occurs and in which files. The index is a hash map spread
// over all ranks.
//
//	go run ./examples/wordindex -n 4 DIR              # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/wordindex DIR
//	go run ./examples/wordindex -check -find listener DIR
//
// A word is a run of 1 to 64 letters, in lower case; longer runs are left out,
// and so are binary files, which have a zero byte near their beginning.
//
// Rank 0 lists the files and deals them out by size. Each rank counts the words of its files, one
// file after the other, and pushes what it has counted to the map of package dist that is
// the index: for each word, at the rank that the word's hash says, the number and a list of
// files. The function that adds to them runs at that rank, for hundreds of words in a message.
//
// With -find the index is used: rank 0 gets a word's entry.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/argon-go/argon/gas"
)

type options struct {
	ranks int
	check bool
	find  string
	dir   string
}

const (
	maxRanks = 1 << 16
	topWords = 10
)

func main() {
	var o options
	flag.IntVar(&o.ranks, "n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	flag.BoolVar(&o.check, "check", false, "compare with an index built sequentially")
	flag.StringVar(&o.find, "find", "", "print in which files `WORD` is")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: wordindex [-n N] [-check] [-find WORD] DIR\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "wordindex: %v\n", err)
		os.Exit(2)
	}
	gas.Exit(run(o, os.Stdout))
}

func (o *options) validate(args []string) error {
	switch {
	case o.ranks < 1 || o.ranks > maxRanks:
		return fmt.Errorf("-n %d: it must be 1 to %d", o.ranks, maxRanks)
	case len(args) == 0:
		return fmt.Errorf("which folder? usage: wordindex [flags] DIR")
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q after the folder", args[1])
	}
	if o.find != "" {
		var words []string
		eachWord([]byte(o.find), func(w []byte) { words = append(words, string(w)) })
		if len(words) != 1 {
			return fmt.Errorf("-find %q: it must be one word of at most %d letters", o.find, maxWord)
		}
		o.find = words[0]
	}
	o.dir = args[0]
	return nil
}

// share counts the work of one rank.
type share struct {
	Files, Bytes, Words uint64 // that it read
	Binary              uint64 // files that it left out
	Distinct            uint64 // words that it owns
	Digest              uint64 // of the index of these words, see digest
}

// run builds the index and writes to out what came of it.
func run(o options, out io.Writer) error {
	return gas.Run(gas.Config{Ranks: o.ranks}, func(n *gas.Node) error {
		files, err := shareFiles(n, o.dir)
		if err != nil {
			return err
		}
		x, err := newIndex(n)
		if err != nil {
			return err
		}
		var mine share
		var r reader
		for id, f := range files {
			if f.rank != n.Rank() {
				continue
			}
			text, err := r.read(f.name)
			switch {
			case err != nil:
				return fmt.Errorf("wordindex: %w", err)
			case isBinary(text):
				mine.Binary++
				continue
			}
			words, err := x.add(uint32(id), text)
			if err != nil {
				return err
			}
			mine.Files++
			mine.Bytes += uint64(len(text))
			mine.Words += words
		}
		if err := x.m.Flush(); err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}

		var best tops
		for text, e := range x.m.All() {
			mine.note(&best, text, &e)
		}
		shares, err := gas.Gather(n, 0, mine)
		if err != nil {
			return err
		}
		tops, err := gas.Gather(n, 0, best)
		if err != nil {
			return err
		}
		if n.Rank() != 0 {
			return x.m.Delete()
		}
		rep := newReport(shares, tops)
		if err := rep.print(out, len(files)); err != nil {
			return err
		}
		if o.find != "" {
			e, found, err := x.m.Get(o.find)
			if err != nil {
				return err
			}
			if err := printFound(out, o.find, e, found, files); err != nil {
				return err
			}
		}
		if err := x.m.Delete(); err != nil {
			return err
		}
		if !o.check {
			return nil
		}
		want, err := sequential(files)
		if err != nil {
			return err
		}
		if err := rep.compare(want); err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, "check: a sequential run has the same index")
		return err
	})
}
