package sys

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const page = 4096

// TestMemory makes memory in both ways: named nowhere, zero, the same for every
// mapping, of the size asked for, and gone from its directory.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	for _, where := range []string{"", dir} {
		f, err := CreateMemory(where, "test", 3*page)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if n, err := FileSize(f.Fd()); n != 3*page || err != nil {
			t.Errorf("in %q: %d bytes, %v", where, n, err)
		}
		p, err := Map(f.Fd(), 3*page)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Map(f.Fd(), 3*page)
		if err != nil {
			t.Fatal(err)
		}
		a, b := unsafe.Slice((*byte)(p), 3*page), unsafe.Slice((*byte)(q), 3*page)
		for i, x := range a {
			if x != 0 {
				t.Fatalf("byte %d is %d at first", i, x)
			}
		}
		a[2*page+5] = 77
		if b[2*page+5] != 77 {
			t.Error("two mappings differ")
		}
		if err := errors.Join(Unmap(p, 3*page), Unmap(q, 3*page)); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestMemorySealed: a memfd can grow, and no holder can make it shorter, nor
// seal it against growing.
func TestMemorySealed(t *testing.T) {
	f, err := CreateMemory("", "test", 3*page)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// As another process would have it.
	other, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, f := range []*os.File{f, other} {
		for _, size := range []int64{0, page, 3*page - 1} {
			if err := f.Truncate(size); !errors.Is(err, syscall.EPERM) {
				t.Errorf("ftruncate to %d bytes: %v", size, err)
			}
		}
		if _, _, e := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW); e != syscall.EPERM {
			t.Errorf("another seal: %v", e)
		}
	}
	if err := Extend(other.Fd(), 5*page); err != nil {
		t.Fatal(err)
	}
	if n, err := FileSize(f.Fd()); n != 5*page || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := other.Truncate(4 * page); !errors.Is(err, syscall.EPERM) {
		t.Errorf("ftruncate of what was added: %v", err)
	}
}

func TestMemoryRefused(t *testing.T) {
	if f, err := CreateMemory(filepath.Join(t.TempDir(), "none"), "test", page); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that does not exist: %v, %v", f, err)
	}
	if _, err := CreateMemory("", "test", -1); err == nil || !strings.Contains(err.Error(), "-1 bytes") {
		t.Errorf("of -1 bytes: %v", err)
	}
	if _, err := Map(1<<20, page); err == nil || !strings.Contains(err.Error(), "4096 bytes") {
		t.Errorf("of no file: %v", err)
	}
	if _, err := FileSize(1 << 20); err == nil {
		t.Error("size of no file")
	}
	if _, err := DirectoryRoom(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("space in a directory that does not exist")
	}
}

func TestSizes(t *testing.T) {
	if r, err := DirectoryRoom(t.TempDir()); r.Free <= 0 || err != nil {
		t.Errorf("free space: %v, %v", r, err)
	}
	if r := MemoryRoom(true); r.Free <= 0 || r.What == "" || r.Free > r.Limit {
		t.Errorf("available memory: %v", r)
	}
	if n := NumCPU(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("%d processors, the runtime sees %d", n, runtime.NumCPU())
	}
}

// TestFutex: a waiter sleeps while the word has its value and is woken; with
// another value it does not sleep.
func TestFutex(t *testing.T) {
	var word uint32
	FutexWait(&word, 1)
	FutexWake(&word)
	var woken atomic.Int32
	var wg sync.WaitGroup
	const waiters = 3
	for range waiters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for atomic.LoadUint32(&word) == 0 {
				FutexWait(&word, 0)
			}
			woken.Add(1)
		}()
	}
	runtime.Gosched()
	atomic.StoreUint32(&word, 1)
	FutexWake(&word)
	wg.Wait()
	if woken.Load() != waiters {
		t.Errorf("%d woke", woken.Load())
	}
}

// TestFutexShared: the futex works across mappings of one file, which is what it
// has in common with other processes.
func TestFutexShared(t *testing.T) {
	f, err := CreateMemory("", "test", page)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var words [2]*uint32
	for i := range words {
		p, err := Map(f.Fd(), page)
		if err != nil {
			t.Fatal(err)
		}
		words[i] = (*uint32)(p)
		defer Unmap(p, page)
	}
	done := make(chan bool)
	go func() {
		for atomic.LoadUint32(words[0]) == 0 {
			FutexWait(words[0], 0)
		}
		close(done)
	}()
	runtime.Gosched()
	atomic.StoreUint32(words[1], 1)
	FutexWake(words[1])
	<-done
}

// TestBarrier is Dekker's test with the fence on one side only: each of two
// threads stores its own word and then looks at the other's. One does so in
// plain program order, the other with a barrier between. They must not both miss
// the other's store; without the barrier they often do.
func TestBarrier(t *testing.T) {
	if !HasMembarrier() {
		t.Skip("membarrier(2) is not to be had here")
	}
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("there is one processor: two threads never run at once")
	}
	type line struct {
		v uint32
		_ [124]byte
	}
	rounds := 10000
	if testing.Short() {
		rounds = 3000
	}
	for name, barrier := range map[string]func(){"private": Barrier, "global": GlobalBarrier} {
		t.Run(name, func(t *testing.T) {
			xs, ys := make([]line, rounds), make([]line, rounds)
			sawX, sawY := make([]uint32, rounds), make([]uint32, rounds)
			var at [2]atomic.Int64
			var wg sync.WaitGroup
			for me := range 2 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					runtime.LockOSThread()
					for i := range rounds {
						at[me].Store(int64(i + 1))
						for k := 0; at[1-me].Load() <= int64(i); k++ {
							if k > 200 {
								Yield()
							}
						}
						if me == 0 {
							storePlain(&xs[i].v, 1)
							sawY[i] = atomic.LoadUint32(&ys[i].v)
						} else {
							storePlain(&ys[i].v, 1)
							barrier()
							sawX[i] = atomic.LoadUint32(&xs[i].v)
						}
					}
				}()
			}
			wg.Wait()
			missed := 0
			for i := range rounds {
				if sawX[i] == 0 && sawY[i] == 0 {
					missed++
				}
			}
			if missed > 0 {
				t.Errorf("in %d of %d rounds both missed the other's store", missed, rounds)
			}
		})
	}
}

// TestGoroutine: an identity stays while a goroutine moves between threads, and
// differs between those alive.
func TestGoroutine(t *testing.T) {
	if !HasGoroutine {
		if Goroutine() != 1 {
			t.Error("the only identity is 1")
		}
		return
	}
	const n = 20
	var ids sync.Map
	var wg sync.WaitGroup
	var all sync.WaitGroup
	all.Add(n)
	for range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			id := Goroutine()
			if _, twice := ids.LoadOrStore(id, true); twice || id == 0 {
				t.Errorf("identity %#x twice, or none", id)
			}
			all.Done()
			all.Wait()
			for range 100 {
				runtime.Gosched()
				if grow(50) != id || Goroutine() != id {
					t.Error("a goroutine changed its identity")
					return
				}
			}
		}()
	}
	wg.Wait()
}

// grow makes the stack move and returns the identity from deep inside.
func grow(n int) uintptr {
	var b [512]byte
	if n == 0 {
		return Goroutine() + uintptr(b[0])
	}
	return grow(n-1) + uintptr(b[n])
}

func TestAffinity(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all, err := Affinity()
	if err != nil || len(all) == 0 || len(all) != NumCPU() {
		t.Fatalf("processors %v (%d), %v", all, NumCPU(), err)
	}
	for i := range all {
		if i > 0 && all[i-1] >= all[i] {
			t.Errorf("%v is not ascending", all)
		}
	}
	if err := SetAffinity(all[:1]); err != nil {
		t.Fatal(err)
	}
	one, err := Affinity()
	if err != nil || len(one) != 1 || one[0] != all[0] {
		t.Errorf("bound to %v, %v", one, err)
	}
	if n := NumCPU(); n != 1 {
		t.Errorf("%d processors on a bound thread", n)
	}
	if err := SetAffinity(all); err != nil {
		t.Fatal(err)
	}
}

func TestTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if IsTerminal(f.Fd()) {
		t.Error("the null device is a terminal")
	}
}

func TestAwaitExit(t *testing.T) {
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if AwaitExit(c.Process.Pid, 0) {
		t.Error("a process that reads its standard input has ended")
	}
	in.Close()
	if !AwaitExit(c.Process.Pid, time.Hour) {
		t.Error("it has not ended")
	}
	c.Wait()
	if !AwaitExit(c.Process.Pid, 0) {
		t.Error("it has not ended when reaped")
	}
}

func TestSubreaper(t *testing.T) {
	if err := errors.Join(SetSubreaper(true), SetSubreaper(false)); err != nil {
		t.Error(err)
	}
}
