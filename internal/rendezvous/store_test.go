package rendezvous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/errs"
)

func TestStore(t *testing.T) {
	j := serve(t, ServerConfig{Size: 2})
	m := j.all()
	big := bytes.Repeat([]byte{7}, MaxValue)
	longKey := strings.Repeat("k", MaxKey)
	for key, value := range map[string][]byte{"": nil, "a": {1}, longKey: big} {
		if err := m[0].Put(key, value); err != nil {
			t.Fatalf("%.9q: %v", key, err)
		}
		if err := m[1].Put(key, value); err != nil {
			t.Errorf("%.9q again: %v", key, err)
		}
		for _, c := range m {
			v, err := c.Get(within(t), key)
			if err != nil || !bytes.Equal(v, value) {
				t.Errorf("%.9q: %.9x, %v", key, v, err)
			}
			if len(v) > 0 {
				v[0]++ // the caller's own
			}
		}
	}
	for what, c := range map[string]struct {
		err  error
		kind error
		want string
	}{
		"other": {m[1].Put("a", []byte{2}), errs.ErrBadArg, `"a" has been put already`},
		"key":   {m[0].Put(longKey+"k", nil), errs.ErrBadArg, "256 bytes, at most 255"},
		"value": {m[0].Put("x", append(big, 1)), errs.ErrBadArg, "32769 bytes, at most 32768"},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", what, c.err, c.want)
		}
	}
	if _, err := m[0].Get(within(t), longKey+"k"); !errors.Is(err, errs.ErrBadArg) {
		t.Errorf("get: %v", err)
	}
	// The whole store is bounded, in bytes and in keys.
	j.mu.Lock()
	j.stored = maxStore - 3
	j.mu.Unlock()
	if err := m[0].Put("n", []byte{1, 2, 3}); !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), fmt.Sprint(maxStore)) {
		t.Errorf("full: %v", err)
	}
	if err := m[0].Put("n", []byte{1, 2}); err != nil {
		t.Errorf("just full: %v", err)
	}
	j.mu.Lock()
	j.stored = 0
	for i := 0; len(j.values) < MaxKeys; i++ {
		j.values[fmt.Sprint("filler ", i)] = nil
	}
	j.mu.Unlock()
	if err := m[0].Put("one more", nil); !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), fmt.Sprint(MaxKeys)) {
		t.Errorf("full of keys: %v", err)
	}
	if err := m[0].Put("n", []byte{1, 2}); err != nil {
		t.Errorf("the same again: %v", err)
	}
}

// TestGetWaits: for a value that comes, for one that never comes, and not for
// ever.
func TestGetWaits(t *testing.T) {
	j := serve(t, ServerConfig{Size: 3})
	m := j.all()
	waiting := func(n int) {
		t.Helper()
		j.eventually(fmt.Sprint(n, " wait"), func() bool {
			j.mu.Lock()
			defer j.mu.Unlock()
			k, listed := 0, 0
			for p := range j.peers {
				k += len(p.gets)
			}
			for _, w := range j.waiting {
				listed += len(w)
			}
			return k == n && listed == n
		})
	}
	type result struct {
		v   []byte
		err error
	}
	got := make(chan result, 16)
	get := func(c *member, ctx context.Context, key string) {
		go func() {
			v, err := c.Get(ctx, key)
			got <- result{v, err}
		}()
	}
	for _, c := range m {
		get(c, within(t), "k")
		get(c, within(t), "k")
	}
	waiting(6)
	if err := m[2].Put("k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if r := <-got; r.err != nil || string(r.v) != "v" {
			t.Errorf("%q, %v", r.v, r.err)
		}
	}
	waiting(0)

	ctx, cancel := context.WithCancel(t.Context())
	get(m[0], ctx, "never")
	get(m[1], within(t), "never")
	waiting(2)
	cancel()
	if r := <-got; !errors.Is(r.err, errs.ErrNotReady) || !strings.Contains(r.err.Error(), `"never"`) {
		t.Errorf("canceled: %v", r.err)
	}
	waiting(1)
	m[2].Fail(2, 1, "gave up")
	if r := <-got; !errors.Is(r.err, errs.ErrPeer) || !strings.Contains(r.err.Error(), "gave up") {
		t.Errorf("failed: %v", r.err)
	}

	// No more at once than allowed.
	j = serve(t, ServerConfig{Size: 1})
	c := j.all()[0]
	var wg sync.WaitGroup
	for range maxRequests {
		wg.Go(func() { c.Get(within(t), "never") })
	}
	j.eventually("many", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.requests) == maxRequests
	})
	if err := c.Put("k", nil); !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), "1024") {
		t.Errorf("one too many: %v", err)
	}
	c.Close()
	wg.Wait()
	if _, err := c.Get(within(t), "k"); !errors.Is(err, errs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestModel does random things in a random order and compares the service, and
// what every rank hears, with a model of a few lines.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(rt, "size")
		j := serve(t, ServerConfig{Size: size, Logf: func(string, ...any) {}})
		defer j.Close()
		m := j.all()
		state := make([]State, size)
		for r := range state {
			state[r] = Joined
		}
		values := map[string]string{}
		attached, failed := 0, false
		want := make([][]news, size) // what each rank is to hear
		live := func() (l []int) {
			for r, s := range state {
				if s == Joined || s == Attached {
					l = append(l, r)
				}
			}
			return l
		}
		tell := func(n news) {
			for _, r := range live() {
				want[r] = append(want[r], n)
			}
		}
		rank := func() int {
			l := live()
			if len(l) == 0 || failed {
				rt.Skip("nobody is left")
			}
			return rapid.SampledFrom(l).Draw(rt, "rank")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"attach": func(rt *rapid.T) {
				r := rank()
				err := m[r].Attach(uint64(r), 1)
				if (err == nil) != (state[r] == Joined) {
					rt.Fatalf("rank %d, %v, attaches: %v", r, state[r], err)
				}
				if err == nil {
					state[r] = Attached
					if attached++; attached == size {
						tell(news{what: "attached"})
					}
				}
			},
			"put": func(rt *rapid.T) {
				r := rank()
				k := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
				v := rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "value")
				old, known := values[k]
				if err := m[r].Put(k, []byte(v)); (err == nil) != (!known || v == old) {
					rt.Fatalf("put %q=%q over %q, %v: %v", k, v, old, known, err)
				}
				if !known {
					values[k] = v
				}
			},
			"get": func(rt *rapid.T) {
				r := rank()
				for k, v := range values {
					if got, err := m[r].Get(within(t), k); err != nil || string(got) != v {
						rt.Fatalf("get %q: %q, %v; want %q", k, got, err, v)
					}
				}
			},
			"leave": func(rt *rapid.T) {
				r := rank()
				if err := m[r].Leave(); err != nil {
					rt.Fatal(err)
				}
				state[r] = Left
				tell(news{what: "left", rank: r})
				m[r].Close()
			},
			"kill": func(rt *rapid.T) {
				if rapid.IntRange(0, 5).Draw(rt, "seldom") > 0 {
					rt.Skip()
				}
				r := rank()
				if rapid.Bool().Draw(rt, "itself") {
					m[r].Fail(r, 1, "wanted")
				} else {
					m[r].kill(rapid.Bool().Draw(rt, "reset"))
				}
				state[r] = Failed
				tell(news{what: "failed", rank: r})
				failed = true
			},
			"": func(rt *rapid.T) {
				for r := range state {
					r := r
					j.eventually(fmt.Sprint("rank ", r, " is ", state[r]), func() bool { return j.State(r) == state[r] })
				}
			},
		})
		// Each rank that is left has heard all of it: each thing once, leaves in
		// order among themselves, and a failure last. What comes from different
		// ranks may come in any order.
		for r := range state {
			if state[r] != Joined && state[r] != Attached {
				continue
			}
			var got []news
			for len(got) < len(want[r]) {
				n := m[r].next()
				n.status, n.cause = 0, ""
				got = append(got, n)
				if n.what == "failed" {
					break
				}
			}
			// Leaves that are told together with a failure may be lost to it.
			expect := want[r]
			if failed && len(got) < len(expect) {
				if got[len(got)-1] != expect[len(expect)-1] {
					rt.Fatalf("rank %d has heard %v, not %v", r, got, expect)
				}
				for _, n := range got {
					if !slices.Contains(expect, n) {
						rt.Fatalf("rank %d has heard %v, not %v", r, got, expect)
					}
				}
				continue
			}
			// Attached and left travel side by side.
			order := func(all []news) (a []news) {
				for _, n := range all {
					if n.what != "attached" {
						a = append(a, n)
					}
				}
				return a
			}
			if !slices.Equal(order(got), order(expect)) || len(got) != len(expect) {
				rt.Fatalf("rank %d has heard %v, not %v", r, got, expect)
			}
		}
		for _, c := range m {
			select {
			case n := <-c.ch:
				if s := state[c.rank]; s == Joined || s == Attached {
					rt.Fatalf("rank %d has heard %v too", c.rank, n)
				}
			default:
			}
		}
		for _, c := range m {
			c.Close()
		}
	})
}

// TestTogether has many goroutines use one client at once while ranks leave.
func TestTogether(t *testing.T) {
	const size, each = 4, 50
	j := serve(t, ServerConfig{Size: size})
	m := j.all()
	var wg sync.WaitGroup
	for _, c := range m {
		wg.Go(func() { c.Attach(uint64(c.rank), 0) })
		for i := range each {
			wg.Go(func() {
				k := fmt.Sprint(c.rank, " ", i)
				if err := c.Put(k, []byte(k)); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				k := fmt.Sprint((c.rank+1)%size, " ", i)
				if v, err := c.Get(within(t), k); err != nil || string(v) != k {
					t.Errorf("%q: %q, %v", k, v, err)
				}
			})
			wg.Go(func() { c.Addr(i % size); c.Host(i % size); c.Segment(i % size) })
		}
	}
	wg.Wait()
	for _, c := range m {
		wg.Go(func() {
			if err := c.Leave(); err != nil {
				t.Error(err)
			}
			c.Close()
			c.Close()
		})
	}
	wg.Wait()
	for r := range size {
		if j.State(r) != Left {
			t.Errorf("rank %d is %v", r, j.State(r))
		}
	}
	select {
	case <-j.settled:
	case <-time.After(limit):
		t.Error("the service does not know that all have left")
	}
}
