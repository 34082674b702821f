package env

import (
	"errors"
	flags "flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
)

// names finds names of variables; a prefix alone is none.
var names = regexp.MustCompile(`\bARGON_[A-Z0-9_]*[A-Z0-9]`)

// madeUp are names that tests use because they are no variables.
var madeUp = []string{"ARGON_SEGMNET", "ARGON_DEADTIMES", "ARGON_XYZZY", "ARGON_SERVICE_HOST", "ARGON_PORT"}

func root(path ...string) string {
	return filepath.Join(append([]string{"..", "..", ".."}, path...)...)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(root(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTree: every name of a variable in sources and documents is in the list, and
// the packages that are to read a variable have its name or a constant for it.
func TestTree(t *testing.T) {
	sources := map[string]string{} // by package, without tests
	constants := map[string][]string{}
	agreed := map[string]string{} // constants of internal/job/jobenv
	constant := regexp.MustCompile(`(\w+)\s*=\s*"(ARGON_\w+)"`)
	files := 0
	err := filepath.WalkDir(root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root(), path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "shared" {
				return filepath.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(rel)
		dir := filepath.ToSlash(filepath.Dir(rel))
		if !d.Type().IsRegular() || dir == "internal/job/env" || ext != ".go" && ext != ".md" && ext != ".sh" && dir != ".ci" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, name := range names.FindAllString(string(b), -1) {
			if find(name) == nil && !(slices.Contains(madeUp, name) && (strings.HasSuffix(rel, "_test.go") || ext == ".md")) {
				t.Errorf("%s: %s is not in the list; variables of tests begin with ARGONTEST_", rel, name)
			}
		}
		if ext == ".go" && !strings.HasSuffix(rel, "_test.go") {
			if rel != "internal/job/jobenv/names.go" {
				sources[dir] += string(b)
			}
			for _, m := range constant.FindAllStringSubmatch(string(b), -1) {
				if dir == "internal/job/jobenv" {
					agreed[m[2]] = m[1]
				} else {
					constants[m[2]] = append(constants[m[2]], m[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
	for _, v := range Vars {
		if v.Meaning == "" || v.Readers == "" {
			t.Errorf("%s: no meaning, or nobody reads it: %+v", v.Name, v)
		}
		for _, r := range strings.Fields(v.Readers) {
			known := append(constants[v.Name], `\x00`)
			if c, ok := agreed[v.Name]; ok && r == "internal/job/jobenv" {
				known = append(known, c)
			} else if ok {
				known = append(known, `jobenv\.`+c)
			}
			reads := regexp.MustCompile(`"` + v.Name + `"|\b(` + strings.Join(known, "|") + `)\b`)
			if !reads.MatchString(sources[r]) {
				t.Errorf("%s is read by %s, but no source there has it", v.Name, r)
			}
		}
	}
}

// TestUnique: a name is there once, and well formed.
func TestUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Vars {
		if seen[v.Name] || names.FindString(v.Name) != v.Name {
			t.Errorf("%s is there twice, or is no name", v.Name)
		}
		seen[v.Name] = true
		for _, u := range v.Uses {
			dir, _, _ := strings.Cut(u, "-") // hybrid-ofi is one of package hybrid's
			if fi, err := os.Stat(root("conduits", dir)); err != nil || !fi.IsDir() {
				t.Errorf("%s is used by conduit %s: %v", v.Name, u, err)
			}
		}
		if v.Strict && v.Uses == nil {
			t.Errorf("%s is strict, but all conduits use it", v.Name)
		}
	}
}

// write has TestKnobsPage write what it otherwise compares.
var write = flags.Bool("write", false, "write docs/knobs.md and the table of gas/doc.go instead of comparing them")

// table is the part of docs/knobs.md that comes from the list.
func table() string {
	var b strings.Builder
	own := func(v *Var) (used, read string) {
		if used = "all"; v.Uses != nil {
			used = strings.Join(v.Uses, ", ")
		}
		return used, strings.Join(strings.Fields(v.Readers), ", ")
	}
	for i := range Vars {
		v := &Vars[i]
		if v.For != Users {
			continue
		}
		if v.Group != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| variable | what it does | values | default | also | conduits | read by |\n| --- | --- | --- | --- | --- | --- | --- |\n", v.Group)
		}
		used, read := own(v)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", v.Name, v.Text, v.Range, v.Default, v.Also, used, read)
	}
	b.WriteString("\n## Set by gasrun, its deputies and tests\n\n| variable | what it is | conduits | read by |\n| --- | --- | --- | --- |\n")
	for i := range Vars {
		if v := &Vars[i]; v.For == Internal {
			used, read := own(v)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.Name, v.Meaning, used, read)
		}
	}
	return b.String()
}

// listing is the table of package gas's documentation: the variables for users
// that it reads itself, or has package boot read.
func listing() string {
	// What says where a process is in a job is docs/knobs.md's subject.
	elsewhere := []string{"ARGON_RANK", "ARGON_JOBID", "ARGON_JOB_KEY_FILE"}
	var b strings.Builder
	for _, v := range Vars {
		readers := strings.Fields(v.Readers)
		if v.For != Users || !slices.Contains(readers, "gas") && !slices.Contains(readers, "conduits/boot") || slices.Contains(elsewhere, v.Name) {
			continue
		}
		also := ""
		if v.Also != "" {
			also = ": " + strings.ReplaceAll(v.Also, "`", "")
		}
		if v.Range == "0 or 1" {
			also = ", 0 or 1" + also
		}
		fmt.Fprintf(&b, "//\t%-19s  %s%s\n", v.Name, v.Meaning, also)
	}
	return b.String()
}

// TestKnobsPage compares docs/knobs.md, and the table of package gas's
// documentation, with the list, or with -write makes them so.
func TestKnobsPage(t *testing.T) {
	for _, page := range []struct{ file, from, to, want string }{
		{"docs/knobs.md", "<!-- variables: written by go test ./internal/job/env -run TestKnobsPage -write -->\n", "\n<!-- end -->", table()},
		{"gas/doc.go", "// # Environment\n//\n", "//\n// docs/knobs.md", listing()},
	} {
		text := read(t, filepath.FromSlash(page.file))
		i := strings.Index(text, page.from)
		if i < 0 {
			t.Errorf("%s has no line %q", page.file, page.from)
			continue
		}
		i += len(page.from)
		n := strings.Index(text[i:], page.to)
		if n < 0 {
			t.Errorf("%s: nothing ends the list with %q", page.file, page.to)
			continue
		}
		if text[i:i+n] == page.want {
			continue
		}
		if !*write {
			t.Errorf("%s does not have what the list says; go test ./internal/job/env -run TestKnobsPage -write makes it:\n%s", page.file, page.want)
			continue
		}
		if err := os.WriteFile(root(filepath.FromSlash(page.file)), []byte(text[:i]+page.want+text[i+n:]), 0o666); err != nil {
			t.Error(err)
		}
	}
}

// TestComplete: a variable for users says what there is to say, in one line of a
// table, and names flags and fields that exist.
func TestComplete(t *testing.T) {
	program, config := read(t, "launch", "main.go")+read(t, "launch", "simulate.go")+read(t, "launch", "traffic.go"), read(t, "gas", "config.go")
	for _, v := range Vars {
		for _, s := range []string{v.Meaning, v.Text, v.Range, v.Default, v.Also} {
			if strings.ContainsAny(s, "|\n") {
				t.Errorf("%s: %q is no cell of a table", v.Name, s)
			}
		}
		if v.For == Internal {
			continue
		}
		if v.Text == "" || v.Range == "" {
			t.Errorf("%s: nothing says what it does or which values it can have", v.Name)
		}
		if strings.HasPrefix(v.Text, "1: ") != (strings.HasPrefix(v.Range, "0 or 1") && !strings.HasPrefix(v.Text, "0: ")) {
			t.Errorf("%s: %q, but its values are %s", v.Name, v.Text, v.Range)
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(v.Also, -1) {
			name, isFlag := strings.CutPrefix(strings.Fields(m[1])[0], "-")
			field, isField := strings.CutPrefix(name, "Config.")
			switch {
			case isField && !regexp.MustCompile(`(?m)^\t`+field+` `).MatchString(config):
				t.Errorf("%s: gas.%s does not exist", v.Name, name)
			case isFlag && !strings.Contains(program, `"`+name+`"`):
				t.Errorf("%s: gasrun has no flag -%s", v.Name, name)
			case !isField && !isFlag:
				t.Errorf("%s: %s is neither a field nor a flag", v.Name, m[1])
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		environ string // separated by spaces
		conduit string
		given   bool
		want    []string // what the lines say, in order; none if it is empty
	}{
		{environ: "HOME=/ ARGON_SEGMENT=1M ARGONTEST_ANY=1 ARGONIA=1 ARGON=1", conduit: "shm"},
		{"ARGON_SEGMNET=1M", "shm", false, []string{"who: ARGON_SEGMNET is no variable of argon; did you mean ARGON_SEGMENT?"}},
		{"ARGON_SEGMNET=1M", "", true, []string{"who: ARGON_SEGMNET is no variable of argon; did you mean ARGON_SEGMENT? (-x)"}},
		{"ARGON_SEGMNET=", "shm", false, []string{"did you mean ARGON_SEGMENT?"}},
		{"ARGON_segment=1", "shm", false, []string{"did you mean ARGON_SEGMENT?"}},
		{"argon_segment=1", "shm", false, []string{"argon_segment is no variable of argon; did you mean ARGON_SEGMENT?"}},
		{"ARGON_SEGMENT_OF_A_RANK=1G", "shm", false, []string{"did you mean ARGON_SEGMENT?"}},
		{"ARGON_SERVICE_HOSTS=1 ARGON_AUTHS=none", "shm", false, []string{"did you mean ARGON_AUTH?"}},
		{environ: "ARGON_XYZZY=1 ARGON_=1 ARGON_SEGFC=1 argon_xyzzy=1 ARGON_A\x1b[2J\nB=1", conduit: "shm"}, // not argon's
		{"ARGON_XYZZY=1", "shm", true, []string{"ARGON_XYZZY is no variable of argon; docs/knobs.md lists them (-x)"}},
		{"ARGON_=1", "shm", true, []string{"ARGON_ is no variable"}},
		{"ARGON_SEGFC=1", "shm", true, []string{"ARGON_SEGFC is no variable of argon; docs/knobs.md"}}, // no internal name is proposed
		{"ARGON_A\x1b[2J\nB=1", "shm", true, []string{`ARGON_A\x1b[2J\nB is no variable`}},
		{"ARGON_IFCAE=1 ARGON_DATAGRAMS=9 ARGON_AUHT=none", "udp", false, []string{"ARGON_IFACE?", "ARGON_DATAGRAM?", "ARGON_AUTH?"}},
		{"ARGON_VERBOSEENV=yes", "shm", false, []string{`who: ARGON_VERBOSEENV="yes" is not 0 or 1`}},
		{"ARGON_SHM_PROCESS_VM=no", "shm", false, []string{`ARGON_SHM_PROCESS_VM="no" is not 0 or 1`}},
		{"ARGON_FREEZE=2", "", false, []string{`ARGON_FREEZE="2" is not 0 or 1`}},
		{environ: "ARGON_VERBOSEENV=1 ARGON_SHM_PROCESS_VM=0 ARGON_FREEZE=", conduit: "shm"},
		{"ARGON_SIM=seed=3", "shm", false, []string{`who: ARGON_SIM="seed=3" is not used by conduit shm, but by sim (-conduit, ARGON_CONDUIT)`}},
		{"ARGON_SIM_TRACE=t ARGON_SIM_KEEP=r ARGON_SIM_AGAIN=p", "udp", false, []string{"ARGON_SIM_TRACE", "ARGON_SIM_KEEP", "ARGON_SIM_AGAIN"}},
		{environ: "ARGON_SIM=seed=3 ARGON_SIM_TRACE=t", conduit: "sim", given: true},
		{environ: "ARGON_SIM= ARGON_SIM_TRACE=", conduit: "shm", given: true},
		{environ: "ARGON_SIM=seed=3", conduit: ""},
		{environ: "ARGON_SIM=seed=3", conduit: "elsewhere", given: true},
		// Of a site, for jobs on other conduits; on a command line for none.
		{environ: "ARGON_IFACE=lo ARGON_AUTH=none ARGON_DATAGRAM=9000 ARGON_DEADTIME=1m", conduit: "shm"},
		{environ: "ARGON_IFACE=lo ARGON_AUTH=none ARGON_DATAGRAM=9000 ARGON_DEADTIME=1m", conduit: "hybrid", given: true},
		{"ARGON_AUTH=none ARGON_DATAGRAM=9000", "shm", true, []string{
			`ARGON_AUTH="none" is not used by conduit shm, but by udp and hybrid (-conduit, ARGON_CONDUIT) (-x)`, "ARGON_DATAGRAM",
		}},
		{"ARGON_SHM_DIR=/dev/shm", "udp", true, []string{"but by shm and hybrid"}},
		{"ARGON_JOB_KEY=0123456789", "shm", true, []string{`ARGON_JOB_KEY="(secret)"`}},
	} {
		knob := ""
		if c.given {
			knob = "-x"
		}
		err := Check(strings.Split(c.environ, " "), c.conduit, c.given, "who", knob)
		if len(c.want) == 0 {
			if err != nil {
				t.Errorf("%q, conduit %q: %v", c.environ, c.conduit, err)
			}
			continue
		}
		if !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("%q, conduit %q: %v", c.environ, c.conduit, err)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%q, conduit %q: %q, want %d lines", c.environ, c.conduit, lines, len(c.want))
			continue
		}
		for i, l := range lines {
			if !strings.Contains(l, c.want[i]) {
				t.Errorf("%q, conduit %q: %q, want %q in it", c.environ, c.conduit, l, c.want[i])
			}
		}
	}
}

// links are what Kubernetes sets for services called argon, argon-foo and argon-rank, IPv4
// and IPv6, with and without names of ports, and Docker for links.
const links = `ARGON_SERVICE_HOST=10.0.0.11 ARGON_SERVICE_PORT=6379 ARGON_SERVICE_PORT_HTTP=6379 ARGON_PORT=tcp://10.0.0.11:6379
ARGON_PORT_6379_TCP=tcp://10.0.0.11:6379 ARGON_PORT_6379_TCP_PROTO=tcp ARGON_PORT_6379_TCP_PORT=6379 ARGON_PORT_6379_TCP_ADDR=10.0.0.11
ARGON_FOO_SERVICE_HOST=fd00::1 ARGON_FOO_SERVICE_PORT=80 ARGON_FOO_SERVICE_PORT_WEB_2=80 ARGON_FOO_PORT=udp://[fd00::1]:80
ARGON_FOO_PORT_80_UDP=udp://[fd00::1]:80 ARGON_FOO_PORT_80_UDP_PROTO=udp ARGON_FOO_PORT_80_UDP_PORT=80 ARGON_FOO_PORT_80_UDP_ADDR=fd00::1
ARGON_RANK_SERVICE_HOST=10.0.0.1 ARGON_RANK_SERVICE_PORT=1 ARGON_RANK_PORT=sctp://10.0.0.1:1 ARGON_RANK_PORT_1_SCTP=sctp://10.0.0.1:1
ARGON_RANK_PORT_1_SCTP_PROTO=sctp ARGON_RANK_PORT_1_SCTP_PORT=1 ARGON_RANK_PORT_1_SCTP_ADDR=10.0.0.1 ARGON_SIM_PORT=tcp://10.0.0.1:1`

// TestServiceLinks: what container runtimes set is no error on any conduit and from any
// source, is told of by Foreign, and has the name of no variable of argon.
func TestServiceLinks(t *testing.T) {
	environ := strings.Fields(links)
	for _, conduit := range []string{"", "shm", "hybrid", "sim"} {
		for _, given := range []bool{false, true} {
			if err := errors.Join(Check(environ, conduit, given, "who", ""), CheckValues(environ, true, "who", "")); err != nil {
				t.Error(err)
			}
		}
	}
	if told := Foreign(append(environ, "ARGON_LANES=1", "ARGON_XYZZY=1", "ARGON_LANSE=1")); len(told) != len(environ)+1 {
		t.Errorf("%q for %d variables", told, len(environ)+1)
	}
	for _, v := range Vars {
		for _, value := range []string{"10.0.0.11", "6379", "tcp", "tcp://10.0.0.11:6379"} {
			if serviceLink(v.Name, value) {
				t.Errorf("a service could set %s=%s", v.Name, value)
			}
		}
	}
	// A value does not make a link of a near miss, nor a name alone.
	for _, kv := range []string{"ARGON_RANK_PORT=7", "ARGON_SEGMENT_SERVICE_PORT=big", "ARGON_SIM_SERVICE_HOST=a b"} {
		if err := Check([]string{kv}, "shm", false, "who", ""); err == nil {
			t.Errorf("%s is no link and nearly a variable: no error", kv)
		}
	}
	err := CheckValues([]string{"ARGON_RENDEZVOUS=tcp://10.0.0.11:6379"}, false, "who", "")
	if err == nil || !strings.Contains(err.Error(), "service link") || !strings.Contains(err.Error(), "enableServiceLinks") {
		t.Errorf("a link as the value of a variable: %v", err)
	}
}

// TestValues feeds every variable values that are junk for most: each is refused with name,
// value and what is allowed, unless the list here says that it means something.
func TestValues(t *testing.T) {
	junk := map[string]string{
		"space": " ", "line end": "a\nb", "escape": "\x1b[2J", "zero": "a\x00b", "huge": strings.Repeat("9", 30), "negative": "-1",
		"unit": "5parsecs", "missing": "/nonexistent/argon", "word": "word", "none": "0", "one": "1", "ten": "10", "time": "10s",
		"size": "64M", "address": "h:80", "key": strings.Repeat("0a", 32), "plus": "+1", "long": strings.Repeat("x", 5000),
	}
	texts := "huge negative unit missing word none one ten time size address key plus"
	names := texts + " long"
	counts, flags := "one ten", "none one"
	means := map[string]string{
		"RANKS": counts, "CONDUIT": names, "LANES": counts, "PROGRESS": flags, "WORKERS": counts, "SEGMENT": "one ten size",
		"SEGMENT_LARGE": flags, "PINNABLE": "one ten size", "PIN_LOCAL": "one ten size", "PIN_BUCKET": "size", "PIN_LOCK": flags, "PIN_HOST": "one ten size", "PIN_LEAST": "one ten size",
		"SHM_PROCESS_VM": flags, "IFACE": "negative unit word none one ten time size plus", "DEADTIME": "time", "PROVIDER": names, "PROVIDER_FORCE": flags, "RENDEZVOUS": "address",
		"RENDEZVOUS_SERVE": flags, "JOIN_TIMEOUT": "time", "RANK": "none one ten", "SIZE": counts, "JOBID": names, "JOB_KEY": "key",
		"JOB_KEY_FILE": texts, "SIM_AGAIN": texts, "RECORD": texts, "TRACE": texts, "TRACE_LAST": "time", "HOST": names, "ALONE": flags, "DEBUG": flags, "FREEZE": flags, "VERBOSEENV": flags, "SIM_TRACE": texts, "SIM_KEEP": texts,
		"LOCAL_RANK": "none one ten", "LOCAL_SIZE": counts, "SEGFD": "none one ten", "CTLFD": "none one ten", "HYBRID_HOST": counts,
		"SHARERS": counts, "VIEWED": flags, "STALL": "none time", "PROFILE": flags,
		"SIM_STATUS": "none one ten",
	}
	for _, v := range Vars {
		if v.Name == "ARGON_SIM" { // its reader refuses junk, and Strict makes it an error elsewhere
			continue
		}
		if err := CheckValues([]string{v.Name + "="}, true, "who", ""); err != nil {
			t.Errorf("%s is empty: %v", v.Name, err)
		}
		good := strings.Fields(means[strings.TrimPrefix(v.Name, Prefix)])
		for what, value := range junk {
			environ := []string{v.Name + "=" + value}
			err := errors.Join(Check(environ, "", false, "who", "-x"), CheckValues(environ, true, "who", "-x"))
			switch {
			case (err == nil) != slices.Contains(good, what):
				t.Errorf("%s, %s: %v; it means something with %q", v.Name, what, err, good)
			case err == nil:
			case !errors.Is(err, errs.ErrBadArg) || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), v.Name+"="):
				t.Errorf("%s, %s: %q", v.Name, what, err)
			case v.Values == nil && !strings.Contains(err.Error(), "allowed: "+v.allowed()):
				t.Errorf("%s, %s: %q does not say what is allowed", v.Name, what, err)
			}
		}
	}
	dir := t.TempDir()
	if err := CheckValues([]string{"ARGON_SHM_DIR=" + dir}, true, "who", ""); err != nil {
		t.Error(err)
	}
	if err := CheckValues([]string{"ARGON_SHM_DIR=/nonexistent"}, false, "who", ""); err != nil {
		t.Errorf("a directory of another host: %v", err)
	}
}

// TestSecret: no form of complaint has the key.
func TestSecret(t *testing.T) {
	const key = "0123456789abcdef"
	for _, given := range []bool{false, true} {
		environ := []string{"ARGON_JOB_KEY=" + key}
		for _, err := range []error{Check(environ, "shm", given, "who", ""), CheckValues(environ, true, "who", "")} {
			if err != nil && strings.Contains(err.Error(), key) {
				t.Error(err)
			}
		}
	}
}
