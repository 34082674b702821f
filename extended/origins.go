package extended

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/argon-go/argon/internal/sys/origin"
)

// origins remembers, with Config.Origins, where handles and open access regions
// come from, so that those that are forgotten can be named.
type origins struct {
	mu      sync.Mutex
	handles map[uint64]begun
	regions map[*Region]begun
	n       uint64
}

// begun is where something comes from.
type begun struct {
	no   uint64 // in the order in which they were begun
	what string
	dst  int // -1: several
	at   string
}

func (b begun) String() string {
	what := strings.TrimPrefix(b.what, "extended: ")
	if b.dst < 0 {
		return fmt.Sprintf("%s (%s)", what, b.at)
	}
	return fmt.Sprintf("%s, rank %d (%s)", what, b.dst, b.at)
}

func (s *origins) begin(what string, dst int) begun {
	s.n++
	return begun{s.n, what, dst, origin.Caller()}
}

// note keeps where handle name comes from.
func (t *table) note(name uint64, what string, dst int) {
	if s := t.origins; s != nil {
		s.mu.Lock()
		s.handles[name] = s.begin(what, dst)
		s.mu.Unlock()
	}
}

// noteRegion notes that r is open, or not any more.
func (t *table) noteRegion(r *Region, open bool) {
	s := t.origins
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.regions[r] = s.begin("access region", -1)
	} else {
		delete(s.regions, r)
	}
}

// forget is told that handle name is synchronized.
func (s *origins) forget(name uint64) {
	s.mu.Lock()
	delete(s.handles, name)
	s.mu.Unlock()
}

// Unsynced reports whether operations were begun that did not complete at once, and no synchronization
// has looked at since.
func (r *Region) Unsynced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used != 0
}

// mostForgotten is how many lines Forgotten has.
const mostForgotten = 8

// Forgotten lists, with Config.Origins, the handles that are not synchronized and
// the access regions that are open: what was begun, towards which rank, in which line
// of the program. handles and regions are how many there are.
func (x *Initiator) Forgotten() (handles, regions int, list []string) {
	s := x.table.origins
	if s == nil {
		return x.Outstanding(), 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []begun
	for _, b := range s.handles {
		all = append(all, b)
	}
	for _, b := range s.regions {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b begun) int { return int(a.no) - int(b.no) })
	times := map[string]int{}
	for _, b := range all {
		t := b.String()
		if times[t]++; times[t] == 1 {
			list = append(list, t)
		}
	}
	more := len(list) - mostForgotten
	list = list[:min(len(list), mostForgotten)]
	for i, t := range list {
		if times[t] > 1 {
			list[i] = fmt.Sprintf("%d times %s", times[t], t)
		}
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("and %d more places", more))
	}
	return len(s.handles), len(s.regions), list
}
