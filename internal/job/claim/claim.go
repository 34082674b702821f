// Package claim is how a process becomes a rank of a launcher's job and gets the job's
// files: by a socket that it finds by name, so that processes between the launcher and the
// program may close descriptors, or use their numbers for other files.
//
// The launcher, or its deputy on a host, listens at an abstract Unix socket, whose name and
// a secret token the process has in its environment ([jobenv.JobSocket]). The process asks
// for its rank; the first that does is the rank, and the answer carries the files
// (SCM_RIGHTS, unix(7)). A later one is refused, or told that it is a job of its own.
//
// # Security
//
// Processes that hold the token may ask: those of the launcher's user, root, and with another
// user's number those that the launcher's own processes have started (sudo -E). The kernel
// says whose a process is (SO_PEERCRED); the server's judge decides by that. A name and
// token of no job lead nowhere. An abstract name belongs to a network namespace; in another
// one there is no such socket.
package claim

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// Packets are text, see question and answer. The first word of a question is the version.
const (
	version   = "argon-claim-1"
	maxPacket = 4096
	maxFiles  = 8
)

// patience is how long either side waits for the other one's packet. A launcher that is
// stopped answers when it goes on.
const patience = time.Minute

// A Claimant is a process that asks for a rank.
type Claimant struct {
	Rank int
	Own  bool // it says that it is a job of its own
	Pid  int  // 0 if it is in a space of process ids that the server does not see
	UID  int
}

// A Verdict is a server's answer to a Claimant: at most one field is set.
type Verdict struct {
	Nested string // not "": it is a job of its own; why
	Refuse string // not "": it may not run; why
}

// A Server answers the processes of a job.
type Server struct {
	l     *net.UnixListener
	token string

	mu     sync.RWMutex // held for reading while files are sent
	closed bool
}

// Listen makes a socket with a name that no other job has.
func Listen() (*Server, error) {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	name := fmt.Sprintf("@argon-%d-%x", os.Getpid(), b[:8])
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: name, Net: "unixpacket"})
	if err != nil {
		return nil, errs.Resource("claim: cannot listen: %v", err)
	}
	return &Server{l: l, token: hex.EncodeToString(b[8:])}, nil
}

// Address is the argument of Ask. It is a secret.
func (s *Server) Address() string { return s.l.Addr().String() + "/" + s.token }

// Serve answers until Close. judge decides, in goroutines of Serve, about processes that hold
// the token; one that gets a rank also gets files, of which names say what each is. Serve
// closes none of them, and they are in use until Close returns.
func (s *Server) Serve(names []string, files []*os.File, judge func(c Claimant) Verdict) {
	for {
		conn, err := s.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors at the moment: those that wait stay in the queue
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			answer, granted := s.answer(conn, judge)
			s.mu.RLock()
			defer s.mu.RUnlock()
			var rights []byte
			switch {
			case s.closed:
				answer = "fail the job has ended"
			case granted:
				fds := make([]int, len(files))
				for i, f := range files {
					fds[i] = int(f.Fd())
				}
				answer, rights = "grant "+strings.Join(names, " "), syscall.UnixRights(fds...)
			}
			_, _, err := conn.WriteMsgUnix([]byte(answer), rights, nil)
			if err != nil && rights != nil { // unix(7): too many files are on their way, ETOOMANYREFS; or memory is short
				answer = "fail gasrun cannot send the job's files: " + err.Error()
				_, _ = conn.Write([]byte(answer)) // fails if the process is gone, which needs no answer then
			}
		}()
	}
}

// answer reads a question and decides.
func (s *Server) answer(conn *net.UnixConn, judge func(c Claimant) Verdict) (text string, granted bool) {
	c, err := Credentials(conn)
	if err != nil {
		return "refuse the system does not say which process asks: " + err.Error(), false
	}
	b := make([]byte, maxPacket)
	n, err := conn.Read(b)
	if err != nil {
		return "refuse no question", false
	}
	words := strings.Fields(string(b[:n]))
	if len(words) != 4 || words[0] != version {
		return "refuse gasrun and the program are built from different versions of argon", false
	}
	if subtle.ConstantTimeCompare([]byte(words[1]), []byte(s.token)) != 1 {
		return "refuse the job's token is another one", false
	}
	if c.Rank, err = strconv.Atoi(words[2]); err != nil {
		return "refuse no rank is called " + errs.Line(words[2], 20), false
	}
	c.Own = words[3] == "own"
	switch v := judge(c); {
	case v.Nested != "":
		return "nested " + v.Nested, false
	case v.Refuse != "":
		return "refuse " + v.Refuse, false
	}
	return "", true
}

// Credentials are those of the process at the other end when it connected.
func Credentials(conn *net.UnixConn) (c Claimant, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return c, err
	}
	var cred *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, failed); err != nil {
		return c, err
	}
	return Claimant{Pid: int(cred.Pid), UID: int(cred.Uid)}, nil
}

// Close ends Serve. Files are sent no more when it returns.
func (s *Server) Close() error {
	err := s.l.Close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return err
}

// A Grant is the server's answer to a claim.
type Grant struct {
	Files  map[string]*os.File // by what the server calls them; the caller's
	Nested string              // not "": the process is a job of its own; why
}

// ErrUnreachable is the error of Ask if there is no such socket here, or it may not be used.
var ErrUnreachable = errors.New("there is no socket of the job's in this network namespace")

// Ask asks the server at address for a rank, or with own tells it that this process, which
// has the rank's environment, is a job of its own. ErrBadArg is a refusal.
func Ask(address string, rank int, own bool) (Grant, error) {
	name, token, ok := strings.Cut(address, "/")
	if !ok || !strings.HasPrefix(name, "@") || token == "" {
		return Grant{}, errs.BadArg("claim: this is no address of a job's socket")
	}
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: name, Net: "unixpacket"})
	if errors.Is(err, syscall.ECONNREFUSED) { // unix(7): also if nothing is bound to the name
		return Grant{}, ErrUnreachable
	}
	if err != nil {
		return Grant{}, fmt.Errorf("%w: %v", ErrUnreachable, err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	what := "rank"
	if own {
		what = "own"
	}
	if _, err := fmt.Fprintf(conn, "%s %s %d %s", version, token, rank, what); err != nil {
		return Grant{}, errs.Resource("claim: cannot ask gasrun for rank %d: %v", rank, err)
	}
	b, oob := make([]byte, maxPacket), make([]byte, syscall.CmsgSpace(4*maxFiles))
	n, oobn, _, _, err := conn.ReadMsgUnix(b, oob)
	if errors.Is(err, io.EOF) {
		// Linux looks whether there is a packet, and whether the other end is closed, one after the
		// other (net/unix/af_unix.c, __unix_dgram_recvmsg): an answer that came in between, and the close
		// behind it, read as the end. The packet is there at the next look.
		n, oobn, _, _, err = conn.ReadMsgUnix(b, oob)
	}
	if err != nil {
		return Grant{}, errs.Resource("claim: gasrun does not answer when asked for rank %d: %v", rank, err)
	}
	var fds []int
	if msgs, err := syscall.ParseSocketControlMessage(oob[:oobn]); err == nil {
		for i := range msgs {
			some, _ := syscall.ParseUnixRights(&msgs[i])
			fds = append(fds, some...)
		}
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "the job's file")
	}
	word, rest, _ := strings.Cut(string(b[:n]), " ")
	names := strings.Fields(rest)
	switch {
	case word == "grant" && len(names) == len(files):
		g := Grant{Files: make(map[string]*os.File, len(files))}
		for i, f := range files {
			g.Files[names[i]] = f
		}
		return g, nil
	case word == "nested" && len(files) == 0:
		return Grant{Nested: rest}, nil
	}
	for _, f := range files {
		f.Close()
	}
	if word == "fail" {
		return Grant{}, errs.Resource("claim: rank %d: %s", rank, rest)
	}
	if word == "grant" { // MSG_CTRUNC: recvmsg(2), RLIMIT_NOFILE
		return Grant{}, errs.Resource("claim: %d of the job's %d files have come; may this process open no more? (ulimit -n)", len(files), len(names))
	}
	return Grant{}, errs.BadArg("claim: %s", rest)
}
