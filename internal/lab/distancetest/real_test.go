package distancetest

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/lab/wan"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

var flagReal = flag.Bool("distance.real", false, "measure real jobs beside the kernel's TCP, some minutes")

// The environment of a process that is a rank of a real job.
const (
	envBulk  = "ARGONTEST_BULK" // bytes of each put
	envDepth = "ARGONTEST_DEPTH"
)

// bulkSink counts completions.
type bulkSink struct {
	bytes, issued int64
	size          int64
	err           error
	stop          bool
}

func (s *bulkSink) Receive(*conduits.Message) { s.stop = true }

func (s *bulkSink) Complete(_ uint64, ev conduits.Event, _ uint64, err error) {
	if s.err == nil {
		s.err = err
	}
	if ev&conduits.RemoteDone != 0 {
		s.issued--
		s.bytes += s.size
	}
}

// bulkRank is a rank of two: 0 puts to 1 until its standard input ends, and says how
// many bytes have arrived by when.
func bulkRank() error {
	job, ok, err := conduits.Launched(os.Getenv)
	if err != nil || !ok {
		return fmt.Errorf("not a rank: %w", err)
	}
	size, err := strconv.Atoi(os.Getenv(envBulk))
	if err != nil {
		return err
	}
	depth, err := strconv.Atoi(os.Getenv(envDepth))
	if err != nil {
		return err
	}
	e, err := udp.Open(job, conduits.Config{})
	if err != nil {
		return err
	}
	s := &bulkSink{size: int64(size)}
	if err := e.Attach(conduits.AttachConfig{Size: uint64(size), Receiver: s}); err != nil {
		return err
	}
	if job.Rank == 1 {
		if err := conduits.Wait(e, nil, func() bool { return s.stop }); err != nil {
			return err
		}
		return e.Close()
	}
	ended := false
	var mu sync.Mutex
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		mu.Lock()
		ended = true
		mu.Unlock()
		e.Wake(0)
	}()
	src := make([]byte, size)
	out := bufio.NewWriter(os.Stdout)
	said := int64(-1)
	for {
		mu.Lock()
		over := ended
		mu.Unlock()
		if over {
			break
		}
		for s.issued < int64(max(2, depth/size)) {
			if _, err := post.Put(e, 1, segment.AttachBase, src, conduits.SourceDone|conduits.RemoteDone, 1); err != nil {
				return err
			}
			s.issued++
		}
		if s.bytes != said {
			said = s.bytes
			fmt.Fprintln(out, time.Now().UnixNano(), said)
			out.Flush()
		}
		now := s.bytes
		err := conduits.Wait(e, nil, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return s.bytes != now || s.err != nil || ended
		})
		if err = errors.Join(err, s.err); err != nil {
			return err
		}
	}
	if st := e.Send(1, conduits.Request, 1, nil); st != conduits.Ready {
		return fmt.Errorf("send: %v", st)
	}
	return e.Close()
}

// realJob is a job of two processes on the hosts of a lab.
type realJob struct {
	wan.Meter
	t     *testing.T
	lab   *wan.Lab
	serve *rendezvous.Server
	ranks [2]*exec.Cmd
	errs  [2]bytes.Buffer
	stdin io.WriteCloser
	read  sync.WaitGroup
}

// startJob starts one whose rank 0 puts size bytes again and again.
func startJob(t *testing.T, l *wan.Lab, size, depth int, env ...string) *realJob {
	t.Helper()
	j := &realJob{t: t, lab: l}
	key := jobkey.New()
	var err error
	if j.serve, err = rendezvous.Serve(l.Listen(0), rendezvous.ServerConfig{Key: key, Size: 2, Patience: time.Minute}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range j.ranks {
		c := l.Net.Hosts[i].Command(t.Context(), self)
		c.Env = append(os.Environ(), "ARGON_RANK="+strconv.Itoa(i), "ARGON_SIZE=2", "ARGON_CONDUIT=udp", "ARGON_IFACE="+l.Addr[i].String(),
			"ARGON_HOST="+l.Net.Hosts[i].Short, "ARGON_RENDEZVOUS="+j.serve.Addr().String(), "ARGON_RENDEZVOUS_SERVE=0", jobenv.JobKey+"="+key.Reveal(),
			envBulk+"="+strconv.Itoa(size), envDepth+"="+strconv.Itoa(depth))
		c.Env = append(c.Env, env...)
		c.Stderr = &j.errs[i]
		if i == 0 {
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if j.stdin, err = c.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			j.read.Go(func() { j.note(out) })
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		j.ranks[i] = c
	}
	return j
}

// note reads what rank 0 says.
func (j *realJob) note(r io.Reader) {
	for in := bufio.NewScanner(r); in.Scan(); {
		at, n, _ := strings.Cut(in.Text(), " ")
		ns, err := strconv.ParseInt(at, 10, 64)
		bytes, err2 := strconv.ParseInt(n, 10, 64)
		if err != nil || err2 != nil {
			j.t.Errorf("rank 0 says %q", in.Text())
			continue
		}
		j.Add(time.Unix(0, ns), bytes)
	}
}

// stop ends the job.
func (j *realJob) stop() {
	j.t.Helper()
	_ = j.stdin.Close()
	j.read.Wait()
	for i, c := range j.ranks {
		if err := c.Wait(); err != nil {
			j.t.Errorf("rank %d: %v: %s", i, err, &j.errs[i])
		}
	}
	j.serve.Close()
}

// begun waits until rank 0 has begun to put, and says when that was.
func (j *realJob) begun() time.Time {
	j.t.Helper()
	for end := time.Now().Add(time.Minute); j.First().IsZero(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			j.t.Fatalf("the job does not begin: %s%s", &j.errs[0], &j.errs[1])
		}
	}
	return j.First()
}

// TestReal has a job of two processes put to each other over a relay, for a second.
func TestReal(t *testing.T) {
	testmain.Long(t)
	l := wan.NewLab(t, wan.Path{Rate: 20e6, Delay: 25 * time.Millisecond, Queue: 200000})
	j := startJob(t, l, 16<<10, 1<<20)
	from := j.begun()
	until(t, func() bool { return j.Rate(from, j.Last()) > 1e6 && j.Last().Sub(from) > time.Second }, func() string {
		return fmt.Sprintf("%.3g bit/s in %v: %s%s", j.Rate(from, j.Last()), j.Last().Sub(from), &j.errs[0], &j.errs[1])
	})
	j.stop()
	t.Logf("%s Mbit/s", mbit(j.Rate(from, j.Last())))
	if c := l.Relay.Counts(); c[0].Bytes < 100000 || c[1].Packets == 0 {
		t.Errorf("the job did not take the relay: %+v", c)
	}
}

// TestRealLoss has the kernel's CUBIC and a job cross the same path, one after the other,
// which loses a twentieth of all packets and whose round trips vary. The job has several
// times as much: it does not take each loss for a full queue. The path is so slow that a
// busy machine does not matter.
func TestRealLoss(t *testing.T) {
	testmain.Long(t)
	p := wan.Path{Rate: 10e6, Delay: 10 * time.Millisecond, Loss: 0.05, Jitter: 10 * time.Millisecond, Seed: 1}.Queued(1)
	const d, times, tries = 3 * time.Second, 2, 10
	for try := range tries {
		l := wan.NewLab(t, p)
		b := l.StartTCP("cubic")
		time.Sleep(d) // how long the transfer lasts
		b.Stop()
		tcp := b.Rate(b.First(), b.First().Add(d))
		j := startJob(t, l, 16<<10, 1<<20)
		from := j.begun()
		until(t, func() bool { return j.Last().Sub(from) > d }, func() string {
			return fmt.Sprintf("no news after %v: %s%s", j.Last().Sub(from), &j.errs[0], &j.errs[1])
		})
		argon := j.Rate(from, from.Add(d))
		j.stop()
		t.Logf("%v: argon %s Mbit/s, CUBIC %s", p, mbit(argon), mbit(tcp))
		if argon >= times*tcp {
			return
		}
		if try == tries-1 {
			t.Errorf("%v: argon %s Mbit/s, CUBIC %s", p, mbit(argon), mbit(tcp))
		}
	}
}

// TestRealPathMTU has jobs of two processes cross paths that carry less than the
// largest datagram: from the first one on, and from the middle of a transfer.
func TestRealPathMTU(t *testing.T) {
	testmain.Long(t)
	for _, c := range []struct {
		name          string
		before, after int // what the path carries, with headers; 0: the interface's
		env           string
	}{
		{"a black hole above 1228", 1228, 1228, ""},
		{"shrinks in the middle", 1500, 1228, ""},
		{"larger than the interface", 0, 0, "ARGON_DATAGRAM=9000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := wan.NewLab(t, wan.Path{Rate: 20e6, Delay: 10 * time.Millisecond, Queue: 200000, MTU: c.before})
			j := startJob(t, l, 16<<10, 1<<20, c.env)
			from := j.begun()
			moves := func(from time.Time) {
				t.Helper()
				until(t, func() bool { return j.Rate(from, j.Last()) > 1e6 && j.Last().Sub(from) > time.Second }, func() string {
					return fmt.Sprintf("%.3g bit/s in %v: %s%s", j.Rate(from, j.Last()), j.Last().Sub(from), &j.errs[0], &j.errs[1])
				})
			}
			moves(from)
			if c.after != c.before {
				l.Relay.Change(func(links [2]*wan.Link) { links[0].Path.MTU = c.after })
				// What is under way still comes, and then pieces of what has been lost.
				until(t, func() bool { return l.Relay.Counts()[0].TooLong > 0 }, func() string { return "nothing was too long" })
				moves(j.Last().Add(time.Second))
			}
			if c.before == 0 {
				last := l.Relay.Counts()[0]
				until(t, func() bool {
					n := l.Relay.Counts()[0]
					packets, bytes := n.Packets-last.Packets, n.Bytes-last.Bytes
					last = n
					return bytes > 1400*packets // all but acknowledgements are
				}, func() string { return fmt.Sprintf("packets stay small: %+v", l.Relay.Counts()) })
			}
			n := l.Relay.Counts()[0]
			j.stop()
			t.Logf("%+v", n)
			if c.before > 0 && n.TooLong == 0 {
				t.Error("nothing was too long")
			}
		})
	}
}

// until waits for a condition, and for something to hope for.
func until(t *testing.T, cond func() bool, why func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(why())
		}
	}
}

// TestRealSweep has the kernel's TCP, a job, and both beside each other cross real
// paths.
func TestRealSweep(t *testing.T) {
	if !*flagReal {
		t.Skip("without -distance.real, which takes minutes")
	}
	var rows []row
	for _, c := range []struct {
		p     wan.Path
		queue float64
	}{
		{wan.Path{Rate: 50e6, Delay: 5 * time.Millisecond}, 1},
		{wan.Path{Rate: 50e6, Delay: 25 * time.Millisecond}, 1},
		{wan.Path{Rate: 50e6, Delay: 100 * time.Millisecond}, 1},
		{wan.Path{Rate: 20e6, Delay: 50 * time.Millisecond}, 4},
		{wan.Path{Rate: 200e6, Delay: 10 * time.Millisecond}, 1},
	} {
		p := c.p.Queued(c.queue)
		d := 10 * time.Second
		size := putSize(p.Rate, d)
		// A busy machine makes either slower: the better of two.
		tcp, argon := 0.0, 0.0
		for range 2 {
			if tcp > 0 && argon >= goalAlone*tcp {
				break
			}
			l := wan.NewLab(t, p)
			b := l.StartTCP("cubic")
			time.Sleep(d)
			b.Stop()
			tcp = max(tcp, b.Rate(b.First(), b.First().Add(d)))
			l = wan.NewLab(t, p)
			j := startJob(t, l, size, depth(p))
			from := j.begun()
			time.Sleep(time.Until(from.Add(d)))
			j.stop()
			argon = max(argon, j.Rate(from, from.Add(d)))
		}
		l := wan.NewLab(t, p)
		b := l.StartTCP("cubic")
		j := startJob(t, l, size, depth(p))
		from := j.begun().Add(5 * time.Second)
		to := from.Add(3 * d)
		time.Sleep(time.Until(to))
		j.stop()
		b.Stop()
		mine, its := j.Rate(from, to), b.Rate(from, to)
		part := mine / (mine + its)
		rows = append(rows, row{
			name:  fmt.Sprintf("%v, %s Mbit/s, %g", p.RTT(), mbit(float64(p.Rate)), c.queue),
			cells: []string{mbit(argon), mbit(tcp), fmt.Sprintf("%.2f", part), fmt.Sprintf("%.2f", argon/tcp)},
			value: argon / tcp, met: argon >= goalAlone*tcp,
		})
	}
	report(t, real, []string{"round trip, rate, queue (BDP)", "argon, Mbit/s", "TCP", "argon's share beside TCP", "argon / TCP"}, rows)
}
