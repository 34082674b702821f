package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTogether: loops whose accesses are under way together do what the program says, whatever
// messages overtake others, which those of a simulated network with jitter do.
func TestTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir := t.TempDir()
	files, _, err := compile(&options{files: []string{"testdata/together.upc"}})
	if err == nil {
		err = writeModule(dir, files)
	}
	program := filepath.Join(dir, "together")
	if err == nil {
		err = goBuild(dir, program, ".", os.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	environments := []string{"ARGON_CONDUIT=udp"}
	for seed := 1; seed <= 20; seed++ {
		environments = append(environments, fmt.Sprintf("ARGON_CONDUIT=sim ARGON_SIM=seed=%d,jitter=20us", seed))
	}
	for _, e := range environments {
		c := exec.Command(program)
		c.Env = append(os.Environ(), append(strings.Fields(e), "ARGON_RANKS=3")...)
		if out, err := c.CombinedOutput(); err != nil || string(out) != "together: 0 wrong\n" {
			t.Errorf("%s: %v\n%s", e, err, out)
		}
	}
}
