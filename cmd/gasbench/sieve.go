package main

// sieve predicts hits: it is the policy that firehoses are moved by, in its plainest
// form (Zhang et al. 2024). What is kept stands in the
// order in which it came; a hit marks it; a hand goes from the oldest to the newest,
// takes marks away, and throws out what has none. After sievePatience times size that it
// has thrown out on its way, it begins anew.
type sieve struct {
	size  int
	kept  []int // oldest first
	marks map[int]bool
	hand  int
	found int // thrown out since the hand was at the oldest
}

const sievePatience = 2

// atOldest is where the hand begins.
const atOldest = -1

func newSieve(size int) *sieve { return &sieve{size: size, marks: map[int]bool{}, hand: atOldest} }

// access reports whether k is a hit.
func (s *sieve) access(k int) bool {
	if _, ok := s.marks[k]; ok {
		s.marks[k] = true
		return true
	}
	if len(s.kept) == s.size {
		if s.found++; s.found > sievePatience*s.size {
			s.hand = atOldest
		}
		if s.hand == atOldest {
			s.hand, s.found = 0, 0
		}
		for s.marks[s.kept[s.hand]] {
			s.marks[s.kept[s.hand]] = false
			if s.hand++; s.hand == s.size {
				s.hand, s.found = 0, 0
			}
		}
		delete(s.marks, s.kept[s.hand])
		s.kept = append(s.kept[:s.hand], s.kept[s.hand+1:]...)
		if s.hand == len(s.kept) {
			s.hand = atOldest
		}
	}
	s.kept = append(s.kept, k)
	s.marks[k] = false
	return false
}
