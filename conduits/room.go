package conduits

import (
	"fmt"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// A Bound is a limit of the system on what the segments of a host's ranks lie in.
type Bound struct {
	sys.Room
	Beside int64 // bytes that go off for other things
	Share  int64 // of a hundred parts of the rest, what a default takes
}

// RuntimeAddresses is how much of a process's limit of addresses is left to its Go
// heap, whose arenas have 64 MiB each, and threads, however large a segment is asked for.
const RuntimeAddresses = 192 << 20

// Addresses is the bound that a process's limits of addresses are.
func Addresses(private bool) Bound {
	return Bound{Room: sys.AddressRoom(private), Beside: RuntimeAddresses, Share: 50}
}

// FitSegment is the size of the segments that n ranks can have at most, whole pages.
// want is what was asked for, which is refused if there is no room for n of it; 0 lets the
// bounds choose. remark, if not nil, is told if that is less than programs attach
// that do not ask for more. name begins errors.
func FitSegment(name string, n int, want uint64, remark func(string), bounds ...Bound) (uint64, error) {
	const most, unknown = 64 << 30, 256 << 20
	if want > uint64(segment.MaxAttach) {
		return 0, errs.Resource("%s: a segment of %d bytes: the most is %d (-segment, ARGON_SEGMENT)", name, want, uint64(segment.MaxAttach))
	}
	size, known := int64(most), false
	var least Bound
	for _, b := range bounds {
		if !b.Bounded() {
			continue
		}
		known = true
		share := int64(100)
		if want == 0 {
			share = b.Share
		}
		rest := max(b.Free-b.Beside, 0)
		if s := rest / 100 * share / int64(n); want == 0 && s < size {
			size, least = s, b
		}
		if s := rest / int64(n); s < segment.PageSize || want > uint64(s) {
			return 0, tooNarrow(name, n, want, uint64(s), b)
		}
	}
	switch {
	case want != 0:
		return roundPage(want), nil
	case !known:
		return unknown, nil
	}
	size = max(size&^(segment.PageSize-1), segment.PageSize)
	if size < jobenv.DefaultSegment && remark != nil {
		remark(fmt.Sprintf("%s: segments have at most %s a rank, less than the usual %s: %v",
			name, sys.Amount(size), sys.Amount(jobenv.DefaultSegment), least.Room))
	}
	return uint64(size), nil
}

func tooNarrow(name string, n int, want, most uint64, b Bound) error {
	beside := ""
	if b.Beside > 0 {
		beside = fmt.Sprintf(" and %s for the rest", sys.Amount(b.Beside))
	}
	if most < segment.PageSize {
		return errs.Resource("%s: %d ranks need a segment of %d bytes or more each%s: %v",
			name, n, segment.PageSize, beside, b.Room)
	}
	return errs.Resource("%s: %d segments of %d bytes need %.0f MiB%s: %v; at most %d bytes a rank (-segment, ARGON_SEGMENT)",
		name, n, want, float64(n)*float64(want)/(1<<20), beside, b.Room, most&^(segment.PageSize-1))
}

func roundPage(n uint64) uint64 { return (n + segment.PageSize - 1) &^ (segment.PageSize - 1) }

// FitLocal is FitSegment for ranks of this process, whose segments no memory stands
// behind before it is touched: only a default heeds how much memory there is.
func FitLocal(name string, n int, want uint64, remark func(string)) (uint64, error) {
	bounds := []Bound{Addresses(true)}
	if want == 0 {
		bounds = append(bounds, Bound{Room: sys.MemoryRoom(true), Share: 85})
	}
	return FitSegment(name, n, want, remark, bounds...)
}
