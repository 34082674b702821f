package sys

import (
	"os"
	"testing"
	"time"
)

// TestShares: what held a process back is told of from where it is worth it on.
func TestShares(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		is   share
		want string
	}{
		{share{ran: 10 * time.Second}, ""},
		{share{ran: 3 * time.Second, delayed: 3 * time.Second, throttled: 2 * time.Second, collecting: 600 * ms}, ""},
		{share{delayed: 2 * time.Second}, ""}, // it waits, and is woken late
		{share{ran: 1200 * ms, delayed: 8900 * ms}, "in 10s its process starved: threads ran for 1.2s and waited for a processor for 8.9s, with 64 threads ready on the host and 2 of its processors to run on"},
		{share{ran: 1200 * ms, throttled: 4100 * ms}, "in 10s its process was throttled for 4.1s by the limit of its control group, 0.5 processors"},
		{share{ran: 9 * time.Second, collecting: 5 * time.Second}, "in 10s its process collected garbage for 5s of 9s that it ran"},
		{share{ran: 3 * time.Second, delayed: 5 * time.Second, collecting: 5 * time.Second}, "in 10s its process starved: threads ran for 3s and waited for a processor for 5s, with 64 threads ready on the host and 2 of its processors to run on; collected garbage for 3s of 3s that it ran"},
	} {
		was := share{at: time.Hour, ran: time.Minute, delayed: time.Second, throttled: ms, collecting: 7 * ms}
		is := share{was.at + 10*time.Second, was.ran + c.is.ran, was.delayed + c.is.delayed, was.throttled + c.is.throttled, was.collecting + c.is.collecting}
		if got := is.since(was, "64 threads", 2, 0.5); got != c.want {
			t.Errorf("of %+v: %q, want %q", c.is, got, c.want)
		}
	}
	var s Starvation
	if text := s.Look(); text != "" {
		t.Errorf("the first look: %q", text)
	}
}

// TestThrottled reads what control groups of both versions say of it, and how many threads are ready.
func TestThrottled(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  time.Duration
	}{
		"version 2": {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.stat": "usage_usec 9\nthrottled_usec 1500\n", "sys/fs/cgroup/a/cpu.stat": "throttled_usec 2500\n"}, 2500 * time.Microsecond},
		"version 1": {map[string]string{"proc/self/cgroup": "3:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.stat": "nr_throttled 3\nthrottled_time 1500\n"}, 1500},
		"no limit":  {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.stat": "usage_usec 9\n"}, 0},
	} {
		c.files["proc/self/mountinfo"] = mountinfo("/ /sys/fs/cgroup", "/ /sys/fs/cgroup/cpu,cpuacct cpu,cpuacct")
		c.files["proc/loadavg"] = "0.20 0.18 0.12 7/80 11206\n"
		root := tree(t, c.files)
		if got := throttled(root); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := ready(root); got != "7 threads" {
			t.Errorf("%s: ready are %s", name, got)
		}
	}
	if _, err := os.Stat("/proc/loadavg"); err == nil && ready("/") == "unknown threads" {
		t.Error("this machine does not say how many threads are ready")
	}
}
