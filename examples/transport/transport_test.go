// Package transport tests a conduit that lives in a module of its own.
package transport_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/chaos"

	"example.com/transport/tcp"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, adapt.Local(tcp.Name, adapt.OpenSeats(tcp.Name, tcp.Open)))
}

// TestChaos: the same through what takes every freedom that the contract of Transports leaves.
func TestChaos(t *testing.T) {
	open := chaos.Open(adapt.OpenSeats(tcp.Name, tcp.Open), chaos.TransportConfig{})
	conformance.RunGroups(t, adapt.Local(tcp.Name, open), "machine")
}

// TestGasrun: the module's own gasrun starts jobs on the conduit, of processes, on one host and on
// two; a rank that is killed is named, by all alike.
func TestGasrun(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "./gasrun", "./hello").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"-n 4 -conduit tcp HELLO", "4 ranks on tcp, sum 6", 0},
		{"-hosts localhost:2,localhost:1 -conduit tcp HELLO", "3 ranks on tcp, sum 3", 0},
		{"-n 3 -conduit tcp HELLO kill", "rank 2", 137},
		{"-hosts localhost:1,localhost:1 -conduit tcp HELLO kill", "rank 1", 137},
	} {
		args := strings.Fields("-timeout 2m " + strings.ReplaceAll(c.args, "HELLO", filepath.Join(dir, "hello")))
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "gasrun"), args...)
		out, _ := cmd.CombinedOutput() // the status says more
		if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(string(out), c.want) {
			t.Errorf("gasrun %s: status %d, want %d with %q:\n%s", c.args, status, c.status, c.want, out)
		}
	}
}
