// Package sandbox runs tests where a system call is forbidden, as in containers and
// sandboxes that know seccomp(2) filters. For tests.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe" // the filter's address
)

// env is set for a process that is to forbid itself system calls, to "enter" and their
// names, and then inside.
const env = "ARGONTEST_SANDBOX"

// Inside reports whether this process, or the one that started it, has gone through Enter.
func Inside() bool { return os.Getenv(env) == "inside" }

// Self is the output of this test program, run again in the sandbox for the tests of
// a pattern. The test is skipped where an emulator runs it, and the kernel does not
// know programs for that processor.
func Self(t testing.TB, tests string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Command(exec.Command(self, "-test.run", tests, "-test.short", "-test.v")).CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip(err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// Command is cmd in the sandbox, if its program calls Enter. calls are those that are
// forbidden; none means membarrier.
func Command(cmd *exec.Cmd, calls ...string) *exec.Cmd {
	if len(calls) == 0 {
		calls = []string{"membarrier"}
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, env+"=enter "+strings.Join(calls, " "))
	return cmd
}

// Enter begins this process again in the sandbox if Command has started it, and
// returns otherwise. It is the first thing that a program does.
func Enter() {
	calls, ok := strings.CutPrefix(os.Getenv(env), "enter ")
	if !ok {
		return
	}
	runtime.LockOSThread()
	var err error
	for _, name := range strings.Fields(calls) {
		number, known := numbers[name][runtime.GOARCH]
		if !known {
			err = fmt.Errorf("the number of %s is not known", name)
		} else if err == nil {
			err = forbid(number)
		}
	}
	if err == nil {
		var self string
		if self, err = os.Executable(); err == nil {
			os.Setenv(env, "inside")
			err = syscall.Exec(self, os.Args, os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "sandbox:", err)
	os.Exit(2)
}

// numbers are those of calls.
var numbers = map[string]map[string]uint32{
	"membarrier":       {"amd64": 324, "arm64": 283},
	"memfd_create":     {"amd64": 319, "arm64": 279},
	"process_vm_readv": {"amd64": 310, "arm64": 270},
}

// instruction is a struct sock_filter of <linux/filter.h>.
type instruction struct {
	code uint16
	_    uint8 // jt, where to if true: the next
	jf   uint8 // where to if not, so many further
	k    uint32
}

// forbid has call fail with EPERM in this thread, which is locked, and in what it
// executes (seccomp(2), prctl(2): PR_SET_SECCOMP).
func forbid(call uint32) error {
	const (
		load   = 0x20 // BPF_LD | BPF_W | BPF_ABS; of struct seccomp_data, whose first word is the call's number
		equal  = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
		result = 0x06 // BPF_RET | BPF_K
		allow  = 0x7fff0000
		fail   = 0x00050000 // SECCOMP_RET_ERRNO

		setNoNewPrivs, setSeccomp, modeFilter = 38, 22, 2
	)
	program := [...]instruction{
		{code: load},
		{code: equal, jf: 1, k: call},
		{code: result, k: fail | uint32(syscall.EPERM)},
		{code: result, k: allow},
	}
	filter := struct {
		n    uint16
		code *instruction
	}{uint16(len(program)), &program[0]}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("prctl(PR_SET_NO_NEW_PRIVS): %w", e)
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setSeccomp, modeFilter, uintptr(unsafe.Pointer(&filter))); e != 0 {
		return fmt.Errorf("prctl(PR_SET_SECCOMP): %w", e)
	}
	return nil
}
