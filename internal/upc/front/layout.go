package front

import "strings"

// attributes are those of gcc's attributes that change where things lie.
type attributes struct {
	packed  bool
	aligned int64 // 0 if there is none
	pos     Pos
}

// ignored are attributes that have no effect on what a program computes.
var ignored = map[string]bool{}

func init() {
	for _, a := range strings.Fields(`access aligned_alloc alloc_align alloc_size always_inline artificial assume_aligned
		cold common const copy deprecated designated_init error externally_visible fallthrough flatten format format_arg gnu_inline hot
		leaf malloc no_instrument_function no_sanitize noclone noinline nonnull noipa nocommon noreturn nothrow
		optimize pure returns_nonnull returns_twice section sentinel simd target unused used visibility
		warn_unused_result warning weak`) {
		ignored[a] = true
	}
}

// read reads all __attribute__ and _Alignas that stand here.
func (a *attributes) read(p *parser) {
	for {
		switch t := p.tok(); {
		case t.is("_Alignas"):
			p.i++
			a.pos = t.pos
			p.expect("(")
			if p.startsType(p.tok()) {
				a.aligned = max(a.aligned, p.typeName().Align())
			} else {
				a.alignment(p, t.pos)
			}
			p.expect(")")
		case t.is("__attribute__"):
			p.i++
			a.pos = t.pos
			p.expect("(")
			p.expect("(")
			for !p.accept(")") {
				if !p.accept(",") {
					a.one(p)
				}
			}
			p.expect(")")
		default:
			return
		}
	}
}

// alignment reads that which an attribute asks for.
func (a *attributes) alignment(p *parser, at Pos) {
	n := p.constant("requested alignment is not an integer constant")
	if n < 0 || n&(n-1) != 0 || n > 1<<28 {
		p.errorf(at, "requested alignment is not a positive power of 2")
		n = 0
	}
	a.aligned = max(a.aligned, n)
}

// one reads one attribute.
func (a *attributes) one(p *parser) {
	t := p.next()
	name := t.text
	if s, ok := strings.CutPrefix(name, "__"); ok {
		name = strings.TrimSuffix(s, "__")
	}
	switch {
	case t.kind != tIdent:
		p.fatalf(t.pos, "expected an attribute before '%s'", t.text)
	case name == "packed":
		a.packed = true
	case name == "aligned" && p.accept("("):
		a.alignment(p, t.pos)
		p.expect(")")
		return
	case name == "aligned":
		a.aligned = max(a.aligned, 16) // the most that a type of x86-64 asks for
	case name == "may_alias":
		p.unit.MayAlias = true
	case !ignored[name]:
		p.errorf(t.pos, "not supported: attribute '%s', which changes what the program does: leave it out", t.text)
	}
	if p.accept("(") {
		for depth := 1; depth > 0; {
			switch t := p.next(); {
			case t.kind == tEOF:
				p.fatalf(t.pos, "expected ')' at end of input")
			case t.is("("):
				depth++
			case t.is(")"):
				depth--
			}
		}
	}
}

// packing is #pragma pack.
func packing(p *parser, at Pos, text string) {
	args := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t(),", r) })
	push := len(args) > 0 && args[0] == "push"
	pop := len(args) > 0 && args[0] == "pop"
	if push || pop {
		args = args[1:]
	}
	var n int64
	top := len(p.pack) - 1
	switch {
	case len(args) == 1 && strings.Contains(" 1 2 4 8 16 ", " "+args[0]+" "):
		v, _, _ := integer(args[0])
		n = int64(v)
	case len(args) > 0:
		p.errorf(at, "not supported: #pragma pack but for pack(N), pack(push, N), pack(pop) and pack(), where N is 1, 2, 4, 8 or 16")
		return
	case push && top >= 0:
		n = p.pack[top]
	}
	switch {
	case push:
		if top < 0 {
			p.pack = append(p.pack, 0)
		}
		p.pack = append(p.pack, n)
	case pop:
		if top >= 0 {
			p.pack = p.pack[:top]
		}
		if top > 0 && len(args) > 0 {
			p.pack[top-1] = n
		}
	case top < 0:
		p.pack = []int64{n}
	default:
		p.pack[top] = n
	}
}

// member is a member, or a bit-field without a name, that has no place yet.
type member struct {
	*Field
	attributes
}

// layOut gives the members of s their places, as gcc does on x86-64.
func (s *StructInfo) layOut(p *parser, list []member, a *attributes) {
	limit, pragma := int64(0), int64(0) // of the members' alignment
	if n := len(p.pack); n > 0 {
		pragma = p.pack[n-1]
		limit = pragma
	}
	if a.packed {
		limit = 1
	}
	s.Align, s.goAlign = 1, 1
	var bits, end int64 // so many are taken, and where Go would have the next member
	differs := s.Union || s.Flexible
	for _, m := range list {
		align := m.Type.Align()
		if limit > 0 {
			align = min(align, limit)
		}
		if m.packed {
			align = 1
		}
		align = max(align, m.aligned)
		from := bits
		if s.Union {
			from = 0
		}
		if m.bitField {
			if m.Type.Aligned > 0 {
				p.errorf(m.Pos, "not supported: bit-fields of a type with an alignment of its own: put the attribute behind the bit-field")
			}
			word := m.Type.Size() * 8
			unit := max(1, m.aligned*8)
			if m.Bits == 0 || limit == 0 && !m.packed && from/word != (from+m.Bits-1)/word {
				unit = max(unit, word) // it does not cross a word of its type, unless it is packed
			}
			from = (from + unit - 1) / unit * unit
			m.Offset, m.Shift = from/word*m.Type.Size(), from%word
			bits = max(bits, from+m.Bits)
			if m.Name != "" {
				if pragma > 0 {
					align = max(min(m.Type.Align(), pragma), m.aligned) // which 'packed' does not lower
				}
				s.Align = max(s.Align, align)
			}
			differs = true
			continue
		}
		m.Offset = ((from+7)/8 + align - 1) / align * align
		size := m.Type.Size()
		if m.Type.Kind == Array && m.Type.Len < 0 {
			size = 0 // a flexible one
		}
		bits = max(bits, (m.Offset+size)*8)
		s.Align = max(s.Align, align)
		own := m.Type.GoAlign()
		end = (end + own - 1) / own * own
		differs = differs || end != m.Offset
		end += size
		s.goAlign = max(s.goAlign, own)
	}
	s.Align = max(s.Align, a.aligned)
	s.Size = ((bits+7)/8 + s.Align - 1) / s.Align * s.Align
	if s.Packed = differs || (end+s.goAlign-1)/s.goAlign*s.goAlign != s.Size; s.Packed {
		s.goAlign = min(s.Align, 8)
	}
	for _, m := range list {
		if size := m.Type.Size(); m.bitField && (m.Shift+m.Bits > size*8 || m.Offset+size > s.Size) {
			m.Bytes, m.Offset, m.Shift = true, m.Offset+m.Shift/8, m.Shift%8
		}
	}
}

// GoAlign is the alignment that Go gives a t.
func (t *Type) GoAlign() int64 {
	b := t.Base()
	switch {
	case b.Kind == Struct || b.Kind == Union:
		return b.Info.goAlign
	case b.Complex():
		return b.part().Size()
	}
	return b.Size()
}

// Word is the size of the unsigned integers that a structure is made of in Go, if it is Packed.
func (s *StructInfo) Word() int64 { return s.goAlign }

// path finds a member, and the unnamed ones that it lies in: those first.
func (s *StructInfo) path(name string) []*Field {
	for _, f := range s.Fields {
		if f.Unnamed {
			if in := f.Type.Info.path(name); in != nil {
				return append([]*Field{f}, in...)
			}
		} else if f.Name == name {
			return []*Field{f}
		}
	}
	return nil
}
