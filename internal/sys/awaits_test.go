package sys

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestAwaits: a process that waits for its input by any call is seen to, also one that another
// one has started, and one that does something else is not.
func TestAwaits(t *testing.T) {
	if waits[runtime.GOARCH] == nil {
		t.Skipf("the calls of %s are not known", runtime.GOARCH)
	}
	if b, err := os.ReadFile("/proc/self/syscall"); err != nil {
		t.Skipf("the system does not tell what threads wait for: %s, %v", b, err)
	}
	for script, want := range map[string]bool{
		"echo; read x":                         true,
		"echo; exec cat":                       true,
		"echo; cat; true":                      true,
		"exec 5<&0 0</dev/null; echo; cat <&5": true,
		"echo; exec sleep 1000":                false,
		"echo; sleep 1000; cat":                false,
		"exec </dev/null; echo; exec cat /dev/zero >/dev/null": false,
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", script)
		cmd.Stdin = r
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		var st syscall.Stat_t
		if err := syscall.Fstat(int(r.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if !want {
			if Awaits(cmd.Process.Pid, st.Ino) {
				t.Errorf("%s: it waits for input", script)
			}
		}
		for want && !Awaits(cmd.Process.Pid, st.Ino) { // the watchdog bounds it
			time.Sleep(time.Millisecond)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		r.Close()
		w.Close()
		if Awaits(cmd.Process.Pid, st.Ino) {
			t.Errorf("%s: it waits for input after its end", script)
		}
	}
}
