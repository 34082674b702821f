package am

import (
	"fmt"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Handlers of this package: the comparison of tables at Attach.
const (
	hDigest  HandlerID = iota // short: of rank 0's table, going down
	hLowest                   // short: the lowest rank of a subtree that differs, going up
	hTable                    // medium: a piece of rank 0's table, to the lowest rank of all that differs
	hFinding                  // medium: how that one differs, to rank 0
	hVerdict                  // medium: the same, going down
	ownHandlers
	firstRuntime HandlerID = 16 // the first index of the layers above
)

// Attach makes this rank's segment and handlers reachable and waits for all
// ranks to do so. It is collective: every rank must call it once, and gets an
// error if the tables of any two ranks differ, which says where. ep must not be
// attached yet. A handler may run before Attach has returned here: another rank
// may be ahead.
func Attach(ep conduits.Endpoint, c Config) (*Endpoint, error) {
	e := &Endpoint{
		ep:        ep,
		size:      ep.Size(),
		debug:     c.Debug,
		max:       ep.Limits().MaxMedium,
		maxLong:   ep.Limits().MaxLong,
		completer: c.Completer,
	}
	if x, ok := c.Completer.(Exposer); ok && x.Exposes() {
		e.exposed = &exposed{Exposer: x}
	}
	for i := range e.token {
		e.token[i] = Token{e: e, m: &noMessage[i]}
	}
	if err := e.fillTable(c); err != nil {
		return nil, err
	}
	e.boot = &boot{children: len(children(ep.Rank(), e.size)), lowest: nobody}
	if err := ep.Attach(conduits.AttachConfig{Size: c.SegmentSize, Rights: c.Rights, Lock: c.Lock, Receiver: e}); err != nil {
		return nil, err
	}
	if err := e.compareTables(); err != nil {
		return nil, err
	}
	// Nothing of the comparison can come any more, and nobody else may use it.
	e.boot = nil
	e.handlers = append([]handler(nil), e.handlers[:len(e.handlers)-int(ownHandlers)]...)
	clear(e.index[:ownHandlers])
	return e, nil
}

// noMessage is what tokens have that never had one. Read only.
var noMessage = [conduits.NumClasses]conduits.Message{{Class: conduits.Request}, {Class: conduits.Reply}}

// fillTable checks the entries and puts them in their places.
func (e *Endpoint) fillTable(c Config) error {
	e.handlers = make([]handler, 1, 1+len(c.Runtime)+len(c.Handlers)+int(ownHandlers))
	for i := range c.Runtime {
		ent := &c.Runtime[i]
		if ent.Index < firstRuntime || ent.Index >= FirstClient {
			return errs.BadArg("am: runtime handler %q: index %d; those of the layers above are %d..%d", ent.Name, ent.Index, firstRuntime, FirstClient-1)
		}
		if err := e.register(ent); err != nil {
			return err
		}
	}
	for i := range c.Handlers {
		ent := &c.Handlers[i]
		if ent.Index == 0 {
			continue
		}
		if ent.Index < FirstClient {
			return errs.BadArg("am: handler %q: index %d is reserved for the runtime; clients have %d..%d", ent.Name, ent.Index, FirstClient, NumHandlers-1)
		}
		if err := e.register(ent); err != nil {
			return err
		}
	}
	next := NumHandlers - 1
	for i := range c.Handlers {
		ent := &c.Handlers[i]
		if ent.Index != 0 {
			continue
		}
		for next >= FirstClient && e.index[next] != 0 {
			next--
		}
		if next < FirstClient {
			return errs.Resource("am: handler %q: all %d indices of clients are taken", ent.Name, NumHandlers-FirstClient)
		}
		ent.Index = HandlerID(next)
		if err := e.register(ent); err != nil {
			return err
		}
	}
	if e.exposed != nil {
		if err := e.register(&Entry{hExposed, "am.exposed", e.onExposed, AnyArgs, Medium}); err != nil {
			return err
		}
	}
	// Last, so that Attach can cut them off.
	own := [ownHandlers]Entry{
		{hDigest, "am.digest", e.onDigest, 2, Short | Request},
		{hLowest, "am.lowest", e.onLowest, 1, Short | Request},
		{hTable, "am.table", e.onTable, 2, Medium | Request},
		{hFinding, "am.finding", e.onFinding, 0, Medium | Request},
		{hVerdict, "am.verdict", e.onVerdict, 0, Medium | Request},
	}
	for i := range own {
		if err := e.register(&own[i]); err != nil {
			return err
		}
	}
	return nil
}

func (e *Endpoint) register(ent *Entry) error {
	switch {
	case ent.Fn == nil:
		return errs.BadArg("am: handler %d (%s) has no function", ent.Index, ent.Name)
	case ent.Name == "" || strings.ContainsAny(ent.Name, "\n"):
		return errs.BadArg("am: handler %d: name %q: one line, not empty", ent.Index, ent.Name)
	case ent.Args < AnyArgs || ent.Args > MaxArgs:
		return errs.BadArg("am: handler %d (%s): %d arguments; 0..%d, or AnyArgs", ent.Index, ent.Name, ent.Args, MaxArgs)
	case e.index[ent.Index] != 0:
		return errs.BadArg("am: handler index %d is registered twice, as %q and %q", ent.Index, e.handler(ent.Index).name, ent.Name)
	}
	e.index[ent.Index] = uint8(len(e.handlers)) // there are fewer, for own and runtime leave gaps
	e.handlers = append(e.handlers, handler{fn: ent.Fn, args: int8(ent.Args), kinds: ent.Kinds.normal(), name: ent.Name})
	return nil
}

// signatures is the table as text, a line a handler.
func (e *Endpoint) signatures() string {
	var b strings.Builder
	for h := range NumHandlers {
		if ent := e.handler(HandlerID(h)); ent.fn != nil {
			fmt.Fprintf(&b, "%d %q args %d kinds %v\n", h, ent.name, ent.args, ent.kinds)
		}
	}
	return b.String()
}

// digest is a hash of what signatures lists (FNV-1a, 64 bits), which makes no
// garbage: every rank of a large job needs it, and the text only those that
// differ.
func (e *Endpoint) digest() uint64 {
	d := uint64(14695981039346656037)
	add := func(c byte) { d = (d ^ uint64(c)) * 1099511628211 }
	for h := range NumHandlers {
		if ent := e.handler(HandlerID(h)); ent.fn != nil {
			add(byte(h))
			add(byte(ent.args))
			add(byte(ent.kinds))
			for i := range len(ent.name) {
				add(ent.name[i])
			}
			add('\n') // which no name has
		}
	}
	return d
}

// boot is the state of the comparison. The digest of rank 0's table goes down a
// binomial tree, each rank compares, the lowest rank that differs goes up, and
// that there is none down again: O(log N) messages and a few words of state a
// rank. If there is one, rank 0 sends it the table, it answers with the first
// difference, and that is the verdict that goes down.
type boot struct {
	digest   uint64 // rank 0's
	known    bool   // digest has come
	children int    // subtrees that have not reported
	lowest   uint32 // rank that differs, as far as is known; or nobody
	table    []byte // rank 0's; nil before its first piece
	have     int    // bytes of it that have come
	finding  *string
	verdict  *string
	verdicts int // messages that brought it: the second says that all know
}

// nobody is no rank.
const nobody = 1<<32 - 1

// noDifference is the verdict that all tables agree.
const noDifference = ""

// parent and children of a rank in a binomial tree rooted at 0.
func parent(rank int) int { return rank & (rank - 1) }

func children(rank, size int) []int {
	var l []int
	for bit := 1; rank+bit < size && rank&bit == 0; bit <<= 1 {
		l = append(l, rank+bit)
	}
	return l
}

func (e *Endpoint) onDigest(_ *Token, args []uint32, _ []byte) {
	e.boot.digest, e.boot.known = Uint64(args, 0), true
}

func (e *Endpoint) onLowest(_ *Token, args []uint32, _ []byte) {
	e.boot.children--
	e.boot.lowest = min(e.boot.lowest, args[0])
}

func (e *Endpoint) onTable(_ *Token, args []uint32, piece []byte) {
	b := e.boot
	if b.table == nil {
		b.table = make([]byte, args[1])
	}
	b.have += copy(b.table[args[0]:], piece) // pieces may overtake each other
}

func (e *Endpoint) onFinding(_ *Token, _ []uint32, text []byte) {
	s := string(text)
	e.boot.finding = &s
}

func (e *Endpoint) onVerdict(_ *Token, _ []uint32, text []byte) {
	s := string(text)
	e.boot.verdict = &s
	e.boot.verdicts++
}

// Blocked says how far the comparison is.
func (b *boot) Blocked() string { return "attach: comparing handler tables" }

func (e *Endpoint) compareTables() error {
	b, rank := e.boot, e.Rank()
	mine := e.digest()
	kids := children(rank, e.size)
	if rank == 0 {
		b.digest = mine
	} else if err := e.Wait(b, func() bool { return b.known }); err != nil {
		return err
	}
	for _, kid := range kids {
		lo, hi := Pack64(b.digest)
		if err := e.RequestShort(kid, hDigest, lo, hi); err != nil {
			return err
		}
	}
	if mine != b.digest {
		b.lowest = min(b.lowest, uint32(rank))
	}
	if err := e.Wait(b, func() bool { return b.children == 0 }); err != nil {
		return err
	}
	var err error
	if rank == 0 {
		err = e.judge()
	} else {
		err = e.report(rank)
	}
	if err != nil {
		return err
	}
	b.children = len(kids)
	if err := e.tellVerdict(kids); err != nil {
		return err
	}
	if *b.verdict == noDifference {
		return nil
	}
	// Who has the verdict fails, and the job with it; so nobody returns before
	// all have it. Whatever goes wrong from here on, the verdict is the error.
	if e.Wait(b, func() bool { return b.children == 0 }) == nil && (rank == 0 ||
		e.RequestShort(parent(rank), hLowest, nobody) == nil && e.Wait(b, func() bool { return b.verdicts == 2 }) == nil) {
		_ = e.tellVerdict(kids)
	}
	return errs.BadArg("am: handler tables differ: %s", *b.verdict)
}

// judge finds the verdict, at rank 0.
func (e *Endpoint) judge() error {
	b := e.boot
	if b.lowest == nobody {
		none := noDifference
		b.verdict = &none
		return nil
	}
	table := []byte(e.signatures())
	for at := 0; at < len(table); {
		n := min(len(table)-at, e.max)
		if err := e.RequestMedium(int(b.lowest), hTable, table[at:at+n], uint32(at), uint32(len(table))); err != nil {
			return err
		}
		at += n
	}
	err := e.Wait(b, func() bool { return b.finding != nil })
	b.verdict = b.finding
	return err
}

// report tells the parent which rank of this subtree differs, and waits for the
// verdict. If it is this one, rank 0 asks how.
func (e *Endpoint) report(rank int) error {
	b := e.boot
	if err := e.RequestShort(parent(rank), hLowest, b.lowest); err != nil {
		return err
	}
	asked := func() bool { return b.table != nil && b.have == len(b.table) }
	if err := e.Wait(b, func() bool { return b.verdict != nil || asked() }); err != nil {
		return err
	}
	if !asked() {
		return nil
	}
	d := difference(string(b.table), e.signatures(), rank)
	if err := e.RequestMedium(0, hFinding, clip(d, e.max)); err != nil {
		return err
	}
	return e.Wait(b, func() bool { return b.verdict != nil })
}

func (e *Endpoint) tellVerdict(kids []int) error {
	for _, kid := range kids {
		if err := e.RequestMedium(kid, hVerdict, clip(*e.boot.verdict, e.max)); err != nil {
			return err
		}
	}
	return nil
}

func clip(s string, n int) []byte { return []byte(s[:min(len(s), n)]) }

// difference says in what rank's table differs first from rank 0's, which it
// does.
func difference(zero, mine string, rank int) string {
	a, b := strings.Split(zero, "\n"), strings.Split(mine, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("rank %d has handler %s where rank 0 has %s", rank, orNone(b[i]), orNone(a[i]))
		}
	}
	return fmt.Sprintf("rank %d has %d handlers, rank 0 has %d", rank, len(b)-1, len(a)-1)
}

func orNone(line string) string {
	if line == "" {
		return "none"
	}
	return line
}
