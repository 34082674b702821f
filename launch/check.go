package launch

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
)

// checking looks whether a job could run on some hosts: gasrun starts two ranks of its own on each of
// them, which look at their host and exchange datagrams as ranks of conduit udp would.
type checking struct {
	on bool
}

func (k *checking) flags(f *flag.FlagSet) { f.BoolVar(&k.on, "check", false, "") }

// finish checks the command line of a gasrun that checks.
func (k *checking) finish(o *options, given map[string]bool, args int) error {
	switch {
	case !k.on:
		return nil
	case args > 0:
		return errors.New("-check runs no program: it reports whether jobs can run on the hosts (-hosts, -hostfile)")
	case len(o.Hosts) == 0:
		o.Hosts = []launch.Host{{Name: "localhost", Here: true}}
	}
	return onlyWith(given, "check", "iface", "x")
}

// onlyWith is an error if flags are given that say nothing to a gasrun which starts ranks of its own.
func onlyWith(given map[string]bool, name string, also ...string) error {
	also = append(also, name, "hosts", "hostfile", "ssh", "start-timeout", "tmpdir", "timeout", "kill-grace", "v", "q")
	for other := range given {
		if !slices.Contains(also, other) {
			return fmt.Errorf("-%s and -%s exclude each other: gasrun runs ranks of its own on each host", other, name)
		}
	}
	return nil
}

// topicVersions is the topic of the one finding that has to be equal on all hosts.
const topicVersions = "versions"

// A told is a finding and the hosts that it is of.
type told struct {
	finding
	hosts []string
}

// A verdict has what gasrun -check prints.
type verdict struct {
	hosts []string // all, as messages call them
	lines []told
}

// add adds a finding of hosts, to an equal one if there is such.
func (v *verdict) add(f finding, hosts ...string) {
	i := slices.IndexFunc(v.lines, func(t told) bool { return t.finding == f })
	if i < 0 {
		i = len(v.lines)
		v.lines = append(v.lines, told{finding: f})
	}
	v.lines[i].hosts = append(v.lines[i].hosts, hosts...)
}

// print writes the lines, and reports whether a job could run.
func (v *verdict) print(w io.Writer) bool {
	failed, versions := false, 0
	for _, t := range v.lines {
		failed = failed || t.Level == levelFail
		if t.Topic == topicVersions {
			versions++
		}
	}
	for _, t := range v.lines {
		if t.Topic == topicVersions && versions > 1 {
			t.Level, t.Text = levelNote, t.Text+": the hosts differ; jobs run, and may run differently"
		}
		fmt.Fprintf(w, "%-4s %s: %s: %s\n", t.Level, v.names(t.hosts), t.Topic, t.Text)
	}
	where := "on " + v.names(v.hosts)
	if failed {
		fmt.Fprintf(w, "%-4s no job can run %s: see the lines above that begin so\n", levelFail, where)
		return false
	}
	fmt.Fprintf(w, "%-4s jobs can run %s\n", levelOK, where)
	return true
}

// mostNamed is how many hosts a line names.
const mostNamed = 8

// names lists hosts.
func (v *verdict) names(hosts []string) string {
	switch n := len(hosts); {
	case n == len(v.hosts) && n > 2:
		return fmt.Sprintf("all %d hosts", n)
	case n > mostNamed:
		return fmt.Sprintf("%s and %d more", strings.Join(hosts[:mostNamed], ", "), n-mostNamed)
	}
	return strings.Join(hosts, ", ")
}

// run checks the hosts and prints what it finds. Hosts on which nothing can be started are left out then.
func (k *checking) run(c launch.Config, w io.Writer) (status int, err error) {
	if c, err = ownRanks(c, 2); err != nil {
		return 0, err
	}
	c.Env = append(c.Env, jobenv.Networks+"=") // the network by -iface or by route is looked at
	c.Bind = launch.BindNone                   // or the ranks would be told of a part of the processors
	v := verdict{}
	for len(c.Hosts) > 0 {
		labels := labelsOf(c)
		if v.hosts == nil {
			v.hosts = labels
		}
		out, err := printed(c, measureCheck)
		if errors.Is(err, errStopped) {
			return 0, err
		}
		if err != nil {
			if c.Hosts = v.startless(c, labels, err); c.Hosts != nil {
				continue
			}
			break
		}
		for i, h := range c.Hosts {
			if h.Here {
				v.add(finding{levelOK, "start", "this machine"}, labels[i])
			} else {
				v.add(finding{levelOK, "start", "by ssh, which has asked nothing, and back to gasrun by TCP"}, labels[i])
			}
		}
		reports, err := parseReports(out, labels)
		if err != nil {
			return 0, err
		}
		v.judge(reports, labels)
		break
	}
	if v.print(w) {
		return 0, nil
	}
	return jobenv.StatusFailed, nil
}

// labelsOf is what messages call each host.
func labelsOf(c launch.Config) (labels []string) {
	c.EnsureDefaults()
	for i, name := range c.PlanHosts() {
		if i%c.PerHost == 0 {
			labels = append(labels, name)
		}
	}
	return labels
}

// startless adds what err says of hosts, and returns those that it says nothing of; nil if it is of none.
func (v *verdict) startless(c launch.Config, labels []string, err error) (left []launch.Host) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	bad := map[string]bool{}
	for _, err := range all {
		var h *launch.HostError
		var r *launch.RankError
		switch {
		case errors.As(err, &h) && strings.HasPrefix(h.Cause, launch.NotAwaited):
		case errors.As(err, &h):
			bad[h.Host] = true
			v.add(finding{levelFail, "start", h.Cause + mend(h.Host, h.Cause)}, h.Host)
		case errors.As(err, &r) && slices.Contains(labels, r.Host):
			bad[r.Host] = true
			v.add(finding{levelFail, "start", strings.Join(append(slices.Clone(r.Last), r.Cause), "; ")}, r.Host)
		}
	}
	if len(bad) == 0 {
		v.add(finding{levelFail, "start", err.Error()}, labels...)
		return nil
	}
	for i, h := range c.Hosts {
		if !bad[labels[i]] {
			left = append(left, h)
		}
	}
	return left
}

// mend is what to do about what ssh, or a host, has said.
func mend(host, cause string) string {
	for _, m := range []struct{ said, how string }{
		{"Host key verification failed", "; log in once by hand and accept its key (ssh %s), or put it into known_hosts (ssh-keyscan)"},
		{"Permission denied", "; give it your key (ssh-copy-id %s), or your agent the key (ssh-add)"},
		{"Could not resolve", "; name %s in /etc/hosts or ~/.ssh/config, or give its address"},
		{"Connection refused", "; start sshd on %s (systemctl start ssh), or name its port (-ssh \"ssh -p PORT\")"},
		{"timed out", "; is %s up (ping), and does a firewall let ssh through?"},
		{"No route to host", "; is %s up (ping), and on this network (ip route)?"},
	} {
		if strings.Contains(cause, m.said) {
			if !strings.Contains(m.how, "%s") {
				return m.how
			}
			return fmt.Sprintf(m.how, host)
		}
	}
	return ""
}

// parseReports reads what the ranks have printed.
func parseReports(out string, labels []string) ([]report, error) {
	all := make([]report, len(labels))
	seen := make([]bool, len(labels))
	for line := range strings.Lines(out) {
		var r report
		if json.Unmarshal([]byte(line), &r) == nil && r.Host >= 0 && r.Host < len(all) {
			all[r.Host], seen[r.Host] = r, true
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		return nil, fmt.Errorf("the rank on host %s has printed nothing", labels[i])
	}
	return all, nil
}

// judge adds what the hosts have found.
func (v *verdict) judge(reports []report, labels []string) {
	for i, r := range reports {
		for _, f := range r.Findings {
			v.add(f, labels[i])
		}
	}
	slices.SortStableFunc(v.lines, func(a, b told) int { return v.place(a) - v.place(b) })
	if len(reports) < 2 || !v.addresses(reports, labels) {
		return
	}
	v.datagrams(reports, labels)
	v.clocks(reports, labels)
}

// place is where a line's topic has come first, so that lines of one topic stand together.
func (v *verdict) place(t told) int {
	return slices.IndexFunc(v.lines, func(other told) bool { return other.Topic == t.Topic })
}

// addresses adds what is wrong about the addresses, and reports whether they fit together.
func (v *verdict) addresses(reports []report, labels []string) bool {
	first := reports[0].Addr
	for i, r := range reports {
		switch a := r.Addr; {
		case a.Is4() != first.Is4():
			v.add(finding{levelFail, "addresses", fmt.Sprintf("%s is at %v and %s at %v: IPv4 and IPv6 in one job; choose with -iface", labels[0], first, labels[i], a)}, labels[0], labels[i])
			return false
		case a.IsLoopback() != first.IsLoopback():
			v.add(finding{levelFail, "addresses", fmt.Sprintf("%s is at %v and %s at %v: other hosts do not reach a loopback address; choose with -iface", labels[0], first, labels[i], a)}, labels[0], labels[i])
			return false
		}
	}
	return true
}

// datagrams adds which datagrams have come.
func (v *verdict) datagrams(reports []report, labels []string) {
	pairs, good, jumbo := 0, 0, 0
	sizes := func(r report, some func(size int) bool) (list []string) {
		for _, s := range r.Sizes {
			if some(s) {
				list = append(list, fmt.Sprint(s))
			}
		}
		return list
	}
	var sent []string
	for to, r := range reports {
		type loss struct {
			level, text string
			from        []string
		}
		var losses []loss
		for _, from := range mates(to, len(reports)) {
			f := reports[from]
			heard := func(s int) bool { return slices.Contains(r.Heard[from], s) }
			asked := func(s int) bool { return s < checkJumbo || f.Datagram }
			sent = sizes(f, asked)
			missing := sizes(f, func(s int) bool { return asked(s) && !heard(s) })
			fits := 0 // the longest for which all shorter ones have come, too
			for _, s := range f.Sizes {
				if !heard(s) {
					break
				}
				fits = s
			}
			pairs++
			l := loss{level: levelFail}
			switch {
			case len(missing) == 0:
				good++
				if heard(checkJumbo) {
					jumbo++
				}
				continue
			case fits == 0 && f.Refused[to] != "":
				l.text = "none come from %s, whose system refuses to send them: " + f.Refused[to] + ": a firewall there, or no route (nft list ruleset, ip route, -iface)"
			case fits == 0:
				l.text = "none come from %s, though TCP does: a firewall drops UDP, all of whose ports have to be open between the hosts of a job (nft list ruleset), or the network is the wrong one (-iface)"
			default:
				l.text = fmt.Sprintf("of %s bytes do not come from %%s, those of %d do: an MTU on the way is too small (here %s, there %s): ", strings.Join(missing, ", "), fits, r.MTU, f.MTU)
				if fits >= f.Least {
					l.level = levelNote
					l.text += "jobs run with shorter ones, more slowly; ip link set dev IFACE mtu 1500 mends it"
				} else {
					l.text += fmt.Sprintf("jobs need %d bytes; ip link set dev IFACE mtu 1500", f.Least)
				}
			}
			i := slices.IndexFunc(losses, func(o loss) bool { return o.level == l.level && o.text == l.text })
			if i < 0 {
				i = len(losses)
				losses = append(losses, l)
			}
			losses[i].from = append(losses[i].from, labels[from])
		}
		for _, l := range losses {
			v.add(finding{l.level, "datagrams", fmt.Sprintf(l.text, v.names(l.from))}, labels[to])
		}
	}
	of := "of " + strings.Join(sent, ", ") + " bytes"
	switch good {
	case 0:
	case pairs:
		v.add(finding{levelOK, "datagrams", of + " pass both ways"}, labels...)
	default:
		v.add(finding{levelOK, "datagrams", fmt.Sprintf("%s pass from host to host in %d of %d cases", of, good, pairs)}, labels...)
	}
	if jumbo == pairs && !reports[0].Addr.IsLoopback() {
		v.add(finding{levelOK, "jumbo frames", fmt.Sprintf("datagrams of %d bytes pass, too: -x ARGON_DATAGRAM=%[1]d makes long transfers cheaper", checkJumbo)}, labels...)
	}
}

// mostApart is how far clocks may be apart before that is told.
const mostApart = 100 * time.Millisecond

// clocks adds how far clocks are apart.
func (v *verdict) clocks(reports []report, labels []string) {
	var most time.Duration
	a, b := -1, -1
	for i, r := range reports {
		for j, c := range r.Clock {
			// Sure is what is left when the answer may have taken its whole time either way.
			if sure := max(c[0], -c[0]) - c[1]; j < len(labels) && (a < 0 || sure > most) {
				most, a, b = sure, i, j
			}
		}
	}
	switch {
	case a < 0:
	case most > mostApart:
		v.add(finding{levelNote, "clocks", fmt.Sprintf("%v apart or more: times in logs do not compare (timedatectl set-ntp true, chronyc makestep)", most.Round(time.Millisecond))}, labels[a], labels[b])
	default:
		v.add(finding{levelOK, "clocks", fmt.Sprintf("not more than %v apart, as far as can be told", mostApart)}, labels...)
	}
}
