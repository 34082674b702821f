package launch

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
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
	cut   bool // gasrun was stopped before all was looked at
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
	if v.cut {
		fmt.Fprintf(w, "%-4s gasrun was stopped before it knew whether jobs can run %s\n", levelFail, where)
		return false
	}
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

// checkLimit ends a check that is given no -timeout: a host that does not go on holds up all others.
const checkLimit = 2 * time.Minute

// run checks the hosts and prints what it finds. Hosts on which nothing can be started are left out then.
func (k *checking) run(c launch.Config, w io.Writer) (status int, err error) {
	if c, err = ownRanks(c, 2); err != nil {
		return 0, err
	}
	c.Env = append(c.Env, jobenv.Networks+"=") // the network by -iface or by route is looked at
	c.Bind = launch.BindNone                   // or the ranks would be told of a part of the processors
	if c.Timeout == 0 {
		c.Timeout = checkLimit
	}
	if os.Getenv(jobenv.JoinTimeout) == "" { // a host whose ranks do not join is left out while there is time for the others
		c.Env = slices.Insert(c.Env, 0, fmt.Sprintf("%s=%v", jobenv.JoinTimeout, min(c.Timeout, checkLimit)/2))
	}
	labels := labelsOf(c) // of c.Hosts; jobs of a part of the hosts may call them differently
	v := verdict{hosts: labels}
	for len(c.Hosts) > 0 {
		out, err := printed(c, measureCheck)
		stopped := errors.Is(err, errStopped)
		if err != nil && !stopped {
			c.Hosts, labels = v.startless(c, labels, err)
			continue
		}
		reports := parseReports(out, len(labels))
		for i, h := range c.Hosts {
			switch {
			case reports[2*i].Stage == stageNone:
			case h.Here:
				v.add(finding{levelOK, "start", "this machine"}, labels[i])
			default:
				v.add(finding{levelOK, "start", "by ssh, which has asked nothing, and back to gasrun by TCP"}, labels[i])
			}
		}
		held := heldUp(reports)
		switch {
		case errors.Is(err, errLate):
			v.held(held, labels, fmt.Sprintf("nothing more was heard within %v (-timeout): a stopped process (ps), or a file system or card that does not answer (df)", c.Timeout))
		case stopped:
			v.cut = true
			v.held(held, labels, "this was waited for when gasrun was stopped")
		case held != nil:
			v.held(held, labels, "the ranks have ended without a report")
		}
		v.judge(firsts(reports), labels, held == nil)
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
	if labels == nil { // the job would be too large
		for _, h := range c.Hosts {
			labels = append(labels, h.Name)
		}
	}
	return labels
}

// startless adds what err says of hosts, and returns those that it says nothing of; none if it is of none.
func (v *verdict) startless(c launch.Config, labels []string, err error) (left []launch.Host, called []string) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	bad := map[int]bool{}
	now := labelsOf(c)
	fail := func(host, text string) {
		if i := slices.Index(now, host); i >= 0 {
			bad[i] = true
			v.add(finding{levelFail, "start", text}, labels[i])
		}
	}
	for _, err := range all {
		var h *launch.HostError
		var r *launch.RankError
		switch {
		case errors.As(err, &h) && strings.HasPrefix(h.Cause, launch.NotAwaited):
		case errors.As(err, &h):
			fail(h.Host, h.Cause+mend(h.Host, h.Cause))
		case errors.As(err, &r):
			fail(r.Host, strings.Join(append(slices.Clone(r.Last), r.Cause), "; "))
		}
	}
	if len(bad) == 0 {
		v.add(finding{levelFail, "start", err.Error()}, labels...)
		return nil, nil
	}
	for i, h := range c.Hosts {
		if !bad[i] {
			left, called = append(left, h), append(called, labels[i])
		}
	}
	return left, called
}

// firsts are the reports of the hosts' first ranks.
func firsts(reports []report) (list []report) {
	for i := 0; i < len(reports); i += 2 {
		list = append(list, reports[i])
	}
	return list
}

// heldUp are the hosts that others wait for, nil if all are done: those that have got least far. If that
// is where all wait for host 0, it is that one.
func heldUp(reports []report) (hosts []int) {
	least, most := stageOver, stageNone
	for i, r := range firsts(reports) {
		stage := r.Stage
		if second := reports[2*i+1].Stage; second == stageNone {
			stage = stageNone
		} else if stage == stageOver {
			stage = max(second, stageSent)
		}
		if most = max(most, stage); stage < least {
			least, hosts = stage, nil
		}
		if stage == least && stage < stageOver {
			hosts = append(hosts, i)
		}
	}
	if least == most && (least == stageLooked || least == stageSent && reports[0].Stage == stageSent) {
		return hosts[:1]
	}
	return hosts
}

// held adds of hosts that text holds.
func (v *verdict) held(hosts []int, labels []string, text string) {
	for _, i := range hosts {
		v.add(finding{levelFail, "answer", text}, labels[i])
	}
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

// parseReports reads what the two ranks of each host have printed.
func parseReports(out string, hosts int) []report {
	all := make([]report, 2*hosts)
	for line := range strings.Lines(out) {
		var r report
		if json.Unmarshal([]byte(line), &r) != nil || r.Rank < 0 || r.Rank >= len(all) {
			continue
		}
		if r.Findings == nil { // it has got on
			all[r.Rank].Stage = r.Stage
			continue
		}
		all[r.Rank] = r
	}
	return all
}

// judge adds what the hosts have found, of each other if they have come to an end.
func (v *verdict) judge(reports []report, labels []string, over bool) {
	for i, r := range reports {
		for _, f := range r.Findings {
			v.add(f, labels[i])
		}
	}
	slices.SortStableFunc(v.lines, func(a, b told) int { return v.place(a) - v.place(b) })
	if !over || len(reports) < 2 || !v.addresses(reports, labels) {
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
	given := slices.ContainsFunc(reports, func(r report) bool { return r.Datagram })
	if jumbo == pairs && !given && !reports[0].Addr.IsLoopback() {
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
