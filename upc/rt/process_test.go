package rt

import (
	"os"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// launched is the conduit that the launcher has chosen, for tests that a process of a job runs.
const launched = ""

// asProcess runs the tests that the arguments choose as a thread of a job whose threads are
// processes.
func asProcess(m *testing.M) func() {
	return func() {
		networks = []string{launched}
		if status := m.Run(); status != 0 {
			os.Exit(status)
		}
	}
}

// TestProcesses: what holds of threads in one process holds of processes. Each runs the test by
// itself and joins the job where the test would start one.
func TestProcesses(t *testing.T) {
	testmain.Long(t)
	type job struct {
		test    string
		threads int
	}
	jobs := []job{
		{"TestStatic", 3},
		{"TestAlloc", 3},
		{"TestScalars", 3},
		{"TestLibrary", 3},
		{"TestBarrier", 3},
		{"TestLock", 4},
		{"TestLockFreeHeld", 3},
		{"TestAtomic", 3},
		{"TestAtomicPointers", 2},
		{"TestRelocalization", 3},
		{"TestComputation", 3},
		{"TestFiles", 3},
	}
	if !conc.Race { // to which strict accesses are races
		jobs = append(jobs, job{"TestLockFair", 4})
		for _, l := range litmusTests {
			jobs = append(jobs, job{"TestLitmus//" + strings.ReplaceAll(l.name, " ", "_"), l.threads})
		}
	}
	for _, conduit := range []string{"shm", "udp"} {
		for _, j := range jobs {
			t.Run(conduit+"/"+strings.ReplaceAll(j.test, "/", "_"), func(t *testing.T) {
				pattern := "^" + strings.ReplaceAll(j.test, "/", "$/^") + "$"
				pattern = strings.ReplaceAll(pattern, "/^$/", "/.*/")
				r := testjob.RunConfig(t, j.threads, "test", testjob.Config{
					Args:   []string{"-test.v", "-test.count=1", "-test.run=" + pattern},
					Launch: func(c *launch.Config) { c.Conduit = conduit },
				}).Want(t, 0)
				ran := "--- PASS: " + j.test
				if !strings.Contains(j.test, "/") {
					ran += "/#00" // on the conduit without a name
				}
				for rank, out := range r.Stdout {
					if !strings.Contains(out, ran+" (") {
						t.Errorf("thread %d has not run %s:\n%s", rank, ran, out)
					}
				}
			})
		}
	}
}

// TestDocument: the smallest program of docs/compilers.md is the one that the example runs.
func TestDocument(t *testing.T) {
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../docs/compilers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(example), "\nfunc program(")
	program, _, _ = strings.Cut(program, "\n}\n")
	if program == "" || !strings.Contains(string(document), "\nfunc program("+program+"\n}\n```") {
		t.Error("docs/compilers.md has another program than example_test.go")
	}
}
