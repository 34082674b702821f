package sim

import (
	"math/rand/v2"
	"sort"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
)

// Faults are the faults of a job. All times are virtual.
type Faults struct {
	// Jitter delays every message and every step of an RMA operation by up to so
	// much more, which reorders them.
	Jitter Time
	// Slow makes processors slower.
	Slow []Slow
	// Stalls make a processor stand still for a while.
	Stalls []Stall
	// Crashes end ranks.
	Crashes []Crash
	// Partitions keep messages from crossing for a while.
	Partitions []Partition
	// Detect is how long it takes until the others know of a crash; 0 means ten
	// network trips.
	Detect Time

	// Probabilities, each for one datagram of a Socket; messages of the conduit never
	// suffer these.
	Drop, Duplicate, Corrupt, Truncate, Delay float64
	// DelayBy is the most that a delayed datagram is late; 0 means a hundred
	// network trips.
	DelayBy Time
	// Buffer is how many bytes of datagrams wait at a socket at most; what comes
	// beyond is lost. 0 means any number.
	Buffer int
}

// Slow multiplies the processor time of Rank by Factor.
type Slow struct {
	Rank   int
	Factor int
}

// Stall lets Rank's processor stand still from At for For.
type Stall struct {
	Rank    int
	At, For Time
}

// Crash ends Rank, at time At or, if Event is not 0, before the so manyth event
// of the job. Its card and processor do nothing from then on.
type Crash struct {
	Rank  int
	At    Time
	Event uint64
}

// Partition separates ranks First to Last from all others from At for For: the
// conduit's messages wait for its end, datagrams are lost.
type Partition struct {
	First, Last int
	At, For     Time
}

// faults is a plan under way.
type faults struct {
	f      Faults
	active bool // a partition is in force
	split  []bool
	held   list
	rnd    *rand.Rand
	plan   []func(j *Job)
	events []Crash // by event, in order
}

// check returns an error that names the wrong values of f for a job of n ranks.
func (f *Faults) check(n int) error {
	rank := func(what string, r int) error {
		if uint(r) >= uint(n) {
			return errs.BadArg("sim: %s of rank %d; the job has ranks 0..%d (-fault, ARGON_SIM)", what, r, n-1)
		}
		return nil
	}
	for _, p := range []struct {
		name string
		v    float64
	}{{"Drop", f.Drop}, {"Duplicate", f.Duplicate}, {"Corrupt", f.Corrupt}, {"Truncate", f.Truncate}, {"Delay", f.Delay}} {
		if !(p.v >= 0 && p.v <= 1) {
			return errs.BadArg("sim: Faults.%s is %v; a probability is 0 to 1", p.name, p.v)
		}
	}
	if f.Buffer < 0 {
		return errs.BadArg("sim: Faults.Buffer is %d bytes", f.Buffer)
	}
	times := func(what string, l ...Time) error {
		for _, t := range l {
			if t < 0 || t > maxTime {
				return errs.BadArg("sim: %s of %d ps; 0 to %d (-fault, ARGON_SIM)", what, t, maxTime)
			}
		}
		return nil
	}
	if err := times("jitter, detection or delay", f.Jitter, f.Detect, f.DelayBy); err != nil {
		return err
	}
	for _, x := range f.Slow {
		if err := rank("slow", x.Rank); err != nil {
			return err
		}
		if x.Factor < 1 || x.Factor > 1<<20 {
			return errs.BadArg("sim: rank %d slower by %d; 1 to %d", x.Rank, x.Factor, 1<<20)
		}
	}
	for _, x := range f.Stalls {
		if err := rank("stall", x.Rank); err != nil {
			return err
		}
		if err := times("stall", x.At, x.For); err != nil {
			return err
		}
	}
	for _, x := range f.Crashes {
		if err := rank("crash", x.Rank); err != nil {
			return err
		}
		if err := times("crash", x.At); err != nil {
			return err
		}
	}
	for _, x := range f.Partitions {
		if x.First > x.Last {
			return errs.BadArg("sim: partition of ranks %d to %d", x.First, x.Last)
		}
		for _, r := range []int{x.First, x.Last} {
			if err := rank("partition", r); err != nil {
				return err
			}
		}
		if err := times("partition", x.At, x.For); err != nil {
			return err
		}
	}
	return nil
}

func (s *faults) bind(j *Job) error {
	if err := j.c.Faults.check(j.n); err != nil {
		return err
	}
	s.f = j.c.Faults
	f := &s.f
	s.rnd = rand.New(rand.NewPCG(j.c.Seed, 0xfa17))
	s.split = make([]bool, len(f.Partitions))
	if f.Detect == 0 {
		f.Detect = 10 * j.p.Net.Latency
	}
	if f.DelayBy == 0 {
		f.DelayBy = 100 * j.p.Net.Latency
	}
	at := func(t Time, do func(j *Job)) {
		s.plan = append(s.plan, do)
		j.schedule(t, evFault, uint64(len(s.plan)-1))
	}
	for _, x := range f.Stalls {
		at(x.At, func(j *Job) {
			e := &j.eps[x.Rank]
			e.stalled = max(e.stalled, j.now+x.For)
		})
	}
	for _, x := range f.Crashes {
		if x.Event == 0 {
			at(x.At, func(j *Job) { j.crash(x.Rank) })
		} else {
			s.events = append(s.events, x)
		}
	}
	sort.SliceStable(s.events, func(i, k int) bool { return s.events[i].Event < s.events[k].Event })
	for i, x := range f.Partitions {
		at(x.At, func(j *Job) { s.cut(j, i, true) })
		at(x.At+x.For, func(j *Job) { s.cut(j, i, false) })
	}
	return nil
}

func (s *faults) happen(j *Job, i int) {
	j.trace.note(j.now, '!', uint64(i), 0)
	s.plan[i](j)
}

// jitter is the delay of one step.
func (s *faults) jitter(*Job) Time {
	if s.f.Jitter == 0 {
		return 0
	}
	return s.rnd.Int64N(s.f.Jitter + 1)
}

// cut begins or ends partition i.
func (s *faults) cut(j *Job, i int, on bool) {
	s.split[i] = on
	s.active = false
	for _, c := range s.split {
		s.active = s.active || c
	}
	if !on {
		held := s.held
		s.held = list{}
		for id := held.take(&j.m); id != 0; id = held.take(&j.m) {
			j.inject(id)
		}
	}
}

// severed reports whether a partition lies between two ranks.
func (s *faults) severed(a, b int) bool {
	for i, on := range s.split {
		p := &s.f.Partitions[i]
		if on && (a >= p.First && a <= p.Last) != (b >= p.First && b <= p.Last) {
			return true
		}
	}
	return false
}

// hold keeps a message that would cross a partition, and says so.
func (s *faults) hold(j *Job, id uint32, m *message) bool {
	if !s.severed(m.between()) {
		return false
	}
	if m.kind == kindDatagram {
		j.lose(id)
	} else {
		s.held.add(&j.m, id)
	}
	return true
}

// mistreat does to a datagram what the network does, and reports whether there is
// anything left of it. A duplicate may come much later than its twin.
func (s *faults) mistreat(j *Job, id uint32, m *message) bool {
	f := &s.f
	happens := func(p float64) bool { return p > 0 && s.rnd.Float64() < p }
	if m.late {
		m.late = false // it has been through this
		return true
	}
	if happens(f.Duplicate) {
		twin, d := j.m.get()
		b := j.m.buffer(len(m.data))
		bulk.Copy(b, m.data)
		*d = *m
		d.next, d.data, d.late = 0, b, true
		j.schedule(j.now+s.rnd.Int64N(f.DelayBy+1), evInject, uint64(twin))
	}
	if happens(f.Drop) {
		j.lose(id)
		return false
	}
	if happens(f.Truncate) {
		m.data = m.data[:s.rnd.IntN(len(m.data)+1)]
	}
	if happens(f.Corrupt) && len(m.data) > 0 {
		for range 1 + s.rnd.IntN(3) {
			m.data[s.rnd.IntN(len(m.data))] ^= byte(1 + s.rnd.IntN(255))
		}
	}
	if happens(f.Delay) {
		m.late = true
		j.schedule(j.now+s.rnd.Int64N(f.DelayBy+1), evInject, uint64(id))
		return false
	}
	return true
}

// crash ends a rank: its threads end when they would go on, and the others learn
// of it after a while.
func (j *Job) crash(rank int) {
	e := &j.eps[rank]
	if e.crashed || e.closed {
		return
	}
	e.crashed = true
	j.left++
	for c := range e.in {
		for id := e.in[c].take(&j.m); id != 0; id = e.in[c].take(&j.m) {
			j.lose(id)
		}
	}
	for id := e.done.take(&j.m); id != 0; id = e.done.take(&j.m) {
		j.m.put(id)
	}
	e.notify(false)
	j.faults.plan = append(j.faults.plan, func(j *Job) {
		j.fail(-1, &conduits.PeerError{Rank: rank, Err: errCrashed})
	})
	j.schedule(j.now+j.faults.f.Detect, evFault, uint64(len(j.faults.plan)-1))
}
