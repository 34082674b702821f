package sys

import (
	"math"
	"testing"
)

func TestCPULimit(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"nothing", nil, inf},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5},
		{"version 2, no limit", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, inf},
		{"version 2, a group above", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 0.5},
		{"version 2, in a container", map[string]string{"proc/self/cgroup": "0::/not/seen\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3},
		{"version 1", map[string]string{"proc/self/cgroup": "9:memory:/m\n3:cpu,cpuacct:/x\n0::/\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"}, 2},
		{"version 1, separate", map[string]string{"proc/self/cgroup": "1:cpu:/x\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "25000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "50000\n"}, 0.5},
		{"version 1, a container with the host's names", map[string]string{"proc/self/cgroup": "1:cpu:/pod/c/x\n", "mnt/cpu/x/cpu.cfs_quota_us": "-1\n", "mnt/cpu/x/cpu.cfs_period_us": "100000\n", "mnt/cpu/cpu.cfs_quota_us": "25000\n", "mnt/cpu/cpu.cfs_period_us": "50000\n"}, 0.5},
		{"version 1, cpuset is another", map[string]string{"proc/self/cgroup": "1:cpuset:/x\n", "sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us": "100\n", "sys/fs/cgroup/cpuset/x/cpu.cfs_period_us": "100\n"}, inf},
		{"garbage", map[string]string{"proc/self/cgroup": "0::/a\nxx\n1:2\n", "sys/fs/cgroup/a/cpu.max": "0 0\n", "sys/fs/cgroup/cpu.max": "many few more\n"}, inf},
	} {
		if c.files != nil {
			c.files["proc/self/mountinfo"] = mountinfo("/ /sys/fs/cgroup", "/ /sys/fs/cgroup/cpuset cpuset", "/ /sys/fs/cgroup/cpu,cpuacct cpu,cpuacct", "/pod/c /mnt/cpu cpu")
		}
		if got := cpuLimit(tree(t, c.files)); got != c.want {
			t.Errorf("%s: %v processors, want %v", c.name, got, c.want)
		}
	}
	if n := Processors(); n < 1 || n > NumCPU() {
		t.Errorf("%d processors of %d", n, NumCPU())
	}
}
