package main

import (
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits/ofi/providers"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestProviders: gasrun lists what the machine has, or says what to install and how to
// build.
func TestProviders(t *testing.T) {
	testmain.Long(t)
	t.Parallel()
	r := gasrun(t, "-conduit", "udp", "-provider", "net", "true")
	r.want(t, jobenv.StatusUsage, `ARGON_PROVIDER="net" is not used by conduit udp, but by ofi`)
	r = gasrun(t, "-conduit", "ofi", "-providers")
	if providers.Built {
		if !strings.Contains(r.stdout, "libfabric "+providers.Library()) || !strings.Contains(r.stdout, "* used; - not used") {
			t.Errorf("%+v", r)
		}
		return
	}
	for _, args := range [][]string{{"-conduit", "ofi", "-providers"}, {"-conduit", "ofi", "true"}} {
		r := gasrun(t, args...)
		if r.status != jobenv.StatusUsage || !strings.Contains(r.stderr, "apt-get install libfabric-dev") || !strings.Contains(r.stderr, "go build -tags ofi") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// TestFabricHybrid: a job on two hosts, one of them with several ranks, talks by shared
// memory and libfabric; a rank that is killed is named.
func TestFabricHybrid(t *testing.T) {
	testmain.Long(t)
	if !providers.Built {
		r := gasrun(t, "-conduit", "hybrid-ofi", "true")
		r.want(t, jobenv.StatusUsage, "go build -tags ofi")
		return
	}
	on := []string{"-conduit", "hybrid-ofi", "-provider", "net", "-hosts", "localhost:2,localhost:1", "./testdata/gasprog"}
	gasrun(t, append(on, "good")...).want(t, 0)
	gasrun(t, append(on, "kill")...).want(t, 137, "gasrun: rank 1 (pid ", " killed by SIGKILL")
}
