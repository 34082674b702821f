package launch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/jobenv"
	"github.com/argon-go/argon/internal/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
)

// A program is run from where it is only if no other user can exchange it.
func TestTrusted(t *testing.T) {
	root := t.TempDir()
	file := func(dirs []os.FileMode, mode os.FileMode) string {
		path := root
		root, _ = os.MkdirTemp(root, "x")
		path = root
		for _, m := range dirs {
			path = filepath.Join(path, "d")
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := os.Chmod(path, m); err != nil {
					t.Fatal(err)
				}
			}()
		}
		path = filepath.Join(path, "f")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file([]os.FileMode{0o755}, 0o755)
	link := filepath.Join(filepath.Dir(plain), "link")
	if err := os.Symlink(plain, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, path string
		want       bool
	}{
		{"plain", plain, true},
		{"by a link", link, true},
		{"not executable", file(nil, 0o644), false},
		{"writable by others", file(nil, 0o757), false},
		{"writable by a group", file(nil, 0o775), false},
		{"in an open directory", openDir(t, file([]os.FileMode{0o700}, 0o755), 0o777), false},
		{"in a sticky directory", openDir(t, file([]os.FileMode{0o700}, 0o755), os.ModeSticky|0o777), true},
		{"a directory", filepath.Dir(plain), false},
		{"missing", plain + "x", false},
		{"relative", "deputy_test.go", false},
	} {
		if got := trusted(tc.path); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if os.Getuid() == 0 {
		if err := os.Lchown(plain, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		if trusted(plain) {
			t.Error("a file of another user is trusted")
		}
	}
}

// openDir gives the directory of path another mode.
func openDir(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	if err := os.Chmod(filepath.Dir(path), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// The answer of a host's script is found among what its login prints.
func TestBootAnswer(t *testing.T) {
	im := &image{path: "/usr/bin/gasrun", digest: strings.Repeat("0", 64), size: 1}
	script := bootScript("gasrun-0123", im, "")
	if strings.Count(script, "'") != 2 || strings.ContainsAny(script, "\n!") {
		t.Errorf("a login shell may misread %q", script)
	}
	for _, path := range []string{"/a b", "/a'b", `/a"b`, "/$(a)", "/a`b`", "/a\nb", "/ä"} {
		im.path = path
		if s := bootScript("gasrun-0123", im, ""); !strings.Contains(s, `p="";`) {
			t.Errorf("path %q is in the script: %q", path, s)
		}
	}
	for line, want := range map[string]struct{ need, ok bool }{
		"gasrun-0123 have x86_64":        {false, true},
		"prompt> gasrun-0123 have mips":  {false, true},
		"gasrun-0123 want x86_64":        {},
		"gasrun-0123 have":               {},
		"gasrun-0123 have x86_64 really": {},
		"gasrun-0124 have x86_64":        {},
		"":                               {},
	} {
		if need, ok, err := bootAnswer(line, "gasrun-0123"); need != want.need || ok != want.ok || err != nil {
			t.Errorf("%q: %v, %v, %v; want %+v", line, need, ok, err, want)
		}
	}
	if _, ok, err := bootAnswer("gasrun-0123 need pdp11", "gasrun-0123"); !ok || err == nil || !strings.Contains(err.Error(), "pdp11") {
		t.Errorf("another machine: %v, %v", ok, err)
	}
}

// Of the addresses that a deputy is told, one where the job's rendezvous is counts,
// and looking for it makes no strangers there.
func TestReach(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	key := jobkey.New()
	serve := func(key jobkey.Key) *rendezvous.Server {
		s, err := rendezvous.Serve(listen(), rendezvous.ServerConfig{Key: key, Size: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	ours, other := serve(key), serve(jobkey.New())
	rude := listen()
	go func() {
		for {
			c, err := rude.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("220 mail\r\n"))
			c.Close()
		}
	}()
	gone := listen()
	gone.Close()
	d := &deputy{}
	wrong := []string{rude.Addr().String(), other.Addr().String(), gone.Addr().String()}
	d.task.servers = append(wrong, ours.Addr().String())
	if s, err := d.reach(key); err != nil || s != ours.Addr().String() {
		t.Errorf("reaches %s, %v", s, err)
	}
	if n := ours.Strangers(); n != 0 {
		t.Errorf("%d strangers", n)
	}
	d.task.servers = wrong
	_, err := d.reach(key)
	for _, want := range append(wrong, "not the job's rendezvous", "another job key", "connection refused", "-iface") {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// TestPersist: an address to which no host answers is asked again while there is time, and
// one that answers otherwise is not.
func TestPersist(t *testing.T) {
	away := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	for _, c := range []struct {
		name  string
		says  []error
		calls int
	}{
		{"answers later", []error{away, away, nil}, 3},
		{"refuses later", []error{away, syscall.ECONNREFUSED}, 2},
		{"no route", []error{syscall.ENETUNREACH}, 1},
	} {
		calls := 0
		err := persist(t.Context(), func() error { calls++; return c.says[calls-1] })
		if want := c.says[len(c.says)-1]; err != want || calls != c.calls {
			t.Errorf("%s: %v after %d calls, not %v after %d", c.name, err, calls, want, c.calls)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := persist(over, func() error { return away }); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("without time: %v", err)
	}
}

// A deputy that is told nonsense, or nothing, ends, and starts nothing.
func TestDeputyMisled(t *testing.T) {
	t.Setenv(EnvDeputy, "1")
	for name, said := range map[string][]byte{
		"nothing":   nil,
		"garbage":   []byte("GET / HTTP/1.0\r\n\r\n"),
		"no task":   (&frame{kind: frameGo}).append(nil),
		"half task": (&frame{kind: frameJob, nums: []int64{1, 2}}).append(nil),
		"just end":  (&frame{kind: frameEnd}).append(nil),
	} {
		r, w := io.Pipe()
		done := make(chan int)
		go func() { done <- Deputy(strings.NewReader(string(said)), w) }()
		in := bufio.NewReader(r)
		f, err := readFrame(in)
		if err != nil || f.kind != frameHello {
			t.Errorf("%s: it says %+v, %v, want hello", name, f, err)
		}
		if f, err := readFrame(in); err == nil {
			t.Errorf("%s: it says %+v", name, f)
		}
		if status := <-done; status != jobenv.StatusFailed && name != "just end" || name == "just end" && status != 0 {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

// TestByeIsLast: the directory of what was sent to a host is gone when the deputy says
// that it has cleaned up. A launcher ends without waiting for what comes after that.
func TestByeIsLast(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gasrun-x")
	if err := os.MkdirAll(filepath.Join(dir, "program"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	d := &deputy{temp: dir, link: newLink(w), crew: &localCrew{}}
	go d.cleanUp()
	f, err := readFrame(bufio.NewReader(r))
	if err != nil || f.kind != frameBye {
		t.Fatalf("it says %+v, %v, want bye", f, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("when it has said bye its directory is there: %v", err)
	}
	d.link.close()
	<-d.link.done
}
