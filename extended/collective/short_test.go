package collective

// The calls of this package in short, for tests.

func (c *Endpoint) Broadcast(root int, buf []byte) error { return c.Do(Broadcast(root, buf), nil) }

func (c *Endpoint) BroadcastNB(root int, buf []byte) (Handle, error) {
	return c.Begin(Broadcast(root, buf), nil)
}

func (c *Endpoint) Reduce(root int, acc []byte, combine Combine) error {
	return c.Do(Reduce(root, acc), combine)
}

func (c *Endpoint) ReduceNB(root int, acc []byte, combine Combine) (Handle, error) {
	return c.Begin(Reduce(root, acc), combine)
}

func (c *Endpoint) AllReduce(acc []byte, combine Combine) error { return c.Do(AllReduce(acc), combine) }

func (c *Endpoint) AllReduceNB(acc []byte, combine Combine) (Handle, error) {
	return c.Begin(AllReduce(acc), combine)
}

func (c *Endpoint) AllReduceElements(elem int, acc []byte, combine Combine) error {
	return c.Do(AllReduceElements(elem, acc), combine)
}

func (c *Endpoint) AllReduceElementsNB(elem int, acc []byte, combine Combine) (Handle, error) {
	return c.Begin(AllReduceElements(elem, acc), combine)
}

func (c *Endpoint) ReduceScatter(all, own []byte, combine Combine) error {
	return c.Do(ReduceScatter(all, own), combine)
}

func (c *Endpoint) ReduceScatterNB(all, own []byte, combine Combine) (Handle, error) {
	return c.Begin(ReduceScatter(all, own), combine)
}

func (c *Endpoint) Gather(root int, own, all []byte) error { return c.Do(Gather(root, own, all), nil) }

func (c *Endpoint) GatherNB(root int, own, all []byte) (Handle, error) {
	return c.Begin(Gather(root, own, all), nil)
}
func (c *Endpoint) AllGather(own, all []byte) error { return c.Do(AllGather(own, all), nil) }
func (c *Endpoint) AllGatherNB(own, all []byte) (Handle, error) {
	return c.Begin(AllGather(own, all), nil)
}

func (c *Endpoint) Scatter(root int, all, own []byte) error {
	return c.Do(Scatter(root, all, own), nil)
}

func (c *Endpoint) ScatterNB(root int, all, own []byte) (Handle, error) {
	return c.Begin(Scatter(root, all, own), nil)
}

func (c *Endpoint) Exchange(out, in []byte) error { return c.Do(Exchange(out, in), nil) }

func (c *Endpoint) ExchangeNB(out, in []byte) (Handle, error) { return c.Begin(Exchange(out, in), nil) }
func (c *Endpoint) Scan(acc []byte, combine Combine) error    { return c.Do(Scan(acc), combine) }
func (c *Endpoint) ScanNB(acc []byte, combine Combine) (Handle, error) {
	return c.Begin(Scan(acc), combine)
}

func (c *Endpoint) ExclusiveScan(acc, before []byte, combine Combine) error {
	return c.Do(ExclusiveScan(acc, before), combine)
}

func (c *Endpoint) ExclusiveScanNB(acc, before []byte, combine Combine) (Handle, error) {
	return c.Begin(ExclusiveScan(acc, before), combine)
}

func (c *Endpoint) GatherV(root, unit int, own []byte) ([][]byte, error) {
	return c.DoBlocks(GatherV(root, unit, own))
}

func (c *Endpoint) GatherVNB(root, unit int, own []byte) (Handle, error) {
	return c.Begin(GatherV(root, unit, own), nil)
}

func (c *Endpoint) AllGatherV(unit int, own []byte) ([][]byte, error) {
	return c.DoBlocks(AllGatherV(unit, own))
}

func (c *Endpoint) AllGatherVNB(unit int, own []byte) (Handle, error) {
	return c.Begin(AllGatherV(unit, own), nil)
}

func (c *Endpoint) ExchangeV(unit int, out [][]byte) ([][]byte, error) {
	return c.DoBlocks(ExchangeV(unit, out))
}

func (c *Endpoint) ExchangeVNB(unit int, out [][]byte) (Handle, error) {
	return c.Begin(ExchangeV(unit, out), nil)
}

func (c *Endpoint) Agree(acc []byte, combine Combine) error { return c.Do(Agree(acc), combine) }
