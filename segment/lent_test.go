package segment

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

// The host of TestLent: pages.
const (
	hostPages  = 96
	leastPages = 8
)

// TestLentJob is a process of TestLent: it registers as many pages as each line of its input says.
func TestLentJob(t *testing.T) {
	table := os.Getenv("ARGONTEST_LENT")
	if table == "" {
		t.Skip("not a process of TestLent")
	}
	atu, err := NewATU(ATUConfig{Lock: &Locks{Host: hostPages * PageSize, Least: leastPages * PageSize, Table: table}})
	if err != nil {
		t.Fatal(err)
	}
	mem := mapped(t, hostPages)
	var had Registration
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println("done") {
		n, _ := strconv.Atoi(in.Text())
		if had.r != nil {
			if err := atu.Deregister(had); err != nil {
				t.Fatal(err)
			}
		}
		if had = (Registration{}); n > 0 {
			if had, err = atu.Register(mem[:n*PageSize], RightRead, AnyPeer); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lentJob is such a process as its parent sees it.
type lentJob struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	wants int
}

func startLent(t *testing.T, table string) *lentJob {
	j := &lentJob{cmd: exec.Command(os.Args[0], "-test.run=^TestLentJob$")}
	j.cmd.Env = append(os.Environ(), "ARGONTEST_LENT="+table)
	j.cmd.Stderr = os.Stderr
	j.in, _ = j.cmd.StdinPipe()
	out, err := j.cmd.StdoutPipe()
	if err == nil {
		err = j.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	j.out = bufio.NewScanner(out)
	t.Cleanup(j.kill)
	j.want(t, 0)
	return j
}

func (j *lentJob) want(t *testing.T, pages int) {
	j.wants = pages
	fmt.Fprintln(j.in, pages)
	if !j.out.Scan() || j.out.Text() != "done" {
		t.Fatalf("a process that wants %d pages says %q", pages, j.out.Text())
	}
}

func (j *lentJob) kill() {
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait()
}

// stop stops the process, and returns when it has stopped.
func (j *lentJob) stop(t *testing.T) {
	_ = j.cmd.Process.Signal(syscall.SIGSTOP)
	for {
		f := sys.ProcStat(j.cmd.Process.Pid)
		if len(f) == 0 {
			t.Fatal("it has ended")
		}
		if f[0] == "T" {
			return
		}
	}
}

// locked is how many pages the kernel says that the process has locked.
func (j *lentJob) locked(t *testing.T) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", j.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmLck:")
	n, err := strconv.Atoi(strings.Fields(rest + " -")[0])
	if err != nil {
		t.Skipf("no VmLck in /proc/%d/status", j.cmd.Process.Pid)
	}
	return n << 10 / PageSize
}

// TestLent: three processes that come, want more and less, and are killed never have more locked than their host may,
// and get at least their minimum, and at last all that there is.
func TestLent(t *testing.T) {
	if limit := sys.LockLimit(); limit < hostPages*PageSize && !sys.LocksBeyondLimit() {
		t.Skipf("only %d bytes may be locked (RLIMIT_MEMLOCK)", limit)
	}
	table := filepath.Join(t.TempDir(), "table")
	jobs := [3]*lentJob{}
	// await waits for the others to give back what is called: they look every lent.Look.
	await := func() {
		for {
			sum, wanted, kept, short := 0, 0, 0, false
			for _, j := range jobs { // so that no page goes from one to another between two looks
				j.stop(t)
			}
			for _, j := range jobs {
				n := j.locked(t)
				sum, wanted, kept = sum+n, wanted+max(j.wants, leastPages), kept+max(leastPages-j.wants, 0)
				short = short || n < min(j.wants, leastPages)
			}
			for _, j := range jobs {
				_ = j.cmd.Process.Signal(syscall.SIGCONT)
			}
			if sum > hostPages {
				t.Fatalf("%d of %d pages are locked", sum, hostPages)
			}
			if want := min(wanted, hostPages) - kept; !short && sum >= want-len(jobs) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range jobs {
		jobs[i] = startLent(t, table)
	}
	jobs[0].want(t, hostPages) // all but what the others have for themselves
	await()
	if n := jobs[0].locked(t); n != hostPages-2*leastPages {
		t.Errorf("one that wants all has %d pages", n)
	}
	for range 8 {
		i := r.IntN(3)
		if r.IntN(3) == 0 {
			jobs[i].kill()
			jobs[i] = startLent(t, table)
		}
		jobs[i].want(t, r.IntN(hostPages+1))
		await()
	}
	for _, j := range jobs {
		j.want(t, hostPages)
	}
	for even := false; !even; { // at last
		await()
		even = true
		for _, j := range jobs {
			even = even && j.locked(t) >= hostPages/3-1
		}
	}
}
