package firehose

import (
	"testing"

	"pgregory.net/rapid"
)

// TestIndexModel compares with a map. Buckets are drawn such that many collide.
func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		model := map[uint64]uint32{}
		bucket := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.SampledFrom([]uint64{1 << 63, ^uint64(0), 0x9e3779b97f4a7c15}))
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				b := bucket.Draw(t, "bucket")
				if _, ok := model[b]; ok {
					t.Skip()
				}
				s := rapid.Uint32Range(1, 1<<30).Draw(t, "slot")
				x.set(b, s)
				model[b] = s
			},
			"remove": func(t *rapid.T) {
				b := bucket.Draw(t, "bucket")
				if _, ok := model[b]; !ok {
					t.Skip()
				}
				x.remove(b)
				delete(model, b)
			},
			"change": func(t *rapid.T) {
				b := bucket.Draw(t, "bucket")
				if _, ok := model[b]; !ok {
					t.Skip()
				}
				model[b] = rapid.Uint32Range(1, 1<<30).Draw(t, "slot")
				x.change(b, model[b])
			},
			"": func(t *rapid.T) {
				for b := range uint64(22) {
					if x.find(b) != model[b] {
						t.Fatalf("bucket %d: %d, want %d", b, x.find(b), model[b])
					}
				}
				for b, s := range model {
					if x.find(b) != s {
						t.Fatalf("bucket %d: %d, want %d", b, x.find(b), s)
					}
				}
				if x.n != len(model) || 2*x.n > len(x.cells) {
					t.Fatalf("%d of %d in %d cells", x.n, len(model), len(x.cells))
				}
			},
		})
	})
}
