package collective

// The calls of this package in short, for tests.

func (c *Member) Broadcast(root int, buf []byte) error { return c.Do(Broadcast(root, buf), nil) }

func (c *Member) BroadcastNB(root int, buf []byte) (Handle, error) {
	return c.Begin(Broadcast(root, buf), nil)
}

func (c *Member) Reduce(root int, acc []byte, combine Combine) error {
	return c.Do(Reduce(root, acc), combine)
}

func (c *Member) ReduceNB(root int, acc []byte, combine Combine) (Handle, error) {
	return c.Begin(Reduce(root, acc), combine)
}

func (c *Member) AllReduce(acc []byte, combine Combine) error { return c.Do(AllReduce(acc), combine) }

func (c *Member) AllReduceNB(acc []byte, combine Combine) (Handle, error) {
	return c.Begin(AllReduce(acc), combine)
}

func (c *Member) AllReduceElements(elem int, acc []byte, combine Combine) error {
	return c.Do(AllReduce(acc).InElements(elem), combine)
}

func (c *Member) AllReduceElementsNB(elem int, acc []byte, combine Combine) (Handle, error) {
	return c.Begin(AllReduce(acc).InElements(elem), combine)
}

func (c *Member) ReduceScatter(all, own []byte, combine Combine) error {
	return c.Do(ReduceScatter(all, own), combine)
}

func (c *Member) ReduceScatterNB(all, own []byte, combine Combine) (Handle, error) {
	return c.Begin(ReduceScatter(all, own), combine)
}

func (c *Member) Gather(root int, own, all []byte) error { return c.Do(Gather(root, own, all), nil) }

func (c *Member) GatherNB(root int, own, all []byte) (Handle, error) {
	return c.Begin(Gather(root, own, all), nil)
}
func (c *Member) AllGather(own, all []byte) error { return c.Do(AllGather(own, all), nil) }
func (c *Member) AllGatherNB(own, all []byte) (Handle, error) {
	return c.Begin(AllGather(own, all), nil)
}

func (c *Member) Scatter(root int, all, own []byte) error {
	return c.Do(Scatter(root, all, own), nil)
}

func (c *Member) ScatterNB(root int, all, own []byte) (Handle, error) {
	return c.Begin(Scatter(root, all, own), nil)
}

func (c *Member) Exchange(out, in []byte) error { return c.Do(Exchange(out, in), nil) }

func (c *Member) ExchangeNB(out, in []byte) (Handle, error) { return c.Begin(Exchange(out, in), nil) }
func (c *Member) Scan(acc []byte, combine Combine) error    { return c.Do(Scan(acc), combine) }
func (c *Member) ScanNB(acc []byte, combine Combine) (Handle, error) {
	return c.Begin(Scan(acc), combine)
}

func (c *Member) ExclusiveScan(acc, before []byte, combine Combine) error {
	return c.Do(ExclusiveScan(acc, before), combine)
}

func (c *Member) ExclusiveScanNB(acc, before []byte, combine Combine) (Handle, error) {
	return c.Begin(ExclusiveScan(acc, before), combine)
}

func (c *Member) GatherV(root, unit int, own []byte) ([][]byte, error) {
	return c.DoBlocks(GatherV(root, unit, own))
}

func (c *Member) GatherVNB(root, unit int, own []byte) (Handle, error) {
	return c.Begin(GatherV(root, unit, own), nil)
}

func (c *Member) AllGatherV(unit int, own []byte) ([][]byte, error) {
	return c.DoBlocks(AllGatherV(unit, own))
}

func (c *Member) AllGatherVNB(unit int, own []byte) (Handle, error) {
	return c.Begin(AllGatherV(unit, own), nil)
}

func (c *Member) ExchangeV(unit int, out [][]byte) ([][]byte, error) {
	return c.DoBlocks(ExchangeV(unit, out))
}

func (c *Member) ExchangeVNB(unit int, out [][]byte) (Handle, error) {
	return c.Begin(ExchangeV(unit, out), nil)
}

func (c *Member) Agree(acc []byte, combine Combine) error { return c.Do(Agree(acc), combine) }
