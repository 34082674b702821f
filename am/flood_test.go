package am

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/segment"
)

// flood lets every rank send to all ranks, itself too, requests that are all
// replied to, each rank from several goroutines.
type flood struct {
	requests, replies [64]atomic.Int64
	medium            int
	each              int
}

func (f *flood) handlers(rank int) []Entry {
	b := make([]byte, f.medium)
	back := func(t *Token, args []uint32) error {
		switch args[0] % 4 {
		case 0:
			return t.ReplyShort(hEchoed, args...)
		case 1:
			return t.ReplyLong(hEchoed, f.place(t.Messenger(), floodGoroutines), b, args...)
		}
		return t.ReplyMedium(hEchoed, b, args...)
	}
	return []Entry{
		{hEcho, "flood", func(t *Token, args []uint32, p []byte) {
			f.requests[rank].Add(1)
			if err := back(t, args); err != nil {
				t.Messenger().Conduit().Fail(err)
			}
		}, AnyArgs, Request},
		{hEchoed, "ebb", func(t *Token, args []uint32, p []byte) { f.replies[rank].Add(1) }, AnyArgs, Reply},
	}
}

// floodGoroutines is how many goroutines of a rank flood.
const floodGoroutines = 2

// place is where goroutine g of e's rank, or with g = floodGoroutines its
// handlers, put their long messages in every segment: one place for each, so
// that they do not race.
func (f *flood) place(e *Messenger, g int) segment.NLA {
	return segment.AttachBase + segment.NLA((e.Rank()*(floodGoroutines+1)+g)*f.medium)
}

// segment is the size that the places of n ranks take.
func (f *flood) segment(n int) uint64 {
	return uint64(n*(floodGoroutines+1)*f.medium+segment.PageSize-1) / segment.PageSize * segment.PageSize
}

// send sends the i-th request of goroutine g of a rank to dst.
func (f *flood) send(e *Messenger, g, dst, i int) error {
	args := make([]uint32, 1+i%16)
	args[0] = uint32(i)
	p := make([]byte, f.medium)
	switch i / 4 % 3 {
	case 0:
		return e.RequestShort(dst, hEcho, args...)
	case 1:
		return e.RequestMedium(dst, hEcho, p, args...)
	}
	return e.RequestLong(dst, hEcho, f.place(e, g), p, args...)
}

// await waits for a rank's share of n requests from each of all ranks, and as
// many replies.
func (f *flood) await(e *Messenger, n int64) error {
	n *= int64(e.Size())
	return e.Wait(nil, func() bool { return f.requests[e.Rank()].Load() >= n && f.replies[e.Rank()].Load() >= n })
}

// TestAllFull fills every ring and landing buffer of every pair in both
// directions at once before any rank polls; then all requests are replied to
// while more are sent.
func TestAllFull(t *testing.T) {
	for _, n := range []int{1, 2, 5, 9} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			eps, err := shm.Local(n, tiny)
			if err != nil {
				t.Fatal(err)
			}
			f := &flood{medium: eps[0].Limits().MaxMedium, each: 300}
			var full, over sync.WaitGroup
			var attached atomic.Int64
			full.Add(n)
			for r, ep := range eps {
				over.Add(1)
				go func() {
					defer over.Done()
					e, err := Attach(ep, Config{SegmentSize: f.segment(n), Handlers: f.handlers(r)})
					attached.Add(1)
					for dst := range n {
						ep.Wake(dst)
					}
					if err != nil {
						t.Error(err)
						full.Done()
						return
					}
					// A rank in Attach polls, and its replies would wait for one that polls no more.
					if err := e.Wait(nil, func() bool { return attached.Load() == int64(n) }); err != nil {
						t.Error(err)
					}
					p := make([]byte, f.medium)
					for dst := range n {
						for i := 0; ; i++ {
							sent, err := e.TryRequestMedium(dst, hEcho, p, 2)
							if err != nil {
								t.Error(err)
							}
							if !sent {
								if i < 2 {
									t.Errorf("rank %d: room for %d messages to %d", r, i, dst)
								}
								f.replies[r].Add(int64(f.each - i)) // those that were sent count
								f.requests[dst].Add(int64(f.each - i))
								break
							}
						}
					}
					full.Done()
					full.Wait()
					errc := make(chan error)
					for g := range floodGoroutines {
						go func() {
							for i := g; i < f.each; i += floodGoroutines {
								for dst := range n {
									if err := f.send(e, g, (dst+r)%n, i); err != nil {
										errc <- err
										return
									}
								}
							}
							errc <- f.await(e, int64(2*f.each))
						}()
					}
					for range floodGoroutines {
						if err := <-errc; err != nil {
							t.Errorf("rank %d: %v", r, err)
						}
					}
				}()
			}
			over.Wait()
			for r := range n {
				if a, b := f.requests[r].Load(), f.replies[r].Load(); a != b || a != int64(2*n*f.each) {
					t.Errorf("rank %d ran %d requests and %d replies, want %d", r, a, b, 2*n*f.each)
				}
			}
		})
	}
}

// TestBlockedInReply: a rank whose handler waits for credit to reply, because
// the requester does not poll, says so, goes on running replies meanwhile, and
// ends the wait when the requester polls.
func TestBlockedInReply(t *testing.T) {
	const requests = 64
	eps, err := shm.Local(2, tiny)
	if err != nil {
		t.Fatal(err)
	}
	var served, back int
	reqs := make(chan bool)
	var wg sync.WaitGroup
	for r, ep := range eps {
		wg.Add(1)
		go func() {
			defer wg.Done()
			e, err := Attach(ep, Config{Handlers: []Entry{
				{hEcho, "echo", func(tk *Token, args []uint32, _ []byte) {
					served++
					if err := tk.ReplyShort(hEchoed, args...); err != nil {
						t.Error(err)
					}
				}, AnyArgs, Request},
				{hEchoed, "echoed", func(*Token, []uint32, []byte) { back++ }, AnyArgs, Reply},
			}})
			if err != nil {
				t.Error(err)
				return
			}
			if r == 1 {
				if err := e.Wait(nil, func() bool { return served == requests }); err != nil {
					t.Error(err)
				}
				return
			}
			// Send without polling until both classes are full and rank 1 sleeps.
			sent := 0
			stuck := func() bool {
				for _, b := range eps[1].Waiting() {
					if strings.Contains(b.Blocked(), "reply waits for credit of rank 0") {
						return true
					}
				}
				return false
			}
			for !stuck() {
				ok, err := e.TryRequestShort(1, hEcho, 1)
				if err != nil {
					t.Error(err)
				}
				if ok {
					sent++
				}
				runtime.Gosched()
			}
			close(reqs)
			for ; sent < requests; sent++ {
				if err := e.RequestShort(1, hEcho, 1); err != nil {
					t.Error(err)
				}
			}
			if err := e.Wait(nil, func() bool { return back == requests }); err != nil {
				t.Error(err)
			}
		}()
	}
	<-reqs
	wg.Wait()
	if served != requests || back != requests {
		t.Errorf("%d served, %d came back", served, back)
	}
}

// TestBlockedRequestNamesRank: a sender that waits for credit of a rank that does not
// poll names that rank, in short and sleeping.
func TestBlockedRequestNamesRank(t *testing.T) {
	eps, err := shm.Local(3, tiny)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 3)
	for r, ep := range eps {
		go func() {
			e, err := Attach(ep, Config{Handlers: []Entry{{hEcho, "sink", nop, AnyArgs, 0}}})
			for err == nil && r == 0 {
				err = e.RequestShort(2, hEcho)
			}
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil { // ranks 1 and 2
			t.Fatal(err)
		}
	}
	for {
		if l := eps[0].Waiting(); len(l) == 1 && strings.Contains(l[0].Blocked(), "request waits for credit of rank 2, which does not poll") {
			break
		}
		runtime.Gosched()
	}
	eps[2].Close()
	err = <-errs
	says(t, "the sender", err, conduits.ErrPeer, "rank 2", "has left the job", "short request")
	says(t, "the sender", err, ErrClosed)
	if err := eps[0].Err(); err != nil {
		t.Errorf("a rank that leaves in good order fails nobody: %v", err)
	}
}
