package where

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/sys/origin"
)

// A Goroutine is one of the dump of all stacks that runtime.Stack makes.
type Goroutine struct {
	ID, Parent int
	State      string // as the dump has it, such as "chan receive"
	Rank       int    // index of the rank that it belongs to, -1: none
	Main       bool   // it is the rank's own
	frames     []frame
}

// frame is one call, innermost first.
type frame struct {
	function, args, file string
	line                 int
}

// runner is the method whose frame is on the stack of every rank; its second argument is the
// rank's index in its process.
const runner = "github.com/argon-go/argon/conduits/boot.(*run).rank"

// dumped is how long the last dump was. All goroutines stand still for each try to make one.
var dumped atomic.Int64

// Stacks are the goroutines of this process.
func Stacks() []Goroutine {
	for n := max(1<<16, int(dumped.Load())*5/4); ; n *= 4 {
		b := make([]byte, n)
		if k := runtime.Stack(b, true); k < n || n >= 64<<20 {
			dumped.Store(int64(k))
			return parse(string(b[:k]))
		}
	}
}

// parse reads a dump. What it does not understand it leaves out.
func parse(dump string) []Goroutine {
	var all []Goroutine
	for part := range strings.SplitSeq(dump, "\n\n") {
		head, rest, _ := strings.Cut(strings.TrimPrefix(part, "\n"), "\n")
		id, state, ok := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
		g := Goroutine{Rank: -1}
		var err error
		if g.ID, err = strconv.Atoi(id); !ok || err != nil {
			continue
		}
		if i, j := strings.IndexByte(state, '['), strings.LastIndexByte(state, ']'); i >= 0 && j > i {
			g.State, _, _ = strings.Cut(state[i+1:j], ",")
		}
		lines := strings.Split(rest, "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			var f frame
			if made, ok := strings.CutPrefix(lines[i], "created by "); ok {
				if j := strings.LastIndex(made, " in goroutine "); j >= 0 {
					g.Parent, _ = strconv.Atoi(made[j+len(" in goroutine "):])
				}
				break
			}
			f.function = lines[i]
			if j := strings.LastIndexByte(lines[i], '('); j > 0 && strings.HasSuffix(lines[i], ")") {
				f.function, f.args = lines[i][:j], lines[i][j+1:len(lines[i])-1]
			}
			at, _, _ := strings.Cut(strings.TrimPrefix(lines[i+1], "\t"), " ")
			if j := strings.LastIndexByte(at, ':'); j > 0 {
				f.file = at[:j]
				f.line, _ = strconv.Atoi(at[j+1:])
			}
			if f.function == runner {
				g.Main = true
				_, index, _ := strings.Cut(f.args, ", ")
				if k, err := strconv.ParseInt(strings.TrimSuffix(index, "?"), 0, 64); err == nil {
					g.Rank = int(k)
				}
			}
			g.frames = append(g.frames, f)
		}
		all = append(all, g)
	}
	inherit(all)
	return all
}

// inherit gives goroutines the rank of the one that has started them.
func inherit(all []Goroutine) {
	by := make(map[int]*Goroutine, len(all))
	for i := range all {
		by[all[i].ID] = &all[i]
	}
	for changed := true; changed; {
		changed = false
		for i := range all {
			if p := by[all[i].Parent]; all[i].Rank < 0 && p != nil && p.Rank >= 0 {
				all[i].Rank, changed = p.Rank, true
			}
		}
	}
}

// library is the folder of Go's own packages in this program's symbols; "" if they were trimmed.
var library = sync.OnceValue(func() string {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	f, _ := frames.Next() // runtime.Callers
	dir, _, _ := strings.Cut(f.File, "runtime/")
	return dir
})

// Program reports whether a function, whose code is in file, is of the program: neither argon's nor Go's own, by which argon calls the
// system (golang.org/x/sys).
func Program(function, file string) bool {
	if origin.Own(function, file) || strings.HasPrefix(function, "golang.org/x/sys/") {
		return false
	}
	dir := library()
	if dir != "" {
		return !strings.HasPrefix(file, dir)
	}
	first, _, nested := strings.Cut(function, "/")
	return strings.Contains(first, ".") && nested || strings.HasPrefix(function, "main.")
}

// program reports whether f is a function of the program.
func (f *frame) program() bool { return Program(f.function, f.file) }

// Place is a line of a file as file.go:12.
func Place(file string, line int) string {
	return file[strings.LastIndexByte(file, '/')+1:] + ":" + strconv.Itoa(line)
}

// place is f's line.
func (f *frame) place() string { return Place(f.file, f.line) }

// Short is a function's name without the folders of its package and type arguments.
func Short(function string) string {
	s := strings.NewReplacer("[...]", "", "(*", "", ")", "").Replace(function)
	return s[strings.LastIndexByte(s, '/')+1:]
}

// short is the function's name as Short has it.
func (f *frame) short() string { return Short(f.function) }

// Look is what g does. Text is empty in state Waits: what it waits for g's stack does not tell.
func (g *Goroutine) Look() Answer {
	var a Answer
	inner := -1 // the innermost frame of the program
	for i := range g.frames {
		if g.frames[i].program() {
			inner = i
			break
		}
	}
	above := g.frames
	if inner >= 0 {
		above = g.frames[:inner]
		a.Line = g.frames[inner].place()
	}
	ours := -1 // the outermost frame of argon above that
	waits := false
	for i := range above {
		if origin.Own(above[i].function, above[i].file) && !strings.HasPrefix(above[i].function, "runtime.") {
			ours = i
			waits = waits || waiting(above[i].function)
		}
	}
	if inner < 0 && (ours < 0 || !g.Main) { // a helper of argon's own
		return a
	}
	idle := g.State != "running" && g.State != "runnable"
	switch {
	case ours >= 0 && (waits || idle && !strings.HasPrefix(g.State, "GC")):
		a.State, a.Call = Waits, above[ours].short()
		if inner < 0 {
			a.Call = "" // the runtime's own: attach, or the end
		}
	case ours >= 0:
		a.State, a.Text, a.Call = Inside, "in argon and awake,", above[ours].short()
	default:
		a.State, a.Text = g.outside(above)
	}
	if inner >= 0 {
		a.In = g.handles(inner)
	}
	return a
}

// waiting reports whether a function of argon is one that waits.
func waiting(function string) bool {
	name := function[strings.LastIndexByte(function, '.')+1:]
	switch name {
	case "WaitFor", "waitInside", "Park":
		return true
	}
	return false
}

// handles names the function of the program that a message or a call of another rank has begun,
// within which the frame is.
func (g *Goroutine) handles(inner int) string {
	last := inner
	for i := inner; i < len(g.frames); i++ {
		f := &g.frames[i]
		if f.program() {
			last = i
			continue
		}
		if i > last && (strings.HasPrefix(f.function, "github.com/argon-go/argon/am.(*Messenger).") || strings.HasPrefix(f.function, "github.com/argon-go/argon/gas.(*Node).onCall") ||
			strings.HasPrefix(f.function, "github.com/argon-go/argon/gas.(*work).")) {
			h := &g.frames[last]
			return h.short() + ", which another rank has called"
		}
	}
	return ""
}

// outside is what a goroutine does that is not in argon.
func (g *Goroutine) outside(above []frame) (State, string) {
	for i := range above {
		if f := &above[i]; f.function == "os.(*File).Read" && strings.HasPrefix(f.args, fmt.Sprintf("%p", os.Stdin)) {
			return Goes, "reads standard input"
		}
	}
	switch s := g.State; {
	case s == "running", s == "runnable":
		return Runs, "runs"
	case strings.HasPrefix(s, "GC"):
		return Runs, "waits for the garbage collector"
	case s == "sleep":
		return Goes, "sleeps (time.Sleep)"
	case s == "IO wait":
		return Goes, "reads or writes a file or connection"
	case s == "syscall":
		return Goes, "in a system call"
	case strings.HasPrefix(s, "select"):
		return Blocked, "blocked in a select"
	case strings.HasPrefix(s, "chan"):
		return Blocked, "blocked on a channel (" + s + ")"
	case strings.HasPrefix(s, "sync.Mutex"):
		return Blocked, "blocked on a mutex"
	case strings.HasPrefix(s, "sync."):
		return Blocked, "blocked in " + s
	}
	return Blocked, "blocked (" + g.State + ")"
}

// Finds reports whether g's stack has a wait of what is at address, as %p prints it.
func (g *Goroutine) Finds(address string) bool {
	for i := range g.frames {
		if f := &g.frames[i]; waiting(f.function) && strings.Contains(f.args, address+"}") {
			return true
		}
	}
	return false
}
