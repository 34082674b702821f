package conduits

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// wantError fails the test unless err wraps kind and contains all of parts.
func wantError(t *testing.T, what string, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: error %v, want one that wraps %q", what, err, kind)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %q does not say %q", what, err, p)
		}
	}
}

// fake is an endpoint for Wait and the checks, which does what its functions say.
type fake struct {
	Endpoint
	sizes []uint64
	steps []string // what was called
	spin  func() int
	poll  func() int
	idle  int // answers of Idle that allow more
	err   error
	park  func()
}

func (f *fake) Size() int                   { return len(f.sizes) }
func (f *fake) Polling() bool               { return false }
func (f *fake) SegmentSize(rank int) uint64 { return f.sizes[rank] }
func (f *fake) did(s string)                { f.steps = append(f.steps, s) }
func (f *fake) Err() error                  { return f.err }
func (f *fake) Disarm(Ticket)               { f.did("disarm") }
func (f *fake) Spin() int {
	f.did("spin")
	if f.spin != nil {
		return f.spin()
	}
	return 0
}

func (f *fake) Poll() int {
	f.did("poll")
	if f.poll != nil {
		return f.poll()
	}
	return 0
}

func (f *fake) Idle(n int) bool {
	f.did("idle")
	return n < f.idle
}

func (f *fake) Arm(b Blocked) Ticket {
	f.did("arm")
	return Ticket{}
}

func (f *fake) Park(Ticket) {
	f.did("park")
	f.park()
}

// TestWait checks the order of steps: spin, idle, and only then arm, look again,
// poll again, and park.
func TestWait(t *testing.T) {
	never := func() bool { return false }
	// after holds from the n-th call on, and must not be called after that.
	after := func(n int) func() bool {
		return func() bool {
			if n--; n < 0 {
				t.Error("cond was called after it had held")
			}
			return n == 0
		}
	}
	once := func(n int) func() int { return func() int { v := n; n = 0; return v } }
	failure := errors.New("failed")
	for _, c := range []struct {
		name string
		f    *fake
		cond func() bool
		want string
		err  error
	}{
		{"holds", &fake{}, after(1), "", nil},
		{"after a spin that ran something", &fake{spin: once(1)}, after(2), "spin", nil},
		{"after a yield", &fake{idle: 3}, after(4), "spin idle spin idle spin idle", nil},
		{"after arm", &fake{}, after(2), "spin idle arm disarm", nil},
		{"after the poll after arm", &fake{poll: once(2)}, after(3), "spin idle arm poll disarm", nil},
		{"after a park", &fake{park: func() {}}, after(3), "spin idle arm poll park", nil},
		{"after two parks", &fake{park: func() {}}, after(5), "spin idle arm poll park spin idle arm poll park", nil},
		{"failed", &fake{err: failure}, never, "spin idle arm poll disarm", failure},
		{"failed, but it holds", &fake{err: failure}, after(2), "spin idle arm disarm", nil},
	} {
		if err := Wait(c.f, nil, c.cond); err != c.err {
			t.Errorf("%s: error %v, want %v", c.name, err, c.err)
		}
		if got := strings.Join(c.f.steps, " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	f := &fake{}
	f.park = func() { f.err = failure }
	if err := Wait(f, nil, never); err != failure {
		t.Errorf("a failure while parked: %v", err)
	}
}

func TestCheckRemote(t *testing.T) {
	const size = 2 * segment.PageSize
	f := &fake{sizes: []uint64{size, 0, uint64(segment.MaxAttach)}}
	base := segment.AttachBase
	for _, c := range []struct {
		rank int
		off  int64
		n    uint64
		ok   bool
	}{
		{0, 0, 0, true},
		{0, 0, size, true},
		{0, size, 0, true},
		{0, size - 1, 1, true},
		{0, 1, size - 1, true},
		{0, 0, size + 1, false},
		{0, size, 1, false},
		{0, size - 7, 8, false},
		{0, -1, 1, true}, // perhaps registered: only its owner knows
		{0, -1, 0, true},
		{0, -1, size, false}, // half of it is in the segment
		{0, segment.PageSize - segment.GATSpan, 8, true},
		{0, segment.PageSize - segment.GATSpan - 1, 1, false}, // page 0 is never given out
		{0, segment.GATSpan - 1, 1, false},                    // the rest of the segment's table neither
		{0, segment.GATSpan, 1, true},
		{0, segment.GATSpan, 1 << 30, true},
		{0, int64(segment.MaxAttach) - 1, 1, true},
		{0, int64(segment.MaxAttach) - 1, 2, false},
		{0, size + 1, 0, false},
		{0, 1, 1<<64 - 1, false},
		{0, 0, 1<<64 - 1, false},
		{0, segment.GATSpan, 1<<64 - 1, false},
		{0, 1 << 62, 1, false},
		{1, 0, 0, true},
		{1, 0, 1, true}, // without a segment its place is for registered memory
		{1, 1, 0, true},
		{2, int64(segment.MaxAttach) - 1, 1, true},
		{2, -1, 1, true},
	} {
		a := base + segment.NLA(c.off)
		if in := InSegment(f, c.rank, a, c.n); in != (c.ok && (!Registered(f.sizes[c.rank], a, c.n) || c.rank == 1 && c.off == 0 && c.n == 0)) {
			t.Errorf("%+v: InSegment says %v", c, in)
		}
		err := CheckRemote(f, "put", c.rank, a, c.n)
		if c.ok && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if !c.ok {
			wantError(t, "outside", err, ErrBadArg, "put: ", "outside the segment of rank", "-segment", "ARGON_SEGMENT")
			if Registered(f.sizes[c.rank], a, 1) {
				wantError(t, "beyond", err, ErrBadArg, "what is registered there ends at ")
			}
		}
	}
	for _, a := range []segment.NLA{segment.ExposedBase, segment.ExposedLimit - 1} {
		for rank := range 3 {
			wantError(t, "exposed", CheckRemote(f, "put", rank, a, 1), ErrBadArg, "put: ", "layers above", a.String())
		}
	}
	for _, rank := range []int{-1, 3, 1 << 40} {
		wantError(t, "rank", CheckRemote(f, "put", rank, base, 0), ErrBadArg, "put: rank", "0..2")
		wantError(t, "rank", CheckRank(f, "get", rank), ErrBadArg, "get: rank", "0..2")
	}
	for rank := range 3 {
		if err := CheckRank(f, "get", rank); err != nil {
			t.Error(err)
		}
	}
}

func TestRegistry(t *testing.T) {
	_, err := Lookup("none")
	wantError(t, "before any is registered", err, ErrBadArg, `"none"`, "-conduit", "ARGON_CONDUIT")
	Register(Conduit{Name: "two"})
	Register(Conduit{Name: "one"})
	defer func() { reg = map[string]Conduit{} }()
	if c, err := Lookup("one"); err != nil || c.Name != "one" {
		t.Errorf("found %q, %v", c.Name, err)
	}
	_, err = Lookup("three")
	wantError(t, "an unknown one", err, ErrBadArg, `"three"`, "one, two")
	defer func() {
		if recover() == nil {
			t.Error("one name was registered twice")
		}
	}()
	Register(Conduit{Name: "one"})
}

func TestClassString(t *testing.T) {
	if Request.String() != "request" || Reply.String() != "reply" {
		t.Errorf("%v, %v", Request, Reply)
	}
}

// TestDefaultLanes: ranks divide the processors, and none is without a lane.
func TestDefaultLanes(t *testing.T) {
	all := min(runtime.GOMAXPROCS(0), sys.Processors())
	for ranks := range all + 3 {
		want := all
		if ranks > 0 {
			want = max(all/ranks, 1)
		}
		if got := DefaultLanes(ranks); got != min(want, MaxLanes) {
			t.Errorf("%d lanes of each of %d ranks on %d processors", got, ranks, all)
		}
	}
}
