package contract

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// Offer has the limits and abilities of a conduit beyond the least.
type Offer struct {
	conduit string
	Limits  conduits.Limits // of two ranks that ask for nothing special
	Direct  bool            // a rank reaches the segment of another by load and store
	Runner  bool            // the conduit runs its ranks itself, one at a time
	// Whether there are a conduits.Card.
	barriers, multicast bool
	// Completions that operations on a peer report by their return value.
	put, get, atomic, long conduits.Event
}

// probe finds out.
func probe(t *testing.T, open Open, end time.Time) *Offer {
	t.Helper()
	eps, err := open(2, conduits.Config{Seed: *flagSeed})
	if err != nil || len(eps) != 2 {
		t.Fatalf("conformance: open of 2 ranks gave %d endpoints, error %v", len(eps), err)
	}
	o := &Offer{conduit: eps[0].Conduit(), Limits: eps[0].Limits()}
	_, o.Runner = conduits.As[conduits.Runner](eps[0])
	_, o.barriers = conduits.BarriersOf(eps[0], 1)
	_, o.multicast = conduits.MulticastOf(eps[0])
	for _, ep := range eps { // only looked at; what follows is another job
		if err := ep.Close(); err != nil {
			t.Fatalf("conformance: close before attach: %v", err)
		}
	}
	s := &Suite{open: open, offer: o, end: end}
	c := &Case{T: t, Open: open, Offer: o, Seed: *flagSeed, suite: s, check: "the first look at the conduit"}
	defer c.close()
	c.Job(2, conduits.Config{}, func(p *Peer) { p.Must(o.try(p)) })
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
func (o *Offer) try(p *Peer) error {
	ep := p.EP
	const both = conduits.SourceDone | conduits.RemoteDone
	r := &trial{}
	if err := ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: r}); err != nil {
		return err
	}
	p.Up()
	if p.Rank == 1 {
		return conduits.Wait(ep, Waiting("a message"), func() bool { return r.messages == 1 })
	}
	first, views := ep.Views()
	o.Direct = first+len(views) > 1 && views[1-first].Base != nil
	b := make([]byte, 8)
	o.put, o.get, o.atomic = both, both, both
	want := 0
	for i := range uint64(8) { // once may be by chance
		put, err := post.Put(ep, 1, At(0), b, both, 3*i)
		if err != nil {
			return err
		}
		get, err := post.Get(ep, make([]byte, 8), 1, At(0), both, 3*i+1)
		if err != nil {
			return err
		}
		_, atom, err := post.Atomic(ep, 1, At(8), conduits.AtomicAdd, conduits.Uint64, 1, 0, 3*i+2)
		if err != nil {
			return err
		}
		o.put, o.get, o.atomic = o.put&put, o.get&get, o.atomic&atom
		for _, ev := range []conduits.Event{put, get, atom} {
			if ev&conduits.RemoteDone == 0 {
				want++
			}
		}
		if err := conduits.Wait(ep, Waiting("completions"), func() bool { return r.remote == want }); err != nil {
			return err
		}
	}
	var s conduits.Slot
	var st conduits.Status
	if err := conduits.Wait(ep, Waiting("credit"), func() bool {
		s, o.long, st = ep.ReservePut(1, conduits.Request, 0, At(16), b, 100)
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

// Report prints what the conduit offers and which checks ran.
func (s *Suite) Report(t *testing.T) {
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
		{"medium payload", fmt.Sprintf("%d bytes", o.Limits.MaxMedium)},
		{"long payload", fmt.Sprintf("%d bytes", o.Limits.MaxLong)},
		{"segment", fmt.Sprintf("%d bytes", o.Limits.MaxSegment)},
		{"credits of a class and rank", fmt.Sprint(o.Limits.Credits)},
		{"direct access", yes(o.Direct)},
		{"puts", once(o.put, both)},
		{"gets", once(o.get, conduits.RemoteDone)},
		{"atomics", once(o.atomic, conduits.RemoteDone)},
		{"source of a notification put", once(o.long, conduits.SourceDone)},
		{"authentication", cmp.Or(o.Limits.Authentication, "not stated")},
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
