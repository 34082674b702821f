package place

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// machine describes a host for a sysfs of its own: how many processors it has, and which core,
// cache and memory node each is of.
type machine struct {
	name              string
	n                 int
	core, cache, node func(cpu int) int
	offline           []int
	bare              bool // of the folders of cores and caches there are none
}

var (
	alone = func(cpu int) int { return cpu }
	all   = func(int) int { return 0 }

	machines = []machine{
		{name: "one", n: 1, core: alone, cache: all, node: all},
		{name: "two", n: 2, core: alone, cache: all, node: all},
		{name: "eight cores, siblings n and n+8", n: 16, core: func(c int) int { return c % 8 }, cache: func(c int) int { return c % 8 / 4 }, node: all},
		{name: "two sockets of two caches", n: 16, core: alone, cache: func(c int) int { return c / 4 }, node: func(c int) int { return c / 8 }},
		{name: "siblings beside each other, nodes in turn", n: 24, core: func(c int) int { return c / 2 }, cache: func(c int) int { return c / 2 % 4 }, node: func(c int) int { return c / 2 % 2 }},
		{name: "some offline", n: 8, core: func(c int) int { return c / 2 }, cache: all, node: all, offline: []int{1, 6, 7}},
		{name: "no topology", n: 4, core: alone, cache: all, node: all, bare: true},
		{name: "1024", n: 1024, core: func(c int) int { return c % 512 }, cache: func(c int) int { return c % 512 / 8 }, node: func(c int) int { return c % 512 / 128 }},
	}
)

// sysfs writes what the system of m says, and returns its root and the processors that are online.
func (m machine) sysfs() (root fstest.MapFS, online []int) {
	root = fstest.MapFS{}
	write := func(name, text string) {
		root["sys/devices/system/"+name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	for c := range m.n {
		if !slices.Contains(m.offline, c) {
			online = append(online, c)
		}
	}
	write("cpu/online", List(online))
	if m.bare {
		return root, online
	}
	groups := func(of func(int) int) map[int][]int {
		all := map[int][]int{}
		for _, c := range online {
			all[of(c)] = append(all[of(c)], c)
		}
		return all
	}
	cores, caches, nodes := groups(m.core), groups(m.cache), groups(m.node)
	for _, c := range online {
		write(fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", c), List(cores[m.core(c)]))
		write(fmt.Sprintf("cpu/cpu%d/cache/index3/shared_cpu_list", c), List(caches[m.cache(c)]))
	}
	for node, cpus := range nodes {
		write(fmt.Sprintf("node/node%d/cpulist", node), List(cpus))
	}
	return root, online
}

// checkSets checks what Divide promises of sets of processors that all are free.
func checkSets(t *testing.T, m machine, how Bind, allowed []int, sets []Set) {
	t.Helper()
	cores := map[int][]int{}
	for _, c := range allowed {
		cores[m.core(c)] = append(cores[m.core(c)], c)
	}
	users := map[int]int{}
	least, most := 1<<30, 0 // units of a set
	unit := func(set Set) int {
		if len(sets) > len(cores) {
			return len(set.CPUs)
		}
		of := map[int]bool{}
		for _, c := range set.CPUs {
			of[m.core(c)] = true
		}
		return len(of)
	}
	for rank, set := range sets {
		if len(set.CPUs) == 0 || !slices.IsSorted(set.CPUs) {
			t.Fatalf("rank %d has %v", rank, set.CPUs)
		}
		for _, c := range set.CPUs {
			users[c]++
			if !slices.Contains(allowed, c) {
				t.Errorf("rank %d has processor %d, which it may not use", rank, c)
			}
			if len(sets) > len(cores) || how == NUMA {
				continue
			}
			for _, sibling := range cores[m.core(c)] {
				if !slices.Contains(set.CPUs, sibling) {
					t.Errorf("rank %d has %v without thread %d of a core", rank, set.CPUs, sibling)
				}
			}
		}
		least, most = min(least, unit(set)), max(most, unit(set))
	}
	for rank, set := range sets {
		if users[set.CPUs[0]] != set.Ranks {
			t.Errorf("rank %d shares its set with %d ranks, and is told %d", rank, users[set.CPUs[0]], set.Ranks)
		}
	}
	fewest, mostUsers := slices.Min(slices.Collect(maps.Values(users))), slices.Max(slices.Collect(maps.Values(users)))
	if how == NUMA {
		return
	}
	if most > least+1 || mostUsers > fewest+1 {
		t.Errorf("sets have %d to %d units, processors %d to %d ranks", least, most, fewest, mostUsers)
	}
	if len(sets) <= len(allowed) && mostUsers > 1 {
		t.Errorf("%d ranks share a processor though there are %d", mostUsers, len(allowed))
	}
	if (how == Spread || len(sets) >= len(allowed)) && len(users) != len(allowed) {
		t.Errorf("%d of %d processors are used", len(users), len(allowed))
	}
}

func TestDivide(t *testing.T) {
	for _, m := range machines {
		root, online := m.sysfs()
		odd := slices.DeleteFunc(slices.Clone(online), func(c int) bool { return c%2 == 0 && len(online) > 1 })
		for _, allowed := range [][]int{online, odd, online[:1], online[len(online)/3:]} {
			topology := Read(root, allowed)
			for _, ranks := range []int{1, 2, 3, 4, 5, 8, 12, 15, 16, 17, 24, 33} {
				for _, how := range []Bind{Spread, Core, NUMA} {
					t.Run(fmt.Sprintf("%s/%s/%d/%s", m.name, List(allowed), ranks, how), func(t *testing.T) {
						checkSets(t, m, how, allowed, Divide(topology, how, ranks, free))
					})
				}
			}
		}
	}
}

func free(int) int { return 0 }

// TestDivideOf has sets of machines as they must be.
func TestDivideOf(t *testing.T) {
	for _, tc := range []struct {
		machine string
		how     Bind
		ranks   int
		taken   []int
		want    string
	}{
		{"two", Spread, 2, nil, "0 1"},
		{"two", Spread, 1, nil, "0-1"},
		{"two", Spread, 1, []int{0}, "1"},
		{"two", Spread, 1, []int{0, 1}, "0-1"},
		{"two", Core, 1, []int{0}, "1"},
		{"two", Spread, 2, []int{0}, "0 1"},
		{"two", Spread, 3, nil, "0 0 1"},
		{"eight cores, siblings n and n+8", Spread, 2, nil, "0-3,8-11 4-7,12-15"},
		{"eight cores, siblings n and n+8", Spread, 8, nil, "0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15"},
		{"eight cores, siblings n and n+8", Core, 2, nil, "0,8 1,9"},
		{"eight cores, siblings n and n+8", Core, 2, []int{0, 9}, "2,10 3,11"},
		{"eight cores, siblings n and n+8", Spread, 1, []int{0, 1, 2, 3}, "4-7,12-15"},
		{"two sockets of two caches", Spread, 4, nil, "0-3 4-7 8-11 12-15"},
		{"two sockets of two caches", Spread, 2, nil, "0-7 8-15"},
		{"two sockets of two caches", NUMA, 4, nil, "0-7 0-7 8-15 8-15"},
		{"two sockets of two caches", NUMA, 1, nil, "0-15"},
		{"two sockets of two caches", None, 2, nil, " "},
		{"some offline", Spread, 2, nil, "0 2-5"},
	} {
		i := slices.IndexFunc(machines, func(m machine) bool { return m.name == tc.machine })
		root, _ := machines[i].sysfs()
		var sets []string
		for _, set := range Divide(Read(root, upTo(machines[i].n)), tc.how, tc.ranks, func(cpu int) int {
			if slices.Contains(tc.taken, cpu) {
				return 1
			}
			return 0
		}) {
			sets = append(sets, List(set.CPUs))
		}
		if got := strings.Join(sets, " "); got != tc.want {
			t.Errorf("%s, %d ranks, %s, without %v: %q, want %q", tc.machine, tc.ranks, tc.how, tc.taken, got, tc.want)
		}
	}
}

// upTo is the numbers below n.
func upTo(n int) (all []int) {
	for c := range n {
		all = append(all, c)
	}
	return all
}

func TestProcs(t *testing.T) {
	for _, tc := range []struct{ cpus, quota, ranks, want int }{
		{1, 1 << 30, 2, 2}, {8, 1 << 30, 2, 8}, {8, 4, 1, 4}, {8, 4, 2, 2}, {8, 1, 2, 2}, {2, 1, 1, 2}, // 1: a quota of 1.5
	} {
		if got := Procs(Set{CPUs: upTo(tc.cpus)}, tc.quota, tc.ranks); got != tc.want {
			t.Errorf("a rank of %d with %d processors and a quota of %d runs %d goroutines at once, want %d", tc.ranks, tc.cpus, tc.quota, got, tc.want)
		}
	}
}

func TestNode(t *testing.T) {
	root, online := machines[3].sysfs()
	topology := Read(root, online)
	for cpus, want := range map[string]int{"0-3": 0, "8,15": 1, "7-8": -1} {
		list, _ := parseList(cpus)
		if node, ok := topology.Node(list); ok != (want >= 0) || ok && node != want {
			t.Errorf("processors %s are of node %d, %v; want %d", cpus, node, ok, want)
		}
	}
	root, online = machines[1].sysfs()
	if node, ok := Read(root, online).Node(online); ok {
		t.Errorf("on a machine of one node, node %d is named", node)
	}
}

func TestList(t *testing.T) {
	for _, s := range []string{"", "0", "0-3", "0-3,8,10-11", "1023"} {
		if cpus, err := parseList(s); err != nil || List(cpus) != s {
			t.Errorf("%q is %v (%v)", s, cpus, err)
		}
	}
	for _, s := range []string{"x", "-1", "3-1", "0-99999999", "1,,2", "0-"} {
		if cpus, err := parseList(s); err == nil {
			t.Errorf("%q is %v", s, cpus)
		}
	}
}

func TestParseBind(t *testing.T) {
	for _, how := range []Bind{Spread, Core, NUMA, None} {
		if got, err := ParseBind(string(how)); got != how || err != nil {
			t.Errorf("%q is %q (%v)", how, got, err)
		}
	}
	for _, s := range []string{"", "socket", "Core"} {
		if _, err := ParseBind(s); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", s)) || !strings.Contains(err.Error(), "spread, core, numa and none (-bind, ARGON_BIND)") {
			t.Errorf("%q: %v", s, err)
		}
	}
}
