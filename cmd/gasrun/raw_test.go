package main

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testmain"
)

// machines are the ways in which a job of three ranks runs.
var machines = map[string][]string{
	"shm":          {"-n", "3"},
	"udp":          {"-n", "3", "-conduit", "udp"},
	"hybrid":       {"-n", "3", "-conduit", "hybrid"},
	"hosts udp":    {"-hosts", "localhost:2,localhost:1", "-conduit", "udp"},
	"hosts hybrid": {"-hosts", "localhost:2,localhost:1", "-conduit", "hybrid"},
}

// TestEndWithoutClose: a rank of a program of package am that ends without Close has
// failed, whatever carries the job, and the launcher says so.
func TestEndWithoutClose(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	for name, args := range machines {
		for _, who := range []string{"one", "all"} {
			t.Run(name+" "+who, func(t *testing.T) {
				r := gasrun(t, append(args[:len(args):len(args)], "-kill-grace", "1h", prog, "raw", who)...)
				if r.status != 1 {
					t.Errorf("status %d", r.status)
				}
				if l := lastLine(r.stderr); !regexp.MustCompile(`^gasrun: rank \d \(pid \d+.*\) exited with status 0 before it left the job: it ended without Close`).MatchString(l) {
					t.Errorf("the last line is %q\n%s", l, r.stderr)
				}
			})
		}
	}
}

// TestExitEverywhere: the status of Exit, by package am and by gas, is that of the
// job, whatever carries it.
func TestExitEverywhere(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	all := map[string][]string{"sim": {"-n", "3", "-conduit", "sim"}}
	for name, args := range machines {
		all[name] = args
	}
	for name, args := range all {
		for _, how := range [][]string{{"raw", "exit"}, {"end", "main"}} {
			for _, code := range []int{0, 7} {
				t.Run(fmt.Sprint(name, " ", how[0], " ", code), func(t *testing.T) {
					args := append(args[:len(args):len(args)], "-kill-grace", "1h", prog, how[0], how[1], fmt.Sprint(code))
					r := gasrun(t, args...)
					if r.status != code {
						t.Errorf("status %d\n%s", r.status, r.stderr)
					}
					if code == 0 && r.stderr != "" || code != 0 && !regexp.MustCompile(`^gasrun: rank 1 \(.*\) ended the job with status 7 \(Exit\)\n$`).MatchString(r.stderr) {
						t.Errorf("standard error is %q", r.stderr)
					}
				})
			}
		}
	}
}
