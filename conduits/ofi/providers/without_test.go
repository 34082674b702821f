//go:build !ofi || !cgo

package providers

import (
	"errors"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
)

// TestWithout: the error of a build without the library names what to install and how to build.
func TestWithout(t *testing.T) {
	list, err := List()
	if list != nil || !errors.Is(err, errs.ErrNotSupported) || Library() != "" {
		t.Fatal(list, err, Library())
	}
	for _, want := range []string{"apt-get install libfabric-dev", "go build -tags ofi"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
}
