package place

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/sys"
)

// A processor is a thread of a core. Cores, caches and nodes have the number of their first
// processor, nodes that of the system.
type processor struct{ id, core, cache, node int }

// A Topology is the processors that may be used, those of a node, of a cache and of a core
// beside each other.
type Topology struct{ all []processor }

const (
	system      = "sys/devices/system/"
	nodeFolders = system + "node/node[0-9]*"
)

// Read returns what the sysfs under root says of the processors allowed (Documentation/admin-guide/cputopology.rst and Documentation/ABI/stable/sysfs-devices-node of the
// kernel). A processor that is not online is left out. What sysfs does not tell is taken for
// the simplest: a processor is a core, and all share one cache and node 0.
func Read(root fs.FS, allowed []int) *Topology {
	list := func(names ...string) []int {
		for _, name := range names {
			if b, err := fs.ReadFile(root, system+name); err == nil {
				cpus, _ := parseList(string(b))
				return cpus
			}
		}
		return nil
	}
	may := map[int]*processor{}
	online := list("cpu/online")
	for _, c := range allowed {
		if online == nil || slices.Contains(online, c) {
			may[c] = &processor{id: c, core: -1, cache: -1}
		}
	}
	nodes, _ := fs.Glob(root, nodeFolders)
	for _, dir := range nodes {
		number, err := strconv.Atoi(strings.TrimPrefix(path.Base(dir), "node"))
		for _, c := range list("node/" + path.Base(dir) + "/cpulist") {
			if p := may[c]; p != nil && err == nil {
				p.node = number
			}
		}
	}
	// Each list of a core or a cache is read for the first of its processors alone.
	for _, c := range slices.Sorted(slices.Values(allowed)) {
		p := may[c]
		if p == nil {
			continue
		}
		dir := fmt.Sprintf("cpu/cpu%d/", c)
		if p.core < 0 {
			p.core = c
			for _, sibling := range list(dir+"topology/core_cpus_list", dir+"topology/thread_siblings_list") {
				if s := may[sibling]; s != nil {
					s.core = c
				}
			}
		}
		if p.cache >= 0 {
			continue
		}
		p.cache = c
		shared := list(dir+"cache/index3/shared_cpu_list", dir+"cache/index2/shared_cpu_list", "cpu/online")
		for _, sharer := range shared {
			if s := may[sharer]; s != nil {
				s.cache = c
			}
		}
	}
	t := &Topology{}
	for _, p := range may {
		t.all = append(t.all, *p)
	}
	slices.SortFunc(t.all, func(a, b processor) int {
		return cmp.Or(a.node-b.node, a.cache-b.cache, a.core-b.core, a.id-b.id)
	})
	return t
}

// OwnNode is the memory node of the processors that this process may run on; ok is false if they are
// of several, or if the machine has no other.
func OwnNode() (node int, ok bool) {
	root := os.DirFS("/")
	if nodes, _ := fs.Glob(root, nodeFolders); len(nodes) < 2 {
		return 0, false
	}
	cpus, err := sys.AffinityOf(os.Getpid())
	if err != nil {
		return 0, false
	}
	return Read(root, cpus).Node(cpus)
}

// Node is the memory node that all of cpus are of; ok is false if they are of several, or if
// the machine has no other.
func (t *Topology) Node(cpus []int) (node int, ok bool) {
	several := false
	node = -1
	for _, p := range t.all {
		several = several || p.node != t.all[0].node
		switch {
		case !slices.Contains(cpus, p.id):
		case node >= 0 && node != p.node:
			return 0, false
		default:
			node = p.node
		}
	}
	return node, several && node >= 0
}
