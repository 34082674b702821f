package extended

import "github.com/argon-go/argon/segment"

// LockBlocked tries a lock that another rank holds and returns what a wait for it says.
func (x *Endpoint) LockBlocked(rank int, at segment.NLA) (string, error) {
	seen, ok, err := x.tryLock(rank, at, 0, exclusive)
	if ok {
		err = x.Unlock(rank, at)
	}
	return x.lockState(remoteAt(rank, at), seen), err
}
