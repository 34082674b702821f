package gen

import (
	"slices"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
)

// group is a loop whose accesses to other threads' memory are under way together (rt.Group).
type group struct {
	name   exp                 // the variable
	values map[*front.Node]exp // of reads that are done ahead
}

// aheadMost is how many iterations' reads are done ahead.
const aheadMost = 256

// access collects the accesses to memory of a loop's body. What happens in every iteration has a number, in the
// order of the program.
type access struct {
	i       *front.Sym
	c       *changeSet
	bad     bool       // it does what groups cannot have in between
	gets    []aheadGet // of shared scalars in every iteration, but of those that puts are about
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

// aheadGet is a read that is done ahead, perhaps.
type aheadGet struct {
	n      *front.Node
	number int
	stage  int
	locals []*front.Sym
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
		front.Break, front.Continue, front.Return, front.Barrier, front.Fence, front.SetStr, front.Zero:
		a.bad = true
		return
	case front.Call:
		if a.bad = effectsOf(n) != 0; a.bad {
			return
		}
	}
	switch n.Op {
	case front.Assign, front.AssignOp, front.IncDec:
		switch {
		case n.L.Type.IsShared():
			a.shared(n.L)
			a.puts = append(a.puts, n.L)
		case n.L.Op != front.Var || n.L.Sym.Storage != front.Local || onStack(n.L.Sym):
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
				a.gets = append(a.gets, aheadGet{n: n, number: a.next()})
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
	a.bad = a.bad || n.Mem == front.Strict || !scalarAccess(n.Type) || isBits(n)
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
		case n.Type.IsShared() || n.Type.Volatile || onStack(s):
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

// share is how an upc_forall loop in which accesses are under way together finds the thread's
// iterations.
type share struct {
	own  func(n *front.Node) bool  // whether a place is the thread's, in its iterations
	aff  *front.Node               // an affinity that is looked at in each iteration, or nil
	find func(next, end, list exp) // emits what appends iterations from next on to list, and moves next on
}

// together emits a loop over i whose accesses to other threads' memory can be under way together,
// for threads that are not all reached by load and store, and reports whether it has. Otherwise other
// emits the loop. All iterations are the thread's if by is nil.
func (g *gen) together(n *front.Node, by *share, other func()) bool {
	if g.fn.Gotos || g.hoist != nil || g.group != nil || g.sliced != nil {
		return false
	}
	i, ok := upwards(n)
	if !ok {
		return false
	}
	a := &access{i: i, c: changesOf(n), defs: map[*front.Sym]def{}, stages: map[*front.Node]int{}}
	a.see(n.R, false)
	if a.bad || reads(n.L.R, i) || !a.early(n.L.R) || by != nil && by.aff != nil && !a.early(by.aff) {
		return false
	}
	own := g.own
	if by != nil {
		own = by.own
	}
	puts := 0
	for _, p := range a.puts {
		if !own(p) {
			puts++
		}
	}
	stages, far := 0, false
	var gets []aheadGet
	for _, get := range a.gets {
		a.now, a.stage, a.locals = get.number, 0, nil
		if (by == nil && own(get.n)) || !a.earlyPlace(get.n) || !a.apartFromAll(get.n) {
			continue
		}
		get.stage, get.locals = a.stage, a.locals
		a.stages[get.n] = get.stage
		gets = append(gets, get)
		stages, far = max(stages, get.stage+1), far || !own(get.n)
	}
	if puts == 0 && !far {
		return false
	}
	line := g.line
	near := g.capture(other)
	g.line = line
	apart := g.capture(func() { g.ahead(n, i, a, by, gets, stages) })
	g.emit(ir.When(ir.CallTo("upc.Near"), near, apart))
	return true
}

// room is the condition of a loop that finds iterations: there are more, and the list has room.
func room(next, end, list exp) exp {
	return ir.Op(ir.Op(next, "<", end), "&&", ir.Op(ir.CallTo("len", list), "<", num(aheadMost)))
}

// push is an iteration more in the list.
func push(list, k exp) *ir.Stmt { return ir.Set(list, ir.CallTo("append", list, k)) }

// ahead emits a loop over i whose accesses are under way together: up to aheadMost iterations at a time, first
// the gets, in stages, then the body.
func (g *gen) ahead(n *front.Node, i *front.Sym, a *access, by *share, gets []aheadGet, stages int) {
	line := g.line
	g.first(n)
	name, t := g.variable(i), g.goType(i.Type)
	end, k := g.name(), g.name()
	s := &group{g.name(), map[*front.Node]exp{}}
	g.emit(ir.Define(end, g.behind(n)), ir.Define(s.name, ir.CallTo("upc.Begin")))
	buffers := map[*front.Node]exp{}
	for _, get := range gets {
		buffers[get.n] = g.name()
		g.emit(ir.Define(buffers[get.n], ir.CallTo("make", ir.Value(ir.SliceOf(g.goType(get.n.Type))), num(aheadMost))))
	}
	// at is the place of an iteration's values, over a loop over the iterations, and around the loop around these.
	at := k
	var over func(body func()) *ir.Stmt
	var around func(body func()) *ir.Stmt
	set := func(v exp) *ir.Stmt { return ir.Set(name, ir.Convert(t, v)) }
	if by == nil {
		low, high := g.name(), g.name()
		at = ir.Op(k, "-", low)
		over = func(body func()) *ir.Stmt {
			return ir.Loop(ir.Define(k, low), ir.Op(k, "<", high), ir.Update(k, "++"), g.capture(func() {
				g.emit(set(k))
				body()
			}))
		}
		around = func(body func()) *ir.Stmt {
			return ir.Loop(ir.Define(low, ir.Convert(goInt, name)), ir.Op(low, "<", end), ir.Update(low, "+=", num(aheadMost)), g.capture(func() {
				g.emit(ir.Define(high, ir.CallTo("min", ir.Op(low, "+", num(aheadMost)), end)))
				body()
				g.emit(set(high))
			}))
		}
	} else {
		next, list, v := g.name(), g.name(), g.name()
		g.emit(ir.Define(next, ir.Convert(goInt, name)), ir.Define(list, ir.CallTo("make", ir.Value(ir.SliceOf(goInt)), num(0), num(aheadMost))))
		key := k
		if len(gets) == 0 {
			key = ir.Name("_")
		}
		over = func(body func()) *ir.Stmt {
			return ir.Over(key, v, list, g.capture(func() {
				g.emit(set(v))
				body()
			}))
		}
		around = func(body func()) *ir.Stmt {
			return ir.Loop(nil, ir.Op(next, "<", end), nil, g.capture(func() {
				g.emit(ir.Set(list, ir.Slice(list, exp{}, num(0))))
				by.find(next, end, list)
				body()
				g.emit(set(end))
			}))
		}
	}
	g.group = s
	g.emit(around(func() {
		for stage := range stages {
			g.emit(over(func() { g.stage(s, a, gets, stage, buffers, at) }))
			g.emit(ir.Do(ir.Method(s.name, "Sync")))
			for _, get := range gets {
				if get.stage == stage {
					s.values[get.n] = ir.At(buffers[get.n], at).By(ir.Ahead)
				}
			}
		}
		g.line = line
		g.emit(over(func() { g.stmt(n.R) })) // a block of its own, which may have variables of the same names
		g.group = nil
	}))
	g.emit(ir.Do(ir.Method(s.name, "End")))
}

// stage begins the gets of an iteration that need no more than those of the stages before it.
func (g *gen) stage(s *group, a *access, gets []aheadGet, stage int, buffers map[*front.Node]exp, at exp) {
	// Under names of their own: those of C may be several variables'.
	g.renamed = map[*front.Sym]exp{}
	for _, get := range gets {
		for _, l := range get.locals {
			if _, ok := g.renamed[l]; get.stage == stage && !ok {
				v := g.name()
				g.emit(ir.Declare(v, g.goType(l.Type), g.expr(a.defs[l].value)), ir.Drop(v))
				g.renamed[l] = v
			}
		}
	}
	for _, get := range gets {
		if get.stage == stage {
			g.emit(ir.Do(ir.CallTo("rt.Ahead", s.name, g.where(get.n).phaseless(), ir.Address(ir.At(buffers[get.n], at)))))
		}
	}
	g.renamed = nil
}

// upwards is the variable of a loop for (...; i < b; i++), which its body leaves alone.
func upwards(n *front.Node) (*front.Sym, bool) {
	if n.Init != nil {
		return loopVar(n)
	}
	if n.L == nil || n.C == nil || n.L.Op != front.Lt && n.L.Op != front.Le || stripLong(n.L.L).Op != front.Var {
		return nil, false
	}
	i := stripLong(n.L.L).Sym
	return i, byOne(n, i)
}

// whileLoop is a loop while (i < b) { ...; i++; } as a for loop.
func whileLoop(n *front.Node) (*front.Node, bool) {
	if n.R.Op != front.Block || len(n.R.List) == 0 {
		return nil, false
	}
	rest, last := n.R.List[:len(n.R.List)-1], n.R.List[len(n.R.List)-1]
	if last.Op != front.Expr {
		return nil, false
	}
	body := *n.R
	body.List = rest
	loop := &front.Node{Op: front.For, Pos: n.Pos, L: n.L, C: last.L, R: &body}
	_, ok := upwards(loop)
	return loop, ok
}

// own reports whether a place is known to be this thread's.
func (g *gen) own(n *front.Node) bool {
	if g.local == nil {
		return false
	}
	a, _, ok := g.local.part(n)
	return ok && !g.local.arrays[a.Sym].Zero()
}

// groupGet is a read in a loop of a group.
func (g *gen) groupGet(n *front.Node, p func() exp) exp {
	if v := g.group.values[n]; !v.Zero() {
		return v
	}
	return ir.CallOf(ir.Generic("rt.GroupGet", g.goType(n.Type)), g.group.name, p()).By(ir.GroupGet)
}
