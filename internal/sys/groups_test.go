package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tree makes files below a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// mountinfo has a line for each "ROOT POINT" of version 2, or "ROOT POINT CONTROLLERS" of version 1.
func mountinfo(mounts ...string) string {
	var b strings.Builder
	fmt.Fprintln(&b, "22 27 0:21 / /proc rw,nosuid shared:12 - proc proc rw")
	for i, m := range mounts {
		f := strings.Fields(m)
		tail := "- cgroup2 cgroup2 rw,nsdelegate"
		if len(f) == 3 {
			tail = "- cgroup cgroup rw," + f[2]
		}
		fmt.Fprintf(&b, "%d 22 0:%d %s %s rw,relatime shared:9 master:3 %s\n", 30+i, 40+i, f[0], f[1], tail)
	}
	return b.String()
}

const noLimit1 = "9223372036854771712\n" // version 1's PAGE_COUNTER_MAX

// TestMemoryRoom: what is left is the narrowest limit, of the process's own group and those
// above, less the working set.
func TestMemoryRoom(t *testing.T) {
	const mi = 1 << 20
	meminfo := func(mib int) string {
		return fmt.Sprintf("MemTotal: %d kB\nMemFree: 1 kB\nMemAvailable: %d kB\nCommitLimit: %d kB\nCommitted_AS: %d kB\n", 2*mib<<10, mib<<10, 2000<<10, 1999<<10)
	}
	v2 := func(dir, limit string, used, idle int) map[string]string {
		return map[string]string{
			dir + "memory.max": limit + "\n", dir + "memory.high": "max\n", dir + "memory.current": strconv.Itoa(used*mi) + "\n",
			dir + "memory.stat": fmt.Sprintf("anon 4096\ninactive_anon 7\ninactive_file %d\nactive_file 1\n", idle*mi),
		}
	}
	v1 := func(dir, limit string, used, idle int) map[string]string {
		return map[string]string{
			dir + "memory.limit_in_bytes": limit + "\n", dir + "memory.usage_in_bytes": strconv.Itoa(used*mi) + "\n", dir + "memory.use_hierarchy": "1\n",
			dir + "memory.stat": fmt.Sprintf("inactive_file 0\nhierarchical_memory_limit %s\ntotal_inactive_file %d\n", strings.TrimSpace(noLimit1), idle*mi),
		}
	}
	mib := func(n int) string { return strconv.Itoa(n * mi) }
	self := strconv.Itoa(os.Getpid()) + "\n"
	// Systems are written as a list of files.
	type files = map[string]string
	type system struct {
		name, cgroup, mounts string
		files                []files
		free                 int64 // MiB
		what                 string
	}
	cases := []system{
		{"no groups", "", mountinfo(), nil, 4000, "this machine's memory"},
		{"version 2, no limit", "0::/a\n", mountinfo("/ /sys/fs/cgroup"), []files{v2("sys/fs/cgroup/a/", "max", 9, 0)}, 4000, "this machine's memory"},
		{
			"Docker, version 2, own namespace, after a large file", "0::/\n", mountinfo("/ /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/", mib(512), 500, 480)},
			492, "the container's memory group (memory.max)",
		},
		{
			"Docker, version 2, host's namespace", "0::/system.slice/docker-1.scope\n", mountinfo("/system.slice/docker-1.scope /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/", mib(512), 12, 0)},
			500, "the memory group /system.slice/docker-1.scope (memory.max)",
		},
		{
			"Docker, version 1, host's namespace", "11:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n", mountinfo("/docker/1 /sys/fs/cgroup/memory memory", "/docker/1 /sys/fs/cgroup/cpu,cpuacct cpu,cpuacct"),
			[]files{v1("sys/fs/cgroup/memory/", mib(512), 500, 400)},
			412, "the memory group /docker/1 (memory.limit_in_bytes)",
		},
		{
			"a container with the host's /proc", "0::/kubepods/pod7/c\n", mountinfo("/ /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/", mib(64), 4, 0)},
			60, "the container's memory group (memory.max)",
		},
		{
			"Kubernetes, version 2, a pod's limit alone", "0::/kubepods.slice/pod7.slice/c.scope\n", mountinfo("/ /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/kubepods.slice/pod7.slice/c.scope/", "max", 10, 5), v2("sys/fs/cgroup/kubepods.slice/pod7.slice/", mib(256), 100, 20), v2("sys/fs/cgroup/kubepods.slice/", mib(3000), 100, 0)},
			176, "the memory group /kubepods.slice/pod7.slice (memory.max)",
		},
		{
			"Kubernetes, version 1, a pod's limit that is not seen", "5:memory:/\n", mountinfo("/ /sys/fs/cgroup/memory memory"),
			[]files{v1("sys/fs/cgroup/memory/", strings.TrimSpace(noLimit1), 30, 10), {"sys/fs/cgroup/memory/memory.stat": "hierarchical_memory_limit " + mib(200) + "\ntotal_inactive_file " + mib(10) + "\n"}},
			180, "the container's memory group (hierarchical_memory_limit)",
		},
		{
			"Slurm, version 1, a step", "4:memory:/slurm/uid_1/job_2/step_0/task_0\n", mountinfo("/ /sys/fs/cgroup/memory memory"),
			[]files{v1("sys/fs/cgroup/memory/slurm/uid_1/job_2/step_0/task_0/", strings.TrimSpace(noLimit1), 10, 0), v1("sys/fs/cgroup/memory/slurm/uid_1/job_2/step_0/", mib(100), 20, 5), v1("sys/fs/cgroup/memory/slurm/uid_1/job_2/", mib(2000), 1900, 1000), v1("sys/fs/cgroup/memory/", strings.TrimSpace(noLimit1), 9000, 0)},
			85, "the memory group /slurm/uid_1/job_2/step_0 (memory.limit_in_bytes)",
		},
		{
			"version 1 without hierarchy", "4:memory:/a/b\n", mountinfo("/ /sys/fs/cgroup/memory memory"),
			[]files{v1("sys/fs/cgroup/memory/a/b/", mib(900), 0, 0), v1("sys/fs/cgroup/memory/a/", mib(100), 50, 0), {"sys/fs/cgroup/memory/a/memory.use_hierarchy": "0\n"}},
			900, "the memory group /a/b (memory.limit_in_bytes)",
		},
		{
			"Slurm, version 2, a step", "0::/system.slice/slurmstepd.scope/job_2/step_0/user/task_0\n", mountinfo("/ /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/system.slice/slurmstepd.scope/job_2/step_0/user/task_0/", "max", 1, 0), v2("sys/fs/cgroup/system.slice/slurmstepd.scope/job_2/step_0/user/", mib(100), 40, 10), v2("sys/fs/cgroup/system.slice/slurmstepd.scope/job_2/", mib(1000), 40, 0)},
			70, "the memory group /system.slice/slurmstepd.scope/job_2/step_0/user (memory.max)",
		},
		{
			"systemd-run --user --scope, hybrid", "9:name=systemd:/user.slice\n4:memory:/user.slice/run-1.scope\n0::/user.slice/run-1.scope\n", mountinfo("/ /sys/fs/cgroup/unified", "/ /sys/fs/cgroup/systemd name=systemd", "/ /sys/fs/cgroup/memory memory"),
			[]files{{"sys/fs/cgroup/unified/user.slice/run-1.scope/cgroup.procs": self}, v1("sys/fs/cgroup/memory/user.slice/run-1.scope/", mib(300), 0, 0)},
			300, "the memory group /user.slice/run-1.scope (memory.limit_in_bytes)",
		},
		{
			"memory.high", "0::/a/b\n", mountinfo("/ /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/a/b/", mib(500), 10, 0), {"sys/fs/cgroup/a/memory.high": mib(200) + "\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": mib(20)}},
			180, "the memory group /a (memory.high)",
		},
		{
			"a namespace entered after the mount", "0::/in\n", mountinfo("/../.. /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/a/x/in/", mib(50), 0, 0), {"sys/fs/cgroup/a/x/in/cgroup.procs": "1\n"}, v2("sys/fs/cgroup/a/y/in/", mib(70), 0, 0), {"sys/fs/cgroup/a/y/in/cgroup.procs": "1\n" + self}, v2("sys/fs/cgroup/a/", mib(60), 1, 0)},
			59, "the memory group /a (memory.max)",
		},
		{
			"a process that was moved out of its namespace", "0::/../b\n", mountinfo("/.. /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/b/", mib(50), 0, 0), v2("sys/fs/cgroup/", mib(70), 0, 0)},
			50, "(memory.max)",
		},
		{
			"a mount that does not show it", "0::/../b\n", mountinfo("/ /sys/fs/cgroup"),
			[]files{v2("sys/fs/cgroup/", mib(70), 0, 0)},
			70, "the container's memory group (memory.max)",
		},
		{
			"two mounts, of which one shows more", "0::/a/b\n", mountinfo("/a/b /mnt/x\\040y", "/ /sys/fs/cgroup"),
			[]files{v2("mnt/x y/", mib(90), 0, 0), v2("sys/fs/cgroup/a/b/", mib(90), 0, 0), v2("sys/fs/cgroup/a/", mib(30), 0, 0)},
			30, "the memory group /a (memory.max)",
		},
		{"one mount with a space in its name", "0::/a/b\n", mountinfo("/a/b /mnt/x\\040y"), []files{v2("mnt/x y/", mib(90), 0, 0)}, 90, "the memory group /a/b (memory.max)"},
		{"a name that begins as another one", "0::/ab\n", mountinfo("/a /mnt/a", "/ /sys/fs/cgroup"), []files{v2("mnt/a/", mib(9), 0, 0), v2("sys/fs/cgroup/ab/", mib(90), 0, 0)}, 90, "the memory group /ab (memory.max)"},
		{"a group that has been removed", "0::/gone (deleted)\n", mountinfo("/ /sys/fs/cgroup"), nil, 4000, "this machine's memory"},
		{"more used than allowed", "0::/a\n", mountinfo("/ /sys/fs/cgroup"), []files{v2("sys/fs/cgroup/a/", mib(10), 40, 5)}, 0, "the memory group /a (memory.max)"},
		{
			"garbage", "xx\n1:2\n0::a\n4:memory:/a\n0::/a\n", "1 2\n- cgroup2\nx - cgroup2 a b\n" + mountinfo("/ /sys/fs/cgroup"),
			[]files{{"sys/fs/cgroup/a/memory.max": "-5\n", "sys/fs/cgroup/a/memory.high": "many\n", "sys/fs/cgroup/a/memory.stat": "inactive_file\n"}},
			4000, "this machine's memory",
		},
	}
	for _, c := range cases {
		all := files{"proc/self/cgroup": c.cgroup, "proc/self/mountinfo": c.mounts, "proc/meminfo": meminfo(4000)}
		for _, f := range c.files {
			for k, v := range f {
				all[k] = v
			}
		}
		r := memoryRoom(tree(t, all), true)
		if r.Free != c.free*mi || !strings.Contains(r.What, c.what) {
			t.Errorf("%s: %v; want %d MiB of %s", c.name, r, c.free, c.what)
		}
	}
	high := files{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountinfo("/ /sys/fs/cgroup"), "proc/meminfo": meminfo(4000), "sys/fs/cgroup/memory.high": "1000\n"}
	if r := memoryRoom(tree(t, high), false); r.Free != 4000*mi {
		t.Errorf("memory.high bounds what a user asks for: %v", r)
	}
	delete(high, "proc/self/cgroup") // no /proc of this kind: the usual places
	delete(high, "proc/self/mountinfo")
	high["sys/fs/cgroup/memory.max"] = mib(3) + "\n"
	if r := memoryRoom(tree(t, high), false); r.Free != 3*mi {
		t.Errorf("without /proc: %v", r)
	}
	strict := files{"proc/meminfo": meminfo(4000), "proc/sys/vm/overcommit_memory": "2\n"}
	if r := memoryRoom(tree(t, strict), false); r.Free != mi || !strings.Contains(r.What, "overcommit") {
		t.Errorf("without overcommit: %v", r)
	}
}

// TestOOMWatch: whose limit ended a process, told once for each.
func TestOOMWatch(t *testing.T) {
	mounts := mountinfo("/ /sys/fs/cgroup", "/ /sys/fs/cgroup/memory memory")
	for _, c := range []struct {
		name          string
		before, after map[string]string
		want          []string
	}{
		{
			"version 2, own",
			map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "2147483648\n", "sys/fs/cgroup/a/b/memory.events": "low 0\noom 1\noom_kill 1\n", "sys/fs/cgroup/a/memory.events": "oom 1\noom_kill 1\n"},
			map[string]string{"sys/fs/cgroup/a/b/memory.events": "low 0\noom 3\noom_kill 3\n", "sys/fs/cgroup/a/memory.events": "oom 3\noom_kill 3\n"},
			[]string{"the memory group /a/b (limit 2 GiB) ran out of memory", "the memory group /a/b (limit 2 GiB) ran out of memory", ""},
		},
		{
			"version 2, above",
			map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1048576\n", "sys/fs/cgroup/a/b/memory.events": "oom 0\noom_kill 0\n", "sys/fs/cgroup/a/memory.events": "oom 0\noom_kill 0\n"},
			map[string]string{"sys/fs/cgroup/a/b/memory.events": "oom 0\noom_kill 1\n", "sys/fs/cgroup/a/memory.events": "oom 1\noom_kill 1\n"},
			[]string{"the memory group /a (limit 1 MiB) ran out of memory", ""},
		},
		{
			"version 2, the machine",
			map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.events": "oom 4\noom_kill 0\n"},
			map[string]string{"sys/fs/cgroup/a/memory.events": "oom 4\noom_kill 1\n"},
			[]string{"the machine ran out of memory", ""},
		},
		{
			"version 1",
			map[string]string{"proc/self/cgroup": "2:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1536\n", "sys/fs/cgroup/memory/a/memory.failcnt": "5\n", "sys/fs/cgroup/memory/a/memory.oom_control": "under_oom 0\noom_kill 5\n"},
			map[string]string{"sys/fs/cgroup/memory/a/memory.failcnt": "9\n", "sys/fs/cgroup/memory/a/memory.oom_control": "under_oom 0\noom_kill 6\n"},
			[]string{"the memory group /a (limit 1.5 KiB) ran out of memory", ""},
		},
		{"nothing", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.events": "oom 4\noom_kill 2\n"}, nil, []string{""}},
		{"no groups", map[string]string{"proc/self/cgroup": ""}, nil, []string{""}},
	} {
		c.before["proc/self/mountinfo"] = mounts
		root := tree(t, c.before)
		w := watchOOM(root)
		for name, text := range c.after {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range c.want {
			if got := w.Killed(); got != want {
				t.Errorf("%s: death %d: %q, want %q", c.name, i, got, want)
			}
		}
	}
}

// TestTaskRoom: the narrowest pids group counts.
func TestTaskRoom(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/self/cgroup": "3:pids:/a/b\n0::/\n", "proc/self/mountinfo": mountinfo("/ /sys/fs/cgroup/pids pids"),
		"sys/fs/cgroup/pids/a/b/pids.max": "max\n", "sys/fs/cgroup/pids/a/b/pids.current": "7\n",
		"sys/fs/cgroup/pids/a/pids.max": "30\n", "sys/fs/cgroup/pids/a/pids.current": "12\n",
	})
	if r := groupTasks(root); r.String() != "the pids group /a (pids.max) allows 30, of which 18 are left (docker run --pids-limit, podPidsLimit of a kubelet, systemd's TasksMax)" {
		t.Errorf("%v", r)
	}
}

func TestAmount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1 << 10: "1 KiB", 1536: "1.5 KiB", 64 << 20: "64 MiB", 5<<30 + 1<<29: "5.5 GiB", 1 << 42: "4 TiB", 1<<63 - 1: "8388608 TiB"} {
		if got := Amount(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
