package opt

import (
	"slices"

	"github.com/argon-go/argon/internal/upc/front"
)

// access collects the accesses to memory of a loop's body. What happens in every iteration has a number, in the
// order of the program.
type access struct {
	i       *front.Sym
	c       *Changes
	bad     bool  // it does what groups cannot have in between
	gets    []Get // of shared scalars in every iteration, but of those that puts are about
	puts    []*front.Node
	private []*front.Node      // places of private memory that it writes
	defs    map[*front.Sym]def // of local variables
	count   int

	// Of the value that early looks at:
	now    int                 // its number
	stage  int                 // how often reads have to be waited for before it is known
	locals []*front.Sym        // those of defs that it needs, each after those that it needs itself
	stages map[*front.Node]int // of the gets that are done ahead
}

// Get is a read of a shared scalar that is done ahead.
type Get struct {
	N      *front.Node
	Stage  int     // how many reads one after another its address needs
	Locals []Value // that its address needs, each after those that it needs itself
	number int
}

// Value is what a local variable has.
type Value struct {
	Sym   *front.Sym
	Value *front.Node
}

// def is the last assignment to a local variable.
type def struct {
	value  *front.Node // nil if it is made of the old one, or not in every iteration
	number int
}

// next is the number of what happens next.
func (a *access) next() int {
	a.count++
	return a.count
}

// see looks at a statement or an expression, which is not evaluated in every iteration if
// sometimes.
func (a *access) see(n *front.Node, sometimes bool) {
	if n == nil || a.bad {
		return
	}
	switch n.Op {
	case front.Block, front.Expr, front.Empty, front.Decl, front.If:
	case front.For, front.Forall, front.While, front.Do, front.Switch, front.Case, front.Default, front.Label, front.Goto,
		front.Break, front.Continue, front.Return, front.Barrier, front.Fence, front.SetStr, front.Zero, front.Statements:
		a.bad = true
		return
	case front.Call:
		if a.bad = EffectsOf(n) != 0; a.bad {
			return
		}
	}
	switch n.Op {
	case front.Assign, front.AssignOp, front.IncDec:
		switch {
		case n.L.Type.IsShared():
			a.shared(n.L)
			a.puts = append(a.puts, n.L)
		case n.L.Op != front.Var || n.L.Sym.Storage != front.Local || OnStack(n.L.Sym):
			a.private = append(a.private, n.L)
		}
		a.address(n.L, sometimes)
		a.see(n.R, sometimes)
		if n.L.Op == front.Var && n.L.Sym.Storage == front.Local {
			d := def{number: a.next()}
			if n.Op == front.Assign && !sometimes {
				d.value = n.R
			}
			a.defs[n.L.Sym] = d
		}
		return
	case front.If, front.Cond:
		a.see(n.L, sometimes)
		a.see(n.R, true)
		a.see(n.C, true)
		return
	case front.LAnd, front.LOr:
		a.see(n.L, sometimes)
		a.see(n.R, true)
		return
	case front.Var, front.Deref, front.Index, front.Member:
		a.address(n, sometimes)
		if n.Type.IsShared() && n.Type.Kind != front.Array {
			a.shared(n)
			if !sometimes {
				a.gets = append(a.gets, Get{N: n, number: a.next()})
			}
		}
		return
	case front.Addr, front.Decay:
		a.address(n.L, sometimes)
		return
	}
	for _, k := range []*front.Node{n.L, n.R, n.C, n.Init} {
		a.see(k, sometimes)
	}
	for _, k := range n.List {
		a.see(k, sometimes)
	}
}

// shared is an access to shared memory.
func (a *access) shared(n *front.Node) {
	a.bad = a.bad || n.Mem == front.Strict || !ScalarAccess(n.Type) || IsBits(n)
}

// address sees the parts of n, a place, that are evaluated to find it.
func (a *access) address(n *front.Node, sometimes bool) {
	switch n.Op {
	case front.Deref:
		a.see(n.L, sometimes)
	case front.Index:
		a.address(n.L, sometimes)
		a.see(n.R, sometimes)
	case front.Member:
		a.address(n.L, sometimes)
	case front.Var:
	default:
		a.see(n, sometimes)
	}
}

// earlyPlace reports whether the address of n can be computed ahead of its iteration: nothing that
// earlier iterations write changes it.
func (a *access) earlyPlace(n *front.Node) bool {
	switch n.Op {
	case front.Var:
		return true
	case front.Index:
		return a.earlyPlace(n.L) && a.early(n.R)
	case front.Deref:
		return a.early(n.L)
	case front.Member:
		return a.earlyPlace(n.L)
	}
	return false
}

// early says so of a value, what of it is read from shared memory being read ahead.
func (a *access) early(n *front.Node) bool {
	if stage, ok := a.stages[n]; ok {
		a.stage = max(a.stage, stage+1)
		return true
	}
	switch n.Op {
	case front.Num, front.Threads, front.Mythread:
		return true
	case front.Var:
		s := n.Sym
		switch {
		case s == a.i:
			return true
		case n.Type.IsShared() || n.Type.Volatile || OnStack(s):
			return false
		case s.Storage == front.Local && a.c.vars[s]:
			return a.earlyLocal(s)
		case a.c.vars[s]:
			return false
		}
		return s.Storage == front.Local || n.Type.Kind == front.Array || s.Storage == front.Global && !a.writes(n)
	case front.Index:
		return !n.Type.IsShared() && (n.Type.Kind == front.Array || !a.writes(n)) && a.early(n.L) && a.early(n.R)
	case front.Deref:
		return !n.Type.IsShared() && (n.Type.Kind == front.Array || !a.writes(n)) && a.early(n.L)
	case front.Add, front.Sub, front.Mul, front.And, front.Or, front.Xor, front.PtrAdd:
		return a.early(n.L) && a.early(n.R)
	case front.Div, front.Mod:
		return a.early(n.L) && n.R.Op == front.Num && n.R.I != 0
	case front.Shl, front.Shr:
		return a.early(n.L) && n.R.Op == front.Num
	case front.Cast:
		return !n.L.Type.Floating() && n.Type.ToShared() == n.L.Type.ToShared() && a.early(n.L)
	case front.Decay, front.Addr:
		if n.L.Type.IsShared() {
			return a.earlyPlace(n.L)
		}
		return n.L.Op != front.Str && a.early(n.L)
	}
	return false
}

// earlyLocal says so of a local variable that the body assigns to, which has to be for the
// last time before the variable is read, and in every iteration.
func (a *access) earlyLocal(s *front.Sym) bool {
	d := a.defs[s]
	if d.value == nil || d.number > a.now {
		return false
	}
	if slices.Contains(a.locals, s) {
		return true
	}
	// The parts of the value have not changed since it was assigned.
	now := a.now
	a.now = d.number - 1
	ok := a.early(d.value)
	a.now = now
	a.locals = append(a.locals, s)
	return ok
}

// writes reports whether the body may write to a private place, which is the thread's part of a
// shared variable, perhaps, if a pointer leads there.
func (a *access) writes(n *front.Node) bool {
	for _, w := range a.private {
		if mayBe(n, w) {
			return true
		}
	}
	for _, w := range a.puts {
		if pointed(n) && mayBe(n, w) {
			return true
		}
	}
	return false
}

// pointed reports whether a pointer leads to a place.
func pointed(n *front.Node) bool {
	for n.Op == front.Index || n.Op == front.Member {
		n = n.L
	}
	return n.Op == front.Deref
}

// mayBe reports whether two places may be the same, by their types (C 6.5p7). Members of unions may
// be read as another type.
func mayBe(n, m *front.Node) bool { return mayAlias(n.Type, m.Type) || inUnion(n) || inUnion(m) }

func inUnion(n *front.Node) bool {
	for ; n.Op == front.Index || n.Op == front.Member; n = n.L {
		if n.L.Type.Base().Kind == front.Union {
			return true
		}
	}
	return false
}

func mayAlias(t, w *front.Type) bool {
	t, w = t.Base(), w.Base()
	if t.Kind == front.Struct && w.Kind != front.Struct {
		t, w = w, t
	}
	if w.Kind == front.Struct && t.Kind != front.Struct && w.Complete() {
		return slices.ContainsFunc(w.Info.Fields, func(f *front.Field) bool { return mayAlias(t, f.Type) })
	}
	plain := func(t *front.Type) bool { return t.Arithmetic() && t.Kind != front.Char && t.Kind != front.Bool }
	if plain(t) && plain(w) {
		return t.Kind == w.Kind
	}
	return !(plain(t) && w.Kind == front.Pointer || plain(w) && t.Kind == front.Pointer)
}

// apart reports whether shared places are none of them the same: of two variables, or of types that
// no place has both of.
func apart(n, m *front.Node) bool {
	v, w := variable(n), variable(m)
	return v != nil && w != nil && v != w || !mayBe(n, m)
}

func variable(n *front.Node) *front.Sym {
	for n.Op == front.Index || n.Op == front.Member {
		n = n.L
	}
	if n.Op == front.Var && n.Type.IsShared() {
		return n.Sym
	}
	return nil
}

// apartFromAll reports whether nothing that the body writes is the shared place n.
func (a *access) apartFromAll(n *front.Node) bool {
	for _, p := range a.puts {
		if !apart(n, p) {
			return false
		}
	}
	for _, w := range a.private { // the thread's own part, by a pointer
		if pointed(w) && mayBe(n, w) {
			return false
		}
	}
	return true
}

// Ahead is a loop over I whose accesses are under way together.
type Ahead struct {
	I      *front.Sym
	Gets   []Get // that are done before the iterations
	Stages int   // how often they are waited for
}

// AheadOf says so of a loop that counts up to a bound, in whose body nothing synchronises or jumps, if it has puts or gets
// that are another thread's. own reports whether a place is this thread's; aff is an affinity that is
// looked at in each iteration, or nil, and shared that iterations are of several threads.
func AheadOf(n *front.Node, own func(n *front.Node) bool, aff *front.Node, shared bool) (*Ahead, bool) {
	i, ok := Upwards(n)
	if !ok {
		return nil, false
	}
	a := &access{i: i, c: ChangesOf(n), defs: map[*front.Sym]def{}, stages: map[*front.Node]int{}}
	a.see(n.R, false)
	if a.bad || Uses(n.L.R, i) || !a.early(n.L.R) || aff != nil && !a.early(aff) {
		return nil, false
	}
	far := slices.ContainsFunc(a.puts, func(p *front.Node) bool { return !own(p) })
	all := &Ahead{I: i}
	for _, get := range a.gets {
		a.now, a.stage, a.locals = get.number, 0, nil
		if !shared && own(get.N) || !a.earlyPlace(get.N) || !a.apartFromAll(get.N) {
			continue
		}
		get.Stage = a.stage
		for _, l := range a.locals {
			get.Locals = append(get.Locals, Value{l, a.defs[l].value})
		}
		a.stages[get.N] = get.Stage
		all.Gets = append(all.Gets, get)
		all.Stages, far = max(all.Stages, get.Stage+1), far || !own(get.N)
	}
	return all, far
}
