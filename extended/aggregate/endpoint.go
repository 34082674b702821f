package aggregate

import (
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
)

// Handler indices.
const (
	handlerData = am.FirstAggregate + iota // request: a batch of items
	handlerAck                             // request: how much of what came has been handled
	handlerUp                              // request: the counts of a subtree of ranks
	handlerDown                            // request: what the root has concluded
)

// Limits in bytes.
const (
	// mostBatch is the largest batch. On two ranks of conduit shm updates of 8 bytes take
	// 15 % longer each in batches of 1 KiB, and as long in those of 16 KiB.
	mostBatch = 4096
	// window is how many bytes a box has sent to a rank that this has not handled yet, at
	// most: the memory that a receiver needs for each sender of a box.
	window = 64 << 10
	// backlog is how many bytes wait in a box to be sent before Push and Send wait for room.
	backlog = 64 << 10
	// budget is for the buffers of Push in one box: where many destinations are in use,
	// each has its share, but leastBatch.
	budget     = 1 << 20
	leastBatch = 256
)

// Config has the options of an Aggregator. The zero value is good.
type Config struct {
	// Package is the prefix of errors, before a colon, and of the names of handlers, before
	// ".aggregate"; "" for this package's own.
	Package string
}

// Gate is the job's barrier, see package barrier, which Sync enters so that ranks which are in
// different collective calls get an error. All phases are named and have no flags.
type Gate interface {
	Notify(id uint32) error
	Wait(id uint32) error
	Ready() bool
	Lacking() int
	Blocked() string
	Sleeps() error
	Woken()
}

// Aggregator is one rank's part. Make it with New, hand Handlers to am.Attach
// (Config.Runtime), then call Bind. It and its boxes are used by one goroutine at a time.
type Aggregator struct {
	pkg        string
	e          *am.Messenger // nil before Bind
	b          Gate
	rank, size int
	most       int // bytes of a batch
	columns    int // of the grid that routes go by; 0 if every rank sends to every other

	busy    atomic.Bool // a goroutine is in a call
	waiting atomic.Bool // the goroutine in a call may sleep
	inside  bool        // what it pushes further down its stack does not wait
	torn    bool        // a function of a box has panicked, so that some of what came is lost
	opened  uint32      // boxes opened so far
	boxes   []*Box      // those that are open
	todo    []*peer     // what there is to be sent to

	news atomic.Uint64 // counts what handlers have brought
	seen uint64        // of news, when the last step began

	waves waves

	mu    sync.Mutex // guards what follows
	table map[uint32]*Box
	in    []batch // what has come and was not looked at, in order
	spare []batch
	room  [][]byte // memory for batches
}

// New makes an endpoint that waits for Bind.
func New(c Config) *Aggregator {
	x := &Aggregator{pkg: c.Package}
	if x.pkg == "" {
		x.pkg = "aggregate"
	}
	return x
}

// Handlers are the entries for am.Config.Runtime.
func (c *Aggregator) Handlers() []am.Entry {
	p := "aggregate"
	if c.pkg != p {
		p = c.pkg + "." + p
	}
	return []am.Entry{
		{Index: handlerData, Name: p + ".data", Fn: c.onData, Args: 3, Kinds: am.Medium | am.Request},
		{Index: handlerAck, Name: p + ".ack", Fn: c.onAck, Args: 3, Kinds: am.Short | am.Request},
		{Index: handlerUp, Name: p + ".up", Fn: c.onUp, Args: 5, Kinds: am.Short | am.Request},
		{Index: handlerDown, Name: p + ".down", Fn: c.onDown, Args: 2, Kinds: am.Short | am.Request},
	}
}

// Bind joins c to an attached endpoint whose handler table contains c's Handlers, and to
// the job's barrier, which Sync enters. Every rank of the job does it once, before any
// call; other ranks may have opened a box already.
func (c *Aggregator) Bind(e *am.Messenger, b Gate) {
	c.e, c.b, c.rank, c.size = e, b, e.Rank(), e.Size()
	c.most = min(mostBatch, e.MaxMedium())
	if c.size > mostDirect {
		c.columns = columns(c.size)
	}
}

// batch is some items on their way.
type batch struct {
	box   *Box
	src   int
	epoch uint32
	kind  uint32 // and the number of items; see pack
	data  []byte
}

// take is memory for n bytes, aligned to 8. The lock is held.
func (c *Aggregator) take(n int) []byte {
	if k := len(c.room); k > 0 && cap(c.room[k-1]) >= n {
		b := c.room[k-1]
		c.room = c.room[:k-1]
		return b[:n]
	}
	// A slice of 64 bytes and more begins at a multiple of 8.
	return make([]byte, n, max((n+63)&^63, 64))
}

// give has b's memory be used again. The lock is held.
func (c *Aggregator) give(b []byte) {
	if len(c.room) < window/mostBatch {
		c.room = append(c.room, b)
	}
}

// onData keeps a batch for the goroutine that is, or will be, in a call.
func (c *Aggregator) onData(t *am.Token, args []uint32, payload []byte) {
	c.mu.Lock()
	if b := c.table[args[0]]; b != nil {
		data := c.take(len(payload))
		bulk.Copy(data, payload)
		c.in = append(c.in, batch{box: b, src: t.Src(), epoch: args[1], kind: args[2], data: data})
	}
	c.mu.Unlock()
	c.came()
}

// onAck notes how much of what was sent to a rank that has handled.
func (c *Aggregator) onAck(t *am.Token, args []uint32, _ []byte) {
	c.mu.Lock()
	if b := c.table[args[0]]; b != nil {
		if p := b.peers[t.Src()]; p != nil {
			p.acked.Store(max(p.acked.Load(), am.Uint64(args, 1))) // they may overtake each other
		}
	}
	c.mu.Unlock()
	c.came()
}

// left is rank if that has left the job, or -1.
func (c *Aggregator) left(rank int) int {
	if rank >= 0 && rank != c.rank && c.e.Conduit().Left(rank) && c.news.Load() == c.seen {
		return rank // and what it had sent has been looked at
	}
	return -1
}

// came has the goroutine in a call look at what a handler has brought.
func (c *Aggregator) came() {
	c.news.Add(1)
	if c.waiting.Load() {
		ep := c.e.Conduit()
		ep.Wake(c.rank)
	}
}

// enter begins a call by which the rank communicates.
func (c *Aggregator) enter(op string) error {
	switch {
	case c.e == nil:
		return errs.NotInit("%s: %s before Bind", c.pkg, op)
	case !c.busy.CompareAndSwap(false, true):
		return errs.NotReady("%s: %s while another goroutine of rank %d uses its mailboxes: one does at a time", c.pkg, op, c.rank)
	}
	err := c.e.Blocking(op)
	if err == nil && c.torn {
		err = errs.NotReady("%s: %s on rank %d, where the function of a mailbox has panicked", c.pkg, op, c.rank)
	}
	if err != nil {
		c.busy.Store(false)
		return err
	}
	c.inside = true
	return nil
}

func (c *Aggregator) leave() {
	c.inside = false
	c.busy.Store(false)
}

// Nudge has a Sync look at its parties again: what they count, or whether they are idle, has
// changed on another goroutine.
func (c *Aggregator) Nudge() { c.came() }

// step handles what has come and sends what can be sent. did says that it has done
// something, so that the caller looks again before it waits.
func (c *Aggregator) step() (did bool, err error) {
	c.seen = c.news.Load()
	c.mu.Lock()
	in := c.in
	c.in, c.spare = c.spare[:0], nil
	c.mu.Unlock()
	for _, b := range c.boxes {
		if len(b.held) > 0 && !b.early(&b.held[0]) {
			in = append(in, b.held...)
			b.held = b.held[:0]
		}
	}
	c.torn = true // unless this ends
	for i := range in {
		c.handle(&in[i])
	}
	c.torn = false
	if len(in) > 0 {
		c.mu.Lock()
		for i := range in {
			if in[i].data != nil {
				c.give(in[i].data)
			}
		}
		c.mu.Unlock()
		clear(in)
	}
	c.spare = in
	sent, err := c.push()
	return len(in) > 0 || sent, err
}

// handle runs what is to be done with one batch.
func (c *Aggregator) handle(t *batch) {
	b := t.box
	if b.closed {
		return // what was pushed while other ranks ended the mailbox
	}
	if b.early(t) {
		b.held = append(b.held, *t)
		t.data = nil
		return
	}
	b.deliver(t.src, t.kind, t.data)
	b.handled++
	if t.src == c.rank {
		return
	}
	p := b.peer(t.src)
	p.due += uint64(len(t.data))
	if p.due-p.told >= window/4 {
		p.list()
	}
}

// early reports whether t has to wait: the box has not been started; t's sender is in a later
// epoch, and the items of this rank's come first; or t is to be forwarded and the forwarding
// queue is full. Only forwarded batches wait for room, and forwarding has no cycles: no
// deadlock.
func (b *Box) early(t *batch) bool {
	return !b.started || int32(t.epoch-b.epoch) > 0 || t.kind&kindMask == kindTo && b.onward > backlog
}

// push sends what peers are to get and there is room for.
func (c *Aggregator) push() (did bool, err error) {
	k := 0
	for i, p := range c.todo {
		if err == nil {
			var some bool
			some, err = p.send()
			did = did || some
		}
		if p.listed = p.left(); p.listed {
			c.todo[k] = c.todo[i]
			k++
		}
	}
	clear(c.todo[k:])
	c.todo = c.todo[:k]
	return did, err
}

// await waits until something has come since the last step began, or something could be
// sent, or also says so. lacking is as in conduits.Cond.
func (c *Aggregator) await(w conduits.Blocked, lacking func() int, also func() bool) error {
	var failed error
	c.waiting.Store(true)
	err := c.e.WaitFor(w, conduits.Cond{Work: true, Lacking: lacking, Ready: func() bool {
		if c.news.Load() != c.seen || also != nil && also() {
			return true
		}
		did, err := c.push()
		failed = err
		return did || err != nil
	}})
	c.waiting.Store(false)
	if err == nil {
		err = failed
	}
	return err
}
