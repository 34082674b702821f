package env

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/nets"
	"github.com/argon-go/argon/internal/job/profile"
	"github.com/argon-go/argon/internal/job/where"
)

// CheckValues reports, as Check does, the values in environ that the variable of that
// name cannot have on any conduit, so that junk is an error also where the job does not
// use the variable. With here, the files and directories that values name must be there:
// they are those of this host.
func CheckValues(environ []string, here bool, prefix, knob string) error {
	if knob != "" {
		knob = " (" + knob + ")"
	}
	var all []error
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		v := find(name)
		if v == nil || value == "" {
			continue
		}
		if scheme, _, ok := strings.Cut(value, "://"); ok && slices.Contains(protocols, scheme) {
			all = append(all, errs.BadArg("%s: %s=%q has the form of a service link, which a container runtime may have set over argon's variable (Kubernetes: enableServiceLinks: false); allowed: %s%s",
				prefix, name, clip(value), v.allowed(), knob))
			continue
		}
		if v.Form != nil && !v.Form(value) {
			all = append(all, errs.BadArg("%s: %s=%q; allowed: %s%s", prefix, name, clip(shown(v, value)), v.allowed(), knob))
			continue
		}
		if here && v.There != nil {
			if err := v.There(value); err != nil {
				all = append(all, errs.BadArg("%s: %s=%q: %v; allowed: %s%s", prefix, name, clip(value), err, v.allowed(), knob))
			}
		}
	}
	return errors.Join(all...)
}

// allowed is Range without Markdown.
func (v *Var) allowed() string {
	if v.Range == "" {
		return "what gasrun sets (" + v.Meaning + ")"
	}
	return strings.ReplaceAll(v.Range, "`", "")
}

// number is the form of whole numbers from least to most.
func number(least, most int) func(string) bool {
	return func(s string) bool {
		n, err := strconv.Atoi(s)
		return err == nil && n >= least && n <= most && s[0] != '+'
	}
}

// profiled reports whether v has the form of ARGON_PROFILE.
func profiled(v string) bool {
	_, err := profile.ParseOptions(v)
	return err == nil
}

// stall is the form of where.Stall.
func stall(s string) bool {
	_, err := where.ParseStall(s)
	return err == nil
}

// maxBytes is the most memory that addresses reach, segment.MaxAttach.
const maxBytes = 511 << 30

// size is the form of numbers of bytes.
func size(s string) bool {
	n, err := jobenv.ParseSize(s)
	return err == nil && n <= maxBytes
}

// bucket is the form of a unit of pinned memory.
func bucket(s string) bool {
	n, err := jobenv.ParseSize(s)
	return err == nil && n >= 4<<10 && n <= 1<<30 && n&(n-1) == 0
}

// boolean is the form of 0 and 1 as strconv.ParseBool reads them.
func boolean(s string) bool {
	_, err := strconv.ParseBool(s)
	return err == nil
}

// lasting is the form of times of at least least.
func lasting(least time.Duration) func(string) bool {
	return func(s string) bool {
		d, err := time.ParseDuration(s)
		return err == nil && d >= least
	}
}

// text is the form of what people write on one line: printable, without white space at its
// ends.
func text(s string) bool {
	return utf8.ValidString(s) && strings.TrimSpace(s) == s &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// word is the form of text without white space.
func word(s string) bool { return text(s) && strings.IndexFunc(s, unicode.IsSpace) < 0 }

// iface is the form of an address or a name of an interface (dev_valid_name of Linux).
func iface(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || len(s) < 16 && word(s) && !strings.ContainsAny(s, "/:")
}

// networks is the form of a description of networks.
func networks(s string) bool {
	_, err := nets.Parse(jobenv.Networks, s)
	return err == nil
}

// socket is the form of the address of package claim's.
func socket(s string) bool { return word(s) && s[0] == '@' && strings.Contains(s, "/") }

// path is the form of names of files: what a terminal shows and the system takes.
func path(s string) bool {
	const longest = 4095 // PATH_MAX of linux/limits.h without its zero byte
	return len(s) <= longest && strings.TrimSpace(s) != "" && strings.IndexFunc(s, unicode.IsControl) < 0
}

// hostPort is the form of host:port.
func hostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	return err == nil && word(s) && host != "" && number(1, 65535)(port)
}

// hexKey is the form of a job's key.
func hexKey(s string) bool {
	s = strings.TrimSpace(s) // as package jobkey does
	return len(s) == 64 && strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }) < 0
}

// never is the form of what gasrun sets for processes of its own that are no ranks.
func never(string) bool { return false }

// directory is the error of a name that is no directory which this process can use.
func directory(name string) error {
	fi, err := os.Stat(name)
	switch {
	case err != nil:
		return errs.Cause(err)
	case !fi.IsDir():
		return errors.New("not a directory")
	}
	return nil
}
