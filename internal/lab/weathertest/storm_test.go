package weathertest

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/lab/faultproxy"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

var flagStorm = flag.Bool("weather.storm", false, "run the whole suite in a storm, too")

// storm is a job in the worst of weathers.
func storm(n int) config {
	return config{size: n, faults: faultproxy.Storm(), env: map[string]string{"ARGON_DEADTIME": "30s"}}
}

// TestMachineStorm runs random programs on jobs whose datagrams are lost, repeated,
// reordered, damaged and late.
func TestMachineStorm(t *testing.T) {
	testmain.Long(t)
	conformance.RunGroups(t, opener(storm(0)), "machine")
}

// TestConformanceStorm runs the rest of the suite so: thousands of operations one
// after the other, each of which is lost once on average.
func TestConformanceStorm(t *testing.T) {
	testmain.Long(t)
	if !*flagStorm {
		t.Skip("conformance in a storm takes many minutes (-weather.storm); see package udp for the same in virtual time")
	}
	conformance.RunGroups(t, opener(storm(0)), "contract", "layers")
}

// TestConformanceRain runs it in weather that a job should hardly notice.
func TestConformanceRain(t *testing.T) {
	testmain.Long(t)
	if !*flagStorm {
		t.Skip("conformance in the rain takes minutes on a machine that does other things (-weather.storm)")
	}
	c := storm(0)
	c.faults.Drop, c.faults.Duplicate, c.faults.Reorder = 0.01, 0.01, 0.1
	c.faults.Corrupt, c.faults.Truncate, c.faults.Extend, c.faults.Delay = 0.005, 0.002, 0.002, 0.01
	conformance.RunGroups(t, opener(c), "contract", "layers")
}

// TestExactlyOnce has all ranks send numbered messages to all others, add to a
// word of each and put a page there, at once and in a storm: everything happens
// once. In mode none the storm damages nothing, since only UDP's checksum would
// tell, and the proxy's is right.
func TestExactlyOnce(t *testing.T) {
	testmain.Long(t)
	for _, mode := range []string{"authenticated", "encrypted", "none"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			const n, each, room = 4, 150, 4096
			c := storm(n)
			c.env["ARGON_AUTH"] = mode
			if mode == "none" {
				c.faults.Corrupt, c.faults.Truncate, c.faults.Extend = 0, 0, 0
			}
			j, ranks := start(t, c, 1<<20)
			page := func(from, to, i int) []byte {
				b := make([]byte, 16+rand.New(rand.NewPCG(uint64(i), uint64(from<<8|to))).IntN(room-16))
				for k := range b {
					b[k] = byte(k*i + 7*from + to)
				}
				return b
			}
			at := func(from, i int) segment.NLA { return segment.AttachBase + segment.NLA(room*(1+from*8+i%8)) }
			together(ranks, func(r *rank) {
				r.heard = make([]once, n)
				me := r.Rank()
				for i := range each {
					for d := 1; d < n; d++ {
						to := (me + d) % n
						if err := r.send(to, uint32(i)); err != nil {
							t.Errorf("rank %d: %v", me, err)
							return
						}
						if _, _, err := post.Atomic(r, to, segment.AttachBase, conduits.AtomicAdd, conduits.Uint64, 1, 0, uint64(i*n+to)); err != nil {
							t.Errorf("rank %d: %v", me, err)
							return
						}
						// A page is not put over one that is still on its way.
						b, cookie := page(me, to, i), uint64(1<<32+i*n+to)
						if i >= 8 {
							if err := conduits.Wait(r, nil, func() bool { _, ok := r.done[cookie-8*n]; return ok }); err != nil {
								t.Errorf("rank %d: %v", me, err)
								return
							}
						}
						if ev, err := post.Put(r, to, at(me, i), b, conduits.RemoteDone, cookie); err != nil {
							t.Errorf("rank %d: %v", me, err)
							return
						} else if ev&conduits.RemoteDone != 0 {
							r.done[cookie] = nil
						}
					}
				}
				if err := conduits.Wait(r, nil, func() bool { return len(r.done) == 2*each*(n-1) && r.got == each*(n-1) }); err != nil {
					t.Errorf("rank %d: %v; %d messages, %d completions", me, err, r.got, len(r.done))
				}
			})
			if t.Failed() {
				return
			}
			for _, r := range ranks {
				me := r.Rank()
				if r.twice != 0 {
					t.Errorf("rank %d: %d messages or completions came twice", me, r.twice)
				}
				for cookie, err := range r.done {
					if err != nil {
						t.Errorf("rank %d: operation %#x: %v", me, cookie, err)
					}
				}
				_, views := r.Views()
				own := func(a segment.NLA, n int) []byte {
					b, ok := views[0].Bytes(a, uint64(n), views[0].Size())
					if !ok {
						t.Fatal("the own segment is too small")
					}
					return b
				}
				if v := own(segment.AttachBase, 8); v[0] != byte(each*(n-1)&0xff) || v[1] != byte(each*(n-1)>>8) {
					t.Errorf("rank %d: its word is %v after %d additions", me, v, each*(n-1))
				}
				for from := range n {
					if from == me {
						continue
					}
					if !r.heard[from].first(each) {
						t.Errorf("rank %d: %d messages of rank %d came, not those %d that it sent", me, r.heard[from].n, from, each)
					}
					for i := each - 8; i < each; i++ {
						want := page(from, me, i)
						if !bytes.Equal(own(at(from, i), len(want)), want) {
							t.Errorf("rank %d: page %d of rank %d is not what was put", me, i, from)
						}
					}
				}
			}
			s := j.proxy.Stats(faultproxy.All, faultproxy.All)
			if s.Dropped == 0 || s.Duplicated == 0 || s.Reordered == 0 || mode != "none" && (s.Corrupted == 0 || s.Truncated == 0 || s.Extended == 0) {
				t.Errorf("fine weather: %+v", s)
			}
			t.Logf("%+v", s)
		})
	}
}

// TestPartitionHeals cuts ranks off from each other for longer than any timer but
// the dead time, with much under way: it arrives, and no rank is given up.
func TestPartitionHeals(t *testing.T) {
	testmain.Long(t)
	t.Parallel()
	const n, each = 3, 300
	c := config{size: n, env: map[string]string{"ARGON_DEADTIME": "60s"}}
	j, ranks := start(t, c, 1<<16)
	j.proxy.Isolate(0)
	began := time.Now()
	time.AfterFunc(3*time.Second, func() { j.proxy.Rejoin(0) })
	together(ranks, func(r *rank) {
		for i := range each {
			for d := 1; d < n; d++ {
				if err := r.send((r.Rank()+d)%n, uint32(i)); err != nil {
					t.Errorf("rank %d: %v", r.Rank(), err)
					return
				}
			}
		}
		if err := conduits.Wait(r, nil, func() bool { return r.got == each*(n-1) }); err != nil {
			t.Errorf("rank %d: %v after %d messages", r.Rank(), err, r.got)
		}
	})
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("all messages came in %v through a partition of 3 s", took)
	}
	if s := j.proxy.Stats(faultproxy.All, faultproxy.All); s.Cut == 0 {
		t.Errorf("%+v", s)
	}
}

// TestPartitionKills cuts a rank off for good: every rank hears that one has
// failed, of all the same name, and what was under way ends with an error that
// names a rank.
func TestPartitionKills(t *testing.T) {
	testmain.Long(t)
	t.Parallel()
	const n = 4
	j, ranks := start(t, config{size: n, env: map[string]string{"ARGON_DEADTIME": "2s"}}, 1<<16)
	j.proxy.Isolate(2)
	b := make([]byte, 4096)
	named := make([]int, n)
	together(ranks, func(r *rank) {
		me := r.Rank()
		to := 2
		if me == 2 {
			to = 0
		}
		for i := range 4 {
			if _, err := post.Put(r, to, segment.AttachBase, b, conduits.RemoteDone, uint64(i)); err != nil && r.Err() == nil {
				t.Errorf("rank %d: put: %v", me, err)
			}
		}
		err := conduits.Wait(r, nil, func() bool { return false })
		var p *conduits.PeerError
		if !errors.As(err, &p) {
			t.Errorf("rank %d: %v", me, err)
			return
		}
		named[me] = p.Rank
		for len(r.done) < 4 {
			r.Poll() // 0 too while another goroutine of the rank polls
			runtime.Gosched()
		}
		for i, err := range r.done {
			if !errors.Is(err, conduits.ErrPeer) {
				t.Errorf("rank %d: put %d: %v", me, i, err)
			}
		}
		if _, err := post.Put(r, to, segment.AttachBase, b, conduits.RemoteDone, 9); !errors.Is(err, conduits.ErrPeer) {
			t.Errorf("rank %d: put afterwards: %v", me, err)
		}
	})
	for r, who := range named {
		if who != named[0] {
			t.Errorf("rank %d says that rank %d has failed, rank 0 that rank %d has", r, who, named[0])
		}
	}
}

// TestManyHandles has 65,536 puts, gets and atomics outstanding at once, in clear
// and in lossy weather: each is completed once.
func TestManyHandles(t *testing.T) {
	testmain.Long(t)
	for _, w := range []struct {
		name string
		drop float64
	}{{"clear", 0}, {"5 %", 0.05}} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			const handles = 65536
			_, ranks := start(t, config{size: 2, faults: faultproxy.Faults{Drop: w.drop}, env: map[string]string{"ARGON_DEADTIME": "30s"}}, 1<<20)
			got := make([][]byte, handles)
			// Rank 1 need not do anything: it computes, as it were.
			r := ranks[0]
			for i := range uint64(handles) {
				var ev conduits.Event
				var err error
				switch i % 3 {
				case 0:
					ev, err = post.Put(r, 1, segment.AttachBase+segment.NLA(8+8*i), []byte{1, byte(i), byte(i >> 8)}, conduits.RemoteDone, i)
				case 1:
					got[i] = make([]byte, 3)
					ev, err = post.Get(r, got[i], 1, segment.AttachBase+segment.NLA(8+8*(i-1)), conduits.RemoteDone, i)
				case 2:
					_, ev, err = post.Atomic(r, 1, segment.AttachBase, conduits.AtomicAdd, conduits.Uint64, 1, 0, i)
				}
				if err != nil {
					t.Fatal(err)
				}
				if ev&conduits.RemoteDone != 0 {
					r.done[i] = nil
				}
			}
			if err := conduits.Wait(r, nil, func() bool { return len(r.done) == handles }); err != nil {
				t.Fatalf("%v: %d of %d", err, len(r.done), handles)
			}
			if r.twice != 0 {
				t.Errorf("%d completions came twice", r.twice)
			}
			for i, err := range r.done {
				if err != nil {
					t.Errorf("operation %d: %v", i, err)
				}
			}
			_, views := ranks[1].Views()
			own, _ := views[0].Bytes(segment.AttachBase, 8+8*handles, views[0].Size())
			if n := int(own[0]) | int(own[1])<<8 | int(own[2])<<16; n != handles/3 {
				t.Errorf("%d additions, want %d", n, handles/3)
			}
			for i := 0; i < handles; i += 3 {
				if b := own[8+8*i:]; b[0] != 1 || b[1] != byte(i) || b[2] != byte(i>>8) {
					t.Fatalf("put %d is not there: %v", i, b[:3])
				}
			}
		})
	}
}

// TestStalledPeer cuts one rank off while much is under way to it: what goes to
// another is done before it is back.
func TestStalledPeer(t *testing.T) {
	testmain.Long(t)
	t.Parallel()
	j, ranks := start(t, config{size: 3, env: map[string]string{"ARGON_DEADTIME": "60s"}}, 4<<20)
	j.proxy.Isolate(1)
	r := ranks[0]
	b := make([]byte, 100_000)
	put := func(to int, i uint64) {
		if _, err := post.Put(r, to, segment.AttachBase+segment.NLA(i*100_000), b, conduits.RemoteDone, uint64(to)<<32|i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(40) {
		put(1, i)
		for r.Send(1, conduits.Request, 1, nil) == conduits.Ready {
			// Until there is no credit any more.
		}
	}
	for i := range uint64(40) {
		put(2, i)
		if err := r.send(2, uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	done := func(to uint64) (n int) {
		for cookie := range r.done {
			if cookie>>32 == to {
				n++
			}
		}
		return n
	}
	if err := conduits.Wait(r, nil, func() bool { return done(2) == 40 }); err != nil {
		t.Fatal(err)
	}
	if err := conduits.Wait(ranks[2], nil, func() bool { return ranks[2].got == 40 }); err != nil {
		t.Fatal(err)
	}
	if n := done(1); n != 0 {
		t.Errorf("%d puts to a rank that cannot be reached are done", n)
	}
	j.proxy.Rejoin(1)
	if err := conduits.Wait(r, nil, func() bool { return done(1) == 40 }); err != nil {
		t.Fatal(err)
	}
}

// TestProcessesInStorm has processes work through a storm until they are told to
// stop.
func TestProcessesInStorm(t *testing.T) {
	testmain.Long(t)
	t.Parallel()
	const n = 4
	c := storm(n)
	stop := filepath.Join(t.TempDir(), "stop")
	c.env[envStop] = stop
	j, err := prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	outs := make([]lockedBuffer, n)
	cmds := make([]*exec.Cmd, n)
	for r := range cmds {
		cmds[r] = j.command(t, r, "toil")
		cmds[r].Stdout, cmds[r].Stderr = &outs[r], &outs[r]
		if err := cmds[r].Start(); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, func() bool { return j.proxy.Stats(faultproxy.All, faultproxy.All).Received > 10000 })
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for r, c := range cmds {
		if err := c.Wait(); err != nil || !strings.HasSuffix(outs[r].String(), "stopped\n") {
			t.Errorf("rank %d: %v\n%s", r, err, &outs[r])
		}
	}
	if _, _, cause, failed := j.server.Failure(); failed {
		t.Error(cause)
	}
}
