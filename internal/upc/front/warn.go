package front

import (
	"slices"
	"strings"
)

// What is checked here has no defined effects in UPC, or is an error of the program, and is
// compiled nevertheless.

// forall is the innermost upc_forall around the statement that is read.
func (p *parser) forall() *Node {
	if len(p.foralls) == 0 {
		return nil
	}
	return p.foralls[len(p.foralls)-1]
}

// collective warns of an operation that all threads take part in where only some may be: in the
// body of upc_forall (UPC 1.3, 6.6.2p13).
func (p *parser) collective(at Pos, what string) {
	for _, f := range p.foralls {
		if f.Aff != nil {
			p.warnf(at, "%s in the body of upc_forall has undefined effects", what)
			return
		}
	}
}

// callee is the library function that n, a call, calls; "" for others.
func callee(n *Node) string {
	if n.L.Op == Decay && n.L.L.Op == Var && n.L.L.Sym.Header {
		return n.L.L.Sym.Name
	}
	return ""
}

// suspect warns of calls of the library.
func (p *parser) suspect(n *Node) {
	name := callee(n)
	if strings.HasPrefix(name, "upc_all_") {
		p.collective(n.Pos, name)
	}
	switch name {
	case "upc_lock", "upc_unlock", "upc_lock_attempt":
		if a := n.List[0]; a.Op == Num && a.I == 0 {
			p.warnf(n.List[0].Pos, "null argument of %s", name)
		}
	case "upc_local_alloc":
		p.warnf(n.Pos, "upc_local_alloc(n, size) is of UPC 1.1; upc_alloc(n * size) has replaced it")
	case "upc_memcpy", "upc_memput", "upc_memset", "upc_memget":
		p.overrun(n, name)
	}
}

// overrun warns of copies that are longer than what one thread has of a shared array, which is
// what the calls copy from and to (UPC 1.3, 7.2.5).
func (p *parser) overrun(n *Node, name string) {
	size := n.List[2]
	if size.Op != Num {
		return
	}
	for _, a := range n.List[:2] {
		for a.Op == Cast && a.Type.ToShared() && a.L.Type.ToShared() {
			a = a.L
		}
		if a.Op != Decay || !a.Type.ToShared() || a.L.Op != Var {
			continue
		}
		t := a.L.Type
		b := t.Base()
		has := t.Elems()
		switch {
		case b.Block > 0 && t.PerThread():
			has = (has + b.Block - 1) / b.Block * b.Block
		case b.Block > 0: // THREADS says how much
			continue
		}
		if has *= b.Size(); size.I > has {
			p.warnf(a.Pos, "%s of %d bytes at '%s', of which one thread has %d", name, size.I, a.L.Sym.Name, has)
		}
	}
}

// locks follows the locks that statements of a block take one after the other, as far as
// nothing else happens that may give them back.
func (p *parser) locks(block *Node) {
	held := map[*Sym]bool{}
	for _, s := range block.List {
		if s.Op == Barrier && s.Str != "upc_wait" {
			for _, l := range sorted(held) {
				p.warnf(s.Pos, "%s while lock '%s' is held: threads that wait for it do not arrive", s.Str, l)
			}
		}
		n := s.L
		if s.Op != Expr || n.Op != Call {
			if !still(s) {
				clear(held)
			}
			continue
		}
		name := callee(n)
		lock := (*Sym)(nil)
		if len(n.List) > 0 && n.List[0].Op == Var {
			lock = n.List[0].Sym
		}
		switch {
		case lock == nil && strings.HasPrefix(name, "upc_"), name == "", !quietArgs(n):
			clear(held)
		case name == "upc_lock":
			if held[lock] {
				p.warnf(n.Pos, "lock '%s' is locked already by this thread", lock.Name)
			}
			held[lock] = true
		case name == "upc_lock_attempt":
			p.warnf(n.Pos, "the result of upc_lock_attempt, whether the lock is taken, is not used")
		case name == "upc_unlock":
			delete(held, lock)
		}
	}
}

// still reports whether a statement leaves all locks, and the variables that name them, alone.
func still(s *Node) bool {
	switch s.Op {
	case Barrier, Fence, Empty:
		return true
	case Expr:
		return (s.L.Op == Assign || s.L.Op == AssignOp || s.L.Op == IncDec) && s.L.L.Type.Arithmetic() && quiet(s.L)
	}
	return false
}

// quiet reports whether an expression calls nothing.
func quiet(n *Node) bool {
	if n == nil {
		return true
	}
	if n.Op == Call {
		return false
	}
	for _, c := range n.List {
		if !quiet(c) {
			return false
		}
	}
	return quiet(n.L) && quiet(n.R) && quiet(n.C)
}

func quietArgs(call *Node) bool {
	for _, a := range call.List {
		if !quiet(a) {
			return false
		}
	}
	return true
}

func sorted(held map[*Sym]bool) []string {
	var names []string
	for s := range held {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}
