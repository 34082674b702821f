package jobkey_test

import (
	"bytes"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// TestKeyIsNotPrinted prints a key in every way, alone and inside of things,
// and looks for its bytes in each notation that fmt has for them.
func TestKeyIsNotPrinted(t *testing.T) {
	k := jobkey.New()
	type inside struct {
		Name string
		Key  jobkey.Key
		key  jobkey.Key
		any  any
	}
	in := inside{"x", k, k, k}
	var out []string
	for _, v := range []any{k, &k, in, &in, []jobkey.Key{k}, map[string]jobkey.Key{"k": k}, *new(jobkey.Key)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%o"} {
			out = append(out, fmt.Sprintf(verb, v))
		}
		out = append(out, fmt.Sprint(v), fmt.Sprintln(v))
	}
	j, err := json.Marshal(in)
	if err != nil || !strings.Contains(string(j), "(secret)") {
		t.Errorf("json: %s, %v", j, err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("start", "key", k, "in", in)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("start", "key", k, "in", in)
	out = append(out, string(j), log.String())
	if err := gob.NewEncoder(&log).Encode(k); err == nil {
		t.Error("gob stores a key")
	}

	raw, _ := hex.DecodeString(k.Reveal())
	for _, o := range out {
		for i := 0; i+4 <= len(raw); i++ {
			four := raw[i : i+4]
			for _, form := range []string{"%s", "%x", "%X", "% x", "%d", "%#v", "%o"} {
				leak := fmt.Sprintf(form, four)
				switch form {
				case "%d", "%o":
					leak = leak[1 : len(leak)-1]
				case "%#v":
					leak = leak[len("[]byte{") : len(leak)-1]
				}
				if strings.Contains(o, leak) {
					t.Fatalf("%q shows a part of the key as %s", o, form)
				}
			}
		}
	}
	for _, v := range []any{k, &k} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
			if got := fmt.Sprintf(verb, v); got != "(secret)" {
				t.Errorf("%s prints %q", verb, got)
			}
		}
	}
	if k.String() != "(secret)" {
		t.Error(k.String())
	}
}

func TestParse(t *testing.T) {
	k := jobkey.New()
	text := k.Reveal()
	for _, s := range []string{text, strings.ToUpper(text), " \t" + text + "\r\n"} {
		got, err := jobkey.Parse(s)
		if err != nil || !got.Equal(k) {
			t.Errorf("Parse of a good key: %v", err)
		}
	}
	bad := map[string]string{
		"empty": "", "short": text[1:], "long": text + "0", "not hex": "g" + text[1:],
		"inner space": text[:32] + " " + text[33:], "zeros": strings.Repeat("0", 64),
		"not ASCII": "\xff\x00" + text[2:], "prefix": "0x" + text,
	}
	for name, s := range bad {
		got, err := jobkey.Parse(s)
		if !errors.Is(err, errs.ErrBadArg) || got.Valid() {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s) > 8 && strings.Contains(err.Error(), strings.TrimSpace(s)[4:12]) {
			t.Errorf("%s: the error %q shows the key", name, err)
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	a, b := jobkey.New(), jobkey.New()
	if a.Equal(b) || !a.Equal(a) || a.Equal(jobkey.Key{}) || (jobkey.Key{}).Equal(a) || !(jobkey.Key{}).Equal(jobkey.Key{}) {
		t.Error("Equal")
	}
	if a.Valid() != true || (jobkey.Key{}).Valid() || (jobkey.Key{}).Reveal() != "" || (jobkey.Key{}).ForJob(nil).Valid() {
		t.Error("the zero key is taken for one")
	}
	all := []jobkey.Key{a, b, a.ForJob(nil), a.ForJob([]byte("1")), a.ForJob([]byte("2")), b.ForJob([]byte("1")), a.ForJob([]byte("1")).ForJob([]byte("1"))}
	for i, x := range all {
		for j, y := range all {
			if (i == j) != x.Equal(y) {
				t.Errorf("keys %d and %d: Equal says %v", i, j, x.Equal(y))
			}
		}
	}
	if !a.ForJob([]byte("1")).Equal(a.ForJob([]byte("1"))) {
		t.Error("two ranks derive different keys for a job")
	}
}

func TestLoad(t *testing.T) {
	k := jobkey.New()
	text := k.Reveal()
	dir := t.TempDir()
	write := func(name, s string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(s), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		name, env, file string
		kind            error
		says            string
	}{
		{"environment", text, "", nil, ""},
		{"file", "", write("good", text+"\n", 0o600), nil, ""},
		{"file of a group", "", write("group", text, 0o440), nil, ""},
		{"neither", "", "", errs.ErrNotReady, jobenv.JobKeyFile},
		{"both", text, filepath.Join(dir, "good"), errs.ErrBadArg, "both"},
		{"bad environment", text[2:], "", errs.ErrBadArg, jobenv.JobKey + ":"},
		{"no such file", "", filepath.Join(dir, "none"), errs.ErrBadArg, "no such file"},
		{"key for a file name", "", text, errs.ErrBadArg, "no such file"},
		{"folder", "", dir, errs.ErrBadArg, jobenv.JobKeyFile},
		{"open to all", "", write("open", text, 0o644), errs.ErrBadArg, "chmod"},
		{"empty file", "", write("empty", "", 0o600), errs.ErrBadArg, "64"},
		{"two keys", "", write("two", text+"\n"+text+"\n", 0o600), errs.ErrBadArg, "64"},
		{"long", "", write("long", strings.Repeat("a", 5000), 0o600), errs.ErrBadArg, "4096 characters"},
		{"device", "", "/dev/zero", errs.ErrBadArg, jobenv.JobKeyFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(jobenv.JobKey, c.env)
			t.Setenv(jobenv.JobKeyFile, c.file)
			got, err := jobkey.LoadFrom(os.Getenv)
			if c.kind == nil {
				if err != nil || !got.Equal(k) {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || got.Valid() {
				t.Fatalf("%v; want %v that says %q", err, c.kind, c.says)
			}
			for i := 0; i+8 <= len(text); i++ {
				if strings.Contains(err.Error(), text[i:i+8]) {
					t.Fatalf("%q shows the key", err)
				}
			}
		})
	}
}

// TestSeed: a seed is its key's and its purpose's, and says nothing of either.
func TestSeed(t *testing.T) {
	k, other := jobkey.New(), jobkey.New()
	s := k.Seed("a")
	if s != k.Seed("a") {
		t.Error("a seed changes")
	}
	if s == k.Seed("b") || s == other.Seed("a") || hex.EncodeToString(s[:]) == k.Reveal() {
		t.Error("two purposes have the same seed")
	}
}

// TestKeyFileIsNamed: the error names the file, unless that may be the key.
func TestKeyFileIsNamed(t *testing.T) {
	key := jobkey.New().Reveal()
	for file, named := range map[string]bool{
		"/no/such/job.key": true, "job.key\n": true, key: false, key[:40]: false, "/tmp/" + key[1:]: false, "/deadbeef/0123456789": true,
	} {
		_, err := jobkey.LoadFrom(func(k string) string { return map[string]string{jobenv.JobKeyFile: file}[k] })
		if err == nil || strings.Contains(err.Error(), fmt.Sprintf("%q", file)) != named || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// Ranks load the key from the file that they inherit, and cannot change it.
func TestFile(t *testing.T) {
	key := jobkey.New()
	f, err := key.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	t.Setenv(jobenv.JobKey, "")
	for range 2 { // each reader starts at the beginning
		t.Setenv(jobenv.JobKeyFile, name)
		got, err := jobkey.LoadFrom(os.Getenv)
		if err != nil || !got.Equal(key) {
			t.Fatalf("loading the key: %v", err)
		}
	}
	if fi, err := f.Stat(); err != nil || fi.Mode().Perm() != 0o400 {
		t.Errorf("the file's mode is %v, %v", fi.Mode(), err)
	}
	if _, err := f.WriteAt([]byte("0"), 0); err == nil {
		t.Error("the file that ranks inherit can be written to")
	}
	if os.Getuid() != 0 {
		if w, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
			w.Close()
			t.Error("the file can be opened for writing")
		}
	}
}
