package dist

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
)

// Two functions serve all containers of a rank, for functions are registered before there are any: one
// for what fits into the words of a message, and takes no memory then, and one for the rest.
var (
	callOne  = gas.RegisterFunc("dist.one", serveOne)
	callMany = gas.RegisterFunc("dist.many", serveMany)
)

// question is one access in the words of a message.
type question struct {
	Map  uint32
	Op   uint16 // of that container
	Len  uint16 // of Data
	Data [44]byte
}

// reply is the answer to a question, in words.
type reply struct{ Data [56]byte }

// request is Count accesses, one behind the other in Data, as the operation encodes them. Map is the container's number.
type request struct {
	Map, Op, Count uint32
	// Quiet: no results are wanted.
	Quiet bool
	Data  []byte
}

// served is a container as calls of other ranks see it.
type served interface {
	serveOne(q question) (reply, error)
	serveMany(q *request) ([]byte, error)
}

// table has the containers of a rank by their numbers; see ranks.enter. Every
// message that is served reads it: a map that add and remove replace by another takes no lock for that.
type table struct {
	mu   sync.Mutex // of add and remove
	last uint32
	maps atomic.Pointer[map[uint32]served]
}

var tables gas.PerRank[table]

// add gives m a number that no container of this rank has had, least or more.
func (t *table) add(m served, least uint32) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, least)
	t.change(func(maps map[uint32]served) { maps[t.last] = m })
	return t.last
}

func (t *table) remove(number uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.change(func(maps map[uint32]served) { delete(maps, number) })
}

// change replaces the map of containers by a changed copy. The lock is held.
func (t *table) change(f func(maps map[uint32]served)) {
	all := make(map[uint32]served)
	if old := t.maps.Load(); old != nil {
		maps.Copy(all, *old)
	}
	f(all)
	t.maps.Store(&all)
}

// find is the container of that number.
func find(c *gas.Call, number uint32) (served, error) {
	if all := tables.Of(c.Node).maps.Load(); all != nil {
		if m := (*all)[number]; m != nil {
			return m, nil
		}
	}
	return nil, errs.NotReady("dist: container number %d is deleted on rank %d, or was never made there", number, c.Rank())
}

func serveOne(c *gas.Call, q question) (reply, error) {
	m, err := find(c, q.Map)
	if err != nil {
		return reply{}, err
	}
	return m.serveOne(q)
}

func serveMany(c *gas.Call, q request) ([]byte, error) {
	m, err := find(c, q.Map)
	if err != nil {
		return nil, err
	}
	return m.serveMany(&q)
}
