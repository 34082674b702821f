package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// TestJunkInRings has two ranks exchange messages of all kinds, and writes junk over a part
// of what lies between them. Whatever it was, both end: all messages have come, or the job
// has failed.
func TestJunkInRings(t *testing.T) {
	if conc.Race {
		t.Skip("what junk is written over is read without synchronization")
	}
	seeds := 100
	if testing.Short() {
		seeds = 15
	}
	failed := 0
	for seed := range seeds {
		if junkIn(t, uint64(seed)) {
			failed++
		}
	}
	if failed < seeds/4 {
		t.Errorf("junk ended %d jobs of %d: it was written where nothing lies", failed, seeds)
	}
}

// junkIn is one job, which the junk has ended if it says so.
func junkIn(t *testing.T, seed uint64) (failed bool) {
	const messages = 150
	rng := rand.New(rand.NewPCG(seed, 1))
	eps := forms[3].open(t, 2, conduits.Config{Credits: 4 << rng.IntN(3), MaxMedium: 512})
	var requests, replies [2]atomic.Int64
	attach(t, eps, page, func(r int, m *conduits.Message) {
		if m.Class == conduits.Reply {
			replies[r].Add(1)
			return
		}
		requests[r].Add(1)
		reply(eps[r], m.Src, rand.New(rand.NewPCG(uint64(requests[r].Load()), seed)))
	})
	at := rng.IntN(messages)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // the watchers, sooner than they would
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, e := range eps {
				e.j.look()
			}
			runtime.Gosched()
		}
	}()
	var where string
	var ended atomic.Int32
	inParallel(t, 2, func(r int) error {
		e, rng := eps[r], rand.New(rand.NewPCG(seed, uint64(10+r)))
		for i := range messages {
			if r == 0 && i == at {
				where = e.j.junk(rng)
			}
			st := conduits.NoCredit
			_ = conduits.Wait(e, why("credit"), func() bool {
				st = request(e, 1-r, rng)
				return st != conduits.NoCredit
			})
			if st != conduits.Ready {
				break
			}
		}
		_ = conduits.Wait(e, why("all messages"), func() bool { return requests[r].Load() >= messages && replies[r].Load() >= messages })
		// As long as one waits the other polls, as in a barrier.
		ended.Add(1)
		e.Wake(1 - r)
		_ = conduits.Wait(e, why("the other rank"), func() bool { return ended.Load() == 2 })
		return nil
	})
	close(stop)
	<-stopped
	for r, e := range eps {
		err := e.Err()
		var pe *conduits.PeerError
		switch {
		case err == nil && (requests[r].Load() != messages || replies[r].Load() != messages):
			t.Errorf("seed %d, %s: rank %d got %d requests and %d replies of %d, and no error", seed, where, r, requests[r].Load(), replies[r].Load(), messages)
		case err != nil && !errors.As(err, &pe):
			t.Errorf("seed %d, %s: rank %d: %v", seed, where, r, err)
		case err != nil && printable(err) != nil:
			t.Errorf("seed %d, %s: rank %d: %v", seed, where, r, printable(err))
		}
		failed = failed || err != nil
		_ = e.Close()
	}
	return failed
}

// junk writes junk over some words of a conversation: over the words that say how far the
// ranks are, over cells, of which the first words are statuses, or over payloads.
func (j *job) junk(rng *rand.Rand) (where string) {
	src := rng.IntN(2)
	p := j.talk(src, 1-src, 0)
	off, n := 0, 1+rng.IntN(16)
	switch rng.IntN(5) {
	case 0:
		off = rng.IntN(talkCells / 4)
	case 1:
		off = (talkCells + rng.IntN(j.landingOffset(conduits.NumClasses)-talkCells)) / 4
	default:
		off = (talkCells + rng.IntN(j.cells)*cellBytes + rng.IntN(2)*nearClass) / 4
	}
	n = min(n, j.landingOffset(conduits.NumClasses)/4-off)
	what := rng.IntN(3)
	for i := range n {
		v := []uint32{0, ^uint32(0), rng.Uint32()}[what]
		atomic.StoreUint32((*uint32)(unsafe.Add(p, 4*(off+i))), v)
	}
	return fmt.Sprintf("%d words at byte %d of the conversation of %d and %d, with cells of %d bytes from %d on", n, 4*off, src, 1-src, cellBytes, talkCells)
}

// request sends a message of any kind.
func request(e *Endpoint, dst int, rng *rand.Rand) (st conduits.Status) {
	words, data := make([]uint32, rng.IntN(9)), make([]byte, 1+rng.IntN(512))
	switch rng.IntN(4) {
	case 0:
		return e.Send(dst, conduits.Request, 1, words)
	case 1:
		return e.SendPayload(dst, conduits.Request, 1, words, data, 0)
	case 2:
		st = e.SendPayload(dst, conduits.Request, 1, words, data, segment.AttachBase)
		return st
	}
	s, st := e.Reserve(dst, conduits.Request, len(words), len(data))
	if st == conduits.Ready {
		e.Commit(dst, conduits.Request, s, 1, len(data))
	}
	return st
}

// reply answers in a handler.
func reply(e *Endpoint, dst int, rng *rand.Rand) {
	for e.Err() == nil {
		st := conduits.Ready
		if rng.IntN(2) == 0 {
			st = e.Send(dst, conduits.Reply, 1, make([]uint32, rng.IntN(9)))
		} else {
			st = e.SendPayload(dst, conduits.Reply, 1, nil, make([]byte, 1+rng.IntN(512)), 0)
		}
		if st != conduits.NoCredit {
			return
		}
		e.PollReplies()
		runtime.Gosched()
	}
}

// damagedCase is one change to what lies between rank 0, which has sent, and rank 1.
type damagedCase struct {
	name, want string
	by         int // the rank that finds it
	damage     func(e *Endpoint, out *outRing, in *inRing)
}

// TestDamagedRing damages a ring by which messages have come and one is under way, while
// both ranks sleep, and what the job ends by names the place.
func TestDamagedRing(t *testing.T) {
	cell := func(out *outRing, i uint64) *uint64 { return (*uint64)(out.cell(i)) }
	for _, c := range []damagedCase{
		{"wiped", "the ring of requests from rank 0: message 2, of 3 that were sent, has been wiped out of cell 2", 1, func(_ *Endpoint, out *outRing, _ *inRing) {
			atomic.StoreUint64(cell(out, 2), 0)
		}},
		{"made nothing", "3 cells, 2 messages and 512 bytes of payload have come, of 3, 3 and 768 that were sent", 1, func(_ *Endpoint, out *outRing, _ *inRing) {
			atomic.StoreUint64(cell(out, 2), status(2, stSkip))
		}},
		{"made many", "5 cells, 2 messages and 512 bytes of payload have come, of 3, 3 and 768 that were sent", 1, func(_ *Endpoint, out *outRing, _ *inRing) {
			atomic.StoreUint64(cell(out, 2), status(2, stSkip|3))
		}},
		{"head", "the ring of requests from rank 0 says that 7 were taken, and it said 2", 1, func(_ *Endpoint, out *outRing, _ *inRing) {
			atomic.StoreUint64(out.head, 7)
		}},
		{"head back", "the ring of requests from rank 0 says that 0 were taken, and it said 2", 1, func(_ *Endpoint, out *outRing, _ *inRing) {
			atomic.StoreUint64(out.head, 0)
		}},
		{"payload", "the ring of requests from rank 0 says that 64 bytes of payload were taken, and it said 512", 1, func(_ *Endpoint, out *outRing, _ *inRing) {
			atomic.StoreUint64(out.landHead, 64)
		}},
		{"sum", "the ring of requests to rank 1 says that {99 ", 0, func(_ *Endpoint, out *outRing, _ *inRing) {
			atomic.StoreUint64(out.sumWords, 99)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eps := forms[3].open(t, 2, conduits.Config{Credits: 8, MaxMedium: 512})
			var got atomic.Int64
			attach(t, eps, page, func(int, *conduits.Message) { got.Add(1) })
			for i := range 3 {
				if i == 2 {
					// This one is damaged before it is received.
					for eps[1].Poll(); got.Load() < 2; eps[1].Poll() {
					}
				}
				if st := eps[0].SendPayload(1, conduits.Request, 1, nil, make([]byte, 200), 0); st != conduits.Ready {
					t.Fatal(st)
				}
			}
			c.damage(eps[0], eps[0].ring(1, conduits.Request), eps[1].in[conduits.Request])
			done := make(chan error)
			for _, e := range eps {
				go func() { done <- conduits.Wait(e, why("nothing"), func() bool { return false }) }()
			}
			for ended := 0; ended < 2; {
				select {
				case err := <-done:
					if err := peerFailed(err, c.by, c.want); err != nil {
						t.Error(err)
					}
					ended++
				default:
					audited(t, eps[0], eps[1])
				}
			}
		})
	}
}

// audited has the watchers of two ranks look once more, and fails the test and the job when
// they have audited often enough to find anything.
func audited(t *testing.T, eps ...*Endpoint) {
	const enough = 20 * lostAudits
	few := false
	for _, e := range eps {
		e.j.look()
		few = few || atomic.LoadUint32(e.word(e.rank, ctlAudits)) < enough
	}
	if runtime.Gosched(); !few && eps[0].Err() == nil {
		t.Errorf("after %d audits of either rank what was lost is neither found nor healed", enough)
		eps[0].Fail(errors.New("the test is over"))
	}
}

// TestDamagedDesk damages a question that its owner has not looked at yet. What was lost is
// told again, and what no rank of ours writes ends the job.
func TestDamagedDesk(t *testing.T) {
	for _, c := range []struct {
		name, want string
		damage     func(a, b *node, state, dst *uint32)
	}{
		{"untold", "", func(a, b *node, _, _ *uint32) {
			atomic.StoreUint32((*uint32)(unsafe.Add(a.j.registry(b.rank), regAsked)), 0)
		}},
		{"free", "has a question to rank 1 in place 0, whose state is 0", func(_, _ *node, state, _ *uint32) { atomic.StoreUint32(state, askFree) }},
		{"busy", "has a question in place 0 that rank 1 is said to be answering, and is not", func(_, _ *node, state, _ *uint32) {
			atomic.StoreUint32(state, askBusy)
		}},
		{"no state", "has a question to rank 1 in place 0, whose state is 4294967295", func(_, _ *node, state, _ *uint32) {
			atomic.StoreUint32(state, ^uint32(0))
		}},
		{"another's", "has a question to rank 1 in place 0, which names another one", func(_, _ *node, _, dst *uint32) { atomic.StoreUint32(dst, 7) }},
		{"elsewhere", "the desk of rank 0 is said to be at 0x1000", func(a, _ *node, _, _ *uint32) {
			atomic.StoreUint64((*uint64)(unsafe.Add(a.j.registry(a.rank), regDesk)), 0x1000)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := asking(false).nodes(t, 2)
			a, b := all[0], all[1]
			at, _ := register(t, b.Endpoint, make([]byte, page), segment.RightsAll, segment.AnyPeer)
			if err := a.put(all, 1, at, []byte{0}); err != nil {
				t.Fatal(err)
			}
			if _, err := post.Put(a, 1, at, make([]byte, 100), done, 77); err != nil {
				t.Fatal(err)
			}
			if a.desk.used != 1 {
				t.Fatalf("places %b are used", a.desk.used)
			}
			p := a.desk.base
			c.damage(a, b, (*uint32)(unsafe.Add(p, askState)), (*uint32)(unsafe.Add(p, askDst)))
			var put atomic.Bool
			ended := make(chan error, 2)
			go func() {
				err := conduits.Wait(a, why("a put"), func() bool { return a.done[77].ev&conduits.RemoteDone != 0 })
				put.Store(true)
				b.Wake(1)
				ended <- err
			}()
			go func() { ended <- conduits.Wait(b, why("the put of the other"), put.Load) }()
			for n := 0; n < 2; {
				select {
				case err := <-ended:
					if n++; c.want == "" && err != nil {
						t.Error(err)
					}
				default:
					audited(t, a.Endpoint, b.Endpoint)
				}
			}
			if c.want != "" {
				if err := peerFailed(a.Err(), 0, c.want); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
