package gas

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// field is one of a message of protocol buffers.
type field struct {
	v uint64 // of wire types 0 and 1
	b []byte // of wire type 2
}

// fields are those of a message, by number.
func fields(b []byte) (map[int][]field, error) {
	m := map[int][]field{}
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, io.ErrUnexpectedEOF
		}
		b = b[n:]
		var f field
		switch key & 7 {
		case 0:
			if f.v, n = binary.Uvarint(b); n <= 0 {
				return nil, io.ErrUnexpectedEOF
			}
		case 1:
			if n = 8; len(b) < n {
				return nil, io.ErrUnexpectedEOF
			}
			f.v = binary.LittleEndian.Uint64(b)
		case 2:
			l, k := binary.Uvarint(b)
			if k <= 0 || l > uint64(len(b)-k) {
				return nil, io.ErrUnexpectedEOF
			}
			n = k + int(l)
			f.b = b[k:n]
		default:
			return nil, fmt.Errorf("wire type %d", key&7)
		}
		m[int(key>>3)] = append(m[int(key>>3)], f)
		b = b[n:]
	}
	return m, nil
}

// sliceRead is a slice, or an instant, of a trace.
type sliceRead struct {
	name, kind, line string
	rank, peer       uint64
	bytes            uint64
	began, ended     uint64
	in               *sliceRead // that it is nested in
	from, to         []uint64
}

// allOthers is the peer of a message to all other ranks.
const allOthers = 1 << 63

// readTrace reads a trace by the numbers of fields that Perfetto's protos publish, as trace_processor does: events of a
// track in the order of their times, and of the file where these are equal.
func readTrace(t *testing.T, file []byte) []*sliceRead {
	all, _ := readCounted(t, file)
	return all
}

// readCounted is readTrace with the values that counters of ranks have in turn, by rank and name.
func readCounted(t *testing.T, file []byte) ([]*sliceRead, map[string][]uint64) {
	t.Helper()
	parse := func(b []byte) map[int][]field {
		m, err := fields(b)
		if err != nil {
			t.Fatalf("%v in %x", err, b)
		}
		return m
	}
	type event struct {
		at, kind uint64
		f        map[int][]field
	}
	names, parents, ranks := map[uint64]string{}, map[uint64]uint64{}, map[uint64]uint64{}
	units, tracks, events := map[uint64]uint64{}, []uint64(nil), map[uint64][]event{}
	for number, l := range parse(file) {
		if number != 1 { // Trace.packet
			t.Fatalf("field %d of a trace", number)
		}
		for _, packet := range l {
			p := parse(packet.b)
			for _, d := range p[60] { // track_descriptor
				d := parse(d.b)
				id := d[1][0].v
				for _, f := range d[3] { // process
					f := parse(f.b)
					ranks[id] = f[1][0].v - 1
					if got, want := string(f[6][0].b), fmt.Sprintf("rank %d", ranks[id]); got != want {
						t.Errorf("process %q, not %q", got, want)
					}
				}
				for _, f := range d[8] { // counter
					units[id] = parse(f.b)[3][0].v
				}
				for _, f := range d[5] { // parent_uuid
					parents[id], names[id] = f.v, string(d[2][0].b)
				}
			}
			for _, e := range p[11] { // track_event
				if len(p[8]) != 1 || len(p[10]) != 1 || p[10][0].v == 0 { // timestamp, trusted_packet_sequence_id
					t.Fatalf("an event without time or sequence: %x", packet.b)
				}
				e := parse(e.b)
				id := e[11][0].v
				if events[id] == nil {
					tracks = append(tracks, id)
				}
				events[id] = append(events[id], event{p[8][0].v, e[9][0].v, e})
			}
		}
	}
	var all []*sliceRead
	values := map[string][]uint64{}
	for _, id := range tracks {
		rank, known := ranks[parents[id]]
		if !known || names[id] == "" {
			t.Fatalf("no track %#x of a rank", id)
		}
		slices.SortStableFunc(events[id], func(a, b event) int { return cmp.Compare(a.at, b.at) })
		var in []*sliceRead
		for _, e := range events[id] {
			if (e.kind == 4) != (units[id] != 0) { // TYPE_COUNTER
				t.Fatalf("an event of type %d in %s, of unit %d", e.kind, names[id], units[id])
			}
			if e.kind == 4 {
				name := fmt.Sprintf("%d %s", rank, names[id])
				values[name] = append(values[name], e.f[30][0].v) // counter_value
				continue
			}
			if e.kind == 2 { // TYPE_SLICE_END
				if len(in) == 0 {
					t.Fatalf("rank %d: an end, and nothing has begun in %s", rank, names[id])
				}
				in[len(in)-1].ended = e.at
				in = in[:len(in)-1]
				continue
			}
			s := &sliceRead{name: string(e.f[23][0].b), kind: names[id], rank: rank, began: e.at, ended: e.at}
			if len(in) > 0 {
				s.in = in[len(in)-1]
			}
			for _, f := range e.f[4] { // debug_annotations
				switch f := parse(f.b); string(f[10][0].b) {
				case "line":
					s.line = string(f[6][0].b)
				case "bytes":
					s.bytes = f[3][0].v
				case "rank":
					if len(f[3]) > 0 {
						s.peer = f[3][0].v
					} else {
						s.peer = allOthers
						if string(f[6][0].b) != "all others" {
							t.Errorf("%q is to %q", s.name, f[6][0].b)
						}
					}
				}
			}
			for _, f := range e.f[47] { // flow_ids
				s.from = append(s.from, f.v)
			}
			for _, f := range e.f[48] { // terminating_flow_ids
				s.to = append(s.to, f.v)
			}
			all = append(all, s)
			if e.kind == 1 { // TYPE_SLICE_BEGIN
				in = append(in, s)
			}
		}
		if len(in) > 0 {
			t.Errorf("rank %d: %q has no end", rank, in[0].name)
		}
	}
	return all, values
}

// rightlyTraced compares the trace of counted on 3 ranks with what it did, and looks for both ends of each arrow:
// on sim of all, elsewhere of those that the program waits for, since a rank may leave without other messages. Where
// datagrams are lost messages may have each other's arrows.
func rightlyTraced(t *testing.T, file []byte, conduit string) {
	t.Helper()
	const ranks = 3
	apart := uint64(1e8) // may clocks be
	if conduit == "sim" {
		apart = 0
	}
	ordered := conduit == "sim" || conduit == "shm"
	all, values := readCounted(t, file)
	moved := map[string]uint64{}
	for _, s := range all {
		if s.kind == "messages" || s.kind == "puts, gets, atomics" || s.in != nil && strings.HasPrefix(s.name, "send reply ") {
			moved[fmt.Sprintf("%d bytes moved", s.rank)] += s.bytes
		}
	}
	for name, want := range moved {
		if v := values[name]; v[len(v)-1] != want || !slices.IsSorted(v) {
			t.Errorf("rank %s: %v, at last %d", name, v, want)
		}
	}
	for rank := range ranks {
		if v := values[fmt.Sprintf("%d operations under way", rank)]; conduit == "sim" && (len(v) < 2 || slices.Max(v) > 200) || len(v) > 0 && v[len(v)-1] != 0 {
			t.Errorf("rank %d has operations under way: %v", rank, v)
		}
	}
	starts, ends := map[uint64]*sliceRead{}, map[uint64]*sliceRead{}
	counts := map[string]int{}
	for _, s := range all {
		for _, id := range s.from {
			if starts[id] != nil {
				t.Errorf("two arrows %#x: from %q of rank %d, and from %q of rank %d", id, s.name, s.rank, starts[id].name, starts[id].rank)
			}
			starts[id] = s
		}
		for _, id := range s.to {
			if ends[id] != nil {
				t.Errorf("two arrows %#x: to %q of rank %d, and to %q of rank %d", id, s.name, s.rank, ends[id].name, ends[id].rank)
			}
			ends[id] = s
		}
		if s.kind != "handlers" && strings.HasPrefix(s.line, "profile_test.go:") {
			counts[s.name]++
		}
	}
	for id, s := range ends {
		switch from := starts[id]; {
		case from == nil:
			t.Errorf("an arrow without a begin to %q of rank %d", s.name, s.rank)
		case ordered && strings.TrimPrefix(from.name, "send ") != s.name && !strings.HasSuffix(s.name, " complete"):
			t.Errorf("an arrow from %q to %q", from.name, s.name)
		case from.began > s.ended+apart:
			t.Errorf("%q of rank %d begins at %d, and ends as %q of rank %d at %d", from.name, from.rank, from.began, s.name, s.rank, s.ended)
		}
	}
	calls := 0
	for id, s := range starts {
		handler := ends[id]
		if handler == nil {
			if conduit == "sim" && s.name != "send gas.collective.offer" || s.kind == "puts, gets, atomics" && strings.HasPrefix(s.line, "profile_test.go:") || s.name == "send gas test tripled" || s.name == "send reply gas.return" {
				t.Errorf("an arrow without an end from %q of rank %d", s.name, s.rank)
			}
			continue
		}
		if s.name != "send gas test tripled" {
			continue
		}
		for _, reply := range all {
			if reply.in == handler && len(reply.from) == 1 {
				if back := ends[reply.from[0]]; back != nil && back.rank == s.rank && back.name == "reply gas.return" {
					calls++
				}
			}
		}
	}
	if ordered && calls != 9*ranks {
		t.Errorf("%d calls have arrows to their handlers, and from there back, of %d", calls, 9*ranks)
	}
	for name, want := range map[string]int{
		"send gas test tripled": 9, "put by gas.Ptr.Put": 100, "put by gas.Ptr.PutSlice": 1, "put by gas.Ptr.PutShape": 8, "get by gas.Ptr.Get": 40,
		"atomic by gas.FetchAdd": 30, "gas.AllReduce": 7, "gas.Node.Barrier": 20,
	} {
		// Collective calls are slices, and waits in them are, too.
		if got := counts[name]; got != want*ranks && !(strings.HasPrefix(name, "gas.") && got > want*ranks) {
			t.Errorf("%d slices %q, of %d", got, name, want*ranks)
		}
	}
}

// TestTrace: a trace has what a program did, on each conduit, and both ends of each arrow. On a simulated machine
// it has the same bytes each time.
func TestTrace(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "hybrid", "sim") {
		t.Run(conduit, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "trace")
			run := func(name string) []byte {
				cfg := small(3)
				cfg.Conduit, cfg.Output, cfg.Trace = conduit, &bytes.Buffer{}, name
				if err := Run(cfg, counted); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			b := run(name)
			rightlyTraced(t, b, conduit)
			if conduit == "sim" && !bytes.Equal(b, run(name+" again")) {
				t.Error("two runs of one seed have two traces")
			}
		})
	}
}

// TestTraceOfProcesses: processes write to one file.
func TestTraceOfProcesses(t *testing.T) {
	for _, conduit := range []string{"shm", "udp"} {
		t.Run(conduit, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "trace")
			if err := os.WriteFile(name, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			testjob.RunConfig(t, 3, "counted", testjob.Config{Env: []string{"ARGON_TRACE=" + name}}).Want(t, 0)
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rightlyTraced(t, b, conduit)
		})
	}
}

// TestTraceNames: a handler of the program has its name, and a multicast the ranks that it goes to, in a trace.
func TestTraceNames(t *testing.T) {
	t.Setenv("ARGON_SIM", "offload=on")
	for ranks, want := range map[int][]string{
		2: {"send own 0 1", "send own 0 1", "own 1 0", "own 1 0"},
		3: {"send own 0 1", fmt.Sprintf("send own 0 %d", uint64(allOthers)), "own 1 0", "own 1 0", "own 2 0"},
	} {
		namesIn(t, ranks, want)
	}
}

// namesIn compares what the trace of a job has of a handler with what it should.
func namesIn(t *testing.T, ranks int, want []string) {
	t.Helper()
	cfg, handled := small(ranks), 0 // by one thread on sim
	cfg.Conduit, cfg.Trace = "sim", filepath.Join(t.TempDir(), "trace")
	cfg.Handlers = []am.Entry{{Index: am.NumHandlers - 1, Name: "own", Fn: func(*am.Token, []uint32, []byte) { handled++ }}}
	err := Run(cfg, func(n *Node) error {
		if n.Rank() == 0 {
			n.Must(n.Layers().AM.RequestShort(1, am.NumHandlers-1))
			n.Must(n.Layers().AM.Multicast(am.NumHandlers-1, nil))
			return nil
		}
		return n.Wait(func() bool { return handled == ranks })
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(cfg.Trace)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range readTrace(t, b) {
		if strings.Contains(s.name, "own") {
			got = append(got, fmt.Sprintf("%s %d %d", s.name, s.rank, s.peer))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the trace of %d ranks has %q, not %q", ranks, got, want)
	}
}

// TestTraceSpans: spans are in the rank's track, nested as they were begun, side by side where goroutines of a rank have some at once, and what is
// in them is there at that time. One that ends ends those in it, and does so once.
func TestTraceSpans(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "sim") {
		cfg := small(2)
		cfg.Conduit, cfg.Output, cfg.Trace = conduit, &bytes.Buffer{}, filepath.Join(t.TempDir(), "trace")
		err := Run(cfg, func(n *Node) error {
			step := n.Span("step")
			exchange := n.Span("exchange")
			n.Must(n.Barrier())
			exchange()
			exchange()
			left := n.Span("left open")
			n.Span("inside of it")
			begun := make(chan bool)
			go func() {
				defer close(begun)
				defer n.Span("beside")()
			}()
			<-begun
			step()
			left()
			n.Span("after")()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(cfg.Trace)
		if err != nil {
			t.Fatal(err)
		}
		all := readTrace(t, b)
		for rank := range uint64(2) {
			var got []string
			var exchange *sliceRead
			for _, s := range all {
				if s.kind != "spans" || s.rank != rank {
					continue
				}
				if !strings.HasPrefix(s.line, "trace_test.go:") {
					t.Errorf("%s: span %q is at %q", conduit, s.name, s.line)
				}
				name := s.name
				for in := s.in; in != nil; in = in.in {
					name = in.name + "/" + name
				}
				got = append(got, name)
				if s.name == "exchange" {
					exchange = s
				}
			}
			slices.Sort(got) // for rows are in no order
			if want := []string{"after", "beside", "step", "step/exchange", "step/left open", "step/left open/inside of it"}; !slices.Equal(got, want) {
				t.Fatalf("%s: rank %d has the spans %q, not %q", conduit, rank, got, want)
			}
			if !slices.ContainsFunc(all, func(s *sliceRead) bool {
				return s.rank == rank && s.name == "gas.Node.Barrier" && exchange.began <= s.began && s.ended <= exchange.ended
			}) {
				t.Errorf("%s: rank %d has no barrier in the span that it is in", conduit, rank)
			}
		}
	}
}

// TestTraceSpansOff: a span that nothing records allocates nothing.
func TestTraceSpansOff(t *testing.T) {
	err := Run(small(1), func(n *Node) error {
		if k := testing.AllocsPerRun(100, func() { n.Span("step")() }); k != 0 {
			return fmt.Errorf("a span makes %v allocations", k)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// told is an Output that calls heard, once, when it is told where the last of a trace is.
type told struct {
	bytes.Buffer
	once  sync.Once
	heard func()
}

func (w *told) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "what the ranks have done last is in ") {
		w.once.Do(w.heard)
	}
	return w.Buffer.Write(b)
}

// TestTraceLast: what ranks have done last is written when the job fails, and when a report says where they wait, and the file is named; of
// a job that ends well there is none.
func TestTraceLast(t *testing.T) {
	fails := errors.New("it fails")
	for _, what := range []string{"ends", "fails", "asked"} {
		cfg, out := small(2), &told{}
		cfg.Output, cfg.Trace, cfg.TraceLast, cfg.Stall = out, filepath.Join(t.TempDir(), "trace"), "1h", "0"
		heard := make(chan bool)
		out.heard = func() { close(heard) }
		err := Run(cfg, func(n *Node) error {
			defer n.Span("all of it")()
			n.Must(n.Barrier())
			switch what {
			case "fails":
				if n.Rank() == 1 {
					return fails
				}
				return n.Wait(func() bool { return false })
			case "asked":
				if n.Rank() == 0 {
					if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
						return err
					}
					<-heard
				}
				return n.Barrier()
			}
			return nil
		})
		if (err != nil) != (what == "fails") || err != nil && !errors.Is(err, fails) {
			t.Fatalf("%s: %v", what, err)
		}
		b, err := os.ReadFile(cfg.Trace)
		if what == "ends" {
			if !errors.Is(err, fs.ErrNotExist) || out.Len() > 0 {
				t.Errorf("a job that ends well leaves a trace of %d bytes (%v), and says %q", len(b), err, out)
			}
			continue
		}
		if err != nil || !strings.Contains(out.String(), cfg.Trace) {
			t.Fatalf("%s: %v: %q does not name the trace", what, err, out)
		}
		for rank := range 2 {
			if !bytes.Contains(b, fmt.Appendf(nil, "rank %d", rank)) || bytes.Count(b, []byte("all of it")) != 2 {
				t.Errorf("%s: the trace has nothing of rank %d, or too much", what, rank)
			}
		}
	}
}

// killed is a job of which rank 1 is killed while rank 0 computes and cannot hear of it.
func killed(n *Node) error {
	defer n.Span("all of it")()
	n.Must(n.Barrier())
	if n.Rank() == 1 {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	select {}
}

// TestTraceLastOfProcesses: the launcher has a rank that cannot hear that the job has failed write what it has done.
func TestTraceLastOfProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	testjob.RunConfig(t, 2, "killed", testjob.Config{
		Env:    []string{"ARGON_TRACE=" + name, "ARGON_TRACE_LAST=1h"},
		Launch: func(c *launch.Config) { c.Trace, c.Last, c.AnswerGrace = name, true, time.Minute },
	}).Want(t, 128+int(syscall.SIGKILL))
	b, err := os.ReadFile(name)
	if err != nil || bytes.Count(b, []byte("all of it")) != 1 || !bytes.Contains(b, []byte("rank 0")) {
		t.Errorf("rank 0 has left %d bytes: %v", len(b), err)
	}
}

// askedToQuit ends as a job does that gasrun ends since it takes too long.
func askedToQuit(n *Node) error {
	n.Must(Must(New[int](n)).Put(n, 1))
	if err := syscall.Kill(os.Getpid(), syscall.SIGQUIT); err != nil {
		return err
	}
	select {}
}

// withoutRoom has a process write more to its trace than fits, and another one after it.
func withoutRoom(n *Node) error {
	p := Must(New[int](n))
	if n.Rank() == 0 {
		const room = 100_000
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
			return err
		}
		for range 3000 {
			n.Must(p.Put(n, 1))
		}
	}
	n.Must(n.Barrier())
	n.Must(p.Put(n, 1))
	return nil
}

// TestTraceOfFailures: the trace of a process that is asked to quit has all until then, and all packets of a trace that one process
// could not write all of are whole.
func TestTraceOfFailures(t *testing.T) {
	for _, tc := range []struct {
		program       string
		ranks, status int
	}{{"asked to quit", 1, jobenv.StatusQuit}, {"without room", 2, 0}} {
		name := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		r := testjob.RunConfig(t, tc.ranks, tc.program, testjob.Config{Env: []string{"ARGON_TRACE=" + name}})
		r.Want(t, tc.status)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var whole func(b []byte, below ...int)
		whole = func(b []byte, below ...int) {
			m, err := fields(b)
			if err != nil || len(m) == 0 {
				t.Fatalf("%s: %v in %x", tc.program, err, b)
			}
			if len(below) == 0 {
				return
			}
			for _, f := range m[below[0]] {
				whole(f.b, below[1:]...)
			}
		}
		whole(b, 1, 11)
		for rank := range tc.ranks {
			if !bytes.Contains(b, fmt.Appendf(nil, "rank %d", rank)) || !bytes.Contains(b, []byte("put by gas.Ptr.Put")) {
				t.Errorf("%s: the trace of %d bytes has nothing of rank %d", tc.program, len(b), rank)
			}
		}
		if told := strings.Count(r.Stderr[0], "argon: trace: it is not complete: "); told != tc.ranks-1 {
			t.Errorf("%s: that the trace is not complete is told %d times: %s", tc.program, told, r.Stderr[0])
		}
	}
}
