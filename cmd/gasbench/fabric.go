package main

import (
	"errors"

	"github.com/argon-go/argon/am"
)

// maxBare is the longest message of the references of bare libfabric, bytes.
const maxBare = 4096

// errNoBare is wrapped by errors of missing references over libfabric.
var errNoBare = errors.New("no libfabric to measure against")

// onFabric reports whether ranks 0 and 1 talk by libfabric, whose references then stand beside
// everything between them.
func (j *job) onFabric() bool {
	name := j.n.Layers().Conduit.Conduit()
	return bareBuilt && (name == "ofi" || name == "hybrid-ofi") && !j.direct
}

// needBare makes the references of bare libfabric available: rank 0's side.
func (j *job) needBare() error {
	if j.bare != nil {
		return nil
	}
	return j.join(cmdBare, func() (string, error) {
		text, err := j.openBare()
		if err != nil {
			err = errors.Join(errNoBare, err)
		}
		return text, err
	}, j.connectBare)
}

// join opens a reference's endpoint and connects it with the other rank's, which rank 0
// tells to do the same by command what.
func (j *job) join(what uint32, open func() (string, error), connect func(string) error) error {
	text, err := open()
	if err == nil && j.n.Rank() == 0 {
		err = j.command(what, 0, 0)
	}
	if err == nil {
		err = j.exchange(text, connect)
	}
	return err
}

// exchange sends text to the other rank and calls connect with that rank's. Both ranks
// call it, in the same order.
func (j *job) exchange(text string, connect func(string) error) error {
	if err := j.e.RequestMedium(1-j.n.Rank(), hAddress, []byte(text)); err != nil {
		return err
	}
	if err := j.e.Wait(nil, func() bool { return j.s.address != "" }); err != nil {
		return err
	}
	theirs := j.s.address
	j.s.address = ""
	return connect(theirs)
}

func onAddress(t *am.Token, _ []uint32, payload []byte) {
	states[t.Messenger().Rank()].address = string(payload)
}

// bareOp is a reference of bare libfabric: legs messages in turn of size bytes.
func (j *job) bareOp(what uint32, size int, legs float64) op {
	size = max(size, minMessage)
	left := 0
	return op{
		begin: func(count int) error {
			left = count
			return j.command(what, count, size)
		},
		run: func(count int) error {
			left -= count
			return j.bareRun(what, count, size)
		},
		end: func() error {
			if what == cmdBareWrites && left == 0 {
				return j.bareDone()
			}
			return nil
		},
		legs: legs,
	}
}
