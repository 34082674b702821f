package extended

import "github.com/argon-go/argon/segment"

// LockBlocked tries a lock that another rank holds and returns what a wait for it says.
func (x *Initiator) LockBlocked(rank int, at segment.NLA) (string, error) {
	seen, ok, err := x.LockAt(rank, at).tryLock(0, exclusive)
	if ok {
		err = x.LockAt(rank, at).Unlock()
	}
	return x.lockState(remoteAt(rank, at), seen), err
}

// TakeSlots takes all slots of operations, and returns what gives them back.
func (x *Initiator) TakeSlots() (giveBack func()) {
	var all []flight
	for x.table.room() {
		f, err := x.begin(byReturn)
		if err != nil {
			panic(err)
		}
		all = append(all, f)
	}
	return func() {
		for _, f := range all {
			x.table.release(f.o, f.name)
		}
		x.ep.Wake(x.ep.Rank())
	}
}
