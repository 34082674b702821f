package conformance

import (
	"flag"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/internal/conc"
	"pgregory.net/rapid"
)

var machineChecks = []check{
	{name: "programs", seeded: true, run: func(c *ctx) { machine(c, Program{}) }},
	{name: "programs without direct access", seeded: true, run: func(c *ctx) { machine(c, Program{Hidden: true}) }},
	{name: "programs on bare endpoints", seeded: true, run: func(c *ctx) { machine(c, Program{Bare: true}) }},
}

// Program is one run of the state machine: what the ranks of a job do, step
// after step. A model of all ranks says beforehand what each step has to give,
// so every list of steps is a test. [Replay] runs one; [Run] makes them at
// random, and prints the one that failed, made short.
//
// One rank acts at a time, and the others wait, polling. What a step leaves
// under way (operations with handles, requests and their replies) stays so
// over the following steps until something synchronizes it, or a step is to touch
// its memory; then it is synchronized first.
type Program struct {
	Seed  uint64 // conduits.Config.Seed
	Ranks int    // 1..16; other values are brought into this range
	// Hidden keeps direct access from the layers, so that everything goes
	// through the conduit.
	Hidden bool
	// Bare programs use endpoints without the layers above, and have actions of
	// their own.
	Bare bool
	// Always is extended.Config.AlwaysHandle; Debug is am.Config.Debug.
	Always, Debug bool
	// Disseminate makes the barrier send messages, though it may have memory.
	Disseminate bool
	Steps       []Step
}

// Step is one action of one rank. Fields that an action does not use are
// ignored. Values out of range are meant: the model expects the error that the
// documentation promises, and that nothing has changed.
type Step struct {
	Do   string // the action, see below
	Rank int    // that acts; modulo the number of ranks
	// Form is how the action is done: "" blocking, and otherwise as far as the
	// action has it
	//
	//	nb, implicit, set, region     transfers and atomics: handle, implicit, own set, access region
	//	try, nb, prepare, cancel      messages
	//	named                         atomics by the method of the operation's name
	//	put, putnb                    signals: with data
	//	all, any, some                waiting for words
	//	anonymous, mismatch, try      barriers
	Form  string
	Peer  int    // the other rank
	At    int    // offset in Peer's segment, bytes
	Len   int    // bytes; -1 is Limits.MaxMedium, -2 one more
	Value uint64 // what is sent, put or added; seeds contents and shapes; a barrier's id
	Arg   int    // number of arguments, type and operation, comparison, which handle, ...
}

// The actions.
//
//	short medium long           a request with Arg arguments and a reply of kind Value%7
//	flood                       all ranks: Arg requests to the Peer-th rank after their own, at once
//	drain                       wait until all requests of the rank are answered
//	put putBulk get             transfers of Len bytes
//	putValue getValue memset    of Len bytes
//	putStrided getStrided putIndexed getIndexed putVector getVector
//	atomic                      type Arg%6, operation Arg/6%11, operands from Value
//	addAll                      all ranks: add Value to one word at once
//	signal                      Arg&1: set or add
//	await                       the rank waits for words that Peer signals, comparison Arg%6
//	test                        compare an own word, which no rank waits for
//	wait try waitAll waitSome trySome tryAll    handles, chosen by Arg
//	again bogus                 a handle that is not outstanding
//	sync trySync                the implicit set, category Arg
//	begin end                   of an access region
//	notify meet tryMeet         barrier: notify, finish by all, try
//	poll
//	check                       synchronize everything, compare all memory
//
// On bare endpoints, besides drain, poll and check: send (forms reserve, cancel,
// put, cancelput), bput, bget, bword, batomic, park (until Peer wakes), disarm; and
// on memory beyond the segment register, deregister, rput, rget, rword, ratomic,
// rlong.

// Replay runs one program on a new job of the conduit that open opens and fails
// t if anything differs from the model. Run prints failures as a call of it.
func Replay(t *testing.T, open contract.Open, p Program) {
	t.Helper()
	if open == nil {
		t.Fatal("conformance: replay: no conduit to run on")
	}
	if failure := execute(open, p, contract.PatienceOf(t)); failure != "" {
		t.Fatalf("%s", failure)
	}
}

// programsPerSeed numbers the programs of a seed.
const programsPerSeed = 150

// The default keeps a seed within a second or two. The race detector, under which a program
// takes ten times as long, is to see each pair of operations, which a third of them have.
var flagPrograms = flag.Int("conformance.programs", defaultPrograms(), "how many random programs of each kind run for a seed, at most 150")

func defaultPrograms() int {
	if conc.Race {
		return programsPerSeed / 3
	}
	return programsPerSeed
}

// machine runs random programs.
func machine(c *ctx, kind Program) {
	text, left := findFailure(c.Open, c.Seed, kind, c.Patience())
	if left {
		c.GiveUp()
	}
	if text != "" {
		c.Fatalf("%s", text)
	}
}

// findFailure runs the programs of a kind for a seed and describes the first that
// fails, "" if none does. left says that its job could not be ended, so that the
// program is not made short.
func findFailure(open contract.Open, seed uint64, kind Program, pt contract.Patience) (text string, left bool) {
	gen := programs(kind)
	for i := range uint64(min(max(*flagPrograms, 1), programsPerSeed)) {
		p := gen.Example(int(seed*programsPerSeed + i))
		p.Seed = seed*programsPerSeed + i
		if failure := execute(open, p, pt); failure != "" {
			if left = strings.Contains(failure, contract.Stayed); !left {
				p, failure = shrink(open, p, failure, pt)
			}
			return fmt.Sprintf("%s\nTo see it again, run this test:\n\n%s", failure, goTest(open, p)), left
		}
	}
	return "", false
}

// programs generates programs. They are drawn by rapid, but shrunk here: a
// failure on a conduit whose ranks really run at the same time may need several
// runs to come again, and each candidate gets them.
func programs(kind Program) *rapid.Generator[Program] {
	return rapid.Custom(func(t *rapid.T) Program {
		p := Program{
			Ranks:       rapid.SampledFrom([]int{2, 3, 1, 4, 5, 2, 3}).Draw(t, "ranks"),
			Hidden:      kind.Hidden,
			Bare:        kind.Bare,
			Always:      rapid.Bool().Draw(t, "always"),
			Debug:       rapid.Bool().Draw(t, "debug"),
			Disseminate: rapid.Bool().Draw(t, "disseminate"),
		}
		p.Steps = rapid.SliceOfN(steps(p.Ranks, p.Bare), 30, 80).Draw(t, "steps")
		// Things happen between steps of one rank at one place more than between
		// others, so every second step stays where the one before was.
		for i := range p.Steps {
			s := &p.Steps[i]
			if s.Rank >= p.Ranks {
				s.Rank -= p.Ranks
				if i > 0 {
					s.Rank, s.Peer = p.Steps[i-1].Rank, p.Steps[i-1].Peer
				}
			}
		}
		return p
	})
}

// forms an action may take; the model takes others for "".
var (
	transferForms = []string{"", "nb", "nb", "implicit", "set", "region"}
	messageForms  = []string{"", "", "try", "nb", "prepare", "cancel"}
	barrierForms  = []string{"", "", "", "anonymous", "anonymous", "mismatch"}
)

// action has the forms that an action may have, and how often it comes.
type action struct {
	do     string
	weight int
	forms  []string
}

var actions = []action{
	{"short", 6, messageForms},
	{"medium", 6, messageForms},
	{"long", 6, messageForms},
	{"flood", 1, nil},
	{"drain", 2, nil},
	{"put", 6, transferForms},
	{"putBulk", 4, transferForms},
	{"get", 6, transferForms},
	{"putValue", 3, transferForms},
	{"getValue", 3, transferForms},
	{"memset", 3, transferForms},
	{"putStrided", 2, transferForms},
	{"getStrided", 2, transferForms},
	{"putIndexed", 2, transferForms},
	{"getIndexed", 2, transferForms},
	{"putVector", 2, transferForms},
	{"getVector", 2, transferForms},
	{"atomic", 10, append([]string{"named", "named"}, transferForms...)},
	{"addAll", 2, nil},
	{"signal", 4, []string{"", "put", "putnb", "get", "getnb"}},
	{"await", 3, []string{"", "put", "all", "any", "some"}},
	{"test", 1, nil},
	{"wait", 3, nil},
	{"try", 2, nil},
	{"waitAll", 2, nil},
	{"waitSome", 1, nil},
	{"trySome", 1, nil},
	{"tryAll", 1, nil},
	{"again", 1, nil},
	{"bogus", 1, nil},
	{"sync", 5, []string{"implicit", "set", "region"}},
	{"trySync", 2, []string{"implicit", "set", "region"}},
	{"begin", 4, nil},
	{"end", 2, nil},
	{"notify", 4, barrierForms},
	{"meet", 3, append([]string{"try"}, barrierForms...)},
	{"tryMeet", 2, barrierForms},
	{"poll", 2, nil},
	{"check", 1, nil},
}

// steps generates steps for a job of n ranks.
func steps(n int, bare bool) *rapid.Generator[Step] {
	actions := actions
	if bare {
		actions = bareActions
	}
	var which []int
	for i, a := range actions {
		for range a.weight {
			which = append(which, i)
		}
	}
	args := make([]int, 67) // as likely as each other, since they choose operations
	for i := range args {
		args[i] = i
	}
	// Few different offsets, so that steps meet each other's bytes, and few
	// ids, so that barriers match.
	at := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 40), rapid.IntRange(0, 700), rapid.IntRange(segmentUnit-60, segmentUnit+1),
		rapid.SampledFrom([]int{-8, -1, 2*segmentUnit - 8, 3 * segmentUnit, 1 << 40}))
	length := rapid.OneOf(rapid.IntRange(0, 17), rapid.IntRange(0, 17), rapid.IntRange(0, 600), rapid.SampledFrom([]int{-1, -2, 8, 4096, 4088}))
	value := rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64Range(0, 1<<30), rapid.Uint64())
	return rapid.Custom(func(t *rapid.T) Step {
		a := actions[rapid.SampledFrom(which).Draw(t, "action")]
		s := Step{
			Do:    a.do,
			Rank:  rapid.IntRange(0, 2*n-1).Draw(t, "rank"),
			Peer:  rapid.IntRange(0, n-1).Draw(t, "peer"),
			At:    at.Draw(t, "at"),
			Len:   length.Draw(t, "len"),
			Value: value.Draw(t, "value"),
			Arg:   rapid.SampledFrom(args).Draw(t, "arg"),
		}
		if len(a.forms) > 0 {
			s.Form = rapid.SampledFrom(a.forms).Draw(t, "form")
		}
		if rapid.IntRange(0, 30).Draw(t, "lost") == 30 {
			s.Peer = rapid.SampledFrom([]int{-1, n, 1 << 20}).Draw(t, "nobody")
		}
		return s
	})
}

// shrink looks for a short program with small values that fails, too.
func shrink(open contract.Open, p Program, failure string, pt contract.Patience) (Program, string) {
	left, tries := 3000, 1
	if strings.Contains(failure, contract.Hung) {
		left, tries, pt.Wait = 1000, 4, pt.Wait/10
	} else {
		for range 3 {
			if execute(open, p, pt) == "" {
				left, tries = 1000, 8 // it comes and goes
			}
		}
	}
	better := func(q Program) bool {
		for range tries {
			if left--; left < 0 || !pt.End.IsZero() && time.Now().After(pt.End) {
				return false
			}
			f := execute(open, q, pt)
			if strings.Contains(f, contract.Stayed) {
				left = 0 // the next one would cost as much
			}
			if strings.Contains(f, contract.Hung) {
				left -= 20 // it has cost so much more
			}
			if f != "" {
				p, failure = q, f
				return true
			}
		}
		return false
	}
	for again := true; again && left > 0; {
		again = false
		for size := max(1, len(p.Steps)/2); size > 0; size /= 2 {
			for i := 0; i < len(p.Steps); {
				q := p
				q.Steps = append(append([]Step{}, p.Steps[:i]...), p.Steps[min(i+size, len(p.Steps)):]...)
				if better(q) {
					again = true
				} else {
					i += size
				}
			}
		}
		for _, simpler := range []func(*Program){
			func(q *Program) { q.Ranks = 1 },
			func(q *Program) { q.Ranks = min(q.Ranks, 2) },
			func(q *Program) { q.Ranks-- },
			func(q *Program) { q.Hidden = false },
			func(q *Program) { q.Always = false },
			func(q *Program) { q.Debug = false },
			func(q *Program) { q.Disseminate = false },
			func(q *Program) { q.Seed = 0 },
		} {
			q := p
			if simpler(&q); q.Ranks > 0 && !unchanged(q, p) && better(q) {
				again = true
			}
		}
		for i := range p.Steps {
			for _, simpler := range simplerSteps {
				for {
					q := p
					q.Steps = append([]Step{}, p.Steps...)
					if simpler(&q.Steps[i]); q.Steps[i] == p.Steps[i] || !better(q) {
						break
					}
					again = true
				}
			}
		}
	}
	return p, failure
}

func unchanged(a, b Program) bool { return reflect.DeepEqual(a, b) }

// simplerSteps are tried on each step, each as long as it helps.
var simplerSteps = []func(*Step){
	func(s *Step) { s.Form = "" },
	func(s *Step) { s.Rank = 0 },
	func(s *Step) { s.Rank = max(0, s.Rank-1) },
	func(s *Step) { s.Peer = 0 },
	func(s *Step) { s.Peer = min(s.Peer, 1) },
	func(s *Step) { s.At = 0 },
	func(s *Step) { s.At /= 2 },
	func(s *Step) { s.At -= sign(s.At) },
	func(s *Step) { s.Len = 0 },
	func(s *Step) { s.Len = min(s.Len, 1) },
	func(s *Step) { s.Len /= 2 },
	func(s *Step) { s.Len -= sign(s.Len) },
	func(s *Step) { s.Value = 0 },
	func(s *Step) { s.Value = min(s.Value, 1) },
	func(s *Step) { s.Value /= 2 },
	func(s *Step) { s.Value -= min(s.Value, 1) },
	func(s *Step) { s.Arg = 0 },
	func(s *Step) { s.Arg /= 2 },
	func(s *Step) { s.Arg -= sign(s.Arg) },
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// goTest is a test file that replays p.
func goTest(open contract.Open, p Program) string {
	const suite = "github.com/argon-go/argon/conformance"
	pkg, imports, expr := "replay_test", []string{suite}, "open"
	var decl string
	name := runtime.FuncForPC(reflect.ValueOf(open).Pointer()).Name()
	slash := strings.LastIndex(name, "/") + 1
	dot := slash + strings.Index(name[slash:], ".")
	path, fn := name[:dot], name[dot+1:]
	switch {
	case strings.Contains(fn, "."): // a closure or a method
		decl = "\n// To be set to what conformance.Run was given.\nvar open conformance.Open\n"
	case strings.HasSuffix(path, "_test"):
		pkg, expr = path[slash:], fn
	case fn[0] < 'A' || fn[0] > 'Z':
		pkg, expr = path[slash:], fn
	default:
		imports = append(imports, path)
		expr = path[slash:] + "." + fn
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport (\n\t\"testing\"\n\n", pkg)
	for _, i := range imports {
		fmt.Fprintf(&b, "\t%q\n", i)
	}
	fmt.Fprintf(&b, ")\n%s\nfunc TestReplay(t *testing.T) {\n\tconformance.Replay(t, %s, conformance.Program{\n", decl, expr)
	fmt.Fprintf(&b, "\t\t%s\n\t\tSteps: []conformance.Step{\n", fields(p))
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "\t\t\t{%s},\n", strings.TrimSuffix(fields(s), ","))
	}
	b.WriteString("\t\t},\n\t})\n}\n")
	return b.String()
}

// fields prints the fields of a struct that are not zero and not slices as Go
// writes them in a literal.
func fields(v any) string {
	var parts []string
	r := reflect.ValueOf(v)
	for i := range r.NumField() {
		f := r.Field(i)
		if f.IsZero() || f.Kind() == reflect.Slice {
			continue
		}
		text := fmt.Sprint(f.Interface())
		if f.Kind() == reflect.String {
			text = strconv.Quote(f.String())
		}
		parts = append(parts, r.Type().Field(i).Name+": "+text)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + ","
}

// hiding is an endpoint whose memory the layers above do not see.
type hiding struct {
	conduits.Endpoint
}

// Abilities are none.
func (hiding) Abilities() conduits.Abilities { return conduits.Abilities{} }
