package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/simrecord"
)

func genRecord() *rapid.Generator[*Record] {
	text := rapid.String()
	options := rapid.Custom(func(t *rapid.T) string { return genConfig().Draw(t, "config").String() })
	return rapid.Custom(func(t *rapid.T) *Record {
		r := &Record{
			Program: text.Draw(t, "program"),
			Dir:     text.Draw(t, "dir"),
			Binary:  rapid.StringMatching(`([0-9a-f]{64})?`).Draw(t, "binary"),
			Ranks:   rapid.IntRange(0, MaxRanks).Draw(t, "ranks"),
			Exit:    rapid.SampledFrom([]string{"", "status 0", "SIGKILL"}).Draw(t, "exit"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "args") {
			r.Args = append(r.Args, text.Draw(t, "arg"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "env") {
			r.Env = append(r.Env, "K="+strings.ReplaceAll(text.Draw(t, "value"), "\x00", ""))
		}
		if rapid.Bool().Draw(t, "with options") {
			r.Options = options.Draw(t, "options")
		}
		for range rapid.IntRange(0, 3).Draw(t, "jobs") {
			j := &JobRecord{Ranks: rapid.IntRange(1, MaxRanks).Draw(t, "ranks"), Options: options.Draw(t, "options")}
			c := Checkpoint{}
			next := func() Checkpoint {
				c.Steps += rapid.Uint64Range(1, 1<<40).Draw(t, "steps")
				c.Digest = rapid.Uint64().Draw(t, "digest")
				c.Time += rapid.Int64Range(0, 1<<40).Draw(t, "time")
				return c
			}
			for range rapid.IntRange(0, 3).Draw(t, "checkpoints") {
				j.Checkpoints = append(j.Checkpoints, next())
			}
			if rapid.Bool().Draw(t, "ended") {
				j.End = &End{Checkpoint: next()}
				if rapid.Bool().Draw(t, "failed") {
					j.End.Failed, j.End.Rank, j.End.Error = true, rapid.IntRange(-1, j.Ranks-1).Draw(t, "rank"), text.Draw(t, "error")
				}
			}
			j.Replay = rapid.SampledFrom([]string{"", ReplaySame, "different\nby far"}).Draw(t, "replay")
			r.Jobs = append(r.Jobs, j)
		}
		return r
	})
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRecord().Draw(t, "record")
		b := recordBytes(r)
		got, err := ReadRecord(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("%s\nis read as\n%s", b, recordBytes(got))
		}
		// Wherever the writer was killed, what there is can be read.
		cut := rapid.IntRange(len(simrecord.Magic)+1, len(b)).Draw(t, "cut")
		short, err := ReadRecord(bytes.NewReader(b[:cut]))
		if err != nil {
			t.Fatalf("%v\n%s", err, b[:cut])
		}
		if !bytes.HasPrefix(b, recordBytes(short)) {
			t.Fatalf("%s\nis read as\n%s", b[:cut], recordBytes(short))
		}
	})
}

func TestBadRecords(t *testing.T) {
	const job = "job 1 4 seed=0\n"
	for in, want := range map[string]string{
		"":                                  "empty",
		"\n":                                "line 1",
		"argon-sim-record 2\n":              "another version",
		"#\npeculiar 1\n":                   "line 2",
		"#\nprogram x\n":                    "line 2",
		"#\nprogram \"x\"\nprogram \"y\"\n": "line 3",
		"#\nenv \"x\"\n":                    "line 2",
		"#\nranks 0\n":                      "line 2",
		"#\nranks 99999999\n":               "line 2",
		"#\noptions sede=1\n":               "sede",
		"#\njob 2 4 seed=0\n":               "there are 0",
		"#\njob 1 4\n":                      "line 2",
		"#\n" + job + "job 1 4 seed=0\n":    "line 3",
		"#\n" + job + "arg \"x\"\n":         "too late",
		"#\n" + job + "at 2 1 0000000000000000 0\n":                                      "line 3",
		"#\n" + job + "at 1 1 00 0\n":                                                    "line 3",
		"#\n" + job + "at 1 1 0000000000000000 -1\n":                                     "line 3",
		"#\n" + job + "at 1 2 0000000000000000 0\nat 1 2 0000000000000000 0\n":           "line 4",
		"#\n" + job + "end 1 2 0000000000000000 0 ok\nat 1 3 0000000000000000 0\n":       "line 4",
		"#\n" + job + "end 1 2 0000000000000000 0 failed 4 \"x\"\n":                      "line 3",
		"#\n" + job + "end 1 2 0000000000000000 0 failed 1 x\n":                          "line 3",
		"#\n" + job + "replay 1 other\n":                                                 "line 3",
		"#\nexit status 0\nexit status 0\n":                                              "after the end",
		"#\narg \"" + strings.Repeat("x", simrecord.MaxLine) + "\"\n":                    "longer",
		"#\n" + job + "end 1 18446744073709551616 0000000000000000 0 ok\n":               "line 3",
		"#\n" + job + "end 1 2 0000000000000000 0 failed -2 \"x\"\n":                     "line 3",
		"#\n" + job + "replay 1 same\nreplay 1 same\n":                                   "line 4",
		"#\n" + job + "replay 1 same\nend 1 2 0000000000000000 0 failed 1 \"the end\"\n": "line 4",
	} {
		in = strings.ReplaceAll(in, "#", simrecord.Magic)
		_, err := ReadRecord(strings.NewReader(in))
		if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.200q: %v, want %q", in, err, want)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(simrecord.Magic + "\nprogram \"./x\"\narg \"-n\"\nenv \"A=b\"\nbinary 00\nranks 4\noptions seed=1\njob 1 4 seed=1\n" +
		"at 1 1024 00000000000000ff 5\nend 1 1030 0000000000000001 6 failed 3 \"x\\n\"\nreplay 1 same\nexit SIGKILL\n"))
	f.Add([]byte(simrecord.Magic + "\njob 1 4 seed=1\njob 2 1 seed=2 crash=1@1ms\nend 2 0 0000000000000000 0 ok\nreplay 1 other \"x\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadRecord(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, errs.ErrBadArg) {
				t.Error(err)
			}
			return
		}
		again, err := ReadRecord(bytes.NewReader(recordBytes(r)))
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("%q\nbecomes\n%q: %v", b, recordBytes(r), err)
		}
	})
}

// Few checkpoints are kept, and never few of those of the last half.
func TestKept(t *testing.T) {
	n, recent := 0, []uint64{0}
	for steps := uint64(1024); steps <= 1<<26; steps += 1024 {
		if !kept(steps) {
			continue
		}
		n++
		if gap := steps - recent[len(recent)-1]; gap > max(1024, steps/16) {
			t.Fatalf("nothing between %d and %d steps", steps-gap, steps)
		}
		recent = append(recent, steps)
	}
	if n > 32*17 {
		t.Errorf("%d checkpoints", n)
	}
}

type null struct{}

func (null) Receive(*conduits.Message)                      {}
func (null) Complete(uint64, conduits.Event, uint64, error) {}

// Numbers of rounds in which pingers does something else.
const (
	failing = 777 // rank 0 fails at the end
	other   = 555 // the contents of one message are different
)

// pingers lets rank i send rounds messages to its neighbour and wait for as many.
func pingers(t *testing.T, j *Job, rounds int) {
	t.Helper()
	eps := j.Endpoints()
	conduits.Run(eps, func(i int) {
		ep := eps[i]
		defer ep.Close()
		if err := ep.Attach(conduits.AttachConfig{Receiver: null{}}); err != nil {
			return
		}
		for k := range rounds {
			var st conduits.Status
			words := []uint32{uint32(k)}
			if rounds == other && k == 150 {
				words[0]++
			}
			got := func() uint64 {
				var s conduits.Stats
				ep.Stats(&s)
				return s.Received[conduits.Request]
			}
			err := conduits.Wait(ep, nil, func() bool {
				st = ep.Send((i+1)%len(eps), conduits.Request, 1, words)
				return st != conduits.NoCredit
			})
			if err == nil {
				err = conduits.Wait(ep, nil, func() bool { return got() > uint64(k) })
			}
			if err != nil {
				return
			}
		}
		if i == 0 && rounds == failing {
			ep.Fail(errors.New("by chance"))
		}
	})
}

// environment is one of a map.
func environment(m map[string]string) func(string) string {
	return func(key string) string { return m[key] }
}

// runLocal runs pingers as Local's users do, in a process that has nothing but env.
func runLocal(t *testing.T, rounds int, env map[string]string) error {
	t.Helper()
	sessionsMu.Lock()
	sessions = slices.DeleteFunc(sessions, func(s *session) bool { return s.record != nil && s.record.Close() == nil || s.replay != nil })
	sessionsMu.Unlock()
	j, err := local(5, conduits.Config{}, environment(env))
	if err != nil {
		return err
	}
	pingers(t, j, rounds)
	return j.err
}

func readRecord(t *testing.T, name string) *Record {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ReadRecord(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A record that is written without gasrun has its jobs' course and end, and a
// run that repeats it finds itself the same, or says where it is not.
func TestRecordAndReplay(t *testing.T) {
	dir := t.TempDir()
	rec := filepath.Join(dir, "record")
	const options = "seed=5 jitter=1us"
	if err := runLocal(t, 300, map[string]string{EnvOptions: options, EnvKeep: rec}); err != nil {
		t.Fatal(err)
	}
	r := readRecord(t, rec)
	if len(r.Jobs) != 1 || r.Jobs[0].Ranks != 5 || r.Jobs[0].End == nil || r.Jobs[0].End.Failed || len(r.Jobs[0].Checkpoints) < 5 {
		t.Fatalf("recorded is\n%s", recordBytes(r))
	}
	second := filepath.Join(dir, "second")
	var said bytes.Buffer
	defer func(w io.Writer) { messages = w }(messages)
	messages = &said
	again := func(rounds int, options string) (*JobRecord, error) {
		err := runLocal(t, rounds, map[string]string{EnvOptions: options, EnvKeep: second, EnvAgain: rec})
		return readRecord(t, second).Jobs[0], err
	}
	j, err := again(300, options)
	if err != nil || j.Replay != ReplaySame {
		t.Errorf("the same again: %v, %s", err, j.Replay)
	}
	if want := "argon: sim: job 1 went as recorded in " + rec + "\n"; said.String() != want {
		t.Errorf("said is %q, want %q", &said, want)
	}
	for _, tc := range []struct {
		rounds  int
		options string
		want    string
		early   bool // the run is ended there
	}{
		{200, options, "this run ended after", false},
		{600, options, "this run goes on", true},
		{other, options, "the same up to step 4096", true},
		{other, options, "at step 5120 they are not any more", true},
		{301, options, "this run ended after", false},
		{300, "seed=6 jitter=1us", "options seed=6", true},
		{300, options + " limit=1ms", "limit=1ms", true},
	} {
		j, err := again(tc.rounds, tc.options)
		if !strings.Contains(j.Replay, tc.want) {
			t.Errorf("%d rounds, %s: %s; want %q", tc.rounds, tc.options, j.Replay, tc.want)
		}
		if tc.early != (err != nil) {
			t.Errorf("%d rounds, %s: the run ended with %v", tc.rounds, tc.options, err)
		}
	}
	// A record that ends early says nothing about what follows.
	b := recordBytes(r)
	if err := os.WriteFile(rec, b[:bytes.Index(b, []byte("at 1 4096"))+20], 0o666); err != nil {
		t.Fatal(err)
	}
	if j, err := again(600, options); err != nil || j.Replay != ReplaySame {
		t.Errorf("on and on: %v, %s", err, j.Replay)
	}
	if j, _ := again(50, options); !strings.Contains(j.Replay, "recorded are 3072 steps and more") {
		t.Errorf("less than recorded: %s", j.Replay)
	}
}

// A failure is recorded with its rank, and repeated.
func TestRecordFailure(t *testing.T) {
	defer func(w io.Writer) { messages = w }(messages)
	messages = io.Discard
	dir := t.TempDir()
	rec, second := filepath.Join(dir, "record"), filepath.Join(dir, "second")
	for _, tc := range []struct {
		options string
		rounds  int
		rank    int
		why     string
	}{
		{"seed=1 crash=3@40us", 300, 3, "crashed"},
		{"seed=1 crash=2#300", 300, 2, "crashed"},
		{"seed=1 limit=50us", 300, -1, "50µs"},
		{"", failing, 0, "by chance"},
	} {
		err := runLocal(t, tc.rounds, map[string]string{EnvOptions: tc.options, EnvKeep: rec})
		if err == nil {
			t.Fatalf("%s: no failure", tc.options)
		}
		e := readRecord(t, rec).Jobs[0].End
		if e == nil || !e.Failed || e.Rank != tc.rank || !strings.Contains(e.Error, tc.why) {
			t.Errorf("%s: recorded is %+v", tc.options, e)
		}
		again := runLocal(t, tc.rounds, map[string]string{EnvOptions: tc.options, EnvKeep: second, EnvAgain: rec})
		if j := readRecord(t, second).Jobs[0]; j.Replay != ReplaySame || fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("%s: again it ends with %v: %s", tc.options, again, j.Replay)
		}
	}
}

// A panic that no rank catches is recorded before it ends the process.
func TestRecordPanic(t *testing.T) {
	rec := filepath.Join(t.TempDir(), "record")
	j, err := local(2, conduits.Config{}, environment(map[string]string{EnvKeep: rec}))
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if p, ok := recover().(*PanicError); !ok || p.Value != "boom" {
				t.Errorf("panic %v", p)
			}
		}()
		conduits.Run(j.Endpoints(), func(i int) {
			if i == 1 {
				panic("boom")
			}
		})
	}()
	if e := readRecord(t, rec).Jobs[0].End; e == nil || !e.Failed || e.Rank != -1 || e.Error != "panic: boom" {
		t.Errorf("recorded is %+v", e)
	}
}

// Jobs that are opened at once are recorded in the order of their numbers, without
// which the record could not be read.
func TestRecordOfJobsAtOnce(t *testing.T) {
	const jobs = 1500
	rec := filepath.Join(t.TempDir(), "record")
	env := environment(map[string]string{EnvKeep: rec})
	var all sync.WaitGroup
	for range jobs {
		all.Go(func() {
			if _, err := local(2, conduits.Config{}, env); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(readRecord(t, rec).Jobs); n != jobs {
		t.Errorf("%d jobs are recorded, want %d", n, jobs)
	}
}

// Options that Local cannot follow are errors that name the variable.
func TestLocalErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("no record\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ key, value string }{
		{EnvOptions, "seed=x"},
		{EnvOptions, "drop=0.1"}, // and what else has no effect, see Reliable
		{EnvOptions, "dup=0.1"},
		{EnvOptions, "corrupt=1"},
		{EnvOptions, "truncate=0.1"},
		{EnvOptions, "delay=0.1"},
		{EnvOptions, "delayby=1us"},
		{EnvOptions, "buffer=1"},
		{EnvTrace, dir},
		{EnvKeep, dir},
		{EnvAgain, filepath.Join(dir, "none")},
		{EnvAgain, bad},
		{EnvStatus, "9999"},
		{EnvStatus, "x"},
	} {
		_, err := local(2, conduits.Config{}, environment(map[string]string{tc.key: tc.value}))
		if err == nil || !strings.Contains(err.Error(), tc.key) {
			t.Errorf("%s=%s: %v", tc.key, tc.value, err)
		}
	}
}

// What the opener asks for wins over the environment.
func TestLocalConfig(t *testing.T) {
	env := environment(map[string]string{EnvOptions: "seed=1 credits=2 medium=600 segment=1M"})
	for _, tc := range []struct {
		c    conduits.Config
		want string
	}{
		{conduits.Config{}, "seed=1 machine=extoll segment=1M credits=2 medium=600"},
		{conduits.Config{Seed: 9, Credits: 3, MaxMedium: 700, MaxSegment: 4096}, "seed=9 machine=extoll segment=4K credits=3 medium=700"},
	} {
		j, err := local(2, tc.c, env)
		if err != nil {
			t.Fatal(err)
		}
		if got := j.c.String(); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.c, got, tc.want)
		}
	}
}

func TestVerboseEnvironment(t *testing.T) {
	// What is said is said once for each environment of a process.
	sessionsMu.Lock()
	before := sessions
	sessions = nil
	sessionsMu.Unlock()
	defer func() {
		sessionsMu.Lock()
		sessions = before
		sessionsMu.Unlock()
	}()
	var said bytes.Buffer
	defer func(w io.Writer) { messages = w }(messages)
	messages = &said
	if _, err := local(2, conduits.Config{}, environment(map[string]string{EnvOptions: "seed=4711", "ARGON_VERBOSEENV": "1"})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{EnvOptions, "seed=4711", EnvTrace, EnvKeep, EnvAgain, "(not set)"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is missing in %q", want, &said)
		}
	}
}

// recordBytes is the whole record.
func recordBytes(r *Record) []byte {
	b := r.Header()
	for i, j := range r.Jobs {
		b = append(b, j.Line(i+1)...)
		for _, c := range j.Checkpoints {
			b = append(b, c.Line(i+1)...)
		}
		if j.End != nil {
			b = append(b, j.End.Line(i+1)...)
		}
		if j.Replay != "" {
			b = append(b, simrecord.ReplayLine(i+1, j.Replay)...)
		}
	}
	if r.Exit != "" {
		b = append(b, "exit "+r.Exit+"\n"...)
	}
	return b
}
