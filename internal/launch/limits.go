package launch

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// leastTasks is how many threads a rank has at the least, and so many more the launcher
// itself needs: the Go runtime ends a process that cannot start one.
const leastTasks = 8

// checkLimits refuses to start ranks that the system's limits leave nothing for: they would
// end while their runtime begins, with a stack.
func checkLimits(ranks int) error {
	tasks, addresses := sys.TaskRoom(), sys.AddressRoom(false)
	switch need := int64(ranks+1) * leastTasks; {
	case tasks.Free < need:
		return errs.Resource("launch: %d ranks have %d threads or more: %v", ranks, need, tasks)
	case addresses.Free < conduits.RuntimeAddresses:
		return errs.Resource("launch: a rank needs %s more of addresses than the launcher: %v",
			sys.Amount(conduits.RuntimeAddresses), addresses)
	}
	return nil
}

// limited is err with the limit of the system that it comes from, unless it names one.
func limited(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch l := limitIn(true, text); {
	case l != "":
		return fmt.Errorf("%w%s", err, l)
	case strings.Contains(text, syscall.EAGAIN.Error()):
		return fmt.Errorf("%w%s", err, limitOf(sys.TaskRoom(), text))
	case strings.Contains(text, syscall.ENOMEM.Error()):
		return fmt.Errorf("%w%s", err, limitOf(memoryRoom(), text))
	}
	return err
}

func memoryRoom() sys.Room { return sys.Narrowest(sys.AddressRoom(true), sys.MemoryRoom(false)) }

// refusals are how the system, or a runtime that it has refused something and that has
// crashed, says so; and where to look if the limit is not known.
var refusals = []struct {
	room  func() sys.Room
	where string
	says  []string
}{
	{sys.FilesRoom, "ulimit -n", []string{syscall.EMFILE.Error(), "runtime: netpollinit failed"}},
	{sys.TaskRoom, "ulimit -u, or a limit of processes of the container's or the user's control group", []string{
		"failed to create new OS thread", "fatal error: newosproc", "pthread_create failed",
	}},
	{memoryRoom, "ulimit -v, ulimit -d, or memory", []string{
		"fatal error: runtime: out of memory", "fatal error: out of memory", "runtime: cannot allocate memory",
		"failed to reserve page summary memory", "runtime: cannot map pages",
	}},
}

// limitIn names the limit that texts are about which do not name it; "" if they
// are about none. here reports whether this machine's limits are those.
func limitIn(here bool, texts ...string) string {
	for _, c := range refusals {
		for _, says := range c.says {
			for _, text := range texts {
				if !strings.Contains(text, says) {
					continue
				}
				all := strings.Join(texts, "\n")
				if l := limitOf(c.room(), all); here && l != "" {
					return l
				}
				if !strings.Contains(all, c.where[:len("ulimit -n")]) {
					return " (" + c.where + ")"
				}
				return ""
			}
		}
	}
	return ""
}

// limitOf names a limit whose value text does not have. How much is left of it may have changed
// since.
func limitOf(r sys.Room, text string) string {
	if r.Free = r.Limit; r.Limit == 0 || strings.Contains(text, " allows ") && strings.Contains(text, r.Knob) {
		return ""
	}
	return ": " + r.String()
}
