package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/segment"
)

// side is one of two ranks that speak the conduit contract directly.
type side struct {
	ep     conduits.Endpoint
	rank   int
	mem    []byte // the own segment
	src    []byte // what is put
	got    int    // messages
	done   int    // completions
	failed error
	// When message number warm and the last one were taken, for rates.
	warm         int
	first, final float64
}

const (
	pairSegment = 16 << 10
	pairData    = segment.AttachBase
)

// Receive counts.
func (s *side) Receive(*conduits.Message) {
	s.got++
	s.final = virtual(s.ep)
	if s.got == s.warm {
		s.first = s.final
	}
}

// Complete counts.
func (s *side) Complete(_ uint64, _ conduits.Event, _ uint64, err error) {
	s.done++
	s.failed = errors.Join(s.failed, err)
	s.final = virtual(s.ep)
}

// virtual is a rank's clock, ns.
func virtual(ep conduits.Endpoint) float64 { return float64(ep.Now().Nanoseconds()) }

// until waits for cond.
func (s *side) until(cond func() bool) error {
	return errors.Join(conduits.Wait(s.ep, nil, cond), s.failed)
}

// pair runs body on both ranks of a job of two.
func pair(p sim.Profile, body func(s *side) error) error {
	j, err := sim.New(2, sim.Config{Profile: &p})
	if err != nil {
		return err
	}
	eps := j.Endpoints()
	result := make([]error, len(eps))
	conduits.Run(eps, func(i int) {
		s := &side{ep: eps[i], rank: i, src: make([]byte, pairSegment)}
		err := s.ep.Attach(conduits.AttachConfig{Size: pairSegment, Receiver: s})
		if err == nil {
			_, v := s.ep.Views()
			s.mem, _ = v[0].Bytes(pairData, pairSegment, v[0].Size())
			err = body(s)
		}
		if err != nil {
			result[i] = err
			s.ep.Fail(err)
		}
		result[i] = errors.Join(result[i], s.ep.Close())
	})
	return errors.Join(result...)
}

// transfer is a way to send something to the other rank.
type transfer struct {
	name string
	// send begins the transfer of size bytes that carry number k, 1 and up.
	send func(s *side, size int, k uint64) error
	// memory: the target looks at the last word of what was put; else it is
	// told, by so many messages.
	memory   bool
	messages func(size int) int
}

// message sends one message or reports why not.
func (s *side) message(words int) error {
	var w [conduits.MaxWords]uint32
	st := conduits.NoCredit
	err := s.until(func() bool {
		st = s.ep.Send(1-s.rank, conduits.Request, 1, w[:words])
		return st != conduits.NoCredit
	})
	if err == nil && st == conduits.Dead {
		err = s.ep.Err()
	}
	return err
}

// notify puts data, nil for none, and tells the target.
func (s *side) notify(data []byte) error {
	var slot conduits.Slot
	st := conduits.NoCredit
	err := s.until(func() bool {
		slot, _, st = s.ep.ReservePut(1-s.rank, conduits.Request, 0, pairData, data, 0)
		return st != conduits.NoCredit
	})
	if err == nil && st == conduits.Dead {
		err = s.ep.Err()
	}
	if err == nil {
		s.ep.Commit(1-s.rank, conduits.Request, slot, 1, 0)
	}
	return err
}

// veloWords is how many words make a message of the card as long as size bytes: the
// tag is some of them.
func veloWords(p *sim.Profile, size int) int { return max(0, size-p.Tag+3) / 4 }

// velo sends size bytes in messages of a slot each.
func velo(p *sim.Profile) transfer {
	return transfer{
		name: "VELO",
		send: func(s *side, size int, _ uint64) error {
			for ; size > p.Slot; size -= p.Slot {
				if err := s.message(veloWords(p, p.Slot)); err != nil {
					return err
				}
			}
			return s.message(veloWords(p, size))
		},
		messages: func(size int) int { return max(1, (size+p.Slot-1)/p.Slot) },
	}
}

func once(int) int { return 1 }

var (
	notifPut = transfer{name: "notification put", messages: once, send: func(s *side, _ int, _ uint64) error { return s.notify(nil) }}
	put      = transfer{name: "put", messages: once, send: func(s *side, size int, _ uint64) error { return s.notify(s.src[:size]) }}
	word     = transfer{name: "put of a word", memory: true, send: func(s *side, _ int, k uint64) error {
		_, err := s.ep.PutWord(1-s.rank, pairData, k, 8, 0, 0)
		return err
	}}
	silentPut = transfer{name: "put without notification", memory: true, send: func(s *side, size int, k uint64) error {
		binary.LittleEndian.PutUint64(s.src[size-8:], k)
		_, err := s.ep.Put(1-s.rank, pairData, s.src[:size], 0, 0)
		return err
	}}
)

// halfRoundTrip is half the time of a ping-pong of t, ns.
func halfRoundTrip(p sim.Profile, t transfer, size int) (ns float64, err error) {
	const warm, rounds = 2, 10
	err = pair(p, func(s *side) error {
		arrived := func(k int) func() bool {
			if t.memory {
				return func() bool { return binary.LittleEndian.Uint64(s.mem[size-8:]) == uint64(k) }
			}
			want := k * t.messages(size)
			return func() bool { return s.got == want }
		}
		start := 0.0
		for k := 1; k <= warm+rounds; k++ {
			if k == warm+1 {
				start = virtual(s.ep)
			}
			if s.rank == 1 {
				if err := s.until(arrived(k)); err != nil {
					return err
				}
			}
			if err := t.send(s, size, uint64(k)); err != nil {
				return err
			}
			if s.rank == 0 {
				if err := s.until(arrived(k)); err != nil {
					return err
				}
			}
		}
		if s.rank == 0 {
			ns = (virtual(s.ep) - start) / (2 * rounds)
		}
		return nil
	})
	return ns, err
}

// roundTrip is the time of an operation until its completion is noticed, ns.
func roundTrip(p sim.Profile, start func(s *side) error) (ns float64, err error) {
	const rounds = 10
	err = pair(p, func(s *side) error {
		if s.rank == 1 {
			return s.until(func() bool { return s.got == 1 })
		}
		begun := virtual(s.ep)
		for k := 1; k <= rounds; k++ {
			if err := start(s); err != nil {
				return err
			}
			if err := s.until(func() bool { return s.done == k }); err != nil {
				return err
			}
		}
		ns = (virtual(s.ep) - begun) / rounds
		return s.message(0) // the other may go
	})
	return ns, err
}

func get(size int) func(s *side) error {
	return func(s *side) error {
		_, err := s.ep.Get(s.src[:size], 1-s.rank, pairData, conduits.RemoteDone, 1)
		return err
	}
}

func lock(s *side) error {
	_, _, err := s.ep.Atomic(1-s.rank, pairData, conduits.AtomicFCAA, conduits.Uint32, 0, 1, 1)
	return err
}

// interval is the time between arrivals when one rank sends size bytes over and
// over, ns.
func interval(p sim.Profile, t transfer, size int) (ns float64, err error) {
	const warm, rounds = 200, 1000
	err = pair(p, func(s *side) error {
		n := t.messages(size)
		s.warm = warm * n
		if s.rank == 0 {
			for k := range warm + rounds {
				if err := t.send(s, size, uint64(k)); err != nil {
					return err
				}
			}
			return s.until(func() bool { return s.got == 1 })
		}
		if err := s.until(func() bool { return s.got == (warm+rounds)*n }); err != nil {
			return err
		}
		ns = (s.final - s.first) / rounds
		return s.message(0)
	})
	return ns, err
}

// putInterval is the time between completions of puts of 8 bytes at their
// initiator, ns.
func putInterval(p sim.Profile) (ns float64, err error) {
	const warm, rounds, under = 200, 1000, 64
	err = pair(p, func(s *side) error {
		if s.rank == 1 {
			return s.until(func() bool { return s.got == 1 })
		}
		for k := range warm + rounds {
			if _, err := s.ep.Put(1, pairData, s.src[:8], conduits.RemoteDone, 1); err != nil {
				return err
			}
			if err := s.until(func() bool { return s.done > k-under }); err != nil {
				return err
			}
			if k == warm+under {
				s.first, s.warm = s.final, s.done
			}
		}
		if err := s.until(func() bool { return s.done == warm+rounds }); err != nil {
			return err
		}
		ns = (s.final - s.first) / float64(s.done-s.warm)
		return s.message(0)
	})
	return ns, err
}

// steps is how often a transfer takes each of the steps of table 9-2.
type steps struct{ dmaRead, atu, trips, dmaWrite, pio, units int }

// sum is what they take, ns.
func (c steps) sum(p *sim.Profile) float64 {
	return float64(p.Software+
		sim.Time(c.dmaRead)*p.DMARead+sim.Time(c.atu)*p.ATU+sim.Time(c.trips)*p.Net.Latency+
		sim.Time(c.dmaWrite)*p.DMAWrite+sim.Time(c.pio)*p.PIO+sim.Time(c.units)*p.Unit) / float64(sim.Nanosecond)
}

// thesisRow is one of table 9-1, of 8 bytes.
type thesisRow struct {
	name                string
	steps               steps
	prognosis, measured float64 // ns
	run                 func(p sim.Profile) (float64, error)
}

// table91 is the table. Its rows of the immediate put have their labels changed
// over here: the text of Nüssle 2008 beside it says that the notification costs one
// more DMA write.
var table91 = []thesisRow{
	{"VELO", steps{0, 0, 1, 1, 1, 0}, 1300, 1300, func(p sim.Profile) (float64, error) { return halfRoundTrip(p, velo(&p), 8) }},
	{"notification put", steps{0, 0, 1, 1, 1, 2}, 1400, 1400, half(notifPut)},
	{"immediate put, no notification", steps{0, 1, 1, 1, 1, 2}, 1470, 1470, half(word)},
	{"immediate put, notification", steps{0, 1, 1, 2, 1, 2}, 1670, 1670, half(put)},
	{"put, no notification", steps{1, 2, 1, 1, 1, 2}, 1890, 1990, halfRead(silentPut)},
	{"put, notification", steps{1, 2, 1, 2, 1, 2}, 2090, 2100, halfRead(put)},
	{"get", steps{1, 2, 2, 2, 1, 3}, 2790, 2820, func(p sim.Profile) (float64, error) { return roundTrip(p, get(8)) }},
	{"lock", steps{1, 0, 2, 2, 1, 3}, 2650, 2700, func(p sim.Profile) (float64, error) { return roundTrip(p, lock) }},
}

func half(t transfer) func(p sim.Profile) (float64, error) {
	return func(p sim.Profile) (float64, error) { return halfRoundTrip(p, t, 8) }
}

// halfRead is half of a card that reads all data from memory: the puts of Nüssle 2008
// are ordinary ones, however small.
func halfRead(t transfer) func(p sim.Profile) (float64, error) {
	return func(p sim.Profile) (float64, error) { return halfRoundTrip(reading(p), t, 8) }
}

// reading is p without immediate puts.
func reading(p sim.Profile) sim.Profile {
	p.Immediate = 0
	return p
}

func latencies(s *study) error {
	if err := s.head("8 bytes; half round trips, round trips of get and lock; ns",
		"", "simulated", "sum", "prognosis", "measured", "difference"); err != nil {
		return err
	}
	for _, r := range table91 {
		ns, err := r.run(s.o.profile)
		if err != nil {
			return err
		}
		f := figure{What: r.name, Ranks: 2, Size: 8, Metric: halfRTT, Unit: "ns", Value: ns, Expected: r.steps.sum(&s.o.profile)}
		if r.steps.trips == 2 {
			f.Metric = latency
		}
		if s.extoll {
			f.compare(r.prognosis, r.measured)
		}
		if err := s.add(f, r.name, plainNumber(ns), plainNumber(f.Expected), plainNumber(f.Prog), plainNumber(f.Measured), f.percent()); err != nil {
			return err
		}
	}
	return nil
}

func rates(s *study) error {
	if err := s.head("operations of 8 bytes a second, streaming", "", "simulated", "profile", "measured", "difference"); err != nil {
		return err
	}
	p := s.o.profile
	stream := func(p sim.Profile, t transfer) func() (float64, error) {
		return func() (float64, error) { return interval(p, t, 8) }
	}
	for _, r := range []struct {
		name     string
		run      func() (float64, error)
		gap      sim.Time
		measured float64
	}{
		{"VELO", stream(p, velo(&p)), p.MessageGap, 5.5e6},
		{"notification put", stream(p, notifPut), p.RMAGap, 2.6e6},
		{"put, noticed at the target", stream(reading(p), put), p.PutGap, 1.375e6},
		{"put, noticed at the initiator", func() (float64, error) { return putInterval(reading(p)) }, p.PutGap, 1.375e6},
	} {
		ns, err := r.run()
		if err != nil {
			return err
		}
		f := figure{What: r.name, Ranks: 2, Size: 8, Metric: rate, Unit: "operations/s", Value: perSecond(ns)}
		f.Expected = perSecond(float64(r.gap) / float64(sim.Nanosecond))
		if s.extoll {
			f.compare(0, r.measured)
		}
		if err := s.add(f, r.name, millions(f.Value), millions(f.Expected), millions(f.Measured), f.percent()); err != nil {
			return err
		}
	}
	return nil
}

// perSecond is how often something happens that takes ns; 0 if no time.
func perSecond(ns float64) float64 {
	if ns <= 0 {
		return 0
	}
	return 1e9 / ns
}

func millions(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v/1e6, 'f', 3, 64) + "e6"
}

// maxTransfer is the largest transfer that one operation of the card does.
const maxTransfer = 4096

func sizes(s *study) error {
	if err := s.head("half round trips in ns and streaming bandwidths in MB/s by size",
		"", "VELO", "put", "get", "VELO MB/s", "put MB/s"); err != nil {
		return err
	}
	p := s.o.profile
	for size := 8; size <= maxTransfer; size *= 2 {
		columns := []string{bytesText(size)}
		var figures []figure
		note := func(what, metric, unit string, v float64) {
			figures = append(figures, figure{What: what, Ranks: 2, Size: size, Metric: metric, Unit: unit, Value: v})
			if unit == "bytes/s" {
				v /= 1e6
			}
			columns = append(columns, strconv.FormatFloat(v, 'f', 0, 64))
		}
		for _, t := range []transfer{velo(&p), put} {
			ns, err := halfRoundTrip(reading(p), t, size)
			if err != nil {
				return err
			}
			note(t.name, halfRTT, "ns", ns)
		}
		ns, err := roundTrip(p, get(size))
		if err != nil {
			return err
		}
		note("get", latency, "ns", ns)
		for _, t := range []transfer{velo(&p), put} {
			ns, err := interval(reading(p), t, size)
			if err != nil {
				return err
			}
			note(t.name, bandwidth, "bytes/s", float64(size)*perSecond(ns))
		}
		for i, f := range figures {
			f.Bench, f.Profile = s.bench, p.Name
			s.figures = append(s.figures, f)
			if s.json != nil {
				if err := s.json.Encode(f); err != nil {
					return err
				}
			} else if i == 0 {
				if err := s.row(columns...); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// smallest returns the first size from lo on, in steps, for which ok holds, or 0.
func smallest(lo, step int, ok func(size int) (bool, error)) (float64, error) {
	for size := lo; size <= maxTransfer; size += step {
		if good, err := ok(size); good || err != nil {
			return float64(size), err
		}
	}
	return 0, nil
}

// crossings are single figures that the text of Nüssle 2008 gives of its curves. They
// say how far the model goes beyond what it was made of.
func crossings(s *study) error {
	if err := s.head("what the text says about the curves", "", "simulated", "published"); err != nil {
		return err
	}
	p := s.o.profile
	r := reading(p)
	v := velo(&p)
	best, err := interval(r, put, maxTransfer)
	if err != nil {
		return err
	}
	most := maxTransfer * perSecond(best)
	// The best of VELO is that of full slots.
	slot, err := interval(p, v, p.Slot)
	if err != nil {
		return err
	}
	mostVelo := float64(p.Slot) * perSecond(slot)
	faster := func(a, b func(size int) (float64, error)) func(size int) (bool, error) {
		return func(size int) (bool, error) {
			x, err := a(size)
			if err != nil {
				return false, err
			}
			y, err := b(size)
			return x < y, err
		}
	}
	pingPong := func(p sim.Profile, t transfer) func(size int) (float64, error) {
		return func(size int) (float64, error) { return halfRoundTrip(p, t, size) }
	}
	slots, landing := p, p
	slots.Eager, landing.Eager = maxTransfer, 0
	for _, c := range []struct {
		name      string
		published float64
		text      string // what was published, if it is not one number
		unit      string
		value     func() (float64, error)
	}{
		{"bandwidth of puts of 4 KiB", 275e6, "", "bytes/s", func() (float64, error) { return most, nil }},
		{"bandwidth of full VELO slots", 0, "less", "bytes/s", func() (float64, error) { return mostVelo, nil }},
		{"half bandwidth, ping-pong of puts", 576, "", "bytes", func() (float64, error) {
			return smallest(64, 64, func(size int) (bool, error) {
				ns, err := halfRoundTrip(r, put, size)
				return float64(size)*perSecond(ns) >= most/2, err
			})
		}},
		{"half bandwidth, streaming VELO", 32, "", "bytes", func() (float64, error) {
			for size := 8; size <= p.Slot; size *= 2 {
				ns, err := interval(p, v, size)
				if err != nil || float64(size)*perSecond(ns) >= most/2 {
					return float64(size), err
				}
			}
			return 0, nil
		}},
		{"put faster than VELO, ping-pong", 400, "about 400 B", "bytes", func() (float64, error) {
			return smallest(64, 8, faster(pingPong(r, put), pingPong(p, v)))
		}},
		{"put above VELO, streaming", 384, "", "bytes", func() (float64, error) {
			return smallest(64, 64, func(size int) (bool, error) {
				ns, err := interval(r, put, size)
				return float64(size)*perSecond(ns) > mostVelo, err
			})
		}},
		{"landing buffer faster than slots", 0, "512 to 1024 B", "bytes", func() (float64, error) {
			return smallest(64, 8, faster(pingPong(landing, medium), pingPong(slots, medium)))
		}},
	} {
		x, err := c.value()
		if err != nil {
			return err
		}
		f := figure{What: c.name, Ranks: 2, Metric: "size", Unit: c.unit, Value: x}
		show := func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) + " B" }
		if c.unit == "bytes/s" {
			f.Metric = bandwidth
			show = func(v float64) string { return strconv.FormatFloat(v/1e6, 'f', 0, 64) + " MB/s" }
		}
		published := ""
		if s.extoll {
			f.compare(0, c.published)
			f.Note = c.text
			if published = c.text; published == "" {
				published = show(c.published)
			}
		}
		if err := s.add(f, c.name, show(x), published); err != nil {
			return err
		}
	}
	return nil
}

// medium is a payload in whichever way the profile's Eager says.
var medium = transfer{name: "medium", messages: once, send: func(s *side, size int, _ uint64) error {
	st := conduits.NoCredit
	err := s.until(func() bool {
		st = s.ep.SendPayload(1-s.rank, conduits.Request, 1, nil, s.src[:size])
		return st != conduits.NoCredit
	})
	if err == nil && st == conduits.Dead {
		err = s.ep.Err()
	}
	return err
}}

// simArgs are the numbers of arguments of short messages that are measured.
var simArgs = []int{0, 4, 8, 12, 13, 14, 16}

// shortTime is what half a round trip of a short message with k arguments takes
// by the profile, ns, and how many slots it has.
func shortTime(p *sim.Profile, k int) (ns float64, slots int) {
	data := p.Tag + 4*k
	slots = max(1, (data+p.Slot-1)/p.Slot)
	bytes := data + slots*p.Header
	return messageTime(p, bytes), slots
}

// messageTime is what a message of so many bytes on the link takes, ns.
func messageTime(p *sim.Profile, bytes int) float64 {
	return steps{trips: 1, dmaWrite: 1, pio: 1}.sum(p) + float64(max(0, bytes-p.Net.Free))*float64(p.Net.Byte)/float64(sim.Nanosecond)
}

func shorts(s *study) error {
	if err := s.head("half round trips through package am, ns", "arguments", "simulated", "sum", "slots", "published"); err != nil {
		return err
	}
	for _, k := range simArgs {
		ns, err := shortRoundTrip(s.o.profile, k)
		if err != nil {
			return err
		}
		want, slots := shortTime(&s.o.profile, k)
		f := figure{What: strconv.Itoa(slots) + " slots", Ranks: 2, Size: k, Metric: halfRTT, Unit: "ns", Value: ns, Expected: want}
		if s.extoll && k == 0 {
			f.compare(1300, 1300) // a message of 8 bytes
		}
		if err := s.add(f, strconv.Itoa(k), plainNumber(ns), plainNumber(want), strconv.Itoa(slots), plainNumber(f.Measured)); err != nil {
			return err
		}
	}
	return nil
}

// shortRoundTrip is half the time from a request with k arguments, answered in
// kind by its handler, to the return from Wait, ns.
func shortRoundTrip(p sim.Profile, k int) (ns float64, err error) {
	const ping, pong = am.FirstClient, am.FirstClient + 1
	const warm, rounds = 2, 10
	j, err := sim.New(2, sim.Config{Profile: &p})
	if err != nil {
		return 0, err
	}
	eps := j.Endpoints()
	result := make([]error, len(eps))
	args := make([]uint32, k)
	conduits.Run(eps, func(i int) {
		pings, pongs := 0, 0
		e, err := am.Attach(eps[i], am.Config{Handlers: []am.Entry{
			{Index: ping, Name: "ping", Args: k, Kinds: am.Short | am.Request, Fn: func(t *am.Token, _ []uint32, _ []byte) {
				pings++
				_ = t.ReplyShort(pong, args...) // an error is the job's failure
			}},
			{Index: pong, Name: "pong", Args: k, Kinds: am.Short | am.Reply, Fn: func(*am.Token, []uint32, []byte) { pongs++ }},
		}})
		if err != nil {
			result[i] = err
			return
		}
		if i == 1 {
			result[i] = e.Wait(nil, func() bool { return pings == warm+rounds })
			return
		}
		start := 0.0
		for n := 1; n <= warm+rounds && result[i] == nil; n++ {
			if n == warm+1 {
				start = virtual(eps[i])
			}
			if result[i] = e.RequestShort(1, ping, args...); result[i] == nil {
				result[i] = e.Wait(nil, func() bool { return pongs == n })
			}
		}
		ns = (virtual(eps[i]) - start) / (2 * rounds)
	})
	if err := errors.Join(result...); err != nil {
		return 0, fmt.Errorf("%d arguments: %w", k, err)
	}
	return ns, nil
}
