package rt

import (
	"github.com/argon-go/argon/internal/upc/races"
	"github.com/argon-go/argon/segment"
)

// A program that is built with tag upcraces looks for its own data races if it is simulated: accesses
// and what orders them tell a detector, where checked says so. Of windows, groups and PutAsync the
// compiler makes none then (gen.Options.Checked).

// detector is that of this process's job.
var detector *races.Detector

// lookForRaces gives the thread the job's detector.
func lookForRaces(t *Thread) {
	if t.n.Layers().Conduit.Conduit() != "sim" {
		return
	}
	if detector == nil {
		detector = races.New(t.threads, func(p uint64) string { return object(t, Phaseless(p)) })
	}
	t.races = detector
}

// object is the name of what lies at p.
func object(t *Thread, p Phaseless) string {
	table.mu.Lock()
	defer table.mu.Unlock()
	for i, at := range t.statics {
		if o := table.objects[i]; p.Addr() >= at && p.Addr() < at+segment.NLA(o.LocalSize(t.threads)) {
			return o.Name
		}
	}
	return "allocated memory"
}

// saw looks at an access to n bytes at p that is not part of a strict one.
func saw(t *Thread, p Phaseless, n int, k races.Access) {
	if checked && !t.strict {
		t.races.Accessed(t.me, uint64(p), n, k)
	}
}

// own is n bytes of the calling thread's memory at p, for an access.
func own(t *Thread, p Phaseless, n int, k races.Access) []byte {
	saw(t, p, n, k)
	return t.memory(p, n)
}
