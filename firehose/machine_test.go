package firehose

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

const testBucket = segment.PageSize

// fakeMemory is a rank's memory of some buckets. It hands out addresses that are
// used again as soon as they may be.
type fakeMemory struct {
	t       interface{ Fatalf(string, ...any) }
	rank    int
	budget  int
	exposed map[Addr]bool
	full    bool // registration fails
	pinned  map[Addr]Grant
	nlas    map[segment.NLA]Addr // the memory of each address, revoked ones included
	revoked map[segment.NLA]bool
	once    map[segment.NLA]span // revoked ones included
	most    int
}

// span is bytes pinned once.
type span struct {
	a Addr
	n uint64
}

// buckets is how many buckets of the budget it takes.
func (s span) buckets() int { return int((s.n + testBucket - 1) / testBucket) }

func newFakeMemory(t interface{ Fatalf(string, ...any) }, rank, budget int) *fakeMemory {
	return &fakeMemory{
		t: t, rank: rank, budget: budget, exposed: map[Addr]bool{}, pinned: map[Addr]Grant{},
		nlas: map[segment.NLA]Addr{}, revoked: map[segment.NLA]bool{}, once: map[segment.NLA]span{},
	}
}

func (f *fakeMemory) Pin(a Addr, n uint64) (Grant, error) {
	if _, twice := f.pinned[a]; twice || n != testBucket || a%testBucket != 0 {
		f.t.Fatalf("rank %d: pin of %#x, %d bytes, pinned before: %v", f.rank, a, n, twice)
	}
	if !f.exposed[a] {
		return Grant{}, ErrNotExposed
	}
	if f.full {
		return Grant{}, errs.Resource("full")
	}
	g := f.grant(a, testBucket)
	f.pinned[a] = g
	f.checkBudget()
	return g, nil
}

// grant finds addresses that are free.
func (f *fakeMemory) grant(a Addr, n uint64) (g Grant) {
	free := func(at segment.NLA) bool {
		for k := uint64(0); k < n; k += testBucket {
			if _, used := f.nlas[at+segment.NLA(k)]; used {
				return false
			}
		}
		return true
	}
	for g.NLA = segment.PageSize; !free(g.NLA); g.NLA += segment.PageSize {
	}
	for k := uint64(0); k < n; k += testBucket {
		f.nlas[g.NLA+segment.NLA(k)] = a + Addr(k)
	}
	if f.rank%2 == 1 {
		g.Key = uint64(a) + 5
	}
	return g
}

// whole reports whether all of it is exposed.
func (f *fakeMemory) whole(s span) bool {
	for b := s.a &^ (testBucket - 1); b < s.a+Addr(s.n); b += testBucket {
		if !f.exposed[b] {
			return false
		}
	}
	return true
}

// pinnedOnce is how many buckets of the budget PinOnce takes now.
func (f *fakeMemory) pinnedOnce() (n int) {
	for a, s := range f.once {
		if !f.revoked[a] {
			n += s.buckets()
		}
	}
	return n
}

func (f *fakeMemory) checkBudget() {
	n := len(f.pinned) + f.pinnedOnce()
	f.most = max(f.most, n)
	if n > f.budget {
		f.t.Fatalf("rank %d: %d buckets are pinned, the budget is %d", f.rank, n, f.budget)
	}
}

func (f *fakeMemory) PinOnce(a Addr, n uint64) (Grant, error) {
	if !f.whole(span{a, n}) {
		return Grant{}, ErrNotExposed
	}
	if f.full {
		return Grant{}, errs.Resource("full")
	}
	g := f.grant(a, n)
	f.once[g.NLA] = span{a, n}
	f.checkBudget()
	return g, nil
}

func (f *fakeMemory) drop(what string, a Addr, n uint64, g Grant) {
	s, once := f.once[g.NLA]
	if !once && (f.pinned[a] != g || n != testBucket) || once && s != (span{a, n}) || g.NLA == 0 || f.revoked[g.NLA] {
		f.t.Fatalf("rank %d: %s of %d bytes at %#x with %v, pinned as %v, once as %v", f.rank, what, n, a, g, f.pinned[a], s)
	}
	if !once {
		delete(f.pinned, a)
	}
}

func (f *fakeMemory) free(n uint64, g Grant) {
	for k := uint64(0); k < n; k += testBucket {
		delete(f.nlas, g.NLA+segment.NLA(k))
	}
	delete(f.once, g.NLA)
	delete(f.revoked, g.NLA)
}

func (f *fakeMemory) Unpin(a Addr, n uint64, g Grant) {
	f.drop("unpin", a, n, g)
	f.free(n, g)
}

func (f *fakeMemory) Revoke(a Addr, n uint64, g Grant) {
	f.drop("revoke", a, n, g)
	f.revoked[g.NLA] = true
}

func (f *fakeMemory) Forget(a Addr, n uint64, g Grant) {
	if !f.revoked[g.NLA] || f.nlas[g.NLA] != a {
		f.t.Fatalf("rank %d: forget %v of %#x, which is not revoked", f.rank, g, a)
	}
	f.free(n, g)
}

// world is several ranks, what travels between them, and the users of regions.
type world struct {
	t     *rapid.T
	ranks []*testRank
	sent  []packet
	size  uint64 // bytes that a rank has
	next  uint64 // cookie
}

type packet struct {
	src, dst int
	reply    bool
	b        []byte // nil if it is a short message, whose words follow
	move     move
	moved    moved
}

type testRank struct {
	*machine
	mem   *fakeMemory
	dead  bool
	here  map[[2]uint64]bool // firehoses granted and not left: rank, bucket
	maybe map[[2]uint64]bool // of a pin that failed because of others
	users []*user
}

// user is one operation: a remote pin, and its release.
type user struct {
	rank          int
	a             Addr
	n             uint64
	waits         uint64 // cookie, 0 if it does not wait
	once          bool   // by PinOnce
	remote        region
	faulted, done bool
}

func (w *world) newRank(r, ranks int, c Config) {
	k := &testRank{here: map[[2]uint64]bool{}, maybe: map[[2]uint64]bool{}}
	l := int(c.Budget / testBucket)
	k.mem = newFakeMemory(w.t, r, l)
	for a := uint64(0); a < w.size; a += testBucket {
		k.mem.exposed[Addr(a)] = true
	}
	c.Rank, c.Size, c.Memory = r, ranks, k.mem
	c.leave = func(rank int, a Addr) {
		key := [2]uint64{uint64(rank), uint64(a) / testBucket}
		for _, u := range k.users {
			if !k.dead && !w.ranks[rank].dead && u.rank == rank && u.remote.Valid() && !u.once && !u.done && !u.faulted && u.remote.Addr() <= a && a < u.remote.Addr()+Addr(u.remote.Len()) {
				w.t.Fatalf("rank %d: firehose to %#x of rank %d is given up while in use", r, a, rank)
			}
		}
		delete(k.here, key)
		delete(k.maybe, key)
	}
	m, err := newMachine(c)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	k.machine = m
	w.ranks = append(w.ranks, k)
}

// pump takes out what rank k has to send and what it has completed.
func (w *world) pump(k *testRank) {
	for {
		if m, ok := k.NextMessage(); ok {
			w.sent = append(w.sent, packet{src: k.c.Rank, dst: m.Dst, b: slices.Clone(m.Payload), move: m.Move})
			k.Recycle(m.Payload)
			continue
		}
		d, ok := k.NextDone()
		if !ok {
			return
		}
		w.ended(k, d)
	}
}

// ended takes the end of a pin that waited.
func (w *world) ended(k *testRank, d ended) {
	i := slices.IndexFunc(k.users, func(u *user) bool { return u.waits == d.Cookie })
	if i < 0 {
		w.t.Fatalf("rank %d: completion of %d, which does not wait", k.c.Rank, d.Cookie)
	}
	k.users[i].waits = 0
	w.granted(k, k.users[i], d.Pinned, d.Err)
}

func (w *world) granted(k *testRank, u *user, r region, err error) {
	if err != nil {
		if r.Valid() || !errors.Is(err, ErrNotExposed) && !errors.Is(err, errs.ErrResource) && !errors.Is(err, errs.ErrPeer) {
			w.t.Fatalf("rank %d: %v, %v", k.c.Rank, r, err)
		}
		for b := uint64(u.a) / testBucket; !u.once && b <= (uint64(u.a)+u.n-1)/testBucket; b++ {
			k.maybe[[2]uint64{uint64(u.rank), b}] = true
		}
		w.end(k, u)
		return
	}
	if u.once {
		if r.Addr() != u.a || r.Len() != u.n || r.Rank() != u.rank {
			w.t.Fatalf("rank %d: asked for %d bytes at %#x of rank %d, granted %d at %#x of rank %d", k.c.Rank, u.n, u.a, u.rank, r.Len(), r.Addr(), r.Rank())
		}
		u.remote = r
		return
	}
	a, n := u.a, u.n
	if r.Addr() > a || r.Addr()+Addr(r.Len()) < a+Addr(n) || r.Addr()+testBucket <= a || r.Addr()+Addr(r.Len()) >= a+Addr(n)+testBucket {
		w.t.Fatalf("rank %d: asked for %d bytes at %#x, granted %d at %#x", k.c.Rank, n, a, r.Len(), r.Addr())
	}
	u.remote = r
	for b := uint64(r.Addr()) / testBucket; b < (uint64(r.Addr())+r.Len())/testBucket; b++ {
		k.here[[2]uint64{uint64(u.rank), b}] = true
	}
}

// end releases what u has.
func (w *world) end(k *testRank, u *user) {
	u.done = true
	if r := u.remote; r.Valid() {
		if err := k.Release(r); err != nil {
			w.t.Fatalf("rank %d: %v", k.c.Rank, err)
		}
	}
	k.users = slices.DeleteFunc(k.users, func(v *user) bool { return v == u })
}

// deliver hands over packet i, and returns whether it was a request.
func (w *world) deliver(i int) {
	p := w.sent[i]
	w.sent = slices.Delete(w.sent, i, i+1)
	dst := w.ranks[p.dst]
	if dst.dead || w.ranks[p.src].dead {
		return
	}
	switch {
	case p.reply && p.b == nil:
		if d, ok := dst.ReceiveMoved(p.src, p.moved); ok {
			w.ended(dst, d)
		}
	case p.reply:
		dst.ReceiveReply(p.src, p.b)
	case p.b == nil:
		moved, ok := dst.ReceiveMove(p.src, p.move)
		if !ok {
			w.t.Fatalf("move of rank %d is not answered", p.src)
		}
		w.sent = append(w.sent, packet{src: p.dst, dst: p.src, reply: true, moved: moved})
		w.vacate(dst)
	default:
		once := p.b[8] == kindOnce
		want := once && w.onceFits(dst, span{Addr(word(p.b[headBytes:], 0)), word(p.b[headBytes:], 1)})
		b, ok := dst.Receive(p.src, p.b, nil)
		if ok != (p.b[8] != kindDrop) {
			w.t.Fatalf("request of rank %d of kind %d is answered: %v", p.src, p.b[8], ok)
		}
		if granted := once && valid(segment.NLA(word(b[headBytes:], 0))); granted != want {
			w.t.Fatalf("rank %d pins at once for rank %d: %v, there is room: %v", p.dst, p.src, granted, want)
		}
		if !ok {
			w.pump(dst)
			return
		}
		if len(b) > dst.c.Payload || len(p.b) > dst.c.Payload {
			w.t.Fatalf("messages of %d and %d bytes, at most %d fit", len(p.b), len(b), dst.c.Payload)
		}
		w.sent = append(w.sent, packet{src: p.dst, dst: p.src, reply: true, b: b})
		w.vacate(dst)
	}
	w.pump(dst)
}

// vacate has k make room ahead, sometimes: then what is unpinned is not in use,
// and the next pin unpins nothing.
func (w *world) vacate(k *testRank) {
	if !rapid.Bool().Draw(w.t, "vacate") {
		return
	}
	idle, room := k.own.idle, k.pinned+k.onceUse < k.l.Budget
	k.Vacate()
	if room && k.own.idle != idle {
		w.t.Fatalf("rank %d has unpinned %d buckets though it had room", k.c.Rank, idle-k.own.idle)
	}
	if k.own.idle > 0 && k.pinned+k.onceUse == k.l.Budget {
		w.t.Fatalf("rank %d has no room: %d are idle of %d", k.c.Rank, k.own.idle, k.l.Budget)
	}
	if k.own.idle < idle && k.pinned+k.onceUse == k.l.Budget {
		w.t.Fatalf("rank %d has unpinned %d buckets and has no room", k.c.Rank, idle-k.own.idle)
	}
}

// onceFits: k can pin s, for which no pin is made to wait.
func (w *world) onceFits(k *testRank, s span) bool {
	return k.mem.whole(s) && !k.mem.full && k.mem.pinnedOnce()+s.buckets() <= k.l.Local
}

// check compares all ranks' tables with each other and with what is in use.
func (w *world) check() {
	for r, k := range w.ranks {
		if k.dead {
			continue
		}
		if k.stats.Violations != 0 {
			w.t.Fatalf("rank %d: %d violations", r, k.stats.Violations)
		}
		for _, p := range k.peers {
			q := p.rank
			if w.ranks[q].dead {
				continue
			}
			if p.holds.n > k.l.Share || p.held > k.l.Share {
				w.t.Fatalf("rank %d and %d: %d and %d firehoses, the share is %d", r, q, p.holds.n, p.held, k.l.Share)
			}
			w.recount(fmt.Sprintf("rank %d to %d", r, q), &p.t)
			// A firehose here is one there.
			for i := p.t.first(); i != 0; i = p.t.slots[i].next {
				b := p.t.slots[i].bucket
				if st := p.t.slots[i].state; st == present || st == stale {
					if w.ranks[q].peer(r).holds.find(b) == 0 {
						w.t.Fatalf("rank %d has a firehose to bucket %d of rank %d, which does not know", r, b, q)
					}
				}
			}
		}
		w.recount(fmt.Sprintf("rank %d", r), &k.own)
		k.countUsers(w.t)
		if k.pinned != len(k.mem.pinned) {
			w.t.Fatalf("rank %d: %d pinned, counted %d", r, len(k.mem.pinned), k.pinned)
		}
		for _, u := range k.users {
			w.reaches(k, u.remote)
		}
		if k.onceUse != k.mem.pinnedOnce() || k.onceUse > k.l.Local {
			w.t.Fatalf("rank %d: %d buckets pinned once, counted %d", r, k.mem.pinnedOnce(), k.onceUse)
		}
	}
}

// reaches: each bucket of a region in use is pinned under the address that its
// user has, or it was withdrawn and the address is not given again.
func (w *world) reaches(k *testRank, r region) {
	if !r.Valid() || w.ranks[r.Rank()].dead {
		return
	}
	owner := w.ranks[r.Rank()].mem
	if r.once() {
		g, n := k.At(r, r.Addr()+Addr(r.Len()-1))
		if s, ok := owner.once[g.NLA-segment.NLA(r.Len()-1)]; !ok || n != 1 || s != (span{r.Addr(), r.Len()}) {
			w.t.Fatalf("rank %d uses %d bytes at %#x of rank %d by %v, which is %v", k.c.Rank, r.Len(), r.Addr(), r.Rank(), g, s)
		}
	}
	for a := r.Addr(); !r.once() && a < r.Addr()+Addr(r.Len()); a += testBucket {
		g, n := k.At(r, a+7)
		g.NLA -= 7
		if n != testBucket-7 {
			w.t.Fatalf("%d bytes from byte 7 of a bucket on", n)
		}
		if owner.nlas[g.NLA] != a || owner.pinned[a] != g && !owner.revoked[g.NLA] {
			w.t.Fatalf("rank %d uses %#x of rank %d by %v, which is %#x and pinned as %v", k.c.Rank, a, r.Rank(), g, owner.nlas[g.NLA], owner.pinned[a])
		}
	}
	if g, n := k.At(r, r.Addr()+Addr(r.Len())); g.NLA != 0 || n != 0 {
		w.t.Fatalf("beyond the region: %v, %d", g, n)
	}
}

// countUsers: the users of own buckets are those that hold them.
func (m *machine) countUsers(t interface{ Fatalf(string, ...any) }) {
	holders := map[uint64]uint32{}
	for _, p := range m.peers {
		n, twice := 0, map[uint64]bool{}
		for _, c := range p.holds.cells {
			if c.slot == 0 {
				continue
			}
			if m.own.find(c.bucket) != c.slot {
				t.Fatalf("rank %d holds bucket %d in slot %d, it is in %d", p.rank, c.bucket, c.slot, m.own.find(c.bucket))
			}
			if twice[c.bucket] {
				t.Fatalf("rank %d holds bucket %d twice", p.rank, c.bucket)
			}
			twice[c.bucket] = true
			holders[c.bucket]++
			n++
		}
		if n != p.holds.n {
			t.Fatalf("rank %d holds %d, counted %d", p.rank, n, p.holds.n)
		}
	}
	for i := m.own.first(); i != 0; i = m.own.slots[i].next {
		s := &m.own.slots[i]
		if s.users != holders[s.bucket] {
			t.Fatalf("bucket %d: %d users, and %d firehoses", s.bucket, s.users, holders[s.bucket])
		}
		delete(holders, s.bucket)
	}
	if len(holders) > 0 {
		t.Fatalf("firehoses to what is not there: %v", holders)
	}
}

func (w *world) recount(what string, t *table) {
	idle, n := 0, 0
	for i := t.first(); i != 0; i = t.slots[i].next {
		n++
		s := &t.slots[i]
		if s.users == 0 && s.state != outbound {
			idle++
		}
		if t.find(s.bucket) != i || t.slots[s.next].prev != i || s.state == inbound && s.users == 0 || s.state == outbound && s.users > 0 {
			w.t.Fatalf("%s: slot %d: %+v", what, i, s)
		}
	}
	if idle != t.idle || n != t.index.n {
		w.t.Fatalf("%s: %d idle, counted %d; %d in all, counted %d", what, idle, t.idle, n, t.index.n)
	}
}

// drain lets everything come to its end: nothing may wait for ever.
func (w *world) drain() {
	for _, k := range w.ranks {
		k.mem.full = false
	}
	for {
		w.check()
		busy := false
		for len(w.sent) > 0 {
			w.deliver(0)
			busy = true
		}
		for _, k := range w.ranks {
			if k.dead {
				continue
			}
			for _, u := range slices.Clone(k.users) {
				if u.waits == 0 && !u.done {
					w.end(k, u)
					busy = true
				}
			}
			w.pump(k)
			busy = busy || len(w.sent) > 0
		}
		if !busy {
			break
		}
	}
	for r, k := range w.ranks {
		if !k.dead && len(k.users) > 0 {
			w.t.Fatalf("rank %d: %d wait for ever, the first is %+v", r, len(k.users), *k.users[0])
		}
	}
}

// TestMachineModel runs several ranks with small budgets, whose messages arrive
// in any order, and whose users pin, access and release; memory is withdrawn,
// cannot be registered, and ranks die.
func TestMachineModel(t *testing.T) {
	var first int
	defer func() {
		if !testing.Short() && first == 0 { // fewer programs may lack them
			t.Error("no request is sent ahead of the tables")
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, size: 12 * testBucket}
		ranks := rapid.IntRange(2, 4).Draw(t, "ranks")
		share := rapid.IntRange(1, 4).Draw(t, "share")
		local := rapid.IntRange(1, 3).Draw(t, "local")
		c := Config{
			Budget: uint64(share*(ranks-1)+local)*testBucket + 100, Local: uint64(local)*testBucket + 7, Bucket: testBucket,
			Payload: rapid.SampledFrom([]int{minPayload, 512}).Draw(t, "payload"),
		}
		for r := range ranks {
			w.newRank(r, ranks, c)
		}
		alive := func(t *rapid.T) *testRank {
			k := w.ranks[rapid.IntRange(0, ranks-1).Draw(t, "rank")]
			if k.dead {
				t.Skip()
			}
			return k
		}
		some := func(t *rapid.T, k *testRank, ok func(*user) bool) *user {
			var us []*user
			for _, u := range k.users {
				if ok(u) {
					us = append(us, u)
				}
			}
			if len(us) == 0 {
				t.Skip()
			}
			return us[rapid.IntRange(0, len(us)-1).Draw(t, "user")]
		}
		place := func(t *rapid.T, limit uint64) (Addr, uint64) {
			n := rapid.OneOf(rapid.Just(uint64(1)), rapid.Uint64Range(1, max(1, limit))).Draw(t, "n")
			return Addr(rapid.Uint64Range(0, w.size-n).Draw(t, "a")), n
		}
		t.Repeat(map[string]func(*rapid.T){
			"pin": func(t *rapid.T) {
				k := alive(t)
				u := &user{rank: (k.c.Rank + rapid.IntRange(1, ranks-1).Draw(t, "to")) % ranks}
				u.a, u.n = place(t, k.l.MaxRemote)
				w.next++
				sent := len(w.sent)
				k.first = nil
				if rapid.Bool().Draw(t, "first") {
					k.first = func(dst int, m move) bool {
						w.sent = append(w.sent, packet{src: k.c.Rank, dst: dst, move: m})
						first++
						return true
					}
				}
				r, ok, err := k.RemotePin(u.rank, u.a, u.n, w.next)
				if w.ranks[u.rank].dead {
					if !errors.Is(err, errs.ErrPeer) {
						t.Fatalf("pin at a dead rank: %v", err)
					}
					return
				}
				k.users = append(k.users, u)
				if ok || err != nil {
					w.granted(k, u, r, err)
				} else {
					u.waits = w.next
				}
				w.pump(k)
				if n := len(w.sent) - sent; n > 1 || ok && n > 0 {
					t.Fatalf("%d messages for one pin, granted: %v", n, ok)
				}
			},
			"try": func(t *rapid.T) {
				k := alive(t)
				u := &user{rank: (k.c.Rank + 1) % ranks}
				u.a, u.n = place(t, 2*testBucket)
				waiting := slices.ContainsFunc(k.users, func(v *user) bool { return v.rank == u.rank && v.waits != 0 })
				usable, maybe := true, false
				for b := uint64(u.a) / testBucket; b <= (uint64(u.a)+u.n-1)/testBucket; b++ {
					usable = usable && k.here[[2]uint64{uint64(u.rank), b}]
					maybe = maybe || k.maybe[[2]uint64{uint64(u.rank), b}]
				}
				dead := w.ranks[u.rank].dead
				wasStale := false
				if p := k.known(u.rank); p != nil {
					for i := p.t.first(); i != 0; i = p.t.slots[i].next {
						wasStale = wasStale || p.t.slots[i].state == stale
					}
				}
				g, look := k.Look(u.rank, u.a, u.n)
				r, ok := k.TryRemotePin(u.rank, u.a, u.n)
				fits := (uint64(u.a)+u.n-1)/testBucket-uint64(u.a)/testBucket < uint64(k.l.maxBuckets)
				if ok && (!usable && !maybe || dead) || !ok && usable && fits && !waiting && !dead && !wasStale {
					t.Fatalf("try: %v, all is here: %v, others wait: %v", ok, usable, waiting)
				}
				one := uint64(u.a)/testBucket == (uint64(u.a)+u.n-1)/testBucket
				if at, _ := k.At(r, u.a); look != (ok && one) || look && at != g {
					t.Fatalf("look: %v, %v, try: %v, %v", look, g, ok, at)
				}
				if !k.out.Empty() {
					t.Fatalf("try sends")
				}
				if ok {
					k.users = append(k.users, u)
					w.granted(k, u, r, nil)
				}
			},
			"once": func(t *rapid.T) {
				k := alive(t)
				u := &user{rank: (k.c.Rank + rapid.IntRange(1, ranks-1).Draw(t, "to")) % ranks, once: true}
				u.a, u.n = place(t, k.l.MaxOnce+100)
				w.next++
				err := k.PinOnce(u.rank, u.a, u.n, w.next)
				if dead := w.ranks[u.rank].dead; dead && u.n <= k.l.MaxOnce && !errors.Is(err, errs.ErrPeer) || !dead && (err == nil) != (u.n <= k.l.MaxOnce) || err != nil && !dead && !errors.Is(err, errs.ErrResource) {
					t.Fatalf("%d of at most %d bytes at once, the owner is dead: %v: %v", u.n, k.l.MaxOnce, dead, err)
				}
				if err != nil {
					return
				}
				k.users = append(k.users, u)
				u.waits = w.next
				w.pump(k)
			},
			"release": func(t *rapid.T) {
				k := alive(t)
				w.end(k, some(t, k, func(u *user) bool { return u.waits == 0 }))
				w.pump(k)
			},
			"deliver": func(t *rapid.T) {
				if len(w.sent) == 0 {
					t.Skip()
				}
				w.deliver(rapid.IntRange(0, len(w.sent)-1).Draw(t, "packet"))
			},
			"withdraw": func(t *rapid.T) {
				k := alive(t)
				a, n := place(t, 3*testBucket)
				for b := a &^ (testBucket - 1); b < a+Addr(n); b += testBucket {
					k.mem.exposed[b] = false
				}
				if err := k.Withdraw(a, n); err != nil {
					t.Fatal(err)
				}
				for b := a &^ (testBucket - 1); b < a+Addr(n); b += testBucket {
					if _, still := k.mem.pinned[b]; still {
						t.Fatalf("rank %d: %#x is pinned after it was withdrawn", k.c.Rank, b)
					}
				}
				for g, s := range k.mem.once {
					if s.a < a+Addr(n) && a < s.a+Addr(s.n) && !k.mem.revoked[g] {
						t.Fatalf("rank %d: %v is pinned after %d bytes at %#x were withdrawn", k.c.Rank, s, n, a)
					}
				}
				w.pump(k)
			},
			"expose": func(t *rapid.T) {
				k := alive(t)
				for a := range k.mem.exposed {
					k.mem.exposed[a] = true
				}
			},
			"full": func(t *rapid.T) { k := alive(t); k.mem.full = !k.mem.full },
			"access": func(t *rapid.T) { // finds out that memory was withdrawn
				k := alive(t)
				u := some(t, k, func(u *user) bool { return u.remote.Valid() && !w.ranks[u.rank].dead })
				mem := w.ranks[u.rank].mem
				for a := u.remote.Addr(); a < u.remote.Addr()+Addr(u.remote.Len()); a += testBucket {
					if g, _ := k.At(u.remote, a); mem.revoked[g.NLA] {
						u.faulted = true
					}
				}
				if u.faulted {
					k.Stale(u.remote)
				}
			},
			"die": func(t *rapid.T) {
				if rapid.IntRange(0, 30).Draw(t, "die") > 0 {
					t.Skip()
				}
				k := alive(t)
				k.dead = true
				for _, o := range w.ranks {
					if !o.dead {
						o.Fail(k.c.Rank, errors.New("killed"))
						w.pump(o)
					}
				}
			},
			"drain": func(t *rapid.T) {
				if rapid.IntRange(0, 10).Draw(t, "drain") > 0 {
					t.Skip()
				}
				w.drain()
			},
			"": func(t *rapid.T) { w.check() },
		})
		w.drain()
		for r, k := range w.ranks {
			if k.dead {
				continue
			}
			if len(k.mem.once) > 0 || len(k.onceHeld) > 0 || len(k.once) != len(k.freeOnce) {
				t.Fatalf("rank %d: %v stays pinned once, held: %v, of others: %v, free: %v", r, k.mem.once, k.onceHeld, k.once, k.freeOnce)
			}
			if k.stats.PeakPinned != uint64(k.mem.most)*testBucket || k.stats.PeakPinned > c.Budget {
				t.Fatalf("rank %d: peak of %d, counted %d", r, k.mem.most*testBucket, k.stats.PeakPinned)
			}
			k.Close()
			if len(k.mem.pinned)+len(k.mem.nlas)+len(k.mem.revoked) > 0 {
				t.Fatalf("rank %d: after Close %v is pinned, %v has addresses", r, k.mem.pinned, k.mem.nlas)
			}
		}
	})
}

// asker is rank 0 of two, with its requests' answers in the test's hands.
type asker struct {
	t    *testing.T
	a, b *machine
	mem  *fakeMemory // b's

	ended []ended // that came with replies
}

// next is a pin of a's that has come to its end.
func (k *asker) next() (d ended, ok bool) {
	if len(k.ended) == 0 {
		return k.a.NextDone()
	}
	d, k.ended = k.ended[0], k.ended[1:]
	return d, true
}

func newAsker(t *testing.T, share int) *asker {
	c := Config{Size: 2, Budget: uint64(share+1) * testBucket, Local: testBucket}
	k := &asker{t: t}
	k.a, _ = newTest(t, c)
	c.Rank = 1
	k.b, k.mem = newTest(t, c)
	return k
}

// reply is b's, of either form.
type reply struct {
	moved moved
	b     []byte
}

// answer carries the next request over and returns the reply.
func (k *asker) answer() (r reply) {
	k.t.Helper()
	q, ok := k.a.NextMessage()
	if !ok {
		k.t.Fatal("no request")
	}
	if q.Payload == nil {
		r.moved, ok = k.b.ReceiveMove(0, q.Move)
	} else {
		r.b, ok = k.b.Receive(0, q.Payload, nil)
	}
	if !ok {
		k.t.Fatal("no reply")
	}
	return r
}

// take gives a the reply.
func (k *asker) take(r reply) {
	if r.b == nil {
		if d, ok := k.a.ReceiveMoved(1, r.moved); ok {
			k.ended = append(k.ended, d)
		}
	} else {
		k.a.ReceiveReply(1, r.b)
	}
}

// pin is a remote pin of whole buckets.
func (k *asker) pin(first, count int, cookie uint64) (region, bool) {
	k.t.Helper()
	r, ok, err := k.a.RemotePin(1, Addr(first*testBucket), uint64(count*testBucket), cookie)
	if err != nil {
		k.t.Fatal(err)
	}
	return r, ok
}

// done expects the end of one pin.
func (k *asker) done(cookie uint64, want error) region {
	k.t.Helper()
	d, ok := k.next()
	if !ok || d.Cookie != cookie || !errors.Is(d.Err, want) {
		k.t.Fatalf("%v, %+v, want %d with %v", ok, d, cookie, want)
	}
	return d.Pinned
}

// TestNoVictimOfItsOwn: a pin does not count on moving firehoses that it needs
// itself; and what has to queue is not overtaken by a try.
func TestNoVictimOfItsOwn(t *testing.T) {
	k := newAsker(t, 2)
	k.pin(0, 2, 1)
	k.take(k.answer())
	both := k.done(1, nil)
	zero, ok := k.pin(0, 1, 2) // bucket 0 is in use, 1 will be idle
	if err := k.a.Release(both); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, ok := k.pin(1, 2, 3); ok {
		t.Fatal("pinned more than the share")
	}
	if _, ok := k.a.NextMessage(); ok {
		t.Fatal("asks for more than the share")
	}
	if _, ok := k.a.TryRemotePin(1, 0, 1); ok {
		t.Error("a try overtakes")
	}
	if _, ok := k.a.Look(1, 0, 1); ok {
		t.Error("a look overtakes")
	}
	if _, ok := k.pin(0, 1, 4); ok {
		t.Error("a hit overtakes")
	}
	if err := k.a.Release(zero); err != nil {
		t.Fatal(err)
	}
	k.take(k.answer())
	r := k.done(3, nil)
	if _, ok := k.next(); ok {
		t.Error("pinned more than the share")
	}
	if err := k.a.Release(r); err != nil {
		t.Fatal(err)
	}
	k.take(k.answer())
	k.done(4, nil)
}

// TestFailedBucketIsKept: a pin that has failed in one bucket and waits for
// another still stands for the first, which must not be asked for anew and then
// be released by the wrong one.
func TestFailedBucketIsKept(t *testing.T) {
	k := newAsker(t, 3)
	k.mem.exposed[0] = false
	k.pin(0, 1, 1)
	first := k.answer()
	k.pin(0, 2, 2) // waits for the first's bucket 0, too
	second := k.answer()
	k.take(first)
	k.done(1, ErrNotExposed)
	k.mem.exposed[0] = true
	k.pin(0, 1, 3)
	if _, ok := k.a.NextMessage(); ok {
		t.Error("a bucket is asked for while a pin that failed with it waits")
	}
	k.take(second)
	k.done(2, ErrNotExposed)
	k.take(k.answer())
	r := k.done(3, nil)
	if i := k.a.peer(1).t.find(0); k.a.peer(1).t.slots[i].users != 1 {
		t.Errorf("%d users", k.a.peer(1).t.slots[i].users)
	}
	if err := k.a.Release(r); err != nil {
		t.Error(err)
	}
}

// TestOvertaking: a firehose that is given up is not asked for again before the
// owner has confirmed it, for messages may overtake each other.
func TestOvertaking(t *testing.T) {
	k := newAsker(t, 1)
	k.pin(0, 1, 1)
	k.take(k.answer())
	if err := k.a.Release(k.done(1, nil)); err != nil {
		t.Fatal(err)
	}
	k.pin(1, 1, 2) // moves it from bucket 0
	moved := k.answer()
	k.pin(0, 1, 3)
	if _, ok := k.a.NextMessage(); ok {
		t.Error("asked for again")
	}
	k.take(moved)
	if err := k.a.Release(k.done(2, nil)); err != nil {
		t.Fatal(err)
	}
	k.take(k.answer())
	k.done(3, nil)
}
