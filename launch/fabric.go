package launch

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/argon-go/argon/conduits/ofi/providers"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/launch"
)

// The conduits that run on libfabric: all ranks, or between hosts. They are registered in
// builds with the tag fabricTag.
const (
	fabricConduit = "ofi"
	fabricHybrid  = "hybrid-ofi"
	fabricTag     = "ofi"
)

// onFabric reports whether conduit runs on libfabric.
func onFabric(conduit string) bool { return conduit == fabricConduit || conduit == fabricHybrid }

// fabric has the flags for libfabric.
type fabric struct {
	list  bool   // -providers
	name  string // -provider
	force bool   // -provider-force
}

// finish sets the variables that ranks read.
func (f *fabric) finish(o *options) error {
	switch {
	case f.list && o.Conduit != "" && !onFabric(o.Conduit):
		return fmt.Errorf("-providers lists those of conduits %s and %s, not of %s (-conduit, ARGON_CONDUIT)", fabricConduit, fabricHybrid, o.Conduit)
	case f.force && f.name == "":
		return fmt.Errorf("-provider-force is for a provider that -provider names")
	}
	if f.name != "" {
		o.Env = append(o.Env, providers.EnvName+"="+f.name)
	}
	if f.force {
		o.Env = append(o.Env, providers.EnvForce+"=1")
	}
	return nil
}

// wish returns the options as the ranks will read them: -x and the environment count, too.
func (f *fabric) wish(o *options, getenv func(string) string) (providers.Wish, error) {
	return providers.FromEnv(func(key string) string {
		for _, kv := range slices.Backward(o.Env) {
			if k, v, _ := strings.Cut(kv, "="); k == key {
				return v
			}
		}
		return getenv(key)
	})
}

// print lists what this machine has, best first.
func (f *fabric) print(w io.Writer, wish providers.Wish) error {
	list, err := providers.List()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "libfabric %s\n", providers.Library())
	all := providers.Choose(list, wish)
	if err := providers.Print(w, all); err != nil {
		return err
	}
	_, err = providers.Best(all, wish)
	return err
}

// machine has the facts that the choice of a conduit depends on beside the command line.
type machine struct {
	built     bool     // this gasrun knows libfabric
	conduits  []string // that it can start jobs on
	providers func() ([]providers.Provider, error)
}

// here is this machine.
func here() machine {
	return machine{providers.Built, launch.Conduits(), providers.List}
}

// choose sets the conduit of a job on hosts that was given none: one of libfabric where a
// provider here drives a network card by itself and the program is built with it, with
// shared memory inside hosts if any has several ranks. It returns by which rule, "" if
// nothing was to be chosen.
func (f *fabric) choose(o *options, t launch.Target, m machine, getenv func(string) string) (rule string, err error) {
	if len(o.Hosts) == 0 || o.Conduit != "" {
		return "", nil
	}
	switch {
	case !m.built || !slices.Contains(m.conduits, fabricConduit):
		return o.without("this gasrun was built without libfabric (docs/fabrics.md)"), nil
	case t.Package == nil && !tagged(t.Program):
		return o.without(t.Program + " was not built with go build -tags " + fabricTag), nil
	}
	wish, err := f.wish(o, getenv)
	if err != nil {
		return "", err
	}
	list, err := m.providers()
	if err != nil {
		return o.without(err.Error()), nil
	}
	ok, why := providers.Automatic(providers.Choose(list, wish))
	if !ok {
		return o.without(why), nil
	}
	o.Conduit = fabricConduit
	if o.shares() {
		o.Conduit = fabricHybrid
		why += ", and ranks of one host share memory"
	}
	return fmt.Sprintf("conduit %s: %s (-conduit %s does without)", o.Conduit, why, launch.DefaultHostsConduit), nil
}

// shares reports whether a host has several ranks.
func (o *options) shares() bool {
	seen := map[string]bool{}
	for _, h := range o.Hosts {
		if max(h.Slots, o.PerHost) > 1 || seen[h.Name] && !h.Here {
			return true
		}
		seen[h.Name] = true
	}
	return false
}

// without is the rule by which hosts talk as they always can.
func (o *options) without(why string) string {
	return fmt.Sprintf("conduit %s: %s", launch.DefaultHostsConduit, why)
}

// known returns an error that names packages and build tags if the job is to run on libfabric
// and gasrun or the program was built without.
func (f *fabric) known(o *options, t launch.Target, m machine) error {
	switch {
	case !onFabric(o.Conduit):
		return nil
	case !m.built:
		return providers.NotBuilt()
	case t.Package == nil && t.Program != "" && goProgram(t.Program) && !tagged(t.Program):
		return errs.NotSupported("ofi: %s was built without libfabric: %s", t.Program, providers.HowTo)
	}
	return nil
}

// goProgram reports whether the executable is one of Go, and no script that starts one.
func goProgram(name string) bool { return settings(name) != nil }

// tagged reports whether the executable was built by Go with libfabric.
func tagged(name string) bool {
	info := settings(name)
	return info != nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), fabricTag)
	})
}

// settings is how the executable, a file or a name in PATH, was built; nil if Go did not
// build it.
func settings(name string) *debug.BuildInfo {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil
	}
	return info
}
