package main

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/argon-go/argon/gas"
)

// The references of calls and of aggregated updates.
const (
	refShort   = "am/short"    // a round trip of a message of four arguments
	refMailbox = "agg/mailbox" // with values, by a function written for it
)

// updates is how many updates each rank makes between two of the others, and the words of
// the array that they are of.
const (
	updates     = 1 << 17
	updateWords = 1 << 16
)

// fewUpdates are those of a rank that travel one by one.
const fewUpdates = 1 << 11

// fewItems are those of a rank that containers have.
const fewItems = 1 << 14

// joint is an operation that all ranks do at once.
type joint struct {
	bench, via string
	// run does it count times, with values of so many bytes. Ranks other than 0 do all that
	// rank 0 does in several calls in one.
	run func(j *job, count, size int) error
}

// joints are all there are; cmdJoint has their numbers.
var joints []joint

func init() { // not an initialiser, as these refer to jobs and jobs to these
	joints = append(joints, aggregates()...)
	joints = append(joints, containerJoints()...)
	joints = append(joints, collectives("coll", func(j *job) (gas.Group, error) { return j.n, nil })...)
	joints = append(joints, collectives("team", (*job).splitTeam)...)
	joints = append(joints, joint{"team/split", "", splits})
	joints = append(joints, upcJoints()...)
	joints = append(joints, overlapJoints()...)
}

// times makes the operation of a joint of one that all ranks do, on a state of theirs.
func times[S any](state func(j *job) (S, error), once func(j *job, s S, size int) error) func(j *job, count, size int) error {
	return func(j *job, count, size int) error {
		s, err := state(j)
		for ; err == nil && count > 0; count-- {
			j.turns++
			err = once(j, s, size)
		}
		return err
	}
}

// jointSize is the number of bits of a size in a command.
const jointSize = 24

// joint makes an operation of joints[k].
func (j *job) joint(k, size int) op {
	return op{
		begin: func(count int) error { return j.command(cmdJoint, count, k<<jointSize|size) },
		run:   func(count int) error { return joints[k].run(j, count, size) },
		legs:  1,
	}
}

// answerJoint is the part of ranks other than 0 in a joint.
func (j *job) answerJoint(count uint64, what int) error {
	return joints[what>>jointSize].run(j, int(count), what&(1<<jointSize-1))
}

// jointCases are the cases of one benchmark for all sizes.
func jointCases(bench string, sizes ...int) func(j *job) []outcase {
	return func(j *job) []outcase {
		var l []outcase
		for k, b := range joints {
			if b.bench != bench {
				continue
			}
			for _, size := range sizes {
				l = append(l, outcase{via: b.via, size: size, op: j.joint(k, size), out: []output{{latency, j.way(size)}}})
			}
		}
		return l
	}
}

// aggregateCases are rates of updates of all ranks together, beside ref; "" for messages.
func aggregateCases(bench, ref string, count int) func(j *job) []outcase {
	return func(j *job) []outcase {
		out := output{updateRate, ref}
		if ref == "" {
			out.ref = j.message(8)
		}
		var l []outcase
		for k, b := range joints {
			if b.bench == bench {
				l = append(l, outcase{via: b.via, size: 8, op: j.aggregate(k, count), out: []output{out}})
			}
		}
		return l
	}
}

// aggregate makes an operation of count updates of each rank.
func (j *job) aggregate(k, count int) op {
	o := j.joint(k, count)
	o.parts = count * j.n.Size()
	return o
}

// mailboxReference is the reference of that name.
func (j *job) mailboxReference() op {
	return j.aggregate(slices.IndexFunc(joints, func(b joint) bool { return b.bench == refMailbox && b.via == viaValue }), updates)
}

// wordTable is the table of words that updates change.
type wordTable struct {
	a      gas.Array[uint64]
	own    []uint64
	shift  uint // an index has the rank from this bit on
	idx    []int
	values []uint64
	dst    []uint64
}

// words makes the table, on all ranks when the first of them needs it.
func (j *job) words() (*wordTable, error) {
	if j.table != nil {
		return j.table, nil
	}
	shift := uint(0)
	for updateWords>>shift > j.n.Size() {
		shift++
	}
	a, err := gas.NewArray[uint64](j.n, j.n.Size()<<shift, 1<<shift)
	if err != nil {
		return nil, err
	}
	w := &wordTable{a: a, own: a.LocalSlice(j.n), shift: shift, idx: make([]int, updates), values: make([]uint64, updates), dst: make([]uint64, updates)}
	r := rand.New(rand.NewPCG(1, uint64(j.n.Rank())))
	for i := range w.idx {
		w.idx[i], w.values[i] = r.IntN(a.Len()), r.Uint64()
	}
	j.table = w
	return w, nil
}

// valued is an update of a word by a value.
type valued struct {
	at int
	v  uint64
}

// aggregates are the ways to update words that are spread over all ranks.
func aggregates() []joint {
	times := func(once func(j *job, w *wordTable, size int) error) func(j *job, count, size int) error {
		return times((*job).words, once)
	}
	return []joint{
		{"agg/atomics", "", times(func(j *job, w *wordTable, size int) error {
			for k, i := range w.idx[:size] {
				if err := gas.AddNBI(j.n, w.a.At(i), w.values[k]); err != nil {
					return err
				}
			}
			if err := j.n.SyncImplicit(); err != nil {
				return err
			}
			return j.n.Barrier()
		})},
		{refMailbox, "word", times(func(j *job, w *wordTable, size int) error {
			box, err := gas.NewMailbox(j.n, "words", func(_ *gas.Node, _ int, items []uint64) {
				for _, at := range items {
					w.own[at]++
				}
			})
			if err != nil {
				return err
			}
			mask := 1<<w.shift - 1
			for _, i := range w.idx[:size] {
				if err := box.Push(i>>w.shift, uint64(i&mask)); err != nil {
					return err
				}
			}
			return box.Delete()
		})},
		{refMailbox, viaValue, times(func(j *job, w *wordTable, size int) error {
			box, err := gas.NewMailbox(j.n, "values", func(_ *gas.Node, _ int, items []valued) {
				for i := range items {
					w.own[items[i].at] += items[i].v
				}
			})
			if err != nil {
				return err
			}
			mask, values := 1<<w.shift-1, w.values[:size]
			for k, i := range w.idx[:size] {
				if err := box.Push(i>>w.shift, valued{i & mask, values[k]}); err != nil {
					return err
				}
			}
			return box.Delete()
		})},
		{"agg/arrays", "AddAll", times(func(j *job, w *wordTable, size int) error {
			return gas.AddAll(j.n, w.a, w.idx[:size], w.values[:size])
		})},
		{"agg/arrays", "UpdateAll", times(func(j *job, w *wordTable, size int) error {
			return w.a.UpdateAll(j.n, w.idx[:size], w.values[:size], func(old, v uint64) uint64 { return old ^ v })
		})},
		{"agg/arrays", "Scatter", times(func(j *job, w *wordTable, size int) error {
			return w.a.PutAll(j.n, w.idx[:size], w.values[:size])
		})},
		{"agg/gather", "Gather", times(func(j *job, w *wordTable, size int) error {
			return w.a.GetAll(j.n, w.idx[:size], w.dst[:size])
		})},
		{"agg/gather", "Batch", times(func(j *job, w *wordTable, size int) error {
			b, err := gas.NewBatch(j.n, "words", func(_ *gas.Node, _ int, at int) uint64 { return w.own[at] })
			if err != nil {
				return err
			}
			mask := 1<<w.shift - 1
			for _, i := range w.idx[:size] {
				if err := b.Ask(i>>w.shift, i&mask); err != nil {
					return err
				}
			}
			got, err := b.Answers()
			if err != nil {
				return err
			}
			if len(got) != size {
				return errors.New("a batch has not answered all questions")
			}
			return b.Delete()
		})},
	}
}

// splitTeam is a team of all ranks, which Split has made; backwards has them in reverse order.
func (j *job) splitTeam() (gas.Group, error) { return j.split(&j.team, 0) }
func (j *job) backwards() (gas.Group, error) { return j.split(&j.reverse, -j.n.Rank()) }

func (j *job) split(t **gas.Team, key int) (gas.Group, error) {
	var err error
	if *t == nil {
		*t, err = j.n.World().Split(0, key)
	}
	return *t, err
}

// collectives are the collective calls of a group.
func collectives(name string, group func(j *job) (gas.Group, error)) []joint {
	// each has once called with words of so many bytes, and for each rank in all.
	each := func(once func(j *job, g gas.Group, own, all []uint64) error) func(j *job, count, size int) error {
		return func(j *job, count, size int) error { // not times: a call may take 100 ns
			g, err := group(j)
			if err != nil {
				return err
			}
			k := g.Size() * size / 8
			if len(j.blocks[0]) < k {
				j.blocks = [2][]uint64{make([]uint64, k), make([]uint64, k)}
			}
			own, all := j.blocks[0][:size/8], j.blocks[1][:k]
			for ; err == nil && count > 0; count-- {
				j.turns++
				err = once(j, g, own, all)
			}
			return err
		}
	}
	return []joint{
		{name + "/barrier", "", each(func(_ *job, g gas.Group, _, _ []uint64) error {
			return g.(interface{ Barrier() error }).Barrier()
		})},
		{name + "/allreduce", "", each(func(_ *job, g gas.Group, own, _ []uint64) error {
			if len(own) == 1 {
				_, err := gas.AllReduce(g, own[0], gas.Sum)
				return err
			}
			return gas.AllReduceSlice(g, own, gas.Sum)
		})},
		{name + "/broadcast", "", each(func(j *job, g gas.Group, own, _ []uint64) error {
			// The root moves, or it would run ahead.
			return gas.BroadcastSlice(g, j.turns%g.Size(), own)
		})},
		{name + "/alltoall", "", each(func(j *job, g gas.Group, _, all []uint64) error {
			return gas.AllToAll(g, j.blocks[0][:len(all)], all)
		})},
		{name + "/allgather", "", each(func(_ *job, g gas.Group, own, all []uint64) error {
			return gas.AllGatherSlice(g, own, all)
		})},
		{name + "/reduce", "", each(func(j *job, g gas.Group, own, _ []uint64) error {
			return gas.ReduceSlice(g, j.turns%g.Size(), own, gas.Sum)
		})},
		{name + "/gather", "", each(func(j *job, g gas.Group, own, all []uint64) error {
			return gas.GatherSlice(g, j.turns%g.Size(), own, all)
		})},
		{name + "/scatter", "", each(func(j *job, g gas.Group, own, all []uint64) error {
			return gas.ScatterSlice(g, j.turns%g.Size(), all, own)
		})},
		{name + "/reducescatter", "", each(func(_ *job, g gas.Group, own, all []uint64) error {
			return gas.ReduceScatter(g, all, own, gas.Sum)
		})},
		{name + "/scan", "", each(func(j *job, g gas.Group, own, _ []uint64) error {
			if j.turns%2 == 1 { // or the first rank would run ahead
				var err error
				if g, err = j.backwards(); err != nil {
					return err
				}
			}
			return gas.InclusiveScanSlice(g, own, gas.Sum)
		})},
	}
}

// splits make a team of all ranks and give it back.
var splits = times(func(j *job) (*gas.Team, error) { return j.n.World(), nil }, func(_ *job, w *gas.Team, _ int) error {
	t, err := w.Split(0, 0)
	if err != nil {
		return err
	}
	return t.Delete()
})

// The functions that rank 0 calls.
var (
	callInline = gas.RegisterCall("gasbench.inline", func(_ *gas.Node, a uint64) uint64 { return a })
	callBytes  = gas.RegisterFunc("gasbench.bytes", func(_ *gas.Call, a []byte) (int, error) { return len(a), nil })
	callResult = gas.RegisterFunc("gasbench.result", func(_ *gas.Call, size int) ([]byte, error) { return resultBytes[:size], nil })
	callString = gas.RegisterFunc("gasbench.string", func(_ *gas.Call, a string) (int, error) { return len(a), nil })
	callTask   = gas.RegisterTask("gasbench.task", func(_ *gas.Call, a uint64) (uint64, error) { return a, nil })
)

// shortTrip is a round trip of a short message.
func (j *job) shortTrip() op {
	var args [4]uint32
	o := j.answered(func() error { return j.e.RequestShort(1, hPing, args[:]...) })
	o.legs = 1
	return o
}

// resultBytes are what callResult returns.
var resultBytes = make([]byte, 1<<20)

// callCases are calls with a result, one after the other.
func callCases(j *job) []outcase {
	n := j.n
	call := func(via string, size int, once func() error) outcase {
		return outcase{via: via, size: size, out: []output{{latency, refShort}}, op: repeat(once)}
	}
	text := "a text of thirty-two characters,"
	task := call("task", 8, func() error { _, err := callTask.Call(n, 1, 1); return err })
	task.op.begin = func(int) error { return j.command(cmdTasks, 0, 0) }
	l := []outcase{
		call("inline", 8, func() error { _, err := callInline.Call(n, 1, 1); return err }),
		call("string", len(text), func() error { _, err := callString.Call(n, 1, text); return err }),
		task,
	}
	for _, size := range copySizes {
		bytes := j.local[:size]
		argument := call("argument", size, func() error { _, err := callBytes.Call(n, 1, bytes); return err })
		result := call("result", size, func() error { _, err := callResult.Call(n, 1, size); return err })
		if size >= 64<<10 {
			for _, c := range []*outcase{&argument, &result} {
				c.out = append(c.out, output{bandwidth, refAttachPut})
			}
		}
		l = append(l, argument, result)
	}
	return l
}
