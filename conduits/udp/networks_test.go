package udp_test

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/contract"
)

var allNetworks = flag.Bool("udp.networks", false, "run the whole suite on hosts with several networks")

// threeHosts is a job whose ranks are dealt to hosts a, b and c: a and b have two networks in
// common, for small data and for large, and a reaches c through b alone.
func threeHosts(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	env := map[string]string{udp.EnvNetworks: `
		network small 127.0.0.0/8 latency 1us bandwidth 10MB/s hosts a,b
		network large 127.0.0.0/8 latency 100us bandwidth 10GB/s hosts a,b
		network far 127.0.0.0/8 latency 10us bandwidth 1GB/s hosts b,c`}
	for r := range udp.MaxLocal {
		env[strconv.Itoa(r)+":"+udp.EnvHost] = string(rune('a' + r%3))
	}
	return udp.Joined(seal.Authenticated, env)(n, c)
}

// TestConformanceNetworks runs the suite on it: by itself the checks that tell one way from
// several, and leaving while others go on.
func TestConformanceNetworks(t *testing.T) {
	if *allNetworks {
		conformance.Run(t, threeHosts)
		return
	}
	checks := slices.DeleteFunc(slices.Clone(contract.Checks), func(c contract.Check) bool {
		return !slices.Contains([]string{
			"identity", "config", "shapes", "messages", "messages of many ranks", "credits", "rma", "rma sizes",
			"put then message", "registered rma", "faults amid traffic", "wake by credit", "closed peer", "failure amid rma", "rules/left",
		}, c.Name)
	})
	contract.New(t, threeHosts).Run(t, "contract", checks)
}

// TestNetworksErrors has networks that do not connect the hosts of a job: its ranks' errors say
// which, and name the variable.
func TestNetworksErrors(t *testing.T) {
	const values = " latency 1us bandwidth 1GB/s "
	for _, c := range []struct{ networks, other, want string }{
		{"network n 127.0.0.0/8" + values + "hosts a; network m 127.0.0.0/8" + values + "hosts b,c", "", "no way from rank"},
		{"network n 127.0.0.0/8" + values + "hosts a,b; network m 127.0.0.0/8" + values + "hosts b,c; relay none", "", "no way from rank"},
		{"network n 127.0.0.0/8" + values + "hosts a,b; network m 203.0.113.0/24" + values, "", "host c is on none of the networks of ARGON_NETWORKS (network n 127.0.0.0/8"},
		{"network n 127.0.0.0/8" + values, "network n 127.0.0.0/16" + values, "ARGON_NETWORKS"},
		{"network n fd00::/8" + values, "", "the networks of the job (ARGON_NETWORKS) are of the other family"},
		{"network n 127.0.0.0/8", "", "nets: ARGON_NETWORKS:1: a network has NAME PREFIX latency TIME bandwidth RATE"},
	} {
		env := map[string]string{udp.EnvNetworks: c.networks}
		for r := range 3 {
			env[strconv.Itoa(r)+":"+udp.EnvHost] = string(rune('a' + r%3))
			if strings.Contains(c.networks, "::") {
				env[strconv.Itoa(r)+":"+udp.EnvHost] = "a" // all on one
			}
		}
		if c.other != "" {
			env["2:"+udp.EnvNetworks] = c.other
		}
		eps, err := udp.Joined(seal.Authenticated, env)(3, conduits.Config{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.networks, eps, err, c.want)
		}
	}
}
