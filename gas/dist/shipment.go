package dist

import "github.com/argon-go/argon/internal/errs"

// shipment is a courier of accesses of a map.
type shipment[K comparable, V, A, R any] struct {
	courier
	u       *Update[K, V, A, R]
	results []R // nil if there are to be none
}

func (u *Update[K, V, A, R]) newShipment(results []R) *shipment[K, V, A, R] {
	s := &shipment[K, V, A, R]{u: u, results: results}
	landed := s.take
	if results == nil {
		landed = nil
	}
	s.init(&u.m.ranks, u.m.number, u.number, landed)
	return s
}

// take takes results for their places.
func (s *shipment[K, V, A, R]) take(b []byte, to []int32) (err error) {
	for _, i := range to {
		if b, err = s.u.results.Decode(b, &s.results[i]); err != nil {
			return err
		}
	}
	return nil
}

// add adds the access of key with a, whose result is to be results[i].
func (s *shipment[K, V, A, R]) add(i int, key *K, a *A) {
	u := s.u
	m := u.m
	owner := ownerOf(m.keys.hash(key), m.size)
	if owner != m.rank {
		s.courier.add(owner, i, u.args.Append(m.keys.append(s.out[owner].data, key), a))
		return
	}
	r, err := u.local(*key, *a)
	s.note(err)
	if s.results != nil {
		s.results[i] = r
	}
}

// finish is the courier's, with the update's name in front of an error.
func (s *shipment[K, V, A, R]) finish() error {
	if err := s.courier.finish(); err != nil {
		return s.u.failed(err)
	}
	return nil
}

// each applies the update to many keys; results may be nil.
func (u *Update[K, V, A, R]) each(keys []K, args []A, results []R) error {
	if err := u.m.check(u.name); err != nil {
		return err
	}
	switch {
	case len(args) != len(keys):
		return errs.BadArg("dist: %s of map %q: %d keys for %d arguments or values", u.name, u.m.name, len(keys), len(args))
	case len(keys) > mostAtOnce:
		return errs.BadArg("dist: %s of map %q: %d keys; one call takes %d", u.name, u.m.name, len(keys), mostAtOnce)
	case len(keys) == 0:
		return nil
	}
	s := u.newShipment(results)
	for i := range keys {
		s.add(i, &keys[i], &args[i])
	}
	return s.finish()
}

// All is Call for many keys with an argument each, many in a message: when it returns all are
// done, and results are in order of the keys. They run in any order, those of other ranks
// between them. After an error, which is the first there was, some may not have been done.
func (u *Update[K, V, A, R]) All(keys []K, args []A) ([]R, error) {
	results := make([]R, len(keys))
	if err := u.each(keys, args, results); err != nil {
		return nil, err
	}
	return results, nil
}

// Push is Call later, without its result: with others for the same rank, when there is enough for
// a message, or at Flush, [Map.Flush] or [Map.Delete]. What is pushed is done in any order. An
// error is that of an earlier Push, or of the job. One goroutine of a rank at a time calls
// Push and Flush.
func (u *Update[K, V, A, R]) Push(key K, a A) error {
	if err := u.m.check(u.name); err != nil {
		return err
	}
	if u.pushed == nil {
		u.pushed = u.newShipment(nil)
	}
	if u.pushed.add(0, &key, &a); u.pushed.failed != nil {
		return u.pushed.finish()
	}
	return nil
}

// Flush returns when all that this rank has pushed is done, with the first error there was.
func (u *Update[K, V, A, R]) Flush() error {
	if u.pushed == nil {
		return nil
	}
	return u.pushed.finish()
}
