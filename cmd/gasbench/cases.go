package main

import (
	"fmt"
	"runtime"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
)

// The metrics.
const (
	halfRTT   = "half_rtt"
	latency   = "latency"
	rate      = "rate"
	bandwidth = "bandwidth"
)

// The references.
const (
	refLine   = "ref/cacheline"
	refCopy   = "ref/copy"
	refMemcpy = "ref/memcpy"
)

// benchmarks are all there are, in the order they run.
var benchmarks = []struct {
	name  string
	about string
	cases func(j *job) []outcase
}{
	{refLine, "one way of a bare ping-pong of two flags", lineCases},
	{refCopy, "the same with a payload copied in and out", copyCases},
	{refMemcpy, "copy() within the own segment and to the other rank's", memcpyCases},
	{"am/short", "short active messages by number of arguments", shortCases},
	{"am/medium", "medium active messages by payload", mediumCases},
	{"am/long", "long active messages by payload", longCases},
	{"rma/put", "blocking put", putCases},
	{"rma/get", "blocking get", getCases},
	{"rma/putnb", "64 non-blocking puts, then wait for all", putNBCases},
	{"atomic/add", "fetch-and-add of a 64-bit word", addCases},
	{"barrier", "barrier of all ranks", barrierCases},
}

var (
	argCounts = []int{0, 4, 8, 14, 15, 16}
	copySizes = []int{8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
)

// minBulk is the size from which on copying is worth comparing with, bytes.
const minBulk = 64

// withBandwidth adds the bandwidth where it means something.
func withBandwidth(size int, o output) []output {
	if size < minBulk {
		return []output{o}
	}
	return []output{o, {bandwidth, refMemcpy}}
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
	}
	panic("gasbench: no reference " + name)
}

func copyOp(to, from []byte) op {
	return op{
		run: func(count int) error {
			for range count {
				copy(to, from)
			}
			return nil
		},
		legs: 1,
	}
}

// mustReference is reference where windows have been seen to exist.
func (j *job) mustReference(name string, size int) op {
	o, err := j.reference(name, size)
	if err != nil {
		panic(fmt.Sprintf("gasbench: %s: %v", name, err))
	}
	return o
}

func lineCases(j *job) []outcase {
	return []outcase{{size: 8, op: j.mustReference(refLine, 8), out: []output{{metric: halfRTT}}}}
}

func copyCases(j *job) []outcase {
	var l []outcase
	for _, size := range []int{64, 512, 4 << 10, 16 << 10, 64 << 10} {
		l = append(l, outcase{size: size, op: j.mustReference(refCopy, size), out: []output{{halfRTT, refLine}}})
	}
	return l
}

func memcpyCases(j *job) []outcase {
	var l []outcase
	for _, size := range copySizes {
		_, own, err := j.windows(2 * size)
		if err != nil {
			panic(fmt.Sprintf("gasbench: %v", err))
		}
		l = append(l,
			outcase{via: "own", size: size, op: copyOp(own[:size], own[size:]), out: []output{{metric: bandwidth}}},
			outcase{via: "peer", size: size, op: j.mustReference(refMemcpy, size), out: []output{{metric: bandwidth}}})
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
	return op{
		run: func(count int) error {
			for range count {
				if err := send(); err != nil {
					return err
				}
			}
			return nil
		},
		end:  func() error { return last.run(1) },
		legs: 1,
	}
}

func shortCases(j *job) []outcase {
	var l []outcase
	for _, k := range argCounts {
		args := make([]uint32, k)
		send := func(h am.HandlerID) func() error {
			return func() error { return j.e.RequestShort(1, h, args...) }
		}
		l = append(l,
			outcase{size: k, op: j.answered(send(hPing)), out: []output{{halfRTT, refLine}}},
			outcase{size: k, op: j.flood(send(hSink)), out: []output{{rate, refLine}}})
	}
	return l
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
			out:  []output{{halfRTT, refLine}},
		}
		flood := outcase{
			size: size,
			op:   j.flood(func() error { return send(hSink, payload) }),
			out:  []output{{rate, refLine}},
		}
		if size >= minBulk {
			ping.out = append(ping.out, output{halfRTT, refCopy})
			flood.out = append(flood.out, output{bandwidth, refMemcpy})
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
		return j.e.RequestLong(1, h, payload, to)
	})
}

// plain makes an operation of a loop.
func plain(run func(count int) error) op { return op{run: run, legs: 1} }

// The ways to the same operation.
const (
	viaExtended = "extended" // bytes, through package extended
	viaValue    = "value"    // a word, through package extended
	viaPtr      = "ptr"      // gas.Ptr[uint64]
)

func putCases(j *job) []outcase {
	x, to := j.x, j.data()
	p, err := j.word()
	if err != nil {
		panic("gasbench: " + err.Error())
	}
	n := j.n
	l := []outcase{
		{via: viaPtr, size: 8, out: []output{{latency, refLine}}, op: plain(func(count int) error {
			for i := range count {
				if err := p.Put(n, uint64(i)); err != nil {
					return err
				}
			}
			return nil
		})},
		{via: viaValue, size: 8, out: []output{{latency, refLine}}, op: plain(func(count int) error {
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
		l = append(l, outcase{via: viaExtended, size: size, out: withBandwidth(size, output{latency, refLine}), op: plain(func(count int) error {
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
	p, err := j.word()
	if err != nil {
		panic("gasbench: " + err.Error())
	}
	n := j.n
	l := []outcase{
		{via: viaPtr, size: 8, out: []output{{latency, refLine}}, op: plain(func(count int) error {
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
		{via: viaValue, size: 8, out: []output{{latency, refLine}}, op: plain(func(count int) error {
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
		l = append(l, outcase{via: viaExtended, size: size, out: withBandwidth(size, output{latency, refLine}), op: plain(func(count int) error {
			for range count {
				if err := x.Get(dst, 1, from); err != nil {
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
	for _, size := range []int{8, 512, 4 << 10, 64 << 10} {
		src := j.local[:size]
		out := withBandwidth(size, output{rate, refLine})
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
				func() error { return x.PutNBI(1, to, src) },
				func() error { return x.SyncNBI(extended.Puts) })})
	}
	return l
}

func addCases(j *job) []outcase {
	x, to := j.x, j.data()
	p, err := j.word()
	if err != nil {
		panic("gasbench: " + err.Error())
	}
	n := j.n
	return []outcase{
		{via: viaPtr, size: 8, out: []output{{latency, refLine}}, op: plain(func(count int) error {
			for range count {
				if _, err := gas.FetchAdd(n, p, 1); err != nil {
					return err
				}
			}
			return nil
		})},
		{via: viaExtended, size: 8, out: []output{{latency, refLine}}, op: plain(func(count int) error {
			for range count {
				if _, err := x.FetchAddUint64(1, to, 1); err != nil {
					return err
				}
			}
			return nil
		})},
	}
}

func barrierCases(j *job) []outcase {
	return []outcase{{out: []output{{latency, refLine}}, op: op{
		begin: func(count int) error { return j.command(cmdBarrier, count, 0) },
		run:   j.barriers,
		legs:  1,
	}}}
}
