package launch

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
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
			j.started(r, 100+r, "")
		}
	}
	return j
}

// TestActivity: what a rank's process has done is asked of the deputy of its host.
func TestActivity(t *testing.T) {
	j := hostsJob()
	type result struct {
		a   sys.Activity
		pid int
		ok  bool
	}
	got := make(chan result, 1)
	go func() {
		var r result
		r.a, r.pid, r.ok = j.activity(3)
		got <- r
	}()
	answer := &frame{kind: frameSeen, nums: []int64{3, 4711, 'D', 5, 6, 7}}
	want := result{sys.Activity{State: 'D', Ran: 5, Delayed: 6, Faults: 7}, 4711, true}
	for { // an answer that comes before the question is dropped
		if err := j.hosts[1].hear(answer); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-got:
			if r != want {
				t.Errorf("%+v", r)
			}
			if err := j.hosts[1].hear(&frame{kind: frameSeen, nums: []int64{3, 4711}}); err == nil {
				t.Error("half an answer is taken for one")
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// TestProcessActivity: a process's activity is that of its group, so that a wrapper does not
// hide the program behind it.
func TestProcessActivity(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	p, ok := readProcess(cmd.Process.Pid)
	if !ok {
		t.Fatal("no process")
	}
	for { // until the loop has run; the shell that waits for it does not
		a, ok := p.activity()
		if !ok {
			t.Fatal("no activity")
		}
		if own, _ := sys.ReadActivity(p.pid); a.Ran > own.Ran+100*time.Millisecond {
			return
		}
		time.Sleep(time.Millisecond)
	}
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
		{"after a consequence", jobenv.StatusPeerFailed, true},
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
		j.ended([]ending{{rank: 1, status: jobenv.StatusPeerFailed, cause: "exited"}})
		// What a host says that was given up for lost.
		j.ended([]ending{{rank: 2, status: 0}, {rank: 2, status: 0}})
		j.started(3, 1, "")
		for _, h := range j.hosts {
			h.unused()
		}
		for r := range j.ranks { // for result
			j.ranks[r].err = newStream(r, j.log, false, false, nil, nil)
		}
		if j.live > 0 {
			j.ended([]ending{{rank: 0, status: jobenv.StatusPeerFailed, cause: "exited"}})
		}
		res, err := j.result()
		var he *HostError
		if errors.As(err, &he) != tc.isCause || tc.isCause && res.Status != jobenv.StatusFailed || !tc.isCause && res.Status != tc.status {
			t.Errorf("%s: status %d, %v", tc.name, res.Status, err)
		}
		if j.live != 0 {
			t.Errorf("%s: %d ranks live in the end", tc.name, j.live)
		}
	}
}

// All hosts begin to look for the rendezvous where all can find it, if one way
// leads to them all.
func TestServerAddrs(t *testing.T) {
	addrs := func(texts ...string) (all []netip.Addr) {
		for _, s := range texts {
			a, _ := netip.ParseAddr(s) // "": not known
			all = append(all, a)
		}
		return all
	}
	own := addrs("10.0.0.1", "192.168.0.1", "fd00::1")
	const here = "here"
	for _, tc := range []struct {
		routes []string // of the hosts
		want   [][]string
	}{
		{[]string{"10.0.0.1", "192.168.0.1"}, [][]string{{"10.0.0.1", "192.168.0.1", "fd00::1"}, {"192.168.0.1", "10.0.0.1", "fd00::1"}}},
		{[]string{"", ""}, [][]string{{"10.0.0.1", "192.168.0.1", "fd00::1"}, {"10.0.0.1", "192.168.0.1", "fd00::1"}}},
		{[]string{"", "192.168.0.1"}, [][]string{{"192.168.0.1", "10.0.0.1", "fd00::1"}, {"192.168.0.1", "10.0.0.1", "fd00::1"}}},
		{[]string{"fd00::1", "fd00::1"}, [][]string{{"fd00::1", "10.0.0.1", "192.168.0.1"}, {"fd00::1", "10.0.0.1", "192.168.0.1"}}},
		// One family, which is IPv4 if one host has only that.
		{[]string{"fd00::1", "192.168.0.1"}, [][]string{{"192.168.0.1", "fd00::1", "10.0.0.1"}, {"192.168.0.1", "10.0.0.1", "fd00::1"}}},
		// This machine, with and without ssh, beside another one, and alone.
		{[]string{here, "192.168.0.1"}, [][]string{{"192.168.0.1", "10.0.0.1", "fd00::1", "127.0.0.1"}, {"192.168.0.1", "10.0.0.1", "fd00::1"}}},
		{[]string{"127.0.0.1", "192.168.0.1"}, [][]string{{"192.168.0.1", "10.0.0.1", "fd00::1", "127.0.0.1"}, {"192.168.0.1", "10.0.0.1", "fd00::1"}}},
		{[]string{"::1", "fd00::1"}, [][]string{{"fd00::1", "10.0.0.1", "192.168.0.1", "127.0.0.1"}, {"fd00::1", "10.0.0.1", "192.168.0.1"}}},
		{[]string{here, "127.0.0.1"}, [][]string{{"127.0.0.1", "10.0.0.1", "192.168.0.1", "fd00::1"}, {"127.0.0.1", "10.0.0.1", "192.168.0.1", "fd00::1"}}},
		{[]string{"::1", "127.0.0.1"}, [][]string{{"127.0.0.1", "10.0.0.1", "192.168.0.1", "fd00::1"}, {"127.0.0.1", "10.0.0.1", "192.168.0.1", "fd00::1"}}},
		{[]string{here, ""}, [][]string{{"10.0.0.1", "192.168.0.1", "fd00::1", "127.0.0.1"}, {"10.0.0.1", "192.168.0.1", "fd00::1"}}},
	} {
		var hosts []*host
		for _, r := range tc.routes {
			h := &host{}
			if h.Here = r == here; !h.Here {
				h.route = addrs(r)[0]
			}
			hosts = append(hosts, h)
		}
		for i, h := range hosts {
			got := serverAddrs(h.route, commonRoute(hosts), own, h.Here)
			if want := addrs(tc.want[i]...); !slices.Equal(got, want) {
				t.Errorf("%q: host %d looks at %v, want %v", tc.routes, i, got, want)
			}
		}
	}
}

// A launcher that bears with silent peers for longer does so with hosts.
func TestPatience(t *testing.T) {
	for _, tc := range []struct {
		own    string // ARGON_DEADTIME of the launcher
		env    []string
		hosts  time.Duration
		alives int // of ssh, of 15 s
	}{
		{"", nil, 15 * time.Second, 4},
		{"5s", nil, 10 * time.Second, 4},
		{"10m", nil, 605 * time.Second, 41},
		{"10m", []string{"ARGON_DEADTIME=1s"}, 6 * time.Second, 4},
		{"", []string{"ARGON_DEADTIME=1s", "ARGON_DEADTIMES=1h", "ARGON_DEADTIME=2m"}, 125 * time.Second, 9},
		{"nonsense", nil, 15 * time.Second, 4},
	} {
		t.Setenv("ARGON_DEADTIME", tc.own)
		if n := patience(tc.env); n != tc.hosts {
			t.Errorf("%q %q: %v, want %v", tc.own, tc.env, n, tc.hosts)
		}
		want := fmt.Sprintf("ServerAliveCountMax=%d", tc.alives)
		if j := (&job{Config: Config{Env: tc.env}}); !slices.Contains(j.ssh(), want) {
			t.Errorf("%q %q: %q, want %s", tc.own, tc.env, j.ssh(), want)
		}
	}
}

// exitMemory tells that rank 1 has called Exit.
type exitMemory struct{ deafMemory }

func (exitMemory) Failure() (rank, status int, cause string, ok bool) {
	return 1, errs.CarriedStatus(errs.NewExit(3)), "", true
}

// TestStoppedAfterExit stops the launcher, which is this process, when a rank has
// called Exit, for longer than the others have to end by themselves: they still have
// that time when the launcher goes on.
func TestStoppedAfterExit(t *testing.T) {
	j := hostsJob()
	j.memory, j.Size, j.KillGrace = exitMemory{}, 4, time.Second
	if !j.exited() || j.exit.code != 3 {
		t.Fatalf("the job has not ended by Exit: %+v", j.exit)
	}
	if out, err := exec.Command("/bin/sh", "-c", "kill -STOP $PPID; sleep 1.1; kill -CONT $PPID").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	select {
	case <-j.settle:
		t.Error("the ranks have no time to end")
	default:
	}
}
