package launch

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stillMemory tells that rank 0 has attached.
type stillMemory struct{ deafMemory }

func (stillMemory) File() *os.File { return nil }
func (stillMemory) Close() error   { return nil }

func (stillMemory) State(rank int) State {
	if rank == 0 {
		return Attached
	}
	return Starting
}

// lineWriter calls f for what is written.
type lineWriter func(text string)

func (f lineWriter) Write(b []byte) (int, error) {
	f(string(b))
	return len(b), nil
}

// TestStillRanks: of a rank that is stopped, and then does not attach, there is a word each
// time, with its process; the test lets it go on for that word.
func TestStillRanks(t *testing.T) {
	every, first := stillEvery, stillFirst
	stillEvery, stillFirst = 10*time.Millisecond, 50*time.Millisecond
	defer func() { stillEvery, stillFirst = every, first }()
	dir := t.TempDir()
	for _, name := range []string{"one", "all"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := regexp.MustCompile(`gasrun: rank 1 \(pid (\d+)\) has (been stopped for \d+s \(state T|not attached for \d+s while others have)`)
	var mu sync.Mutex
	words := map[string]bool{}
	log := lineWriter(func(text string) {
		m := said.FindStringSubmatch(text)
		if m == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		what := m[2][:4]
		if words[what] {
			return
		}
		words[what] = true
		if what == "been" {
			pid, _ := strconv.Atoi(m[1])
			_ = syscall.Kill(pid, syscall.SIGCONT)
			return
		}
		go func() { // until the rank reads
			_ = os.WriteFile(filepath.Join(dir, "one"), []byte("go on\n"), 0)
		}()
	})
	_, err := Run(context.Background(), Config{
		Size: 2, Program: "sh", Dir: dir, Stdout: io.Discard, Stderr: io.Discard, Log: log,
		Args:   []string{"-c", `if [ $ARGON_RANK = 1 ]; then kill -STOP $$; read x <one; echo >all; else read x <all; fi`},
		Memory: func(int, uint64) (Memory, error) { return stillMemory{}, nil },
	})
	if err == nil || !strings.Contains(err.Error(), "before it") { // as these are no programs of argon
		t.Errorf("the job: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !words["been"] || !words["not "] {
		t.Errorf("gasrun has told of %v", words)
	}
}
