package extended

import (
	"errors"
	"testing"
)

func TestSetStrategy(t *testing.T) {
	x := New(Config{})
	if err := x.SetStrategy(AlwaysPin); !errors.Is(err, ErrNotSupported) {
		t.Errorf("without firehoses: %v", err)
	}
	if x.Firehose() != nil {
		t.Error("there is a cache that was not given")
	}
	if err := x.SetStrategy(numStrategies); !errors.Is(err, ErrBadArg) {
		t.Errorf("no strategy: %v", err)
	}
}
