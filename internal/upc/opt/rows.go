package opt

import (
	"fmt"
	"slices"

	"github.com/argon-go/argon/internal/upc/front"
)

// Row is what a loop finds once: a pointer in private memory that each iteration reads, or the beginning of a private array.
type Row struct {
	Key         string      // the same for places that are the same
	At          *front.Node // the place of the pointer, or the array
	Array       bool
	Least, Most int64 // how far from I the elements of an array are
}

// Rowed is a loop with rows.
type Rowed struct {
	Rows []Row
	I    *front.Sym // the variable of a loop that counts up by one to a bound that stays, or nil
	Once bool       // the condition has effects, so it is evaluated once for each iteration
}

// rows collects the rows of a loop.
type rows struct {
	i      *front.Sym
	c      *Changes
	writes []*front.Node // places in memory that the loop writes
	left   bool          // what follows is not in every iteration
	bad    bool
	steps  bool // a pointer has an index that I steps
	all    []Row
}

// RowsOf are the rows of a loop of C: u[i][j] of u[i][j][k], where the loop changes k. Each of them is
//
//   - private, and a pointer to private memory, neither of them volatile, or an array of known length that is no part of a volatile object;
//   - read in every iteration, before anything may leave it: not behind if, ?, &&, || or switch, nor behind break, continue and
//     return. So the first iteration reads it, and a loop without iterations does not;
//   - found from constants, variables and other places that keep their values in the loop. A local variable whose address is not taken does
//     if the loop does not assign to it; any other place if the loop writes no place that may be the same by its type (C 6.5p7, as for AheadOf):
//     grids of double do not change the pointers to their rows; char, members of unions, bit-fields and other pointers may.
//
// An array's elements that are used, not those of which the address is taken, have I and a constant as index, and nothing leaves the loop before its end, so that its first and last
// iteration say whether all of them are in the array. There are such rows beside others, or if the compiler of Go would check each index.
//
// There are none in a loop with another one in it, with a call that writes, synchronises or calls, a strict access, a barrier or
// a fence, an access to a volatile object, a label, or a statement in an expression; nor in one that waits for another thread, or whose condition has
// effects if something follows each iteration, as i++ in the head of a for. Functions with labels that are jumped to, or setjmp, and programs with gcc's attribute may_alias or
// built by -fno-strict-aliasing (gen.Options.MayAlias) are for package gen to leave out.
func RowsOf(n *front.Node) (*Rowed, bool) {
	var post *front.Node
	switch n.Op {
	case front.For:
		post = n.C
	case front.While, front.Do:
	default:
		return nil, false
	}
	if Waits(n.L, post, n.R) {
		return nil, false
	}
	a := &rows{c: ChangesOf(n)}
	for _, k := range []*front.Node{n.L, post, n.R} {
		Walk(k, a.effects)
	}
	if a.bad {
		return nil, false
	}
	once := false
	Walk(n.L, func(k *front.Node) {
		switch k.Op {
		case front.Assign, front.AssignOp, front.IncDec, front.Call, front.Comma:
			once = true
		}
		a.bad = a.bad || k.Type.IsShared()
	})
	if a.bad || once && post != nil {
		return nil, false
	}
	if i := tested(n); n.Op == front.For && i != nil && (n.L.Op == front.Lt || Narrow(n.L.R) || n.L.R.Type.Unsigned) && byOne(n, i) && n.L.R.Type.Integer() && a.keeps(n.L.R) {
		a.i = i
	}
	a.see(n.R, false)
	if a.left || a.i == nil {
		a.all = slices.DeleteFunc(a.all, func(r Row) bool { return r.Array })
	}
	worth := a.steps || slices.ContainsFunc(a.all, func(r Row) bool { return !r.Array || !within(n, r) })
	return &Rowed{a.all, a.i, once}, !a.bad && worth
}

// Narrow reports whether an integer has 32 bits: there are numbers of type int behind it.
func Narrow(n *front.Node) bool { return StripLong(n).Type.Size() <= 4 }

// within reports whether the numbers that loop n begins and ends with say that all elements of r that it has are in the array, as Go's compiler sees.
func within(n *front.Node, r Row) bool {
	i, ok := loopVar(n)
	if !ok || n.L.R.Op != front.Num {
		return false
	}
	first, end := start(n, i), n.L.R.I
	if n.L.Op == front.Le {
		end++
	}
	return first.Op == front.Num && first.I+r.Least >= 0 && end+r.Most <= r.At.Type.Len
}

// effects looks at what n does beside having a value.
func (a *rows) effects(n *front.Node) {
	switch n.Op {
	case front.Block, front.Expr, front.Empty, front.Decl, front.If, front.Switch, front.Case, front.Default, front.Break, front.Continue, front.Return:
		return
	case front.Assign, front.AssignOp, front.IncDec, front.Zero:
		if n.L.Op != front.Var || n.L.Sym.Storage != front.Local || OnStack(n.L.Sym) {
			a.writes = append(a.writes, n.L)
		}
		a.bad = a.bad || IsBits(n.L)
	case front.Call:
		a.bad = a.bad || EffectsOf(n)&^Reads != 0
	case front.For, front.Forall, front.While, front.Do, front.Label, front.Goto, front.Barrier, front.Fence, front.SetStr, front.Room, front.Statements,
		front.Compound:
		a.bad = true
		return
	}
	switch n.Op {
	case front.Var, front.Deref, front.Index, front.Member:
		b := n.Type.Base()
		a.bad = a.bad || b.Volatile || b.Shared && n.Mem == front.Strict
	}
}

// see looks at a statement or an expression, which is not evaluated in every iteration if sometimes.
func (a *rows) see(n *front.Node, sometimes bool) {
	if n == nil {
		return
	}
	switch n.Op {
	case front.Break, front.Continue, front.Return:
		a.see(n.L, sometimes)
		a.left = true
	case front.If, front.Cond, front.LAnd, front.LOr, front.Switch:
		a.see(n.L, sometimes)
		a.see(n.R, true)
		a.see(n.C, true)
	case front.Assign, front.AssignOp, front.IncDec:
		a.address(n.L, sometimes)
		a.see(n.R, sometimes)
	case front.Var, front.Deref, front.Index, front.Member:
		if n.Type.Kind == front.Pointer && a.add(n, sometimes) {
			return
		}
		a.address(n, sometimes)
	case front.Addr:
		a.taken(n.L, sometimes)
	case front.Decay:
		a.address(n.L, sometimes)
	default:
		for _, k := range []*front.Node{n.L, n.R, n.C, n.Init} {
			a.see(k, sometimes)
		}
		for _, k := range n.List {
			a.see(k, sometimes)
		}
	}
}

// add adds the pointer in place n, if it is a row.
func (a *rows) add(n *front.Node, sometimes bool) bool {
	b := n.Type.Elem.Base()
	if sometimes || a.left || n.Op == front.Var && n.Sym.Storage == front.Local && !OnStack(n.Sym) ||
		b.Shared || b.Volatile || b.Kind == front.Func || !a.keeps(n) {
		return false
	}
	if key, ok := Spelled(n); ok {
		a.insert(Row{Key: key, At: n})
		return true
	}
	return false
}

// insert adds r, or makes an array reach as far as r does.
func (a *rows) insert(r Row) {
	k := slices.IndexFunc(a.all, func(o Row) bool { return o.Key == r.Key && o.Array == r.Array })
	if k < 0 {
		a.all = append(a.all, r)
		return
	}
	a.all[k].Least, a.all[k].Most = min(a.all[k].Least, r.Least), max(a.all[k].Most, r.Most)
}

// address sees the parts of n, a place, that are evaluated to find it.
func (a *rows) address(n *front.Node, sometimes bool) {
	switch n.Op {
	case front.Deref:
		if p := n.L; a.i != nil && !n.Type.IsShared() && p.Op == front.PtrAdd && Uses(p.R, a.i) {
			a.steps = true
		}
		a.see(n.L, sometimes)
	case front.Index:
		if key, c, ok := ArrayKey(n, a.i); ok && !sometimes && !a.left && a.place(n.L) {
			a.insert(Row{Key: key, At: n.L, Array: true, Least: c, Most: c})
		}
		a.address(n.L, sometimes)
		a.see(n.R, sometimes)
	case front.Member:
		a.address(n.L, sometimes)
	case front.Var:
	default:
		a.see(n, sometimes)
	}
}

// taken sees the parts of n, a place whose address is taken: an element may be the one behind its array's last one.
func (a *rows) taken(n *front.Node, sometimes bool) {
	switch n.Op {
	case front.Index:
		a.taken(n.L, sometimes)
		a.see(n.R, sometimes)
	case front.Member:
		a.taken(n.L, sometimes)
	default:
		a.address(n, sometimes)
	}
}

// ArrayKey is the key of the private array that n is an element of, whose index is i and c.
func ArrayKey(n *front.Node, i *front.Sym) (key string, c int64, ok bool) {
	if i == nil || n.Op != front.Index || n.L.Type.Len <= 0 || n.L.Type.Threads || n.Type.Kind == front.Array || n.Type.Base().Shared {
		return "", 0, false
	}
	if c, ok = Offset(n.R, i); !ok {
		return "", 0, false
	}
	key, ok = Spelled(n.L)
	return key, c, ok
}

// place reports whether the address of n stays the same.
func (a *rows) place(n *front.Node) bool {
	if n.Type.IsShared() {
		return false
	}
	switch n.Op {
	case front.Var:
		if s := n.Sym; s.Storage == front.Local {
			return OnStack(s) || !a.c.vars[s] // nor declared in the loop
		}
		return n.Sym.Storage == front.Global && !n.Sym.Header
	case front.Index:
		return a.place(n.L) && a.keeps(n.R)
	case front.Deref:
		return a.keeps(n.L)
	case front.Member:
		return a.place(n.L)
	}
	return false
}

// keeps reports whether n has the same value throughout, and no effects.
func (a *rows) keeps(n *front.Node) bool {
	switch n.Op {
	case front.Num, front.Threads, front.Mythread:
		return true
	case front.Var:
		if n.Sym.Storage == front.Local && !OnStack(n.Sym) {
			return !a.c.vars[n.Sym]
		}
		return a.place(n) && !a.written(n)
	case front.Index, front.Deref, front.Member:
		return !IsBits(n) && a.place(n) && !a.written(n)
	case front.Addr, front.Decay:
		return a.place(n.L)
	case front.Add, front.Sub, front.Mul, front.And, front.Or, front.Xor:
		return a.keeps(n.L) && a.keeps(n.R)
	case front.PtrAdd:
		return !n.Type.ToShared() && a.keeps(n.L) && a.keeps(n.R)
	case front.Div, front.Mod:
		return n.Type.Integer() && a.keeps(n.L) && n.R.Op == front.Num && n.R.I != 0
	case front.Shl, front.Shr:
		return a.keeps(n.L) && n.R.Op == front.Num
	case front.Neg:
		return a.keeps(n.L)
	case front.Cast:
		t, of := n.Type, n.L.Type
		if t.Kind == front.Pointer {
			return of.Kind == front.Pointer && !t.ToShared() && !of.ToShared() && a.keeps(n.L)
		}
		return t.Integer() && of.Integer() && a.keeps(n.L)
	}
	return false
}

// written reports whether the loop may write place n.
func (a *rows) written(n *front.Node) bool {
	return slices.ContainsFunc(a.writes, func(w *front.Node) bool { return mayBe(n, w) })
}

// Spelled spells n, a place or a value that keeps.
func Spelled(n *front.Node) (string, bool) {
	switch n.Op {
	case front.Var:
		return fmt.Sprintf("%p", n.Sym), true
	case front.Num:
		return fmt.Sprint(n.I), true
	case front.Threads, front.Mythread:
		return fmt.Sprint("#", n.Op), true
	case front.Member:
		l, ok := Spelled(n.L)
		return fmt.Sprintf("%s.%p", l, n.Field), ok
	case front.Deref, front.Addr, front.Decay, front.Neg, front.Cast:
		l, ok := Spelled(n.L)
		return fmt.Sprintf("(%d %v %s)", n.Op, n.Type, l), ok
	case front.Index, front.PtrAdd, front.Add, front.Sub, front.Mul, front.And, front.Or, front.Xor, front.Div, front.Mod, front.Shl, front.Shr:
		l, a := Spelled(n.L)
		r, b := Spelled(n.R)
		return fmt.Sprintf("(%s %d %v %s)", l, n.Op, n.Type, r), a && b
	}
	return "", false
}
