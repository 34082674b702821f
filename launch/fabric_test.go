package launch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits/ofi/providers"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// built makes an executable with these build tags.
func built(t *testing.T, tags string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-o", out, "-tags", tags, source)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return out
}

// TestFabricChoose: which jobs run on libfabric unasked, and what is said of it.
func TestFabricChoose(t *testing.T) {
	t.Parallel()
	plain, with := built(t, "osusergo"), built(t, "osusergo,ofi")
	found := func(names ...string) func() ([]providers.Provider, error) {
		return func() ([]providers.Provider, error) {
			var list []providers.Provider
			for _, n := range names {
				list = append(list, providers.Provider{Name: n, Domain: n + "0", Caps: providers.Asked, Order: providers.OrderSAS | providers.OrderSAW, MaxMsg: 1 << 30})
			}
			return list, nil
		}
	}
	asked := false
	all := []string{"hybrid", "hybrid-ofi", "ofi", "shm", "udp"}
	hosts := []launch.Host{{}}
	pkg := launch.Target{Package: []string{"."}}
	for _, c := range []struct {
		name    string
		hosts   []launch.Host
		conduit string
		env     []string
		target  launch.Target
		m       machine
		want    string // the conduit
		rule    string
	}{
		{"hardware", hosts, "", nil, pkg, machine{true, all, found("net", "cxi")}, "ofi", "cxi drives cxi0 (-conduit hybrid does without)"},
		{"an executable with the tag", hosts, "", nil, launch.Target{Program: with}, machine{true, all, found("cxi")}, "ofi", "cxi drives cxi0"},
		{"one without", hosts, "", nil, launch.Target{Program: plain}, machine{true, all, found("cxi")}, "", "was not built with go build -tags ofi"},
		{"no executable of Go", hosts, "", nil, launch.Target{Program: "/bin/sh"}, machine{true, all, found("cxi")}, "", "/bin/sh was not built"},
		{"TCP", hosts, "", nil, pkg, machine{true, all, found("net", "tcp;ofi_rxm")}, "", "conduit hybrid: net is for tests and Ethernet"},
		{"several ranks on a host", []launch.Host{{Name: "a", Slots: 2}, {Name: "b"}}, "", nil, pkg, machine{true, all, found("cxi")}, "hybrid-ofi", "conduit hybrid-ofi: cxi drives cxi0, and ranks of one host share memory (-conduit hybrid does without)"},
		{"several on TCP", []launch.Host{{Name: "a", Slots: 2}, {Name: "b"}}, "", nil, pkg, machine{true, all, found("net")}, "", "conduit hybrid: net is for tests"},
		{"the same, one by one", []launch.Host{{Name: "a"}, {Name: "b"}, {Name: "a"}}, "", nil, pkg, machine{true, all, found("cxi")}, "hybrid-ofi", "share memory"},
		{"hosts on this machine", []launch.Host{{Name: "localhost", Here: true}, {Name: "localhost", Here: true}}, "", nil, pkg, machine{true, all, found("cxi")}, "ofi", "cxi drives"},
		{"a provider asked for", hosts, "", []string{"ARGON_PROVIDER=net"}, pkg, machine{true, all, found("net", "cxi")}, "", "net is for tests"},
		{"nothing", hosts, "", nil, pkg, machine{true, all, found()}, "", "no provider"},
		{"a library that fails", hosts, "", nil, pkg, machine{true, all, func() ([]providers.Provider, error) { return nil, errors.New("no such luck") }}, "", "no such luck"},
		{"no hosts", nil, "", nil, pkg, machine{true, all, found("cxi")}, "", ""},
		{"refused", hosts, "hybrid", nil, pkg, machine{true, all, found("cxi")}, "hybrid", ""},
		{"asked for", hosts, "ofi", nil, pkg, machine{true, all, found("net")}, "ofi", ""},
		{"no conduit", hosts, "", nil, pkg, machine{true, []string{"hybrid"}, found("cxi")}, "", "built without libfabric"},
		{"without the tag nothing is asked", hosts, "", nil, pkg, machine{false, all, func() ([]providers.Provider, error) { asked = true; return nil, nil }}, "", "built without libfabric"},
	} {
		var o options
		o.Hosts, o.Conduit, o.Env = c.hosts, c.conduit, c.env
		rule, err := o.fabric.choose(&o, c.target, c.m, func(string) string { return "" })
		if err != nil || o.Conduit != c.want || !strings.Contains(rule, c.rule) || (rule == "") != (c.rule == "") || asked {
			t.Errorf("%s: conduit %q, %q, %v", c.name, o.Conduit, rule, err)
		}
	}
	var o options
	o.Hosts = hosts
	if _, err := o.fabric.choose(&o, pkg, machine{true, all, found("cxi")}, func(string) string { return "no" }); err == nil {
		t.Error("ARGON_PROVIDER_FORCE=no is taken")
	}
	for _, c := range []struct {
		target launch.Target
		built  bool
		want   string
	}{
		{pkg, false, "this program was built without"},
		{pkg, true, ""},
		{launch.Target{Program: with}, true, ""},
		{launch.Target{Program: plain}, true, plain + " was built without libfabric: install"},
		{launch.Target{Program: "/bin/sh"}, true, ""}, // may start any program
	} {
		o.Conduit = fabricConduit
		if err := o.fabric.known(&o, c.target, machine{built: c.built}); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.target, err)
		}
	}
	o.Conduit = "udp"
	if err := o.fabric.known(&o, pkg, machine{}); err != nil {
		t.Error(err)
	}
}

// TestFabricFlags: what the flags become, and what is refused.
func TestFabricFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want string // of the environment or of the error
	}{
		{"-conduit ofi -provider net prog", "ARGON_PROVIDER=net"},
		{"-conduit ofi -provider shm -provider-force prog", "ARGON_PROVIDER=shm ARGON_PROVIDER_FORCE=1"},
		{"-conduit ofi -provider-force prog", "-provider-force is for a provider that -provider names"},
		{"-conduit udp -providers", "-providers lists those of conduits ofi and hybrid-ofi, not of udp"},
		{"-conduit ofi -provider= prog", "-provider: the name is empty"},
	} {
		o, err := parse(strings.Fields(c.args))
		got := strings.Join(o.Env, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}
