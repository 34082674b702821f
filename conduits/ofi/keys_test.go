//go:build ofi && cgo

package ofi

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// modes are the demands that the provider is made to have; 0 leaves it its own.
var modes = map[string]uint64{
	"plain":       0,
	"keys":        1 << 63, // chosen by the provider, which no mode of its own says
	"virtual":     fabric.MRVirtAddr,
	"local":       fabric.MRLocal,
	"raw":         fabric.MRRaw,
	"allocated":   fabric.MRAllocated,
	"transmit":    fabric.NoDelivery,
	"pieces":      fabric.NoDelivery | fabric.NoSAW, // puts go in
	"called":      fabric.Called,
	"all":         fabric.MRVirtAddr | fabric.MRLocal | fabric.MRRaw | fabric.MRAllocated | fabric.NoDelivery | fabric.Called,
	"all, pieces": fabric.MRVirtAddr | fabric.MRLocal | fabric.MRRaw | fabric.MRAllocated | fabric.NoDelivery | fabric.NoSAW | fabric.Called,
}

// demanding is Open of endpoints that ask for modes.
func demanding(n int, c conduits.Config, mode uint64) ([]conduits.Transport, error) {
	ts, err := Open(n, c)
	for _, t := range ts {
		if mode != 0 {
			t.(*transport).ep.Demand(mode)
		}
	}
	return ts, err
}

// ended counts completions, and keeps the last error.
type ended struct {
	n   int
	err error
}

func (*ended) Receive(*conduits.Message) {}
func (e *ended) Complete(_ uint64, _ conduits.Event, _ uint64, err error) {
	e.n, e.err = e.n+1, err
}

// TestKeys: long puts and gets of registered memory of the Go heap are one remote access
// each, with whatever the provider asks for, or pieces of puts where nothing tells when a
// write is in place; when the memory is deregistered while others access it no access goes
// by the old key, and the next one is refused.
func TestKeys(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			ts, err := demanding(2, conduits.Config{}, mode)
			if err != nil {
				t.Fatal(err)
			}
			eps, rs := make([]*adapt.Endpoint, 2), []*ended{{}, {}}
			attached := make(chan error)
			for i := range ts {
				eps[i] = adapt.New(Name, ts[i])
				go func() {
					attached <- eps[i].Attach(conduits.AttachConfig{Size: 1 << 16, Receiver: rs[i]})
				}()
			}
			for range ts {
				if err := <-attached; err != nil {
					t.Fatal(err)
				}
			}
			defer leave(t, eps, ts)
			unit, err := eps[0].ATU()
			if err != nil {
				t.Fatal(err)
			}
			const size = 1 << 18
			held := func() int {
				r := ts[1].(*transport)
				r.mu.Lock()
				defer r.mu.Unlock()
				return len(r.peer(0).keys.live)
			}
			do := func(begin func() (conduits.Event, error)) error {
				n := rs[1].n
				ev, err := begin()
				if err != nil || ev != 0 {
					return err
				}
				for rs[1].n == n {
					eps[1].Poll()
				}
				return rs[1].err
			}
			for round := range 20 {
				mem := make([]byte, size)
				r, err := unit.Register(mem, segment.RightsAll, segment.AnyPeer)
				if err != nil {
					t.Fatal(err)
				}
				at, _ := r.At(0)
				data := bytes.Repeat([]byte{byte(round + 1)}, size/2)
				put := func() error {
					return do(func() (conduits.Event, error) { return post.Put(eps[1], 0, at+64, data, conduits.RemoteDone, 1) })
				}
				if err := put(); err != nil {
					t.Fatal(err)
				}
				if !conc.Race && !bytes.Equal(mem[64:][:size/2], data) {
					t.Fatal("other bytes are there")
				}
				if held() != 1 {
					t.Fatalf("%d keys are held after a put", held())
				}
				frames := func() uint32 {
					r := ts[1].(*transport)
					r.mu.Lock()
					defer r.mu.Unlock()
					n := uint32(0)
					for _, o := range r.peer(0).out { // not those of the watch, which time decides
						n += o.sent
					}
					return n
				}
				back, before := make([]byte, size/2), frames()
				if err := do(func() (conduits.Event, error) { return post.Get(eps[1], back, 0, at+64, conduits.RemoteDone, 1) }); err != nil || !conc.Race && !bytes.Equal(back, data) {
					t.Fatalf("get: %v, or other bytes", err)
				}
				if n := frames() - before; n > 2 {
					t.Errorf("a get of %d bytes by a key that is held took %d frames", size/2, n)
				}
				var gone atomic.Bool
				go func() {
					if err := unit.Deregister(r); err != nil {
						t.Error(err)
					}
					gone.Store(true)
				}()
				for err = error(nil); err == nil; {
					late := gone.Load()
					if err = put(); err == nil && late {
						t.Fatal("a put to memory that is not registered any more")
					}
				}
				if !errors.Is(err, segment.ErrFault) {
					t.Fatalf("a put to memory that is not registered: %v", err)
				}
				for !gone.Load() {
					eps[1].Poll()
				}
				if held() != 0 {
					t.Errorf("%d keys are held of nothing", held())
				}
			}
			own := ts[0].(*transport)
			own.mu.Lock()
			defer own.mu.Unlock()
			if len(own.own.live)+len(own.own.going) > 0 {
				t.Errorf("%d keys and %d that are recalled are left", len(own.own.live), len(own.own.going))
			}
		})
	}
}

// TestLateKey: an answer with a key that has been recalled meanwhile is not believed.
func TestLateKey(t *testing.T) {
	ts, _ := pair(t)
	r := ts[1].(*transport)
	told := func(number uint64) bool {
		var b []byte
		for _, v := range []uint64{number, uint64(segment.PageSize), 1 << 16, 0, uint64(segment.RightsAll), 7} {
			b = append(b, byte(v), byte(v>>8), byte(v>>16), 0, 0, 0, 0, 0)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.granted(r.peer(0), b)
	}
	recall := func(number uint64, times uint32) {
		r.rx.Lock()
		defer r.rx.Unlock()
		r.yieldKey(r.peer(0), number, times)
		r.peer(0).replies.Take() // rank 0 has asked for nothing
	}
	for range 2 {
		if !told(1) {
			t.Fatal("a key that is told twice is not known")
		}
	}
	recall(1, 3)
	if told(1) {
		t.Error("the third answer is believed after the recall of three")
	}
	recall(2, 2)
	for range 2 {
		if told(2) {
			t.Error("an answer is believed that the recall has overtaken")
		}
	}
	if p := r.peer(0); len(p.keys.live) != 0 || len(p.keys.late) != 0 {
		t.Errorf("%d keys and %d late ones are left", len(p.keys.live), len(p.keys.late))
	}
	if !told(3) {
		t.Error("a new key is not known")
	}
}

// TestForgo: memory that is deregistered is not its owner's again while accesses of this rank
// to it are under way at an endpoint that could not be cut.
func TestForgo(t *testing.T) {
	ts, _ := pair(t)
	r := ts[0].(*transport)
	r.mu.Lock()
	defer r.mu.Unlock()
	k := &ownKey{number: 7, holders: map[*peer]uint32{r.peer(1): 1}, locals: 1, done: make(chan struct{})}
	r.own.going = map[uint64]*ownKey{k.number: k}
	for _, cut := range []bool{false, true} {
		r.forgo(nil, cut)
		over := false
		select {
		case <-k.done:
			over = true
		default:
		}
		if over != cut {
			t.Errorf("the memory is its owner's: %v; the endpoint was cut: %v", over, cut)
		}
	}
}

// LocalDemanding is Local where the provider asks for everything.
func LocalDemanding(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return adapt.Local(Name, func(n int, c conduits.Config) ([]conduits.Transport, error) {
		return demanding(n, c, modes["all"])
	})(n, c)
}

// attach makes endpoints of two ranks, with segments of size bytes, and counts what ends on them.
func attach(t *testing.T, ts []conduits.Transport, size uint64) (eps []*adapt.Endpoint, rs []*ended) {
	t.Helper()
	eps, rs = make([]*adapt.Endpoint, 2), []*ended{{}, {}}
	attached := make(chan error)
	for i := range ts {
		eps[i] = adapt.New(Name, ts[i])
		go func() {
			attached <- eps[i].Attach(conduits.AttachConfig{Size: size, Rights: segment.RightsAll, Receiver: rs[i]})
		}()
	}
	for range ts {
		if err := <-attached; err != nil {
			t.Fatal(err)
		}
	}
	return eps, rs
}

// TestLocalSides: with FI_MR_LOCAL memory that the rank has registered is registered for no
// access again, whole or in parts, and other memory is; it is deregistered when accesses
// from and to it are over.
func TestLocalSides(t *testing.T) {
	ts, err := demanding(2, conduits.Config{}, fabric.MRLocal)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	eps, rs := attach(t, ts, size)
	defer leave(t, eps, ts)
	r := ts[1].(*transport)
	loans := func() uint64 {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.loans
	}
	unit, err := eps[1].ATU()
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, size)
	for round := range 10 {
		region, err := unit.Register(mem[:size/2], segment.RightRead, segment.AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			from, to int
			loans    uint64
		}{{0, size / 2, 0}, {size / 8, size / 4, 0}, {size / 4, size/2 + 1, 1}, {size / 2, size, 1}} {
			before, n := loans(), rs[1].n
			ev, err := post.Put(eps[1], 0, segment.AttachBase, mem[c.from:c.to], conduits.RemoteDone, 1)
			if err != nil || ev != 0 {
				t.Fatal(ev, err)
			}
			for rs[1].n == n {
				eps[1].Poll()
			}
			if got := loans() - before; rs[1].err != nil || got != c.loans {
				t.Errorf("bytes %d to %d were registered %d times, not %d (%v)", c.from, c.to, got, c.loans, rs[1].err)
			}
		}
		n := rs[1].n
		if _, err := post.Put(eps[1], 0, segment.AttachBase, mem[:size/2], conduits.RemoteDone, uint64(round)); err != nil {
			t.Fatal(err)
		}
		if err := unit.Deregister(region); err != nil { // which the endpoint watches
			t.Fatal(err)
		}
		for rs[1].n == n {
			eps[1].Poll()
		}
	}
}

// TestLoanKept: with FI_MR_LOCAL the local side of an access is registered once, however often the
// provider has no room for the access.
func TestLoanKept(t *testing.T) {
	ts, err := demanding(2, conduits.Config{}, fabric.MRLocal)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 16
	eps, rs := attach(t, ts, size)
	defer leave(t, eps, ts)
	r := ts[1].(*transport)
	counts := func() (loans, stuck uint64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.loans, r.stuck
	}
	mem, puts := make([]byte, size), 0
	// The first access is posted while the connection to the other rank is being made.
	for stuck := uint64(0); stuck < 10 && puts < 2000; puts++ {
		if _, err := post.Put(eps[1], 0, segment.AttachBase, mem, conduits.RemoteDone, 1); err != nil {
			t.Fatal(err)
		}
		_, stuck = counts()
	}
	for rs[1].n < puts {
		eps[1].Poll()
	}
	loans, stuck := counts()
	if rs[1].err != nil || loans != uint64(puts) {
		t.Errorf("%d accesses were registered %d times, and %d attempts found no room: %v", puts, loans, stuck, rs[1].err)
	}
	if stuck == 0 {
		t.Skipf("the provider had room for all of %d accesses at once", puts)
	}
}
