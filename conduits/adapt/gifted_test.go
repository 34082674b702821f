package adapt_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/chaos"
	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/conduittest/contract"
	"github.com/argon-go/argon/segment"
)

// card is a rough Transport with what the capabilities need. It implements none: a
// gift is a Transport that has some.
type card struct {
	*rough
	job *cards
}

// cards is what the cards of a job share.
type cards struct {
	deal
	all        []*card
	atomically sync.Mutex
}

// deal says which capabilities the ranks of a job have.
type deal struct {
	give  func(c *card) conduits.Transport
	words int  // of a note
	aside bool // atomics lose those of processors
	used  *atomic.Int64
}

// open opens rough ranks with capabilities.
func (d deal) open(n int, c conduits.Config) ([]conduits.Transport, error) {
	ts, err := openRough(n, c)
	j := &cards{deal: d}
	for i, t := range ts {
		k := &card{t.(*rough), j}
		j.all = append(j.all, k)
		ts[i] = d.give(k)
	}
	return ts, err
}

// use does a capability's operation as rough does all of them.
func (c *card) use(m move) (bool, error) {
	c.job.used.Add(1)
	return c.later(m)
}

// notifying, immediate and atomics are the capabilities.
type (
	notifying struct{ c *card }
	immediate struct{ c *card }
	atomics   struct{ c *card }
)

func (g notifying) NotifyWords() int { return g.c.job.words }

// PutNotify has words delivered when the put is done.
func (g notifying) PutNotify(dst int, to segment.NLA, src []byte, words []uint32, cookie uint64) (bool, error) {
	c := g.c
	note := slices.Clone(words)
	return c.use(move{cookie, dst, func() (bool, error) {
		if done, err := c.Transport.Put(dst, to, src, cookie); !done || err != nil {
			return done, err
		}
		keeper{c.job.all[dst].rough}.Deliver(c.Rank(), note, nil)
		c.job.all[dst].Kick()
		return true, nil
	}})
}

// PutWord keeps the word with the command.
func (g immediate) PutWord(dst int, to segment.NLA, v uint64, n int, cookie uint64) (bool, error) {
	c := g.c
	return c.use(move{cookie, dst, func() (bool, error) { return c.Transport.Put(dst, to, bytesOf(v, n), cookie) }})
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

func (g atomics) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, old *uint64, cookie uint64) (bool, error) {
	c := g.c
	return c.use(move{cookie, dst, func() (bool, error) {
		target := c.job.all[dst]
		if err := c.Err(); err != nil {
			return false, err
		}
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
	}})
}

// The gifts, each alone and all together.
func giveNotes(c *card) conduits.Transport {
	return struct {
		*rough
		conduits.NotifyPutter
	}{c.rough, notifying{c}}
}

func giveWords(c *card) conduits.Transport {
	return struct {
		*rough
		conduits.WordPutter
	}{c.rough, immediate{c}}
}

func giveAtomics(c *card) conduits.Transport {
	return struct {
		*rough
		atomics
	}{c.rough, atomics{c}}
}

func giveAll(c *card) conduits.Transport {
	return struct {
		*rough
		notifying
		immediate
		atomics
	}{c.rough, notifying{c}, immediate{c}, atomics{c}}
}

// TestGifted: the layers keep their promises on a Transport that has all capabilities.
func TestGifted(t *testing.T) {
	conduittest.Run(t, adapt.Local("gifted", deal{give: giveAll, words: 1, used: new(atomic.Int64)}.open))
}

// TestGiftsAlone: each capability keeps the contract without the others, under chaos,
// too.
func TestGiftsAlone(t *testing.T) {
	for name, g := range map[string]struct {
		deal   deal
		checks string // those that use it
	}{
		"notes":                    {deal{give: giveNotes, words: 1}, noteChecks},
		"messages with their data": {deal{give: giveNotes, words: conduits.TransportWords}, noteChecks},
		"words":                    {deal{give: giveWords}, "rma words put wake leave"},
		"atomics":                  {deal{give: giveAtomics}, atomicChecks},
		"atomics aside":            {deal{give: giveAtomics, aside: true}, atomicChecks},
	} {
		t.Run(name, func(t *testing.T) {
			g.deal.used = new(atomic.Int64)
			local := adapt.Local("gifted", g.deal.open)
			some(t, local, g.checks)
			some(t, chaos.Local(local, chaos.Config{}), g.checks)
			if g.deal.used.Load() == 0 {
				t.Error("the capability has not been used")
			}
		})
	}
}

// The checks of capabilities, by words of their names.
const (
	noteChecks   = "shapes messages refused long config wake leave faults put_then close"
	atomicChecks = "atomics counter rights segments registered deregister wake leave close"
)

// some runs checks of the contract whose names have one of words.
func some(t *testing.T, open contract.Open, words string) {
	t.Helper()
	s := contract.New(t, open)
	s.Run(t, "contract", slices.DeleteFunc(slices.Clone(contract.Checks), func(k contract.Check) bool {
		name := strings.ReplaceAll(k.Name, " ", "_")
		return !slices.ContainsFunc(strings.Fields(words), func(w string) bool { return strings.Contains(name, w) })
	}))
}
