package am

import (
	"fmt"
	"slices"
	"strings"
	"sync"

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
	firstRuntime = FirstBarrier // the first index of the layers above
)

// Attach makes this rank's segment and handlers reachable and waits for all
// ranks to do so. It is collective: every rank must call it once, and gets an
// error if the tables of any two ranks differ, which says where. ep must not be
// attached yet. A handler may run before Attach has returned here: another rank
// may be ahead.
func Attach(ep conduits.Endpoint, c Config) (*Messenger, error) {
	e := &Messenger{
		ep:        ep,
		size:      int32(ep.Size()),
		max:       int32(ep.Limits().MaxMedium),
		maxLong:   ep.Limits().MaxLong,
		completer: c.Completer,
	}
	e.equip(Lane{Exposer: c.Exposer, User: c.User, Describe: c.Describe})
	if c.Work != nil {
		if e.given == nil {
			e.given = new(given)
		}
		e.given.work = c.Work
	}
	if c.Debug {
		e.checks = checkAlways
	}
	if l, ok := conduits.As[conduits.Laned](ep); ok && l.Lanes() > 1 {
		newLanes(e, l, c.Lane)
	}
	if err := e.fillTable(&c); err != nil {
		return nil, err
	}
	e.boot = &boot{children: len(children(ep.Rank(), int(e.size))), lowest: noRank}
	attach := conduits.AttachConfig{Size: c.SegmentSize, Rights: c.Rights, Lock: c.Lock, Receiver: e}
	if s := e.shared(); s != nil {
		attach.Lane = s.open
	}
	if err := ep.Attach(attach); err != nil {
		return nil, err
	}
	if err := e.compareTables(); err != nil {
		return nil, err
	}
	// Nothing of the comparison can come any more, and no goroutine may use it.
	e.boot = nil
	e.table = e.table.attached
	e.fns = append([]Handler(nil), e.fns[:len(e.fns)-int(ownHandlers)]...)
	return e, nil
}

// equip gives e what is its own.
func (e *Messenger) equip(l Lane) {
	if l.Exposer != nil && l.Exposer.Exposes() {
		e.exposed = &exposed{Exposer: l.Exposer}
	}
	if l.User != nil || l.Describe != nil {
		e.given = &given{user: l.User, describe: l.Describe}
	}
	for i := range e.token {
		e.token[i] = Token{e: e, m: &noMessage[i]}
	}
}

// noMessage is the message of tokens that never had one. Read only.
var noMessage = [conduits.NumClasses]conduits.Message{{Class: conduits.Request}, {Class: conduits.Reply}}

// tables has the last table that a rank of this process was given, which the next
// rank's is most often equal to, and the one that is being made.
var tables struct {
	mu   sync.Mutex
	last *table
	next table
}

// fillTable checks the entries and puts them in their places.
func (e *Messenger) fillTable(c *Config) error {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	e.table = &tables.next
	e.table.at = [NumHandlers]signature{}
	e.table.names = append(e.table.names[:0], "")
	e.fns = make([]Handler, 1, 2+len(c.Runtime)+len(c.Handlers)+int(ownHandlers)) // none, and perhaps am.exposed
	if err := e.registerAll(c); err != nil {
		return err
	}
	if l := tables.last; l == nil || l.at != tables.next.at || !slices.Equal(l.names, tables.next.names) {
		tables.last = tables.next.whole()
	}
	e.table = tables.last
	return nil
}

// whole is a copy of t with all that a table has.
func (t *table) whole() *table {
	names := slices.Clone(t.names)
	w := &table{at: t.at, names: names, digest: t.sum()}
	w.attached = &table{at: t.at, names: names}
	clear(w.attached.at[:ownHandlers])
	return w
}

func (e *Messenger) registerAll(c *Config) error {
	for i := range c.Runtime {
		ent := &c.Runtime[i]
		if ent.Index < firstRuntime || ent.Index >= FirstClient {
			return badIndex("am: runtime handler %q: index %d; those of the layers above are %d..%d", ent, int(firstRuntime), FirstClient-1)
		}
		if ownerOf(ent.Index) != ownerByName(ent.Name) {
			return errForeign(ent)
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
			return badIndex("am: handler %q: index %d is reserved for the runtime; clients have %d..%d", ent, FirstClient, NumHandlers-1)
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
		for next >= FirstClient && e.signature(HandlerID(next)).fn != 0 {
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
	return e.registerOwn()
}

// registerOwn puts the handlers of this package last, so that Attach can cut them
// off.
//
//go:noinline
func (e *Messenger) registerOwn() error {
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

// badIndex is the error of an entry whose index is not one of low..high.
//
//go:noinline
func badIndex(format string, ent *Entry, low, high int) error {
	return errs.BadArg(format, ent.Name, ent.Index, low, high)
}

func (e *Messenger) register(ent *Entry) error {
	if ent.Fn == nil || ent.Name == "" || strings.IndexByte(ent.Name, '\n') >= 0 || ent.Args < AnyArgs || ent.Args > MaxArgs || e.signature(ent.Index).fn != 0 {
		return e.refuse(ent)
	}
	// There are fewer than 256, for own and runtime leave gaps.
	e.table.at[ent.Index] = signature{fn: uint8(len(e.fns)), args: int8(ent.Args), kinds: ent.Kinds.normal()}
	e.table.names = append(e.table.names, ent.Name)
	e.fns = append(e.fns, ent.Fn)
	return nil
}

// refuse is the error of an entry that cannot be registered. Apart, for its frame
// would be on the stack of every rank that attaches.
//
//go:noinline
func (e *Messenger) refuse(ent *Entry) error {
	switch {
	case ent.Fn == nil:
		return errs.BadArg("am: handler %d (%s) has no function", ent.Index, ent.Name)
	case ent.Name == "" || strings.IndexByte(ent.Name, '\n') >= 0:
		return errs.BadArg("am: handler %d: name %q: one line, not empty", ent.Index, ent.Name)
	case ent.Args < AnyArgs || ent.Args > MaxArgs:
		return errs.BadArg("am: handler %d (%s): %d arguments; 0..%d, or AnyArgs", ent.Index, ent.Name, ent.Args, MaxArgs)
	}
	return errs.BadArg("am: handler index %d is registered twice, as %q and %q", ent.Index, e.table.name(ent.Index), ent.Name)
}

// signatures is the table as text, a line a handler.
func (t *table) signatures() string {
	var b strings.Builder
	for h := range NumHandlers {
		if ent := &t.at[h]; ent.fn != 0 {
			fmt.Fprintf(&b, "%d %q args %d kinds %v\n", h, t.names[ent.fn], ent.args, ent.kinds)
		}
	}
	return b.String()
}

// sum is a hash of what signatures lists (FNV-1a, 64 bits): all ranks compare it,
// and those that differ the text.
func (t *table) sum() uint64 {
	d := uint64(14695981039346656037)
	add := func(c byte) { d = (d ^ uint64(c)) * 1099511628211 }
	for h := range NumHandlers {
		if ent := &t.at[h]; ent.fn != 0 {
			name := t.names[ent.fn]
			add(byte(h))
			add(byte(ent.args))
			add(byte(ent.kinds))
			for i := range len(name) {
				add(name[i])
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
	lowest   uint32 // rank that differs, as far as is known; or noRank
	table    []byte // rank 0's; nil before its first piece
	have     int    // bytes of it that have come
	finding  *string
	verdict  *string
	verdicts int // messages that brought it: the second says that all know
}

// noRank stands for none.
const noRank = 1<<32 - 1

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

func (e *Messenger) onDigest(_ *Token, args []uint32, _ []byte) {
	e.boot.digest, e.boot.known = Uint64(args, 0), true
}

func (e *Messenger) onLowest(_ *Token, args []uint32, _ []byte) {
	e.boot.children--
	e.boot.lowest = min(e.boot.lowest, args[0])
}

func (e *Messenger) onTable(_ *Token, args []uint32, piece []byte) {
	b := e.boot
	if b.table == nil {
		b.table = make([]byte, args[1])
	}
	b.have += copy(b.table[args[0]:], piece) // pieces may overtake each other
}

func (e *Messenger) onFinding(_ *Token, _ []uint32, text []byte) {
	s := string(text)
	e.boot.finding = &s
}

func (e *Messenger) onVerdict(_ *Token, _ []uint32, text []byte) {
	s := string(text)
	e.boot.verdict = &s
	e.boot.verdicts++
}

// Blocked says how far the comparison is.
func (b *boot) Blocked() string { return "attach: comparing handler tables" }

func (e *Messenger) compareTables() error {
	b, rank := e.boot, e.Rank()
	mine := e.table.digest
	kids := children(rank, int(e.size))
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
	// A rank that has the verdict fails, and the job with it; so none returns before
	// all have it. The verdict is the error, whatever else fails from here on.
	if e.Wait(b, func() bool { return b.children == 0 }) == nil && (rank == 0 ||
		e.RequestShort(parent(rank), hLowest, noRank) == nil && e.Wait(b, func() bool { return b.verdicts == 2 }) == nil) {
		_ = e.tellVerdict(kids)
	}
	return errs.BadArg("am: handler tables differ: %s", *b.verdict)
}

// judge finds the verdict, at rank 0.
func (e *Messenger) judge() error {
	b := e.boot
	if b.lowest == noRank {
		none := noDifference
		b.verdict = &none
		return nil
	}
	table := []byte(e.table.signatures())
	for at := 0; at < len(table); {
		n := min(len(table)-at, int(e.max))
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
func (e *Messenger) report(rank int) error {
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
	d := difference(string(b.table), e.table.signatures(), rank)
	if err := e.RequestMedium(0, hFinding, clip(d, int(e.max))); err != nil {
		return err
	}
	return e.Wait(b, func() bool { return b.verdict != nil })
}

func (e *Messenger) tellVerdict(kids []int) error {
	for _, kid := range kids {
		if err := e.RequestMedium(kid, hVerdict, clip(*e.boot.verdict, int(e.max))); err != nil {
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
			at := 0 // where they differ
			for at < min(len(a[i]), len(b[i])) && a[i][at] == b[i][at] {
				at++
			}
			return fmt.Sprintf("rank %d has handler %s where rank 0 has %s", rank, orNone(around(b[i], at)), orNone(around(a[i], at)))
		}
	}
	return fmt.Sprintf("rank %d has %d handlers, rank 0 has %d", rank, len(b)-1, len(a)-1)
}

// around is line, or of a long one its beginning and what is at byte at: from the last
// semicolon before that on, since names may be lists.
func around(line string, at int) string {
	const most, head = 160, 24
	if len(line) <= most {
		return line
	}
	from := max(strings.LastIndex(line[:at], "; ")+2, at-most, head)
	s := line[:head]
	if from > head {
		s += "... "
	}
	if rest := line[from:]; len(rest) > most {
		return s + rest[:most] + "..."
	}
	return s + line[from:]
}

func orNone(line string) string {
	if line == "" {
		return "none"
	}
	return line
}
