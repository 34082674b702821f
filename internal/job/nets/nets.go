// Package nets describes the networks of a job whose hosts have several, and finds
// the way from one host to another: by which network, for data of which size, and
// through which hosts if the two have none in common.
//
// A description has a line for each network, in the order in which they are
// preferred where two take equally long:
//
//	network NAME PREFIX latency TIME bandwidth RATE [from SIZE latency TIME bandwidth RATE]... [hosts HOST,HOST,...]
//	relay TIME
//
// A host is on a network if it has an address in PREFIX, such as 10.1.0.0/16, and,
// where hosts are named, is one of those. n bytes take latency + n/bandwidth; from
// a SIZE on other values may hold. A host that hands data on from one network to
// another takes the time of relay, 20us without that line; "relay none" means that
// none does. What follows # is a comment. A ; ends a line, too.
package nets

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// The bounds of a description.
const (
	MaxNetworks = 16
	MaxText     = 8 << 10 // bytes: it is a variable of the environment of each rank
	maxSteps    = 8       // sizes from which on a network has other values
	maxLatency  = 10 * time.Second
	maxRate     = 1e15 // bytes a second
)

// DefaultRelay is how long a host takes to hand a datagram on.
const DefaultRelay = 20 * time.Microsecond

// Graph is a description of networks.
type Graph struct {
	Networks []Network
	Relay    time.Duration // to hand data on; negative: no host does
}

// Network is one of them.
type Network struct {
	Name   string
	Prefix netip.Prefix
	Hosts  []string // if not empty, only these are on it
	Steps  []Step   // by size, of which the first is 0
}

// Step is what holds for data of Size bytes or more.
type Step struct {
	Size    uint64
	Latency time.Duration
	Rate    float64 // bytes a second
}

// step is the one for n bytes.
func (n *Network) step(bytes uint64) Step {
	i := len(n.Steps) - 1
	for i > 0 && n.Steps[i].Size > bytes {
		i--
	}
	return n.Steps[i]
}

// Has reports whether a host of one of these names is on n by address a.
func (n *Network) Has(a netip.Addr, names ...string) bool {
	return n.Prefix.Contains(a) &&
		(len(n.Hosts) == 0 || slices.ContainsFunc(names, func(s string) bool { return slices.Contains(n.Hosts, s) }))
}

// Parse reads a description. source, a file or a variable, begins the errors.
func Parse(source, text string) (*Graph, error) {
	if len(text) > MaxText {
		return nil, errs.BadArg("nets: %s has %d bytes; a description has at most %d", source, len(text), MaxText)
	}
	g := &Graph{Relay: DefaultRelay}
	relayed := false
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for part := range strings.SplitSeq(line, ";") {
			f := strings.Fields(part)
			var err error
			switch {
			case len(f) == 0:
			case f[0] == "network":
				err = g.network(f[1:])
			case f[0] == "relay" && len(f) == 2 && !relayed:
				relayed = true
				if g.Relay = -1; f[1] != "none" {
					g.Relay, err = parseTime("relay", f[1])
				}
			case f[0] == "relay":
				err = errs.BadArg("%q: relay has one time, or none, on one line", strings.Join(f, " "))
			default:
				err = errs.BadArg("%q: a line begins with network or relay", f[0])
			}
			if err != nil {
				return nil, fmt.Errorf("nets: %s:%d: %w", source, i+1, err)
			}
		}
	}
	if len(g.Networks) == 0 {
		return nil, errs.BadArg("nets: %s names no network", source)
	}
	return g, nil
}

// network takes a line without its first word.
func (g *Graph) network(f []string) (err error) {
	var n Network
	if len(f) < 6 {
		return errs.BadArg("a network has NAME PREFIX latency TIME bandwidth RATE")
	}
	n.Name = f[0]
	if n.Prefix, err = netip.ParsePrefix(f[1]); err != nil {
		return errs.BadArg("network %s: %q is no prefix of addresses, such as 10.1.0.0/16", n.Name, f[1])
	}
	if n.Prefix != n.Prefix.Masked() {
		return errs.BadArg("network %s: prefix %s has bits beyond its length; it is %s", n.Name, f[1], n.Prefix.Masked())
	}
	s := Step{}
	for f = f[2:]; ; f = f[2:] {
		if len(f) < 4 || f[0] != "latency" || f[2] != "bandwidth" {
			return errs.BadArg("network %s: %q; latency TIME bandwidth RATE are expected", n.Name, strings.Join(f[:min(len(f), 4)], " "))
		}
		if s.Latency, err = parseTime("network "+n.Name+": latency", f[1]); err != nil {
			return err
		}
		if s.Rate, err = parseRate(f[3]); err != nil {
			return fmt.Errorf("network %s: %w", n.Name, err)
		}
		n.Steps = append(n.Steps, s)
		if f = f[4:]; len(f) < 2 || f[0] != "from" {
			break
		}
		if s.Size, err = jobenv.ParseSize(f[1]); err != nil || s.Size <= n.Steps[len(n.Steps)-1].Size {
			return errs.BadArg("network %s: from %q is no size above %d bytes, such as 64K", n.Name, f[1], n.Steps[len(n.Steps)-1].Size)
		}
		if len(n.Steps) == maxSteps {
			return errs.BadArg("network %s: values for more than %d sizes", n.Name, maxSteps)
		}
	}
	if len(f) == 2 && f[0] == "hosts" {
		n.Hosts, f = strings.Split(f[1], ","), nil
	}
	switch {
	case len(f) > 0:
		return errs.BadArg("network %s: %q at the end of the line; from SIZE, or hosts HOST,HOST,...", n.Name, strings.Join(f, " "))
	case slices.Contains(n.Hosts, ""):
		return errs.BadArg("network %s: a host without a name", n.Name)
	case slices.ContainsFunc(g.Networks, func(o Network) bool { return o.Name == n.Name }):
		return errs.BadArg("network %s has two lines", n.Name)
	case len(g.Networks) > 0 && g.Networks[0].Prefix.Addr().Is4() != n.Prefix.Addr().Is4():
		return errs.BadArg("network %s is %v, network %s %v: IPv4 and IPv6 in one job", n.Name, n.Prefix, g.Networks[0].Name, g.Networks[0].Prefix)
	case len(g.Networks) == MaxNetworks:
		return errs.BadArg("network %s: a job has at most %d", n.Name, MaxNetworks)
	}
	g.Networks = append(g.Networks, n)
	return nil
}

func parseTime(what, s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxLatency {
		return 0, errs.BadArg("%s %q is no time up to %v, such as 5us", what, s, maxLatency)
	}
	return d, nil
}

// units of rates, bytes a second; longer names before those that end them.
var units = []struct {
	name string
	rate float64
}{
	{"Gbit/s", 1e9 / 8},
	{"Mbit/s", 1e6 / 8},
	{"kbit/s", 1e3 / 8},
	{"GB/s", 1e9},
	{"MB/s", 1e6},
	{"kB/s", 1e3},
	{"B/s", 1},
}

func parseRate(s string) (float64, error) {
	for _, u := range units {
		if num, ok := strings.CutSuffix(s, u.name); ok {
			if v, err := strconv.ParseFloat(num, 64); err == nil && v*u.rate >= 1 && v*u.rate <= maxRate {
				return v * u.rate, nil
			}
			break
		}
	}
	return 0, errs.BadArg("bandwidth %q is no rate from 1B/s to %.0fGB/s, such as 10Gbit/s or 1.2GB/s", s, maxRate/1e9)
}

// String is what Parse reads, on one line.
func (g *Graph) String() string {
	var l []string
	for i := range g.Networks {
		l = append(l, g.Networks[i].String())
	}
	switch {
	case g.Relay < 0:
		l = append(l, "relay none")
	case g.Relay != DefaultRelay:
		l = append(l, "relay "+timeText(g.Relay))
	}
	return strings.Join(l, "; ")
}

// timeText is d in ASCII.
func timeText(d time.Duration) string { return strings.ReplaceAll(d.String(), "µ", "u") }

// String is the network's line.
func (n *Network) String() string {
	s := fmt.Sprintf("network %s %s", n.Name, n.Prefix)
	for i, t := range n.Steps {
		if i > 0 {
			s += fmt.Sprintf(" from %d", t.Size)
		}
		s += fmt.Sprintf(" latency %s bandwidth %sMB/s", timeText(t.Latency), strconv.FormatFloat(t.Rate/1e6, 'g', -1, 64))
	}
	if len(n.Hosts) > 0 {
		s += " hosts " + strings.Join(n.Hosts, ",")
	}
	return s
}
