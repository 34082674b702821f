package rendezvous

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/sys/ifaddr"
	"github.com/argon-go/argon/internal/testkit/fakepmi"
)

// managed is the environment of a rank that a process manager has started: all ranks are on
// this host if all says so.
func managed(rank, size int, all bool, more map[string]string) func(string) string {
	return func(key string) string {
		switch {
		case key == jobenv.Rank:
			return strconv.Itoa(rank)
		case key == jobenv.Size, key == jobenv.LocalSize && all:
			return strconv.Itoa(size)
		}
		return more[key]
	}
}

// gather has size ranks find each other by a process manager, and join; with is the rank's
// own environment.
func gather(t *testing.T, size int, all bool, with func(rank int) map[string]string) (m *fakepmi.Manager, met time.Duration, errs []error) {
	t.Helper()
	m = &fakepmi.Manager{Size: size, Slurm: all}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	start := time.Now()
	clients, errs := make([]*Client, size), make([]error, size)
	var wg, there sync.WaitGroup
	there.Add(size)
	for r := range size {
		mine, its := net.Pipe()
		wg.Go(func() { m.Serve(t, its) })
		wg.Go(func() {
			env := managed(r, size, all, with(r))
			s, err := Setup{Patience: limit, Logf: t.Logf}, error(nil)
			if s.Key, err = jobkey.LoadFrom(env); err != nil {
				s.Key = jobkey.Key{}
			}
			s, err = s.meetBy(ctx, byManager(mine), env)
			there.Done()
			if err == nil {
				clients[r], err = s.Join(ctx, Hello{Rank: r, Size: size, Host: "h", Agree: "a"}, Events{})
			} else if s.at != nil {
				s.at.Close()
			}
			errs[r] = err
		})
	}
	there.Wait()
	met = time.Since(start)
	wg.Wait()
	for _, c := range clients {
		if c != nil {
			wg.Go(func() {
				_ = c.Leave()
				_ = c.Close()
			})
		}
	}
	wg.Wait()
	return m, met, errs
}

func alone(int) map[string]string { return nil }

// TestManagedScale has many ranks find each other by a process manager, with nothing given. With
// -v it says how long that takes.
func TestManagedScale(t *testing.T) {
	size := 1000
	if testing.Short() || conc.Race {
		size = 100
	}
	start := time.Now()
	m, met, all := gather(t, size, true, alone)
	if err := errors.Join(all...); err != nil || m.Ended() != size {
		t.Fatalf("%d ranks have said finalize: %v", m.Ended(), err)
	}
	t.Logf("%d ranks: exchanged within %v, joined and left within %v", size, met.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	if v := m.Value(place); !strings.Contains(v, ifaddr.Loopback().String()) || strings.Count(v, ",") != 2 {
		t.Errorf("ranks of one host are told more than the loopback address: %d bytes", len(v))
	}
}

// TestManaged: ranks of other hosts have the addresses of rank 0's, and find the one that leads
// there.
func TestManaged(t *testing.T) {
	if len(ifaddr.Own()) == 0 {
		t.Skip("this host has no address that others reach")
	}
	m, _, all := gather(t, 5, false, alone)
	if err := errors.Join(all...); err != nil {
		t.Fatal(err)
	}
	for _, a := range ifaddr.Own() {
		if v := m.Value(place); !strings.Contains(v, netip.AddrPortFrom(a, 0).String()[:len(a.String())]) {
			t.Errorf("%v is not told", a)
		}
	}
}

// TestManagedKey: a key that is set does not pass through the process manager, and all ranks
// have it or none.
func TestManagedKey(t *testing.T) {
	key := jobkey.New().Reveal()
	set := map[string]string{jobenv.JobKey: key}
	m, _, all := gather(t, 3, true, func(int) map[string]string { return set })
	if err := errors.Join(all...); err != nil || strings.Contains(m.Value(place), key) || !strings.HasPrefix(m.Value(place), "1,-,") {
		t.Errorf("%v", err)
	}
	own, err := jobkey.Parse(key)
	if err != nil {
		t.Fatal(err)
	}
	for text, s := range map[string]Setup{"1," + key + ",127.0.0.1:7": {Key: own}, "1,-,127.0.0.1:7": {}} {
		if _, err := s.find(t.Context(), text); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), jobenv.JobKeyFile) || !strings.Contains(err.Error(), "rank 0") {
			t.Errorf("one rank alone has a key: %v", err)
		}
	}
}

// TestFind: what rank 0 cannot have told.
func TestFind(t *testing.T) {
	key := jobkey.New().Reveal()
	for _, text := range []string{
		"", "1", "1," + key, "2," + key + ",127.0.0.1:7", "1,x,127.0.0.1:7", "1," + key + ",localhost:7", "1," + key + ",127.0.0.1",
		"1," + key + strings.Repeat(",127.0.0.1:7", mostAddrs+1), "1," + strings.Repeat("0", 64) + ",127.0.0.1:7",
	} {
		_, err := Setup{}.find(t.Context(), text)
		if !errors.Is(err, errs.ErrBadArg) || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", strings.ReplaceAll(text, key, "KEY"), err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Setup{}.find(ctx, "1,"+key+",127.0.0.1:7,127.0.0.2:7")
	if !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), "127.0.0.2:7: no answer") || !strings.Contains(err.Error(), jobenv.Iface) {
		t.Error(err)
	}
}

// TestServed: a named interface is where rank 0 serves.
func TestServed(t *testing.T) {
	a, err := served(managed(0, 2, false, map[string]string{jobenv.Iface: "127.0.0.1"}))
	if err != nil || len(a) != 1 || !a[0].IsLoopback() {
		t.Errorf("%v, %v", a, err)
	}
	if _, err := served(managed(0, 2, false, map[string]string{jobenv.Iface: "no such"})); !errors.Is(err, errs.ErrBadArg) {
		t.Error(err)
	}
}

// TestFromEnvManaged: without a socket to the process manager FromEnv says so, and does so
// once more.
func TestFromEnvManaged(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	env := func(key string) string {
		return map[string]string{"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_FD": strconv.Itoa(int(f.Fd())), jobenv.Rank: "1"}[key]
	}
	for range 2 {
		if _, err := FromEnv(env); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), jobenv.Rendezvous) {
			t.Error(err)
		}
	}
}

// TestMeeting: what rank 0 tells by a file the others read, whenever they come, and other users do
// not; they do not take what an earlier rank 0 has left, say which file they waited for, and trust no folder
// that others write.
func TestMeeting(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "argon-7")
	zero := &meeting{file: file}
	if _, err := zero.tell(t.Context(), "1,k,stale:1"); err != nil {
		t.Fatal(err)
	}
	zero.held.Close() // as if it had been killed
	var wg sync.WaitGroup
	read := func() {
		if got, err := (&meeting{file: file}).tell(t.Context(), ""); got != "1,k,a:1" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	for range 3 {
		wg.Go(read)
	}
	if _, err := zero.tell(t.Context(), "1,k,a:1"); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	read()
	if st, err := os.Stat(file); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	zero.close()
	if all, err := os.ReadDir(dir); len(all) != 0 || err != nil {
		t.Errorf("%v is left, %v", all, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := zero.tell(ended, ""); !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := zero.tell(t.Context(), ""); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	if _, err := (&meeting{file: filepath.Join(dir, "none", "f")}).tell(t.Context(), "x"); !errors.Is(err, errs.ErrResource) {
		t.Error(err)
	}
}
