package claim

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m)) }

// file is an open file that holds text.
func file(t *testing.T, text string) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAsk: a process that holds the token gets files under their names, or what the judge
// says, which is told the process that asks.
func TestAsk(t *testing.T) {
	s, err := Listen()
	if err != nil {
		t.Skipf("no abstract sockets here: %v", err)
	}
	var mu sync.Mutex
	var seen []Claimant
	var done sync.WaitGroup
	done.Go(func() {
		s.Serve([]string{"A", "B"}, []*os.File{file(t, "first"), file(t, "second")}, func(c Claimant) Verdict {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, c)
			return map[int]Verdict{1: {Nested: "for a reason"}, 2: {Refuse: "for another one"}}[c.Rank]
		})
	})
	defer done.Wait()
	defer s.Close()

	g, err := Ask(s.Address(), 7, false)
	if err != nil || len(g.Files) != 2 || g.Nested != "" {
		t.Fatalf("granted %+v, %v", g, err)
	}
	for name, want := range map[string]string{"A": "first", "B": "second"} {
		b, err := io.ReadAll(io.NewSectionReader(g.Files[name], 0, 100))
		if err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v; want %q", name, b, err, want)
		}
		g.Files[name].Close()
	}
	if g, err := Ask(s.Address(), 1, true); err != nil || g.Nested != "for a reason" || g.Files != nil {
		t.Errorf("nested %+v, %v", g, err)
	}
	if g, err := Ask(s.Address(), 2, false); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "for another one") || g.Files != nil {
		t.Errorf("refused %+v, %v", g, err)
	}
	want := []Claimant{{7, false, os.Getpid(), os.Getuid()}, {1, true, os.Getpid(), os.Getuid()}, {2, false, os.Getpid(), os.Getuid()}}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != len(want) || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] {
		t.Errorf("the judge saw %+v, want %+v", seen, want)
	}
}

// TestStrangers: without the token, or with another question, there are no files.
func TestStrangers(t *testing.T) {
	s, err := Listen()
	if err != nil {
		t.Skipf("no abstract sockets here: %v", err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		s.Serve([]string{"A"}, []*os.File{file(t, "secret")}, func(Claimant) Verdict {
			t.Error("the judge was asked")
			return Verdict{}
		})
	})
	name, token, _ := strings.Cut(s.Address(), "/")
	for _, other := range []string{"x", token[1:], token + "0", strings.Repeat("0", len(token))} {
		if g, err := Ask(name+"/"+other, 0, false); !errors.Is(err, errs.ErrBadArg) || g.Files != nil {
			t.Errorf("token %q: %+v, %v", other, g, err)
		}
	}
	for _, question := range []string{"GET / HTTP/1.0", version + " " + token, "argon-claim-0 " + token + " 0 rank", version + " " + token + " x rank"} {
		conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: name, Net: "unixpacket"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(question)); err != nil {
			t.Fatal(err)
		}
		b, oob := make([]byte, maxPacket), make([]byte, 100)
		n, oobn, _, _, err := conn.ReadMsgUnix(b, oob)
		if err != nil || oobn != 0 || !strings.HasPrefix(string(b[:n]), "refuse ") {
			t.Errorf("%q: %q with %d bytes of rights, %v", question, b[:n], oobn, err)
		}
		conn.Close()
	}
	s.Close()
	done.Wait()
	if _, err := Ask(s.Address(), 0, false); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the server is gone: %v", err)
	}
	for _, address := range []string{"", "x", "@/", "/tmp/socket/0", "@x"} {
		if _, err := Ask(address, 0, false); err == nil || errors.Is(err, ErrUnreachable) {
			t.Errorf("%q is no address: %v", address, err)
		}
	}
}

// TestFilesThatCannotBeSent: the process hears why, and does not take gasrun for silent.
func TestFilesThatCannotBeSent(t *testing.T) {
	s, err := Listen()
	if err != nil {
		t.Skipf("no abstract sockets here: %v", err)
	}
	gone := file(t, "closed")
	gone.Close()
	var done sync.WaitGroup
	done.Go(func() { s.Serve([]string{"A"}, []*os.File{gone}, func(Claimant) Verdict { return Verdict{} }) })
	defer done.Wait()
	defer s.Close()
	if g, err := Ask(s.Address(), 3, false); !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), "claim: rank 3: gasrun cannot send the job's files: ") || g.Files != nil {
		t.Errorf("%+v, %v", g, err)
	}
}

// TestEnded: a process whose question is decided after Close gets no files, and hears why.
func TestEnded(t *testing.T) {
	s, err := Listen()
	if err != nil {
		t.Skipf("no abstract sockets here: %v", err)
	}
	closed := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		s.Serve([]string{"A"}, []*os.File{file(t, "secret")}, func(Claimant) Verdict {
			s.Close()
			close(closed)
			return Verdict{}
		})
	})
	defer done.Wait()
	if g, err := Ask(s.Address(), 3, false); !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), "claim: rank 3: the job has ended") || g.Files != nil {
		t.Errorf("%+v, %v", g, err)
	}
	<-closed
}

// TestManyAsk: answers come whole, however the closing of the connection behind one falls in
// with the reading of it.
func TestManyAsk(t *testing.T) {
	s, err := Listen()
	if err != nil {
		t.Skipf("no abstract sockets here: %v", err)
	}
	f := file(t, "x")
	var done, all sync.WaitGroup
	done.Go(func() { s.Serve([]string{"A"}, []*os.File{f}, func(Claimant) Verdict { return Verdict{} }) })
	for range 8 {
		all.Go(func() {
			for range 250 {
				g, err := Ask(s.Address(), 1, false)
				if err != nil || g.Files["A"] == nil {
					t.Errorf("%+v, %v", g, err)
					return
				}
				g.Files["A"].Close()
			}
		})
	}
	all.Wait()
	s.Close()
	done.Wait()
}
