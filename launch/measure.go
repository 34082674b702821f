package launch

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/nets"
	"github.com/argon-go/argon/internal/launch"
)

// measuring writes the file of -networks: gasrun starts itself on each host, once to learn of the hosts'
// addresses, and once for each network that two of them have, whose ranks measure each other by it.
type measuring struct {
	file string // "-" is standard output
}

// measureArg is the first argument of gasrun as a rank of such a job; what it is to do follows.
const measureArg = "measure-networks"

// The second argument: print the addresses of this host, a line for this rank's way to the next one, or
// a report of the host.
const (
	measurePrefixes = "prefixes"
	measureRates    = "rates"
	measureCheck    = "check"
)

func (m *measuring) flags(f *flag.FlagSet) { f.StringVar(&m.file, "measure", "", "") }

// finish checks the command line of a gasrun that measures.
func (m *measuring) finish(o *options, given map[string]bool, args int) error {
	if !given["measure"] {
		return nil
	}
	if err := onlyWith(given, "measure"); err != nil {
		return err
	}
	for _, name := range []string{jobenv.Iface, jobenv.Networks} {
		if os.Getenv(name) != "" {
			return fmt.Errorf("-measure looks for networks, and %s says which are used: unset it", name)
		}
	}
	switch {
	case m.file == "":
		return errors.New("-measure: the name is empty; - is standard output")
	case args > 0:
		return errors.New("-measure runs no program: it writes the file for -networks")
	case len(o.Hosts) < 2:
		return fmt.Errorf("-measure: %d hosts; networks are between two or more (-hosts, -hostfile)", len(o.Hosts))
	}
	return nil
}

// run measures, and writes the file.
func (m *measuring) run(c launch.Config) (err error) {
	if c, err = ownRanks(c, 1); err != nil {
		return err
	}
	c.Segment = 2 * measured
	all, err := found(c)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "# The networks of %d hosts by gasrun -measure: half a round trip of 8 bytes, and puts of %d bytes.\n", len(c.Hosts), measured)
	usable := 0
	for i := range all {
		f := &all[i]
		if err := f.measure(c); errors.Is(err, errStopped) {
			return err
		} else if err != nil {
			why, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(&text, "# %s %v of %d hosts cannot be used: %s\n", f.Name, f.Prefix, len(f.hosts), why)
			continue
		}
		usable++
		fmt.Fprintln(&text, f.Network.String())
	}
	if usable == 0 {
		return fmt.Errorf("none of these can be used:\n%s", &text)
	}
	if m.file == "-" {
		_, err = os.Stdout.Write(text.Bytes())
		return err
	}
	return os.WriteFile(m.file, text.Bytes(), 0o644)
}

// errStopped is the error of a job that was stopped from outside, which says nothing of its network; errLate
// is that of one which -timeout has stopped.
var (
	errStopped = errors.New("stopped before it was done")
	errLate    = fmt.Errorf("%w in time", errStopped)
)

// network is one that hosts have addresses on.
type network struct {
	nets.Network
	hosts []int
	at    map[netip.Addr]string // the stack that has an address
	twice netip.Addr            // one that two have: the prefix is of networks inside of hosts, as of containers
}

// ownRanks is the configuration of jobs of gasrun itself, with so many ranks on each host.
func ownRanks(c launch.Config, perHost int) (_ launch.Config, err error) {
	c.Program, err = os.Executable()
	c.Deputy, c.Conduit, c.PerHost, c.Size, c.Signals = self, "udp", perHost, 0, signals()
	c.Hosts = slices.Clone(c.Hosts)
	for i := range c.Hosts {
		c.Hosts[i].Slots = 0 // which are for the ranks of jobs
	}
	c.Env = append(slices.Clone(c.Env), jobenv.Profile+"=0") // which would be measured, too
	os.Unsetenv(jobenv.Record)
	os.Unsetenv(jobenv.Trace)
	os.Unsetenv(jobenv.TraceLast)
	return c, err
}

// printed runs a job that measures, and returns what its ranks have printed, whether it has failed or not.
func printed(c launch.Config, what string) (text string, err error) {
	var out, said bytes.Buffer
	c.Args = []string{measureArg, what}
	c.Stdout, c.Stderr = &out, &said
	c.Log = c.Stderr
	res, err := launch.Run(context.Background(), c)
	switch {
	case res.Status == jobenv.StatusTimeout:
		err = fmt.Errorf("%w: %w", errLate, err)
	case res.Status > 128 && res.Failed < 0:
		err = fmt.Errorf("%w: %w", errStopped, err)
	case err == nil && res.Status != 0:
		err = fmt.Errorf("status %d", res.Status)
	}
	if err != nil && c.Verbose {
		_, _ = said.WriteTo(os.Stderr)
	}
	return out.String(), err
}

// ranks runs a job that measures, and returns the words of each rank's line, without its number.
func ranks(c launch.Config, what string) (lines [][]string, err error) {
	out, err := printed(c, what)
	if err != nil {
		return nil, err
	}
	lines = make([][]string, len(c.Hosts))
	for l := range strings.Lines(out) {
		f := strings.Fields(l)
		if len(f) == 0 {
			continue
		}
		if r, err := strconv.Atoi(f[0]); err == nil && r >= 0 && r < len(lines) {
			lines[r] = f[1:]
		}
	}
	if i := slices.IndexFunc(lines, func(f []string) bool { return f == nil }); i >= 0 {
		return nil, fmt.Errorf("the rank on host %s has printed nothing", c.Hosts[i].Name)
	}
	return lines, nil
}

// found are the networks that two hosts or more have addresses on, of one family: IPv4 if there are any of it.
func found(c launch.Config) (all []network, err error) {
	lines, err := ranks(c, measurePrefixes)
	if err != nil {
		return nil, err
	}
	for h, words := range lines {
		for _, w := range words[1:] {
			name, prefix, _ := strings.Cut(w, "=")
			p, err := netip.ParsePrefix(prefix)
			if err != nil {
				continue
			}
			a, p := p.Addr(), p.Masked()
			i := slices.IndexFunc(all, func(n network) bool { return n.Prefix == p })
			if i < 0 {
				if i = len(all); slices.ContainsFunc(all, func(n network) bool { return n.Name == name }) {
					name += "-" + p.Addr().String()
				}
				all = append(all, network{Network: nets.Network{Name: name, Prefix: p}, at: map[netip.Addr]string{}})
			}
			n := &all[i]
			if other, there := n.at[a]; there && other != words[0] {
				n.twice = a
			}
			if n.at[a] = words[0]; !slices.Contains(n.hosts, h) {
				n.hosts = append(n.hosts, h)
			}
		}
	}
	all = slices.DeleteFunc(all, func(n network) bool { return len(n.hosts) < 2 })
	if slices.ContainsFunc(all, func(n network) bool { return n.Prefix.Addr().Is4() }) {
		all = slices.DeleteFunc(all, func(n network) bool { return !n.Prefix.Addr().Is4() })
	}
	if len(all) == 0 {
		return nil, errors.New("no two of the hosts have addresses in one network")
	}
	return all[:min(len(all), nets.MaxNetworks)], nil
}

// measure has the hosts on the network measure it.
func (n *network) measure(c launch.Config) error {
	if n.twice.IsValid() {
		return fmt.Errorf("two hosts have the address %v, as in networks of containers inside of each", n.twice)
	}
	var on []launch.Host
	for _, h := range n.hosts {
		on = append(on, c.Hosts[h])
	}
	c.Hosts = on
	only := nets.Graph{Networks: []nets.Network{n.Network}, Relay: -1}
	only.Networks[0].Steps = []nets.Step{{Rate: 1e9}} // of one network it does not matter
	c.Env = append(slices.Clone(c.Env), jobenv.Networks+"="+only.String())
	lines, err := ranks(c, measureRates)
	if err != nil {
		return err
	}
	var times []time.Duration
	var rates []float64
	for _, f := range lines {
		if len(f) != 2 {
			continue
		}
		t, err1 := strconv.ParseInt(f[0], 10, 64)
		r, err2 := strconv.ParseFloat(f[1], 64)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		times, rates = append(times, time.Duration(t)), append(rates, r)
	}
	if len(times) == 0 {
		return errors.New("no rank has measured")
	}
	slices.Sort(times)
	slices.Sort(rates)
	latency := times[len(times)/2].Round(100 * time.Nanosecond)
	rate := float64(int64(rates[len(rates)/2]/1e5)+1) * 1e5 // of three digits or so, and not 0
	n.Steps = []nets.Step{{Latency: latency, Rate: rate}}
	return nil
}

// measureRank is what gasrun does as a rank of such a job.
func measureRank(what string) error {
	switch what {
	case measureRates:
		return gas.Run(gas.Config{}, rates)
	case measureCheck:
		return checkRank()
	}
	return gas.Run(gas.Config{}, func(n *gas.Node) error {
		list, err := prefixes()
		if err == nil {
			fmt.Println(n.Rank(), stack(), strings.Join(list, " "))
		}
		return err
	})
}

// stack names the network stack of this process: hosts of one are one machine under two names.
func stack() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/net")
	return "stack=" + strings.TrimSpace(string(boot)) + space
}

// prefixes are NAME=ADDRESS/BITS of the interfaces of this host that are up.
func prefixes() (list []string, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && !p.IsSingleIP() && !p.Addr().IsLinkLocalUnicast() {
				list = append(list, i.Name+"="+p.String())
			}
		}
	}
	return list, nil
}

// What a rank measures by: blocks of so many bytes, until it has had so many or so much time has
// passed, but twice at least; and of more than so many ranks only some.
const (
	measured     = 1 << 20
	mostMeasured = 16
	measureTime  = 200 * time.Millisecond
)

// rates has one rank after the other measure its way to the next, and print its line.
func rates(n *gas.Node) error {
	p, err := gas.NewSlice[byte](n, measured)
	if err != nil {
		return err
	}
	word, err := gas.New[uint64](n)
	if err != nil {
		return err
	}
	every := (n.Size() + mostMeasured - 1) / mostMeasured
	for r := 0; r < n.Size(); r += every {
		if err := n.Barrier(); err != nil {
			return err
		}
		if r != n.Rank() {
			continue
		}
		next := (r + 1) % n.Size()
		least, best := time.Duration(1<<62), 0.0
		for i, begun := 0, time.Now(); i < 2 || i < 500 && time.Since(begun) < measureTime; i++ {
			t := time.Now()
			if _, err := word.On(next).Get(n); err != nil {
				return err
			}
			least = min(least, time.Since(t)/2)
		}
		data := make([]byte, measured)
		for i, begun := 0, time.Now(); i < 2 || i < 64 && time.Since(begun) < measureTime; i++ {
			t := time.Now()
			if err := p.On(next).PutSlice(n, data); err != nil {
				return err
			}
			best = max(best, measured/(time.Since(t)-least).Seconds())
		}
		fmt.Println(r, int64(least), best)
	}
	if n.Rank()%every != 0 {
		fmt.Println(n.Rank(), "-")
	}
	return n.Barrier()
}
