package monitor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/where"
)

// A Row is what all renderings show of some ranks: one, equal ones, those of a host, or all. Of
// several, counters, rates, processors and memory are sums.
type Row struct {
	Name  string        `json:"name"`
	Ranks int           `json:"ranks"`
	State string        `json:"state,omitempty"` // of hosts and all, how many ranks are in which
	Doing string        `json:"doing,omitempty"`
	Since time.Duration `json:"since,omitempty"` // how long the first one has been so; 0: not known

	Sent           uint64  `json:"sent"` // messages
	Received       uint64  `json:"received"`
	Accesses       uint64  `json:"accesses"` // puts, gets and atomics that go by the transport
	SentRate       float64 `json:"sentRate"` // a second
	ReceivedRate   float64 `json:"receivedRate"`
	AccessRate     float64 `json:"accessRate"`
	Processors     float64 `json:"processors"` // that ran on average
	ProcessorTime  float64 `json:"processorTime"`
	ResidentMemory int64   `json:"memory"`
}

// row sums up the answers at indices in g.
func (v *View) row(name string, g []int) Row {
	r := Row{Name: name, Ranks: len(g)}
	for _, i := range g {
		a, s := &v.Answers[i], &v.rates[i]
		r.Sent, r.Received, r.Accesses = r.Sent+a.Sent, r.Received+a.Received, r.Accesses+a.Accesses
		r.SentRate, r.ReceivedRate, r.AccessRate = r.SentRate+s.sent, r.ReceivedRate+s.received, r.AccessRate+s.accesses
		r.Processors, r.ProcessorTime, r.ResidentMemory = r.Processors+s.processors, r.ProcessorTime+a.Ran.Seconds(), r.ResidentMemory+a.Memory
	}
	return r
}

// states says how many of the ranks are in which state.
func (v *View) states(g []int) string {
	var n [where.Ended + 1]int
	for _, i := range g {
		n[v.Answers[i].State]++
	}
	var parts []string
	for s, k := range n {
		if k > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", where.State(s), k))
		}
	}
	return strings.Join(parts, ", ")
}

// Total is the row of all ranks.
func (v *View) Total() Row {
	all := make([]int, len(v.Answers))
	for i := range all {
		all[i] = i
	}
	r := v.row(fmt.Sprintf("%d ranks", v.Size), all)
	if r.State = v.states(all); len(all) < v.Size {
		r.State += fmt.Sprintf(" of the %d that the process answers for", len(all))
	}
	return r
}

// ByHost has a row for each host.
func (v *View) ByHost() (rows []Row) {
	i := 0
	for _, h := range v.Hosts {
		var g []int
		for ; i < len(v.Answers) && v.Answers[i].Rank < h.First+h.Size; i++ {
			g = append(g, i)
		}
		r := v.row(h.label(), g)
		r.State = v.states(g)
		rows = append(rows, r)
	}
	return rows
}

func (h *Host) label() string {
	if h.Name == "" {
		return "localhost"
	}
	return h.Name
}

// Rows has a row for each rank or, if there are more than most, for equal ones, as reports have it. Of more places
// than most the last row has the rest.
func (v *View) Rows(most int) (rows []Row) {
	groups := where.Groups(v.Answers, most)
	for i, g := range groups {
		if i == most-1 && len(groups) > most {
			rest := slices.Concat(groups[i:]...)
			r := v.row(fmt.Sprintf("in %d further places", len(groups)-i), rest)
			r.State = v.states(rest)
			return append(rows, r)
		}
		a := &v.Answers[g[0]]
		name := a.Label()
		if len(g) > 1 {
			name = "ranks " + g.Spans(v.Answers)
		}
		r := v.row(name, g)
		r.State, r.Doing, r.Since = a.State.String(), errs.Line(a.Doing(), 0), a.Since
		rows = append(rows, r)
	}
	return rows
}

// A Traffic is a pair of ranks, or of hosts by their places in View.Hosts, with what its counters grew by a second since the view before.
type Traffic struct {
	where.Pair
	CountRate float64 `json:"countRate"`
	ByteRate  float64 `json:"byteRate"`
}

// Traffic is that of the largest most pairs of ranks. If there are more ranks, and several hosts, it is that of pairs of hosts: the
// sums of the largest pairs of each rank.
func (v *View) Traffic(most int) (all []Traffic, ofHosts bool) {
	if v.Size <= most || len(v.Hosts) < 2 {
		for _, p := range where.Pairs(v.Answers, most) {
			all = append(all, v.traffic(p))
		}
		return all, false
	}
	host := func(rank int) int {
		return sort.Search(len(v.Hosts), func(i int) bool { return v.Hosts[i].First > rank }) - 1
	}
	places := map[[2]int]int{} // in all
	for i := range v.Answers {
		for _, p := range v.Answers[i].Peers {
			t := v.traffic(where.Pair{From: v.Answers[i].Rank, Peer: p})
			t.From, t.Rank = host(t.From), host(t.Rank)
			k, known := places[[2]int{t.From, t.Rank}]
			if !known {
				places[[2]int{t.From, t.Rank}] = len(all)
				all = append(all, t)
				continue
			}
			s := &all[k]
			s.Count, s.Bytes, s.NoCredit, s.Resent = s.Count+t.Count, s.Bytes+t.Bytes, s.NoCredit+t.NoCredit, s.Resent+t.Resent
			s.CountRate, s.ByteRate = s.CountRate+t.CountRate, s.ByteRate+t.ByteRate
		}
	}
	slices.SortStableFunc(all, func(a, b Traffic) int { return cmp.Compare(b.Weight(), a.Weight()) })
	return all[:min(len(all), most)], true
}

// traffic is p with its rates: 0 if it was not among its rank's largest in the view before.
func (v *View) traffic(p where.Pair) Traffic {
	t := Traffic{Pair: p}
	was := v.last[p.From]
	i := slices.IndexFunc(was.Peers, func(w where.Peer) bool { return w.Rank == p.Rank })
	if passed := (v.At - was.at).Seconds(); i >= 0 && passed > 0 {
		t.CountRate, t.ByteRate = grown(p.Count, was.Peers[i].Count)/passed, grown(p.Bytes, was.Peers[i].Bytes)/passed
	}
	return t
}

// mostRows is how many ranks, hosts and pairs of ranks the page shows one by one.
const mostRows = 256

// JSON is the view as the page gets it, made once for all viewers.
func (v *View) JSON() []byte {
	v.once.Do(func() {
		hosts := v.ByHost()
		pairs, ofHosts := v.Traffic(mostRows)
		v.json, _ = json.Marshal(struct { // strings and numbers
			Job     string        `json:"job"`
			Program string        `json:"program"`
			At      time.Duration `json:"at"`
			Total   Row           `json:"total"`
			Hosts   []Row         `json:"hosts"`
			Rows    []Row         `json:"rows"`
			Pairs   []Traffic     `json:"pairs"`
			OfHosts bool          `json:"ofHosts,omitempty"`
		}{v.ID, v.Program, v.At, v.Total(), hosts[:min(len(hosts), mostRows)], v.Rows(mostRows), pairs, ofHosts})
	})
	return v.json
}

// Report is the report of where ranks wait.
func (v *View) Report() string {
	var b strings.Builder
	if cause, _ := where.Cause(v.Answers); cause != "" {
		fmt.Fprintf(&b, "%s\n", errs.Line(cause, 0))
	}
	for _, line := range where.Report(v.Answers, where.FewLines, true) {
		fmt.Fprintf(&b, "%s\n", errs.Line(line, 0))
	}
	return b.String()
}

// Text is the view as at most height lines of at most width characters.
func (v *View) Text(width, height int) []string {
	rows := []Row{v.Total()}
	if hosts := v.ByHost(); len(hosts) > 1 {
		rows = append(rows, hosts[:min(len(hosts), max(height/3, 1))]...)
	}
	rows = append(rows, v.Rows(max(min(where.FewLines, height-1-len(rows)), 1))...)
	names := 8
	for i := range rows {
		r := &rows[i]
		if r.Name, _, _ = strings.Cut(r.Name, " ("); r.Ranks > 1 && r.Doing != "" {
			r.Name = fmt.Sprintf("%s: %d", r.Name, r.Ranks)
		}
		names = max(names, min(utf8.RuneCountInString(r.Name), 24))
	}
	const form = "%-*s %-8s %6s %6s %6s %5s %6s %6s  %s"
	lines := []string{fmt.Sprintf(form, names, v.At.Round(time.Second), "state", "sent/s", "recv/s", "acc/s", "procs", "memory", "since", "what for")}
	for _, r := range rows {
		if r.Doing == "" { // several ranks in several states
			r.State, r.Doing = "", r.State
		}
		since := ""
		if s := r.Since.Round(time.Second); s > 0 {
			since = s.String()
		}
		lines = append(lines, fmt.Sprintf(form, names, cut(r.Name, names), r.State, short(r.SentRate), short(r.ReceivedRate), short(r.AccessRate),
			fmt.Sprintf("%.2f", r.Processors), short(float64(r.ResidentMemory)), since, r.Doing))
	}
	lines = lines[:min(len(lines), height)]
	for i := range lines {
		lines[i] = cut(lines[i], width)
	}
	return lines
}

// cut is s with at most n characters.
func cut(s string, n int) string {
	for utf8.RuneCountInString(s) > n {
		_, k := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-k]
	}
	return s
}

// short is a count in at most five characters, such as 12.3k.
func short(x float64) string {
	units := " kMGTP"
	for len(units) > 1 && x >= 999.5 {
		x, units = x/1000, units[1:]
	}
	if units[0] == ' ' {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g%c", x, units[0])
}

// A Screen is a terminal, or a file that stands for one, on which what is written scrolls above lines that are
// replaced; in a file they come one below the other.
type Screen struct {
	mu     sync.Mutex
	w      io.Writer
	size   func() (width, height int) // nil: a file
	lines  []string                   // of the view
	drawn  int                        // lines of it on the screen
	inside bool                       // what was written last has not ended its line
}

// NewScreen writes to w, which is a terminal if size is not nil.
func NewScreen(w io.Writer, size func() (width, height int)) *Screen {
	return &Screen{w: w, size: size}
}

// Write writes b above the view.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if s.size == nil {
		s.inside = b[len(b)-1] != '\n'
		return s.w.Write(b)
	}
	head := s.erasure()
	s.inside = b[len(b)-1] != '\n'
	tail := s.picture()
	n, err := s.w.Write(slices.Concat(head, b, tail))
	return max(0, min(n-len(head), len(b))), err
}

// erasure removes the view from the screen, below whose last line the cursor is.
func (s *Screen) erasure() []byte {
	if s.drawn == 0 {
		return nil
	}
	b := fmt.Appendf(nil, "\x1b[%dA\x1b[J", s.drawn) // CUU, ED (ECMA-48, 8.3)
	s.drawn = 0
	return b
}

// picture draws it, unless a line of output is unfinished.
func (s *Screen) picture() (b []byte) {
	if s.inside {
		return nil
	}
	for _, l := range s.lines {
		b = append(append(b, l...), '\n')
	}
	s.drawn = len(s.lines)
	return b
}

// Leave has the view stay as it is: what follows is written below it.
func (s *Screen) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines, s.drawn = nil, 0
}

// Show replaces the view, and reports whether it could be written.
func (s *Screen) Show(v *View) bool {
	width, height := 200, where.FewLines+10
	if s.size != nil {
		width, height = s.size()
		height-- // the line of the cursor
	}
	lines := v.Text(width, height)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = lines
	var b []byte
	if s.size != nil {
		b = s.erasure()
	}
	_, err := s.w.Write(append(b, s.picture()...))
	return err == nil
}
