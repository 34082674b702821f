package opt

import (
	_ "embed"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
)

// Effects are what a call does beside having a value, which depends on its arguments alone if it has none.
type Effects uint8

// The effects: Reads and Writes are of private memory, a clock, a file or a state of the library, Syncs reaches shared
// memory or other threads, and Calls calls functions of the program, which may do anything.
const (
	Reads Effects = 1 << iota
	Writes
	Syncs
	Calls
)

var effectNames = map[string]Effects{"pure": 0, "reads": Reads, "writes": Writes, "syncs": Syncs, "calls": Calls}

// Routine is a function of the library: a row of library.txt.
type Routine struct {
	Name    string
	Effects Effects
	Go      string // its call, with arguments as library.txt has them
}

//go:embed library.txt
var libraryText string

// library has the functions of the headers in front's include.
var library = map[string]Routine{}

func init() {
	for line := range strings.Lines(libraryText) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 {
			continue // empty, or a comment
		}
		r := Routine{Name: f[0], Go: f[2]}
		for _, e := range strings.Fields(f[1]) {
			r.Effects |= effectNames[e]
		}
		library[r.Name] = r
	}
}

// LibraryVariable is the row of a variable of the library, of which Go is a pointer.
func LibraryVariable(s *front.Sym) (Routine, bool) {
	r, ok := library[s.Name]
	return r, ok && s.Header
}

// RoutineOf is the function of the library that a call is of.
func RoutineOf(n *front.Node) (Routine, bool) {
	if f := n.L; f.Op == front.Decay && f.L.Op == front.Var && f.L.Sym.Header && f.L.Sym.Go == "" {
		r, ok := library[f.L.Sym.Name]
		return r, ok
	}
	return Routine{}, false
}

// EffectsOf are the effects of a call, which of a function of the program are all.
func EffectsOf(n *front.Node) Effects {
	if r, ok := RoutineOf(n); ok {
		return r.Effects
	}
	return Reads | Writes | Syncs | Calls
}
