package main

import (
	"errors"
	"sync/atomic"

	"github.com/argon-go/argon/gas"
)

var errNoDirect = errors.New("ranks 0 and 1 do not reach each other's memory by load and store")

// flagsAt returns the flags of rank 0 and rank 1 in rank 0's control page, which
// is in reach.
func flagsAt(n *gas.Node, page gas.Ptr[byte]) (f [2]*uint64) {
	for i := range f {
		p, err := gas.Cast[uint64](page.Add(i * flagGap))
		if err != nil {
			panic("gasbench: " + err.Error()) // pages are aligned
		}
		f[i], _ = p.Local(n)
	}
	return f
}

// patience is how often a flag is looked at before the rank admits that the
// other one is not running and lets it: more than ever happens when two ranks
// have two processors, about 10 us.
const patience = 1 << 14

// see waits until the flag holds v. It fails if the job does.
func (j *job) see(flag *uint64, v uint64) error {
	for range patience {
		if atomic.LoadUint64(flag) == v {
			return nil
		}
	}
	ep := j.n.Layers().Conduit
	for idle := 0; atomic.LoadUint64(flag) != v; idle++ {
		if !ep.Idle(idle) {
			if err := ep.Err(); err != nil {
				return err
			}
			idle = 0
		}
	}
	return nil
}

// sendLine is rank 0's side of count rounds of the bare ping-pong.
func (j *job) sendLine(count int) error {
	mine, theirs := j.flags[0], j.flags[1]
	r := j.round
	for range count {
		r++
		store(mine, r)
		if atomic.LoadUint64(theirs) == r {
			continue
		}
		if err := j.see(theirs, r); err != nil {
			return err
		}
	}
	j.round = r
	return nil
}

// answerLine is rank 1's side.
func (j *job) answerLine(count uint64) error {
	mine, theirs := j.flags[1], j.flags[0]
	r := j.round
	for range count {
		r++
		if err := j.see(theirs, r); err != nil {
			return err
		}
		store(mine, r)
	}
	j.round = r
	return nil
}

// windows returns the start of rank 1's and of rank 0's data area.
func (j *job) windows(size int) (theirs, mine []byte, err error) {
	d := j.area.Add(pageSize)
	theirs, ok1 := d.On(1-j.n.Rank()).LocalSlice(j.n, size)
	mine, ok2 := d.On(j.n.Rank()).LocalSlice(j.n, size)
	if !ok1 || !ok2 {
		return nil, nil, errNoDirect
	}
	return theirs, mine, nil
}

// sendCopies is rank 0's side of the ping-pong with a payload; window as from
// windows.
func (j *job) sendCopies(count int, to, from []byte) error {
	mine, theirs := j.flags[0], j.flags[1]
	local := j.local[:len(to)]
	r := j.round
	for range count {
		r++
		copy(to, local)
		store(mine, r)
		if err := j.see(theirs, r); err != nil {
			return err
		}
		copy(local, from)
	}
	j.round = r
	return nil
}

// answerCopies is rank 1's side.
func (j *job) answerCopies(count uint64, size int) error {
	to, from, err := j.windows(size)
	if err != nil {
		return err
	}
	mine, theirs := j.flags[1], j.flags[0]
	local := j.local[:size]
	r := j.round
	for range count {
		r++
		if err := j.see(theirs, r); err != nil {
			return err
		}
		copy(local, from)
		copy(to, local)
		store(mine, r)
	}
	j.round = r
	return nil
}
