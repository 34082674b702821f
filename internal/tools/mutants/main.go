// Mutants breaks the runtime on purpose, one defect at a time, and runs the
// conformance suite on the result: a suite that does not notice has a hole.
//
//	go run ./internal/tools/mutants [-run REGEXP] [-list] [-table docs/mutants.md]
//
// A mutant is a patch of one file (list.go). The tree is not touched: go test's
// -overlay puts the patched copy in the file's place. At first the suite runs on
// the tree as it is, and must pass. Then it runs for each mutant, on the
// conduits where that one's defect can show; all of them must notice. What is
// printed, and what -table keeps in docs/mutants.md, is which checks failed.
//
// A defect is noticed by a check that fails, by a crash, or by a hang. A hang ends
// when -limit is nearly over: the suite then says itself which rank waits for what, and
// the check counts as failed "by the time limit". Wake-ups that are lost show in
// this way on conduits that run their ranks as goroutines; the simulator knows
// at once that none can go on.
//
// The exit status is 1 if a mutant survives.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

var (
	flagRun   = flag.String("run", "", "only mutants whose name matches this `regexp`")
	flagList  = flag.Bool("list", false, "print the mutants and do nothing")
	flagTable = flag.String("table", "", "write the table of results to this `file`, between its markers")
	flagLimit = flag.Duration("limit", 90*time.Second, "how long one run of the suite may take")
	flagJobs  = flag.Int("j", 1, "how many mutants are tried at once")
	flagLogs  = flag.String("logs", "", "keep the suite's output in this `folder`")
	flagBase  = flag.Bool("base", true, "run the suite on the tree as it is before")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	only, err := regexp.Compile(*flagRun)
	if err != nil {
		return err
	}
	var l []mutant
	for _, m := range mutants {
		if only.MatchString(m.name) {
			l = append(l, m)
		}
	}
	if *flagList {
		for _, m := range l {
			fmt.Printf("%-30s %s: %s\n", m.name, m.file, m.defect)
		}
		return nil
	}
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if *flagLogs != "" {
		if err := os.MkdirAll(*flagLogs, 0o755); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	told := make(chan os.Signal, 1)
	sys.Catch(told, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-told
		stop()
	}()
	r := &runner{root: root, scratch: scratch, limit: *flagLimit, logs: *flagLogs}
	if *flagBase {
		if err := r.base(ctx, l); err != nil {
			return err
		}
	}
	results := r.all(ctx, l, max(1, *flagJobs))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	survivors := 0
	for _, o := range results {
		if !o.caught() {
			survivors++
		}
	}
	fmt.Printf("%d of %d mutants caught\n", len(results)-survivors, len(results))
	if *flagTable != "" {
		if err := writeTable(*flagTable, results); err != nil {
			return err
		}
	}
	if survivors > 0 {
		return fmt.Errorf("%d mutants survive the suite", survivors)
	}
	return nil
}

// base checks that the suite passes without a mutant on the conduits that l
// needs: else it would seem to catch everything.
func (r *runner) base(ctx context.Context, l []mutant) error {
	none := mutant{name: "none"}
	for _, m := range l {
		for _, c := range m.on { // tests of one package are left to themselves
			if !slices.Contains(none.on, c) {
				none.on = append(none.on, c)
			}
		}
	}
	o, err := r.try(ctx, none)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(o.on, func(v verdict) bool { return v.caught() || v.unrun > 0 }):
		return fmt.Errorf("the suite fails without a mutant: %v", o)
	}
	return nil
}

// all tries the mutants, n at a time, and prints each result.
func (r *runner) all(ctx context.Context, l []mutant, n int) []outcome {
	results := make([]outcome, len(l))
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex // of the output
	for range n {
		wg.Go(func() {
			for i := range next {
				o, err := r.try(ctx, l[i])
				if err != nil {
					o.err = err
				}
				results[i] = o
				mu.Lock()
				fmt.Printf("%-30s %v\n", o.m.name, o)
				mu.Unlock()
			}
		})
	}
	for i := range l {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// moduleRoot is the folder of the go.mod above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = up
	}
}

// mutated is the patched file's content.
func (m *mutant) mutated(root string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		return nil, fmt.Errorf("%s: what is to be replaced stands %d times in %s, not once; bring list.go up to date:\n%s", m.name, n, m.file, m.old)
	}
	return []byte(strings.Replace(string(b), m.old, m.new, 1)), nil
}
