package sim

import (
	"errors"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

func TestProfileCheck(t *testing.T) {
	for _, name := range append(Profiles(), "") {
		p, err := ProfileByName(name)
		if err != nil || p.check() != nil {
			t.Errorf("profile %q: %v, %v", name, err, p.check())
		}
	}
	if _, err := ProfileByName("x"); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "extoll-kernel, firmvia, ideal") {
		t.Errorf("profile x: %v", err)
	}
	for want, spoil := range map[string]func(p *Profile){
		"Software is negative": func(p *Profile) { p.Software = -1 },
		"PutGap is negative":   func(p *Profile) { p.PutGap = -1 },
		"Poll is 0 ps":         func(p *Profile) { p.Poll = 0 },
		"Slot is 0 bytes":      func(p *Profile) { p.Slot = 0 },
		"TLB is -1":            func(p *Profile) { p.TLB = -1 },
		"Page 48":              func(p *Profile) { p.Page = 48 },
		"Header -1":            func(p *Profile) { p.Header = -1 },
		"Tag -1":               func(p *Profile) { p.Tag = -1 },
	} {
		p := Extoll()
		spoil(&p)
		if _, err := New(2, Config{Profile: &p}); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

// TestBytes checks how many bytes messages take on a link of the prototype.
func TestBytes(t *testing.T) {
	j, err := New(2, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind        kind
		words, data int
		bytes       int
		slots       int // of messages
	}{
		{kindShort, 0, 0, 24, 1},
		{kindShort, 12, 0, 16 + 56, 1},
		{kindShort, 13, 0, 16 + 60, 2}, // one packet of two slots
		{kindShort, 14, 0, 16 + 64, 2},
		{kindShort, 15, 0, 2*16 + 68, 2},
		{kindShort, 20, 0, 2*16 + 88, 2},
		{kindMedium, 4, 8, 16 + 32, 1},
		{kindMedium, 4, 512, 10*16 + 8 + 16 + 512, 10},
		{kindMedium, 4, 513, 16 + 8 + 16 + 513, 0}, // put into the landing buffer
		{kindLong, 4, 4096, 16 + 16 + 4096, 0},
		{kindPut, 0, 4100, 2*16 + 4100, 0},
		{kindPut, 0, 8, 24, 0},
		{kindGet, 0, 0, 16, 0},
		{kindGetReply, 0, 100, 2*16 + 100, 0}, // a line and 36 bytes
		{kindAck, 0, 0, 16, 0},
	} {
		m := &message{remote: &noRemote, kind: c.kind, nwords: uint8(c.words), data: make([]byte, c.data)}
		if got := j.bytes(m); got != c.bytes {
			t.Errorf("%v with %d words and %d bytes: %d on the link, want %d", c.kind, c.words, c.data, got, c.bytes)
		}
		if got := j.slots(m); c.slots > 0 && got != c.slots {
			t.Errorf("%v with %d words and %d bytes: %d slots, want %d", c.kind, c.words, c.data, got, c.slots)
		}
	}
}

// TestSlotWrite checks the cost of further slots where the card writes them one after
// the other.
func TestSlotWrite(t *testing.T) {
	arrival := func(slotWrite Time, words, data int) (at Time) {
		p := Extoll()
		p.SlotWrite = slotWrite
		j, err := New(2, Config{Profile: &p})
		if err != nil {
			t.Fatal(err)
		}
		id, m := j.m.get()
		*m = message{remote: &noRemote, kind: kindShort, dst: 1, nwords: uint8(words), data: make([]byte, data)}
		if data > 0 {
			m.kind = kindMedium
		}
		j.deliver(0, uint64(id))
		return j.q.pop().at
	}
	for _, c := range []struct{ words, data, further int }{{12, 0, 0}, {16, 0, 1}, {0, 48, 0}, {0, 512, 9}, {0, 513, 0}} {
		const each = 40 * Nanosecond
		if d := arrival(each, c.words, c.data) - arrival(0, c.words, c.data); d != each*Time(c.further) {
			t.Errorf("%d words and %d bytes: %d further slots of %d ps take %d", c.words, c.data, c.further, each, d)
		}
	}
}

// TestCommands: a transfer of the card is up to 64 bytes or whole lines, within a page.
func TestCommands(t *testing.T) {
	j, err := New(2, Config{})
	if err != nil {
		t.Fatal(err)
	}
	const base, size = segment.AttachBase, 1 << 20
	j.sizes[1] = size
	for _, c := range []struct {
		to      segment.NLA
		n, want int
	}{
		{base, 0, 1},
		{base, 1, 1},
		{base, 64, 1},
		{base, 65, 2},
		{base, 128, 1},
		{base + 4096 - 8, 8, 1},
		{base + 4096 - 8, 16, 2},
		{base + 64, 4096, 2},
		{base, 4096, 1},
		{base, 3 * 4096, 3},
		{base + 8, 4096, 3},
		{base + 4095, 4098, 3},
		{base + size + 4096 - 8, 16, 1}, // registered
	} {
		if got := j.commands(1, c.to, c.n); got != c.want {
			t.Errorf("%d bytes at %#x: %d commands, want %d", c.n, uint64(c.to), got, c.want)
		}
	}
	j.p.Page = 0
	if got := j.commands(1, base+1, 1<<20); got != 1 {
		t.Errorf("%d commands without borders", got)
	}
}

// TestTLB: what the unit of table 5-8 does in a second, and that it forgets by page number.
func TestTLB(t *testing.T) {
	p, err := ProfileByName("atu-table")
	if err != nil {
		t.Fatal(err)
	}
	j, err := New(2, Config{Profile: &p})
	if err != nil {
		t.Fatal(err)
	}
	j.sizes[0] = 1 << 30
	const base = uint64(segment.AttachBase)
	e := &j.eps[0]
	rate := func(pages uint64) float64 {
		const n = 10000
		var now Time
		translate(e, translate(e, 0, base, 1), base, 1)
		e.tlb.free = 0
		for i := range uint64(n) {
			now += translate(e, now, base+i%pages*4096, 8)
		}
		return n / (float64(now) / float64(Second))
	}
	// "In excess of 10 million", and "about 1.2 million operations" if an operation's both
	// addresses miss (section 5.5).
	if hits := rate(1); hits < 1e7 || hits > 2e7 {
		t.Errorf("%.3g translations a second that hit", hits)
	}
	if misses := rate(2*1024) / 2; misses < 1.15e6 || misses > 1.25e6 {
		t.Errorf("%.3g pairs of translations a second that miss", misses)
	}
	if got, want := translate(e, e.tlb.free, base, 1), p.ATU+p.ATUMiss; got != want {
		t.Errorf("a page that another has replaced takes %d, want %d", got, want)
	}
	if got := translate(e, e.tlb.free, base+8, 1); got != p.ATU {
		t.Errorf("the same page takes %d, want %d", got, p.ATU)
	}
	// Behind a transfer of two new pages, which begins when the first is known.
	at := e.tlb.free
	if got, want := translate(e, at, base+(8<<20), 8192), p.ATU+p.ATUMiss; got != want {
		t.Errorf("two pages take %d, want %d", got, want)
	}
	if got, want := translate(e, at, base, 1), 3*(p.ATU+p.ATUMiss); got != want {
		t.Errorf("behind them: %d, want %d", got, want)
	}
}
