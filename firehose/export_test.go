package firehose

// Waiters is how many waiters there are, used and unused.
func (c *Cache) Waiters() int { return len(c.waiters) }

// Locked runs f while no other goroutine has the lock.
func (c *Cache) Locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}
