package front

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is the kind of a type, its qualifiers left out.
type Kind uint8

// The kinds, integers first, in the order of their ranks.
const (
	Void Kind = iota
	Bool
	Char
	Short
	Int
	Long
	LongLong
	Float
	Double
	FloatComplex // of two floats
	DoubleComplex
	Pointer
	Array
	Struct
	Union
	Func
	broken // of an expression with an error: fits everywhere
)

// Mem is how a reference to shared memory is ordered.
type Mem uint8

// Memory orders of a type (UPC 1.3, 6.5.1.1): of the place where it is used, or its own.
const (
	Plain Mem = iota
	Strict
	Relaxed
)

// BlockStar is the block size [*] before the declarator is complete.
const BlockStar = -1

// Type is a type with its qualifiers. Values are not changed once they are in use, but for
// structures, which are completed.
type Type struct {
	Kind     Kind
	Unsigned bool // of Char to LongLong
	Explicit bool // signed char, which is not char
	Natural  bool // int as an enum without negative enumerators, which is unsigned as a bit-field

	Const, Volatile bool

	// Qualifiers of UPC; an array has those of its elements.
	Shared bool
	Block  int64 // block size, elements: 0 indefinite, 1 if none is given, BlockStar
	Layout bool  // the block size is given
	Mem    Mem

	Elem *Type // of Pointer and Array; what a Func returns

	// Dimension of an array: Len, or Len times THREADS. -1 if not known.
	Len     int64
	Threads bool
	Count   *Node // of an array whose length is computed: the length, if it is known
	frozen  bool  // Count is a variable that nothing else assigns to

	Params   []*Type
	Variadic bool
	Old      bool     // a Func without a prototype: calls convert arguments by default, and Params are known of definitions
	Names    []string // of parameters, in a definition
	syms     []*Sym   // parameters with their names

	Info *StructInfo // of Struct and Union

	Aligned int64 // the alignment that an attribute asks for, or 0
}

// StructInfo is a structure or union type, of which there is one for all its qualified
// versions.
type StructInfo struct {
	Tag      string // or what a typedef calls it, or made up
	Pos      Pos
	Union    bool
	Complete bool
	Fields   []*Field
	Size     int64
	Align    int64
	ID       int
	Packed   bool  // its members do not lie where Go would have them: a union, or bit-fields or attributes say so
	Flexible bool  // its last member is an array of unknown size
	goAlign  int64 // its alignment in Go
}

// Field is a member of a structure.
type Field struct {
	Name   string
	Type   *Type
	Offset int64
	Pos    Pos

	Unnamed bool // a structure or union whose members are those of the one that it lies in; Name is made up

	// Of a bit-field: so many bits, from the bit Shift on of the word of Type at Offset.
	Bits, Shift int64
	Bytes       bool // it lies in no word of its type, but from bit Shift on of the bytes at Offset
	bitField    bool
}

// named is the type's name in messages.
func (s *StructInfo) named() string {
	if s.Tag == "" {
		return "<anonymous>"
	}
	return s.Tag
}

var (
	tyVoid   = &Type{Kind: Void}
	tyChar   = &Type{Kind: Char}
	tyInt    = &Type{Kind: Int}
	tyLong   = &Type{Kind: Long}
	tyULong  = &Type{Kind: Long, Unsigned: true}
	tyDouble = &Type{Kind: Double}
	tyBroken = &Type{Kind: broken}
)

func pointerTo(t *Type) *Type { return &Type{Kind: Pointer, Elem: t} }

// Base is the type of t's elements if t is an array, of any number of dimensions, or t.
func (t *Type) Base() *Type {
	for t.Kind == Array {
		t = t.Elem
	}
	return t
}

// IsShared reports whether objects of type t are shared.
func (t *Type) IsShared() bool { return t.Base().Shared }

// ToShared reports whether t is a pointer-to-shared.
func (t *Type) ToShared() bool { return t.Kind == Pointer && t.Elem.IsShared() }

// Integer reports whether t is an integer type.
func (t *Type) Integer() bool { return t.Kind >= Bool && t.Kind <= LongLong }

// Arithmetic reports whether t is an integer or floating type.
func (t *Type) Arithmetic() bool { return t.Kind >= Bool && t.Kind <= Double }

// Floating reports whether t is a floating type.
func (t *Type) Floating() bool { return t.Kind == Float || t.Kind == Double }

// Complex reports whether t is a complex type.
func (t *Type) Complex() bool { return t.Kind == FloatComplex || t.Kind == DoubleComplex }

// Number reports whether t is a real or complex type.
func (t *Type) Number() bool { return t.Arithmetic() || t.Complex() }

// part is the type of the two parts of a complex type.
func (t *Type) part() *Type {
	if t.Kind == FloatComplex {
		return &Type{Kind: Float}
	}
	return tyDouble
}

// Scalar reports whether t has one value that can be compared with 0.
func (t *Type) Scalar() bool { return t.Number() || t.Kind == Pointer }

// Size is the size of t in bytes, without a factor THREADS, which PerThread reports.
func (t *Type) Size() int64 {
	switch t.Kind {
	case Bool, Char, Void, Func:
		return 1
	case Short:
		return 2
	case Int, Float:
		return 4
	case Array:
		return t.Len * t.Elem.Size()
	case DoubleComplex:
		return 16
	case Struct, Union:
		return t.Info.Size
	}
	return 8
}

// Align is the alignment of t in bytes.
func (t *Type) Align() int64 {
	if t.Aligned > 0 {
		return t.Aligned
	}
	switch t.Kind {
	case Array:
		return t.Elem.Align()
	case Struct, Union:
		return t.Info.Align
	case FloatComplex, DoubleComplex:
		return t.Size() / 2
	}
	return t.Size()
}

// PerThread reports whether the size of t is a multiple of THREADS that is not known.
func (t *Type) PerThread() bool {
	return t.Kind == Array && (t.Threads || t.Elem.PerThread())
}

// Elems is how many elements of its base type t is, without a factor THREADS.
func (t *Type) Elems() int64 {
	n := int64(1)
	for ; t.Kind == Array; t = t.Elem {
		n *= t.Len
	}
	return n
}

// Single reports whether t is one element of its base type.
func (t *Type) Single() bool { return t.Elems() == 1 && !t.PerThread() }

// Complete reports whether t's size is known.
func (t *Type) Complete() bool {
	switch t.Kind {
	case Void, Func:
		return false
	case Array:
		return (t.Len >= 0 || t.Len == vla) && t.Elem.Complete()
	case Struct, Union:
		return t.Info.Complete
	}
	return true
}

// with is t with other qualifiers: of its elements if it is an array.
func (t *Type) with(change func(q *Type)) *Type {
	c := *t
	if t.Kind == Array {
		c.Elem = t.Elem.with(change)
	} else {
		change(&c)
	}
	return &c
}

// plain is t without qualifiers: the type of a value.
func (t *Type) plain() *Type {
	if !t.Const && !t.Volatile && !t.Shared && t.Mem == Plain && t.Aligned == 0 {
		return t
	}
	return t.with(func(q *Type) {
		q.Const, q.Volatile, q.Shared, q.Block, q.Layout, q.Mem, q.Aligned = false, false, false, 0, false, Plain, 0
	})
}

// same reports whether a and b are the same type but for qualifiers const and volatile and
// memory orders at any depth.
func same(a, b *Type) bool {
	if a.Kind == broken || b.Kind == broken {
		return true
	}
	if a.Kind != b.Kind {
		return false
	}
	if a.Kind != Array && (a.Shared != b.Shared || a.Shared && a.Block != b.Block) {
		return false
	}
	switch a.Kind {
	case Char:
		return a.Unsigned == b.Unsigned && a.Explicit == b.Explicit
	case Short, Int, Long, LongLong:
		return a.Unsigned == b.Unsigned
	case Pointer:
		return same(a.Elem, b.Elem)
	case Array:
		return same(a.Elem, b.Elem) && (a.Len < 0 || b.Len < 0 || a.Len == b.Len && a.Threads == b.Threads)
	case Struct, Union:
		return a.Info == b.Info
	case Func:
		if a.Old || b.Old {
			return same(a.Elem, b.Elem) && !a.Variadic && !b.Variadic
		}
		if !same(a.Elem, b.Elem) || len(a.Params) != len(b.Params) || a.Variadic != b.Variadic {
			return false
		}
		for i := range a.Params {
			if !same(a.Params[i], b.Params[i]) {
				return false
			}
		}
	}
	return true
}

// sized reports whether pointers of types a and b, which are the same, lead to arrays of the same sizes, and to functions
// that both have prototypes or not.
func sized(a, b *Type) bool {
	switch {
	case a.Kind == Pointer && b.Kind == Pointer:
		return sized(a.Elem, b.Elem)
	case a.Kind == Array && b.Kind == Array:
		return a.Len == b.Len && sized(a.Elem, b.Elem)
	case a.Kind == Func && b.Kind == Func:
		return a.Old == b.Old && len(a.Params) == len(b.Params)
	}
	return true
}

// String is the type as C and UPC write it.
func (t *Type) String() string { return t.declare("") }

func (t *Type) qualifiers() string {
	var q []string
	if t.Mem == Strict {
		q = append(q, "strict")
	}
	if t.Mem == Relaxed {
		q = append(q, "relaxed")
	}
	if t.Shared {
		switch t.Block {
		case 1:
			q = append(q, "shared")
		case 0:
			q = append(q, "shared []")
		case BlockStar:
			q = append(q, "shared [*]")
		default:
			q = append(q, fmt.Sprintf("shared [%d]", t.Block))
		}
	}
	if t.Const {
		q = append(q, "const")
	}
	if t.Volatile {
		q = append(q, "volatile")
	}
	return strings.Join(q, " ")
}

// declare is the declaration of inner, a declarator, with type t.
func (t *Type) declare(inner string) string {
	switch t.Kind {
	case Pointer:
		q := t.qualifiers()
		if q != "" && inner != "" {
			q += " "
		}
		s := "*" + q + inner
		if t.Elem.Kind == Array || t.Elem.Kind == Func {
			s = "(" + s + ")"
		}
		return t.Elem.declare(s)
	case Array:
		d := ""
		switch {
		case t.Len < 0:
		case !t.Threads:
			d = fmt.Sprint(t.Len)
		case t.Len == 1:
			d = "THREADS"
		default:
			d = fmt.Sprintf("%d*THREADS", t.Len)
		}
		return t.Elem.declare(inner + "[" + d + "]")
	case Func:
		var ps []string
		for _, p := range t.Params {
			ps = append(ps, p.String())
		}
		if t.Variadic {
			ps = append(ps, "...")
		}
		if len(ps) == 0 && !t.Old {
			ps = []string{"void"}
		}
		return t.Elem.declare(inner + "(" + strings.Join(ps, ", ") + ")")
	}
	var name string
	switch t.Kind {
	case Void:
		name = "void"
	case Bool:
		name = "_Bool"
	case Char:
		name = "char"
		if t.Explicit {
			name = "signed char"
		}
	case Short:
		name = "short"
	case Int:
		name = "int"
		if t.Unsigned {
			name = "unsigned int"
		}
	case Long:
		name = "long"
	case LongLong:
		name = "long long"
	case Float:
		name = "float"
	case Double:
		name = "double"
	case FloatComplex:
		name = "float _Complex"
	case DoubleComplex:
		name = "double _Complex"
	case Struct:
		name = "struct " + t.Info.named()
	case Union:
		name = "union " + t.Info.named()
	case broken:
		name = "<error>"
	}
	if t.Unsigned && t.Kind != Int && t.Kind != Bool {
		name = "unsigned " + name
	}
	if q := t.qualifiers(); q != "" {
		name = q + " " + name
	}
	if inner == "" {
		return name
	}
	if inner[0] == '[' || inner[0] == '(' && !strings.HasPrefix(inner, "(*") {
		return name + inner
	}
	return name + " " + inner
}

// Same reports whether a and b are the same type, as for declarations of one thing in two files.
func Same(a, b *Type) bool {
	if (a.Kind == Struct || a.Kind == Union) && a.Kind == b.Kind {
		return a.Info.Tag == b.Info.Tag
	}
	if a.Kind == b.Kind && (a.Kind == Pointer || a.Kind == Array) {
		return Same(a.Elem, b.Elem) && a.Shared == b.Shared
	}
	if a.Kind == Func && b.Kind == Func && (a.Old || b.Old) {
		if a.Old != b.Old && (a.Old && a.Names != nil || b.Old && b.Names != nil) && !slices.EqualFunc(a.Params, b.Params, Same) {
			return false // a definition takes other arguments than a prototype passes
		}
		return Same(a.Elem, b.Elem) && a.Variadic == b.Variadic
	}
	if a.Kind == Func && b.Kind == Func && len(a.Params) == len(b.Params) && a.Variadic == b.Variadic {
		for i := range a.Params {
			if !Same(a.Params[i], b.Params[i]) {
				return false
			}
		}
		return Same(a.Elem, b.Elem)
	}
	return same(a, b)
}
