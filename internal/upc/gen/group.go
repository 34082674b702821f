package gen

import (
	"fmt"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
)

// group is a loop whose accesses to other threads' memory are under way together (rt.Group).
type group struct {
	name   string                 // the variable
	values map[*front.Node]string // of reads that are done ahead
}

// aheadMost is how many iterations' reads are done ahead.
const aheadMost = 256

// access is what a loop's body does to memory.
type access struct {
	i       *front.Sym
	c       *changeSet
	bad     bool          // it does what groups cannot have in between
	gets    []*front.Node // of shared scalars in every iteration, but of those that puts are about
	puts    []*front.Node
	private []*front.Node // places of private memory that it writes
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
		if a.bad = !pure(n); a.bad {
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
		if n.Type.IsShared() && n.Type.Kind != front.Array {
			a.shared(n)
			if !sometimes {
				a.gets = append(a.gets, n)
			}
		}
		a.address(n, sometimes)
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

// address is what is evaluated to know where a place is.
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

// earlyPlace says whether the address of a shared place is the same before the iterations of the
// loop that come before its own, so that it can be computed then.
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

// early says so of a value, which must have no part that is read from shared memory.
func (a *access) early(n *front.Node) bool {
	switch n.Op {
	case front.Num, front.Threads, front.Mythread:
		return true
	case front.Var:
		s := n.Sym
		switch {
		case s == a.i:
			return true
		case n.Type.IsShared() || n.Type.Volatile || a.c.vars[s] || onStack(s):
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

// writes says whether the body may write to a private place, which is the thread's part of a
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

// pointed says whether a pointer leads to a place.
func pointed(n *front.Node) bool {
	for n.Op == front.Index || n.Op == front.Member {
		n = n.L
	}
	return n.Op == front.Deref
}

// mayBe says whether two places may be the same, by their types (C 6.5p7). Members of unions may
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

// apart says whether shared places are none of them the same: of two variables, or of types that
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

// together emits a loop over i whose accesses to other threads' memory can be under way together,
// for threads that are not all reached by load and store, and says whether it has. Otherwise other
// emits the loop.
func (g *gen) together(n *front.Node, other func()) bool {
	if n.Init == nil || g.fn.Gotos || g.hoist != nil || g.group != nil || g.sliced != nil {
		return false
	}
	i, ok := loopVar(n)
	if !ok {
		return false
	}
	a := &access{i: i, c: changesOf(n)}
	a.see(n.R, false)
	if a.bad || reads(n.L.R, i) || !a.early(n.L.R) {
		return false
	}
	var puts, gets []*front.Node
	for _, p := range a.puts {
		if !g.own(p) {
			puts = append(puts, p)
		}
	}
	for _, get := range a.gets {
		ok := !g.own(get) && a.earlyPlace(get)
		for _, p := range a.puts {
			ok = ok && apart(get, p)
		}
		for _, w := range a.private { // the thread's own part, by a pointer
			ok = ok && !(pointed(w) && mayBe(get, w))
		}
		if ok {
			gets = append(gets, get)
		}
	}
	if len(puts) == 0 && len(gets) == 0 {
		return false
	}
	line := g.line
	g.emit("if upc.Near() {")
	other()
	g.emit("} else {")
	g.line = line
	if n.Init.Op == front.Block {
		g.block(n.Init)
	} else {
		g.discard(n.Init.L)
	}
	name, t := i.Go, g.goType(i.Type)
	temp := func() string {
		g.temps++
		return fmt.Sprintf("tmp%d", g.temps)
	}
	end, low, high, k := temp(), temp(), temp(), temp()
	s := &group{temp(), map[*front.Node]string{}}
	bound := fmt.Sprintf("int(%s)", g.expr(n.L.R).s)
	if n.L.Op == front.Le {
		bound += " + 1"
	}
	g.emit("%s := %s\n%s := upc.Begin()", end, bound, s.name)
	for _, get := range gets {
		s.values[get] = temp()
		g.emit("%s := make([]%s, %d)", s.values[get], g.goType(get.Type), aheadMost)
	}
	loop := func(body func()) {
		g.emit("for %s := %s; %s < %s; %s++ {\n%s = %s(%s)", k, low, k, high, k, name, t, k)
		body()
		g.emit("}")
	}
	g.emit("for %s := int(%s); %s < %s; %s += %d {\n%s := min(%s+%d, %s)", low, name, low, end, low, aheadMost, high, low, aheadMost, end)
	if len(gets) > 0 {
		loop(func() {
			for _, get := range gets {
				g.emit("rt.Ahead(%s, %s, &%s[%s-%s])", s.name, g.phaseless(g.where(get)), s.values[get], k, low)
			}
		})
		g.emit("%s.Sync()", s.name)
	}
	for get, v := range s.values {
		s.values[get] = fmt.Sprintf("%s[%s-%s]", v, k, low)
	}
	g.group = s
	loop(func() { g.stmt(n.R) }) // a block of its own, which may have variables of the same names
	g.group = nil
	g.emit("%s = %s(%s)\n}\n%s.End()\n}", name, t, high, s.name)
	return true
}

// own says whether a place is known to be this thread's.
func (g *gen) own(n *front.Node) bool {
	if g.local == nil {
		return false
	}
	a, _, ok := g.local.part(n)
	return ok && g.local.arrays[a.Sym] != ""
}

// groupGet is a read in a loop of a group.
func (g *gen) groupGet(n *front.Node, p func() string) string {
	if v := g.group.values[n]; v != "" {
		return v
	}
	return fmt.Sprintf("rt.GroupGet[%s](%s, %s)", g.goType(n.Type), g.group.name, strings.TrimSpace(p()))
}
