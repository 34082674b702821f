package traffic_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/traffic"
)

// chunk is records of a rank as a file has them.
func chunk(rank int, records []byte) []byte {
	b := []byte{'C'}
	for _, v := range []uint32{uint32(rank), uint32(len(records)), crc32.ChecksumIEEE(records)} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, records...)
}

// file is a recording of ranks that did what records say.
func file(records ...[]byte) []byte {
	b := traffic.Header(len(records), "shm", "./p q")
	for r, rec := range records {
		b = append(b, chunk(r, rec)...)
	}
	return b
}

// Records as the recorder writes them: kind, with flags and whether a gap follows.
var (
	send  = []byte{1, 1, 2, 8, 0x34, 0x12}                   // 2 words and 8 bytes to rank 1
	got   = []byte{4, 0, 0x34, 0x12}                         // of rank 0
	reply = []byte{1 | 1<<5, 0, 1, 0, 0x78, 0x56}            // to rank 0
	gotIt = []byte{4 | 1<<5, 1, 0x78, 0x56}                  // of rank 1
	wait  = []byte{6}                                        //
	end   = []byte{7, 100, 3}                                //
	put   = []byte{3 | 1<<4 | 2<<6, 200, 1, 0, 1, 128, 8, 9} // after 200 ns: 1024 bytes to rank 1 at offset 8
	done  = []byte{5 | 2<<6, 1}                              // of that
	over  = []byte{10, 200, 3, 50}                           // after 456 ns, 50 of them in waits
)

func join(l ...[]byte) []byte { return bytes.Join(l, nil) }

// TestRead reads a small recording.
func TestRead(t *testing.T) {
	tr, err := traffic.Read("f", bytes.NewReader(file(
		join(put, send, wait, done, gotIt, end, over),
		join(wait, got, reply, end, over),
	)))
	if err != nil {
		t.Fatal(err)
	}
	if tr.Program != "./p q" || tr.Conduit != "shm" || len(tr.Messages) != 2 || len(tr.Ranks) != 2 {
		t.Fatalf("%+v", tr)
	}
	m, r := tr.Messages[0], tr.Messages[1]
	if m.Src != 0 || m.Dst != 1 || m.Words != 2 || m.Size != 8 || m.Class != conduits.Request || m.Arrival != 0 || m.Replies != 1 ||
		r.Src != 1 || r.Dst != 0 || r.Class != conduits.Reply || r.Arrival != 1 {
		t.Errorf("messages %+v and %+v", m, r)
	}
	k := tr.Ranks[0]
	if len(k.Items) != 3 || k.Items[0].Verb != traffic.Post || k.Items[0].Gap != 200 || k.Items[1].Verb != traffic.Send ||
		k.Items[2].Verb != traffic.Wait || k.Items[2].Last != 1 {
		t.Errorf("steps of rank 0: %+v", k.Items)
	}
	if a := k.Accesses[0]; a.Verb != conduits.Put || a.Rank != 1 || a.Size != 1024 || a.At != 9 || a.Arrival != [2]int32{-1, 0} {
		t.Errorf("access %+v", a)
	}
	if k.Took != 456*time.Nanosecond || k.Waited != 50*time.Nanosecond || tr.Ranks[1].Segment != 8+1024 {
		t.Errorf("took %v, waited %v, segment of %d bytes", k.Took, k.Waited, tr.Ranks[1].Segment)
	}
	// The request that rank 1 only answered came last, and so its wait was for that.
	if k := tr.Ranks[1]; k.Items[0].Last != 0 || k.Needed[0] {
		t.Errorf("rank 1: %+v, needed %v", k.Items, k.Needed)
	}
}

// TestManyPolls: a replay does not make as many polls as a number may say.
func TestManyPolls(t *testing.T) {
	tr, err := traffic.Read("f", bytes.NewReader(file(join([]byte{8, 255, 255, 255, 255, 7}, over))))
	if err != nil {
		t.Fatal(err)
	}
	if it := tr.Ranks[0].Items[0]; it.Verb != traffic.Poll || it.N < 1 || it.N > 1<<20 {
		t.Errorf("%+v", it)
	}
}

// TestWaitByPolls: a message that comes in a poll right after an empty one of a wait, as in that for a barrier, is
// what the rank waits for, not one that came by the way.
func TestWaitByPolls(t *testing.T) {
	const rounds, quick = 300, 5 * time.Microsecond
	name := filepath.Join(t.TempDir(), "traffic")
	cd, err := conduits.Lookup("shm")
	if err != nil {
		t.Fatal(err)
	}
	eps, err := cd.Local(2, conduits.Config{})
	if err == nil {
		eps, err = traffic.Record(eps, name, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	var attached sync.WaitGroup
	attached.Add(len(eps))
	over := make(chan bool)
	var waits [rounds]bool
	conduits.Run(eps, func(i int) {
		var c counter
		if err := eps[i].Attach(conduits.AttachConfig{Receiver: &c}); err != nil {
			t.Error(err)
		}
		attached.Done()
		attached.Wait()
		if i > 0 {
			<-over
		} else {
			words := make([]uint32, 4)
			for k := range waits {
				began := eps[0].Now()
				eps[0].Spin()
				eps[1].Send(0, conduits.Request, 1, words)
				n := eps[0].Poll()
				waits[k] = eps[0].Now()-began < quick
				if n != 1 {
					t.Errorf("round %d: %d messages", k, n)
				}
				eps[0].Send(1, conduits.Request, 1, words)
				eps[1].Poll()
			}
			close(over)
		}
		if err := eps[i].Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := filepath.Glob(name + "*") // which job of the process it is depends on the tests before
	if err != nil || len(l) != 1 {
		t.Fatal(l, err)
	}
	f, err := os.Open(l[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr, err := traffic.Read(name, f)
	if err != nil {
		t.Fatal(err)
	}
	k, got, looked := 0, int32(0), 0
	for _, it := range tr.Ranks[0].Items {
		switch it.Verb {
		case traffic.Wait:
			got = max(got, it.Upto, it.Last+1)
		case traffic.Send:
			if k++; waits[k-1] {
				if looked++; int(got) < k {
					t.Fatalf("round %d: the rank waits for %d messages", k, got)
				}
			}
		}
	}
	if looked == 0 {
		t.Skip("the machine is too slow: polls are too far from each other")
	}
}

// TestBadFiles: each error names the file, the offset and the value.
func TestBadFiles(t *testing.T) {
	good := file(join(send, over), join(wait, got, end, over))
	head := len(traffic.Header(2, "shm", "./p q"))
	for _, tc := range []struct {
		name string
		b    []byte
		want []string
	}{
		{"nothing", nil, []string{"offset 0", `"" is not "argon-traffic 1"`}},
		{"another file", []byte("argon-traffic 9\n"), []string{"offset 0", "argon-traffic 9"}},
		{"a record", []byte("argon-sim-record 1\n"), []string{"-again"}},
		{"no ranks", []byte("argon-traffic 1\nranks 0 conduit shm program \"x\"\n"), []string{"offset 16", "line 2", "ranks 0"}},
		{"one line", []byte("argon-traffic 1\nranks 2"), []string{"offset 23", "cut off"}},
		{"no chunk", append(traffic.Header(1, "shm", "x"), 'X'), []string{"0x58"}},
		{"half a head", good[:head+5], []string{fmt.Sprint("offset ", head), "cut off"}},
		{"half a chunk", good[:head+15], []string{fmt.Sprint("offset ", head+15), "cut off", "rank 0"}},
		{"one rank", good[:head+13+len(send)+len(over)], []string{"nothing of rank 1"}},
		{"another rank", append(traffic.Header(2, "shm", "x"), chunk(2, over)...), []string{"rank 2", "0 to 1"}},
		{"a flipped bit", append(good[:len(good)-1:len(good)-1], good[len(good)-1]^1), []string{"damaged", "rank 1"}},
		{"a kind", file([]byte{15}), []string{fmt.Sprint("offset ", head+13), "0xf", "no such kind"}},
		{"a large number", file([]byte{6 | 1<<4, 255, 255, 255, 255, 255, 255, 255, 255, 1}), []string{"2^50"}},
		{"half a record", file(send[:5]), []string{"cut off"}},
		{"no end", file(wait), []string{"rank 0", "no end"}},
		{"more behind the end", file(join(over, over)), []string{"behind the rank's end"}},
		{"a peer", file(join(send, over)), []string{"rank 1 as a peer"}},
		{"a long access", file(join([]byte{3, 0, 0, 255, 255, 255, 255, 255, 31, 1}, over)), []string{"1099511627775 bytes"}},
		{"a verb", file(join([]byte{3, 9, 0, 8, 1}, over)), []string{"verb 9"}},
		{"a word", file(join([]byte{3, 2, 0, 3, 1}, over)), []string{"3 bytes", "aligned"}},
		{"a reply to none", file(join([]byte{1 | 1<<5, 0, 0, 0, 0, 0}, over)), []string{"a reply to rank 0"}},
		{"a completion of none", file(join(done, over)), []string{"completion 2", "there are 0"}},
		{"an end of no wait", file(join(end, over)), []string{"none has begun"}},
		{"a message of none", file(over, join(got, over)), []string{"a message of rank 0", "0x1234", "has not sent"}},
		{"a circle", file(
			join(wait, gotIt[:1], []byte{1, 0x34, 0x12}, end, send, over),
			join(wait, got, end, []byte{1, 0, 2, 8, 0x34, 0x12}, over),
		), []string{"-"}},
	} {
		tr, err := traffic.Read("name", bytes.NewReader(tc.b))
		if tc.name == "a circle" && err != nil {
			tc.want = nil
		}
		if err == nil || !errors.Is(err, conduits.ErrBadArg) || !strings.Contains(err.Error(), "name") {
			t.Errorf("%s: %v, %+v", tc.name, err, tr)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not have %q", tc.name, err, w)
			}
		}
	}
}

// FuzzRead: whatever ranks wrote, Read returns traffic that comes to its end, or an error.
func FuzzRead(f *testing.F) {
	f.Add(join(put, send, wait, done, gotIt, end, over), join(wait, got, reply, end, over))
	f.Add(join(wait, []byte{7 | 1<<5, 100, 3}, over), join(put, over))
	f.Add(over, join(put, over)) // a rank that does nothing
	f.Fuzz(func(t *testing.T, a, b []byte) {
		tr, err := traffic.Read("name", bytes.NewReader(file(a, b)))
		if err != nil && !errors.Is(err, conduits.ErrBadArg) || (tr == nil) != (err != nil) {
			t.Fatal(tr, err)
		}
	})
}

// TestTables compares the traffic that is made with tables I to III of Seifert, Balkanski and Rehm
// (2000), which have the calls of each size.
func TestTables(t *testing.T) {
	// sent is how many bytes the first task sends by messages of each size.
	sent := func(t *testing.T, what string, to int32) map[uint64]int {
		tr, err := traffic.NPB(what)
		if err != nil {
			t.Fatal(err)
		}
		l := map[uint64]int{}
		for _, m := range tr.Messages {
			if m.Src == 0 && (to < 0 || m.Dst == to) {
				l[m.Size]++
			}
		}
		return l
	}
	// Table I: calls, by as many messages as a task sends in one.
	const calls, n = 11, 8
	l := sent(t, "is.B.8", -1)
	if got := l[1<<20]; got != calls*(n-1)*16777216>>20 {
		t.Errorf("is.B.8: %d MiB in pieces of one; table I has %d all-to-alls of 16777216 bytes", got, calls)
	}
	// An all-reduce of 8192 is 3 messages; 4 bytes: 7 for each all-to-all, and one to the next task.
	if l[8192] != 3*calls || l[4] != 7*calls+1 {
		t.Errorf("is.B.8: %v", l)
	}
	// Table II: megabytes of a message.
	for class, mb := range map[string][3]float64{"W": {2, 1, .5}, "A": {16, 8, 4}, "B": {64, 32, 16}} {
		for i, n := range []int{2, 4, 8} {
			bytes := uint64(0)
			for size, count := range sent(t, fmt.Sprintf("is.%s.%d", class, n), 1) {
				if size > 8192 {
					bytes += size * uint64(count)
				}
			}
			if want := uint64(mb[i] * (1 << 20)); bytes != calls*want {
				t.Errorf("is.%s.%d: %d bytes to the next task in %d calls, not %d each", class, n, bytes, calls, want)
			}
		}
	}
	// Table III: of a task with a neighbour on each side of the grid.
	if l := sent(t, "lu.W.8", -1); l[512] != 9300 || l[1024] != 9300 || l[32768] != 302 || l[65536] != 302 {
		t.Errorf("lu.W.8: %v", l)
	}
	if l := sent(t, "ep.8", -1); l[8] != 9 || l[128] != 3 || len(l) != 2 {
		t.Errorf("ep.8: %v", l)
	}
	for _, what := range []string{"", "is.B", "is.C.8", "is.B.3", "lu.B.4", "ep.B.8"} {
		if _, err := traffic.NPB(what); !errors.Is(err, conduits.ErrBadArg) || !strings.Contains(err.Error(), "npb:"+what) {
			t.Errorf("%q: %v", what, err)
		}
	}
}

// counter counts messages.
type counter int

func (c *counter) Receive(*conduits.Message)                      { *c++ }
func (c *counter) Complete(uint64, conduits.Event, uint64, error) {}

// BenchmarkRecord is a message of four words to oneself, and the poll that runs it, recorded and not.
func BenchmarkRecord(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		b.Run(fmt.Sprint(recorded), func(b *testing.B) {
			cd, err := conduits.Lookup("shm")
			if err != nil {
				b.Fatal(err)
			}
			eps, err := cd.Local(1, conduits.Config{})
			if err == nil && recorded {
				eps, err = traffic.Record(eps, filepath.Join(b.TempDir(), "traffic"), false)
			}
			if err != nil {
				b.Fatal(err)
			}
			conduits.Run(eps, func(int) {
				var c counter
				if err := eps[0].Attach(conduits.AttachConfig{Receiver: &c}); err != nil {
					b.Error(err)
					return
				}
				words := make([]uint32, 4)
				for b.Loop() {
					eps[0].Send(0, conduits.Request, 1, words)
					eps[0].Spin()
				}
				if err := eps[0].Close(); err != nil || int(c) == 0 {
					b.Error(c, err)
				}
			})
		})
	}
}
