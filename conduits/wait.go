package conduits

// Wait polls ep until cond holds: it spins, then yields, then parks, as the
// endpoint advises. cond must be cheap and must not poll; it may have an effect
// when it holds, since it is not called again then. It may be made true
// by handlers, by other goroutines that call ep.Wake(ep.Rank()), or by peers'
// direct accesses followed by a Wake of this rank. b says what is waited for;
// it may be nil. Wait returns the job's failure if cond does not hold by then.
func Wait(ep Endpoint, b Blocked, cond func() bool) error {
	for idle, busy := 0, 0; ; {
		if cond() {
			return nil
		}
		// Who always finds something to run has to hear of a failure, too.
		if busy == 64 {
			if err := ep.Err(); err != nil {
				return err
			}
			busy = 0
		}
		if ep.Spin() > 0 {
			idle = 0
			busy++
			continue
		}
		if ep.Idle(idle) {
			idle++
			continue
		}
		t := ep.Arm(b)
		// Look again now that arrivals are bound to wake us: what came between
		// the last look and Arm would otherwise be slept through.
		if cond() {
			ep.Disarm(t)
			return nil
		}
		if ep.Poll() > 0 {
			ep.Disarm(t)
			idle = 0
			continue
		}
		if err := ep.Err(); err != nil {
			ep.Disarm(t)
			if cond() { // made true by whoever polled meanwhile
				return nil
			}
			return err
		}
		ep.Park(t)
		idle = 0
	}
}
