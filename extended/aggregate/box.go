package aggregate

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// Spec describes a box.
type Spec struct {
	Name string // for messages to people; the same on all ranks
	Size int    // of an item, bytes: 1 to MaxItem
	// Deliver gets items that rank src has pushed, one behind the other, and aligned to 8
	// bytes if Size is a multiple of 8. They are valid until it returns. It runs on the
	// goroutine that is in Push, Send, Poll or Sync, and may do what that may, but for calls
	// that are collective; what it pushes is queued and never waits.
	Deliver func(src int, items []byte)
	// Flush, if it is not nil, sends what the caller keeps back; Sync calls it, also after
	// items were delivered.
	Flush func() error
}

// Box takes items for other ranks and hands out those for this one.
type Box struct {
	c      *Aggregator
	spec   Spec
	number uint32
	epoch  uint32 // of Sync
	closed bool
	// started says that items may be delivered.
	started bool
	peers   map[int]*peer // written with the endpoint's lock held, by the goroutine in a call
	packs   map[hop]*pack
	held    []batch // see handle
	queued  int     // bytes that wait to be sent
	onward  int     // of queued, those of other ranks

	sent, handled uint64 // batches
}

// peer is the state of a box for one rank.
type peer struct {
	b      *Box
	rank   int
	queue  conc.Queue[batch]
	queued int           // bytes of queue
	sent   uint64        // bytes
	acked  atomic.Uint64 // of sent, those that are handled there
	due    uint64        // bytes of that rank's that were handled here
	told   uint64        // of due, those that it knows of
	listed bool          // in Aggregator.todo
}

// MaxItem is the largest item in bytes.
func (c *Aggregator) MaxItem() int { return c.most - 16 }

// Open makes a box. All ranks open the same boxes in the same order, and something makes sure
// that all have before the first push, such as a barrier. Each calls Start when it is ready
// for what comes. An error counts as a box opened.
func (c *Aggregator) Open(s Spec) (*Box, error) {
	if err := c.enter("open of a mailbox"); err != nil {
		return nil, err
	}
	defer c.leave()
	c.opened++ // with an error, too: other ranks may have none
	switch {
	case s.Size < 1 || s.Size > c.MaxItem():
		return nil, errs.BadArg("%s: mailbox %q of items of %d bytes; they have 1 to %d", c.pkg, s.Name, s.Size, c.MaxItem())
	case s.Deliver == nil:
		return nil, errs.BadArg("%s: mailbox %q without a function", c.pkg, s.Name)
	}
	b := &Box{c: c, spec: s, number: c.opened, peers: make(map[int]*peer)}
	c.mu.Lock()
	if c.table == nil {
		c.table = make(map[uint32]*Box)
	}
	c.table[b.number] = b
	c.mu.Unlock()
	c.boxes = append(c.boxes, b)
	return b, nil
}

// Start has b deliver what comes; until then it waits.
func (b *Box) Start() { b.started = true }

// Number tells the boxes of a job apart: the first has 1.
func (b *Box) Number() uint32 { return b.number }

// Close ends b, after a Sync that nothing was pushed since.
func (b *Box) Close() {
	c := b.c
	c.mu.Lock()
	delete(c.table, b.number)
	c.mu.Unlock()
	c.boxes = slices.DeleteFunc(c.boxes, func(x *Box) bool { return x == b })
	c.todo = slices.DeleteFunc(c.todo, func(p *peer) bool { return p.b == b })
	b.closed, b.peers, b.packs = true, nil, nil
}

// Name is the name of the box with a number, if it is open.
func (c *Aggregator) Name(number uint32) (name string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.table[number]
	if !ok {
		return "", false
	}
	return b.spec.Name, true
}

// Forgotten names the boxes that are open.
func (c *Aggregator) Forgotten() []string {
	var names []string
	for _, b := range c.boxes {
		names = append(names, fmt.Sprintf("%q", b.spec.Name))
	}
	return names
}

// check is the error of a push of n bytes to dst.
func (b *Box) check(dst, n int) error {
	switch {
	case b.closed:
		return errs.NotReady("%s: push to mailbox %q on rank %d, which is done", b.c.pkg, b.spec.Name, b.c.rank)
	case uint(dst) >= uint(b.c.size):
		return errs.BadArg("%s: push to mailbox %q of rank %d; the job has ranks 0..%d", b.c.pkg, b.spec.Name, dst, b.c.size-1)
	case n%b.spec.Size != 0:
		return errs.BadArg("%s: push of %d bytes to mailbox %q, whose items have %d", b.c.pkg, n, b.spec.Name, b.spec.Size)
	}
	return nil
}

// Send sends items to dst by the shortest way, without collecting more of them. items may
// be used again when it returns. Where more waits to be sent than a box keeps, it waits, and
// delivers what comes meanwhile; not in a Deliver function. The own rank is delivered to
// directly, unless in such a function.
func (b *Box) Send(dst int, items []byte) error {
	c := b.c
	if err := b.check(dst, len(items)); err != nil {
		return err
	}
	if c.inside {
		return b.post(dst, kindPlain, items)
	}
	if err := c.enter("push"); err != nil {
		return err
	}
	defer c.leave()
	if dst == c.rank {
		b.spec.Deliver(dst, items)
	} else if err := b.post(dst, kindPlain, items); err != nil {
		return err
	}
	return b.awaitRoom()
}

// Poll delivers what has come, and sends what waits for room and can be sent. In a Deliver
// function it lets handlers run and delivers nothing.
func (b *Box) Poll() error {
	c := b.c
	if c.inside {
		c.e.Poll()
		return nil
	}
	if err := c.enter("poll of a mailbox"); err != nil {
		return err
	}
	defer c.leave()
	c.e.Poll()
	_, err := c.step()
	return err
}

// awaitRoom polls, delivers, and waits until no more is queued than a box keeps.
func (b *Box) awaitRoom() error {
	c := b.c
	c.e.Poll()
	for {
		did, err := c.step()
		if err != nil || b.queued-b.onward <= backlog {
			return err
		}
		if did {
			continue
		}
		w := b.stuck()
		if err := c.await(w, func() int { return c.left(w.rank) }, nil); err != nil {
			return err
		}
	}
}

// stuck is the rank of b with the most bytes queued.
func (b *Box) stuck() stuck {
	var worst *peer
	for _, p := range b.c.todo {
		if p.b == b && (worst == nil || p.queued > worst.queued) {
			worst = p
		}
	}
	if worst == nil {
		return stuck{b.spec.Name, b.c.rank, 0}
	}
	return stuck{b.spec.Name, worst.rank, worst.queued}
}

// stuck is a rank that a push waits for, and how many bytes are queued for it.
type stuck struct {
	name  string
	rank  int
	bytes int
}

// Blocked makes stuck a conduits.Blocked.
func (s stuck) Blocked() string {
	return fmt.Sprintf("mailbox %q: %d bytes for rank %d, which takes no more until it pushes, polls or ends its mailboxes", s.name, s.bytes, s.rank)
}

// peer is b's relation to rank.
func (b *Box) peer(rank int) *peer {
	p := b.peers[rank]
	if p == nil {
		p = &peer{b: b, rank: rank}
		b.c.mu.Lock()
		b.peers[rank] = p
		b.c.mu.Unlock()
	}
	return p
}

// post sends data to dst in batches, as far as there is room, and queues the rest. Data of
// another kind than kindPlain is one batch.
func (b *Box) post(dst int, kind uint32, data []byte) error {
	c := b.c
	if dst == c.rank {
		c.mu.Lock()
		d := c.take(len(data))
		bulk.Copy(d, data)
		c.in = append(c.in, batch{box: b, src: dst, epoch: b.epoch, kind: kind, data: d})
		c.mu.Unlock()
		c.news.Add(1)
		b.sent++
		return nil
	}
	p := b.peer(dst)
	most := len(data)
	if kind == kindPlain {
		most = c.most / b.spec.Size * b.spec.Size
	}
	for len(data) > 0 {
		n := min(most, len(data))
		t := batch{epoch: b.epoch, kind: kind, data: data[:n]}
		ok := false
		if p.queue.Empty() {
			var err error
			if ok, err = p.try(&t); err != nil {
				return err
			}
		}
		if !ok {
			c.mu.Lock()
			d := c.take(n)
			c.mu.Unlock()
			bulk.Copy(d, t.data)
			t.data = d
			p.queue.Add(t)
			p.queued += n
			b.queued += n
			if kind&kindMask == kindFrom {
				b.onward += n
			}
			p.list()
		}
		b.sent++
		data = data[n:]
	}
	return nil
}

// try sends t if there is room.
func (p *peer) try(t *batch) (bool, error) {
	if p.sent+uint64(len(t.data))-p.acked.Load() > window {
		return false, nil
	}
	ok, err := p.b.c.e.TryRequestMedium(p.rank, handlerData, t.data, p.b.number, t.epoch, t.kind)
	if ok {
		p.sent += uint64(len(t.data))
	}
	return ok, err
}

// list has the endpoint try to send to p.
func (p *peer) list() {
	if !p.listed {
		p.listed = true
		p.b.c.todo = append(p.b.c.todo, p)
	}
}

// left reports whether there is something to be sent.
func (p *peer) left() bool { return !p.queue.Empty() || p.due-p.told >= window/4 }

// send sends what there is room for.
func (p *peer) send() (did bool, err error) {
	c := p.b.c
	if p.due-p.told >= window/4 {
		lo, hi := am.Pack64(p.due)
		ok, err := c.e.TryRequestShort(p.rank, handlerAck, p.b.number, lo, hi)
		if err != nil {
			return did, err
		}
		if ok {
			p.told, did = p.due, true
		}
	}
	for !p.queue.Empty() {
		t := p.queue.First()
		ok, err := p.try(&t)
		if !ok || err != nil {
			return did, err
		}
		did = true
		p.queue.Take()
		p.queued -= len(t.data)
		p.b.queued -= len(t.data)
		if t.kind&kindMask == kindFrom {
			p.b.onward -= len(t.data)
		}
		c.mu.Lock()
		c.give(t.data)
		c.mu.Unlock()
	}
	return did, nil
}

// Kinds of batches: the low bits of a batch's kind, the others are the number of items.
const (
	kindPlain = iota // items of the sender for the receiver
	kindFrom         // before the items, of which ranks they are, 32 bits each, padded to 8 bytes
	kindTo           // likewise for which ranks they are: the receiver sends them on
	kindBits  = 2
	kindMask  = 1<<kindBits - 1
)

// hop is where items of one kind are sent.
type hop struct {
	rank int
	kind uint32
}

// pack collects items for a hop.
type pack struct {
	ranks []uint32 // unless kindPlain
	items []byte
	most  int // items
}

// Push adds item to what is sent to dst when there is enough of it, see Send, or at Flush
// or Sync. In jobs of more than mostDirect ranks it travels by a rank in between, so
// that a rank sends to the order of the square root of all ranks.
func (b *Box) Push(dst int, item []byte) error {
	if err := b.check(dst, len(item)); err != nil {
		return err
	}
	if len(item) != b.spec.Size {
		return errs.BadArg("%s: push of %d bytes to mailbox %q, whose items have %d", b.c.pkg, len(item), b.spec.Name, b.spec.Size)
	}
	h := hop{b.c.next(dst), kindPlain}
	if h.rank != dst {
		h.kind = kindTo
	}
	c := b.c
	if full, err := b.collect(h, dst, item); !full || c.inside || err != nil {
		return err
	}
	if err := c.enter("push"); err != nil {
		return err
	}
	defer c.leave()
	return b.awaitRoom()
}

// collect adds an item to the pack of a hop, and sends that when it is full.
func (b *Box) collect(h hop, rank int, item []byte) (full bool, err error) {
	p := b.packs[h]
	if p == nil {
		if b.packs == nil {
			b.packs = make(map[hop]*pack)
		}
		p = &pack{most: max(1, leastBatch/(len(item)+4))}
		b.packs[h] = p
	}
	if h.kind != kindPlain {
		p.ranks = append(p.ranks, uint32(rank))
	}
	p.items = append(p.items, item...)
	if len(p.items) < p.most*len(item) {
		return false, nil
	}
	// A hop that is taken often has larger batches, as far as the budget goes.
	share := max(leastBatch, min(b.c.most, budget/len(b.packs))-8)
	p.most = max(1, min(2*p.most, share/(len(item)+4)))
	return true, b.seal(h, p)
}

// seal sends what p has.
func (b *Box) seal(h hop, p *pack) error {
	if len(p.items) == 0 {
		return nil
	}
	kind, data := h.kind, p.items
	if h.kind != kindPlain {
		kind |= uint32(len(p.ranks)) << kindBits
		data = make([]byte, 0, (4*len(p.ranks)+7)&^7+len(p.items))
		for _, r := range p.ranks {
			data = binary.LittleEndian.AppendUint32(data, r)
		}
		data = append(data[:(len(data)+7)&^7], p.items...)
	}
	err := b.post(h.rank, kind, data)
	p.items, p.ranks = p.items[:0], p.ranks[:0]
	return err
}

// sealAll sends what all packs have.
func (b *Box) sealAll() error {
	var first error
	for h, p := range b.packs {
		if err := b.seal(h, p); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// deliver hands out the items of a batch, or sends them on.
func (b *Box) deliver(src int, kind uint32, data []byte) {
	if kind&kindMask == kindPlain {
		b.spec.Deliver(src, data)
		return
	}
	n := int(kind >> kindBits)
	head := (4*n + 7) &^ 7
	if n*b.spec.Size != len(data)-head {
		panic(fmt.Sprintf("%s: malformed batch of rank %d in mailbox %q: %d items in %d bytes", b.c.pkg, src, b.spec.Name, n, len(data)))
	}
	ranks, items := data[:head], data[head:]
	at := func(i int) int { return int(binary.LittleEndian.Uint32(ranks[4*i:])) }
	for i := 0; i < n; {
		r, k := at(i), i+1
		for k < n && at(k) == r {
			k++
		}
		part := items[i*b.spec.Size : k*b.spec.Size]
		if kind&kindMask == kindFrom {
			b.spec.Deliver(r, part)
		} else {
			for ; i < k; i++ {
				// An error is one of the job, which the call that waits next returns.
				_, _ = b.collect(hop{r, kindFrom}, src, items[i*b.spec.Size:][:b.spec.Size])
			}
		}
		i = k
	}
}
