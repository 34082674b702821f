package launch

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// spec has the arguments of exec for one rank.
type spec struct {
	path  string
	argv  []string
	env   []string
	dir   string
	files []*os.File // 0, 1, 2, ...; closed by the caller
}

// spawner starts processes from one thread that lives until stop: the kernel
// sends the parent death signal when the thread that started a process ends,
// not when the process does (golang.org/issue/27505).
type spawner struct {
	in  chan func()
	end chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{in: make(chan func()), end: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range s.in {
			f()
		}
		close(s.end)
	}()
	return s
}

func (s *spawner) do(f func()) {
	done := make(chan struct{})
	s.in <- func() { defer close(done); f() }
	<-done
}

func (s *spawner) stop() {
	close(s.in)
	<-s.end
}

// start starts one process that leads its own process group and dies with this
// one. It runs on the spawner's thread.
func (sp *spec) start() (pid int, err error) {
	fds := make([]uintptr, len(sp.files))
	for i, f := range sp.files {
		fds[i] = f.Fd()
	}
	pid, err = syscall.ForkExec(sp.path, sp.argv, &syscall.ProcAttr{
		Dir:   sp.dir,
		Env:   sp.env,
		Files: fds,
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	runtime.KeepAlive(sp.files)
	if err != nil {
		return 0, startError(sp.path, sp.dir, err)
	}
	return pid, nil
}

// lookProgram finds the executable that Config.Program names.
func lookProgram(name, dir string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrDot):
	case errors.Is(err, exec.ErrNotFound):
		return "", errs.BadArg("launch: no program %q in PATH, and no package of that name here", name)
	case err != nil:
		var ee *exec.Error
		if errors.As(err, &ee) {
			err = ee.Err
		}
		return "", errs.BadArg("launch: cannot run %q: %v", name, err)
	}
	if dir != "" && path[0] != '/' {
		// A relative path means one relative to the launcher's directory.
		wd, err := os.Getwd()
		if err != nil {
			return "", errs.Resource("launch: %v", err)
		}
		path = wd + "/" + path
	}
	return path, nil
}

// subreapers counts the running jobs of this process.
var subreapers struct {
	sync.Mutex
	n int
}

// setSubreaper is replaced by tests.
var setSubreaper = sys.SetSubreaper

// holdSubreaper makes this process the parent of orphans until dropSubreaper. An
// error says that the kernel, an emulator of it or a sandbox does not know that
// call. The job then does without: what outlives a rank that started it is found
// by its process group and by the job's identity in its environment alone, which
// a process that has left both escapes, and is not reaped here.
func holdSubreaper() error {
	subreapers.Lock()
	defer subreapers.Unlock()
	var err error
	if subreapers.n == 0 {
		if err = setSubreaper(true); err != nil {
			err = errs.NotSupported("launch: this process cannot become the parent of orphans (PR_SET_CHILD_SUBREAPER: %v); those that hide are left", err)
		}
	}
	subreapers.n++
	return err
}

func dropSubreaper() {
	subreapers.Lock()
	defer subreapers.Unlock()
	if subreapers.n--; subreapers.n == 0 {
		_ = setSubreaper(false)
	}
}
