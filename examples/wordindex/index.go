package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/gas"
)

const hEntries am.HandlerID = am.FirstClient

// posting says how often a word is in a file.
type posting struct{ File, Count uint32 }

// hash spreads words over ranks and slots (FNV-1a, with a final mixing, because
// its upper bits are poor for short words). It is never 0, which marks free
// slots.
func hash(word []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range word {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mix(h) | 1<<63
}

// mix is a permutation of words whose every bit depends on all others.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// index is one rank's access to the index.
type index struct {
	n      *gas.Node
	slots  uint64          // of a rank; a power of two
	keys   gas.Ptr[uint64] // on each rank: the hashes of its slots' words; 0: free
	counts gas.Ptr[uint64] // on each rank: how often they occur
	due    gas.Ptr[uint64] // on each rank: messages that all ranks have sent to it

	words   map[string]*word // that this rank has met
	touched []*word          // in the present file
	out     [][]byte         // entries to send, by owner
	most    int              // bytes of a message
	sent    []uint64         // messages, by owner
	own     *owner
}

// word is a word as a rank that has met it knows it.
type word struct {
	text  string
	owner int
	slot  uint64
	count uint32 // in the present file
	told  bool   // the owner has been sent the text
}

// newIndex makes an empty index for the words of files. Collective.
func newIndex(n *gas.Node, slots int, files []file) (*index, error) {
	total := uint64(slots)
	if slots == 0 {
		// Short texts have a new word for each 50 bytes or so; in long ones the
		// number of different words grows about as the square root of the
		// length (Heaps' law). A table should be no more than half full. Memory
		// is not touched before it is used.
		text := uint64(0)
		for _, f := range files {
			text += uint64(f.size)
		}
		total = max(1024, min(text/16, 64*uint64(math.Sqrt(float64(text)))))
	}
	perRank := (total + uint64(n.Size()) - 1) / uint64(n.Size())
	x := &index{
		n:     n,
		slots: 1 << bits.Len64(perRank-1),
		words: map[string]*word{},
		out:   make([][]byte, n.Size()),
		sent:  make([]uint64, n.Size()),
		most:  min(n.AM().MaxMedium(), 8<<10),
	}
	// The handler finds its rank's part from now on; no rank sends before all
	// have been here.
	x.own = &owner{entries: map[uint32]*entry{}}
	*owners.Of(n) = x.own
	var err error
	for _, p := range []*gas.Ptr[uint64]{&x.keys, &x.counts} {
		if *p, err = gas.NewSlice[uint64](n, int(x.slots)); err != nil {
			return nil, fmt.Errorf("wordindex: a table for %d words a rank (-slots): %w", x.slots, err)
		}
	}
	x.due, err = gas.New[uint64](n)
	return x, err
}

// locate finds the slot of the word with hash h at rank owner, or claims one if
// claim is set. Without claim it says whether there is one.
func (x *index) locate(h uint64, claim bool) (owner int, slot uint64, ok bool, err error) {
	hi, lo := bits.Mul64(h<<1, uint64(x.n.Size()))
	owner = int(hi)
	keys := x.keys.On(owner)
	for probe := range x.slots {
		slot = (lo>>8 + probe) & (x.slots - 1)
		key, err := gas.Load(x.n, keys.Add(int(slot)))
		if err != nil {
			return 0, 0, false, err
		}
		if key == 0 {
			if !claim {
				return owner, slot, false, nil
			}
			_, ok, err := gas.CompareAndSwap(x.n, keys.Add(int(slot)), 0, h)
			if err != nil || ok {
				return owner, slot, ok, err
			}
			// Another rank took it, perhaps for the same word.
			if key, err = gas.Load(x.n, keys.Add(int(slot))); err != nil {
				return 0, 0, false, err
			}
		}
		if key == h {
			return owner, slot, true, nil
		}
	}
	return owner, 0, false, nil
}

// meet enters a word that this rank has not met before.
func (x *index) meet(text []byte) (*word, error) {
	owner, slot, ok, err := x.locate(hash(text), true)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("wordindex: all %d slots of rank %d are taken: make room for more than %d words by -slots",
			x.slots, owner, x.slots*uint64(x.n.Size()))
	}
	w := &word{text: string(text), owner: owner, slot: slot}
	x.words[w.text] = w
	return w, nil
}

// add enters the words of a file and returns how many there are.
func (x *index) add(id uint32, text []byte) (total uint64, err error) {
	eachWord(text, func(b []byte) {
		w := x.words[string(b)]
		if w == nil {
			if err != nil {
				return
			}
			if w, err = x.meet(b); err != nil {
				return
			}
		}
		if w.count == 0 {
			x.touched = append(x.touched, w)
		}
		w.count++
		total++
	})
	if err != nil {
		return 0, err
	}
	for _, w := range x.touched {
		if _, err := gas.FetchAdd(x.n, x.counts.On(w.owner).Add(int(w.slot)), uint64(w.count)); err != nil {
			return 0, err
		}
		if err := x.post(w, posting{id, w.count}); err != nil {
			return 0, err
		}
		w.count = 0
	}
	x.touched = x.touched[:0]
	return total, nil
}

// entryHead is the fixed part of an entry on its way to the owner: slot, file,
// count, and the length of the text that follows, which is there the first time
// that a rank speaks of the word.
const entryHead = 4 + 4 + 4 + 1

// post tells the owner of w in which file it is.
func (x *index) post(w *word, p posting) error {
	buf := x.out[w.owner]
	if len(buf)+entryHead+maxWord > x.most {
		if err := x.flush(w.owner); err != nil {
			return err
		}
		buf = x.out[w.owner]
	}
	buf = binary.LittleEndian.AppendUint32(buf, uint32(w.slot))
	buf = binary.LittleEndian.AppendUint32(buf, p.File)
	buf = binary.LittleEndian.AppendUint32(buf, p.Count)
	if w.told {
		buf = append(buf, 0)
	} else {
		buf = append(append(buf, byte(len(w.text))), w.text...)
		w.told = true
	}
	x.out[w.owner] = buf
	return nil
}

// flush sends the entries collected for owner.
func (x *index) flush(owner int) error {
	if len(x.out[owner]) == 0 {
		return nil
	}
	x.sent[owner]++
	err := x.n.AM().RequestMedium(owner, hEntries, x.out[owner])
	x.out[owner] = x.out[owner][:0]
	return err
}

// drain sends what is left and waits until every rank has all entries. A
// barrier alone would not: it waits for ranks, not for messages under way.
// Collective.
func (x *index) drain() error {
	for r := range x.out {
		if err := x.flush(r); err != nil {
			return err
		}
		if x.sent[r] == 0 {
			continue
		}
		if _, err := gas.FetchAdd(x.n, x.due.On(r), x.sent[r]); err != nil {
			return err
		}
	}
	if err := x.n.Barrier(); err != nil {
		return err
	}
	due, err := gas.Load(x.n, x.due)
	if err != nil {
		return err
	}
	if err := x.n.Wait(func() bool { return x.own.arrived(due) }); err != nil {
		return err
	}
	counts, ok := x.counts.LocalSlice(x.n, int(x.slots))
	if !ok {
		return fmt.Errorf("wordindex: rank %d cannot reach its own memory", x.n.Rank())
	}
	return x.own.sum(counts)
}

// found is a word's place in the index.
type found struct {
	count    uint64
	postings []posting
}

// find looks up a word: its slot and count by one-sided loads, its files by a
// broadcast of the owner. Collective; every rank gets the answer, nil if the
// word is nowhere or empty.
func (x *index) find(text string) (*found, error) {
	if text == "" {
		return nil, nil
	}
	owner, slot, ok, err := x.locate(hash([]byte(text)), false)
	if err != nil || !ok {
		return nil, err
	}
	var f found
	if f.count, err = gas.Load(x.n, x.counts.On(owner).Add(int(slot))); err != nil {
		return nil, err
	}
	if owner == x.n.Rank() {
		f.postings = x.own.entries[uint32(slot)].postings
	}
	length, err := gas.Broadcast(x.n, owner, len(f.postings))
	if err != nil {
		return nil, err
	}
	if owner != x.n.Rank() {
		f.postings = make([]posting, length)
	}
	return &f, gas.BroadcastSlice(x.n, owner, f.postings)
}

// owners are the parts of the index, which the handler finds by its rank.
var owners gas.PerRank[*owner]

// onEntries adds a message's entries to the part of the rank that it came to.
func onEntries(t *am.Token, _ []uint32, payload []byte) {
	(*owners.Of(gas.NodeOf(t))).add(payload)
}

// owner is the part of the index that a rank owns. Its lock is there because
// handlers run on whatever goroutine of the rank polls (ARGON_PROGRESS).
type owner struct {
	mu       sync.Mutex
	entries  map[uint32]*entry // by slot
	messages uint64
	err      error
}

// entry is a word in the index.
type entry struct {
	text     string
	count    uint64
	postings []posting
}

// add takes the entries of a message.
func (o *owner) add(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages++
	for len(b) >= entryHead {
		slot := binary.LittleEndian.Uint32(b)
		p := posting{File: binary.LittleEndian.Uint32(b[4:]), Count: binary.LittleEndian.Uint32(b[8:])}
		text := b[entryHead:][:b[12]]
		b = b[entryHead+len(text):]
		e := o.entries[slot]
		if e == nil {
			e = &entry{text: string(text)}
			o.entries[slot] = e
		}
		// Every rank sends the text with its first entry for a word, so that
		// two words of one hash do not pass for one.
		if len(text) > 0 && e.text != string(text) {
			o.err = fmt.Errorf("wordindex: %q and %q have the same hash", e.text, text)
		}
		e.postings = append(e.postings, p)
	}
}

func (o *owner) arrived(due uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.messages == due
}

// sum completes the entries with the counts that remote atomics have made, and
// compares the two.
func (o *owner) sum(counts []uint64) error {
	for slot, e := range o.entries {
		e.count = counts[slot]
		slices.SortFunc(e.postings, func(a, b posting) int { return int(a.File) - int(b.File) })
		total := uint64(0)
		for _, p := range e.postings {
			total += uint64(p.Count)
		}
		if o.err == nil && total != e.count {
			o.err = fmt.Errorf("wordindex: %q was counted %d times, but its files have it %d times", e.text, e.count, total)
		}
	}
	return o.err
}

// top is a frequent word as shared memory can hold it.
type top struct {
	Count, Files uint64
	Len          uint8
	Text         [maxWord]byte
}

func (t *top) text() string { return string(t.Text[:t.Len]) }

// before says whether a is to be printed before b.
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
func (l *tops) enter(e *entry) {
	t := top{Count: e.count, Files: uint64(len(e.postings)), Len: uint8(len(e.text))}
	copy(t.Text[:], e.text)
	l.insert(t)
}

func (l *tops) insert(t top) {
	for i := range l {
		if t.before(&l[i]) {
			t, l[i] = l[i], t
		}
	}
}

// digest is a number for a word's whole entry, to be added up: two indexes with
// equal sums are the same.
func digest(e *entry) uint64 {
	d := hash([]byte(e.text))
	sum := uint64(0)
	for _, p := range e.postings {
		sum += mix(d ^ mix(uint64(p.File)<<32|uint64(p.Count)))
	}
	return mix(sum ^ mix(e.count))
}

// finish returns the most frequent of the words owned and notes in s how many
// there are.
func (o *owner) finish(s *share) tops {
	var l tops
	for _, e := range o.entries {
		l.enter(e)
		s.Distinct++
		s.Digest += digest(e)
	}
	return l
}

// sequential builds the same index alone and without a table.
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
				e = &entry{text: strings.Clone(string(w))}
				all[e.text] = e
			}
			s.Words++
			e.count++
			if last := len(e.postings) - 1; last >= 0 && e.postings[last].File == uint32(id) {
				e.postings[last].Count++
			} else {
				e.postings = append(e.postings, posting{uint32(id), 1})
			}
		})
	}
	var l tops
	for _, e := range all {
		l.enter(e)
		s.Distinct++
		s.Digest += digest(e)
	}
	return newReport([]share{s}, []tops{l}), nil
}
