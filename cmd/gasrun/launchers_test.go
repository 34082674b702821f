package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// A site is a machine as docs/launchers.md takes it for: a directory where the
// program is ./prog, a home directory with the job's key, and the programs that the
// document calls, with gasrun among them.
type site struct {
	t         *testing.T
	dir, bin  string
	env       []string
	documents map[string]string // blocks of docs/launchers.md, by a line of theirs
	guard     *os.File          // tells the guard which daemons there are
}

// newSite makes one. It is removed, with what runs in it, when the test ends or its
// process is killed.
func newSite(t *testing.T) *site {
	t.Helper()
	needs(t, "openssl, bash", "openssl", "bash")
	prog := program(t)
	// The paths of sockets are short. No other user enters, for keys are there.
	dir, err := os.MkdirTemp("", "argon-site-")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir, bin: filepath.Join(dir, "bin")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.guarded(self)
	if err := os.Mkdir(s.bin, 0o700); err != nil {
		t.Fatal(err)
	}
	s.script("gasrun", fmt.Sprintf(`%s=1 exec %q "$@"`, envMain, self))
	s.script("mpiexec", `exec mpiexec.mpich "$@"`)
	s.script("mpirun", `exec mpirun.openmpi "$@"`)
	s.write("prog", fmt.Sprintf("#!/bin/sh\nexec %q \"${@:-good}\"\n", prog), 0o755)
	// MPI's launchers are not for root, and not for more ranks than processors, unless
	// told. The tests may run as a process of one of them.
	s.env = clean(os.Environ())
	s.env = append(s.env, "PATH="+s.bin+":"+os.Getenv("PATH")+":/usr/sbin:/sbin", "HOME="+dir, "PWD="+dir, "TMPDIR="+dir, "ARGONTEST_SITE="+dir,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1")
	b, err := os.ReadFile("../../docs/launchers.md")
	if err != nil {
		t.Fatal(err)
	}
	s.documents = blocks(string(b))
	s.run("key", s.document("(umask 077; openssl rand"), "").want(t, 0)
	return s
}

// clean is env without what launchers say.
func clean(env []string) (rest []string) {
	for _, kv := range env {
		if !regexp.MustCompile(`^(ARGON_|SLURM|PMI|OMPI_|MPI_|JOB_COMPLETION|HOME=|PATH=|TMPDIR=|PWD=)`).MatchString(kv) {
			rest = append(rest, kv)
		}
	}
	return rest
}

// blocks are the indented parts of a document.
func blocks(text string) map[string]string {
	all := map[string]string{}
	block := ""
	for line := range strings.Lines(text + "\n") {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			block += code
			continue
		}
		for l := range strings.Lines(block) {
			all[l] = block
		}
		block = ""
	}
	return all
}

// document is the block of docs/launchers.md that has a line with the text.
func (s *site) document(text string) string {
	s.t.Helper()
	for line, block := range s.documents {
		if strings.Contains(line, text) {
			return block
		}
	}
	s.t.Fatalf("docs/launchers.md has no command line with %q", text)
	return ""
}

// line is the one line of docs/launchers.md that has the text.
func (s *site) line(text string) string {
	s.t.Helper()
	for l := range strings.Lines(s.document(text)) {
		if strings.Contains(l, text) {
			return l
		}
	}
	return ""
}

func (s *site) write(name, text string, mode os.FileMode) string {
	s.t.Helper()
	name = testmain.Executable(s.t, filepath.Join(s.dir, name), text)
	if err := os.Chmod(name, mode); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// script makes a program of the site.
func (s *site) script(name, body string) {
	s.write(filepath.Join("bin", name), "#!/bin/sh\n"+body+"\n", 0o755)
}

// needs skips the test where programs are missing.
func needs(t *testing.T, pack string, programs ...string) {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("there is no %s here (Debian's package %s)", p, pack)
		}
	}
}

// run has a shell run commands in the site.
func (s *site) run(name, script, args string, env ...string) result {
	s.t.Helper()
	file := s.write(name+".sh", script, 0o755)
	return s.command(exec.Command("/bin/bash", append([]string{file}, strings.Fields(args)...)...), env...)
}

func (s *site) command(c *exec.Cmd, env ...string) result {
	s.t.Helper()
	c.Dir, c.Env = s.dir, append(s.env, env...)
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	c.WaitDelay = time.Minute
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if e := c.Start(); e != nil {
		s.t.Fatal(e)
	}
	limit := time.AfterFunc(4*time.Minute, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGQUIT) })
	_ = c.Wait()
	limit.Stop()
	return result{status: c.ProcessState.ExitCode(), stdout: out.String(), stderr: err.String()}
}

// daemon runs a program until the test ends, or its process does; what it says is in
// a file.
func (s *site) daemon(name string, args ...string) (pid int) {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.dir, filepath.Base(name)+"."+strconv.Itoa(testmain.Port(s.t))+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(name, args...)
	c.Dir, c.Env, c.Stdout, c.Stderr = s.dir, s.env, log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	pid = c.Process.Pid
	fmt.Fprintln(s.guard, pid)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
		fmt.Fprintln(s.guard, -pid)
	}()
	s.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = c.Process.Kill()
			<-ended
		}
		if s.t.Failed() || s.t.Skipped() {
			if b, err := os.ReadFile(log.Name()); err == nil {
				s.t.Logf("%s:\n%s", name, b[max(0, len(b)-2000):])
			}
		}
	})
	return pid
}

// envSiteGuard makes the test binary the guard of the site that it names.
const envSiteGuard = "ARGONTEST_SITE_GUARD"

// guarded starts a process that removes the site, with what runs in it, when the
// test ends or its process does.
func (s *site) guarded(self string) {
	s.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	c := exec.Command(self)
	c.Dir, c.Env, c.Stdin, c.Stderr = "/", []string{envSiteGuard + "=" + s.dir}, r, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		w.Close()
		s.t.Fatal(err)
	}
	s.guard = w
	s.t.Cleanup(func() {
		w.Close()
		_ = c.Wait()
	})
}

// guardSite is the main function of a site's guard. From r it reads the process
// groups of daemons that run, a number in each line, and, negative, of those that
// have ended. At the end of r it kills them and all processes that have the site in
// their environment, which sshd for one overwrites, and removes the directory.
func guardSite(dir string, r io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	groups := map[int]bool{}
	for sc := bufio.NewScanner(r); sc.Scan(); {
		if g, _ := strconv.Atoi(sc.Text()); g > 0 {
			groups[g] = true
		} else {
			delete(groups, -g)
		}
	}
	for g := range groups {
		_ = syscall.Kill(-g, syscall.SIGKILL)
	}
	for range 1000 { // some may be starting others
		found := false
		names, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, n := range names {
			if b, err := os.ReadFile(n); err == nil && bytes.Contains(b, []byte("ARGONTEST_SITE="+dir+"\x00")) {
				pid, _ := strconv.Atoi(strings.Split(n, "/")[2])
				_ = syscall.Kill(pid, syscall.SIGKILL)
				found = true
			}
		}
		if !found {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = os.RemoveAll(dir)
}

// TestSiteOfKilled: nothing is left of the site of a test whose process is killed.
func TestSiteOfKilled(t *testing.T) {
	testmain.Long(t)
	const victim = "ARGONTEST_SITE_VICTIM"
	if os.Getenv(victim) != "" {
		s := newSite(t)
		fmt.Println("site", s.daemon("env", "-i", "sleep", "10000"), s.daemon("setsid", "sleep", "10000"), s.dir)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone, if not before
		return
	}
	needs(t, "openssl, bash, util-linux", "openssl", "bash", "setsid")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestSiteOfKilled$")
	c.Env = append(os.Environ(), victim+"=1", "TMPDIR="+t.TempDir())
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var plain, apart int
	var dir string
	for sc := bufio.NewScanner(out); dir == "" && sc.Scan(); {
		_, _ = fmt.Sscanf(sc.Text(), "site %d %d %s", &plain, &apart, &dir)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if dir == "" {
		t.Fatal("the other process has made no site")
	}
	for _, pid := range []int{plain, apart} {
		if !sys.AwaitExit(pid, time.Minute) {
			t.Errorf("daemon %d goes on", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s is still there", dir)
		}
	}
}

// meeting is where the ranks of a job meet, for the environment.
func (s *site) meeting() []string {
	return []string{fmt.Sprintf("ARGON_RENDEZVOUS=127.0.0.1:%d", testmain.Port(s.t)), "ARGON_JOB_KEY_FILE=" + s.dir + "/job.key"}
}

// ready checks that so many ranks of the program have been there.
func (r result) ready(t *testing.T, ranks int) {
	t.Helper()
	r.want(t, 0)
	if n := strings.Count(r.stdout, "ready\n"); n != ranks {
		t.Errorf("%d ranks of %d\nstdout: %s\nstderr: %s", n, ranks, r.stdout, r.stderr)
	}
}

// statuses has a job fail under a launcher in several ways. begin runs 3 ranks of
// the program with one argument.
func statuses(t *testing.T, begin func(mode string) result, want map[string]int) {
	t.Helper()
	for mode, status := range want {
		r := begin(mode)
		if r.status != status {
			t.Errorf("%s: status %d, want %d\n%s", mode, r.status, status, r.stderr)
		}
		// A launcher may end the others before they can say why they end.
		if cause := "rank 1: out of luck"; (mode == "error" || mode == "status42") && !strings.Contains(r.stderr, cause) {
			t.Errorf("%s: %q is missing\n%s", mode, cause, r.stderr)
		}
	}
}

// separate has a launcher start ranks without a rendezvous.
func separate(t *testing.T, begin func(env ...string) result, advice ...string) {
	t.Helper()
	r := begin()
	r.want(t, jobenv.StatusUsage, append(advice, "ARGON_RENDEZVOUS", "ARGON_ALONE=1")...)
	for l := range strings.Lines(r.stderr) {
		if strings.Contains(l, "goroutine") {
			t.Errorf("more than a line: %s", r.stderr)
		}
	}
	begin("ARGON_ALONE=1").ready(t, 2)
}

// missing has a process manager start 3 processes, of which one is no rank. Ranks write to a file what
// mpiexec loses now and then when it ends them all.
func missing(s *site, begin func(script string) result) {
	s.t.Helper()
	r := begin(`sh -c '[ "$PMI_RANK" = 1 ] || exec ./prog 2>>said'`)
	said, _ := os.ReadFile(filepath.Join(s.dir, "said"))
	if text := string(said); r.status == 0 || !strings.Contains(text, "waits for processes of the job") || !strings.Contains(text, "ARGON_JOIN_TIMEOUT=1s") {
		s.t.Errorf("status %d\n%s%s", r.status, said, r.stderr)
	}
}

func TestMPICH(t *testing.T) {
	testmain.Long(t)
	needs(t, "mpich", "mpiexec.mpich")
	s := newSite(t)
	s.run("mpich", strings.Replace(s.line("mpiexec"), "-n 16", "-n 4", 1), "").ready(t, 4)
	// As if the ranks were on several hosts, which mpiexec reaches without ssh here.
	s.run("mpich-hosts", "mpiexec -launcher fork -hosts localhost,127.0.0.1 -n 4 ./prog", "").ready(t, 4)
	missing(s, func(script string) result {
		return s.run("mpich-missing", "mpiexec -n 3 "+script, "", "ARGON_JOIN_TIMEOUT=1s")
	})
	s.run("mpich-at", "mpiexec -n 4 ./prog", "", s.meeting()...).ready(t, 4)
	s.run("mpich-alone", "mpiexec -n 2 ./prog", "", "ARGON_ALONE=1").ready(t, 2)
	// The status that no process hears of is mixed with 1, bit by bit; a signal's number
	// is what mpiexec returns.
	want := map[string]int{"error": 1, "status42": 42, "exit6": 7, "kill": 9}
	statuses(t, func(mode string) result { return s.run("mpich-"+mode, "mpiexec -n 3 ./prog "+mode, "") }, want)
	statuses(t, func(mode string) result {
		return s.run("mpich-at-"+mode, "mpiexec -n 3 ./prog "+mode, "", s.meeting()...)
	}, want)
}

func TestOpenMPI(t *testing.T) {
	testmain.Long(t)
	needs(t, "openmpi-bin", "mpirun.openmpi")
	s := newSite(t)
	s.run("ompi", strings.Replace(s.line("mpirun -n 16 ./prog"), "-n 16", "-n 4", 1), "").ready(t, 4)
	statuses(t, func(mode string) result { return s.run("ompi-"+mode, "mpirun -n 3 ./prog "+mode, "") }, map[string]int{"error": 1, "status42": 42, "exit6": 6, "kill": 137})
	s.run("ompi-at", strings.Replace(s.line("mpirun -n 16 -x"), "-n 16", "-n 4", 1), "", s.meeting()...).ready(t, 4)
	statuses(t, func(mode string) result {
		return s.run("ompi-"+mode, "mpirun -n 3 -x ARGON_RENDEZVOUS -x ARGON_JOB_KEY_FILE ./prog "+mode, "", s.meeting()...)
	}, map[string]int{"error": 1, "status42": 42, "exit6": 6, "kill": 137})
	separate(t, func(env ...string) result { // as on two hosts
		return s.run("ompi-alone", "mpirun -n 2 sh -c 'OMPI_COMM_WORLD_LOCAL_SIZE=1 exec ./prog'", "", env...)
	})
}

func needsSSHD(t *testing.T) {
	t.Helper()
	needs(t, "openssh-server, openssh-client", "sshd", "ssh", "ssh-keygen")
}

// sshd runs one for this user on the loopback interface, and has ssh lead every
// name there.
func (s *site) sshd() {
	t := s.t
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	if me.Uid == "0" {
		const empty = "/run/sshd" // what it separates privileges in
		if err := os.Mkdir(empty, 0o755); err == nil {
			t.Cleanup(func() { _ = os.Remove(empty) })
		} else if !os.IsExist(err) {
			t.Skip(err)
		}
	}
	for _, k := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(s.dir, k+"key")).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	at := testmain.Port(t)
	login := s.write("login.sh", fmt.Sprintf("#!/bin/sh\ncd %s; ARGONTEST_SITE=%[1]s; export ARGONTEST_SITE; exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n", s.dir), 0o755)
	conf := s.write("sshd_config", fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %[2]s/hostkey
AuthorizedKeysFile %[2]s/userkey.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
MaxStartups 100
ForceCommand %[3]s
`, at, s.dir, login), 0o600)
	path, _ := exec.LookPath("sshd")
	s.daemon(path, "-D", "-e", "-f", conf)
	client := s.write("ssh_config", fmt.Sprintf(`Host *
	HostName 127.0.0.1
	Port %d
	User %s
	IdentityFile %s/userkey
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile /dev/null
	StrictHostKeyChecking no
	LogLevel ERROR
`, at, me.Username, s.dir), 0o600)
	ssh, _ := exec.LookPath("ssh")
	s.script("ssh", fmt.Sprintf(`exec %s -F %s "$@"`, ssh, client))
	var r result
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if r = s.run("hello", "ssh somewhere echo hello", ""); r.status == 0 && r.stdout == "hello\n" {
			return
		}
		if time.Now().After(end) {
			t.Skipf("sshd does not let this user in: %s", r.stderr)
		}
	}
}

// TestSSHD runs what needs ssh against a real one: gasrun on hosts, by the host
// files of PBS and LSF, and ranks by hand.
func TestSSHD(t *testing.T) {
	testmain.Long(t)
	needsSSHD(t)
	s := newSite(t)
	s.sshd()
	slots := s.write("slots", "nodea\nnodea\nnodeb\nnodeb\n", 0o644)
	for _, v := range []string{"PBS_NODEFILE", "LSB_DJOB_HOSTFILE"} {
		s.run(v, s.line(v), "", v+"="+slots).ready(t, 4)
	}
	hand := strings.ReplaceAll(s.document("ARGON_RANK=1 ./prog"), "node1:7070", fmt.Sprintf("127.0.0.1:%d", testmain.Port(t)))
	s.run("hand", hand+"\nwait %1\n", "").ready(t, 2)
	statuses(t, func(mode string) result { return s.run("hosts-"+mode, "gasrun -hosts nodea:2,nodeb ./prog "+mode, "") },
		map[string]int{"status42": 42, "exit6": 6, "kill": 137})
}

// TestKubernetes starts ranks with the environment of docs/launchers.md's manifest.
func TestKubernetes(t *testing.T) {
	testmain.Long(t)
	s := newSite(t)
	text, err := os.ReadFile("../../docs/launchers.md")
	if err != nil {
		t.Fatal(err)
	}
	key := jobkey.New().Reveal()
	file := s.write("key", key, 0o400)
	var env []string
	for _, m := range regexp.MustCompile(`- \{name: (ARGON_\w+), value: "?([^}"]*)"?\}`).FindAllStringSubmatch(string(text), -1) {
		v := strings.NewReplacer("ring-0.ring:7070", fmt.Sprintf("127.0.0.1:%d", testmain.Port(t)), "/var/run/argon/key", file).Replace(m[2])
		env = append(env, m[1]+"="+v)
	}
	if len(env) != 4 || !strings.Contains(string(text), "- name: ARGON_JOBID ") {
		t.Fatalf("the manifest has %q", env)
	}
	// Each Pod is a host of its own.
	script := `for i in 0 1 2 3; do ARGON_HOST=pod$i JOB_COMPLETION_INDEX=$i ARGON_JOBID=a47 ./prog good & done; wait`
	s.run("pods", script, "", env...).ready(t, 4)
}

// slurm runs a cluster of two nodes, both on this machine: munged with a key of its
// own, slurmctld, and a slurmd for each.
func (s *site) slurm() {
	t := s.t
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	s.write("munge.key", jobkey.New().Reveal(), 0o400)
	path, _ := exec.LookPath("munged")
	file := func(name string) string { return filepath.Join(s.dir, name) }
	s.daemon(path, "--foreground", "--force", "--key-file="+file("munge.key"), "--socket="+file("munge.sock"), "--pid-file="+file("munge.pid"),
		"--log-file="+file("munged.log"), "--seed-file="+file("munge.seed"), "--num-threads=1")
	for _, d := range []string{"state", "spool.n1", "spool.n2"} {
		if err := os.Mkdir(file(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf := s.write("slurm.conf", fmt.Sprintf(`ClusterName=argon
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[2]d
SlurmUser=%[3]s
SlurmdUser=%[3]s
AuthType=auth/munge
AuthInfo=socket=%[4]s/munge.sock
CredType=cred/munge
StateSaveLocation=%[4]s/state
SlurmdSpoolDir=%[4]s/spool.%%n
SlurmctldPidFile=%[4]s/slurmctld.pid
SlurmdPidFile=%[4]s/slurmd.%%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=%[5]d CPUs=32 RealMemory=100
NodeName=n2 NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=%[6]d CPUs=32 RealMemory=100
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
`, name, testmain.Port(t), me.Username, s.dir, testmain.Port(t), testmain.Port(t)), 0o644)
	s.env = append(s.env, "SLURM_CONF="+conf)
	ctld, _ := exec.LookPath("slurmctld")
	slurmd, _ := exec.LookPath("slurmd")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(file("munge.sock")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Skip("munged does not come up here")
		}
	}
	s.daemon(ctld, "-D", "-c", "-f", conf)
	s.daemon(slurmd, "-D", "-N", "n1", "-f", conf)
	s.daemon(slurmd, "-D", "-N", "n2", "-f", conf)
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		r := s.run("sinfo", "timeout 10 sinfo -h -o '%T %D'", "")
		if strings.TrimSpace(r.stdout) == "idle 2" {
			return
		}
		if time.Now().After(end) {
			t.Skipf("Slurm's daemons do not come up here: %s%s", r.stdout, r.stderr)
		}
	}
}

func TestSlurm(t *testing.T) {
	testmain.Long(t)
	needs(t, "slurm-wlm", "srun", "sbatch", "scontrol", "slurmctld", "slurmd", "munged")
	s := newSite(t)
	s.slurm()
	size := strings.NewReplacer("--nodes=4 --ntasks-per-node=8", "--nodes=2 --ntasks-per-node=2", "-ppn 8", "-ppn 2", "-n 16", "-N 2 -n 4")
	batch := func(name, script string) {
		t.Helper()
		r := s.run("submit-"+name, "sbatch --wait -o out."+name+" "+s.write(name+".sbatch", script, 0o755), "")
		out, _ := os.ReadFile(filepath.Join(s.dir, "out."+name))
		r.stdout += string(out)
		r.ready(t, 4)
	}
	batch("srun", size.Replace(s.document("#SBATCH --nodes")))
	array := strings.NewReplacer("=1-8", "=1-2", "./prog -seed", `./prog > "array.$SLURM_ARRAY_TASK_ID"; :`)
	s.run("array", "sbatch --wait -o array.log "+s.write("array.sbatch", array.Replace(size.Replace(s.document("--array"))), 0o755), "").want(t, 0)
	for _, task := range []string{"array.1", "array.2"} {
		out, _ := os.ReadFile(filepath.Join(s.dir, task))
		result{stdout: string(out)}.ready(t, 4)
	}
	s.run("srun-line", size.Replace(s.line("srun --mpi=pmi2 -n 16")), "").ready(t, 4)
	// What tells that the local ranks are Slurm's.
	s.run("srun-number", `srun -Q --mpi=pmi2 -n 2 sh -c '[ "$PMI_JOBID" = "$SLURM_JOB_ID.$SLURM_STEP_ID" ]'`, "").want(t, 0)
	missing(s, func(script string) result {
		return s.run("srun-missing", "srun -Q --mpi=pmi2 -n 3 "+script, "", "ARGON_JOIN_TIMEOUT=1s")
	})
	want := map[string]int{"error": 1, "status42": 42, "exit6": 6, "kill": 137}
	statuses(t, func(mode string) result { return s.run("srun-"+mode, "srun -Q --mpi=pmi2 -n 3 ./prog "+mode, "") }, want)
	s.run("srun-pmix", "srun -Q --mpi=pmix -N 1 -n 4 ./prog", "").ready(t, 4)
	statuses(t, func(mode string) result {
		return s.run("srun-at-"+mode, "srun -Q -n 3 ./prog "+mode, "", s.meeting()...)
	}, want)
	// A rank that computes is ended by srun, and does not change the status.
	s.run("srun-kill", "srun -Q --kill-on-bad-exit=1 -n 3 ./prog status42 toil", "", s.meeting()...).want(t, 42, "rank 1 failed")
	separate(t, func(env ...string) result { return s.run("srun-alone", "srun -Q -n 2 ./prog", "", env...) }, "srun --mpi=pmi2")
	needsSSHD(t)
	s.sshd()
	batch("gasrun", "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2\n"+size.Replace(s.line(`gasrun -hosts "$(scontrol`)))
}
