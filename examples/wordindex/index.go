package main

import (
	"fmt"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// posting says how often a word is in a file.
type posting struct{ File, Count uint32 }

// entry is a word in the index.
type entry struct {
	Count    uint64
	Postings []posting // in any order
}

// enter adds a posting.
func (e *entry) enter(p posting) {
	e.Count += uint64(p.Count)
	e.Postings = append(e.Postings, p)
}

// index is one rank's access to the index.
type index struct {
	m    *dist.Map[string, entry]
	post *dist.Update[string, entry, posting, struct{}]

	words   map[string]*word // that this rank has met
	touched []*word          // in the present file
}

// word is a word as a rank that has met it knows it.
type word struct {
	text  string
	count uint32 // in the present file
}

// newIndex makes an empty index. Collective.
func newIndex(n *gas.Node) (*index, error) {
	m, err := dist.NewMap[string, entry](n, "index")
	if err != nil {
		return nil, err
	}
	post, err := dist.NewUpdate(m, "post", func(e *dist.Entry[string, entry], p posting) struct{} {
		e.Value.enter(p)
		return struct{}{}
	})
	return &index{m: m, post: post, words: map[string]*word{}}, err
}

// add enters the words of a file and returns how many there are.
func (x *index) add(id uint32, text []byte) (total uint64, err error) {
	eachWord(text, func(b []byte) {
		w := x.words[string(b)]
		if w == nil {
			w = &word{text: string(b)}
			x.words[w.text] = w
		}
		if w.count == 0 {
			x.touched = append(x.touched, w)
		}
		w.count++
		total++
	})
	for _, w := range x.touched {
		if err := x.post.Push(w.text, posting{id, w.count}); err != nil {
			return 0, err
		}
		w.count = 0
	}
	x.touched = x.touched[:0]
	return total, nil
}

// top is a frequent word as shared memory can hold it.
type top struct {
	Count, Files uint64
	Len          uint8
	Text         [maxWord]byte
}

func (t *top) text() string { return string(t.Text[:t.Len]) }

// before reports whether a is to be printed before b.
func (t *top) before(u *top) bool {
	if t.Count != u.Count {
		return t.Count > u.Count
	}
	return t.text() < u.text()
}

// tops are the most frequent words, the most frequent first; those at the end
// may be missing.
type tops [topWords]top

// enter puts a word in its place if it is among the most frequent.
func (l *tops) enter(text string, e *entry) {
	t := top{Count: e.Count, Files: uint64(len(e.Postings)), Len: uint8(len(text))}
	copy(t.Text[:], text)
	l.insert(t)
}

func (l *tops) insert(t top) {
	for i := range l {
		if t.before(&l[i]) {
			t, l[i] = l[i], t
		}
	}
}

// hash is FNV-1a.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}

// mix is a permutation of words whose every bit depends on all others.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// digest is a number for a word's whole entry, to be added up: two indexes with
// equal sums are the same.
func digest(text string, e *entry) uint64 {
	d := mix(hash(text))
	sum := uint64(0)
	for _, p := range e.Postings {
		sum += mix(d ^ mix(uint64(p.File)<<32|uint64(p.Count)))
	}
	return mix(sum ^ mix(e.Count))
}

// note notes a word in s and l.
func (s *share) note(l *tops, text string, e *entry) {
	l.enter(text, e)
	s.Distinct++
	s.Digest += digest(text, e)
}

// sequential builds the same index alone, in a plain map.
func sequential(files []file) (*report, error) {
	all := map[string]*entry{}
	var s share
	var r reader
	for id, f := range files {
		text, err := r.read(f.name)
		if err != nil {
			return nil, fmt.Errorf("wordindex: %w", err)
		}
		if isBinary(text) {
			s.Binary++
			continue
		}
		s.Files++
		s.Bytes += uint64(len(text))
		eachWord(text, func(w []byte) {
			e := all[string(w)]
			if e == nil {
				e = &entry{}
				all[string(w)] = e
			}
			s.Words++
			if last := len(e.Postings) - 1; last >= 0 && e.Postings[last].File == uint32(id) {
				e.Count++
				e.Postings[last].Count++
			} else {
				e.enter(posting{uint32(id), 1})
			}
		})
	}
	var l tops
	for text, e := range all {
		s.note(&l, text, e)
	}
	return newReport([]share{s}, []tops{l}), nil
}
