package segment

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkRegister is a registration and its end, of Go memory that is in
// memory already (Nüssle 2008, figures 5-13 and 5-14).
func BenchmarkRegister(b *testing.B) {
	for size := 4 << 10; size <= 16<<20; size *= 8 {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			atu := newATU(b, ATUConfig{})
			mem := pageMem(size / PageSize)
			for b.Loop() {
				r, err := atu.Register(mem, RightsAll, AnyPeer)
				if err != nil {
					b.Fatal(err)
				}
				if err := atu.Deregister(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// tlb is the card's direct-mapped cache in front of the tables (Nüssle 2008, section
// 5.3), to see whether it pays.
type tlb struct {
	t     *Tables
	lines [1024]struct {
		page uint64
		e    Entry
	}
}

func (c *tlb) translate(vpid uint16, a NLA, n uint64, need Rights) (uint64, error) {
	p := uint64(a) >> PageBits
	l := &c.lines[p%1024]
	if l.page == p && l.e.Admits(vpid, need) && !l.e.Part() && uint64(a.Offset())+n <= PageSize {
		return l.e.Frame()<<PageBits | uint64(a.Offset()), nil
	}
	addr, _, err := c.t.Translate(vpid, a, n, need)
	if err == nil {
		l.page, l.e = p, c.t.Load(a)
	}
	return addr, err
}

var sink uint64

// BenchmarkTranslate is an access's translation alone, 8 bytes at a page of so
// many: by walk of the tables, through a cache, and as a whole access.
func BenchmarkTranslate(b *testing.B) {
	for _, pages := range []int{4, 512, 4096, 256 << 10} {
		atu := newATU(b, ATUConfig{})
		const base = NLA(5 * GATSpan)
		if err := atu.tables.Fill(base, uint64(pages), MakeEntry(AnyVPID, 77, RightsAll)); err != nil {
			b.Fatal(err)
		}
		c := &tlb{t: &atu.tables}
		order := make([]NLA, 1<<16)
		for i := range order {
			order[i] = base + NLA(rand.IntN(pages)<<PageBits) + 16
		}
		run := func(name string, f func(a NLA)) {
			b.Run(fmt.Sprintf("%s/%dpages", name, pages), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					f(order[i&(len(order)-1)])
				}
			})
		}
		run("loop", func(a NLA) { sink += uint64(a) })
		run("walk", func(a NLA) {
			x, _, _ := atu.tables.Translate(3, a, 8, RightRead)
			sink += x
		})
		run("cache", func(a NLA) {
			x, _ := c.translate(3, a, 8, RightRead)
			sink += x
		})
		run("access", func(a NLA) {
			u := atu.Enter()
			m, _ := u.Translate(3, a, 8, RightRead)
			sink += uint64(len(m))
			u.Exit()
		})
	}
}
