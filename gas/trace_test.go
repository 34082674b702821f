package gas

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	rank             uint64
	began, ended     uint64
	in               *sliceRead // that it is nested in
	from, to         []uint64
}

// readTrace reads a trace by the numbers of fields that Perfetto's protos publish, as trace_processor does: events of a
// track in the order of their times, and of the file where these are equal.
func readTrace(t *testing.T, file []byte) []*sliceRead {
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
	tracks, events := []uint64(nil), map[uint64][]event{}
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
	for _, id := range tracks {
		rank, known := ranks[parents[id]]
		if !known || names[id] == "" {
			t.Fatalf("no track %#x of a rank", id)
		}
		slices.SortStableFunc(events[id], func(a, b event) int { return cmp.Compare(a.at, b.at) })
		var in []*sliceRead
		for _, e := range events[id] {
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
				if f := parse(f.b); string(f[10][0].b) == "line" {
					s.line = string(f[6][0].b)
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
	return all
}

// rightlyTraced compares the trace of counted on ranks ranks with what it did, and looks for both ends of each arrow.
// Clocks of the ranks may differ by so much.
func rightlyTraced(t *testing.T, file []byte, ranks int, apart uint64) {
	t.Helper()
	all := readTrace(t, file)
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
		case strings.TrimPrefix(from.name, "send ") != s.name && !strings.HasSuffix(s.name, " complete"):
			t.Errorf("an arrow from %q to %q", from.name, s.name)
		case from.began > s.ended+apart:
			t.Errorf("%q of rank %d begins at %d, and ends as %q of rank %d at %d", from.name, from.rank, from.began, s.name, s.rank, s.ended)
		}
	}
	calls := 0
	for id, s := range starts {
		handler := ends[id]
		if handler == nil {
			if s.name == "send gas.collective.offer" { // a rank may leave without that
				continue
			}
			t.Errorf("an arrow without an end from %q of rank %d", s.name, s.rank)
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
	if calls != 9*ranks {
		t.Errorf("%d calls have arrows to their handlers, and from there back, of %d", calls, 9*ranks)
	}
	for name, want := range map[string]int{
		"send gas test tripled": 9, "put by gas.Ptr.Put": 100, "put by gas.Ptr.PutSlice": 1, "get by gas.Ptr.Get": 40,
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
	for _, conduit := range []string{"shm", "udp", "hybrid", "sim"} {
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
			if conduit != "sim" {
				rightlyTraced(t, b, 3, 1e8)
				return
			}
			rightlyTraced(t, b, 3, 0)
			if !bytes.Equal(b, run(name+" again")) {
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
			rightlyTraced(t, b, 3, 1e8)
		})
	}
}
