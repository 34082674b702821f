package am

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/segment"
)

// job runs body on n ranks of this process and fails the test on any error.
func job(t testing.TB, n int, config func(rank int) Config, body func(e *Messenger) error) {
	t.Helper()
	for rank, err := range runJob(t, n, config, body) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// runJob is job that returns the errors by rank.
func runJob(t testing.TB, n int, config func(rank int) Config, body func(e *Messenger) error) []error {
	t.Helper()
	return runJobOn(t, conduits.Config{}, n, config, body)
}

// runJobOn is runJob with mailboxes of a certain size.
func runJobOn(t testing.TB, c conduits.Config, n int, config func(rank int) Config, body func(e *Messenger) error) []error {
	t.Helper()
	eps, err := shm.Local(n, c)
	if err != nil {
		t.Fatal(err)
	}
	result := make([]error, n)
	var wg sync.WaitGroup
	for r, ep := range eps {
		wg.Add(1)
		go func() {
			defer wg.Done()
			e, err := Attach(ep, config(r))
			if err == nil {
				err = body(e)
			}
			if err != nil && ep.Err() == nil {
				ep.Fail(err)
			}
			result[r] = err
			ep.Close()
		}()
	}
	wg.Wait()
	return result
}

const (
	hEcho HandlerID = FirstClient + iota
	hEchoed
	hDone
)

func TestEchoEveryArgumentCount(t *testing.T) {
	const n = 3
	done := make([]int, n)
	got := make([][]uint32, n)
	config := func(rank int) Config {
		return Config{
			SegmentSize: 4 * segment.PageSize,
			Handlers: []Entry{
				{hEcho, "echo", func(tk *Token, args []uint32, payload []byte) {
					var err error
					switch {
					case tk.Kind()&Long != 0:
						err = tk.ReplyLong(hEchoed, tk.To(), payload, args...)
					case payload != nil || tk.Kind()&Medium != 0:
						err = tk.ReplyMedium(hEchoed, payload, args...)
					default:
						err = tk.ReplyShort(hEchoed, args...)
					}
					if err != nil {
						t.Error(err)
					}
				}, AnyArgs, Request},
				{hEchoed, "echoed", func(tk *Token, args []uint32, payload []byte) {
					e := tk.Messenger()
					got[e.Rank()] = append(got[e.Rank()][:0], args...)
					for _, b := range payload {
						got[e.Rank()] = append(got[e.Rank()], uint32(b))
					}
				}, AnyArgs, Reply},
				{hDone, "done", func(tk *Token, _ []uint32, _ []byte) { done[tk.Messenger().Rank()]++ }, 0, 0},
			},
		}
	}
	job(t, n, config, func(e *Messenger) error {
		me := e.Rank()
		args := make([]uint32, MaxArgs)
		sizes := []int{0, 1, 7, 8, 48, 49, 111, 112, 113, 500, 4096, e.MaxMedium()}
		for dst := range n {
			for na := 0; na <= MaxArgs; na++ {
				for i := range args {
					args[i] = uint32(me<<16 | dst<<8 | i)
				}
				for kind := range 1 + 2*len(sizes) {
					var payload []byte
					if kind > 0 {
						payload = make([]byte, sizes[(kind-1)/2])
						for i := range payload {
							payload[i] = byte(i + kind)
						}
					}
					got[me] = nil
					var err error
					switch {
					case kind == 0:
						err = e.RequestShort(dst, hEcho, args[:na]...)
					case kind%2 == 1:
						err = e.RequestMedium(dst, hEcho, payload, args[:na]...)
					default:
						payload = payload[:min(len(payload), segment.PageSize)]
						to := segment.AttachBase + segment.NLA(me*segment.PageSize)
						err = e.RequestLong(dst, hEcho, to, payload, args[:na]...)
					}
					if err != nil {
						return err
					}
					want := na + len(payload)
					if want == 0 {
						continue
					}
					if err := e.Wait(nil, func() bool { return len(got[me]) == want }); err != nil {
						return err
					}
					for i, a := range got[me] {
						if i < na && a != args[i] || i >= na && byte(a) != payload[i-na] {
							t.Fatalf("rank %d: %d args, kind %d: word %d came back as %#x", me, na, kind, i, a)
						}
					}
				}
			}
		}
		for dst := range n {
			if err := e.RequestShort(dst, hDone); err != nil {
				return err
			}
		}
		return e.Wait(nil, func() bool { return done[me] == n })
	})
}

func TestTablesDiffer(t *testing.T) {
	nop := func(*Token, []uint32, []byte) {}
	errs := runJob(t, 5, func(rank int) Config {
		name := "f"
		if rank == 3 {
			name = "g"
		}
		return Config{Handlers: []Entry{{200, name, nop, 2, 0}}}
	}, func(e *Messenger) error { return nil })
	for r, err := range errs {
		if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), `rank 3 has handler 200 "g"`) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	var replies, stop int
	config := func(rank int) Config {
		return Config{SegmentSize: segment.PageSize, Handlers: []Entry{
			{hEcho, "echo", func(tk *Token, args []uint32, p []byte) {
				switch {
				case len(args) == 1:
					tk.ReplyLong(hEchoed, segment.AttachBase+2048, p, args...)
				case p != nil:
					tk.ReplyMedium(hEchoed, p, args...)
				default:
					tk.ReplyShort(hEchoed, args...)
				}
			}, AnyArgs, 0},
			{hEchoed, "echoed", func(*Token, []uint32, []byte) { replies++ }, AnyArgs, 0},
			{hDone, "done", func(*Token, []uint32, []byte) { stop++ }, 0, 0},
		}}
	}
	job(t, 2, config, func(e *Messenger) error {
		if e.Rank() == 1 {
			return e.Wait(nil, func() bool { return stop == 1 })
		}
		want := 0
		payload := make([]byte, 1024)
		cond := func() bool { return replies == want }
		for name, send := range map[string]func() error{
			"short":     func() error { return e.RequestShort(1, hEcho, 1, 2, 3, 4) },
			"two slots": func() error { return e.RequestShort(1, hEcho, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16) },
			"medium":    func() error { return e.RequestMedium(1, hEcho, payload, 1, 2) },
			"long":      func() error { return e.RequestLong(1, hEcho, segment.AttachBase, payload, 1) },
		} {
			a := testing.AllocsPerRun(2000, func() {
				want++
				if err := send(); err != nil {
					t.Error(err)
				}
				if err := e.Wait(nil, cond); err != nil {
					t.Error(err)
				}
			})
			if a != 0 {
				t.Errorf("%s: %v allocations per request and reply, want 0", name, a)
			}
		}
		return e.RequestShort(1, hDone)
	})
}
