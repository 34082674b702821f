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
	text, err := j.openBare()
	if err != nil {
		return errors.Join(errNoBare, err)
	}
	if err := j.command(cmdBare, 0, 0); err != nil {
		return err
	}
	return j.exchange(text, j.connectBare)
}

// answerBare is rank 1's side.
func (j *job) answerBare() error {
	text, err := j.openBare()
	if err != nil {
		return err
	}
	return j.exchange(text, j.connectBare)
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

func barePingCases(j *job) []outcase {
	var l []outcase
	for _, size := range []int{8, 16, 64, 512, maxBare} {
		l = append(l, outcase{size: size, op: j.mustReference(refOFI, size), out: []output{{metric: halfRTT}}})
	}
	return l
}

func bareMessageCases(j *job) []outcase {
	var l []outcase
	for _, size := range []int{8, 16, 64, 512, maxBare} {
		l = append(l, outcase{size: size, op: j.mustReference(refOFIMsg, size), out: []output{{metric: rate}}})
	}
	return l
}

func bareWriteCases(j *job) []outcase {
	var l []outcase
	for _, size := range append([]int{8}, copySizes[1:]...) {
		out := []output{{metric: latency}}
		if size >= minBulk {
			out = append(out, output{metric: bandwidth})
		}
		l = append(l, outcase{size: size, op: j.mustReference(refOFIWrite, size), out: out})
	}
	return l
}
