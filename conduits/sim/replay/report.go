package replay

import (
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/traffic"
)

// Report is what came of a run.
type Report struct {
	Took  time.Duration // the longest of the ranks
	Ranks []Times
	Kinds []Kind // by kind and size

	t    *traffic.Traffic
	rows map[row]*Kind
}

// Times are what one rank did with its time.
type Times struct {
	Took      time.Duration // from Attach to Close
	Computing time.Duration
	Waiting   time.Duration
	Sending   time.Duration // the rest: beginning messages and accesses, waiting for credit, polls by the way
}

// Kind counts messages and accesses of one kind, of sizes above half of Most up to Most.
type Kind struct {
	Name  string
	Most  uint64 // bytes
	Count int
	Bytes uint64
	// Known is of how many the time is known from the beginning to the handler, or the completion, and
	// Took the sum of these.
	Known  int
	Took   time.Duration
	Waited time.Duration // by ranks in waits that one of these ended
}

// row is a kind and the number of bits of a size.
type row struct{ kind, size uint8 }

var kindNames = []string{"", "request", "reply", "long request", "long reply", "put", "get", "put of a word", "atomic"}

// sized is n's power of two, rounded up.
func sized(n uint64) uint8 {
	if n == 0 {
		return 0
	}
	return uint8(bits.Len64(n-1)) + 1
}

// rowOf is that of a message, whose words count.
func rowOf(m *traffic.Message) row {
	k := row{1 + uint8(m.Class), sized(m.Size + 4*uint64(m.Words))}
	if m.Long {
		k.kind += 2
	}
	return k
}

func rowOfAccess(a *traffic.Access) row {
	k := uint8(5)
	switch a.Verb {
	case conduits.Get:
		k = 6
	case conduits.PutWord:
		k = 7
	case conduits.Atomic:
		k = 8
	}
	return row{k, sized(a.Size)}
}

func newReport(p *player) *Report {
	t := p.t
	r := &Report{t: t, Ranks: make([]Times, len(t.Ranks)), rows: map[row]*Kind{}}
	count := func(w row, bytes uint64) {
		k := r.rows[w]
		if k == nil {
			k = &Kind{Name: kindNames[w.kind]}
			if w.size > 0 {
				k.Most = 1 << (w.size - 1)
			}
			r.rows[w] = k
		}
		k.Count++
		k.Bytes += bytes
	}
	for i := range t.Messages {
		m := &t.Messages[i]
		count(rowOf(m), m.Size+4*uint64(m.Words))
	}
	for i := range t.Ranks {
		for _, it := range t.Ranks[i].Items {
			if it.Verb == traffic.Post {
				a := &t.Ranks[i].Accesses[it.N]
				count(rowOfAccess(a), a.Size)
			}
		}
	}
	return r
}

func (r *Report) took(w row, d time.Duration) {
	if k := r.rows[w]; k != nil {
		k.Known++
		k.Took += d
	}
}

func (r *Report) wait(w *row, d time.Duration) {
	if k := r.rows[*w]; k != nil {
		k.Waited += d
	}
}

// finish completes the report.
func (r *Report) finish() {
	for i := range r.Ranks {
		r.Took = max(r.Took, r.Ranks[i].Took)
	}
	for _, w := range slices.SortedFunc(maps.Keys(r.rows), func(a, b row) int {
		return (int(a.kind)-int(b.kind))<<8 + int(a.size) - int(b.size)
	}) {
		r.Kinds = append(r.Kinds, *r.rows[w])
	}
}

// mostRanks is how many ranks a report lists.
const mostRanks = 16

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...any) {
		for _, c := range cells {
			fmt.Fprintf(tw, "%v\t", c)
		}
		fmt.Fprintln(tw)
	}
	t := r.t
	recorded := t.Conduit != ""
	took, sum, then := time.Duration(0), Times{}, Times{}
	for i := range r.Ranks {
		s, k := &r.Ranks[i], &t.Ranks[i]
		took = max(took, k.Took)
		sum.Took += s.Took
		sum.Computing += s.Computing
		sum.Waiting += s.Waiting
		sum.Sending += s.Sending
		then.Took += k.Took
		then.Waiting += k.Waited
	}
	fmt.Fprintf(&b, "%d ranks: %v", len(r.Ranks), round(r.Took))
	if recorded {
		fmt.Fprintf(&b, ", recorded on %s %v", t.Conduit, round(took))
	}
	fmt.Fprintf(&b, "; of all ranks' time %s computing, %s waiting, %s sending", share(sum.Computing, sum.Took), share(sum.Waiting, sum.Took), share(sum.Sending, sum.Took))
	if recorded {
		fmt.Fprintf(&b, "; recorded %s waiting", share(then.Waiting, then.Took))
	}
	fmt.Fprintln(&b)
	head := []any{"rank", "time", "computing", "waiting", "sending", "waiting/time"}
	if recorded {
		head = append(head, "recorded", "waiting", "waiting/time")
	}
	line(head...)
	for i := range r.Ranks {
		if i == mostRanks {
			fmt.Fprintf(tw, "and %d more ranks\t\n", len(r.Ranks)-i)
			break
		}
		s, k := &r.Ranks[i], &t.Ranks[i]
		cells := []any{i, round(s.Took), round(s.Computing), round(s.Waiting), round(s.Sending), share(s.Waiting, s.Took)}
		if recorded {
			cells = append(cells, round(k.Took), round(k.Waited), share(k.Waited, k.Took))
		}
		line(cells...)
	}
	tw.Flush()
	fmt.Fprintln(&b)
	line("kind", "up to bytes", "count", "bytes", "mean time", "waits ended", "waiting/all waiting")
	for _, k := range r.Kinds {
		mean := any("-")
		if k.Known > 0 {
			mean = round(k.Took / time.Duration(k.Known))
		}
		line(k.Name, k.Most, k.Count, k.Bytes, mean, round(k.Waited), share(k.Waited, sum.Waiting))
	}
	tw.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

func share(a, b time.Duration) string {
	if b <= 0 {
		return "0.0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(a)/float64(b))
}

// round leaves four digits or so.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 10000 {
		unit *= 10
	}
	return d.Round(unit)
}
