package opt

import (
	"fmt"
	"slices"

	"github.com/argon-go/argon/internal/upc/front"
)

// Kind tells windows apart by their elements.
type Kind int

// The kinds of windows.
const (
	Whole    Kind = iota // all from a pointer on, or an array, of indefinite block size
	InBlock              // a row that lies in one block
	OwnBlock             // the thread's block of a row that has one block for each thread
	AtBlock              // the block that a upc_forall loop is at
	Spread               // all from a pointer on, or an array, in blocks on all threads
)

// Blocks is the loop over the elements of one block, in a upc_forall loop over i.
type Blocks struct {
	I     *front.Sym
	Block int64
}

// Place is where a place is in a window.
type Place struct {
	Kind  Kind
	Key   string        // what tells the window from others
	At    *front.Node   // the place
	Index *front.Node   // of it in the window; nil for Spread, where it counts all elements of rows
	fixed []*front.Node // what must not change in a loop that has it
}

// Options is what is known of the program.
type Options struct {
	Threads int     // the static THREADS, or 0
	Blocks  *Blocks // the loop over a block that is looked at, or nil
}

// Window is the window that a place could be in: relaxed accesses to scalars, behind a pointer that is a variable, of
// indefinite block size, or in an array or a row of one that lies in one block, or on each thread in one.
func (o Options) Window(n *front.Node) (p Place, ok bool) {
	if !relaxed(n) {
		return Place{}, false
	}
	base := n.Type.Base()
	switch n.Op {
	case front.Deref:
		p := n.L
		index := &front.Node{Op: front.Num, Pos: n.Pos, Type: &front.Type{Kind: front.Long}}
		if p.Op == front.PtrAdd {
			p, index = p.L, p.R
		}
		if p.Op != front.Var || p.Type.IsShared() || p.Type.Elem.Kind == front.Array || base.Block != 0 {
			return Place{}, false
		}
		return Place{Whole, fmt.Sprintf("*%p", p.Sym), n, index, []*front.Node{p}}, true
	case front.Index:
		row, a := n.L.Type, n.L
		key, ok := "", true
		var fixed []*front.Node
		var kind Kind
		for a.Op == front.Index {
			fixed = append(fixed, a.R)
			text, good := spell(a.R)
			key, ok = key+"["+text+"]", ok && good
			a = a.L
		}
		if a.Op != front.Var || !ok {
			return Place{}, false
		}
		key = fmt.Sprintf("%p%s", a.Sym, key)
		switch t := o.Threads; {
		case base.Block == 0:
			kind = Whole
		case base.Block == 1:
			return Place{}, false
		case !row.Threads && row.Len > 0 && base.Block%row.Len == 0:
			kind = InBlock
		case row.Threads && row.Len == base.Block, !row.Threads && t > 0 && row.Len == base.Block*int64(t):
			kind = OwnBlock
		case o.Blocks != nil && base.Block == o.Blocks.Block && o.Blocks.near(n.R):
			kind = AtBlock
		default:
			return Place{}, false
		}
		return Place{kind, fmt.Sprint(kind, key), n, n.R, fixed}, true
	}
	return Place{}, false
}

// relaxed reports whether n is a relaxed access to a scalar that is an element, or behind a pointer.
func relaxed(n *front.Node) bool {
	return (n.Op == front.Deref || n.Op == front.Index) && n.Type.IsShared() && n.Mem != front.Strict && ScalarAccess(n.Type)
}

// Spread is the window of all elements that a place could be in: a relaxed access to a scalar of an array, or behind a
// pointer that is a variable, of any block size but the indefinite one, with any index.
func (o Options) Spread(n *front.Node) (p Place, ok bool) {
	if !relaxed(n) || n.Type.Base().Block < 1 {
		return Place{}, false
	}
	a := Root(n)
	if a.Op == front.Var {
		return Place{Spread, fmt.Sprintf("%d%p", Spread, a.Sym), n, nil, nil}, true
	}
	if a.Op != front.Deref || a.L.Op != front.Var || a.L.Type.IsShared() {
		return Place{}, false
	}
	return Place{Spread, fmt.Sprintf("%d*%p", Spread, a.L.Sym), n, nil, []*front.Node{a.L}}, true
}

// Root is the place that n is an element of, without an index: an array, or what a pointer points to.
func Root(n *front.Node) *front.Node {
	for n.Op == front.Index {
		n = n.L
	}
	if n.Op == front.Deref && n.L.Op == front.PtrAdd {
		root := *n
		for root.L.Op == front.PtrAdd {
			root.L = root.L.L
		}
		return &root
	}
	return n
}

// near reports whether an index is i and a constant that leads no further than into the next blocks: element i, where
// the window begins, may lie outside of the array, but has to have an address.
func (b *Blocks) near(n *front.Node) bool {
	c, ok := Offset(n, b.I)
	return ok && -b.Block <= c && c <= b.Block
}

// spell is an expression without effects as a text that is the same for the same ones.
func spell(n *front.Node) (string, bool) {
	switch n.Op {
	case front.Num:
		return fmt.Sprint(n.I), true
	case front.Threads, front.Mythread:
		return fmt.Sprint("#", n.Op), true
	case front.Var:
		return fmt.Sprintf("%p", n.Sym), true
	case front.Add, front.Sub, front.Mul:
		l, a := spell(n.L)
		r, b := spell(n.R)
		return fmt.Sprintf("(%s %d %s)", l, n.Op, r), a && b
	case front.Cast, front.Neg:
		l, ok := spell(n.L)
		return fmt.Sprintf("(%d %v %s)", n.Op, n.Type, l), ok && n.Type.Integer() && n.Type.Kind != front.Bool
	}
	return "", false
}

// Windows are those that are made before loop n, for places in its body that the loop leaves where they are and that have none
// yet: spreads for those that a loop inside may have better ones for. Those at the block that a upc_forall loop is at are made for each block, with blocks.
// There is none for a row of an array that has a spread, in a loop that goes by strips, if these have all places of the row and blocks are
// not small: they find the row by the spread.
func (o Options) Windows(n, body *front.Node, blocks bool, made func(key string) bool) (all []Place) {
	c := ChangesOf(n)
	keeps := func(p Place) bool {
		return !slices.ContainsFunc(p.fixed, func(f *front.Node) bool { return !c.Keep(f) })
	}
	i, counted := o.Counted(n)
	counted = counted && !leaves(body)
	found := map[string]bool{} // rows that strips do not find
	Walk(body, func(n *front.Node) {
		if p, ok := o.Window(n); ok {
			s, spread := o.Spread(n)
			if _, steps := Offset(p.Index, i); !counted || !steps || !spread || !made(s.Key) || n.Type.Base().Block < SmallBlock {
				found[p.Key] = true
			}
		}
	})
	seen := map[string]bool{}
	Walk(body, func(n *front.Node) {
		p, ok := o.Window(n)
		if ok = ok && keeps(p); ok && !found[p.Key] {
			return
		}
		if !ok && !blocks {
			if p, ok = o.Spread(n); ok {
				ok = keeps(p)
			}
		}
		if ok && !made(p.Key) && !seen[p.Key] && blocks == (p.Kind == AtBlock) {
			seen[p.Key] = true
			all = append(all, p)
		}
	})
	return all
}

// SmallBlock is how many elements a block has at least that is worth a look where it ends.
const SmallBlock = 16

// Counted is the variable of a loop of C, or a upc_forall by runs, that counts up by one to a bound which stays the same.
func (o Options) Counted(n *front.Node) (*front.Sym, bool) {
	if n.Op == front.Forall && n.Aff != nil && !n.Inner {
		if l, ok := o.Forall(n); ok && l.Runs {
			return l.I, true
		}
	}
	if n.Op != front.For {
		return nil, false
	}
	i, ok := Counter(n)
	if !ok || !ChangesOf(n).Keep(n.L.R) {
		return nil, false
	}
	return i, true
}

// leaves reports whether a loop stands in the body of one, or a break leaves it: its iterations are not counted.
func leaves(body *front.Node) (found bool) {
	Walk(body, func(n *front.Node) {
		switch n.Op {
		case front.For, front.Forall, front.While, front.Do, front.Break:
			found = true
		}
	})
	return found
}

// Strip is places in a loop that go on by one element in each iteration and are a constant number of elements apart: so long as
// the elements from the place of Least to that of Most lie one behind the other, a pointer to the first finds them all.
type Strip struct {
	Key         string
	At          Place // that of Least
	Least, Most int64 // what the index of the places has beside what they have in common
}

// Strips are those of the body of a loop over i that changes what c says; none if a loop stands in it or a break leaves it.
func (o Options) Strips(body *front.Node, i *front.Sym, c *Changes, made func(key string) bool) (all []*Strip) {
	if leaves(body) {
		return nil
	}
	at := map[string]*Strip{}
	Walk(body, func(n *front.Node) {
		p, key, k, ok := o.Strip(n, i, c, made)
		if !ok {
			return
		}
		s := at[key]
		if s == nil {
			s = &Strip{key, p, k, k}
			at[key], all = s, append(all, s)
		}
		if s.Most = max(s.Most, k); k < s.Least {
			s.At, s.Least = p, k
		}
	})
	return all
}

// Strip is the strip that a place is in and the constant of its index. That is i and a constant, in a window; or, in a spread, i and what stays
// the same, while all indices before it stay.
func (o Options) Strip(n *front.Node, i *front.Sym, c *Changes, made func(key string) bool) (p Place, key string, k int64, ok bool) {
	if p, ok = o.Window(n); ok && made(p.Key) {
		k, ok = Offset(p.Index, i)
		return p, p.Key, k, ok
	}
	if p, ok = o.Spread(n); !ok || !made(p.Key) {
		return p, "", 0, false
	}
	var indices []*front.Node
	for ; n.Op == front.Index; n = n.L {
		indices = append(indices, n.R)
	}
	if n.Op == front.Deref {
		for n = n.L; n.Op == front.PtrAdd; n = n.L {
			indices = append(indices, n.R)
		}
	}
	key = p.Key
	for at, index := range indices {
		text, spelled := spell(index)
		if at == 0 {
			text, k, spelled = split(index, i)
		}
		if steps, known := c.steps(index, i); !spelled || !known || steps != (at == 0) {
			return p, "", 0, false
		}
		key += "[" + text + "]"
	}
	return p, key, k, len(indices) > 0
}

// split is an index as a text without its constant, and the constant. Sums that may wrap round stay whole.
func split(n *front.Node, i *front.Sym) (text string, c int64, ok bool) {
	n = StripLong(n)
	_, sum := Offset(n, i)
	switch {
	case n.Op == front.Num:
		return "", n.I, true
	case !sum && n.Type.Unsigned && n.Type.Size() < 8:
	case n.Op == front.Add:
		l, x, lok := split(n.L, i)
		r, y, rok := split(n.R, i)
		if l != "" && r != "" {
			l += "+"
		}
		return l + r, x + y, lok && rok
	case n.Op == front.Sub && n.R.Op == front.Num:
		l, x, ok := split(n.L, i)
		return l, x - n.R.I, ok
	}
	text, ok = spell(n)
	return text, 0, ok
}

// steps reports whether n, an index, goes up by one as i does, which it otherwise does not depend on, in a loop that changes what
// c says. Sums that wrap around below 2^64 do neither.
func (c *Changes) steps(n *front.Node, i *front.Sym) (steps, ok bool) {
	if _, ok := Offset(n, i); ok {
		return true, true // of natural numbers, if it is one without a sign
	}
	if !Uses(n, i) {
		return false, c.Keep(n)
	}
	if n.Type.Unsigned && n.Type.Size() < 8 || !n.Type.Integer() || n.Type.Size() < i.Type.Size() {
		return false, false
	}
	switch n.Op {
	case front.Add, front.Sub:
		l, lok := c.steps(n.L, i)
		r, rok := c.steps(n.R, i)
		return l != r, lok && rok && !(l && r) && !(r && n.Op == front.Sub)
	case front.Cast:
		return c.steps(n.L, i)
	}
	return false, false
}
