package firehose

import "sync"

// Pins is how many accesses have asked for pins, at once.
func (c *Cache) Pins() int { return len(c.pins) }

// Locked runs f while no other goroutine has the lock.
func (c *Cache) Locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// Asker asks a Cache for pins, as a Route does for its accesses.
type Asker struct {
	*Cache

	mu      sync.Mutex
	idle    []*ask
	ended   []*ask
	calling sync.Mutex
}

// ask is one pin that an Asker asks for.
type ask struct {
	pin  pin
	come bool
	call func(region, error) // nil if a goroutine waits for it
}

func (k *Asker) ask(call func(region, error)) *ask {
	k.mu.Lock()
	defer k.mu.Unlock()
	var p *ask
	if n := len(k.idle) - 1; n >= 0 {
		p, k.idle = k.idle[n], k.idle[:n]
	} else {
		p = new(ask)
		p.pin.then = func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			if p.come = true; p.call != nil {
				k.ended = append(k.ended, p)
			}
		}
	}
	p.come, p.call = false, call
	return p
}

func (k *Asker) has(p *ask) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.come
}

func (k *Asker) take(p *ask) (region, error) {
	r, err := p.pin.region, p.pin.err
	p.pin.region, p.pin.err = region{}, nil
	k.mu.Lock()
	k.idle = append(k.idle, p)
	k.mu.Unlock()
	return r, err
}

// waiter is a wait of k for p.
type waiter struct {
	k *Asker
	p *ask
}

func (waiter) Blocked() string { return "a test: for a pin" }

func (k *Asker) wait(rank int, a Addr, n uint64, by how) (region, error) {
	p := k.ask(nil)
	got, err := k.Cache.ask(&p.pin, rank, a, n, by)
	if err == nil && got == asked {
		if err := k.e.Wait(waiter{k, p}, func() bool {
			if k.Busy() {
				k.Advance()
			}
			k.Call() // what they release may be what p waits for
			return k.has(p)
		}); err != nil && !k.has(p) {
			return region{}, err
		}
	}
	r, e := k.take(p)
	if err == nil {
		err = e
	}
	return r, err
}

func (k *Asker) later(rank int, a Addr, n uint64, by how, call func(region, error)) (region, bool, error) {
	p := k.ask(call)
	got, err := k.Cache.ask(&p.pin, rank, a, n, by)
	if err != nil || got != asked {
		r, _ := k.take(p)
		return r, got == there, err
	}
	return region{}, false, nil
}

// RemotePin waits for a pin by firehoses, PinOnce for one of exactly the range.
func (k *Asker) RemotePin(rank int, a Addr, n uint64) (region, error) {
	return k.wait(rank, a, n, byFirehose)
}

// PinOnce is RemotePin of exactly the range.
func (k *Asker) PinOnce(rank int, a Addr, n uint64) (region, error) {
	return k.wait(rank, a, n, byTransfer)
}

// RemotePinThen is RemotePin that does not wait: Call calls the function.
func (k *Asker) RemotePinThen(rank int, a Addr, n uint64, call func(region, error)) (region, bool, error) {
	return k.later(rank, a, n, byFirehose, call)
}

// PinOnceThen is PinOnce that does not wait.
func (k *Asker) PinOnceThen(rank int, a Addr, n uint64, call func(region, error)) error {
	_, _, err := k.later(rank, a, n, byTransfer, call)
	return err
}

// TryRemotePin neither sends nor waits.
func (k *Asker) TryRemotePin(rank int, a Addr, n uint64) (region, bool) {
	r, ok, _ := k.later(rank, a, n, notAtAll, nil)
	return r, ok
}

// Call calls the functions of the pins that have ended, one at a time.
func (k *Asker) Call() {
	k.calling.Lock()
	defer k.calling.Unlock()
	for {
		k.mu.Lock()
		if len(k.ended) == 0 {
			k.mu.Unlock()
			return
		}
		p := k.ended[0]
		k.ended = k.ended[1:]
		call := p.call
		k.mu.Unlock()
		r, err := k.take(p)
		call(r, err)
	}
}

// Release ends the use of r.
func (k *Asker) Release(r region) error { return k.done(&pin{region: r}) }

// Stale ends it after an access by way of r has faulted.
func (k *Asker) Stale(r region) error { return k.giveUp(&pin{region: r}) }

// At is where to reach a.
func (k *Asker) At(r region, a Addr) (Grant, uint64) { return k.at(&pin{region: r}, a) }

// Pinned is a region that an Asker has been granted.
type Pinned = region
