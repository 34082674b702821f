package main

import (
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// TestBare: the references of bare libfabric between two processes, or what is missing.
func TestBare(t *testing.T) {
	r := testjob.RunConfig(t, 2, "gasbench", testjob.Config{
		Args: []string{"-json", "-time", "1us", "-bursts", "2", "-run", "ref/ofi.*"},
	}).Want(t, 0)
	if !bareBuilt {
		if r.Stdout[0] != "" || !strings.Contains(r.Stderr[0], "go build -tags ofi") {
			t.Errorf("without libfabric: %s", r.Output())
		}
		return
	}
	got := check(t, r.Stdout[0], "shm", 2)
	for name, want := range map[string]int{refOFI: 5, refOFIMsg: 5, refOFIWrite: 2*len(copySizes) - 1} {
		if len(got[name]) != want {
			t.Errorf("%d figures for %s, want %d", len(got[name]), name, want)
		}
	}
}
