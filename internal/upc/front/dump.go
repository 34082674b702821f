package front

import (
	"fmt"
	"strconv"
	"strings"
)

// opNames are operators, and the words for what C has no operator for.
var opNames = map[Op]string{
	Add: "+", Sub: "-", Mul: "*", Div: "/", Mod: "%", And: "&", Or: "|", Xor: "^", Shl: "<<", Shr: ">>", Neg: "-", BitNot: "~",
	Eq: "==", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">=", LAnd: "&&", LOr: "||", Not: "!", PtrAdd: "+>", PtrDiff: "<-", Assign: "=", Comma: ",",
	Complex: "+i", Deref: "*", Addr: "&", While: "while", Do: "do", Switch: "switch", Break: "break", Continue: "continue", Empty: ";", Fence: "upc_fence", Default: "default",
}

// String is an expression as C has it, with what the tree makes explicit: conversions are calls of their type, [] is
// behind an array that becomes a pointer, +> and <- are pointer arithmetic, and @ and an order behind a place
// in shared memory.
func (n *Node) String() string {
	if n == nil {
		return ""
	}
	shared := func(s string) string {
		if n.Type.IsShared() && n.Type.Kind != Array {
			s += map[Mem]string{Strict: "@strict", Relaxed: "@relaxed"}[n.Mem]
		}
		return s
	}
	switch n.Op {
	case Num:
		return strconv.FormatInt(n.I, 10)
	case FNum:
		return strconv.FormatFloat(n.F, 'g', -1, 64)
	case Str:
		return strconv.Quote(n.Str)
	case Var:
		return shared(n.Sym.Name)
	case Threads:
		return "THREADS"
	case Mythread:
		return "MYTHREAD"
	case Neg, BitNot, Not, Addr:
		return opNames[n.Op] + n.L.String()
	case Deref:
		return shared("*" + n.L.String())
	case Index:
		return shared(n.L.String() + "[" + n.R.String() + "]")
	case Member:
		return shared(n.L.String() + "." + n.Field.Name)
	case Decay:
		return n.L.String() + "[]"
	case Cast:
		return fmt.Sprintf("%v(%v)", n.Type, n.L)
	case Cond:
		return fmt.Sprintf("(%v ? %v : %v)", n.L, n.R, n.C)
	case AssignOp:
		return fmt.Sprintf("%v %s= %v", n.L, opNames[n.Sub], n.R)
	case IncDec:
		return fmt.Sprintf("%v += %d", n.L, n.I)
	case Zero:
		return fmt.Sprintf("%v = {}", n.L)
	case SetStr:
		return fmt.Sprintf("%v = %q", n.L, n.Str)
	case Assign:
		return fmt.Sprintf("%v = %v", n.L, n.R)
	case Statements:
		var b strings.Builder
		for _, s := range n.List {
			s.dump(&b, 0)
		}
		return "({ " + strings.ReplaceAll(b.String(), "\n", "; ") + n.L.String() + " })"
	case Call, Compound:
		var list []string
		for _, a := range n.List {
			list = append(list, a.String())
		}
		return n.L.String() + "(" + strings.Join(list, ", ") + ")"
	}
	return fmt.Sprintf("(%v %s %v)", n.L, opNames[n.Op], n.R)
}

// Dump is a file's functions as typed trees.
func (u *Unit) Dump() string {
	var b strings.Builder
	for _, s := range u.Syms {
		if s.Body != nil && !s.Header {
			fmt.Fprintf(&b, "%s: %v\n", s.Name, s.Type)
			s.Body.dump(&b, 1)
		}
	}
	return b.String()
}

// dump writes a statement, indented.
func (n *Node) dump(b *strings.Builder, depth int) {
	if n == nil {
		return
	}
	line := func(format string, args ...any) {
		b.WriteString(strings.Repeat("  ", depth) + strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	body := func(list ...*Node) {
		for _, s := range list {
			s.dump(b, depth+1)
		}
	}
	switch n.Op {
	case Block:
		for _, s := range n.List {
			s.dump(b, depth)
		}
	case Decl:
		line("%s: %v", n.Sym.Name, n.Sym.Type)
		for _, i := range n.List {
			line("  %v", i)
		}
	case Expr:
		line("%v", n.L)
	case If:
		line("if %v", n.L)
		body(n.R)
		if n.C != nil {
			line("else")
			body(n.C)
		}
	case For, Forall:
		word := "for"
		if n.Op == Forall {
			word = "upc_forall"
		}
		if n.Init != nil {
			n.Init.dump(b, depth)
		}
		line("%s %v; %v; %v", word, n.L, n.C, n.Aff)
		body(n.R)
	case Case:
		if line("case %d", n.I); n.L != nil {
			line("... %v", n.L)
		}
	case Label, Goto, Barrier:
		line("%s %v", n.Str, n.L)
		body(n.R)
	case Return:
		line("return %v", n.L)
	default:
		line("%s %v", opNames[n.Op], n.L)
		body(n.R)
	}
}
