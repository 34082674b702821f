package conc

// A Sleepers numbers what is waited for; a slot is used again once it is free. Its
// owner locks it.
type Sleepers[B comparable] struct{ b []B }

// Add puts b, which is not the zero value, into a free slot and returns its number.
func (l *Sleepers[B]) Add(b B) (slot int32) {
	var none B
	slot = -1
	for i, w := range l.b {
		if w == none {
			slot = int32(i)
		}
	}
	if slot < 0 {
		slot = int32(len(l.b))
		l.b = append(l.b, none)
	}
	l.b[slot] = b
	return slot
}

// Remove frees slot.
func (l *Sleepers[B]) Remove(slot int32) {
	var none B
	l.b[slot] = none
}

// All lists the reasons of the present waits.
func (l *Sleepers[B]) All() []B {
	var none B
	var all []B
	for _, b := range l.b {
		if b != none {
			all = append(all, b)
		}
	}
	return all
}
