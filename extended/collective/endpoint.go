package collective

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
)

// Config has the options of a Member. The zero value is good.
type Config struct {
	// Names has messages to people speak of the layer above; nil for this package's
	// own. All ranks of a process may share it, which is read and not copied.
	Names *Names
	// Phases is the job's barrier if a rank never calls the two at once and all ranks
	// do so in the same order. Ranks of which one is in the barrier and another one in a call
	// of the job's that waits are then calls that do not match. nil: they wait for each
	// other for ever. The owner of both calls AtBarrier.
	Phases Phases
}

// Names are words in messages to people. All are given or none is.
type Names struct {
	Package string // what errors begin with, before a colon
	Agree   string // what an Agree is for, such as "a collective allocation"
	Leave   string // what Leave is called at
	// Handlers is the prefix of the names of handlers; "collective", or
	// "gas.collective" for package gas. The same on all ranks.
	Handlers string
}

var ownNames = Names{Package: "collective", Agree: "an agreement", Leave: "the end of the program", Handlers: "collective"}

// Combine is the operation of a reduction on the data of two ranks, or of two groups of
// ranks: it has acc hold their combination. Both are as long as what the ranks gave, in
// begins at a multiple of 8 bytes of this process's memory, and so does acc if
// it does in the call. It is called by the goroutine that is in the collective, and does
// nothing but compute.
type Combine func(acc, in []byte)

// Handler indices.
const (
	handlerReady  = am.FirstCollective + iota // request: the receiver is ready
	handlerOffer                              // request: the sender waits
	handlerData                               // request: a piece of the data
	handlerWrong                              // reply: the receiver of a request, or sender, is in another call
	handlerAbort                              // request: some rank's call did not match
	handlerSlot                               // request: what the sender has written into its slot, or half
	handlerInvite                             // request: handlerReady, with an address to put the data to
	handlerPut                                // request: all of the data, which were put there
)

// Member is one rank's part in collective calls. Make it with New, hand Handlers to
// am.Attach (Config.Runtime), then call Bind. Its calls are made by one goroutine at a
// time; the other methods may be called by any.
type Member struct {
	names *Names
	e     *am.Messenger // nil before Bind
	spot
	team   *team         // nil for all ranks of the job
	teams  *numbers      // of the job's endpoint; nil as long as there was none
	card   *card         // nil where there is none, and for teams
	phases Phases        // nil unless Config has it, and for teams
	shared *shared       // nil unless all ranks share memory, or are few
	began  time.Duration // the call under way, if watched

	// work is of the call under way if it waits, and kept for the next one: it would take stack of
	// every rank that waits.
	work *work

	mu      sync.Mutex
	busy    bool   // a goroutine is in a call
	watched bool   // the endpoint is a conduits.Watcher
	apart   bool   // not all ranks share memory, and none is simulated: see puts
	places  uint8  // by bits: of teams; of the job's endpoint
	seq     uint32 // number of the call under way, or of the last one
	call    call
	past    []call // the last ones, at most historyLen; see history
	// links has the transfers with each partner that something was heard of or that is
	// waited for (see link). Most ranks of a tree are leaves and have one or two.
	links links

	stop func() bool // of Leave, else nil; its goroutine's alone, while busy

	broken error  // calls did not match; all later ones fail
	fault  *fault // which; nil as long as broken is
	// The peer and place that the call waits for, for diagnosis.
	waitPeer  int32
	ahead     uint32 // the latest call that a rank waits for this one in, of those not made when it said so; with phases
	waiting   bool
	waitReady bool // for the peer to be ready, rather than for its data

	active bool // the call of seq is under way
	report bool // this rank found broken and has not told the others
	spared bool // a rank below this one tells them

	left  bool // of a team: the rank is at the end of its program
	ended bool // of the job, likewise

	flight *flight                // calls that do not wait; nil as long as there was none
	engine atomic.Pointer[engine] // of the job's endpoint; nil likewise
}

// New makes an endpoint that waits for Bind.
func New(c Config) *Member {
	if c.Names == nil {
		c.Names = &ownNames
	}
	return &Member{names: c.Names, phases: c.Phases}
}

// Handlers are the entries for am.Config.Runtime.
func (c *Member) Handlers() []am.Entry {
	p := c.names.Handlers
	return []am.Entry{
		{Index: handlerReady, Name: p + ".ready", Fn: func(t *am.Token, args []uint32, _ []byte) { c.note(t, args, true) }, Args: 2 + callWords, Kinds: am.Short | am.Request},
		{Index: handlerOffer, Name: p + ".offer", Fn: func(t *am.Token, args []uint32, _ []byte) { c.note(t, args, false) }, Args: 2 + callWords, Kinds: am.Short | am.Request},
		{Index: handlerData, Name: p + ".data", Fn: c.onData, Args: 4, Kinds: am.Medium | am.Request},
		{Index: handlerWrong, Name: p + ".wrong", Fn: c.onWrong, Args: faultWords, Kinds: am.Short | am.Reply},
		{Index: handlerSlot, Name: p + ".slot", Fn: func(t *am.Token, args []uint32, payload []byte) { onSlot(c, t, args, payload) }, Args: 3 + callWords, Kinds: am.Medium | am.Request},
		{Index: handlerInvite, Name: p + ".invite", Fn: func(t *am.Token, args []uint32, _ []byte) { c.note(t, args, true) }, Args: 4 + callWords, Kinds: am.Short | am.Request},
		{Index: handlerPut, Name: p + ".put", Fn: c.onData, Args: putWords, Kinds: am.Long | am.Request},
		{Index: handlerAbort, Name: p + ".abort", Fn: c.onAbort, Args: faultWords, Kinds: am.Short | am.Request},
	}
}

// Bind joins c to an attached endpoint whose handler table contains c's Handlers. Every
// rank of the job does it once, before any call; other ranks may be in a call already.
func (c *Member) Bind(e *am.Messenger) {
	c.mu.Lock() // handlers may run
	defer c.mu.Unlock()
	c.e, c.rank, c.size = e, e.Rank(), e.Size()
	_, c.watched = e.Conduit().(conduits.Watcher)
	c.useLevels(conduits.NeighbourhoodsOf(e.Conduit()))
	c.useCard()
	c.useShared(nil)
}
