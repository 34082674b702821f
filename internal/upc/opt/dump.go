package opt

import (
	"fmt"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
)

var kindNames = [...]string{Whole: "whole", InBlock: "row in a block", OwnBlock: "own block", AtBlock: "block of the loop", Spread: "spread"}

// Dump lists for each loop of a file's functions what may be done with it.
func (o Options) Dump(u *front.Unit) string {
	var b strings.Builder
	for _, s := range u.Syms {
		if s.Body == nil || s.Header {
			continue
		}
		fmt.Fprintf(&b, "%s\n", s.Name)
		Walk(s.Body, func(n *front.Node) {
			switch n.Op {
			case front.For, front.Forall, front.While, front.Do:
				o.dump(&b, n)
			}
		})
	}
	return b.String()
}

func (o Options) dump(b *strings.Builder, n *front.Node) {
	fmt.Fprintf(b, "  loop at line %d\n", n.Pos.Line)
	say := func(format string, args ...any) { fmt.Fprintf(b, "    "+format+"\n", args...) }
	var post *front.Node
	if n.Op != front.While && n.Op != front.Do {
		post = n.C
	}
	if Waits(n.L, post, n.R) {
		say("polls")
	}
	var i *front.Sym
	own, aff, shared := func(*front.Node) bool { return false }, (*front.Node)(nil), false
	if n.Op == front.Forall && n.Aff != nil && !n.Inner {
		shared = true
		l, ok := o.Forall(n)
		switch {
		case !ok:
			aff = n.Aff
			say("affinity is tested: %v", n.Aff)
		case l.Runs:
			say("bounds: runs of blocks of %d", l.Block)
			o.Blocks, i = &Blocks{l.I, l.Block}, l.I
		default:
			say("bounds: elements of blocks of %d", l.Block)
		}
		if ok {
			own = func(n *front.Node) bool { return l.Own(o, n) }
		}
	}
	windows := map[string]bool{}
	made := func(key string) bool { return windows[key] }
	for _, p := range append(o.Windows(n, n.R, false, made), o.Windows(n, n.R, true, made)...) {
		windows[p.Key] = true
		say("window, %s: %v", kindNames[p.Kind], p.At)
	}
	var strips []*Strip
	if n.Op == front.For {
		i, _ = o.Counted(n)
	}
	if i != nil {
		strips = o.Strips(n.R, i, ChangesOf(n), made)
	}
	for _, s := range strips {
		say("strip: from %v on, %d elements in an iteration", s.At.At, s.Most-s.Least+1)
	}
	if r, ok := RowsOf(n); ok && len(strips) == 0 {
		for _, row := range r.Rows {
			if row.Array {
				say("array %v, elements %s%+d to %+d", row.At, r.I.Name, row.Least, row.Most)
			} else {
				say("row %v", row.At)
			}
		}
		if r.I != nil {
			say("counts to a bound that stays")
		}
	}
	loop, ok := n, n.Op != front.Do
	if n.Op == front.While {
		loop, ok = WhileLoop(n)
	}
	if !ok {
		return
	}
	if a, ok := AheadOf(loop, own, aff, shared); ok {
		say("accesses under way together")
		for _, g := range a.Gets {
			say("get ahead, stage %d: %v", g.Stage, g.N)
		}
	}
}
