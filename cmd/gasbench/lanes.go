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
			op: plain(func(count int) error {
				return together(j, k, count, func(i, mine int) error { return flood(lanes[i], mine) })
			}),
			out: []output{{rate, j.message(4 * goroutineArgs)}},
		})
	}
	return l, nil
}

// senderCases are floods to the other rank by goroutines that send by the rank's endpoint at
// once, none of which has a lane.
func senderCases(j *job) []outcase {
	var l []outcase
	for _, k := range []int{1, 2, 4, 8, 16} {
		l = append(l, outcase{
			size: k, bytes: 4 * goroutineArgs,
			op:  plain(func(count int) error { return j.bySenders(k, count) }),
			out: []output{{rate, j.message(4 * goroutineArgs)}},
		})
	}
	return l
}

// bySenders has k goroutines send their part of count messages each, and one more that is
// answered, and returns when all k answers have come.
func (j *job) bySenders(k, count int) error {
	if err := j.on(k, func() error { return nil }); err != nil { // whose first messages are answered, too
		return err
	}
	want := j.s.pongs + uint64(k)
	err := together(j, k, count, func(_, mine int) error {
		var args [goroutineArgs]uint32
		for range mine {
			if err := j.e.RequestShort(1, hSink, args[:]...); err != nil {
				return err
			}
		}
		return j.e.RequestShort(1, hPing)
	})
	if err != nil {
		return err
	}
	return j.e.Wait(nil, func() bool { return j.s.pongs == want })
}

// together has the first k goroutines of the rank (see on) do their part of count operations each,
// and returns when all have.
func together(j *job, k, count int, do func(i, mine int) error) error {
	if err := j.on(k, func() error { return nil }); err != nil {
		return err
	}
	others := j.goroutines[:k-1]
	for i, g := range others {
		g.work <- func() error { return do(i+1, (count+i+1)/k) }
	}
	all := do(0, count/k)
	for _, g := range others {
		all = errors.Join(all, <-g.done)
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
