package conduittest

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// Describer is an endpoint that says of itself, for the suite's report, what
// cannot be found out by using it. It is optional.
type Describer interface {
	// Authentication is how ranks make sure that a message is from the rank
	// that it names, such as "HMAC-SHA-256" or "none".
	Authentication() string
}

// offer is what a conduit offers beyond the least.
type offer struct {
	conduit string
	limits  conduits.Limits // of two ranks that ask for nothing special
	direct  bool            // a rank reaches the segment of another by load and store
	runner  bool            // the conduit runs its ranks itself, one at a time
	auth    string
	// Completions that operations on a peer report by their return value.
	put, get, atomic, long conduits.Event
}

// probe finds out.
func probe(t *testing.T, open Open, end time.Time) *offer {
	t.Helper()
	eps, err := open(2, conduits.Config{Seed: *flagSeed})
	if err != nil || len(eps) != 2 {
		t.Fatalf("conduittest: open of 2 ranks gave %d endpoints, error %v", len(eps), err)
	}
	o := &offer{conduit: eps[0].Conduit(), limits: eps[0].Limits(), auth: "not stated"}
	if d, ok := eps[0].(Describer); ok {
		o.auth = d.Authentication()
	}
	_, o.runner = eps[0].(conduits.Runner)
	for _, ep := range eps { // only looked at; what follows is another job
		if err := ep.Close(); err != nil {
			t.Fatalf("conduittest: close before attach: %v", err)
		}
	}
	s := &suite{open: open, offer: o, end: end}
	c := &ctx{T: t, open: open, offer: o, seed: *flagSeed, suite: s, check: "the first look at the conduit"}
	defer c.end()
	c.run(2, conduits.Config{}, func(p *peer) { p.must(o.try(p)) })
	if t.Failed() {
		t.FailNow()
	}
	return o
}

// trial is the Receiver of a probe.
type trial struct{ messages, remote int }

func (r *trial) Receive(*conduits.Message) { r.messages++ }
func (r *trial) Complete(_ uint64, ev conduits.Event, _ uint64, _ error) {
	if ev&conduits.RemoteDone != 0 {
		r.remote++
	}
}

// try has rank 0 do one operation of each kind on rank 1, which waits for the
// message that comes last.
func (o *offer) try(p *peer) error {
	ep := p.ep
	const both = conduits.SourceDone | conduits.RemoteDone
	r := &trial{}
	if err := ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: r}); err != nil {
		return err
	}
	p.up()
	if p.rank == 1 {
		return conduits.Wait(ep, waiting("a message"), func() bool { return r.messages == 1 })
	}
	first, views := ep.Views()
	o.direct = first+len(views) > 1 && views[1-first].Base != nil
	b, got := make([]byte, 8), make([]byte, 8)
	o.put, o.get, o.atomic = both, both, both
	want := 0
	for i := range uint64(8) { // once may be by chance
		put, err := ep.Put(1, at(0), b, both, 3*i)
		if err != nil {
			return err
		}
		get, err := ep.Get(got, 1, at(0), both, 3*i+1)
		if err != nil {
			return err
		}
		_, atom, err := ep.Atomic(1, at(8), conduits.AtomicAdd, conduits.Uint64, 1, 0, 3*i+2)
		if err != nil {
			return err
		}
		o.put, o.get, o.atomic = o.put&put, o.get&get, o.atomic&atom
		for _, ev := range []conduits.Event{put, get, atom} {
			if ev&conduits.RemoteDone == 0 {
				want++
			}
		}
		if err := conduits.Wait(ep, waiting("completions"), func() bool { return r.remote == want }); err != nil {
			return err
		}
	}
	var s conduits.Slot
	var st conduits.Status
	if err := conduits.Wait(ep, waiting("credit"), func() bool {
		s, o.long, st = ep.ReservePut(1, conduits.Request, 0, at(16), b, 100)
		return st != conduits.NoCredit
	}); err != nil {
		return err
	}
	if st != conduits.Ready {
		return fmt.Errorf("status %d of a notification put", st)
	}
	ep.Commit(1, conduits.Request, s, 0, len(b))
	return nil
}

// report prints what the conduit offers and which checks ran.
func (s *suite) report(t *testing.T) {
	t.Helper()
	o := s.offer
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	once := func(ev, want conduits.Event) string {
		if ev&want == want {
			return "complete at once"
		}
		return "may complete later"
	}
	const both = conduits.SourceDone | conduits.RemoteDone
	t.Log(table([][]string{
		{"conduit", o.conduit},
		{"medium payload", fmt.Sprintf("%d bytes", o.limits.MaxMedium)},
		{"long payload", fmt.Sprintf("%d bytes", o.limits.MaxLong)},
		{"segment", fmt.Sprintf("%d bytes", o.limits.MaxSegment)},
		{"credits of a class and rank", fmt.Sprint(o.limits.Credits)},
		{"direct access", yes(o.direct)},
		{"puts", once(o.put, both)},
		{"gets", once(o.get, conduits.RemoteDone)},
		{"atomics", once(o.atomic, conduits.RemoteDone)},
		{"source of a notification put", once(o.long, conduits.SourceDone)},
		{"authentication", o.auth},
	}))
	rows := [][]string{{"check", "seeds", "outcome"}}
	for _, r := range s.ran {
		switch {
		case r.skip != "":
			rows = append(rows, []string{r.name, "0", "skipped: " + r.skip})
		case r.failed:
			rows = append(rows, []string{r.name, fmt.Sprint(r.seeds), "FAILED"})
		default:
			rows = append(rows, []string{r.name, fmt.Sprint(r.seeds), "passed"})
		}
	}
	t.Log(table(rows))
}

// table aligns columns.
func table(rows [][]string) string {
	var b strings.Builder
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	w.Flush()
	return b.String()
}
