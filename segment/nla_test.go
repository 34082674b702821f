package segment

import (
	"testing"

	"pgregory.net/rapid"
)

// Figure 5-8 of Nüssle 2008 and the text around it, as numbers.
func TestAddressArithmeticOfTheCard(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		{"bits of an NLA", NLABits, 39},
		{"page size", PageSize, 4096},
		{"entries of a GAT", GATEntries, 256 << 10},
		{"bytes that a GAT maps", GATSpan, 1 << 30},
		{"size of a GAT", GATEntries * 8, 2 << 20},
		{"GATs", numGATs, 512},
		{"mappable bytes", uint64(NLALimit), 512 << 30},
		{"physical address bits", frameBits + PageBits, 52},
		{"entry bits", vpidBits + frameBits + frameShift, 64},
		{"overhead of 32 GiB", 32 << 30 / GATSpan * GATEntries * 8, 64 << 20},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}

func TestNLAFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gat := rapid.IntRange(0, numGATs-1).Draw(t, "gat")
		entry := rapid.IntRange(0, GATEntries-1).Draw(t, "entry")
		off := rapid.IntRange(0, PageSize-1).Draw(t, "off")
		a := MakeNLA(gat, entry, off)
		if a.GAT() != gat || a.Entry() != entry || a.Offset() != off {
			t.Fatalf("%v: fields %d %d %d, want %d %d %d", a, a.GAT(), a.Entry(), a.Offset(), gat, entry, off)
		}
		if want := (uint64(gat)*GATEntries+uint64(entry))*PageSize + uint64(off); uint64(a) != want {
			t.Fatalf("%v = %#x, want %#x", a, uint64(a), want)
		}
		if a >= NLALimit {
			t.Fatalf("%#x is not below the limit", uint64(a))
		}
		// Adding 1 carries from offset to entry to GAT, as in the segment.
		if b := a + 1; b < NLALimit {
			page, off := uint64(b)/PageSize, uint64(b)%PageSize
			if b.Offset() != int(off) || b.Entry() != int(page%GATEntries) || b.GAT() != int(page/GATEntries) {
				t.Fatalf("%v + 1 = %v", a, b)
			}
		}
	})
}

func TestMakeNLAMasks(t *testing.T) {
	if a := MakeNLA(numGATs+3, GATEntries+5, PageSize+7); a != MakeNLA(3, 5, 7) {
		t.Fatalf("fields run into each other: %v", a)
	}
	for a, want := range map[NLA]string{
		MakeNLA(1, 0, 16):   "1:0x0:0x10",
		NLALimit - 1:        "511:0x3ffff:0xfff",
		ExposedBase + 65536: "exposed:0x10000",
		ExposedLimit - 1:    "exposed:0x7fffffffff",
		ExposedLimit:        "0x10000000000",
	} {
		if s := a.String(); s != want {
			t.Errorf("String of %#x: %q, want %q", uint64(a), s, want)
		}
	}
}

func TestRightsString(t *testing.T) {
	for r, want := range map[Rights]string{0: "---", RightRead: "r--", RightWrite: "-w-", RightAtomic: "--a", RightsAll: "rwa"} {
		if r.String() != want {
			t.Errorf("%d: %q, want %q", r, r.String(), want)
		}
	}
}
