package am

import (
	"fmt"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Handlers of this package: the comparison of tables at Attach.
const (
	hTable   HandlerID = iota // medium: a piece of rank 0's table, going down
	hFinding                  // medium: what a subtree found, going up
	hVerdict                  // medium: what all found, going down
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
		completer: c.Completer,
	}
	for i := range e.token {
		e.token[i] = Token{e: e, m: &conduits.Message{Class: conduits.Class(i)}}
	}
	if err := e.fillTable(c); err != nil {
		return nil, err
	}
	e.boot = &boot{children: len(children(ep.Rank(), e.size)), finding: noDifference}
	if err := ep.Attach(conduits.AttachConfig{Size: c.SegmentSize, Rights: c.Rights, Receiver: e}); err != nil {
		return nil, err
	}
	if err := e.compareTables(); err != nil {
		return nil, err
	}
	// Nothing of the comparison can come any more, and nobody else may use it.
	e.boot = nil
	for h := range ownHandlers {
		e.table[h] = handler{}
	}
	return e, nil
}

// fillTable checks the entries and puts them in their places.
func (e *Endpoint) fillTable(c Config) error {
	own := []Entry{
		{hTable, "am.table", e.onTable, 2, Medium | Request},
		{hFinding, "am.finding", e.onFinding, 1, Medium | Request},
		{hVerdict, "am.verdict", e.onVerdict, 1, Medium | Request},
	}
	for i := range own {
		if err := e.register(&own[i]); err != nil {
			return err
		}
	}
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
		for next >= FirstClient && e.table[next].fn != nil {
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
	case e.table[ent.Index].fn != nil:
		return errs.BadArg("am: handler index %d is registered twice, as %q and %q", ent.Index, e.table[ent.Index].name, ent.Name)
	}
	e.table[ent.Index] = handler{fn: ent.Fn, args: int8(ent.Args), kinds: ent.Kinds.normal(), name: ent.Name}
	return nil
}

// signatures is the table as text, a line a handler.
func (e *Endpoint) signatures() string {
	var b strings.Builder
	for i := range e.table {
		if ent := &e.table[i]; ent.fn != nil {
			fmt.Fprintf(&b, "%d %q args %d kinds %v\n", i, ent.name, ent.args, ent.kinds)
		}
	}
	return b.String()
}

// boot is the state of the comparison. Rank 0's table goes down a binomial tree,
// each rank compares, the first difference goes up and the verdict down again:
// O(log N) messages and state a rank.
type boot struct {
	table    []byte // rank 0's; nil before its first piece
	have     int    // bytes of it that have come
	children int    // subtrees that have not reported
	rank     uint32
	finding  string // of the lowest rank that differs, which is rank
	verdict  *string
	verdicts int // messages that brought it: the second says that all know
}

// noDifference is an empty finding. Findings travel as payloads, and an empty
// one would look the same.
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

func (e *Endpoint) onTable(_ *Token, args []uint32, piece []byte) {
	b := e.boot
	if b.table == nil {
		b.table = make([]byte, args[1])
	}
	b.have += copy(b.table[args[0]:], piece) // pieces may overtake each other
}

func (e *Endpoint) onFinding(_ *Token, args []uint32, text []byte) {
	e.boot.children--
	e.boot.add(args[0], string(text))
}

func (e *Endpoint) onVerdict(_ *Token, _ []uint32, text []byte) {
	s := string(text)
	e.boot.verdict = &s
	e.boot.verdicts++
}

func (b *boot) add(rank uint32, finding string) {
	if finding != noDifference && (b.finding == noDifference || rank < b.rank) {
		b.rank, b.finding = rank, finding
	}
}

// Blocked says how far the comparison is.
func (b *boot) Blocked() string { return "attach: comparing handler tables" }

func (e *Endpoint) compareTables() error {
	b, rank := e.boot, e.Rank()
	mine := e.signatures()
	kids := children(rank, e.size)
	if rank == 0 {
		b.table = []byte(mine)
	} else if err := e.Wait(b, func() bool { return b.table != nil && b.have == len(b.table) }); err != nil {
		return err
	}
	for _, kid := range kids {
		for at := 0; at < len(b.table); {
			n := min(len(b.table)-at, e.max)
			if err := e.RequestMedium(kid, hTable, b.table[at:at+n], uint32(at), uint32(len(b.table))); err != nil {
				return err
			}
			at += n
		}
	}
	if d := difference(string(b.table), mine, rank); d != noDifference {
		b.add(uint32(rank), d)
	}
	if err := e.Wait(b, func() bool { return b.children == 0 }); err != nil {
		return err
	}
	if rank == 0 {
		b.verdict = &b.finding
	} else {
		if err := e.RequestMedium(parent(rank), hFinding, clip(b.finding, e.max), b.rank); err != nil {
			return err
		}
		if err := e.Wait(b, func() bool { return b.verdict != nil }); err != nil {
			return err
		}
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
		e.RequestMedium(parent(rank), hFinding, nil, b.rank) == nil && e.Wait(b, func() bool { return b.verdicts == 2 }) == nil) {
		_ = e.tellVerdict(kids)
	}
	return errs.BadArg("am: handler tables differ: %s", *b.verdict)
}

func (e *Endpoint) tellVerdict(kids []int) error {
	for _, kid := range kids {
		if err := e.RequestMedium(kid, hVerdict, clip(*e.boot.verdict, e.max), 0); err != nil {
			return err
		}
	}
	return nil
}

func clip(s string, n int) []byte { return []byte(s[:min(len(s), n)]) }

// difference says in what rank's table differs first from rank 0's.
func difference(zero, mine string, rank int) string {
	if zero == mine {
		return noDifference
	}
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
