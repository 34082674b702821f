package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/job/pmi"
	"github.com/argon-go/argon/internal/sys/awake"
	"github.com/argon-go/argon/internal/sys/ifaddr"
)

// told is the Setup that this process has by its process manager, which tells it once.
var told struct {
	once sync.Once
	s    Setup
	err  error
}

// meet is s with what the process manager tells this process.
func (s Setup) meet(env func(string) string) (Setup, error) {
	told.once.Do(func() {
		patience := cmp.Or(s.Patience, DefaultPatience)
		ctx, cancel := awake.WithTimeout(context.Background(), patience)
		defer cancel()
		by, file := jobenv.PMIFD, jobenv.Meeting(env)
		if file != "" {
			by, s.meeting = jobenv.PMIxDir, &meeting{file: file}
			told.s, told.err = s.meetBy(ctx, s.meeting.tell, env)
		} else if conn, err := pmi.Inherited(env(by)); err != nil {
			told.err = err
		} else {
			told.s, told.err = s.meetBy(ctx, byManager(conn), env)
			conn.Close()
		}
		if told.err != nil {
			told.err = fmt.Errorf("rendezvous: rank %s: %w (%s=%s, %s=%v; %s goes without it)",
				env(jobenv.Rank), told.err, by, env(by), jobenv.JoinTimeout, patience, jobenv.Rendezvous)
		}
	})
	return told.s, told.err
}

// exchange tells the other ranks text, or if that is "" waits for it.
type exchange func(ctx context.Context, text string) (string, error)

// byManager is an exchange by a process manager's keys and values.
func byManager(conn net.Conn) exchange {
	return func(ctx context.Context, text string) (string, error) { return pmi.Exchange(ctx, conn, place, text) }
}

// meeting is a file by which rank 0 tells the other ranks, in a folder that only this user, or root, may
// write. Rank 0 holds a lock of it until all have joined: without one, the file is of an earlier rank 0.
type meeting struct {
	file string
	held *os.File // rank 0's
}

// close takes the file away, if m is not nil.
func (m *meeting) close() {
	if m != nil && m.held != nil {
		_ = os.Remove(m.file)
		m.held.Close()
	}
}

// tell is an exchange.
func (m *meeting) tell(ctx context.Context, text string) (string, error) {
	dir := filepath.Dir(m.file)
	st, err := os.Stat(dir)
	if err != nil {
		return "", errs.Resource("%v", err)
	}
	uid := uint32(os.Geteuid())
	// Slurm before 23.02.6 lets root's group write.
	if o, mode := st.Sys().(*syscall.Stat_t), st.Mode(); o.Uid != uid && o.Uid != 0 || mode&0o002 != 0 || mode&0o020 != 0 && o.Gid != 0 {
		return "", errs.BadArg("%s is of user %d and group %d, with mode %v: others than user %d may write there, and so tell where ranks meet", dir, o.Uid, o.Gid, mode, uid)
	}
	if text != "" {
		return text, m.post(dir, text)
	}
	for {
		text, err := m.read()
		if text != "" || err != nil {
			return text, err
		}
		select {
		case <-ctx.Done():
			return "", errs.NotReady("rank 0 has not said in %s where it serves", m.file)
		case <-time.After(5 * time.Millisecond): // a folder says nothing of its files
		}
	}
}

// post has the file appear, with all of text.
func (m *meeting) post(dir, text string) error {
	f, err := os.CreateTemp(dir, "argon-") // for this user alone
	if err != nil {
		return errs.Resource("%v", err)
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = os.Rename(f.Name(), m.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		f.Close()
		return errs.Resource("%s: %v", f.Name(), err)
	}
	m.held = f
	return nil
}

// read is the text of the file, or "" if there is none that rank 0 holds.
func (m *meeting) read() (string, error) {
	f, err := os.Open(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var b []byte
	if err == nil {
		defer f.Close()
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
			return "", nil
		} else if errors.Is(err, syscall.EWOULDBLOCK) {
			b, err = io.ReadAll(f)
		}
	}
	if err != nil {
		return "", errs.Resource("%v", err)
	}
	return string(b), nil
}

// place is the key of what rank 0 tells the others: "1", the job's key or "-" if they have
// it, and the addresses of the service, with commas between.
const place = "argon-rendezvous"

// meetBy is meet by an exchange. Rank 0 listens before it tells the
// others where, so that none finds another program there.
func (s Setup) meetBy(ctx context.Context, tell exchange, env func(string) string) (Setup, error) {
	s.Serve = true
	secret := "-"
	if env(jobenv.Rank) != "0" {
		text, err := tell(ctx, "")
		if err != nil {
			return Setup{}, err
		}
		return s.find(ctx, text)
	}
	if !s.Key.Valid() {
		s.Key = jobkey.New()
		secret = s.Key.Reveal()
	}
	addrs, err := served(env)
	if err != nil {
		return Setup{}, err
	}
	host := ""
	if len(addrs) == 1 {
		host = addrs[0].String()
	}
	if s.at, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return Setup{}, errs.Resource("rank 0 cannot serve: %s (%s)", reason(err), jobenv.Iface)
	}
	words := []string{"1", secret}
	port := addrPort(s.at.Addr()).Port()
	for _, a := range addrs {
		words = append(words, netip.AddrPortFrom(a, port).String())
	}
	s.Server = words[2]
	if _, err = tell(ctx, strings.Join(words, ",")); err != nil {
		s.at.Close()
		return Setup{}, err
	}
	return s, nil
}

// mostAddrs is how many addresses rank 0 tells, which all fit into the value.
const mostAddrs = 12

// served are the addresses where rank 0 serves: that of ARGON_IFACE, the loopback address if
// all ranks are on this host, and else all that other hosts may reach.
func served(env func(string) string) ([]netip.Addr, error) {
	if name := env(jobenv.Iface); name != "" {
		a, err := ifaddr.Choose(name, true)
		return []netip.Addr{a}, err
	}
	if n := env(jobenv.LocalSize); n != "" && n == env(jobenv.Size) {
		return []netip.Addr{ifaddr.Loopback()}, nil
	}
	addrs := ifaddr.Own()
	if len(addrs) == 0 {
		return nil, errs.Resource("this host has no address that others reach, and not all ranks are here, or nothing says so (%s=%q, %s=%q)",
			jobenv.Size, env(jobenv.Size), jobenv.LocalSize, env(jobenv.LocalSize))
	}
	return addrs[:min(len(addrs), mostAddrs)], nil
}

// find is s of a rank that rank 0 has told text.
func (s Setup) find(ctx context.Context, text string) (Setup, error) {
	words := strings.Split(text, ",")
	odd := func() (Setup, error) { // without the text, which may have the key
		return Setup{}, errs.BadArg("what rank 0 has told (%s, %d bytes) is not understood: another version of argon, or another program", place, len(text))
	}
	if len(words) < 3 || len(words) > 2+mostAddrs || words[0] != "1" {
		return odd()
	}
	if secret := words[1]; secret != "-" {
		key, err := jobkey.Parse(secret)
		switch {
		case err != nil:
			return odd()
		case s.Key.Valid():
			return Setup{}, errs.BadArg("the job's key is set here (%s, %s), and not for rank 0", jobenv.JobKeyFile, jobenv.JobKey)
		}
		s.Key = key
	} else if !s.Key.Valid() {
		return Setup{}, errs.BadArg("the job's key is set for rank 0, and not here (%s, %s)", jobenv.JobKeyFile, jobenv.JobKey)
	}
	for _, w := range words[2:] {
		if _, err := netip.ParseAddrPort(w); err != nil {
			return odd()
		}
	}
	if s.Server = words[2]; len(words) == 3 {
		return s, nil
	}
	var err error
	if s.Server, err = Reach(ctx, words[2:], s.Key); err != nil {
		return Setup{}, errs.Resource("rank 0 cannot be reached from here: %v (a firewall, or %s)", err, jobenv.Iface)
	}
	return s, nil
}
