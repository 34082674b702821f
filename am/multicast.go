package am

import (
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// MaxMulticast is the largest payload of Multicast in bytes, at most MaxMedium and the same
// on all ranks. 0: the conduit has no conduits.Card, and Multicast is not to be
// called.
func (e *Messenger) MaxMulticast() int {
	m, ok := conduits.MulticastOf(e.ep)
	if !ok {
		return 0
	}
	return min(m.MaxMulticast(), int(e.max))
}

// Multicast is RequestMedium to all other ranks by one message, of 0 to MaxMulticast
// bytes, which switches replicate. It waits while ranks have not taken earlier ones.
func (e *Messenger) Multicast(h HandlerID, payload []byte, args ...uint32) error {
	const op = "multicast"
	if err := e.check(op, e.Rank(), h, Medium|Request, len(args), len(payload)); err != nil {
		return err
	}
	m, ok := conduits.MulticastOf(e.ep)
	if most := e.MaxMulticast(); !ok || len(payload) > most {
		return errs.BadArg("am: %s to handler %d (%s): payload of %d bytes, the most is %d (MaxMulticast)", op, h, e.handlerName(h), len(payload), most)
	}
	var st conduits.Status
	try := func() bool {
		st = m.Multicast(tagMedium|conduits.Tag(h), noescape(args), noescape(payload))
		return st != conduits.NoCredit
	}
	if !try() {
		if err := e.wait(multicastWait{}, try, nil); err != nil {
			return err
		}
	}
	if st == conduits.Dead {
		return fmt.Errorf("am: %s: %w", op, e.ep.Err())
	}
	return nil
}

// multicastWait describes Multicast's wait for credit.
type multicastWait struct{}

// Blocked says so to people.
func (multicastWait) Blocked() string {
	return "am: multicast waits for ranks that have not taken earlier ones: one does not poll, or is slow"
}
