package udp_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// flagVar names a file of eight bytes that the test and the ranks of its job map.
const flagVar = "ARGONTEST_FLAG"

// word is the one in that file.
func word(name string) (*uint64, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*uint64)(unsafe.Pointer(&b[0])), nil
}

// seize has rank 1's runtime wait to stop the world for a goroutine that cannot be
// preempted until the test sets the flag.
func seize() {
	e := joined()
	told, err := word(os.Getenv(flagVar))
	testjob.Check(err)
	switch e.Rank() {
	case 0:
		e.wait(func() bool { return e.messages == 1 })
		e.rma(1, segment.AttachBase+64, []byte("are you there?"))
		e.send(1)
	case 1:
		e.send(0)
		e.rma(0, segment.AttachBase+64, []byte("the message has arrived"))
		go func() {
			for {
				runtime.GC()
			}
		}()
		// One call of assembly, as a copy or a clear is.
		conc.Changed(told, 0, math.MaxInt)
		e.wait(func() bool { return e.messages == 1 })
	}
	testjob.Check(e.Close())
}

// TestSeized: a rank whose runtime lets no goroutine run for longer than the dead time,
// while its process runs, is told of and waited for.
func TestSeized(t *testing.T) {
	if runtime.GOARCH != "amd64" || conc.Race {
		t.Skip("package spin is no assembly here, and can be preempted")
	}
	name := filepath.Join(t.TempDir(), "flag")
	if err := os.WriteFile(name, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	flag, err := word(name)
	if err != nil {
		t.Fatal(err)
	}
	w := begin(t, "127.0.0.1", 2, "seize", "ARGON_DEADTIME=1s", flagVar+"="+name)
	var note string
	for end := time.After(10 * time.Minute); note == ""; { // rank 0 has been without an answer for the dead time
		select {
		case n := <-w.notes:
			if strings.HasPrefix(n, "rank 1 ") { // on a busy machine of others, too
				note = n
			}
		case <-end:
			note = "nothing"
		}
	}
	atomic.StoreUint64(flag, 1)
	if !strings.HasPrefix(note, "rank 1 has not answered for ") || !strings.Contains(note, fmt.Sprintf("its process %d runs", w.ranks[1].cmd.Process.Pid)) {
		t.Errorf("the user is told %q", note)
	}
	w.want(0)
}
