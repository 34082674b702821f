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
func (o Options) Windows(n, body *front.Node, blocks bool, made func(key string) bool) (all []Place) {
	c := ChangesOf(n)
	keeps := func(p Place) bool {
		return !slices.ContainsFunc(p.fixed, func(f *front.Node) bool { return !c.Keep(f) })
	}
	seen := map[string]bool{}
	Walk(body, func(n *front.Node) {
		p, ok := o.Window(n)
		if ok = ok && keeps(p); !ok && !blocks {
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

// Slice is the elements i + C of the window with that key, in a loop over i.
type Slice struct {
	Key string
	C   int64
}

// Reach is how far from i the elements of a window are.
type Reach struct {
	Key         string
	Least, Most int64
}

// Sliced is the slices of a loop: those of all places, in windows that there are, with i or i and a constant as index.
type Sliced struct {
	Slices []Slice
	Reach  []Reach
}

// Slices are those that the body of a loop over i has instead of windows, none if a loop stands in it or a
// break leaves it, since its iterations are counted.
func (o Options) Slices(body *front.Node, i *front.Sym, made func(key string) bool) *Sliced {
	s := &Sliced{}
	seen := map[Slice]bool{}
	at := map[string]int{}
	inner := false
	Walk(body, func(n *front.Node) {
		switch n.Op {
		case front.For, front.Forall, front.While, front.Do, front.Break:
			inner = true
		}
		p, ok := o.Window(n)
		if !ok || !made(p.Key) {
			return
		}
		c, ok := Offset(p.Index, i)
		if !ok {
			return
		}
		if _, ok := at[p.Key]; !ok {
			at[p.Key] = len(s.Reach)
			s.Reach = append(s.Reach, Reach{p.Key, c, c})
		}
		r := &s.Reach[at[p.Key]]
		r.Least, r.Most = min(r.Least, c), max(r.Most, c)
		if of := (Slice{p.Key, c}); !seen[of] {
			seen[of] = true
			s.Slices = append(s.Slices, of)
		}
	})
	if inner {
		return &Sliced{}
	}
	return s
}

// Counted are the slices of a loop of C that counts up by one to a bound which stays the same.
func (o Options) Counted(n *front.Node, made func(key string) bool) (*front.Sym, *Sliced) {
	i, ok := Counter(n)
	if !ok || !ChangesOf(n).Keep(n.L.R) {
		return nil, &Sliced{}
	}
	return i, o.Slices(n.R, i, made)
}

// Run is a place in a loop whose next element is the next of its array, or behind its pointer, in each iteration.
type Run struct {
	Key string // the same for places that are the same
	Place
}

// Runs are those of a body that goes by no slices, in a loop over i that changes what c says: places of spreads whose last index
// is i and what stays the same, while all other indices stay. There are none if a loop stands in the body or a break leaves it.
func (o Options) Runs(body *front.Node, i *front.Sym, c *Changes, made func(key string) bool) (all []Run) {
	seen, inner := map[string]bool{}, false
	Walk(body, func(n *front.Node) {
		switch n.Op {
		case front.For, front.Forall, front.While, front.Do, front.Break:
			inner = true
		}
		p, ok := o.Spread(n)
		if !ok || !made(p.Key) {
			return
		}
		if w, ok := o.Window(n); ok && made(w.Key) {
			return
		}
		key, ok := RunKey(n)
		if !ok || seen[key] {
			return
		}
		last, rest := n, []*front.Node(nil)
		for last.Op == front.Index {
			rest = append(rest, last.R)
			last = last.L
		}
		if last.Op == front.Deref && last.L.Op == front.PtrAdd {
			rest = append(rest, last.L.R)
		}
		for k, index := range rest {
			if steps, ok := c.steps(index, i); !ok || steps != (k == 0) {
				return
			}
		}
		if len(rest) > 0 {
			seen[key] = true
			all = append(all, Run{key, p})
		}
	})
	if inner {
		return nil
	}
	return all
}

// RunKey is the key that a place has if it is one of Runs.
func RunKey(n *front.Node) (key string, ok bool) {
	for ; n.Op == front.Index; n = n.L {
		text, ok := spell(n.R)
		if !ok {
			return "", false
		}
		key += "[" + text + "]"
	}
	switch {
	case n.Op == front.Var:
		return fmt.Sprintf("%s%p", key, n.Sym), true
	case n.Op == front.Deref && n.L.Op == front.Var:
		return fmt.Sprintf("%s*%p", key, n.L.Sym), true
	case n.Op == front.Deref && n.L.Op == front.PtrAdd && n.L.L.Op == front.Var:
		text, ok := spell(n.L.R)
		return fmt.Sprintf("%s*%p+%s", key, n.L.L.Sym, text), ok
	}
	return "", false
}

// steps reports whether n, an index, goes up by one as i does, which it otherwise does not depend on, in a loop that changes what
// c says. Sums that wrap around below 2^64 do neither.
func (c *Changes) steps(n *front.Node, i *front.Sym) (steps, ok bool) {
	if n.Op == front.Var && n.Sym == i {
		return true, true
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
