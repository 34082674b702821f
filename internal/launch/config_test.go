package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{
		"1": 1, "4096": 4096, "4096B": 4096, "1K": 1 << 10, "64k": 64 << 10, "512M": 512 << 20, "1G": 1 << 30, "2T": 2 << 40,
		"3KiB": 3 << 10, "3kb": 3 << 10, "3MB": 3 << 20,
	} {
		if got, err := jobenv.ParseSize(s); err != nil || got != want {
			t.Errorf("jobenv.ParseSize(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "K", "-1", "1.5G", "x", "1X", "1KK", "1IB", "1iK", " 1", "0x10", "1_000", "99999999999G", "18446744073709551616", "5000000T"} {
		if got, err := jobenv.ParseSize(s); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), s) {
			t.Errorf("jobenv.ParseSize(%q) = %d, %v; want an error that names it", s, got, err)
		}
	}
}

// Each fault of a configuration is named, with its knob, and all at once.
func TestValidateNamesFaults(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(jobenv.Segment, "")
	for name, tc := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"negative size":  {func(c *Config) { c.Size = -1 }, []string{"-1 ranks", "65536", "-n"}},
		"huge size":      {func(c *Config) { c.Size = jobenv.MaxRanks + 1 }, []string{"65537 ranks", "65536", "-n"}},
		"no program":     {func(c *Config) { c.Program = "" }, []string{"no program"}},
		"conduit":        {func(c *Config) { c.Conduit = "pigeon" }, []string{`"pigeon"`, "shm", "-conduit"}},
		"no directory":   {func(c *Config) { c.Dir = file + "/none" }, []string{"/none", "-wdir"}},
		"not a dir":      {func(c *Config) { c.Dir = file }, []string{"not a directory", "-wdir"}},
		"bind":           {func(c *Config) { c.Bind = "socket" }, []string{`"socket"`, "spread, core, numa and none", "-bind, ARGON_BIND"}},
		"timeout":        {func(c *Config) { c.Timeout = -1 }, []string{"-timeout"}},
		"freeze":         {func(c *Config) { c.Freeze = []int{0, 4} }, []string{"rank 4", "0..3", "-freeze"}},
		"freeze below":   {func(c *Config) { c.Freeze = []int{-1} }, []string{"rank -1", "-freeze"}},
		"env no value":   {func(c *Config) { c.Env = []string{"A"} }, []string{`"A"`, "-x"}},
		"env no name":    {func(c *Config) { c.Env = []string{"=b"} }, []string{`"=b"`, "-x"}},
		"env own":        {func(c *Config) { c.Env = []string{"ARGON_RANK=3"} }, []string{"ARGON_RANK", "-x"}},
		"env zero":       {func(c *Config) { c.Env = []string{"A=\x00"} }, []string{`"A"`, "zero byte"}},
		"env unknown":    {func(c *Config) { c.Env = []string{"ARGON_SEGMNET=3"} }, []string{"ARGON_SEGMNET", "ARGON_SEGMENT?", "-x"}},
		"env unused":     {func(c *Config) { c.Env = []string{"ARGON_AUTH=none"} }, []string{`ARGON_AUTH="none"`, "conduit shm", "udp and hybrid", "-x"}},
		"several faults": {func(c *Config) { c.Size, c.Program, c.Bind = -2, "", "x" }, []string{"-2 ranks", "no program", `"x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Size: 4, Program: "true"}
			c.EnsureDefaults()
			if err := c.Validate(); err != nil {
				t.Fatalf("good configuration: %v", err)
			}
			tc.change(&c)
			err := c.Validate()
			if !errors.Is(err, errs.ErrBadArg) {
				t.Fatalf("error is %v, want a bad argument", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %q", err, w)
				}
			}
		})
	}
}

// TestValidateEnvironment: what is wrong with the launcher's own variables is said
// once, also if Env takes one over, and what Env replaces does not matter.
func TestValidateEnvironment(t *testing.T) {
	for _, tc := range []struct {
		conduit   string
		name, own string
		env       []string
		want      []string // of each line
	}{
		{"shm", "ARGON_SEGMNET", "1", nil, []string{"ARGON_SEGMNET"}},
		{"shm", "ARGON_SEGMNET", "1", []string{"ARGON_SEGMNET=1"}, []string{"(-x)"}},
		{"shm", "ARGON_SIM", "seed=1", nil, []string{`ARGON_SIM="seed=1"`}},
		{"sim", "ARGON_SIM", "seed=1", nil, nil},
		{"shm", "ARGON_SIM", "seed=1", []string{"ARGON_SIM="}, nil},
		{"shm", "ARGON_AUTH", "none", nil, nil},
		{"udp", "ARGON_AUTH", "none", []string{"ARGON_AUTH=encrypted"}, nil},
		{"udp", "ARGON_SHM_PROCESS_VM", "x", []string{"ARGON_AUTH=encrypted", "ARGON_SHM_DIR=/"}, []string{jobenv.ShmDir, "ARGON_SHM_PROCESS_VM"}},
	} {
		t.Run(tc.name+" "+tc.conduit, func(t *testing.T) {
			t.Setenv(tc.name, tc.own)
			c := Config{Size: 4, Program: "true", Conduit: tc.conduit, Env: tc.env}
			c.EnsureDefaults()
			var got []string
			if err := c.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			for i, l := range got {
				if len(got) != len(tc.want) || !strings.Contains(l, tc.want[i]) {
					t.Fatalf("%q, want %q", got, tc.want)
				}
			}
			if len(got) != len(tc.want) {
				t.Fatalf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Ranks get what the launcher says, and nothing that it was itself told.
func TestEnvironmentOfRanks(t *testing.T) {
	for _, k := range ownEnv {
		t.Setenv(k, "inherited")
	}
	t.Setenv("A", "old")
	c := Config{Size: 4, Program: "x", Conduit: "shm", Segment: 1 << 20, Env: []string{"A=new=1", "B="}, Freeze: []int{2}}
	env := c.environ("job", 2, 0, c.Size, []string{"ARGON_SEGFD=3", "ARGON_CTLFD=4"})
	for _, want := range []string{
		"A=new=1", "B=", "ARGON_RANK=2", "ARGON_SIZE=4", "ARGON_LOCAL_RANK=2", "ARGON_LOCAL_SIZE=4",
		"ARGON_JOBID=job", "ARGON_CONDUIT=shm", "ARGON_SEGFD=3", "ARGON_CTLFD=4", "ARGON_SEGMENT=1048576", "ARGON_FREEZE=1",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing", want)
		}
		k, _, _ := strings.Cut(want, "=")
		n := 0
		for _, kv := range env {
			if strings.HasPrefix(kv, k+"=") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is there %d times", k, n)
		}
	}
	for _, kv := range c.environ("job", 1, 0, c.Size, nil) {
		if strings.HasSuffix(kv, "=inherited") || strings.HasPrefix(kv, "ARGON_FREEZE") {
			t.Errorf("rank 1 has %s", kv)
		}
	}
}

func TestSegmentOfTheEnvironment(t *testing.T) {
	t.Setenv(jobenv.Segment, "7M")
	for _, tc := range []struct{ given, want uint64 }{{0, 7 << 20}, {4096, 4096}} {
		c := Config{Program: "x", Segment: tc.given}
		c.EnsureDefaults()
		if err := c.Validate(); err != nil || c.Segment != tc.want {
			t.Errorf("segment %d becomes %d, %v; want %d", tc.given, c.Segment, err, tc.want)
		}
		if want := fmt.Sprintf("ARGON_SEGMENT=%d", tc.want); !slices.Contains(c.environ("", 0, 0, c.Size, nil), want) {
			t.Errorf("ranks lack %s", want)
		}
	}
	t.Setenv(jobenv.Segment, "much")
	c := Config{Program: "x"}
	c.EnsureDefaults()
	if err := c.Validate(); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), `ARGON_SEGMENT="much"`) {
		t.Errorf("error is %v", err)
	}
	c.Segment = 4096
	if err := c.Validate(); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), `ARGON_SEGMENT="much"`) {
		t.Errorf("a segment is given, but junk passes: %v", err)
	}
}

// What the ranks keep to themselves needs no room in the job's memory.
func TestLargeSegments(t *testing.T) {
	for _, tc := range []struct {
		env   string
		given bool
		want  bool
	}{{"", false, false}, {"", true, true}, {"1", false, true}, {"0", false, false}, {"0", true, true}} {
		t.Setenv(jobenv.Large, tc.env)
		c := Config{Program: "x", Segment: 1 << 40, Large: tc.given}
		c.EnsureDefaults()
		room := uint64(1 << 40)
		if tc.want {
			room = 0
		}
		if err := c.Validate(); err != nil || c.Large != tc.want || c.attached() != room {
			t.Errorf("%+v: %v, room for %d bytes, %v", tc, c.Large, c.attached(), err)
		}
		env := c.environ("", 0, 0, c.Size, nil)
		if slices.Contains(env, "ARGON_SEGMENT_LARGE=1") != tc.want || !slices.Contains(env, "ARGON_SEGMENT=1099511627776") {
			t.Errorf("%+v: ranks have %v", tc, env)
		}
	}
	t.Setenv(jobenv.Large, "maybe")
	c := Config{Program: "x"}
	c.EnsureDefaults()
	if err := c.Validate(); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), `ARGON_SEGMENT_LARGE="maybe"`) {
		t.Errorf("error is %v", err)
	}
}
