package conduits

import (
	"errors"
	"testing"

	"github.com/argon-go/argon/segment"
)

// TestOwnMemory follows an endpoint's memory from before Attach until after Close.
func TestOwnMemory(t *testing.T) {
	var o OwnMemory
	if _, err := o.ATU(); !errors.Is(err, ErrNotReady) {
		t.Errorf("before Attach: %v", err)
	}
	refused := func(when string, a segment.NLA) {
		t.Helper()
		_, _, err := o.Admit(3, a, 8, segment.RightRead)
		var f *segment.FaultError
		if !errors.As(err, &f) || f.Addr != a || f.Len != 8 || f.VPID != 3 {
			t.Errorf("%s: %v", when, err)
		}
		if err = Fault("conduit: get", 7, err); !errors.Is(err, segment.ErrFault) || !errors.Is(err, ErrBadArg) {
			t.Errorf("%s: %v", when, err)
		}
		wantError(t, when, err, segment.ErrFault, "conduit: get: rank 7", a.String())
	}
	refused("before Attach", segment.PageSize)
	made := 0
	o.Ready(func() segment.ATUConfig { made++; return segment.ATUConfig{} })
	refused("as long as nothing is registered", segment.PageSize)
	if o.MadeATU() != nil || made != 0 {
		t.Error("an ATU without need")
	}
	u, err := o.ATU()
	if again, e := o.ATU(); err != nil || e != nil || again != u || o.MadeATU() != u || made != 1 {
		t.Fatalf("%v, %v, made %d times", err, e, made)
	}
	for _, n := range []uint64{0, uint64(segment.NLALimit) + 1} {
		if _, err := o.MapMemory(n); !errors.Is(err, ErrBadArg) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	mem, err := o.MapMemory(segment.PageSize + 1)
	if err != nil || len(mem) != 2*segment.PageSize {
		t.Fatalf("%d bytes, %v", len(mem), err)
	}
	r, err := u.Register(mem, segment.RightsAll, segment.AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	b, unit, err := o.Admit(3, a, 8, segment.RightRead)
	if err != nil || &b[0] != &mem[0] {
		t.Fatalf("%v", err)
	}
	unit.Exit()
	for _, wrong := range [][]byte{mem[:segment.PageSize], mem[segment.PageSize:], make([]byte, segment.PageSize), nil} {
		wantError(t, "of other memory", o.UnmapMemory(wrong), ErrBadArg, "not what MapMemory has returned")
	}
	if err := o.UnmapMemory(mem); err != nil {
		t.Error(err)
	}
	wantError(t, "again", o.UnmapMemory(mem), ErrBadArg, "not what MapMemory has returned")
	refused("after UnmapMemory", a)
	if err := u.Deregister(r); err != nil {
		t.Error(err)
	}
	if err := errors.Join(o.CloseATU(), o.CloseATU()); err != nil {
		t.Error(err)
	}
	if _, err := u.Register(make([]byte, 8), segment.RightsAll, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	var never OwnMemory
	never.Ready(func() segment.ATUConfig { return segment.ATUConfig{} })
	if err := never.CloseATU(); err != nil {
		t.Error(err)
	}
	if _, err := never.ATU(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
