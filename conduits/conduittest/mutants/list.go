package main

// A mutant is one deliberate defect: in file, the text old, which stands there
// exactly once, becomes new.
type mutant struct {
	name   string
	defect string // what is wrong then, for the table
	file   string // slash-separated, relative to the module's root
	old    string
	new    string
	on     []string // conduits whose suite has to notice; the folders of conduits/
	// tries is how often the suite runs until it has noticed, if more than once:
	// for defects that show only where two processors are at the same place
	// within nanoseconds, which a busy machine may not let them be.
	tries int
}

var (
	onShm   = []string{"shm"}
	onSim   = []string{"sim"}
	onChaos = []string{"chaos"}
	onBoth  = []string{"shm", "sim"}
	// onHybrid is where defects of udp have to show: the engine is the same, and
	// udp's own tests run the suite three times over, for longer than -limit.
	onHybrid = []string{"hybrid"}
)

// mutants are all there are, by package. Each is what a tired programmer might
// write, compiles, and breaks one promise.
var mutants = []mutant{
	// conduits: what all conduits share.
	{
		name:   "wait-no-recheck",
		defect: "Wait does not look at its condition again between Arm and Park",
		file:   "conduits/wait.go", on: onShm,
		old: "if cond() {\n\t\t\tep.Disarm(t)\n\t\t\treturn nil\n\t\t}\n\t\tif ep.Poll() > 0 {",
		new: "if ep.Poll() > 0 {",
	},
	{
		name:   "range-wraps",
		defect: "the bounds check adds address and length, which wraps",
		file:   "conduits/check.go", on: onBoth,
		old: "if off > size || size-off < n {",
		new: "if off+n > size {",
	},
	{
		name:   "fcaa-strict",
		defect: "fetch-compare-and-add wants less where it is to take equal",
		file:   "conduits/atomic_unsafe.go", on: onBoth,
		old: "return v, !less(t, a, old)",
		new: "return v, less(t, old, a)",
	},
	{
		name:   "add-returns-new",
		defect: "an atomic addition of 8 bytes returns the new content",
		file:   "conduits/atomic_unsafe.go", on: onShm,
		old: "return atomic.AddUint64(p, a) - a",
		new: "return atomic.AddUint64(p, a)",
	},
	{
		name:   "min-unsigned",
		defect: "minimum and maximum of Int32 compare without sign",
		file:   "conduits/atomic_unsafe.go", on: onBoth,
		old: "return int32(x) < int32(y)",
		new: "return uint32(x) < uint32(y)",
	},

	// conduits/shm: rings, landing buffers, sleep.
	{
		name:   "shm-fence-missing",
		defect: "Fence is none",
		file:   "conduits/shm/rma_unsafe.go", on: onShm, tries: 8,
		old: "var x atomic.Uint32\n\tx.Add(1)",
		new: "var x atomic.Uint32\n\tx.Load()",
	},
	{
		name:   "shm-published-early",
		defect: "the status of a medium message is published before its payload is there",
		file:   "conduits/shm/endpoint_unsafe.go", on: onShm, tries: 8,
		old: "copy(unsafe.Slice((*byte)(unsafe.Add(r.landing, at)), len(payload)), payload)",
		new: "defer func() { copy(unsafe.Slice((*byte)(unsafe.Add(r.landing, at)), len(payload)), payload) }()",
	},
	{
		name:   "shm-one-credit-more",
		defect: "a sender takes one credit more than the ring has cells",
		file:   "conduits/shm/ring_unsafe.go", on: onShm,
		old: "r.limit = atomic.LoadUint64(r.head) + r.mask + 1\n\treturn r.tail < r.limit",
		new: "r.limit = atomic.LoadUint64(r.head) + r.mask + 2\n\treturn r.tail < r.limit",
	},
	{
		name:   "shm-lap-short",
		defect: "the sender's lap of the ring is one cell short",
		file:   "conduits/shm/ring_unsafe.go", on: onShm,
		old: "return unsafe.Add(r.cells, (t&r.mask)*cellBytes)",
		new: "return unsafe.Add(r.cells, t%r.mask*cellBytes)",
	},
	{
		name:   "shm-lap-of-landing",
		defect: "the receiver does not skip the end of the landing buffer that the sender skipped",
		file:   "conduits/shm/ring_unsafe.go", on: onShm,
		old: "if at < r.landRead&(r.landSize-1) {",
		new: "if at > r.landSize {",
	},
	{
		name:   "shm-landing-freed-early",
		defect: "the landing buffer goes back to the sender before the handler has run",
		file:   "conduits/shm/ring_unsafe.go", on: onShm,
		old: "end = r.landRead + claimed\n",
		new: "end = r.landRead + claimed\n\t\tstoreRelease64(r.landWord, end)\n",
	},
	{
		name:   "shm-head-not-advanced-by-skip",
		defect: "cells that a reply ring skips are not given back",
		file:   "conduits/shm/ring_unsafe.go", on: onShm,
		old: "r.head += skip - 1",
		new: "r.head += skip - skip",
	},
	{
		name:   "shm-credit-sleeps",
		defect: "who sleeps for credit is not woken when there is some",
		file:   "conduits/shm/ring_unsafe.go", on: onShm,
		old: "storeRelease64(r.headWord, r.head)\n\t\t\te.credit(r)",
		new: "storeRelease64(r.headWord, r.head)",
	},
	{
		name:   "shm-no-look-before-sleep",
		defect: "Park does not look at the rings that nobody announced",
		file:   "conduits/shm/endpoint_unsafe.go", on: onShm,
		old: "quiet = quiet && atomic.LoadUint64(r.next()) == 0",
		new: "quiet = quiet && r != nil",
	},
	{
		name:   "shm-ticket-late",
		defect: "Park compares with the number of wake-ups at Park, not at Arm",
		file:   "conduits/shm/endpoint_unsafe.go", on: onShm,
		old: "} else if e.quiet() {\n\t\te.parks.Add(1)\n\t\te.j.sleep(e.rank, t.Seq)",
		new: "} else if e.quiet() {\n\t\te.parks.Add(1)\n\t\te.j.sleep(e.rank, atomic.LoadUint32(e.j.c32(e.rank, ctlSeq)))",
	},
	{
		name:   "shm-disarm-takes-all",
		defect: "who disarms takes back the announcements of its siblings too",
		file:   "conduits/shm/endpoint_unsafe.go", on: onShm,
		old: "if e.armed--; e.armed == 0 {",
		new: "if e.armed--; e.armed >= 0 {",
	},
	{
		name:   "shm-put-wakes-nobody",
		defect: "a put into a sleeper's memory does not wake it",
		file:   "conduits/shm/rma_unsafe.go", on: onShm,
		old: "copy(b, src)\n\t}\n\te.Wake(dst)",
		new: "copy(b, src)\n\t}",
	},
	{
		name:   "shm-close-wakes-nobody",
		defect: "a rank that leaves does not wake those that wait for it",
		file:   "conduits/shm/endpoint_unsafe.go", on: onShm,
		old: "uint32(Attached), uint32(Finished))\n\te.j.rouseAll()\n",
		new: "uint32(Attached), uint32(Finished))\n",
	},
	{
		name:   "shm-failure-wakes-nobody",
		defect: "the job's failure does not wake sleepers",
		file:   "conduits/shm/job_unsafe.go", on: onShm,
		old: "uint32(rank-j.first+failedBias))\n\t}\n\tj.rouseAll()\n",
		new: "uint32(rank-j.first+failedBias))\n\t}\n",
	},
	{
		name:   "shm-never-dead",
		defect: "sends to a rank that has left answer no credit for ever",
		file:   "conduits/shm/endpoint_unsafe.go", on: onShm,
		old: "if e.Err() != nil || RankState(atomic.LoadUint32(e.j.c32(r.dst, ctlState))) >= Finished {",
		new: "if e.Err() != nil {",
	},
	{
		name:   "shm-get-by-write-right",
		defect: "a get asks for the right to write",
		file:   "conduits/shm/rma_unsafe.go", on: onShm,
		old: "b, ok := v.Bytes(from, uint64(len(dst)), v.Read)",
		new: "b, ok := v.Bytes(from, uint64(len(dst)), v.Write)",
	},
	{
		name:   "shm-requests-in-replies",
		defect: "PollReplies runs requests",
		file:   "conduits/shm/endpoint_unsafe.go", on: onShm,
		old: "if r.class != conduits.Reply {\n\t\t\tcontinue",
		new: "if r.class > conduits.Reply {\n\t\t\tcontinue",
	},
	{
		name:   "shm-counts-cancelled",
		defect: "Stats count cancelled messages as sent",
		file:   "conduits/shm/endpoint_unsafe.go", on: onShm,
		old: "s.Sent[conduits.Request] += r.tail - r.cancelled",
		new: "s.Sent[conduits.Request] += r.tail",
	},
	{
		name:   "shm-word-by-bytes",
		defect: "an aligned put of 8 bytes is made of eight stores",
		file:   "conduits/shm/rma_unsafe.go", on: onShm, tries: 8,
		old: "*(*uint64)(unsafe.Pointer(&b[0])) = *(*uint64)(unsafe.Pointer(&src[0]))",
		new: "for i := range src {\n\t\t\tb[i] = src[i]\n\t\t}",
	},

	// conduits/sim: credits, completions, sleep.
	{
		name:   "sim-credit-twice",
		defect: "a consumed message gives two credits back",
		file:   "conduits/sim/job.go", on: onSim,
		old: "p.out[m.class]--",
		new: "p.out[m.class] -= min(2, p.out[m.class])",
	},
	{
		name:   "sim-cancel-keeps-credit",
		defect: "Cancel does not give the credit back",
		file:   "conduits/sim/endpoint.go", on: onSim,
		old: "j.credit(m)\n\tj.m.put(id)\n}\n\nfunc (e *Endpoint) message(",
		new: "j.m.put(id)\n}\n\nfunc (e *Endpoint) message(",
	},
	{
		name:   "sim-released-twice",
		defect: "a message that has been handled is released twice",
		file:   "conduits/sim/endpoint.go", on: onSim,
		old: "j.pool = append(j.pool, cm)\n\tj.credit(m)\n\tj.m.put(id)",
		new: "j.pool = append(j.pool, cm)\n\tj.credit(m)\n\tj.m.put(id)\n\tj.m.put(id)",
	},
	{
		name:   "sim-credit-sleeps",
		defect: "who sleeps for credit is not woken when there is some",
		file:   "conduits/sim/job.go", on: onSim,
		old: "p.refused[m.class] = false\n\t\tj.schedule(j.now+j.p.Net.Latency, evCredit, uint64(m.src))",
		new: "p.refused[m.class] = false",
	},
	{
		name:   "sim-completion-sleeps",
		defect: "a completion does not wake who waits for it",
		file:   "conduits/sim/job.go", on: onSim,
		old: "e.done.add(&j.m, id)\n\te.notify(false)",
		new: "e.done.add(&j.m, id)",
	},
	{
		name:   "sim-ticket-ignored",
		defect: "Park sleeps although something has arrived since Arm",
		file:   "conduits/sim/endpoint.go", on: onSim,
		old: "if e.seq == t.Seq && !e.closed {",
		new: "if e.seq >= t.Seq && !e.closed {",
	},
	{
		name:   "sim-payload-not-copied",
		defect: "SendPayload keeps the caller's payload instead of a copy",
		file:   "conduits/sim/endpoint.go", on: onSim,
		old: "m.data, m.own = e.j.m.buffer(len(payload)), true\n\tcopy(m.data, payload)",
		new: "m.data = payload",
	},
	{
		name:   "sim-source-told-early",
		defect: "SourceDone of a put is told before the card has read the source",
		file:   "conduits/sim/rma.go", on: onSim,
		old: "j.schedule(at+p.ATU+p.DMARead+j.faults.jitter(j), evRead, uint64(id))\n\treturn 0, nil",
		new: "j.schedule(at+p.ATU+p.DMARead+j.faults.jitter(j), evRead, uint64(id))\n\tm.want &^= conduits.SourceDone\n\treturn want & conduits.SourceDone, nil",
	},
	{
		name:   "sim-remote-told-early",
		defect: "a get is told to be done without its data",
		file:   "conduits/sim/job.go", on: onSim,
		old: "copy(m.dest, m.data)",
		new: "copy(m.dest, m.data[:len(m.data)/2])",
	},
	{
		name:   "sim-requests-in-replies",
		defect: "PollReplies runs requests",
		file:   "conduits/sim/endpoint.go", on: onSim,
		old: "if id == 0 && !nested {",
		new: "if id == 0 {",
	},
	{
		name:   "sim-rights-not-checked",
		defect: "any rank may access any segment",
		file:   "conduits/sim/rma.go", on: onSim,
		old: "if dst != e.rank && e.j.rights[dst]&need != need && conduits.InSegment",
		new: "if dst != e.rank && e.j.rights[dst]&need > need && conduits.InSegment",
	},

	// conduits/chaos: the wrapper keeps the contract too.
	{
		name:   "chaos-payload-not-kept",
		defect: "a delayed message's payload stays in memory that is not its own any more",
		file:   "conduits/chaos/chaos.go", on: onChaos,
		old: "k.m.Payload = k.bytes",
		new: "k.m.Payload = m.Payload",
	},
	{
		name:   "chaos-slot-released-twice",
		defect: "a reserved slot goes back to the free list twice",
		file:   "conduits/chaos/send.go", on: onChaos,
		old: "e.freeSlots = append(e.freeSlots, i)",
		new: "e.freeSlots = append(e.freeSlots, i, i)",
	},

	// am.
	{
		name:   "am-fewer-arguments",
		defect: "fewer arguments than the handler takes are accepted",
		file:   "am/am.go", on: onBoth,
		old: "ent.kinds&k == k && (int(ent.args) == nargs ||",
		new: "ent.kinds&k == k && (int(ent.args) >= nargs ||",
	},
	{
		name:   "am-17-arguments",
		defect: "a handler of any number of arguments is sent 17",
		file:   "am/am.go", on: onBoth,
		old: "ent.args < 0 && uint(nargs) <= MaxArgs) &&",
		new: "ent.args < 0 && uint(nargs) <= MaxArgs+1) &&",
	},
	{
		name:   "am-reply-twice",
		defect: "a request can be replied to twice",
		file:   "am/token.go", on: onBoth,
		old: "t.replied = true\n\ttag := tagShort | conduits.Tag(h)",
		new: "tag := tagShort | conduits.Tag(h)",
	},
	{
		name:   "am-try-claims-reply",
		defect: "an immediate reply that found no credit counts as the reply",
		file:   "am/token.go", on: onBoth,
		old: "if st != conduits.Ready {\n\t\treturn false, t.e.dead(\"short reply\", t.m.Src, st)\n\t}\n\tt.replied = true",
		new: "t.replied = true\n\tif st != conduits.Ready {\n\t\treturn false, t.e.dead(\"short reply\", t.m.Src, st)\n\t}",
	},
	{
		name:   "am-reply-no-recheck",
		defect: "a handler without credit for its reply does not try again before it sleeps",
		file:   "am/am.go", on: onBoth,
		old: "t := e.ep.Arm(b)\n\t\tif try() {\n\t\t\te.ep.Disarm(t)\n\t\t\treturn nil\n\t\t}\n",
		new: "t := e.ep.Arm(b)\n",
	},
	{
		name:   "am-table-arguments",
		defect: "tables that differ in numbers of arguments pass for equal",
		file:   "am/attach.go", on: onBoth,
		old: "\t\t\tadd(byte(ent.args))\n",
		new: "",
	},
	{
		name:   "am-long-not-awaited",
		defect: "RequestLong returns before its payload may be reused",
		file:   "am/am.go", on: onSim,
		old: "case ev == nil:\n\t\terr = e.awaitSource(",
		new: "case ev == nil && wait && dst < 0:\n\t\terr = e.awaitSource(",
	},
	{
		name:   "am-cancelled-reply",
		defect: "a handler that cancelled its prepared reply cannot reply any more",
		file:   "am/prepare.go", on: onBoth,
		old: "p.token.replied, p.token.failed = false, nil",
		new: "p.token.failed = nil",
	},
	{
		name:   "am-prepared-length",
		defect: "a prepared message travels with all that was reserved",
		file:   "am/prepare.go", on: onBoth,
		old: "p.slot, tagMedium|conduits.Tag(p.h), n)",
		new: "p.slot, tagMedium|conduits.Tag(p.h), len(p.slot.Payload))",
	},

	// barrier.
	{
		name:   "barrier-id-not-compared",
		defect: "different ids match",
		file:   "barrier/word.go", on: onBoth,
		old: "case a&wordNamed == 0 || (a^b)&wordID == 0:",
		new: "case a&wordNamed == 0 || (a^b)&wordNamed == 0:",
	},
	{
		name:   "barrier-mismatch-stops",
		defect: "a mismatch is told only if all ranks signal it",
		file:   "barrier/word.go", on: onBoth,
		old: "case (a|b)&wordMismatch != 0:",
		new: "case a&b&wordMismatch != 0:",
	},
	{
		name:   "barrier-wait-id-not-compared",
		defect: "Wait accepts another id than was notified",
		file:   "barrier/barrier.go", on: onBoth,
		old: "v&wordNamed != 0 && v.id() != id && flags&Anonymous == 0 {",
		new: "v&wordNamed != 0 && v.id() != id && flags&allFlags == allFlags {",
	},
	{
		name:   "barrier-one-parity",
		defect: "messages of the next phase take the place of this one's",
		file:   "barrier/dissem.go", on: onSim,
		old: "return &d.slots[int(phase&1)*(len(d.slots)/2)+round]",
		new: "return &d.slots[int(phase&0)*(len(d.slots)/2)+round]",
	},
	{
		name:   "barrier-round-short",
		defect: "dissemination ends a round early",
		file:   "barrier/dissem.go", on: onSim,
		old: "return bare(d.known.w), d.round == d.rounds\n",
		new: "return bare(d.known.w), d.round+1 >= d.rounds\n",
	},
	{
		name:   "barrier-released-early",
		defect: "the flat barrier does not look at the last rank",
		file:   "barrier/shared.go", on: onShm,
		old: "for _, p := range f.words {\n\t\tw := word(p[phase&1].Load())",
		new: "for _, p := range f.words[:len(f.words)-1] {\n\t\tw := word(p[phase&1].Load())",
	},
	{
		name:   "barrier-tree-forgets",
		defect: "the tree drops what the other ranks of a group said",
		file:   "barrier/shared.go", on: onShm,
		old: "\t\t\tv = combine(v, old)\n",
		new: "",
	},
	{
		name:   "barrier-flat-sleeps",
		defect: "the last to arrive does not wake the others",
		file:   "barrier/shared.go", on: onShm,
		old: "if _, all := f.verdict(w.phase()); all {",
		new: "if _, all := f.verdict(w.phase()); all && f.rank < 0 {",
	},
	{
		name:   "barrier-notified-twice",
		defect: "a second Notify of a phase is accepted",
		file:   "barrier/barrier.go", on: onBoth,
		old: "case s&stateNotified != 0:\n",
		new: "case s&stateNotified != 0 && flags == allFlags:\n",
	},

	// extended.
	{
		name:   "handle-not-invalidated",
		defect: "a handle stays good after it was synchronized",
		file:   "extended/table.go", on: onBoth,
		old: "o.state.Store(gen << stateShift)",
		new: "o.state.Store(gen<<stateShift | s&explicit | live)",
	},
	{
		name:   "handle-generation",
		defect: "a slot's generation stays the same when it is used again",
		file:   "extended/table.go", on: onBoth,
		old: "gen := o.state.Load()>>stateShift + 1",
		new: "gen := max(1, o.state.Load()>>stateShift)",
	},
	{
		name:   "handle-count",
		defect: "synchronized handles go on counting as outstanding",
		file:   "extended/table.go", on: onBoth,
		old: "\t\tt.handles--\n",
		new: "",
	},
	{
		name:   "strided-contiguous",
		defect: "a dimension that is contiguous on one side passes for contiguous",
		file:   "extended/shape.go", on: onBoth,
		old: "(s.rstrides[d] != s.elem || s.lstrides[d] != s.elem)",
		new: "(s.rstrides[d] != s.elem && s.lstrides[d] != s.elem)",
	},
	{
		name:   "strided-span",
		defect: "the last element of a strided dimension is left out of the bounds",
		file:   "extended/shape.go", on: onBoth,
		old: "m := (c - 1) * s\n\t\tif s != 0 && m/s != c-1 {",
		new: "m := max(0, c-2) * s\n\t\tif s != 0 && m/s != max(0, c-2) {",
	},
	{
		name:   "direct-wraps",
		defect: "the bounds check of direct puts adds address and length, which wraps",
		file:   "extended/direct_unsafe.go", on: onShm,
		old: "if off < v.Write && n <= v.Write-off {",
		new: "if off+n <= v.Write {",
	},
	{
		name:   "value-not-shifted",
		defect: "an unaligned value repeats its low bytes",
		file:   "extended/rma.go", on: onSim,
		old: "\t\tv >>= 8 * w\n",
		new: "",
	},
	{
		name:   "region-counts-gets-as-puts",
		defect: "implicit gets are counted with the puts",
		file:   "extended/region.go", on: onSim,
		old: "} else if c == Gets {\n\t\ti = slotGets",
		new: "} else if c == Gets {\n\t\ti = slotPuts",
	},
	{
		name:   "implicit-source",
		defect: "PutNBI returns before its source may be reused",
		file:   "extended/region.go", on: onSim,
		old: "if err == nil && f.want&conduits.SourceDone != 0 && f.o.left.Load()&sourceMask != 0 {",
		new: "if err == nil && f.want == 0 && f.o.left.Load()&sourceMask != 0 {",
	},
	{
		name:   "pieces-not-awaited",
		defect: "an operation is complete before its last piece is",
		file:   "extended/sync.go", on: onSim,
		old: "if w.o.left.Load()&w.mask == 0 {",
		new: "if w.o.left.Load()&w.mask <= 1 {",
	},
	{
		name:   "signal-sleeps",
		defect: "a signal does not wake who waits for its word",
		file:   "extended/signal.go", on: onShm,
		old: "atomic.AddUint64(p, value)\n\t\t}\n\t\tx.ep.Wake(rank)",
		new: "atomic.AddUint64(p, value)\n\t\t}",
	},

	// gas.
	{
		name:   "collective-root",
		defect: "places in the tree are counted from the wrong side of the root",
		file:   "gas/collectives.go", on: onBoth,
		old: "return (c.rank - root + c.size) % c.size",
		new: "return (c.rank + root) % c.size",
	},
	{
		name:   "scan-forgets",
		defect: "a scan passes on what came in the first round only",
		file:   "gas/collectives.go", on: onBoth,
		old: "\t\tprepend(acc, in)\n",
		new: "\t\tif i == 0 {\n\t\t\tprepend(acc, in)\n\t\t}\n",
	},
	{
		name:   "collective-pieces",
		defect: "a collective goes on after the first piece of its data",
		file:   "gas/collectives.go", on: onSim,
		old: "return l.begun && l.got == len(l.buf)",
		new: "return l.begun",
	},
	{
		name:   "lock-release-sleeps",
		defect: "Unlock does not wake who waits for the lock",
		file:   "gas/lock.go", on: onBoth,
		old: "return l.wakeAll(n)\n}\n\nfunc (h *locks) hold(",
		new: "return nil\n}\n\nfunc (h *locks) hold(",
	},
	{
		name:   "lock-release-repeated",
		defect: "a lock can be given back twice",
		file:   "gas/lock.go", on: onBoth,
		old: "if had == d {\n\t\tdelete(h.held, p)",
		new: "if had == d {\n\t\th.held[p] = d",
	},
	{
		name:   "lock-shared-in-exclusive",
		defect: "a shared hold is given while somebody holds the lock exclusively",
		file:   "gas/lock.go", on: onBoth,
		old: "func (l Lock) RLock(n *Node) error { return l.lock(n, maxShared-1, 1) }",
		new: "func (l Lock) RLock(n *Node) error { return l.lock(n, exclusive, 1) }",
	},
	{
		name:   "alloc-not-undone",
		defect: "a collective allocation that failed elsewhere is kept",
		file:   "gas/alloc_unsafe.go", on: onBoth,
		old: "\tif got {\n\t\tif ferr",
		new: "\tif got && size == 0 {\n\t\tif ferr",
	},
	{
		name:   "alloc-not-cleared",
		defect: "memory that was used before is handed out as it is",
		file:   "gas/alloc_unsafe.go", on: onBoth,
		old: "clean(start, min(end, low))",
		new: "clean(start, min(start, low))",
	},
	{
		name:   "call-slot-reused",
		defect: "an answer's slot cannot be told from its later uses",
		file:   "gas/call_unsafe.go", on: onBoth,
		old: "\ts.use++\n",
		new: "",
	},

	// segment.
	{
		name:   "heap-free-inside",
		defect: "an address inside a block frees it",
		file:   "segment/heap.go", on: onBoth,
		old: "case n.kind != blockFree && n.off == uint64(a):",
		new: "case n.kind != blockFree:",
	},
	{
		name:   "heap-ends-cross",
		defect: "a rank's own blocks are cut from the part of the collective ones",
		file:   "segment/heap.go", on: onBoth,
		old: "if b == 0 || at < h.top {",
		new: "if b == 0 {",
	},

	// Memory beyond the segment.
	{
		name:   "registered-whole-pages",
		defect: "who may reach a part of a page reaches the whole page",
		file:   "segment/gat.go", on: onShm,
		old: "e&(entryPart|entryValid|Entry(need)) == entryValid|Entry(need) &&",
		new: "e&(entryValid|Entry(need)) == entryValid|Entry(need) &&",
	},
	{
		name:   "registered-last-page-whole",
		defect: "the last page of a region is registered whole",
		file:   "segment/atu.go", on: onBoth,
		old: "must(t.tables.FillPart(a, e, 0, to-(high-PageSize)))",
		new: "must(t.tables.Fill(a, 1, e))",
	},
	{
		name:   "registered-for-anybody",
		defect: "memory that is registered for one rank is reached by all",
		file:   "segment/gat.go", on: onBoth,
		old: "(e.Owner() == vpid || e.Owner() == AnyVPID) {\n\t\t\t\treturn",
		new: "e.Owner() <= AnyVPID {\n\t\t\t\treturn",
	},
	{
		name:   "registered-rights-unasked",
		defect: "the target of an access does not ask for the right to it",
		file:   "conduits/own_unsafe.go", on: onBoth,
		old: "if b, err = u.Translate(src, a, n, need); err != nil {",
		new: "if b, err = u.Translate(src, a, n, 0); err != nil {",
	},
	{
		name:   "deregister-leaves-entries",
		defect: "Deregister does not clear the entries",
		file:   "segment/atu.go", on: onBoth,
		old: "\tt.clear(r)\n",
		new: "",
	},
	{
		name:   "deregister-does-not-wait",
		defect: "Deregister does not wait for accesses that are under way",
		file:   "segment/atu.go", on: onShm, tries: 8,
		old: "if err := t.flush(); err != nil {\n\t\treturn err // the memory",
		new: "if err := error(nil); err != nil {\n\t\treturn err // the memory",
	},
	{
		name:   "unmap-leaves-registered",
		defect: "UnmapMemory does not withdraw what is registered",
		file:   "conduits/own_unsafe.go", on: onSim,
		old: "\tif t := o.atu.Load(); t != nil {\n\t\treturn t.Unmap(mem)\n\t}\n",
		new: "",
	},
	{
		name:   "registered-once-only",
		defect: "the end of one registration ends others that begin at the same byte",
		file:   "segment/atu.go", on: onBoth,
		old: "\tt.uncount(r.addr&^(PageSize-1), alignUp(r.addr+r.size, PageSize))\n",
		new: "\tt.uncount(r.addr&^(PageSize-1), alignUp(r.addr+r.size, PageSize))\n\tfor x := t.newest; x != nil; x = x.older {\n\t\tif x.addr == r.addr {\n\t\t\tt.clear(x)\n\t\t}\n\t}\n",
	},
	{
		name:   "registered-not-remote",
		defect: "addresses of registered memory are refused at once",
		file:   "conduits/check.go", on: onSim,
		old: "if Registered(size, a, n) {\n\t\t\treturn nil\n\t\t}\n",
		new: "",
	},
	{
		name:   "shm-atomic-by-write-right",
		defect: "an atomic on registered memory asks for the right to write",
		file:   "conduits/shm/registered_unsafe.go", on: onShm,
		old: "x, err := e.begin(dst, to, uint64(t.Size()), segment.RightAtomic)",
		new: "x, err := e.begin(dst, to, uint64(t.Size()), segment.RightWrite)",
	},
	{
		name:   "shm-unit-kept",
		defect: "a put of a word to registered memory never says that it is over",
		file:   "conduits/shm/registered_unsafe.go", on: onShm,
		old: "storeWord(x.mem, w, n)\n\tx.end()\n",
		new: "storeWord(x.mem, w, n)\n",
	},
	{
		name:   "sim-refusal-uncounted",
		defect: "a message whose data is refused is not counted",
		file:   "conduits/sim/rma.go", on: onSim,
		old: "\t\tj.eps[m.dst].faults++\n",
		new: "",
	},
	{
		name:   "sim-get-by-write-right",
		defect: "a get of registered memory asks for the right to write",
		file:   "conduits/sim/rma.go", on: onSim,
		old: "n, need = uint64(len(m.dest)), segment.RightRead",
		new: "n, need = uint64(len(m.dest)), segment.RightWrite",
	},
	{
		name:   "udp-refusal-unsaid",
		defect: "a put that the target refuses is acknowledged as if it were done",
		file:   "conduits/udp/engine/receive.go", on: onHybrid,
		old: "\t\treturn err\n\t}\n\tcopy(to, f.data)\n\tu.Exit()",
		new: "\t\treturn nil\n\t}\n\tcopy(to, f.data)\n\tu.Exit()",
	},
	{
		name:   "udp-fragments-in-place",
		defect: "all fragments of a put to registered memory go to its beginning",
		file:   "conduits/udp/engine/receive.go", on: onHybrid,
		old: "e.c.Memory.Access(p.rank, f.to+segment.NLA(f.off), uint64(len(f.data)), segment.RightWrite)",
		new: "e.c.Memory.Access(p.rank, f.to, uint64(len(f.data)), segment.RightWrite)",
	},
}
