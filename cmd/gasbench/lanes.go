package main

import (
	"errors"

	"github.com/argon-go/argon/am"
)

// pollEach is how many messages a goroutine with a lane sends before it polls.
const pollEach = 16

// laneCases are floods to the own rank by 1, 2, 4 and so on lanes at once.
func laneCases(j *job) ([]outcase, error) {
	var lanes []*am.Messenger
	for i := range j.e.Lanes() {
		l, err := j.e.Lane(i)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
	}
	var l []outcase
	for k := 1; k <= len(lanes); k *= 2 {
		l = append(l, outcase{
			size: k, bytes: 4 * goroutineArgs,
			op:  plain(func(count int) error { return j.byLanes(lanes[:k], count) }),
			out: []output{{rate, j.message(4 * goroutineArgs)}},
		})
	}
	return l, nil
}

// byLanes has a goroutine for each lane send its part of count messages to its own rank,
// and returns when all have.
func (j *job) byLanes(lanes []*am.Messenger, count int) error {
	done := make(chan error)
	for i, l := range lanes {
		mine := (count + i) / len(lanes)
		go func() { done <- flood(l, mine) }()
	}
	var all error
	for range lanes {
		all = errors.Join(all, <-done)
	}
	return all
}

// flood sends count messages to l's own rank.
func flood(l *am.Messenger, count int) error {
	var args [goroutineArgs]uint32
	for i := range count {
		if err := l.RequestShort(l.Rank(), hSink, args[:]...); err != nil {
			return err
		}
		if i%pollEach == 0 {
			l.Poll()
		}
	}
	return nil
}
