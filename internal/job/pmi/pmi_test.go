package pmi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/pmi"
	"github.com/argon-go/argon/internal/testkit/fakepmi"
)

// exchange has size processes exchange a value.
func exchange(t testing.TB, m *fakepmi.Manager) {
	var wg sync.WaitGroup
	for r := range m.Size {
		mine, its := net.Pipe()
		wg.Go(func() { m.Serve(t, its) })
		wg.Go(func() {
			value := ""
			if r == 0 {
				value = "1,0a0b,127.0.0.1:7"
			}
			if got, err := pmi.Exchange(t.Context(), mine, "place", value); err != nil || got != "1,0a0b,127.0.0.1:7" {
				t.Errorf("rank %d: %q, %v", r, got, err)
			}
		})
	}
	wg.Wait()
	if n := m.Ended(); n != m.Size {
		t.Errorf("%d of %d processes have told the manager that they end", n, m.Size)
	}
}

func TestExchange(t *testing.T) {
	for _, slurm := range []bool{false, true} {
		for _, size := range []int{1, 2, 17} {
			exchange(t, &fakepmi.Manager{Size: size, Slurm: slurm})
		}
	}
}

// BenchmarkExchange is an exchange of 1,000 processes, whose manager is in this one too.
func BenchmarkExchange(b *testing.B) {
	for b.Loop() {
		exchange(b, &fakepmi.Manager{Size: 1000})
	}
}

// TestLyingManager: each answer of a manager that ends, refuses or says something else is an
// error that has what it says, but for what may be the key.
func TestLyingManager(t *testing.T) {
	good := []string{"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", "cmd=my_kvsname kvsname=k\n", "cmd=barrier_out\n", "cmd=get_result rc=0 value=v\n", "cmd=finalize_ack\n"}
	for _, c := range []struct {
		at     int // which answer
		answer string
		value  string // what this process gives
		want   []string
	}{
		{0, "", "", []string{"init", "ended without an answer"}},
		{0, "cmd=response_to_init", "", []string{"init", "ended without an answer"}},
		{0, "220 mail\n", "", []string{`"220 mail"`, "no cmd=response_to_init"}},
		{0, "\x1b[2J\x00\xff\n", "", []string{"no cmd=response_to_init"}},
		{0, strings.Repeat("x", 1<<16) + "\n", "", []string{"a line of more than 4096 bytes"}},
		{0, "cmd=response_to_init rc=-1\n", "", []string{"refused", "rc=-1"}},
		{1, "cmd=my_kvsname\n", "", []string{"no kvsname"}},
		{2, "cmd=maxes vallen_max=5\n", "12345", []string{"5 bytes", "vallen_max=5"}},
		{2, "cmd=maxes vallen_max=2000\n", strings.Repeat("v", 1100), []string{"put has 11", "process managers take 1024"}},
		{2, "cmd=maxes vallen_max=many\n", "12345", []string{"vallen_max=0"}},
		{2, "cmd=barrier_out rc=7\n", "", []string{"barrier_in", "rc=7"}},
		{2, "", "", []string{"barrier_in", "ended without an answer"}},
		{3, "cmd=get_result rc=0 val=secret\n", "", []string{"no value"}},
		{3, "cmd=get_result rc=1\n", "", []string{"refused"}},
		{4, "cmd=finalise_ack\n", "", []string{"finalize", "no cmd=finalize_ack"}},
	} {
		mine, its := net.Pipe()
		go func() {
			defer its.Close()
			in := bufio.NewReader(its)
			for _, a := range append(good[:c.at:c.at], c.answer) {
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
				if _, err := its.Write([]byte(a)); err != nil {
					return
				}
			}
		}()
		_, err := pmi.Exchange(t.Context(), mine, "place", c.value)
		if !errors.Is(err, errs.ErrResource) && !errors.Is(err, errs.ErrBadArg) || strings.Contains(err.Error(), "secret") || strings.ContainsAny(err.Error(), "\n\x1b\x00") {
			t.Errorf("%d, %.40q: %q", c.at, c.answer, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%d, %.40q: %v lacks %q", c.at, c.answer, err, w)
			}
		}
	}
}

// TestSilentManager: a process does not wait for others, or for a manager, longer than it may.
func TestSilentManager(t *testing.T) {
	m := &fakepmi.Manager{Size: 2}
	for what, serve := range map[string]func(net.Conn){
		"waits for processes of the job": func(c net.Conn) { m.Serve(t, c) }, // the other does not come
		"not answered init":              func(net.Conn) {},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		mine, its := net.Pipe()
		defer its.Close()
		go serve(its)
		if _, err := pmi.Exchange(ctx, mine, "place", ""); !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v lacks %q", err, what)
		}
	}
}

// TestInherited: the socket is taken, and kept from programs that the process starts; what is
// no socket is left alone.
func TestInherited(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pair[1])
	conn, err := pmi.Inherited(strconv.Itoa(pair[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		if flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFD, 0); errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x, %v", flags, errno)
		}
	})
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, number := range []string{"", "x", "-1", "99999", fmt.Sprint(f.Fd())} {
		if _, err := pmi.Inherited(number); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "PMI_FD="+number) && !strings.Contains(err.Error(), strconv.Quote(number)) {
			t.Errorf("%q: %v", number, err)
		}
	}
	if _, err := f.Stat(); err != nil {
		t.Errorf("a file that is no socket has been closed: %v", err)
	}
}

// FuzzExchange has a manager say anything: Exchange ends, and what it returns is no more than
// it was told.
func FuzzExchange(f *testing.F) {
	f.Add("cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\ncmd=get_result value=v\ncmd=finalize_ack\n")
	f.Add("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\ncmd=my_kvsname rc=0 kvsname=1.0\ncmd=barrier_out rc=0\ncmd=get_result rc=1\n")
	f.Add("cmd=response_to_init=\n\n=cmd rc\n")
	f.Fuzz(func(t *testing.T, text string) {
		mine, its := net.Pipe()
		go func() { // takes all that is said
			buf := make([]byte, 4096)
			for {
				if _, err := its.Read(buf); err != nil {
					return
				}
			}
		}()
		go func() {
			defer its.Close()
			_, _ = its.Write([]byte(text))
		}()
		v, err := pmi.Exchange(t.Context(), mine, "place", "")
		if err == nil && (v == "" || !strings.Contains(text, "value="+v)) {
			t.Errorf("%q of %q", v, text)
		}
	})
}
