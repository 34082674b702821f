package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// maxLine is the longest line that managers read, with its end, bytes (PMIU_MAXLINE).
const maxLine = 1024

// mostRead is the longest line that is read of a manager: a value may be as long as those
// that are sent, and Hydra adds a remark of its own.
const mostRead = 4 * maxLine

// maxShown is how much of a manager's answer an error has, bytes.
const maxShown = 200

// Inherited is the socket to the process manager, of which PMI_FD has the number. Programs
// that this process starts do not inherit it any more.
func Inherited(number string) (net.Conn, error) {
	fd, err := strconv.Atoi(number)
	var st syscall.Stat_t
	switch {
	case err != nil || fd < 0:
		return nil, errs.BadArg("pmi: %s=%q is no file descriptor; the process manager sets it", jobenv.PMIFD, number)
	case syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFSOCK:
		// Not closed: it is another file of this process.
		return nil, errs.BadArg("pmi: %s=%d is not open, or no socket: a process between the process manager and the program has closed it", jobenv.PMIFD, fd)
	}
	f := os.NewFile(uintptr(fd), jobenv.PMIFD)
	defer f.Close()
	conn, err := net.FileConn(f) // a copy, closed in programs that this process starts
	if err != nil {
		return nil, errs.Resource("pmi: %s=%d: %v", jobenv.PMIFD, fd, err)
	}
	return conn, nil
}

// Exchange has all processes of a job know the value of key that one of them gives, by the
// process manager at the other end of conn, which it closes. value is "" in the others. Until
// all processes have called it, it waits, or until ctx ends. The manager takes the process for
// one that has nothing to do with it any more then, so that it may end in any way.
//
// A value has no spaces. Errors: ErrBadArg if the manager does not take one of this length,
// ErrNotReady if ctx ends, and ErrResource for a manager that ends, refuses, or answers
// something else.
func Exchange(ctx context.Context, conn net.Conn, key, value string) (string, error) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	m := manager{ctx: ctx, conn: conn, in: bufio.NewReaderSize(conn, mostRead)}
	m.ask("init pmi_version=1 pmi_subversion=1", "response_to_init", "")
	space := m.ask("get_my_kvsname", "my_kvsname", "kvsname")
	if value != "" {
		if most, err := strconv.Atoi(m.ask("get_maxes", "maxes", "vallen_max")); m.err == nil && (err != nil || len(value) >= most) {
			m.err = errs.BadArg("pmi: the value of %s has %d bytes, and the process manager takes less than vallen_max=%d", key, len(value), most)
		}
		m.ask("put kvsname="+space+" key="+key+" value="+value, "put_result", "")
	}
	m.ask("barrier_in", "barrier_out", "")
	if value == "" {
		value = m.ask("get kvsname="+space+" key="+key, "get_result", "value")
	}
	m.ask("finalize", "finalize_ack", "")
	return value, m.err
}

// manager is the connection to a process manager. err is sticky.
type manager struct {
	ctx  context.Context
	conn io.Writer
	in   *bufio.Reader
	err  error
}

// ask sends a command and waits for the answer of that name. It returns the answer's word
// want, unless that is "".
func (m *manager) ask(cmd, answer, want string) string {
	if m.err != nil {
		return ""
	}
	name, _, _ := strings.Cut(cmd, " ")
	line := "cmd=" + cmd + "\n"
	if len(line) > maxLine {
		m.err = errs.BadArg("pmi: %s has %d bytes, and process managers take %d", name, len(line), maxLine)
		return ""
	}
	// What has been read matters more than that a manager took no more.
	_, lost := io.WriteString(m.conn, line)
	got, err := m.in.ReadSlice('\n')
	switch {
	case err != nil && m.ctx.Err() != nil:
		m.err = errs.NotReady("pmi: the process manager has not answered %s", name)
		if name == "barrier_in" {
			m.err = errs.NotReady("pmi: the process manager waits for processes of the job that have ended, have not started, or do something else")
		}
	case errors.Is(err, bufio.ErrBufferFull):
		m.err = errs.Resource("pmi: the process manager answers %s by a line of more than %d bytes: %s", name, mostRead, shown(got, name))
	case err != nil:
		m.err = errs.Resource("pmi: the process manager has ended without an answer to %s: %v", name, errors.Join(lost, err))
	default:
		v, err := parse(string(got), answer, want)
		if err != nil {
			m.err = errs.Resource("pmi: the process manager answers %s by %s: %v", name, shown(got, name), err)
		}
		return v
	}
	return ""
}

// shown is an answer to a command as errors have it: what may be the value, which is
// secret, is left out.
func shown(line []byte, name string) string {
	if name == "get" {
		return "a line that is not shown, for it may have the job's key"
	}
	return strconv.Quote(errs.Line(strings.TrimSuffix(string(line), "\n"), maxShown))
}

// parse takes a line apart that must be the answer of that name, and returns its word want,
// unless that is "".
func parse(line, answer, want string) (value string, err error) {
	words := map[string]string{}
	for w := range strings.FieldsSeq(line) {
		k, v, _ := strings.Cut(w, "=")
		if _, twice := words[k]; !twice {
			words[k] = v
		}
	}
	if got := words["cmd"]; got != answer {
		return "", fmt.Errorf("no cmd=%s", answer)
	}
	if rc, said := words["rc"]; said && rc != "0" {
		return "", errors.New("refused")
	}
	if want != "" && words[want] == "" {
		return "", fmt.Errorf("no %s", want)
	}
	return words[want], nil
}
