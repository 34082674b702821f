package conc

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestUpcast(t *testing.T) {
	l, err := UpcastSlice[fmt.Stringer]([]time.Duration{1, 2}, nil)
	if err != nil || len(l) != 2 || l[1].String() != "2ns" {
		t.Errorf("%v, %v", l, err)
	}
	why := errors.New("why")
	if l, err := UpcastSlice[fmt.Stringer]([]time.Duration{1}, why); l != nil || err != why {
		t.Errorf("with an error: %v, %v", l, err)
	}
	if s, err := UpcastOne[fmt.Stringer](time.Second, nil); err != nil || s.String() != "1s" {
		t.Errorf("one: %v, %v", s, err)
	}
	if s, err := UpcastOne[fmt.Stringer]((*time.Time)(nil), why); s != nil || err != why {
		t.Errorf("one with an error: %v, %v", s, err)
	}
}
