package launch

import (
	"sort"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// bootstraps says for each conduit how the launcher prepares a job for it. A
// conduit between hosts attaches here with a form of its own.
var bootstraps = map[string]func(size int, segment uint64) (Memory, error){}

func checkConduit(name string) error {
	if bootstraps[name] != nil {
		return nil
	}
	return errs.BadArg("launch: no conduit %q; known: %s (-conduit, ARGON_CONDUIT)", name, strings.Join(Conduits(), ", "))
}

// Conduits lists the conduits that jobs can be started with, sorted.
func Conduits() []string {
	names := make([]string, 0, len(bootstraps))
	for n := range bootstraps {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
