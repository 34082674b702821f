package sim

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/internal/errs"
)

// genConfig draws any configuration that has a form as text.
func genConfig() *rapid.Generator[Config] {
	times := rapid.OneOf(
		rapid.Int64Range(0, 2000),
		rapid.Custom(func(t *rapid.T) Time {
			return rapid.SampledFrom([]Time{1, Nanosecond, Microsecond, Millisecond, Second}).Draw(t, "unit") * rapid.Int64Range(0, 1000).Draw(t, "n")
		}),
		rapid.Int64Range(0, int64(maxTime)),
	)
	ranks := rapid.IntRange(0, MaxRanks-1)
	return rapid.Custom(func(t *rapid.T) Config {
		p, err := ProfileByName(rapid.SampledFrom(Profiles()).Draw(t, "profile"))
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Seed: rapid.Uint64().Draw(t, "seed"), Profile: &p}
		change := func() bool { return rapid.IntRange(0, 4).Draw(t, "change") == 0 }
		var fill func(v reflect.Value)
		fill = func(v reflect.Value) {
			for i := range v.NumField() {
				f := v.Field(i)
				switch x := f.Addr().Interface().(type) {
				case *string, *io.Writer, *func(uint64, uint64), *func(int, int, uint64), *uint64:
				case *fabric.Params:
					fill(f)
				case *Faults:
					fill(f)
				case *bool:
					*x = rapid.Bool().Draw(t, "bool")
				case *fabric.Topology:
					*x = rapid.SampledFrom([]fabric.Topology{fabric.Crossbar, fabric.Torus, fabric.FatTree, fabric.Mesh, fabric.Irregular}).Draw(t, "topology")
				case *fabric.Routing:
					*x = rapid.SampledFrom([]fabric.Routing{fabric.DimensionOrder, fabric.WestFirst, fabric.UpDown, fabric.Shortest}).Draw(t, "routing")
				case *fabric.Queue:
					*x = rapid.SampledFrom([]fabric.Queue{fabric.VOQ, fabric.Single}).Draw(t, "queue")
				case *[3]int:
					if change() {
						*x = [3]int{rapid.IntRange(1, 1<<20).Draw(t, "x"), rapid.IntRange(1, 9).Draw(t, "y"), 1}
					}
				case *Time:
					if change() {
						*x = times.Draw(t, "time")
					}
				case *int:
					if change() {
						*x = rapid.IntRange(4, 1<<14).Draw(t, "int")
					}
				case *float64:
					if change() {
						*x = rapid.Float64Range(0, 1).Draw(t, "chance")
					}
				case *[]Slow:
					for range rapid.IntRange(0, 2).Draw(t, "slow") {
						*x = append(*x, Slow{ranks.Draw(t, "rank"), rapid.IntRange(1, 1<<20).Draw(t, "factor")})
					}
				case *[]Stall:
					for range rapid.IntRange(0, 2).Draw(t, "stalls") {
						*x = append(*x, Stall{ranks.Draw(t, "rank"), times.Draw(t, "at"), times.Draw(t, "for")})
					}
				case *[]Crash:
					for range rapid.IntRange(0, 2).Draw(t, "crashes") {
						if rapid.Bool().Draw(t, "by event") {
							*x = append(*x, Crash{Rank: ranks.Draw(t, "rank"), Event: rapid.Uint64Min(1).Draw(t, "event")})
						} else {
							*x = append(*x, Crash{Rank: ranks.Draw(t, "rank"), At: times.Draw(t, "at")})
						}
					}
				case *[]Partition:
					for range rapid.IntRange(0, 2).Draw(t, "partitions") {
						r := ranks.Draw(t, "first")
						*x = append(*x, Partition{r, rapid.IntRange(r, MaxRanks-1).Draw(t, "last"), times.Draw(t, "at"), times.Draw(t, "for")})
					}
				case **Profile:
					fill(reflect.ValueOf(*x).Elem())
				default:
					t.Fatalf("no option for a field of type %v", f.Type())
				}
			}
		}
		fill(reflect.ValueOf(&c).Elem())
		c.MaxSegment = rapid.SampledFrom([]uint64{0, 1, 4096, 1 << 20, 3 << 30}).Draw(t, "segment")
		return c
	})
}

// What String writes, ParseOptions reads; so every field has an option, or the
// generator would have found one that has not.
func TestOptionsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genConfig().Draw(t, "config")
		text := c.String()
		got, err := ParseOptions(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(got, c) {
			t.Fatalf("%s\nread as %+v %+v\nnot as  %+v %+v", text, got, got.Profile, c, c.Profile)
		}
		if again := got.String(); again != text {
			t.Fatalf("%s\nbecomes %s", text, again)
		}
	})
}

func TestOptions(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "seed=0 machine=extoll",
		" seed=7,, machine=ideal\n":        "seed=7 machine=ideal",
		"topology=torus machine=ideal":     "seed=0 machine=ideal topology=torus",
		"latency=650ns":                    "seed=0 machine=extoll",
		"latency=0.0015ms byte=0":          "seed=0 machine=extoll latency=1500ns byte=0s",
		"limit=1.5s jitter=2us":            "seed=0 machine=extoll limit=1500ms jitter=2us",
		"limit=2µs":                        "seed=0 machine=extoll limit=2us",
		"crash=3@2ms,crash=4#17,crash=3@0": "seed=0 machine=extoll crash=3@2ms crash=4#17 crash=3@0s",
		"partition=0-3@1ms+1ms stall=5@0+1s slow=3x4": "seed=0 machine=extoll slow=3x4 stall=5@0s+1s partition=0-3@1ms+1ms",
		"drop=0.2,dup=1,delay=0.50":                   "seed=0 machine=extoll drop=0.2 dup=1 delay=0.5",
		"segment=1M credits=4 medium=512":             "seed=0 machine=extoll segment=1M credits=4 medium=512",
		"seed=18446744073709551615 contention=off":    "seed=18446744073709551615 machine=extoll contention=off",
		"topology=torus dims=8x8x4":                   "seed=0 machine=extoll topology=torus dims=8x8x4",
	} {
		c, err := ParseOptions(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if got := c.String(); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for in, want := range map[string][]string{
		"sede=7":                 {`"sede"`, "known:", "seed, "},
		"seed":                   {`"seed"`, "KEY=VALUE"},
		"seed=":                  {"KEY=VALUE"},
		"seed=-1":                {"seed=-1", "0 to 1844"},
		"seed=1 seed=2":          {"seed=2", "seed=1 before"},
		"machine=myrinet":        {"machine=myrinet", "extoll-kernel, firmvia, ideal"},
		"profile=ideal":          {"the machine is machine=ideal"},
		"topology=ring":          {"topology=ring", "crossbar, torus, fattree"},
		"queue=two":              {"queue=two", "voq, single"},
		"dims=8x8":               {"dims=8x8", "three sides"},
		"dims=8x0x8":             {`"0"`, "1 to"},
		"latency=5":              {"latency=5", "such as 500ns"},
		"latency=-5ns":           {"latency=-5ns", "is not a time"},
		"latency=1.5ps":          {"latency=1.5ps", "picoseconds"},
		"latency=1.00005ns":      {"picoseconds"},
		"latency=10000000000s":   {"is more than"},
		"latency=9999999999999s": {"is more than"},
		"latency=1.s":            {"is not a time"},
		"latency=s":              {"is not a time"},
		"latency=1.2.3s":         {"is not a time"},
		"slow=3":                 {"slow=3", "RANKxFACTOR"},
		"slow=3x0":               {`"0"`, "1 to 1048576"},
		"stall=3@1ms":            {"AT+FOR"},
		"stall=1ms+1ms":          {"RANK@AT+FOR"},
		"crash=3":                {"RANK@AT", "RANK#EVENT"},
		"crash=3#0":              {`"0"`, "from 1"},
		"crash=x@1ms":            {`"x"`, "rank"},
		"crash=99999999@1ms":     {`"99999999"`, "rank"},
		"partition=3@1ms+1ms":    {"FIRST-LAST"},
		"partition=3-1@1ms+1ms":  {"rank 1", "rank 3"},
		"drop=1.5":               {"drop=1.5", "0 to 1"},
		"drop=NaN":               {"drop=NaN", "0 to 1"},
		"segment=1Q":             {"segment=1Q", "64M"},
		"credits=40000":          {"credits=40000", "32768"},
		"contention=1":           {"neither on nor off"},
		"seed=x drop=y":          {"seed=x", "drop=y"},
	} {
		_, err := ParseOptions(in)
		if !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("%q: %v", in, err)
			continue
		}
		for _, w := range append(want, "ARGON_SIM") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v: %q is missing", in, err, w)
			}
		}
	}
}

// Set changes what it is told to, and nothing if there is an error; lists of two
// configurations made from one stay apart.
func TestSet(t *testing.T) {
	c, err := ParseOptions("seed=1 crash=1@1ms latency=1us")
	if err != nil {
		t.Fatal(err)
	}
	a, b := c, c
	for _, s := range []struct {
		c    *Config
		text string
	}{{&a, "seed=2 crash=2@1ms"}, {&b, "crash=3@1ms machine=ideal"}} {
		if err := s.c.Set(s.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Set("seed=9 latency=1"); err == nil {
		t.Error("latency=1 is accepted")
	}
	for _, s := range []struct {
		c    Config
		want string
	}{
		{a, "seed=2 machine=extoll latency=1us crash=1@1ms crash=2@1ms"},
		{b, "seed=1 machine=ideal crash=1@1ms crash=3@1ms"},
		{c, "seed=1 machine=extoll latency=1us crash=1@1ms"},
	} {
		if got := s.c.String(); got != s.want {
			t.Errorf("%q, want %q", got, s.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for text, want := range map[string]string{
		"crash=4@1ms":                   "crash of rank 4; the job has ranks 0..3",
		"partition=0-4@0+1ms":           "partition of rank 4",
		"topology=torus dims=1x1x3":     "3 positions for 4 nodes",
		"medium=100":                    "MaxMedium is 100",
		"poll=0":                        "Poll is 0",
		"topology=fattree radix=5":      "Radix 5",
		"slow=3x2 topology=torus":       "",
		"segment=1G crash=3#1":          "",
		"seed=1 stall=0@1us+1us drop=1": "",
	} {
		c, err := ParseOptions(text)
		if err != nil {
			t.Fatal(err)
		}
		before := c.String()
		err = c.Validate(4)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if _, newErr := New(4, c); (newErr == nil) != (err == nil) {
			t.Errorf("%q: Validate says %v, New %v", text, err, newErr)
		}
		if got := c.String(); got != before {
			t.Errorf("%q has become %q", before, got)
		}
	}
	for _, n := range []int{-1, 0, MaxRanks + 1} {
		if err := (Config{}).Validate(n); err == nil {
			t.Errorf("%d ranks are accepted", n)
		}
	}
}

func FuzzOptions(f *testing.F) {
	f.Add("seed=7 machine=extoll topology=torus dims=8x8x4 queue=single latency=1.5us")
	f.Add("jitter=2us,slow=3x4,stall=3@1ms+2ms,crash=3@2ms,crash=3#100,partition=0-3@1ms+1ms,detect=5us")
	f.Add("drop=0.2 dup=1e-3 segment=1M credits=4")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseOptions(s)
		if err != nil {
			if !errors.Is(err, errs.ErrBadArg) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		text := c.String()
		again, err := ParseOptions(text)
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%q is %q: %v", s, text, err)
		}
		_ = c.Validate(8)
	})
}
