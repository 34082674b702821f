package rt

import (
	"math/rand/v2"
	"testing"
)

// TestGroup: whatever a group has under way, the thread sees its puts, gets and updates of each word, and of the
// halves of it, in the order in which it has made them, and End leaves what came last.
func TestGroup(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		const words, steps = 40, 1500
		at := t.AllAlloc(uint64(t.threads), words*8)
		if t.me == 0 {
			r := rand.New(rand.NewPCG(1, 2))
			model := make([]int32, 2*words*t.threads)
			place := func() (Phaseless, int) {
				k := r.IntN(len(model))
				return MakePhaseless(k%t.threads, at.Addr()).AddLocal(k/t.threads, 4), k
			}
			g := t.Begin()
			for i := range steps {
				p, k := place()
				switch r.IntN(7) {
				case 3, 4, 5: // several to one word, by one operation or another
					op := []Op{OpAdd, OpAnd, OpOr, OpXor}[r.IntN(4)]
					for j := range r.IntN(6) {
						v := int32(i*7 + j)
						GroupUpdate(g, op, p, v)
						model[k] = map[Op]int32{OpAdd: model[k] + v, OpAnd: model[k] & v, OpOr: model[k] | v, OpXor: model[k] ^ v}[op]
						if r.IntN(3) == 0 {
							p, k = place()
						}
					}
				case 0, 1:
					GroupPut(g, p, int32(i))
					model[k] = int32(i)
				case 2:
					if v := GroupGet[int32](g, p); v != model[k] {
						t.failf("step %d: %v is %d, not %d", i, p, v, model[k])
					}
				default:
					var got, want [30]int32
					for j := range got {
						p, k := place()
						Ahead(g, p, &got[j])
						want[j] = model[k]
					}
					g.Sync()
					if got != want {
						t.failf("step %d: %v, not %v", i, got, want)
					}
				}
				if i%400 == 399 {
					// More puts than a group has under way at most, and then a plain read of the last.
					for j := range 2 * groupMost {
						k = j % len(model)
						p = MakePhaseless(k%t.threads, at.Addr()).AddLocal(k/t.threads, 4)
						if GroupPut(g, p, int32(j)); j%3 == 0 {
							GroupUpdate(g, OpAdd, p, int32(5))
							j += 5
						}
						model[k] = int32(j)
					}
					g.End()
					if v := Get[int32](t, p); v != model[k] {
						t.failf("after End %v is %d, not %d", p, v, model[k])
					}
					g = t.Begin()
				}
			}
			g.End()
		}
		t.BarrierAny()
	})
}
