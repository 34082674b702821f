// Package opt has the optimisations of the UPC compiler: what may be done with a loop, as functions of the typed
// tree, each with its conditions. They change nothing; package gen makes Go of what they say.
//
//   - [Options.Forall]: an upc_forall loop visits this thread's iterations only, element by element or run by run.
//   - [Options.Window]: an access to a row of an array, or behind a pointer, goes by a window that is made before the loop.
//   - [Options.Spread]: an access to any element of an array in blocks on all threads goes by a window on all of them.
//   - [Options.Strips]: in a loop with a counter such elements, and those of windows, that lie one behind the other are behind one pointer.
//   - [RowsOf]: pointers to rows of private memory are read before the loop, and private arrays found, whose index goes up in an int.
//   - [AheadOf]: accesses to other threads' memory are under way together, gets before the iterations that use them.
package opt

import (
	"math"

	"github.com/argon-go/argon/internal/upc/front"
)

// OnStack reports whether a local variable lies on the stack of package libc.
func OnStack(s *front.Sym) bool { return s.Storage == front.Local && s.Addressed }

// StripLong is i without conversions that widen it.
func StripLong(i *front.Node) *front.Node {
	if i.Op == front.Cast && i.Type.Kind == front.Long && i.L.Type.Integer() && i.L.Type.Size() < 8 {
		return i.L
	}
	return i
}

// ScalarAccess reports whether package rt has accesses to a type.
func ScalarAccess(t *front.Type) bool {
	return t.Arithmetic() || t.ToShared()
}

// IsBits reports whether n is a bit-field.
func IsBits(n *front.Node) bool { return n.Op == front.Member && n.Field.Bits > 0 }

// Waits reports whether a loop may wait for another thread's relaxed write: its condition reads
// shared memory, and nothing private that the loop assigns to. Such a loop has to answer
// messages, since the write may be one.
func Waits(cond, post, body *front.Node) bool {
	assigned, through := map[*front.Sym]bool{}, false
	for _, n := range []*front.Node{cond, post, body} {
		Walk(n, func(n *front.Node) {
			switch n.Op {
			case front.Assign, front.AssignOp, front.IncDec:
				if n.L.Op == front.Var {
					assigned[n.L.Sym] = true
				} else if !n.L.Type.IsShared() {
					through = true
				}
			case front.Decl:
				assigned[n.Sym] = true
			}
		})
	}
	shared, changes := false, false
	Walk(cond, func(n *front.Node) {
		switch n.Op {
		case front.Var, front.Deref, front.Index, front.Member:
			switch {
			case n.Type.IsShared():
				shared = shared || n.Mem != front.Strict && n.Type.Kind != front.Array
			case n.Op == front.Var:
				changes = changes || assigned[n.Sym]
			default:
				changes = changes || through
			}
		}
	})
	return shared && !changes
}

// Uses reports whether condition n, which Go sees in any case, has s.
func Uses(n *front.Node, s *front.Sym) (found bool) {
	Walk(n, func(n *front.Node) { found = found || n.Op == front.Var && n.Sym == s })
	return found
}

// Offset is c of an index i + c.
func Offset(n *front.Node, i *front.Sym) (c int64, ok bool) {
	n = StripLong(n)
	if is(n, i) {
		return 0, true
	}
	if n.Op != front.Add && n.Op != front.Sub {
		return 0, false
	}
	l, r := StripLong(n.L), StripLong(n.R)
	switch {
	case is(l, i) && r.Op == front.Num && n.Op == front.Add:
		return r.I, true
	case is(l, i) && r.Op == front.Num:
		return -r.I, true
	case is(r, i) && l.Op == front.Num && n.Op == front.Add:
		return l.I, true
	}
	return 0, false
}

// Changes has the variables and memory that a loop may change.
type Changes struct {
	vars    map[*front.Sym]bool // assigned to, or declared in it
	unknown bool                // whatever static variables there are: by calls, and stores through pointers
}

// ChangesOf are the changes of a statement.
func ChangesOf(n *front.Node) *Changes {
	c := &Changes{vars: map[*front.Sym]bool{}}
	Walk(n, func(n *front.Node) {
		switch n.Op {
		case front.Assign, front.AssignOp, front.IncDec, front.Zero, front.SetStr:
			if n.L.Op == front.Var {
				c.vars[n.L.Sym] = true
			} else if !n.L.Type.IsShared() {
				c.unknown = true
			}
		case front.Decl:
			c.vars[n.Sym] = true
		case front.Call:
			c.unknown = c.unknown || EffectsOf(n)&(Writes|Calls) != 0
		}
	})
	return c
}

// Keep reports whether an expression has the same value throughout, and no effects.
func (c *Changes) Keep(n *front.Node) bool {
	switch n.Op {
	case front.Num, front.Threads, front.Mythread:
		return true
	case front.Var:
		s := n.Sym
		if n.Type.IsShared() || n.Type.Volatile || c.vars[s] || OnStack(s) {
			return false
		}
		return s.Storage == front.Local || s.Storage == front.Global && !c.unknown
	case front.Add, front.Sub, front.Mul:
		return c.Keep(n.L) && c.Keep(n.R)
	case front.Cast, front.Neg:
		return c.Keep(n.L)
	}
	return false
}

func is(n *front.Node, s *front.Sym) bool {
	n = StripLong(n)
	return n.Op == front.Var && n.Sym == s
}

// Counter is the variable of a loop for (i = a; i < b; i++), which its body leaves alone, and whose
// bound has no effects.
func Counter(n *front.Node) (*front.Sym, bool) {
	i, ok := loopVar(n)
	return i, ok && steady(n.L.R, i)
}

// loopVar is counter with any bound.
func loopVar(n *front.Node) (*front.Sym, bool) {
	i := tested(n)
	return i, i != nil && start(n, i) != nil && byOne(n, i)
}

// byOne reports whether a loop adds one to i, which it tests, and its body leaves it alone.
func byOne(n *front.Node, i *front.Sym) bool {
	if n.C == nil || i.Storage != front.Local || i.Addressed || i.Type.Kind != front.Int && i.Type.Kind != front.Long {
		return false
	}
	c := n.C
	if c.Op == front.AssignOp {
		if c.Sub != front.Add || c.R.Op != front.Num || c.R.I != 1 {
			return false
		}
	} else if c.Op != front.IncDec || c.I != 1 {
		return false
	}
	unsigned := i.Type.Unsigned
	for x := n.L.L; x.Op == front.Cast; x = x.L { // (unsigned)i < n, where n may be a long
		unsigned = unsigned || x.Type.Unsigned
	}
	return is(c.L, i) && !changes(n.R, i) && (!unsigned || natural(n, i))
}

// natural reports whether a loop, whose variable i or whose comparison is unsigned, counts in natural numbers below 2^63 that i does
// not wrap round, and neither does the sum of i and a constant in it (C 6.2.5p9). It knows
//
//   - that i begins below 2^32: it has 32 bits and no sign, or is a constant, THREADS, MYTHREAD or an unsigned number of at most 32 bits;
//   - that an unsigned i of 32 bits reaches its bound: a constant, a number of fewer bits, or, with <, of as many. One of 64 bits
//     does, too, or counts for centuries.
func natural(n *front.Node, i *front.Sym) bool {
	least, narrow := int64(0), i.Type.Unsigned && i.Type.Size() == 4
	a := start(n, i)
	switch {
	case a != nil && a.Op == front.Num && a.I >= 0 && a.I <= math.MaxUint32:
		least = a.I
	case !narrow && a == nil:
		return false
	case !narrow:
		a = StripLong(a)
		return a.Op == front.Threads || a.Op == front.Mythread || a.Type.Unsigned && a.Type.Size() <= 4
	}
	if !narrow {
		return true
	}
	behind := int64(math.MaxInt64) // the bound at most
	switch b := StripLong(n.L.R); {
	case n.L.R.Op == front.Num && n.L.R.I >= 0:
		behind = n.L.R.I
	case b.Type.Size() <= 4 && (b.Type.Unsigned || !n.L.L.Type.Unsigned):
		behind = 1<<(8*b.Type.Size()) - 1
	}
	if n.L.Op == front.Le && behind < math.MaxInt64 {
		behind++
	}
	ok := behind <= math.MaxUint32
	for _, of := range []*front.Node{n.R, n.Aff} {
		Walk(of, func(n *front.Node) {
			if c, sum := Offset(n, i); sum && c != 0 {
				ok = ok && least+c >= 0 && behind-1+c <= math.MaxUint32
			}
		})
	}
	return ok
}

// start is what variable i of loop n begins with, or nil.
func start(n *front.Node, i *front.Sym) *front.Node {
	a := n.Init
	switch {
	case a == nil:
		return nil
	case a.Op == front.Expr:
		a = a.L
	case len(a.List) == 1 && len(a.List[0].List) == 1:
		a = a.List[0].List[0]
	}
	if a.Op != front.Assign || !is(a.L, i) {
		return nil
	}
	return a.R
}

// tested is the variable that the condition i < b or i <= b of a loop tests, or nil.
func tested(n *front.Node) *front.Sym {
	if n.L == nil || n.L.Op != front.Lt && n.L.Op != front.Le {
		return nil
	}
	i := StripLong(n.L.L)
	if i.Op == front.Cast && i.Type.Unsigned && i.L.Type.Integer() && i.Type.Size() == i.L.Type.Size() {
		i = i.L
	}
	if i.Op != front.Var {
		return nil
	}
	return i.Sym
}

// steady reports whether a bound is without effects and without i.
func steady(n *front.Node, i *front.Sym) bool {
	switch n.Op {
	case front.Num, front.Threads, front.Mythread:
		return true
	case front.Var:
		return n.Sym != i && !n.Type.IsShared()
	case front.Add, front.Sub, front.Mul:
		return steady(n.L, i) && steady(n.R, i)
	case front.Cast:
		return n.Type.Integer() && steady(n.L, i)
	}
	return false
}

// changes reports whether n assigns to i.
func changes(n *front.Node, i *front.Sym) bool {
	found := false
	Walk(n, func(n *front.Node) {
		switch n.Op {
		case front.Assign, front.AssignOp, front.IncDec:
			found = found || is(n.L, i)
		}
	})
	return found
}

// walk calls f for n and everything in it.
func Walk(n *front.Node, f func(n *front.Node)) {
	if n == nil {
		return
	}
	f(n)
	for _, c := range []*front.Node{n.L, n.R, n.C, n.Init, n.Aff} {
		Walk(c, f)
	}
	for _, c := range n.List {
		Walk(c, f)
	}
}

// Upwards is the variable of a loop for (...; i < b; i++), which its body leaves alone.
func Upwards(n *front.Node) (*front.Sym, bool) {
	if n.Init != nil {
		return loopVar(n)
	}
	i := tested(n)
	return i, i != nil && byOne(n, i)
}

// WhileLoop is a loop while (i < b) { ...; i++; } as a for loop.
func WhileLoop(n *front.Node) (*front.Node, bool) {
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
	_, ok := Upwards(loop)
	return loop, ok
}
