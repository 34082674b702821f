package weathertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/hybrid/shmudp"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/lab/netns"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// buildFlags are those that this test program was built with, as far as they decide which conduits
// there are.
var buildFlags []string

// binaries are programs of this module, built once for all tests that start jobs
// by gasrun.
var binaries = struct {
	sync.Mutex
	dir   string
	built map[string]error
}{built: map[string]error{}}

// program builds a main package of this module and returns the executable.
func program(t *testing.T, pkg string) string {
	t.Helper()
	binaries.Lock()
	defer binaries.Unlock()
	if binaries.dir == "" {
		dir, err := os.MkdirTemp("", "argon-weather-")
		if err != nil {
			t.Fatal(err)
		}
		binaries.dir = dir
	}
	name := filepath.Join(binaries.dir, filepath.Base(pkg))
	err, ok := binaries.built[pkg]
	if !ok {
		out, e := exec.Command("go", slices.Concat([]string{"build", "-o", name}, buildFlags, []string{"github.com/argon-go/argon/" + pkg})...).CombinedOutput()
		if e != nil {
			err = fmt.Errorf("build %s: %w\n%s", pkg, e, out)
		}
		binaries.built[pkg] = err
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// A run is gasrun on one of the hosts, with a job on several.
type run struct {
	*exec.Cmd
	t        *testing.T
	out, err lockedBuffer
}

// lockedBuffer can be read while a process writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// gasrun starts gasrun on host from.
func gasrun(t *testing.T, n *netns.Net, from *netns.Host, args ...string) *run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	r := &run{t: t}
	r.Cmd = from.Command(ctx, program(t, "cmd/gasrun"), append([]string{"-ssh", n.SSH()}, args...)...)
	r.Stdout, r.Stderr = &r.out, &r.err
	r.Cancel = func() error { return r.Process.Signal(syscall.SIGINT) }
	r.WaitDelay = 20 * time.Second
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// wait returns gasrun's exit status when it has ended.
func (r *run) wait() int {
	r.t.Helper()
	err := r.Wait()
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		r.t.Fatalf("%v\n%s\n%s", err, &r.out, &r.err)
	}
	return r.ProcessState.ExitCode()
}

// want fails the test unless gasrun ends with status, and looks whether anything
// of the job is left on a host.
func (r *run) want(n *netns.Net, status int) {
	r.t.Helper()
	if got := r.wait(); got != status {
		r.t.Errorf("%v: status %d, want %d\n%s\n%s", r.Args, got, status, &r.out, &r.err)
	}
	// The process that looks after the ranks of a host may end after gasrun has.
	for _, h := range append([]*netns.Host{n.Switch}, n.Hosts...) {
		wait(r.t, func() bool { return len(h.Processes()) == 0 }, func() string {
			return fmt.Sprintf("processes %v are left on %s", h.Processes(), h.Short)
		})
	}
}

// list is an argument of -hosts with slots on each host.
func list(n *netns.Net, slots int, six bool) string {
	var l []string
	for _, h := range n.Hosts {
		a := h.IPv4.String()
		if six {
			a = "[" + h.IPv6.String() + "]"
		}
		l = append(l, fmt.Sprintf("%s:%d", a, slots))
	}
	return strings.Join(l, ",")
}

// TestExamplesOnHosts runs examples on three hosts, by both protocols, started
// from one of them and from one that has no ranks: they check their own answers.
func TestExamplesOnHosts(t *testing.T) {
	testmain.Long(t)
	if testing.Short() {
		t.Skip("builds programs")
	}
	n := netns.New(t, 3)
	for _, c := range []struct {
		name string
		from *netns.Host
		six  bool
		args []string
	}{
		{"ring", n.Hosts[0], false, []string{program(t, "examples/ring")}},
		{"ring, IPv6", n.Switch, true, []string{program(t, "examples/ring")}},
		{"ring, udp alone, encrypted", n.Switch, false, []string{"-conduit", "udp", "-x", "ARGON_AUTH=encrypted", program(t, "examples/ring")}},
		{"heat", n.Switch, false, []string{program(t, "examples/heat"), "-check", "-o", os.DevNull}},
		{"heat, IPv6", n.Hosts[2], true, []string{program(t, "examples/heat"), "-check", "-o", os.DevNull}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.six && !n.Hosts[0].IPv6.IsValid() {
				t.Skip("no IPv6")
			}
			r := gasrun(t, n, c.from, append([]string{"-hosts", list(n, 2, c.six)}, c.args...)...)
			r.want(n, 0)
			t.Logf("%s%s", &r.out, &r.err)
		})
	}
}

// TestManyInterfaces runs a job on hosts with two networks: datagrams, and the
// rendezvous, take the one that leads to where hosts are, or that -iface names.
func TestManyInterfaces(t *testing.T) {
	testmain.Long(t)
	n := netns.New(t, 2)
	n.Second()
	second := fmt.Sprintf("%s:2,%s:2", n.Hosts[0].Second[0], n.Hosts[1].Second[0])
	second6 := fmt.Sprintf("[%s]:2,[%s]:2", n.Hosts[0].Second[1], n.Hosts[1].Second[1])
	for _, c := range []struct {
		name  string
		hosts string
		iface string
		link  string // what it takes
	}{
		{"by route", list(n, 2, false), "", "eth0"},
		{"by the other route", second, "", "eth1"},
		{"by the other route, IPv6", second6, "", "eth1"},
		{"by name", list(n, 2, false), "eth1", "eth1"},
		{"by address", list(n, 2, false), n.Hosts[0].Second[0].String(), "eth1"},
		{"by the IPv6 address", list(n, 2, false), n.Hosts[0].Second[1].String(), "eth1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.name, "IPv6") && !n.Hosts[0].Second[1].IsValid() {
				t.Skip("no IPv6")
			}
			args := []string{"-hosts", c.hosts, "-conduit", "udp"}
			if c.iface != "" {
				args = append(args, "-iface", c.iface)
			}
			links := [...]string{"eth0", "eth1"}
			var came [len(links)]uint64
			for i, l := range links {
				came[i] = n.Hosts[1].Received(l)
			}
			gasrun(t, n, n.Hosts[0], append(args, program(t, "examples/ring"))...).want(n, 0)
			const much, little = 50_000, 10_000 // a thousand laps; what neighbours say to find each other
			for i, l := range links {
				came[i] = n.Hosts[1].Received(l) - came[i]
				if l == c.link && came[i] < much || l != c.link && came[i] > little {
					t.Errorf("%d bytes came by %s", came[i], l)
				}
			}
			t.Logf("%d bytes came by %s, %d by %s", came[0], links[0], came[1], links[1])
		})
	}
}

// TestUnreachableAtStart has a host that ssh reaches, and from which nothing leads
// back: the job does not start, and says so of that host alone.
func TestUnreachableAtStart(t *testing.T) {
	testmain.Long(t)
	t.Parallel()
	n := netns.New(t, 3)
	n.Hosts[1].Unplug()
	r := gasrun(t, n, n.Switch, "-hosts", list(n, 2, false), program(t, "examples/ring"))
	r.want(n, 1)
	text := r.err.String()
	for _, h := range n.Hosts {
		said := strings.Contains(text, "host "+h.IPv4.String()+": the launcher's rendezvous cannot be reached from here: ")
		if said != (h == n.Hosts[1]) {
			t.Errorf("%s cannot reach the rendezvous: %v\n%s", h.IPv4, said, text)
		}
	}
	if r.out.String() != "" {
		t.Errorf("a rank has run: %s", &r.out)
	}
}

// toil is a job on several hosts that goes on in rounds until it is told to stop.
type toil struct {
	*run
	n    *netns.Net
	stop string
}

var ready = regexp.MustCompile(`(?m)^rank (\d+) pid (\d+) rendezvous (\S+)$`)

// envStop names a file: rank 0 ends the job when it is there.
const envStop = "ARGONTEST_WEATHER_STOP"

// toiling starts one, with two ranks on each host, and waits until it works.
func toiling(t *testing.T, n *netns.Net, args ...string) *toil {
	t.Helper()
	return toilingOn(t, n, n.Switch, list(n, 2, false), args...)
}

// toilingOn is toiling with gasrun on another host, and other names of the hosts.
func toilingOn(t *testing.T, n *netns.Net, from *netns.Host, hosts string, args ...string) *toil {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stop := filepath.Join(t.TempDir(), "stop")
	args = append([]string{"-hosts", hosts, "-x", envRole + "=toil", "-x", envStop + "=" + stop}, args...)
	j := &toil{gasrun(t, n, from, append(args, self)...), n, stop}
	wait(t, func() bool { return len(j.ranks()) == 2*len(n.Hosts) || j.over() }, func() string { return j.out.String() + j.err.String() })
	if j.over() {
		t.Fatalf("status %d before it was to end\n%s\n%s", j.wait(), &j.out, &j.err)
	}
	return j
}

// over reports whether gasrun has ended, which wait is to be called for.
func (r *run) over() bool {
	f := sys.ProcStat(r.Process.Pid)
	return len(f) == 0 || f[0] == "Z"
}

// ranks are the lines that ranks have printed when they began to work.
func (j *toil) ranks() map[int][]string {
	m := map[int][]string{}
	for _, l := range ready.FindAllStringSubmatch(j.out.String(), -1) {
		r, _ := strconv.Atoi(l[1])
		m[r] = l
	}
	return m
}

// pid is that of rank's process.
func (j *toil) pid(rank int) int {
	pid, _ := strconv.Atoi(j.ranks()[rank][2])
	return pid
}

// end tells the job to stop.
func (j *toil) end() {
	j.t.Helper()
	if err := os.WriteFile(j.stop, nil, 0o600); err != nil {
		j.t.Fatal(err)
	}
}

// toilRank is a rank of it: in each round it hears once of each other rank. It
// ends as ranks do: with status 121 if another one has failed.
func toilRank() {
	var ep conduits.Endpoint
	check := func(err error) {
		if err == nil {
			return
		}
		fmt.Fprintln(os.Stderr, err)
		if ep != nil {
			_ = ep.Close() // the others hear of the failure first, if this rank serves
		}
		if errors.Is(err, conduits.ErrPeer) {
			os.Exit(121)
		}
		os.Exit(1)
	}
	job, ok, err := conduits.Launched(os.Getenv)
	check(err)
	if !ok {
		check(errors.New("not a rank"))
	}
	c, err := conduits.Lookup(job.Env("ARGON_CONDUIT"))
	check(err)
	ep, err = c.Join(job, conduits.Config{})
	check(err)
	r := &rank{Endpoint: ep, done: map[uint64]error{}}
	last := ^uint32(0)
	r.receive = func(m *conduits.Message) {
		if m.Words[1] != 0 {
			last = m.Words[0] // the round in which rank 0 stops
		}
	}
	check(r.Attach(conduits.AttachConfig{Size: 4096, Receiver: r}))
	for round := uint32(1); round <= last; round++ {
		stop := uint32(0)
		if job.Rank == 0 {
			if _, err := os.Stat(os.Getenv(envStop)); err == nil {
				stop, last = 1, round
			}
		}
		for d := 1; d < job.Size; d++ {
			check(r.send((job.Rank+d)%job.Size, round, stop))
		}
		check(conduits.Wait(r, nil, func() bool { return r.got >= int(round)*(job.Size-1) }))
		if round == 1 {
			fmt.Printf("rank %d pid %d rendezvous %s\n", job.Rank, os.Getpid(), os.Getenv("ARGON_RENDEZVOUS"))
		}
	}
	check(r.Close())
	fmt.Printf("rank %d stopped\n", job.Rank)
}

// conduitsOfHosts are those that span hosts.
var conduitsOfHosts = []string{"udp", "hybrid"}

// TestKillOnHost kills a rank on another host with signal 9: the job ends
// everywhere, long before a rank would be given up for silent.
func TestKillOnHost(t *testing.T) {
	testmain.Long(t)
	for _, c := range conduitsOfHosts {
		t.Run(c, func(t *testing.T) {
			n := netns.New(t, 3)
			j := toiling(t, n, "-conduit", c, "-x", "ARGON_DEADTIME=10m")
			if err := syscall.Kill(j.pid(3), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			j.want(n, 128+9)
			if text := j.err.String(); !strings.Contains(text, "rank 3") {
				t.Errorf("who has failed?\n%s", text)
			}
		})
	}
}

// TestWithoutGasrun starts the ranks of a job on three hosts as other launchers do:
// they find each other at the address that all are told, with a key from a file or
// from the environment, and if one is killed the others end because of it.
func TestWithoutGasrun(t *testing.T) {
	testmain.Long(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []struct {
		name string
		env  func(rank, size int) []string
		file bool // the key is in a file
		kill bool
	}{
		{"Slurm", func(rank, size int) []string {
			return []string{
				fmt.Sprint("SLURM_PROCID=", rank), fmt.Sprint("SLURM_NTASKS=", size), fmt.Sprint("SLURM_LOCALID=", rank%2),
				fmt.Sprint("SLURM_NODEID=", rank/2), "SLURM_STEP_TASKS_PER_NODE=2(x3)", "SLURM_JOB_ID=7", "SLURM_STEP_ID=0",
			}
		}, true, false},
		{"PMI", func(rank, size int) []string {
			return []string{fmt.Sprint("PMI_RANK=", rank), fmt.Sprint("PMI_SIZE=", size), "ARGON_CONDUIT=udp"}
		}, false, true},
		{"Open MPI", func(rank, size int) []string {
			return []string{
				fmt.Sprint("OMPI_COMM_WORLD_RANK=", rank), fmt.Sprint("OMPI_COMM_WORLD_SIZE=", size),
				fmt.Sprint("OMPI_COMM_WORLD_LOCAL_RANK=", rank%2), "OMPI_COMM_WORLD_LOCAL_SIZE=2",
			}
		}, true, true},
		{"Kubernetes", func(rank, size int) []string {
			return []string{fmt.Sprint("JOB_COMPLETION_INDEX=", rank), fmt.Sprint("ARGON_SIZE=", size), fmt.Sprint("ARGON_HOST=pod", rank)}
		}, true, false},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			n := netns.New(t, 3)
			const size, victim = 6, 3
			dir := t.TempDir()
			stop, key := filepath.Join(dir, "stop"), jobenv.JobKey+"="+jobkey.New().Reveal()
			if l.file {
				name := filepath.Join(dir, "key")
				if err := os.WriteFile(name, []byte(strings.TrimPrefix(key, jobenv.JobKey+"=")+"\n"), 0o400); err != nil {
					t.Fatal(err)
				}
				key = jobenv.JobKeyFile + "=" + name
			}
			outs := make([]lockedBuffer, size)
			cmds := make([]*exec.Cmd, size)
			var all sync.WaitGroup
			var ended atomic.Int32
			for i := range size {
				rank := size - 1 - i // rank 0, which serves, comes last
				c := n.Hosts[rank/2].Command(t.Context(), self)
				c.Env = append(os.Environ(), envRole+"=toil", envStop+"="+stop, key, "ARGON_RENDEZVOUS="+n.Hosts[0].IPv4.String()+":7070")
				c.Env = append(c.Env, l.env(rank, size)...)
				c.Stdout, c.Stderr = &outs[rank], &outs[rank]
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				cmds[rank] = c
				all.Go(func() {
					_ = c.Wait()
					ended.Add(1)
				})
			}
			wait(t, func() bool {
				if ended.Load() > 0 { // what should not be: said below
					return true
				}
				for r := range outs {
					if !ready.MatchString(outs[r].String()) {
						return false
					}
				}
				return true
			})
			if l.kill {
				_ = cmds[victim].Process.Kill()
			} else if err := os.WriteFile(stop, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			for r, c := range cmds {
				status, text := c.ProcessState.ExitCode(), outs[r].String()
				switch {
				case l.kill && r == victim:
				case l.kill && (status != 121 || !strings.Contains(text, fmt.Sprintf("rank %d failed", victim))),
					!l.kill && (status != 0 || !strings.Contains(text, "stopped")):
					t.Errorf("rank %d: status %d, %s", r, status, text)
				}
			}
		})
	}
}

// TestHostVanishes pulls a host's cable: after the dead time the job ends, there
// and elsewhere.
func TestHostVanishes(t *testing.T) {
	testmain.Long(t)
	for _, c := range conduitsOfHosts {
		t.Run(c, func(t *testing.T) {
			n := netns.New(t, 3)
			// Long enough for a busy machine to let all ranks begin.
			j := toiling(t, n, "-conduit", c, "-x", "ARGON_DEADTIME=6s")
			n.Hosts[1].Unplug()
			if got := j.wait(); got == 0 {
				t.Error("the job has ended well without one of its hosts")
			}
			if text := j.err.String(); !regexp.MustCompile(`rank \d|host `).MatchString(text) {
				t.Errorf("who has failed?\n%s", text)
			}
			t.Logf("%s", &j.err)
			wait(t, func() bool { return len(n.Hosts[1].Processes()) == 0 }, func() string {
				return fmt.Sprintf("processes %v are left on the host that vanished", n.Hosts[1].Processes())
			})
		})
	}
}

// TestHostComesBack pulls a host's cable for 3 s, which is less than the dead time, however
// long the program ip takes to put it back on a machine under load: the job goes on.
func TestHostComesBack(t *testing.T) {
	testmain.Long(t)
	for _, c := range conduitsOfHosts {
		t.Run(c, func(t *testing.T) {
			n := netns.New(t, 3)
			j := toiling(t, n, "-conduit", c, "-x", "ARGON_DEADTIME=3m")
			n.Hosts[2].Unplug()
			time.Sleep(3 * time.Second) // how long it is away
			n.Hosts[2].Plug()
			j.end()
			j.want(n, 0)
			if k := strings.Count(j.out.String(), "stopped"); k != 6 {
				t.Errorf("%d ranks of 6 have stopped\n%s%s", k, &j.out, &j.err)
			}
		})
	}
}

// TestWrongKeyFromElsewhere has a stranger on another host try to get in as a
// rank: it is told nothing, and the job does not notice.
func TestWrongKeyFromElsewhere(t *testing.T) {
	testmain.Long(t)
	n := netns.New(t, 3)
	j := toiling(t, n, "-conduit", "udp")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{jobkey.New().Reveal(), ""} {
		c := n.Hosts[2].Command(t.Context(), self)
		c.Env = append(os.Environ(), envRole+"=toil", "ARGON_RANK=1", "ARGON_SIZE=6", "ARGON_CONDUIT=udp", "ARGON_RENDEZVOUS_SERVE=0",
			"ARGON_JOIN_TIMEOUT=5m", "ARGON_RENDEZVOUS="+j.ranks()[0][3], jobenv.JobKey+"="+key)
		out, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "key") {
			t.Errorf("with the key %q: %v, %s", key, err, out)
		}
		t.Logf("%s", out)
	}
	j.end()
	j.want(n, 0)
}

// TestKeyIsNowhere looks for the key of a job on several hosts where others might
// see it: in command lines and environments of all processes, in what is printed,
// and in files that have a name.
func TestKeyIsNowhere(t *testing.T) {
	testmain.Long(t)
	n := netns.New(t, 2)
	j := toiling(t, n, "-v")
	keys := map[string]bool{}
	for r := range j.ranks() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", j.pid(r)))
		if err != nil {
			t.Fatal(err)
		}
		var file string
		for _, v := range strings.Split(string(env), "\x00") {
			if name, ok := strings.CutPrefix(v, jobenv.JobKeyFile+"=/proc/self/"); ok {
				file = fmt.Sprintf("/proc/%d/%s", j.pid(r), name)
			}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("rank %d: the key: %v", r, err)
		}
		keys[strings.TrimSpace(string(b))] = true
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o400 {
			t.Errorf("rank %d: the key's file has mode %v, %v", r, info.Mode(), err)
		}
		if name, err := os.Readlink(file); err != nil || !strings.HasSuffix(name, " (deleted)") {
			t.Errorf("rank %d: the key's file is called %s, %v", r, name, err)
		}
	}
	if len(keys) != 1 {
		t.Fatalf("%d keys in one job", len(keys))
	}
	var key string
	for key = range keys {
		if len(key) != 2*jobkey.Size {
			t.Fatalf("a key of %d characters", len(key))
		}
	}
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		for _, name := range []string{"cmdline", "environ"} {
			// A process may have ended meanwhile.
			if b, err := os.ReadFile(filepath.Join(p, name)); err == nil && bytes.Contains(b, []byte(key)) {
				t.Errorf("the key is in %s/%s", p, name)
			}
		}
	}
	j.end()
	j.want(n, 0)
	if strings.Contains(j.out.String()+j.err.String(), key) {
		t.Error("the key is printed")
	}
}

// TestFirewall drops the datagrams to a host, or to it and from it, which lets TCP
// through: the job fails before its first line and says between which hosts.
func TestFirewall(t *testing.T) {
	testmain.Long(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skipf("there is no nft here (Debian's package nftables): %v", err)
	}
	for _, c := range []struct {
		name  string
		hooks []string
		want  string
	}{
		{"one way", []string{"input"}, `udp: no datagrams pass from 10\.77\.0\.1 \(rank 0 at 10\.77\.0\.1:\d+\) to 10\.77\.0\.2 \(rank 2 at 10\.77\.0\.2:\d+\), though they pass back; from 10\.77\.0\.3 .* to 10\.77\.0\.2 .*firewall`},
		{"both ways", []string{"input", "output"}, `udp: no datagrams pass between 10\.77\.0\.1 \(rank 0 at 10\.77\.0\.1:\d+\) and 10\.77\.0\.2 \(rank 2 at 10\.77\.0\.2:\d+\) in either direction; between 10\.77\.0\.2 .* and 10\.77\.0\.3 .*firewall`},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := netns.New(t, 3)
			for _, hook := range c.hooks {
				rules := fmt.Sprintf("table inet f%s { chain c { type filter hook %[1]s priority 0; meta l4proto udp drop; }; }", hook)
				if out, err := n.Hosts[1].Command(t.Context(), "nft", rules).CombinedOutput(); err != nil {
					t.Skipf("nft: %v: %s", err, out)
				}
			}
			for _, conduit := range conduitsOfHosts {
				r := gasrun(t, n, n.Switch, "-hosts", list(n, 2, false), "-conduit", conduit, "-x", "ARGON_DEADTIME=5s", program(t, "examples/ring"))
				r.want(n, 1)
				if text := r.err.String(); !regexp.MustCompile(c.want).MatchString(text) {
					t.Errorf("%s says %s", conduit, text)
				}
				if r.out.String() != "" {
					t.Errorf("a rank has run: %s", &r.out)
				}
			}
		})
	}
}

// TestCutOffHost pulls a host's cable and stops gasrun, so that no process ends what runs
// there: the host's deputy does, and goes.
func TestCutOffHost(t *testing.T) {
	testmain.Long(t)
	for _, c := range conduitsOfHosts {
		t.Run(c, func(t *testing.T) {
			n := netns.New(t, 3)
			j := toiling(t, n, "-conduit", c, "-x", "ARGON_DEADTIME=6s")
			began := time.Now()
			n.Hosts[1].Unplug()
			if err := j.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			defer j.Process.Signal(syscall.SIGCONT)
			wait(t, func() bool { return len(n.Hosts[1].Processes()) == 0 }, func() string {
				return fmt.Sprintf("processes %v are left on the host that is cut off", n.Hosts[1].Processes())
			})
			const most = 2 * time.Minute // for 11 s on any machine
			if took := time.Since(began); took > most {
				t.Errorf("what ran on the host has ended after %v", took)
			} else {
				t.Logf("all has ended after %v", took)
			}
			if err := j.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if got := j.wait(); got == 0 {
				t.Error("the job has ended well without one of its hosts")
			}
		})
	}
}
