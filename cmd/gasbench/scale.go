package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/gas"
)

// topologies are those of the curves, in their order.
var topologies = []fabric.Topology{fabric.Crossbar, fabric.Torus, fabric.FatTree}

// A collective is called by all ranks over and over. What is counted is the time
// from the end of the first call on the last rank to the end of the last one, for
// each call.
const calls = 3

// scaleSegment is the segment of each rank of package gas, bytes: more than the
// heap's own tables, and so little that addresses last.
const scaleSegment = 1 << 20

// virtual is a rank's clock, ns.
func virtual(ep conduits.Endpoint) float64 { return float64(ep.Now().Nanoseconds()) }

// ends keeps when the last rank was done with each call, ns.
type ends [calls]float64

func (e *ends) note(call int, ep conduits.Endpoint) { e[call] = max(e[call], virtual(ep)) }

func (e *ends) each() float64 { return (e[calls-1] - e[0]) / (calls - 1) }

// cost is a job's use of this machine.
type cost struct {
	cpu      time.Duration
	resident int64
}

func spent() cost {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for impossible arguments only
	return cost{time.Duration(u.Utime.Nano() + u.Stime.Nano()), resident()}
}

// resident is the memory of this process, bytes: all of it where the system
// tells, else that of the Go runtime.
func resident() int64 {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := bytes.Fields(b); len(f) > 1 {
			if pages, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// scale runs a collective on all topologies and numbers of ranks. model gives
// its time by the profile alone.
func (s *study) scale(title string, run func(j *sim.Job, e *ends) error, model func(p *sim.Profile, ranks int) (flat, hops float64, err error)) error {
	if err := s.head(title, "", "us", "model us", "with hops", "events", "cpu s", "events/cpu s", "bytes/rank"); err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	for _, topo := range topologies {
		p := s.o.profile
		p.Net.Topology = topo
		for ranks := 2; ranks <= s.o.ranks; ranks *= 2 {
			flat, hops, err := model(&p, ranks)
			if err != nil {
				return err
			}
			debug.FreeOSMemory() // so that memory of the last job is not counted for this one
			before := spent()
			j, err := sim.New(ranks, sim.Config{Profile: &p, MaxSegment: scaleSegment})
			if err != nil {
				return err
			}
			var e ends
			if err := run(j, &e); err != nil {
				return fmt.Errorf("%d ranks, %v: %w", ranks, topo, err)
			}
			after := spent()
			f := figure{
				What: topo.String(), Ranks: ranks, Metric: latency, Unit: "ns",
				Value: e.each(), Expected: flat, Hops: hops,
				Events: j.Events, CPU: (after.cpu - before.cpu).Seconds(),
				Memory: float64(max(0, after.resident-before.resident)) / float64(ranks),
			}
			if f.CPU > 0 {
				f.PerCPU = float64(f.Events) / f.CPU
			}
			us := func(v float64) string { return strconv.FormatFloat(v/1000, 'f', 2, 64) }
			if err := s.add([]figure{f}, fmt.Sprintf("%s %d", topo, ranks), us(f.Value), us(flat), us(hops),
				strconv.FormatUint(f.Events, 10), strconv.FormatFloat(f.CPU, 'f', 2, 64),
				strconv.FormatFloat(f.PerCPU, 'g', 3, 64), strconv.FormatFloat(f.Memory, 'f', 0, 64)); err != nil {
				return err
			}
			runtime.KeepAlive(j)
		}
	}
	return nil
}

// log2 is the number of rounds or levels that ranks need.
func log2(ranks int) int {
	n := 0
	for 1<<n < ranks {
		n++
	}
	return n
}

// detours returns the time that ways through the network take more than the shortest, for
// each distance 2^k between ranks: the longest of all ranks, ns.
func detours(p *sim.Profile, ranks int) ([]float64, error) {
	net := p.Net
	net.Contention = false
	f, err := fabric.New(net, ranks, idle{}, func(fabric.Time, uint64) {})
	if err != nil {
		return nil, err
	}
	l := make([]float64, log2(ranks))
	for k := range l {
		most := 1
		for r := range ranks {
			most = max(most, f.Hops(r, (r+1<<k)%ranks))
		}
		l[k] = float64(sim.Time(most-1)*net.HopLatency) / float64(sim.Nanosecond)
	}
	return l, nil
}

// idle is the clock of a network without traffic.
type idle struct{}

// Schedule has nothing to do.
func (idle) Schedule(fabric.Time, uint64, uint64) {}

// shortTime is half a round trip of a short message with k arguments by the
// profile, ns: one of VELO's, and the link for each byte beyond the smallest packet.
func shortTime(p *sim.Profile, k int) float64 {
	data := p.Tag + 4*k
	slots := max(1, (data+p.Slot-1)/p.Slot)
	more := max(0, data+slots*p.Header-p.Net.Free)
	return float64(p.Software+p.Net.Latency+p.DMAWrite+p.PIO)/float64(sim.Nanosecond) +
		float64(more)*float64(p.Net.Byte)/float64(sim.Nanosecond)
}

// barrierModel is a dissemination barrier's: in each round a message of four
// arguments, from its sender's call to its receiver's return.
func barrierModel(p *sim.Profile, ranks int) (flat, hops float64, err error) {
	t := shortTime(p, 4)
	l, err := detours(p, ranks)
	for _, d := range l {
		flat += t
		hops += t + d
	}
	return flat, hops, err
}

// allReduceModel is that of a binomial tree up and down. What a rank says to its
// neighbours at the beginning of a call adds a constant.
func allReduceModel(p *sim.Profile, ranks int) (flat, hops float64, err error) {
	t := shortTime(p, 6) // as long as four arguments and 8 bytes
	l, err := detours(p, ranks)
	for _, d := range l {
		flat += 2 * t
		hops += 2 * (t + d)
	}
	return flat, hops, err
}

func scaleBarrier(s *study) error {
	return s.scale("split-phase barriers in a row, each", runBarriers, barrierModel)
}

func scaleAllReduce(s *study) error {
	return s.scale("all-reduce of 8 bytes in a row, each", runAllReduces, allReduceModel)
}

// runBarriers needs no more of the runtime than active messages, so that it goes
// on to a million ranks.
func runBarriers(j *sim.Job, e *ends) error {
	return onEach(j, nil, func(ep conduits.Endpoint, b *barrier.Barrier) error {
		for call := range calls {
			if err := b.Barrier(0, 0); err != nil {
				return err
			}
			e.note(call, ep)
		}
		return nil
	})
}

// onEach runs f on all ranks, without package gas, and with a Member for collectives
// where members has one for each.
func onEach(j *sim.Job, members []*collective.Member, f func(ep conduits.Endpoint, b *barrier.Barrier) error) error {
	eps := j.Endpoints()
	var failed error
	conduits.Run(eps, func(i int) {
		b := barrier.New()
		entries := b.Handlers()
		if members != nil {
			entries = append(entries, members[i].Handlers()...)
		}
		a, err := am.Attach(eps[i], am.Config{Runtime: entries})
		if err == nil {
			err = b.Bind(a)
		}
		if err == nil && members != nil {
			members[i].Bind(a)
		}
		if err == nil {
			err = f(eps[i], b)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			eps[i].Fail(err)
		}
	})
	return failed
}

// scaleConduit is the name by which package gas finds its simulated job.
const scaleConduit = "gasbench-sim"

// scaleJob is the job that scaleConduit opens.
var scaleJob *sim.Job

func init() {
	conduits.Register(conduits.Conduit{Name: scaleConduit, Local: func(int, conduits.Config) ([]conduits.Endpoint, error) {
		return scaleJob.Endpoints(), nil
	}})
}

func runAllReduces(j *sim.Job, e *ends) error {
	scaleJob = j
	defer func() { scaleJob = nil }()
	ranks := j.Endpoint(0).Size()
	return gas.Run(gas.Config{Conduit: scaleConduit, Ranks: ranks}, func(n *gas.Node) error {
		for call := range calls {
			v, err := gas.AllReduce(n, uint64(1), gas.Sum)
			if err != nil {
				return err
			}
			if v != uint64(ranks) {
				return fmt.Errorf("all-reduce of ones on %d ranks gave %d", ranks, v)
			}
			e.note(call, n.Layers().Conduit)
		}
		return nil
	})
}
