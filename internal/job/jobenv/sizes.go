package jobenv

import (
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// ParseSize reads a number of bytes with an optional suffix K, M, G or T
// (powers of 1024; "KiB", "KB" and lower case are accepted too).
func ParseSize(s string) (uint64, error) {
	num := strings.TrimRight(s, "KMGTIBkmgtib")
	shift, suffix := 0, strings.ToUpper(s[len(num):])
	suffix = strings.TrimSuffix(strings.TrimSuffix(suffix, "B"), "I")
	switch suffix {
	case "":
	case "K":
		shift = 10
	case "M":
		shift = 20
	case "G":
		shift = 30
	case "T":
		shift = 40
	default:
		return 0, errs.BadArg("jobenv: %q is not a size: digits and K, M, G or T", s)
	}
	if suffix == "" && len(num) != len(s) && !strings.EqualFold(s[len(num):], "B") {
		return 0, errs.BadArg("jobenv: %q is not a size: digits and K, M, G or T", s)
	}
	v, err := strconv.ParseUint(num, 10, 64)
	if err != nil {
		return 0, errs.BadArg("jobenv: %q is not a size: digits and K, M, G or T", s)
	}
	if v == 0 || v > 1<<62>>shift {
		return 0, errs.BadArg("jobenv: size %q is out of range: 1 to %d bytes", s, uint64(1)<<62)
	}
	return v << shift, nil
}

// DefaultSegment is the size of a rank's segment, bytes, if neither its program nor its
// user says one.
const DefaultSegment = 64 << 20

// MaxLanes is the most lanes of a rank, see conduits.Laned.
const MaxLanes = 64

// ParseLanes reads a number of lanes.
func ParseLanes(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxLanes {
		return 0, errs.BadArg("%q is not a number of lanes from 1 to %d", s, MaxLanes)
	}
	return n, nil
}
