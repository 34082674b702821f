package main

import (
	"fmt"
	"math"

	"github.com/argon-go/argon/gas"
)

// sync is one rank's synchronization. FCAA adds to a variable if that is at most a value for
// comparison, and tells whether it has added. The operands are those of the thesis' tables 7-3 and
// 7-5, where n is the number of ranks of the job:
//
//	                 compare  add       the variable then (tables 7-4 and 7-6)
//	lock exclusive   0        n+1       n+1   locked exclusively
//	lock shared      n        1         m     locked shared by m of n ranks
//	unlock exclusive MAX_INT  -(n+1)    0     unlocked
//	unlock shared    MAX_INT  -1
//
//	post (local)     3        -1        2     posted
//	start            2        -1        1     started
//	complete         1        -1        0     completed
//	wait (local)     0        3         3     idle
//
// An epoch is between one origin and one target: a target with several origins has a variable
// for each. What the origin has put before complete is seen by the target after wait. Locks are
// not fair; those of packages extended and upc/rt are.
type sync struct {
	n    *gas.Node
	held map[gas.Ptr[int64]]int64 // what this rank has added to each lock that it holds
}

// The states of table 7-6.
const (
	completed = iota
	started
	posted
	idle
)

// kind is how a lock is held.
type kind int

const (
	exclusive kind = iota
	shared
)

func newSync(n *gas.Node) *sync { return &sync{n, map[gas.Ptr[int64]]int64{}} }

// lock takes the lock at p, which is zero at first, and waits while other ranks hold it in
// such a way that it cannot.
func (s *sync) lock(p gas.Ptr[int64], how kind) error {
	if s.held[p] != 0 { // table 7-4 has room for each rank once
		return fmt.Errorf("onesided: lock of %v, which rank %d holds", p, s.n.Rank())
	}
	compare, add := int64(0), int64(s.n.Size()+1)
	if how == shared {
		compare, add = int64(s.n.Size()), 1
	}
	if err := s.step("lock", p, compare, add); err != nil {
		return err
	}
	s.held[p] = add
	return nil
}

// unlock gives back the lock at p.
func (s *sync) unlock(p gas.Ptr[int64]) error {
	add := s.held[p]
	if add == 0 {
		return fmt.Errorf("onesided: unlock of %v, which rank %d does not hold", p, s.n.Rank())
	}
	delete(s.held, p)
	return s.step("unlock", p, math.MaxInt64, -add)
}

// reset makes p, of this rank, an epoch variable, before any rank uses it.
func (s *sync) reset(p gas.Ptr[int64]) error { return gas.Store(s.n, p, idle) }

// post opens this rank's variable p for an origin's start.
func (s *sync) post(p gas.Ptr[int64]) error { return s.step("post", p, idle, -1) }

// start begins an epoch at p's rank, when that has posted it. The comparison of table 7-5 alone
// would let a start pass that comes after a complete and before its wait, for 0 is less than 2.
func (s *sync) start(p gas.Ptr[int64]) error {
	err := s.retry("start", p, func() (bool, error) {
		v, err := gas.Load(s.n, p)
		return v == posted, err
	})
	if err != nil {
		return err
	}
	return s.step("start", p, posted, -1)
}

// complete ends this rank's epoch at p's rank.
func (s *sync) complete(p gas.Ptr[int64]) error { return s.step("complete", p, started, -1) }

// wait waits until the origin has completed the epoch that this rank has posted at p.
func (s *sync) wait(p gas.Ptr[int64]) error { return s.step("wait", p, completed, idle) }

// step is one fetch-compare-and-add, until the variable allows it.
func (s *sync) step(op string, p gas.Ptr[int64], compare, add int64) error {
	return s.retry(op, p, func() (bool, error) {
		_, ok, err := gas.FetchCompareAdd(s.n, p, compare, add)
		return ok, err
	})
}

// retry tries until that is done, or an error. It does not park: no rank wakes this one when the
// variable changes, which may be another rank's.
func (s *sync) retry(op string, p gas.Ptr[int64], try func() (done bool, err error)) error {
	ep := s.n.Layers().Conduit
	for tries := 0; ; {
		done, err := try()
		if err == nil && !done {
			err = ep.Err()
		}
		if err != nil {
			return fmt.Errorf("onesided: %s of %v: %w", op, p, err)
		}
		if done {
			return nil
		}
		if ep.Spin() > 0 {
			tries = 0
		} else if ep.Idle(tries) {
			tries++
		}
	}
}
