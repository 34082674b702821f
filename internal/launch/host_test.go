package launch

import (
	"errors"
	"io"
	"testing"
)

// hostsJob is a running job of two hosts with two ranks each, without processes.
func hostsJob() *job {
	j := &job{eventful: make(chan struct{}, 1), memory: deafMemory{}, first: -1}
	j.log = &sink{w: io.Discard}
	j.ranks = make([]rank, 4)
	for i, label := range []string{"a", "b"} {
		h := newHost(j, placement{label: label, index: i, first: 2 * i, size: 2})
		h.link = newLink(discard{})
		j.hosts = append(j.hosts, h)
		for r := h.first; r < h.first+h.size; r++ {
			j.ranks[r].host = h
			j.started(r, 100+r, -1)
		}
	}
	return j
}

// A host that is lost is the reason for the end of ranks that say that others
// have failed, and not for what happened before by itself.
func TestHostLost(t *testing.T) {
	lost := &HostError{Host: "b", Cause: "gone"}
	for _, tc := range []struct {
		name    string
		status  int // of rank 0, which ends before; -1: it goes on
		isCause bool
	}{
		{"first", -1, true},
		{"after a consequence", StatusPeerFailed, true},
		{"after a failure", 7, false},
	} {
		j := hostsJob()
		if tc.status >= 0 {
			j.ended([]ending{{rank: 0, status: tc.status, cause: "exited"}})
		}
		live := j.live
		j.hostLost(j.hosts[1], lost)
		if j.live != live-2 || j.ranks[2].live || j.ranks[3].live || !j.ranks[1].live {
			t.Errorf("%s: %d ranks live", tc.name, j.live)
		}
		if !j.ending {
			t.Errorf("%s: the job goes on", tc.name)
		}
		j.ended([]ending{{rank: 1, status: StatusPeerFailed, cause: "exited"}})
		// What a host says that was given up for lost.
		j.ended([]ending{{rank: 2, status: 0}, {rank: 2, status: 0}})
		j.started(3, 1, -1)
		for _, h := range j.hosts {
			h.unused()
		}
		for r := range j.ranks { // for result
			j.ranks[r].err = newStream(r, j.log, false, false, nil, nil)
		}
		if j.live > 0 {
			j.ended([]ending{{rank: 0, status: StatusPeerFailed, cause: "exited"}})
		}
		res, err := j.result()
		var he *HostError
		if errors.As(err, &he) != tc.isCause || tc.isCause && res.Status != StatusFailed || !tc.isCause && res.Status != tc.status {
			t.Errorf("%s: status %d, %v", tc.name, res.Status, err)
		}
		if j.live != 0 {
			t.Errorf("%s: %d ranks live in the end", tc.name, j.live)
		}
	}
}
