package opt

import "github.com/argon-go/argon/internal/upc/front"

// Local is an upc_forall loop over I whose bounds visit this thread's elements only. Without Runs they are those of
// arrays with one block size: element i of such an array is element k of the thread's part, and elements are visited in
// order, so k goes up by one. With Runs they are runs of elements behind Row or Pointer.
type Local struct {
	I     *front.Sym
	Block int64
	Runs  bool

	Row, Pointer *front.Node // what the affinity is an element of: a row of an array, or what a pointer points to
	More         int64       // of the affinity's index I + More
	Known        bool        // the row begins on thread 0
	element      *front.Node
}

// Forall is how an upc_forall loop with affinity visits this thread's iterations only.
func (o Options) Forall(n *front.Node) (*Local, bool) {
	l, ok := o.runs(n)
	if ok && l.Block != 1 {
		return l, true
	}
	if a, ok := o.affine(n); ok {
		return a, true
	}
	return l, ok // of one element each, if there is more than one thread
}

// affine is the loop that n is, if its affinity says what elements its variable visits: it
// goes up by one to a bound, and its affinity is i, &a[i], or &a[i][j] where rows are blocks, a being an
// array or a row of one that has as many blocks on each thread.
func (o Options) affine(n *front.Node) (*Local, bool) {
	i, ok := Counter(n)
	Walk(n.L, func(b *front.Node) { // the bound says what i is afterwards, too
		ok = ok && (b.Op != front.Var || b.Sym == i || !changes(n.R, b.Sym))
	})
	if !ok {
		return nil, false
	}
	l := &Local{I: i, Block: 1}
	a := n.Aff
	if a.Type.Integer() {
		a = StripLong(a)
		return l, a.Op == front.Var && a.Sym == i
	}
	if a.Op == front.Decay {
		a = a.L // the row a[i] as &a[i][0]
		return l, o.blockOf(a, i, ChangesOf(n))
	}
	if a.Op != front.Addr {
		return nil, false
	}
	a = a.L
	if a.Op == front.Index && a.L.Op == front.Var && is(a.R, i) && a.L.Type.Elem.Kind != front.Array {
		l.Block = a.L.Type.Base().Block
		return l, l.Block >= 1
	}
	ok = a.Op == front.Index && a.R.Op == front.Num && a.Type.Kind != front.Array && o.blockOf(a.L, i, ChangesOf(n))
	return l, ok
}

// blockOf reports whether n is row i, a block, of an array, or of a row of one that begins on thread 0
// and is the same throughout a loop that changes what c says.
func (o Options) blockOf(n *front.Node, i *front.Sym, c *Changes) bool {
	if n.Op != front.Index || !is(n.R, i) || !blocks(n.L.Type) {
		return false
	}
	rows, t := n.L.Type, int64(o.Threads)
	a := n.L
	for ; a.Op == front.Index; a = a.L {
		if !c.Keep(a.R) {
			return false
		}
	}
	return a.Op == front.Var && (a == n.L || rows.Threads || t > 0 && rows.Len%t == 0)
}

// runs is the loop that n is, if what its variable visits are runs of elements: its affinity is an
// element of a row of an array that stays the same, or behind a pointer that does, with index i or
// i and a constant.
func (o Options) runs(n *front.Node) (*Local, bool) {
	i, ok := Counter(n)
	c := ChangesOf(n)
	if !ok || !n.Aff.Type.ToShared() || !c.Keep(n.L.R) {
		return nil, false
	}
	var row, p, index *front.Node
	switch a := n.Aff; {
	case a.Op == front.Addr && a.L.Op == front.Index:
		row, index = a.L.L, a.L.R
	case a.Op == front.Addr && a.L.Op == front.Deref && a.L.L.Op == front.PtrAdd:
		p, index = a.L.L.L, a.L.L.R
	case a.Op == front.PtrAdd:
		p, index = a.L, a.R
	default:
		return nil, false
	}
	if p != nil && p.Op == front.Decay {
		p, row = nil, p.L
	}
	more, ok := Offset(index, i)
	if !ok {
		return nil, false
	}
	l := &Local{I: i, Runs: true, Row: row, Pointer: p, More: more}
	if row != nil {
		a := row
		for ; a.Op == front.Index; a = a.L {
			if !c.Keep(a.R) {
				return nil, false
			}
		}
		if a.Op != front.Var || n.Aff.Type.Elem.Kind == front.Array {
			return nil, false
		}
		l.Block = a.Type.Base().Block
		l.Known = a == row || row.Type.Threads && l.Block > 0 && row.Type.Len%l.Block == 0
	} else {
		t := p.Type.Elem
		if p.Op != front.Var || p.Type.IsShared() || !c.Keep(p) || t.Kind == front.Array || t.Kind == front.Void {
			return nil, false
		}
		l.Block = t.Base().Block
	}
	element := n.Aff
	if element.Op == front.Addr {
		element = element.L
	} else {
		element = &front.Node{Op: front.Deref, Type: element.Type.Elem, L: element}
	}
	l.element = element
	return l, true
}

// rowOf is the array of which n is row i.
func rowOf(n *front.Node, i *front.Sym) (*front.Node, bool) {
	if n.Op == front.Index && n.L.Op == front.Var && is(n.R, i) {
		return n.L, true
	}
	return nil, false
}

// row is the array of which n is an element of row i, where rows are blocks of a cyclic one.
func (l *Local) row(n *front.Node) (*front.Node, bool) {
	if n.Op != front.Index || l.Block != 1 || n.Type.Kind == front.Array {
		return nil, false
	}
	a, ok := rowOf(n.L, l.I)
	return a, ok && blocks(a.Type) && a.Type.Elem.Elem.Kind != front.Array
}

// blocks reports whether the rows of an array are its blocks, so that row i lies on thread i mod THREADS.
func blocks(t *front.Type) bool {
	row := t.Elem
	return row.Kind == front.Array && !row.PerThread() && row.Elems() == row.Base().Block
}

// Part is the array and the index in the thread's part of a place in the loop that is this
// thread's.
func (l *Local) Part(n *front.Node) (a, column *front.Node, ok bool) {
	if n.Op != front.Index || !n.Type.IsShared() || n.Mem == front.Strict || !ScalarAccess(n.Type) {
		return nil, nil, false
	}
	if n.L.Op == front.Var && is(n.R, l.I) && n.L.Type.Base().Block == l.Block && l.Block >= 1 {
		return n.L, nil, true
	}
	if a, ok := l.row(n); ok {
		return a, n.R, true
	}
	return nil, nil, false
}

// roundBlock is from how many elements of a block on a loop over a run goes by slices even if it
// reaches elements around its own, which are other threads' at the ends of the run. In smaller blocks
// the messages for these take longer than the rest.
const roundBlock = 1 << 10

// Own reports whether a place is this thread's in the loop's iterations.
func (l *Local) Own(o Options, n *front.Node) bool {
	if !l.Runs {
		_, _, ok := l.Part(n)
		return ok
	}
	o.Blocks = &Blocks{l.I, l.Block}
	window := func(n *front.Node) (p Place, c int64, ok bool) {
		if p, ok = o.Window(n); ok {
			c, ok = Offset(p.Index, l.I)
		}
		return p, c, ok
	}
	e := l.element
	row, more, known := window(e)
	p, c, ok := window(n)
	switch {
	case !ok || !known:
		return false
	case p.Key == row.Key && (c == more || p.Kind == Whole || p.Kind == InBlock):
		return true
	}
	return (p.Kind == AtBlock || p.Kind == OwnBlock) && (l.Block >= roundBlock || e.Op == front.Index && e.L.Op == front.Var && n.L.Op == front.Var && c == more)
}
