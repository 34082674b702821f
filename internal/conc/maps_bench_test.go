package conc

import (
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/puzpuzpuz/xsync/v3"
)

// BenchmarkMaps compares what tables that are read for every message, or every call, can be made of; the
// figures of docs/decisions/tables.md. Keys are numbers, addresses and types, as those of the runtime's tables.
func BenchmarkMaps(b *testing.B) {
	var numbers [16]uint32
	var places [16]*int
	var types [16]reflect.Type
	for i := range 16 {
		numbers[i], places[i] = uint32(i), new(int)
		types[i] = reflect.ArrayOf(i+1, reflect.TypeFor[byte]())
	}
	benchMaps(b, "number", &numbers)
	benchMaps(b, "address", &places)
	benchMaps(b, "type", &types)

	b.Run("slot/read", func(b *testing.B) {
		var table atomic.Pointer[[]any]
		all := make([]any, 16)
		for i := range all {
			all[i] = places[i]
		}
		table.Store(&all)
		var slot atomic.Uint32
		slot.Store(7)
		each(b, func(i int) {
			if all, i := *table.Load(), int(slot.Load()); i >= len(all) || all[i].(*int) == nil {
				panic(i)
			}
		})
	})
}

func benchMaps[K comparable](b *testing.B, name string, keys *[16]K) {
	m, x, plain := sync.Map{}, xsync.NewMapOf[K, *int](), map[K]*int{}
	for _, k := range keys {
		v := new(int)
		plain[k] = v
		m.Store(k, v)
		x.Store(k, v)
	}
	var copied atomic.Pointer[map[K]*int]
	copied.Store(&plain)
	var rw sync.RWMutex
	var mu sync.Mutex
	b.Run(name+"/read/sync.Map", func(b *testing.B) {
		each(b, func(i int) {
			if v, _ := m.Load(keys[i%16]); v.(*int) == nil {
				panic(i)
			}
		})
	})
	b.Run(name+"/read/xsync.MapOf", func(b *testing.B) {
		each(b, func(i int) {
			if v, _ := x.Load(keys[i%16]); v == nil {
				panic(i)
			}
		})
	})
	b.Run(name+"/read/atomic.Pointer", func(b *testing.B) {
		each(b, func(i int) {
			if (*copied.Load())[keys[i%16]] == nil {
				panic(i)
			}
		})
	})
	b.Run(name+"/read/RWMutex", func(b *testing.B) {
		each(b, func(i int) {
			rw.RLock()
			v := plain[keys[i%16]]
			rw.RUnlock()
			if v == nil {
				panic(i)
			}
		})
	})
	b.Run(name+"/change/xsync.MapOf", func(b *testing.B) {
		each(b, func(i int) {
			x.Compute(keys[i%16], func(v *int, _ bool) (*int, bool) { return v, false })
		})
	})
	b.Run(name+"/change/Mutex", func(b *testing.B) {
		each(b, func(i int) {
			mu.Lock()
			plain[keys[i%16]] = plain[keys[(i+1)%16]]
			mu.Unlock()
		})
	})
	b.Run(name+"/change/atomic.Pointer", func(b *testing.B) {
		each(b, func(i int) {
			mu.Lock()
			next := maps.Clone(*copied.Load())
			next[keys[i%16]] = nil
			copied.Store(&next)
			mu.Unlock()
		})
	})
	b.Run(name+"/empty/xsync.MapOf", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			xsync.NewMapOf[K, *int]()
		}
	})
}

func each(b *testing.B, f func(i int)) {
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			f(i)
		}
	})
}

// BenchmarkShared compares what is shared beside tables: queues, locks of readers, counters, and the shard of a map.
func BenchmarkShared(b *testing.B) {
	var mu sync.Mutex
	var rw sync.RWMutex
	rb := xsync.NewRBMutex()
	ring, at := [64][9]uint64{}, 0
	q := xsync.NewMPMCQueueOf[[9]uint64](64)
	large, counts := xsync.NewMapOf[uint64, uint64](), map[uint64]uint64{}
	for k := range uint64(1 << 14) {
		large.Store(k, 0)
		counts[k] = 0
	}
	var word atomic.Uint64
	c := xsync.NewCounter()
	var plain uint64
	for _, f := range []struct {
		name string
		f    func(i int)
	}{
		{"queue/Mutex", func(int) {
			mu.Lock()
			ring[at%64] = [9]uint64{1}
			at++
			mu.Unlock()
			mu.Lock()
			plain += ring[(at-1)%64][0]
			mu.Unlock()
		}},
		{"queue/xsync.MPMCQueueOf", func(int) {
			if q.TryEnqueue([9]uint64{1}) {
				q.TryDequeue()
			}
		}},
		{"readers/RWMutex", func(i int) {
			rw.RLock()
			if i < 0 {
				panic(i)
			}
			rw.RUnlock()
		}},
		{"readers/xsync.RBMutex", func(i int) {
			t := rb.RLock()
			if i < 0 {
				panic(i)
			}
			rb.RUnlock(t)
		}},
		{"16Ki/Mutex", func(i int) {
			mu.Lock()
			counts[uint64(i)*2654435761%(1<<14)]++
			mu.Unlock()
		}},
		{"16Ki/xsync.MapOf", func(i int) {
			large.Compute(uint64(i)*2654435761%(1<<14), func(v uint64, _ bool) (uint64, bool) { return v + 1, false })
		}},
		{"count/atomic", func(int) { word.Add(1) }},
		{"count/xsync.Counter", func(int) { c.Inc() }},
	} {
		b.Run(f.name, func(b *testing.B) { each(b, f.f) })
	}
}
