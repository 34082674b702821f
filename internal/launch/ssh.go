package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// sshCommand is the command that starts deputies on other hosts unless Config.SSH has
// another. No user is there to be asked for a password or about a host's key:
// several connections are made at once, out of the terminal's foreground. A host
// that is silent is given up after a minute, or after dead if that is longer.
func sshCommand(dead time.Duration) []string {
	const interval = 15 * time.Second
	return []string{
		"ssh", "-T", "-x", "-a",
		"-o", "BatchMode=yes",
		"-o", "ConnectTimeout=30",
		"-o", fmt.Sprintf("ServerAliveInterval=%d", interval/time.Second),
		"-o", fmt.Sprintf("ServerAliveCountMax=%d", max(4, dead/interval+1)),
	}
}

// The words of the script on another host, after its token, see bootScript.
const (
	bootHave = "have" // the executable is there
	bootNeed = "need" // it has to be sent
)

// machines are the names that uname -m has for the processors Go has names for.
var machines = map[string]string{
	"amd64": "x86_64", "arm64": "aarch64", "riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x", "loong64": "loongarch64",
}

// An image is an executable that may have to be sent to other hosts.
type image struct {
	file   *os.File
	path   string // where it is here, "" if that is not known or it is hard to quote
	size   int64
	digest string // SHA-256, hexadecimal
}

// openImage opens an executable. path is where other hosts look for it.
func openImage(name, path string) (*image, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &image{file: f, path: path, size: n, digest: hex.EncodeToString(h.Sum(nil))}, nil
}

func (im *image) close() {
	if im != nil {
		im.file.Close()
	}
}

// reader reads the whole image; several may do so at once.
func (im *image) reader() io.Reader { return io.NewSectionReader(im.file, 0, im.size) }

// bootFile is the number of the file that bootScript has the executable open as.
const bootFile = 9

// bootScript is the command that ssh runs on another host. It starts a deputy
// from the launcher's executable, which it takes from the same path if it is the
// same file there, and from its standard input if not. First it prints which of the two, as
// a line "TOKEN have|need MACHINE".
//
// The executable at that path may have been put there by another user: it has to
// belong to root or this user, must not be open to others, and is opened once
// for what is looked at and what is run. A copy lies in a directory of its own,
// that is removed when the deputy ends; the deputy or its guard do so too, for the
// shell may be killed.
//
// The login shell, whichever it is, sees one line with one pair of single quotes.
//
// temp is the directory for the copy, "" for the host's own.
func bootScript(token string, im *image, temp string) string {
	path := im.path
	if strings.IndexFunc(path, hardToQuote) >= 0 {
		path = ""
	}
	if temp == "" {
		temp = "${TMPDIR:-/tmp}"
	}
	script := strings.Join([]string{
		`u=$(umask); umask 077`,
		fmt.Sprintf(`p="%s"; sum=%s; size=%d; token=%s`, path, im.digest, im.size, token),
		`if [ -f "$p" ] && [ -r "$p" ] && [ -x "$p" ]; then exec 9<"$p"`,
		`set -- $(ls -lnL /proc/self/fd/9 2>/dev/null)`,
		`case "$1" in ?????w*|????????w*) set -- ;; esac`,
		`if [ "$3" = 0 ] || [ "$3" = "$(id -u)" ]; then`,
		`set -- $(sha256sum <&9 2>/dev/null)`,
		`if [ "$1" = $sum ]; then echo "$token ` + bootHave + ` $(uname -m)"; ` + EnvDeputy + `=1; export ` + EnvDeputy + `; umask $u; exec /proc/self/fd/9; fi; fi`,
		`exec 9<&-; fi`,
		`d=$(mktemp -d "` + temp + `/gasrun-XXXXXXXXXX") || { echo "no room for gasrun here (-tmpdir, TMPDIR)" >&2; exit 1; }`,
		`trap "rm -rf \"$d\"" EXIT; trap "exit 1" HUP INT TERM PIPE`,
		`echo "$token ` + bootNeed + ` $(uname -m)"`,
		`head -c $size >"$d/gasrun"`,
		`if [ "$(wc -c <"$d/gasrun")" -ne $size ]; then echo "gasrun arrived incomplete" >&2; exit 1; fi`,
		`chmod 700 "$d/gasrun"; ` + EnvDeputy + `="$d"; export ` + EnvDeputy + `; umask $u; "$d/gasrun"; s=$?`,
		`[ $s = 126 ] && echo "programs cannot be run from $d: a file system mounted noexec? (-tmpdir, TMPDIR)" >&2; exit $s`,
	}, "; ")
	script = strings.ReplaceAll(script, "then; ", "then ")
	return "exec sh -c '" + script + "'"
}

// hardToQuote reports whether a character may mean something to some shell.
func hardToQuote(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+=:,@%", r))
}

// Runnable is an error if the system does not let this process run the file, as on
// a file system that is mounted noexec; it names the knob.
func Runnable(path string) error {
	const execute = 1 // X_OK
	if err := syscall.Access(path, execute); err != nil {
		return errs.Resource("launch: programs cannot be run from %s: %v; a file system mounted noexec? (-tmpdir, TMPDIR)", filepath.Dir(path), err)
	}
	return nil
}

// bootAnswer reads the script's line. ok is false for what else a login may
// print; err says that the host cannot run this executable.
func bootAnswer(line, token string) (need, ok bool, err error) {
	_, rest, ok := strings.Cut(line, token) // a login may leave a line unfinished
	words := strings.Fields(rest)
	if !ok || len(words) != 2 || words[0] != bootHave && words[0] != bootNeed {
		return false, false, nil
	}
	need = words[0] == bootNeed
	if want := machines[runtime.GOARCH]; want != "" && words[1] != want && need {
		return true, true, fmt.Errorf("is a %s machine: the executables here are for %s", words[1], want)
	}
	return need, true, nil
}
