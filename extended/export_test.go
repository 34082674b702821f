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
