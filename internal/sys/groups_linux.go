package sys

import (
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A group is a control group that this process is in: its own, or one above it.
// A group's limit holds for all processes of it and of the groups below together
// ("Control Group v2" and "Control Groups version 1" in the kernel's documentation).
type group struct {
	name string // as the kernel calls it, "/" at the top of what a namespace shows
	dir  string // where its files are
	v2   bool
}

// groups lists the control groups of a controller that this process is in, its own
// first, then those above it as far as they can be seen. root is where /proc
// and /sys are found, for tests. Where a controller is version 1's, version 2's group
// has no files for it: readers pass over what is missing.
func groups(root, controller string) (all []group) {
	mounts := cgroupMounts(root)
	for _, own := range memberships(root) {
		if own.v2 || slices.Contains(strings.Split(own.controllers, ","), controller) {
			all = append(all, own.line(root, controller, mounts)...)
		}
	}
	return all
}

// A membership is a line of /proc/self/cgroup: hierarchy:controllers:path
// (cgroups(7)). Version 2 is hierarchy 0, without controllers.
type membership struct {
	v2                bool
	controllers, path string
}

// memberships are those of this process. Where there is no /proc they are guessed:
// a container sees its own group as the top.
func memberships(root string) (all []membership) {
	b, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return []membership{{true, "", "/"}, {false, "memory,cpu,pids", "/"}}
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 && strings.HasPrefix(f[2], "/") {
			all = append(all, membership{f[0] == "0" && f[1] == "", f[1], strings.TrimSuffix(f[2], " (deleted)")})
		}
	}
	return all
}

// A cgroupMount is where a part of a hierarchy is seen: the group top and all below it.
type cgroupMount struct {
	top, at string
	v2      bool
	options []string // which have the controllers
}

// cgroupMounts reads /proc/self/mountinfo (proc_pid_mountinfo(5)).
func cgroupMounts(root string) (all []cgroupMount) {
	b, err := os.ReadFile(path.Join(root, "proc/self/mountinfo"))
	if err != nil {
		all = []cgroupMount{{"/", "/sys/fs/cgroup", true, nil}}
		for _, c := range []string{"memory", "cpu", "pids"} {
			all = append(all, cgroupMount{"/", "/sys/fs/cgroup/" + c, false, []string{c}})
		}
		return all
	}
	for line := range strings.Lines(string(b)) {
		// id parent device root mount-point options [tag ...] - type source super-options
		head, tail, ok := strings.Cut(line, " - ")
		f, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(f) < 5 || len(t) < 3 || t[0] != "cgroup" && t[0] != "cgroup2" {
			continue
		}
		all = append(all, cgroupMount{unescape(f[3]), unescape(f[4]), t[0] == "cgroup2", strings.Split(t[2], ",")})
	}
	return all
}

// unescape undoes how mountinfo writes space, tab, newline and backslash: \040.
func unescape(s string) string {
	for i := 0; i+4 <= len(s); i++ {
		if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); s[i] == '\\' && err == nil {
			s = s[:i] + string([]byte{byte(n)}) + s[i+4:]
		}
	}
	return s
}

// line is the group m and those above it, by that mount which shows the most of
// them. If none shows m itself, as in a container that has the host's /proc, the mounted
// group is taken for it.
func (m membership) line(root, controller string, mounts []cgroupMount) (best []group) {
	var top *group
	for _, at := range mounts {
		if at.v2 != m.v2 || !m.v2 && !slices.Contains(at.options, controller) {
			continue
		}
		dir := path.Join(root, at.at)
		if top == nil {
			top = &group{at.top, dir, m.v2}
		}
		below, ok := at.below(dir, m.path)
		if !ok {
			continue
		}
		var all []group
		for ; ; below = path.Dir(below) {
			all = append(all, group{path.Join(at.top, below), path.Join(dir, below), m.v2})
			if below == "/" {
				break
			}
		}
		if len(all) > len(best) {
			best = all
		}
	}
	if best == nil && top != nil {
		best = []group{*top}
	}
	return best
}

// below is how the group called name is reached from the mount point, which is dir.
//
// Names are relative to the top of the cgroup namespace, and so is the root of a mount:
// what lies above begins with as many "/.." as there are groups between (cgroup_namespaces(7)).
// Of a mount from before the namespace only that number is known; the group is that one
// which holds this process.
func (at cgroupMount) below(dir, name string) (string, bool) {
	up, top := ups(at.top)
	upName, rest := ups(name)
	switch {
	case up < upName || up > upName && top != "/":
		return "", false
	case up > upName:
		found, ok := holding(dir, up-upName, rest)
		return strings.TrimPrefix(found, dir), ok
	}
	if top != "/" {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, top); !ok || rest != "" && rest[0] != '/' {
			return "", false
		}
	}
	rest = path.Clean("/" + rest)
	_, err := os.Stat(path.Join(dir, rest))
	return rest, err == nil
}

// ups counts how often name goes up, and returns the rest of it.
func ups(name string) (n int, rest string) {
	for name == "/.." || strings.HasPrefix(name, "/../") {
		n, name = n+1, name[3:]
	}
	return n, path.Clean("/" + name)
}

// holding finds the group that holds this process: rest below one that is depth levels
// below dir.
func holding(dir string, depth int, rest string) (string, bool) {
	if depth == 0 {
		d := path.Join(dir, rest)
		b, err := os.ReadFile(path.Join(d, "cgroup.procs"))
		return d, err == nil && slices.Contains(strings.Fields(string(b)), strconv.Itoa(os.Getpid()))
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if found, ok := holding(path.Join(dir, e.Name()), depth-1, rest); ok {
			return found, true
		}
	}
	return "", false
}

// called names g in messages, as a group of what is limited.
func (g group) called(of string) string {
	if g.name == "/" {
		return "the container's " + of + " group"
	}
	return "the " + of + " group " + g.name
}

// number reads a file that has one number. "max" and what is missing are false, as are
// the numbers that version 1 has for no limit.
func (g group) number(file string) (int64, bool) {
	b, err := os.ReadFile(path.Join(g.dir, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil && n >= 0 && n < 1<<60
}

// field reads the number behind a name in a file of such lines, as memory.stat is.
func (g group) field(file, name string) (int64, bool) {
	b, err := os.ReadFile(path.Join(g.dir, file))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil && n >= 0 && n < 1<<60
		}
	}
	return 0, false
}

// groupMemory is the room in the narrowest memory group: its limit less its working
// set, that is, its memory without the pages of files that it has not used for long
// (inactive_file): those the kernel takes back before it ends processes. soft counts
// memory.high, too, above which processes are slowed down.
func groupMemory(root string, soft bool) Room {
	room := boundless
	for i, g := range groups(root, "memory") {
		if g.v2 {
			used, _ := g.number("memory.current")
			idle, _ := g.field("memory.stat", "inactive_file")
			for _, file := range []string{"memory.max", "memory.high"} {
				if limit, ok := g.number(file); ok && (soft || file == "memory.max") {
					room = Narrowest(room, groupRoom(g, file, limit, used-idle))
				}
			}
			continue
		}
		// Groups without use_hierarchy are no part of the one above.
		if own, ok := g.number("memory.use_hierarchy"); i > 0 && ok && own == 0 {
			break
		}
		used, _ := g.number("memory.usage_in_bytes")
		idle, ok := g.field("memory.stat", "total_inactive_file")
		if !ok {
			idle, _ = g.field("memory.stat", "inactive_file")
		}
		if limit, ok := g.number("memory.limit_in_bytes"); ok {
			room = Narrowest(room, groupRoom(g, "memory.limit_in_bytes", limit, used-idle))
		}
		// The limit of groups above, which a container does not see; they use at least as much.
		if limit, ok := g.field("memory.stat", "hierarchical_memory_limit"); ok {
			room = Narrowest(room, groupRoom(g, "hierarchical_memory_limit", limit, used-idle))
		}
	}
	return room
}

func groupRoom(g group, file string, limit, used int64) Room {
	return Room{
		Free: max(limit-max(used, 0), 0), Limit: limit, What: g.called("memory") + " (" + file + ")",
		Knob: "docker run --memory, Kubernetes' resources.limits.memory, sbatch --mem, systemd's MemoryMax",
	}
}

// cpuLimit is how many processors' time the narrowest cpu control group allows
// that this process is in: version 2's cpu.max, or version 1's cpu.cfs_quota_us and
// cpu.cfs_period_us ("Control Group v2" and "CFS Bandwidth Control" in the kernel's
// documentation). Infinity means no limit that could be read.
func cpuLimit(root string) float64 {
	limit := math.Inf(1)
	for _, g := range groups(root, "cpu") {
		var quota, period string
		if g.v2 {
			b, err := os.ReadFile(path.Join(g.dir, "cpu.max")) // "QUOTA PERIOD" or "max PERIOD"
			if f := strings.Fields(string(b)); err == nil && len(f) == 2 {
				quota, period = f[0], f[1]
			}
		} else {
			q, err1 := os.ReadFile(path.Join(g.dir, "cpu.cfs_quota_us"))
			p, err2 := os.ReadFile(path.Join(g.dir, "cpu.cfs_period_us"))
			if err1 == nil && err2 == nil {
				quota, period = strings.TrimSpace(string(q)), strings.TrimSpace(string(p))
			}
		}
		if q, ok := ratio(quota, period); ok {
			limit = min(limit, q)
		}
	}
	return limit
}

// ratio is quota/period, or false if there is no limit: "max" or -1.
func ratio(quota, period string) (float64, bool) {
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0, false
	}
	return q / p, true
}

// groupTasks is how many more processes and threads the narrowest pids group allows.
func groupTasks(root string) Room {
	room := boundless
	for _, g := range groups(root, "pids") {
		limit, ok := g.number("pids.max")
		used, _ := g.number("pids.current")
		if ok {
			room = Narrowest(room, Room{
				Free: max(limit-used, 0), Limit: limit, What: g.called("pids") + " (pids.max)", Count: true,
				Knob: "docker run --pids-limit, podPidsLimit of a kubelet, systemd's TasksMax",
			})
		}
	}
	return room
}

// An OOMWatch finds out which of the processes that SIGKILL has ended were ended because
// memory ran out. One goroutine may use it.
type OOMWatch struct {
	groups []group
	kills  []int64 // what each has counted so far
	full   []int64
}

// WatchOOM begins to watch the memory groups of this process, in which the processes
// are that it will start.
func WatchOOM() *OOMWatch { return watchOOM("/") }

func watchOOM(root string) *OOMWatch {
	w := &OOMWatch{groups: groups(root, "memory")}
	for _, g := range w.groups {
		kills, full := g.oom()
		w.kills, w.full = append(w.kills, kills), append(w.full, full)
	}
	return w
}

// oom is how many processes of the group have been killed for want of memory, and how
// often memory has run out in the group: version 2 counts both in memory.events, for
// all below as well, before it kills; version 1 the former in memory.oom_control, for the group
// itself, and how often the limit was hit in memory.failcnt.
func (g group) oom() (kills, full int64) {
	if g.v2 {
		kills, _ = g.field("memory.events", "oom_kill")
		full, _ = g.field("memory.events", "oom")
		return kills, full
	}
	kills, _ = g.field("memory.oom_control", "oom_kill")
	full, _ = g.number("memory.failcnt")
	return kills, full
}

// Killed says where memory has run out if a process has been killed for that since
// WatchOOM, or since Killed has said so of another one; "" if none has.
func (w *OOMWatch) Killed() string {
	killed, where := false, -1
	for i, g := range w.groups {
		kills, full := g.oom()
		if kills > w.kills[i] {
			killed = true
			w.kills[i]++
		}
		if where < 0 && full > w.full[i] { // those above have counted it, too
			where = i
		}
	}
	switch {
	case !killed:
		return ""
	case where < 0:
		return "the machine ran out of memory"
	}
	g, limit := w.groups[where], int64(0)
	for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
		if n, ok := g.number(file); ok {
			limit = n
		}
	}
	if limit == 0 {
		return g.called("memory") + " ran out of memory"
	}
	return g.called("memory") + " (limit " + Amount(limit) + ") ran out of memory"
}
