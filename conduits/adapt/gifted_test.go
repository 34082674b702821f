package adapt_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/loop"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

// card is a plain Transport with what the capabilities need. It implements none: a
// gift is a Transport that has some, and package chaos has their operations go as
// wrong as the contract allows.
type card struct {
	conduits.Transport
	job   *cards
	owner conduits.Owner
	over  atomic.Bool // closed

	memory   []byte // the segment of a rank that others reach
	system   []byte
	attached []conduits.Attached

	mu     sync.Mutex
	rng    *rand.Rand
	queues [2][]mail // what capabilities of other ranks have brought: the usual, and replies
}

// mail is a message that a capability has brought.
type mail struct {
	src     int
	words   []uint32
	payload []byte
}

// plain is a card without capabilities.
type plain struct{ *card }

func (c plain) Attach(o conduits.Owner, size uint64, rights segment.Rights) (_ []conduits.Attached, err error) {
	c.owner = o
	c.attached, err = c.Transport.Attach(last{o, c.card}, size, rights)
	return c.attached, err
}

// last is the Owner that hears of ranks that have left when all that they had brought has
// been delivered.
type last struct {
	conduits.Owner
	c *card
}

func (l last) Left(rank int) {
	l.c.run(false)
	l.Owner.Left(rank)
}

func (c plain) Poll() int { return c.Transport.Poll() + c.run(false) }

func (c plain) Close() error {
	c.over.Store(true)
	return c.Transport.Close()
}

// run delivers what has been brought; with replies, those alone.
func (c *card) run(replies bool) int {
	n := 0
	for q := range c.queues {
		if q == 0 && replies || c.over.Load() {
			continue
		}
		c.mu.Lock()
		l := c.queues[q]
		c.queues[q] = nil
		c.mu.Unlock()
		for _, m := range l {
			c.owner.Deliver(m.src, m.words, m.payload)
		}
		n += len(l)
	}
	return n
}

// cards has the state that the cards of a job share.
type cards struct {
	deal
	all        []*card
	atomically sync.Mutex
}

// deal describes the capabilities of the ranks of a job.
type deal struct {
	give  func(c *card) conduits.Transport
	words int  // of a note
	aside bool // atomics lose those of processors
	lone  int  // 1: rank 0 has a host for itself
	used  *atomic.Int64
}

// rough is open under chaos.
func (d deal) rough() adapt.Open { return chaos.Open(d.open, chaos.TransportConfig{}) }

// open opens ranks with capabilities.
func (d deal) open(n int, c conduits.Config) ([]conduits.Transport, error) {
	ts, err := loop.Open(n, c)
	j := &cards{deal: d}
	for i, t := range ts {
		k := &card{Transport: t, job: j, rng: rand.New(rand.NewPCG(c.Seed, uint64(i)))}
		j.all = append(j.all, k)
		ts[i] = d.give(k)
	}
	return ts, err
}

// notifying, immediate and atomics are the capabilities.
type (
	notifying struct{ c *card }
	immediate struct{ c *card }
	roomy     struct{ c *card }
	laned     struct{ c *card }
	near      struct {
		c    *card
		idle bool // is not what the job is about
	}
	kicking struct{ c *card }
	atomics struct{ c *card }
)

func (g notifying) NotifyWords() int { return g.c.job.words }

// PutNotify has words delivered when the put is done.
func (g notifying) PutNotify(dst int, to segment.NLA, src []byte, words []uint32, cookie uint64) (bool, error) {
	g.c.job.used.Add(1)
	if done, err := g.c.Transport.Put(dst, to, src, cookie); !done || err != nil {
		return done, err
	}
	g.c.bring(dst, true, words, nil)
	return true, nil
}

// bring has a message arrive at dst.
func (c *card) bring(dst int, reply bool, words []uint32, payload []byte) {
	d, q := c.job.all[dst], 0
	if reply {
		q = 1
	}
	d.mu.Lock()
	d.queues[q] = append(d.queues[q], mail{c.Rank(), slices.Clone(words), slices.Clone(payload)})
	d.mu.Unlock()
	d.Kick()
}

// refuse says in one of five cases that there is no room.
func (c *card) refuse() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(5) == 0
}

// Reserve gives room that holds garbage.
func (g roomy) Reserve(dst int, words, payload int) (conduits.Slot, conduits.Status) {
	if g.c.refuse() {
		return conduits.Slot{}, conduits.NoCredit
	}
	s := conduits.Slot{Words: make([]uint32, words), Ref: uint64(dst)}
	if payload > 0 {
		s.Payload = make([]byte, (payload+7)&^7)[:payload] // aligned to 8 bytes
	}
	s.Words[0], s.Words[words-1] = 1<<32-1, 1<<32-1
	return s, conduits.Ready
}

// Commit sends what is in the room, which is used again at once.
func (g roomy) Commit(dst int, s conduits.Slot, payload int, send bool) {
	if s.Ref != uint64(dst) {
		panic("a room of another rank")
	}
	if g.c.job.used.Add(1); send {
		g.c.bring(dst, false, s.Words, s.Payload[:payload])
	}
	clear(s.Words)
	clear(s.Payload)
}

// SendReply sends a message that overtakes requests.
func (g laned) SendReply(dst int, words []uint32, payload []byte) conduits.Status {
	c := g.c
	switch {
	case c.Err() != nil || c.job.all[dst].over.Load():
		return conduits.Dead
	case c.refuse():
		c.Kick()
		return conduits.NoCredit
	}
	c.bring(dst, true, words, payload)
	return conduits.Ready
}

// PollReplies leaves requests where they are.
func (g laned) PollReplies() int {
	g.c.job.used.Add(1)
	return g.c.run(true)
}

// PutWord keeps the word with the command.
func (g immediate) PutWord(dst int, to segment.NLA, v uint64, n int, cookie uint64) (bool, error) {
	g.c.job.used.Add(1)
	return g.c.Transport.Put(dst, to, bytesOf(v, n), cookie)
}

// host is where rank runs: two ranks have one together.
func (d deal) host(rank int) int { return (rank + d.lone) / 2 }

func (g near) Neighbourhoods() *conduits.Neighbourhoods {
	return conduits.NewNeighbourhoods(g.c.Size(), g.c.job.host)
}

func (g near) Segment(size uint64) ([]byte, error) {
	g.c.memory, g.c.system = pages(size), conduits.NewSystem()
	return g.c.memory, nil
}

// Reach is both ranks of the host.
func (g near) Reach() (first int, views []segment.View, systems [][]byte) {
	if !g.idle {
		g.c.job.used.Add(1)
	}
	for r, c := range g.c.job.all {
		if g.c.job.host(r) != g.c.job.host(g.c.Rank()) {
			continue
		}
		if len(views) == 0 {
			first = r
		}
		rights := segment.RightsAll
		if c != g.c {
			rights = g.c.attached[r].Rights
		}
		views, systems = append(views, view(c.memory, rights)), append(systems, c.system)
	}
	return first, views, systems
}

func (g kicking) KickRank(rank int) {
	g.c.job.used.Add(1)
	g.c.job.all[rank].Kick()
}

func (g atomics) AtomicOps(op conduits.AtomicOp, t conduits.AtomicType) conduits.Coherence {
	switch {
	case g.c.job.aside && t.Size() == 8:
		return conduits.CoherentCard
	case g.c.job.aside && op == conduits.AtomicFCAA:
		return conduits.CoherentNever // so that none of 4 bytes may be used
	case g.c.job.aside:
		return conduits.CoherentCard
	case op%2 == 0: // others go by message, to the same words
		return conduits.CoherentOwner
	}
	return conduits.CoherentNever
}

func (g atomics) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, old *uint64, _ uint64) (bool, error) {
	c := g.c
	c.job.used.Add(1)
	if err := c.Err(); err != nil {
		return false, err
	}
	target := c.job.all[dst]
	err := target.owner.Access(c.Rank(), to, uint64(t.Size()), segment.RightAtomic, func(mem []byte) {
		if !c.job.aside {
			*old = together(mem, op, t, a, b)
			return
		}
		c.job.atomically.Lock()
		defer c.job.atomically.Unlock()
		*old = apart(mem, op, t, a, b)
	})
	target.Kick()
	return err == nil, err
}

// The gifts, each alone and all together.
func giveNotes(c *card) conduits.Transport {
	return struct {
		plain
		conduits.NotifyPutter
	}{plain{c}, notifying{c}}
}

func giveWords(c *card) conduits.Transport {
	return struct {
		plain
		conduits.WordPutter
	}{plain{c}, immediate{c}}
}

func giveAtomics(c *card) conduits.Transport {
	return struct {
		plain
		atomics
	}{plain{c}, atomics{c}}
}

func giveRooms(c *card) conduits.Transport {
	return struct {
		plain
		conduits.Reserver
	}{plain{c}, roomy{c}}
}

func giveLane(c *card) conduits.Transport {
	return struct {
		plain
		conduits.ReplyLane
	}{plain{c}, laned{c}}
}

func giveMemory(c *card) conduits.Transport {
	return struct {
		plain
		near
	}{plain{c}, near{c: c}}
}

func giveKicks(c *card) conduits.Transport {
	return struct {
		plain
		near
		kicking
	}{plain{c}, near{c, true}, kicking{c}}
}

func giveAll(c *card) conduits.Transport {
	return struct {
		plain
		notifying
		immediate
		roomy
		laned
		near
		kicking
		atomics
	}{plain{c}, notifying{c}, immediate{c}, roomy{c}, laned{c}, near{c: c}, kicking{c}, atomics{c}}
}

// all are the capabilities together, on hosts of one rank and of two.
func all() adapt.Open {
	return deal{give: giveAll, words: 1, lone: 1, used: new(atomic.Int64)}.rough()
}

// TestTwiceChaos: the layers keep their promises on a Transport that keeps no more than
// its own, with what chaos does to Endpoints on top.
func TestTwiceChaos(t *testing.T) {
	testmain.Long(t)
	rough := adapt.Local("rough", chaos.Open(loop.Open, chaos.TransportConfig{}))
	open := chaos.Local(rough, chaos.Config{})
	if conc.Race { // what the layers do is raced in TestGifted
		conformance.RunGroups(t, open, "contract")
		return
	}
	conformance.Run(t, open)
}

// TestGifted: the layers keep their promises on a Transport that has all capabilities.
func TestGifted(t *testing.T) {
	testmain.Long(t)
	conformance.Run(t, adapt.Local("gifted", all()))
}

// TestGiftedChaos adds what chaos does to Endpoints.
func TestGiftedChaos(t *testing.T) {
	testmain.Long(t)
	if conc.Race {
		t.Skip("the other tests show races, and this one takes a minute for none")
	}
	conformance.Run(t, chaos.Local(adapt.Local("gifted", all()), chaos.Config{}))
}

// TestGiftsAlone: each capability keeps the contract without the others, under chaos,
// too.
func TestGiftsAlone(t *testing.T) {
	testmain.Long(t)
	const (
		notes   = "config shapes registered_messages refused_messages put_then_message"
		words   = "rma_sizes rma_outside words_put_whole registered_rma"
		rooms   = "config shapes slots cancel closed_peer"
		lane    = "config shapes wake_by_credit_for_replies wake_by_reply"
		memory  = "segments system_area rights fence rma_sizes put_then_message"
		kicks   = "wake_by_a_peer"
		atomics = "atomics rights shared_counter registered_counter"
	)
	for name, g := range map[string]struct {
		deal   deal
		checks string // of the contract
	}{
		"notes":                    {deal{give: giveNotes, words: 1}, notes},
		"messages with their data": {deal{give: giveNotes, words: conduits.TransportWords}, notes},
		"words":                    {deal{give: giveWords}, words},
		"rooms":                    {deal{give: giveRooms}, rooms},
		"lane":                     {deal{give: giveLane}, lane},
		"memory":                   {deal{give: giveMemory}, memory},
		"kicks":                    {deal{give: giveKicks}, kicks},
		"atomics":                  {deal{give: giveAtomics}, atomics},
		"atomics aside":            {deal{give: giveAtomics, aside: true}, atomics},
	} {
		t.Run(name, func(t *testing.T) {
			g.deal.used = new(atomic.Int64)
			local := adapt.Local("gifted", g.deal.rough())
			some(t, local, g.checks)
			if !conc.Race {
				some(t, chaos.Local(local, chaos.Config{}), g.checks)
			}
			if g.deal.used.Load() == 0 {
				t.Error("the capability has not been used")
			}
		})
	}
}

// some runs those checks of the contract, by their names.
func some(t *testing.T, open contract.Open, names string) {
	t.Helper()
	var checks []contract.Check
	for _, name := range strings.Fields(names) {
		i := slices.IndexFunc(contract.Checks, func(k contract.Check) bool { return strings.ReplaceAll(k.Name, " ", "_") == name })
		if i < 0 {
			t.Fatalf("there is no check %q", name)
		}
		checks = append(checks, contract.Checks[i])
	}
	contract.New(t, open).Run(t, "contract", checks)
}
