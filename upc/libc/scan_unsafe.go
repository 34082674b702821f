// Formatted input. What is unsafe here: the places that a program names for what is read.

package libc

import (
	"io"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
)

// input is the source of scan: at most limit bytes of a conversion, -1 for any number.
type input struct {
	io.ByteScanner
	read  int32 // so far
	limit int
	end   bool // there was no more
}

// next is the next byte, if there is one.
func (in *input) next() (byte, bool) {
	if in.limit == 0 {
		return 0, false
	}
	b, err := in.ReadByte()
	if err != nil {
		in.end = true
		return 0, false
	}
	in.read++
	in.limit--
	return b, true
}

// undo gives back the last byte.
func (in *input) undo() {
	in.UnreadByte() // of what was read just now, which cannot fail
	in.read--
	in.limit++
}

// accept reads a byte of set, if one follows.
func (in *input) accept(set string, out *[]byte) bool {
	b, ok := in.next()
	if !ok {
		return false
	}
	if strings.IndexByte(set, b) < 0 {
		in.undo()
		return false
	}
	*out = append(*out, b)
	return true
}

func (in *input) skipSpace() {
	var space []byte
	for in.accept(spaces, &space) {
	}
}

// conv is a conversion of a format: %, and what stands behind it.
type conv struct {
	skip  bool // *
	width int  // -1 for none
	size  string
	verb  byte
	set   [256]bool // of [
}

// parseConv is the conversion at the beginning of f, behind the %, and what follows it.
func parseConv(f string) (v conv, rest string) {
	if v.width = -1; strings.HasPrefix(f, "*") {
		v.skip, f = true, f[1:]
	}
	for f != "" && f[0] >= '0' && f[0] <= '9' {
		v.width = max(v.width, 0)*10 + int(f[0]-'0')
		f = f[1:]
	}
	for f != "" && strings.IndexByte("hlqjztL", f[0]) >= 0 {
		v.size += f[:1]
		f = f[1:]
	}
	if f == "" {
		return v, ""
	}
	v.verb, f = f[0], f[1:]
	if v.verb != '[' {
		return v, f
	}
	not := strings.HasPrefix(f, "^")
	if not {
		f = f[1:]
	}
	for i := 0; i < len(f); i++ {
		if f[i] == ']' && i > 0 {
			f = f[i+1:]
			break
		}
		if i+2 < len(f) && f[i+1] == '-' && f[i+2] != ']' {
			for b := int(f[i]); b <= int(f[i+2]); b++ {
				v.set[b] = true
			}
			i += 2
			continue
		}
		v.set[f[i]] = true
	}
	for b := range v.set {
		v.set[b] = v.set[b] != not
	}
	return v, f
}

// scan is scanf: how many conversions have stored something, or EOF if the input ended before
// the first and before any byte of that. An item that ends in the middle does not match.
func scan(from io.ByteScanner, f string, args []any) int32 {
	in := &input{ByteScanner: from, limit: -1}
	done := int32(0)
	result := func() int32 {
		if in.end && done == 0 {
			return eof
		}
		return done
	}
	for f != "" {
		b := f[0]
		f = f[1:]
		in.limit = -1
		if strings.IndexByte(spaces, b) >= 0 {
			in.skipSpace()
			continue
		}
		if b != '%' || strings.HasPrefix(f, "%") {
			if b == '%' {
				f = f[1:]
				in.skipSpace()
			}
			var one []byte
			if !in.accept(string([]byte{b}), &one) {
				return result()
			}
			continue
		}
		var v conv
		v, f = parseConv(f)
		var to unsafe.Pointer
		if !v.skip {
			if len(args) == 0 {
				return result()
			}
			w, _ := word(args[0])
			to, args = FromInt(int64(w)), args[1:]
		}
		if v.verb == 'n' {
			if to != nil {
				storeInt(to, v.size, uint64(in.read))
			}
			continue
		}
		if v.verb != 'c' && v.verb != '[' {
			in.skipSpace()
		}
		in.limit = v.width
		in.end = false
		before := in.read
		if !in.convert(&v, to) {
			in.end = in.end && in.read == before
			return result()
		}
		if !v.skip {
			done++
		}
	}
	return done
}

// convert reads one conversion and stores it, unless to is nil.
func (in *input) convert(v *conv, to unsafe.Pointer) bool {
	switch v.verb {
	case 'd', 'i', 'u', 'x', 'X', 'o', 'p':
		u, ok := in.integer(v.verb)
		if v.verb == 'p' {
			v.size = "l"
		}
		if ok && to != nil {
			storeInt(to, v.size, u)
		}
		return ok
	case 'f', 'e', 'g', 'a', 'E', 'G', 'F':
		x, ok := in.float()
		switch {
		case !ok || to == nil:
		case v.size == "l" || v.size == "L":
			*(*float64)(to) = x
		default:
			*(*float32)(to) = float32(x)
		}
		return ok
	case 'c':
		if in.limit < 0 {
			in.limit = 1
		}
		want := in.limit
		all := in.chars(func(byte) bool { return true })
		if len(all) < want {
			return false
		}
		if to != nil {
			storeText(to, v.size, all)
		}
		return true
	case 's', '[':
		all := in.chars(func(b byte) bool {
			if v.verb == 's' {
				return strings.IndexByte(spaces, b) < 0
			}
			return v.set[b]
		})
		if len(all) > 0 && to != nil {
			storeText(to, v.size, append(all, 0))
		}
		return len(all) > 0
	}
	return false
}

// storeText stores chars, or wide characters if size is that: locale C has one of each byte.
func storeText(to unsafe.Pointer, size string, all []byte) {
	if size != "l" {
		bulk.Copy(bytesAt(to, uint64(len(all))), all)
		return
	}
	for i, b := range all {
		*At((*int32)(to), i) = int32(b)
	}
}

// chars reads as long as bytes are good.
func (in *input) chars(good func(b byte) bool) (all []byte) {
	for {
		b, ok := in.next()
		if !ok {
			return all
		}
		if !good(b) {
			in.undo()
			return all
		}
		all = append(all, b)
	}
}

// integer reads the digits of a conversion.
func (in *input) integer(verb byte) (uint64, bool) {
	base := map[byte]int{'x': 16, 'X': 16, 'p': 16, 'o': 8, 'i': 0}[verb]
	if verb == 'd' || verb == 'u' {
		base = 10
	}
	const all = "0123456789abcdefABCDEF"
	var sign, text, prefix []byte
	in.accept("+-", &sign)
	if (base == 16 || base == 0) && in.accept("0", &text) {
		switch {
		case in.accept("xX", &prefix):
			base, text = 16, nil
		case base == 0:
			base = 8
		}
	}
	if base == 0 {
		base = 10
	}
	set := all
	if base <= 10 {
		set = all[:base]
	}
	for in.accept(set, &text) {
	}
	if len(text) == 0 {
		return 0, false
	}
	u, err := strconv.ParseUint(string(text), base, 64)
	neg := string(sign) == "-"
	if err != nil { // the largest there is, as strtoul and strtol have it
		u = math.MaxUint64
	}
	if verb == 'd' || verb == 'i' {
		return uint64(signed(u, neg)), true
	}
	return unsigned(u, neg, err != nil), true
}

// float reads a number with a point or an exponent, or one of the words for those that are
// none.
func (in *input) float() (float64, bool) {
	var s []byte
	all := func(set string) {
		for in.accept(set, &s) {
		}
	}
	in.accept("+-", &s)
	if in.accept("iInN", &s) {
		all("aAfFnNiItTyY")
	} else {
		set, exponent := digits, "eE"
		if in.accept("0", &s) && in.accept("xX", &s) {
			set, exponent = hexDigits, "pP"
		}
		all(set)
		if in.accept(".", &s) {
			all(set)
		}
		power := strings.ContainsAny(strings.TrimLeft(string(s), "+-"), digits) && in.accept(exponent, &s)
		if power {
			in.accept("+-", &s)
			all(digits)
		} else if set == hexDigits {
			s = append(s, "p0"...) // Go wants the exponent
		}
	}
	x, err := strconv.ParseFloat(string(s), 64)
	return x, err == nil || math.IsInf(x, 0)
}

// storeInt stores an integer as wide as a conversion's size says.
func storeInt(to unsafe.Pointer, size string, u uint64) {
	switch size {
	case "hh":
		*(*uint8)(to) = uint8(u)
	case "h":
		*(*uint16)(to) = uint16(u)
	case "":
		*(*uint32)(to) = uint32(u)
	default:
		*(*uint64)(to) = u
	}
}
