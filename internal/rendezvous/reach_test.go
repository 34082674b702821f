package rendezvous

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// refused is the error of a connect.
func refused(no syscall.Errno) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", no)}
}

// TestReach: of a name with several addresses one that answers is enough, and an error
// that may go away says more than those that do not.
func TestReach(t *testing.T) {
	const open = syscall.Errno(0)
	for _, c := range []struct {
		what  string
		by    map[string]syscall.Errno // by address
		first syscall.Errno            // what net.Dial says of the name
		want  syscall.Errno
	}{
		{"none can be reached", map[string]syscall.Errno{"2001:db8::1": syscall.ENETUNREACH, "192.0.2.1": syscall.EHOSTUNREACH}, syscall.ENETUNREACH, syscall.ENETUNREACH},
		{"nobody listens yet at the second", map[string]syscall.Errno{"2001:db8::1": syscall.ENETUNREACH, "192.0.2.1": syscall.ECONNREFUSED}, syscall.ENETUNREACH, syscall.ECONNREFUSED},
		{"the second answers meanwhile", map[string]syscall.Errno{"2001:db8::1": syscall.ENETUNREACH, "192.0.2.1": open}, syscall.ENETUNREACH, open},
		{"nobody listens yet", map[string]syscall.Errno{"192.0.2.1": syscall.ECONNREFUSED}, syscall.ECONNREFUSED, syscall.ECONNREFUSED},
	} {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		cl := newClient("a.test:7", "a.test:7", Hello{Size: 1}, Events{})
		cl.open = func(_ context.Context, _, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			no, known := c.by[host]
			if !known {
				no = c.first
			}
			if no == open {
				return a, nil
			}
			return nil, refused(no)
		}
		cl.lookUp = func(context.Context, string) (l []string, err error) {
			for host := range c.by {
				l = append(l, host)
			}
			return l, nil
		}
		conn, err := cl.reach(t.Context())
		if c.want == open && (err != nil || conn != a) || c.want != open && (conn != nil || !errors.Is(err, c.want)) {
			t.Errorf("%s: %v, %v", c.what, conn, err)
		}
	}
}

// TestUnreachable: Join ends long before its patience where the system refuses to
// connect for a reason that lasts, and names the address, the error and the knob.
func TestUnreachable(t *testing.T) {
	const multicast = "224.0.0.1:7" // no connection goes there
	_, err := Setup{Server: multicast, Key: jobkey.New()}.Join(within(t), Hello{Size: 1, Port: 1}, Events{})
	if !errors.Is(err, errs.ErrResource) {
		t.Fatalf("%v", err)
	}
	for _, s := range []string{multicast, "(E", " times in ", "no route", jobenv.Rendezvous} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}
