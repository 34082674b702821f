package dist

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"reflect"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
)

// keys turns keys into bytes and those into the rank that has them: the same on all
// ranks, as a map's own hash is not.
type keys[K comparable] struct {
	codec gas.Codec[K]
	size  int  // of a key's bytes, if fixed
	fixed bool // all keys have that many
	text  bool // K is string: the bytes are a length, as a uvarint, and the text
	plan  []step
}

// step is hash's way with the next bytes of a key.
type step struct {
	kind stepKind
	size int
}

type stepKind uint8

const (
	hashed    stepKind = iota // size bytes
	skipped                   // size bytes: padding and blank fields, which equal keys may differ in
	float                     // of size bytes: zeros are equal
	text                      // 8 bytes of length, and so many
	blankText                 // the same, skipped
)

func newKeys[K comparable]() (k keys[K], err error) {
	if k.codec, err = gas.NewCodec[K](); err != nil {
		return k, err
	}
	t := reflect.TypeFor[K]()
	k.size, k.fixed = k.codec.Size()
	k.text = t == reflect.TypeFor[string]()
	k.plan = merged(planOf(nil, t, k.fixed, false))
	return k, nil
}

// planOf adds the steps for a value of type t, whose memory as it is are its bytes if plain
// is set.
func planOf(plan []step, t reflect.Type, plain, blank bool) []step {
	plain = plain || !holds(t, reflect.String)
	switch t.Kind() {
	case reflect.Struct:
		at := 0
		for i := range t.NumField() {
			f := t.Field(i)
			if plain {
				plan = append(plan, step{skipped, int(f.Offset) - at})
				at = int(f.Offset + f.Type.Size())
			}
			plan = planOf(plan, f.Type, plain, blank || f.Name == "_")
		}
		if plain {
			plan = append(plan, step{skipped, int(t.Size()) - at})
		}
		return plan
	case reflect.Array:
		elem := merged(planOf(nil, t.Elem(), plain, blank))
		if len(elem) == 1 && elem[0].kind <= skipped {
			return append(plan, step{elem[0].kind, elem[0].size * t.Len()})
		}
		for range t.Len() {
			plan = append(plan, elem...)
		}
		return plan
	}
	s := step{hashed, int(t.Size())}
	switch k := t.Kind(); {
	case k == reflect.String && blank:
		s.kind = blankText
	case k == reflect.String:
		s.kind = text
	case blank:
		s.kind = skipped
	case k == reflect.Float32 || k == reflect.Float64:
		s.kind = float
	case k == reflect.Complex64 || k == reflect.Complex128:
		half := step{float, s.size / 2}
		return append(plan, half, half)
	}
	return append(plan, s)
}

// merged is plan with neighbours of one kind made one step.
func merged(plan []step) []step {
	out := plan[:0]
	for _, s := range plan {
		switch last := len(out) - 1; {
		case s.size == 0 && s.kind <= skipped:
		case last >= 0 && s.kind <= skipped && out[last].kind == s.kind:
			out[last].size += s.size
		default:
			out = append(out, s)
		}
	}
	return out
}

// append puts the bytes of a key behind b.
func (k *keys[K]) append(b []byte, key *K) []byte {
	if k.text {
		s := any(*key).(string)
		return append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return k.codec.Append(b, key)
}

// copyTo copies the bytes of a key to dst, which takes no memory, if it is of one of the forms for
// which that can be, and fits.
func (k *keys[K]) copyTo(dst []byte, key *K) (n int, ok bool) {
	if k.text {
		s := any(*key).(string)
		if len(s)+1 > len(dst) || len(s) >= 1<<7 {
			return 0, false
		}
		dst[0] = byte(len(s)) // as a uvarint
		return 1 + copy(dst[1:], s), true
	}
	if !k.fixed || k.size > len(dst) {
		return 0, false
	}
	return copy(dst, k.codec.Bytes(key)), true
}

// splitText is the text that the bytes of a key of type string begin with, and the rest.
func splitText(b []byte) (s, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, errs.BadArg("dist: the bytes of a key end too early")
	}
	return b[k : k+int(n)], b[k+int(n):], nil
}

// hash is the hash of a key.
func (k *keys[K]) hash(key *K) uint64 {
	if k.text {
		return hashText(seed, any(*key).(string))
	}
	b := k.codec.Bytes(key)
	if !k.fixed {
		b = k.codec.Append(nil, key)
	}
	h := uint64(seed)
	for _, s := range k.plan {
		n := s.size
		switch s.kind {
		case hashed:
			h = hashBytes(h, b[:n])
		case float:
			if n == 4 {
				f := math.Float32frombits(binary.NativeEndian.Uint32(b))
				h = mix(h ^ uint64(math.Float32bits(f+0))) // a negative zero becomes zero
			} else {
				f := math.Float64frombits(binary.NativeEndian.Uint64(b))
				h = mix(h ^ math.Float64bits(f+0))
			}
		case text, blankText:
			n = int(binary.LittleEndian.Uint64(b))
			b = b[8:]
			if s.kind == text {
				h = mix(hashBytes(h, b[:n]) ^ uint64(n))
			}
		}
		b = b[n:]
	}
	return h
}

// seed is the hash of nothing.
const seed = 0x9e3779b97f4a7c15

// mix is a permutation of words whose every bit depends on all others.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// hashBytes goes on from h with b, eight bytes at a time.
func hashBytes(h uint64, b []byte) uint64 {
	for len(b) >= 8 {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if len(b) > 0 {
		var w [8]byte
		copy(w[:], b)
		h = mix(h ^ binary.LittleEndian.Uint64(w[:]))
	}
	return h
}

// hashText is hashBytes of a string and its length.
func hashText(h uint64, s string) uint64 {
	n := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		h = mix(h ^ (uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56))
	}
	w := uint64(0)
	for i := range len(s) {
		w |= uint64(s[i]) << (8 * i)
	}
	return mix(h ^ w ^ n<<56)
}

// ownerOf is the rank of so many that has what has hash h.
func ownerOf(h uint64, ranks int) int {
	hi, _ := bits.Mul64(h, uint64(ranks))
	return int(hi)
}

// holds reports whether t, which travels, is of a kind or has parts that are.
func holds(t reflect.Type, kind reflect.Kind) bool {
	switch t.Kind() {
	case kind:
		return true
	case reflect.Array:
		return t.Len() > 0 && holds(t.Elem(), kind)
	case reflect.Slice:
		return holds(t.Elem(), kind)
	case reflect.Struct:
		for i := range t.NumField() {
			if holds(t.Field(i).Type, kind) {
				return true
			}
		}
	}
	return false
}

// typeName is the name of T for errors and for agree.
func typeName[T any]() string { return fmt.Sprint(reflect.TypeFor[T]()) }
