package weathertest

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/lab/faultproxy"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestMain has the suite do less often what it repeats than it does by itself,
// unless told otherwise, and runs what a process that a test has started is to run.
func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		if r := roles[role]; r != nil {
			r()
			os.Exit(0)
		}
		fmt.Fprintf(os.Stderr, "no role %q\n", role)
		os.Exit(2)
	}
	for name, value := range map[string]string{"conformance.rounds": "100", "conformance.programs": "15"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	status := testmain.Run(m)
	os.RemoveAll(binaries.dir)
	os.Exit(status)
}

// config is how a job differs from the usual one.
type config struct {
	size    int
	seed    uint64
	faults  faultproxy.Faults
	env     map[string]string // of every rank
	conduit conduits.Config
	tap     func(from, to int, b []byte)
	direct  bool // without a proxy
}

// job is a job of ranks on real sockets and what is between them.
type job struct {
	key    jobkey.Key
	server *rendezvous.Server
	proxy  *faultproxy.Proxy // nil if direct
	c      config
}

// prepare serves the rendezvous of a job that has no ranks yet.
func prepare(c config) (*job, error) {
	j := &job{key: jobkey.New(), c: c}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	sc := rendezvous.ServerConfig{Key: j.key, Size: c.size, Patience: limit}
	if !c.direct {
		if j.proxy, err = faultproxy.New(faultproxy.Config{Size: c.size, Seed: c.seed, Faults: c.faults, Tap: c.tap}); err != nil {
			l.Close()
			return nil, err
		}
		sc.Rewrite = j.proxy.Rewrite
	}
	if j.server, err = rendezvous.Serve(l, sc); err != nil {
		l.Close()
		j.close()
		return nil, err
	}
	return j, nil
}

// over reports whether no rank needs the job any more.
func (j *job) over() bool {
	for r := range j.c.size {
		if s := j.server.State(r); s != rendezvous.Left && s != rendezvous.Failed {
			return false
		}
	}
	return true
}

// close ends what is between ranks.
func (j *job) close() {
	if j.server != nil {
		j.server.Close()
	}
	if j.proxy != nil {
		j.proxy.Close()
	}
}

// env is the environment of a rank.
func (j *job) env(rank int) map[string]string {
	e := map[string]string{
		"ARGON_RANK": strconv.Itoa(rank), "ARGON_SIZE": strconv.Itoa(j.c.size), "ARGON_CONDUIT": "udp",
		"ARGON_RENDEZVOUS": j.server.Addr().String(), "ARGON_RENDEZVOUS_SERVE": "0", jobenv.JobKey: j.key.Reveal(),
	}
	for k, v := range j.c.env {
		e[k] = v
	}
	return e
}

// join opens the endpoint of a rank in this process.
func (j *job) join(rank int) (*udp.Endpoint, error) {
	env := j.env(rank)
	return udp.Open(conduits.Job{Rank: rank, Size: j.c.size, Env: func(k string) string { return env[k] }}, j.c.conduit)
}

// open opens all ranks of a job in this process. What is between them goes when
// they have gone.
func open(c config) (*job, []conduits.Endpoint, error) {
	j, err := prepare(c)
	if err != nil {
		return nil, nil, err
	}
	eps := make([]conduits.Endpoint, c.size)
	errs := make([]error, c.size)
	var wg sync.WaitGroup
	for r := range eps {
		wg.Go(func() {
			var e *udp.Endpoint
			if e, errs[r] = j.join(r); errs[r] == nil {
				eps[r] = &here{e, eps}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			j.close()
			return nil, nil, err
		}
	}
	go func() {
		for !j.over() {
			time.Sleep(5 * time.Millisecond)
		}
		j.close()
	}()
	return j, eps, nil
}

// here is an endpoint of a job whose ranks are all in this process, and wait for
// each other in its memory: Wake reaches them all.
type here struct {
	*udp.Endpoint
	all []conduits.Endpoint
}

func (e *here) Wake(rank int) { e.all[rank].(*here).Endpoint.Wake(rank) }

// opener opens jobs like c for a suite.
func opener(c config) func(n int, cc conduits.Config) ([]conduits.Endpoint, error) {
	return func(n int, cc conduits.Config) ([]conduits.Endpoint, error) {
		c := c
		c.size, c.conduit, c.seed = n, cc, cc.Seed
		_, eps, err := open(c)
		return eps, err
	}
}

// start opens and attaches all ranks of a job, with segments of size bytes.
func start(t *testing.T, c config, size uint64) (*job, []*rank) {
	t.Helper()
	j, eps, err := open(c)
	if err != nil {
		t.Fatal(err)
	}
	ranks := make([]*rank, len(eps))
	for r, ep := range eps {
		ranks[r] = &rank{Endpoint: ep, done: map[uint64]error{}}
	}
	together(ranks, func(r *rank) {
		if err := r.Attach(conduits.AttachConfig{Size: size, Receiver: r}); err != nil {
			t.Errorf("rank %d: attach: %v", r.Rank(), err)
		}
	})
	t.Cleanup(func() {
		for _, r := range ranks {
			_ = r.Close() // ErrClosed if the test has
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return j, ranks
}

// together calls f for all ranks at once.
func together(ranks []*rank, f func(r *rank)) {
	var wg sync.WaitGroup
	for _, r := range ranks {
		wg.Go(func() { f(r) })
	}
	wg.Wait()
}

// A rank is an endpoint that remembers what has come. Its fields belong to the
// goroutine that polls.
type rank struct {
	conduits.Endpoint
	got     int              // messages
	heard   []once           // by source, of the messages' first words, if a test wants to know
	done    map[uint64]error // completions, by cookie
	twice   int              // completions of a cookie that was complete, and messages that were heard
	ended   int              // completions, if done is nil; each cookie less than 1<<32 once
	cookies once
	failed  error // the first of their errors
	receive func(m *conduits.Message)
}

func (r *rank) Receive(m *conduits.Message) {
	r.got++
	if r.receive != nil {
		r.receive(m)
	}
	if r.heard != nil && !r.heard[m.Src].add(m.Words[0]) {
		r.twice++
	}
}

func (r *rank) Complete(cookie uint64, ev conduits.Event, _ uint64, err error) {
	if ev&conduits.RemoteDone == 0 {
		return
	}
	if r.done == nil {
		r.ended++
		if !r.cookies.add(uint32(cookie)) {
			r.twice++
		}
		if r.failed == nil {
			r.failed = err
		}
		return
	}
	if _, ok := r.done[cookie]; ok {
		r.twice++
	}
	r.done[cookie] = err
}

// once is a set of numbers that begin at 0.
type once struct {
	bits []uint64
	n    int
}

// add answers false if i is there already.
func (o *once) add(i uint32) bool {
	for int(i/64) >= len(o.bits) {
		o.bits = append(o.bits, 0)
	}
	if o.bits[i/64]>>(i%64)&1 != 0 {
		return false
	}
	o.bits[i/64] |= 1 << (i % 64)
	o.n++
	return true
}

// first reports whether the set is that of the numbers less than n.
func (o *once) first(n int) bool {
	return o.n == n && (n == 0 || len(o.bits) == (n+63)/64)
}

// send sends a message when there is credit.
func (r *rank) send(dst int, words ...uint32) error {
	for {
		switch r.Send(dst, conduits.Request, 1, words) {
		case conduits.Ready:
			return nil
		case conduits.Dead:
			if err := r.Err(); err != nil {
				return err
			}
			return fmt.Errorf("rank %d is dead", dst)
		}
		r.Poll()
	}
}

// envRole is the variable that names the role of a process that a test has started.
const envRole = "ARGONTEST_WEATHER_ROLE"

// command is a process that takes a role as a rank of j.
func (j *job) command(t *testing.T, rank int, role string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), envRole+"="+role)
	for k, v := range j.env(rank) {
		c.Env = append(c.Env, k+"="+v)
	}
	return c
}

// roles are what processes that tests have started may do.
var roles = map[string]func(){"toil": toilRank, "haul": haulRank}
