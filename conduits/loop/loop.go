// Package loop is the plainest transport there is: ranks of one process, a mutex and
// a queue for each. No program needs it; it is to be read by authors of transports, and
// shows that conduits.Transport is enough for all that the layers above offer.
//
// A message is copied to the queue of the rank it is for, which has room for so many;
// a put or get is done at once, by the caller, with the memory's owner asked for it.
package loop

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/segment"
)

// Name is the conduit's name.
const Name = "loop"

func init() { conduits.Register(conduits.Conduit{Name: Name, Local: Local}) }

// Local opens all ranks of a job in this process.
func Local(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return adapt.Local(Name, Open)(n, c)
}

// room is how many messages a queue has room for. Few, so that senders meet full ones.
const room = 64

// Open is Local without what package adapt adds.
func Open(n int, c conduits.Config) ([]conduits.Transport, error) {
	seats, err := adapt.Seats(Name, n, c)
	if err != nil {
		return nil, err
	}
	j := &job{}
	ts := make([]conduits.Transport, n)
	for i, s := range seats {
		t := &transport{Seat: s, job: j}
		j.ranks, ts[i] = append(j.ranks, t), t
	}
	return ts, nil
}

// job is the state that the ranks share.
type job struct{ ranks []*transport }

// transport is one rank. What the ranks agree on is its Seat's.
type transport struct {
	*adapt.Seat
	job    *job
	owner  conduits.Owner // set before all have attached
	closed atomic.Bool

	mu      sync.Mutex   // guards what follows
	queue   []*message   // arrived, oldest first
	free    []*message   // for reuse
	last    []*message   // the queue of the last Poll, for reuse
	refused []*transport // whose Send found no room
}

// message is one that has arrived, or tells that its sender has left.
type message struct {
	src     int
	left    bool
	words   []uint32
	payload []byte
}

// Attach waits for the last rank to attach, or for the job to fail.
func (t *transport) Attach(o conduits.Owner, size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	t.owner = o
	return t.Seat.Attach(size, rights)
}

// Send copies a message to dst's queue.
func (t *transport) Send(dst int, words []uint32, payload []byte) conduits.Status {
	d := t.job.ranks[dst]
	if t.closed.Load() || d.closed.Load() || t.Err() != nil {
		return conduits.Dead
	}
	d.mu.Lock()
	if len(d.queue) >= room {
		if !slices.Contains(d.refused, t) {
			d.refused = append(d.refused, t) // Poll of dst tells it of room
		}
		d.mu.Unlock()
		return conduits.NoCredit
	}
	m := d.add(t.Rank())
	m.words = append(m.words[:0], words...)
	m.payload = append(m.payload[:0], payload...)
	d.mu.Unlock()
	d.Kick()
	return conduits.Ready
}

// add appends a message of src to the queue, with mu held.
func (t *transport) add(src int) *message {
	m := &message{}
	if n := len(t.free); n > 0 {
		m, t.free = t.free[n-1], t.free[:n-1]
	}
	m.src, m.left = src, false
	t.queue = append(t.queue, m)
	return m
}

// Poll delivers what is in the queue when it begins.
func (t *transport) Poll() int {
	if t.closed.Load() {
		return 0
	}
	t.mu.Lock()
	arrived, refused := t.queue, t.refused
	t.queue, t.refused = t.last[:0], nil
	t.mu.Unlock()
	for _, r := range refused {
		r.Kick()
	}
	for _, m := range arrived {
		if m.left {
			t.owner.Left(m.src)
		} else {
			t.owner.Deliver(m.src, m.words, m.payload)
		}
	}
	t.mu.Lock()
	t.free = append(t.free, arrived...)
	t.last = arrived
	t.mu.Unlock()
	return len(arrived)
}

// Put has dst's owner let the caller write.
func (t *transport) Put(dst int, to segment.NLA, src []byte, _ uint64) (bool, error) {
	return t.access(dst, to, uint64(len(src)), segment.RightWrite, func(mem []byte) { conduits.Copy(mem, src) })
}

// Get has src's owner let the caller read.
func (t *transport) Get(dst []byte, src int, from segment.NLA, _ uint64) (bool, error) {
	return t.access(src, from, uint64(len(dst)), segment.RightRead, func(mem []byte) { conduits.Copy(dst, mem) })
}

func (t *transport) access(rank int, a segment.NLA, n uint64, need segment.Rights, f func(mem []byte)) (bool, error) {
	if err := t.Err(); err != nil {
		return false, err
	}
	if t.closed.Load() {
		return false, conduits.ErrClosed
	}
	peer := t.job.ranks[rank]
	if err := peer.owner.Access(t.Rank(), a, n, need, f); err != nil {
		return false, err
	}
	if need == segment.RightWrite {
		peer.Kick() // it may wait for what has been written
	}
	return true, nil
}

// Close tells all ranks, by a message that finds room always.
func (t *transport) Close() error {
	t.closed.Store(true)
	for _, r := range t.job.ranks {
		r.mu.Lock()
		r.add(t.Rank()).left = true
		r.mu.Unlock()
		r.Kick()
	}
	t.Leave()
	return nil
}
