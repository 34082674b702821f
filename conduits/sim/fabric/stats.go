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

	Links    int  // directed links there are; 0 without contention
	Busy     Time // sum over links of the time they carried packets
	Busiest  int  // the link that did so most, for LinkName
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

// LinkBusy returns for how long a link, as in Path, has carried packets, with
// those it has accepted already; 0 without contention.
func (f *Fabric) LinkBusy(link int) Time {
	if !f.p.Contention {
		return 0
	}
	return f.links[link].busy
}

// ResetStats sets all counters to zero, as between warming up and measuring.
// Messages under way count as delivered only.
func (f *Fabric) ResetStats() {
	f.stats = Stats{}
	for i := range f.links {
		f.links[i].busy = 0
	}
}
