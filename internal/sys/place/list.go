package place

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// List is processors as sysfs writes them, such as 0-3,8 (cpuset(7), "List format").
func List(cpus []int) string {
	var b strings.Builder
	sorted := slices.Sorted(slices.Values(cpus))
	for i := 0; i < len(sorted); {
		last := i
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(sorted[i]))
		if last > i {
			fmt.Fprintf(&b, "-%d", sorted[last])
		}
		i = last + 1
	}
	return b.String()
}

// mostProcessors bounds the numbers that parseList takes: Linux has at most 8192 (NR_CPUS).
const mostProcessors = 1 << 16

// parseList reads what List writes.
func parseList(s string) (cpus []int, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last >= mostProcessors {
			return nil, errs.BadArg("place: %q is no list of processors", s)
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}
