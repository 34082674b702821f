package sim

import (
	"errors"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
)

func TestProfileCheck(t *testing.T) {
	for _, name := range append(Profiles(), "") {
		p, err := ProfileByName(name)
		if err != nil || p.check() != nil {
			t.Errorf("profile %q: %v, %v", name, err, p.check())
		}
	}
	if _, err := ProfileByName("x"); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "extoll, ideal") {
		t.Errorf("profile x: %v", err)
	}
	for want, spoil := range map[string]func(p *Profile){
		"Software is negative": func(p *Profile) { p.Software = -1 },
		"PutGap is negative":   func(p *Profile) { p.PutGap = -1 },
		"Poll is 0 ps":         func(p *Profile) { p.Poll = 0 },
		"Slot is 0 bytes":      func(p *Profile) { p.Slot = 0 },
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
		{kindShort, 13, 0, 2*16 + 60, 2},
		{kindShort, 20, 0, 2*16 + 88, 2},
		{kindMedium, 4, 8, 16 + 32, 1},
		{kindMedium, 4, 512, 10*16 + 8 + 16 + 512, 10},
		{kindMedium, 4, 513, 16 + 8 + 16 + 513, 0}, // put into the landing buffer
		{kindLong, 4, 4096, 16 + 16 + 4096, 0},
		{kindPut, 0, 8, 24, 0},
		{kindGet, 0, 0, 16, 0},
		{kindGetReply, 0, 100, 116, 0},
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
