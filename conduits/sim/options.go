package sim

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// knob is one option.
type knob struct {
	key  string
	many bool // may be given more than once
	set  func(c *Config, v string) error
	// get lists the values of c that differ from base, which is c's profile as its name
	// alone gives it.
	get func(c, base *Config) []string
}

// maxTime bounds times in options, so that sums of them do not overflow.
const maxTime = Time(1) << 61

var units = []struct {
	name string
	t    Time
}{{"s", Second}, {"ms", Millisecond}, {"us", Microsecond}, {"µs", Microsecond}, {"ns", Nanosecond}, {"ps", 1}}

// parseTime reads a time with its unit, exactly.
func parseTime(s string) (Time, error) {
	num := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzµ")
	for _, u := range units {
		if s[len(num):] != u.name {
			continue
		}
		whole, frac, dot := strings.Cut(num, ".")
		v, err := strconv.ParseUint(whole, 10, 63)
		if hi, lo := bits.Mul64(v, uint64(u.t)); err == nil && (hi != 0 || lo > uint64(maxTime)) || err != nil && errTooLarge(err) {
			return 0, fmt.Errorf("is more than %s", formatTime(maxTime&^(1<<40-1)))
		}
		if err != nil || dot && (frac == "" || len(frac) > 12) {
			break
		}
		t := Time(v) * u.t
		unit := u.t
		for _, d := range frac {
			if d < '0' || d > '9' {
				return 0, errNoTime
			}
			if (unit == 0 || unit%10 != 0) && d != '0' {
				return 0, fmt.Errorf("is not a whole number of picoseconds")
			}
			unit /= 10
			t += Time(d-'0') * unit
		}
		return t, nil
	}
	if s == "0" {
		return 0, nil
	}
	return 0, errNoTime
}

func errTooLarge(err error) bool {
	ne, ok := err.(*strconv.NumError)
	return ok && ne.Err == strconv.ErrRange
}

var errNoTime = fmt.Errorf("is not a time such as 500ns, 2us, 1.5ms or 1s")

// formatTime writes t as parseTime reads it.
func formatTime(t Time) string {
	for _, u := range units {
		if t%u.t == 0 && t != 0 {
			return strconv.FormatInt(t/u.t, 10) + u.name
		}
	}
	return "0s"
}

func parseInt(s string, least, most int) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < least || v > most {
		return 0, fmt.Errorf("is not a number from %d to %d", least, most)
	}
	return v, nil
}

func parseRank(s string) (int, error) {
	r, err := parseInt(s, 0, MaxRanks-1)
	if err != nil {
		return 0, fmt.Errorf("%q is not the number of a rank", s)
	}
	return r, nil
}

// parseSpan reads AT+FOR.
func parseSpan(s string) (at, length Time, err error) {
	a, l, ok := strings.Cut(s, "+")
	if !ok {
		return 0, 0, fmt.Errorf("%q is not AT+FOR", s)
	}
	if at, err = parseTime(a); err != nil {
		return 0, 0, fmt.Errorf("%q %w", a, err)
	}
	if length, err = parseTime(l); err != nil {
		return 0, 0, fmt.Errorf("%q %w", l, err)
	}
	return at, length, nil
}

// one is the value of a knob that has v where base has b.
func one[V comparable](v, b V, text func(V) string) []string {
	if v == b {
		return nil
	}
	return []string{text(v)}
}

func timeKnob(key string, at func(c *Config) *Time) knob {
	return knob{
		key: key,
		set: func(c *Config, v string) (err error) { *at(c), err = parseTime(v); return err },
		get: func(c, base *Config) []string { return one(*at(c), *at(base), formatTime) },
	}
}

func intKnob(key string, least, most int, at func(c *Config) *int) knob {
	return knob{
		key: key,
		set: func(c *Config, v string) (err error) { *at(c), err = parseInt(v, least, most); return err },
		get: func(c, base *Config) []string { return one(*at(c), *at(base), strconv.Itoa) },
	}
}

func boolKnob(key string, at func(c *Config) *bool) knob {
	return knob{
		key: key,
		set: func(c *Config, v string) error {
			switch v {
			case "on", "off":
				*at(c) = v == "on"
				return nil
			}
			return fmt.Errorf("is neither on nor off")
		},
		get: func(c, base *Config) []string {
			return one(*at(c), *at(base), func(v bool) string {
				if v {
					return "on"
				}
				return "off"
			})
		},
	}
}

func chanceKnob(key string, at func(c *Config) *float64) knob {
	return knob{
		key: key,
		set: func(c *Config, v string) error {
			p, err := strconv.ParseFloat(v, 64)
			if err != nil || !(p >= 0 && p <= 1) {
				return fmt.Errorf("is not a probability from 0 to 1")
			}
			*at(c) = p
			return nil
		},
		get: func(c, base *Config) []string {
			return one(*at(c), *at(base), func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) })
		},
	}
}

// manyKnob is one whose values are the elements of a list.
func manyKnob[E any](key string, at func(c *Config) *[]E, parse func(v string) (E, error), text func(e E) string) knob {
	return knob{
		key: key, many: true,
		set: func(c *Config, v string) error {
			e, err := parse(v)
			if err != nil {
				return err
			}
			// Not into memory that a copy of c shares.
			*at(c) = append(slices.Clip(*at(c)), e)
			return nil
		},
		get: func(c, _ *Config) (l []string) {
			for _, e := range *at(c) {
				l = append(l, text(e))
			}
			return l
		},
	}
}

func profileTime(key string, at func(p *Profile) *Time) knob {
	return timeKnob(key, func(c *Config) *Time { return at(c.Profile) })
}

func profileInt(key string, least int, at func(p *Profile) *int) knob {
	return intKnob(key, least, math.MaxInt32, func(c *Config) *int { return at(c.Profile) })
}

// knobs are all options but profile, in the order in which they are written.
var knobs = []knob{
	{
		key: "seed",
		set: func(c *Config, v string) (err error) {
			if c.Seed, err = strconv.ParseUint(v, 10, 64); err != nil {
				return fmt.Errorf("is not a number from 0 to %d", uint64(math.MaxUint64))
			}
			return nil
		},
		// Always printed: a reader looks for it.
		get: func(c, _ *Config) []string { return []string{strconv.FormatUint(c.Seed, 10)} },
	},
	{
		key: "topology",
		set: func(c *Config, v string) (err error) {
			c.Profile.Net.Topology, err = fabric.ParseTopology(v)
			return known(err, fabric.Crossbar, fabric.Torus, fabric.FatTree, fabric.Mesh, fabric.Irregular)
		},
		get: func(c, base *Config) []string {
			return one(c.Profile.Net.Topology, base.Profile.Net.Topology, fabric.Topology.String)
		},
	},
	{
		key: "dims",
		set: func(c *Config, v string) error {
			sides := strings.Split(v, "x")
			var d [3]int
			if len(sides) != len(d) {
				return fmt.Errorf("is not three sides such as 8x8x4")
			}
			for i, s := range sides {
				var err error
				if d[i], err = parseInt(s, 1, 1<<20); err != nil {
					return fmt.Errorf("side %q %w", s, err)
				}
			}
			c.Profile.Net.Dims = d
			return nil
		},
		get: func(c, base *Config) []string {
			return one(c.Profile.Net.Dims, base.Profile.Net.Dims, func(d [3]int) string { return fmt.Sprintf("%dx%dx%d", d[0], d[1], d[2]) })
		},
	},
	profileInt("radix", 2, func(p *Profile) *int { return &p.Net.Radix }),
	{
		key: "queue",
		set: func(c *Config, v string) (err error) {
			c.Profile.Net.Queue, err = fabric.ParseQueue(v)
			return known(err, fabric.VOQ, fabric.Single)
		},
		get: func(c, base *Config) []string {
			return one(c.Profile.Net.Queue, base.Profile.Net.Queue, fabric.Queue.String)
		},
	},
	{
		key: "routing",
		set: func(c *Config, v string) (err error) {
			c.Profile.Net.Routing, err = fabric.ParseRouting(v)
			return known(err, fabric.DimensionOrder, fabric.WestFirst, fabric.UpDown, fabric.Shortest)
		},
		get: func(c, base *Config) []string {
			return one(c.Profile.Net.Routing, base.Profile.Net.Routing, fabric.Routing.String)
		},
	},
	profileInt("flits", 0, func(p *Profile) *int { return &p.Net.Buffer }),
	profileInt("flit", 0, func(p *Profile) *int { return &p.Net.Flit }),
	profileInt("channels", 0, func(p *Profile) *int { return &p.Net.Channels }),
	profileTime("recover", func(p *Profile) *Time { return &p.Net.Recover }),
	{
		key: "wiring",
		set: func(c *Config, v string) (err error) {
			if c.Profile.Net.Wiring, err = strconv.ParseUint(v, 10, 64); err != nil {
				return fmt.Errorf("is not a number from 0 to %d", uint64(math.MaxUint64))
			}
			return nil
		},
		get: func(c, base *Config) []string {
			return one(c.Profile.Net.Wiring, base.Profile.Net.Wiring, func(v uint64) string { return strconv.FormatUint(v, 10) })
		},
	},
	intKnob("crosspoint", 0, math.MaxUint16, func(c *Config) *int { return &c.Profile.Net.Crosspoint }),
	boolKnob("contention", func(c *Config) *bool { return &c.Profile.Net.Contention }),
	profileTime("latency", func(p *Profile) *Time { return &p.Net.Latency }),
	profileTime("hoplatency", func(p *Profile) *Time { return &p.Net.HopLatency }),
	profileTime("loop", func(p *Profile) *Time { return &p.Net.Loop }),
	profileTime("byte", func(p *Profile) *Time { return &p.Net.Byte }),
	profileInt("free", 0, func(p *Profile) *int { return &p.Net.Free }),
	profileTime("gap", func(p *Profile) *Time { return &p.Net.Gap }),
	profileInt("packet", 0, func(p *Profile) *int { return &p.Net.Packet }),

	profileTime("software", func(p *Profile) *Time { return &p.Software }),
	profileTime("pio", func(p *Profile) *Time { return &p.PIO }),
	profileTime("dmaread", func(p *Profile) *Time { return &p.DMARead }),
	profileTime("dmawrite", func(p *Profile) *Time { return &p.DMAWrite }),
	profileTime("atu", func(p *Profile) *Time { return &p.ATU }),
	profileTime("atumiss", func(p *Profile) *Time { return &p.ATUMiss }),
	profileInt("tlb", 0, func(p *Profile) *int { return &p.TLB }),
	profileInt("page", 0, func(p *Profile) *int { return &p.Page }),
	profileInt("message", 0, func(p *Profile) *int { return &p.Message }),
	profileTime("unit", func(p *Profile) *Time { return &p.Unit }),
	profileTime("sendbusy", func(p *Profile) *Time { return &p.SendBusy }),
	profileTime("poll", func(p *Profile) *Time { return &p.Poll }),
	profileTime("wake", func(p *Profile) *Time { return &p.Wake }),
	profileTime("messagegap", func(p *Profile) *Time { return &p.MessageGap }),
	profileTime("rmagap", func(p *Profile) *Time { return &p.RMAGap }),
	profileTime("putgap", func(p *Profile) *Time { return &p.PutGap }),
	profileInt("header", 0, func(p *Profile) *int { return &p.Header }),
	profileInt("tag", 0, func(p *Profile) *int { return &p.Tag }),
	profileInt("slot", 1, func(p *Profile) *int { return &p.Slot }),
	profileTime("slotwrite", func(p *Profile) *Time { return &p.SlotWrite }),
	profileInt("eager", 0, func(p *Profile) *int { return &p.Eager }),
	profileInt("immediate", 0, func(p *Profile) *int { return &p.Immediate }),
	profileTime("memorybyte", func(p *Profile) *Time { return &p.MemoryByte }),
	profileTime("stage", func(p *Profile) *Time { return &p.Stage }),

	{
		key: "segment",
		set: func(c *Config, v string) (err error) { c.MaxSegment, err = parseBytes(v); return err },
		get: func(c, base *Config) []string { return one(c.MaxSegment, base.MaxSegment, formatBytes) },
	},
	intKnob("credits", 0, 1<<15, func(c *Config) *int { return &c.Credits }),
	intKnob("medium", 0, 1<<20, func(c *Config) *int { return &c.MaxMedium }),
	boolKnob("offload", func(c *Config) *bool { return &c.Offload }),
	timeKnob("limit", func(c *Config) *Time { return &c.Limit }),

	timeKnob("jitter", func(c *Config) *Time { return &c.Faults.Jitter }),
	manyKnob("slow", func(c *Config) *[]Slow { return &c.Faults.Slow }, parseSlow,
		func(x Slow) string { return fmt.Sprintf("%dx%d", x.Rank, x.Factor) }),
	manyKnob("stall", func(c *Config) *[]Stall { return &c.Faults.Stalls }, parseStall,
		func(x Stall) string { return fmt.Sprintf("%d@%s+%s", x.Rank, formatTime(x.At), formatTime(x.For)) }),
	manyKnob("crash", func(c *Config) *[]Crash { return &c.Faults.Crashes }, parseCrash,
		func(x Crash) string {
			if x.Event != 0 {
				return fmt.Sprintf("%d#%d", x.Rank, x.Event)
			}
			return fmt.Sprintf("%d@%s", x.Rank, formatTime(x.At))
		}),
	manyKnob("partition", func(c *Config) *[]Partition { return &c.Faults.Partitions }, parsePartition,
		func(x Partition) string {
			return fmt.Sprintf("%d-%d@%s+%s", x.First, x.Last, formatTime(x.At), formatTime(x.For))
		}),
	timeKnob("detect", func(c *Config) *Time { return &c.Faults.Detect }),
	chanceKnob("drop", func(c *Config) *float64 { return &c.Faults.Drop }),
	chanceKnob("dup", func(c *Config) *float64 { return &c.Faults.Duplicate }),
	chanceKnob("corrupt", func(c *Config) *float64 { return &c.Faults.Corrupt }),
	chanceKnob("truncate", func(c *Config) *float64 { return &c.Faults.Truncate }),
	chanceKnob("delay", func(c *Config) *float64 { return &c.Faults.Delay }),
	timeKnob("delayby", func(c *Config) *Time { return &c.Faults.DelayBy }),
	intKnob("buffer", 0, math.MaxInt32, func(c *Config) *int { return &c.Faults.Buffer }),
}

// known replaces err, if not nil, by an unknown-name error that lists the valid names.
func known[N fmt.Stringer](err error, names ...N) error {
	if err == nil {
		return nil
	}
	var l []string
	for _, n := range names {
		l = append(l, n.String())
	}
	return fmt.Errorf("is not known; known: %s", strings.Join(l, ", "))
}

func parseSlow(v string) (x Slow, err error) {
	rank, factor, ok := strings.Cut(v, "x")
	if !ok {
		return x, fmt.Errorf("is not RANKxFACTOR")
	}
	if x.Rank, err = parseRank(rank); err != nil {
		return x, err
	}
	if x.Factor, err = parseInt(factor, 1, 1<<20); err != nil {
		return x, fmt.Errorf("factor %q %w", factor, err)
	}
	return x, nil
}

func parseStall(v string) (x Stall, err error) {
	rank, span, ok := strings.Cut(v, "@")
	if !ok {
		return x, fmt.Errorf("is not RANK@AT+FOR")
	}
	if x.Rank, err = parseRank(rank); err != nil {
		return x, err
	}
	x.At, x.For, err = parseSpan(span)
	return x, err
}

func parseCrash(v string) (x Crash, err error) {
	if rank, event, ok := strings.Cut(v, "#"); ok {
		if x.Rank, err = parseRank(rank); err != nil {
			return x, err
		}
		if x.Event, err = strconv.ParseUint(event, 10, 64); err != nil || x.Event == 0 {
			return x, fmt.Errorf("event %q is not a number from 1 on", event)
		}
		return x, nil
	}
	rank, at, ok := strings.Cut(v, "@")
	if !ok {
		return x, fmt.Errorf("is neither RANK@AT nor RANK#EVENT")
	}
	if x.Rank, err = parseRank(rank); err != nil {
		return x, err
	}
	if x.At, err = parseTime(at); err != nil {
		return x, fmt.Errorf("%q %w", at, err)
	}
	return x, nil
}

func parsePartition(v string) (x Partition, err error) {
	ranks, span, ok := strings.Cut(v, "@")
	first, last, ok2 := strings.Cut(ranks, "-")
	if !ok || !ok2 {
		return x, fmt.Errorf("is not FIRST-LAST@AT+FOR")
	}
	if x.First, err = parseRank(first); err != nil {
		return x, err
	}
	if x.Last, err = parseRank(last); err != nil {
		return x, err
	}
	if x.First > x.Last {
		return x, fmt.Errorf("ends with rank %d before it begins with rank %d", x.Last, x.First)
	}
	x.At, x.For, err = parseSpan(span)
	return x, err
}

// parseBytes reads a number of bytes with K, M or G.
func parseBytes(s string) (uint64, error) {
	num, shift := s, 0
	if i := strings.IndexAny(s, "KMG"); i >= 0 && i == len(s)-1 {
		num, shift = s[:i], map[byte]int{'K': 10, 'M': 20, 'G': 30}[s[i]]
	}
	v, err := strconv.ParseUint(num, 10, 64)
	if most := uint64(segment.MaxAttach); err != nil || v > most>>shift {
		return 0, fmt.Errorf("is not a size of up to %d bytes, such as 64M", most)
	}
	return v << shift, nil
}

func formatBytes(v uint64) string {
	for i, s := range []string{"G", "M", "K"} {
		if sh := 30 - 10*i; v != 0 && v%(1<<sh) == 0 {
			return strconv.FormatUint(v>>sh, 10) + s
		}
	}
	return strconv.FormatUint(v, 10)
}

func separator(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' || r == '\r' }

// ParseOptions reads options from text: KEY=VALUE, separated by spaces or
// commas, in any order.
//
//	seed=7 machine=extoll topology=torus dims=8x8x4 queue=single
//	topology=mesh flits=4 channels=1 routing=updown recover=10us
//	segment=1M credits=16 medium=4096 offload=on limit=10ms
//	jitter=2us slow=RANKxFACTOR stall=RANK@AT+FOR crash=RANK@AT crash=RANK#EVENT
//	partition=FIRST-LAST@AT+FOR detect=5us
//	drop=0.1 dup=0.1 corrupt=0.1 truncate=0.1 delay=0.1 delayby=1ms
//
// Every figure of a Profile and its network is an option by its name in lower
// case, such as latency=650ns. Times, of which all are virtual, have a unit: ps,
// ns, us, ms or s. slow, stall, crash and partition may be given many times, the
// others once. The profile counts first, wherever it stands. The last line is of
// datagrams, see Config.Reliable.
//
// The result's Profile is not nil. An error, which wraps ErrBadArg, names all
// options that are wrong.
func ParseOptions(s string) (Config, error) {
	var c Config
	err := c.Set(s)
	return c, err
}

// Set adds options in the form of ParseOptions to c: a value replaces the one
// that c has, except that those which may be given many times are added. A
// profile replaces all figures of the one before. c is as before if there is an
// error.
func (c *Config) Set(options string) error {
	n := *c
	if n.Profile == nil {
		p := Extoll()
		n.Profile = &p
	} else {
		p := *n.Profile
		n.Profile = &p
	}
	var all []string
	bad := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	type setting struct {
		knob  *knob
		value string
	}
	var settings []setting
	given := map[string]string{}
	for _, o := range strings.FieldsFunc(options, separator) {
		key, value, ok := strings.Cut(o, "=")
		if !ok || value == "" {
			bad("%q is not KEY=VALUE", o)
			continue
		}
		i := slices.IndexFunc(knobs, func(k knob) bool { return k.key == key })
		if key == "profile" { // its name before
			bad("%s: the machine is machine=%s", o, value)
			continue
		}
		if i < 0 && key != "machine" {
			bad("no option %q in %q; known: %s", key, o, strings.Join(optionNames(), ", "))
			continue
		}
		if before, dup := given[key]; dup && (i < 0 || !knobs[i].many) {
			bad("%s=%s, and %s=%s before", key, value, key, before)
			continue
		}
		given[key] = value
		if i >= 0 {
			settings = append(settings, setting{&knobs[i], value})
		} else if p, err := ProfileByName(value); err != nil {
			bad("%s: the machine is not known; known: %s", o, strings.Join(Profiles(), ", "))
		} else {
			n.Profile = &p
		}
	}
	for _, s := range settings {
		if err := s.knob.set(&n, s.value); err != nil {
			bad("%s=%s: %v", s.knob.key, s.value, err)
		}
	}
	if all != nil {
		return errs.BadArg("sim: %s (gasrun -sim, ARGON_SIM)", strings.Join(all, "; "))
	}
	*c = n
	return nil
}

func optionNames() []string {
	names := []string{"machine"}
	for i := range knobs {
		names = append(names, knobs[i].key)
	}
	slices.Sort(names)
	return names
}

// String writes c as ParseOptions reads it: the seed, the profile's name, and
// whatever is not as it is by default. Trace and Checkpoint are left out, and so
// is the name of a profile that ProfileByName does not know; its figures are
// not.
func (c Config) String() string {
	if c.Profile == nil {
		p := Extoll()
		c.Profile = &p
	}
	name := c.Profile.Name
	p, err := ProfileByName(name)
	if err != nil || name == "" {
		p = Extoll()
		name = p.Name
	}
	base := Config{Profile: &p}
	var l []string
	for i := range knobs {
		k := &knobs[i]
		for _, v := range k.get(&c, &base) {
			l = append(l, k.key+"="+v)
		}
		if k.key == "seed" {
			l = append(l, "machine="+name)
		}
	}
	return strings.Join(l, " ")
}

// datagramKnobs are the options that only a Socket notices.
var datagramKnobs = []string{"drop", "dup", "corrupt", "truncate", "delay", "delayby", "buffer"}

// Reliable returns an error that names the options of c without effect on a job of the
// conduit, whose messages the network neither loses nor changes: these are for callers that
// use a Socket, by New. The error wraps ErrBadArg.
func (c Config) Reliable() error {
	var none Config
	var l []string
	for i := range knobs {
		if k := &knobs[i]; slices.Contains(datagramKnobs, k.key) {
			for _, v := range k.get(&c, &none) {
				l = append(l, k.key+"="+v)
			}
		}
	}
	if l == nil {
		return nil
	}
	return errs.BadArg("sim: %s: without effect, for that happens to datagrams, and a simulated job sends messages that its network delivers: use jitter, stall, partition or crash (-fault, ARGON_SIM)",
		strings.Join(l, " "))
}

// Validate returns the error that New would for a job of n ranks. It wraps ErrBadArg or
// ErrResource.
func (c Config) Validate(n int) error {
	if n < 1 || n > MaxRanks {
		return errs.BadArg("sim: %d ranks; a simulated job has 1 to %d (-n)", n, MaxRanks)
	}
	if c.Profile != nil {
		p := *c.Profile // ensure fills in
		c.Profile = &p
	}
	if err := c.ensure(n); err != nil {
		return err
	}
	net := c.Profile.Net
	net.EnsureDefaults(n)
	if err := net.Validate(n); err != nil {
		return err
	}
	return c.Faults.check(n)
}
