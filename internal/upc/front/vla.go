package front

import (
	"slices"
	"strconv"
)

// vla is the length of an array that is computed when its declaration is met (C99 6.7.5.2), or of one whose elements are such.
// A variable of such a type is a pointer to memory of the stack, and a pointer to such an array one to its base elements in Go,
// which arithmetic counts: package gen has no type for such arrays.
const vla = -2

// Variable reports whether t is such an array.
func (t *Type) Variable() bool { return t.Kind == Array && t.Len == vla }

// modified reports whether t is such an array, or leads to one.
func (t *Type) modified() bool {
	for ; t.Kind == Array || t.Kind == Pointer; t = t.Elem {
		if t.Variable() {
			return true
		}
	}
	return false
}

// count is how many base elements a t has, of type unsigned long.
func (c *checker) count(t *Type, at Pos) *Node {
	n := number(1, tyULong, at)
	for ; t.Kind == Array; t = t.Elem {
		k := number(t.Len, tyULong, at)
		if t.Variable() {
			if t.Count == nil {
				c.errorf(at, "'[*]' not allowed in other than function prototype scope")
				return n
			}
			k = cast(t.Count, tyULong)
		}
		if n.Op == Num && n.I == 1 {
			n = k
		} else {
			n = folded(&Node{Op: Mul, Pos: at, Type: tyULong, L: n, R: k}, "*")
		}
	}
	return n
}

// freeze has the lengths in t computed here, into variables of their own, by statements before the one that is read.
func freeze(p *parser, t *Type, at Pos) {
	for ; t.Kind == Array || t.Kind == Pointer; t = t.Elem {
		if !t.Variable() || t.Count == nil || t.Count.Op == Num || t.frozen {
			continue
		}
		s := &Sym{Name: "length" + strconv.Itoa(len(p.fn.Locals)), Pos: at, Type: tyLong, Storage: Local, Func: p.fn, Used: true, Reads: 1}
		p.fn.Locals = append(p.fn.Locals, s)
		v := p.variable(s, at)
		p.before = append(p.before, &Node{Op: Decl, Pos: at, Sym: s, List: []*Node{{Op: Assign, Pos: at, Type: tyLong, L: v, R: t.Count}}})
		t.Count, t.frozen = v, true
	}
}

// repeatable refuses lengths in t with side effects: those of a type's name are computed where it is used, each time.
func repeatable(p *parser, t *Type, at Pos) {
	var effects func(n *Node) bool
	effects = func(n *Node) bool {
		if n == nil {
			return false
		}
		switch n.Op {
		case Call, Assign, AssignOp, IncDec, Statements:
			return true
		}
		return effects(n.L) || effects(n.R) || effects(n.C) || slices.ContainsFunc(n.List, effects)
	}
	for ; t.Kind == Array || t.Kind == Pointer; t = t.Elem {
		if t.Variable() && effects(t.Count) {
			p.errorf(at, "not supported: the length of an array in a type's name with side effects: compute it into a variable before")
			return
		}
	}
}

// fixed refuses types whose arrays have lengths that are computed where that cannot be.
func (p *parser) fixed(t *Type, at Pos, what string) bool {
	if !t.modified() {
		return true
	}
	p.errorf(at, "not supported: a variable length array %s", what)
	return false
}

// automatic is the declaration of s, an array whose length is computed.
func automatic(p *parser, s *Sym, at Pos) []*Node {
	t := s.Type
	freeze(p, t, at)
	mark := &Sym{Name: "mark" + strconv.Itoa(len(p.fn.Locals)), Pos: at, Type: pointerTo(tyVoid), Storage: Local, Func: p.fn, Mark: true}
	s.Type, s.Array = pointerTo(t), true
	p.fn.Locals = append(p.fn.Locals, s, mark)
	if p.at("=") {
		p.fatalf(p.tok().pos, "variable-sized object may not be initialized")
	}
	v := &Node{Op: Var, Pos: at, Type: s.Type, Sym: s}
	size := folded(&Node{Op: Mul, Pos: at, Type: tyULong, L: p.count(t, at), R: number(t.Base().Size(), tyULong, at)}, "*")
	room := &Node{Op: Room, Pos: at, Type: tyVoid, L: v, R: size, C: &Node{Op: Var, Pos: at, Type: mark.Type, Sym: mark}}
	return []*Node{{Op: Decl, Pos: at, Sym: s, List: []*Node{room}}}
}
