//go:build ofi && cgo

package ofi_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/ofi"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// meddler builds testdata/meddle.c.
func meddler(t *testing.T) (path string) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	path = filepath.Join(t.TempDir(), "meddle.so")
	args := append([]string{"-shared", "-fPIC", "-o", path}, strings.Fields(os.Getenv("CGO_CFLAGS"))...)
	args = append(args, filepath.Join("testdata", "meddle.c"), "-ldl")
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Skipf("%s: %v: %s", cc, err, out)
	}
	return path
}

// quiet is a Receiver that does nothing.
type quiet struct{}

func (quiet) Receive(*conduits.Message)                      {}
func (quiet) Complete(uint64, conduits.Event, uint64, error) {}

// open opens two ranks that have sent each other a message.
func open() (leave func()) {
	eps, err := ofi.Local(2, conduits.Config{})
	testjob.Check(err)
	attached := make(chan error)
	for _, e := range eps {
		go func() { attached <- e.Attach(conduits.AttachConfig{Size: 1 << 16, Receiver: quiet{}}) }()
	}
	for range eps {
		testjob.Check(<-attached)
	}
	heard := func() (n uint64) {
		for _, e := range eps {
			e.Poll()
			var s conduits.Stats
			e.Stats(&s)
			n += s.Received[conduits.Request]
		}
		return n
	}
	for i, e := range eps {
		if st := e.Send(1-i, conduits.Request, 0, []uint32{1}); st != conduits.Ready {
			testjob.Fatal("status %d", st)
		}
	}
	for heard() < 2 {
	}
	return func() {
		for _, e := range eps {
			testjob.Check(e.Close())
		}
	}
}

// own checks that signals are Go's, and that programs inherit nothing, after ranks have
// been opened.
func own() {
	ch, before := make(chan os.Signal, 1), sys.Descriptors()
	signal.Notify(ch, syscall.SIGTERM)
	leave := open()
	func() {
		defer func() {
			if e, ok := recover().(error); !ok || !strings.Contains(e.Error(), "nil pointer") {
				testjob.Fatal("a nil dereference is %v", e)
			}
		}()
		var p *[4]int
		fmt.Println(p[len(os.Args)&3])
	}()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1} {
		signal.Notify(ch, s) // which does not install a handler for what is caught already
		testjob.Check(syscall.Kill(os.Getpid(), s))
		if got := <-ch; got != s {
			testjob.Fatal("%v came as %v", s, got)
		}
	}
	for _, fd := range sys.Descriptors() {
		if sys.Inherited(fd) && !slices.Contains(before, fd) {
			to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			testjob.Fatal("programs inherit descriptor %d, %s", fd, to)
		}
	}
	leave()
	fmt.Println("fine")
}

// TestOwn: whatever a provider does to signals and descriptors while it is opened, nil
// dereferences are panics, signals are told, and programs inherit no descriptor.
func TestOwn(t *testing.T) {
	preload := meddler(t)
	for _, where := range []string{"nowhere", "fi_getinfo", "fi_fabric", "fi_domain", "endpoint"} {
		c := testjob.Command(t, "own", "MEDDLE="+where, "LD_PRELOAD="+preload)
		out, err := c.CombinedOutput()
		put := strings.Contains(string(out), "they are put back")
		if err != nil || !strings.HasSuffix(string(out), "fine\n") || put != (where != "nowhere") {
			t.Errorf("handlers of %s: %v: %s", where, err, out)
		}
	}
}

// end is ended by a signal.
func end() {
	open()
	testjob.Check(syscall.Kill(os.Getpid(), syscall.SIGTERM))
	select {}
}

// TestEnd: a process that a signal ends is known to have been ended by it, and leaves no
// file, whatever handlers libraries have installed before Go's runtime began.
func TestEnd(t *testing.T) {
	c := testjob.Command(t, "end")
	c.Dir = t.TempDir()
	err := c.Run()
	var e *exec.ExitError
	if !errors.As(err, &e) || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v", err)
	}
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
}
