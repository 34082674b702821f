package shm

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// extent is a field of shared memory.
type extent struct {
	name     string
	at, size int64
}

// disjoint fails the test if two of l overlap or one passes limit.
func disjoint(t *testing.T, limit int64, l ...extent) {
	t.Helper()
	slices.SortFunc(l, func(a, b extent) int { return cmp.Compare(a.at, b.at) })
	for i, x := range l {
		if i > 0 && l[i-1].at+l[i-1].size > x.at {
			t.Errorf("%v overlaps %v", l[i-1], x)
		}
		if x.at < 0 || x.at+x.size > limit {
			t.Errorf("%v passes the end, %d", x, limit)
		}
	}
}

func TestLayout(t *testing.T) {
	disjoint(t, hdrBytes,
		extent{"magic", hdrMagic, 8}, extent{"version", hdrVersion, 4}, extent{"size", hdrSize, 4},
		extent{"cells", hdrCells, 4}, extent{"landing", hdrLanding, 4}, extent{"segment", hdrSegment, 8},
		extent{"lanes", hdrLanes, 4}, extent{"fence", hdrFence, 4}, extent{"end", hdrEnd, 8},
		extent{"failed", hdrFailed, 8}, extent{"record", hdrRecord, recBytes}, extent{"attached", hdrAttached, 4})
	disjoint(t, recBytes,
		extent{"rank", recRank, 4}, extent{"status", recStatus, 4}, extent{"length", recLen, 4}, extent{"sum", recSum, 8},
		extent{"text", recText, recMax})
	disjoint(t, ctlBytes,
		extent{"parked", ctlParked, 64}, // a line of its own: every sender reads it
		extent{"seq", ctlSeq, 64},
		extent{"state", ctlState, 4}, extent{"rights", ctlRights, 4}, extent{"segment", ctlSegment, 8},
		extent{"joined", ctlJoined, 4}, extent{"open seq", ctlOpenSeq, 4}, extent{"lanes", ctlLanes, 8},
		extent{"open", ctlOpen, MaxRanks / 8}, extent{"system", ctlSystem, conduits.SystemBytes},
		extent{"record", ctlRecord, recBytes})
	disjoint(t, laneBytes,
		extent{"parked", ctlParked, 64}, extent{"seq", ctlSeq, 64}, extent{"open seq", ctlOpenSeq, 4}, extent{"open", ctlOpen, MaxRanks / 8})
	disjoint(t, regBytes,
		extent{"directory", 0, int64(segment.DirectoryBytes)}, extent{"readers", regReaders, MaxRanks / 8},
		extent{"asked", regAsked, MaxRanks / 8}, extent{"desk", regDesk, 8}, extent{"pid", regPid, 4},
		extent{"probe", regProbe, 8}, extent{"cookie", regCookie, regCookieBytes},
		extent{"registrations", regCount, 64}, // a line of its own: it changes
		extent{"units", regUnits, numUnits * regUnitStep})
	disjoint(t, talkCells, extent{"head", talkHead, 8}, extent{"landing", talkLandRead, 8}, extent{"taken", talkTaken, 8},
		extent{"sum", talkSum, 24}, extent{"strands", talkStrands, 8},
		extent{"reply head", talkClass + talkHead, 8}, extent{"reply landing", talkClass + talkLandRead, 8})
	disjoint(t, cellBytes,
		extent{"request", 0, nearClass}, extent{"reply", nearClass, nearClass},
		extent{"request far", int64(farFrom(conduits.Request)), farBytes},
		extent{"reply far", nearClass + int64(farFrom(conduits.Reply)), farBytes})
	if cellBytes%lineBytes != 0 || talkCells%(2*lineBytes) != 0 || talkClass < lineBytes {
		t.Error("cells begin lines; what one side writes is no neighbour of what the other does")
	}
	if ctlSystem%64 != 0 || ctlBytes%segment.PageSize != 0 || hdrBytes%segment.PageSize != 0 {
		t.Error("the system area begins a line, blocks begin pages")
	}
	for kind, at := range wordsAt {
		if at%4 != 0 || at+4*conduits.MaxWords > farBytes {
			t.Errorf("kind %d: %d words at %d do not fit a cell", kind, conduits.MaxWords, at)
		}
	}
	if conduits.MaxWords > stWordsMask || kindLong > stKindMask || stTagMask >= stDirect || stDirect >= 1<<stWordsShift {
		t.Error("fields of the status word overlap")
	}
}

// TestGeometry checks every number of ranks: places, and totals as promised.
func TestGeometry(t *testing.T) {
	for n := 1; n <= MaxRanks; n++ {
		g := geometryFor(n, 1<<20)
		if !g.sound() {
			t.Fatalf("%d ranks: %+v is not sound", n, g)
		}
		if g.maxMedium() < 512 {
			t.Fatalf("%d ranks: medium payloads of %d bytes", n, g.maxMedium())
		}
		talks := int64(n) * int64(n)
		cells, landing := talks*int64(g.cells)*cellBytes, talks*conduits.NumClasses*int64(g.landing)
		if least := g.cells == 32; cells > 512<<20 && !least || landing > 256<<20 && g.landing > 16<<10 {
			t.Fatalf("%d ranks: %d MiB of cells, %d MiB of landing buffers", n, cells>>20, landing>>20)
		}
		switch {
		case n == 2 && (g.cells != 64 || g.landing != 128<<10),
			n == 128 && (g.cells != 64 || g.landing != 16<<10),
			n <= 128 && cells > 512<<20:
			t.Fatalf("%d ranks: %+v", n, g)
		}
	}
}

// TestStatedMemory: docs/memory.md says what rings take.
func TestStatedMemory(t *testing.T) {
	page, err := os.ReadFile("../../docs/memory.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 16, 64, 128, 255} {
		ring := geometryFor(n, 0).talk()
		row := fmt.Sprintf("| %d | %d KiB | %.1f MiB | %d MiB |", n, ring>>10, float64((n-1)*ring)/(1<<20), n*(n-1)*ring>>20)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/memory.md does not have the row\n%s", row)
		}
	}
}

// TestPlaces checks that blocks of a job do not overlap, for all the sizes that
// a configuration can ask for.
func TestPlaces(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 32} {
		for _, c := range []conduits.Config{{}, {Credits: 1, MaxMedium: 1}, {Credits: 1000, MaxMedium: 100_000}, {Credits: mostCells, MaxMedium: mostLanding / 4}, {Lanes: 3}} {
			t.Run(fmt.Sprintf("%d/%+v", n, c), func(t *testing.T) {
				g, err := geometryFor(n, 3*page).configure(c)
				if err != nil {
					t.Fatal(err)
				}
				if !g.sound() || g.cells < c.Credits || g.maxMedium() < max(c.MaxMedium, 512) {
					t.Fatalf("%+v", g)
				}
				var in []extent
				for c := range conduits.Class(conduits.NumClasses) {
					in = append(in, extent{"landing", int64(g.landingOffset(c)), int64(g.landing)})
					if g.landingOffset(c)%lineBytes != 0 {
						t.Errorf("%v: unaligned", c)
					}
				}
				in = append(in, extent{"cells", 0, int64(talkCells + g.cells*cellBytes)})
				disjoint(t, int64(g.talk()), in...)
				l, lanes := []extent{{"header", 0, hdrBytes}}, []extent{}
				for r := range n {
					l = append(l, extent{"control", g.ctlOffset(r), ctlBytes}, extent{"registry", g.regOffset(r), regBytes}, extent{"staging", g.stagingOffset(r), int64(g.staging())}, extent{"segment", g.segmentOffset(r), g.segment})
					for lane := range g.lanes {
						for d := range n {
							l = append(l, extent{"talk", g.talkOffset(r, d, lane), int64(g.talk())})
						}
						if lane > 0 {
							lanes = append(lanes, extent{"lane", g.ctlOffset(n) + int64(g.laneOffset(r, lane)), laneBytes})
						}
					}
				}
				disjoint(t, g.total(), append(lanes, l...)...)
				for _, x := range l {
					if x.at%page != 0 {
						t.Errorf("%v does not begin a page", x)
					}
				}
			})
		}
	}
}

func TestConfigureRefuses(t *testing.T) {
	for _, c := range []conduits.Config{{Credits: -1}, {Credits: mostCells + 1}, {MaxMedium: -1}, {MaxMedium: mostLanding/4 + 1}, {Lanes: -1}, {Lanes: conduits.MaxLanes + 1}} {
		if _, err := Local(2, c); !isBadArg(err) {
			t.Errorf("Local with %+v: %v", c, err)
		}
		if m, err := CreateJob(2, c); !isBadArg(err) {
			t.Errorf("CreateJob with %+v: %v", c, err)
			m.Close()
		}
	}
}
