//go:build ofi && cgo

package ofi

// Memory that a rank registers beyond its segment is registered with the provider, too, and
// long puts and gets of it are remote accesses. Its key is told to peers that ask, with the
// check that precedes an access to such memory, and they keep it. Before the memory is let
// go of, all that have the key give it up: each answers when no access of its own is under
// way by it. So no access by an old key is ever posted, which would cost a connection on
// some providers.
//
// A key is numbered, for ever, and its owner counts how often it has told it to a peer. An
// answer with a key and the word that takes it back may overtake each other: that word has
// the count, and answers that come late are of a key that is not used any more.

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sort"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/segment"
)

var _ conduits.Registering = (*transport)(nil)

// ownKeys are the keys of this rank's registered memory, guarded by transport.mu.
type ownKeys struct {
	live   []*ownKey // by address
	local  []*ownKey // the same by address of the memory, with MRLocal
	last   uint64    // number given
	going  map[uint64]*ownKey
	native bool // memory is registered with the provider
}

// ownKey is a run of registered memory.
type ownKey struct {
	number  uint64
	run     segment.Run
	region  fabric.Region
	holders map[*peer]uint32 // and how often they were told the key
	locals  int              // accesses of this rank under way whose local side it is
	done    chan struct{}    // closed when the last of them has given it up, after it was recalled
}

// remoteKey is a peer's run.
type remoteKey struct {
	number uint64
	at     segment.NLA
	n      uint64
	base   uint64
	key    uint64
	mapped bool           // key is one that MapKey has made
	rights segment.Rights // of this rank
	told   uint32
	uses   int  // accesses that are queued or under way
	going  bool // its owner has asked for it
}

// remoteKeys are the keys of one peer's memory that this rank has been told.
type remoteKeys struct {
	live []*remoteKey      // by address
	late map[uint64]uint32 // answers on their way, by number, with keys that were recalled before
}

// find is the key of [a, a+n) if one covers it.
func (k *remoteKeys) find(a segment.NLA, n uint64, need segment.Rights) *remoteKey {
	i := sort.Search(len(k.live), func(i int) bool { return k.live[i].at > a })
	if i == 0 {
		return nil
	}
	x := k.live[i-1]
	if off := uint64(a - x.at); off > x.n || x.n-off < n || x.rights&need != need {
		return nil
	}
	return x
}

// Register makes r known to the provider. Memory that it does not take is reached by
// messages.
func (t *transport) Register(r segment.Run) error {
	if len(r.Mem) < leastRemote || r.Rights&(segment.RightRead|segment.RightWrite) == 0 {
		return nil
	}
	t.mu.Lock()
	native := !t.over && t.own.native
	t.mu.Unlock()
	// Not under mu, for which peers' probes wait.
	if !native || t.ep.Populate(r.Mem) != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil
	}
	region, err := t.ep.Register(r.Mem, t.uses(r.Rights))
	if err != nil {
		return nil
	}
	t.own.last++
	k := &ownKey{number: t.own.last, run: r, region: region, holders: map[*peer]uint32{}, done: make(chan struct{})}
	i, _ := slices.BinarySearchFunc(t.own.live, r.At, func(k *ownKey, a segment.NLA) int { return compare(k.run.At, a) })
	t.own.live = slices.Insert(t.own.live, i, k)
	if t.ep.MR&fabric.MRLocal != 0 {
		i := sort.Search(len(t.own.local), func(i int) bool { return address(t.own.local[i].run.Mem) > address(r.Mem) })
		t.own.local = slices.Insert(t.own.local, i, k)
	}
	return nil
}

// covering is the registered memory that all of mem lies in, or nil if none of what begins
// nearest before it has all, with mu held.
func (k *ownKeys) covering(mem []byte) *ownKey {
	at := address(mem)
	i := sort.Search(len(k.local), func(i int) bool { return address(k.local[i].run.Mem) > at })
	if i == 0 {
		return nil
	}
	x := k.local[i-1]
	if off, n := at-address(x.run.Mem), uintptr(len(x.run.Mem)); off > n || n-off < uintptr(len(mem)) {
		return nil
	}
	return x
}

func compare(a, b segment.NLA) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Deregister returns when no peer accesses the memory by r any more. It makes progress
// itself for a while, and leaves it to the standby poller then.
func (t *transport) Deregister(r segment.Run) {
	t.mu.Lock()
	i, ok := slices.BinarySearchFunc(t.own.live, r.At, func(k *ownKey, a segment.NLA) int { return compare(k.run.At, a) })
	if !ok {
		t.mu.Unlock()
		return
	}
	k := t.own.live[i]
	t.own.live = slices.Delete(t.own.live, i, i+1)
	if i := slices.Index(t.own.local, k); i >= 0 {
		t.own.local = slices.Delete(t.own.local, i, i+1)
	}
	if t.own.going == nil {
		t.own.going = map[uint64]*ownKey{}
	}
	t.own.going[k.number] = k
	if t.over || t.Err() != nil {
		clear(k.holders)
	}
	for p, told := range k.holders {
		if p.left {
			delete(k.holders, p)
			continue
		}
		p.recalls.Add(record{kind: kindRecall, addr: k.number, op: told})
		t.cut(p)
		t.shut(p, accesses)
		t.makeDue(p)
		t.attend()
	}
	t.released(k)
	t.mu.Unlock()
	for range recallSpins {
		select {
		case <-k.done:
		default:
			t.rx.Lock()
			t.progress(false)
			t.rx.Unlock()
			runtime.Gosched()
		}
	}
	t.parked.Add(1)
	t.standby.poke()
	<-k.done
	t.parked.Add(-1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return // closed with the endpoint
	}
	if err := t.ep.Deregister(k.region); err != nil {
		t.failSoon(t.rank, err)
	}
}

// recallSpins is how often Deregister looks itself for answers, some 50 us.
const recallSpins = 64

// released ends the wait for k if it is recalled, has no holder any more and is in no use by this
// rank, with mu held.
func (t *transport) released(k *ownKey) {
	if t.own.going[k.number] == k && len(k.holders) == 0 && k.locals == 0 {
		delete(t.own.going, k.number)
		close(k.done)
	}
}

// forgo forgets that p, or any rank if it is nil, has keys of this one: it will post nothing
// any more, with mu held. If it is nil and the endpoint is cut, no access of this rank is under way
// any more, either.
func (t *transport) forgo(p *peer, cut bool) {
	for _, k := range t.own.live {
		switch {
		case p != nil:
			delete(k.holders, p)
		case cut:
			k.locals = 0
		}
	}
	for _, k := range t.own.going {
		if p != nil {
			delete(k.holders, p)
		} else {
			clear(k.holders)
			if cut {
				k.locals = 0
			}
		}
		t.released(k)
	}
}

// grantBytes is a key as it is told, but for its bytes.
const grantBytes = 40

// grant adds to the answer to a check of p the key of [a, a+n), if there is one.
func (t *transport) grant(p *peer, o *reply, a segment.NLA, n uint64, need segment.Rights) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := sort.Search(len(t.own.live), func(i int) bool { return t.own.live[i].run.At > a })
	if i == 0 || t.over || p.left {
		return
	}
	k := t.own.live[i-1]
	off, size := uint64(a-k.run.At), uint64(len(k.run.Mem))
	if off > size || size-off < n || k.run.Rights&need != need || k.run.Peer != segment.AnyPeer && k.run.Peer != p.rank {
		return
	}
	k.holders[p]++
	le := binary.LittleEndian
	b := le.AppendUint64(nil, k.number)
	b = le.AppendUint64(b, uint64(k.run.At))
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, k.region.Base)
	b = le.AppendUint64(b, uint64(k.run.Rights))
	o.data = append(b, keyBytes(k.region)...)
	o.code, o.length = codeKey, uint32(len(o.data))
}

// keyBytes is a key as it travels.
func keyBytes(r fabric.Region) []byte {
	if r.Raw != nil {
		return r.Raw
	}
	return binary.LittleEndian.AppendUint64(nil, r.Key)
}

// keyOf is the key that travelled as b, with mu held.
func (t *transport) keyOf(base uint64, b []byte) (key uint64, mapped, ok bool) {
	if t.ep.MR&fabric.MRRaw != 0 {
		key, err := t.ep.MapKey(base, b)
		return key, err == nil, err == nil
	}
	if len(b) != 8 {
		return 0, false, false
	}
	return binary.LittleEndian.Uint64(b), false, true
}

// granted takes in a key of p, with mu held, and reports whether there is one now.
func (t *transport) granted(p *peer, b []byte) bool {
	le := binary.LittleEndian
	k := &remoteKey{number: le.Uint64(b), at: segment.NLA(le.Uint64(b[8:])), n: le.Uint64(b[16:]), base: le.Uint64(b[24:]), rights: segment.Rights(le.Uint64(b[32:])), told: 1}
	if n, ok := p.keys.late[k.number]; ok {
		if n--; n == 0 {
			delete(p.keys.late, k.number)
		} else {
			p.keys.late[k.number] = n
		}
		return false
	}
	i, ok := slices.BinarySearchFunc(p.keys.live, k.at, func(k *remoteKey, a segment.NLA) int { return compare(k.at, a) })
	if ok && p.keys.live[i].number == k.number {
		p.keys.live[i].told++
		return true
	}
	if k.key, k.mapped, ok = t.keyOf(k.base, b[grantBytes:]); !ok {
		k.rights = 0 // counted, and not used
	}
	p.keys.live = slices.Insert(p.keys.live, i, k)
	return ok
}

// yieldKey gives a key back that p has told this rank so often, when no access goes by it any
// more, with rx held.
func (t *transport) yieldKey(p *peer, number uint64, told uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(p.keys.live, func(k *remoteKey) bool { return k.number == number })
	have := uint32(0)
	if i >= 0 {
		have = p.keys.live[i].told
	}
	if told > have {
		if p.keys.late == nil {
			p.keys.late = map[uint64]uint32{}
		}
		p.keys.late[number] = told - have
	}
	if i < 0 {
		t.reply(p, reply{record: record{kind: kindRecalled, addr: number}})
		return
	}
	k := p.keys.live[i]
	p.keys.live = slices.Delete(p.keys.live, i, i+1)
	k.going = true
	k.uses++
	t.unuse(p, k)
}

// unuse ends an access by k, with rx and mu held.
func (t *transport) unuse(p *peer, k *remoteKey) {
	if k.uses--; k.uses > 0 || !k.going {
		return
	}
	if k.mapped {
		t.ep.UnmapKey(k.key)
	}
	t.reply(p, reply{record: record{kind: kindRecalled, addr: k.number}})
}

// givenUp takes in that p has given up a key, with mu held.
func (t *transport) givenUp(p *peer, number uint64) {
	if k := t.own.going[number]; k != nil {
		delete(k.holders, p)
		t.released(k)
	}
}
