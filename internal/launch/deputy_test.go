package launch

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/testkit/testmain"
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
	gone := fmt.Sprintf("127.0.0.1:%d", testmain.Port(t))
	d := &deputy{}
	wrong := []string{rude.Addr().String(), other.Addr().String(), gone}
	d.task.Servers = append(wrong, ours.Addr().String())
	if s, err := d.reach(key); err != nil || s != ours.Addr().String() {
		t.Errorf("reaches %s, %v", s, err)
	}
	if n := ours.Strangers(); n != 0 {
		t.Errorf("%d strangers", n)
	}
	d.task.Servers = wrong
	_, err := d.reach(key)
	for _, want := range append(wrong, "not the job's rendezvous", "another job key", "connection refused", "-iface") {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
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
	d := &deputy{temp: dir, link: newLink(w), crew: &crew{}}
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

// master is the launcher's side of a deputy that runs in this process, in which no other
// process may be started meanwhile: the deputy ends all of its children.
type master struct {
	t      *testing.T
	link   *link
	frames chan frame
	status chan int
	task   task
}

func newMaster(t *testing.T) *master {
	t.Helper()
	t.Setenv(EnvDeputy, "1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := jobkey.New()
	server, err := rendezvous.Serve(l, rendezvous.ServerConfig{Key: key, Size: 3, Patience: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	m := &master{t: t, link: newLink(inW), frames: make(chan frame, 100), status: make(chan int, 1)}
	go func() { m.status <- Deputy(inR, outW) }()
	go func() {
		defer close(m.frames)
		for r := bufio.NewReader(outR); ; {
			f, err := readFrame(r)
			if err != nil {
				return
			}
			m.frames <- f
		}
	}()
	t.Cleanup(m.link.close)
	m.task = task{
		ID: fmt.Sprintf("%d.master.%s", os.Getpid(), t.Name()), Host: "0.here", Conduit: "hybrid", Program: "p", Path: "/bin/sh", Dir: "/",
		Key: key.Reveal(), Temp: t.TempDir(), Servers: []string{l.Addr().String()}, Size: 3, First: 1, Count: 2, Segment: 1 << 20, Shared: true,
		Env: []string{"ARGON_DEADTIME=1h"}, // no test depends on signs of life
	}
	return m
}

// begin tells the deputy its task.
func (m *master) begin() {
	m.t.Helper()
	m.expect(frameHello)
	m.link.send(frameJob, nil, m.task.encode())
}

// expect waits for a frame of that kind and returns it and what came before, of any kind.
func (m *master) expect(kind frameKind) (f frame, before []frame) {
	m.t.Helper()
	for f := range m.frames {
		if f.kind == kind {
			return f, before
		}
		before = append(before, f)
	}
	m.t.Fatalf("the deputy ended with %+v, without %q", before, kind)
	return f, nil
}

// ends ends the job and checks the deputy's status, and that its directory is empty.
func (m *master) ends(status int) {
	m.t.Helper()
	for range m.frames {
	}
	if got := <-m.status; got != status {
		m.t.Errorf("the deputy's status is %d, want %d", got, status)
	}
	if left, err := os.ReadDir(m.task.Temp); len(left) > 0 || err != nil {
		m.t.Errorf("%v is left: %v", left, err)
	}
}

// TestDeputy is a job's life as one of its deputies sees it: the program is sent, ranks
// read, write, are looked at, stopped and signalled, and end.
func TestDeputy(t *testing.T) {
	m := newMaster(t)
	m.task.First, m.task.Stdin, m.task.Bind = 0, true, BindCore
	program := []byte("#!/bin/sh\n[ $ARGON_RANK = 0 ] && read x && echo got $x && exit 3; trap 'exit 4' USR1; echo wait >&2; while :; do sleep 0.01; done\n")
	m.task.Path = "/surely/not/there/prog"
	m.task.Digest = fmt.Sprintf("%x", sha256.Sum256(program))
	m.task.Dir = "/surely/not/there"
	m.begin()
	m.expect(frameWant)
	m.link.send(frameAlive, nil)
	m.link.send(frameProgram, nil, program[:20])
	m.link.send(frameProgram, nil, program[20:])
	m.link.send(frameProgram, nil, nil)
	f, _ := m.expect(frameReady)
	if len(f.texts) != 2 || string(f.texts[0]) != m.task.Servers[0] || !strings.Contains(string(f.texts[1]), "there is no directory /surely/not/there") {
		t.Errorf("ready with %q", f.texts)
	}
	m.link.send(frameGo, nil)
	_, started := m.expect(frameRunning)
	// What rank 1 writes may come before the ranks are said to run.
	waits := func(f frame) bool {
		return f.kind == frameOutput && f.num(0) == 1 && f.num(1) == 1 && f.text() == "wait\n"
	}
	written := slices.ContainsFunc(started, waits)
	started = slices.DeleteFunc(started, func(f frame) bool { return f.kind != frameStarted })
	if len(started) != 2 || started[1].num(0) != 1 || !strings.HasPrefix(started[1].text(), ", processors ") {
		t.Errorf("started with %+v", started)
	}
	for !written {
		f, _ := m.expect(frameOutput)
		written = waits(f)
	}
	m.link.send(frameSuspend, nil)
	m.link.send(frameResume, nil)
	m.link.send(frameLook, []int64{1, 0, 1, 7})
	if f, _ := m.expect(frameSeen); len(f.nums) < 4 || f.num(0) > 1 {
		t.Errorf("seen %v", f.nums)
	}
	m.link.send(frameInput, nil, []byte("5\n"))
	m.link.send(frameInput, nil, nil)
	if f, before := m.expect(frameEndings); !f.has(6, 1) || f.num(0) != 0 || f.num(1) != 3 || f.text() != "exited with status 3" {
		t.Errorf("ended with %+v after %+v", f, before)
	}
	m.link.send(frameFail, []int64{0, 3}, []byte("exited with status 3"))
	m.link.send(frameCredit, []int64{1, 1, 5})
	m.link.send(frameSignal, []int64{int64(syscall.SIGUSR1), 0, 1})
	if f, _ := m.expect(frameEndings); f.num(0) != 1 || f.num(1) != 4 {
		t.Errorf("ended with %+v", f)
	}
	m.link.send(frameEnd, nil)
	f, before := m.expect(frameBye)
	ends := 0
	for _, f := range before {
		if f.kind == frameOutEnd {
			ends++
		}
	}
	if len(f.nums) != 1 || ends > 4 {
		t.Errorf("bye %v after %d ends of output", f.nums, ends)
	}
	m.ends(0)
}

// TestDeputyRefuses: what a deputy cannot do it says, and starts nothing.
func TestDeputyRefuses(t *testing.T) {
	text := []byte("#!/bin/sh\n")
	for _, tc := range []struct {
		name   string
		change func(m *master)
		send   [][]byte
		want   string
	}{
		{"directory", func(m *master) { m.task.Dir, m.task.DirGiven = "/surely/not/there", true }, nil, "working directory (-wdir): stat /surely/not/there: no such file or directory"},
		{"no directory", func(m *master) { m.task.Dir, m.task.DirGiven = "/dev/null", true }, nil, "working directory (-wdir): /dev/null is not a directory"},
		{"changed program", func(m *master) { m.task.Digest = "00" }, [][]byte{text, nil}, "the program has changed while it was sent"},
		{"key", func(m *master) { m.task.Key = "odd" }, nil, "key"},
		{"rendezvous", func(m *master) { m.task.Servers = []string{"127.0.0.1:1"} }, nil, "the launcher's rendezvous cannot be reached from here: 127.0.0.1:1: "},
		{"conduit", func(m *master) { m.task.Conduit = "pigeon" }, nil, `gasrun on this host was built without conduit "pigeon"`},
		{"room", func(m *master) { m.task.Temp, m.task.Digest = "/surely/not/there", "00" }, nil, "no room for the program: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMaster(t)
			temp := m.task.Temp
			tc.change(m)
			m.begin()
			for _, b := range tc.send {
				m.link.send(frameProgram, nil, b)
			}
			f, _ := m.expect(frameRefuse)
			if !strings.Contains(f.text(), tc.want) {
				t.Errorf("it says %q, want %q", f.text(), tc.want)
			}
			m.link.send(frameEnd, nil)
			m.task.Temp = temp
			m.ends(jobenv.StatusFailed)
		})
	}
	t.Run("program", func(t *testing.T) {
		m := newMaster(t)
		m.task.Path = "/dev/null"
		m.begin()
		m.expect(frameReady)
		m.link.send(frameGo, nil)
		if f, _ := m.expect(frameRefuse); !strings.Contains(f.text(), "/dev/null") {
			t.Errorf("it says %q", f.text())
		}
		m.link.send(frameEnd, nil)
		m.ends(jobenv.StatusFailed)
	})
}

// TestDeputyAlone: a deputy whose launcher is gone or talks nonsense ends its ranks.
func TestDeputyAlone(t *testing.T) {
	for name, happens := range map[string]func(m *master){
		"gone":     func(m *master) { m.link.close() },
		"nonsense": func(m *master) { m.link.send(frameSignal, []int64{0, 0}) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			m.task.Args, m.task.Env = []string{"-c", "trap '' TERM; sleep 10000"}, []string{"ARGON_DEADTIME=10ms"}
			m.begin()
			m.expect(frameReady)
			m.link.send(frameGo, nil)
			_, started := m.expect(frameRunning)
			happens(m)
			m.ends(jobenv.StatusFailed)
			for _, f := range started {
				if f.kind != frameStarted {
					continue
				}
				if p, ok := readProcess(f.num(1)); ok && p.state != 'Z' {
					t.Errorf("rank's process %d is %s", p.pid, p.describe())
				}
			}
		})
	}
}
