package conduits_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
)

func TestLaunched(t *testing.T) {
	for _, c := range []struct{ rank, size, want string }{
		{"7", "4", `ARGON_RANK="7"`},
		{"4", "4", "0 to 3"},
		{"-1", "4", `"-1"`},
		{"x", "4", `"x"`},
		{"", "4", `ARGON_RANK=""`},
		{"0", "", `ARGON_SIZE=""`},
		{"0", "0", `ARGON_SIZE="0"`},
		{"0", "many", `"many"`},
		{"0", "9999999", "65536"},
	} {
		env := map[string]string{"ARGON_RANK": c.rank, "ARGON_SIZE": c.size}
		_, ok, err := conduits.Launched(func(k string) string { return env[k] })
		if !ok || !errors.Is(err, conduits.ErrBadArg) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("rank %q of %q: %v, %v; want an error with %q", c.rank, c.size, ok, err, c.want)
		}
	}
	if _, ok, err := conduits.Launched(func(string) string { return "" }); ok || err != nil {
		t.Errorf("no environment: %v, %v", ok, err)
	}
	env := map[string]string{"ARGON_RANK": "3", "ARGON_SIZE": "4", "ARGON_SEGFD": "5"}
	j, ok, err := conduits.Launched(func(k string) string { return env[k] })
	if !ok || err != nil || j.Rank != 3 || j.Size != 4 || j.Env("ARGON_SEGFD") != "5" {
		t.Errorf("rank 3 of 4: %+v, %v, %v", j, ok, err)
	}
}
