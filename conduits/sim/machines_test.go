package sim_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// translations is what the translations of a get of 8 bytes take, of which both sides' cards do
// one: of other pages than the one before, if not hit.
func translations(hit bool) func(p sim.Profile) (float64, error) {
	return func(p sim.Profile) (float64, error) {
		took := func(p sim.Profile) (float64, error) {
			page := 0
			return roundTrip(p, func(s *side) error {
				if !hit {
					page = (page + 1) % 16
				}
				at := page * 4096
				_, err := post.Get(s.ep, s.mem[at:at+8], s.peer, pairData+segment.NLA(at), conduits.RemoteDone, 1)
				return err
			})
		}
		none := sim.Extoll()
		none.ATU = 0
		without, err := took(none)
		if err != nil {
			return 0, err
		}
		if p.TLB > 0 {
			p.TLB = 1 // these pages do not fit
		}
		ns, err := took(p)
		return ns - without, err
	}
}

// added is what v takes beyond what it takes on the prototype without translations.
func added(v func(p sim.Profile) (float64, error)) func(p sim.Profile) (float64, error) {
	return func(p sim.Profile) (float64, error) {
		none := sim.Extoll()
		none.ATU = 0
		without, err := v(none)
		if err != nil {
			return 0, err
		}
		ns, err := v(p)
		return ns - without, err
	}
}

func startup(p sim.Profile) (float64, error) { return halfRoundTrip(p, velo(&p), 8) }

// rate is the bandwidth of transfers of size bytes, ns each, MB/s.
func rate(size int, ns float64) float64 { return float64(size) * perSecond(ns) / 1e6 }

// pingPong is the bandwidth of puts, half a round trip each, and streaming that of messages.
func pingPong(p sim.Profile, size int) (float64, error) {
	ns, err := halfRoundTrip(reading(p), put, size)
	return rate(size, ns), err
}

func streaming(p sim.Profile, size int) (float64, error) {
	ns, err := interval(p, medium, size)
	return rate(size, ns), err
}

func ofSize(size int, bandwidth func(p sim.Profile, size int) (float64, error)) func(p sim.Profile) (float64, error) {
	return func(p sim.Profile) (float64, error) { return bandwidth(p, size) }
}

func putStream(p sim.Profile, size int) (float64, error) {
	ns, err := interval(reading(p), put, size)
	return rate(size, ns), err
}

// halfSize is the first multiple of step that has half of most.
func halfSize(step int, most float64, bandwidth func(p sim.Profile, size int) (float64, error)) func(p sim.Profile) (float64, error) {
	return func(p sim.Profile) (float64, error) {
		for size := step; ; size += step {
			if mb, err := bandwidth(p, size); err != nil || mb >= most/2 || size >= maxTransfer {
				return float64(size), err
			}
		}
	}
}

// sevenHops is half a round trip over seven hops of a ring.
func sevenHops(p sim.Profile) (float64, error) {
	p.Net.Dims = [3]int{15, 1, 1}
	return halfRoundTripOf(p, 8, medium, 8)
}

// machines has what the sources say of each machine, and how far, in percent, its profile may be
// from it. Rows that are not fits contradict what else is published, by what the page says, and
// are as far off as it says.
var machines = []struct {
	profile, what, unit string
	published           float64
	least, most         float64 // of the difference, percent
	run                 func(p sim.Profile) (float64, error)
}{
	{"extoll-200", "start-up, VELO", "ns", 1000, 0, 9, startup},
	{"extoll-200", "bandwidth", "MB/s", 400, -13, 0, ofSize(maxTransfer, putStream)},
	{"extoll-500", "start-up, VELO (table)", "ns", 800, -24, -23, startup},
	{"extoll-500", "start-up, VELO (text: less)", "ns", 600, 0, 2.5, startup},
	{"extoll-500", "bandwidth", "MB/s", 880, -1, 1, ofSize(maxTransfer, putStream)},
	{"extoll-800", "start-up, VELO", "ns", 500, -1.5, 1, startup},
	{"extoll-800", "start-up, notification put", "ns", 500, 0, 3, half(notifPut)},
	{"extoll-800", "bandwidth", "MB/s", 2800, -1, 1, ofSize(maxTransfer, putStream)},
	{"extoll", "put", "ns", 1990, -5.1, 0, halfRead(silentPut)},
	{"extoll", "half bandwidth, ping-pong", "B", 576, 0, 0, halfSize(64, 275, pingPong)},
	{"extoll-kernel", "VELO", "ns", 1900, 0, 0, startup},
	{"extoll-kernel", "put", "ns", 2590, -4, 0, halfRead(silentPut)},
	{"extoll-kernel", "bandwidth", "MB/s", 264, -1, 0, ofSize(maxTransfer, putStream)},
	{"extoll-kernel", "half bandwidth, ping-pong", "B", 1024, -19, -18, halfSize(64, 264, pingPong)},
	{"atu-interrupt", "both translations (more)", "ns", 3000, 0, 0, translations(true)},
	{"atu-pretranslated", "both translations", "ns", 310, 0, 0, added(func(p sim.Profile) (float64, error) { return roundTrip(p, get(8)) })},
	{"atu-managed", "hit", "ns", 2 * 60, 0, 0, translations(true)},
	{"atu-managed", "miss, at best", "ns", 2 * 1600, 0, 0, translations(false)},
	{"atu-walk", "miss, at most", "ns", 2 * 1400, 0, 0, translations(false)},
	{"atu-table", "hit", "ns", 2 * 58, -1, 1, translations(true)},
	{"atu-table", "miss (table 5-8)", "ns", 2 * (128 + 280), -1, 1, translations(false)},
	{"atu-table", "miss (5.2.6: memory alone)", "ns", 560, 45, 46, translations(false)},
	{"atoll", "start-up", "ns", 3300, 0, 1, ofSize(8, func(p sim.Profile, size int) (float64, error) { return halfRoundTrip(p, medium, size) })},
	{"atoll", "start-up over seven hops", "ns", 4000, 0, 1, sevenHops},
	{"atoll", "bandwidth, 32 KiB", "MB/s", 269, -1, 1, ofSize(32<<10, streaming)},
	{"atoll", "bandwidth, 4 KiB", "MB/s", 0.9 * 269, -1, 1, ofSize(4<<10, streaming)},
	{"atoll", "half bandwidth, streaming", "B", 512, 0, 3.2, halfSize(8, 269, streaming)},
	{"firmvia", "4 bytes", "ns", 18200, 0, 0.1, ofSize(4, func(p sim.Profile, size int) (float64, error) { return halfRoundTrip(p, medium, size) })},
	{"firmvia", "128 bytes (about)", "ns", 20000, -4, 0, ofSize(128, func(p sim.Profile, size int) (float64, error) { return halfRoundTrip(p, medium, size) })},
	{"firmvia", "bandwidth, 64 KiB", "MB/s", 101.4, -1, 1, ofSize(64<<10, streaming)},
	{"firmvia", "half bandwidth, streaming", "B", 864, -1, 1, halfSize(8, 101.4, streaming)},
}

// TestMachines compares all profiles with what was published of their machines.
func TestMachines(t *testing.T) {
	testjob.Simulated(t)
	must := must(t)
	w := newTable("machines: simulated beside published", "", "simulated", "published", "unit", "difference")
	last := ""
	for _, m := range machines {
		p, err := sim.ProfileByName(m.profile)
		if err != nil {
			t.Fatal(err)
		}
		if m.profile != last {
			last = m.profile
			w.row(last)
		}
		v := must(m.run(p))
		d := off(v, m.published)
		if d < m.least-1e-9 || d > m.most+1e-9 {
			t.Errorf("%s, %s: %v %s, published %v: off by %.2f %%, not %v to %v", m.profile, m.what, v, m.unit, m.published, d, m.least, m.most)
		}
		w.row("  "+m.what, number(v), strconv.FormatFloat(m.published, 'f', -1, 64), m.unit, fmt.Sprintf("%+.1f %%", d))
	}
	w.compare(t)
}
