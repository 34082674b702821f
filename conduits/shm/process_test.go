package shm_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){
		"bounce": bounce,
		"gather": gather,
		"die":    die,
		"taken":  taken,
		"share":  share,
		"strike": strike,
		"vanish": vanish,
		"share1": shareProcessor,
		"junk":   junk,
	})
}

// shareProcessor is two ranks that were launched as if each had a processor, and send each
// other messages on the same one until both have stopped spinning.
func shareProcessor() {
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	shm.Patient(ep)
	b := &inbox{ep: ep}
	testjob.Check(ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: b}))
	runtime.LockOSThread()
	cpus, err := sys.Affinity()
	testjob.Check(err)
	testjob.Check(sys.SetAffinity(cpus[:1]))
	peer := 1 - ep.Rank()
	// Each tells the other in which round, counted from 1, it has; both know by the one after.
	told := 0
	for round := 1; ; round++ {
		if told == 0 && shm.Brief(ep) {
			told = round
			_, err := post.PutWord(ep, peer, segment.AttachBase, uint64(round), 8, 0, 0)
			testjob.Check(err)
		}
		if st := ep.Send(peer, conduits.Request, 0, nil); st != conduits.Ready {
			testjob.Check(fmt.Errorf("message %d: %v", round, st))
		}
		testjob.Check(conduits.Wait(ep, nil, func() bool { return b.got[conduits.Request] >= round }))
		heard := make([]byte, 8)
		_, err := post.Get(ep, heard, ep.Rank(), segment.AttachBase, 0, 0)
		testjob.Check(err)
		if h := int(binary.NativeEndian.Uint64(heard)); told != 0 && h != 0 && round > max(told, h) {
			break
		}
	}
	testjob.Check(ep.Close())
}

// TestSharedProcessorIsNoticed: ranks find out by how their waits end that they share a
// processor which the launcher took for two.
func TestSharedProcessorIsNoticed(t *testing.T) {
	testjob.Run(t, 2, "share1").Want(t, 0)
}

// small makes jobs with small rings, and senders that fence or do not.
func small(fence bool) func(*launch.Config) {
	return func(c *launch.Config) {
		c.Memory = func(n int, segment uint64) (launch.Memory, error) {
			m, err := shm.CreateJob(n, conduits.Config{MaxSegment: segment, Credits: 4, MaxMedium: 512})
			if err != nil {
				return nil, err
			}
			shm.ForceFence(m, fence)
			return m, nil
		}
	}
}

// inbox counts requests and replies.
type inbox struct {
	ep  conduits.Endpoint
	got [conduits.NumClasses]int
}

func (b *inbox) Receive(m *conduits.Message)                    { b.got[m.Class]++ }
func (b *inbox) Complete(uint64, conduits.Event, uint64, error) {}

func attach() *inbox {
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	b := &inbox{ep: ep}
	testjob.Check(ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: b}))
	return b
}

func arg(i int) int {
	n, err := strconv.Atoi(os.Args[i])
	testjob.Check(err)
	return n
}

var idle uint64

func delay(r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
	case 1:
		runtime.Gosched()
	default:
		for range r.IntN(200) {
			idle++
		}
	}
}

// nap waits like conduits.Wait, but sleeps at once and delays between all steps.
func (b *inbox) nap(r *rand.Rand, cond func() bool) {
	for !cond() {
		delay(r)
		t := b.ep.Arm(nil)
		delay(r)
		if cond() {
			b.ep.Disarm(t)
			return
		}
		if b.ep.Poll() > 0 {
			b.ep.Disarm(t)
			continue
		}
		if err := b.ep.Err(); err != nil {
			testjob.Check(err)
		}
		delay(r)
		b.ep.Park(t)
	}
}

func (b *inbox) send(r *rand.Rand, dst int, c conduits.Class, payload int) {
	b.nap(r, func() bool {
		s, st := b.ep.Reserve(dst, c, 2, payload)
		if st == conduits.Ready {
			delay(r)
			b.ep.Commit(dst, c, s, 1, payload)
		}
		return st == conduits.Ready
	})
}

// bounce sends one message around all ranks, each of which sleeps until it comes.
func bounce() {
	b := attach()
	me, n := b.ep.Rank(), b.ep.Size()
	r := rand.New(rand.NewPCG(uint64(me), 3))
	for i := range arg(1) {
		if me != 0 {
			b.nap(r, func() bool { return b.got[conduits.Request] == i+1 })
		}
		b.send(r, (me+1)%n, conduits.Request, i%2*300)
		if me == 0 {
			b.nap(r, func() bool { return b.got[conduits.Request] == i+1 })
		}
	}
	fmt.Println("done")
	testjob.Check(b.ep.Close())
}

// gather lets all ranks flood rank 0, which answers each round: senders sleep for
// credit, rank 0 for messages of many rings.
func gather() {
	b := attach()
	me, n := b.ep.Rank(), b.ep.Size()
	r := rand.New(rand.NewPCG(uint64(me), 4))
	const burst = 7 // more than a ring holds
	for i := range arg(1) {
		if me != 0 {
			for k := range burst {
				b.send(r, 0, conduits.Request, k%2*400)
			}
			b.nap(r, func() bool { return b.got[conduits.Reply] == i+1 })
			continue
		}
		b.nap(r, func() bool { return b.got[conduits.Request] == (i+1)*(n-1)*burst })
		for dst := 1; dst < n; dst++ {
			b.send(r, dst, conduits.Reply, 0)
		}
	}
	fmt.Println("done")
	testjob.Check(b.ep.Close())
}

func rounds(t *testing.T, n int) []string {
	if testing.Short() {
		n /= 10
	}
	return []string{strconv.Itoa(n)}
}

func allDone(t *testing.T, r *testjob.Result) {
	t.Helper()
	r.Want(t, 0)
	for i, out := range r.Stdout {
		if out != "done\n" {
			t.Errorf("rank %d wrote %q%s", i, out, r.Output())
		}
	}
	testjob.AssertNoLeftovers(t)
}

// TestProcessesWake: no wake-up is missed between processes.
func TestProcessesWake(t *testing.T) {
	for _, fence := range []bool{false, true} {
		for _, n := range []int{2, 3, 14} {
			t.Run(fmt.Sprintf("bounce/fence %v/%d", fence, n), func(t *testing.T) {
				allDone(t, testjob.RunConfig(t, n, "bounce", testjob.Config{Args: rounds(t, 10000/n), Launch: small(fence)}))
			})
			t.Run(fmt.Sprintf("gather/fence %v/%d", fence, n), func(t *testing.T) {
				allDone(t, testjob.RunConfig(t, n, "gather", testjob.Config{Args: rounds(t, 2000/n), Launch: small(fence)}))
			})
		}
	}
}

// die lets the last rank end in some way while the others wait for it in some
// way; they must learn which rank has died, and say so.
func die() {
	signal.Ignore(syscall.SIGTERM) // the launcher's, which would come first
	if os.Args[1] == "before attach" && testjob.Rank() == testjob.Size()-1 {
		os.Exit(0)
	}
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	b := &inbox{ep: ep}
	err = ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: b})
	last := ep.Size() - 1
	if err == nil && ep.Rank() == last {
		if ep.Size() > 1 {
			err = conduits.Wait(ep, nil, func() bool { return b.got[conduits.Request] > 0 })
			testjob.Check(err)
		}
		switch os.Args[1] {
		case "SIGKILL":
			testjob.Check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		case "exit 7":
			os.Exit(7)
		case "exit 0":
			os.Exit(0)
		case "panic":
			panic("out of cheese")
		case "fail":
			ep.Fail(errors.New("no more paper"))
			testjob.Fatal("no more paper")
		}
		select {}
	}
	for err == nil && ep.Rank()%2 == 0 { // flood; the others wait for what never comes
		err = conduits.Wait(ep, nil, func() bool {
			s, st := ep.Reserve(last, conduits.Request, 1, 0)
			if st == conduits.Ready {
				ep.Commit(last, conduits.Request, s, 1, 0)
			}
			return st != conduits.NoCredit
		})
		if err == nil {
			err = ep.Err()
		}
	}
	if err == nil {
		err = conduits.Wait(ep, nil, func() bool { return false })
	}
	fmt.Println(err)
	testjob.Check(err)
}

// TestProcessesDie: however a rank ends, the others learn it, wherever they wait.
func TestProcessesDie(t *testing.T) {
	for _, c := range []struct {
		how    string
		status int
		say    string
	}{
		{"SIGKILL", 137, "killed by SIGKILL"},
		{"exit 7", 7, "exited with status 7"},
		{"exit 0", 1, "exited with status 0 before it left the job"},
		{"panic", 2, "exited with status 2"},
		{"fail", 1, "no more paper"},
		{"before attach", 1, "exited with status 0 before it attached"},
	} {
		for _, n := range []int{2, 4} {
			t.Run(fmt.Sprintf("%s/%d", c.how, n), func(t *testing.T) {
				r := testjob.RunConfig(t, n, "die", testjob.Config{Args: []string{c.how}, KillGrace: time.Hour, Launch: small(n == 4)}).Want(t, c.status)
				if r.Failed != n-1 {
					t.Errorf("rank %d is named, want %d", r.Failed, n-1)
				}
				for i, out := range r.Stdout[:n-1] {
					if c.how == "before attach" && out == "" && r.Ranks[i].Signal == syscall.SIGTERM {
						continue // ended before it could ignore that
					}
					if !strings.Contains(out, fmt.Sprintf("rank %d failed", n-1)) || !strings.Contains(out, c.say) {
						t.Errorf("rank %d says %q, want %q of rank %d", i, out, c.say, n-1)
					}
				}
				testjob.AssertNoLeftovers(t)
			})
		}
	}
}

// taken joins as a rank that another process has.
func taken() {
	b := attach()
	other := (b.ep.Rank() + 1) % b.ep.Size()
	for what, j := range map[string]conduits.Job{
		"taken":          {Rank: other, Size: b.ep.Size()},
		"does not exist": {Rank: b.ep.Size(), Size: b.ep.Size()},
		"was made for":   {Rank: 0, Size: b.ep.Size() + 1},
	} {
		j.Env = os.Getenv
		_, err := shm.Join(j, conduits.Config{})
		if !errors.Is(err, conduits.ErrBadArg) || !strings.Contains(err.Error(), what) {
			testjob.Fatal("joining as %d of %d: %v", j.Rank, j.Size, err)
		}
	}
	fmt.Println("done")
	testjob.Check(b.ep.Close())
}

func TestImpossibleRank(t *testing.T) { allDone(t, testjob.Run(t, 3, "taken")) }

// answering answers requests, and counts what comes.
type answering struct {
	inbox
	rng *rand.Rand
}

func (a *answering) Receive(m *conduits.Message) {
	if a.got[m.Class]++; m.Class == conduits.Request {
		shm.Answer(a.ep, m.Src, a.rng)
	}
}

// junk is one of two ranks that send each other messages of all kinds, of which rank 0 writes
// junk over a part of what lies between them.
func junk() {
	shm.WatchOften()
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	me, seed := ep.Rank(), uint64(arg(1))
	rng := rand.New(rand.NewPCG(seed, uint64(me)))
	a := &answering{inbox{ep: ep}, rand.New(rand.NewPCG(seed, uint64(2+me)))}
	testjob.Check(ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: a}))
	const messages = 300
	at := rng.IntN(messages)
	for i := range messages {
		if me == 0 && i == at {
			fmt.Println(shm.Junk(ep, rng))
		}
		st := conduits.NoCredit
		testjob.Check(conduits.Wait(ep, nil, func() bool {
			st = shm.Ask(ep, 1-me, rng)
			return st != conduits.NoCredit
		}))
	}
	all := func() bool {
		return a.got[conduits.Request] >= messages && a.got[conduits.Reply] >= messages
	}
	testjob.Check(conduits.Wait(ep, nil, all))
	ep.System(1-me, conduits.SystemWords)[0] = 1 // as long as one waits the other polls
	ep.Wake(1 - me)
	testjob.Check(conduits.Wait(ep, nil, func() bool { return ep.System(me, conduits.SystemWords)[0] != 0 }))
	if a.got != [conduits.NumClasses]int{messages, messages} {
		testjob.Fatal("rank %d got %v of %d requests and replies", me, a.got, messages)
	}
	testjob.Check(ep.Close())
}

// TestJunkInRingsOfProcesses: a job whose process writes junk into a ring ends well or by an
// error, and no process by a crash.
func TestJunkInRingsOfProcesses(t *testing.T) {
	failed := 0
	const seeds = 16
	for seed := range seeds {
		r := testjob.RunConfig(t, 2, "junk", testjob.Config{Args: []string{fmt.Sprint(seed)}, Launch: small(seed%2 == 0)})
		if out := r.Output(); r.Status != 0 && (r.Err == nil || strings.Contains(out, "goroutine ")) || r.Status > 1 && r.Status != jobenv.StatusPeerFailed {
			t.Errorf("seed %d: status %d, %v%s", seed, r.Status, r.Err, out)
		}
		if r.Status != 0 {
			failed++
		}
	}
	if failed < seeds/6 {
		t.Errorf("junk ended %d jobs of %d: it was written where nothing lies", failed, seeds)
	}
}
