package gas

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// ofProgram and halfOfProgram are types of a program.
type (
	ofProgram     uint32
	halfOfProgram float32
)

// TestLooped compares the loops of operations with calls of them for each element, and holds those to be used, for types of
// the program, too, but not for its functions.
func TestLooped(t *testing.T) {
	loopedOps(t, Sum[int], Product[int], Min[int], Max[int], And[int], Or[int], Xor[int])
	loopedOps(t, Sum[int8], Product[int8], Min[int8], Max[int8], And[int8], Or[int8], Xor[int8])
	loopedOps(t, Sum[int16], Product[int16], Min[int16], Max[int16], And[int16], Or[int16], Xor[int16])
	loopedOps(t, Sum[int32], Product[int32], Min[int32], Max[int32], And[int32], Or[int32], Xor[int32])
	loopedOps(t, Sum[int64], Product[int64], Min[int64], Max[int64], And[int64], Or[int64], Xor[int64])
	loopedOps(t, Sum[uint], Product[uint], Min[uint], Max[uint], And[uint], Or[uint], Xor[uint])
	loopedOps(t, Sum[uint8], Product[uint8], Min[uint8], Max[uint8], And[uint8], Or[uint8], Xor[uint8])
	loopedOps(t, Sum[uint16], Product[uint16], Min[uint16], Max[uint16], And[uint16], Or[uint16], Xor[uint16])
	loopedOps(t, Sum[ofProgram], Product[ofProgram], Min[ofProgram], Max[ofProgram], And[ofProgram], Or[ofProgram], Xor[ofProgram])
	loopedOps(t, Sum[uint64], Product[uint64], Min[uint64], Max[uint64], And[uint64], Or[uint64], Xor[uint64])
	loopedOps(t, Sum[uintptr], Product[uintptr], Min[uintptr], Max[uintptr], And[uintptr], Or[uintptr], Xor[uintptr])
	loopedOps(t, Sum[float64], Product[float64], Min[float64], Max[float64])
	loopedOps(t, Sum[halfOfProgram], Product[halfOfProgram], Min[halfOfProgram], Max[halfOfProgram])
	b := make([]byte, leastLoop)
	if looped(func(a, b int) int { return a + b }, b, b) {
		t.Error("a function of the program is taken for one of this package")
	}
	if looped(Sum[int], b[8:], b[8:]) {
		t.Error("few bytes are looked up")
	}
}

func loopedOps[T Scalar](t *testing.T, ops ...func(a, b T) T) {
	r := rand.New(rand.NewPCG(1, 2))
	acc, in := make([]T, 1001), make([]T, 1001)
	for i := range acc {
		acc[i], in[i] = T(r.IntN(1<<16)-1<<15)/3, T(r.IntN(1<<16)-1<<15)/3 // which types of a byte wrap around
	}
	for k, op := range ops {
		want := slices.Clone(acc)
		for i := range want {
			want[i] = op(acc[i], in[i])
		}
		for j, combine := range []func(acc, in []byte){combining(op), prepending(op)} {
			got := slices.Clone(acc)
			combine(bytesOf(got), bytesOf(in))
			if !bytes.Equal(bytesOf(got), bytesOf(want)) {
				t.Errorf("operation %d of %T (%d): not what its calls are", k, acc, j)
			}
		}
		if !looped(op, bytesOf(slices.Clone(acc)), bytesOf(in)) {
			t.Errorf("operation %d of %T is called for each element", k, acc)
		}
	}
}
