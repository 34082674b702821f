package gen

import (
	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
	"github.com/argon-go/argon/internal/upc/opt"
)

// group is a loop whose accesses to other threads' memory are under way together (rt.Group).
type group struct {
	name   exp                 // the variable
	values map[*front.Node]exp // of reads that are done ahead
}

// aheadMost is how many iterations' reads are done ahead.
const aheadMost = 256

// share is how an upc_forall loop in which accesses are under way together finds the thread's
// iterations.
type share struct {
	own  func(n *front.Node) bool  // whether a place is the thread's, in its iterations
	aff  *front.Node               // an affinity that is looked at in each iteration, or nil
	find func(next, end, list exp) // emits what appends iterations from next on to list, and moves next on
}

// together emits a loop whose accesses to other threads' memory can be under way together, for threads that are not all
// reached by load and store, and reports whether it has. Otherwise other emits the loop. All iterations are the
// thread's if by is nil.
func (g *gen) together(n *front.Node, by *share, other func()) bool {
	if g.o.Checked || g.o.MayAlias || g.fn.Gotos || g.hoist != nil || g.group != nil || g.stripped != nil {
		return false
	}
	own, aff := g.own, (*front.Node)(nil)
	if by != nil {
		own, aff = by.own, by.aff
	}
	a, ok := opt.AheadOf(n, own, aff, by != nil)
	if !ok {
		return false
	}
	line := g.line
	near := g.capture(other)
	g.line = line
	apart := g.capture(func() { g.ahead(n, a, by) })
	g.emit(ir.When(ir.CallTo("upc.Near"), near, apart))
	return true
}

// room is the condition of a loop that finds iterations: there are more, and the list has room.
func room(next, end, list exp) exp {
	return ir.Op(ir.Op(next, "<", end), "&&", ir.Op(ir.CallTo("len", list), "<", num(aheadMost)))
}

// push is an iteration more in the list.
func push(list, k exp) *ir.Stmt { return ir.Set(list, ir.CallTo("append", list, k)) }

// ahead emits a loop whose accesses are under way together: up to aheadMost iterations at a time, first
// the gets, in stages, then the body.
func (g *gen) ahead(n *front.Node, a *opt.Ahead, by *share) {
	i, gets, line := a.I, a.Gets, g.line
	g.first(n)
	name, t := g.variable(i), g.goType(i.Type)
	end, k := g.name(), g.name()
	s := &group{g.name(), map[*front.Node]exp{}}
	g.emit(ir.Define(end, g.behind(n)), ir.Define(s.name, ir.CallTo("upc.Begin")))
	buffers := map[*front.Node]exp{}
	for _, get := range gets {
		buffers[get.N] = g.name()
		g.emit(ir.Define(buffers[get.N], ir.CallTo("make", ir.Value(ir.SliceOf(g.goType(get.N.Type))), num(aheadMost))))
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
			return ir.Loop(ir.Define(low, ir.Convert(goInt, name)), ir.Op(low, "<", end), nil, g.capture(func() {
				g.emit(ir.Define(high, ir.Op(low, "+", ir.CallTo("min", ir.Op(end, "-", low), num(aheadMost))))) // end may be the last there is
				body()
				g.emit(set(high), ir.Set(low, high))
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
		for stage := range a.Stages {
			g.emit(over(func() { g.stage(s, gets, stage, buffers, at) }))
			g.emit(ir.Do(ir.Method(s.name, "Sync")))
			for _, get := range gets {
				if get.Stage == stage {
					s.values[get.N] = ir.At(buffers[get.N], at).By(ir.Ahead)
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
func (g *gen) stage(s *group, gets []opt.Get, stage int, buffers map[*front.Node]exp, at exp) {
	// Under names of their own: those of C may be several variables'.
	g.renamed = map[*front.Sym]exp{}
	for _, get := range gets {
		for _, l := range get.Locals {
			if _, ok := g.renamed[l.Sym]; get.Stage == stage && !ok {
				v := g.name()
				g.emit(ir.Declare(v, g.goType(l.Sym.Type), g.expr(l.Value)), ir.Drop(v))
				g.renamed[l.Sym] = v
			}
		}
	}
	for _, get := range gets {
		if get.Stage == stage {
			g.emit(ir.Do(ir.CallTo("rt.Ahead", s.name, g.where(get.N).phaseless(), ir.Address(ir.At(buffers[get.N], at)))))
		}
	}
	g.renamed = nil
}

// updates are the operations that another thread's process does, by their names in package rt.
var updates = map[front.Op]string{front.Add: "OpAdd", front.Sub: "OpAdd", front.And: "OpAnd", front.Or: "OpOr", front.Xor: "OpXor"}

// groupUpdate emits L op= R of a loop of a group, whose value is not wanted, as one message, and reports
// whether it has: integers of 32 and 64 bits, whose low bits depend on those of the operands alone.
func groupUpdate(g *gen, n *front.Node) bool {
	t, op := n.L.Type, updates[n.Sub]
	if g.group == nil || op == "" || !t.Integer() || t.Kind == front.Bool || t.Size() != 4 && t.Size() != 8 || n.Work == nil || !n.Work.Integer() {
		return false
	}
	at := g.temp(phaseless, g.where(n.L).phaseless())
	v := ir.Convert(g.goType(t), g.temp(g.goType(n.R.Type), g.expr(n.R)))
	if n.Sub == front.Sub {
		v = ir.Sign("-", v)
	}
	g.emit(ir.Do(ir.CallOf(ir.Generic("rt.GroupUpdate", g.goType(t)), g.group.name, ir.Value(ir.Named("rt."+op)), at, v).By(ir.GroupUpdate)))
	return true
}

// own reports whether a place is known to be this thread's.
func (g *gen) own(n *front.Node) bool {
	if g.local == nil {
		return false
	}
	a, _, ok := g.local.Part(n)
	return ok && !g.local.arrays[a.Sym].Zero()
}

// groupGet is a read in a loop of a group.
func (g *gen) groupGet(n *front.Node, p func() exp) exp {
	if v := g.group.values[n]; !v.Zero() {
		return v
	}
	return ir.CallOf(ir.Generic("rt.GroupGet", g.goType(n.Type)), g.group.name, p()).By(ir.GroupGet)
}
