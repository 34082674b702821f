package sim_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// What Nüssle 2008 predicts and has measured of EXTOLL, beside what profile extoll makes of the
// same operations: docs/predictions.md has the tables and is compared with them here.

// side is one of two ranks that speak the conduit contract directly.
type side struct {
	ep     conduits.Endpoint
	rank   int
	peer   int
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
	pairSegment = 64 << 10
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
	return ends(p, 2, body)
}

// ends runs body on the first and the last rank of a job of n.
func ends(p sim.Profile, n int, body func(s *side) error) error {
	j, err := sim.New(n, sim.Config{Profile: &p, MaxMedium: pairSegment})
	if err != nil {
		return err
	}
	eps := j.Endpoints()
	result := make([]error, len(eps))
	conduits.Run(eps, func(i int) {
		s := &side{ep: eps[i], rank: i, peer: n - 1 - i, src: make([]byte, pairSegment)}
		err := s.ep.Attach(conduits.AttachConfig{Size: pairSegment, Receiver: s})
		if err == nil && (i == 0 || i == n-1) {
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
	// then, if not nil, is what the target does before it has the data.
	then func(s *side, size int) error
}

// message sends one message or reports why not.
func (s *side) message(words int) error {
	var w [conduits.MaxWords]uint32
	st := conduits.NoCredit
	err := s.until(func() bool {
		st = s.ep.Send(s.peer, conduits.Request, 1, w[:words])
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
		slot, _, st = s.ep.ReservePut(s.peer, conduits.Request, 0, pairData, data, 0)
		return st != conduits.NoCredit
	})
	if err == nil && st == conduits.Dead {
		err = s.ep.Err()
	}
	if err == nil {
		s.ep.Commit(s.peer, conduits.Request, slot, 1, 0)
	}
	return err
}

// veloWords is how many words make a message of the card as long as size bytes: the
// tag is some of them.
func veloWords(p *sim.Profile, size int) int { return max(0, size-p.Tag+3) / 4 }

// velo sends size bytes in messages of a packet each.
func velo(p *sim.Profile) transfer {
	most := max(p.Slot, p.Message)
	return transfer{
		name: "VELO",
		send: func(s *side, size int, _ uint64) error {
			for ; size > most; size -= most {
				if err := s.message(veloWords(p, most)); err != nil {
					return err
				}
			}
			return s.message(veloWords(p, size))
		},
		messages: func(size int) int { return max(1, (size+most-1)/most) },
	}
}

func once(int) int { return 1 }

var (
	notifPut = transfer{name: "notification put", messages: once, send: func(s *side, _ int, _ uint64) error { return s.notify(nil) }}
	put      = transfer{name: "put", messages: once, send: func(s *side, size int, _ uint64) error { return s.notify(s.src[:size]) }}
	word     = transfer{name: "put of a word", memory: true, send: func(s *side, _ int, k uint64) error {
		_, err := post.PutWord(s.ep, s.peer, pairData, k, 8, 0, 0)
		return err
	}}
	silentPut = transfer{name: "put without notification", memory: true, send: func(s *side, size int, k uint64) error {
		binary.LittleEndian.PutUint64(s.src[size-8:], k)
		_, err := post.Put(s.ep, s.peer, pairData, s.src[:size], 0, 0)
		return err
	}}
)

// halfRoundTrip is half the time of a ping-pong of t, ns.
func halfRoundTrip(p sim.Profile, t transfer, size int) (ns float64, err error) {
	return halfRoundTripOf(p, 2, t, size)
}

// halfRoundTripOf is that of the first and the last rank of a job of n.
func halfRoundTripOf(p sim.Profile, n int, t transfer, size int) (ns float64, err error) {
	const warm, rounds = 2, 10
	err = ends(p, n, func(s *side) error {
		arrived := func(k int) func() bool {
			if t.memory {
				return func() bool { return binary.LittleEndian.Uint64(s.mem[size-8:]) == uint64(k) }
			}
			want := k * t.messages(size)
			return func() bool { return s.got == want }
		}
		start := 0.0
		receive := func(k int) error {
			err := s.until(arrived(k))
			if err == nil && t.then != nil {
				err = t.then(s, size)
			}
			return err
		}
		for k := 1; k <= warm+rounds; k++ {
			if k == warm+1 {
				start = virtual(s.ep)
			}
			if s.rank != 0 {
				if err := receive(k); err != nil {
					return err
				}
			}
			if err := t.send(s, size, uint64(k)); err != nil {
				return err
			}
			if s.rank == 0 {
				if err := receive(k); err != nil {
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
		begun := 0.0
		for k := 1; k <= 1+rounds; k++ {
			if k == 2 {
				begun = virtual(s.ep)
			}
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
		_, err := post.Get(s.ep, s.src[:size], s.peer, pairData, conduits.RemoteDone, 1)
		return err
	}
}

func lock(s *side) error {
	_, _, err := post.Atomic(s.ep, s.peer, pairData, conduits.AtomicFCAA, conduits.Uint32, 0, 1, 1)
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
	return completionInterval(p, func(s *side) error {
		_, err := post.Put(s.ep, 1, pairData, s.src[:8], conduits.RemoteDone, 1)
		return err
	})
}

// getInterval is that of gets.
func getInterval(p sim.Profile, size int) (ns float64, err error) {
	return completionInterval(p, get(size))
}

func completionInterval(p sim.Profile, start func(s *side) error) (ns float64, err error) {
	const warm, rounds, under = 200, 1000, 64
	err = pair(p, func(s *side) error {
		if s.rank == 1 {
			return s.until(func() bool { return s.got == 1 })
		}
		for k := range warm + rounds {
			if err := start(s); err != nil {
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

// sum is the time of all steps, ns.
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

// table is a table of docs/predictions.md.
type table struct{ b strings.Builder }

func newTable(title string, columns ...string) *table {
	w := &table{}
	fmt.Fprintln(&w.b, title)
	w.row(columns...)
	return w
}

func (w *table) row(columns ...string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s", columns[0])
	for _, c := range columns[1:] {
		fmt.Fprintf(&b, " %12s", c)
	}
	fmt.Fprintln(&w.b, strings.TrimRight(b.String(), " "))
}

// compare looks for the table on the page.
func (w *table) compare(t *testing.T) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/predictions.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```\n"+w.b.String()+"```") {
		t.Errorf("docs/predictions.md does not have this:\n%s", &w.b)
	}
}

// must returns v, and ends the test if there is an error.
func must(t *testing.T) func(v float64, err error) float64 {
	return func(v float64, err error) float64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// number is v, to a tenth where it has one.
func number(v float64) string { return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") }

func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

// off is by how many percent v is more than what was measured.
func off(v, measured float64) float64 { return 100 * (v - measured) / measured }

// TestTable91 predicts what was measured within 6 %, and what Nüssle 2008 adds up exactly.
func TestTable91(t *testing.T) {
	must, p := must(t), sim.Extoll()
	w := newTable("thesis/latency: 8 bytes; half round trips, round trips of get and lock; ns",
		"", "simulated", "sum", "prognosis", "measured", "difference")
	for _, r := range table91 {
		ns, sum := must(r.run(p)), r.steps.sum(&p)
		if ns != r.prognosis || sum != r.prognosis {
			t.Errorf("%s: simulated %v ns, steps add up to %v, in Nüssle 2008 to %v", r.name, ns, sum, r.prognosis)
		}
		if d := off(ns, r.measured); math.Abs(d) > 6 {
			t.Errorf("%s: simulated %v ns, measured %v: off by %.1f %%", r.name, ns, r.measured, d)
		}
		w.row(r.name, number(ns), number(sum), number(r.prognosis), number(r.measured), fmt.Sprintf("%+.1f %%", off(ns, r.measured)))
	}
	w.compare(t)
	profile := &table{}
	fmt.Fprintf(&profile.b, "simulated, profile %v\n", p)
	profile.compare(t)
}

// TestSteps changes each step of table 9-2 by itself: what is simulated then
// changes as often as the table says that the operation takes it.
func TestSteps(t *testing.T) {
	const more = 17 * sim.Nanosecond
	for _, r := range table91 {
		for _, c := range []struct {
			name  string
			times int
			step  func(p *sim.Profile) *sim.Time
		}{
			{"DMA read", r.steps.dmaRead, func(p *sim.Profile) *sim.Time { return &p.DMARead }},
			{"ATU", r.steps.atu, func(p *sim.Profile) *sim.Time { return &p.ATU }},
			{"trip", r.steps.trips, func(p *sim.Profile) *sim.Time { return &p.Net.Latency }},
			{"DMA write", r.steps.dmaWrite, func(p *sim.Profile) *sim.Time { return &p.DMAWrite }},
			{"PIO", r.steps.pio, func(p *sim.Profile) *sim.Time { return &p.PIO }},
			{"unit", r.steps.units, func(p *sim.Profile) *sim.Time { return &p.Unit }},
			{"software", 1, func(p *sim.Profile) *sim.Time { return &p.Software }},
		} {
			p := sim.Extoll()
			*c.step(&p) += 2 * more // even, for software is halved
			ns, err := r.run(p)
			if err != nil {
				t.Fatal(err)
			}
			if want := r.prognosis + float64(c.times)*2*17; ns != want || r.steps.sum(&p) != want {
				t.Errorf("%s with a slower %s: %v ns, the sum is %v; want %v", r.name, c.name, ns, r.steps.sum(&p), want)
			}
		}
	}
}

// TestRates: nothing but the card's gaps is in the way of a stream.
func TestRates(t *testing.T) {
	must, p := must(t), sim.Extoll()
	millions := func(v float64) string { return strconv.FormatFloat(v/1e6, 'f', 3, 64) + "e6" }
	w := newTable("thesis/rate: operations of 8 bytes a second, streaming", "", "simulated", "profile", "measured", "difference")
	for _, r := range []struct {
		name     string
		ns       float64
		gap      sim.Time
		measured float64
	}{
		{"VELO", must(interval(p, velo(&p), 8)), p.MessageGap, 5.5e6},
		{"notification put", must(interval(p, notifPut, 8)), p.RMAGap, 2.6e6},
		{"put, noticed at the target", must(interval(reading(p), put, 8)), p.PutGap, 1.375e6},
		{"put, noticed at the initiator", must(putInterval(reading(p))), p.PutGap, 1.375e6},
	} {
		v, want := perSecond(r.ns), perSecond(float64(r.gap)/float64(sim.Nanosecond))
		if math.Abs(off(v, r.measured)) > 0.2 || math.Abs(v/want-1) > 0.002 {
			t.Errorf("%s: %v a second, by the profile %v, measured %v", r.name, v, want, r.measured)
		}
		w.row(r.name, millions(v), millions(want), millions(r.measured), fmt.Sprintf("%+.1f %%", off(v, r.measured)))
	}
	w.compare(t)
}

// perSecond is how often something happens that takes ns.
func perSecond(ns float64) float64 { return 1e9 / ns }

// maxTransfer is the largest transfer that one operation of the card does.
const maxTransfer = 4096

// TestSizes: what is larger takes longer.
func TestSizes(t *testing.T) {
	testjob.Simulated(t)
	must, p := must(t), sim.Extoll()
	r, v := reading(p), velo(&p)
	w := newTable("thesis/size: half round trips in ns and streaming bandwidths in MB/s by size",
		"", "VELO", "put", "get", "VELO MB/s", "put MB/s")
	var last [5]float64
	for size := 8; size <= maxTransfer; size *= 2 {
		bandwidth := func(t transfer) float64 { return float64(size) * perSecond(must(interval(r, t, size))) / 1e6 }
		columns := []string{strconv.Itoa(size) + " B"}
		if size >= 1024 {
			columns[0] = strconv.Itoa(size/1024) + " KiB"
		}
		for i, x := range [5]float64{
			must(halfRoundTrip(r, v, size)), must(halfRoundTrip(r, put, size)), must(roundTrip(p, get(size))), bandwidth(v), bandwidth(put),
		} {
			if x < last[i] {
				t.Errorf("column %d of %d bytes: %v after %v for half of them", i+1, size, x, last[i])
			}
			last[i] = x
			columns = append(columns, whole(x))
		}
		w.row(columns...)
	}
	w.compare(t)
}

// TestText has single figures that the text of Nüssle 2008 gives of its curves, which say how far
// the model goes beyond what it was made of; the page lists those that fit.
func TestText(t *testing.T) {
	testjob.Simulated(t)
	must, p := must(t), sim.Extoll()
	r, v := reading(p), velo(&p)
	most := maxTransfer * perSecond(must(interval(r, put, maxTransfer)))
	// The best of VELO is that of full slots.
	mostVelo := float64(p.Message) * perSecond(must(interval(p, v, p.Message)))
	slots, landing := p, p
	slots.Eager, landing.Eager = maxTransfer, 0
	// first is the first size from 64 on, in steps, for which ok holds.
	first := func(step int, ok func(size int) bool) float64 {
		for size := 64; size <= maxTransfer; size += step {
			if ok(size) {
				return float64(size)
			}
		}
		return 0
	}
	faster := func(p sim.Profile, t transfer, than sim.Profile, other transfer) float64 {
		return first(8, func(size int) bool {
			return must(halfRoundTrip(p, t, size)) < must(halfRoundTrip(than, other, size))
		})
	}
	streaming := 8
	for float64(streaming)*perSecond(must(interval(p, v, streaming))) < most/2 {
		streaming *= 2
	}
	w := newTable("thesis/text: what the text says about the curves", "", "simulated", "published")
	for _, c := range []struct {
		name      string
		published string
		value     float64
		want      float64
	}{
		{"bandwidth of puts of 4 KiB", "275 MB/s", most, 274e6},
		{"bandwidth of full VELO messages", "less", mostVelo, 220e6},
		{"half bandwidth, ping-pong of puts", "576 B", first(64, func(size int) bool {
			return float64(size)*perSecond(must(halfRoundTrip(r, put, size))) >= most/2
		}), 576},
		{"half bandwidth, streaming VELO", "32 B", float64(streaming), 32},
		{"put faster than VELO, ping-pong", "about 400 B", faster(r, put, p, v), 904},
		{"put above VELO, streaming", "384 B", first(64, func(size int) bool {
			return float64(size)*perSecond(must(interval(r, put, size))) > mostVelo
		}), 192},
		{"get above VELO, streaming", "512 B", first(64, func(size int) bool {
			return float64(size)*perSecond(must(getInterval(p, size))) > mostVelo
		}), 192},
		{"bandwidth of gets of 4 KiB", "275 MB/s", maxTransfer * perSecond(must(getInterval(p, maxTransfer))), 274e6},
		{"landing buffer faster than slots", "512 to 1024 B", faster(landing, medium, slots, medium), 1008},
		{"rendezvous faster than copies", "2 KiB", first(64, func(size int) bool {
			return must(halfRoundTrip(r, rendezvous, size)) < must(halfRoundTrip(landing, copied(&p), size))
		}), 4032},
		{"the same, copies at 2 GB/s", "2 KiB", first(64, func(size int) bool {
			slow := landing
			slow.MemoryByte = 500
			return must(halfRoundTrip(r, rendezvous, size)) < must(halfRoundTrip(slow, copied(&slow), size))
		}), 2048},
	} {
		if math.Abs(c.value/c.want-1) > 0.003 {
			t.Errorf("%s: %v, want %v", c.name, c.value, c.want)
		}
		show := whole(c.value) + " B"
		if c.want > maxTransfer {
			show = whole(c.value/1e6) + " MB/s"
		}
		w.row(c.name, show, c.published)
	}
	w.compare(t)
}

// medium is a payload in whichever way the profile's Eager says.
var medium = transfer{name: "medium", messages: once, send: func(s *side, size int, _ uint64) error {
	st := conduits.NoCredit
	err := s.until(func() bool {
		st = s.ep.SendPayload(s.peer, conduits.Request, 1, nil, s.src[:size], 0)
		return st != conduits.NoCredit
	})
	if err == nil && st == conduits.Dead {
		err = s.ep.Err()
	}
	return err
}}

// copied is medium whose receiver copies the payload out of the landing buffer.
func copied(p *sim.Profile) transfer {
	t := medium
	t.then = func(s *side, size int) error {
		sim.Compute(s.ep.(*sim.Endpoint), time.Duration(size)*time.Duration(p.MemoryByte)/time.Duration(sim.Nanosecond))
		return nil
	}
	return t
}

// rendezvous is the protocol without copies: the target is told and gets the data (8.6).
var rendezvous = transfer{
	name: "rendezvous", messages: once,
	send: func(s *side, _ int, _ uint64) error { return s.message(2) },
	then: func(s *side, size int) error {
		done := s.done + 1
		if err := get(size)(s); err != nil {
			return err
		}
		return s.until(func() bool { return s.done == done })
	},
}

// TestShort adds messages up: one slot, and two.
func TestShort(t *testing.T) {
	must, p := must(t), sim.Extoll()
	w := newTable("am/short: half round trips through package am, ns", "arguments", "simulated", "sum", "slots", "published")
	for _, k := range []int{0, 4, 8, 12, 13, 14, 16} {
		ns := must(shortRoundTrip(p, k))
		data := p.Tag + 4*k
		slots, packets := max(1, (data+p.Slot-1)/p.Slot), 1
		if data > p.Message {
			packets = slots
		}
		bytes := data + packets*p.Header
		sum := table91[0].steps.sum(&p) + float64(max(0, bytes-p.Net.Free))*float64(p.Net.Byte)/float64(sim.Nanosecond)
		// 16 bytes of header a packet, 8 of tag, 4 an argument; 24 are free; 3.636 ns.
		n := 1 + k/13
		want := 1300 + 3.636*float64(16*(1+k/15)+8+4*k-24)
		if math.Abs(ns-want) > 0.5 || math.Abs(sum-want) > 1e-6 || slots != n {
			t.Errorf("%d arguments: %v ns, sum %v, %d slots; want %v in %d", k, ns, sum, slots, want, n)
		}
		published := ""
		if k == 0 {
			published = "1300" // a message of 8 bytes
		}
		w.row(strconv.Itoa(k), number(ns), number(sum), strconv.Itoa(slots), published)
	}
	w.compare(t)
}

// TestIdeal: what has no card takes what its profile adds up to, too.
func TestIdeal(t *testing.T) {
	must, p := must(t), sim.Ideal()
	for _, r := range table91 {
		if ns := must(r.run(p)); math.Abs(ns-r.steps.sum(&p)) > 2 {
			t.Errorf("%s: %v ns, want %v", r.name, ns, r.steps.sum(&p))
		}
	}
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
