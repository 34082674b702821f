package gas

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestArrayIndexed stores and loads elements of an array over three ranks by lists of indices,
// and a plain slice beside it.
func TestArrayIndexed(t *testing.T) {
	everywhere(t, small(3), func(n *Node) error {
		const length = 50
		a, err := NewArray[odd](n, length, 4)
		if err != nil || n.Rank() != 1 {
			return errors.Join(err, n.Barrier())
		}
		model := make([]odd, length)
		rapid.Check(t, func(t *rapid.T) {
			put := rapid.SliceOfDistinct(rapid.IntRange(0, length-1), rapid.ID[int]).Draw(t, "put")
			var src, want []odd
			for _, i := range put {
				model[i] = odd{uint16(i), 3, rapid.Uint16().Draw(t, "value")}
				src = append(src, model[i])
			}
			if err := a.PutIndexed(n, put, src); err != nil {
				t.Fatal(err)
			}
			get := rapid.SliceOf(rapid.IntRange(0, length-1)).Draw(t, "get")
			for _, i := range get {
				want = append(want, model[i])
			}
			dst, all := make([]odd, len(get)), make([]odd, length)
			if err := a.GetIndexed(n, get, dst); err != nil || !slices.Equal(dst, want) {
				t.Fatalf("got %v (%v), want %v", dst, err, want)
			}
			if err := a.GetRange(n, 0, all); err != nil || !slices.Equal(all, model) {
				t.Fatalf("the array is %v (%v), want %v", all, err, model)
			}
		})
		one := make([]odd, 2)
		return errors.Join(
			wantErr(a.GetIndexed(n, []int{1, length}, one), ErrBadArg, "gas: Array.GetIndexed: index 50 (entry 1 of 2)", "50 elements"),
			wantErr(a.PutIndexed(n, []int{-1, 1}, one), ErrBadArg, "index -1 (entry 0 of 2)"),
			wantErr(a.PutIndexed(n, []int{1}, one), ErrBadArg, "1 indices for 2 elements"),
			a.GetIndexed(n, nil, nil),
			n.Barrier())
	})
}
