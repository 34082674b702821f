package main

import (
	"regexp"
	"testing"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestCheckHere: on this machine all is well, or nearly; a limit that is low is a note with what raises it.
func TestCheckHere(t *testing.T) {
	t.Parallel()
	cmd, _ := command(t, "-check")
	cmd.Env = append(cmd.Env, envLimits+"=7=300") // RLIMIT_NOFILE
	r := finish(t, cmd)
	if r.status == statusLimits {
		t.Skip("limits cannot be set here")
	}
	r.want(t, 0)
	for _, want := range []string{
		`^ok   localhost: start: this machine\n`,
		`(?m)^note localhost: open files: .* 300, .*\(ulimit -n\)`,
		`(?m)^(ok  |note) localhost: memory: `,
		`(?m)^(ok  |note) localhost: other processes' memory: `,
		`\nok   jobs can run on localhost\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.stdout) {
			t.Errorf("no line %s in\n%s", want, r.stdout)
		}
	}
}

// TestCheckHosts: what ssh says of a host is told with what mends it, and the others are looked at all the same.
func TestCheckHosts(t *testing.T) {
	testmain.Long(t)
	t.Parallel()
	ssh := fakeSSH(t, `[ "$1" != c ] || { echo "u@c: Permission denied (publickey)." >&2; exit 255; }`+"\n"+sshElsewhere)
	// a and b are not given up because c has failed, however slow they are.
	r := gasrun(t, "-check", "-hosts", "a,b,c,localhost", "-ssh", ssh, "-start-timeout", "1h")
	r.want(t, jobenv.StatusFailed)
	for _, want := range []string{
		`(?m)^FAIL c: start: u@c: Permission denied \(publickey\)\..*ssh-copy-id c`,
		`(?m)^ok   a, b: start: by ssh`,
		`(?m)^ok   localhost: start: this machine`,
		`(?m)^ok   a, b, localhost: datagrams: of 44, 548, 1200, 1400 bytes pass both ways$`,
		`\nFAIL no job can run on all 4 hosts: .*\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.stdout) {
			t.Errorf("no line %s in\n%s", want, r.stdout)
		}
	}
}

// TestCheckStopped: of a host on which a process does not go on that is told, and what was found before of
// others. Slots are of no concern.
func TestCheckStopped(t *testing.T) {
	t.Parallel()
	ssh := fakeSSH(t, `echo "u@c: Permission denied (publickey)." >&2; exit 255`)
	r := gasrun(t, "-check", "-hosts", "c,localhost:1,localhost:1", "-ssh", ssh, "-start-timeout", "1h", "-timeout", "3s", "-x", envStopped+"=2", "-x", jobenv.JoinTimeout+"=1h")
	r.want(t, jobenv.StatusFailed)
	for _, want := range []string{
		`(?m)^FAIL c: start: u@c: Permission denied \(publickey\)\.`,
		`(?m)^FAIL .*localhost#2: answer: nothing more was heard within 3s \(-timeout\)`,
		`\nFAIL no job can run on all 3 hosts: .*\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.stdout) {
			t.Errorf("no line %s in\n%s", want, r.stdout)
		}
	}
}
