// Package profile is where the time of a job goes, by the lines of its program: a Recorder counts what a rank
// does, Merge adds up what all have counted, and Job.Table is that for people. Figures of the classes
// put, get, atomic, request and reply are of what is begun at the endpoint, so that they are exact:
// a put that waits is one, and one wait if it had to wait at all.
package profile

import (
	"cmp"
	"encoding/json"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// The kinds of rows.
const (
	Put        = "put"
	Get        = "get"
	Atomic     = "atomic"
	Request    = "request"
	Reply      = "reply"
	Collective = "collective" // calls of all ranks of the job or of a team, barriers included
	Wait       = "wait"       // that did not end at once, but for those inside collectives
)

// Options are the value of ARGON_PROFILE and of gasrun -profile.
type Options struct {
	On     bool
	Peers  bool   // figures of each pair of ranks, too
	Sizes  bool   // the table has them by powers of two; JSON always has
	Labels bool   // goroutines carry rank and call as labels of runtime/pprof
	JSON   string // file for all figures; "": none

	// Traffic asks for the Matrix of the job, which is counted anyway: without On as well.
	Traffic bool
	Flows   string // file for it; "": it is printed alone
}

// ParseOptions reads 1 or 0, or a list, separated by commas, of peers, sizes, labels, json=FILE, traffic and traffic=FILE.
func ParseOptions(s string) (Options, error) {
	var o Options
	if s == "" || s == "0" {
		return o, nil
	}
	for _, word := range strings.Split(s, ",") {
		name, value, given := strings.Cut(word, "=")
		o.On = o.On || name != "traffic"
		switch {
		case word == "traffic":
			o.Traffic = true
		case name == "traffic" && value != "":
			o.Traffic, o.Flows = true, value
		case word == "1":
		case word == "peers":
			o.Peers = true
		case word == "sizes":
			o.Sizes = true
		case word == "labels":
			o.Labels = true
		case name == "json" && given && value != "":
			o.JSON = value
		default:
			return o, errs.BadArg("profile: %q in %q is none of 1, 0, peers, sizes, labels, json=FILE, traffic and traffic=FILE (-profile, ARGON_PROFILE)", word, s)
		}
	}
	return o, nil
}

// Row is what was counted of one kind at one place. Times are nanoseconds in JSON.
type Row struct {
	Line string `json:"line"` // of the program, as file.go:12; HandlersLine; RuntimeLine
	Call string `json:"call"` // the function of argon that the program is in there, as gas.Ptr.Put
	Kind string `json:"kind"`

	Calls uint64        `json:"calls"`
	Bytes uint64        `json:"bytes"`
	Total time.Duration `json:"total"` // of the calls
	Wait  time.Duration `json:"wait"`  // of that, without anything to do
	Min   time.Duration `json:"min"`
	Max   time.Duration `json:"max"`
	P99   time.Duration `json:"p99"` // an eighth too large at most
	// Sizes are calls by the power of two that their bytes begin at; 0 are those of none.
	Sizes map[uint64]uint64 `json:"sizes"`
	// Times are calls by how long they took, as bucket has it.
	Times map[int]uint64 `json:"times"`
	// Peers are calls and bytes by the other rank, with Options.Peers.
	Peers map[int]Traffic `json:"peers,omitempty"`
	// Last is, of calls that all ranks wait for each other in, how often each rank came last. Early calls count: mostMet of a job.
	Last map[int]uint64 `json:"last,omitempty"`
	// Ranks is how many have the row.
	Ranks int `json:"ranks"`
}

// Traffic is what goes to one peer.
type Traffic struct {
	Calls uint64 `json:"calls"`
	Bytes uint64 `json:"bytes"`
}

// What stands for lines.
const (
	HandlersLine = "(handlers)" // where a rank answers others, whatever the program does
	RuntimeLine  = "-"          // of goroutines of argon's
)

// Job is what ranks have counted together.
type Job struct {
	Ranks   int           `json:"ranks"`   // how many have been added up
	Elapsed time.Duration `json:"elapsed"` // of all of them together
	Rows    []*Row        `json:"rows"`    // those of the longest waits and times first
}

// bucket is where a time is counted: eight for each power of two.
func bucket(t time.Duration) int {
	v := uint64(max(t, 0))
	if v < 8 {
		return int(v)
	}
	l := bits.Len64(v) - 1
	return l<<3 | int(v>>(l-3)&7)
}

// most is the longest time of bucket i.
func most(i int) time.Duration {
	if i < 8 {
		return time.Duration(i)
	}
	l := i >> 3
	return time.Duration(uint64(i&7+9)<<(l-3) - 1)
}

// quantile is the time that a part q of the calls does not exceed.
func (r *Row) quantile(q float64) time.Duration {
	var keys []int
	n := uint64(0)
	for k, c := range r.Times {
		keys = append(keys, k)
		n += c
	}
	slices.Sort(keys)
	left := uint64(q * float64(n))
	for _, k := range keys {
		if c := r.Times[k]; c <= left {
			left -= c
			continue
		}
		return min(most(k), r.Max)
	}
	return r.Max
}

// size is the power of two that n bytes begin at.
func size(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return 1 << (bits.Len64(n) - 1)
}

// count adds a call.
func (r *Row) count(bytes uint64, took time.Duration) {
	if r.Times == nil {
		r.Times, r.Sizes, r.Min = map[int]uint64{}, map[uint64]uint64{}, took
	}
	r.Calls++
	r.Bytes += bytes
	r.Total += took
	r.Min, r.Max = min(r.Min, took), max(r.Max, took)
	r.Times[bucket(took)]++
	r.Sizes[size(bytes)]++
}

// add adds a row of the same place.
func (r *Row) add(o *Row) {
	if r.Calls == 0 || o.Calls > 0 && o.Min < r.Min {
		r.Min = o.Min
	}
	r.Calls += o.Calls
	r.Bytes += o.Bytes
	r.Total += o.Total
	r.Wait += o.Wait
	r.Max = max(r.Max, o.Max)
	r.Ranks += o.Ranks
	sum(&r.Sizes, o.Sizes)
	sum(&r.Times, o.Times)
	sum(&r.Last, o.Last)
	for p, t := range o.Peers {
		if r.Peers == nil {
			r.Peers = map[int]Traffic{}
		}
		u := r.Peers[p]
		r.Peers[p] = Traffic{u.Calls + t.Calls, u.Bytes + t.Bytes}
	}
}

func sum[K comparable](to *map[K]uint64, from map[K]uint64) {
	for k, v := range from {
		if *to == nil {
			*to = map[K]uint64{}
		}
		(*to)[k] += v
	}
}

// Merge adds up what ranks have counted, of which Recorder.Encode has made texts.
func Merge(texts [][]byte) (*Job, error) {
	j := &Job{}
	at := map[place]*Row{}
	for _, text := range texts {
		var o Job
		if err := json.Unmarshal(text, &o); err != nil {
			return nil, errs.BadArg("profile: what a rank has counted is no JSON: %v", err)
		}
		j.Ranks += o.Ranks
		j.Elapsed += o.Elapsed
		for _, r := range o.Rows {
			p := place{r.Line, r.Call, r.Kind}
			if at[p] == nil {
				at[p] = &Row{Line: r.Line, Call: r.Call, Kind: r.Kind}
				j.Rows = append(j.Rows, at[p])
			}
			at[p].add(r)
		}
	}
	for _, r := range j.Rows {
		r.P99 = r.quantile(0.99)
	}
	slices.SortStableFunc(j.Rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.Wait, a.Wait), cmp.Compare(b.Total, a.Total), cmp.Compare(b.Calls, a.Calls),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Call, b.Call), cmp.Compare(a.Kind, b.Kind))
	})
	return j, nil
}

// place is what makes a row.
type place struct{ line, call, kind string }
