package adapt

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys/awake"
	"github.com/argon-go/argon/segment"
)

// Seat is a rank's place in a job, with what the ranks have to agree on: which segments there
// are, which failure was the first, and which ranks have left. A Transport that embeds one has
// Rank, Size, Limits, Now, Err, Fail, Wait and Kick of it, and its Attach and Close call Seat's Share,
// Attach and Leave. The ranks of a job are in one process, or they are processes, which meet at
// the rendezvous of their launcher; a Transport need not know.
type Seat struct {
	rank, size int
	limits     conduits.Limits
	start      time.Time
	failed     *atomic.Pointer[conduits.PeerError] // of all ranks of a process: none hears that a rank has left before why
	over       chan struct{}                       // closed after failed is set
	event      chan struct{}                       // holds one if there has been an event; see conduits.Transport
	job        control
	heard      func(*conduits.PeerError) // Job.Failed; nil in one process

	mu   sync.Mutex
	fall func()         // of OnFailure, or nil
	gone func(rank int) // of OnLeave, or nil
	left map[int]bool   // ranks that have left
}

// control is how a Seat agrees with the others.
type control interface {
	share(card []byte) ([][]byte, error)
	attach(size uint64, rights segment.Rights) ([]conduits.Attached, error)
	fail(rank int, err error)
	leave()
	addr(rank int) netip.Addr
	number() uint32
}

// Rank is the rank whose place it is.
func (s *Seat) Rank() int { return s.rank }

// Size is the number of ranks.
func (s *Seat) Size() int { return s.size }

// Limits are those of the job, for a Transport that sets no memory aside for them.
func (s *Seat) Limits() conduits.Limits { return s.limits }

// Now is time since the Seat was made.
func (s *Seat) Now() time.Duration { return time.Since(s.start) }

// Err is the job's failure, a *conduits.PeerError, or nil.
func (s *Seat) Err() error {
	if f := s.failed.Load(); f != nil {
		return f
	}
	return nil
}

// Fail declares that rank has failed because of err, unless a rank has failed before: the first
// failure counts, on all ranks. It may wait until the job knows which was the first.
func (s *Seat) Fail(rank int, err error) {
	if s.failed.Load() == nil {
		s.job.fail(rank, err)
	}
}

// Over is closed when the job has failed.
func (s *Seat) Over() <-chan struct{} { return s.over }

// OnFailure has fall called when the job fails, which is an event by itself, for a Transport that has more to
// do then. Open calls it once, when the Transport is ready for that.
func (s *Seat) OnFailure(fall func()) {
	s.mu.Lock()
	s.fall = fall
	s.mu.Unlock()
	if s.failed.Load() != nil {
		fall()
		s.Kick()
	}
}

// OnLeave has gone called when another rank leaves the job, for a Transport that owes such a rank nothing more. Open calls it
// once, when the Transport is ready for that.
func (s *Seat) OnLeave(gone func(rank int)) {
	s.mu.Lock()
	s.gone = gone
	left := slices.Collect(maps.Keys(s.left))
	s.mu.Unlock()
	for _, r := range left {
		if r != s.rank {
			gone(r)
		}
	}
}

// Wait takes the event if there is one, or waits for it until Now is until; 0: for ever. It is Transport.Wait.
func (s *Seat) Wait(until time.Duration) {
	var late <-chan time.Time
	if until > 0 {
		timer := time.NewTimer(until - s.Now())
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-s.event:
	case <-late:
	}
}

// Kick leaves an event for Wait, unless there is one. It is Transport.Kick, for any goroutine.
func (s *Seat) Kick() {
	select {
	case s.event <- struct{}{}:
	default:
	}
}

// farewell is how long a rank that is lost may take to be known as one that has left, or the job
// as failed: time that this process runs. The launcher and the rendezvous hear of the end of a
// process within a round trip or so.
const farewell = 5 * time.Second

// Lost fails rank, with which this one has lost touch because of err, unless the job hears
// within seconds what has become of it: that it has left, or how its process has ended. It
// does not block.
func (s *Seat) Lost(rank int, err error) {
	awake.AfterFunc(farewell, func() {
		s.mu.Lock()
		left := s.left[rank] || s.left[s.rank]
		s.mu.Unlock()
		if !left {
			s.Fail(rank, err)
		}
	})
}

// MostCard is the longest card, bytes.
const MostCard = 1 << 10

// Share gives what each rank has shared, by rank, for this one's card, such as the address where it
// listens: at most MostCard bytes. It waits for all ranks; if the job fails meanwhile, the
// error is Err. Collective, once, before Attach.
func (s *Seat) Share(card []byte) ([][]byte, error) {
	if len(card) > MostCard {
		return nil, errs.BadArg("adapt: a card of %d bytes; at most %d", len(card), MostCard)
	}
	cards, err := s.job.share(card)
	return cards, cmp.Or(s.Err(), err)
}

// Job is a number that datagrams of other jobs do not carry, but by rare chance.
func (s *Seat) Job() uint32 { return s.job.number() }

// Mates is how many ranks are on this one's host, itself among them.
func (s *Seat) Mates() int {
	m, ok := s.job.(*member)
	if !ok {
		return s.size
	}
	mates := 0
	for r := range s.size {
		if m.client.Host(r) == m.client.Host(s.rank) {
			mates++
		}
	}
	return mates
}

// Board is the rendezvous of ranks that are processes, else nil. It is FarEndpoint.Board.
func (s *Seat) Board() conduits.Board {
	if m, ok := s.job.(*member); ok {
		return m.client
	}
	return nil
}

// Addr is an address of the host of rank, at which this one reaches it, unless the host has
// several networks.
func (s *Seat) Addr(rank int) netip.Addr { return s.job.addr(rank) }

// Attach tells the others of this rank's segment and waits for theirs, as Transport.Attach has to.
// When it returns nil all ranks have called it. Collective, once.
func (s *Seat) Attach(size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	all, err := s.job.attach(size, rights)
	return all, cmp.Or(s.Err(), err)
}

// Leave leaves the job: after all that this rank has sent. Once. A rank that leaves before Attach has returned nil is
// missing, to those that wait in theirs.
func (s *Seat) Leave() {
	s.departed(s.rank)
	s.job.leave()
}

// departed notes that rank has left.
func (s *Seat) departed(rank int) {
	s.mu.Lock()
	if s.left == nil {
		s.left = map[int]bool{}
	}
	s.left[rank] = true
	gone := s.gone
	s.mu.Unlock()
	if gone != nil && rank != s.rank {
		gone(rank)
	}
}

// set makes p the job's failure as this rank knows it, unless there is one.
func (s *Seat) set(p *conduits.PeerError) {
	if !s.failed.CompareAndSwap(nil, p) {
		return
	}
	if s.heard != nil {
		s.heard(p)
	}
	s.fell()
}

// fell makes it known on this rank that the job has failed. Once.
func (s *Seat) fell() {
	close(s.over)
	s.mu.Lock()
	fall := s.fall
	s.mu.Unlock()
	if fall != nil {
		fall()
	}
	s.Kick()
}

// newSeat is a Seat without its control; failed is for the failure.
func newSeat(rank, size int, l conduits.Limits, failed *atomic.Pointer[conduits.PeerError]) *Seat {
	return &Seat{rank: rank, size: size, limits: l, start: time.Now(), failed: failed, over: make(chan struct{}), event: make(chan struct{}, 1)}
}

// Seats are the places of a job whose ranks are in this process. name is the conduit's.
func Seats(name string, n int, c conduits.Config) ([]*Seat, error) {
	limits, err := c.Limits(name)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, errs.BadArg("%s: %d ranks; 1 or more (-n)", name, n)
	}
	b := &board{
		id:    uint32(os.Getpid())<<16 ^ jobs.Add(1),
		cards: meeting[[]byte]{all: make([][]byte, n), met: make(chan struct{})},
		sizes: meeting[conduits.Attached]{all: make([]conduits.Attached, n), met: make(chan struct{})},
	}
	for i := range n {
		s := newSeat(i, n, limits, &b.failed)
		s.job, b.seats = place{b, s}, append(b.seats, s)
	}
	return b.seats, nil
}

// jobs numbers the jobs of this process.
var jobs atomic.Uint32

// board is what the ranks of a process share.
type board struct {
	id     uint32
	seats  []*Seat
	failed atomic.Pointer[conduits.PeerError]
	cards  meeting[[]byte]
	sizes  meeting[conduits.Attached]
}

// meeting is where each rank leaves a value and waits for those of all.
type meeting[T any] struct {
	mu    sync.Mutex
	count int
	all   []T           // complete when met is closed
	met   chan struct{} // closed by the last rank
}

func (m *meeting[T]) meet(s *Seat, v T) ([]T, error) {
	m.mu.Lock()
	m.all[s.rank] = v
	if m.count++; m.count == len(m.all) {
		close(m.met)
	}
	m.mu.Unlock()
	select {
	case <-m.met:
		return m.all, nil
	case <-s.over:
		return nil, s.Err()
	}
}

// place is the control of a rank at the board.
type place struct {
	*board
	s *Seat
}

func (p place) share(card []byte) ([][]byte, error) { return p.cards.meet(p.s, card) }

func (p place) attach(size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	return p.sizes.meet(p.s, conduits.Attached{Size: size, Rights: rights})
}

func (p place) fail(rank int, err error) {
	if !p.failed.CompareAndSwap(nil, &conduits.PeerError{Rank: rank, Err: err}) {
		return
	}
	for _, s := range p.seats {
		s.fell()
	}
}

func (p place) leave() {
	for _, s := range p.seats {
		s.departed(p.s.rank)
	}
}

func (place) addr(int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

func (p place) number() uint32 { return p.id }

// OpenSeat opens the Transport of a rank, which has to have all of its job's ranks call Attach.
type OpenSeat func(s *Seat) (conduits.Transport, error)

// Conduit is a conduit of that name for ranks in one process and for ranks that are processes, on
// one host or several, which a launcher starts. open is called for each rank.
func Conduit(name string, open OpenSeat) conduits.Conduit {
	return conduits.Conduit{
		Name:  name,
		Local: Local(name, OpenSeats(name, open)),
		Join: func(j conduits.Job, c conduits.Config) (conduits.Endpoint, error) {
			s, err := Join(name, j, c, "")
			if err != nil {
				return nil, err
			}
			t, err := open(s)
			if err != nil {
				s.Fail(j.Rank, err)
				s.Leave()
				return nil, err
			}
			return NewProcess(name, t, s.Mates()), nil
		},
		Launch: &conduits.Launch{Rendezvous: true},
	}
}

// OpenSeats is an Open of open, for Local, and for package chaos.
func OpenSeats(name string, open OpenSeat) Open {
	return func(n int, c conduits.Config) ([]conduits.Transport, error) {
		seats, err := Seats(name, n, c)
		if err != nil {
			return nil, err
		}
		ts := make([]conduits.Transport, n)
		for i, s := range seats {
			if ts[i], err = open(s); err != nil {
				s.Fail(i, err)
				for _, t := range ts[:i] {
					_ = t.Close() // err says more
				}
				return nil, err
			}
		}
		return ts, nil
	}
}

// member is the control of a rank that is a process.
type member struct {
	s        *Seat
	client   *rendezvous.Client
	attached chan struct{} // closed when all have
}

// Join is the place of a rank that is a process. It joins the rendezvous of the job, and returns when all
// ranks have. agree is what must be the same on all of them, beside the limits. The Seat has to be left by Leave.
func Join(name string, j conduits.Job, c conduits.Config, agree string) (*Seat, error) {
	if c.MaxSegment == 0 {
		c.MaxSegment = uint64(segment.MaxAttach) // nothing is set aside before Attach
	}
	limits, err := c.Limits(name)
	if err != nil {
		return nil, err
	}
	setup, err := rendezvous.FromEnv(j.Env)
	if err != nil {
		return nil, errs.Misstarted(err)
	}
	s := newSeat(j.Rank, j.Size, limits, new(atomic.Pointer[conduits.PeerError]))
	m := &member{s: s, attached: make(chan struct{})}
	s.job, s.heard = m, j.Failed
	m.client, err = setup.Join(context.Background(), rendezvous.Hello{
		Rank: j.Rank, Size: j.Size, Host: cmp.Or(j.Env(jobenv.Host), rendezvous.ThisHost()),
		Agree: fmt.Sprintf("%s, medium %d, credits %d, segment %d%s", name, limits.MaxMedium, limits.Credits, limits.MaxSegment, agree),
	}, rendezvous.Events{
		Attached: func() { close(m.attached) },
		Failed:   s.set,
		Left:     s.departed,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// share tells the rendezvous the card. Rank 0 makes tables of all, so that there are as many
// questions as ranks.
func (m *member) share(card []byte) ([][]byte, error) {
	const per = rendezvous.MaxValue / (MostCard + 2) // cards in a table
	ctx := context.Background()                      // ends when the job fails
	key := func(rank int) string { return fmt.Sprintf("card/%d", rank) }
	table := func(first int) string { return fmt.Sprintf("cards/%d", first) }
	if err := m.client.Put(key(m.s.rank), card); err != nil {
		return nil, err
	}
	for first := 0; m.s.rank == 0 && first < m.s.size; first += per {
		var part []byte
		for r := first; r < min(first+per, m.s.size); r++ {
			c, err := m.client.Get(ctx, key(r))
			if err != nil {
				return nil, err
			}
			part = append(binary.LittleEndian.AppendUint16(part, uint16(len(c))), c...)
		}
		if err := m.client.Put(table(first), part); err != nil {
			return nil, err
		}
	}
	var cards [][]byte
	for first := 0; first < m.s.size; first += per {
		part, err := m.client.Get(ctx, table(first))
		if err != nil {
			return nil, err
		}
		for len(part) >= 2 {
			n := min(int(binary.LittleEndian.Uint16(part)), len(part)-2)
			cards, part = append(cards, part[2:2+n]), part[2+n:]
		}
	}
	if len(cards) != m.s.size {
		return nil, errs.BadArg("adapt: the table of cards has %d ranks, not %d", len(cards), m.s.size)
	}
	return cards, nil
}

func (m *member) attach(size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	if err := m.client.Attach(size, uint32(rights)); err != nil {
		return nil, err
	}
	select {
	case <-m.attached:
	case <-m.s.over:
		return nil, m.s.Err()
	}
	all := make([]conduits.Attached, m.s.size)
	for r := range all {
		size, rights := m.client.Segment(r)
		all[r] = conduits.Attached{Size: size, Rights: segment.Rights(rights)}
	}
	return all, nil
}

func (m *member) fail(rank int, err error) {
	m.client.Blame(rank, err)
	m.s.set(&conduits.PeerError{Rank: rank, Err: err})
}

func (m *member) leave() {
	select {
	case <-m.attached:
		if m.s.Err() == nil {
			_ = m.client.Leave() // if it cannot, it counts as failed: no rank is misled
		}
	default:
	}
	_ = m.client.Close()
}

func (m *member) addr(rank int) netip.Addr { return m.client.Addr(rank).Addr().Unmap() }

func (m *member) number() uint32 {
	id := m.client.Instance()
	return binary.LittleEndian.Uint32(id[:])
}
