package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Times of the launcher's reports of ranks that others may wait for, so that the
// program is not searched for an error. Tests have less patience.
var (
	stillEvery = 2 * time.Second  // between looks at up to stillRanks processes
	stillFirst = 10 * time.Second // until the first word
)

const (
	stillRanks = 256              // for more ranks looks are rarer
	stillMost  = 10 * time.Minute // between words about one rank
	stillNamed = 4                // ranks that one line names
)

// notAttached is the kind of ranks whose process the job has not heard of.
const notAttached = "not attached"

// A still is how long a rank has been in a state that no other rank can do anything about.
type still struct {
	kind string        // as messages have it; "": none
	last time.Duration // how long
	next time.Duration // when it is told of
}

// A stillWatch looks at all ranks from time to time.
type stillWatch struct {
	ranks   []still
	every   time.Duration
	looking bool // the hosts have been asked
}

// newStillWatch returns nil if nothing is to be said.
func (j *job) newStillWatch() *stillWatch {
	if j.Quiet {
		return nil
	}
	return &stillWatch{ranks: make([]still, len(j.ranks)), every: stillEvery * time.Duration(1+len(j.ranks)/stillRanks)}
}

// lookStill looks at the processes of all ranks, in a goroutine of its own, for hosts may be
// silent.
func (j *job) lookStill(w *stillWatch) {
	if j.ending || j.dump.begun || w.looking {
		return
	}
	w.looking = true
	by := j.byHost(j.alive())
	go func() {
		all := look(by)
		j.post(func() {
			w.looking = false
			j.tellStill(w, all)
		})
	}()
}

// tellStill notes what processes do, and tells of those that have been still for long.
func (j *job) tellStill(w *stillWatch, seen map[int]process) {
	if j.ending || j.dump.begun {
		return
	}
	attached := false
	for r := range j.ranks {
		st := j.ranks[r].State
		if j.ranks[r].live {
			st = j.memory.State(r)
		}
		attached = attached || st == Attached || st == Joined
	}
	lines := map[string][]string{} // what holds, of which ranks
	help := map[string]string{}
	for r := range j.ranks {
		s, p := &w.ranks[r], seen[r]
		starting := j.ranks[r].live && j.memory.State(r) == Starting
		kind := ""
		switch {
		case !j.ranks[r].live || p.pid == 0 || starting && slices.Contains(j.Freeze, r): // announced
		case p.stopped():
			kind = p.describe()
		case p.state == 'D':
			kind = p.describe()
		case attached && starting && !j.single():
			kind = notAttached
		}
		if kind != s.kind {
			*s = still{kind: kind, next: stillFirst}
			continue
		}
		if s.last += w.every; kind == "" || s.last < s.next {
			continue
		}
		s.next = s.last + min(5*s.last, stillMost)
		last := s.last.Round(time.Second)
		key := fmt.Sprintf("been %s for %v", kind, last)
		if kind == notAttached {
			key = fmt.Sprintf("%s for %v while others have, and its process is %s", kind, last, p.describe())
		}
		lines[key] = append(lines[key], fmt.Sprintf("%s (pid %d%s)", j.name(r), p.pid, on(j.ranks[r].host.label))) // p may stand behind a wrapper
		if p.stopped() {
			help[key] = fmt.Sprintf(" (state %c: kill -CONT lets it go on)", p.state)
		} else if p.state == 'D' {
			help[key] = " (state D: the kernel waits for a disk or a network file system)"
		}
	}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		ranks := lines[key]
		more := ""
		if len(ranks) > stillNamed {
			more = fmt.Sprintf(" and %d more", len(ranks)-stillNamed)
			ranks = ranks[:stillNamed]
		}
		verb := "has"
		if len(lines[key]) > 1 {
			verb = "have"
		}
		j.log.printf("gasrun: %s%s %s %s%s", strings.Join(ranks, ", "), more, verb, key, help[key])
	}
}
