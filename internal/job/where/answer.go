// Package where is what is known of a job that may hang: where each rank stands, as its process
// finds by its goroutines' stacks and by what it waits for; which rank is the cause; and whether
// any has got on. Launcher and ranks share it: a rank's answer travels as one line.
package where

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// A State is what a rank, or a goroutine of it, does.
type State byte

// The states. A rank has that of the goroutine which it runs on.
const (
	Unknown State = iota // of a process that has not answered
	Waits                // in argon, for what Waits says
	Inside               // in argon, and does not sleep: it polls, or moves data
	Runs                 // the program's own code
	Goes                 // it will go on by itself, or by something outside the job: it sleeps, reads, is in a system call
	Blocked              // on a mutex, channel or the like of Go
	Stopped              // by a signal or a debugger
	Ended                // the process has, or the rank's function
)

// String is the state in a word or two.
func (s State) String() string {
	return [...]string{"unknown", "waits", "in argon", "runs", "goes on", "blocked", "stopped", "ended"}[min(s, Ended)]
}

// An Answer is what is known of where a rank stands.
type Answer struct {
	Rank  int    `json:"-"`
	Name  string `json:"-"` // in reports; "" for "rank N"
	State State  `json:"s"`
	// Text is what the rank does, such as "blocked on a channel", and Line the place in the
	// program, as file.go:12; Call is argon's function that the program is in there.
	Text string `json:"t,omitempty"`
	Line string `json:"l,omitempty"`
	Call string `json:"c,omitempty"`
	// Needs are ranks without which a wait does not end: each has to come to it, or with
	// Served only to answer, which a rank that waits does.
	Needs  []int `json:"n,omitempty"`
	Served bool  `json:"v,omitempty"`
	// In is what another rank has begun and the wait is in: a handler or a task. "": the rank's own function.
	In string `json:"i,omitempty"`
	// Others are further goroutines of the rank, as texts. Busy is set if one of them goes on,
	// Loose if one may do what the rank waits for, for all that is known.
	Others []string `json:"o,omitempty"`
	Busy   bool     `json:"b,omitempty"`
	Loose  bool     `json:"f,omitempty"`
	// Moves grows with each message and operation. Open are operations under way.
	Moves          uint64        `json:"m,omitempty"`
	Sent, Received uint64        `json:",omitempty"`
	Accesses       uint64        `json:"a,omitempty"` // puts, gets and atomics
	Ran            time.Duration `json:"u,omitempty"` // processor time of its process, told by one rank of it
	Memory         int64         `json:"r,omitempty"` // that is resident, of the same
	Held           string        `json:"h,omitempty"` // what kept the process of a rank that runs from running
	Open           int           `json:"p,omitempty"`
	Counts         string        `json:"k,omitempty"` // for -v
	Peers          []Peer        `json:"e,omitempty"` // the largest, see Met
	Since          time.Duration `json:"-"`           // how long nothing of this has changed; 0: not known
}

// mostText bounds texts of an answer, and mostLine all of it: a line that is written at once is not torn (PIPE_BUF, pipe(7)).
const mostText, mostOthers, mostLine = 400, 4, 4096

// Encode is the answer as the line that a launcher reads.
func (a *Answer) Encode() string {
	b := *a
	b.Text, b.Held, b.Counts = errs.Line(a.Text, mostText), errs.Line(a.Held, mostText), errs.Line(a.Counts, 3*mostText)
	b.Needs = a.Needs[:min(len(a.Needs), mostText/8)]
	b.Others = nil
	for _, o := range a.Others[:min(len(a.Others), mostOthers)] {
		b.Others = append(b.Others, errs.Line(o, mostText))
	}
	text, err := json.Marshal(&b)
	if err != nil { // strings and numbers
		text = fmt.Appendf(nil, "%v", err)
	}
	line := jobenv.WhereLine + strconv.Itoa(a.Rank) + jobenv.WhereWaits + string(text)
	if len(line) >= mostLine && a.Peers != nil {
		b.Peers = nil
		return b.Encode()
	}
	return line
}

// Decode is the answer of rank that a line had after its number.
func Decode(rank int, text string) Answer {
	var a Answer
	if json.Unmarshal([]byte(text), &a) != nil {
		a = Answer{Text: errs.Line(text, 4*mostText)}
	}
	a.Rank, a.State = rank, min(a.State, Ended)
	return a
}

// Label is the rank in reports.
func (a *Answer) Label() string {
	if a.Name != "" {
		return a.Name
	}
	return "rank " + strconv.Itoa(a.Rank)
}

// brief is what the rank does, and where, for how long.
func (a *Answer) brief() string {
	if s := a.Since.Round(time.Second); s > 0 {
		return fmt.Sprintf("%s for %v", a.Doing(), s)
	}
	return a.Doing()
}

// held is what kept the process from running, as the end of a text.
func (a *Answer) held() string {
	if a.Held == "" {
		return ""
	}
	return " (" + a.Held + ")"
}

// Doing is what the rank does, and where.
func (a *Answer) Doing() string {
	var b strings.Builder
	if b.WriteString(a.Text); a.In != "" {
		fmt.Fprintf(&b, ", in %s", a.In)
	}
	if a.Line != "" {
		if a.State == Waits || a.In != "" {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " at %s", a.Line)
	}
	if a.Call != "" {
		fmt.Fprintf(&b, " (%s)", a.Call)
	}
	return b.String()
}

// acts begin the texts of waits for what another rank does. All others are for operations, of which no
// counter tells how far they are.
var acts = [...]string{"barrier phase", "collective call", "lock ", "until the word", "until words", "call of", "a condition of"}

// Wait says for what a rank waits: texts are those of its goroutines' conduits.Blocked, its own first. far: what it
// has begun may take its time on a network.
func (a *Answer) Wait(texts []string, far bool) {
	// Anything may make a condition of the program true, a timer too.
	a.Loose = a.Loose || len(texts) > 0 && strings.HasPrefix(texts[0], "a condition of")
	if len(texts) > 0 && !slices.ContainsFunc(acts[:], func(s string) bool { return strings.HasPrefix(texts[0], s) }) {
		a.Open++
		a.Busy = a.Busy || far && !strings.HasPrefix(texts[0], "am: ")
	}
	if len(texts) == 0 {
		a.Text = "a call that looks whether it may go on"
		return
	}
	a.Text = texts[0]
	a.Needs, a.Served = needs(a.Text)
	a.Others = append(a.Others, texts[1:]...)
}

// Other adds a goroutine of the rank that is not its own; what those that wait do, Wait has.
func (a *Answer) Other(o Answer) {
	if o.State == Waits {
		if o.Line == "" {
			return
		}
		o.Text = "waits"
	}
	a.Others = append(a.Others, o.brief())
}

var ranksIn = regexp.MustCompile(`\branks? (\d+(?: to \d+)?(?:(?:, | and )\d+(?: to \d+)?)*)( more)?`)

// needs are the ranks that the text of a conduits.Blocked names first, as that has to; served
// reports whether these only have to answer.
func needs(text string) (ranks []int, served bool) {
	m := ranksIn.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	list := strings.Split(strings.ReplaceAll(m[1], " and ", ", "), ", ")
	if m[2] != "" {
		list = list[:len(list)-1]
	}
	for _, part := range list {
		from, to, several := strings.Cut(part, " to ")
		a, _ := strconv.Atoi(from)
		b := a
		if several {
			b, _ = strconv.Atoi(to)
		}
		for r := a; r <= b && len(ranks) < mostText; r++ {
			ranks = append(ranks, r)
		}
	}
	return ranks, !strings.Contains(text, "waiting for rank") && !strings.Contains(text, "hold")
}
