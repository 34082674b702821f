package main

import (
	"fmt"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// The containers of package dist: entries of other ranks and of the own one by one, and many in
// a message.
const (
	benchQueue   = "dist/queue"
	benchMap     = "dist/map"
	benchMapBulk = "dist/mapbulk"
)

// containers are a job's containers, made when the first case needs them.
type containers struct {
	queue *dist.Queue[uint64]
	m     *dist.Map[uint64, uint64]
	add   *dist.Update[uint64, uint64, uint64, uint64]
	keys  []uint64 // of all ranks' entries, in an order of this rank's
	got   uint64   // keeps what is read
}

// spread makes the containers, on all ranks when the first of them needs them. The map has
// an entry for each key then.
func (j *job) spread() (*containers, error) {
	if j.dist != nil {
		return j.dist, nil
	}
	w, err := j.words()
	if err != nil {
		return nil, err
	}
	c := &containers{keys: make([]uint64, updates)}
	for k, i := range w.idx {
		c.keys[k] = uint64(i)
	}
	if c.queue, err = dist.NewQueue[uint64](j.n, "gasbench", 0); err != nil {
		return nil, err
	}
	if c.m, err = dist.NewMap[uint64, uint64](j.n, "gasbench"); err != nil {
		return nil, err
	}
	c.add, err = dist.NewUpdate(c.m, "add", func(e *dist.Entry[uint64, uint64], by uint64) uint64 {
		*e.Value += by
		return *e.Value
	})
	if err != nil {
		return nil, err
	}
	if err := c.m.PutAll(c.keys, w.values); err != nil {
		return nil, err
	}
	j.dist = c
	return c, j.n.Barrier()
}

// containerJoints are operations on containers by all ranks at once, size times by each.
func containerJoints() []joint {
	times := func(once func(j *job, c *containers, keys, values []uint64) error) func(j *job, count, size int) error {
		return times((*job).spread, func(j *job, c *containers, size int) error {
			if err := once(j, c, c.keys[:size], j.table.values[:size]); err != nil {
				return err
			}
			return j.n.Barrier()
		})
	}
	// each is times with one operation for each key.
	each := func(one func(c *containers, key, v uint64) error) func(j *job, count, size int) error {
		return times(func(_ *job, c *containers, keys, values []uint64) error {
			for k, key := range keys {
				if err := one(c, key, values[k]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	// popped has all ranks push what push pushes, and pop all of it.
	popped := func(push func(j *job, q *dist.Queue[uint64], items []uint64) (int, error)) func(j *job, count, size int) error {
		return times(func(j *job, c *containers, keys, _ []uint64) error {
			want, err := push(j, c.queue, keys)
			if err != nil {
				return err
			}
			before := c.queue.Stats().Popped
			if err := c.queue.Run(func(_ *gas.Node, v uint64) error { c.got += v; return nil }); err != nil {
				return err
			}
			if k := int(c.queue.Stats().Popped - before); k > want {
				return fmt.Errorf("a queue has had %d of %d items", k, want)
			}
			return nil
		})
	}
	return []joint{
		{benchQueue, "local", popped(func(j *job, q *dist.Queue[uint64], items []uint64) (int, error) {
			for _, v := range items {
				if err := q.Push(v); err != nil {
					return 0, err
				}
			}
			return len(items) * j.n.Size(), nil
		})},
		{benchQueue, "steal", popped(func(j *job, q *dist.Queue[uint64], items []uint64) (int, error) {
			total := len(items) * j.n.Size()
			if j.n.Rank() != 0 {
				return total, nil
			}
			for range j.n.Size() {
				if err := q.PushAll(items); err != nil {
					return 0, err
				}
			}
			return total, nil
		})},
		{benchMap, "put", each(func(c *containers, key, v uint64) error { return c.m.Put(key, v) })},
		{benchMap, "get", each(func(c *containers, key, _ uint64) error {
			v, _, err := c.m.Get(key)
			c.got += v
			return err
		})},
		{benchMap, "update", each(func(c *containers, key, v uint64) error {
			_, err := c.add.Call(key, v)
			return err
		})},
		{benchMapBulk, "PutAll", times(func(_ *job, c *containers, keys, values []uint64) error {
			return c.m.PutAll(keys, values)
		})},
		{benchMapBulk, "GetAll", times(func(_ *job, c *containers, keys, _ []uint64) error {
			_, _, err := c.m.GetAll(keys)
			return err
		})},
		{benchMapBulk, "Push", times(func(_ *job, c *containers, keys, values []uint64) error {
			for k, key := range keys {
				if err := c.add.Push(key, values[k]); err != nil {
					return err
				}
			}
			return c.add.Flush()
		})},
	}
}
