package segment

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestFramesStay is the experiment of Seifert and Rehm 2000: memory is registered, the system takes what pages it can, and the frames
// of the registered ones are looked up again. Pages are those of a file, which go also where there is no swap, and what takes
// them is the reclaim of a memory group that the process is in alone, so that nothing else on the machine is short of memory.
func TestFramesStay(t *testing.T) {
	dir := os.Getenv("ARGONTEST_FRAMES")
	if dir != "" {
		lockedFrames(t, dir)
		return
	}
	if syscall.Getpagesize() != PageSize {
		t.Skipf("pages of %d bytes", syscall.Getpagesize())
	}
	groups := "/sys/fs/cgroup/memory" // version 1 (cgroup-v1/memory.rst)
	if _, err := os.Stat(groups); err != nil {
		groups = "/sys/fs/cgroup" // version 2 (cgroup-v2.rst)
	}
	group, err := os.MkdirTemp(groups, "argontest")
	if err != nil {
		t.Skipf("no memory group: %v", err)
	}
	defer os.Remove(group)
	cmd := exec.Command("/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" || { echo "not here: no process may join a memory group"; exit 0; }; exec "$1" -test.run='^TestFramesStay$' -test.v`, group, os.Args[0])
	cmd.Env = append(os.Environ(), "ARGONTEST_FRAMES="+t.TempDir(), "ARGONTEST_GROUP="+group)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, why, skipped := strings.Cut(string(out), "not here: "); skipped {
		t.Skip(strings.TrimSpace(why))
	}
}

func lockedFrames(t *testing.T, dir string) {
	const pages = 256
	file := func(name string) []byte { // files of their own: the system takes and keeps runs of a file's pages together (folios)
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err = f.Write(make([]byte, pages*PageSize)); err == nil {
			err = f.Sync() // a clean page goes without being written first
		}
		if err != nil {
			t.Fatal(err)
		}
		mem, err := syscall.Mmap(int(f.Fd()), 0, pages*PageSize, syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(mem); i += PageSize {
			if mem[i] != 0 {
				t.Fatal(mem[i])
			}
		}
		return mem
	}
	locked, plain := file("locked"), file("plain")
	atu := newATU(t, ATUConfig{Lock: &Locks{}})
	if _, err := atu.Register(locked, RightRead, AnyPeer); err != nil {
		t.Skipf("not here: %v", err)
	}
	before, was := framesOf(t, locked), framesOf(t, plain)
	group := os.Getenv("ARGONTEST_GROUP")
	how, what := filepath.Join(group, "memory.force_empty"), "0" // version 1
	if _, err := os.Stat(how); err != nil {
		how, what = filepath.Join(group, "memory.reclaim"), "64M" // version 2
	}
	// What cannot be taken, such as Go's heap without swap, is another error.
	if err := os.WriteFile(how, []byte(what), 0); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skipf("not here: %v", err)
	}
	after, is := framesOf(t, locked), framesOf(t, plain)
	gone := 0
	for i := range pages {
		if was[i] != is[i] {
			gone++
		}
		if before[i] == 0 || before[i] != after[i] {
			t.Errorf("page %d, which is locked, was in frame %#x and is in %#x", i, before[i], after[i])
		}
	}
	if gone == 0 {
		t.Skip("not here: the system has taken no page that is not locked either")
	}
}

// framesOf are the frames of mem's pages, 0 of one that is not there (pagemap.rst).
func framesOf(t *testing.T, mem []byte) []uint64 {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Skipf("not here: %v", err)
	}
	defer f.Close()
	b := make([]byte, len(mem)/PageSize*8)
	if _, err := f.ReadAt(b, int64(uintptr(unsafe.Pointer(&mem[0]))/PageSize*8)); err != nil {
		t.Skipf("not here: %v", err)
	}
	frames := make([]uint64, len(b)/8)
	for i := range frames {
		e := binary.LittleEndian.Uint64(b[8*i:])
		if frames[i] = e & (1<<55 - 1); e>>63 == 0 {
			frames[i] = 0
		} else if frames[i] == 0 {
			t.Skip("not here: /proc/self/pagemap shows no frames without CAP_SYS_ADMIN")
		}
	}
	return frames
}
