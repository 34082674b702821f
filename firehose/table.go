package firehose

// table holds buckets: a rank's own that are pinned, or its firehoses to one
// peer. Slots lie in one array and are named by index, so that the garbage
// collector has nothing to follow.
//
// Victims are chosen by SIEVE: buckets stand in the order in which they came;
// a hit only marks its bucket; a hand goes from the oldest to the newest, takes
// the marks away, and stops at a bucket that has none and is idle. See the
// package comment for what was compared.
type table struct {
	index index  // bucket number to slot
	slots []slot // [0] is the ends of the list: next is the oldest
	free  uint32 // unused slots, linked by next
	hand  uint32 // where the search for a victim goes on; 0 for the oldest
	found int    // victims since the hand was at the oldest
	idle  int    // slots that may be victims

	used   func(bucket uint64) bool // takes the mark of a shared slot
	recent uint32                   // what look has found last; may be another bucket's, or unused, by now
}

type slot struct {
	bucket     uint64
	grant      Grant
	prev, next uint32 // older and newer
	users      uint32 // how many hold it: it must not go away
	state      state
	marked     bool // used since the hand came by
	shared     bool // readers may have used it since then, too: see table.used
}

type state uint8

const (
	unused   state = iota
	present        // pinned, and reachable by grant
	inbound        // firehose: asked for
	outbound       // firehose: given up in a message that is under way
	stale          // firehose: known to fault; own: revoked, peers still hold it
	failed         // firehose: refused, and stays until the requests for it have ended
)

// find returns a bucket's slot, or 0.
func (t *table) find(bucket uint64) uint32 { return t.index.find(bucket) }

// look returns a bucket's slot if it is present, or nil.
func (t *table) look(bucket uint64) *slot {
	if i := t.find(bucket); i != 0 && t.slots[i].state == present {
		t.recent = i
		return &t.slots[i]
	}
	return nil
}

// insert adds a bucket that is not there, as the newest, with one user.
func (t *table) insert(bucket uint64, st state) uint32 {
	if t.slots == nil {
		t.slots = make([]slot, 1, 8)
	}
	i := t.free
	if i != 0 {
		t.free = t.slots[i].next
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	newest := t.slots[0].prev
	t.slots[i] = slot{bucket: bucket, prev: newest, users: 1, state: st}
	t.slots[newest].next = i
	t.slots[0].prev = i
	t.index.set(bucket, i)
	return i
}

// remove takes a slot out that is not idle.
func (t *table) remove(i uint32) {
	s := &t.slots[i]
	t.index.remove(s.bucket)
	if t.hand == i {
		t.hand = s.next
	}
	t.slots[s.prev].next = s.next
	t.slots[s.next].prev = s.prev
	*s = slot{next: t.free}
	t.free = i
}

// use adds a user.
func (t *table) use(i uint32) {
	s := &t.slots[i]
	if s.users == 0 && s.state != outbound {
		t.idle--
	}
	s.users++
	s.marked = true
}

// useAll is use of count buckets that are there.
func (t *table) useAll(first uint64, count int) {
	for b := first; b < first+uint64(count); b++ {
		t.use(t.find(b))
	}
}

// unuse takes a user away and reports whether it was the last.
func (t *table) unuse(i uint32) bool {
	s := &t.slots[i]
	s.users--
	if s.users == 0 {
		t.idle++
		return true
	}
	return false
}

// handPatience is after how many victims, in times of what the table holds, the hand
// goes back. The fewer, the sooner is given up what is not used any more; the more, the
// better is what is used kept from what is used once: of half Zipf, half streaming over 8
// times M, 30 % are hits with 2, 32 % with 4, and 37 % if the hand never goes back.
const handPatience = 2

// victim finds an idle slot and makes it one that is not, with no users. There
// must be one. Readers mark slots again meanwhile, without the lock: once the hand has come
// by every slot twice, their marks count no more, and the search ends within another round.
func (t *table) victim() uint32 {
	if t.found++; t.found > handPatience*t.index.n {
		t.hand = 0
	}
	passed := 0
	for i := t.hand; ; passed++ {
		if i == 0 {
			i, t.found = t.slots[0].next, 0
		}
		s := &t.slots[i]
		if s.users == 0 && s.state != outbound {
			if !s.marked && !(s.shared && passed < 2*t.index.n && t.used(s.bucket)) {
				t.hand = s.next
				t.idle--
				return i
			}
			s.marked = false
		}
		i = s.next
	}
}
