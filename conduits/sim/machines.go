package sim

import "github.com/argon-go/argon/conduits/sim/fabric"

// The machines of the source documents. docs/predictions.md has what was published of each beside
// what is simulated; parts of which only the sum is published are marked.

// prototype is the clock of the prototype, MHz.
const prototype = 156

// clocked is the design of Extoll at another clock: all of the card's and the network's times
// scale with it (Nüssle 2008, section 7.8), those of the processor do not. A link carries wide
// times as much in a cycle.
func clocked(name string, mhz, wide Time) func() Profile {
	return func() Profile {
		p := Extoll()
		p.Name = name
		for _, t := range []*Time{
			&p.PIO, &p.DMARead, &p.DMAWrite, &p.ATU, &p.Unit, &p.MessageGap, &p.RMAGap, &p.PutGap, &p.Stage,
			&p.Net.Latency, &p.Net.HopLatency, &p.Net.Byte,
		} {
			*t = *t * prototype / mhz
		}
		p.Net.Byte /= wide
		return p
	}
}

// Times of table 3-1 of Nüssle 2008.
const (
	systemCall   = 170 * Nanosecond
	processorRAM = 70 * Nanosecond
	deviceRAM    = 280 * Nanosecond // from the card, there and back
	cycle        = 6410             // of the prototype's 156 MHz
)

// translating is Extoll with another design of the address translation (section 5.2).
func translating(name string, change func(p *Profile)) func() Profile {
	return func() Profile {
		p := Extoll()
		p.Name = name
		change(&p)
		return p
	}
}

// cached is a design with a cache of 1024 entries, in which a translation takes 60 ns, and more
// where it misses.
func cached(miss Time) func(p *Profile) {
	return func(p *Profile) { p.TLB, p.ATU, p.ATUMiss = 1024, 60*Nanosecond, miss-60*Nanosecond }
}

// table is the design that was built: a table of one level in the host's memory.
func table(p *Profile) {
	p.TLB, p.ATU, p.ATUMiss = 1024, 9*cycle, (20-9)*cycle+deviceRAM // table 5-8
}

// kernel is communication by physical addresses through the kernel, which translates both of
// them: 600 ns more for any operation (section 9.1), and the bandwidth of table 7-7, for the
// kernel's work for an operation of 4 KB does not overlap with the one before.
func kernel(p *Profile) {
	p.ATU = processorRAM
	p.Software += 600 * Nanosecond
	p.SendBusy += 600 * Nanosecond
	p.Net.Byte = 3788 // 264 MB/s
}

// atoll is Extoll's predecessor (section 2.6): 3.3 us over one hop and 4 us over seven. Its peak
// of 269 MB/s at 32 KB and 90 % of it at 4 KB are 273 MB/s and 1.93 us a message that no
// transfer overlaps with, here the time of a header of 529 bytes. Of the start-up latency only the
// sum is published.
func atoll() Profile {
	const header = 529
	return Profile{
		Name:       "atoll",
		Software:   Microsecond,
		DMAWrite:   300 * Nanosecond,
		SendBusy:   500 * Nanosecond,
		Poll:       10 * Nanosecond,
		Header:     header,
		Tag:        8,
		Slot:       maxStepBytes, // a message is one transfer from and to buffers of the card
		Eager:      maxStepBytes,
		Immediate:  maxStepBytes,
		MemoryByte: 250,
		Net: fabric.Params{
			Topology:   fabric.Torus,
			Latency:    2 * Microsecond,
			HopLatency: 700 * Nanosecond / 6,
			Byte:       3659,
			Free:       header + 8,
			Contention: true,
		},
	}
}

// firmVIA is VIA in the firmware of an IBM SP adapter (Banikazemi et al. 2000, sections 5 to 7):
// 2.27 us into the kernel, 0.27 and 1.63 of work in user and kernel space, 1.65 to write five
// words of a descriptor, 1.61 to start a DMA write; a receiver posts a descriptor too. Half the
// bandwidth of 101.4 MB/s at 864 bytes leaves 8.6 us of the firmware for each message, here
// a header of 887 bytes. The rest of 18.2 us for 4 bytes is the network's and the firmware's.
func firmVIA() Profile {
	const header = 887
	return Profile{
		Name:       "firmvia",
		Software:   2 * 4170 * Nanosecond,
		PIO:        1650 * Nanosecond,
		DMARead:    1780 * Nanosecond,
		DMAWrite:   1610 * Nanosecond,
		SendBusy:   5820 * Nanosecond,
		Poll:       80 * Nanosecond, // a completion queue
		Header:     header,
		Tag:        8,
		Slot:       maxStepBytes,
		Eager:      maxStepBytes,
		Immediate:  8,
		MemoryByte: 1000,
		Net: fabric.Params{
			Latency:    6600 * Nanosecond,
			HopLatency: 300 * Nanosecond, // of a switch of the SP
			Byte:       9730,
			Free:       header + 8 + 4,
			Contention: true,
		},
	}
}

var profiles = map[string]func() Profile{
	"extoll": Extoll,
	"ideal":  Ideal,

	"extoll-200": clocked("extoll-200", 200, 1),
	"extoll-500": clocked("extoll-500", 500, 1),
	"extoll-800": clocked("extoll-800", 800, 2),

	"extoll-kernel": translating("extoll-kernel", kernel),
	"atu-interrupt": translating("atu-interrupt", func(p *Profile) { p.ATU = 1500 * Nanosecond }),
	// The sender's kernel looks both addresses up in a table.
	"atu-pretranslated": translating("atu-pretranslated", func(p *Profile) {
		p.ATU = processorRAM
		p.Software += systemCall
		p.SendBusy += systemCall
	}),
	"atu-managed":    translating("atu-managed", cached(1600*Nanosecond)),
	"atu-autonomous": translating("atu-autonomous", cached(1400*Nanosecond)),
	"atu-walk":       translating("atu-walk", cached(5*deviceRAM)),
	"atu-table":      translating("atu-table", table),

	"atoll":   atoll,
	"firmvia": firmVIA,
}
