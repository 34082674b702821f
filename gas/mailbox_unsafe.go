package gas

// What is unsafe here: items are viewed as bytes and bytes as items, of a type that
// CheckType has found to hold no pointers; see collectives_unsafe.go.

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unsafe"

	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/extended/aggregate"
	"github.com/argon-go/argon/internal/errs"
)

// Mailbox takes items of type T for any rank, and hands out those that others have pushed for
// this one, many at a time: for programs that send very many small things, of which each
// would cost a message, or a round trip. Like collective calls it is used by one goroutine
// of a rank at a time.
//
// Items are kept until there are enough for a message to their rank, or until Flush, Sync
// or Delete. The receiver's function runs inside of calls of the rank's mailboxes, on the goroutine
// that makes them, and nowhere else: so it needs no lock for what that goroutine works on, may
// use all operations but collective ones, and may push, to any mailbox. Those pushes never
// wait, and take memory until there is room to send. Push waits for room otherwise, and
// runs functions meanwhile; a rank that is in none of these calls takes 64 KiB of each
// sender, and others wait for it then: a rank that waits for them in a barrier, say, before
// it has ended its mailboxes may wait for ever.
//
// No order is promised between items. Each is handed out once. Tasks, and what Node.Defer was
// given, may push where Config.Progress is off: they run on the goroutine that waits. A
// panic of a function is the rank's.
type Mailbox[T any] struct {
	n    *Node
	box  *aggregate.Box
	name string
	fn   func(n *Node, source int, items []T)
	// out has what is kept, by rank; nil where items travel by other ranks, which box keeps.
	out  []outbox[T]
	most int // items of a batch
	own  []T // the buffer of the own rank that is not in out
	done bool
}

// outbox has the items that are kept for a rank: the first n of buf.
type outbox[T any] struct {
	buf []T
	n   int
}

// Sizes of batches, in bytes: those to a rank begin small, and double as long as they are
// filled, up to mostBatch and to what the ranks' shares of outBudget are.
const (
	leastBatch = 256
	mostBatch  = 4096
	outBudget  = 1 << 20
)

// NewMailbox is collective: it makes a mailbox of that name, which is for messages to people,
// on all ranks. fn gets items that rank source has pushed, which may be the own rank; they
// are valid until it returns. T must not hold Go pointers, and has at most 496 bytes on
// conduits with the smallest messages.
//
// In jobs of more than 128 ranks items travel by a rank in between, so that a rank
// keeps batches for about two times the root of all ranks.
func NewMailbox[T any](n *Node, name string, fn func(n *Node, source int, items []T)) (*Mailbox[T], error) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	m := &Mailbox[T]{n: n.main, name: name, fn: fn}
	spec := aggregate.Spec{Name: name, Size: size, Flush: m.flush}
	failed := CheckType[T]()
	if failed == nil && fn != nil {
		spec.Deliver = m.deliver
	}
	var err error
	if m.box, err = n.agg.Open(spec); failed == nil {
		failed = err
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	if err := n.same(opMailbox, uint64(size)<<32|uint64(h.Sum32()), 0, failed, 0, 0); err != nil {
		if m.box != nil {
			m.box.Close()
		}
		return nil, err
	}
	if n.agg.Direct() {
		m.out = make([]outbox[T], n.size)
		m.most = max(1, min(mostBatch, max(leastBatch, outBudget/n.size))/size)
	}
	m.box.Start() // not earlier: work put off may have polled mailboxes during the agreement
	return m, nil
}

// deliver is the box's Spec.Deliver.
func (m *Mailbox[T]) deliver(source int, items []byte) {
	// A panic is the rank's, also where a task on whose stack this runs would catch its own.
	m.n.unnested(false, func() { m.fn(m.n, source, view[T](items)) }, nil)
}

// Push sends item to rank, which may be the own one, when there is enough for it. An error is one
// of the job, of the rank's number, or of a mailbox that is deleted.
func (m *Mailbox[T]) Push(rank int, item T) error {
	if m.put(rank, item) {
		return nil
	}
	return m.pushFull(rank, item)
}

// put keeps item for rank if there is a buffer that has room. It is compiled into the loops that
// call it.
func (m *Mailbox[T]) put(rank int, item T) bool {
	if uint(rank) >= uint(len(m.out)) {
		return false
	}
	o := &m.out[rank]
	if uint(o.n) >= uint(len(o.buf)) {
		return false
	}
	o.buf[o.n] = item
	o.n++
	return true
}

// pushFull is Push when there is enough, where the box collects, and of a rank that there is not.
//
//go:noinline
func (m *Mailbox[T]) pushFull(rank int, item T) error {
	if uint(rank) >= uint(len(m.out)) {
		return m.box.Push(rank, bytesAt(&item))
	}
	if err := m.send(rank); err != nil {
		return err
	}
	o := &m.out[rank]
	switch k := len(o.buf); {
	case o.n == 0 && k < m.most:
		o.buf = make([]T, min(max(2*k, leastBatch/int(unsafe.Sizeof(item)), 1), m.most))
	case o.n == k: // by functions that ran meanwhile
		o.buf = append(o.buf, make([]T, m.most)...)
	}
	o.buf[o.n] = item
	o.n++
	return nil
}

// send sends what is kept for rank.
func (m *Mailbox[T]) send(rank int) error {
	o := &m.out[rank]
	if o.n == 0 {
		return nil
	}
	items := o.buf[:o.n]
	if o.n = 0; rank == m.n.rank {
		// They are handed out from here, and functions may push to the own rank.
		o.buf, m.own = m.own, nil
	}
	err := m.box.Send(rank, bytesOf(items))
	if rank == m.n.rank {
		m.own = items[:cap(items)]
	}
	return err
}

// PushAll is Push for all of items, which may be used again when it returns.
func (m *Mailbox[T]) PushAll(rank int, items []T) error {
	if uint(rank) < uint(len(m.out)) && len(items) >= m.most {
		if err := m.send(rank); err != nil {
			return err
		}
		if rank != m.n.rank {
			return m.box.Send(rank, bytesOf(items))
		}
	}
	for _, v := range items {
		if err := m.Push(rank, v); err != nil {
			return err
		}
	}
	return nil
}

// flush sends what is kept for all ranks.
func (m *Mailbox[T]) flush() error {
	for r := range m.out {
		if err := m.send(r); err != nil {
			return err
		}
	}
	return nil
}

// Flush sends what is kept, without waiting for it to be handled, and hands out what has
// come.
func (m *Mailbox[T]) Flush() error {
	if m.done {
		return m.over("Flush")
	}
	if err := m.flush(); err != nil {
		return err
	}
	if _, err := m.box.Flush(); err != nil {
		return err
	}
	return m.box.Poll()
}

// Poll hands out what has come.
func (m *Mailbox[T]) Poll() error {
	if m.done {
		return m.over("Poll")
	}
	return m.box.Poll()
}

// over is the error of op on a mailbox that is deleted.
func (m *Mailbox[T]) over(op string) error {
	return errs.NotReady("gas: %s of mailbox %q on rank %d, which is deleted", op, m.name, m.n.rank)
}

// Sync is collective: it returns when all that was pushed to the mailbox on any rank, and all
// that its function pushed to it because of that, has been handed out. The mailbox may be used
// again then, and what other ranks push after their Sync is handed out after this one's.
func (m *Mailbox[T]) Sync() error {
	if m.done {
		return m.over("Sync")
	}
	return m.n.syncMailboxes(fmt.Sprintf("Sync of mailbox %q", m.name), mailboxID+m.box.Number(), m.box)
}

// Delete is collective: it is Sync, and the end of the mailbox. A rank that returns from its
// function without it fails the job.
func (m *Mailbox[T]) Delete() error {
	if m.done {
		return m.over("Delete")
	}
	if err := m.Sync(); err != nil {
		return err
	}
	m.close()
	return nil
}

func (m *Mailbox[T]) close() {
	m.box.Close()
	m.out, m.own, m.done = nil, nil, true
}

// gate is the barrier as collective calls of package aggregate enter it.
type gate struct{ *barrier.Barrier }

func (g gate) Notify(id uint32) error { return g.Barrier.Notify(id, 0) }
func (g gate) Wait(id uint32) error   { return g.Barrier.Wait(id, 0) }

// syncMailboxes is aggregate.Aggregator.Sync with this package's errors.
func (n *Node) syncMailboxes(what string, id uint32, parties ...aggregate.Party) error {
	if err := n.agg.Sync(id, what, parties...); err != nil {
		return n.departed(err)
	}
	return nil
}

// unended is the error of mailboxes that are open when the rank's function returns.
//
//go:noinline
func (n *Node) unended() error {
	if open := n.agg.Forgotten(); len(open) > 0 {
		return errs.NotReady("gas: rank %d returned with %d mailboxes that are not deleted: %s (Mailbox.Delete)", n.rank, len(open), strings.Join(open, ", "))
	}
	return nil
}

// Quiesce is collective: it returns when all that was sent by Func.Send, Go and Call on any
// rank has run, with all that this caused to be sent, all tasks and all that was deferred. A
// barrier does not wait for any of these. It finds that out by counting, in waves of
// messages over all ranks, and takes two of them after the last function has run.
func (n *Node) Quiesce() error {
	return n.syncMailboxes("Quiesce", quiesceID, (*callParty)(n.main))
}

// callParty is a Node whose calls Quiesce waits for.
type callParty Node

// Flush reports whether nothing is put off, or was and has not ended.
func (p *callParty) Flush() (idle bool, err error) {
	w := &p.work
	return w.waiting.Load() == 0 && w.tasks.Load() == 0 && w.deferred.Load() == 0, nil
}

// Counts are those of all lanes.
func (p *callParty) Counts() (sent, handled uint64) {
	for n := range (*Node)(p).each() {
		// Handled first: what its handling sent is counted then.
		handled += n.calls.finished()
	}
	if p.work.between != nil {
		p.work.between()
	}
	for n := range (*Node)(p).each() {
		sent += n.calls.started()
	}
	return sent, handled
}
