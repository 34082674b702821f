package launch

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/argon-go/argon/internal/sys"
)

// The thread that starts bound ranks is not bound itself afterwards.
func TestBindingIsTakenBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := sys.Affinity()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * len(before) {
		var during []int
		if err := onCore(i, before, func() { during, err = sys.Affinity() }); err != nil {
			t.Fatal(err)
		}
		if err != nil || len(during) != 1 || during[0] != before[i%len(before)] {
			t.Errorf("rank %d is bound to %v (%v), want %d", i, during, err, before[i%len(before)])
		}
	}
	after, err := sys.Affinity()
	if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("bound to %v (%v) afterwards, %v before", after, err, before)
	}
}
