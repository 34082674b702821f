package segment

import "fmt"

// NLA is a network logical address: the index of an entry in a rank's global
// address tables and an offset in the page it names (Nüssle 2008, section 5.3,
// figure 5-8). It is meaningful only together with the rank that owns it.
//
//	63      39 38     30 29       12 11       0
//	+---------+---------+-----------+----------+
//	|    0    | GAT (9) | entry (18)| offset(12)|
//	+---------+---------+-----------+----------+
//
// One GAT maps 2^18 pages of 4 KiB, 1 GiB; 512 of them map 512 GiB. The value 0
// is never a valid address: GAT 0 entry 0 is not given out.
type NLA uint64

// The fields of an NLA and the sizes that follow from them.
const (
	PageBits  = 12
	entryBits = 18
	gatBits   = 9
	NLABits   = PageBits + entryBits + gatBits

	PageSize   = 1 << PageBits         // bytes of a page
	GATEntries = 1 << entryBits        // entries of one global address table
	GATSpan    = PageSize << entryBits // bytes that one table maps: 1 GiB
	numGATs    = 1 << gatBits          // tables of a rank
	NLALimit   = NLA(1) << NLABits     // first value that is no NLA
	AttachBase = NLA(GATSpan)          // NLA of byte 0 of the attach segment
	MaxAttach  = NLALimit - AttachBase // largest attach segment, bytes (511 GiB)
)

// Exposed addresses are those from ExposedBase on. No table translates them:
// they are numbers that package firehose gives to memory which is registered
// only while peers use it. The layers above the conduits resolve them.
const (
	ExposedBase  = NLALimit
	ExposedLimit = 2 * NLALimit // first value that is no address at all
)

// Exposed reports whether a is an exposed address.
func (a NLA) Exposed() bool { return a-ExposedBase < ExposedLimit-ExposedBase }

// MakeNLA builds the address of byte off of the page that entry of table gat
// maps. Each field is masked to its width.
func MakeNLA(gat, entry, off int) NLA {
	return NLA(gat&(numGATs-1))<<(PageBits+entryBits) |
		NLA(entry&(GATEntries-1))<<PageBits |
		NLA(off&(PageSize-1))
}

// GAT is the number of the global address table, 0..511.
func (a NLA) GAT() int { return int(a>>(PageBits+entryBits)) & (numGATs - 1) }

// Entry is the index in that table, 0..2^18-1.
func (a NLA) Entry() int { return int(a>>PageBits) & (GATEntries - 1) }

// Offset is the byte in the page, 0..4095.
func (a NLA) Offset() int { return int(a & (PageSize - 1)) }

// String prints the three fields, as "1:0x0:0x10"; an exposed address as
// "exposed:0x10000", and what is no address as a number.
func (a NLA) String() string {
	if a >= ExposedLimit {
		return fmt.Sprintf("%#x", uint64(a))
	}
	if a.Exposed() {
		return fmt.Sprintf("exposed:%#x", uint64(a-ExposedBase))
	}
	return fmt.Sprintf("%d:0x%x:0x%x", a.GAT(), a.Entry(), a.Offset())
}

// Rights say what peers may do with memory.
type Rights uint8

// The rights. An atomic needs RightAtomic alone; it reads and writes.
const (
	RightRead Rights = 1 << iota
	RightWrite
	RightAtomic

	RightsAll = RightRead | RightWrite | RightAtomic
)

// String prints rights as "rwa", with '-' for one that is missing.
func (r Rights) String() string {
	b := []byte("---")
	for i, c := range []byte("rwa") {
		if r&(1<<i) != 0 {
			b[i] = c
		}
	}
	return string(b)
}
