package origin

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestCaller(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	if got, want := Caller(), fmt.Sprintf("origin_test.go:%d", line+1); got != want {
		t.Errorf("it was called at %s, not %s", want, got)
	}
}

func TestOwn(t *testing.T) {
	for f, want := range map[runtime.Frame]bool{
		{Function: "github.com/argon-go/argon/gas.Ptr[...].PutNB", File: "/x/gas/ptr_unsafe.go"}:      true,
		{Function: "github.com/argon-go/argon/conduits/shm.(*Job).x", File: "/x/conduits/shm/job.go"}: true,
		{Function: "github.com/argon-go/argon/gas.TestPtr", File: "/x/gas/ptr_test.go"}:               false,
		{Function: "github.com/argon-go/argon/cmd/gasbench.main", File: "/x/cmd/gasbench/main.go"}:    false,
		{Function: "github.com/argon-go/argon/gasoline.F", File: "/x/gasoline/f.go"}:                  false,
		{Function: "main.main", File: "/x/main.go"}:                                                   false,
	} {
		if Own(f.Function, f.File) != want {
			t.Errorf("%s: %v", f.Function, !want)
		}
	}
}

func TestFunc(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	f := func() bool { return line > 0 }
	if got, want := Func(reflect.ValueOf(f).Pointer()), fmt.Sprintf("origin_test.go:%d", line+1); got != want {
		t.Errorf("it is at %s, not %s", want, got)
	}
	var b strings.Builder
	if got := Func(reflect.ValueOf(b.Len).Pointer()); got != "an unknown function" && got != "reflect.methodValueCall" && !strings.Contains(got, "Builder") {
		t.Errorf("a method's value is %s", got)
	}
	if got := Func(0); got != "an unknown function" {
		t.Errorf("nothing is %s", got)
	}
}
