package sim

import (
	"fmt"
	"sort"
	"strings"

	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/internal/errs"
)

// Profile is a machine: what the sub-operations of a transfer take, as table 9-2
// of Nüssle 2008 lists them, and the network. All times are virtual; a
// transfer's time is the sum of those that it is composed of.
type Profile struct {
	Name string

	// Software is the overhead of one transfer on the processors: half of it
	// before the transfer is handed to the card, half when its arrival or
	// completion is noticed.
	Software Time
	PIO      Time // writing a descriptor or a message to the card
	DMARead  Time // the card reads host memory
	DMAWrite Time // the card writes host memory
	ATU      Time // address translation, in the translation cache
	// ATUMiss comes to ATU where the translation is not in the cache of TLB entries, which is
	// direct mapped; 0 entries: it always is. The unit does one translation after the other.
	ATUMiss Time
	TLB     int
	Unit    Time // passing one of the RMA unit's parts: requester, responder, completer

	// SendBusy is how long a send keeps the processor; the rest of half the
	// software and the PIO, which are posted writes, overlaps with its next work.
	SendBusy Time
	// Poll is the time of a poll that finds nothing. More than 0, or a rank
	// that polls would stop the clock.
	Poll Time
	// Wake is the time to wake a sleeper, beside noticing the arrival.
	Wake Time

	// MessageGap, RMAGap and PutGap are the least times between two messages, two
	// RMA operations, and two of those whose data the card has to read first.
	MessageGap, RMAGap, PutGap Time
	// Header is how many bytes a packet takes on a link beside its payload:
	// for a message one header a slot, for an RMA operation its descriptor.
	Header int
	// Page is the border that no RMA operation of the card crosses, a power of two; longer and
	// misaligned transfers are several (see Job.commands). 0: there is none.
	Page int
	// Tag is how many bytes of a message are the tag of the layer above, before
	// the words.
	Tag int
	// Slot is how many bytes, tag included, a slot of the mailbox holds; longer messages
	// are sent as several packets, except that one of up to Message bytes is one packet.
	// SlotWrite is the time of each further slot beside its time on the link.
	Slot      int
	Message   int
	SlotWrite Time
	// Eager is the largest payload that travels in slots; larger ones are put
	// into the landing buffer (Nüssle 2008, section 8.6).
	Eager int
	// Immediate is how many bytes of a put travel in its descriptor, without a
	// DMA read.
	Immediate int
	// MemoryByte is the processor's time to copy a byte.
	MemoryByte Time
	// Stage is the time of one stage of the comparators by which a switch combines the
	// parts of a barrier, with Config.Offload; see fabric.TreeParams.
	Stage Time

	Net fabric.Params
}

// Extoll is the prototype of Nüssle 2008: tables 9-2 and 9-3.
func Extoll() Profile {
	return Profile{
		Name:     "extoll",
		Software: 300 * Nanosecond,
		PIO:      150 * Nanosecond,
		DMARead:  350 * Nanosecond,
		DMAWrite: 200 * Nanosecond,
		ATU:      70 * Nanosecond,
		Unit:     50 * Nanosecond,

		SendBusy:   150 * Nanosecond,
		Poll:       10 * Nanosecond,
		MessageGap: 182 * Nanosecond, // 5.5e6 messages/s
		RMAGap:     385 * Nanosecond, // 2.6e6 notification puts/s
		PutGap:     727 * Nanosecond, // 1.375e6 puts/s

		// 56 bytes keep the link for 41 cycles, in which it could carry 72 bytes
		// at its best rate for data (sections 7.3 and 9.1), and the descriptor of an
		// RMA operation has 128 bits (7.5.1).
		Header: 16,
		// The unit's own tag of 2 bits tells replies from requests (8.7). The rest
		// is payload, as the header of 8 bytes that MPI needs (8.6).
		Tag:  8,
		Slot: 56,
		// A message of 64 bytes is one packet and written as two slots (7.4).
		Message: 64,
		Page:    4096, // "no transfer is allowed to cross a page border" (7.5.1)
		// The receiving card writes a slot while the next one is on the link.
		SlotWrite:  0,
		Eager:      512, // "at about 512-1024 bytes" (9.3)
		Immediate:  8,
		MemoryByte: 250, // 4 GB/s
		// A cycle of the card's 156 MHz: the prototype has no such switches.
		Stage: 6410,

		Net: fabric.Params{
			Latency:    650 * Nanosecond,
			HopLatency: 100 * Nanosecond, // its predecessor's, about: 3.3 us over one hop, 4 over seven (section 2.6.1)
			Byte:       3636,             // 275 MB/s
			Free:       24,               // table 9-1 is of 8 bytes, behind a header
			Packet:     4096 + 16,
			Contention: true,
		},
	}
}

// Ideal is a network that takes a microsecond for anything and never fills.
func Ideal() Profile {
	return Profile{
		Name: "ideal",
		Poll: Nanosecond,
		Slot: 56,
		Net:  fabric.Params{Latency: Microsecond, Packet: 1 << 20},
	}
}

// Profiles lists the names that ProfileByName knows.
func Profiles() []string {
	var names []string
	for n := range profiles {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// ProfileByName finds a profile; "" means extoll.
func ProfileByName(name string) (Profile, error) {
	if name == "" {
		name = "extoll"
	}
	if p, ok := profiles[name]; ok {
		return p(), nil
	}
	return Profile{}, errs.BadArg("sim: no machine %q; known: %s (-machine)", name, strings.Join(Profiles(), ", "))
}

// maxStep is the longest sub-operation: a second. Sums and multiples of them
// stay far from where times overflow.
const maxStep = Second

// maxStepBytes bounds Header and Tag likewise.
const maxStepBytes = 1 << 20

// check refuses what would stop the clock or run it backwards.
func (p *Profile) check() error {
	for _, f := range []struct {
		name string
		v    Time
	}{
		{"Software", p.Software},
		{"PIO", p.PIO},
		{"DMARead", p.DMARead},
		{"DMAWrite", p.DMAWrite},
		{"ATU", p.ATU},
		{"ATUMiss", p.ATUMiss},
		{"Unit", p.Unit},
		{"SendBusy", p.SendBusy},
		{"Wake", p.Wake},
		{"MessageGap", p.MessageGap},
		{"RMAGap", p.RMAGap},
		{"PutGap", p.PutGap},
		{"SlotWrite", p.SlotWrite},
		{"MemoryByte", p.MemoryByte},
		{"Stage", p.Stage},
		{"Poll", p.Poll},
		{"Net.Latency", p.Net.Latency},
		{"Net.HopLatency", p.Net.HopLatency},
		{"Net.Loop", p.Net.Loop},
		{"Net.Gap", p.Net.Gap},
		{"Net.Byte", p.Net.Byte},
	} {
		if f.v < 0 {
			return errs.BadArg("sim: profile %q: %s is negative", p.Name, f.name)
		}
		if f.v > maxStep {
			return errs.BadArg("sim: profile %q: %s is %d ps; the most is a second", p.Name, f.name, f.v)
		}
	}
	if p.Poll <= 0 {
		return errs.BadArg("sim: profile %q: Poll is %d ps; time would stand still for a rank that polls", p.Name, p.Poll)
	}
	if p.Slot <= 0 || p.Header < 0 || p.Tag < 0 || p.Header > maxStepBytes || p.Tag > maxStepBytes {
		return errs.BadArg("sim: profile %q: Slot is %d bytes, Header %d, Tag %d", p.Name, p.Slot, p.Header, p.Tag)
	}
	if p.TLB < 0 || p.TLB > maxStepBytes || p.Message < 0 || p.Page < 0 || p.Page > maxStepBytes || p.Page&(p.Page-1) != 0 || 0 < p.Page && p.Page < line {
		return errs.BadArg("sim: profile %q: TLB is %d entries, Message %d bytes, Page %d; at most %d, and Page 0 or a power of two from %d on",
			p.Name, p.TLB, p.Message, p.Page, maxStepBytes, line)
	}
	return nil
}

// String is the profile's figures, for people.
func (p Profile) String() string {
	ns := func(t Time) string { return fmt.Sprintf("%g ns", float64(t)/float64(Nanosecond)) }
	return fmt.Sprintf("%s: software %s, PIO %s, DMA read %s, DMA write %s, ATU %s, RMA unit %s, network trip %s",
		p.Name, ns(p.Software), ns(p.PIO), ns(p.DMARead), ns(p.DMAWrite), ns(p.ATU), ns(p.Unit), ns(p.Net.Latency))
}
