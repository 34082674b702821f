package firehose

// Waiters is how many waiters there are, used and unused.
func (c *Cache) Waiters() int { return len(c.waiters) }
