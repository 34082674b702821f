package shm

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// wantError fails the test unless err wraps kind and contains all of parts.
func wantError(t *testing.T, what string, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: error %v, want one that wraps %q", what, err, kind)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %q does not say %q", what, err, p)
		}
	}
}

func TestNumberOfRanks(t *testing.T) {
	for _, n := range []int{-1, 0, MaxRanks + 1, 1 << 40} {
		_, err := Local(n, conduits.Config{})
		wantError(t, "Local", err, conduits.ErrBadArg, "1 to 1024", "-n")
		_, err = CreateJob(n, conduits.Config{})
		wantError(t, "CreateJob", err, conduits.ErrBadArg, "1 to 1024", "-n")
	}
	for _, n := range []int{1, MaxRanks} {
		m, err := CreateJob(n, conduits.Config{MaxSegment: page})
		if err != nil {
			t.Fatal(err)
		}
		e := join(t, m, n-1, n)
		if e.Rank() != n-1 || e.Size() != n || e.Conduit() != "shm" {
			t.Errorf("joined %d of %d of %s", e.Rank(), e.Size(), e.Conduit())
		}
		m.Close()
	}
}

func TestJoinRefuses(t *testing.T) {
	m, err := CreateJob(3, conduits.Config{MaxSegment: page})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	env := func(v string) func(string) string { return func(string) string { return v } }
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file := func(content string) *os.File {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if _, err := io.WriteString(f, content); err != nil {
			t.Fatal(err)
		}
		return f
	}
	header := make([]byte, hdrBytes)
	if _, err := m.File().ReadAt(header, 0); err != nil {
		t.Fatal(err)
	}
	cut := file(string(header))
	other := append([]byte(nil), header...)
	other[hdrVersion]++
	odd := append([]byte(nil), header...)
	odd[hdrCells]--
	for _, c := range []struct {
		what string
		env  func(string) string
		rank int
		size int
		say  string
	}{
		{"no descriptor", env(""), 0, 3, `ARGON_SEGFD=""`},
		{"no number", env("three"), 0, 3, `ARGON_SEGFD="three"`},
		{"a negative number", env("-1"), 0, 3, `ARGON_SEGFD="-1"`},
		{"a huge number", env("99999999999"), 0, 3, `ARGON_SEGFD="99999999999"`},
		{"a descriptor that is not open", env("1000000"), 0, 3, "ARGON_SEGFD=1000000"},
		{"a device", segfd(null), 0, 3, "not a job's memory"},
		{"an empty file", segfd(file("")), 0, 3, "it has 0 bytes"},
		{"a short file", segfd(file("x")), 0, 3, "it has 1 bytes"},
		{"another file", segfd(file(strings.Repeat("x", 2*page))), 0, 3, "not the memory of a job"},
		{"another version", segfd(file(string(other))), 0, 3, "not the memory of a job of this version"},
		{"a file cut short", segfd(cut), 0, 3, "cut short"},
		{"a damaged header", segfd(file(string(odd))), 0, 3, "damaged header"},
		{"rank -1", segfd(m.File()), -1, 3, "rank -1 of 3 does not exist"},
		{"rank 3 of 3", segfd(m.File()), 3, 3, "rank 3 of 3 does not exist"},
		{"a wrong size", segfd(m.File()), 0, 2, "made for 3 ranks"},
	} {
		_, err := Join(conduits.Job{Rank: c.rank, Size: c.size, Env: c.env}, conduits.Config{})
		wantError(t, c.what, err, conduits.ErrBadArg, "shm: ", c.say)
	}
	join(t, m, 1, 3)
	_, err = Join(conduits.Job{Rank: 1, Size: 3, Env: segfd(m.File())}, conduits.Config{})
	wantError(t, "a taken rank", err, conduits.ErrBadArg, "rank 1 is taken", "ARGON_RANK")
}

func TestAttachRefuses(t *testing.T) {
	eps := forms[3].open(t, 1, conduits.Config{MaxSegment: 4 * page})
	e := eps[0]
	ok := &sink{}
	for _, c := range []struct {
		what  string
		c     conduits.AttachConfig
		kind  error
		parts []string
	}{
		{"no Receiver", conduits.AttachConfig{}, conduits.ErrBadArg, []string{"Receiver"}},
		{"an odd size", conduits.AttachConfig{Size: page + 1, Receiver: ok}, conduits.ErrBadArg, []string{"4097", "4096"}},
		{"too large a size", conduits.AttachConfig{Size: 5 * page, Receiver: ok}, conduits.ErrResource, []string{"20480", "16384", "-segment", "ARGON_SEGMENT"}},
	} {
		wantError(t, c.what, e.Attach(c.c), c.kind, c.parts...)
	}
	if err := e.Attach(conduits.AttachConfig{Size: 4 * page, Receiver: ok}); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a second time", e.Attach(conduits.AttachConfig{Receiver: ok}), conduits.ErrNotReady, "attached already")
	if n := e.SegmentSize(0); n != 4*page {
		t.Errorf("the segment has %d bytes", n)
	}
	if n := e.SegmentSize(1); n != 0 {
		t.Errorf("a rank that does not exist has %d bytes", n)
	}
}

// TestLocalSegmentTooLarge: the Go heap would not give it, and say so by dying.
func TestLocalSegmentTooLarge(t *testing.T) {
	l, err := Local(1, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	err = l[0].Attach(conduits.AttachConfig{Size: uint64(segment.MaxAttach), Receiver: &sink{}})
	wantError(t, "511 GiB", err, conduits.ErrResource, "548682072064", "allows", "-segment")
	if err := l[0].Attach(conduits.AttachConfig{Size: page, Receiver: &sink{}}); err != nil {
		t.Errorf("a smaller one afterwards: %v", err)
	}
}

// TestMemoryInDirectory: ARGON_SHM_DIR names where the memory is made, without
// leaving anything there.
func TestMemoryInDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ARGON_SHM_DIR", dir)
	m, err := CreateJob(2, conduits.Config{MaxSegment: page})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	eps := []*Endpoint{join(t, m, 0, 2), join(t, m, 1, 2)}
	got := 0
	attach(t, eps, page, func(int, *conduits.Message) { got++ })
	send(eps[0], 1, conduits.Request)
	if eps[1].Poll(); got != 1 {
		t.Errorf("%d messages", got)
	}
	_, err = CreateJob(2, conduits.Config{MaxSegment: 400 << 30})
	wantError(t, "too much", err, conduits.ErrResource, "429496729600", "-segment")

	t.Setenv("ARGON_SHM_DIR", filepath.Join(dir, "none"))
	_, err = CreateJob(2, conduits.Config{MaxSegment: page})
	wantError(t, "a directory that does not exist", err, conduits.ErrResource, "none", "ARGON_SHM_DIR")
}

// TestSmallMemory runs jobs in a file system of 64 MB, as containers have it.
func TestSmallMemory(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("argon-test", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	t.Setenv("ARGON_SHM_DIR", dir)
	_, err := CreateJob(4, conduits.Config{MaxSegment: 16 << 20})
	wantError(t, "four times 16 MiB", err, conduits.ErrResource, "4 segments of 16777216 bytes need 64 MiB", "the file system of "+dir+" allows 64 MiB", "-segment", "ARGON_SEGMENT", "ARGON_SHM_DIR", "--shm-size")

	m, err := CreateJob(4, conduits.Config{}) // as large as it can be
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if n := m.j.segment; n < 8<<20 || n > 16<<20 {
		t.Errorf("segments of %d bytes in 64 MiB", n)
	}
	// All of it can be used: every segment, and mailboxes between all.
	var eps []*Endpoint
	for r := range 4 {
		eps = append(eps, join(t, m, r, 4))
	}
	got := make([]int, 4)
	attach(t, eps, uint64(m.j.segment), func(rank int, _ *conduits.Message) { got[rank]++ })
	medium := make([]byte, eps[0].Limits().MaxMedium)
	for src, e := range eps {
		clear(mustBytes(e.views[src]))
		for dst := range eps {
			for range 20 {
				for e.SendPayload(dst, conduits.Request, 1, nil, medium, 0) != conduits.Ready {
					eps[dst].Poll()
				}
			}
		}
	}
	for r, e := range eps {
		for got[r] < 80 {
			e.Poll()
		}
	}
}
