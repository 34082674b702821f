package main

import (
	"runtime"
	"slices"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
	"github.com/argon-go/argon/upc/rt"
)

// The references of the services of package rt: the operations that they are made of.
const (
	refSlice    = "go/slice"  // an access to an element of a slice, or an iteration with one
	refNear     = "gas/near"  // a word of the own segment, by gas.Ptr, put or got
	refFar      = "gas/far"   // of rank 1's
	refPutSlice = "gas/put"   // bytes, by PutSlice
	refGetSlice = "gas/get"   // by GetSlice
	refNB       = "gas/putnb" // 64 words by PutNB, then Sync of all
	refLock     = "gas/lock"
	refLocks    = "gas/locks"     // of all ranks at once
	refReduce   = "gas/reduce"    // of a word
	refGather   = "gas/allgather" // of slices
)

// The bounds of upc/target: how much more than a plain access to a slice an increment of a
// pointer-to-shared, and an access through one, may take, ns.
const (
	mostNext  = 2
	mostDeref = 4
)

const (
	upcBlock = 64       // elements of a block of the phased pointers
	upcWords = 1 << 12  // of the own array that is walked through
	upcRun   = 1 << 12  // iterations of a upc_forall loop that are a thread's
	upcBytes = 64 << 10 // the largest of memput and memget
	upcMost  = 4 << 10  // and of collective calls
)

// upcJob is a job's state of package rt, made when the first case needs it.
type upcJob struct {
	t        *rt.Thread
	own      rt.Phaseless // upcWords words, and as many on each thread
	mine     []uint64     // these
	src, dst rt.Phaseless // upcMost bytes for each thread on each
	lock     rt.Lock
	gasLock  gas.Lock
	words    gas.Ptr[uint64] // own as a pointer of package gas
	sum      uint64          // keeps what is read
}

const benchUPC = "upc/join" // no benchmark: all ranks become threads

// upc makes all ranks threads, on all ranks when the first of them needs it.
func (j *job) upc() (*upcJob, error) {
	if j.threads != nil {
		return j.threads, nil
	}
	size := uint64(upcMost * j.n.Size())
	t, err := rt.Join(j.n, rt.Config{Heap: 2*size + 2*upcBytes + segment.PageSize})
	if err != nil {
		return nil, err
	}
	u := &upcJob{t: t}
	j.threads = u
	u.own = t.AllAlloc(uint64(t.Threads()), upcWords*8)
	u.mine = rt.LocalSlice[uint64](t, rt.MakePhaseless(t.MyThread(), u.own.Addr()), upcWords)
	u.src = t.AllAlloc(uint64(t.Threads()), size)
	u.dst = t.AllAlloc(uint64(t.Threads()), size)
	u.lock = t.AllLockAlloc()
	u.words = rt.ToPtr[uint64](u.own)
	u.gasLock, err = gas.NewLock(j.n)
	return u, err
}

// needUPC is upc by rank 0, which tells the others.
func (j *job) needUPC() (*upcJob, error) {
	if j.threads == nil {
		if err := j.command(cmdJoint, 1, jointOf(benchUPC)<<jointSize); err != nil {
			return nil, err
		}
	}
	return j.upc()
}

// jointOf is the number of the joint with that name, or -1.
func jointOf(bench string) int {
	return slices.IndexFunc(joints, func(b joint) bool { return b.bench == bench })
}

// upcReference is the reference of that name, if there is one.
func (j *job) upcReference(name string, size int) (op, bool) {
	if k := jointOf(name); k >= 0 {
		return j.joint(k, size), true
	}
	u := j.threads
	if u == nil {
		return op{}, false
	}
	bytes, _ := gas.Cast[byte](u.words.On(1)) // of words, which are aligned
	word := func(rank int) (op, bool) {
		p, n := u.words.On(rank), j.n
		return plain(func(count int) error {
			sum := uint64(0)
			for i := range count {
				v, err := p.Add(i % upcWords).Get(n)
				if err != nil {
					return err
				}
				sum += v
			}
			u.sum += sum
			return nil
		}), true
	}
	switch name {
	case refSlice:
		return plain(func(count int) error {
			sum, s := uint64(0), u.mine
			for i := range count {
				sum += s[i%upcWords]
			}
			u.sum += sum
			return nil
		}), true
	case refNear:
		return word(j.n.Rank())
	case refFar:
		return word(1)
	case refPutSlice:
		return repeat(func() error { return bytes.PutSlice(j.n, j.local[:size]) }), true
	case refGetSlice:
		return repeat(func() error { return bytes.GetSlice(j.n, j.local[:size]) }), true
	case refNB:
		p := u.words.On(1)
		handles := make([]gas.Handle, 0, window)
		return repeat(func() error {
			handles = handles[:0]
			for i := range window {
				h, err := p.Add(i).PutNB(j.n, uint64(i))
				if err != nil {
					return err
				}
				handles = append(handles, h)
			}
			return j.n.SyncAll(handles)
		}), true
	case refLock:
		return repeat(func() error {
			if err := u.gasLock.Lock(j.n); err != nil {
				return err
			}
			return u.gasLock.Unlock(j.n)
		}), true
	}
	return op{}, false
}

// upcCases are cases of rank 0's thread.
func upcCases(cases func(j *job, u *upcJob) []outcase) func(j *job) ([]outcase, error) {
	return func(j *job) ([]outcase, error) {
		u, err := j.needUPC()
		if err != nil {
			return nil, err
		}
		return cases(j, u), nil
	}
}

// walked are loops that compute, or follow, pointers-to-shared of the own thread's words; all
// have constants where generated code has them.
func walked(u *upcJob) map[string]func(count int) error {
	t := u.t
	keep := func(v uint64) error {
		u.sum += v
		return nil
	}
	return map[string]func(count int) error{
		"next phaseless": func(count int) error {
			p, threads := u.own, t.Threads()
			for range count {
				p = p.Next(8, threads)
			}
			return keep(uint64(p))
		},
		"next phased": func(count int) error {
			q, threads := u.own.Phased(), t.Threads()
			for range count {
				q = q.Next(upcBlock, 8, threads)
			}
			return keep(uint64(q))
		},
		"add phaseless": func(count int) error {
			p, threads := u.own, t.Threads()
			for range count {
				p = p.Add(3, 8, threads)
			}
			return keep(uint64(p))
		},
		"add phased": func(count int) error {
			q, threads := u.own.Phased(), t.Threads()
			for range count {
				q = q.Add(3, upcBlock, 8, threads)
			}
			return keep(uint64(q))
		},
		"read": func(count int) error {
			own, sum := rt.MakePhaseless(t.MyThread(), u.own.Addr()), uint64(0)
			for i := range count {
				sum += rt.Get[uint64](t, own.AddLocal(i%upcWords, 8))
			}
			return keep(sum)
		},
		"write": func(count int) error {
			own := rt.MakePhaseless(t.MyThread(), u.own.Addr())
			for i := range count {
				rt.Put(t, own.AddLocal(i%upcWords, 8), uint64(i))
			}
			return nil
		},
	}
}

func pointerCases(_ *job, u *upcJob) []outcase {
	walks := walked(u)
	var l []outcase
	for _, via := range []string{"next phaseless", "next phased", "add phaseless", "add phased", "read", "write"} {
		l = append(l, outcase{via: via, size: 8, op: plain(walks[via]), out: []output{{latency, refSlice}}})
	}
	return l
}

// upcTargets are the differences, burst by burst, of what may take so much more than a plain
// access and that.
func upcTargets(j *job, o options) ([]line, error) {
	u, err := j.needUPC()
	if err != nil {
		return nil, err
	}
	walks := walked(u)
	targets := []struct {
		via  string
		most float64
	}{{"next phaseless", mostNext}, {"next phased", mostNext}, {"read", mostDeref}, {"write", mostDeref}}
	slice, _ := j.upcReference(refSlice, 8)
	ops := []op{slice}
	for _, t := range targets {
		ops = append(ops, plain(walks[t.via]))
	}
	values, err := j.inTurn(ops, o)
	if err != nil {
		return nil, err
	}
	var lines []line
	for k, t := range targets {
		lines = append(lines, derived(j, t.via, 8, added, "ns", t.most, values, func(v []float64) float64 { return v[k+1] - v[0] }))
	}
	return lines, nil
}

// accessCases are relaxed and strict accesses to words of the own thread and of thread 1.
func accessCases(_ *job, u *upcJob) []outcase {
	t := u.t
	var l []outcase
	for _, where := range []struct {
		via, ref string
		at       rt.Phaseless
	}{{"near", refNear, rt.MakePhaseless(0, u.own.Addr())}, {"far", refFar, rt.MakePhaseless(1, u.own.Addr())}} {
		for _, c := range []struct {
			via  string
			once func(p rt.Phaseless)
		}{
			{"get", func(p rt.Phaseless) { u.sum += rt.Get[uint64](t, p) }},
			{"put", func(p rt.Phaseless) { rt.Put(t, p, uint64(p)) }},
			{"get strict", func(p rt.Phaseless) { u.sum += rt.GetStrict[uint64](t, p) }},
			{"put strict", func(p rt.Phaseless) { rt.PutStrict(t, p, uint64(p)) }},
		} {
			at, once := where.at, c.once
			l = append(l, outcase{via: c.via + " " + where.via, size: 8, out: []output{{latency, where.ref}}, op: plain(func(count int) error {
				for i := range count {
					once(at.AddLocal(i%upcWords, 8))
				}
				return nil
			})})
		}
	}
	return l
}

func copyUPCCases(j *job, u *upcJob) []outcase {
	t, at := u.t, rt.MakePhaseless(1, u.own.Addr())
	var l []outcase
	for _, size := range []int{8, 512, 4 << 10, upcWords * 8} {
		local := j.local[:size]
		for _, c := range []struct {
			via, ref string
			once     func()
		}{
			{"memput", refPutSlice, func() { t.MemPut(at, local) }},
			{"memget", refGetSlice, func() { t.MemGet(local, at) }},
		} {
			l = append(l, outcase{via: c.via, size: size, op: repeated(c.once), out: []output{{latency, c.ref}}})
		}
	}
	return l
}

// repeated is an operation that cannot fail: a thread that does ends.
func repeated(once func()) op {
	return plain(func(count int) error {
		for range count {
			once()
		}
		return nil
	})
}

// nbUPCCases are 64 puts of words that go on after the call, each way, then all synchronized.
func nbUPCCases(j *job, u *upcJob) []outcase {
	t, at := u.t, rt.MakePhaseless(1, u.own.Addr())
	src := j.local[:8*window]
	handles := make([]rt.Handle, 0, window)
	return []outcase{
		{via: "nb", size: 8, out: []output{{latency, refNB}}, op: repeated(func() {
			handles = handles[:0]
			for i := range window {
				handles = append(handles, t.MemPutNB(at.AddLocal(i, 8), src[8*i:8*i+8]))
			}
			for _, h := range handles {
				t.Sync(h)
			}
		})},
		{via: "nbi", size: 8, out: []output{{latency, refNB}}, op: repeated(func() {
			for i := range window {
				t.MemPutNBI(at.AddLocal(i, 8), src[8*i:8*i+8])
			}
			t.SyncI()
		})},
		{via: "async", size: 8, out: []output{{latency, refNB}}, op: repeated(func() {
			for i := range window {
				rt.PutAsync(t, at.AddLocal(i, 8), uint64(i))
			}
			t.Fence()
		})},
	}
}

// lockUPCCases are a lock that one thread takes, and one that all do.
func lockUPCCases(j *job, u *upcJob) []outcase {
	return []outcase{
		{via: "free", size: 8, out: []output{{latency, refLock}}, op: repeated(func() {
			u.t.Lock(u.lock)
			u.t.Unlock(u.lock)
		})},
		{via: "contended", size: 8, out: []output{{latency, refLocks}}, op: j.joint(jointOf("upc/locks"), 8)},
	}
}

// forallCases are iterations of upc_forall loops, each of which adds to an element of the
// thread's own, by the forms of affinity.
func forallCases(_ *job, u *upcJob) []outcase {
	t, own := u.t, u.mine
	all := upcRun * t.Threads()
	forms := []struct {
		via string
		run func()
	}{
		{"none", func() {
			for i := range upcRun {
				own[i%upcWords] += uint64(i)
			}
		}},
		{"integer", func() {
			first, stride := t.ForInt(0, all, 1, 1, 0)
			k := 0
			for i := first; i < all; i += stride {
				own[k%upcWords] += uint64(i)
				k++
			}
		}},
		{"block 1", func() {
			k := 0
			for from, to := range t.ForShared(0, all, 1, u.own.Wide(), 0, 1) {
				for i := from; i < to; i++ {
					own[k%upcWords] += uint64(i)
					k++
				}
			}
		}},
		{"block 64", func() {
			k := 0
			for from, to := range t.ForShared(0, all, 1, u.own.Wide(), 0, upcBlock) {
				for i := from; i < to; i++ {
					own[k%upcWords] += uint64(i)
					k++
				}
			}
		}},
		{"indefinite", func() {
			for from, to := range t.ForShared(0, upcRun, 1, rt.MakePhaseless(t.MyThread(), u.own.Addr()).Wide(), 0, 0) {
				for i := from; i < to; i++ {
					own[i%upcWords] += uint64(i)
				}
			}
		}},
		{"tested", func() { // as where no form is known
			p, k := u.own, 0
			for i := range all {
				if p.Add(i, 8, t.Threads()).Thread() != t.MyThread() {
					continue
				}
				own[k%upcWords] += uint64(i)
				k++
			}
		}},
	}
	var l []outcase
	for _, f := range forms {
		o := repeated(f.run)
		o.parts = upcRun
		l = append(l, outcase{via: f.via, size: 8, op: o, out: []output{{latency, refSlice}}})
	}
	return l
}

// collectiveUPCCases are collective calls with synchronization flags, and barriers.
func collectiveUPCCases(bench string, sizes ...int) func(j *job, u *upcJob) []outcase {
	return func(j *job, _ *upcJob) []outcase {
		var l []outcase
		for k, b := range joints {
			if b.bench != bench {
				continue
			}
			for _, size := range sizes {
				ref := refBarrier
				for _, c := range upcCollectives {
					if c.via == b.via {
						ref = c.ref
					}
				}
				if ref == refReduce && size != 8 {
					continue
				}
				l = append(l, outcase{via: b.via, size: size, op: j.joint(k, size), out: []output{{latency, ref}}})
			}
		}
		return l
	}
}

const refBarrier = "coll/barrier"

const (
	noSync  = rt.InNoSync | rt.OutNoSync
	mySync  = rt.InMySync | rt.OutMySync
	allSync = rt.InAllSync | rt.OutAllSync
)

// upcCollectives are the collective calls, and what package gas has like them.
var upcCollectives = []struct {
	via, ref string
	run      func(j *job, u *upcJob, size int)
}{
	{"broadcast no", "coll/broadcast", broadcastUPC(noSync)},
	{"broadcast my", "coll/broadcast", broadcastUPC(mySync)},
	{"broadcast all", "coll/broadcast", broadcastUPC(allSync)},
	{"gather_all no", refGather, func(_ *job, u *upcJob, size int) { u.t.AllGatherAll(u.dst, u.src, size, noSync) }},
	{"gather_all all", refGather, func(_ *job, u *upcJob, size int) { u.t.AllGatherAll(u.dst, u.src, size, allSync) }},
	{"exchange no", "coll/alltoall", func(_ *job, u *upcJob, size int) { u.t.AllExchange(u.dst, u.src, size, noSync) }},
	{"exchange all", "coll/alltoall", func(_ *job, u *upcJob, size int) { u.t.AllExchange(u.dst, u.src, size, allSync) }},
	{"reduce no", refReduce, reduceUPC(noSync)},
	{"reduce all", refReduce, reduceUPC(allSync)},
}

// broadcastUPC is a broadcast whose root moves, or it would run ahead.
func broadcastUPC(f rt.SyncFlags) func(j *job, u *upcJob, size int) {
	return func(j *job, u *upcJob, size int) {
		u.t.AllBroadcast(u.dst, rt.MakePhaseless(j.turns%u.t.Threads(), u.src.Addr()), size, f)
	}
}

func reduceUPC(f rt.SyncFlags) func(j *job, u *upcJob, size int) {
	return func(j *job, u *upcJob, _ int) {
		rt.AllReduce[uint64](u.t, rt.MakePhaseless(j.turns%u.t.Threads(), u.dst.Addr()), u.src.Phased(), rt.OpAdd, u.t.Threads(), 1, nil, f)
	}
}

// upcJoints are the operations of all threads at once.
func upcJoints() []joint {
	times := func(once func(j *job, u *upcJob, size int) error) func(j *job, count, size int) error {
		return times((*job).upc, once)
	}
	sure := func(once func(j *job, u *upcJob, size int)) func(j *job, count, size int) error {
		return times(func(j *job, u *upcJob, size int) error {
			once(j, u, size)
			return nil
		})
	}
	l := []joint{
		{benchUPC, "", func(j *job, _, _ int) error {
			_, err := j.upc()
			return err
		}},
		{"upc/barrier", "expression", sure(func(j *job, u *upcJob, _ int) { u.t.Barrier(int32(j.turns)) })},
		{"upc/barrier", "any", sure(func(_ *job, u *upcJob, _ int) { u.t.BarrierAny() })},
		{"upc/barrier", "split", sure(func(_ *job, u *upcJob, _ int) {
			u.t.NotifyAny()
			u.t.WaitAny()
		})},
		{"upc/locks", "", sure(func(_ *job, u *upcJob, _ int) {
			u.t.Lock(u.lock)
			u.sum++
			u.t.Unlock(u.lock)
			u.t.BarrierAny()
		})},
		{refLocks, "", times(func(j *job, u *upcJob, _ int) error {
			if err := u.gasLock.Lock(j.n); err != nil {
				return err
			}
			u.sum++
			if err := u.gasLock.Unlock(j.n); err != nil {
				return err
			}
			return j.n.Barrier()
		})},
		{refReduce, "", times(func(j *job, u *upcJob, _ int) error {
			v, err := gas.Reduce(j.n, j.turns%j.n.Size(), u.sum, gas.Sum)
			runtime.KeepAlive(v)
			return err
		})},
		{refGather, "", times(func(j *job, u *upcJob, size int) error {
			return gas.AllGatherSlice(j.n, j.local[:size], j.local[len(j.local)/2:][:size*j.n.Size()])
		})},
	}
	for _, c := range upcCollectives {
		l = append(l, joint{"upc/collective", c.via, sure(c.run)})
	}
	return l
}
