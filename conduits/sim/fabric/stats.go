package fabric

// Stats count what a fabric has carried.
type Stats struct {
	Messages  uint64 // injected
	Delivered uint64 // of those
	Packets   uint64 // that injected messages were cut into
	Bytes     uint64 // injected
	Hops      uint64 // packets that links took, counted once for each link

	Delay    Time // sum of what messages took beyond Unloaded
	MaxDelay Time // the largest of these

	// Of finite buffers: how often a packet wanted a channel on, and how often it had to wait for one; deadlocks found, and how many packets
	// their circles had, all together.
	Requests, Blocked, Deadlocks, Circle uint64

	Links    int  // directed links there are; 0 without contention
	Busy     Time // sum over links of the time they carried packets
	Busiest  int  // the link that did so most
	MostBusy Time // for how long
}

// Stats returns the counters. It looks at all links.
func (f *Fabric) Stats() Stats {
	s := f.stats
	s.Links = len(f.links)
	for i := range f.links {
		b := f.links[i].busy
		s.Busy += b
		if b > s.MostBusy {
			s.Busiest, s.MostBusy = i, b
		}
	}
	return s
}
