package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strconv"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

// The metrics.
const (
	halfRTT   = "half_rtt"
	latency   = "latency"
	rate      = "rate"
	bandwidth = "bandwidth"

	updateRate = "updates" // of all ranks together, by the time

	register   = "register"
	deregister = "deregister"
	hitRate    = "hit_rate"
	added      = "added"  // a hit, less a put to the attach segment
	factor     = "factor" // what a miss adds to a hit, less the registration, over a round trip
)

// The references.
const (
	refLine   = "ref/cacheline"
	refCopy   = "ref/copy"
	refMemcpy = "ref/memcpy"
	refUDP    = "ref/udp"
	refUDPMsg = "ref/udpmsg"
	refStream = "ref/udpstream"

	refOFI      = "ref/ofi"
	refOFIMsg   = "ref/ofimsg"
	refOFIWrite = "ref/ofiwrite"

	refOwn       = "memcpy/own" // copy() of as many bytes, within the rank
	refAttachPut = "attach/put" // to the attach segment, of the same size
	refAttachGet = "attach/get"
	refPredicted = "predicted" // by the policy, of the same addresses
	refTarget    = "target"
)

// benchmarks are all there are, in the order they run.
var benchmarks = []struct {
	name  string
	about string
	needs need
	cases func(j *job) ([]outcase, error)
	// lines measures in a way of its own, in place of cases.
	lines func(j *job, o options) ([]line, error)
}{
	{refLine, "one way of a bare ping-pong of two flags", needDirect, refCases(refLine, output{metric: halfRTT}, 8), nil},
	{refCopy, "the same with a payload copied in and out", needDirect, refCases(refCopy, output{halfRTT, refLine}, 64, 512, 4<<10, 16<<10, 64<<10), nil},
	{refMemcpy, "copy() within the own segment and to the other rank's", needDirect, memcpyCases, nil},
	{refUDP, "one way of a bare ping-pong of datagrams", needSockets, refCases(refUDP, output{metric: halfRTT}, 8, 16, 64, 512, 1400, 4<<10, 16<<10, maxDatagram), nil},
	{refUDPMsg, "bare datagrams one way, one a message", needSockets, refCases(refUDPMsg, output{metric: rate}, 8, 16, 64, 512, 1400), nil},
	{refStream, "a bare stream of datagrams, joined where the kernel can", needSockets, sure(streamCases), nil},
	{refOFI, "one way of a bare ping-pong on libfabric", needBare, refCases(refOFI, output{metric: halfRTT}, 8, 16, 64, 512, maxBare), nil},
	{refOFIMsg, "bare messages of libfabric one way, one a call", needBare, refCases(refOFIMsg, output{metric: rate}, 8, 16, 64, 512, maxBare), nil},
	{refOFIWrite, "a bare write of libfabric, until it is in place", needBare, refCases(refOFIWrite, output{metric: latency}, copySizes...), nil},
	{"am/short", "short active messages by number of arguments", needReference, sure(shortCases), nil},
	{"am/medium", "medium active messages by payload", needReference, sure(mediumCases), nil},
	{"am/long", "long active messages by payload", needReference, sure(longCases), nil},
	{"lanes/own", "short messages to the own rank by goroutines with a lane each", needReference, laneCases, nil},
	{"lanes/shared", "short messages by goroutines that share an endpoint", needReference, sure(senderCases), nil},
	{"rma/put", "blocking put", needReference, sure(putCases), nil},
	{"rma/get", "blocking get", needReference, sure(getCases), nil},
	{"rma/putnb", "64 non-blocking puts, then wait for all", needReference, sure(putNBCases), nil},
	{"rma/prepared", "64 puts begun, and the same prepared once and started, then wait for all", needReference, preparedCases, nil},
	{"rma/handles", "65,536 handles at once", needReference, sure(handleCases), nil},
	{"overlap/put", "the share of a put that goes on while the rank computes", needReference, nil, overlaps(0)},
	{"overlap/get", "the same of a get", needReference, nil, overlaps(1)},
	{"overlap/long", "the same of a long message and its answer", needReference, nil, overlaps(2)},
	{"overlap/allreduce", "the same of an all-reduce that was begun", needReference, nil, overlaps(3)},
	{"overlap/broadcast", "the same of a broadcast that was begun, where it is received", needReference, nil, overlaps(4)},
	{"atomic/add", "fetch-and-add of a 64-bit word", needReference, sure(addCases), nil},
	{"barrier", "barrier of all ranks", needReference, sure(barrierCases), nil},
	{"component/post", "an operation handed over, not waited for", needReference, postCases, nil},
	{"component/complete", "a look that finds nothing, and the wait for a put that is done", needReference, completeCases, nil},
	{"component/translate", "an address looked up in the tables", needReference, translateCases, nil},
	{"component/wake", "a round trip to a rank that sleeps", needReference, wakeCases, nil},
	{"agg/atomics", "updates of words of all ranks, each an atomic that is not waited for", needReference, sure(aggregateCases("agg/atomics", "", fewUpdates)), nil},
	{refMailbox, "the same by a mailbox and a function written for it", needReference, sure(aggregateCases(refMailbox, "", updates)), nil},
	{"agg/arrays", "the same by the operations of arrays", needReference, sure(aggregateCases("agg/arrays", refMailbox, updates)), nil},
	{"agg/gather", "loads of words of all ranks", needReference, sure(aggregateCases("agg/gather", refMailbox, updates)), nil},
	{benchQueue, "items of a dist.Queue pushed and popped, by all ranks and by one", needReference, sure(aggregateCases(benchQueue, refMailbox, fewItems)), nil},
	{benchMap, "entries of a dist.Map, one by one", needReference, sure(aggregateCases(benchMap, "", fewUpdates)), nil},
	{benchMapBulk, "the same, many in a message", needReference, sure(aggregateCases(benchMapBulk, refMailbox, fewItems)), nil},
	{"rpc", "calls with a result", needReference, sure(callCases), nil},
	{"coll/barrier", "barrier, by package gas", needReference, sure(jointCases("coll/barrier", 0)), nil},
	{"coll/allreduce", "sum of all ranks, on all", needReference, sure(jointCases("coll/allreduce", collSizes...)), nil},
	{"coll/broadcast", "broadcast by each rank in turn", needReference, sure(jointCases("coll/broadcast", collSizes...)), nil},
	{"coll/alltoall", "a block of each rank for each", needReference, sure(jointCases("coll/alltoall", collSizes...)), nil},
	{"coll/scan", "inclusive scan, up and down the ranks in turn", needReference, sure(jointCases("coll/scan", collSizes...)), nil},
	{"coll/allgather", "a block of each rank to all", needReference, sure(jointCases("coll/allgather", collSizes...)), nil},
	{"coll/reduce", "sum of all ranks, on each rank in turn", needReference, sure(jointCases("coll/reduce", collSizes...)), nil},
	{"coll/gather", "a block of each rank to each rank in turn", needReference, sure(jointCases("coll/gather", collSizes...)), nil},
	{"coll/scatter", "a block for each rank from each rank in turn", needReference, sure(jointCases("coll/scatter", collSizes...)), nil},
	{"coll/reducescatter", "a block of the sum of all ranks to each", needReference, sure(jointCases("coll/reducescatter", collSizes...)), nil},
	{"team/barrier", "the same calls of a team", needReference, sure(jointCases("team/barrier", 0)), nil},
	{"team/allreduce", "... allreduce", needReference, sure(jointCases("team/allreduce", collSizes...)), nil},
	{"team/broadcast", "... broadcast", needReference, sure(jointCases("team/broadcast", collSizes...)), nil},
	{"team/alltoall", "... alltoall", needReference, sure(jointCases("team/alltoall", collSizes...)), nil},
	{"team/scan", "... scan", needReference, sure(jointCases("team/scan", collSizes...)), nil},
	{"team/split", "a team of all ranks made and given back", needReference, sure(jointCases("team/split", 0)), nil},
	{"upc/pointer", "pointers-to-shared computed, and followed to the thread's own words", needSegments, upcCases(pointerCases), nil},
	{"upc/access", "relaxed and strict accesses to words of this thread and of thread 1", needSegments, upcCases(accessCases), nil},
	{"upc/copy", "upc_memput and upc_memget", needSegments, upcCases(copyUPCCases), nil},
	{"upc/nb", "64 puts of words that go on after the call", needSegments, upcCases(nbUPCCases), nil},
	{"upc/lock", "upc_lock and upc_unlock, free and contended", needSegments, upcCases(lockUPCCases), nil},
	{"upc/forall", "an iteration of upc_forall, by affinity", needSegments, upcCases(forallCases), nil},
	{"upc/barrier", "upc_barrier with and without an expression", needSegments, upcCases(collectiveUPCCases("upc/barrier", 0)), nil},
	{"upc/collective", "collective calls by synchronization flags", needSegments, upcCases(collectiveUPCCases("upc/collective", 8, upcMost)), nil},
	{"upc/target", "what pointers-to-shared cost beside what they may", needSegments, nil, upcTargets},
	{"firehose/register", "registration of memory, and its end, by size", needReference, registerCases, nil},
	{"firehose/put", "blocking put to memory that is not attached, by all ways", needReference, farPutCases, nil},
	{"firehose/get", "blocking get from it", needReference, farGetCases, nil},
	{"firehose/pieces", "pieces of a Go slice by one Shape, and each by itself", needReference, farPieceCases, nil},
	{"firehose/workingset", "hit rates of working sets", needReference, nil, workingSets},
	{"firehose/targets", "what hits and misses cost beside what they may", needReference, nil, targets},
}

// sure is for cases that need nothing that may be missing.
func sure(cases func(j *job) []outcase) func(j *job) ([]outcase, error) {
	return func(j *job) ([]outcase, error) { return cases(j), nil }
}

// need is a requirement of a benchmark.
type need int

const (
	needReference need = iota // something to compare with: direct access, or else sockets
	needDirect                // direct access of ranks 0 and 1 to each other's memory
	needSockets
	needSegments // something to compare with, and segments of a fixed size
	needBare     // an endpoint of libfabric beside the job's own
)

// meet makes what is needed available. why is the reason if the benchmark is to be
// left out; err means that the job cannot go on.
func (j *job) meet(n need) (why string, err error) {
	if n == needSegments {
		if j.n.Layers().Conduit.SegmentSize(j.n.Rank()) == 0 {
			return "threads of UPC need segments that are reached without a look-up (ARGON_SEGMENT_LARGE)", nil
		}
		n = needReference
	}
	switch {
	case n == needBare || n == needReference && j.onFabric():
		if err = j.needBare(); errors.Is(err, errNoBare) && n == needBare {
			return err.Error(), nil
		}
	case n == needDirect && !j.direct:
		return errNoDirect.Error(), nil
	case n == needSockets || n == needReference && !j.direct:
		err = j.needSockets()
		if j.direct && errors.Is(err, errNoSockets) {
			return err.Error(), nil
		}
	}
	return "", err
}

var (
	argCounts = []int{0, 4, 8, 14, 15, 16}
	collSizes = []int{8, 512, 4 << 10, 64 << 10, 1 << 20}
	copySizes = []int{8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
)

// minBulk is the size from which on copying is worth comparing with, bytes.
const minBulk = 64

// way is the reference for times, if there is one for a payload of so many bytes.
func (j *job) way(size int) string {
	switch {
	case j.direct:
		return refLine
	case j.onFabric() && size <= maxBare:
		return refOFI
	case j.onFabric() || size > maxDatagram:
		return ""
	}
	return refUDP
}

// access is the reference for the time of a put, get or atomic.
func (j *job) access(size int) string {
	if j.onFabric() {
		return refOFIWrite
	}
	return j.way(size)
}

// message is the reference for the time a message of many.
func (j *job) message(size int) string {
	switch {
	case j.direct:
		return refLine
	case j.onFabric() && size <= maxBare:
		return refOFIMsg
	case j.onFabric() || size > maxDatagram:
		return ""
	}
	return refUDPMsg
}

// bulk is the reference for bandwidths.
func (j *job) bulk() string {
	switch {
	case j.direct:
		return refMemcpy
	case j.onFabric():
		return refOFIWrite
	}
	return refStream
}

// withBandwidth adds the bandwidth where it means something.
func (j *job) withBandwidth(size int, o output) []output {
	if size < minBulk {
		return []output{o}
	}
	return []output{o, {bandwidth, j.bulk()}}
}

// reference is the named reference as an operation on size bytes.
func (j *job) reference(name string, size int) (op, error) {
	switch name {
	case refLine:
		return op{
			begin: func(count int) error { return j.command(cmdLine, count, 0) },
			run:   j.sendLine,
			legs:  2,
		}, nil
	case refCopy:
		to, from, err := j.windows(size)
		return op{
			begin: func(count int) error { return j.command(cmdCopy, count, size) },
			run:   func(count int) error { return j.sendCopies(count, to, from) },
			legs:  2,
		}, err
	case refMemcpy:
		to, _, err := j.windows(size)
		return copyOp(to, j.local[:size]), err
	case refUDP:
		size = max(size, minMessage)
		return op{
			begin: func(count int) error { return j.command(cmdPings, count, size) },
			run:   func(count int) error { return j.sendPings(count, size) },
			legs:  2,
		}, nil
	case refUDPMsg:
		size = max(size, minMessage)
		return j.flowOp(cmdMessages, size, size, func() (*flow, way) { return &j.sockets.single, alone(size) }), nil
	case refStream:
		return j.streamOp(j.datagram, size), nil
	case refOFI:
		return j.bareOp(cmdBarePings, size, 2), nil
	case refOFIMsg:
		return j.bareOp(cmdBareMessages, size, 1), nil
	case refOFIWrite:
		return j.bareOp(cmdBareWrites, size, 1), nil
	case refShort:
		return j.shortTrip(), nil
	case refMailbox:
		return j.mailboxReference(), nil
	case refOwn:
		return j.ownCopy(size), nil
	case refAttachPut, refAttachGet:
		return j.attached(name == refAttachGet, size), nil
	}
	if o, ok := j.upcReference(name, size); ok {
		return o, nil
	}
	panic("gasbench: no reference " + name)
}

// streamOp is a stream of size bytes an operation in datagrams of so many bytes.
func (j *job) streamOp(datagram, size int) op {
	size = (size + 7) &^ 7
	return j.flowOp(cmdStream, datagram, size, func() (*flow, way) { return &j.sockets.joined, j.sockets.stream(datagram) })
}

// flowOp is a flow of size bytes an operation, which rank 1 receives by command
// what, and by size asked if it has to know that.
func (j *job) flowOp(what uint32, asked, size int, choose func() (*flow, way)) op {
	var f *flow
	var w way
	return op{
		begin: func(count int) error {
			f, w = choose()
			return j.command(what, count*size, asked)
		},
		run:  func(count int) error { return j.pour(f, w, j.local[:max(size, w.chunk)], count*size) },
		end:  func() error { return j.finishFlow(f, w, j.local[:max(size, w.chunk)]) },
		legs: 1,
	}
}

func copyOp(to, from []byte) op {
	return plain(func(count int) error {
		for range count {
			copy(to, from)
		}
		return nil
	})
}

// refCases are a reference by itself, of some sizes.
func refCases(name string, out output, sizes ...int) func(j *job) ([]outcase, error) {
	return func(j *job) (l []outcase, err error) {
		for _, size := range sizes {
			c := outcase{size: size, out: []output{out}}
			if c.op, err = j.reference(name, size); err != nil {
				return nil, err
			}
			if name == refOFIWrite && size >= minBulk {
				c.out = append(c.out, output{metric: bandwidth})
			}
			l = append(l, c)
		}
		return l, nil
	}
}

func memcpyCases(j *job) (l []outcase, err error) {
	for _, size := range copySizes {
		_, own, err := j.windows(2 * size)
		if err != nil {
			return nil, err
		}
		peer, _ := j.reference(refMemcpy, size) // the windows are there
		for _, c := range []outcase{{via: "own", op: copyOp(own[:size], own[size:])}, {via: "peer", op: peer}} {
			c.size, c.out = size, []output{{metric: bandwidth}}
			l = append(l, c)
		}
	}
	return l, nil
}

// streamCases are streams of the sizes that datagrams usually have, and of the
// conduit's own.
func streamCases(j *job) []outcase {
	var l []outcase
	sizes := []int{1400, 8192, maxDatagram}
	if j.datagram > 0 && !slices.Contains(sizes, j.datagram) {
		sizes = append(sizes, j.datagram)
	}
	for _, d := range sizes {
		l = append(l, outcase{via: strconv.Itoa(d), size: 1 << 20, op: j.streamOp(d, 1<<20), out: []output{{metric: bandwidth}}})
	}
	return l
}

// answered makes an operation of a function that sends one request to hPing.
func (j *job) answered(send func() error) op {
	s := j.s
	want := s.pongs
	arrived := func() bool { return s.pongs == want }
	return op{
		run: func(count int) error {
			want = s.pongs
			for range count {
				want++
				if err := send(); err != nil {
					return err
				}
				if err := j.e.Wait(nil, arrived); err != nil {
					return err
				}
			}
			return nil
		},
		legs: 2,
	}
}

// flood makes an operation of a function that sends one request to hSink; the
// last one is followed by one that is answered.
func (j *job) flood(send func() error) op {
	last := j.answered(func() error { return j.e.RequestShort(1, hPing) })
	o := repeat(send)
	o.end = func() error { return last.run(1) }
	return o
}

func shortCases(j *job) []outcase {
	var l []outcase
	for _, k := range argCounts {
		l = append(l, j.short(k)...)
	}
	for _, k := range byGoroutine {
		for _, c := range j.short(goroutineArgs) {
			l = append(l, c.nth(k))
		}
	}
	return l
}

// short are ping-pong and flood of short messages with so many arguments.
func (j *job) short(k int) []outcase {
	args := make([]uint32, k)
	send := func(h am.HandlerID) func() error {
		return func() error { return j.e.RequestShort(1, h, args...) }
	}
	return []outcase{
		{size: k, bytes: 4 * k, op: j.answered(send(hPing)), out: []output{{halfRTT, j.way(4 * k)}}},
		{size: k, bytes: 4 * k, op: j.flood(send(hSink)), out: []output{{rate, j.message(4 * k)}}},
	}
}

// payloads are the sizes to send, up to limit.
func payloads(limit int) []int {
	var l []int
	for _, size := range []int{0, 8, 64, 512, 4 << 10, 16 << 10} {
		if size < limit {
			l = append(l, size)
		}
	}
	return append(l, limit)
}

// payloadCases are ping-pong and flood for all sizes up to limit.
func (j *job) payloadCases(limit int, send func(h am.HandlerID, payload []byte) error) []outcase {
	var l []outcase
	for _, size := range payloads(limit) {
		payload := j.local[:size]
		ping := outcase{
			size: size,
			op:   j.answered(func() error { return send(hPing, payload) }),
			out:  []output{{halfRTT, j.way(size)}},
		}
		flood := outcase{
			size: size,
			op:   j.flood(func() error { return send(hSink, payload) }),
			out:  []output{{rate, j.message(size)}},
		}
		if size >= minBulk {
			if j.direct {
				ping.out = append(ping.out, output{halfRTT, refCopy})
			}
			flood.out = append(flood.out, output{bandwidth, j.bulk()})
		}
		l = append(l, ping, flood)
	}
	return l
}

func mediumCases(j *job) []outcase {
	return j.payloadCases(min(j.e.MaxMedium(), dataSize), func(h am.HandlerID, payload []byte) error {
		return j.e.RequestMedium(1, h, payload)
	})
}

func longCases(j *job) []outcase {
	to := j.data()
	return j.payloadCases(int(min(j.e.MaxLong(0), j.e.MaxLong(1), dataSize)), func(h am.HandlerID, payload []byte) error {
		return j.e.RequestLong(1, h, to, payload)
	})
}

// plain makes an operation of a loop.
func plain(run func(count int) error) op { return op{run: run, legs: 1} }

// repeat makes an operation of a function that is called for each. The call takes a
// nanosecond or two, which shows where operations take few.
func repeat(once func() error) op {
	return plain(func(count int) error {
		for range count {
			if err := once(); err != nil {
				return err
			}
		}
		return nil
	})
}

// The ways to the same operation.
const (
	viaExtended = "extended" // bytes, through package extended
	viaValue    = "value"    // a word, through package extended
	viaPtr      = "ptr"      // gas.Ptr[uint64]
)

func putCases(j *job) []outcase {
	x, to := j.x, j.data()
	p, n := j.word(), j.n
	l := []outcase{
		{via: viaPtr, size: 8, out: []output{{latency, j.access(8)}}, op: plain(func(count int) error {
			for i := range count {
				if err := p.Put(n, uint64(i)); err != nil {
					return err
				}
			}
			return nil
		})},
		{via: viaValue, size: 8, out: []output{{latency, j.access(8)}}, op: plain(func(count int) error {
			for i := range count {
				if err := x.PutValue(1, to, uint64(i), 8); err != nil {
					return err
				}
			}
			return nil
		})},
	}
	for _, size := range copySizes {
		src := j.local[:size]
		l = append(l, outcase{via: viaExtended, size: size, out: j.withBandwidth(size, output{latency, j.access(size)}), op: plain(func(count int) error {
			for range count {
				if err := x.Put(1, to, src); err != nil {
					return err
				}
			}
			return nil
		})})
	}
	return l
}

func getCases(j *job) []outcase {
	x, from := j.x, j.data()
	p, n := j.word(), j.n
	l := []outcase{
		{via: viaPtr, size: 8, out: []output{{latency, j.access(8)}}, op: plain(func(count int) error {
			sum := uint64(0)
			for range count {
				v, err := p.Get(n)
				if err != nil {
					return err
				}
				sum += v
			}
			runtime.KeepAlive(sum)
			return nil
		})},
		{via: viaValue, size: 8, out: []output{{latency, j.access(8)}}, op: plain(func(count int) error {
			sum := uint64(0)
			for range count {
				v, err := x.GetValue(1, from, 8)
				if err != nil {
					return err
				}
				sum += v
			}
			runtime.KeepAlive(sum)
			return nil
		})},
	}
	for _, size := range copySizes {
		dst := j.local[:size]
		l = append(l, outcase{via: viaExtended, size: size, out: j.withBandwidth(size, output{latency, j.access(size)}), op: plain(func(count int) error {
			for range count {
				if err := x.Get(1, from, dst); err != nil {
					return err
				}
			}
			return nil
		})})
	}
	return l
}

// window is how many non-blocking operations are begun before all are waited
// for.
const window = 64

// windowed makes an operation of count starts by start and a wait after every
// window of them, and at the end.
func windowed(start func() error, wait func() error) op {
	return plain(func(count int) error {
		for count > 0 {
			k := min(count, window)
			for range k {
				if err := start(); err != nil {
					return err
				}
			}
			if err := wait(); err != nil {
				return err
			}
			count -= k
		}
		return nil
	})
}

func putNBCases(j *job) []outcase {
	x, to := j.x, j.data()
	var l []outcase
	for _, size := range []int{8, 512, 4 << 10, 64 << 10, 1 << 20} {
		src := j.local[:size]
		out := j.withBandwidth(size, output{rate, j.message(size)})
		handles := make([]extended.Handle, 0, window)
		l = append(l,
			outcase{via: viaExtended, size: size, out: out, op: windowed(
				func() error {
					h, err := x.PutNB(1, to, src)
					handles = append(handles, h)
					return err
				},
				func() error {
					err := x.WaitAll(handles)
					handles = handles[:0]
					return err
				})},
			outcase{via: "implicit", size: size, out: out, op: windowed(
				func() error { return x.Implicit().PutNBI(1, to, src) },
				func() error { return x.Implicit().Sync(extended.Puts) })})
	}
	return l
}

// handleCases begin as many operations as there are handles, one after the other,
// and then wait for all. What they have done is checked.
func handleCases(j *job) []outcase {
	const n, size = extended.MaxHandles, 8
	x, to := j.x, j.data()
	words := make([]byte, n*size) // what was put last; gets read them
	back := make([]byte, n*size)
	handles := make([]extended.Handle, 0, n)
	all := func(start func(i int) (extended.Handle, error)) error {
		for i := range n {
			h, err := start(i)
			if err != nil {
				return err
			}
			handles = append(handles, h)
		}
		err := x.WaitAll(handles)
		handles = handles[:0]
		return err
	}
	// round puts, or gets, all words, and compares what is there then with what was put.
	turn := uint64(0)
	round := func(get bool) error {
		turn++
		for i := range n {
			binary.LittleEndian.PutUint64(words[i*size:], turn<<32|uint64(i))
		}
		clear(back)
		at := func(i int) (segment.NLA, int) { return to + segment.NLA(i*size), i * size }
		var err error
		if get {
			if err = x.Put(1, to, words); err == nil {
				err = all(func(i int) (extended.Handle, error) {
					a, k := at(i)
					return x.GetNB(1, a, back[k:k+size])
				})
			}
		} else if err = all(func(i int) (extended.Handle, error) {
			a, k := at(i)
			return x.PutNB(1, a, words[k:k+size])
		}); err == nil {
			err = x.Get(1, to, back)
		}
		if err == nil && !bytes.Equal(words, back) {
			err = errors.New("the other rank's memory does not hold what was put")
		}
		return err
	}
	var l []outcase
	for _, via := range []string{"put", "get"} {
		o := repeat(func() error { return round(via == "get") })
		o.parts = n
		l = append(l, outcase{via: via, size: size, op: o, out: []output{{rate, j.message(size)}}})
	}
	return l
}

func addCases(j *job) []outcase {
	x, to := j.x, j.data()
	p, n := j.word(), j.n
	return []outcase{
		{via: viaPtr, size: 8, out: []output{{latency, j.way(8)}}, op: plain(func(count int) error {
			for range count {
				if _, err := gas.FetchAdd(n, p, 1); err != nil {
					return err
				}
			}
			return nil
		})},
		{via: viaExtended, size: 8, out: []output{{latency, j.way(8)}}, op: plain(func(count int) error {
			for range count {
				if _, err := extended.FetchAdd[uint64](x, 1, to, 1); err != nil {
					return err
				}
			}
			return nil
		})},
	}
}

func barrierCases(j *job) []outcase {
	return []outcase{{out: []output{{latency, j.way(8)}}, op: op{
		begin: func(count int) error { return j.command(cmdBarrier, count, 0) },
		run:   j.barriers,
		legs:  1,
	}}}
}
